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
    /// Numbers below `limit` in the given order. `count` of them are drawn at most when each comes once.
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

    /// Text that compresses to about `compression_ratio` of its size, for values of up to `value_size_max` bytes.
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
mod tests {
    use super::*;

    #[test]
    fn keys_look_like_db_bench_s() {
        let mut key = [0; 16];
        fill_key(0x3aa6, &mut key);
        assert_eq!(&key, b"\0\0\0\0\0\0\x3a\xa600000000");
        let mut short = [0; 4];
        fill_key(0x0102_0304_0506, &mut short);
        assert_eq!(short, [3, 4, 5, 6]);
    }

    #[test]
    fn a_seed_gives_the_keys_and_values_that_db_bench_wrote() {
        // db_bench 7.8.3 --benchmarks=fillrandom --num=1000000 --writes=20 --seed=42, its smallest and largest keys.
        let mut random = MersenneTwister::new(43);
        let mut numbers = KeyNumbers::new(KeyOrder::Random, 1_000_000, 43);
        let mut values = Values::new(0.5, 100);
        let mut written: Vec<_> =
            (0..20).map(|_| (numbers.next(&mut random), values.next(100).to_vec())).collect();
        written.sort();
        let numbers: Vec<_> = written.iter().map(|(number, _)| *number).collect();
        assert_eq!((numbers[0], numbers[1], numbers[19]), (0x3aa6, 0x150c6, 0xeda97));
        assert!(written[0].1.starts_with(b"axew qG "), "{}", written[0].1.escape_ascii());
        assert_eq!(written[0].1[..50], written[0].1[50..]);
    }

    #[test]
    fn unique_numbers_are_each_drawn_once() {
        let mut random = MersenneTwister::new(1);
        let mut numbers = KeyNumbers::new(KeyOrder::UniqueRandom, 1000, 7);
        let mut drawn: Vec<_> = (0..1000).map(|_| numbers.next(&mut random)).collect();
        assert!(!drawn.is_sorted());
        drawn.sort_unstable();
        assert!(drawn.into_iter().eq(0..1000));
    }
}
