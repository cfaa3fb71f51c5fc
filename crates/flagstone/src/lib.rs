//! Flagstone: a storage engine for fast storage, an LSM tree with large values kept apart in blob
//! files. It reads and writes RocksDB's own files.
//!
//! Begin at [`Db`]. Ten tasks:
//!
//! **Store and read.** [`Db::open`] makes the database if there is none. A key and a value are
//! bytes.
//!
//! ```
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("db");
//! let db = flagstone::Db::open(path)?;
//! db.put("stone", "flag")?;
//! assert_eq!(db.get("stone")?.expect("it was put"), "flag");
//! db.delete("stone")?;
//! assert!(db.get("stone")?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! **Survive a loss of power.** A write with default options survives the death of the process. One
//! with [`WriteOptions::synced`], and all before it, survive a loss of power.
//!
//! ```
//! # use flagstone::{Db, WriteOptions};
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let db = Db::open(directory.path())?;
//! db.put_with("balance", "100", &WriteOptions::synced())?;
//! # Ok(())
//! # }
//! ```
//!
//! **Keep several kinds of data.** A [`Family`] has keys and options of its own. In one of
//! [`Builder::expiring_family`] values are gone after a time.
//!
//! ```
//! # use flagstone::Db;
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path();
//! let db = Db::builder(path)
//!     .column_family("users", |family| family.write_buffer_size = 8 << 20)
//!     .column_family("photos", |_| {})
//!     .open()?;
//! let users = db.column_family("users")?;
//! users.put("ada", "1815")?;
//! # Ok(())
//! # }
//! ```
//!
//! **Change several keys at once.** A [`WriteBatch`] takes place as a whole or not at all, in
//! however many families. [`Family::update`] changes one key to what follows from its value.
//! [`Db::transact`] reads and writes in a [`Transaction`], and tries again after a conflict. In a
//! [`TransactionDb`] keys are locked instead.
//!
//! ```
//! # use flagstone::{Db, WriteBatch};
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let db = Db::builder(directory.path()).column_family("users", |_| {}).open()?;
//! # let users = db.column_family("users")?;
//! let mut batch = WriteBatch::new();
//! batch.put("newest", "alan")?;
//! batch.put_cf(&users, "alan", "1912")?;
//! batch.delete_cf(&users, "ada")?;
//! db.write(batch)?;
//! # Ok(())
//! # }
//! ```
//!
//! **Go through keys in order.** [`Entries`] is an iterator from both ends.
//!
//! ```
//! # use flagstone::Db;
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let db = Db::open(directory.path())?;
//! for day in ["2026-01-30", "2026-02-01", "2026-02-28"] {
//!     db.put(day, "")?;
//! }
//! for entry in db.range("2026-02".."2026-03") {
//!     let (day, _) = entry?;
//!     println!("{}", day.escape_ascii());
//! }
//! let last = db.prefix("2026-").keys().next_back().transpose()?;
//! assert_eq!(last.as_deref(), Some(&b"2026-02-28"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! **Read as of one moment.** A [`Snapshot`] goes on seeing what it saw.
//!
//! ```
//! # use flagstone::Db;
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let db = Db::open(directory.path())?;
//! db.put("cat", "grey")?;
//! let before = db.snapshot();
//! db.put("cat", "white")?;
//! assert_eq!(before.get("cat")?.unwrap(), "grey");
//! # Ok(())
//! # }
//! ```
//!
//! **Count without reading.** A merge operator combines a value and its operands later;
//! [`ColumnFamilyOptions::merge_with`] takes a closure.
//!
//! ```
//! # use flagstone::Db;
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path();
//! let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
//! let db = Db::builder(path)
//!     .column_family("visits", move |family| {
//!         family.merge_with("sum", move |_page, before, added| {
//!             let all = before.into_iter().chain(added.iter().copied());
//!             let sum: u64 = all.map(number).sum::<Option<u64>>()?;
//!             Some(sum.to_le_bytes().to_vec())
//!         });
//!     })
//!     .open()?;
//! let visits = db.column_family("visits")?;
//! visits.merge("/", 1u64.to_le_bytes())?;
//! visits.merge("/", 1u64.to_le_bytes())?;
//! assert_eq!(visits.get("/")?.unwrap(), &2u64.to_le_bytes()[..]);
//! # Ok(())
//! # }
//! ```
//!
//! **Keep large values.** Those of 4 KiB and more go to blob files by default, so that compactions
//! do not move them. A part of one can be read; if it is stored uncompressed, little else is.
//!
//! ```
//! # use flagstone::Db;
//! # fn main() -> flagstone::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let db = Db::open(directory.path())?;
//! db.put("film", vec![7; 1 << 20])?;
//! let part = db.get_part("film", 1000..1100)?.expect("it was put");
//! assert_eq!(part.bytes.len(), 100);
//! # Ok(())
//! # }
//! ```
//!
//! **Read in an asynchronous task.** What is in memory is answered at once. A thread of the engine
//! reads the rest, so that no task waits for a disk. Any executor will do.
//!
//! ```
//! # async fn read(db: flagstone::Db) -> flagstone::Result<()> {
//! let value = db.get_async("stone").await?;
//! let values = db.get_many_async(&["stone", "cat"]).await?;
//! let mut cats = db.prefix("cats/").stream();
//! while let Some(entry) = cats.next().await {
//!     let (cat, _) = entry?;
//!     println!("{}", cat.escape_ascii());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Take over a database of RocksDB, and copy it.** A checkpoint is a database of its own. Backups
//! share their files: each copies only what no earlier one has.
//!
//! ```no_run
//! use flagstone::Db;
//! use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
//!
//! # fn main() -> flagstone::Result<()> {
//! let db = Db::open_with_stored_options("/data/rocksdb")?;
//! db.checkpoint("/data/copy")?;
//!
//! let backups = BackupEngine::open(BackupEngineOptions::new("/data/backups"))?;
//! backups.create_new_backup(&db, &CreateBackupOptions::default())?;
//! backups.restore_latest("/data/restored")?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! `bzip2`, `lz4`, `snappy`, `zlib` and `zstd`, all on by default, are the codecs. A file whose
//! codec was left out cannot be read, and the error names the feature. Without `lz4` and `zstd` no
//! C compiler is needed.
//!
//! # The names
//!
//! The names at the root are for programs. [`reports`] has what a database tells of itself. Every
//! other module is the engine behind them: it is public because the command line, the test kit and
//! the packages for other interfaces are crates of their own, and hidden because it may change with
//! any version. [`moving`] leads to the names from those of RocksDB and of the engine's handle.
//! ARCHITECTURE.md has a map of the modules. docs/rocksdb-differences.md says what
//! RocksDB has and Flagstone does not.

