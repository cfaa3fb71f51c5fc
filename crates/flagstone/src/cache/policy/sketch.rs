//! How often an id was used lately, about: a count-min sketch of four-bit counters that are halved
//! from time to time.
//!
//! A word of the table holds four counters of each of the four rows. An id has one counter a row;
//! its frequency is the smallest of them. After ten uses for each entry in the cache all counters
//! are halved, so that what was popular once is forgotten (the paper's reset operation).

const ROWS: u64 = 4;
const COUNTER_MAX: u64 = 15;
/// The low three bits of every counter.
const HALVES: u64 = 0x7777_7777_7777_7777;
const MIN_WORDS: usize = 256;
/// Uses for each entry until counters are halved.
const SAMPLES_PER_ENTRY: u64 = 10;
/// With more words an entry the cache has shrunk, and the sketch does so, too.
const WORDS_PER_ENTRY_MAX: usize = 8;

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

    /// There are more entries now: so many. What the sketch knows stays.
    #[inline]
    pub(super) fn make_room(&mut self, entries: usize) {
        if entries > self.words.len() {
            // A place is chosen by the low bits of a hash: doubled, each id finds its counters in
            // both halves.
            self.words.extend_from_within(..);
        }
    }

    /// There are fewer entries now. Of two counters that become one the larger is right: that of
    /// both ids, as far as these were one before the sketch grew.
    #[inline]
    pub(super) fn fit(&mut self, entries: usize) {
        while self.words.len() > MIN_WORDS && self.words.len() / WORDS_PER_ENTRY_MAX > entries {
            self.fold();
            self.uses = self.uses.min(uses_max(entries) / 2);
        }
    }

    #[cold]
    fn fold(&mut self) {
        let half = self.words.len() / 2;
        let (kept, folded) = self.words.split_at_mut(half);
        kept.iter_mut().zip(folded).for_each(|(word, other)| *word = larger(*word, *other));
        self.words.truncate(half);
        self.words.shrink_to_fit();
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
        let uses_max = uses_max(entries);
        if self.uses >= uses_max {
            self.words.iter_mut().for_each(|word| *word = (*word >> 1) & HALVES);
            // There were many more if there were more entries: they are forgotten no faster.
            self.uses = uses_max / 2;
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
        let hash =
            (id ^ row.wrapping_mul(0xd6e8_feb8_6659_fd93)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0xe703_7ed1_a0b4_28db);
        ((hash >> 32) as usize & (self.words.len() - 1), 16 * row + 4 * (hash & 3))
    }
}

/// Uses until counters are halved.
fn uses_max(entries: usize) -> u64 {
    SAMPLES_PER_ENTRY * entries.max(1) as u64
}

/// The larger one of each two counters.
fn larger(a: u64, b: u64) -> u64 {
    // Each second counter, with four bits above it: one of them stays where the difference is not
    // below nothing.
    const COUNTERS: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    const ABOVE: u64 = 0x1010_1010_1010_1010;
    let of_bytes = |a: u64, b: u64| {
        let is_a = (((a | ABOVE) - b) & ABOVE) >> 4;
        let of_a = is_a * COUNTER_MAX;
        a & of_a | b & !of_a
    };
    of_bytes(a & COUNTERS, b & COUNTERS) | of_bytes(a >> 4 & COUNTERS, b >> 4 & COUNTERS) << 4
}

#[cfg(test)]
mod tests;
