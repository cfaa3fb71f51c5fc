//! The guide of a data block: four bytes of each of some keys, side by side.
//!
//! A search by restarts touches the array at the block's end, some restarts all over the block, and the entries of an
//! interval: ten cache lines and more, most of them one after the other. The guide is made when a block is searched for the
//! second time, and lies beside the block's other fields.
//!
//! 1. All user keys start with the same `common` bytes (if there are that many), since the first and the last one do.
//! 2. A *mark* is an entry whose user key has at least four more bytes; as one integer they never contradict the order.
//! 3. The walk starts behind the last mark with a smaller integer than the target's: its key is smaller, and where the two
//!    integers differ first is how much it has in common with the target.
//!
//! There are no more marks than fit; of larger blocks every second, fourth, ... entry is one.

use super::builder::common_prefix;
use super::{Block, EntryHeader, entry_header};
use crate::base::{KeyBuffer, PACKED_SIZE, prefetch};

/// Most blocks of 4 KiB with more entries than this have fewer than twice as many.
const MARKS: usize = 24;
/// Bytes of a mark.
const WIDTH: usize = 4;
/// How much of what all keys start with is kept here.
const HEAD: usize = 24;
/// Entries that a walk may pass, more or less: where integers tell keys apart more rarely, restarts do better.
const WALK_MAX: usize = 24;

#[derive(Debug, Clone)]
pub(super) struct Guide {
    /// Where the first key lies in the block, how many of its bytes all have, and the first of these.
    first_key: u16,
    common: u16,
    head: [u8; HEAD],
    /// Ascending, and the largest number where there is none. The sign bit is flipped: machines compare signed ones.
    marks: [i32; MARKS],
    /// Where the entry behind each mark starts.
    after: [u16; MARKS],
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

impl Guide {
    /// Where to search for a user key in the block, whose bytes are `data`.
    #[inline]
    pub fn start(&self, data: &[u8], wanted: &[u8]) -> Start {
        prefetch(&raw const self.marks, size_of::<Self>().div_ceil(64));
        let common = usize::from(self.common);
        let head = match self.head.get(..common) {
            Some(head) => head,
            None => &data[usize::from(self.first_key)..][..common],
        };
        let Some((start, rest)) = wanted.split_at_checked(common) else {
            return if wanted <= head { Start::Before } else { Start::Behind };
        };
        if start != head {
            return if start < head { Start::Before } else { Start::Behind };
        }
        let number = leading_number(rest);
        // All of them, rather than a bisection: no branch to guess, and some in one instruction.
        let below: i32 = self.marks.iter().map(|&mark| i32::from(mark < flip(number))).sum();
        let Some(last) = (below as usize).checked_sub(1) else { return Start::At { offset: 0, common: 0 } };
        let difference = self.marks[last] ^ flip(number);
        Start::At {
            offset: self.after[last].into(),
            common: common + difference.leading_zeros() as usize / 8,
        }
    }

    /// Where entries behind others start, if there are few, so that all of them are marks.
    #[inline]
    pub fn few_places(&self) -> Option<&[u16]> {
        // Half of the marks stay where there are more entries.
        let count = self.marks[..MARKS / 2].partition_point(|&mark| mark != i32::MAX);
        (count < MARKS / 2).then_some(&self.after[..count])
    }

    /// Makes the guide of a block; `None` if the block cannot have one, or would be searched faster without.
    pub fn new(block: &Block) -> Option<Self> {
        // Of larger blocks, places want more than two bytes.
        if block.layout().values_offset.is_some()
            || block.is_empty()
            || block.entries_end() > usize::from(u16::MAX)
        {
            return None;
        }
        let entries = &block.data()[..block.entries_end()];
        let first = entry_header(entries, 0).filter(|header| header.shared == 0)?;
        let first_key = user_key(entries.get(first.suffix as usize..)?.get(..first.non_shared as usize)?)?;
        let last_key = last_key(block, entries)?;
        let last_key = user_key(last_key.as_slice())?;
        // Short keys that differ in their last bytes only have marks, too.
        let shortest = first_key.len().min(last_key.len());
        let common = common_prefix(first_key, last_key).min(shortest.saturating_sub(WIDTH));
        let mut guide = Self {
            first_key: first.suffix as u16,
            common: common as u16,
            head: [0; HEAD],
            marks: [i32::MAX; MARKS],
            after: [0; MARKS],
        };
        let kept = common.min(HEAD);
        guide.head[..kept].copy_from_slice(&first_key[..kept]);
        guide.place_marks(entries, &first_key[..common]).then_some(guide)
    }

    /// Goes over all entries, whose user keys should start with `head`; whether the outcome can be used.
    fn place_marks(&mut self, entries: &[u8], head: &[u8]) -> bool {
        let mut marks = Marks { guide: self, count: 0, stride: 1, last: 0 };
        let (mut offset, mut index, mut walk, mut length) = (0, 0, 0, 0);
        // The bytes of the last internal key behind `head`.
        let mut window = [0; WIDTH];
        while offset < entries.len() {
            let Some((header, suffix, next)) = entry(entries, offset) else { return false };
            let shared = header.shared as usize;
            let apart = head.len().saturating_sub(shared);
            if shared > length
                || shared + suffix.len() < head.len() + PACKED_SIZE
                || suffix[..apart] != head[head.len() - apart..]
            {
                return false;
            }
            length = shared + suffix.len();
            let kept = shared.saturating_sub(head.len()).min(WIDTH);
            window[kept..].copy_from_slice(&suffix[apart..][..WIDTH - kept]);
            let has_number = length - PACKED_SIZE >= head.len() + WIDTH;
            walk += 1;
            if has_number && index % marks.stride == 0 {
                let number = u32::from_be_bytes(window);
                if number < marks.last {
                    return false;
                }
                if number > marks.last {
                    walk = 0;
                }
                marks.add(number, next);
            }
            if walk > WALK_MAX.max(2 * marks.stride) {
                return false;
            }
            (offset, index) = (next, index + 1);
        }
        true
    }
}

/// The marks of a guide that is being made.
struct Marks<'a> {
    guide: &'a mut Guide,
    count: usize,
    /// One of so many entries is a mark.
    stride: usize,
    last: u32,
}

impl Marks<'_> {
    fn add(&mut self, number: u32, next: usize) {
        if self.count == MARKS {
            self.count /= 2;
            self.stride *= 2;
            for at in 0..self.count {
                self.guide.marks[at] = self.guide.marks[2 * at];
                self.guide.after[at] = self.guide.after[2 * at];
            }
            self.guide.marks[self.count..].fill(i32::MAX);
        }
        self.guide.marks[self.count] = flip(number);
        self.guide.after[self.count] = next as u16;
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
