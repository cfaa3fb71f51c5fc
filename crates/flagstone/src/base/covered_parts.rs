//! Which parts of what numbers span ranges lie in, a bit for each part.
//!
//! 1. Parts are as wide as a power of two, and there are at least eight for each range: most
//!    numbers in no range lie in parts without one. The bits of a hundred thousand ranges stay in
//!    the processor's caches.
//! 2. Where all ranges begin and end between two parts, as those of ids and offsets do, the bit of
//!    a part is the answer.
//! 3. Ranges may be narrow for what they span: those of hashes, of which each holds one, and those
//!    of text, for which most numbers stand for no text at all, so that of wide parts few are
//!    without a range. There parts are as narrow as they can be without ranges lying in more than a
//!    few each, and those that ranges lie in make a Bloom filter.

/// At most so many parts for each range, and at least half as many.
const PARTS_PER_RANGE: u64 = 16;

/// At most so many where that makes bits of parts the answer.
const EXACT_PARTS_PER_RANGE: u64 = 32;

/// Parts in a filter are so narrow that ranges lie in so many each, or fewer, on average.
const FILTERED_PER_RANGE: u64 = 2;

/// So many bits has a filter for each range: one in fifty to one in twenty of the parts that no
/// range lies in seem to have one.
const FILTER_BITS_PER_RANGE: u64 = 16;

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
    form: Form,
    bits: Vec<u64>,
}

/// What the bits of a part say, and where they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Form {
    /// One in the order of parts, each of which lies in a range or does not.
    Exact,
    /// The same, but parts may lie in ranges and beside them.
    #[default]
    Ordered,
    /// Two in a word, wherever a hash says.
    Filter,
}

impl CoveredParts {
    /// Of ascending ranges, each with its first and its last number. If these are known to begin
    /// and to end a multiple of `1 << unit` away from one another, `unit` says so.
    pub fn of(
        ranges: impl ExactSizeIterator<Item = (u64, u64)> + Clone,
        unit: Option<u32>,
    ) -> Self {
        let count = ranges.len() as u64;
        let (Some((first, _)), Some((_, last))) = (ranges.clone().next(), ranges.clone().last())
        else {
            return Self::default();
        };
        let parts_less_one = |shift: u32| (last - first) >> shift;
        let exact = unit.filter(|&unit| parts_less_one(unit) < EXACT_PARTS_PER_RANGE * count);
        if let Some(shift) = exact {
            return Self::ordered(ranges, (first, last), shift, Form::Exact);
        }
        let few_enough = |&shift: &u32| parts_less_one(shift) < PARTS_PER_RANGE * count;
        let shift = (0..u64::BITS).find(few_enough).expect("one part is few enough");
        match narrowest(ranges.clone(), first, shift) {
            Some(shift) => Self::filter(ranges.map(|(from, to)| (0, from, to)), first, shift),
            None => Self::ordered(ranges, (first, last), shift, Form::Ordered),
        }
    }

    /// A filter of ranges in groups, each with the group's hash and its first and last number
    /// there.
    pub fn in_groups(ranges: &[(u64, u64, u64)]) -> Self {
        if ranges.is_empty() {
            return Self::default();
        }
        const WIDEST: u32 = u64::BITS - 1;
        let numbers = ranges.iter().map(|&(_, from, to)| (from, to));
        let parts = |shift: u32| {
            numbers.clone().map(|(from, to)| (to >> shift) - (from >> shift) + 1).sum()
        };
        let mut shift = narrowest(numbers.clone(), 0, WIDEST).unwrap_or(WIDEST);
        // Where parts twice as wide are little more than half as many, nearly all ranges are made
        // of these.
        let mut count: u64 = parts(shift);
        while shift < WIDEST
            && let wider = parts(shift + 1)
            && 5 * wider <= 3 * count
        {
            (shift, count) = (shift + 1, wider);
        }
        Self::filter(ranges.iter().copied(), 0, shift)
    }

    fn ordered(
        ranges: impl Iterator<Item = (u64, u64)>,
        (first, last): (u64, u64),
        shift: u32,
        form: Form,
    ) -> Self {
        let words = ((last - first) >> shift) / u64::from(u64::BITS) + 1;
        let mut parts = Self { first, shift, form, bits: vec![0; words as usize] };
        for (from, to) in ranges {
            parts.add((from - first) >> shift, (to - first) >> shift);
        }
        parts
    }

    fn filter(
        ranges: impl ExactSizeIterator<Item = (u64, u64, u64)>,
        first: u64,
        shift: u32,
    ) -> Self {
        let words = (ranges.len() as u64 * FILTER_BITS_PER_RANGE).div_ceil(u64::from(u64::BITS));
        let mut bits = vec![0; words as usize];
        for (group, from, to) in ranges {
            for part in (from - first) >> shift..=(to - first) >> shift {
                let (word, two) = in_filter(bits.len(), group ^ part);
                bits[word] |= two;
            }
        }
        Self { first, shift, form: Form::Filter, bits }
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
        if self.form == Form::Filter {
            return self.in_filter(part);
        }
        let word =
            usize::try_from(part / u64::from(u64::BITS)).ok().and_then(|at| self.bits.get(at));
        match word.map_or(0, |word| word >> (part % u64::from(u64::BITS)) & 1) {
            0 => Covered::No,
            _ if self.form == Form::Exact => Covered::Yes,
            _ => Covered::Maybe,
        }
    }

    /// Of a number in a group, by [`CoveredParts::in_groups`].
    #[inline]
    pub fn at_in(&self, group: u64, number: u64) -> Covered {
        if self.bits.is_empty() {
            Covered::No
        } else {
            self.in_filter(group ^ number >> self.shift)
        }
    }

    #[inline]
    fn in_filter(&self, part: u64) -> Covered {
        let (word, two) = in_filter(self.bits.len(), part);
        if self.bits[word] & two == two { Covered::Maybe } else { Covered::No }
    }

    /// Bytes of memory that they take.
    pub fn memory_usage(&self) -> usize {
        self.bits.capacity() * size_of::<u64>()
    }
}

/// The narrowest parts, narrower than `1 << wide`, that ranges lie in a few of: a number without so
/// many bits is that of its part.
fn narrowest(
    ranges: impl ExactSizeIterator<Item = (u64, u64)> + Clone,
    first: u64,
    wide: u32,
) -> Option<u32> {
    let most = FILTERED_PER_RANGE * ranges.len() as u64;
    let are_few = |shift: u32| {
        let mut left = most;
        ranges.clone().all(|(from, to)| {
            let parts_less_one = ((to - first) >> shift) - ((from - first) >> shift);
            let rest = left.checked_sub(1).and_then(|left| left.checked_sub(parts_less_one));
            left = rest.unwrap_or(0);
            rest.is_some()
        })
    };
    let (mut from, mut to) = (0, wide);
    while from < to {
        let middle = u32::midpoint(from, to);
        if are_few(middle) { to = middle } else { from = middle + 1 }
    }
    Some(from).filter(|&shift| shift < wide)
}

/// The word of a part, or of one with its group, among so many, and its two bits there.
#[inline]
fn in_filter(words: usize, part: u64) -> (usize, u64) {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let hash = part.wrapping_mul(MIX);
    let hash = (hash ^ hash >> 32).wrapping_mul(MIX);
    let word = (u128::from(hash) * words as u128) >> u64::BITS;
    (word as usize, 1 << (hash >> 26 & 63) | 1 << (hash >> 20 & 63))
}

#[cfg(test)]
mod tests;
