//! Ascending numbers, searched a cache line at a time.
//!
//! A binary search of a hundred thousand numbers waits for memory some ten times, one wait after
//! the other. Here as many numbers as fit lie in each line, and above the lines stand others with
//! the last number of each, up to a single one.
//!
//! 1. Numbers that are multiples of a power of two, less than 2^31 of these apart, are kept as
//!    multiples from the first one: sixteen in a line, so that of two hundred thousand four lines
//!    lead to the fifth. Of others there are eight in a line.
//! 2. Where they are spread evenly, a table leads there at once ([`Guide`]).
//! 3. A search stops above the last line ([`SortedNumbers::seek`]), which is asked for and looked
//!    at later ([`SortedNumbers::rank_at`]). What lies above is small, and stays in the processor's
//!    caches.

use super::prefetch;

/// The largest number that is kept in 32 bits, so that no difference of two takes more.
const NARROW_MAX: u32 = i32::MAX as u32;

/// How many of these lie in a line.
const NARROW_IN_LINE: usize = 16;

/// How many numbers of 64 bits do.
const WIDE_IN_LINE: usize = 8;

/// With fewer lines there is no [`Guide`]: one or two lines lead to each.
const GUIDED_MIN: usize = NARROW_IN_LINE * NARROW_IN_LINE;

/// Numbers that lie in one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line<N, const IN_LINE: usize>([N; IN_LINE]);

/// Lines of ascending numbers, and above them layers with the last number of each line below, up to
/// a single line. What is left of the last line of each is filled with the largest number that
/// there can be.
#[derive(Debug, Clone)]
struct Layers<N, const IN_LINE: usize> {
    numbers: Vec<Line<N, IN_LINE>>,
    above: Vec<Vec<Line<N, IN_LINE>>>,
}

#[derive(Debug, Clone)]
enum Form {
    /// What multiple of `1 << shift` each lies above `base`.
    Narrow {
        base: u64,
        shift: u32,
        guide: Guide,
        layers: Layers<u32, NARROW_IN_LINE>,
    },
    Wide(Layers<u64, WIDE_IN_LINE>),
}

/// Equal parts of what the numbers span, and which line each part begins in: the line of a number
/// is among the sixteen from there on, or else is found by way of the layers.
#[derive(Debug, Clone, Default)]
struct Guide {
    /// A number without so many bits is that of its part.
    shift: u32,
    /// Nothing if there are few lines.
    parts: Vec<u32>,
    /// The last number of each line, and then some that nothing is larger than.
    lasts: Vec<u32>,
}

/// What a line can hold.
trait Number: Copy {
    /// How many of a line's numbers are smaller.
    fn smaller_of<const IN_LINE: usize>(line: &[Self; IN_LINE], number: Self) -> usize;
}

impl Number for u64 {
    #[inline]
    fn smaller_of<const IN_LINE: usize>(line: &[Self; IN_LINE], number: Self) -> usize {
        line.iter().map(|&one| usize::from(one < number)).sum()
    }
}

/// Up to [`NARROW_MAX`].
impl Number for u32 {
    /// The sign of the difference: compilers make four subtractions and shifts of four numbers each
    /// of it, and of comparisons a mask whose bits they count without an instruction for it.
    #[inline]
    fn smaller_of<const IN_LINE: usize>(line: &[Self; IN_LINE], number: Self) -> usize {
        line.iter().map(|&one| one.wrapping_sub(number) >> 31).sum::<Self>() as usize
    }
}

/// Ascending numbers.
#[derive(Debug, Clone)]
pub(super) struct SortedNumbers {
    form: Form,
    len: usize,
}

/// The line where a search ends; its memory is on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    line: usize,
    /// What was sought, in the form that the numbers have.
    number: u64,
}

impl Place {
    /// Behind all numbers, whichever.
    pub const END: Self = Self { line: usize::MAX, number: u64::MAX };
}

