//! Options of a database and of a column family: numbers and truth values. `components.rs` sets
//! what is made of callbacks, `options_groups.rs` several at once.

use std::collections::BTreeSet;
use std::ffi::c_char;

use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::has_no_effect;

use crate::abi::{Out, handles};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::convert::{Choice, is_default, narrow};
use crate::logger::log_level;
use crate::refused::{Refused, Refuses};

/// Options.
#[derive(Clone, Default)]
pub struct Options {
    /// Those that the `rocksdb` crate's names have, too.
    pub rdb: rdb::Options,
    /// What C asks back, and nothing else needs.
    pub aside: Aside,
}

/// Values of options that are kept to be asked for.
#[derive(Clone)]
pub struct Aside {
    statistics_level: i32,
    /// Styles of compaction whose tables would get a hint how long they live.
    pub(crate) lifetime_hints: BTreeSet<i32>,
    refused: Refused,
    /// The numbers of the kinds of files in `checksum_handoff_file_types`, a bit each.
    pub handed_files: u32,
}

impl Default for Aside {
    fn default() -> Self {
        Self {
            statistics_level: EXCEPT_DETAILED_TIMERS,
            refused: Refused::default(),
            handed_files: 0,
            lifetime_hints: BTreeSet::from([LEVEL_COMPACTION]),
        }
    }
}

handles! { Options = "options", }

impl Refuses for Options {
    fn refused(&self) -> &Refused {
        &self.aside.refused
    }

    fn refused_mut(&mut self) -> &mut Refused {
        &mut self.aside.refused
    }

    /// The opening will fail.
    fn refuse_number(&mut self, name: &'static str, number: i32) {
        let why =
            rdb::Error::not_supported(format_args!("option '{name}' with the value {number}"));
        self.rdb.refuse(name, Some(why));
        self.aside.refused.keep(name, Some(number));
    }

    fn accept(&mut self, name: &'static str) {
        self.rdb.refuse(name, None);
        self.aside.refused.keep(name, None);
    }
}

impl Options {
    /// Sets an option that the engine does not act on: it has no effect, or another value than
    /// RocksDB's default fails the opening.
    pub(crate) fn set_known(&mut self, name: &'static str, value: &str) {
        self.rdb.note(name, value);
        let is_refused = !has_no_effect(name) && !is_default(name, value);
        let why = is_refused
            .then(|| rdb::Error::not_supported(format_args!("option '{name}' with '{value}'")));
        self.rdb.refuse(name, why);
    }

    pub(crate) fn known(&self, name: &str) -> &str {
        self.rdb.noted(name)
    }
}

creates! { rocksdb_options_create: Options, }
destroys! { rocksdb_options_destroy: Options, }

