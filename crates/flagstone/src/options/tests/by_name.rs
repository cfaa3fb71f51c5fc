//! Options that are set one by one, by their names.

use super::*;

#[test]
fn options_are_set_by_name() {
    let mut options = Options::default();
    options.create_if_missing = true;
    for (name, value) in [
        ("max_background_jobs", "6"),
        ("write_buffer_size", "8M"),
        ("cf.min_blob_size", "4k"),
        ("compression_opts.level", "3"),
        ("compression_opts", "{max_dict_bytes=16k}"),
        (
            "block_based_table_factory",
            "{block_size=16k;filter_policy=bloomfilter:12;block_cache=1M}",
        ),
        ("table_factory.format_version", "4"),
        ("checksum", "kCRC32c"),
        ("merge_operator", "uint64add"),
        ("prefix_extractor", "fixed:8"),
        ("unordered_write", "false"),
        ("unordered_write", "true"),
        ("enable_pipelined_write", "true"),
        ("two_write_queues", "true"),
        ("bloom_locality", "0"),
    ] {
        options.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    }
    assert_eq!((options.max_background_jobs, options.block_cache_size), (6, Some(1 << 20)));
    assert_eq!((options.cf.write_buffer_size, options.cf.min_blob_size), (8 << 20, Some(4096)));
    assert_eq!(
        (options.cf.compression_opts.level, options.cf.compression_opts.max_dict_bytes),
        (3, 16384)
    );
    let table = &options.cf.table;
    assert_eq!(
        (table.block_size, table.format_version, table.checksum),
        (16384, 4, ChecksumType::Crc32c)
    );
    assert_eq!(table.filter_policy, Some(FilterPolicy::Bloom { bits_per_key: 12.0 }));
    assert_eq!(options.get("merge_operator").unwrap(), "UInt64AddOperator");
    assert_eq!(options.get("write_buffer_size").unwrap(), "8388608");
    options.set_all("num_levels=5; compression=kZSTD;").unwrap();
    assert_eq!((options.cf.num_levels, options.cf.compression), (5, CompressionType::Zstd));
}

#[test]
fn an_option_of_families_is_set_in_each() {
    let mut options = Options::default();
    let mut families = vec![
        ("a".to_string(), ColumnFamilyOptions::default()),
        ("b".to_string(), Default::default()),
    ];
    let table = "{block_cache=2M;block_size=1k}";
    for (name, value) in [
        ("num_levels", "3"),
        ("max_total_wal_size", "9"),
        ("block_based_table_factory", table),
        ("use_fsync", "0"),
    ] {
        options.set_everywhere(&mut families, name, value).unwrap();
    }
    assert_eq!((options.max_total_wal_size, options.block_cache_size), (9, Some(2 << 20)));
    for family in families.iter().map(|(_, family)| family).chain([&options.cf]) {
        assert_eq!((family.num_levels, family.table.block_size), (3, 1024));
    }
    assert!(options.set_everywhere(&mut families, "num_levls", "3").is_err());
    // As RocksDB writes it, and what belongs to no table.
    let table = "{id=BlockBasedTable;block_cache=4M;block_size=2k}";
    options.set_everywhere(&mut families, "table_factory", table).unwrap();
    assert_eq!(options.block_cache_size, Some(4 << 20));
    for family in families.iter().map(|(_, family)| family).chain([&options.cf]) {
        assert_eq!(family.table.block_size, 2048);
    }
    let refused = options.set_everywhere(&mut families, "table_factory", "{write_buffer_size=1M}");
    assert!(refused.unwrap_err().to_string().contains("'write_buffer_size' is set elsewhere"));
}

#[test]
fn a_refusal_says_why() {
    let mut options = Options::default();
    for (name, value, code, says) in [
        ("write_bufer_size", "1", Code::InvalidArgument, "did you mean 'write_buffer_size'?"),
        (
            "write_buffer_size",
            "big",
            Code::InvalidArgument,
            "option 'write_buffer_size': expected a whole number",
        ),
        // The range of the type was told, and of each number within it another one.
        (
            "max_background_jobs",
            "99999999999",
            Code::InvalidArgument,
            "option 'max_background_jobs': expected a whole number from 1 to 1024, found '99999999999'",
        ),
        (
            "best_efforts_recovery",
            "true",
            Code::NotSupported,
            "only the default 'false' is accepted",
        ),
        (
            "allow_mmap_writes",
            "true",
            Code::NotSupported,
            "supported: option 'allow_mmap_writes': known but not supported",
        ),
        ("compression", "kLZ5", Code::InvalidArgument, "kLZ4Compression"),
        ("block_based_table_factory", "{blok_size=1}", Code::InvalidArgument, "'block_size'"),
        ("table_factory", "PlainTable", Code::NotSupported, "only BlockBasedTable"),
        ("comparator", "mine", Code::NotSupported, "'mine' is not built in"),
        ("merge_operator", "{id=mine;depth=2;}", Code::NotSupported, "'mine' is not built in"),
        ("merge_operator", "{id=max;depth=2;}", Code::InvalidArgument, "no property 'depth=2'"),
        ("compression_opts.nivel", "1", Code::InvalidArgument, "'nivel' is not one of"),
        ("compression_opts.checksum", "true", Code::NotSupported, "'checksum': known but"),
    ] {
        let error = options.set(name, value).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn a_planned_setting_takes_only_its_default() {
    let mut options = Options::default();
    options.set("compression_opts.strategy", "0").unwrap();
    let refusal = options.set("compression_opts.strategy", "4").unwrap_err();
    assert_eq!(refusal.code(), Code::NotSupported);
    assert!(
        refusal.to_string().contains("strategy") && refusal.to_string().contains("'0'"),
        "{refusal}"
    );
    assert_eq!(options.cf.compression_opts.strategy, 0);
    options.cf.compression_opts.strategy = 4;
    assert_eq!(options.validate().unwrap_err().code(), Code::NotSupported);
}

#[test]
fn only_live_settings_change_in_an_open_database() {
    check_live("write_buffer_size", false).unwrap();
    check_live("compression_opts.level", false).unwrap();
    check_live("max_background_jobs", true).unwrap();
    for (name, of_database, says) in [
        ("num_levels", false, "reopen"),
        ("write_bufer_size", false, "did you mean"),
        // It was asked whether they themselves were meant.
        ("max_background_jobs", false, "set it with set_db_options"),
        ("stats_dump_period_sec", false, "set it with set_db_options"),
        ("bloom_locality", true, "set it with set_options"),
        ("prefix_extractor", false, "reopen"),
        ("rate_limiter_bytes_per_sec", true, "reopen"),
        // There was no option of that name, and nothing like it.
        ("cf.write_buffer_size", false, "'write_buffer_size' without 'cf.'"),
        ("db.max_background_jobs", false, "set_db_options expects 'max_background_jobs'"),
        ("rate_limiter_auto_tuned", true, "reopen"),
        ("block_cache", false, "reopen"),
    ] {
        let error = check_live(name, of_database).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let within = ColumnFamilyOptions::default()
        .set("block_based_table_factory", "{block_cache=1M}")
        .unwrap_err();
    assert!(within.to_string().contains("'block_cache' is set elsewhere"), "{within}");
}
