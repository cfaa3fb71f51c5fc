//! The names of properties, for `property_value` and `property_int_value` of a database.
//!
//! What is there, and what a report looks like, is RocksDB's; a name that stands for nothing here
//! says so.

pub use crate::prop_name::{PropName, PropertyName};

/// Tables at a level: `rocksdb.num-files-at-level<N>`.
pub fn num_files_at_level(level: usize) -> PropertyName {
    PropertyName::at_level("num-files-at-level", level)
}

/// Bytes of data before compression for each byte of the tables at a level, -1 where there are
/// none: `rocksdb.compression-ratio-at-level<N>`.
pub fn compression_ratio_at_level(level: usize) -> PropertyName {
    PropertyName::at_level("compression-ratio-at-level", level)
}

/// The sums of the properties of the tables at a level:
/// `rocksdb.aggregated-table-properties-at-level<N>`.
pub fn aggregated_table_properties_at_level(level: usize) -> PropertyName {
    PropertyName::at_level("aggregated-table-properties-at-level", level)
}

/// All reports: those of the family, those of the database, and all counters.
pub const STATS: &PropName = &PropName::of(c"rocksdb.stats");

/// The tables of the family, by level.
pub const SSTABLES: &PropName = &PropName::of(c"rocksdb.sstables");

/// What flushes and compactions of the family have done, by level.
///
/// The rocksdb crate spells the name `rocksdb.CFSTATS`, which RocksDB does not know.
pub const CFSTATS: &PropName = &PropName::of(c"rocksdb.cfstats");

/// The same as [`CFSTATS`]: latencies of reads are not measured.
pub const CFSTATS_NO_FILE_HISTOGRAM: &PropName =
    &PropName::of(c"rocksdb.cfstats-no-file-histogram");

/// Latencies of reads by level. There is no such property: they are not measured.
pub const CF_FILE_HISTOGRAM: &PropName = &PropName::of(c"rocksdb.cf-file-histogram");

/// What was written to the database since it was opened, and since the report was last asked
/// for.
pub const DBSTATS: &PropName = &PropName::of(c"rocksdb.dbstats");

/// Tables and their size in MiB, by level.
pub const LEVELSTATS: &PropName = &PropName::of(c"rocksdb.levelstats");

/// Full memtables that are not flushed yet.
pub const NUM_IMMUTABLE_MEM_TABLE: &PropName = &PropName::of(c"rocksdb.num-immutable-mem-table");

/// Flushed memtables that are still kept: none are.
pub const NUM_IMMUTABLE_MEM_TABLE_FLUSHED: &PropName =
    &PropName::of(c"rocksdb.num-immutable-mem-table-flushed");

/// 1 if a memtable waits for its flush, otherwise 0.
pub const MEM_TABLE_FLUSH_PENDING: &PropName = &PropName::of(c"rocksdb.mem-table-flush-pending");

/// Flushes that are running.
pub const NUM_RUNNING_FLUSHES: &PropName = &PropName::of(c"rocksdb.num-running-flushes");

/// 1 if a compaction is due, otherwise 0.
pub const COMPACTION_PENDING: &PropName = &PropName::of(c"rocksdb.compaction-pending");

/// Compactions that are running.
pub const NUM_RUNNING_COMPACTIONS: &PropName = &PropName::of(c"rocksdb.num-running-compactions");

/// Flushes and compactions that have failed.
pub const BACKGROUND_ERRORS: &PropName = &PropName::of(c"rocksdb.background-errors");

/// Bytes of the memtable that is written to.
pub const CUR_SIZE_ACTIVE_MEM_TABLE: &PropName =
    &PropName::of(c"rocksdb.cur-size-active-mem-table");

/// Bytes of all memtables that are not flushed yet.
pub const CUR_SIZE_ALL_MEM_TABLES: &PropName = &PropName::of(c"rocksdb.cur-size-all-mem-tables");

/// Bytes of all memtables.
pub const SIZE_ALL_MEM_TABLES: &PropName = &PropName::of(c"rocksdb.size-all-mem-tables");

/// Entries of the memtable that is written to.
pub const NUM_ENTRIES_ACTIVE_MEM_TABLE: &PropName =
    &PropName::of(c"rocksdb.num-entries-active-mem-table");

/// Entries of the full memtables that are not flushed yet.
pub const NUM_ENTRIES_IMM_MEM_TABLES: &PropName =
    &PropName::of(c"rocksdb.num-entries-imm-mem-tables");

