//! Options of single calls.

use std::time::Duration;

use flagstone::options as engine;

use super::choices::{BottommostLevelCompaction, ReadTier};
use crate::db::DBAccess;
use crate::iter_range::IterateBounds;
use crate::snapshot::SnapshotWithThreadMode;

/// How a read reads.
#[derive(Default)]
pub struct ReadOptions {
    engine: engine::ReadOptions,
    is_tailing: bool,
}

impl ReadOptions {
    /// The options as the engine takes them.
    pub(crate) fn engine(&self) -> &engine::ReadOptions {
        &self.engine
    }

    /// Whether an iterator shows what is written after it was made.
    pub(crate) fn is_tailing(&self) -> bool {
        self.is_tailing
    }

    /// Keeps the blocks read in the cache. Default: true.
    pub fn fill_cache(&mut self, v: bool) {
        self.engine.fill_cache = v;
    }

    /// Reads as of a snapshot. Default: as of the call.
    pub fn set_snapshot<D: DBAccess>(&mut self, snapshot: &SnapshotWithThreadMode<'_, D>) {
        self.engine.snapshot.clone_from(&snapshot.inner);
    }

    /// The first key that an iterator may stand on. Default: none.
    pub fn set_iterate_lower_bound<K: Into<Vec<u8>>>(&mut self, key: K) {
        self.engine.iterate_lower_bound = Some(key.into());
    }

    /// The key before which an iterator ends. Default: none.
    pub fn set_iterate_upper_bound<K: Into<Vec<u8>>>(&mut self, key: K) {
        self.engine.iterate_upper_bound = Some(key.into());
    }

    /// Both bounds. A bound that the range does not have is taken away.
    pub fn set_iterate_range(&mut self, range: impl IterateBounds) {
        let (lower, upper) = range.into_bounds();
        self.engine.iterate_lower_bound = lower;
        self.engine.iterate_upper_bound = upper;
    }

    /// Where reads look. Default: everywhere.
    pub fn set_read_tier(&mut self, tier: ReadTier) {
        self.engine.cache_only = tier == ReadTier::BlockCache;
    }

    /// Ends an iterator with the prefix of the key that it was sent to. Default: false.
    pub fn set_prefix_same_as_start(&mut self, v: bool) {
        self.engine.prefix_same_as_start = v;
    }

    /// Lets an iterator with `prefix_same_as_start` ask no filters. Others never ask any. Default:
    /// false.
    pub fn set_total_order_seek(&mut self, v: bool) {
        self.engine.total_order_seek = v;
    }

    /// Deleted and hidden entries that an iterator steps over before it gives up with `Incomplete`;
    /// 0 for any number. Default: 0.
    pub fn set_max_skippable_internal_keys(&mut self, num: u64) {
        self.engine.max_skippable_internal_keys = num;
    }

    /// Has no effect: obsolete files are removed by threads in the background anyway.
    pub fn set_background_purge_on_iterator_cleanup(&mut self, _v: bool) {}

    /// Takes keys for present that only a range deletion removed. Default: false.
    #[deprecated(note = "in RocksDB, since 10.2.1")]
    pub fn set_ignore_range_deletions(&mut self, v: bool) {
        self.engine.ignore_range_deletions = v;
    }

    /// Checks the checksum of every block that is read from a file. Default: true.
    pub fn set_verify_checksums(&mut self, v: bool) {
        self.engine.verify_checksums = v;
    }

    /// Bytes that an iterator reads ahead; 0 starts small and doubles. Default: 0.
    pub fn set_readahead_size(&mut self, v: usize) {
        self.engine.readahead_size = v as u64;
    }

    /// Has no effect: what is read ahead does not depend on bounds.
    pub fn set_auto_readahead_size(&mut self, _v: bool) {}

    /// When a call must have ended, in microseconds since 1970; 0 for no limit. A call that begins
    /// or reads later fails (`TimedOut`); a read under way is not broken off. Default: 0.
    pub fn set_deadline(&mut self, microseconds: u64) {
        self.engine.deadline_us = (microseconds > 0).then_some(microseconds);
    }

    /// Microseconds that each read of a file may take; 0 for no limit. One that took longer fails
    /// (`TimedOut`) when it ends. Default: 0.
    pub fn set_io_timeout(&mut self, microseconds: u64) {
        self.engine.io_timeout = (microseconds > 0).then(|| Duration::from_micros(microseconds));
    }

    /// Lets an iterator show what is written after it was made, as it moves on. It cannot move
    /// backwards then. Default: false.
    pub fn set_tailing(&mut self, v: bool) {
        self.is_tailing = v;
    }

    /// Reads as of this timestamp, in families whose comparator has timestamps. Default: none.
    pub fn set_timestamp<S: Into<Vec<u8>>>(&mut self, ts: S) {
        self.engine.timestamp = Some(ts.into());
    }

    /// Lets an iterator show each version of a key from this timestamp up to that of
    /// [`set_timestamp`](Self::set_timestamp), newest first, deletions included. Its keys are then
    /// followed by their timestamps, and by eight bytes of sequence number and type. Default: none.
    pub fn set_iter_start_ts<S: Into<Vec<u8>>>(&mut self, ts: S) {
        self.engine.iter_start_ts = Some(ts.into());
    }

    /// Has no effect: keys and values of an iterator are copied or held anyway.
    pub fn set_pin_data(&mut self, _v: bool) {}

    /// Has no effect: the system is told what an iterator reads next.
    pub fn set_async_io(&mut self, _v: bool) {}
}

