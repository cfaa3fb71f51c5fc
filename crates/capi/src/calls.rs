//! Options of single calls.

use std::time::Duration;

use flagstone::IngestExternalFileOptions;
use flagstone::options::{self as engine};
use flagstone_rocksdb as rdb;

use crate::abi::{self, handles};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::refused::{Refused, Refuses, refuses};
use crate::snapshot::Snapshot;

/// How a read reads.
#[derive(Default)]
pub struct ReadOptions {
    pub(crate) engine: engine::ReadOptions,
    pub(crate) is_tailing: bool,
    /// What cannot be had: reads say so.
    refused: Option<&'static str>,
    refused_numbers: Refused,
    tier: i32,
    /// What has no effect, to be asked for.
    pub(crate) inert: InertReads,
}

/// RocksDB's number of an activity that is not said.
const UNKNOWN_ACTIVITY: i32 = 0xff;

#[derive(Clone)]
pub(crate) struct InertReads {
    pin_data: bool,
    async_io: bool,
    auto_readahead_size: bool,
    background_purge: bool,
    adaptive_readahead: bool,
    optimize_multiget_for_io: bool,
    allow_unprepared_value: bool,
    value_size_soft_limit: u64,
    io_activity: i32,
    pub(crate) merge_operand_count_threshold: Option<usize>,
    pub(crate) request_id: Option<Vec<u8>>,
}

impl Default for InertReads {
    fn default() -> Self {
        Self {
            pin_data: false,
            async_io: false,
            auto_readahead_size: true,
            background_purge: false,
            adaptive_readahead: false,
            optimize_multiget_for_io: true,
            allow_unprepared_value: false,
            value_size_soft_limit: u64::MAX,
            io_activity: UNKNOWN_ACTIVITY,
            merge_operand_count_threshold: None,
            request_id: None,
        }
    }
}

impl ReadOptions {
    /// The options as the engine takes them.
    ///
    /// # Errors
    /// `Not implemented` for one that cannot be had.
    #[inline]
    pub fn checked(&self) -> abi::Result<&engine::ReadOptions> {
        if let Some(what) = self.refused {
            return Err(rdb::Error::not_supported(what));
        }
        match self.refused_numbers.first() {
            Some((name, number)) => {
                Err(rdb::Error::not_supported(format_args!("{name} {number} of a read")))
            }
            None => Ok(&self.engine),
        }
    }

    fn refuse(&mut self, what: &'static str, is_refused: bool) {
        if is_refused {
            self.refused = Some(what);
        } else if self.refused == Some(what) {
            self.refused = None;
        }
    }
}

/// How a write writes.
pub struct WriteOptions {
    engine: engine::WriteOptions,
    memtable_insert_hint_per_batch: bool,
    io_activity: i32,
    protection_bytes_per_key: usize,
    /// Writes say so.
    refused: Refused,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            engine: engine::WriteOptions::default(),
            memtable_insert_hint_per_batch: false,
            io_activity: UNKNOWN_ACTIVITY,
            protection_bytes_per_key: 0,
            refused: Refused::default(),
        }
    }
}

impl WriteOptions {
    /// The options as the engine takes them.
    ///
    /// # Errors
    /// `Invalid argument` for a priority that there is not.
    pub fn checked(&self) -> abi::Result<engine::WriteOptions> {
        match self.refused.first() {
            Some((name, number)) => {
                Err(rdb::Error::invalid_argument(format_args!("{name} {number}")))
            }
            None => Ok(engine::WriteOptions {
                // What the byte cannot hold, the engine refuses as it does the largest.
                protection_bytes_per_key: u8::try_from(self.protection_bytes_per_key)
                    .unwrap_or(u8::MAX),
                ..self.engine
            }),
        }
    }
}

/// How a flush flushes.
#[derive(Default)]
pub struct FlushOptions {
    engine: engine::FlushOptions,
    force_atomic_flush: bool,
    listener_wait: bool,
}

