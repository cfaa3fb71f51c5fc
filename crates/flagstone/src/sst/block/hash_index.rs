//! The hash index at the end of a data block: from user key to the restart interval that may hold
//! it.
//!
//! Bucket of a key = `hash(user key) mod m`; a bucket holds a restart index, or says that several
//! intervals share it (254) or none uses it (255). A key that falls into an empty bucket may still
//! start the last interval's successor block, so the search then goes through the last interval.

use crate::base::hash::hash32;

const SEED: u32 = 397;
const COLLISION: u8 = 254;
const EMPTY: u8 = 255;
/// The largest restart index that a bucket can name.
const RESTART_MAX: u32 = 253;
/// Blocks beyond this size have no hash index.
const BLOCK_SIZE_MAX: usize = 64 * 1024;

/// Where the hash index of a block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HashIndex {
    start: u32,
    num_buckets: u16,
}

/// What the hash index says about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bucket {
    /// Search all restarts.
    Unknown,
    /// Search the last interval.
    Empty,
    /// Search this interval.
    Restart(u32),
}

impl HashIndex {
    /// Finds the index at the end of `bytes`.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let count_at = bytes.len().checked_sub(2)?;
        let num_buckets = u16::from_le_bytes([bytes[count_at], bytes[count_at + 1]]);
        let start = count_at.checked_sub(usize::from(num_buckets))? as u32;
        (num_buckets > 0).then_some(Self { start, num_buckets })
    }

    /// Where it starts.
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// Looks a key up in the index of `block`.
    #[inline]
    pub fn lookup(self, block: &[u8], user_key: &[u8]) -> Bucket {
        let bucket = hash(user_key) % u32::from(self.num_buckets);
        match block[self.start as usize + bucket as usize] {
            COLLISION => Bucket::Unknown,
            EMPTY => Bucket::Empty,
            restart => Bucket::Restart(u32::from(restart)),
        }
    }
}

/// Collects the keys of one block.
#[derive(Debug, Default)]
pub(super) struct HashIndexBuilder {
    entries: Vec<(u32, u8)>,
    entries_per_bucket: f64,
    overflow: bool,
}

impl HashIndexBuilder {
    /// With `ratio` entries per bucket.
    pub fn new(ratio: f64) -> Self {
        Self {
            entries: Vec::new(),
            entries_per_bucket: if ratio > 0.0 { ratio } else { 0.75 },
            overflow: false,
        }
    }

    /// Notes that `user_key` lies in interval `restart`.
    pub fn add(&mut self, user_key: &[u8], restart: u32) {
        if restart > RESTART_MAX {
            self.overflow = true;
        } else {
            self.entries.push((hash(user_key), restart as u8));
        }
    }

    fn num_buckets(&self) -> u32 {
        (self.entries.len() as f64 / self.entries_per_bucket) as u32 | 1
    }

    /// Bytes that [`HashIndexBuilder::finish`] would append.
    pub fn estimated_size(&self) -> usize {
        self.num_buckets() as usize + 2
    }

    /// Appends the index to a block that is complete but for its footer; `false` if the block can
    /// have none.
    pub fn finish(&self, buffer: &mut Vec<u8>, block_start: usize) -> bool {
        let num_buckets = self.num_buckets();
        let too_large = buffer.len() - block_start + self.estimated_size() + 4 > BLOCK_SIZE_MAX;
        if self.overflow
            || self.entries.is_empty()
            || too_large
            || num_buckets > u32::from(u16::MAX)
        {
            return false;
        }
        let start = buffer.len();
        buffer.resize(start + num_buckets as usize, EMPTY);
        for &(hash, restart) in &self.entries {
            let bucket = &mut buffer[start + (hash % num_buckets) as usize];
            let collides = *bucket != EMPTY && *bucket != restart;
            *bucket = if collides { COLLISION } else { restart };
        }
        buffer.extend_from_slice(&(num_buckets as u16).to_le_bytes());
        true
    }

    /// Starts the next block.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.overflow = false;
    }
}

fn hash(user_key: &[u8]) -> u32 {
    hash32(user_key, SEED)
}

#[cfg(test)]
mod tests;
