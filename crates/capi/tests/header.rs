//! The header against the source: the same functions, with the same parameters; and the library's
//! symbols.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::BTreeMap;

use common::{Passed, declared, parts};

/// How a parameter of `c_api!` is passed; see `src/api.rs`.
fn in_rust(parameter: &str) -> Passed {
    if parameter == "error" {
        return vec!["*"];
    }
    let kind = parameter.split_once(':').map_or("", |(_, kind)| kind.trim());
    match kind {
        "[u8]" | "?[u8]" => vec!["*", "usize"],
        "str" | "cstr" | "?cstr" | "path" => vec!["*"],
        "flag" => vec!["u8"],
        _ => vec![result_in_rust(kind)],
    }
}

fn result_in_rust(kind: &str) -> &'static str {
    const NUMBERS: [&str; 8] = ["u8", "i32", "u32", "i64", "u64", "usize", "f64", "bool"];
    if let Some(number) = NUMBERS.into_iter().find(|number| *number == kind) {
        return number;
    }
    match kind {
        "" => "void",
        "std::ffi::c_char" => "c_char",
        "Slice" => "slice",
        _ => "*",
    }
}

/// The functions of `c_api!`, `creates!`, `destroys!` and `c_settings!` in a source.
fn written(source: &str, functions: &mut BTreeMap<String, Passed>) {
    let mut add = |name: String, passed: Passed| {
        assert!(functions.insert(name.clone(), passed).is_none(), "{name} is written twice");
    };
    for function in source.split("\n    fn rocksdb_").skip(1) {
        let open = function.find('(').unwrap();
        let body = function.find(" {").unwrap();
        let head = function[..body].replace('\n', " ");
        let close = head.rfind(") ->").or_else(|| head.rfind(')')).unwrap();
        let result = head[close + 1..].trim().trim_start_matches("-> ").trim();
        let mut passed = vec![result_in_rust(result)];
        passed.extend(parts(&head[open + 1..close]).into_iter().flat_map(in_rust));
        add(format!("rocksdb_{}", &function[..open]), passed);
    }
    for (marker, passed) in [("creates! {", vec!["*"]), ("destroys! {", vec!["void", "*"])] {
        for block in source.split(marker).skip(1) {
            let block = block.split('}').next().unwrap();
            for row in block.split(',').map(str::trim).filter(|row| !row.is_empty()) {
                add(row.split(':').next().unwrap().to_string(), passed.clone());
            }
        }
    }
    for block in source.split("c_settings! { \"").skip(1) {
        let (prefix, rows) = block.split_once('"').unwrap();
        let rows = rows.split_once("|o| {").unwrap().1.split("\n} }").next().unwrap();
        let lines: Vec<&str> = rows.lines().filter(|line| !line.trim().starts_with("//")).collect();
        for row in lines.join(" ").split(';').map(str::trim).filter(|row| !row.is_empty()) {
            let (head, _) = row.split_once(": ").unwrap();
            let (types, name) = head.rsplit_once(", ").unwrap();
            let mut types = types.split_whitespace().filter(|word| *word != "=>").skip(1);
            let set = types.next().unwrap();
            let get = types.next().unwrap_or(set);
            let (set, get) = (result_in_rust(set), result_in_rust(get));
            add(format!("{prefix}_set_{name}"), vec!["void", "*", set]);
            add(format!("{prefix}_get_{name}"), vec![get, "*"]);
        }
    }
}

#[test]
fn the_header_declares_what_is_written() {
    let mut sources = BTreeMap::new();
    for source in common::sources().into_values() {
        written(&source, &mut sources);
    }
    let declared = declared();
    let differs = |(name, passed): &(&String, &Passed)| sources.get(*name) != Some(*passed);
    let differing: Vec<String> = declared
        .iter()
        .filter(differs)
        .map(|(name, passed)| format!("{name}: {passed:?}, not {:?}", sources.get(name)))
        .collect();
    assert!(differing.is_empty(), "in the header:\n{}", differing.join("\n"));
    let undeclared: Vec<&String> =
        sources.keys().filter(|name| !declared.contains_key(*name)).collect();
    assert!(undeclared.is_empty(), "not in the header: {undeclared:?}");
    assert!(declared.len() > 1_000, "{} functions", declared.len());
}

#[test]
fn the_library_exports_what_the_header_declares() {
    let library = common::library_directory().join("librocksdb.so");
    let output = std::process::Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(library)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).unwrap();
    let names = listed.lines().filter_map(|line| line.split_whitespace().next());
    let mut exported: Vec<&str> = names.collect();
    exported.sort_unstable();
    let declared = declared();
    let declared: Vec<&str> = declared.keys().map(String::as_str).collect();
    assert_eq!(exported, declared);
}