impl FlushOptions {
    /// The options as the engine takes them.
    ///
    /// # Errors
    /// `Not implemented` for an atomic flush of several families without `atomic_flush`.
    pub fn checked(&self, is_atomic: bool) -> abi::Result<engine::FlushOptions> {
        if self.force_atomic_flush && !is_atomic {
            let what = "force_atomic_flush of several families without atomic_flush";
            return Err(rdb::Error::not_supported(what));
        }
        Ok(self.engine)
    }

    /// Whether a flush returns only once listeners know of it.
    pub fn waits_for_listeners(&self) -> bool {
        self.listener_wait && self.engine.wait
    }
}

/// How a requested compaction compacts.
#[derive(Default)]
pub struct CompactOptions(pub engine::CompactRangeOptions, Refused);

impl Refuses for CompactOptions {
    fn refused(&self) -> &Refused {
        &self.1
    }

    fn refused_mut(&mut self) -> &mut Refused {
        &mut self.1
    }

    /// As in RocksDB, one that there is not leaves the choice as it is.
    fn refuse_number(&mut self, name: &'static str, number: i32) {
        tracing::warn!(name, number, "no such choice for a compaction");
        self.1.keep(name, Some(number));
    }
}

/// What a wait for compactions waits for.
#[derive(Default)]
pub struct WaitOptions(pub engine::WaitForCompactOptions);

/// How tables are ingested.
pub struct IngestOptions {
    pub(crate) engine: IngestExternalFileOptions,
    file_opening_threads: i32,
    prefetch_lmax_index_and_filter_blocks: bool,
    verify_checksums_readahead_size: usize,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            engine: IngestExternalFileOptions::default(),
            file_opening_threads: 1,
            prefetch_lmax_index_and_filter_blocks: true,
            verify_checksums_readahead_size: 0,
        }
    }
}

/// How WAL records that wait in memory are written.
#[derive(Default)]
pub struct FlushWalOptions {
    pub(crate) sync: bool,
    /// It has no effect: records are written by the caller.
    priority: Option<engine::IoPriority>,
    refused: Refused,
}

refuses! {
    ReadOptions: refused_numbers,
    WriteOptions: refused,
    FlushWalOptions: refused,
}

handles! {
    ReadOptions = "readoptions",
    WriteOptions = "writeoptions",
    FlushOptions = "flushoptions",
    CompactOptions = "compactoptions",
    WaitOptions = "wait_for_compact_options",
    IngestOptions = "ingestexternalfileoptions",
    FlushWalOptions = "flushwaloptions",
}

creates! {
    rocksdb_readoptions_create: ReadOptions,
    rocksdb_writeoptions_create: WriteOptions,
    rocksdb_flushoptions_create: FlushOptions,
    rocksdb_compactoptions_create: CompactOptions,
    rocksdb_wait_for_compact_options_create: WaitOptions,
    rocksdb_ingestexternalfileoptions_create: IngestOptions,
    rocksdb_flushwaloptions_create: FlushWalOptions,
}

destroys! {
    rocksdb_readoptions_destroy: ReadOptions,
    rocksdb_writeoptions_destroy: WriteOptions,
    rocksdb_flushoptions_destroy: FlushOptions,
    rocksdb_compactoptions_destroy: CompactOptions,
    rocksdb_wait_for_compact_options_destroy: WaitOptions,
    rocksdb_ingestexternalfileoptions_destroy: IngestOptions,
    rocksdb_flushwaloptions_destroy: FlushWalOptions,
}

