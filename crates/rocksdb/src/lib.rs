//! The names, types and behaviour of the `rocksdb` crate 0.25, over Flagstone.
//!
//! A program moves by one line of its Cargo.toml, and keeps its sources and its databases:
//!
//! ```toml
//! [dependencies]
//! rocksdb = { package = "flagstone-rocksdb", version = "0.1" }
//! ```
//!
//! ```
//! use flagstone_rocksdb as rocksdb; // Cargo does this for the program.
//! use rocksdb::{DB, Options, WriteBatch};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! let mut options = Options::default();
//! options.create_if_missing(true);
//! options.create_missing_column_families(true);
//! let db = DB::open_cf(&options, directory.path(), ["users"]).unwrap();
//! let users = db.cf_handle("users").unwrap();
//! let mut batch = WriteBatch::default();
//! batch.put_cf(&users, "ada", "1815");
//! batch.put("newest", "ada");
//! db.write(batch).unwrap();
//! assert_eq!(db.get_cf(&users, "ada").unwrap().unwrap(), b"1815");
//! ```
//!
//! Defaults are RocksDB's, and so are the files: RocksDB opens what is written here, also what a
//! crash leaves. Large values go to blob files only if the program asks for them, and at a flush.
//!
//! **What is missing** does not compile: two-phase commit, plain and cuckoo tables. An option that
//! cannot be had fails the opening with `Not implemented`.
//!
//! **What differs.** Comparators and compaction filters must be `Send` and, for comparators,
//! `Sync`, because threads of the engine call them. [`MergeOperands`] has a lifetime, which few
//! programs need to name. [`Error`] texts begin as RocksDB's do, and go on in Flagstone's words.
//! After [`cancel_all_background_work`](DBCommon::cancel_all_background_work) nothing can be
//! written. [`TransactionDB`] is a [`DBCommon`], and has all its calls. Features that choose how
//! C++ is built change nothing.

pub mod backup;
mod c_text;
mod cache;
pub mod checkpoint;
mod column_family;
pub mod compaction_filter;
pub mod compaction_filter_factory;
mod comparator;
mod db;
mod db_iterator;
mod db_pinnable_slice;
mod env;
mod error;
mod following;
mod iter_range;
pub mod merge_operator;
mod options;
#[doc(hidden)]
pub mod parts;
pub mod perf;
mod perf_context;
mod prop_name;
pub mod properties;
mod slice_transform;
mod snapshot;
mod sst_file_writer;
pub mod statistics;
mod store;
mod transactions;
mod walker;
mod write_batch;

pub use c_text::CStrLike;
pub use cache::{Cache, LruCacheOptions};
pub use column_family::{
    AsColumnFamilyRef, BoundColumnFamily, ColumnFamily, ColumnFamilyDescriptor, ColumnFamilyRef,
    ColumnFamilyTtl, DEFAULT_COLUMN_FAMILY_NAME,
};
pub use compaction_filter::Decision as CompactionDecision;
pub use db::{
    DB, DBAccess, DBCommon, DBWithThreadMode, LiveFile, MultiThreaded, Range, SingleThreaded,
    ThreadMode,
};
pub use db_iterator::{
    DBIterator, DBIteratorWithThreadMode, DBRawIterator, DBRawIteratorWithThreadMode,
    DBWALIterator, Direction, IteratorMode,
};
pub use db_pinnable_slice::DBPinnableSlice;
pub use env::Env;
pub use error::{Error, ErrorKind};
pub use iter_range::{IterateBounds, PrefixRange};
pub use merge_operator::MergeOperands;
pub use options::{
    BlockBasedIndexType, BlockBasedOptions, BlockBasedTablePinningTier, BottommostLevelCompaction,
    ChecksumType, CompactOptions, CompactionPri, DBCompactionStyle, DBCompressionType, DBPath,
    DBRecoveryMode, DataBlockIndexType, FifoCompactOptions, FlushOptions, InfoLogger,
    IngestExternalFileOptions, LogLevel, MemtableFactory, Options, ReadOptions, ReadTier,
    SstFileManager, UniversalCompactOptions, UniversalCompactionStopStyle, WaitForCompactOptions,
    WriteBufferManager, WriteOptions,
};
pub use perf::PerfContext;
pub use slice_transform::SliceTransform;
pub use snapshot::{Snapshot, SnapshotWithThreadMode};
pub use sst_file_writer::SstFileWriter;
pub use transactions::{
    OptimisticTransactionDB, OptimisticTransactionOptions, Transaction, TransactionDB,
    TransactionDBOptions, TransactionOptions,
};
pub use write_batch::{
    WriteBatch, WriteBatchIterator, WriteBatchIteratorCf, WriteBatchWithTransaction,
};
