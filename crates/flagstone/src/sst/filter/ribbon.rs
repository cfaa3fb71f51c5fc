//! The Ribbon filter: a solved system of linear equations over bits, some 30% smaller than Bloom.
//!
//! 1. Every key gives an equation: from slot `start` on, the 128 coefficient bits `C` (the lowest
//!    always set), each selecting one slot; the xor of the selected slots' values must be the key's
//!    `expected` bits.
//! 2. *Banding*: keep one equation per slot, in which that slot leads. A new equation whose slot is
//!    taken is xored with the one there, shifted to its new leading bit, and tried again. If
//!    nothing is left of the coefficients but something of the right side, the keys contradict each
//!    other: start over with another seed, then with more slots.
//! 3. *Back substitution*: from the last slot to the first, each slot's value follows from its
//!    equation and the 127 values after it. A slot without an equation is zero.
//! 4. A value has up to 32 bits, one per *column*. Storage per block of 128 slots: one 128-bit
//!    little-endian segment per column. The first `lower_blocks` blocks have one column less than
//!    the others, so that any size is possible.
//! 5. A query recomputes `start`, `C` and `expected`, and compares column by column. A key that is
//!    not in the set passes with probability 2^-columns.

use super::hashes::Hashes;

/// Slots of a block; also the width of an equation.
const BLOCK_SLOTS: u64 = 128;

/// Bytes of a segment.
const SEGMENT: usize = 16;

/// The number of blocks is stored in 24 bits.
pub const MAX_BLOCKS: u32 = (1 << 24) - 1;

/// The most columns that a query looks at.
const MAX_COLUMNS: u64 = 32;

/// How the segments of a filter are laid out; all that a query needs but the seed and the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    blocks: u32,
    upper_columns: u32,
    lower_blocks: u64,
}

impl Layout {
    /// The layout of `size` bytes of data in `blocks` blocks; `None` if a query could not be
    /// answered from them (fewer than two blocks, or fewer segments than some query would read).
    pub fn new(size: usize, blocks: u32) -> Option<Self> {
        let segments = (size / SEGMENT) as u64;
        if blocks < 2 {
            return None;
        }
        let upper = segments.div_ceil(u64::from(blocks));
        if upper > MAX_COLUMNS {
            return Some(Self { blocks, upper_columns: MAX_COLUMNS as u32, lower_blocks: 0 });
        }
        Some(Self {
            blocks,
            upper_columns: upper as u32,
            lower_blocks: upper * u64::from(blocks) - segments,
        })
    }

    /// The first segment of a block, and its number of columns.
    #[inline(always)]
    fn block(&self, block: u64) -> (usize, usize) {
        let segment = block * u64::from(self.upper_columns) - block.min(self.lower_blocks);
        let columns = u64::from(self.upper_columns) - u64::from(block < self.lower_blocks);
        (segment as usize, columns as usize)
    }
}

/// What a seed adds to hashes.
fn raw_seed(seed: u8) -> u64 {
    let mixed = u64::from(seed).wrapping_mul(0xc782_19a2_3eea_dd03);
    (mixed ^ ((mixed & 0xf0f0_f0f0_f0f0_f0f0) >> 4)) & 0xffff_ffff
}

/// A key's equation.
#[derive(Debug, Clone, Copy)]
struct Equation {
    start: u64,
    coefficients: u128,
    expected: u32,
}

impl Equation {
    #[inline(always)]
    fn new(hash: u64, raw_seed: u64, blocks: u32) -> Self {
        let h = (hash ^ raw_seed).wrapping_mul(0x6193_d459_236a_3a0d);
        let starts = u64::from(blocks) * BLOCK_SLOTS - (BLOCK_SLOTS - 1);
        let start = ((u128::from(h) * u128::from(starts)) >> 64) as u64;
        let a = h.wrapping_mul(0xc28f_8282_2b65_0bed);
        let coefficients = ((u128::from(a) << 64) ^ u128::from(a ^ 0xc367_844a_6e52_731d)) | 1;
        Self { start, coefficients, expected: a.swap_bytes() as u32 }
    }
}

#[inline(always)]
fn segment(data: &[u8], index: usize) -> u128 {
    let bytes: &[u8; SEGMENT] =
        data[index * SEGMENT..].first_chunk().expect("the layout covers all segments");
    u128::from_le_bytes(*bytes)
}

/// Whether a hash's equation holds. The layout is that of `data`.
#[inline]
pub fn may_contain(data: &[u8], layout: Layout, seed: u8, hash: u64) -> bool {
    let Equation { start, coefficients, expected } =
        Equation::new(hash, raw_seed(seed), layout.blocks);
    let (first, columns) = layout.block(start / BLOCK_SLOTS);
    let bit = (start % BLOCK_SLOTS) as u32;
    let here = coefficients << bit;
    if bit == 0 {
        return (0..columns)
            .all(|i| (segment(data, first + i) & here).count_ones() & 1 == (expected >> i) & 1);
    }
    let next = coefficients >> (128 - bit);
    (0..columns).all(|i| {
        let selected =
            (segment(data, first + i) & here) ^ (segment(data, first + columns + i) & next);
        selected.count_ones() & 1 == (expected >> i) & 1
    })
}