/// Deletions in the memtable that is written to.
pub const NUM_DELETES_ACTIVE_MEM_TABLE: &PropName =
    &PropName::of(c"rocksdb.num-deletes-active-mem-table");

/// Deletions in the full memtables that are not flushed yet.
pub const NUM_DELETES_IMM_MEM_TABLES: &PropName =
    &PropName::of(c"rocksdb.num-deletes-imm-mem-tables");

/// An estimate of the number of keys in memtables and tables.
pub const ESTIMATE_NUM_KEYS: &PropName = &PropName::of(c"rocksdb.estimate-num-keys");

/// Bytes that open tables take in memory beside the block cache, such as indexes and filters.
pub const ESTIMATE_TABLE_READERS_MEM: &PropName =
    &PropName::of(c"rocksdb.estimate-table-readers-mem");

/// 1 if files that nothing needs are removed, otherwise 0.
pub const IS_FILE_DELETIONS_ENABLED: &PropName =
    &PropName::of(c"rocksdb.is-file-deletions-enabled");

/// Snapshots that are not released yet.
pub const NUM_SNAPSHOTS: &PropName = &PropName::of(c"rocksdb.num-snapshots");

/// When the oldest of these snapshots was taken, in seconds since 1970.
pub const OLDEST_SNAPSHOT_TIME: &PropName = &PropName::of(c"rocksdb.oldest-snapshot-time");

/// Versions of the tree that are in use. With more of them, readers keep more old files.
pub const NUM_LIVE_VERSIONS: &PropName = &PropName::of(c"rocksdb.num-live-versions");

/// The number of changes of the tree since the database was opened.
pub const CURRENT_SUPER_VERSION_NUMBER: &PropName =
    &PropName::of(c"rocksdb.current-super-version-number");

/// An estimate of the bytes of live data.
pub const ESTIMATE_LIVE_DATA_SIZE: &PropName = &PropName::of(c"rocksdb.estimate-live-data-size");

/// The number of the oldest WAL that recovery needs.
pub const MIN_LOG_NUMBER_TO_KEEP: &PropName = &PropName::of(c"rocksdb.min-log-number-to-keep");

/// The smallest number of an obsolete table that is kept. There is no such property.
pub const MIN_OBSOLETE_SST_NUMBER_TO_KEEP: &PropName =
    &PropName::of(c"rocksdb.min-obsolete-sst-number-to-keep");

/// Bytes of all tables, those that only readers need among them.
pub const TOTAL_SST_FILES_SIZE: &PropName = &PropName::of(c"rocksdb.total-sst-files-size");

/// Bytes of the tables of the newest version.
pub const LIVE_SST_FILES_SIZE: &PropName = &PropName::of(c"rocksdb.live-sst-files-size");

/// The level that level 0 is compacted to.
pub const BASE_LEVEL: &PropName = &PropName::of(c"rocksdb.base-level");

/// An estimate of the bytes that compactions must rewrite until all levels have their size. For
/// leveled compaction only.
pub const ESTIMATE_PENDING_COMPACTION_BYTES: &PropName =
    &PropName::of(c"rocksdb.estimate-pending-compaction-bytes");

/// The sums of the properties of all tables.
pub const AGGREGATED_TABLE_PROPERTIES: &PropName =
    &PropName::of(c"rocksdb.aggregated-table-properties");

/// Bytes a second that writers are delayed to; 0 for no delay.
pub const ACTUAL_DELAYED_WRITE_RATE: &PropName =
    &PropName::of(c"rocksdb.actual-delayed-write-rate");

/// 1 if writes are stopped, otherwise 0.
pub const IS_WRITE_STOPPED: &PropName = &PropName::of(c"rocksdb.is-write-stopped");

/// An estimate of when the oldest key was written. For FIFO compaction that merges nothing.
pub const ESTIMATE_OLDEST_KEY_TIME: &PropName = &PropName::of(c"rocksdb.estimate-oldest-key-time");

/// The capacity of the block cache in bytes.
pub const BLOCK_CACHE_CAPACITY: &PropName = &PropName::of(c"rocksdb.block-cache-capacity");

/// Bytes in the block cache.
pub const BLOCK_CACHE_USAGE: &PropName = &PropName::of(c"rocksdb.block-cache-usage");

/// Bytes in the block cache that values and iterators hold.
pub const BLOCK_CACHE_PINNED_USAGE: &PropName = &PropName::of(c"rocksdb.block-cache-pinned-usage");

/// All counters as lines of text.
pub const OPTIONS_STATISTICS: &PropName = &PropName::of(c"rocksdb.options-statistics");

#[cfg(test)]
mod tests;
