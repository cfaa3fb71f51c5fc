//! Options that make small databases behave like large ones.

use flagstone::env::Env;
use flagstone::options::Options;

/// Options with tiny buffers and files, so that a few hundred writes go through flushes and compactions.
pub fn tiny(env: &Env) -> Options {
    let mut options = Options { env: env.clone(), ..Options::default() };
    set(
        &mut options,
        &[
            ("create_if_missing", "true"),
            ("create_missing_column_families", "true"),
            ("merge_operator", "stringappend"),
            ("arena_block_size", "1024"),
            ("write_buffer_size", "8192"),
            ("target_file_size_base", "8192"),
            ("max_bytes_for_level_base", "32768"),
            ("level0_file_num_compaction_trigger", "2"),
            ("compression", "kNoCompression"),
            ("max_background_jobs", "2"),
        ],
    );
    options
}

/// Sets options by name.
///
/// # Panics
/// If the engine does not take one.
pub fn set(options: &mut Options, changes: &[(&str, &str)]) {
    for (name, value) in changes {
        options.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    }
}

const BOOL: &[&str] = &["false", "true"];

/// What a reopening may change, with the values tried. The comparator, merge operator and number of levels stay.
const CHOICES: &[(&str, &[&str])] = &[
    ("write_buffer_size", &["4096", "16384", "65536"]),
    ("max_write_buffer_number", &["2", "4"]),
    ("min_write_buffer_number_to_merge", &["1", "1", "2"]),
    ("target_file_size_base", &["2048", "8192", "65536"]),
    ("max_bytes_for_level_base", &["8192", "65536"]),
    ("max_bytes_for_level_multiplier", &["2", "10"]),
    ("level_compaction_dynamic_level_bytes", BOOL),
    ("level0_file_num_compaction_trigger", &["1", "2", "4"]),
    ("disable_auto_compactions", &["false", "false", "false", "true"]),
    ("enable_blob_files", BOOL),
    ("min_blob_size", &["0", "50", "500"]),
    ("blob_file_size", &["2000", "20000", "1000000"]),
    ("blob_compression_type", &["kNoCompression", "kLZ4Compression", "kZSTD"]),
    ("enable_blob_garbage_collection", BOOL),
    ("blob_garbage_collection_age_cutoff", &["0.25", "0.75", "1.0"]),
    ("blob_garbage_collection_force_threshold", &["0.3", "1.0"]),
    ("blob_file_starting_level", &["0", "0", "1"]),
    ("max_sequential_skip_in_iterations", &["0", "1", "8"]),
    (
        "compression",
        &["kNoCompression", "kSnappyCompression", "kLZ4Compression", "kZSTD", "kZlibCompression"],
    ),
    ("bottommost_compression", &["kDisableCompressionOption", "kZSTD"]),
    ("prefix_extractor", &["nullptr", "nullptr", "fixed:2", "rocksdb.CappedPrefix.3"]),
    ("table.block_size", &["128", "1024", "4096"]),
    ("table.block_restart_interval", &["1", "4", "16"]),
    ("table.metadata_block_size", &["128", "4096"]),
    ("table.format_version", &["2", "3", "4", "5", "6"]),
    ("table.checksum", &["kCRC32c", "kxxHash", "kxxHash64", "kXXH3"]),
    ("table.filter_policy", &["nullptr", "bloomfilter:10:false", "ribbonfilter:10"]),
    ("table.whole_key_filtering", &["true", "true", "false"]),
    ("table.data_block_index_type", &["kDataBlockBinarySearch", "kDataBlockBinaryAndHash"]),
    ("table.no_block_cache", BOOL),
    ("table.block_align", &["false", "false", "true"]),
    ("recycle_log_file_num", &["0", "0", "2"]),
    ("wal_compression", &["kNoCompression", "kZSTD"]),
    ("avoid_flush_during_recovery", BOOL),
    ("max_total_wal_size", &["0", "10000"]),
    ("block_cache", &["0", "20000", "8388608"]),
];

/// A choice of settings from a seed; the prefix extractor only filters (scans ask for total order).
pub fn random(env: &Env, random: &mut fastrand::Rng) -> Options {
    let mut options = tiny(env);
    for (name, values) in CHOICES {
        set(&mut options, &[(name, values[random.usize(..values.len())])]);
    }
    match random.u8(..4) {
        0 => set(&mut options, &[("table.index_type", "kTwoLevelIndexSearch")]),
        1 => {
            let partitioned =
                [("table.index_type", "kTwoLevelIndexSearch"), ("table.partition_filters", "true")];
            set(&mut options, &partitioned);
        }
        2 if options.cf.table.format_version < 4 => {}
        2 => set(&mut options, &[("table.index_type", "kBinarySearchWithFirstKey")]),
        _ => {}
    }
    if options.cf.table.block_align {
        set(
            &mut options,
            &[("compression", "kNoCompression"), ("bottommost_compression", "kDisableCompressionOption")],
        );
    }
    options
}

/// Changes of a running family's options, from a seed.
pub fn random_live(random: &mut fastrand::Rng) -> Vec<(&'static str, &'static str)> {
    const LIVE: &[&str] = &[
        "write_buffer_size",
        "target_file_size_base",
        "max_bytes_for_level_base",
        "level0_file_num_compaction_trigger",
        "disable_auto_compactions",
        "enable_blob_files",
        "min_blob_size",
        "blob_file_size",
        "enable_blob_garbage_collection",
        "blob_garbage_collection_force_threshold",
    ];
    let changeable: Vec<_> = CHOICES.iter().filter(|(name, _)| LIVE.contains(name)).collect();
    (0..random.usize(1..4))
        .map(|_| {
            let (name, values) = changeable[random.usize(..changeable.len())];
            (*name, values[random.usize(..values.len())])
        })
        .collect()
}
