//! What listeners are told of flushes, compactions and the files that they write.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::listener::StallCondition;
use crate::base::compression::CompressionType;
use crate::base::{
    ColumnFamilyId, Error, FileChecksum, FileNumber, Result, SequenceNumber,
    TableFileCreationReason,
};
use crate::sst::TableProperties;

/// Why a compaction takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionReason {
    /// Level 0 has too many files, or too many bytes.
    Level0Files,
    /// A level is larger than its target.
    LevelSize,
    /// The newer sorted runs are too large against the oldest (universal).
    SizeAmplification,
    /// Sorted runs are of similar size (universal).
    SizeRatio,
    /// There are too many sorted runs (universal).
    SortedRuns,
    /// All tables together are too large (FIFO).
    FifoSize,
    /// Files of level 0 are merged among themselves, because the way down is blocked or too
    /// expensive.
    IntraLevel0,
    /// A table was marked when it was written.
    Marked,
    /// A table at the bottom holds what no snapshot needs any longer.
    Bottommost,
    /// A table is older than the time to live.
    Ttl,
    /// A table has come to an age at which it is read less often (FIFO).
    Temperature,
    /// A table was not rewritten for a long time.
    Periodic,
    /// A table frees much by its deletions, or deletes the whole of others.
    Deletions,
    /// Blob files hold much garbage, or may do once more is known of them.
    BlobGarbage,
    /// Somebody asked for it.
    Manual,
}

impl fmt::Display for CompactionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Level0Files => "level-0 files",
            Self::LevelSize => "level size",
            Self::SizeAmplification => "size amplification",
            Self::SizeRatio => "size ratio",
            Self::SortedRuns => "sorted runs",
            Self::FifoSize => "fifo size",
            Self::IntraLevel0 => "intra level 0",
            Self::Marked => "marked",
            Self::Bottommost => "bottommost",
            Self::Ttl => "time to live",
            Self::Temperature => "temperature",
            Self::Periodic => "periodic",
            Self::Deletions => "deletions",
            Self::BlobGarbage => "blob garbage",
            Self::Manual => "manual",
        })
    }
}

/// Why a memtable is flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushReason {
    /// The memtable, or a blob file that belongs to it, is full.
    WriteBufferFull,
    /// All memtables together need too much memory.
    MemoryLimit,
    /// The WALs together are too large.
    WalFull,
    /// A caller asked for it.
    Manual,
    /// A manual compaction flushes what it is to compact.
    ManualCompaction,
    /// Files that are being ingested overlap the memtable.
    Ingestion,
    /// A copy of the database flushes first.
    Copy,
    /// The memtable holds deletions that free much space, or for long enough.
    Deletions,
    /// The database is being closed, and not all writes are in the WAL.
    Close,
    /// The WALs were replayed.
    Recovery,
}

/// Why a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobReason {
    /// It is a flush.
    Flush(FlushReason),
    /// It is a compaction.
    Compaction(CompactionReason),
}

/// A flush or compaction.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobInfo {
    /// Id of the column family.
    pub family: ColumnFamilyId,
    /// Name of the column family.
    pub family_name: String,
    /// Id of the job. Unique until the database is closed.
    pub job: u64,
    /// Id of the thread that runs the job. Unique in the process.
    pub thread: u64,
    /// Why it runs.
    pub reason: JobReason,
    /// Tables read; empty for a flush.
    pub inputs: Vec<TableInfo>,
    /// The smallest level of the tables read; 0 for a flush.
    pub start_level: usize,
    /// Level of the output tables.
    pub output_level: usize,
    /// Tables written. Empty when the job begins, and if it moves its inputs as they are
    /// (`stats.is_move`).
    pub tables: Vec<TableInfo>,
    /// Blob files written or adopted. Empty when the job begins.
    pub blob_files: Vec<BlobFileInfo>,
    /// What became garbage in blob files. Empty when the job begins.
    pub blob_garbage: Vec<BlobGarbageInfo>,
    /// Compression of the output tables.
    pub compression: CompressionType,
    /// Compression of the blob files.
    pub blob_compression: CompressionType,
    /// Figures.
    pub stats: JobStats,
    /// Whether the job succeeded; `Ok` when it begins.
    pub outcome: Result<()>,
}

