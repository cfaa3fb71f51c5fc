//! Settings that choose between named values.

use flagstone::options as engine;

/// How blocks and values are compressed. All kinds are always there.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum DBCompressionType {
    /// Not at all.
    None = 0,
    /// Snappy.
    Snappy = 1,
    /// Zlib.
    Zlib = 2,
    /// BZip2.
    Bz2 = 3,
    /// LZ4, fast.
    Lz4 = 4,
    /// LZ4 with a more thorough search.
    Lz4hc = 5,
    /// Zstandard.
    Zstd = 7,
}

impl From<DBCompressionType> for engine::CompressionType {
    fn from(kind: DBCompressionType) -> Self {
        match kind {
            DBCompressionType::None => Self::None,
            DBCompressionType::Snappy => Self::Snappy,
            DBCompressionType::Zlib => Self::Zlib,
            DBCompressionType::Bz2 => Self::Bzip2,
            DBCompressionType::Lz4 => Self::Lz4,
            DBCompressionType::Lz4hc => Self::Lz4hc,
            DBCompressionType::Zstd => Self::Zstd,
        }
    }
}

/// How tables are arranged and merged.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum DBCompactionStyle {
    /// Levels of growing size.
    Level = 0,
    /// Sorted runs, merged by size.
    Universal = 1,
    /// The oldest tables are dropped.
    Fifo = 2,
}

impl From<DBCompactionStyle> for engine::CompactionStyle {
    fn from(style: DBCompactionStyle) -> Self {
        match style {
            DBCompactionStyle::Level => Self::Level,
            DBCompactionStyle::Universal => Self::Universal,
            DBCompactionStyle::Fifo => Self::Fifo,
        }
    }
}

/// What recovery does with a WAL that is not intact.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum DBRecoveryMode {
    /// A WAL may end in the middle of a record; any other damage fails the opening.
    TolerateCorruptedTailRecords = 0,
    /// Any damage fails the opening.
    AbsoluteConsistency = 1,
    /// What precedes the damage is recovered, and nothing after it.
    PointInTime = 2,
    /// Whatever can be read is recovered.
    SkipAnyCorruptedRecord = 3,
}

impl From<DBRecoveryMode> for engine::RecoveryMode {
    fn from(mode: DBRecoveryMode) -> Self {
        match mode {
            DBRecoveryMode::TolerateCorruptedTailRecords => Self::TolerateCorruptedTailRecords,
            DBRecoveryMode::AbsoluteConsistency => Self::AbsoluteConsistency,
            DBRecoveryMode::PointInTime => Self::PointInTimeRecovery,
            DBRecoveryMode::SkipAnyCorruptedRecord => Self::SkipAnyCorruptedRecords,
        }
    }
}

/// Which table of a level is compacted first.
#[repr(i32)]
pub enum CompactionPri {
    /// The largest, deletions weighing more.
    ByCompensatedSize = 0,
    /// The one whose newest entry is oldest.
    OldestLargestSeqFirst = 1,
    /// The one whose oldest entry is oldest.
    OldestSmallestSeqFirst = 2,
    /// The one that overlaps least of the next level.
    MinOverlappingRatio = 3,
    /// Each in turn.
    RoundRobin = 4,
}

impl From<CompactionPri> for engine::CompactionPri {
    fn from(priority: CompactionPri) -> Self {
        match priority {
            CompactionPri::ByCompensatedSize => Self::ByCompensatedSize,
            CompactionPri::OldestLargestSeqFirst => Self::OldestLargestSeqFirst,
            CompactionPri::OldestSmallestSeqFirst => Self::OldestSmallestSeqFirst,
            CompactionPri::MinOverlappingRatio => Self::MinOverlappingRatio,
            CompactionPri::RoundRobin => Self::RoundRobin,
        }
    }
}

/// When universal compaction stops adding sorted runs.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum UniversalCompactionStopStyle {
    /// At a run of another size.
    Similar = 0,
    /// At a run that is larger than those taken together.
    Total = 1,
}

impl From<UniversalCompactionStopStyle> for engine::CompactionStopStyle {
    fn from(style: UniversalCompactionStopStyle) -> Self {
        match style {
            UniversalCompactionStopStyle::Similar => Self::SimilarSize,
            UniversalCompactionStopStyle::Total => Self::TotalSize,
        }
    }
}

/// Whether a requested compaction rewrites the last level.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
#[repr(u8)]
pub enum BottommostLevelCompaction {
    /// Never.
    Skip = 0,
    /// If there is a compaction filter.
    IfHaveCompactionFilter,
    /// Always.
    Force,
    /// Always, but not the tables that this same compaction wrote.
    ForceOptimized,
}