c_settings! { "rocksdb_readoptions", ReadOptions, |o| {
    value u8, verify_checksums: o.engine.verify_checksums;
    value u8, fill_cache: o.engine.fill_cache;
    value usize, readahead_size: o.engine.readahead_size;
    value u64, max_skippable_internal_keys: o.engine.max_skippable_internal_keys;
    value u8, total_order_seek: o.engine.total_order_seek;
    value u8, prefix_same_as_start: o.engine.prefix_same_as_start;
    value u8, ignore_range_deletions: o.engine.ignore_range_deletions;
    value u8, auto_refresh_iterator_with_snapshot: o.engine.auto_refresh_iterator_with_snapshot;
    value u8, tailing: o.is_tailing;
    value u8, auto_prefix_mode: o.engine.auto_prefix_mode;
    choice i32, rate_limiter_priority: o.engine.rate_limiter_priority;
    value u8, pin_data: o.inert.pin_data;
    value u8, async_io: o.inert.async_io;
    value u8, auto_readahead_size: o.inert.auto_readahead_size;
    value u8, background_purge_on_iterator_cleanup: o.inert.background_purge;
    value u8, adaptive_readahead: o.inert.adaptive_readahead;
    value u8, optimize_multiget_for_io: o.inert.optimize_multiget_for_io;
    value u8, allow_unprepared_value: o.inert.allow_unprepared_value;
    value i32, io_activity: o.inert.io_activity;
} }

c_settings! { "rocksdb_writeoptions", WriteOptions, |o| {
    value u8, sync: o.engine.sync;
    value u8, ignore_missing_column_families: o.engine.ignore_missing_column_families;
    value u8, no_slowdown: o.engine.no_slowdown;
    value u8, low_pri: o.engine.low_pri;
    value u8, memtable_insert_hint_per_batch: o.memtable_insert_hint_per_batch;
    choice i32, rate_limiter_priority: o.engine.rate_limiter_priority;
    value usize, protection_bytes_per_key: o.protection_bytes_per_key;
    value i32, io_activity: o.io_activity;
} }

c_settings! { "rocksdb_flushoptions", FlushOptions, |o| {
    value u8, wait: o.engine.wait;
    value u8, allow_write_stall: o.engine.allow_write_stall;
    value u8, force_atomic_flush: o.force_atomic_flush;
    value u8, listener_wait: o.listener_wait;
} }

c_settings! { "rocksdb_flushwaloptions", FlushWalOptions, |o| {
    value u8, sync: o.sync;
    choice i32, rate_limiter_priority: o.priority;
} }

c_settings! { "rocksdb_compactoptions", CompactOptions, |o| {
    value u8, exclusive_manual_compaction: o.0.exclusive_manual_compaction;
    choice u8, bottommost_level_compaction: o.0.bottommost_level_compaction;
    value u8, change_level: o.0.change_level;
    value i32, target_level: o.0.target_level;
    value i32, target_path_id: o.0.target_path_id;
    value u8, allow_write_stall: o.0.allow_write_stall;
    value i32, max_subcompactions: o.0.max_subcompactions;
    choice i32, blob_garbage_collection_policy: o.0.blob_garbage_collection_policy;
    value f64, blob_garbage_collection_age_cutoff: o.0.blob_garbage_collection_age_cutoff;
} }

c_settings! { "rocksdb_wait_for_compact_options", WaitOptions, |o| {
    value u8, abort_on_pause: o.0.abort_on_pause;
    value u8, flush: o.0.flush;
    value u8, close_db: o.0.close_db;
    value u8, wait_for_purge: o.0.wait_for_purge;
} }

c_settings! { "rocksdb_ingestexternalfileoptions", IngestOptions, |o| {
    value u8, move_files: o.engine.move_files;
    value u8, link_files: o.engine.link_files;
    value u8, failed_move_fall_back_to_copy: o.engine.failed_move_fall_back_to_copy;
    value u8, snapshot_consistency: o.engine.snapshot_consistency;
    value u8, allow_global_seqno: o.engine.allow_global_seqno;
    value u8, allow_blocking_flush: o.engine.allow_blocking_flush;
    value u8, ingest_behind: o.engine.ingest_behind;
    value u8, write_global_seqno: o.engine.write_global_seqno;
    value u8, verify_checksums_before_ingest: o.engine.verify_checksums_before_ingest;
    value u8, verify_file_checksum: o.engine.verify_file_checksum;
    value u8, fail_if_not_bottommost_level: o.engine.fail_if_not_bottommost_level;
    value u8, allow_db_generated_files: o.engine.allow_db_generated_files;
    value u8, fill_cache: o.engine.fill_cache;
    value i32, file_opening_threads: o.file_opening_threads;
    value u8, prefetch_lmax_index_and_filter_blocks: o.prefetch_lmax_index_and_filter_blocks;
    value usize, verify_checksums_readahead_size: o.verify_checksums_readahead_size;
} }

