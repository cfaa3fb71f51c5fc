//! Which filters a family's files get.

use super::builder::Shape;
use super::{FilterBuilder, bloom};

/// What writes a file; decides between Bloom and Ribbon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenBy {
    /// A flush.
    Flush,
    /// A compaction into this level.
    Compaction {
        /// The level.
        level: u32,
    },
    /// Anything else, such as a file for ingestion: taken for the last level.
    Other,
}

/// The filters of a family's tables; `Option<FilterPolicy>` where there may be none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FilterPolicy {
    /// A Bloom filter.
    Bloom {
        /// Bits per key.
        bits_per_key: f64,
    },
    /// A Ribbon filter: about 30% smaller than a Bloom filter of the same accuracy, but slower to
    /// build and query.
    Ribbon {
        /// Bits per key of a Bloom filter of the same accuracy.
        bloom_equivalent_bits_per_key: f64,
        /// Levels below this number get Bloom filters; flushes count as level -1.
        bloom_before_level: i32,
    },
}

impl FilterPolicy {
    /// Part of the name under which a file's metaindex lists its filter, whatever the policy.
    pub const COMPATIBILITY_NAME: &str = "rocksdb.BuiltinBloomFilter";

    /// Bloom filters with 10 bits per key, for about 1% false positives.
    pub const DEFAULT: Self = Self::Bloom { bits_per_key: 10.0 };

    /// Minimum bits per key; with fewer, no filter is written.
    pub const LEAST_BITS: f64 = 0.5;

    /// The same policy with `bits` bits per key.
    #[must_use]
    pub fn with_bits(self, bits: f64) -> Self {
        match self {
            Self::Bloom { .. } => Self::Bloom { bits_per_key: bits },
            Self::Ribbon { bloom_before_level, .. } => {
                Self::Ribbon { bloom_equivalent_bits_per_key: bits, bloom_before_level }
            }
        }
    }

    /// The value of the property `rocksdb.filter.policy`.
    pub fn property_name(&self) -> &'static str {
        match self {
            Self::Bloom { .. } => "bloomfilter",
            Self::Ribbon { .. } => "ribbonfilter",
        }
    }

    /// A builder for the filters of one file; `None` if the policy asks for so few bits that a
    /// filter is pointless.
    pub fn builder(&self, format_version: u32, written_by: WrittenBy) -> Option<FilterBuilder> {
        let (bits, ribbon_from) = match *self {
            Self::Bloom { bits_per_key } => (bits_per_key, i64::MAX),
            Self::Ribbon { bloom_equivalent_bits_per_key, bloom_before_level } => {
                (bloom_equivalent_bits_per_key, i64::from(bloom_before_level))
            }
        };
        let millibits_per_key = millibits(bits)?;
        let level = match written_by {
            WrittenBy::Flush => -1,
            WrittenBy::Compaction { level } => i64::from(level),
            WrittenBy::Other => i64::from(i32::MAX),
        };
        let shape = if format_version < 5 {
            Shape::Legacy { bits_per_key: (millibits_per_key + 500) / 1000 }
        } else if level < ribbon_from {
            Shape::Bloom { millibits_per_key }
        } else {
            let rate = bloom::false_positive_rate(millibits_per_key as f64 / 1000.0);
            Shape::Ribbon { columns: -rate.log2(), millibits_per_key }
        };
        Some(FilterBuilder::new(shape))
    }
}

/// Thousandths of a bit per key, between 1 and 100 bits; `None` for less than half a bit.
fn millibits(bits_per_key: f64) -> Option<u64> {
    if bits_per_key.is_nan() || bits_per_key < FilterPolicy::LEAST_BITS {
        return None;
    }
    Some((bits_per_key.clamp(1.0, 100.0) * 1000.0 + 0.500_001) as u64)
}
