//! Ascending keys, of which those up to another key are counted.
//!
//! 1. In the plain byte order numbers are compared, the eight bytes behind what all keys begin with
//!    (`sorted_numbers`), or what the shortest of them end with, if these are fewer. Keys are only
//!    looked at where numbers are equal.
//! 2. Where all keys end alike behind these bytes, equal numbers are equal keys, and no key is
//!    looked at. Where they end in a few ways, as the first and the last key of a range do that is
//!    one key, a byte tells in which.
//! 3. The first key and the second, the third and the fourth, and so on, are the bounds of ranges.
//!    Most keys in none of these are told by bits (`covered_parts`), and where ranges lie close
//!    together all keys are. Numbers in decimal digits are taken as what they say: few of the
//!    numbers that eight bytes can be are digits. Where keys end in more than a way or two, bits
//!    look at more than eight bytes (`covered_groups`).

use std::cmp::Ordering;
use std::num::NonZeroUsize;

use super::comparator::Comparator;
use super::covered_groups::CoveredGroups;
use super::covered_parts::{Covered, CoveredParts};
use super::digits::{decimal, decimal_bound};
use super::prefetch;
use super::sorted_numbers::{Place, SortedNumbers};

/// In so many ways keys may end that a byte tells which.
const TAILS_MAX: usize = 16;

/// Ascending keys, one after the other in one piece of memory.
#[derive(Debug, Clone, Default)]
pub(super) struct SortedKeys {
    bytes: Vec<u8>,
    /// Where each ends, unless that is told by `width`.
    ends: Vec<usize>,
    /// How long all of them are, if they are as long as one another and all are added.
    width: Option<NonZeroUsize>,
    /// In the plain byte order.
    numbers: Option<Numbers>,
}

/// Keys as numbers in the same order, as far as eight bytes behind a common beginning can tell.
#[derive(Debug, Clone)]
struct Numbers {
    common: Vec<u8>,
    /// What they have behind the eight bytes, if all have as many.
    tails: Option<Tails>,
    /// If that is the same of all.
    frame: Option<Frame>,
    sorted: SortedNumbers,
    /// Where the numbers lie of keys in the ranges, or what these say in decimal digits.
    covered: CoveredParts,
    are_decimal: bool,
    /// Where keys have more than a way or two to end, the ranges that are not among `covered`.
    groups: Option<CoveredGroups>,
}

/// What keys have behind their numbers.
#[derive(Debug, Clone)]
struct Tails {
    /// Each once, ascending.
    distinct: Vec<Vec<u8>>,
    /// Which of these each key has; nothing if there is one.
    of_each: Vec<u8>,
}

/// What is known of a key that may lie in one of the ranges before other memory than bits is looked
/// at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Within {
    /// It does; keys up to it have smaller numbers than this.
    Yes(u64),
    /// It is counted there.
    Maybe(Place),
}

