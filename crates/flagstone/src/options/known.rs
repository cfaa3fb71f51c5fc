//! RocksDB's settings that this engine does not act on, and settings that only this engine has.
//!
//! None is silently ignored: setting one to any value but RocksDB's default fails. An existing
//! OPTIONS file may hold other values; they are kept and reported, unless they are [`INERT`].

use crate::base::{Error, Result, SubCode};

use super::table::{Row, Section};

/// Rows that RocksDB, or RocksDB 7.8, does not know, or that it never writes to an OPTIONS file.
/// They are written as comments, which RocksDB ignores.
pub const OWN: &[&str] = &[
    "wal_write_mode",
    "readable_by_rocksdb_secondaries",
    "publish_figures",
    "db_log_dir",
    "follower_refresh_catchup_period_ms",
    "follower_catchup_retry_count",
    "follower_catchup_retry_wait_ms",
    "cache_policy",
    "compressed_secondary_cache_size",
    "blob_commit_min_size",
    "blob_commit_synced_min_size",
    "blob_write_mode",
    "cache_blobs",
    "blob_punch_holes",
    "blob_entity_columns",
    "max_space_amplification",
    "burst_space_amplification",
    "deletion_compaction_delay",
    "background_niceness",
    "background_idle_io",
    "memory_budget",
    "block_cache_miss_percent",
    "unused_memory_seconds",
    "reserved_disk_space",
    "cache_follows_compaction",
    "cf_allow_ingest_behind",
    "persist_user_defined_timestamps",
    "block_protection_bytes_per_key",
    "filter_bits_per_level",
    "super_block_alignment_size",
    "super_block_alignment_space_overhead_ratio",
    "db_paths",
    "cf_paths",
    "default_write_temperature",
    "wal_write_temperature",
    "metadata_write_temperature",
    "default_temperature",
];

/// Settings of RocksDB none of whose values changes what is stored, how safe it is, or results that
/// a user would look for here. They concern how RocksDB's threads wait for each
/// other, which parts of tables stay in memory, what it opens and checks when, and its callbacks.
/// Applications set many of them.
pub const INERT: &[&str] = &[
    "access_hint_on_compaction_start",
    "advise_random_on_open",
    "allow_data_in_errors",
    "bloom_locality",
    "delete_obsolete_files_period_micros",
    "dump_malloc_stats",
    "enable_pipelined_write",
    "enable_write_thread_adaptive_yield",
    "force_consistency_checks",
    "inplace_update_num_locks",
    "is_fd_close_on_exec",
    "listeners",
    "max_file_opening_threads",
    "max_write_batch_group_size_bytes",
    "max_write_buffer_number_to_maintain",
    "max_write_buffer_size_to_maintain",
    "pin_top_level_index_and_filter",
    "random_access_max_buffer_size",
    "report_bg_io_stats",
    "sample_for_compression",
    "skip_stats_update_on_db_open",
    "table_cache_numshardbits",
    "two_write_queues",
    "unordered_write",
    "use_adaptive_mutex",
    "write_thread_max_yield_usec",
    "write_thread_slow_yield_usec",
];

/// Start of such a comment.
pub(super) const OWN_MARK: &str = "# flagstone:";

/// RocksDB before 6.15 writes this four-byte number as eight bytes; its upper half may be anything.
const READ_AMP: &str = "read_amp_bytes_per_bit";

/// A setting of RocksDB that is accepted only with its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its section in an OPTIONS file.
    pub section: Section,
    /// RocksDB's name.
    pub name: &'static str,
    /// RocksDB's default, and other texts with the same meaning; versions may differ.
    pub defaults: &'static [&'static str],
    /// Whether both RocksDB 7.8 and 11.9 accept the name in an OPTIONS file.
    pub in_both: bool,
    /// Whether every number is accepted, because none asks for anything that the engine does not
    /// do.
    pub any_number: bool,
    /// Whether RocksDB acts on accepted values other than its default. An OPTIONS file then keeps
    /// naming them.
    pub kept: bool,
}

impl Known {
    const fn one_version(self) -> Self {
        Self { in_both: false, ..self }
    }

    const fn with_any_number(self) -> Self {
        Self { any_number: true, ..self }
    }

