//! The guide of a data block: four bytes of each of some keys, side by side.
//!
//! A search by restarts touches the array at the block's end, some restarts all over the block, and
//! the entries of an interval: ten cache lines and more, most of them one after the other. The
//! guide is made when a block is searched for the second time, and lies beside the block's other
//! fields.
//!
//! 1. All user keys start with the same `common` bytes (if there are that many), since the first
//!    and the last one do.
//! 2. A *mark* is an entry whose user key has at least four more bytes; as one integer they never
//!    contradict the order.
//! 3. The walk starts behind the last mark with a smaller integer than the target's: its key is
//!    smaller, and where the two integers differ first is how much it has in common with the
//!    target.
//!
//! There are no more marks than fit; of larger blocks every second, fourth, ... entry is one.
//!
//! ```text
//! guide = where the first key lies in the block (2 bytes), `common` (2), how many marks, if they are few and all entries (1),
//!         unused (3), the first of the common bytes (24), marks (4 each), where the entry behind each mark starts (2 each)
//! ```
//!
//! Marks ascend, and are the largest number where there is none. Their sign bits are flipped:
//! machines compare signed ones.

use super::builder::common_prefix;
use super::{Block, EntryHeader, entry_header};
use crate::base::{KeyBuffer, PACKED_SIZE, prefetch};

/// Most blocks of 4 KiB with more entries than this have fewer than twice as many.
const MANY: usize = 24;
/// Blocks of tables with hardly more entries in a block than this have as many marks: of the memory
/// of a block of 4 KiB a guide takes a fiftieth then.
const FEW: usize = 8;
/// With so many entries nobody asks where each starts.
const FEW_PLACES: usize = 12;
const PLACES_AT: usize = 4;
const HEAD_AT: usize = 8;
const MARKS_AT: usize = HEAD_AT + HEAD;
/// Bytes of a mark.
const WIDTH: usize = 4;
/// A mark and where the entry behind it starts.
const STEP: usize = WIDTH + 2;
/// How much of what all keys start with is kept here.
const HEAD: usize = 24;
/// Entries that a walk may pass, more or less: where integers tell keys apart more rarely, restarts
/// do better.
const WALK_MAX: usize = 24;

/// How much room a block has for its guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sst) enum GuideRoom {
    /// It is not searched.
    None,
    Few,
    Many,
}

impl GuideRoom {
    /// For the blocks of a table that has so many.
    pub fn of_table(entries: u64, blocks: u64) -> Self {
        if entries <= blocks.saturating_mul(FEW as u64) { Self::Few } else { Self::Many }
    }

    /// In bytes.
    pub const fn size(self) -> u16 {
        let marks = match self {
            Self::None => return 0,
            Self::Few => FEW,
            Self::Many => MANY,
        };
        (MARKS_AT + STEP * marks) as u16
    }
}

/// One that is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guide<'a>(pub(super) &'a [u8]);

/// One that is being made, before it is known how many marks it has.
struct Draft {
    first_key: u16,
    common: u16,
    head: [u8; HEAD],
    marks: [i32; MANY],
    after: [u16; MANY],
    /// How many marks there is room for.
    room: usize,
}

/// Where a search begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Nowhere: all keys are greater.
    Before,
    /// Nowhere: all keys are smaller.
    Behind,
    /// At this entry; `common` bytes of the key before are the target's, and the next is smaller.
    At { offset: usize, common: usize },
}

#[inline]
fn flip(number: u32) -> i32 {
    (number ^ 1 << 31).cast_signed()
}

