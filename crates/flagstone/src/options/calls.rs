//! Options of single calls.

use std::sync::Arc;
use std::time::Duration;

use super::{CompactionControl, TableFilter};
use crate::base::compression::CompressionType;
use crate::base::{Snapshot, Temperature};
use crate::env::IoPriority;
use crate::sst::TableProperties;

/// Options of a read: `ReadOptions { cache_only: true, ..ReadOptions::default() }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// The engine's snapshot to read; `None` (default) for the newest state. A program reads from
    /// a [`Snapshot`](crate::Snapshot) itself, and leaves this alone.
    pub snapshot: Option<Snapshot>,
    /// Verifies the checksum of every block read from a file (default: true).
    pub verify_checksums: bool,
    /// Keeps the blocks read in the cache (default: true). Turn it off for scans of data that is
    /// not read again.
    pub fill_cache: bool,
    /// Reads no file: fails with `Incomplete` for what is neither in a memtable nor in the cache
    /// (RocksDB's `kBlockCacheTier`).
    #[doc(alias = "read_tier")]
    pub cache_only: bool,
    /// First key that an iterator may return.
    pub iterate_lower_bound: Option<Vec<u8>>,
    /// Key before which an iterator ends. Blocks that hold only this key or later ones are not
    /// read.
    pub iterate_upper_bound: Option<Vec<u8>>,
    /// Makes an iterator with `prefix_same_as_start` ignore filters, with the same result. Other
    /// iterators never use filters and visit all keys anyway.
    pub total_order_seek: bool,
    /// Ends an iterator after the keys that share the prefix of the key last sought. Tables whose
    /// filter excludes that prefix are skipped.
    pub prefix_same_as_start: bool,
    /// Bytes that an iterator reads ahead; 0 starts small and doubles.
    pub readahead_size: u64,
    /// Deleted and hidden entries in a row that an iterator steps over before it fails with
    /// `Incomplete`; 0 for no limit.
    pub max_skippable_internal_keys: u64,
    /// Ignores range deletions, so that keys removed only by one are still returned.
    pub ignore_range_deletions: bool,
    /// Lets an iterator with a snapshot release outdated files and memtables as it moves, and
    /// continue in newer ones. Those hold all that the snapshot sees, except what a compaction
    /// filter has removed. The iterator checks for newer ones at each seek and every 32 steps (with
    /// `prefix_same_as_start` at seeks only), and keeps the snapshot until it is dropped. No effect
    /// without a snapshot.
    pub auto_refresh_iterator_with_snapshot: bool,
    /// Lets an iterator show what is written while it is used, for programs that wait for more at
    /// the end: seeks and steps look for newer writes (with `prefix_same_as_start` seeks only), and
    /// each that finds some makes the iterator anew. It only moves forward: other moves fail with
    /// `NotSupported`. Fails together with a snapshot.
    pub tailing: bool,
    /// Lets an iterator skip tables by their properties; deletions of ranges in them still count. A
    /// key whose newest version is in a skipped table may show an older one. Opens all tables
    /// within the bounds.
    pub table_filter: Option<TableFilter>,
    /// Reads as of this timestamp, in families whose comparator has timestamps: there it is needed,
    /// elsewhere it is refused. It must not be older than
    /// [`Family::full_history_ts_low`](crate::Family::full_history_ts_low).
    pub timestamp: Option<Vec<u8>>,
    /// Iterators show each version of a key from this timestamp up to `timestamp`, newest first,
    /// deletions included. What a range deletion hides as of `timestamp` is not shown.
    pub iter_start_ts: Option<Vec<u8>>,
    /// When the call must have ended, in microseconds since 1970 by the clock of the environment;
    /// `None` (default) for no limit. A lookup, or a move of an iterator, fails with `TimedOut` if
    /// it begins later, or reads from a file later. A read under way is not broken off, so the call
    /// may end late by one read. An iterator that timed out can be moved by a seek.
    #[doc(alias = "deadline")]
    pub deadline_us: Option<u64>,
    /// How long each read from a file may take; `None` (default) for no limit. A read that took
    /// longer fails with `TimedOut` when it ends.
    pub io_timeout: Option<Duration>,
    /// Makes reads from files wait for the rate limiter of the options with this priority, if it
    /// limits reads; `None` (default) does not wait.
    pub rate_limiter_priority: Option<IoPriority>,
    /// Lets an iterator use prefix filters where the result is the same without: at a seek whose
    /// key has the same prefix as `iterate_upper_bound`, or the prefix just before that.
    pub auto_prefix_mode: bool,
}