impl From<BottommostLevelCompaction> for engine::BottommostLevelCompaction {
    fn from(choice: BottommostLevelCompaction) -> Self {
        match choice {
            BottommostLevelCompaction::Skip => Self::Skip,
            BottommostLevelCompaction::IfHaveCompactionFilter => Self::IfHaveCompactionFilter,
            BottommostLevelCompaction::Force => Self::Force,
            BottommostLevelCompaction::ForceOptimized => Self::ForceOptimized,
        }
    }
}

/// The form of a table's index.
pub enum BlockBasedIndexType {
    /// One sorted block.
    BinarySearch,
    /// The same with a hash of prefixes beside it. Needs a prefix extractor.
    HashSearch,
    /// A sorted block over partitions.
    TwoLevelIndexSearch,
}

impl From<BlockBasedIndexType> for engine::IndexType {
    fn from(kind: BlockBasedIndexType) -> Self {
        match kind {
            BlockBasedIndexType::BinarySearch => Self::BinarySearch,
            BlockBasedIndexType::HashSearch => Self::HashSearch,
            BlockBasedIndexType::TwoLevelIndexSearch => Self::TwoLevel,
        }
    }
}

/// How a data block is searched.
#[repr(C)]
pub enum DataBlockIndexType {
    /// By its restart points.
    BinarySearch = 0,
    /// Also by a hash table of its keys, for point lookups.
    BinaryAndHash = 1,
}

impl From<DataBlockIndexType> for engine::DataBlockIndexType {
    fn from(kind: DataBlockIndexType) -> Self {
        match kind {
            DataBlockIndexType::BinarySearch => Self::BinarySearch,
            DataBlockIndexType::BinaryAndHash => Self::BinaryAndHash,
        }
    }
}

/// Which blocks of indexes and filters RocksDB pins.
#[repr(C)]
pub enum BlockBasedTablePinningTier {
    /// As older settings say.
    Fallback = 0,
    /// None.
    None = 1,
    /// Those of tables that flushes write.
    FlushAndSimilar = 2,
    /// All.
    All = 3,
}

impl BlockBasedTablePinningTier {
    pub(super) fn text(&self) -> &'static str {
        match self {
            Self::Fallback => "kFallback",
            Self::None => "kNone",
            Self::FlushAndSimilar => "kFlushedAndSimilar",
            Self::All => "kAll",
        }
    }
}

/// The checksum of blocks.
pub enum ChecksumType {
    /// None.
    NoChecksum = 0,
    /// CRC32C.
    CRC32c = 1,
    /// XXH32.
    XXHash = 2,
    /// XXH64.
    XXHash64 = 3,
    /// XXH3.
    XXH3 = 4,
}

impl From<ChecksumType> for engine::ChecksumType {
    fn from(kind: ChecksumType) -> Self {
        match kind {
            ChecksumType::NoChecksum => Self::None,
            ChecksumType::CRC32c => Self::Crc32c,
            ChecksumType::XXHash => Self::XxHash,
            ChecksumType::XXHash64 => Self::XxHash64,
            ChecksumType::XXH3 => Self::Xxh3,
        }
    }
}

/// The structure of memtables, if it is not the default one.
pub enum MemtableFactory {
    /// Unsorted until it is read: for bulk loads.
    Vector,
    /// Small lists found by a hash of the key's prefix. Without a prefix extractor it is the
    /// default structure, as in RocksDB.
    HashSkipList {
        /// The number of lists.
        bucket_count: usize,
        /// Has no effect.
        height: i32,
        /// Has no effect.
        branching_factor: i32,
    },
    /// The same as [`HashSkipList`](Self::HashSkipList).
    HashLinkList {
        /// The number of lists.
        bucket_count: usize,
    },
}

impl From<MemtableFactory> for engine::MemTableFactory {
    fn from(factory: MemtableFactory) -> Self {
        match factory {
            MemtableFactory::Vector => Self::Vector,
            MemtableFactory::HashSkipList { bucket_count, .. }
            | MemtableFactory::HashLinkList { bucket_count } => {
                Self::PrefixHash { bucket_count: bucket_count.max(1) as u64 }
            }
        }
    }
}

/// Where a read looks. RocksDB's tiers `Persisted` and `Memtable` are not there.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
#[repr(i32)]
pub enum ReadTier {
    /// In memory, then in files.
    All = 0,
    /// In memtables and the block cache. What is in neither is `Incomplete`.
    BlockCache = 1,
}

/// How much a log says.
#[derive(Debug, Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum LogLevel {
    /// Everything.
    Debug = 0,
    /// What is done.
    Info,
    /// What needs attention, and what is worse.
    Warn,
    /// What failed, and what is worse.
    Error,
    /// What ends the work of the database.
    Fatal,
    /// What heads the log: it is always written.
    Header,
}