impl<'a> Guide<'a> {
    fn number_at(self, at: usize) -> u16 {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]])
    }

    /// Where to search for a user key in the block, whose bytes are `data`.
    #[inline]
    pub fn start(self, data: &[u8], wanted: &[u8]) -> Start {
        prefetch(self.0.as_ptr(), self.0.len().div_ceil(64));
        let common = usize::from(self.number_at(2));
        let head = match self.0[HEAD_AT..MARKS_AT].get(..common) {
            Some(head) => head,
            None => &data[usize::from(self.number_at(0))..][..common],
        };
        let Some((start, rest)) = wanted.split_at_checked(common) else {
            return if wanted <= head { Start::Before } else { Start::Behind };
        };
        if start != head {
            return if start < head { Start::Before } else { Start::Behind };
        }
        let number = flip(leading_number(rest));
        if self.0.len() == usize::from(GuideRoom::Few.size()) {
            self.start_among::<FEW>(number, common)
        } else {
            self.start_among::<MANY>(number, common)
        }
    }

    #[inline]
    fn start_among<const MARKS: usize>(self, number: i32, common: usize) -> Start {
        let (marks, after) = self.0[MARKS_AT..][..STEP * MARKS].split_at(WIDTH * MARKS);
        let (marks, _) = marks.as_chunks::<WIDTH>();
        // All of them, rather than a bisection: no branch to guess, and some in one instruction.
        let below: i32 =
            marks.iter().map(|&mark| i32::from(i32::from_ne_bytes(mark) < number)).sum();
        let Some(last) = (below as usize).checked_sub(1) else {
            return Start::At { offset: 0, common: 0 };
        };
        let difference = i32::from_ne_bytes(marks[last]) ^ number;
        let offset = u16::from_ne_bytes(after.as_chunks().0[last]).into();
        Start::At { offset, common: common + difference.leading_zeros() as usize / 8 }
    }

    /// Where entries behind others start, if there are few, so that all of them are marks.
    #[inline]
    pub fn few_places(self) -> Option<impl Iterator<Item = usize> + 'a> {
        let count = usize::from(self.0[PLACES_AT]).checked_sub(1)?;
        let marks = (self.0.len() - MARKS_AT) / STEP;
        let (after, _) = self.0[MARKS_AT + WIDTH * marks..].as_chunks();
        Some(after[..count].iter().map(|&place| u16::from_ne_bytes(place).into()))
    }

    /// Puts the guide of a block into its margin; `false` if the block cannot have one, or would be
    /// searched faster without.
    pub fn write(block: &Block, margin: &mut [u8]) -> bool {
        let Some(room) = margin.len().checked_sub(MARKS_AT).map(|size| size / STEP) else {
            return false;
        };
        let Some((draft, places)) = Draft::new(block, room.min(MANY)) else { return false };
        draft.write(places, margin);
        true
    }
}

impl Draft {
    /// For a block; also how many marks there are, if these are all entries and few.
    fn new(block: &Block, room: usize) -> Option<(Self, Option<usize>)> {
        // Of larger blocks, places want more than two bytes.
        if block.layout().values_offset.is_some()
            || block.is_empty()
            || block.entries_end() > usize::from(u16::MAX)
        {
            return None;
        }
        let entries = &block.data()[..block.entries_end()];
        let first = entry_header(entries, 0).filter(|header| header.shared == 0)?;
        let first_key =
            user_key(entries.get(first.suffix as usize..)?.get(..first.non_shared as usize)?)?;
        let last_key = last_key(block, entries)?;
        let last_key = user_key(last_key.as_slice())?;
        // Short keys that differ in their last bytes only have marks, too.
        let shortest = first_key.len().min(last_key.len());
        let common = common_prefix(first_key, last_key).min(shortest.saturating_sub(WIDTH));
        let mut draft = Self {
            first_key: first.suffix as u16,
            common: common as u16,
            head: [0; HEAD],
            marks: [i32::MAX; MANY],
            after: [0; MANY],
            room,
        };
        let kept = common.min(HEAD);
        draft.head[..kept].copy_from_slice(&first_key[..kept]);
        let places = draft.place_marks(entries, &first_key[..common])?;
        Some((draft, places))
    }

    fn write(&self, places: Option<usize>, margin: &mut [u8]) {
        margin[..2].copy_from_slice(&self.first_key.to_ne_bytes());
        margin[2..PLACES_AT].copy_from_slice(&self.common.to_ne_bytes());
        margin[PLACES_AT..HEAD_AT].copy_from_slice(&[
            places.map_or(0, |count| count as u8 + 1),
            0,
            0,
            0,
        ]);
        margin[HEAD_AT..MARKS_AT].copy_from_slice(&self.head);
        let (marks, after) = margin[MARKS_AT..].split_at_mut(WIDTH * self.room);
        for at in 0..self.room {
            marks[WIDTH * at..][..WIDTH].copy_from_slice(&self.marks[at].to_ne_bytes());
            after[2 * at..][..2].copy_from_slice(&self.after[at].to_ne_bytes());
        }
    }