impl ReadOptions {
    /// Whether reads from files are limited.
    #[inline]
    pub(crate) fn limits_reads(&self) -> bool {
        self.deadline_us.is_some()
            || self.io_timeout.is_some()
            || self.rate_limiter_priority.is_some()
    }

    /// Whether a table with these properties is to be read by an iterator.
    pub(crate) fn admits(&self, properties: &TableProperties) -> bool {
        self.table_filter.as_ref().is_none_or(|filter| filter.admits(properties))
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            snapshot: None,
            verify_checksums: true,
            fill_cache: true,
            cache_only: false,
            iterate_lower_bound: None,
            iterate_upper_bound: None,
            total_order_seek: false,
            prefix_same_as_start: false,
            readahead_size: 0,
            max_skippable_internal_keys: 0,
            ignore_range_deletions: false,
            auto_refresh_iterator_with_snapshot: false,
            tailing: false,
            table_filter: None,
            timestamp: None,
            iter_start_ts: None,
            deadline_us: None,
            io_timeout: None,
            rate_limiter_priority: None,
            auto_prefix_mode: false,
        }
    }
}

/// Options of a write. By default a write survives a crash of the process, but not necessarily a
/// power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Waits until the write survives a power loss. Writers of several threads that wait at the
    /// same time share one sync.
    pub sync: bool,
    /// Skips the WAL: the write is lost if the process dies before the next flush. Fails together
    /// with `sync`.
    #[doc(alias = "disableWAL")]
    pub disable_wal: bool,
    /// Fails with `Incomplete` instead of waiting when writes are delayed or stopped, and with
    /// `low_pri` also when compactions lag.
    pub no_slowdown: bool,
    /// Waits longer than other writes when compactions lag.
    pub low_pri: bool,
    /// Skips entries for column families that do not exist, instead of failing.
    pub ignore_missing_column_families: bool,
    /// Priority with which the write first asks the database's rate limiter, if that limits writes;
    /// `None` (default) does not ask.
    pub rate_limiter_priority: Option<IoPriority>,
    /// Bytes of checksum that each operation of the batch gets: 8, or 0 for none (default). They
    /// are compared before the batch is logged, and before it is inserted into memtables.
    pub protection_bytes_per_key: u8,
}

impl WriteOptions {
    /// The default options.
    pub const fn new() -> Self {
        Self {
            sync: false,
            disable_wal: false,
            no_slowdown: false,
            low_pri: false,
            ignore_missing_column_families: false,
            rate_limiter_priority: None,
            protection_bytes_per_key: 0,
        }
    }

    /// Waits until the write survives a power loss.
    ///
    /// ```
    /// use flagstone::WriteOptions;
    ///
    /// const SYNCED: WriteOptions = WriteOptions::synced();
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = flagstone::Db::open(directory.path())?;
    /// db.put_with("balance", "100", &SYNCED)?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn synced() -> Self {
        Self { sync: true, ..Self::new() }
    }

    /// Skips the WAL: the write is lost if the process dies before the next flush.
    pub const fn unlogged() -> Self {
        Self { disable_wal: true, ..Self::new() }
    }

    /// Fails with `Incomplete` instead of waiting when writes are delayed or stopped.
    pub const fn without_waiting() -> Self {
        Self { no_slowdown: true, ..Self::new() }
    }
}

/// Options of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlushOptions {
    /// Waits until the memtable has become a table (default: true). Otherwise the call returns as
    /// soon as the flush is scheduled.
    pub wait: bool,
    /// Flushes at once even if that makes writes wait (default: false). Otherwise the call itself
    /// waits until it does not.
    pub allow_write_stall: bool,
}

impl Default for FlushOptions {
    fn default() -> Self {
        Self { wait: true, allow_write_stall: false }
    }
}

/// Whether a requested compaction rewrites the last level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BottommostLevelCompaction {
    /// Never.
    Skip,
    /// Only if the family has a compaction filter.
    #[default]
    IfHaveCompactionFilter,
    /// Always.
    Force,
    /// Always, except for tables that the same compaction wrote.
    ForceOptimized,
}

/// Whether a requested compaction collects blob garbage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlobGarbageCollectionPolicy {
    /// Always.
    Force,
    /// Never.
    Disable,
    /// As set for the column family.
    #[default]
    UseDefault,
}

