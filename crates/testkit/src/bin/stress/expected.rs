//! What the database must hold, in a file beside it that is written with plain positioned writes:
//! what the system has taken survives the death of the process.
//!
//! ```text
//! file    ::= header thread* slot*                      a slot a family and key, a block a thread
//! header  ::= epoch funded                              one page, so that no block crosses one
//! thread  ::= stage count (place state)*                one block; the operation that is on its way
//! slot    ::= count state*                              64 bytes; what the key may hold, oldest first
//! ```
//!
//! All are 64-bit words. Before a logged operation its changes stand in the thread's block; when it
//! is acknowledged they go to the slots. A write without the WAL adds to its key's slot what may be
//! found, should it survive.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::space::{FAMILIES, Space};
use crate::value::{Place, State};

/// The most changes of one operation.
pub const CHANGES_MAX: usize = 250;

/// The most states that a key may be found in.
pub const STATES_MAX: usize = 7;

const WORD: usize = 8;
const HEADER: usize = 4096;
const BLOCK: usize = 4096;
const SLOT: usize = (1 + STATES_MAX) * WORD;
const _: () = assert!((2 + 2 * CHANGES_MAX) * WORD <= BLOCK);

/// One key's change by an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Which key.
    pub place: Place,
    /// What it holds afterwards.
    pub state: State,
}

/// How far a thread's operation came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// There is none.
    Idle,
    /// It was begun: all of it may be found, or nothing.
    Begun,
    /// It was acknowledged: all of it must be found.
    Acknowledged,
}

/// What a key may be found to hold, oldest first; the last is what it holds while the process
/// lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot(Vec<State>);

impl Slot {
    /// A key that can only hold this.
    pub fn certain(state: State) -> Self {
        Self(vec![state])
    }

    /// All that it may hold.
    pub fn states(&self) -> &[State] {
        &self.0
    }

    /// What it holds while the process lives.
    pub fn last(&self) -> State {
        *self.0.last().expect("a slot is never empty")
    }

    /// Whether it can only hold one thing.
    pub fn is_certain(&self) -> bool {
        self.0.len() == 1
    }

    /// Whether another uncertain state may be added.
    pub fn has_room(&self) -> bool {
        self.0.len() < STATES_MAX
    }

    /// It may hold this, too.
    pub fn push(&mut self, state: State) {
        self.0.push(state);
    }

    /// What was added last did not happen.
    pub fn pop(&mut self) {
        self.0.pop();
    }
}

/// The file.
pub struct Expected {
    file: File,
    space: Space,
}

impl Expected {
    /// Opens the file, or makes it with its full size, so that a full disk cannot come between.
    pub fn open(path: &Path, space: Space) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let expected = Self { file, space };
        let size = expected.slot_offset(Place { family: FAMILIES.len(), index: 0 });
        if expected.file.metadata()?.len() != size {
            expected.file.set_len(0)?;
            let zeros = vec![0; 1 << 20];
            let mut at = 0;
            while at < size {
                let part = (size - at).min(zeros.len() as u64);
                expected.file.write_all_at(&zeros[..part as usize], at)?;
                at += part;
            }
        }
        Ok(expected)
    }

    /// Counts one more life of a process; versions of different lives differ.
    pub fn next_epoch(&self) -> io::Result<u64> {
        let epoch = self.read(0, 1)?[0] + 1;
        self.write(0, &[epoch])?;
        Ok(epoch)
    }

    /// Whether the bank was founded.
    pub fn is_funded(&self) -> io::Result<bool> {
        Ok(self.read(WORD as u64, 1)?[0] == 1)
    }

    /// The bank was founded.
    pub fn set_funded(&self) -> io::Result<()> {
        self.write(WORD as u64, &[1])
    }

    /// What a key may hold.
    pub fn slot(&self, place: Place) -> io::Result<Slot> {
        let words = self.read(self.slot_offset(place), 1 + STATES_MAX)?;
        // A file of zeros says: nothing was ever written.
        let count = (words[0] as usize).clamp(1, STATES_MAX);
        Ok(Slot(words[1..=count].iter().copied().map(State).collect()))
    }

    /// Notes what a key may hold.
    pub fn set_slot(&self, place: Place, slot: &Slot) -> io::Result<()> {
        let words: Vec<u64> =
            [slot.0.len() as u64].into_iter().chain(slot.0.iter().map(|state| state.0)).collect();
        self.write(self.slot_offset(place), &words)
    }

    /// Notes what a thread is about to do.
    pub fn begin(&self, thread: usize, changes: &[Change]) -> io::Result<()> {
        assert!(changes.len() <= CHANGES_MAX, "one operation changes at most {CHANGES_MAX} keys");
        let mut words = vec![1, changes.len() as u64];
        for Change { place, state } in changes {
            words.extend([(place.family * self.space.keys() + place.index) as u64, state.0]);
        }
        self.write(self.thread_offset(thread), &words)
    }

    /// It was done.
    pub fn acknowledge(&self, thread: usize, changes: &[Change]) -> io::Result<()> {
        // One slot is written as one; several may be cut in two by the death of the process.
        if changes.len() > 1 {
            self.write(self.thread_offset(thread), &[2])?;
        }
        for change in changes {
            self.set_slot(change.place, &Slot::certain(change.state))?;
        }
        self.clear(thread)
    }

    /// It was not done, or needs no more thought.
    pub fn clear(&self, thread: usize) -> io::Result<()> {
        self.write(self.thread_offset(thread), &[0])
    }

    /// What a thread was doing.
    pub fn on_its_way(&self, thread: usize) -> io::Result<(Stage, Vec<Change>)> {
        let words = self.read(self.thread_offset(thread), BLOCK / WORD)?;
        let stage = match words[0] {
            0 => return Ok((Stage::Idle, Vec::new())),
            1 => Stage::Begun,
            _ => Stage::Acknowledged,
        };
        let count = (words[1] as usize).min(CHANGES_MAX);
        let changes = words[2..2 + 2 * count].chunks_exact(2).map(|pair| {
            let (family, index) =
                (pair[0] as usize / self.space.keys(), pair[0] as usize % self.space.keys());
            Change { place: Place { family, index }, state: State(pair[1]) }
        });
        Ok((stage, changes.collect()))
    }

    fn thread_offset(&self, thread: usize) -> u64 {
        (HEADER + thread * BLOCK) as u64
    }

    fn slot_offset(&self, place: Place) -> u64 {
        let number = (place.family * self.space.keys() + place.index) as u64;
        self.thread_offset(self.space.threads) + number * SLOT as u64
    }

    fn read(&self, offset: u64, count: usize) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; count * WORD];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes
            .chunks_exact(WORD)
            .map(|word| u64::from_le_bytes(word.try_into().expect("a word")))
            .collect())
    }

    fn write(&self, offset: u64, words: &[u64]) -> io::Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.file.write_all_at(&bytes, offset)
    }
}

#[cfg(test)]
mod tests;
