//! Which parts of what numbers span ranges lie in, a bit for each part.
//!
//! 1. Parts are as wide as a power of two, and there are at least eight for each range: most numbers in no range lie in parts
//!    without one. The bits of a hundred thousand ranges stay in the processor's caches.
//! 2. Where all ranges begin and end between two parts, as those of ids and offsets do, the bit of a part is the answer.

/// At most so many parts for each range, and at least half as many.
const PARTS_PER_RANGE: u64 = 16;

/// At most so many where that makes bits of parts the answer.
const EXACT_PARTS_PER_RANGE: u64 = 32;

/// Whether a number is in one of the ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Covered {
    No,
    Maybe,
    Yes,
}

#[derive(Debug, Clone, Default)]
pub(super) struct CoveredParts {
    /// Where the first part begins.
    first: u64,
    /// A number's distance from there without so many bits is that of its part.
    shift: u32,
    is_exact: bool,
    bits: Vec<u64>,
}

impl CoveredParts {
    /// Of ascending ranges, each with its first and its last number. If these are known to begin and to end a multiple of
    /// `1 << unit` away from one another, `unit` says so.
    pub fn of(ranges: impl ExactSizeIterator<Item = (u64, u64)> + Clone, unit: Option<u32>) -> Self {
        let count = ranges.len() as u64;
        let (Some((first, _)), Some((_, last))) = (ranges.clone().next(), ranges.clone().last()) else {
            return Self::default();
        };
        let parts_less_one = |shift: u32| (last - first) >> shift;
        let exact = unit.filter(|&unit| parts_less_one(unit) < EXACT_PARTS_PER_RANGE * count);
        let few_enough = |&shift: &u32| parts_less_one(shift) < PARTS_PER_RANGE * count;
        let shift = exact.or_else(|| (0..u64::BITS).find(few_enough)).expect("one part is few enough");
        let words = parts_less_one(shift) / u64::from(u64::BITS) + 1;
        let mut parts = Self { first, shift, is_exact: exact.is_some(), bits: vec![0; words as usize] };
        for (from, to) in ranges {
            parts.add((from - first) >> shift, (to - first) >> shift);
        }
        parts
    }

    /// Sets the bits of parts, the last one included.
    fn add(&mut self, from: u64, to: u64) {
        let bits = u64::from(u64::BITS);
        let (first, last) = (from / bits, to / bits);
        for word in first..=last {
            let above = if word == first { u64::MAX << (from % bits) } else { u64::MAX };
            let below = if word == last { u64::MAX >> (bits - 1 - to % bits) } else { u64::MAX };
            self.bits[word as usize] |= above & below;
        }
    }

    #[inline]
    pub fn at(&self, number: u64) -> Covered {
        let Some(distance) = number.checked_sub(self.first) else { return Covered::No };
        let part = distance >> self.shift;
        let word = usize::try_from(part / u64::from(u64::BITS)).ok().and_then(|at| self.bits.get(at));
        match word.map_or(0, |word| word >> (part % u64::from(u64::BITS)) & 1) {
            0 => Covered::No,
            _ if self.is_exact => Covered::Yes,
            _ => Covered::Maybe,
        }
    }

    /// Bytes of memory that they take.
    pub fn memory_usage(&self) -> usize {
        self.bits.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ascending ranges that may touch, the numbers of which differ by multiples of `1 << unit`.
    fn drawn(random: &mut fastrand::Rng, unit: u32) -> Vec<(u64, u64)> {
        let most = [20, 3000, u64::MAX >> unit][random.usize(..3)];
        let mut ends: Vec<u64> = (0..random.usize(..400)).map(|_| random.u64(..=most)).collect();
        ends.sort_unstable();
        ends.dedup();
        let base = random.u64(..=u64::MAX - (most << unit));
        let ends: Vec<u64> = ends.iter().map(|end| base + (end << unit)).collect();
        let touching = random.bool();
        let pairs = ends.windows(2).enumerate().filter(|&(at, _)| touching || at % 2 == 0);
        pairs.map(|(_, pair)| (pair[0], pair[1] - 1)).collect()
    }

    #[test]
    fn bits_know_of_what_is_in_no_range_and_of_all_where_ranges_end_between_parts() {
        let (mut sure, mut unsure, mut unseen) = (0, 0, 0);
        for round in 0..1000 {
            let mut random = fastrand::Rng::with_seed(round);
            let unit = random.u32(..50);
            let ranges = drawn(&mut random, unit);
            let known = random.bool().then_some(unit);
            let parts = CoveredParts::of(ranges.iter().copied(), known);
            assert!(parts.memory_usage() <= 8 + 4 * ranges.len(), "{} ranges", ranges.len());
            let near = ranges.iter().flat_map(|&(from, to)| [from, to].map(|end| (end, random.u64(..3))));
            let near: Vec<u64> = near.map(|(end, off)| (end + off).saturating_sub(1)).collect();
            let others = (0..50).map(|_| random.u64(..)).chain([0, u64::MAX]);
            for number in near.into_iter().chain(others) {
                let covered = ranges.iter().any(|&(from, to)| (from..=to).contains(&number));
                match parts.at(number) {
                    Covered::No => assert!(!covered, "{number} among {ranges:?}"),
                    Covered::Yes => assert!(covered && known.is_some(), "{number} among {ranges:?}"),
                    Covered::Maybe => unseen += u32::from(!covered),
                }
                *if parts.is_exact { &mut sure } else { &mut unsure } += 1;
            }
        }
        assert!(sure > 10_000 && unsure > 10_000 && unseen > 1000, "{sure} {unsure} {unseen}");
    }
}
