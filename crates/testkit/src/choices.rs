//! Every option that a history may vary, with the values tried.

/// Whose option it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The database's.
    Database,
    /// A family's.
    Family,
}

/// When it may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// While the database is open.
    Live,
    /// When it is opened.
    Reopening,
    /// Not after its creation.
    Never,
}

/// One option.
#[derive(Debug)]
pub struct Choice {
    /// As it is set.
    pub name: &'static str,
    /// The values tried; likelier ones more than once.
    pub values: &'static [&'static str],
    /// Whose it is.
    pub scope: Scope,
    /// When it may change.
    pub change: Change,
}

/// The style that drops data by itself.
pub const FIFO: &str = "kCompactionStyleFIFO";

const BOOL: &[&str] = &["false", "true"];

const TEMPERATURES: &[&str] = &["kUnknown", "kUnknown", "kHot", "kCold"];

const COMPRESSIONS: &[&str] = &[
    "kNoCompression",
    "kSnappyCompression",
    "kLZ4Compression",
    "kLZ4HCCompression",
    "kZSTD",
    "kZlibCompression",
    "kBZip2Compression",
];

macro_rules! choices {
    ($($scope:ident $change:ident { $($name:literal: $values:expr,)+ })+) => {
        &[$($(Choice {
            name: $name,
            values: $values,
            scope: Scope::$scope,
            change: Change::$change,
        },)+)+]
    };
}