/// Where RocksDB's read tiers look; the others are not there.
const ALL: i32 = 0;
const BLOCK_CACHE: i32 = 1;

c_api! {
    fn rocksdb_wait_for_compact_options_set_timeout(o: &mut WaitOptions, microseconds: u64) {
        o.0.timeout = (microseconds > 0).then(|| Duration::from_micros(microseconds));
    }

    fn rocksdb_wait_for_compact_options_get_timeout(o: &WaitOptions) -> u64 {
        o.0.timeout.map_or(0, |limit| limit.as_micros() as u64)
    }

    fn rocksdb_readoptions_set_deadline(o: &mut ReadOptions, microseconds: u64) {
        o.engine.deadline_us = (microseconds > 0).then_some(microseconds);
    }

    fn rocksdb_readoptions_get_deadline(o: &ReadOptions) -> u64 {
        o.engine.deadline_us.unwrap_or(0)
    }

    fn rocksdb_readoptions_set_io_timeout(o: &mut ReadOptions, microseconds: u64) {
        o.engine.io_timeout = (microseconds > 0).then(|| Duration::from_micros(microseconds));
    }

    fn rocksdb_readoptions_get_io_timeout(o: &ReadOptions) -> u64 {
        o.engine.io_timeout.map_or(0, |limit| limit.as_micros() as u64)
    }

    fn rocksdb_readoptions_set_snapshot(o: &mut ReadOptions, snapshot: ?Snapshot) {
        o.engine.snapshot = snapshot.and_then(|snapshot| snapshot.engine().cloned());
    }

    fn rocksdb_readoptions_set_iterate_lower_bound(o: &mut ReadOptions, key: ?[u8]) {
        o.engine.iterate_lower_bound = key.map(<[u8]>::to_vec);
    }

    fn rocksdb_readoptions_set_iterate_upper_bound(o: &mut ReadOptions, key: ?[u8]) {
        o.engine.iterate_upper_bound = key.map(<[u8]>::to_vec);
    }

    fn rocksdb_readoptions_set_read_tier(o: &mut ReadOptions, tier: i32) {
        o.tier = tier;
        o.engine.cache_only = tier == BLOCK_CACHE;
        o.refuse("read tiers but all and the block cache", ![ALL, BLOCK_CACHE].contains(&tier));
    }

    fn rocksdb_readoptions_get_read_tier(o: &ReadOptions) -> i32 {
        o.tier
    }

    fn rocksdb_readoptions_set_value_size_soft_limit(o: &mut ReadOptions, bytes: u64) {
        o.inert.value_size_soft_limit = bytes;
        o.refuse("value_size_soft_limit", bytes != u64::MAX);
    }

    fn rocksdb_readoptions_get_value_size_soft_limit(o: &ReadOptions) -> u64 {
        o.inert.value_size_soft_limit
    }

    fn rocksdb_readoptions_set_timestamp(o: &mut ReadOptions, timestamp: ?[u8]) {
        o.engine.timestamp = timestamp.map(<[u8]>::to_vec);
    }

    fn rocksdb_readoptions_set_iter_start_ts(o: &mut ReadOptions, timestamp: ?[u8]) {
        o.engine.iter_start_ts = timestamp.map(<[u8]>::to_vec);
    }

    fn rocksdb_writeoptions_disable_WAL(o: &mut WriteOptions, disable: i32) {
        o.engine.disable_wal = disable != 0;
    }

    fn rocksdb_writeoptions_get_disable_WAL(o: &WriteOptions) -> u8 {
        o.engine.disable_wal.into()
    }
}