/// What all keys have around their numbers, at most eight bytes on each side, for keys that are as
/// long: to compare it takes no look at other memory.
#[derive(Debug, Clone, Copy)]
struct Frame {
    key_len: usize,
    /// Where the number begins.
    number_at: usize,
    /// Of the first eight bytes and of the last eight those that are no part of the number, and
    /// what they are.
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
        let width = self.ends.first().copied().unwrap_or(0);
        if self.ends.iter().enumerate().all(|(at, &end)| end == (at + 1) * width) {
            self.width = NonZeroUsize::new(width);
        }
        if self.width.is_some() {
            self.ends = Vec::new();
        }
        self.numbers = comparator.is_bytewise().then(|| Numbers::of(self));
    }

    /// The key that was added last.
    pub fn last(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).map(|last| self.get(last))
    }

    fn len(&self) -> usize {
        self.width.map_or(self.ends.len(), |width| self.bytes.len() / width)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    fn ranges(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> + Clone {
        (0..self.len() / 2).map(|index| (self.get(2 * index), self.get(2 * index + 1)))
    }

    /// The key at that position.
    ///
    /// # Panics
    /// If there are not that many.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        if let Some(width) = self.width {
            let start = index * width.get();
            return &self.bytes[start..start + width.get()];
        }
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    /// Whether they are sought as numbers, so that few of them are compared as keys.
    #[inline]
    pub fn are_numbers(&self) -> bool {
        self.numbers.is_some()
    }

    /// Begins to look for the range that holds `key`: the memory that the rest will wait for is on
    /// its way. `None` if none does.
    #[inline]
    pub fn seek(&self, key: &[u8]) -> Option<Within> {
        match &self.numbers {
            Some(numbers) => numbers.seek(key).inspect(|&within| match within {
                Within::Maybe(place) if numbers.tails.is_none() => {
                    self.prefetch_keys(numbers.sorted.line(place))
                }
                _ => {}
            }),
            None => Some(Within::Maybe(Place::END)),
        }
    }

    /// Asks for the memory of keys that will be compared, or at least of where they lie.
    fn prefetch_keys(&self, (from, count): (usize, usize)) {
        const LINES_MAX: usize = 6;
        let lines = |bytes: usize| (bytes / 64 + 1).min(LINES_MAX);
        match self.width.map(NonZeroUsize::get) {
            Some(width) => prefetch(
                self.bytes.as_ptr().wrapping_add(from.wrapping_mul(width)),
                lines(count * width),
            ),
            None => {
                prefetch(self.ends.as_ptr().wrapping_add(from), lines(count * size_of::<usize>()))
            }
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
        numbers.map_or(Place::END, |(numbers, bound)| numbers.place_of(bound))
    }

    #[inline]
    fn count_at(&self, comparator: &Comparator, place: Place, key: &[u8]) -> usize {
        match &self.numbers {
            Some(numbers) if numbers.tail().is_some() => numbers.sorted.rank_at(place),
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
        let Some(numbers) = numbers else {
            return self.search(comparator, 0, self.len(), key);
        };
        let smaller = numbers.sorted.rank_at(place);
        let behind = numbers.sorted.rank_behind(place, smaller);
        match numbers.count_tails(smaller, behind, key) {
            Some(count) => smaller + count,
            None => self.search(comparator, smaller, behind, key),
        }
    }

    /// The same, by a binary search of the keys from one position to another.
    fn search(&self, comparator: &Comparator, mut from: usize, mut to: usize, key: &[u8]) -> usize {
        while from < to {
            let middle = usize::midpoint(from, to);
            if comparator.compare(self.get(middle), key).is_le() {
                from = middle + 1
            } else {
                to = middle
            }
        }
        from
    }

    /// Bytes of memory that they take.
    pub fn memory_usage(&self) -> usize {
        let numbers = self.numbers.as_ref();
        let numbers = numbers.map_or(0, Numbers::memory_usage);
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>() + numbers
    }
}

impl Tails {
    /// Of keys with numbers that begin at `number_at`, if all of them reach to the end of these and
    /// there are few tails.
    fn of(keys: &SortedKeys, number_at: usize) -> Option<Self> {
        let mut distinct: Vec<&[u8]> = Vec::new();
        for key in keys.iter() {
            let tail = key.get(number_at + 8..)?;
            if let Err(at) = distinct.binary_search(&tail) {
                distinct.insert(at, tail);
            }
            if distinct.len() > TAILS_MAX {
                return None;
            }
        }
        let of_each = match distinct.len() {
            0 => return None,
            1 => Vec::new(),
            _ => keys
                .iter()
                .map(|key| distinct.partition_point(|&tail| tail < &key[number_at + 8..]) as u8)
                .collect(),
        };
        Some(Self { distinct: distinct.into_iter().map(<[u8]>::to_vec).collect(), of_each })
    }

    /// How many are not larger than this one.
    fn up_to(&self, tail: &[u8]) -> usize {
        self.distinct.partition_point(|one| compare(one, tail).is_le())
    }
}

impl Numbers {
    fn of(keys: &SortedKeys) -> Self {
        let (first, last) =
            (keys.iter().next().unwrap_or_default(), keys.last().unwrap_or_default());
        let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        // Where the shortest key has fewer than eight bytes behind those, numbers begin before, if
        // that leaves few tails.
        let shortest = keys.iter().map(<[u8]>::len).min().unwrap_or(0);
        let number_at = shortest.checked_sub(8).map_or(shared, |most| shared.min(most));
        let tails = Tails::of(keys, number_at);
        let number_at = if tails.is_some() { number_at } else { shared };
        let tail_of = |tails: &Tails| tails.of_each.is_empty().then(|| tails.distinct[0].len());
        let tail_len = tails.as_ref().and_then(tail_of);
        let frame = tail_len.and_then(|tail_len| Frame::of(first, number_at, tail_len));
        let numbers: Vec<u64> = keys.iter().map(|key| number(&key[number_at..])).collect();
        let sorted = SortedNumbers::new(&numbers);
        let said = tail_len.and_then(|_| {
            numbers.iter().map(|&one| decimal_bound(one)).collect::<Option<Vec<_>>>()
        });
        let end_in_many_ways = tails.as_ref().is_none_or(|tails| tails.distinct.len() > 2);
        let groups =
            end_in_many_ways.then(|| CoveredGroups::of(keys.ranges(), number_at)).flatten();
        let covered = match (&said, tail_len) {
            (Some(said), _) => {
                // No digits lie between what ends behind `9` and what says the same.
                let ranges = said.chunks_exact(2).filter(|range| range[0] < range[1]);
                let ranges: Vec<_> = ranges.map(|range| (range[0], range[1] - 1)).collect();
                CoveredParts::of(ranges.iter().copied(), Some(0))
            }
            // The bounds of keys from the first one to the one before the second.
            (None, Some(_)) => {
                let ranges = numbers.chunks_exact(2).map(|range| (range[0] + 1, range[1]));
                CoveredParts::of(ranges, Some(sorted.unit()))
            }
            (None, None) => {
                let is_left = |(start, end)| {
                    groups.as_ref().is_none_or(|groups| !groups.is_in_one(start, end))
                };
                let ranges =
                    numbers.chunks_exact(2).zip(keys.ranges()).filter(|&(_, range)| is_left(range));
                let ranges: Vec<_> = ranges.map(|(range, _)| (range[0], range[1])).collect();
                CoveredParts::of(ranges.iter().copied(), None)
            }
        };
        let (common, are_decimal) = (first[..number_at].to_vec(), said.is_some());
        Self { common, tails, frame, sorted, covered, are_decimal, groups }
    }

    /// What all keys have behind their numbers, if that is the same.
    #[inline]
    fn tail(&self) -> Option<&[u8]> {
        let tails = self.tails.as_ref().filter(|tails| tails.of_each.is_empty())?;
        tails.distinct.first().map(Vec::as_slice)
    }

    /// How many keys from one position to another, the numbers of which are not smaller than that
    /// of `key` and not larger than the next that there can be, are not larger than it, if tails
    /// tell.
    fn count_tails(&self, from: usize, to: usize, key: &[u8]) -> Option<usize> {
        let tails = self.tails.as_ref()?;
        let (beginning, rest) = key.split_at_checked(self.common.len())?;
        let (first, tail) =
            rest.split_at_checked(8).filter(|_| compare(beginning, &self.common).is_eq())?;
        if from == to || self.sorted.get(from) != Some(number(first)) {
            return Some(0);
        }
        let up_to = tails.up_to(tail);
        Some(tails.of_each.get(from..to)?.partition_point(|&one| usize::from(one) < up_to))
    }

    fn memory_usage(&self) -> usize {
        let tails = self.tails.as_ref().map_or(0, |tails| tails.of_each.capacity());
        let groups = self.groups.as_ref().map_or(0, CoveredGroups::memory_usage);
        tails + self.sorted.memory_usage() + self.covered.memory_usage() + groups
    }

    #[inline]
    fn seek(&self, key: &[u8]) -> Option<Within> {
        let bound = self.bound(key)?;
        let covered = if self.are_decimal {
            bound
                .checked_sub(1)
                .and_then(decimal)
                .map_or(Covered::Maybe, |said| self.covered.at(said))
        } else {
            self.covered.at(bound)
        };
        match covered {
            Covered::No
                if self.groups.as_ref().is_none_or(|groups| groups.at(key) == Covered::No) =>
            {
                None
            }
            Covered::Yes => Some(Within::Yes(bound)),
            Covered::No | Covered::Maybe => Some(Within::Maybe(self.place_of(bound))),
        }
    }

    /// Where numbers smaller than `bound` are counted. The memory is on its way.
    #[inline]
    fn place_of(&self, bound: u64) -> Place {
        let place = self.sorted.seek(bound);
        if let Some(Tails { of_each, .. }) = &self.tails
            && !of_each.is_empty()
        {
            prefetch(of_each.as_ptr().wrapping_add(self.sorted.line(place).0), 1);
        }
        place
    }

    /// As [`Numbers::bound_of`].
    #[inline]
    fn bound(&self, key: &[u8]) -> Option<u64> {
        match &self.frame {
            Some(frame) if frame.key_len == key.len() => frame.bound_of(key),
            _ => self.bound_of(key),
        }
    }

    /// The number that keys up to `key` are smaller than; if not all end alike, smaller than or
    /// equal to. None if all keys are smaller than `key`.
    fn bound_of(&self, key: &[u8]) -> Option<u64> {
        let Some((beginning, rest)) = key.split_at_checked(self.common.len()) else {
            return (key < &self.common[..]).then_some(0);
        };
        match compare(beginning, &self.common) {
            Ordering::Less => return Some(0),
            Ordering::Equal => {}
            Ordering::Greater => return None,
        }
        let number = number(rest);
        match self.tail() {
            Some(tail) if rest.get(8..).is_some_and(|rest| compare(rest, tail).is_ge()) => {
                number.checked_add(1)
            }
            _ => Some(number),
        }
    }
}

impl Frame {
    /// What is around the number that begins at `number_at` in one of the keys, with `tail_len`
    /// bytes behind it.
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
            Ordering::Equal if last & self.behind.mask >= self.behind.value => {
                number.checked_add(1)
            }
            Ordering::Equal => Some(number),
            Ordering::Greater => None,
        }
    }
}

/// The order of bytes. Of none `memcmp` may load some from nowhere under an empty mask, as that for
/// AVX-512 does from the address of an empty vector: that takes the processor longer than all else
/// that is done for a key here.
#[inline]
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() { a.len().cmp(&b.len()) } else { a.cmp(b) }
}

/// The first eight bytes as a number.
#[inline]
pub(super) fn number(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => bytes
            .iter()
            .enumerate()
            .fold(0, |number, (at, byte)| number | u64::from(*byte) << (56 - 8 * at)),
    }
}