c_settings! { "rocksdb_options", Options, |o| {
    // Of a database.
    value u8, create_if_missing: o.rdb.db.db.create_if_missing;
    value u8, create_missing_column_families: o.rdb.db.db.create_missing_column_families;
    value u8, error_if_exists: o.rdb.db.db.error_if_exists;
    value u8, enable_thread_tracking: o.rdb.db.db.enable_thread_tracking;
    value u8, paranoid_checks: o.rdb.db.db.paranoid_checks;
    value i32, max_open_files: o.rdb.db.db.max_open_files;
    value i32, max_background_jobs: o.rdb.db.db.max_background_jobs;
    value i32, max_background_compactions: o.rdb.db.db.max_background_compactions;
    value i32, max_background_flushes: o.rdb.db.db.max_background_flushes;
    value u32, max_subcompactions: o.rdb.db.db.max_subcompactions;
    value u64, bytes_per_sync: o.rdb.db.db.bytes_per_sync;
    value u64, wal_bytes_per_sync: o.rdb.db.db.wal_bytes_per_sync;
    value u8, strict_bytes_per_sync: o.rdb.db.db.strict_bytes_per_sync;
    value u64, writable_file_max_buffer_size: o.rdb.db.db.writable_file_max_buffer_size;
    value usize, log_readahead_size: o.rdb.db.db.log_readahead_size;
    choice i32, wal_recovery_mode: o.rdb.db.db.wal_recovery_mode;
    value usize, recycle_log_file_num: o.rdb.db.db.recycle_log_file_num;
    choice i32, wal_compression: o.rdb.db.db.wal_compression;
    value u64, max_total_wal_size: o.rdb.db.db.max_total_wal_size;
    value u64, WAL_ttl_seconds: o.rdb.db.db.WAL_ttl_seconds;
    value u64, WAL_size_limit_MB: o.rdb.db.db.WAL_size_limit_MB;
    value usize, max_manifest_file_size: o.rdb.db.db.max_manifest_file_size;
    value usize, manifest_preallocation_size: o.rdb.db.db.manifest_preallocation_size;
    value u8, allow_2pc: o.rdb.db.db.allow_2pc;
    value u8, allow_ingest_behind: o.rdb.db.db.allow_ingest_behind;
    value u8, avoid_flush_during_recovery: o.rdb.db.db.avoid_flush_during_recovery;
    value u8, avoid_flush_during_shutdown: o.rdb.db.db.avoid_flush_during_shutdown;
    value u8, atomic_flush: o.rdb.db.db.atomic_flush;
    value u8, manual_wal_flush: o.rdb.db.db.manual_wal_flush;
    value u8, allow_mmap_reads: o.rdb.db.db.allow_mmap_reads;
    value u8, use_direct_reads: o.rdb.db.db.use_direct_reads;
    value u8, use_direct_io_for_flush_and_compaction:
        o.rdb.db.db.use_direct_io_for_flush_and_compaction;
    value u64, delayed_write_rate: o.rdb.db.db.delayed_write_rate;
    value usize, db_write_buffer_size: o.rdb.db.db.db_write_buffer_size;
    value u8, verify_sst_unique_id_in_manifest: o.rdb.db.db.verify_sst_unique_id_in_manifest;
    value u8, allow_fallocate: o.rdb.db.db.allow_fallocate;
    known u8, advise_random_on_open: "advise_random_on_open";
    known u8, allow_concurrent_memtable_write: "allow_concurrent_memtable_write";
    known u8, allow_data_in_errors: "allow_data_in_errors";
    known u8, allow_mmap_writes: "allow_mmap_writes";
    known u8, async_wal_precreate: "async_wal_precreate";
    known u8, avoid_unnecessary_blocking_io: "avoid_unnecessary_blocking_io";
    known u8, background_close_inactive_wals: "background_close_inactive_wals";
    known u8, best_efforts_recovery: "best_efforts_recovery";
    known u64, bgerror_resume_retry_interval: "bgerror_resume_retry_interval";
    known u8, compaction_verify_record_count: "compaction_verify_record_count";
    known u64, delete_obsolete_files_period_micros: "delete_obsolete_files_period_micros";
    known u8, dump_malloc_stats: "dump_malloc_stats";
    known u8, enable_pipelined_write: "enable_pipelined_write";
    known u8, enable_write_thread_adaptive_yield: "enable_write_thread_adaptive_yield";
    known u8, enforce_single_del_contracts: "enforce_single_del_contracts";
    known u8, enforce_write_buffer_manager_during_recovery:
        "enforce_write_buffer_manager_during_recovery";
    known u8, fast_sst_open: "fast_sst_open";
    known u8, flush_verify_memtable_count: "flush_verify_memtable_count";
    value u64, follower_catchup_retry_count: o.rdb.db.db.follower_catchup_retry_count;
    value u64, follower_catchup_retry_wait_ms: o.rdb.db.db.follower_catchup_retry_wait_ms;
    value u64, follower_refresh_catchup_period_ms: o.rdb.db.db.follower_refresh_catchup_period_ms;
    known u8, is_fd_close_on_exec: "is_fd_close_on_exec";
    known i32, max_bgerror_resume_count: "max_bgerror_resume_count";
    known u64, max_compaction_trigger_wakeup_seconds: "max_compaction_trigger_wakeup_seconds";
    known i32, max_file_opening_threads: "max_file_opening_threads";
    known i32, max_manifest_space_amp_pct: "max_manifest_space_amp_pct";
    known u64, max_write_batch_group_size_bytes: "max_write_batch_group_size_bytes";
    known u8, open_files_async: "open_files_async";
    known u8, optimize_manifest_for_recovery: "optimize_manifest_for_recovery";
    known u8, persist_stats_to_disk: "persist_stats_to_disk";
    known u8, prefix_seek_opt_in_only: "prefix_seek_opt_in_only";
    known i32, read_io_executor_threads: "read_io_executor_threads";
    known u8, reuse_manifest_on_open: "reuse_manifest_on_open";
    known u8, skip_checking_sst_file_sizes_on_db_open: "skip_checking_sst_file_sizes_on_db_open";
    known u8, skip_stats_update_on_db_open: "skip_stats_update_on_db_open";
    value u32, stats_dump_period_sec: o.rdb.db.db.stats_dump_period_sec;
    value usize, stats_history_buffer_size: o.rdb.db.db.stats_history_buffer_size;
    value u32, stats_persist_period_sec: o.rdb.db.db.stats_persist_period_sec;
    known i32, table_cache_numshardbits: "table_cache_numshardbits";
    known u8, track_and_verify_wals: "track_and_verify_wals";
    known u8, track_and_verify_wals_in_manifest: "track_and_verify_wals_in_manifest";
    known u8, two_write_queues: "two_write_queues";
    known u8, unordered_write: "unordered_write";
    known u8, use_adaptive_mutex: "use_adaptive_mutex";
    known u8, use_direct_io_for_compaction_reads: "use_direct_io_for_compaction_reads";
    known_flag i32, use_fsync: "use_fsync";
    known u8, verify_manifest_content_on_close: "verify_manifest_content_on_close";
    known u8, write_dbid_to_manifest: "write_dbid_to_manifest";
    known u8, write_identity_file: "write_identity_file";
    known u64, write_thread_max_yield_usec: "write_thread_max_yield_usec";
    known u64, write_thread_slow_yield_usec: "write_thread_slow_yield_usec";

    // Of a column family.
    value usize, write_buffer_size: o.rdb.db.cf.settings.write_buffer_size;
    value i32, max_write_buffer_number: o.rdb.db.cf.settings.max_write_buffer_number;
    value i32, min_write_buffer_number_to_merge:
        o.rdb.db.cf.settings.min_write_buffer_number_to_merge;
    value usize, arena_block_size: o.rdb.db.cf.settings.arena_block_size;
    value i32, level0_file_num_compaction_trigger:
        o.rdb.db.cf.settings.level0_file_num_compaction_trigger;
    value i32, level0_slowdown_writes_trigger: o.rdb.db.cf.settings.level0_slowdown_writes_trigger;
    value i32, level0_stop_writes_trigger: o.rdb.db.cf.settings.level0_stop_writes_trigger;
    value usize, soft_pending_compaction_bytes_limit:
        o.rdb.db.cf.settings.soft_pending_compaction_bytes_limit;
    value usize, hard_pending_compaction_bytes_limit:
        o.rdb.db.cf.settings.hard_pending_compaction_bytes_limit;
    value i32 => u8, disable_auto_compactions: o.rdb.db.cf.settings.disable_auto_compactions;
    value i32, num_levels: o.rdb.db.cf.settings.num_levels;
    value u8, cf_allow_ingest_behind: o.rdb.db.cf.settings.cf_allow_ingest_behind;
    choice i32, compaction_style: o.rdb.db.cf.settings.compaction_style;
    choice i32, compaction_pri: o.rdb.db.cf.settings.compaction_pri;
    value u64, max_bytes_for_level_base: o.rdb.db.cf.settings.max_bytes_for_level_base;
    value f64, max_bytes_for_level_multiplier: o.rdb.db.cf.settings.max_bytes_for_level_multiplier;
    value u8, level_compaction_dynamic_level_bytes:
        o.rdb.db.cf.settings.level_compaction_dynamic_level_bytes;
    value u64, target_file_size_base: o.rdb.db.cf.settings.target_file_size_base;
    value i32, target_file_size_multiplier: o.rdb.db.cf.settings.target_file_size_multiplier;
    value u64, max_compaction_bytes: o.rdb.db.cf.settings.max_compaction_bytes;
    value u64, ttl: o.rdb.db.cf.settings.ttl;
    value u64, periodic_compaction_seconds: o.rdb.db.cf.settings.periodic_compaction_seconds;
    value u8, paranoid_file_checks: o.rdb.db.cf.settings.paranoid_file_checks;
    choice i32, compression: o.rdb.db.cf.settings.compression;
    choice i32, bottommost_compression: o.rdb.db.cf.settings.bottommost_compression;
    value i32, compression_options_zstd_max_train_bytes:
        o.rdb.db.cf.settings.compression_opts.zstd_max_train_bytes;
    value u64, compression_options_max_dict_buffer_bytes:
        o.rdb.db.cf.settings.compression_opts.max_dict_buffer_bytes;
    value u8, compression_options_use_zstd_dict_trainer:
        o.rdb.db.cf.settings.compression_opts.use_zstd_dict_trainer;
    value i32, compression_options_parallel_threads:
        o.rdb.db.cf.settings.compression_opts.parallel_threads;
    value u8, enable_blob_files: o.rdb.db.cf.settings.enable_blob_files;
    value u64, min_blob_size: o.rdb.db.cf.settings.min_blob_size;
    value u64, blob_file_size: o.rdb.db.cf.settings.blob_file_size;
    choice i32, blob_compression_type: o.rdb.db.cf.settings.blob_compression_type;
    value u8, enable_blob_gc: o.rdb.db.cf.settings.enable_blob_garbage_collection;
    value f64, blob_gc_age_cutoff: o.rdb.db.cf.settings.blob_garbage_collection_age_cutoff;
    value f64, blob_gc_force_threshold:
        o.rdb.db.cf.settings.blob_garbage_collection_force_threshold;
    value u64, blob_compaction_readahead_size:
        o.rdb.db.cf.settings.blob_compaction_readahead_size;
    value i32, blob_file_starting_level: o.rdb.db.cf.settings.blob_file_starting_level;
    choice i32, prepopulate_blob_cache: o.rdb.db.cf.settings.prepopulate_blob_cache;
    value u64, max_sequential_skip_in_iterations:
        o.rdb.db.cf.settings.max_sequential_skip_in_iterations;
    value usize, max_successive_merges: o.rdb.db.cf.settings.max_successive_merges;
    value f64, memtable_prefix_bloom_size_ratio:
        o.rdb.db.cf.settings.memtable_prefix_bloom_size_ratio;
    value u8, memtable_whole_key_filtering: o.rdb.db.cf.settings.memtable_whole_key_filtering;
    value i32 => u8, optimize_filters_for_hits: o.rdb.db.cf.settings.optimize_filters_for_hits;
    known u32, blob_direct_write_partitions: "blob_direct_write_partitions";
    known u32, bloom_locality: "bloom_locality";
    known u32, bottommost_file_compaction_delay: "bottommost_file_compaction_delay";
    known u8, disallow_memtable_writes: "disallow_memtable_writes";
    known u8, enable_blob_direct_write: "enable_blob_direct_write";
    known f64, experimental_mempurge_threshold: "experimental_mempurge_threshold";
    known u8, force_consistency_checks: "force_consistency_checks";
    known usize, inplace_update_num_locks: "inplace_update_num_locks";
    known u8, inplace_update_support: "inplace_update_support";
    known i32, max_write_buffer_number_to_maintain: "max_write_buffer_number_to_maintain";
    known i64, max_write_buffer_size_to_maintain: "max_write_buffer_size_to_maintain";
    known u32, memtable_avg_op_scan_flush_trigger: "memtable_avg_op_scan_flush_trigger";
    known u8, memtable_batch_lookup_optimization: "memtable_batch_lookup_optimization";
    known usize, memtable_huge_page_size: "memtable_huge_page_size";
    known u32, memtable_max_range_deletions: "memtable_max_range_deletions";
    known u32, memtable_op_scan_flush_trigger: "memtable_op_scan_flush_trigger";
    known u8, memtable_verify_per_key_checksum_on_seek: "memtable_verify_per_key_checksum_on_seek";
    known u32, min_tombstones_for_range_conversion: "min_tombstones_for_range_conversion";
    known u8, paranoid_memory_checks: "paranoid_memory_checks";
    value u8, persist_user_defined_timestamps: o.rdb.db.cf.settings.persist_user_defined_timestamps;
    value u64, preclude_last_level_data_seconds:
        o.rdb.db.cf.settings.preclude_last_level_data_seconds;
    value u64, preserve_internal_time_seconds: o.rdb.db.cf.settings.preserve_internal_time_seconds;
    known f64, read_triggered_compaction_threshold: "read_triggered_compaction_threshold";
    known_flag i32 => u8, report_bg_io_stats: "report_bg_io_stats";
    known u64, sample_for_compression: "sample_for_compression";
    known u8, strict_max_successive_merges: "strict_max_successive_merges";
    known u8, target_file_size_is_upper_bound: "target_file_size_is_upper_bound";
    known u32, uncache_aggressiveness: "uncache_aggressiveness";
    known i32, verify_output_flags: "verify_output_flags";
} }

