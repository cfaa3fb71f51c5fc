//! Which parts of what keys span ranges lie in, where eight bytes tell keys apart badly: a user's
//! items share those of the user.
//!
//! 1. Keys that are alike up to some place are a group, and the eight bytes from there on are their
//!    numbers. The place is as far behind as nearly all ranges allow, which begin and end in one
//!    group: then bits tell what the keys themselves would. That only one range has some eight
//!    bytes does not say that they are enough: many keys in no range may have them, too.
//! 2. Parts of the numbers in all groups make one filter (`covered_parts`).
//! 3. Ranges from one group into another are not in it: they are asked by the eight bytes in front.

use super::covered_parts::{Covered, CoveredParts};
use super::sorted_keys::number;

/// So many words of eight bytes a group has at most.
const WORDS_MAX: usize = 8;

/// One in so many ranges, or fewer, may lead from one group into another.
const WIDE_ONE_IN: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct CoveredGroups {
    /// Where what tells groups apart begins in a key, and where it ends and numbers begin.
    from: usize,
    to: usize,
    parts: CoveredParts,
}

impl CoveredGroups {
    /// Of ranges with starts and ends that are alike up to `from`; none if too many lead from one
    /// group into another.
    pub fn of<'a>(
        ranges: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + Clone,
        from: usize,
    ) -> Option<Self> {
        let mut words = [0; WORDS_MAX + 1];
        ranges
            .clone()
            .for_each(|(start, end)| words[shared(&start[from..], &end[from..]) / 8] += 1);
        let mut wide = 0;
        let shallow = words.iter().take_while(|&&with_so_many| {
            wide += with_so_many;
            wide <= ranges.len() / WIDE_ONE_IN
        });
        let words = shallow.count().min(WORDS_MAX);
        if words == 0 {
            return None;
        }
        let to = from + 8 * words;
        let mut groups = Self { from, to, parts: CoveredParts::default() };
        let narrow = ranges.filter(|(start, end)| groups.is_in_one(start, end));
        let narrow: Vec<_> = narrow
            .map(|(start, end)| {
                (group(&start[from..to]), number_behind(start, to), last_before(end, to))
            })
            .collect();
        groups.parts = CoveredParts::in_groups(&narrow);
        Some(groups)
    }

    /// Whether what begins and ends there lies in one group.
    pub fn is_in_one(&self, start: &[u8], end: &[u8]) -> bool {
        start
            .get(self.from..self.to)
            .is_some_and(|group| end.get(self.from..self.to) == Some(group))
    }

    /// Whether the key lies in one of the ranges that lie in one group.
    #[inline]
    pub fn at(&self, key: &[u8]) -> Covered {
        let Some(words) = key.get(self.from..self.to) else { return Covered::No };
        self.parts.at_in(group(words), number_behind(key, self.to))
    }

    /// Bytes of memory that they take.
    pub fn memory_usage(&self) -> usize {
        self.parts.memory_usage()
    }
}

/// How many bytes they share at their beginning, of those that count.
fn shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take(8 * WORDS_MAX).take_while(|(a, b)| a == b).count()
}

/// The number from `at` on that no key smaller than `end`, and alike before, exceeds.
fn last_before(end: &[u8], at: usize) -> u64 {
    let ends_in_it = end.len() <= at + 8 && end.last().is_some_and(|&last| last > 0);
    number_behind(end, at) - u64::from(ends_in_it)
}

/// The eight bytes from `at` on, which is at least eight; zeros for those that are not there.
#[inline]
fn number_behind(key: &[u8], at: usize) -> u64 {
    match (key.get(at..).and_then(<[u8]>::first_chunk), key.last_chunk()) {
        (Some(bytes), _) => u64::from_be_bytes(*bytes),
        (None, Some(last)) => {
            u64::from_be_bytes(*last).checked_shl(8 * (at + 8 - key.len()) as u32).unwrap_or(0)
        }
        (None, None) => 0,
    }
}

/// A hash of whole words.
#[inline]
fn group(words: &[u8]) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    words.chunks_exact(8).map(number).fold(0, |hash, word| {
        let hash = (hash ^ word).wrapping_mul(MIX);
        hash ^ hash >> 32
    })
}
