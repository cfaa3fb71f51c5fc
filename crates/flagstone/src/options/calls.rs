//! Options of single calls.

use std::sync::Arc;

use super::CompactionControl;
use crate::base::Snapshot;
use crate::base::compression::CompressionType;
use crate::env::IoPriority;

/// How a read reads: `ReadOptions { cache_only: true, ..ReadOptions::default() }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// Reads the database as of this snapshot; `None` (default) for as of now.
    pub snapshot: Option<Snapshot>,
    /// Checks the checksum of every block that is read from a file (default: true).
    pub verify_checksums: bool,
    /// Keeps the blocks read in the cache (default: true); turn it off for scans of data that is
    /// not used again.
    pub fill_cache: bool,
    /// Reads no file: what is neither in a memtable nor in the cache gives `Incomplete` (RocksDB's
    /// `kBlockCacheTier`).
    #[doc(alias = "read_tier")]
    pub cache_only: bool,
    /// An iterator starts at this key, which it may stand on.
    pub iterate_lower_bound: Option<Vec<u8>>,
    /// An iterator ends before this key, and reads no block that holds only such keys.
    pub iterate_upper_bound: Option<Vec<u8>>,
    /// An iterator with `prefix_same_as_start` asks no filters, either; what it shows is the same.
    /// Others never ask any, and go through all keys anyway.
    pub total_order_seek: bool,
    /// An iterator ends with the prefix of the key that it was sent to, and passes over tables
    /// whose filters do not have that prefix.
    pub prefix_same_as_start: bool,
    /// Bytes that an iterator reads ahead; 0 starts small and doubles.
    pub readahead_size: u64,
    /// Deleted and hidden entries that an iterator steps over before it gives up with `Incomplete`;
    /// 0 for any number.
    pub max_skippable_internal_keys: u64,
    /// Takes keys for present that only a range deletion removed.
    pub ignore_range_deletions: bool,
    /// An iterator with a snapshot gives up files and memtables that are out of date as it moves,
    /// and goes on in the newer ones, which hold what the snapshot sees, too, but for what a
    /// compaction filter has removed. It looks whether there are any at each seek and every 32
    /// steps (at seeks alone with `prefix_same_as_start`), and keeps the snapshot until it is
    /// dropped. Without a snapshot it does nothing.
    pub auto_refresh_iterator_with_snapshot: bool,
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
        }
    }
}

/// How a write writes; by default it survives the death of the process, and not yet a loss of
/// power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteOptions {
    /// Returns only when the write survives a power loss. Writers of other threads that wait at the
    /// same time share one sync.
    pub sync: bool,
    /// Skips the WAL: the write is lost if the process dies before the next flush. Refused together
    /// with `sync`.
    #[doc(alias = "disableWAL")]
    pub disable_wal: bool,
    /// Fails with `Incomplete` instead of waiting when writes are delayed or stopped; with
    /// `low_pri` also where compaction lags.
    pub no_slowdown: bool,
    /// Waits longer than other writes when compaction lags.
    pub low_pri: bool,
    /// Drops entries for column families that do not exist instead of failing.
    pub ignore_missing_column_families: bool,
    /// Asks the database's rate limiter, if it has one that limits writes, with this priority
    /// first. Usually writes do not.
    pub rate_limiter_priority: Option<IoPriority>,
}

impl WriteOptions {
    /// As by default.
    pub const fn new() -> Self {
        Self {
            sync: false,
            disable_wal: false,
            no_slowdown: false,
            low_pri: false,
            ignore_missing_column_families: false,
            rate_limiter_priority: None,
        }
    }

    /// Returns only when the write survives a power loss.
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

/// How a flush flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlushOptions {
    /// Returns only when the memtable is in a table (default: true); else as soon as somebody is to
    /// flush it.
    pub wait: bool,
    /// Flushes at once even if that makes writes wait; else waits itself until it does not
    /// (default: false).
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
    /// If there is a compaction filter.
    #[default]
    IfHaveCompactionFilter,
    /// Always.
    Force,
    /// Always, but not the tables that this same compaction wrote.
    ForceOptimized,
}

/// Whether a requested compaction collects blob garbage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlobGarbageCollectionPolicy {
    /// Always.
    Force,
    /// Never.
    Disable,
    /// As the family's settings say.
    #[default]
    UseDefault,
}

/// What [`Db::approximate_sizes`](crate::db::Db::approximate_sizes) counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeApproximationOptions {
    /// What is in memory (default: false).
    pub include_memtables: bool,
    /// What is in tables (default: true).
    pub include_files: bool,
}

impl Default for SizeApproximationOptions {
    fn default() -> Self {
        Self { include_memtables: false, include_files: true }
    }
}

/// How a requested compaction compacts.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactRangeOptions {
    /// Lets no other compaction run meanwhile.
    pub exclusive_manual_compaction: bool,
    /// Moves the level that the result lies in, as a whole, to `target_level`, if the levels
    /// between are empty.
    pub change_level: bool,
    /// The level for `change_level`; -1 for the first that should hold as much.
    pub target_level: i32,
    /// Which of the family's directories (`db_paths`, `cf_paths`) is written to. What is not
    /// rewritten, as the last level without [`BottommostLevelCompaction::Force`], stays where it
    /// is.
    pub target_path_id: u32,
    /// Whether the last level is rewritten.
    pub bottommost_level_compaction: BottommostLevelCompaction,
    /// Flushes at once even if that makes writes wait.
    pub allow_write_stall: bool,
    /// Parts to run in parallel; 0 for the database's setting.
    pub max_subcompactions: u32,
    /// Whether blob garbage is collected.
    pub blob_garbage_collection_policy: BlobGarbageCollectionPolicy,
    /// Overrides the family's `blob_garbage_collection_age_cutoff` if within 0 to 1.
    pub blob_garbage_collection_age_cutoff: f64,
    /// Tells how far it is, and ends it (RocksDB's `canceled`).
    pub control: Option<Arc<CompactionControl>>,
}

impl Default for CompactRangeOptions {
    fn default() -> Self {
        Self {
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

/// How chosen tables are compacted (RocksDB's `CompactionOptions`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompactFilesOptions {
    /// How the outputs are compressed; `None` for as the output level is.
    pub compression: Option<CompressionType>,
    /// Bytes at which an output table ends; 0 for no limit but the family's options.
    pub output_file_size_limit: u64,
    /// Which of the family's directories (`db_paths`, `cf_paths`) the outputs go to; `None` for
    /// that of the output level.
    pub output_path_id: Option<u32>,
    /// Parts to run in parallel; 0 for the database's setting.
    pub max_subcompactions: u32,
    /// Tells how far it is, and ends it (RocksDB's `canceled`).
    pub control: Option<Arc<CompactionControl>>,
}