impl SortedNumbers {
    /// Takes ascending numbers.
    pub fn new(numbers: &[u64]) -> Self {
        debug_assert!(numbers.is_sorted());
        let base = numbers.first().copied().unwrap_or(0);
        let shift = numbers.iter().fold(0, |bits, number| bits | (number - base)).trailing_zeros()
            % u64::BITS;
        let multiple = |number: &u64| {
            u32::try_from((number - base) >> shift).ok().filter(|&multiple| multiple <= NARROW_MAX)
        };
        let form = match numbers.iter().map(multiple).collect::<Option<Vec<_>>>() {
            Some(multiples) => {
                let guide = Guide::to(&multiples);
                Form::Narrow { base, shift, guide, layers: Layers::new(multiples, NARROW_MAX) }
            }
            None => Form::Wide(Layers::new(numbers.to_vec(), u64::MAX)),
        };
        Self { form, len: numbers.len() }
    }

    /// All are a multiple of `1 << unit` away from one another, for the largest unit up to 63 of
    /// which that is known.
    pub fn unit(&self) -> u32 {
        match self.form {
            Form::Narrow { shift, .. } => shift,
            Form::Wide(_) => 0,
        }
    }

    /// Goes down to the line that tells [`SortedNumbers::rank_at`], and asks for its memory.
    #[inline]
    pub fn seek(&self, number: u64) -> Place {
        let stored = match &self.form {
            Form::Narrow { base, shift, .. } => multiple_above(*base, *shift, number),
            Form::Wide(_) => Some(number),
        };
        stored.map_or(Place::END, |number| self.seek_stored(number))
    }

    #[inline]
    fn seek_stored(&self, number: u64) -> Place {
        let line = match &self.form {
            Form::Narrow { guide, layers, .. } => guide
                .line(number as u32)
                .or_else(|| layers.seek(number as u32))
                .inspect(|&line| layers.prefetch(line)),
            Form::Wide(layers) => layers.seek(number).inspect(|&line| layers.prefetch(line)),
        };
        line.map_or(Place::END, |line| Place { line, number })
    }

    /// How many are smaller than what was sought: the position of the first that is not.
    #[inline]
    pub fn rank_at(&self, place: Place) -> usize {
        let rank = match &self.form {
            Form::Narrow { layers, .. } => layers.rank_in(place.line, place.number as u32),
            Form::Wide(layers) => layers.rank_in(place.line, place.number),
        };
        rank.unwrap_or(self.len)
    }

    /// How many are not larger than what was sought, of which `rank` are smaller. Of a number that
    /// is no multiple those may count that are the next multiple.
    #[inline]
    pub fn rank_behind(&self, place: Place, rank: usize) -> usize {
        let is_equal = |at| self.stored(at) == Some(place.number);
        match (is_equal(rank), is_equal(rank + 1)) {
            (false, _) => rank,
            (true, false) => rank + 1,
            (true, true) => self.behind_all(place.number),
        }
    }

    /// How many are not larger than this one of them.
    #[cold]
    fn behind_all(&self, stored: u64) -> usize {
        let most =
            if matches!(self.form, Form::Narrow { .. }) { u64::from(NARROW_MAX) } else { u64::MAX };
        if stored == most { self.len } else { self.rank_at(self.seek_stored(stored + 1)) }
    }

    /// The number at that position, if there are that many.
    pub fn get(&self, at: usize) -> Option<u64> {
        let stored = self.stored(at)?;
        match &self.form {
            Form::Narrow { base, shift, .. } => Some(base + (stored << shift)),
            Form::Wide(_) => Some(stored),
        }
    }

    /// The position of the first number in the line of a place, which may lie behind all, and how
    /// many a line has.
    #[inline]
    pub fn line(&self, place: Place) -> (usize, usize) {
        let in_line =
            if matches!(self.form, Form::Narrow { .. }) { NARROW_IN_LINE } else { WIDE_IN_LINE };
        (place.line.saturating_mul(in_line), in_line)
    }

    /// The number at that position, in the form that it has.
    fn stored(&self, at: usize) -> Option<u64> {
        match &self.form {
            _ if at >= self.len => None,
            Form::Narrow { layers, .. } => Some(u64::from(layers.get(at))),
            Form::Wide(layers) => Some(layers.get(at)),
        }
    }

    /// Bytes of memory that they take.
    pub fn memory_usage(&self) -> usize {
        match &self.form {
            Form::Narrow { guide, layers, .. } => guide.memory_usage() + layers.memory_usage(),
            Form::Wide(layers) => layers.memory_usage(),
        }
    }
}