// Hidden from the documentation alone, so that lints for public items hold for them, too.
pub mod backup;
#[cfg_attr(doc, doc(hidden))]
pub mod base;
#[cfg_attr(doc, doc(hidden))]
pub mod batch;
#[cfg_attr(doc, doc(hidden))]
pub mod blob;
#[cfg_attr(doc, doc(hidden))]
pub mod cache;
#[cfg_attr(doc, doc(hidden))]
pub mod compaction;
#[cfg_attr(doc, doc(hidden))]
pub mod db;
#[cfg_attr(doc, doc(hidden))]
pub mod doctor;
#[cfg_attr(doc, doc(hidden))]
pub mod env;
#[cfg_attr(doc, doc(hidden))]
pub mod expiry;
#[cfg_attr(doc, doc(hidden))]
pub mod figures;
mod front;
#[cfg_attr(doc, doc(hidden))]
pub mod ingest;
#[cfg_attr(doc, doc(hidden))]
pub mod iter;
#[cfg_attr(doc, doc(hidden))]
pub mod manifest;
#[cfg_attr(doc, doc(hidden))]
pub mod memtable;
#[cfg_attr(doc, doc(hidden))]
pub mod options;
pub mod replay;
#[cfg_attr(doc, doc(hidden))]
pub mod salvage;
#[cfg_attr(doc, doc(hidden))]
pub mod sst;
pub mod trace;
#[cfg_attr(doc, doc(hidden))]
pub mod transactions;
#[cfg_attr(doc, doc(hidden))]
pub mod ttl;
#[cfg_attr(doc, doc(hidden))]
pub mod wal;

