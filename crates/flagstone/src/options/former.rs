//! RocksDB's options of releases from 5.0 on, and a few older ones, that no release from 7.8 to
//! 11.9 writes any more.
//!
//! RocksDB silently ignores most of them. Here a value other than the former default is kept,
//! written again in a comment, and reported together with what became of the option.

use super::table::Section;

/// An option that RocksDB has removed or renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Former {
    /// Its section in an OPTIONS file.
    pub section: Section,
    /// RocksDB's name for it.
    pub name: &'static str,
    /// RocksDB's defaults, which ask for nothing.
    pub defaults: &'static [&'static str],
    /// What became of it, as the rest of a sentence.
    pub became: &'static str,
}

const fn former(
    section: Section,
    name: &'static str,
    defaults: &'static [&'static str],
    became: &'static str,
) -> Former {
    Former { section, name, defaults, became }
}

const DB: Section = Section::Db;
const CF: Section = Section::ColumnFamily;
const TABLE: Section = Section::Table;

/// All of them, by section and name.
pub const FORMER: &[Former] = &[
    former(
        DB,
        "allow_os_buffer",
        &["true"],
        "RocksDB 5.1 replaced it by use_direct_reads and use_direct_writes",
    ),
    former(
        DB,
        "base_background_compactions",
        &["-1", "1"],
        "RocksDB 7.0 removed it; see max_background_jobs",
    ),
    former(DB, "concurrent_prepare", &["false"], "RocksDB 5.10 renamed it two_write_queues"),
    former(DB, "disableDataSync", &["false"], "RocksDB 5.3 removed it, and always syncs"),
    former(DB, "disable_data_sync", &["false"], "RocksDB 5.3 removed it, and always syncs"),
    former(
        DB,
        "new_table_reader_for_compaction_inputs",
        &["true", "false"],
        "RocksDB 7.0 removed it; compactions read ahead on their own",
    ),
    former(DB, "preserve_deletes", &["false"], "RocksDB 7.0 removed it"),
    former(
        DB,
        "rate_limiter",
        &["nullptr"],
        "RocksDB 7.4 no longer writes it; see rate_limiter_bytes_per_sec",
    ),
    former(
        DB,
        "seq_per_batch",
        &["false"],
        "RocksDB 5.10 removed it, and follows from the kind of transactions",
    ),
    former(
        DB,
        "skip_log_error_on_recovery",
        &["false"],
        "RocksDB replaced it by wal_recovery_mode",
    ),
    former(
        DB,
        "use_direct_writes",
        &["false"],
        "RocksDB 5.4 replaced it by use_direct_io_for_flush_and_compaction",
    ),
    former(
        CF,
        "bottommost_temperature",
        &["kUnknown"],
        "RocksDB 7.6 renamed it last_level_temperature",
    ),
    former(
        CF,
        "compaction_measure_io_stats",
        &["false"],
        "RocksDB replaced it by report_bg_io_stats",
    ),
    former(
        CF,
        "expanded_compaction_factor",
        &["25"],
        "RocksDB replaced it by max_compaction_bytes",
    ),
    former(
        CF,
        "experimental_allow_mempurge",
        &["false"],
        "RocksDB 6.24 replaced it by experimental_mempurge_threshold",
    ),
    former(
        CF,
        "experimental_mempurge_policy",
        &["kAlways", "kAlternate"],
        "RocksDB replaced it by experimental_mempurge_threshold",
    ),
    former(CF, "filter_deletes", &["false"], "RocksDB removed it"),
    former(
        CF,
        "hard_rate_limit",
        &["0"],
        "RocksDB replaced it by hard_pending_compaction_bytes_limit",
    ),
    former(
        CF,
        "max_grandparent_overlap_factor",
        &["10"],
        "RocksDB replaced it by max_compaction_bytes",
    ),
    former(
        CF,
        "max_mem_compaction_level",
        &["0", "2"],
        "RocksDB removed it, and flushes to level 0",
    ),
    former(
        CF,
        "memtable_prefix_bloom_bits",
        &["0"],
        "RocksDB replaced it by memtable_prefix_bloom_size_ratio",
    ),
    former(
        CF,
        "memtable_prefix_bloom_huge_page_tlb_size",
        &["0"],
        "RocksDB renamed it memtable_huge_page_size",
    ),
    former(
        CF,
        "memtable_prefix_bloom_probes",
        &["6"],
        "RocksDB replaced it by memtable_prefix_bloom_size_ratio",
    ),
    former(
        CF,
        "memtable_veirfy_per_key_checksum_on_seek",
        &["false"],
        "it is memtable_verify_per_key_checksum_on_seek as RocksDB misspelt it up to 11.1",
    ),
    former(
        CF,
        "min_partial_merge_operands",
        &["2"],
        "RocksDB 5.3 removed it; the merge operator decides",
    ),
    former(
        CF,
        "purge_redundant_kvs_while_flush",
        &["true"],
        "RocksDB 5.9 removed it, and always does so",
    ),
    former(CF, "rate_limit_delay_max_milliseconds", &["100", "1000"], "RocksDB removed it"),
    former(CF, "snap_refresh_nanos", &["0", "100000000"], "RocksDB 6.6 removed it"),
    former(
        CF,
        "soft_rate_limit",
        &["0"],
        "RocksDB replaced it by soft_pending_compaction_bytes_limit",
    ),
    former(CF, "source_compaction_factor", &["1"], "RocksDB replaced it by max_compaction_bytes"),
    former(
        CF,
        "verify_checksums_in_compaction",
        &["true"],
        "RocksDB 5.3 removed it, and always verifies",
    ),
    former(
        TABLE,
        "index_per_partition",
        &["1024"],
        "RocksDB 5.4 replaced it by metadata_block_size",
    ),
    former(
        TABLE,
        "reserve_table_builder_memory",
        &["false"],
        "RocksDB 7.3 replaced it by cache_usage_options",
    ),
    former(
        TABLE,
        "reserve_table_reader_memory",
        &["false"],
        "RocksDB 7.3 replaced it by cache_usage_options",
    ),
    former(TABLE, "skip_table_builder_flush", &["false"], "RocksDB 5.3 removed it"),
];

impl Former {
    /// Whether `value` asked for nothing.
    pub fn accepts(&self, value: &str) -> bool {
        self.defaults.iter().any(|default| super::known::same_text(default, value))
    }
}

/// The former option called `name`.
pub fn find(name: &str) -> Option<&'static Former> {
    FORMER.iter().find(|former| former.name == name)
}

#[cfg(test)]
mod tests;
