//! The options that lives draw, by RocksDB's names.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// Who is given an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Both,
    Flagstone,
    RocksDb,
}
use Given::{Both, Flagstone, RocksDb};

/// An option, and the values tried; likelier ones more than once.
type Choice = (Given, &'static str, &'static [&'static str]);

const BOOL: &[&str] = &["false", "true"];

/// What RocksDB is linked with, and Flagstone has as well.
const COMPRESSIONS: &[&str] =
    &["kNoCompression", "kSnappyCompression", "kLZ4Compression", "kLZ4HCCompression", "kZSTD"];

const TEMPERATURES: &[&str] = &["kUnknown", "kHot", "kWarm", "kCold"];

/// Of the database.
const DATABASE: &[Choice] = &[
    (Both, "max_background_jobs", &["1", "2", "4"]),
    (Both, "max_subcompactions", &["1", "2", "4"]),
    (Both, "max_total_wal_size", &["0", "30000"]),
    (Both, "db_write_buffer_size", &["0", "0", "200000"]),
    (Both, "avoid_flush_during_shutdown", BOOL),
    (Both, "avoid_flush_during_recovery", BOOL),
    (Both, "max_open_files", &["-1", "-1", "20"]),
    (Both, "bytes_per_sync", &["0", "4096"]),
    (Both, "wal_bytes_per_sync", &["0", "4096"]),
    (Both, "strict_bytes_per_sync", BOOL),
    (Both, "atomic_flush", &["false", "false", "true"]),
    (Both, "recycle_log_file_num", &["0", "0", "1", "3"]),
    (Both, "manual_wal_flush", BOOL),
    (Both, "allow_fallocate", BOOL),
    (Both, "WAL_ttl_seconds", &["0", "0", "0", "1000"]),
    (Both, "WAL_size_limit_MB", &["0", "0", "0", "1"]),
    (Both, "wal_compression", &["kNoCompression", "kZSTD"]),
    (
        Both,
        "wal_recovery_mode",
        // Not `kAbsoluteConsistency`: it takes the old records after the end of a recycled WAL,
        // which a killed process leaves, for damage.
        &[
            "kPointInTimeRecovery",
            "kPointInTimeRecovery",
            "kSkipAnyCorruptedRecords",
            "kTolerateCorruptedTailRecords",
        ],
    ),
    (Both, "max_manifest_file_size", &["1", "500", "5000", "1073741824"]),
    (Both, "manifest_preallocation_size", &["0", "1000", "100000"]),
    (Both, "verify_sst_unique_id_in_manifest", BOOL),
    (Both, "writable_file_max_buffer_size", &["4096", "1048576"]),
    (Both, "compaction_readahead_size", &["0", "5000", "2097152"]),
    (Both, "log_readahead_size", &["0", "5000"]),
    (Both, "skip_stats_update_on_db_open", BOOL),
    (Both, "write_dbid_to_manifest", BOOL),
    (Both, "allow_concurrent_memtable_write", BOOL),
    (Both, "use_direct_reads", &["false", "false", "true"]),
    (Both, "use_direct_io_for_flush_and_compaction", &["false", "false", "true"]),
    (Flagstone, "wal_write_mode", &["mapped", "mapped", "plain"]),
    (Flagstone, "reserved_disk_space", &["0", "0", "20000"]),
    (RocksDb, "track_and_verify_wals_in_manifest", BOOL),
    (RocksDb, "track_and_verify_wals", BOOL),
    (RocksDb, "enable_pipelined_write", BOOL),
    (RocksDb, "two_write_queues", BOOL),
    (RocksDb, "reuse_manifest_on_open", BOOL),
    (RocksDb, "max_manifest_space_amp_pct", &["0", "500"]),
    (RocksDb, "optimize_manifest_for_recovery", BOOL),
    (RocksDb, "verify_manifest_content_on_close", BOOL),
    (RocksDb, "async_wal_precreate", BOOL),
    (RocksDb, "background_close_inactive_wals", BOOL),
    (Both, "file_checksum_gen_factory", &["nullptr", "FileChecksumGenCrc32cFactory"]),
    (RocksDb, "allow_mmap_reads", BOOL),
    (RocksDb, "use_fsync", BOOL),
    (Both, "metadata_write_temperature", TEMPERATURES),
    (Both, "wal_write_temperature", TEMPERATURES),
    (RocksDb, "fast_sst_open", BOOL),
    (RocksDb, "write_identity_file", BOOL),
    (RocksDb, "allow_2pc", &["false", "false", "true"]),
    (RocksDb, "max_write_batch_group_size_bytes", &["1", "1048576"]),
];

/// Of a family. What stands in `table_factory` is of its tables together.
const FAMILY: &[Choice] = &[
    (Both, "write_buffer_size", &["65536", "100000"]),
    (Both, "max_write_buffer_number", &["2", "4"]),
    (Both, "min_write_buffer_number_to_merge", &["1", "1", "2"]),
    (Both, "level0_file_num_compaction_trigger", &["2", "4", "8"]),
    (Both, "disable_auto_compactions", &["false", "false", "true"]),
    (Both, "max_bytes_for_level_base", &["8192", "65536"]),
    (Both, "max_bytes_for_level_multiplier", &["2", "10"]),
    (Both, "target_file_size_base", &["2048", "8192", "65536"]),
    (Both, "target_file_size_multiplier", &["1", "2"]),
    (Both, "max_compaction_bytes", &["0", "30000"]),
    (Both, "level_compaction_dynamic_level_bytes", BOOL),
    (Both, "compaction_pri", &["kByCompensatedSize", "kMinOverlappingRatio", "kRoundRobin"]),
    (Both, "ttl", &["0", "1000", "2592000"]),
    (Both, "periodic_compaction_seconds", &["0", "1000"]),
    (
        Both,
        "compaction_options_universal",
        &[
            "{size_ratio=1;min_merge_width=2;}",
            "{size_ratio=100;max_merge_width=2;max_size_amplification_percent=25;allow_trivial_move=true;}",
            "{size_ratio=50;stop_style=kCompactionStopStyleSimilarSize;}",
            "{max_size_amplification_percent=50;incremental=true;}",
        ],
    ),
    (Both, "compaction_options_fifo", &["{allow_compaction=true;}", "{allow_compaction=false;}"]),
    (Both, "compression", COMPRESSIONS),
    (Both, "bottommost_compression", &["kDisableCompressionOption", "kNoCompression", "kZSTD"]),
    (
        Both,
        "compression_per_level",
        &["kNoCompression:kSnappyCompression:kZSTD", "kLZ4Compression"],
    ),
    (
        Both,
        "compression_opts",
        &[
            "{max_dict_bytes=0;}",
            "{max_dict_bytes=1000;}",
            "{max_dict_bytes=1000;zstd_max_train_bytes=10000;}",
            "{max_dict_bytes=300;max_dict_buffer_bytes=2000;}",
        ],
    ),
    (
        Both,
        "bottommost_compression_opts",
        &["{enabled=true;max_dict_bytes=2000;zstd_max_train_bytes=20000;}"],
    ),
    (Both, "paranoid_file_checks", BOOL),
    (Both, "max_successive_merges", &["0", "3"]),
    (Both, "optimize_filters_for_hits", BOOL),
    (Both, "memtable_factory", &["skip_list", "skip_list", "vector"]),
    (Both, "memtable_prefix_bloom_size_ratio", &["0.0", "0.1"]),
    (Both, "memtable_whole_key_filtering", BOOL),
    (Both, "max_sequential_skip_in_iterations", &["0", "1", "8"]),
    (Both, "prefix_extractor", &["nullptr", "fixed:3", "capped:4"]),
    (Both, "enable_blob_files", BOOL),
    (Both, "min_blob_size", &["0", "10", "100", "500"]),
    (Both, "blob_file_size", &["1", "2000", "100000"]),
    (Both, "blob_compression_type", COMPRESSIONS),
    (Both, "enable_blob_garbage_collection", BOOL),
    (Both, "blob_garbage_collection_age_cutoff", &["0.25", "1.0"]),
    (Both, "blob_garbage_collection_force_threshold", &["0.3", "1.0"]),
    (Both, "blob_file_starting_level", &["0", "0", "1"]),
    (Flagstone, "blob_write_mode", &["commit", "flush"]),
    (Flagstone, "blob_commit_min_size", &["0", "100", "4096"]),
    (Flagstone, "blob_punch_holes", BOOL),
    (Flagstone, "max_space_amplification", &["0", "1.1", "1.3"]),
    (Flagstone, "burst_space_amplification", &["0", "2.2"]),
    (Flagstone, "deletion_compaction_delay", &["0", "1", "20"]),
    (Both, "preserve_internal_time_seconds", &["0", "1000"]),
    (Both, "preclude_last_level_data_seconds", &["0", "1000"]),
    (Both, "last_level_temperature", TEMPERATURES),
    (Both, "default_write_temperature", TEMPERATURES),
    (Both, "memtable_protection_bytes_per_key", &["0", "8"]),
    (RocksDb, "block_protection_bytes_per_key", &["0", "8"]),
    (RocksDb, "memtable_max_range_deletions", &["0", "1"]),
    (RocksDb, "min_tombstones_for_range_conversion", &["0", "2"]),
    (RocksDb, "bottommost_file_compaction_delay", &["0", "1000"]),
    (RocksDb, "sample_for_compression", &["0", "2"]),
    (RocksDb, "target_file_size_is_upper_bound", BOOL),
    (RocksDb, "level_compaction_dynamic_file_size", BOOL),
    (RocksDb, "ignore_max_compaction_bytes_for_input", BOOL),
    (
        RocksDb,
        "sst_partitioner_factory",
        &["nullptr", "{id=SstPartitionerFixedPrefixFactory;length=3;}"],
    ),
    (RocksDb, "enable_blob_direct_write", &["false", "false", "true"]),
    (RocksDb, "blob_direct_write_partitions", &["1", "3"]),
];

/// Of a family's tables.
const TABLE: &[Choice] = &[
    (Both, "block_size", &["64", "256", "1024", "4096"]),
    (Both, "block_size_deviation", &["0", "10", "50"]),
    (Both, "block_restart_interval", &["1", "4", "16"]),
    (Both, "index_block_restart_interval", &["1", "2", "16"]),
    (Both, "metadata_block_size", &["128", "4096"]),
    (Both, "format_version", &["2", "3", "4", "5", "6", "7"]),
    (Both, "checksum", &["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"]),
    (
        Both,
        "index_type",
        &["kBinarySearch", "kTwoLevelIndexSearch", "kBinarySearchWithFirstKey", "kHashSearch"],
    ),
    (Both, "partition_filters", BOOL),
    (
        Both,
        "index_shortening",
        &["kNoShortening", "kShortenSeparators", "kShortenSeparatorsAndSuccessor"],
    ),
    (Both, "enable_index_compression", BOOL),
    (Both, "verify_compression", BOOL),
    (Both, "data_block_index_type", &["kDataBlockBinarySearch", "kDataBlockBinaryAndHash"]),
    (Both, "data_block_hash_table_util_ratio", &["0.75", "3.0"]),
    (
        Both,
        "filter_policy",
        &["nullptr", "bloomfilter:10:false", "ribbonfilter:10", "ribbonfilter:8:2"],
    ),
    (Both, "whole_key_filtering", BOOL),
    (Both, "cache_index_and_filter_blocks", BOOL),
    (Both, "block_align", &["false", "false", "false", "true"]),
    (Flagstone, "filter_bits_per_level", &["14:0:6", "3"]),
    (RocksDb, "use_delta_encoding", BOOL),
    (RocksDb, "separate_key_value_in_data_block", &["false", "false", "true"]),
    (RocksDb, "index_block_search_type", &["kBinary", "kInterpolation", "kAuto"]),
    (RocksDb, "uniform_cv_threshold", &["-1", "0.2"]),
    (RocksDb, "decouple_partitioned_filters", BOOL),
    (RocksDb, "optimize_filters_for_memory", BOOL),
    (Both, "super_block_alignment_size", &["0", "512", "4096"]),
    (Both, "super_block_alignment_space_overhead_ratio", &["4", "128"]),
    (RocksDb, "detect_filter_construct_corruption", BOOL),
    (RocksDb, "read_amp_bytes_per_bit", &["0", "8"]),
    (
        RocksDb,
        "flush_block_policy_factory",
        &["FlushBlockBySizePolicyFactory", "FlushBlockEveryKeyPolicyFactory"],
    ),
];

/// What of a family is changed while it is open, too, whatever else it has.
const CHANGED_WHILE_OPEN: [&str; 24] = [
    "write_buffer_size",
    "max_write_buffer_number",
    "level0_file_num_compaction_trigger",
    "disable_auto_compactions",
    "max_bytes_for_level_multiplier",
    "target_file_size_base",
    "target_file_size_multiplier",
    "max_compaction_bytes",
    "periodic_compaction_seconds",
    "compaction_options_universal",
    "paranoid_file_checks",
    "max_successive_merges",
    "max_sequential_skip_in_iterations",
    "enable_blob_files",
    "min_blob_size",
    "blob_file_size",
    "blob_compression_type",
    "enable_blob_garbage_collection",
    "blob_garbage_collection_age_cutoff",
    "blob_garbage_collection_force_threshold",
    "blob_file_starting_level",
    "block_size",
    "block_size_deviation",
    "block_restart_interval",
];

/// What not every file system permits.
pub const DIRECT: [&str; 2] = ["use_direct_reads", "use_direct_io_for_flush_and_compaction"];

/// Options by name, those of tables apart.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    plain: BTreeMap<&'static str, (Given, String)>,
    table: BTreeMap<&'static str, (Given, String)>,
}

impl Settings {
    /// Half of the draws differ from the defaults in a few options, since what breaks in pairs is
    /// found sooner where nothing else is in the way; the others in all.
    fn draw(random: &mut SmallRng, plain: &[Choice], table: &[Choice], without: &[String]) -> Self {
        let all = plain
            .iter()
            .map(|choice| (choice, false))
            .chain(table.iter().map(|choice| (choice, true)));
        let mut all: Vec<_> = all.collect();
        if random.random_bool(0.5) {
            all.shuffle(random);
            all.truncate(random.random_range(0..8));
        }
        let mut drawn = Self::default();
        for (&(given, name, values), is_of_tables) in all {
            let value = values[random.random_range(0..values.len())];
            if without.iter().any(|left_out| left_out == name) {
                continue;
            }
            let place = if is_of_tables { &mut drawn.table } else { &mut drawn.plain };
            place.insert(name, (given, value.to_string()));
        }
        drawn
    }

    /// Of a database.
    pub fn of_database(random: &mut SmallRng, without: &[String]) -> Self {
        Self::draw(random, DATABASE, &[], without)
    }

    /// Of a family.
    pub fn of_family(random: &mut SmallRng, without: &[String]) -> Self {
        Self::draw(random, FAMILY, TABLE, without)
    }

    /// Some of a family, for a change while it is open.
    pub fn of_change(random: &mut SmallRng, without: &[String]) -> Self {
        let mut drawn = Self::draw(random, FAMILY, TABLE, without);
        for of in [&mut drawn.plain, &mut drawn.table] {
            of.retain(|name, (given, _)| *given == Both && CHANGED_WHILE_OPEN.contains(name));
        }
        if drawn.is("max_write_buffer_number", "2") {
            // With min_write_buffer_number_to_merge=2, which RocksDB lowers only at an opening, no
            // flush would ever begin.
            drawn.leave_out(&["max_write_buffer_number"]);
        }
        drawn
    }

    pub fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.table.is_empty()
    }

    /// Gives both engines this option.
    pub fn set(&mut self, name: &'static str, value: &str) {
        self.plain.insert(name, (Both, value.to_string()));
    }

    /// Large values go to blob files when memtables are flushed, which is RocksDB's way.
    pub fn write_blobs_at_flushes(&mut self) {
        self.plain.insert("blob_write_mode", (Flagstone, "flush".to_string()));
    }

    /// RocksDB 11.8 crashes when it opens a database for reading of which the MANIFEST tracks WALs,
    /// unless it is to verify them.
    pub fn verify_tracked_wals(&mut self) {
        self.plain.insert("track_and_verify_wals_in_manifest", (RocksDb, "true".to_string()));
    }

    /// The value of an option, if it was drawn.
    pub fn get(&self, name: &str) -> &str {
        self.plain.get(name).or_else(|| self.table.get(name)).map_or("", |(_, value)| value)
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == value
    }

    /// Without these.
    pub fn leave_out(&mut self, names: &[&'static str]) {
        for name in names {
            self.plain.remove(name);
            self.table.remove(name);
        }
    }

    /// Leaves out what an engine refuses together with the rest.
    pub fn make_legal(&mut self) {
        if self.is("write_dbid_to_manifest", "false") {
            // Its identity must stand somewhere.
            self.leave_out(&["write_identity_file"]);
        }
        if self.is("atomic_flush", "true") {
            self.leave_out(&["enable_pipelined_write"]);
        }
        if DIRECT.iter().any(|name| self.is(name, "true")) {
            self.leave_out(&["allow_mmap_reads"]);
        }
        if self.is("two_write_queues", "true") {
            // RocksDB keeps what a WAL buffers to itself then.
            self.leave_out(&["enable_pipelined_write"]);
        }
        if self.is("allow_concurrent_memtable_write", "false") {
            // Blob direct write goes with one queue of writers alone.
            self.leave_out(&["two_write_queues", "enable_pipelined_write"]);
        }
        if self.is("index_type", "kHashSearch")
            && ["", "nullptr"].contains(&self.get("prefix_extractor"))
        {
            self.leave_out(&["index_type"]);
        }
        if self.is("index_type", "kHashSearch") {
            // RocksDB 11.8 takes bytes behind a key for its prefix if it is shorter, and does not
            // find it.
            self.set("prefix_extractor", "capped:4");
            // Set by text, it is heeded there, and RocksDB does not read the tables that it writes.
            self.leave_out(&["index_block_restart_interval"]);
        }
        if !self.is("index_type", "kTwoLevelIndexSearch") {
            self.leave_out(&["partition_filters"]);
        }
        if self.is("comparator", super::life::REVERSE) {
            self.leave_out(&["index_block_search_type"]);
        }
        if self.is("block_align", "true") {
            self.leave_out(&[
                "bottommost_compression",
                "compression_per_level",
                "super_block_alignment_size",
            ]);
            self.set("compression", "kNoCompression");
        }
        if self.is("compaction_style", "kCompactionStyleFIFO") {
            self.leave_out(&["preclude_last_level_data_seconds", "last_level_temperature"]);
            // Nothing is dropped for its age or size.
            self.set("ttl", "0");
        }
        if self.is("compaction_style", "kCompactionStyleUniversal") {
            // RocksDB 11.8 takes what it holds back from the last level for too much above it,
            // again and again.
            self.leave_out(&["preclude_last_level_data_seconds"]);
        }
        if self.is("preclude_last_level_data_seconds", "1000") {
            // And so it does in leveled compaction, as soon as it is more than that level is to
            // hold.
            self.set("max_bytes_for_level_base", "268435456");
        }
        if !self.is("enable_blob_files", "true") {
            self.leave_out(&["enable_blob_direct_write"]);
        }
        if self.is("preserve_internal_time_seconds", "1000")
            || self.is("preclude_last_level_data_seconds", "1000")
        {
            self.leave_the_last_level();
        }
    }

    /// RocksDB 11.8 else compacts a table of the last level again and again, for the sequence
    /// numbers that it keeps.
    pub fn leave_the_last_level(&mut self) {
        self.plain.insert("bottommost_file_compaction_delay", (RocksDb, "1000".to_string()));
    }

    /// Whether a family with these wants a database with `allow_concurrent_memtable_write=false`.
    pub fn wants_writers_one_by_one(&self) -> bool {
        self.is("memtable_factory", "vector") || self.is("enable_blob_direct_write", "true")
    }

    /// For [`Flagstone`], one by one.
    pub fn own_of_flagstone(&self) -> Vec<(String, String)> {
        self.all_but(RocksDb)
    }

    /// For RocksDB, one by one.
    pub fn own_of_rocksdb(&self) -> Vec<(String, String)> {
        self.all_but(Flagstone)
    }

    fn all_but(&self, other: Given) -> Vec<(String, String)> {
        let own = |from: &BTreeMap<&str, (Given, String)>| -> Vec<(String, String)> {
            let taken = from.iter().filter(|(_, (given, _))| *given != other);
            taken.map(|(name, (_, value))| (name.to_string(), value.clone())).collect()
        };
        let (mut plain, table) = (own(&self.plain), own(&self.table));
        // A factory as a whole is looked at as a whole, as its parts go together.
        let table: Vec<_> = table.iter().map(|(name, value)| format!("{name}={value};")).collect();
        if !table.is_empty() {
            plain
                .push(("block_based_table_factory".to_string(), format!("{{{}}}", table.concat())));
        }
        plain
    }

    /// For RocksDB, in its syntax.
    pub fn text_for_rocksdb(&self) -> String {
        self.own_of_rocksdb().iter().map(|(name, value)| format!("{name}={value};")).collect()
    }
}