pub use base::{
    Code, ColumnFamilyId, DEFAULT_COLUMN_NAME, Error, FileNumber, Remedy, Result, SequenceNumber,
    SubCode, WideColumns,
};
pub use batch::{Operation, WriteBatch};
pub use db::{
    ExportedFamily, ExternalFiles, HeldCompactions, HeldFiles, Statistics, Ticker, Update,
    UpdatePosition, Updates, Value, ValuePart, ValueReader, ValueWriter, open_and_compact,
};
pub use env::{Env, thread_list};
pub use front::{
    Builder, Cursor, Db, Entries, Entry, ExpiringValue, FamiliesCursor, Family, Follower, Keys,
    RangeEntries, RangeStream, Ranges, Secondary, Snapshot, TransactOptions, Transaction,
    TransactionDb, TransactionState, TransactionValueWriter, View, moving, reports,
};
pub use ingest::{
    SstFileInfo, SstFileWriter, SstFileWriterEmbeddedBlobOptions, SstFileWriterOptions,
};
pub use transactions::{TransactionDbOptions, TransactionOptions};

// Options of a database, of a family, and of single calls.
pub use options::{
    CfSettings, CheckpointOptions, ColumnFamilyOptions, CompactRangeOptions, DbSettings,
    FlushOptions, ImportColumnFamilyOptions, IngestExternalFileOptions, Options, ReadOptions,
    SizeApproximationOptions, TableSettings, WaitForCompactOptions, WriteOptions,
};

// What a program gives along: its own code, and what several databases share.
pub use base::{
    CollectedEntry, CollectorContext, CollectorFactories, CompactOnDeletionCollectorFactory,
    CompactionFilter, CompactionFilterContext, CompactionFilterFactory, Comparator, EntryKind,
    FilterDecision, FilteredKind, MergeBase, MergeFailureScope, MergeOperator, Merged,
    PartitionRequest, PartitionerContext, PrefixExtractor, SstPartitioner, SstPartitionerFactory,
    SstPartitionerFixedPrefixFactory, TableFileCreationReason, TablePropertiesCollector,
    TablePropertiesCollectorFactory, UserComparator, UserProperties,
};
pub use db::WriteCallback;
pub use options::{
    BackgroundThreads, BackgroundThreadsOptions, BlockCache, CacheSettings, CompactionControl,
    CompactionLimiter, CompactionService, CompactionServiceJobInfo, CompactionServiceJobStatus,
    CompactionServiceOptionsOverride, CompactionServiceScheduleResponse, EventListener,
    FileChecksumFactory, FileChecksumGenerator, InfoLog, InfoLogLevel, Logger,
    OpenAndCompactOptions, RateLimiter, RateLimiterMode, RateLimiterOptions, SstFileManager,
    SstFileManagerOptions, TableFilter, WalDecision, WalFilter, WriteBufferManager,
};

// The values of single options.
pub use options::{
    BlobGarbageCollectionPolicy, BlobWriteMode, BottommostLevelCompaction, ChecksumType,
    CompactionPri, CompactionStopStyle, CompactionStyle, CompressionSettings, CompressionType,
    DataBlockIndexType, DataPath, DataPathList, FifoCompactionOptions, FileChecksumGenFactory,
    FileTemperatureAge, FileTemperatureAges, FilterBits, FilterPolicy, IndexShortening, IndexType,
    IoPriority, MemTableFactory, MemoryBudget, PolicyKind, PrepopulateBlobCache,
    PrepopulateBlockCache, RecoveryMode, Temperature, UniversalCompactionOptions, WalCompression,
    WalWriteMode,
};

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
