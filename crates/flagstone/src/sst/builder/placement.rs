//! Where data blocks go, so that few lie across the boundary of two super blocks: pages, for
//! example, of which a lookup then reads one.
//!
//! 1. A block is ended early where the next entry would take it, as far as blocks before
//!    compressed, over the next boundary. As many blocks of like size go before a boundary as
//!    `block_size` wants: none is small because others were full.
//! 2. A block that would lie across the next boundary all the same is moved behind it, if that
//!    skips few enough bytes.
//! 3. What neither helps lies across.

use super::super::format::TRAILER_SIZE;

/// So small a part of `block_size`, a block is not ended early.
const WORTHWHILE_PART: usize = 4;

/// The part that a new block has in the estimate of what blocks take in the file.
const NEW_PART: f64 = 1.0 / 16.0;
/// So many mean deviations from it, a block may be larger. With more, more blocks fit, and more
/// room is left empty: where few entries go into a page, one fewer each time.
const DEVIATIONS: f64 = 1.0;

/// Keeps data blocks from lying across boundaries.
#[derive(Debug, Clone)]
pub(super) struct Placement {
    /// Bytes between two boundaries, a power of two.
    super_block: u64,
    /// Bytes that may be skipped at most.
    padding_max: u64,
    block_size: usize,
    stored: Option<Stored>,
}

/// What blocks take in the file for the bytes that they have: a line through those of before, of
/// which the last count most.
#[derive(Debug, Clone, Copy)]
struct Stored {
    raw: f64,
    stored: f64,
    /// Of the bytes that blocks have, and of both.
    variance: f64,
    covariance: f64,
    /// How far blocks lay from the line.
    deviation: f64,
}

impl Stored {
    /// Bytes more in the file for a byte more.
    fn slope(&self) -> f64 {
        let ratio = self.stored / self.raw;
        // Blocks of one size say nothing of others.
        let is_known = self.variance > (self.raw / 16.0).powi(2);
        if is_known {
            (self.covariance / self.variance).clamp(ratio / 2.0, ratio * 1.5)
        } else {
            ratio
        }
    }

    fn note(&mut self, raw: f64, stored: f64) {
        let (x, y) = (raw - self.raw, stored - self.stored);
        self.deviation += ((y - x * self.slope()).abs() - self.deviation) * NEW_PART;
        self.raw += x * NEW_PART;
        self.stored += y * NEW_PART;
        self.variance = (self.variance + x * x * NEW_PART) * (1.0 - NEW_PART);
        self.covariance = (self.covariance + x * y * NEW_PART) * (1.0 - NEW_PART);
    }

    /// How many bytes a block has that hardly takes more than `room`.
    fn fitting(&self, room: f64) -> usize {
        let raw = self.raw + (room - DEVIATIONS * self.deviation - self.stored) / self.slope();
        raw.max(0.0) as usize
    }
}

/// When a block is to be ended before it has its full size; of uncompressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    /// It has enough with so many bytes.
    pub enough: usize,
    /// With more it would lie across a boundary.
    pub most: usize,
    /// With fewer it is too small to be ended.
    pub least: usize,
}

impl Limit {
    /// None.
    pub const NONE: Self = Self { enough: usize::MAX, most: usize::MAX, least: usize::MAX };

    /// Whether a block of `size` bytes is ended before an entry with which it would have `exact`,
    /// which is `at_most` so much.
    #[inline]
    pub fn ends(
        self,
        size: usize,
        at_most: impl FnOnce() -> usize,
        exact: impl FnOnce() -> usize,
    ) -> bool {
        size >= self.least
            && (size >= self.enough
                || (size <= self.most && at_most() > self.most && exact() > self.most))
    }
}

impl Placement {
    pub fn new(super_block: u64, padding_max: u64, block_size: usize) -> Self {
        Self { super_block, padding_max, block_size: block_size.max(1), stored: None }
    }

    /// Notes that a block of `raw` bytes takes `stored` in the file, without its trailer.
    pub fn note(&mut self, raw: usize, stored: usize) {
        // Of the ordinary ones a huge one says nothing.
        if raw > self.block_size.saturating_mul(2) {
            return;
        }
        let (raw, stored) = (raw as f64, stored as f64);
        match &mut self.stored {
            Some(before) => before.note(raw, stored),
            None => {
                self.stored =
                    Some(Stored { raw, stored, variance: 0.0, covariance: 0.0, deviation: 0.0 })
            }
        }
    }

    /// How large a block may become that is begun with the file at `offset`.
    pub fn limit(&self, offset: u64) -> Limit {
        let Some(stored) = &self.stored else { return Limit::NONE };
        let left = self.left(offset);
        let room = if left <= self.padding_max { self.super_block } else { left };
        let most = stored.fitting(room.saturating_sub(TRAILER_SIZE as u64) as f64);
        let least = self.block_size.div_ceil(WORTHWHILE_PART);
        match most.div_ceil(self.block_size) {
            _ if most < least => Limit::NONE,
            0 | 1 => Limit { enough: usize::MAX, most, least },
            blocks => Limit { enough: most / blocks, most, least },
        }
    }

    /// Bytes to skip at `offset` before a block that takes `stored` bytes with its trailer.
    pub fn padding(&self, offset: u64, stored: u64) -> u64 {
        let left = self.left(offset);
        if stored > left && stored <= self.super_block && left <= self.padding_max {
            left
        } else {
            0
        }
    }

    /// Bytes up to the next boundary.
    fn left(&self, offset: u64) -> u64 {
        self.super_block - (offset & (self.super_block - 1))
    }
}

#[cfg(test)]
mod tests;