/// A job that has not begun.
impl Default for JobInfo {
    fn default() -> Self {
        Self {
            family: ColumnFamilyId::DEFAULT,
            family_name: String::new(),
            job: 0,
            thread: 0,
            reason: JobReason::Compaction(CompactionReason::Manual),
            inputs: Vec::new(),
            start_level: 0,
            output_level: 0,
            tables: Vec::new(),
            blob_files: Vec::new(),
            blob_garbage: Vec::new(),
            compression: CompressionType::None,
            blob_compression: CompressionType::None,
            stats: JobStats::default(),
            outcome: Ok(()),
        }
    }
}

/// Figures of a flush or compaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct JobStats {
    /// Microseconds that reading and writing took.
    pub micros: u64,
    /// Entries read, range deletions not included.
    pub entries_read: u64,
    /// Keys that could not be processed normally, see [`KeyFault`](crate::reports::KeyFault).
    pub key_faults: u64,
    /// Values moved from one blob file to another.
    pub relocated_blobs: u64,
    /// Their bytes.
    pub relocated_bytes: u64,
    /// Files in level 0 now.
    pub level0_files: usize,
    /// What so many files in level 0 do to writers, by the triggers of the family.
    pub stall: StallCondition,
    /// Whether a caller asked for the compaction.
    pub is_manual: bool,
    /// Whether the compaction reads all tables of the family.
    pub is_full: bool,
    /// The memtables that a flush reads.
    pub memtables: MemtableFigures,
    /// The files of the family when the job had ended.
    pub shape: TreeShape,
    /// Sequence number of the oldest snapshot when a compaction began, if there was one.
    pub oldest_snapshot: Option<SequenceNumber>,
    /// Parts that a compaction ran in.
    pub subcompactions: u64,
    /// Whether the inputs were moved to another level as they are.
    pub is_move: bool,
    /// Whether a worker of a [`CompactionService`](crate::CompactionService) did the compaction.
    pub is_remote: bool,
}

/// Figures of memtables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemtableFigures {
    /// Number of memtables.
    pub count: usize,
    /// Number of entries, range deletions not included.
    pub entries: u64,
    /// Number of deletions, range deletions not included.
    pub deletes: u64,
    /// Number of range deletions.
    pub range_deletes: u64,
    /// Bytes of keys and values.
    pub data_bytes: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// How many files a family has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TreeShape {
    /// Number of tables of each level.
    pub tables_per_level: Vec<usize>,
    /// The oldest and the newest blob file, if there are any.
    pub blob_files: Option<(FileNumber, FileNumber)>,
    /// Memtables that wait for a flush.
    pub immutable_memtables: usize,
}

/// A part of a compaction, which covers a range of keys and may run at the same time as others. A
/// compaction has at least one, unless it only moves or drops files.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SubcompactionInfo {
    /// Id of the column family.
    pub family: ColumnFamilyId,
    /// Name of the column family.
    pub family_name: String,
    /// Id of the compaction.
    pub job: u64,
    /// Number of the part, from 0.
    pub part: usize,
    /// How many parts there are.
    pub parts: usize,
    /// Id of the thread that runs the part.
    pub thread: u64,
    /// Why the compaction runs.
    pub reason: CompactionReason,
    /// The smallest level of the tables read.
    pub start_level: usize,
    /// Level of the output tables.
    pub output_level: usize,
    /// Compression of the output tables.
    pub compression: CompressionType,
    /// Compression of the blob files.
    pub blob_compression: CompressionType,
    /// Entries read so far, range deletions not included.
    pub entries_read: u64,
    /// Whether the part succeeded; `Ok` when it begins.
    pub outcome: Result<()>,
}

