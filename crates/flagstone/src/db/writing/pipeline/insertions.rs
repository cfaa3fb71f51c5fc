//! Publishing writes in the order of their sequence numbers, though threads insert them side by
//! side.
//!
//! **Algorithm.**
//! 1. With the commit lock held, a write takes the next *turn*, in the order of its record and its
//!    sequence numbers ([`Insertions::begin`]).
//! 2. Without the lock, it inserts into its memtables ([`Turn::done`]). If its turn is the lowest
//!    that was not passed, it publishes its number and passes the turn. Else it marks the turn as
//!    done.
//! 3. Whoever has passed a turn goes on with the turns behind that are marked. A write that waits
//!    for a sync is passed, and published by the sync.
//! 4. A write is acknowledged when its turn is passed: then all before it are in the memtables,
//!    too. Its thread looks a few times, and then sleeps until turns are passed.
//!
//! **Invariants**
//! 1. Who has a turn takes no lock of the pipeline, and waits at most for earlier turns. So whoever
//!    holds the commit lock may wait for turns.
//! 2. One thread at a time passes the lowest turn: its own thread as long as it is not marked, and
//!    afterwards whoever replaces the mark. It publishes first, so who finds a turn passed finds it
//!    published.
//! 3. A turn that ends without being done (a comparator panicked) is never passed. The database is
//!    poisoned by then, and everyone behind it gets an error.

use std::sync::Arc;

use crate::base::perf::{self, PerfMetric};
use crate::base::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, Rounds, spin_loop};
use crate::base::{Code, Error, Mutant, Result, SequenceNumber, SnapshotList, Sometimes, SubCode};

/// Turns that were begun and are not passed, at most. More writers than this wait for each other.
const SLOTS: u64 = if cfg!(any(feature = "shuttle", miri)) { 4 } else { 128 };

/// How often one looks before one sleeps: about as long as an insertion takes.
const LOOKS: u32 = if cfg!(any(feature = "shuttle", miri)) { 1 } else { 100 };

/// In a turn's place for the number to publish: the write waits for a sync.
const NOTHING: SequenceNumber = SequenceNumber::MAX;

/// The turns of all writes.
pub(super) struct Insertions {
    snapshots: Arc<SnapshotList>,
    /// The lowest turn that is not passed.
    passed: Line<AtomicU64>,
    slots: Box<[Line<Slot>]>,
    sleepers: AtomicUsize,
    rounds: Rounds,
    /// A turn has ended without being done.
    is_broken: AtomicBool,
}

/// The numbers of turns, which the commit lock guards.
#[derive(Debug, Default)]
pub(in crate::db::writing) struct TurnNumbers {
    next: u64,
    /// A lower bound on the number of passed turns. Where it is enough, the exact number is not
    /// loaded: that lies in a cache line that every write changes.
    passed: u64,
}

impl TurnNumbers {
    /// The number of the next turn.
    pub(super) fn next(&self) -> u64 {
        self.next
    }
}

/// What lies in lines of memory of its own, since it changes with each write.
#[derive(Default)]
#[repr(align(128))]
struct Line<T>(T);

/// The place of every turn whose number is the same modulo [`SLOTS`].
#[derive(Default)]
struct Slot {
    /// [`marked`] or [`taken`], of the last turn that was marked here.
    state: AtomicU64,
    /// What passing it publishes, or [`NOTHING`].
    publishes: AtomicU64,
}

/// The state of a slot whose turn is done, and passed by nobody yet.
fn marked(turn: u64) -> u64 {
    2 * (turn + 1)
}

/// The state of a slot whose turn somebody passes.
fn taken(turn: u64) -> u64 {
    marked(turn) + 1
}

/// The turn of one write.
#[must_use]
pub(super) struct Turn<'a> {
    insertions: &'a Insertions,
    number: u64,
    /// What passing it publishes, or [`NOTHING`].
    publishes: SequenceNumber,
}

impl Insertions {
    /// No write has begun.
    pub(super) fn new(snapshots: Arc<SnapshotList>) -> Self {
        Self {
            snapshots,
            passed: Line::default(),
            slots: (0..SLOTS).map(|_| Line::default()).collect(),
            sleepers: AtomicUsize::new(0),
            rounds: Rounds::default(),
            is_broken: AtomicBool::new(false),
        }
    }

    /// The last sequence number that readers see.
    #[inline]
    pub(super) fn published(&self) -> SequenceNumber {
        self.snapshots.published.load(Ordering::Acquire)
    }

    /// Shows readers all up to a sequence number that a sync has covered and whose turn is passed.
    pub(super) fn publish(&self, sequence: SequenceNumber) {
        self.snapshots.publish(sequence);
    }

    /// Shows readers what is there when the database is opened.
    pub(super) fn begin_behind(&self, last: SequenceNumber) {
        self.snapshots.published.store(last, Ordering::Release);
    }