    const fn kept(self) -> Self {
        Self { kept: true, ..self }
    }

    /// Whether `value` is accepted, but kept and reported as having no effect.
    pub(super) fn keeps(&self, value: &str) -> bool {
        self.kept && self.accepts(value) && !same_text(self.defaults[0], value)
    }

    /// Whether `value` asks for nothing that the engine does not do.
    pub fn accepts(&self, value: &str) -> bool {
        self.defaults.iter().any(|default| same_text(default, value))
            || self.any_number && value.parse::<i64>().is_ok()
            || self.name == READ_AMP && value.parse::<u64>().is_ok_and(|bits| bits as u32 == 0)
    }

    /// The error for any other value. The caller adds the setting's name.
    pub fn refusal(&self) -> Error {
        Error::not_supported(format!(
            "known but not supported yet; only the default '{}' is accepted",
            self.defaults[0]
        ))
    }
}

pub(super) fn same_text(a: &str, b: &str) -> bool {
    let same_number = || Some(a.parse::<f64>().ok()? == b.parse::<f64>().ok()?);
    a == b || same_number().unwrap_or(false)
}

const fn db(name: &'static str, defaults: &'static [&'static str]) -> Known {
    Known { section: Section::Db, name, defaults, in_both: true, any_number: false, kept: false }
}

const fn cf(name: &'static str, defaults: &'static [&'static str]) -> Known {
    Known {
        section: Section::ColumnFamily,
        name,
        defaults,
        in_both: true,
        any_number: false,
        kept: false,
    }
}

const fn table(name: &'static str, defaults: &'static [&'static str]) -> Known {
    Known { section: Section::Table, name, defaults, in_both: true, any_number: false, kept: false }
}

/// All such settings of RocksDB 7.8 to 11.9, by section and name.
pub const KNOWN: &[Known] = &[
    db("access_hint_on_compaction_start", &["NORMAL"]).one_version(),
    db("advise_random_on_open", &["true", "1"]),
    // Writers always insert side by side, where the memtable can; RocksDB wants it said for some.
    db("allow_concurrent_memtable_write", &["true", "1", "false", "0"]),
    db("allow_data_in_errors", &["false", "0"]),
    db("allow_mmap_writes", &["false", "0"]),
    db("async_wal_precreate", &["false", "0"]).one_version(),
    db("avoid_unnecessary_blocking_io", &["false", "0"]),
    db("background_close_inactive_wals", &["false", "0"]).one_version(),
    db("best_efforts_recovery", &["false", "0"]),
    db("bgerror_resume_retry_interval", &["1000000"]),
    db("compaction_verify_record_count", &["true", "1"]).one_version(),
    // This and two more (`listeners`, `table_properties_collectors`) are written only where they
    // are set.
    db("daily_offpeak_time_utc", &[""]).one_version(),
    db("db_host_id", &["__hostname__"]),
    db("delete_obsolete_files_period_micros", &["21600000000"]),
    db("dump_malloc_stats", &["false", "0"]),
    db("enable_pipelined_write", &["false", "0", "true", "1"]).kept(),
    db("enable_write_thread_adaptive_yield", &["true", "1"]),
    db("enforce_single_del_contracts", &["true", "1"]),
    db("enforce_write_buffer_manager_during_recovery", &["true", "1"]).one_version(),
    db("fail_if_options_file_error", &["false", "0", "true", "1"]).one_version(),
    db("fast_sst_open", &["false", "0"]).one_version(),
    db("flush_verify_memtable_count", &["true", "1"]),
    db("is_fd_close_on_exec", &["true", "1"]),
    db("listeners", &[""]).one_version(),
    db("lowest_used_cache_tier", &["kNonVolatileBlockTier"]),
    db("max_bgerror_resume_count", &["2147483647"]),
    db("max_compaction_trigger_wakeup_seconds", &["43200"]).one_version(),
    // Tables are opened at their first use.
    db("max_file_opening_threads", &["16"]).with_any_number().kept(),
    db("max_manifest_space_amp_pct", &["500"]).one_version(),
    db("max_write_batch_group_size_bytes", &["1048576"]),
    db("open_files_async", &["false", "0"]).one_version(),
    db("optimize_manifest_for_recovery", &["false", "0"]).one_version(),
    db("persist_stats_to_disk", &["false", "0"]),
    db("prefix_seek_opt_in_only", &["false", "0"]).one_version(),
    db("random_access_max_buffer_size", &["1048576"]).one_version(),
    db("read_io_executor_threads", &["1"]).one_version(),
    db("reuse_manifest_on_open", &["false", "0"]).one_version(),
    db("row_cache", &["nullptr"]).one_version(),
    db("skip_checking_sst_file_sizes_on_db_open", &["false", "0"]).one_version(),
    // What compactions go by stands in the MANIFEST: no table is opened for it.
    db("skip_stats_update_on_db_open", &["false", "0", "true", "1"]).kept(),
    db("table_cache_numshardbits", &["6"]),
    db("track_and_verify_wals", &["false", "0"]).one_version(),
    db("track_and_verify_wals_in_manifest", &["false", "0"]),
    db("two_write_queues", &["false", "0", "true", "1"]).kept(),
    db("unordered_write", &["false", "0", "true", "1"]).kept(),
    db("use_adaptive_mutex", &["false", "0"]),
    db("use_direct_io_for_compaction_reads", &["false", "0"]).one_version(),
    db("use_fsync", &["false", "0"]),
    db("verify_manifest_content_on_close", &["false", "0"]).one_version(),
    db("wal_filter", &["nullptr"]),
    db("write_dbid_to_manifest", &["true", "1", "false", "0"]),
    db("write_identity_file", &["true", "1"]).one_version(),
    db("write_thread_max_yield_usec", &["100"]),
    db("write_thread_slow_yield_usec", &["3"]),
    cf("blob_cache", &["nullptr"]).one_version(),
    cf("blob_compression_opts", &[NEW_COMPRESSION_OPTS]).one_version(),
    cf("blob_direct_write_partitions", &["1"]).one_version(),
    cf("bloom_locality", &["0"]),
    cf("bottommost_file_compaction_delay", &["0"]).one_version(),
    cf("check_flush_compaction_key_order", &["true", "1"]).one_version(),
    cf("compression_manager", &["nullptr"]).one_version(),
    cf("disallow_memtable_writes", &["false", "0"]).one_version(),
    cf("enable_blob_direct_write", &["false", "0"]).one_version(),
    cf("experimental_mempurge_threshold", &["0"]),
    // The tree is checked after every change.
    cf("force_consistency_checks", &["true", "1", "false", "0"]).kept(),
    cf("ignore_max_compaction_bytes_for_input", &["true", "1"]).one_version(),
    cf("inplace_update_num_locks", &["10000"]),
    cf("inplace_update_support", &["false", "0"]),
    cf("level_compaction_dynamic_file_size", &["true", "1"]).one_version(),
    // For RocksDB's transactions, which check against flushed memtables; there are none here.
    cf("max_write_buffer_number_to_maintain", &["0"]).one_version().with_any_number().kept(),
    cf("max_write_buffer_size_to_maintain", &["0"]).with_any_number().kept(),
    cf("memtable_avg_op_scan_flush_trigger", &["0"]).one_version(),
    cf("memtable_batch_lookup_optimization", &["false", "0"]).one_version(),
    cf("memtable_huge_page_size", &["0"]),
    cf("memtable_insert_with_hint_prefix_extractor", &["nullptr"]),
    cf("memtable_max_range_deletions", &["0"]).one_version(),
    cf("memtable_op_scan_flush_trigger", &["0"]).one_version(),
    cf("memtable_verify_per_key_checksum_on_seek", &["false", "0"]).one_version(),
    cf("min_tombstones_for_range_conversion", &["0"]).one_version(),
    cf("paranoid_memory_checks", &["false", "0"]).one_version(),
    cf("read_triggered_compaction_threshold", &["0"]).one_version(),
    cf("report_bg_io_stats", &["false", "0"]),
    cf("sample_for_compression", &["0"]),
    cf("sst_partitioner_factory", &["nullptr"]),
    cf("strict_max_successive_merges", &["false", "0"]).one_version(),
    cf("table_properties_collectors", &[""]).one_version(),
    cf("target_file_size_is_upper_bound", &["false", "0"]).one_version(),
    cf("uncache_aggressiveness", &["0"]).one_version(),
    cf("verify_output_flags", &["0"]).one_version(),
    table("block_cache_compressed", &["nullptr"]).one_version(),
    // Which of the two forms is written changes only what a partitioned filter costs.
    table("decouple_partitioned_filters", &["true", "1", "false", "0"]).one_version(),
    table("detect_filter_construct_corruption", &["false", "0"]),
    table("fail_if_no_udi_on_open", &["false", "0"]).one_version(),
    table("flush_block_policy_factory", &["FlushBlockBySizePolicyFactory"]),
    table("hash_index_allow_collision", &["true", "1"]).one_version(),
    table("index_block_search_type", &["kBinary"]).one_version(),
    table("metadata_cache_options", &[DEFAULT_METADATA_CACHE_OPTIONS]),
    table("optimize_filters_for_memory", &["true", "1", "false", "0"]),
    table("persistent_cache", &["nullptr"]).one_version(),
    table("pin_top_level_index_and_filter", &["true", "1"]),
    table(READ_AMP, &["0"]),
    table("separate_key_value_in_data_block", &["false", "0"]).one_version(),
    table("uniform_cv_threshold", &["-1"]).one_version(),
    table("use_delta_encoding", &["true", "1"]).one_version(),
    table("use_udi_as_primary_index", &["false", "0"]).one_version(),
    table("user_defined_index_factory", &["nullptr"]).one_version(),
];

const NEW_COMPRESSION_OPTS: &str = "{checksum=false;max_dict_buffer_bytes=0;enabled=false;max_dict_bytes=0;\
    max_compressed_bytes_per_kb=896;parallel_threads=1;zstd_max_train_bytes=0;level=32767;\
    use_zstd_dict_trainer=true;strategy=0;window_bits=-14;}";

const DEFAULT_METADATA_CACHE_OPTIONS: &str = "{unpartitioned_pinning=kFallback;\
    partition_pinning=kFallback;top_level_index_pinning=kFallback;}";

/// Fields of nested structs that only newer versions of RocksDB know.
const KNOWN_NESTED: &[Known] = &[
    // Tables that change their temperature are rewritten, whatever it says.
    nested("allow_trivial_copy_when_change_temperature", &["false", "0", "true", "1"]),
    nested("checksum", &["false", "0"]),
    nested("max_compressed_bytes_per_kb", &["896"]),
    nested("reduce_file_locking", &["true", "1", "false", "0"]),
    nested("trivial_copy_buffer_size", &["4096"]),
    nested("ttl", &["0"]),
];

/// Rows of nested structs that RocksDB 7.8 does not know. They are written only if not at their
/// default.
pub(super) const NEWER_NESTED: &[&str] = &[
    "max_read_amp",
    "file_temperature_age_thresholds",
    "max_data_files_size",
    "use_kv_ratio_compaction",
];

const fn nested(name: &'static str, defaults: &'static [&'static str]) -> Known {
    Known {
        section: Section::Nested,
        name,
        defaults,
        in_both: false,
        any_number: false,
        kept: false,
    }
}

/// The known setting called `name`, outside nested structs.
pub fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Whether one of the tables has a row of that name.
pub(super) fn is_row(name: &str) -> bool {
    super::names::rows().any(|row| row.name == name)
}

/// Accepts a nested field that is not in `rows` if it is known and has its default.
///
/// # Errors
/// `NotSupported` for another value, `InvalidArgument` for an unknown name. Both have
/// [`SubCode::OtherRelease`], because some RocksDB from 7.8 on does not know the name.
pub(super) fn check_nested(name: &str, value: &str, rows: &[Row]) -> Result<()> {
    match KNOWN_NESTED.iter().find(|known| known.name == name) {
        Some(known) if known.accepts(value) => Ok(()),
        Some(known) => Err(known.refusal().context(format!("'{name}'"))),
        None => {
            let names: Vec<_> = rows.iter().map(|row| row.name).collect();
            Err(Error::invalid_argument(format!("'{name}' is not one of {}", names.join(", "))))
        }
    }
    .map_err(|error: Error| error.with_subcode(SubCode::OtherRelease))
}

#[cfg(test)]
mod tests;
