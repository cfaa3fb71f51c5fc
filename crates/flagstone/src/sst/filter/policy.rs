//! Which filters a family's files get.

use super::FilterBuilder;
use crate::base::Result;

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

/// Which filters a family's files get; `Option<FilterPolicy>` where there may be none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FilterPolicy {
    /// `bloomfilter:BITS:false`.
    Bloom {
        /// Bits per key.
        bits_per_key: f64,
    },
    /// `ribbonfilter:BITS:LEVEL`: some 30% smaller than Bloom for the same accuracy, slower to build and query.
    Ribbon {
        /// Bits per key of a Bloom filter of the same accuracy.
        bloom_equivalent_bits_per_key: f64,
        /// Levels above (less than) this get Bloom filters; flushes count as level -1.
        bloom_before_level: i32,
    },
}

impl FilterPolicy {
    /// Part of the name under which a file's metaindex lists its filter, whatever the policy.
    pub const COMPATIBILITY_NAME: &str = "rocksdb.BuiltinBloomFilter";

    /// Bloom filters of 10 bits per key: about 1% false positives.
    pub const DEFAULT: Self = Self::Bloom { bits_per_key: 10.0 };

    /// The value of the property `rocksdb.filter.policy`.
    pub fn property_name(&self) -> &'static str {
        match self {
            Self::Bloom { .. } => "bloomfilter",
            Self::Ribbon { .. } => "ribbonfilter",
        }
    }

    /// Reads an option string: `bloomfilter:10:false`, `ribbonfilter:10:0`, or `nullptr` (or nothing) for none.
    ///
    /// # Errors
    /// `InvalidArgument` for any other string.
    pub fn parse(_text: &str) -> Result<Option<Self>> {
        todo!()
    }

    /// A builder for the filters of one file; `None` if the policy asks for so few bits that a filter is pointless.
    pub fn builder(&self, _format_version: u32, _written_by: WrittenBy) -> Option<FilterBuilder> {
        todo!()
    }
}