    /// Takes the next turn, with the commit lock held. Passing it publishes a number, unless the
    /// write waits for a sync.
    #[inline]
    pub(super) fn begin(
        &self,
        numbers: &mut TurnNumbers,
        publishes: Option<SequenceNumber>,
    ) -> Turn<'_> {
        let number = numbers.next;
        // The place is free once the turn that had it before is passed. Behind a turn that is never
        // passed it does not matter.
        if number - numbers.passed >= SLOTS {
            self.wait_for(number - SLOTS).ok();
            numbers.passed = self.passed.0.load(Ordering::Acquire);
        }
        numbers.next = number + 1;
        Turn { insertions: self, number, publishes: publishes.unwrap_or(NOTHING) }
    }

    /// Waits until all writes that have begun are in the memtables, with the commit lock held:
    /// until it is given back, none begins.
    ///
    /// # Errors
    /// As [`Self::wait_for`].
    pub(super) fn wait_for_all(&self, numbers: &TurnNumbers) -> Result<()> {
        self.wait_for_turns_before(numbers.next)
    }

    /// Waits until all turns before this one are passed.
    ///
    /// # Errors
    /// As [`Self::wait_for`].
    pub(super) fn wait_for_turns_before(&self, turn: u64) -> Result<()> {
        turn.checked_sub(1).map_or(Ok(()), |last| self.wait_for(last))
    }

    /// Waits until a turn is passed: it and all before it are in the memtables.
    ///
    /// # Errors
    /// `Aborted` if a write before it has ended with a panic.
    #[inline]
    pub(super) fn wait_for(&self, turn: u64) -> Result<()> {
        if self.has_passed(turn) { Ok(()) } else { self.look_and_sleep(turn) }
    }

    #[cold]
    fn look_and_sleep(&self, turn: u64) -> Result<()> {
        let _time = perf::time(PerfMetric::WriteThreadWaitNanos);
        for _ in 0..LOOKS {
            spin_loop();
            if self.has_passed(turn) {
                return Ok(());
            }
        }
        Sometimes::SleptForInsertions.reached();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let outcome = loop {
            let round = self.rounds.now();
            if self.has_passed(turn) {
                break Ok(());
            }
            if self.is_broken.load(Ordering::SeqCst) {
                break Err(follows_a_panic());
            }
            self.rounds.wait_beyond(round);
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    fn has_passed(&self, turn: u64) -> bool {
        self.passed.0.load(Ordering::SeqCst) > turn
    }

    fn slot(&self, turn: u64) -> &Slot {
        &self.slots[(turn % SLOTS) as usize].0
    }

    /// Passes the turns that are marked, up to the first that is not; `has_passed` one already.
    ///
    /// Who marks its turn looks afterwards for the turn before, and who passes that one looks
    /// afterwards for the mark. All of that is sequentially consistent, so one of them sees both.
    fn pass_marked(&self, mut has_passed: bool) {
        loop {
            let turn = self.passed.0.load(Ordering::SeqCst);
            let slot = self.slot(turn);
            if slot.state.load(Ordering::SeqCst) != marked(turn) {
                break;
            }
            // Once this turn is passed, its place may have the mark of a later one.
            let is_mine = slot.state.compare_exchange(
                marked(turn),
                taken(turn),
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
            if is_mine.is_ok() {
                self.pass(turn, slot.publishes.load(Ordering::Relaxed));
                has_passed = true;
            }
        }
        if has_passed && self.sleepers.load(Ordering::SeqCst) > 0 && !Mutant::ForgetSleepers.is_on()
        {
            self.rounds.advance();
        }
    }

    /// Passes the lowest turn, which is the caller's to pass.
    #[inline]
    fn pass(&self, turn: u64, publishes: SequenceNumber) {
        if publishes != NOTHING {
            self.snapshots.publish(publishes);
        }
        self.passed.0.store(turn + 1, Ordering::SeqCst);
    }
}

impl Turn<'_> {
    /// Waits until all writes before this one are in the memtables.
    ///
    /// # Errors
    /// As [`Insertions::wait_for`].
    pub(super) fn wait_for_earlier(&self) -> Result<()> {
        self.insertions.wait_for_turns_before(self.number)
    }

    /// All of the write is in its memtables. Returns the number of the turn.
    #[inline]
    pub(super) fn done(self) -> u64 {
        let Self { insertions, number, publishes } = self;
        std::mem::forget(self);
        if Mutant::PublishOutOfOrder.is_on() && publishes != NOTHING {
            insertions.snapshots.publish(publishes);
        }
        let is_lowest = insertions.passed.0.load(Ordering::SeqCst) == number;
        if is_lowest {
            insertions.pass(number, publishes);
        } else {
            let slot = insertions.slot(number);
            slot.publishes.store(publishes, Ordering::Relaxed);
            slot.state.store(marked(number), Ordering::SeqCst);
        }
        insertions.pass_marked(is_lowest);
        number
    }
}

impl Drop for Turn<'_> {
    #[cold]
    fn drop(&mut self) {
        self.insertions.is_broken.store(true, Ordering::SeqCst);
        self.insertions.rounds.advance();
    }
}

fn follows_a_panic() -> Error {
    Error::new(
        Code::Aborted,
        "a write before this one ended with a panic; whether this one took place is decided when the database is \
         opened again",
    )
    .with_subcode(SubCode::Poisoned)
}

#[cfg(test)]
mod tests;