/// What [`Db::approximate_sizes`](crate::db::Db::approximate_sizes) counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeApproximationOptions {
    /// Whether to count data in memtables (default: false).
    pub include_memtables: bool,
    /// Whether to count data in tables (default: true).
    pub include_files: bool,
    /// Whether to count values in blob files (default: false): of the family's blob files as large
    /// a part as the range has of its tables.
    pub include_blob_files: bool,
    /// Part of the bytes of the tables that lie within the range by which the result may be wrong
    /// (default: -1). If the tables at the ends of the range are small enough for that, half of
    /// their bytes count and none is opened. Without a positive number they are always opened.
    pub files_size_error_margin: f64,
}

impl Default for SizeApproximationOptions {
    fn default() -> Self {
        Self {
            include_memtables: false,
            include_files: true,
            include_blob_files: false,
            files_size_error_margin: -1.0,
        }
    }
}

/// Options of a requested compaction.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactRangeOptions {
    /// Before compacting, raises `full_history_ts_low` of a family with timestamps to this. See
    /// [`Family::increase_full_history_ts_low`](crate::Family::increase_full_history_ts_low).
    pub full_history_ts_low: Option<Vec<u8>>,
    /// Drops versions with newer timestamps from the tables that are rewritten.
    #[doc(hidden)]
    pub trim: Option<Vec<u8>>,
    /// Runs no other compaction at the same time.
    pub exclusive_manual_compaction: bool,
    /// Moves the whole level that holds the result to `target_level`, if the levels between are
    /// empty.
    pub change_level: bool,
    /// Level for `change_level`; -1 for the first level whose target size fits the result.
    pub target_level: i32,
    /// Index of the family's directory (`db_paths`, `cf_paths`) that tables are written to. Tables
    /// that are not rewritten stay where they are; without [`BottommostLevelCompaction::Force`]
    /// that includes the last level.
    pub target_path_id: u32,
    /// Whether the last level is rewritten.
    pub bottommost_level_compaction: BottommostLevelCompaction,
    /// Flushes at once even if that makes writes wait.
    pub allow_write_stall: bool,
    /// Subcompactions to run in parallel; 0 for the database's setting.
    pub max_subcompactions: u32,
    /// Whether garbage in blob files is collected.
    pub blob_garbage_collection_policy: BlobGarbageCollectionPolicy,
    /// Replaces the family's `blob_garbage_collection_age_cutoff` if between 0 and 1.
    pub blob_garbage_collection_age_cutoff: f64,
    /// Reports progress and can cancel the compaction (RocksDB's `canceled`).
    pub control: Option<Arc<CompactionControl>>,
}

impl Default for CompactRangeOptions {
    fn default() -> Self {
        Self {
            full_history_ts_low: None,
            trim: None,
            exclusive_manual_compaction: false,
            change_level: false,
            target_level: -1,
            target_path_id: 0,
            bottommost_level_compaction: BottommostLevelCompaction::default(),
            allow_write_stall: false,
            max_subcompactions: 0,
            blob_garbage_collection_policy: BlobGarbageCollectionPolicy::default(),
            blob_garbage_collection_age_cutoff: -1.0,
            control: None,
        }
    }
}

/// Options of waiting for background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitForCompactOptions {
    /// Fails with `Aborted` while background work is paused, or compactions are aborted (default:
    /// false). Otherwise the wait lasts until they go on.
    pub abort_on_pause: bool,
    /// Flushes all families first (default: false).
    pub flush: bool,
    /// Waits also until obsolete files are removed (default: false).
    pub wait_for_purge: bool,
    /// Closes the database afterwards (default: false).
    pub close_db: bool,
    /// Fails with `TimedOut` after this long; `None` (default) for no limit. The flush and the
    /// closing do not count.
    pub timeout: Option<Duration>,
}

/// Options of a compaction of chosen tables (RocksDB's `CompactionOptions`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompactFilesOptions {
    /// Compression of the output tables; `None` for that of the output level.
    pub compression: Option<CompressionType>,
    /// Bytes at which an output table ends; 0 for the limit in the family's options.
    pub output_file_size_limit: u64,
    /// Index of the family's directory (`db_paths`, `cf_paths`) that output tables go to; `None`
    /// for the output level's directory.
    pub output_path_id: Option<u32>,
    /// Temperature of the output tables; `UNKNOWN` for that of the family's options.
    pub output_temperature_override: Temperature,
    /// Subcompactions to run in parallel; 0 for the database's setting.
    pub max_subcompactions: u32,
    /// Reports progress and can cancel the compaction (RocksDB's `canceled`).
    pub control: Option<Arc<CompactionControl>>,
}
