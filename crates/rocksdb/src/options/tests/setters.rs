use super::options_file;
use crate::cache::Cache;
use crate::options::{
    BlockBasedIndexType, BlockBasedOptions, BlockBasedTablePinningTier, ChecksumType,
    CompactionPri, DBCompactionStyle, DBCompressionType, DBPath, DBRecoveryMode,
    DataBlockIndexType, FifoCompactOptions, LogLevel, MemtableFactory, Options,
    UniversalCompactOptions, UniversalCompactionStopStyle,
};
use crate::slice_transform::SliceTransform;

/// A call, and a line of the OPTIONS file that it makes.
type Case = (fn(&mut Options), &'static str);

const DATABASE: &[Case] = &[
    (|o| o.create_if_missing(true), "create_if_missing=true"),
    (|o| o.create_missing_column_families(true), "create_missing_column_families=true"),
    (|o| o.set_error_if_exists(true), "error_if_exists=true"),
    (|o| o.set_paranoid_checks(false), "paranoid_checks=false"),
    (
        |o| o.set_db_paths(&[DBPath::new("/fast", 7).unwrap()]),
        "# flagstone:db_paths={path=/fast;target_size=7;}",
    ),
    (
        |o| o.set_cf_paths(&[DBPath::new("/slow", 8).unwrap()]),
        "# flagstone:cf_paths={path=/slow;target_size=8;}",
    ),
    (|o| o.increase_parallelism(5), "max_background_jobs=5"),
    (|o| o.set_max_background_jobs(3), "max_background_jobs=3"),
    (|o| o.set_max_background_jobs(0), "max_background_jobs=1"),
    (
        #[expect(deprecated, reason = "programs call it")]
        |o| o.set_max_background_compactions(3),
        "max_background_compactions=3",
    ),
    (
        #[expect(deprecated, reason = "programs call it")]
        |o| o.set_max_background_flushes(0),
        "max_background_flushes=1",
    ),
    (|o| o.set_max_subcompactions(3), "max_subcompactions=3"),
    (|o| o.set_max_open_files(100), "max_open_files=100"),
    (|o| o.set_max_file_opening_threads(3), "max_file_opening_threads=3"),
    (|o| o.set_use_fsync(true), "use_fsync=true"),
    (|o| o.set_bytes_per_sync(1024), "bytes_per_sync=1024"),
    (|o| o.set_writable_file_max_buffer_size(8192), "writable_file_max_buffer_size=8192"),
    (|o| o.set_use_direct_reads(true), "use_direct_reads=true"),
    (|o| o.set_allow_ingest_behind(true), "allow_ingest_behind=true"),
    (
        |o| o.set_use_direct_io_for_flush_and_compaction(true),
        "use_direct_io_for_flush_and_compaction=true",
    ),
    (
        #[expect(deprecated, reason = "programs call it")]
        |o| o.set_allow_os_buffer(false),
        "use_direct_reads=true",
    ),
    (|o| o.set_allow_mmap_reads(true), "allow_mmap_reads=true"),
    (|o| o.set_allow_mmap_writes(true), "allow_mmap_writes=true"),
    (|o| o.set_is_fd_close_on_exec(false), "is_fd_close_on_exec=false"),
    (|o| o.set_advise_random_on_open(false), "advise_random_on_open=false"),
    (|o| o.set_compaction_readahead_size(4096), "compaction_readahead_size=4096"),
    (|o| o.set_delete_obsolete_files_period_micros(7), "delete_obsolete_files_period_micros=7"),
    (|o| o.set_avoid_unnecessary_blocking_io(true), "avoid_unnecessary_blocking_io=true"),
    (|o| o.set_table_cache_num_shard_bits(4), "table_cache_numshardbits=4"),
    (|o| o.set_use_adaptive_mutex(true), "use_adaptive_mutex=true"),
    (|o| o.set_skip_stats_update_on_db_open(true), "skip_stats_update_on_db_open=true"),
    (|o| o.set_db_write_buffer_size(1 << 20), "db_write_buffer_size=1048576"),
];

const WAL: &[Case] = &[
    (|o| o.set_wal_dir("/wal"), "wal_dir=/wal"),
    (|o| o.set_wal_compression_type(DBCompressionType::Zstd), "wal_compression=kZSTD"),
    (
        |o| o.set_wal_recovery_mode(DBRecoveryMode::AbsoluteConsistency),
        "wal_recovery_mode=kAbsoluteConsistency",
    ),
    (|o| o.set_max_total_wal_size(1 << 20), "max_total_wal_size=1048576"),
    (|o| o.set_wal_ttl_seconds(9), "WAL_ttl_seconds=9"),
    (|o| o.set_wal_size_limit_mb(9), "WAL_size_limit_MB=9"),
    (|o| o.set_wal_bytes_per_sync(512), "wal_bytes_per_sync=512"),
    (|o| o.set_recycle_log_file_num(4), "recycle_log_file_num=4"),
    (|o| o.set_manual_wal_flush(true), "manual_wal_flush=true"),
    (|o| o.set_atomic_flush(true), "atomic_flush=true"),
    (|o| o.set_max_manifest_file_size(1 << 20), "max_manifest_file_size=1048576"),
    (|o| o.set_manifest_preallocation_size(0), "manifest_preallocation_size=0"),
    (|o| o.set_track_and_verify_wals_in_manifest(true), "track_and_verify_wals_in_manifest=true"),
    (|o| o.set_write_dbid_to_manifest(false), "write_dbid_to_manifest=false"),
    (|o| o.set_enable_pipelined_write(true), "enable_pipelined_write=true"),
    (|o| o.set_unordered_write(true), "unordered_write=true"),
    (
        |o| o.set_enable_write_thread_adaptive_yield(false),
        "enable_write_thread_adaptive_yield=false",
    ),
    (|o| o.set_stats_dump_period_sec(0), "stats_dump_period_sec=0"),
    (|o| o.set_stats_persist_period_sec(0), "stats_persist_period_sec=0"),
    (|o| o.set_dump_malloc_stats(true), "dump_malloc_stats=true"),
    (|o| o.set_report_bg_io_stats(true), "report_bg_io_stats=true"),
    (|o| o.set_db_log_dir("/logs"), "# flagstone:db_log_dir=/logs"),
    (|o| o.set_log_level(LogLevel::Warn), "info_log_level=WARN_LEVEL"),
    (|o| o.set_max_log_file_size(9), "max_log_file_size=9"),
    (|o| o.set_log_file_time_to_roll(9), "log_file_time_to_roll=9"),
    (|o| o.set_keep_log_file_num(9), "keep_log_file_num=9"),
];

const FAMILY: &[Case] = &[
    (|o| o.set_write_buffer_size(1 << 20), "write_buffer_size=1048576"),
    (|o| o.set_write_buffer_size(1), "write_buffer_size=65536"),
    (|o| o.set_max_write_buffer_number(5), "max_write_buffer_number=5"),
    (|o| o.set_min_write_buffer_number(3), "min_write_buffer_number_to_merge=3"),
    (|o| o.set_min_write_buffer_number_to_merge(4), "min_write_buffer_number_to_merge=4"),
    (|o| o.set_max_write_buffer_size_to_maintain(-1), "max_write_buffer_size_to_maintain=-1"),
    (|o| o.set_arena_block_size(4096), "arena_block_size=4096"),
    (|o| o.set_memtable_factory(MemtableFactory::Vector), "memtable_factory=VectorRepFactory"),
    (
        |o| {
            o.set_prefix_extractor(SliceTransform::create_fixed_prefix(4));
            o.set_memtable_factory(MemtableFactory::HashLinkList { bucket_count: 9 });
        },
        "memtable_factory={id=HashSkipListRepFactory;bucket_count=9;}",
    ),
    (|o| o.set_memtable_prefix_bloom_ratio(0.125), "memtable_prefix_bloom_size_ratio=0.125000"),
    (|o| o.set_memtable_whole_key_filtering(true), "memtable_whole_key_filtering=true"),
    (|o| o.set_bloom_locality(1), "bloom_locality=1"),
    (|o| o.set_memtable_huge_page_size(4096), "memtable_huge_page_size=4096"),
    (|o| o.set_inplace_update_support(true), "inplace_update_support=true"),
    (|o| o.set_inplace_update_locks(9), "inplace_update_num_locks=9"),
    (|o| o.set_experimental_mempurge_threshold(1.0), "experimental_mempurge_threshold=1.000000"),
    (|o| o.set_max_successive_merges(9), "max_successive_merges=9"),
    (|o| o.set_max_sequential_skip_in_iterations(9), "max_sequential_skip_in_iterations=9"),
    (|o| o.set_optimize_filters_for_hits(true), "optimize_filters_for_hits=true"),
    (|o| o.set_enable_blob_files(true), "enable_blob_files=true"),
    (|o| o.set_min_blob_size(9), "min_blob_size=9"),
    (|o| o.set_blob_file_size(9), "blob_file_size=9"),
    (
        |o| o.set_blob_compression_type(DBCompressionType::Lz4hc),
        "blob_compression_type=kLZ4HCCompression",
    ),
    (|o| o.set_enable_blob_gc(true), "enable_blob_garbage_collection=true"),
    (|o| o.set_blob_gc_age_cutoff(0.5), "blob_garbage_collection_age_cutoff=0.500000"),
    (|o| o.set_blob_gc_force_threshold(0.5), "blob_garbage_collection_force_threshold=0.500000"),
    (|o| o.set_blob_compaction_readahead_size(9), "blob_compaction_readahead_size=9"),
    (
        |o| o.set_prefix_extractor(SliceTransform::create_fixed_prefix(4)),
        "prefix_extractor=rocksdb.FixedPrefix.4",
    ),
    (|o| o.set_comparator("backwards", Box::new(|a, b| b.cmp(a))), "comparator=backwards"),
    (
        |o| {
            let (keys, stamps) =
                (Box::new(|a: &[u8], b: &[u8]| a.cmp(b)), Box::new(|a: &[u8], b: &[u8]| a.cmp(b)));
            o.set_comparator_with_ts("stamped", 8, keys, stamps, Box::new(|a, _, b, _| a.cmp(b)));
        },
        "comparator=stamped",
    ),
    (|o| o.set_merge_operator_associative("join", |_, _, _| None), "merge_operator=join"),
    (|o| o.set_merge_operator("sum", |_, _, _| None, |_, _, _| None), "merge_operator=sum"),
    (
        #[expect(deprecated, reason = "programs call it")]
        |o| o.add_merge_operator("add", |_, _, _| None),
        "merge_operator=add",
    ),
    (
        |o| o.set_compaction_filter("some", |_, _, _| crate::CompactionDecision::Keep),
        "compaction_filter=some",
    ),
];

const COMPACTION: &[Case] = &[
    (
        |o| o.set_compaction_style(DBCompactionStyle::Universal),
        "compaction_style=kCompactionStyleUniversal",
    ),
    (
        |o| {
            let mut universal = UniversalCompactOptions::default();
            universal.set_size_ratio(2);
            universal.set_min_merge_width(3);
            universal.set_max_merge_width(4);
            universal.set_max_size_amplification_percent(5);
            universal.set_compression_size_percent(6);
            universal.set_stop_style(UniversalCompactionStopStyle::Similar);
            o.set_universal_compaction_options(&universal);
        },
        "compaction_options_universal={size_ratio=2;min_merge_width=3;max_merge_width=4;\
         max_size_amplification_percent=5;compression_size_percent=6;\
         stop_style=kCompactionStopStyleSimilarSize;allow_trivial_move=false;incremental=false;}",
    ),
    (
        |o| {
            let mut fifo = FifoCompactOptions::default();
            fifo.set_max_table_files_size(9);
            o.set_fifo_compaction_options(&fifo);
        },
        "compaction_options_fifo={max_table_files_size=9;allow_compaction=false;age_for_warm=0;}",
    ),
    (|o| o.set_compaction_pri(CompactionPri::RoundRobin), "compaction_pri=kRoundRobin"),
    (|o| o.set_disable_auto_compactions(true), "disable_auto_compactions=true"),
    (|o| o.set_num_levels(3), "num_levels=3"),
    (|o| o.set_level_zero_file_num_compaction_trigger(9), "level0_file_num_compaction_trigger=9"),
    (|o| o.set_level_zero_slowdown_writes_trigger(9), "level0_slowdown_writes_trigger=9"),
    (|o| o.set_level_zero_stop_writes_trigger(99), "level0_stop_writes_trigger=99"),
    (|o| o.set_soft_pending_compaction_bytes_limit(9), "soft_pending_compaction_bytes_limit=9"),
    (|o| o.set_hard_pending_compaction_bytes_limit(9), "hard_pending_compaction_bytes_limit=9"),
    (|o| o.set_max_bytes_for_level_base(9), "max_bytes_for_level_base=9"),
    (|o| o.set_max_bytes_for_level_multiplier(9.0), "max_bytes_for_level_multiplier=9.000000"),
    (
        |o| o.set_max_bytes_for_level_multiplier_additional(&[1, 2]),
        "max_bytes_for_level_multiplier_additional=1:2",
    ),
    (
        |o| o.set_level_compaction_dynamic_level_bytes(false),
        "level_compaction_dynamic_level_bytes=false",
    ),
    (|o| o.set_target_file_size_base(9), "target_file_size_base=9"),
    (|o| o.set_target_file_size_multiplier(9), "target_file_size_multiplier=9"),
    (|o| o.set_max_compaction_bytes(9), "max_compaction_bytes=9"),
    (|o| o.set_periodic_compaction_seconds(9), "periodic_compaction_seconds=9"),
    (|o| o.set_ttl(9), "ttl=9"),
    (
        |o| o.add_compact_on_deletion_collector_factory(5, 10, 0.5),
        "# flagstone:table_properties_collectors={{id=CompactOnDeletionCollector;window_size=5;deletion_trigger=10;\
         deletion_ratio=0.500000;min_file_size=0;}}",
    ),
    (|o| o.optimize_level_style_compaction(64 << 20), "write_buffer_size=16777216"),
    (
        |o| o.optimize_level_style_compaction(64 << 20),
        "compression_per_level=kNoCompression:kNoCompression:kLZ4Compression:kLZ4Compression:\
         kLZ4Compression:kLZ4Compression:kLZ4Compression",
    ),
    (
        |o| o.optimize_universal_style_compaction(64 << 20),
        "compaction_style=kCompactionStyleUniversal",
    ),
    (|o| o.prepare_for_bulk_load(), "level0_stop_writes_trigger=1073741824"),
    (|o| o.prepare_for_bulk_load(), "max_background_flushes=4"),
    (|o| o.optimize_for_point_lookup(8), "filter_policy=bloomfilter:10:false"),
];

const COMPRESSION: &[Case] = &[
    (|o| o.set_compression_type(DBCompressionType::Zlib), "compression=kZlibCompression"),
    (
        |o| o.set_bottommost_compression_type(DBCompressionType::Bz2),
        "bottommost_compression=kBZip2Compression",
    ),
    (
        |o| o.set_compression_per_level(&[DBCompressionType::None, DBCompressionType::Snappy]),
        "compression_per_level=kNoCompression:kSnappyCompression",
    ),
    (
        |o| {
            o.set_num_levels(2);
            o.set_min_level_to_compress(1);
        },
        "compression_per_level=kNoCompression:kLZ4Compression",
    ),
    (
        |o| {
            o.set_compression_options(4, 5, 6, 7);
            o.set_zstd_max_train_bytes(100);
            o.set_compression_options_parallel_threads(3);
        },
        "compression_opts={window_bits=4;level=5;strategy=0;max_dict_bytes=7;\
         zstd_max_train_bytes=100;parallel_threads=3;enabled=false;max_dict_buffer_bytes=0;\
         use_zstd_dict_trainer=true;}",
    ),
    (
        |o| {
            o.set_bottommost_compression_options(4, 5, 6, 7, false);
            o.set_bottommost_zstd_max_train_bytes(100, true);
        },
        "bottommost_compression_opts={window_bits=4;level=5;strategy=0;max_dict_bytes=7;\
         zstd_max_train_bytes=100;parallel_threads=1;enabled=true;max_dict_buffer_bytes=0;\
         use_zstd_dict_trainer=true;}",
    ),
];

type TableCase = (fn(&mut BlockBasedOptions), &'static str);

const TABLES: &[TableCase] = &[
    (|t| t.set_block_size(16 << 10), "block_size=16384"),
    (|t| t.set_metadata_block_size(8192), "metadata_block_size=8192"),
    (
        |t| {
            t.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
            t.set_partition_filters(true);
        },
        "partition_filters=true",
    ),
    (|t| t.disable_cache(), "no_block_cache=true"),
    (|t| t.set_bloom_filter(9.5, true), "filter_policy=bloomfilter:9.5:false"),
    (|t| t.set_ribbon_filter(9.0), "filter_policy=ribbonfilter:9:0"),
    (|t| t.set_hybrid_ribbon_filter(9.0, 2), "filter_policy=ribbonfilter:9:2"),
    (|t| t.set_cache_index_and_filter_blocks(true), "cache_index_and_filter_blocks=true"),
    (
        |t| t.set_cache_index_and_filter_blocks_with_high_priority(false),
        "cache_index_and_filter_blocks_with_high_priority=false",
    ),
    (|t| t.set_index_type(BlockBasedIndexType::HashSearch), "index_type=kHashSearch"),
    (
        |t| t.set_pin_l0_filter_and_index_blocks_in_cache(true),
        "pin_l0_filter_and_index_blocks_in_cache=true",
    ),
    (|t| t.set_pin_top_level_index_and_filter(false), "pin_top_level_index_and_filter=false"),
    (|t| t.set_format_version(4), "format_version=4"),
    (|t| t.set_block_restart_interval(8), "block_restart_interval=8"),
    (|t| t.set_index_block_restart_interval(8), "index_block_restart_interval=8"),
    (
        |t| t.set_data_block_index_type(DataBlockIndexType::BinaryAndHash),
        "data_block_index_type=kDataBlockBinaryAndHash",
    ),
    (|t| t.set_data_block_hash_ratio(0.35), "data_block_hash_table_util_ratio=0.350000"),
    (|t| t.set_whole_key_filtering(false), "whole_key_filtering=false"),
    (|t| t.set_checksum_type(ChecksumType::CRC32c), "checksum=kCRC32c"),
    (|t| t.set_optimize_filters_for_memory(false), "optimize_filters_for_memory=false"),
    (
        |t| {
            t.set_top_level_index_pinning_tier(BlockBasedTablePinningTier::All);
            t.set_partition_pinning_tier(BlockBasedTablePinningTier::None);
            t.set_unpartitioned_pinning_tier(BlockBasedTablePinningTier::FlushAndSimilar);
        },
        "metadata_cache_options={unpartitioned_pinning=kFlushedAndSimilar;partition_pinning=kNone;\
         top_level_index_pinning=kAll;}",
    ),
];

/// Setters that no OPTIONS file shows; other tests have them.
const SHOWN_ELSEWHERE: &[&str] = &[
    // Of any name: setters call it.
    "note",
    "set_env",
    "set_write_buffer_manager",
    "set_sst_file_manager",
    "set_ratelimiter",
    "set_auto_tuned_ratelimiter",
    "set_row_cache",
    "set_blob_cache",
    "set_block_cache",
    "set_allow_concurrent_memtable_write",
    "enable_statistics",
    "set_statistics_level",
    "set_info_logger",
    "set_compaction_filter_factory",
    "set_block_based_table_factory",
];

fn has_line(text: &str, wanted: &str) -> bool {
    text.lines().any(|line| line.trim_start() == wanted)
}

#[test]
fn each_setter_shows_in_the_options_file() {
    let default = options_file(&Options::default());
    for (set, line) in [DATABASE, WAL, FAMILY, COMPACTION, COMPRESSION].concat() {
        let mut options = Options::default();
        set(&mut options);
        let text = options_file(&options);
        assert!(has_line(&text, line) && !has_line(&default, line), "{line}: {text}");
    }
    for (set, line) in TABLES {
        let (mut options, mut tables) = (Options::default(), BlockBasedOptions::default());
        set(&mut tables);
        options.set_block_based_table_factory(&tables);
        let text = options_file(&options);
        assert!(has_line(&text, line) && !has_line(&default, line), "{line}: {text}");
    }
}

#[test]
fn no_setter_is_left_out() {
    let tested = include_str!("setters.rs");
    let sources = [
        include_str!("../database.rs"),
        include_str!("../wal.rs"),
        include_str!("../family.rs"),
        include_str!("../compaction.rs"),
        include_str!("../compression.rs"),
        include_str!("../components.rs"),
        include_str!("../presets.rs"),
        include_str!("../tables.rs"),
    ];
    for line in sources.iter().flat_map(|source| source.lines()) {
        let Some(rest) = line.trim_start().strip_prefix("pub fn ") else { continue };
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if rest.contains("&mut self") || name.starts_with("set_") {
            let is_called = tested.contains(&format!(".{name}("));
            assert!(is_called || SHOWN_ELSEWHERE.contains(&name.as_str()), "{name}");
        }
    }
}

#[test]
fn a_default_set_again_leaves_no_trace() {
    let mut options = Options::default();
    options.set_use_fsync(true);
    options.set_use_fsync(false);
    options.set_inplace_update_support(false);
    assert!(!options.get_use_fsync());
    assert_eq!(options_file(&options), options_file(&Options::default()));
}

#[test]
fn a_table_factory_takes_the_place_of_the_one_before() {
    let mut options = Options::default();
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(&Cache::new_lru_cache(1 << 20));
    tables.set_pin_top_level_index_and_filter(false);
    options.set_block_based_table_factory(&tables);
    assert!(options.engine().unwrap().block_cache.is_some());
    options.set_block_based_table_factory(&BlockBasedOptions::default());
    assert_eq!(options_file(&options), options_file(&Options::default()));
    assert!(options.engine().unwrap().block_cache.is_none());
}