/// A filter as built: its data, seed and number of blocks.
pub struct Built {
    /// The segments.
    pub data: Vec<u8>,
    /// The seed that worked.
    pub seed: u8,
    /// Blocks of 128 slots.
    pub blocks: u32,
}

/// Blocks to try first for so many keys: the slots must exceed the keys by a few percent, slowly
/// more for larger sets. Measured: with this much, the first or second seed works for 256 to
/// 3,000,000 keys.
pub fn blocks_for(keys: usize) -> u32 {
    let overhead = 1.005 + 0.003 * (keys.max(128) as f64 / 128.0).log2();
    ((keys as f64 * overhead / BLOCK_SLOTS as f64).ceil() as u32).max(2)
}

/// Bytes of data for so many blocks at so many (fractional) columns.
pub fn size_for(blocks: u32, columns: f64) -> usize {
    let segments = (f64::from(blocks) * columns.clamp(1.0, MAX_COLUMNS as f64)).round() as usize;
    segments * SEGMENT
}

/// Solves the system for `hashes`, with some `columns` columns on average: a false-positive rate of
/// 2^-columns.
///
/// `None` if no seed works within a tenth more slots than expected (which does not happen to random
/// hashes), or if there are too many keys for the format.
pub fn build(hashes: &Hashes, columns: f64) -> Option<Built> {
    const SEEDS_PER_SIZE: usize = 8;
    let first = blocks_for(hashes.len());
    let mut blocks = first;
    let mut seeds = 0..=u8::MAX;
    while blocks <= (first + first / 10 + 1).min(MAX_BLOCKS) {
        for seed in seeds.by_ref().take(SEEDS_PER_SIZE) {
            if let Some(banding) = Banding::solve(hashes, raw_seed(seed), blocks) {
                let size = size_for(blocks, columns);
                let layout = Layout::new(size, blocks)?;
                return Some(Built { data: banding.substitute(size, layout), seed, blocks });
            }
        }
        blocks += (blocks / 100).max(1);
    }
    None
}

/// One equation per slot, in which that slot leads; zero coefficients where there is none.
struct Banding {
    coefficients: Vec<u128>,
    expected: Vec<u32>,
}

impl Banding {
    /// `None` if the equations contradict each other.
    fn solve(hashes: &Hashes, raw_seed: u64, blocks: u32) -> Option<Self> {
        let slots = blocks as usize * BLOCK_SLOTS as usize;
        let mut banding = Self { coefficients: vec![0; slots], expected: vec![0; slots] };
        for hash in hashes.iter() {
            banding.add(Equation::new(hash, raw_seed, blocks))?;
        }
        Some(banding)
    }

    #[inline]
    fn add(&mut self, equation: Equation) -> Option<()> {
        let Equation { start, mut coefficients, mut expected } = equation;
        let mut slot = start as usize;
        loop {
            let there = self.coefficients[slot];
            if there == 0 {
                self.coefficients[slot] = coefficients;
                self.expected[slot] = expected;
                return Some(());
            }
            coefficients ^= there;
            expected ^= self.expected[slot];
            if coefficients == 0 {
                // The same key twice leaves nothing on either side.
                return (expected == 0).then_some(());
            }
            let shift = coefficients.trailing_zeros();
            coefficients >>= shift;
            slot += shift as usize;
        }
    }

    /// The values of all slots, as segments.
    fn substitute(&self, size: usize, layout: Layout) -> Vec<u8> {
        let mut data = vec![0; size];
        // Per column, the values of this slot and the 127 after it, this slot's lowest.
        let mut columns = [0u128; MAX_COLUMNS as usize];
        let columns = &mut columns[..layout.upper_columns as usize];
        for slot in (0..self.coefficients.len()).rev() {
            let (coefficients, expected) = (self.coefficients[slot], self.expected[slot]);
            for (i, values) in columns.iter_mut().enumerate() {
                *values <<= 1;
                let known = (*values & coefficients).count_ones();
                // Without an equation both are zero, and so is the value.
                *values |= u128::from((known ^ (expected >> i)) & 1);
            }
            if slot % BLOCK_SLOTS as usize == 0 {
                let (first, count) = layout.block(slot as u64 / BLOCK_SLOTS);
                for (i, values) in columns[..count].iter().enumerate() {
                    data[(first + i) * SEGMENT..][..SEGMENT].copy_from_slice(&values.to_le_bytes());
                }
            }
        }
        data
    }
}
