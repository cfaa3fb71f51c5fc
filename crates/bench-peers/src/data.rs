//! Keys and values: the same for every engine, and a function of the seed alone.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

/// YCSB's skew.
const ZIPF_EXPONENT: f64 = 0.99;

/// What keys look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyShape {
    /// As `db_bench` makes them: eight bytes big-endian, then eight digits `0`.
    Numbers,
    /// As YCSB makes them: `user` and 20 decimal digits of a hash.
    Users,
}

impl KeyShape {
    /// Bytes of a key.
    pub fn length(self) -> usize {
        match self {
            Self::Numbers => 16,
            Self::Users => 24,
        }
    }

    /// Puts key number `number` into `key`.
    #[inline]
    pub fn write(self, number: u64, key: &mut Vec<u8>) {
        key.clear();
        match self {
            Self::Numbers => {
                key.extend_from_slice(&number.to_be_bytes());
                key.extend_from_slice(b"00000000");
            }
            Self::Users => {
                key.extend_from_slice(b"user");
                let mut digits = [b'0'; 20];
                let mut rest = mix(number);
                for digit in digits.iter_mut().rev() {
                    *digit = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
                key.extend_from_slice(&digits);
            }
        }
    }
}

/// Spreads a number over 64 bits, one to one (SplitMix64's finalizer).
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The numbers below `size` in a random order, each once, without a list of them in memory.
///
/// A Feistel network permutes the next power of four; numbers that fall outside are sent through
/// again.
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    size: u64,
    half_bits: u32,
    seed: u64,
}

impl Permutation {
    /// The order that `seed` gives.
    pub fn new(size: u64, seed: u64) -> Self {
        let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
        Self { size, half_bits: bits.div_ceil(2).max(1), seed: mix(seed) }
    }

    /// Which number stands at `position`.
    #[inline]
    pub fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.size);
        let mut number = position;
        loop {
            number = self.rounds(number);
            if number < self.size {
                return number;
            }
        }
    }

    #[inline]
    fn rounds(&self, number: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..4 {
            let scrambled = mix(right ^ self.seed.rotate_left(round * 16)) & mask;
            (left, right) = (right, left ^ scrambled);
        }
        (left << self.half_bits) | right
    }
}

/// Which keys are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skew {
    /// All alike.
    Uniform,
    /// A few of them mostly, spread over the key space.
    Zipfian,
    /// The youngest mostly.
    Latest,
}

/// Draws numbers of keys.
pub struct Draw {
    random: SmallRng,
    skew: Skew,
    size: u64,
    zipf: Zipf<f64>,
    spread: Permutation,
}

impl Draw {
    /// Draws below `size`; threads take different seeds.
    pub fn new(skew: Skew, size: u64, seed: u64) -> Self {
        let size = size.max(1);
        let zipf = Zipf::new(size as f64, ZIPF_EXPONENT)
            .expect("at least one element, a positive exponent");
        // The popular keys are the same for every seed, as they are the same for every thread.
        Self {
            random: SmallRng::seed_from_u64(seed),
            skew,
            size,
            zipf,
            spread: Permutation::new(size, 0),
        }
    }

    /// The next number of a key among the first `present`, at least one and at most the size.
    #[inline]
    pub fn next(&mut self, present: u64) -> u64 {
        match self.skew {
            Skew::Uniform => self.random.random_range(0..present),
            Skew::Zipfian => {
                let rank = self.rank() % self.size;
                self.spread.at(rank) % present
            }
            Skew::Latest => present - 1 - self.rank() % present,
        }
    }

    /// A number below `limit`, for other choices than keys.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        self.random.random_range(0..limit)
    }

    fn rank(&mut self) -> u64 {
        self.zipf.sample(&mut self.random) as u64 - 1
    }
}

/// A text of which values are slices, made as `db_bench` makes it: pieces of 100 bytes whose second
/// half repeats the first.
pub struct Values {
    text: Vec<u8>,
    position: usize,
}

impl Values {
    const PIECE: usize = 100;
    const LENGTH_MIN: usize = 1 << 20;

    /// Values of up to `length_max` bytes.
    pub fn new(length_max: usize, seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let length = (2 * length_max).max(Self::LENGTH_MIN);
        let mut text = Vec::with_capacity(length + Self::PIECE);
        while text.len() < length {
            let start = text.len();
            text.extend((0..Self::PIECE / 2).map(|_| b' ' + random.random_range(0..95u8)));
            text.extend_from_within(start..);
        }
        Self { text, position: 0 }
    }

    /// The next value.
    #[inline]
    pub fn next(&mut self, length: usize) -> &[u8] {
        if self.position + length > self.text.len() {
            self.position = 0;
        }
        self.position += length;
        &self.text[self.position - length..self.position]
    }
}

#[cfg(test)]
mod tests;
