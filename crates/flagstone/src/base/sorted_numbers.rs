//! Ascending numbers, searched a cache line at a time.
//!
//! A binary search of a hundred thousand numbers waits for memory some ten times, one wait after the other. Here eight numbers
//! lie in each line, and above the lines stand others with the last number of each, up to a single one: six lines are looked
//! at, and those of the upper layers stay in the processor's caches.

use super::prefetch;

const IN_LINE: usize = 8;

/// Numbers that lie in one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line([u64; IN_LINE]);

/// Ascending numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct SortedNumbers {
    /// First the numbers themselves, last a single line; what is left of the last line of each is filled with the largest number.
    layers: Vec<Vec<Line>>,
    len: usize,
}

impl SortedNumbers {
    /// Takes ascending numbers.
    pub fn new(numbers: &[u64]) -> Self {
        debug_assert!(numbers.is_sorted());
        let mut layers = Vec::new();
        let mut layer = lines(numbers.iter().copied(), numbers.len());
        while layer.len() > 1 {
            let above = lines(layer.iter().map(|line| line.0[IN_LINE - 1]), layer.len());
            layers.push(std::mem::replace(&mut layer, above));
        }
        layers.push(layer);
        Self { layers, len: numbers.len() }
    }

    /// How many are smaller than `number`: the position of the first that is not.
    #[inline]
    pub fn rank(&self, number: u64) -> usize {
        // Behind all of a layer if all numbers are smaller.
        descend(&self.layers, number).unwrap_or(self.len)
    }

    /// Asks for the memory that [`SortedNumbers::rank`] will wait for.
    #[inline]
    pub fn prefetch(&self, number: u64) {
        if let Some((numbers, above)) = self.layers.split_first()
            && let Some(line) = descend(above, number).and_then(|at| numbers.get(at))
        {
            prefetch(line, 1);
        }
    }

    /// The number at that position.
    #[inline]
    pub fn get(&self, at: usize) -> Option<u64> {
        if at < self.len { Some(self.layers[0][at / IN_LINE].0[at % IN_LINE]) } else { None }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that they take.
    pub fn memory_usage(&self) -> usize {
        self.layers.iter().map(|layer| layer.capacity() * size_of::<Line>() + size_of::<Vec<Line>>()).sum()
    }
}

/// How many numbers of the first of these layers are smaller; `None` if the last line of one is passed.
#[inline]
fn descend(layers: &[Vec<Line>], number: u64) -> Option<usize> {
    layers.iter().rev().try_fold(0, |at, layer| {
        let smaller = layer.get(at)?.0.iter().map(|&one| usize::from(one < number)).sum::<usize>();
        Some(at * IN_LINE + smaller)
    })
}

fn lines(mut numbers: impl Iterator<Item = u64>, len: usize) -> Vec<Line> {
    let line = |_| Line(std::array::from_fn(|_| numbers.next().unwrap_or(u64::MAX)));
    (0..len.div_ceil(IN_LINE)).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_a_binary_search() {
        for len in (0..130).chain([511, 512, 513, 4096, 5000]) {
            let mut random = fastrand::Rng::with_seed(len);
            let most = if len % 3 == 0 { 40 } else { u64::MAX };
            let mut numbers: Vec<u64> = (0..len).map(|_| random.u64(..=most)).collect();
            if len % 5 == 0 {
                numbers.extend([0, u64::MAX, u64::MAX]);
            }
            numbers.sort_unstable();
            let sorted = SortedNumbers::new(&numbers);
            assert_eq!(sorted.len(), numbers.len());
            assert_eq!((0..=numbers.len()).map_while(|at| sorted.get(at)).collect::<Vec<_>>(), numbers);
            let drawn = (0..50).map(|_| random.u64(..)).collect::<Vec<_>>();
            let near = numbers.iter().flat_map(|&one| [one.saturating_sub(1), one, one.saturating_add(1)]);
            for number in near.chain(drawn).chain([0, 1, u64::MAX]) {
                let expected = numbers.partition_point(|&one| one < number);
                assert_eq!(sorted.rank(number), expected, "{number} among {} numbers", numbers.len());
            }
        }
    }
}