/// All of them. The numbers of bytes suit databases of some ten to some hundred kilobytes.
pub const CHOICES: &[Choice] = choices! {
    Database Live {
        "max_background_jobs": &["1", "2", "4"],
        "max_background_flushes": &["-1", "-1", "1", "2"],
        "max_background_compactions": &["-1", "-1", "1", "3"],
        "max_subcompactions": &["1", "2", "3", "20"],
        "max_total_wal_size": &["0", "3000", "10000"],
        "db_write_buffer_size": &["0", "5000", "20000", "200000"],
        "block_cache_miss_percent": &["0", "2", "2", "100"],
        "unused_memory_seconds": &["1", "60"],
        "avoid_flush_during_shutdown": BOOL,
        "stats_persist_period_sec": &["600", "0", "1"],
        "stats_dump_period_sec": &["600", "0", "1"],
        "stats_history_buffer_size": &["1048576", "0", "2000"],
        "max_open_files": &["-1", "-1", "0"],
        "bytes_per_sync": &["0", "0", "4096"],
        "wal_bytes_per_sync": &["0", "0", "4096"],
        "delayed_write_rate": &["0", "1000", "1000000"],
        "writable_file_max_buffer_size": &["4096", "8192", "1048576"],
        "compaction_readahead_size": &["0", "1", "5000", "2097152"],
    }
    Database Reopening {
        "atomic_flush": &["false", "false", "true"],
        "paranoid_checks": &["true", "true", "false"],
        "enable_thread_tracking": BOOL,
        "wal_recovery_mode": &[
            "kPointInTimeRecovery",
            "kPointInTimeRecovery",
            "kTolerateCorruptedTailRecords",
            "kAbsoluteConsistency",
            "kSkipAnyCorruptedRecords",
        ],
        "recycle_log_file_num": &["0", "0", "1", "3"],
        "info_log": &["off", "off", "file"],
        "info_log_level": &["INFO_LEVEL", "DEBUG_LEVEL", "WARN_LEVEL", "HEADER_LEVEL"],
        "max_log_file_size": &["16777216", "0", "1", "3000"],
        "log_file_time_to_roll": &["0", "1"],
        "keep_log_file_num": &["10", "1", "2"],
        "wal_write_mode": &["mapped", "mapped", "plain"],
        "readable_by_rocksdb_secondaries": &["false", "false", "true"],
        "publish_figures": &["true", "false"],
        "follower_refresh_catchup_period_ms": &["10000", "0", "100"],
        "follower_catchup_retry_count": &["10", "0", "1"],
        "follower_catchup_retry_wait_ms": &["100", "0", "1000"],
        "manual_wal_flush": &["false", "false", "true"],
        "background_niceness": &["0", "5"],
        "strict_bytes_per_sync": BOOL,
        "allow_fallocate": &["true", "true", "false"],
        "background_idle_io": BOOL,
        "wal_write_temperature": TEMPERATURES,
        "metadata_write_temperature": TEMPERATURES,
        "file_checksum_gen_factory": &["nullptr", "nullptr", "FileChecksumGenCrc32cFactory"],
        "cache_policy": &["lru", "lru", "fifo", "lfu", "slru", "s4lru", "s3_fifo", "sieve", "w_tiny_lfu"],
        "WAL_ttl_seconds": &["0", "0", "0", "1"],
        "WAL_size_limit_MB": &["0", "0", "0", "1"],
        "wal_compression": &["kNoCompression", "kZSTD"],
        "log_readahead_size": &["0", "0", "1", "5000", "100000"],
        "manifest_preallocation_size": &["0", "0", "1000", "4194304"],
        "max_manifest_file_size": &["1", "500", "5000", "1073741824"],
        "avoid_flush_during_recovery": BOOL,
        "verify_sst_unique_id_in_manifest": BOOL,
        "use_direct_reads": BOOL,
        "allow_mmap_reads": BOOL,
        "use_direct_io_for_flush_and_compaction": BOOL,
        "rate_limiter_bytes_per_sec": &["0", "0", "4g"],
        "rate_limiter_auto_tuned": BOOL,
        "block_cache": &[
            "0",
            "1000",
            "20000",
            "300000",
            "8388608",
            "{capacity=20000;num_shard_bits=0;high_pri_pool_ratio=1.0;}",
            "{capacity=100000;num_shard_bits=3;high_pri_pool_ratio=0.0;}",
        ],
        "blob_cache": &["nullptr", "nullptr", "1000", "{capacity=100000;num_shard_bits=1;}"],
        "row_cache": &["0", "0", "2000", "100000"],
        "compressed_secondary_cache_size": &["0", "0", "20000", "1048576"],
        "memory_budget": &["0", "auto", "8388608"],
        "reserved_disk_space": &["0", "0", "0", "20000"],
    }
    Database Never {
        "allow_ingest_behind": &["false", "false", "true"],
        "encryption": &["off", "off"],
        "wal_dir": &["", "/wal"],
        "db_paths": &["", "", "/fast"],
    }
    Family Live {
        "write_buffer_size": &["1024", "4096", "16384", "65536"],
        "memtable_prefix_bloom_size_ratio": &["0.0", "0.01", "0.25"],
        "memtable_whole_key_filtering": BOOL,
        "memtable_protection_bytes_per_key": &["0", "0", "1", "8"],
        "block_protection_bytes_per_key": &["0", "0", "1", "8"],
        "max_write_buffer_number": &["2", "3", "4", "6"],
        "level0_file_num_compaction_trigger": &["0", "1", "2", "4", "8"],
        "level0_slowdown_writes_trigger": &["-1", "2", "20"],
        "level0_stop_writes_trigger": &["3", "6", "36"],
        "soft_pending_compaction_bytes_limit": &["0", "20000", "68719476736"],
        "hard_pending_compaction_bytes_limit": &["0", "50000", "274877906944"],
        "disable_auto_compactions": &["false", "false", "false", "true"],
        "max_bytes_for_level_base": &["2048", "8192", "65536"],
        "max_bytes_for_level_multiplier": &["1", "2", "10"],
        "max_bytes_for_level_multiplier_additional": &["1:2:1:1:1:1:1", "1", "3:1:1"],
        "target_file_size_base": &["1", "1024", "4096", "65536"],
        "target_file_size_multiplier": &["1", "2"],
        "max_compaction_bytes": &["0", "10000"],
        "ttl": &["0", "100", "2592000"],
        "deletion_compaction_delay": &["0", "1", "20"],
        "periodic_compaction_seconds": &["0", "100"],
        "compaction_options_universal": &[
            "{size_ratio=1;min_merge_width=2;}",
            "{size_ratio=100;max_merge_width=2;max_size_amplification_percent=25;allow_trivial_move=true;}",
            "{size_ratio=0;min_merge_width=6;max_merge_width=4;stop_style=kCompactionStopStyleSimilarSize;}",
            "{size_ratio=50;stop_style=kCompactionStopStyleSimilarSize;allow_trivial_move=true;}",
            "{min_merge_width=0;max_merge_width=0;max_size_amplification_percent=4294967295;}",
            "{max_size_amplification_percent=0;compression_size_percent=50;}",
            "{max_size_amplification_percent=50;incremental=true;max_read_amp=0;}",
            "{max_size_amplification_percent=10;incremental=true;allow_trivial_move=true;max_read_amp=8;}",
            "{max_size_amplification_percent=1000;compression_size_percent=0;allow_trivial_move=true;}",
        ],
        "preserve_internal_time_seconds": &["0", "0", "1", "1000"],
        "preclude_last_level_data_seconds": &["0", "0", "1", "1000"],
        "last_level_temperature": TEMPERATURES,
        "default_write_temperature": TEMPERATURES,
        "compaction_options_fifo": &[
            "{max_table_files_size=15000;}",
            "{max_table_files_size=60000;allow_compaction=true;}",
            "{max_data_files_size=60000;}",
            "{max_data_files_size=60000;allow_compaction=true;use_kv_ratio_compaction=true;}",
        ],
        "compression": COMPRESSIONS,
        "bottommost_compression": &[
            "kDisableCompressionOption", "kNoCompression", "kZSTD", "kZlibCompression", "kLZ4HCCompression",
        ],
        "compression_opts": &[
            "{max_dict_bytes=0;}",
            "{level=1;}",
            "{level=9;parallel_threads=3;}",
            "{max_dict_bytes=1000;}",
            "{max_dict_bytes=1000;zstd_max_train_bytes=10000;}",
            "{max_dict_bytes=300;max_dict_buffer_bytes=2000;}",
        ],
        "bottommost_compression_opts": &[
            "{enabled=false;}",
            "{enabled=true;max_dict_bytes=2000;zstd_max_train_bytes=20000;}",
            "{enabled=true;level=3;}",
        ],
        "paranoid_file_checks": BOOL,
        "blob_compaction_readahead_size": &["0", "0", "300", "65536"],
        "max_successive_merges": &["0", "0", "1", "3"],
        "enable_blob_files": &["auto", "false", "true"],
        "min_blob_size": &["auto", "0", "10", "50", "500"],
        "blob_write_mode": &["auto", "commit", "commit", "flush"],
        "blob_commit_min_size": &["0", "20", "100", "4096"],
        "blob_commit_synced_min_size": &["0", "0", "100", "524288"],
        "cache_blobs": BOOL,
        "prepopulate_blob_cache": &["kDisable", "kFlushOnly"],
        "blob_file_size": &["1", "2000", "20000", "1000000"],
        "blob_compression_type": &["auto", "kNoCompression", "kSnappyCompression", "kLZ4Compression", "kZSTD"],
        "enable_blob_garbage_collection": BOOL,
        "blob_garbage_collection_age_cutoff": &["0.0", "0.25", "0.75", "1.0"],
        "blob_garbage_collection_force_threshold": &["0.0", "0.3", "1.0"],
        "blob_punch_holes": &["true", "true", "false"],
        "max_space_amplification": &["0", "1.0", "1.1", "1.3", "1.3", "2.0"],
        "burst_space_amplification": &["0", "0", "1.2", "2.2"],
        "blob_file_starting_level": &["0", "0", "1", "3"],
        "blob_entity_columns": &["true", "false"],
        "max_sequential_skip_in_iterations": &["0", "1", "8"],
        "table.block_size": &["1", "128", "1024", "4096"],
        "table.block_size_deviation": &["0", "10", "50"],
        "table.block_restart_interval": &["1", "4", "16"],
        "table.index_block_restart_interval": &["1", "2", "16"],
        "table.metadata_block_size": &["1", "128", "4096"],
        "table.format_version": &["2", "3", "4", "5", "6", "7"],
        "table.checksum": &["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"],
        "table_factory": &[
            "{index_type=kBinarySearch;partition_filters=false;}",
            "{index_type=kTwoLevelIndexSearch;partition_filters=false;}",
            "{index_type=kTwoLevelIndexSearch;partition_filters=true;filter_policy=bloomfilter:5:false;}",
            "{index_type=kTwoLevelIndexSearch;partition_filters=true;filter_policy=ribbonfilter:5;}",
            "{index_type=kBinarySearchWithFirstKey;partition_filters=false;}",
            "{index_type=kHashSearch;partition_filters=false;}",
        ],
        "table.index_shortening": &["kNoShortening", "kShortenSeparators", "kShortenSeparatorsAndSuccessor"],
        "table.enable_index_compression": BOOL,
        "table.verify_compression": BOOL,
        "table.data_block_index_type": &["kDataBlockBinarySearch", "kDataBlockBinaryAndHash"],
        "table.data_block_hash_table_util_ratio": &["0.75", "0.1", "3.0"],
        "table.filter_policy": &["nullptr", "bloomfilter:10:false", "bloomfilter:1:false", "ribbonfilter:10",
            "ribbonfilter:8:2"],
        "table.filter_bits_per_level": &["", "", "14:0:6", "3"],
        "table.whole_key_filtering": &["true", "true", "false"],
        "table.no_block_cache": BOOL,
        "table.prepopulate_block_cache": &["kDisable", "kFlushOnly", "kFlushAndCompaction"],
        "table.cache_follows_compaction": BOOL,
        "table.initial_auto_readahead_size": &["0", "1", "300", "8192"],
        "table.max_auto_readahead_size": &["0", "1000", "262144"],
        "table.num_file_reads_for_auto_readahead": &["0", "1", "2"],
        "table.cache_index_and_filter_blocks": BOOL,
        "table.cache_index_and_filter_blocks_with_high_priority": BOOL,
        "table.pin_l0_filter_and_index_blocks_in_cache": BOOL,
        "table.block_align": &["false", "false", "true"],
        "table.super_block_alignment_size": &["0", "0", "512", "4096"],
        "table.super_block_alignment_space_overhead_ratio": &["4", "8", "128"],
    }
    Family Reopening {
        "default_temperature": TEMPERATURES,
        "memtable_factory": &[
            "SkipListFactory", "SkipListFactory", "skip_list", "vector", "prefix_hash:16", "hash_linkedlist",
        ],
        "arena_block_size": &["0", "1024", "1"],
        "optimize_filters_for_hits": BOOL,
        "min_write_buffer_number_to_merge": &["1", "1", "2", "3"],
        "compaction_style": &[
            "kCompactionStyleLevel", "kCompactionStyleLevel", "kCompactionStyleLevel", "kCompactionStyleUniversal",
            "kCompactionStyleUniversal", "kCompactionStyleNone", FIFO,
        ],
        "compaction_pri": &[
            "kByCompensatedSize",
            "kOldestLargestSeqFirst",
            "kOldestSmallestSeqFirst",
            "kMinOverlappingRatio",
            "kRoundRobin",
        ],
        "level_compaction_dynamic_level_bytes": BOOL,
        "compression_per_level": &["", "kNoCompression:kSnappyCompression:kZSTD", "kLZ4Compression"],
        "prefix_extractor": &["nullptr", "fixed:2", "fixed:4", "capped:3", "rocksdb.Noop"],
        "merge_operator": &["stringappend", "stringappendtest"],
        "sst_partitioner_factory": &[
            "nullptr",
            "nullptr",
            "{id=SstPartitionerFixedPrefixFactory;length=1;}",
            "{id=SstPartitionerFixedPrefixFactory;length=4;}",
        ],
        "table_properties_collectors": &[
            "",
            "{{id=CompactOnDeletionCollector;window_size=20;deletion_trigger=5;deletion_ratio=0.3;min_file_size=0;}}",
        ],
        "compaction_filter": &["nullptr", "nullptr", "testkit.SameAgain", "testkit.Thinning"],
        "compaction_filter_factory": &["nullptr", "nullptr", "testkit.SameAgain", "testkit.Thinning"],
    }
    Family Never {
        "cf_paths": &[
            "",
            "",
            "{path=/db;target_size=20000}:/slow",
            "{path=/fast;target_size=10000}:{path=/slow;target_size=60000}:/slower",
        ],
        "comparator": &[
            "leveldb.BytewiseComparator", "rocksdb.ReverseBytewiseComparator", "testkit.PlainOrder",
            "testkit.AnyCase", "testkit.AnyCase", "testkit.Padded", "testkit.Padded",
        ],
        "num_levels": &["2", "3", "7", "12"],
    }
};
