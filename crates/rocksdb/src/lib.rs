//! The names, types and behaviour of the `rocksdb` crate 0.25, over Flagstone.

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
mod iter_range;
pub mod merge_operator;
mod options;
mod prop_name;
pub mod properties;
mod slice_transform;
mod snapshot;
pub mod statistics;
mod store;
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
    DBRecoveryMode, DataBlockIndexType, FifoCompactOptions, FlushOptions, InfoLogger, LogLevel,
    MemtableFactory, Options, ReadOptions, ReadTier, UniversalCompactOptions,
    UniversalCompactionStopStyle, WaitForCompactOptions, WriteBufferManager, WriteOptions,
};
pub use slice_transform::SliceTransform;
pub use snapshot::{Snapshot, SnapshotWithThreadMode};
pub use write_batch::{
    WriteBatch, WriteBatchIterator, WriteBatchIteratorCf, WriteBatchWithTransaction,
};
