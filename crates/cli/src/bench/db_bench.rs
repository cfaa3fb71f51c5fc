//! Flags of `db_bench` that are neither flags here nor options by the same name: what each of them
//! sets, and which say nothing.
//!
//! RocksDB's own scripts (tools/benchmark.sh, tools/run_blob_bench.sh, tools/regression_test.sh)
//! always pass many of them.

/// What becomes of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// It sets this option.
    Option(&'static str),
    /// Nothing that is done or measured here depends on it.
    Inert,
    /// These values ask for nothing; any other for what is not here.
    Only(&'static [&'static str]),
}

/// Flags by other names than the options that they set.
const OPTIONS: &[(&str, &str)] = &[
    ("compression_max_dict_buffer_bytes", "compression_opts.max_dict_buffer_bytes"),
    ("compression_max_dict_bytes", "compression_opts.max_dict_bytes"),
    ("compression_parallel_threads", "compression_opts.parallel_threads"),
    ("compression_use_zstd_dict_trainer", "compression_opts.use_zstd_dict_trainer"),
    ("compression_zstd_max_train_bytes", "compression_opts.zstd_max_train_bytes"),
    ("fifo_age_for_warm", "compaction_options_fifo.age_for_warm"),
    ("fifo_compaction_allow_compaction", "compaction_options_fifo.allow_compaction"),
    ("fifo_compaction_ttl", "ttl"),
    ("file_opening_threads", "max_file_opening_threads"),
    ("memtable_bloom_size_ratio", "memtable_prefix_bloom_size_ratio"),
    ("mmap_read", "allow_mmap_reads"),
    ("mmap_write", "allow_mmap_writes"),
    ("ttl_seconds", "ttl"),
    ("universal_allow_trivial_move", "compaction_options_universal.allow_trivial_move"),
    ("universal_compression_size_percent", "compaction_options_universal.compression_size_percent"),
    ("wal_size_limit_MB", "WAL_size_limit_MB"),
    ("wal_ttl_seconds", "WAL_ttl_seconds"),
];

/// Flags of what db_bench prints on the way, of RocksDB's log, of how its threads wait and how many
/// it keeps, and those that it passes over itself.
const INERT: &[&str] = &[
    "bloom_locality",
    "build_info",
    "confidence_interval_only",
    "delete_obsolete_files_period_micros",
    "disable_seek_compaction",
    "dump_malloc_stats",
    "enable_pipelined_write",
    "enable_write_thread_adaptive_yield",
    "inplace_update_num_locks",
    "multiread_batched",
    "num_bottom_pri_threads",
    "num_high_pri_threads",
    "num_low_pri_threads",
    "perf_level",
    "print_malloc_stats",
    "progress_reports",
    "random_access_max_buffer_size",
    "report_bg_io_stats",
    "report_file_operations",
    "report_open_timing",
    "show_table_properties",
    "skip_list_lookahead",
    "slow_usecs",
    "stats_history_buffer_size",
    "stats_interval",
    "stats_interval_seconds",
    "stats_level",
    "stats_per_interval",
    "stats_persist_period_sec",
    "table_cache_numshardbits",
    "thread_status_per_interval",
    "use_adaptive_mutex",
    "use_stderr_info_logger",
    "write_thread_max_yield_usec",
    "write_thread_slow_yield_usec",
];

/// As gflags writes it.
pub const NO: &[&str] = &["false", "0", "f", "no", "n"];
const NONE: &[&str] = &[""];

/// Flags of what is not here, with the values by which they do not ask for it.
const ABSENT: &[(&str, &[&str])] = &[
    ("async_io", NO),
    ("enable_numa", NO),
    ("env_uri", NONE),
    ("fs_uri", NONE),
    ("num_column_families", &["0", "1"]),
    ("num_hot_column_families", &["0"]),
    ("num_multi_db", &["0", "1"]),
    ("optimistic_transaction_db", NO),
    ("options_file", NONE),
    ("readonly", NO),
    ("row_cache_size", &["0"]),
    ("simcache_size", &["-1"]),
    ("simulate_hdd", NO),
    ("sine_write_rate", NO),
    ("transaction_db", NO),
    ("use_blob_db", NO),
    ("use_cuckoo_table", NO),
    ("use_existing_keys", NO),
    ("use_keep_filter", NO),
    ("use_plain_table", NO),
    ("use_secondary_db", NO),
    ("use_single_deletes", NO),
    ("use_tailing_iterator", NO),
    ("use_uint64_comparator", NO),
    ("user_timestamp_size", &["0"]),
    ("writes_per_range_tombstone", &["0"]),
];

/// What becomes of a flag by that name; `None` if nothing is said of it here.
pub fn meaning(name: &str) -> Option<Meaning> {
    if INERT.contains(&name) {
        return Some(Meaning::Inert);
    }
    let option = OPTIONS.iter().find(|(flag, _)| *flag == name);
    let absent = ABSENT.iter().find(|(flag, _)| *flag == name);
    option
        .map(|(_, option)| Meaning::Option(option))
        .or_else(|| absent.map(|(_, values)| Meaning::Only(values)))
}

#[cfg(test)]
mod tests;
