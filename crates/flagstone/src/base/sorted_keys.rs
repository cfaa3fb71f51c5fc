//! Ascending keys, of which those up to another key are counted.
//!
//! 1. In the plain byte order numbers are compared, the eight bytes behind what all keys begin with (`sorted_numbers`). Keys
//!    are only looked at where these are equal.
//! 2. Where all keys end alike behind these bytes, equal numbers are equal keys, and no key is looked at.
//! 3. The first key and the second, the third and the fourth, and so on, are the bounds of ranges. Most keys in none of these
//!    are told by bits (`covered_parts`), and where ranges lie close together all keys are.

use std::cmp::Ordering;

use super::comparator::Comparator;
use super::covered_parts::{Covered, CoveredParts};
use super::sorted_numbers::{Place, SortedNumbers};

/// Ascending keys, one after the other in one piece of memory.
#[derive(Debug, Clone, Default)]
pub(super) struct SortedKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// In the plain byte order.
    numbers: Option<Numbers>,
}

/// Keys as numbers in the same order, as far as eight bytes behind a common beginning can tell.
#[derive(Debug, Clone)]
struct Numbers {
    common: Vec<u8>,
    /// What all of them have behind the eight bytes, if that is the same and all have as many.
    tail: Option<Vec<u8>>,
    /// If that is so.
    frame: Option<Frame>,
    sorted: SortedNumbers,
    /// Where the numbers lie of keys in the ranges.
    covered: CoveredParts,
}

/// What is known of a key that may lie in one of the ranges before other memory than bits is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Within {
    /// It does; keys up to it have smaller numbers than this.
    Yes(u64),
    /// It is counted there.
    Maybe(Place),
}

/// What all keys have around their numbers, at most eight bytes on each side, for keys that are as long: to compare it takes no
/// look at other memory.
#[derive(Debug, Clone, Copy)]
struct Frame {
    key_len: usize,
    /// Where the number begins.
    number_at: usize,
    /// Of the first eight bytes and of the last eight those that are no part of the number, and what they are.
    before: Masked,
    behind: Masked,
}

#[derive(Debug, Clone, Copy)]
struct Masked {
    mask: u64,
    value: u64,
}

