//! C programs over the library that this build made.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "the files are those of a C compiler")]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use common::{compile, compile_source, run};

#[test]
fn a_program_goes_through_the_api() {
    goes_through("story");
}

#[test]
fn a_program_listens_and_partitions() {
    goes_through("hooks");
}

#[test]
fn programs_use_the_rarer_groups() {
    goes_through("groups");
    goes_through("choices");
}

#[test]
fn a_program_has_a_compaction_service() {
    goes_through("remote");
}

#[test]
fn an_extension_in_cpp_finds_what_it_takes_objects_for() {
    goes_through("extension");
}

#[test]
fn threads_of_a_program_share_a_database_with_callbacks() {
    goes_through("threads");
}

fn goes_through(name: &str) {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(name, directory.path());
    let data = directory.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let output = run(&program, &data);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(output.stdout, b"done\n", "{said}");
}

#[cfg(debug_assertions)]
#[test]
fn a_debug_build_finds_objects_that_are_used_wrongly() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile("misuse", directory.path());
    let cases = [
        ("destroyed", "rocksdb_options_t was destroyed before"),
        ("twice", "rocksdb_options_t was destroyed before"),
        ("other", "a pointer is to no rocksdb_readoptions_t"),
        ("null", "NULL where rocksdb_options_t must be"),
    ];
    for (case, wanted) in cases {
        let output = run(&program, case);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(wanted), "{case}: {said}");
    }
}

/// Options of which 1 is no value.
const OTHER_NUMBERS: &[(&str, i32)] = &[
    ("rocksdb_options_set_wal_compression", 7),
    ("rocksdb_options_set_default_temperature", 4),
    ("rocksdb_options_set_default_write_temperature", 4),
    ("rocksdb_options_set_last_level_temperature", 4),
    ("rocksdb_options_set_metadata_write_temperature", 4),
    ("rocksdb_options_set_wal_write_temperature", 4),
];

/// Options that count only with others.
const OF_OTHERS: &[&str] = &["rocksdb_options_set_statistics_level"];

/// What makes the object that an option belongs to.
fn object(prefix: &str) -> String {
    match prefix {
        "rocksdb_backup_engine_options" => format!("{prefix}_create(\"backups\")"),
        "rocksdb_sst_file_manager" => format!("{prefix}_create(NULL)"),
        "rocksdb_cache" => format!("{prefix}_create_lru(0)"),
        "rocksdb_env" => "rocksdb_create_default_env()".to_string(),
        _ => format!("{prefix}_create()"),
    }
}

/// A program that sets each option to two values, and gets both back.
fn round_trips(declared: &BTreeMap<String, common::Passed>) -> (String, usize) {
    let mut body = String::new();
    let mut options = 0;
    for (setter, passed) in declared {
        let Some((prefix, name)) = setter.split_once("_set_") else { continue };
        let getter = format!("{prefix}_get_{name}");
        let is_number = |passed: &str| passed != "*" && passed != "void";
        let [_, "*", value] = passed[..] else { continue };
        let Some([result, "*"]) = declared.get(&getter).map(|passed| &passed[..]) else { continue };
        if !is_number(value) || !is_number(result) || OF_OTHERS.contains(&setter.as_str()) {
            continue;
        }
        options += 1;
        let one = OTHER_NUMBERS.iter().find(|(other, _)| other == setter).map_or(1, |row| row.1);
        let _ = writeln!(body, "  {{ void* o = {};", object(prefix));
        for value in [0, one, 0] {
            let _ = writeln!(
                body,
                "    {setter}(o, {value}); \
                 if ({getter}(o) != {value}) {{ puts(\"{setter}({value})\"); bad = 1; }}"
            );
        }
        let _ = writeln!(body, "    {prefix}_destroy(o); }}");
    }
    let program = format!(
        "#include <rocksdb/c.h>\n#include <stdio.h>\n\
         int main(int count, char** arguments) {{\n  (void)count, (void)arguments;\n  int bad = 0;\n\
         {body}  return bad;\n}}\n"
    );
    (program, options)
}

#[test]
fn every_option_that_is_set_can_be_got_back() {
    let directory = tempfile::tempdir().unwrap();
    let (program, options) = round_trips(&common::declared());
    assert!(options > 250, "{options} options");
    let source = directory.path().join("options.c");
    std::fs::write(&source, program).unwrap();
    let output = run(&compile_source(&source, "options", directory.path()), "");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{failed}");
}
