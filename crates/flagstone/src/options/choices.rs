//! Settings that choose between named values.

use crate::base::checksum::ChecksumType;
use crate::base::compression::CompressionType;
use crate::base::{Error, Result};

use super::text::{pairs, without_braces};
use super::value::{NamedChoice, RandomBits, SettingValue};

impl NamedChoice for CompressionType {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kNoCompression", Self::None),
        ("kSnappyCompression", Self::Snappy),
        ("kZlibCompression", Self::Zlib),
        ("kBZip2Compression", Self::Bzip2),
        ("kLZ4Compression", Self::Lz4),
        ("kLZ4HCCompression", Self::Lz4hc),
        ("kZSTD", Self::Zstd),
        ("kZSTDNotFinalCompression", Self::Zstd),
    ];
}

/// The text of "no compression of its own": the value of an outer setting applies.
const DISABLE_COMPRESSION: &str = "kDisableCompressionOption";

impl SettingValue for Option<CompressionType> {
    fn assign(&mut self, text: &str) -> Result<()> {
        if text == DISABLE_COMPRESSION {
            *self = None;
            return Ok(());
        }
        let mut chosen = CompressionType::None;
        chosen.assign(text)?;
        *self = Some(chosen);
        Ok(())
    }

    fn text(&self) -> String {
        self.as_ref().map_or_else(|| DISABLE_COMPRESSION.to_string(), SettingValue::text)
    }

    fn sample(random: RandomBits<'_>) -> Self {
        (random() & 1 == 1).then(|| CompressionType::sample(random))
    }
}

impl NamedChoice for ChecksumType {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kNoChecksum", Self::None),
        ("kCRC32c", Self::Crc32c),
        ("kxxHash", Self::XxHash),
        ("kxxHash64", Self::XxHash64),
        ("kXXH3", Self::Xxh3),
    ];
}

/// The form of a table's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexType {
    /// One block.
    #[default]
    BinarySearch,
    /// One block and a hash table of prefixes; needs a prefix extractor.
    HashSearch,
    /// Partitions under a top-level index.
    TwoLevelIndexSearch,
    /// One block whose entries hold each data block's first key.
    BinarySearchWithFirstKey,
}

impl NamedChoice for IndexType {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kBinarySearch", Self::BinarySearch),
        ("kHashSearch", Self::HashSearch),
        ("kTwoLevelIndexSearch", Self::TwoLevelIndexSearch),
        ("kBinarySearchWithFirstKey", Self::BinarySearchWithFirstKey),
    ];
}

/// How a data block is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DataBlockIndexType {
    /// By its restart points.
    #[default]
    BinarySearch,
    /// Also by a hash table of its keys, for point lookups.
    BinaryAndHash,
}

impl NamedChoice for DataBlockIndexType {
    const NAMES: &'static [(&'static str, Self)] =
        &[("kDataBlockBinarySearch", Self::BinarySearch), ("kDataBlockBinaryAndHash", Self::BinaryAndHash)];
}

/// How far keys in an index are shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexShortening {
    /// Full keys.
    NoShortening,
    /// Shortened between blocks, the table's last key in full.
    #[default]
    ShortenSeparators,
    /// The last key shortened, too.
    ShortenSeparatorsAndSuccessor,
}

impl NamedChoice for IndexShortening {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kNoShortening", Self::NoShortening),
        ("kShortenSeparators", Self::ShortenSeparators),
        ("kShortenSeparatorsAndSuccessor", Self::ShortenSeparatorsAndSuccessor),
    ];
}

/// What recovery does with a WAL that is not intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecoveryMode {
    /// A torn record at a WAL's end is dropped, anything else refuses to open.
    TolerateCorruptedTailRecords,
    /// Anything wrong refuses to open.
    AbsoluteConsistency,
    /// Replay stops before the first thing that is wrong.
    #[default]
    PointInTimeRecovery,
    /// Whatever can be read is replayed.
    SkipAnyCorruptedRecords,
}

impl NamedChoice for RecoveryMode {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kTolerateCorruptedTailRecords", Self::TolerateCorruptedTailRecords),
        ("kAbsoluteConsistency", Self::AbsoluteConsistency),
        ("kPointInTimeRecovery", Self::PointInTimeRecovery),
        ("kSkipAnyCorruptedRecords", Self::SkipAnyCorruptedRecords),
        ("kSkipAnyCorruptedRecord", Self::SkipAnyCorruptedRecords),
    ];
}

/// How files are arranged and merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompactionStyle {
    /// Levels of growing size.
    #[default]
    Level,
    /// Sorted runs, merged by size.
    Universal,
    /// The oldest files are dropped.
    Fifo,
    /// No compaction but on request.
    None,
}

impl NamedChoice for CompactionStyle {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kCompactionStyleLevel", Self::Level),
        ("kCompactionStyleUniversal", Self::Universal),
        ("kCompactionStyleFIFO", Self::Fifo),
        ("kCompactionStyleNone", Self::None),
    ];
}

/// Which file of a level is compacted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompactionPri {
    /// The largest, deletions weighing more.
    ByCompensatedSize,
    /// The one whose newest entry is oldest.
    OldestLargestSeqFirst,
    /// The one whose oldest entry is oldest.
    OldestSmallestSeqFirst,
    /// The one that overlaps least of the next level.
    #[default]
    MinOverlappingRatio,
    /// Each in turn.
    RoundRobin,
}

impl NamedChoice for CompactionPri {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kByCompensatedSize", Self::ByCompensatedSize),
        ("kOldestLargestSeqFirst", Self::OldestLargestSeqFirst),
        ("kOldestSmallestSeqFirst", Self::OldestSmallestSeqFirst),
        ("kMinOverlappingRatio", Self::MinOverlappingRatio),
        ("kRoundRobin", Self::RoundRobin),
    ];
}