/// A table that a job reads or wrote.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TableInfo {
    /// File number.
    pub number: FileNumber,
    /// Path.
    pub path: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// Level.
    pub level: usize,
    /// The smallest and the largest user key.
    pub key_range: (Vec<u8>, Vec<u8>),
    /// Smallest sequence number.
    pub smallest_seqno: SequenceNumber,
    /// Largest sequence number.
    pub largest_seqno: SequenceNumber,
    /// The oldest blob file that the table refers to.
    pub oldest_blob_file: Option<FileNumber>,
    /// The table's properties; `None` for an input that could not be opened.
    pub properties: Option<Arc<TableProperties>>,
}

/// A blob file that a job wrote or adopted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobFileInfo {
    /// File number.
    pub number: FileNumber,
    /// Path.
    pub path: PathBuf,
    /// Number of values.
    pub count: u64,
    /// Bytes of its records.
    pub size: u64,
}

/// Values of a blob file that nothing refers to any longer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobGarbageInfo {
    /// File number.
    pub number: FileNumber,
    /// Path.
    pub path: PathBuf,
    /// Number of these values.
    pub count: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

/// A table or blob file that a job writes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileCreationInfo {
    /// Id of the column family.
    pub family: ColumnFamilyId,
    /// Name of the column family.
    pub family_name: String,
    /// Id of the job that writes the file.
    pub job: u64,
    /// What the job is.
    pub reason: TableFileCreationReason,
    /// File number.
    pub number: FileNumber,
    /// Path.
    pub path: PathBuf,
    /// Size in bytes, for a blob file the size of its records; 0 when the file is begun, or was
    /// not completed.
    pub size: u64,
    /// Entries of the table, or values of the blob file; 0 when the file is begun, or was not
    /// completed.
    pub count: u64,
    /// The properties of a completed table.
    pub properties: Option<Arc<TableProperties>>,
    /// Smallest and largest sequence number of a completed table.
    pub seqnos: (SequenceNumber, SequenceNumber),
    /// The oldest blob file that a completed table refers to.
    pub oldest_blob_file: Option<FileNumber>,
    /// Checksum of the completed file, if new files get one.
    pub checksum: Option<FileChecksum>,
    /// Whether the file was completed and synced; `Ok` when it is begun.
    pub outcome: Result<()>,
}

/// A memtable that takes no more writes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemtableInfo {
    /// Id of the column family.
    pub family: ColumnFamilyId,
    /// Name of the column family.
    pub family_name: String,
    /// Smallest sequence number of its entries.
    pub first_seqno: SequenceNumber,
    /// Number of entries.
    pub num_entries: u64,
    /// Number of deletions.
    pub num_deletes: u64,
    /// Why it is to be flushed.
    pub reason: FlushReason,
}

/// A column family whose flush a caller asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManualFlushInfo {
    /// Id of the column family.
    pub family: ColumnFamilyId,
    /// Name of the column family.
    pub family_name: String,
    /// Why it is flushed.
    pub reason: FlushReason,
}

/// How busy the threads for flushes and compactions are, when one of these has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BackgroundJobPressure {
    /// Flushes that run.
    pub flushes_running: usize,
    /// Column families with memtables that wait for a flush.
    pub flushes_waiting: usize,
    /// Compactions that run.
    pub compactions_running: usize,
    /// Column families that may need another compaction.
    pub compactions_waiting: usize,
    /// How near the database is to delaying writers, in percent: 100 is where it begins. The
    /// largest, over all families, of files in level 0 and of bytes that wait for a compaction
    /// against the limits that the options set.
    pub stall_proximity: u64,
    /// Whether writers are delayed or stopped.
    pub stall: StallCondition,
}

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BackgroundErrorReason {
    /// A flush.
    Flush,
    /// A compaction.
    Compaction,
    /// A write, or the sync of a WAL or of a memtable's blob file.
    Write,
    /// The insertion into a memtable.
    Memtable,
    /// A write or sync of the MANIFEST.
    Manifest,
    /// The disk is full, and the space of `reserved_disk_space` was given up for flushes and
    /// compactions.
    Reserve,
}

/// How the attempts to accept writes again ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ErrorRecoveryInfo {
    /// Why writes were suspended.
    pub earlier: Error,
    /// Why they fail for good; `None` if they are accepted again.
    pub now: Option<Error>,
}
