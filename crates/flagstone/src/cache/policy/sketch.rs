//! How often an id was used lately, about: a count-min sketch of four-bit counters that are halved from time to time.
//!
//! A word of the table holds four counters of each of the four rows. An id has one counter a row; its frequency is the
//! smallest of them. After ten uses for each entry in the cache all counters are halved, so that what was popular once is
//! forgotten (the paper's reset operation).

const ROWS: u64 = 4;
const COUNTER_MAX: u64 = 15;
/// The low three bits of every counter.
const HALVES: u64 = 0x7777_7777_7777_7777;
const MIN_WORDS: usize = 256;
/// Uses for each entry until counters are halved.
const SAMPLES_PER_ENTRY: u64 = 10;
/// Where a cache has shrunk, so many words count as an entry: halving them all takes time.
const WORDS_PER_ENTRY_MAX: usize = 1024;

/// Frequencies of ids.
#[derive(Debug)]
pub(super) struct Sketch {
    words: Vec<u64>,
    uses: u64,
}

impl Default for Sketch {
    fn default() -> Self {
        Self { words: vec![0; MIN_WORDS], uses: 0 }
    }
}

impl Sketch {
    /// Bytes beyond those of a small one.
    pub(super) fn memory(&self) -> u64 {
        ((self.words.len() - MIN_WORDS) * size_of::<u64>()) as u64
    }

    /// There are so many entries now. The sketch only grows; what it knows stays.
    #[inline]
    pub(super) fn make_room(&mut self, entries: usize) {
        if entries > self.words.len() {
            // A place is chosen by the low bits of a hash: doubled, each id finds its counters in both halves.
            self.words.extend_from_within(..);
        }
    }

    /// An id was used, with so many entries in the cache.
    #[inline]
    pub(super) fn count(&mut self, id: u64, entries: usize) {
        for row in 0..ROWS {
            let (word, shift) = self.place(id, row);
            if (self.words[word] >> shift) & COUNTER_MAX < COUNTER_MAX {
                self.words[word] += 1 << shift;
            }
        }
        self.uses += 1;
        let entries = entries.max(self.words.len() / WORDS_PER_ENTRY_MAX).max(1);
        if self.uses >= SAMPLES_PER_ENTRY * entries as u64 {
            self.words.iter_mut().for_each(|word| *word = (*word >> 1) & HALVES);
            self.uses /= 2;
        }
    }

    /// How often an id was used, at most 15.
    #[inline]
    pub(super) fn frequency(&self, id: u64) -> u64 {
        (0..ROWS).fold(COUNTER_MAX, |least, row| {
            let (word, shift) = self.place(id, row);
            least.min((self.words[word] >> shift) & COUNTER_MAX)
        })
    }

    #[inline]
    fn place(&self, id: u64, row: u64) -> (usize, u64) {
        let hash = (id ^ row.wrapping_mul(0xd6e8_feb8_6659_fd93)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xe703_7ed1_a0b4_28db);
        ((hash >> 32) as usize & (self.words.len() - 1), 16 * row + 4 * (hash & 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_counted_up_to_fifteen_and_halved_after_a_while() {
        let mut sketch = Sketch::default();
        (0..1000).for_each(|_| sketch.make_room(1000));
        (0..20).for_each(|_| sketch.count(7, 1000));
        (0..3).for_each(|_| sketch.count(8, 1000));
        assert_eq!((sketch.frequency(7), sketch.frequency(8), sketch.frequency(9)), (15, 3, 0));
        sketch.make_room(2000);
        assert_eq!((sketch.frequency(7), sketch.frequency(8), sketch.frequency(9)), (15, 3, 0));
        // Twenty-three uses so far; the thirtieth is too many for three entries.
        (0..7).for_each(|_| sketch.count(10, 3));
        assert_eq!((sketch.frequency(7), sketch.frequency(8), sketch.frequency(10)), (7, 1, 3));
        assert_eq!(sketch.uses, 15);
    }

    /// Where a cache had shrunk, all counters that it once needed were halved after every few uses.
    #[test]
    fn counters_are_halved_no_more_often_than_there_are_uses_for_them() {
        let mut sketch = Sketch::default();
        (0..20).for_each(|_| sketch.make_room(1 << 20));
        (0..10_000).for_each(|id| sketch.count(id, 1));
        assert_eq!(sketch.uses, 10_000);
    }
}