/// Constants of the header, and the choices of the engine that they stand for.
const CHOICES: &[(&str, &str)] = &[
    ("rocksdb_no_compression", "CompressionType::None"),
    ("rocksdb_snappy_compression", "CompressionType::Snappy"),
    ("rocksdb_zlib_compression", "CompressionType::Zlib"),
    ("rocksdb_bz2_compression", "CompressionType::Bzip2"),
    ("rocksdb_lz4_compression", "CompressionType::Lz4"),
    ("rocksdb_lz4hc_compression", "CompressionType::Lz4hc"),
    ("rocksdb_zstd_compression", "CompressionType::Zstd"),
    ("rocksdb_level_compaction", "CompactionStyle::Level"),
    ("rocksdb_universal_compaction", "CompactionStyle::Universal"),
    ("rocksdb_fifo_compaction", "CompactionStyle::Fifo"),
    ("rocksdb_k_by_compensated_size_compaction_pri", "CompactionPri::ByCompensatedSize"),
    ("rocksdb_k_oldest_largest_seq_first_compaction_pri", "CompactionPri::OldestLargestSeqFirst"),
    ("rocksdb_k_oldest_smallest_seq_first_compaction_pri", "CompactionPri::OldestSmallestSeqFirst"),
    ("rocksdb_k_min_overlapping_ratio_compaction_pri", "CompactionPri::MinOverlappingRatio"),
    ("rocksdb_k_round_robin_compaction_pri", "CompactionPri::RoundRobin"),
    ("rocksdb_similar_size_compaction_stop_style", "CompactionStopStyle::SimilarSize"),
    ("rocksdb_total_size_compaction_stop_style", "CompactionStopStyle::TotalSize"),
    (
        "rocksdb_tolerate_corrupted_tail_records_recovery",
        "RecoveryMode::TolerateCorruptedTailRecords",
    ),
    ("rocksdb_absolute_consistency_recovery", "RecoveryMode::AbsoluteConsistency"),
    ("rocksdb_point_in_time_recovery", "RecoveryMode::PointInTimeRecovery"),
    ("rocksdb_skip_any_corrupted_records_recovery", "RecoveryMode::SkipAnyCorruptedRecords"),
    ("rocksdb_prepopulate_blob_disable", "PrepopulateBlobCache::Disable"),
    ("rocksdb_prepopulate_blob_flush_only", "PrepopulateBlobCache::FlushOnly"),
    ("rocksdb_block_based_table_index_type_binary_search", "IndexType::BinarySearch"),
    ("rocksdb_block_based_table_index_type_hash_search", "IndexType::HashSearch"),
    ("rocksdb_block_based_table_index_type_two_level_index_search", "IndexType::TwoLevel"),
    (
        "rocksdb_block_based_table_data_block_index_type_binary_search",
        "DataBlockIndexType::BinarySearch",
    ),
    (
        "rocksdb_block_based_table_data_block_index_type_binary_search_and_hash",
        "DataBlockIndexType::BinaryAndHash",
    ),
    ("rocksdb_pinnable_multi_get_not_found", "const NOT_FOUND: i32"),
    ("rocksdb_pinnable_multi_get_found", "const FOUND: i32"),
    ("rocksdb_pinnable_multi_get_error", "const ERROR: i32"),
    ("rocksdb_pinnable_multi_get_out_of_bounds", "const OUT_OF_BOUNDS: i32"),
    ("rocksdb_wal_file_type_archived_log", "const ARCHIVED: i32"),
    ("rocksdb_wal_file_type_alive_log", "const ALIVE: i32"),
    ("rocksdb_wal_filter_continue_processing", "const CONTINUE_PROCESSING: c_int"),
    ("rocksdb_wal_filter_ignore_current_record", "const IGNORE_CURRENT_RECORD: c_int"),
    ("rocksdb_wal_filter_stop_replay", "const STOP_REPLAY: c_int"),
    ("rocksdb_wal_filter_corrupted_record", "const CORRUPTED_RECORD: c_int"),
    ("rocksdb_txndb_write_policy_write_committed", "const COMMITTED: i32"),
    ("rocksdb_statistics_level_all", "const ALL: i32"),
    ("rocksdb_statistics_level_except_detailed_timers", "const EXCEPT_DETAILED_TIMERS: i32"),
];

#[test]
fn numbers_are_those_of_the_header() {
    let header = common::read("include/rocksdb/c.h");
    let sources: String = common::sources().into_values().collect();
    for (constant, choice) in CHOICES {
        let declared = header.split_once(&format!("  {constant} = ")).map(|(_, rest)| rest);
        let number = declared.unwrap().split([',', '\n']).next().unwrap();
        let row = [format!("{number} = {choice},"), format!("{choice} = {number};")];
        assert!(row.iter().any(|row| sources.contains(row)), "{constant}: {}", row.join(" or "));
    }
}

#[test]
fn counters_of_single_calls_have_the_numbers_of_the_header() {
    let header = common::read("include/rocksdb/c.h");
    let source = common::read("src/perf.rs");
    let camel = |name: &str| -> String {
        let words = name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
        words.collect()
    };
    let rows = source.split_once("= [\n").unwrap().1.split_once("];").unwrap().0;
    let written: Vec<&str> =
        rows.lines().map(|row| row.trim().trim_start_matches("PerfMetric::")).collect();
    let written: Vec<&str> = written.iter().map(|row| row.trim_end_matches(',')).collect();
    let (_, declared) = header.split_once("rocksdb_user_key_comparison_count").unwrap();
    let declared = declared.split_once("rocksdb_total_metric_count").unwrap().0;
    let declared = format!("rocksdb_user_key_comparison_count{declared}");
    let rows = declared.split(',').map(str::trim).filter(|row| !row.is_empty());
    let mut next = 0;
    let mut numbered = Vec::new();
    for row in rows {
        let (name, number) = row.split_once(" = ").map_or((row, None), |(n, at)| (n, Some(at)));
        next = number.map_or(next, |number| number.parse().unwrap());
        assert_eq!(numbered.len(), next, "{name} leaves a gap");
        numbered.push(camel(name.trim_start_matches("rocksdb_")));
        next += 1;
    }
    assert_eq!(written, numbered);
    assert_eq!(numbered.len(), 84);
}