/// When universal compaction stops adding runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompactionStopStyle {
    /// Runs of similar size only.
    SimilarSize,
    /// While the runs taken are at least as large as the next.
    #[default]
    TotalSize,
}

impl NamedChoice for CompactionStopStyle {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kCompactionStopStyleTotalSize", Self::TotalSize),
        ("kCompactionStopStyleSimilarSize", Self::SimilarSize),
    ];
}

/// The filter that a table carries.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum FilterPolicy {
    /// None.
    #[default]
    None,
    /// A Bloom filter: `bloomfilter:BITS`.
    Bloom {
        /// Bits a key; 10 lets 1% of absent keys through.
        bits_per_key: f64,
    },
    /// A Ribbon filter, smaller and slower to build: `ribbonfilter:BITS:LEVEL`.
    Ribbon {
        /// The bits that a Bloom filter with the same rate of false positives would take.
        bits_per_key: f64,
        /// Levels above this one get Bloom filters (0: only flushes; -1: none).
        bloom_before_level: i32,
    },
}

impl FilterPolicy {
    fn parse(text: &str) -> Option<Self> {
        if matches!(text, "nullptr" | "" | "none") {
            return Some(Self::None);
        }
        if text.contains('=') {
            return Self::parse_pairs(text);
        }
        let mut parts = text.split(':');
        let kind = parts.next()?;
        let bits_per_key = parts.next()?.parse().ok().filter(|bits| (0.0..=100.0).contains(bits))?;
        let extra = parts.next();
        if parts.next().is_some() {
            return None;
        }
        match kind {
            // The third part asked for a form of filter that no RocksDB writes any more.
            "bloomfilter" | "rocksdb.BloomFilter" if matches!(extra, None | Some("true" | "false")) => {
                Some(Self::Bloom { bits_per_key })
            }
            "ribbonfilter" | "rocksdb.RibbonFilter" => {
                let bloom_before_level = extra.map_or(Some(0), |level| level.parse().ok())?;
                Some(Self::Ribbon { bits_per_key, bloom_before_level })
            }
            _ => None,
        }
    }

    /// `{id=ribbonfilter:10:-1;bloom_before_level=-1;}`: newer RocksDBs add pairs that the id states already.
    fn parse_pairs(text: &str) -> Option<Self> {
        let found = pairs(without_braces(text)).ok()?;
        let (_, id) = found.iter().find(|(name, _)| *name == "id")?;
        match (Self::parse(id)?, found.iter().find(|(name, _)| *name == "bloom_before_level")) {
            (Self::Ribbon { bits_per_key, .. }, Some((_, level))) => {
                Some(Self::Ribbon { bits_per_key, bloom_before_level: level.parse().ok()? })
            }
            (policy, _) => Some(policy),
        }
    }
}

impl SettingValue for FilterPolicy {
    fn assign(&mut self, text: &str) -> Result<()> {
        *self = Self::parse(text).ok_or_else(|| {
            Error::invalid_argument(format!(
                "expected nullptr, bloomfilter:BITS or ribbonfilter:BITS:LEVEL, found '{text}'"
            ))
        })?;
        Ok(())
    }

    fn text(&self) -> String {
        match self {
            Self::None => "nullptr".to_string(),
            Self::Bloom { bits_per_key } => format!("bloomfilter:{bits_per_key}:false"),
            Self::Ribbon { bits_per_key, bloom_before_level } => {
                format!("ribbonfilter:{bits_per_key}:{bloom_before_level}")
            }
        }
    }

    fn sample(random: RandomBits<'_>) -> Self {
        let bits_per_key = 1.0 + (random() % 40) as f64 / 2.0;
        match random() % 3 {
            0 => Self::None,
            1 => Self::Bloom { bits_per_key },
            _ => Self::Ribbon { bits_per_key, bloom_before_level: (random() % 4) as i32 - 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Result<FilterPolicy> {
        let mut policy = FilterPolicy::None;
        policy.assign(text).map(|()| policy)
    }

    #[test]
    fn filter_policies_as_rocksdb_writes_them() {
        assert_eq!(policy("bloomfilter:10:false").unwrap(), FilterPolicy::Bloom { bits_per_key: 10.0 });
        assert_eq!(policy("bloomfilter:9.5").unwrap(), FilterPolicy::Bloom { bits_per_key: 9.5 });
        let ribbon = FilterPolicy::Ribbon { bits_per_key: 10.0, bloom_before_level: -1 };
        assert_eq!(policy("ribbonfilter:10:-1").unwrap(), ribbon);
        assert_eq!(policy("{id=ribbonfilter:10:-1;bloom_before_level=-1;}").unwrap(), ribbon);
        for wrong in ["bloomfilter", "bloomfilter:x", "bloomfilter:-3", "cuckoo:3", "bloomfilter:10:1:2"] {
            assert!(policy(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wrong_choice_is_told_the_right_ones() {
        let mut checksum = ChecksumType::None;
        let reason = checksum.assign("kCRC").unwrap_err().to_string();
        assert!(reason.contains("kCRC32c") && reason.contains("'kCRC'"), "{reason}");
    }

    #[test]
    fn disabled_compression_means_none_of_its_own() {
        let mut bottommost = Some(CompressionType::Lz4);
        bottommost.assign("kDisableCompressionOption").unwrap();
        assert_eq!((bottommost, bottommost.text().as_str()), (None, "kDisableCompressionOption"));
    }
}