impl<N: Number, const IN_LINE: usize> Layers<N, IN_LINE> {
    fn new(numbers: Vec<N>, largest: N) -> Self {
        let numbers = lines(&numbers, largest);
        let mut above: Vec<Vec<Line<N, IN_LINE>>> = Vec::new();
        while let below = above.last().unwrap_or(&numbers)
            && below.len() > 1
        {
            let last_of_each: Vec<N> = below.iter().map(|line| line.0[IN_LINE - 1]).collect();
            above.push(lines(&last_of_each, largest));
        }
        Self { numbers, above }
    }

    /// The line in which the first number lies that is not smaller. If none is, the last line, or
    /// none.
    #[inline]
    fn seek(&self, number: N) -> Option<usize> {
        let mut above = self.above.iter().rev();
        above.try_fold(0, |at, layer| Some(at * IN_LINE + N::smaller_of(&layer.get(at)?.0, number)))
    }

    #[inline]
    fn prefetch(&self, line: usize) {
        prefetch(self.numbers.as_ptr().wrapping_add(line), 1);
    }

    /// How many are smaller, if the first that is not lies in that line.
    #[inline]
    fn rank_in(&self, line: usize, number: N) -> Option<usize> {
        let smaller = N::smaller_of(&self.numbers.get(line)?.0, number);
        Some(line * IN_LINE + smaller)
    }

    fn get(&self, at: usize) -> N {
        self.numbers[at / IN_LINE].0[at % IN_LINE]
    }

    fn memory_usage(&self) -> usize {
        let layers = std::iter::once(&self.numbers).chain(&self.above);
        layers
            .map(|layer| layer.capacity() * size_of::<Line<N, IN_LINE>>() + size_of::<Vec<N>>())
            .sum()
    }
}

impl Guide {
    /// To the lines of these numbers.
    fn to(numbers: &[u32]) -> Self {
        let lines = numbers.len().div_ceil(NARROW_IN_LINE);
        let Some(largest) = numbers.last().filter(|_| lines >= GUIDED_MIN) else {
            return Self::default();
        };
        // Four to eight lines in each part, if all have as many.
        let shift = (u32::BITS - largest.leading_zeros()).saturating_sub(lines.ilog2() - 1);
        let mut lasts: Vec<u32> =
            numbers.chunks(NARROW_IN_LINE).map(|line| line[line.len() - 1]).collect();
        let line_of = |part| lasts.partition_point(|&last| last < part << shift) as u32;
        let parts = (0..=largest >> shift).map(line_of).collect();
        lasts.extend([NARROW_MAX; NARROW_IN_LINE]);
        Self { shift, parts, lasts }
    }

    /// The line in which the first number lies that is not smaller, or the one behind all; none if
    /// the guide does not know.
    #[inline]
    fn line(&self, number: u32) -> Option<usize> {
        let first = *self.parts.get((number >> self.shift) as usize)? as usize;
        let lasts = self.lasts.get(first..)?.first_chunk::<NARROW_IN_LINE>()?;
        let smaller = u32::smaller_of(lasts, number);
        (smaller < NARROW_IN_LINE).then_some(first + smaller)
    }

    fn memory_usage(&self) -> usize {
        (self.parts.capacity() + self.lasts.capacity()) * size_of::<u32>()
    }
}

fn lines<N: Copy, const IN_LINE: usize>(numbers: &[N], largest: N) -> Vec<Line<N, IN_LINE>> {
    let line =
        |some: &[N]| Line(std::array::from_fn(|at| some.get(at).copied().unwrap_or(largest)));
    numbers.chunks(IN_LINE).map(line).collect()
}

/// The least multiple of `1 << shift` above `base` that is not smaller than `number`, if it can be
/// one of those.
#[inline]
fn multiple_above(base: u64, shift: u32, number: u64) -> Option<u64> {
    let distance = number.saturating_sub(base);
    let rest = distance & ((1 << shift) - 1);
    Some((distance >> shift) + u64::from(rest > 0))
        .filter(|&multiple| multiple <= u64::from(NARROW_MAX))
}

#[cfg(test)]
mod tests;
