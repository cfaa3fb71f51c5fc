//! Collects the hashes of a file's (or a partition's) keys and lays the filter out when all are
//! there.

use super::hashes::Hashes;
use super::{LINE, METADATA_SIZE, NEW_BLOOM, RIBBON, bloom, ribbon};
use crate::base::hash::{hash32, hash64};

/// What kind of filter is made.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// FastLocalBloom.
    Bloom { millibits_per_key: u64 },
    /// The filter of format versions before 5.
    Legacy { bits_per_key: u64 },
    /// Ribbon; the millibits are those of the Bloom filter that stands in for it where it makes no
    /// sense.
    Ribbon { columns: f64, millibits_per_key: u64 },
}

/// Fewer keys get a Bloom filter instead of Ribbon, whose smallest size would be larger.
const MIN_RIBBON_KEYS: usize = 256;

/// The largest FastLocalBloom filter: its line number is computed from 32 bits, and blocks are
/// below 4 GiB.
const MAX_BLOOM_SIZE: u64 = 0xffff_ffc0;

/// Collects keys and makes filters of them.
#[derive(Debug)]
pub struct FilterBuilder {
    shape: Shape,
    hashes: Hashes,
    /// The last two hashes that were offered, the newer second.
    recent: [Option<u64>; 2],
}

impl FilterBuilder {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, hashes: Hashes::default(), recent: [None; 2] }
    }

    /// Adds a user key or a prefix. What was among the last two added is left out, so that each key
    /// may come with its prefix, versions of one key included.
    #[inline]
    pub fn add(&mut self, key: &[u8]) {
        let hash = match self.shape {
            Shape::Legacy { .. } => u64::from(hash32(key, bloom::LEGACY_SEED)),
            _ => hash64(key),
        };
        if !self.recent.contains(&Some(hash)) {
            self.hashes.push(hash);
        }
        self.recent = [self.recent[1], Some(hash)];
    }

    /// How many keys and prefixes were added since the last filter.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether none was added.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// About how many bytes [`FilterBuilder::finish`] would return now.
    pub fn estimated_size(&self) -> usize {
        self.size_of(self.hashes.len())
    }

    /// How many keys a filter of about `size` bytes holds: where to cut partitions. At least one.
    pub fn keys_that_fit(&self, size: usize) -> usize {
        let (mut fits, mut too_many) = (1, size.saturating_mul(8).max(2));
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if self.size_of(middle) <= size { fits = middle } else { too_many = middle }
        }
        fits
    }

    /// The filter with its metadata (empty for no keys); the builder is empty again.
    pub fn finish(&mut self) -> Vec<u8> {
        let hashes = &self.hashes;
        if hashes.is_empty() {
            return Vec::new();
        }
        let filter = match self.shape {
            Shape::Bloom { millibits_per_key } => build_bloom(hashes, millibits_per_key),
            Shape::Legacy { bits_per_key } => build_legacy(hashes, bits_per_key),
            Shape::Ribbon { columns, millibits_per_key } => build_ribbon(hashes, columns)
                .unwrap_or_else(|| build_bloom(hashes, millibits_per_key)),
        };
        self.hashes.clear();
        self.recent = [None; 2];
        filter
    }

    fn size_of(&self, keys: usize) -> usize {
        if keys == 0 {
            return 0;
        }
        METADATA_SIZE
            + match self.shape {
                Shape::Bloom { millibits_per_key } => bloom_size(keys, millibits_per_key),
                Shape::Legacy { bits_per_key } => legacy_lines(keys, bits_per_key) as usize * LINE,
                Shape::Ribbon { millibits_per_key, .. } if keys < MIN_RIBBON_KEYS => {
                    bloom_size(keys, millibits_per_key)
                }
                Shape::Ribbon { columns, .. } => {
                    ribbon::size_for(ribbon::blocks_for(keys), columns)
                }
            }
    }
}

/// Bytes of a FastLocalBloom filter without metadata.
fn bloom_size(keys: usize, millibits_per_key: u64) -> usize {
    let bytes = (keys as u64).saturating_mul(millibits_per_key).div_ceil(8000);
    bytes.min(MAX_BLOOM_SIZE).next_multiple_of(LINE as u64) as usize
}

fn build_bloom(hashes: &Hashes, millibits_per_key: u64) -> Vec<u8> {
    let size = bloom_size(hashes.len(), millibits_per_key);
    // The size was rounded up: for few keys there are more bits than asked for.
    let probes = bloom::best_probes(size as u64 * 8000 / hashes.len() as u64);
    let mut filter = Vec::with_capacity(size + METADATA_SIZE);
    filter.resize(size, 0);
    for hash in hashes.iter() {
        bloom::add(&mut filter, probes, hash);
    }
    filter.extend_from_slice(&[NEW_BLOOM, 0, probes as u8, 0, 0]);
    filter
}

/// Lines of a legacy filter: an odd number, so that more bits of the hash take part.
fn legacy_lines(keys: usize, bits_per_key: u64) -> u32 {
    let bits = (keys as u64).saturating_mul(bits_per_key);
    (bits.div_ceil(LINE as u64 * 8).min(u64::from(u32::MAX) / LINE as u64 - 1) | 1) as u32
}

fn build_legacy(hashes: &Hashes, bits_per_key: u64) -> Vec<u8> {
    let lines = legacy_lines(hashes.len(), bits_per_key);
    let probes = ((bits_per_key as f64 * 0.69) as u32).clamp(1, 30);
    let size = lines as usize * LINE;
    let mut filter = Vec::with_capacity(size + METADATA_SIZE);
    filter.resize(size, 0);
    for hash in hashes.iter() {
        bloom::legacy_add(&mut filter, lines, probes, hash as u32);
    }
    filter.push(probes as u8);
    filter.extend_from_slice(&lines.to_le_bytes());
    filter
}

fn build_ribbon(hashes: &Hashes, columns: f64) -> Option<Vec<u8>> {
    if hashes.len() < MIN_RIBBON_KEYS {
        return None;
    }
    let ribbon::Built { mut data, seed, blocks } = ribbon::build(hashes, columns)?;
    let [low, middle, high, _] = blocks.to_le_bytes();
    data.extend_from_slice(&[RIBBON, seed, low, middle, high]);
    Some(data)
}
