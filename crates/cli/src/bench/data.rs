//! Keys and values as `db_bench` makes them.

use super::random::{Lehmer, MersenneTwister};

/// Writes key number `number` into `key`: up to eight bytes, big-endian, then zeros (the digit).
#[inline]
pub fn fill_key(number: u64, key: &mut [u8]) {
    let width = key.len().min(8);
    let (head, tail) = key.split_at_mut(width);
    head.copy_from_slice(&number.to_be_bytes()[8 - width..]);
    tail.fill(b'0');
}

/// In which order keys are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// 0, 1, 2, ...
    Sequential,
    /// Drawn with repetition.
    Random,
    /// Each once, shuffled.
    UniqueRandom,
}

/// Numbers of the keys to write.
pub enum KeyNumbers {
    /// Counting up.
    Sequential {
        /// The next one.
        next: u64,
    },
    /// Drawn below a limit.
    Random {
        /// The limit.
        limit: u64,
    },
    /// From a shuffled list.
    Listed {
        /// All of them.
        numbers: Vec<u64>,
        /// Where the next one stands.
        next: usize,
    },
}

impl KeyNumbers {
    /// Numbers below `limit` in the given order. `count` of them are drawn at most when each comes
    /// once.
    pub fn new(order: KeyOrder, limit: u64, seed: u64) -> Self {
        match order {
            KeyOrder::Sequential => Self::Sequential { next: 0 },
            KeyOrder::Random => Self::Random { limit: limit.max(1) },
            KeyOrder::UniqueRandom => {
                let mut numbers: Vec<u64> = (0..limit.max(1)).collect();
                let mut random = MersenneTwister::new(seed);
                for last in (1..numbers.len()).rev() {
                    numbers.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
                }
                Self::Listed { numbers, next: 0 }
            }
        }
    }

    /// The next number.
    #[inline]
    pub fn next(&mut self, random: &mut MersenneTwister) -> u64 {
        // db_bench first draws which of its databases to write to.
        random.next_u64();
        match self {
            Self::Sequential { next } => {
                *next += 1;
                *next - 1
            }
            Self::Random { limit } => random.next_u64() % *limit,
            Self::Listed { numbers, next } => {
                let number = numbers[*next % numbers.len()];
                *next += 1;
                number
            }
        }
    }
}

/// A long compressible text of which values are slices.
pub struct Values {
    text: Vec<u8>,
    position: usize,
}

impl Values {
    const PIECE: usize = 100;
    const SIZE_MIN: usize = 1 << 20;

    /// Text that compresses to about `compression_ratio` of its size, for values of up to
    /// `value_size_max` bytes.
    pub fn new(compression_ratio: f64, value_size_max: usize) -> Self {
        let mut random = Lehmer::new(301);
        let size = value_size_max.max(Self::SIZE_MIN);
        let fresh = ((Self::PIECE as f64 * compression_ratio) as usize).clamp(1, Self::PIECE);
        let mut text = Vec::with_capacity(size + Self::PIECE);
        while text.len() < size {
            let start = text.len();
            text.extend((0..fresh).map(|_| b' ' + random.below(95) as u8));
            while text.len() < start + Self::PIECE {
                let end = (start + Self::PIECE).min(text.len() + fresh);
                let copied = end - text.len();
                text.extend_from_within(start..start + copied);
            }
        }
        Self { text, position: 0 }
    }

    /// The next value.
    #[inline]
    pub fn next(&mut self, size: usize) -> &[u8] {
        if self.position + size > self.text.len() {
            self.position = 0;
        }
        self.position += size;
        &self.text[self.position - size..self.position]
    }
}

#[cfg(test)]
mod tests;