/// The level of a number of the header's.
fn stats_level(number: i32) -> rdb::statistics::StatsLevel {
    use rdb::statistics::StatsLevel;
    match number {
        i32::MIN..=0 => StatsLevel::DisableAll,
        1 => StatsLevel::ExceptHistogramOrTimers,
        2 => StatsLevel::ExceptTimers,
        3 => StatsLevel::ExceptDetailedTimers,
        4 => StatsLevel::ExceptTimeForMutex,
        _ => StatsLevel::All,
    }
}

/// The header's number of the default style of compaction.
const LEVEL_COMPACTION: i32 = 0;

/// The header's number of the default level, and of the last.
const EXCEPT_DETAILED_TIMERS: i32 = 3;
const ALL: i32 = 5;

/// A text that stays until the option changes.
pub fn lend(text: &str, len: Out<usize>) -> *const c_char {
    len.set(text.len());
    text.as_ptr().cast()
}

// Those that also set the log, the statistics or a directory.
c_api! {
    fn rocksdb_options_set_block_protection_bytes_per_key(o: &mut Options, bytes: u8) {
        let name = "block_protection_bytes_per_key";
        match Choice::from_number(bytes.into()) {
            Some(choice) => {
                o.accept(name);
                o.rdb.db.cf.settings.block_protection_bytes_per_key = choice;
            }
            None => o.refuse_number(name, bytes.into()),
        }
    }

    fn rocksdb_options_get_block_protection_bytes_per_key(o: &Options) -> u8 {
        let name = "block_protection_bytes_per_key";
        let own = o.rdb.db.cf.settings.block_protection_bytes_per_key.bytes() as u8;
        o.refused().number(name).map_or(own, narrow)
    }

    fn rocksdb_options_set_memtable_protection_bytes_per_key(o: &mut Options, bytes: u32) {
        let name = "memtable_protection_bytes_per_key";
        let number = bytes.cast_signed();
        match Choice::from_number(number) {
            Some(choice) => {
                o.rdb.db.cf.settings.memtable_protection_bytes_per_key = choice;
                o.accept(name);
            }
            None => o.refuse_number(name, number),
        }
    }

    fn rocksdb_options_get_memtable_protection_bytes_per_key(o: &Options) -> u32 {
        let name = "memtable_protection_bytes_per_key";
        let own = o.rdb.db.cf.settings.memtable_protection_bytes_per_key.bytes() as u32;
        o.refused().number(name).map_or(own, i32::cast_unsigned)
    }

    fn rocksdb_options_set_info_log_level(o: &mut Options, level: i32) {
        o.rdb.set_log_level(log_level(level));
    }

    fn rocksdb_options_get_info_log_level(o: &Options) -> i32 {
        o.rdb.db.db.info_log_level as i32
    }

    fn rocksdb_options_set_max_log_file_size(o: &mut Options, bytes: usize) {
        o.rdb.set_max_log_file_size(bytes);
    }

    fn rocksdb_options_get_max_log_file_size(o: &Options) -> usize {
        o.rdb.db.db.max_log_file_size as usize
    }

    fn rocksdb_options_set_log_file_time_to_roll(o: &mut Options, seconds: usize) {
        o.rdb.set_log_file_time_to_roll(seconds);
    }

    fn rocksdb_options_get_log_file_time_to_roll(o: &Options) -> usize {
        o.rdb.db.db.log_file_time_to_roll as usize
    }

    fn rocksdb_options_set_keep_log_file_num(o: &mut Options, count: usize) {
        o.rdb.set_keep_log_file_num(count);
    }

    fn rocksdb_options_get_keep_log_file_num(o: &Options) -> usize {
        o.rdb.db.db.keep_log_file_num as usize
    }

    fn rocksdb_options_set_statistics_level(o: &mut Options, level: i32) {
        if o.rdb.has_statistics() {
            o.aside.statistics_level = level.clamp(0, ALL);
            o.rdb.set_statistics_level(stats_level(level));
        }
    }

    fn rocksdb_options_get_statistics_level(o: &Options) -> i32 {
        if o.rdb.has_statistics() { o.aside.statistics_level } else { 0 }
    }

    fn rocksdb_options_set_wal_dir(o: &mut Options, path: path) {
        o.rdb.set_wal_dir(path);
    }

    fn rocksdb_options_set_db_log_dir(o: &mut Options, path: path) {
        o.rdb.set_db_log_dir(path);
    }

    fn rocksdb_options_get_wal_dir(o: &Options, len: Out<usize>) -> *const c_char {
        lend(&o.rdb.db.db.wal_dir, len)
    }

    fn rocksdb_options_get_db_log_dir(o: &Options, len: Out<usize>) -> *const c_char {
        lend(&o.rdb.db.db.db_log_dir, len)
    }

    fn rocksdb_options_compaction_readahead_size(o: &mut Options, bytes: usize) {
        o.rdb.db.db.compaction_readahead_size = bytes as u64;
    }

    fn rocksdb_options_get_compaction_readahead_size(o: &Options) -> usize {
        o.rdb.db.db.compaction_readahead_size as usize
    }

    fn rocksdb_options_set_access_hint_on_compaction_start(o: &mut Options, hint: i32) {
        const HINTS: [&str; 4] = ["NONE", "NORMAL", "SEQUENTIAL", "WILLNEED"];
        let hint = usize::try_from(hint).ok().and_then(|hint| HINTS.get(hint));
        o.rdb.note("access_hint_on_compaction_start", hint.unwrap_or(&"NORMAL"));
    }

    fn rocksdb_options_get_access_hint_on_compaction_start(o: &Options) -> i32 {
        match o.known("access_hint_on_compaction_start") {
            "NONE" => 0,
            "SEQUENTIAL" => 2,
            "WILLNEED" => 3,
            _ => 1,
        }
    }
}
