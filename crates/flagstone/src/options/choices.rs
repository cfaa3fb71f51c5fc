//! Settings that choose between named values, and those names.

use crate::base::Result;
use crate::base::checksum::ChecksumType;
use crate::base::compression::CompressionType;
use crate::cache::PolicyKind;
use crate::sst::{IndexShortening, IndexType};
use crate::wal::{RecoveryMode, WalCompression, WalWriteMode};

use super::value::{NOT_SET, NamedChoice, RandomBits, SettingValue};

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
    const AFFIXES: (&'static str, &'static str) = ("k", "Compression");
    const NOT_SUPPORTED: &'static [&'static str] = &["kXpressCompression"];
    const TELLS_HOW_TO_READ: bool = true;
}

/// The text of "no compression of its own": the value of an outer setting applies.
const DISABLE_COMPRESSION: &str = "kDisableCompressionOption";

impl SettingValue for Option<CompressionType> {
    fn assign(&mut self, text: &str) -> Result<()> {
        if [DISABLE_COMPRESSION, NOT_SET].contains(&text) {
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
    const AFFIXES: (&'static str, &'static str) = ("k", "Checksum");
    const TELLS_HOW_TO_READ: bool = true;
}

impl NamedChoice for IndexType {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kBinarySearch", Self::BinarySearch),
        ("kHashSearch", Self::HashSearch),
        ("kTwoLevelIndexSearch", Self::TwoLevel),
        ("kBinarySearchWithFirstKey", Self::BinarySearchWithFirstKey),
    ];
    const AFFIXES: (&'static str, &'static str) = ("k", "Search");
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
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kDataBlockBinarySearch", Self::BinarySearch),
        ("kDataBlockBinaryAndHash", Self::BinaryAndHash),
    ];
    const AFFIXES: (&'static str, &'static str) = ("kDataBlock", "");
}

/// Data blocks that go into the block cache as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrepopulateBlockCache {
    /// None; but see [`super::TableSettings::cache_follows_compaction`].
    #[default]
    Disable,
    /// Those written by flushes.
    FlushOnly,
    /// Those written by flushes and compactions. In RocksDB since version 11.
    FlushAndCompaction,
}

impl NamedChoice for PrepopulateBlockCache {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kDisable", Self::Disable),
        ("kFlushOnly", Self::FlushOnly),
        ("kFlushAndCompaction", Self::FlushAndCompaction),
    ];
}

/// Values that go into the cache as they are written to blob files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrepopulateBlobCache {
    /// None.
    #[default]
    Disable,
    /// All that are written by a flush or at commit.
    FlushOnly,
}

impl NamedChoice for PrepopulateBlobCache {
    const NAMES: &'static [(&'static str, Self)] =
        &[("kDisable", Self::Disable), ("kFlushOnly", Self::FlushOnly)];
}

impl NamedChoice for IndexShortening {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kNoShortening", Self::None),
        ("kShortenSeparators", Self::Separators),
        ("kShortenSeparatorsAndSuccessor", Self::SeparatorsAndSuccessor),
    ];
    const AFFIXES: (&'static str, &'static str) = ("k", "Shortening");
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

/// RocksDB's library accepts the names of all compressions, and writes an uncompressed WAL for any
/// but kZSTD.
impl NamedChoice for WalCompression {
    const NAMES: &'static [(&'static str, Self)] =
        &[("kNoCompression", Self::None), ("kZSTD", Self::Zstd)];
    const AFFIXES: (&'static str, &'static str) = ("k", "Compression");
    const NOT_SUPPORTED: &'static [&'static str] = &[
        "kSnappyCompression",
        "kZlibCompression",
        "kBZip2Compression",
        "kLZ4Compression",
        "kLZ4HCCompression",
        "kXpressCompression",
        "kZSTDNotFinalCompression",
    ];
}

impl NamedChoice for WalWriteMode {
    const NAMES: &'static [(&'static str, Self)] =
        &[("mapped", Self::Mapped), ("plain", Self::Plain)];
}

/// Bytes of checksum with each entry in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtectionBytes {
    /// 0: none.
    #[default]
    None,
    /// 1.
    One,
    /// 2.
    Two,
    /// 4.
    Four,
    /// 8.
    Eight,
}

impl ProtectionBytes {
    /// Their number.
    pub fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

impl NamedChoice for ProtectionBytes {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("0", Self::None),
        ("1", Self::One),
        ("2", Self::Two),
        ("4", Self::Four),
        ("8", Self::Eight),
    ];
}

/// The checksum of whole files in the MANIFEST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileChecksumGenFactory {
    /// None.
    #[default]
    None,
    /// CRC32C.
    Crc32c,
}

impl NamedChoice for FileChecksumGenFactory {
    const NAMES: &'static [(&'static str, Self)] =
        &[("nullptr", Self::None), ("FileChecksumGenCrc32cFactory", Self::Crc32c)];
    const AFFIXES: (&'static str, &'static str) = ("FileChecksumGen", "Factory");
}

impl NamedChoice for PolicyKind {
    const NAMES: &'static [(&'static str, Self)] = Self::NAMES;
}

/// When large values go to blob files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlobWriteMode {
    /// Like `Commit`, but like `Flush` if WALs are archived (`WAL_ttl_seconds`,
    /// `WAL_size_limit_MB`), so that readers of the archive find each value there. A value written
    /// in pieces (`Db::put_stream`) has its own blob file in any case.
    #[default]
    Auto,
    /// Before their batch is committed; each byte is written once.
    Commit,
    /// When their memtable is flushed; until then they are in the WAL.
    Flush,
}

impl NamedChoice for BlobWriteMode {
    const NAMES: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("commit", Self::Commit), ("flush", Self::Flush)];
}

/// How files are arranged and merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompactionStyle {
    /// Levels of growing size.
    #[default]
    Level,
    /// Sorted runs, merged by size.
    Universal,
    /// No merging; the oldest files are dropped.
    Fifo,
    /// No automatic compaction.
    None,
}

impl NamedChoice for CompactionStyle {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kCompactionStyleLevel", Self::Level),
        ("kCompactionStyleUniversal", Self::Universal),
        ("kCompactionStyleFIFO", Self::Fifo),
        ("kCompactionStyleNone", Self::None),
    ];
    const AFFIXES: (&'static str, &'static str) = ("kCompactionStyle", "");
}

/// Which file of a level is compacted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompactionPri {
    /// The largest file; deletions weigh more.
    ByCompensatedSize,
    /// The file whose newest entry is oldest.
    OldestLargestSeqFirst,
    /// The file whose oldest entry is oldest.
    OldestSmallestSeqFirst,
    /// The file that overlaps least with the next level.
    #[default]
    MinOverlappingRatio,
    /// Each file in turn.
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

/// When universal compaction stops adding runs to a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompactionStopStyle {
    /// When the next run is not of similar size.
    SimilarSize,
    /// When the next run is larger than the chosen runs together, by more than `size_ratio`
    /// percent.
    #[default]
    TotalSize,
}

impl NamedChoice for CompactionStopStyle {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("kCompactionStopStyleTotalSize", Self::TotalSize),
        ("kCompactionStopStyleSimilarSize", Self::SimilarSize),
    ];
    const AFFIXES: (&'static str, &'static str) = ("kCompactionStopStyle", "");
}

#[cfg(test)]
mod tests;