/// How tables are ingested.
#[derive(Default)]
pub struct IngestExternalFileOptions {
    engine: engine::IngestExternalFileOptions,
}

impl IngestExternalFileOptions {
    /// The options as the engine takes them.
    pub(crate) fn engine(&self) -> &engine::IngestExternalFileOptions {
        &self.engine
    }

    /// Moves the files, instead of copying them. Default: false.
    pub fn set_move_files(&mut self, v: bool) {
        self.engine.move_files = v;
    }

    /// Snapshots taken before do not see the tables. Default: true.
    pub fn set_snapshot_consistency(&mut self, v: bool) {
        self.engine.snapshot_consistency = v;
    }

    /// Entries may get a sequence number. Otherwise the call fails if a table overlaps keys of the
    /// database. Default: true.
    pub fn set_allow_global_seqno(&mut self, v: bool) {
        self.engine.allow_global_seqno = v;
    }

    /// Memtables that a table overlaps may be flushed while writers wait. Otherwise the call fails
    /// then. Default: true.
    pub fn set_allow_blocking_flush(&mut self, v: bool) {
        self.engine.allow_blocking_flush = v;
    }

    /// Puts the tables below all that there is, so that existing keys win. Default: false.
    pub fn set_ingest_behind(&mut self, v: bool) {
        self.engine.ingest_behind = v;
    }
}

/// How a write writes.
#[derive(Default)]
pub struct WriteOptions {
    engine: engine::WriteOptions,
}

impl WriteOptions {
    /// As by default.
    pub fn new() -> Self {
        Self::default()
    }

    /// The options as the engine takes them.
    pub(crate) fn engine(&self) -> &engine::WriteOptions {
        &self.engine
    }

    /// Returns only when the write survives a power loss. Default: false.
    pub fn set_sync(&mut self, sync: bool) {
        self.engine.sync = sync;
    }

    /// Skips the WAL: the write is lost if the process dies before the next flush. Default: false.
    pub fn disable_wal(&mut self, disable: bool) {
        self.engine.disable_wal = disable;
    }

    /// Drops entries for column families that do not exist, instead of failing. Default: false.
    pub fn set_ignore_missing_column_families(&mut self, ignore: bool) {
        self.engine.ignore_missing_column_families = ignore;
    }

    /// Fails with `Incomplete` instead of waiting when writes are delayed or stopped. Default:
    /// false.
    pub fn set_no_slowdown(&mut self, no_slowdown: bool) {
        self.engine.no_slowdown = no_slowdown;
    }

    /// Waits longer than other writes when compactions lag. Default: false.
    pub fn set_low_pri(&mut self, v: bool) {
        self.engine.low_pri = v;
    }

    /// Has no effect: memtables need no hint.
    pub fn set_memtable_insert_hint_per_batch(&mut self, _v: bool) {}
}

/// How a flush flushes.
#[derive(Default)]
pub struct FlushOptions {
    engine: engine::FlushOptions,
}

impl FlushOptions {
    /// As by default.
    pub fn new() -> Self {
        Self::default()
    }

    /// The options as the engine takes them.
    pub(crate) fn engine(&self) -> &engine::FlushOptions {
        &self.engine
    }

    /// Returns only when the memtable is in a table. Default: true.
    pub fn set_wait(&mut self, wait: bool) {
        self.engine.wait = wait;
    }
}

/// How a requested compaction compacts.
#[derive(Default)]
pub struct CompactOptions {
    engine: engine::CompactRangeOptions,
}

impl CompactOptions {
    /// The options as the engine takes them.
    pub(crate) fn engine(&self) -> &engine::CompactRangeOptions {
        &self.engine
    }

    /// Lets no other compaction run meanwhile. Default: false.
    pub fn set_exclusive_manual_compaction(&mut self, v: bool) {
        self.engine.exclusive_manual_compaction = v;
    }

    /// Whether the last level is rewritten. Default: if there is a compaction filter.
    pub fn set_bottommost_level_compaction(&mut self, lvl: BottommostLevelCompaction) {
        self.engine.bottommost_level_compaction = lvl.into();
    }

    /// Raises the timestamp before which history is not kept, first. Default: none.
    pub fn set_full_history_ts_low<S: Into<Vec<u8>>>(&mut self, ts: S) {
        self.engine.full_history_ts_low = Some(ts.into());
    }

    /// Moves the result to the target level. Default: false.
    pub fn set_change_level(&mut self, v: bool) {
        self.engine.change_level = v;
    }

    /// The level for `change_level`; -1 for the first that should hold as much. Default: -1.
    pub fn set_target_level(&mut self, lvl: i32) {
        self.engine.target_level = lvl;
    }
}

/// What a wait for compactions waits for.
#[derive(Default)]
pub struct WaitForCompactOptions {
    engine: engine::WaitForCompactOptions,
}

impl WaitForCompactOptions {
    pub(crate) fn engine(&self) -> &engine::WaitForCompactOptions {
        &self.engine
    }

    /// Fails with `Operation aborted` while background work is paused, or compactions are aborted.
    /// Default: false.
    pub fn set_abort_on_pause(&mut self, v: bool) {
        self.engine.abort_on_pause = v;
    }

    /// Flushes first. Default: false.
    pub fn set_flush(&mut self, v: bool) {
        self.engine.flush = v;
    }

    /// Microseconds after which the wait ends with `Operation timed out`; 0 for none. Default: 0.
    pub fn set_timeout(&mut self, microseconds: u64) {
        self.engine.timeout = (microseconds > 0).then(|| Duration::from_micros(microseconds));
    }
}