impl SortedKeys {
    /// Adds a key, not smaller than those before.
    pub fn add(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Removes the key that was added last.
    pub fn remove_last(&mut self) {
        self.ends.pop();
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// To be called when all are added.
    pub fn finish(&mut self, comparator: &Comparator) {
        self.numbers = comparator.is_bytewise().then(|| Numbers::of(self));
    }

    /// The key that was added last.
    pub fn last(&self) -> Option<&[u8]> {
        self.ends.len().checked_sub(1).map(|last| self.get(last))
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|index| self.get(index))
    }

    /// The key at that position.
    ///
    /// # Panics
    /// If there are not that many.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    /// Begins to look for the range that holds `key`: the memory that the rest will wait for is on its way. `None` if none
    /// does.
    #[inline]
    pub fn seek(&self, key: &[u8]) -> Option<Within> {
        match &self.numbers {
            Some(numbers) => numbers.seek(key),
            None => Some(Within::Maybe(Place::END)),
        }
    }

    /// How many keys are not larger than `key`.
    #[inline]
    pub fn count_up_to(&self, comparator: &Comparator, key: &[u8]) -> usize {
        let bound = self.numbers.as_ref().and_then(|numbers| numbers.bound(key));
        self.count_at(comparator, self.place_of(bound), key)
    }

    /// The same for a key that was sought.
    #[inline]
    pub fn count_from(&self, comparator: &Comparator, within: Within, key: &[u8]) -> usize {
        let place = match within {
            Within::Yes(bound) => self.place_of(Some(bound)),
            Within::Maybe(place) => place,
        };
        self.count_at(comparator, place, key)
    }

    /// Where numbers smaller than `bound` are counted.
    fn place_of(&self, bound: Option<u64>) -> Place {
        let numbers = self.numbers.as_ref().zip(bound);
        numbers.map_or(Place::END, |(numbers, bound)| numbers.sorted.seek(bound))
    }

    #[inline]
    fn count_at(&self, comparator: &Comparator, place: Place, key: &[u8]) -> usize {
        match &self.numbers {
            Some(Numbers { tail: Some(_), sorted, .. }) => sorted.rank_at(place),
            numbers => self.compare_keys(comparator, numbers.as_ref(), place, key),
        }
    }

    /// The same where numbers do not tell.
    #[inline(never)]
    fn compare_keys(
        &self,
        comparator: &Comparator,
        numbers: Option<&Numbers>,
        place: Place,
        key: &[u8],
    ) -> usize {
        let Some(Numbers { sorted, .. }) = numbers else {
            return self.search(comparator, 0, self.ends.len(), key);
        };
        let smaller = sorted.rank_at(place);
        self.search(comparator, smaller, sorted.rank_behind(place, smaller), key)
    }

    /// The same, by a binary search of the keys from one position to another.
    fn search(&self, comparator: &Comparator, mut from: usize, mut to: usize, key: &[u8]) -> usize {
        while from < to {
            let middle = usize::midpoint(from, to);
            match comparator.compare(self.get(middle), key).is_le() {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }

    /// Bytes of memory that they take.
    pub fn memory_usage(&self) -> usize {
        let numbers = self.numbers.as_ref();
        let numbers = numbers.map_or(0, |one| one.sorted.memory_usage() + one.covered.memory_usage());
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>() + numbers
    }
}

impl Numbers {
    fn of(keys: &SortedKeys) -> Self {
        let (first, last) = (keys.iter().next().unwrap_or_default(), keys.last().unwrap_or_default());
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let tail = first.get(shared + 8..);
        let tail = tail.filter(|_| keys.iter().all(|key| key.get(shared + 8..) == tail));
        let frame = tail.and_then(|tail| Frame::of(first, shared, tail.len()));
        let numbers: Vec<u64> = keys.iter().map(|key| number(&key[shared..])).collect();
        let sorted = SortedNumbers::new(&numbers);
        let ranges = numbers.chunks_exact(2);
        let covered = match tail {
            // The bounds of keys from the first one to the one before the second.
            Some(_) => CoveredParts::of(ranges.map(|range| (range[0] + 1, range[1])), Some(sorted.unit())),
            None => CoveredParts::of(ranges.map(|range| (range[0], range[1])), None),
        };
        Self { common: first[..shared].to_vec(), tail: tail.map(<[u8]>::to_vec), frame, sorted, covered }
    }

    #[inline]
    fn seek(&self, key: &[u8]) -> Option<Within> {
        let bound = self.bound(key)?;
        match self.covered.at(bound) {
            Covered::No => None,
            Covered::Yes => Some(Within::Yes(bound)),
            Covered::Maybe => Some(Within::Maybe(self.sorted.seek(bound))),
        }
    }

    /// As [`Numbers::bound_of`].
    #[inline]
    fn bound(&self, key: &[u8]) -> Option<u64> {
        match &self.frame {
            Some(frame) if frame.key_len == key.len() => frame.bound_of(key),
            _ => self.bound_of(key),
        }
    }

    /// The number that keys up to `key` are smaller than; if there is no common ending, smaller than or equal to. None if all
    /// keys are smaller than `key`.
    fn bound_of(&self, key: &[u8]) -> Option<u64> {
        let Some((beginning, rest)) = key.split_at_checked(self.common.len()) else {
            return (key < &self.common[..]).then_some(0);
        };
        match beginning.cmp(&self.common) {
            Ordering::Less => return Some(0),
            Ordering::Equal => {}
            Ordering::Greater => return None,
        }
        let number = number(rest);
        match &self.tail {
            Some(tail) if rest.get(8..).is_some_and(|rest| rest >= tail.as_slice()) => number.checked_add(1),
            _ => Some(number),
        }
    }
}

impl Frame {
    /// What is around the number that begins at `number_at` in one of the keys, with `tail_len` bytes behind it.
    fn of(key: &[u8], number_at: usize, tail_len: usize) -> Option<Self> {
        if number_at > 8 || tail_len > 8 {
            return None;
        }
        let before = u64::MAX.checked_shr(8 * number_at as u32).map_or(u64::MAX, |rest| !rest);
        let behind = u64::MAX.checked_shl(8 * tail_len as u32).map_or(u64::MAX, |rest| !rest);
        let masked = |mask, bytes| Masked { mask, value: number(bytes) & mask };
        let (before, behind) = (masked(before, key), masked(behind, &key[key.len() - 8..]));
        Some(Self { key_len: key.len(), number_at, before, behind })
    }

    /// As [`Numbers::bound_of`], of a key that is as long.
    #[inline]
    fn bound_of(&self, key: &[u8]) -> Option<u64> {
        let first = u64::from_be_bytes(*key.first_chunk()?);
        let last = u64::from_be_bytes(*key.last_chunk()?);
        let number = u64::from_be_bytes(*key.get(self.number_at..)?.first_chunk()?);
        match (first & self.before.mask).cmp(&self.before.value) {
            Ordering::Less => Some(0),
            Ordering::Equal if last & self.behind.mask >= self.behind.value => number.checked_add(1),
            Ordering::Equal => Some(number),
            Ordering::Greater => None,
        }
    }
}

/// The first eight bytes as a number.
#[inline]
fn number(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            bytes.iter().enumerate().fold(0, |number, (at, byte)| number | u64::from(*byte) << (56 - 8 * at))
        }
    }
}