    /// Goes over all entries, whose user keys should start with `head`. `None` if the outcome
    /// cannot be used, else how many marks there are, if these are all entries and few.
    fn place_marks(&mut self, entries: &[u8], head: &[u8]) -> Option<Option<usize>> {
        let mut marks = Marks { draft: self, count: 0, stride: 1, last: 0 };
        let (mut offset, mut index, mut walk, mut length) = (0, 0, 0, 0);
        // The bytes of the last internal key behind `head`.
        let mut window = [0; WIDTH];
        while offset < entries.len() {
            let (header, suffix, next) = entry(entries, offset)?;
            let shared = header.shared as usize;
            let apart = head.len().saturating_sub(shared);
            if shared > length
                || shared + suffix.len() < head.len() + PACKED_SIZE
                || suffix[..apart] != head[head.len() - apart..]
            {
                return None;
            }
            length = shared + suffix.len();
            let kept = shared.saturating_sub(head.len()).min(WIDTH);
            window[kept..].copy_from_slice(&suffix[apart..][..WIDTH - kept]);
            let has_number = length - PACKED_SIZE >= head.len() + WIDTH;
            walk += 1;
            if has_number && index % marks.stride == 0 {
                let number = u32::from_be_bytes(window);
                if number < marks.last {
                    return None;
                }
                if number > marks.last {
                    walk = 0;
                }
                marks.add(number, next);
            }
            if walk > WALK_MAX.max(2 * marks.stride) {
                return None;
            }
            (offset, index) = (next, index + 1);
        }
        let are_places = marks.count == index && index < FEW_PLACES;
        Some(are_places.then_some(index))
    }
}

/// The marks of a guide that is being made.
struct Marks<'a> {
    draft: &'a mut Draft,
    count: usize,
    /// One of so many entries is a mark.
    stride: usize,
    last: u32,
}

impl Marks<'_> {
    fn add(&mut self, number: u32, next: usize) {
        if self.count == self.draft.room {
            self.count /= 2;
            self.stride *= 2;
            for at in 0..self.count {
                self.draft.marks[at] = self.draft.marks[2 * at];
                self.draft.after[at] = self.draft.after[2 * at];
            }
            self.draft.marks[self.count..].fill(i32::MAX);
        }
        self.draft.marks[self.count] = flip(number);
        self.draft.after[self.count] = next as u16;
        self.last = number;
        self.count += 1;
    }
}

/// The header, the key's suffix and the end of an entry, if it is whole.
fn entry(entries: &[u8], offset: usize) -> Option<(EntryHeader, &[u8], usize)> {
    let header = entry_header(entries, offset)?;
    let suffix = entries.get(header.suffix as usize..)?.get(..header.non_shared as usize)?;
    let next = header.suffix as usize + suffix.len() + header.value_length as usize;
    (next <= entries.len()).then_some((header, suffix, next))
}

fn user_key(internal: &[u8]) -> Option<&[u8]> {
    Some(&internal[..internal.len().checked_sub(PACKED_SIZE)?])
}

/// The internal key of the last entry.
fn last_key(block: &Block, entries: &[u8]) -> Option<KeyBuffer> {
    let mut key = KeyBuffer::new();
    let mut offset = block.restart(block.layout().num_restarts.checked_sub(1)?);
    while offset < entries.len() {
        let (header, suffix, next) = entry(entries, offset)?;
        if header.shared as usize > key.len() {
            return None;
        }
        key.splice(header.shared as usize, suffix);
        offset = next;
    }
    Some(key)
}

/// The first bytes as a big-endian number; what is missing counts as zeros.
#[inline]
fn leading_number(bytes: &[u8]) -> u32 {
    if let Some(first) = bytes.first_chunk::<WIDTH>() {
        return u32::from_be_bytes(*first);
    }
    let mut padded = [0; WIDTH];
    padded[..bytes.len()].copy_from_slice(bytes);
    u32::from_be_bytes(padded)
}
