//! Changes to the MANIFEST of a closed database, and the contents of all of its files.

use std::path::Path;

use crate::common::{contents, printed};
use crate::{referee, said, tables_in};

/// Two tables: an older one with `a` and `shared`, a newer one with `b` and `shared`.
fn made(path: &Path, settings: &str) -> String {
    let db = format!("--db {}", path.display());
    let calm = format!("--set disable_auto_compactions=true {settings}");
    printed(&format!("batch-put {db} a 1 shared old {calm}"));
    printed(&format!("flush {db} {calm}"));
    printed(&format!("batch-put {db} b 2 shared new {calm}"));
    printed(&format!("flush {db} {calm}"));
    assert_eq!(tables_in(path).len(), 2);
    db
}

fn number(table: &Path) -> u64 {
    table.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

#[test]
fn a_table_is_removed_only_by_who_accepts_the_loss() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = made(&path, "");
    let newer = number(&tables_in(&path)[1]);
    let before = contents(&path);
    let (code, text) = said(&format!("unsafe-remove-table {db} {newer}"));
    assert!(code == 2 && text.contains("keys 'b' to 'shared'"), "{text}");
    assert!(text.contains("Nothing was changed; --accept-loss"), "{text}");
    assert_eq!(contents(&path), before);
    let shown = printed(&format!("unsafe_remove_sst_file {db} {newer} --accept-loss"));
    assert!(shown.starts_with("removed table ") && shown.contains("'default', level 0"), "{shown}");
    // What it hid is seen again.
    assert_eq!(printed(&format!("scan {db}")), "a\t1\nshared\told\n");
    assert_eq!(printed(&format!("check {db}")).matches("all there").count(), 1);
    if let Some(referee) = referee() {
        assert_eq!(referee.ldb(&path, &["get", "shared"]).unwrap(), "old\n");
    }
    let (code, text) = said(&format!("unsafe-remove-table {db} {newer} --accept-loss"));
    assert!(code == 1 && text.contains("lists no table with the number"), "{text}");
    let (code, text) = said(&format!("unsafe-remove-table {db} twelve"));
    assert!(code == 2 && text.contains("expected a table's number"), "{text}");
}

/// What the command is for.
#[test]
fn a_database_opens_again_without_its_missing_table() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = made(&path, "--set min_blob_size=1 --set enable_blob_files=true");
    printed(&format!("put {db} logged 3"));
    let older = tables_in(&path).remove(0);
    std::fs::remove_file(&older).unwrap();
    assert_eq!(said(&format!("put {db} more 4")).0, 1, "it does not open");
    let line = format!("unsafe-remove-table {db} {} --accept-loss --json", number(&older));
    let facts: serde_json::Value = serde_json::from_str(&printed(&line)).unwrap();
    assert_eq!(facts["removed"]["smallest_key"], "a");
    printed(&format!("put {db} more 4"));
    assert_eq!(printed(&format!("scan {db}")), "b\t2\nlogged\t3\nmore\t4\nshared\tnew\n");
    assert_eq!(said(&format!("verify {db}")).0, 0);
    if let Some(referee) = referee() {
        assert_eq!(referee.ldb(&path, &["get", "b"]).unwrap(), "2\n");
        assert_eq!(referee.ldb(&path, &["checkconsistency"]).unwrap(), "OK\n");
    }
}

/// The same edit by RocksDB's tool is understood, and leaves the same database.
#[test]
fn either_engine_removes_a_table() {
    let Some(referee) = referee() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = made(&path, "");
    let newer = number(&tables_in(&path)[1]).to_string();
    referee.ldb(&path, &["unsafe_remove_sst_file", &newer]).unwrap();
    assert_eq!(printed(&format!("scan {db}")), "a\t1\nshared\told\n");
}

#[test]
fn temperatures_and_checksums_of_tables_are_set() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = made(&path, "");
    let numbers: Vec<u64> = tables_in(&path).iter().map(|table| number(table)).collect();
    let line = format!(
        "update_manifest {db} --temperature {}=kWarm --temperature {}=cold",
        numbers[0], numbers[1]
    );
    assert_eq!(printed(&line), "2 temperatures changed, 0 checksums added\n");
    assert_eq!(printed(&line), "0 temperatures changed, 0 checksums added\n");
    let crc = "--set file_checksum_gen_factory=FileChecksumGenCrc32cFactory";
    let line = format!("update-manifest {db} --update-checksums {crc}");
    assert_eq!(printed(&line), "0 temperatures changed, 2 checksums added\n");
    let json = printed(&format!("{line} --json"));
    assert_eq!(json, "{\"checksums\":0,\"temperatures\":0}\n");
    let listed = printed(&format!("list-files {db}"));
    assert!(listed.contains(", warm\n") && listed.contains(", cold\n"), "{listed}");
    let checksums = printed(&format!("list-files {db} --checksums"));
    assert_eq!(checksums.matches("FileChecksumCrc32c").count(), 2, "{checksums}");
    assert_eq!(said(&format!("verify {db}")).0, 0);
    assert_eq!(printed(&format!("scan {db}")), "a\t1\nb\t2\nshared\tnew\n");
    if let Some(referee) = referee() {
        let theirs = referee.ldb(&path, &["file_checksum_dump", "--hex"]).unwrap();
        assert_eq!(theirs.matches("FileChecksumCrc32c").count(), 2, "{theirs}");
        assert_eq!(referee.ldb(&path, &["checkconsistency"]).unwrap(), "OK\n");
        let values = checksums.lines().filter_map(|line| line.rsplit(' ').next());
        for value in values.filter(|value| value.len() == 8) {
            assert!(theirs.to_lowercase().contains(value), "{value}: {theirs}");
        }
    }
}

#[test]
fn what_cannot_be_put_into_the_manifest_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = made(&path, "");
    let before = contents(&path);
    for (arguments, code, expected) in [
        ("", 2, "nothing to change"),
        ("--update_temperatures", 2, "does not say how hot a file is"),
        ("--temperature 999=kWarm", 1, "lists no table with the number 000999"),
        ("--temperature 4=tepid", 2, "there is no temperature 'tepid'; there are kUnknown, kHot"),
        ("--temperature four=kHot", 2, "expected a table's number"),
        ("--update-checksums", 2, "add --set file_checksum_gen_factory="),
    ] {
        let (found, text) = said(&format!("update-manifest {db} {arguments}"));
        assert!(found == code && text.contains(expected), "{arguments}: {found} {text}");
    }
    assert_eq!(contents(&path), before);
    let none = scratch.path().join("none");
    for command in ["update-manifest --temperature 4=kHot", "unsafe-remove-table 4"] {
        let (code, text) = said(&format!("{command} --db {}", none.display()));
        assert!(code == 1 && text.contains("there is no database here"), "{text}");
    }
    // A table that is cut off gets no checksum.
    let table = tables_in(&path).remove(0);
    let bytes = std::fs::read(&table).unwrap();
    std::fs::write(&table, &bytes[..bytes.len() - 1]).unwrap();
    let crc = "--set file_checksum_gen_factory=FileChecksumGenCrc32cFactory";
    let (code, text) = said(&format!("update-manifest {db} --update-checksums {crc}"));
    assert!(code == 1 && text.contains("by the MANIFEST"), "{text}");
}

#[test]
fn all_live_files_are_printed_in_one_go() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = made(&path, "--set enable_blob_files=true --set min_blob_size=100");
    printed(&format!("put {db} large {}", "x".repeat(200)));
    printed(&format!("flush {db}"));
    printed(&format!("put {db} logged 3"));
    let shown = printed(&format!("dump-live-files {db}"));
    let headings: Vec<_> = shown.lines().filter(|line| line.starts_with("==> ")).collect();
    for (part, count) in [("MANIFEST-", 1), (".sst <==", 3), (".blob <==", 1)] {
        let found = headings.iter().filter(|line| line.contains(part)).count();
        assert_eq!(found, count, "{part}: {headings:?}");
    }
    for part in ["a\t1\tValue\t1", "shared\t4\tValue\tnew", "\tlarge\t", "Put\t0\tlogged\t3"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains("rocksdb.num.entries: 2"), "{shown}");
    let json = printed(&format!("dump_live_files {db} --json --hex"));
    let facts: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let files = facts.iter().filter(|fact| fact["live_file"].is_string()).count();
    assert_eq!(files, headings.len());
    assert!(json.contains("\"key\":\"6c6f67676564\""), "{json}");
    if let Some(referee) = referee() {
        let theirs = referee.ldb(&path, &["dump_live_files"]).unwrap();
        for table in tables_in(&path) {
            let name = table.file_name().unwrap().to_str().unwrap().to_string();
            assert!(theirs.contains(&name) && shown.contains(&name), "{name}: {theirs}");
        }
    }
    // A fault in one file keeps nobody from the others.
    let table = tables_in(&path).remove(0);
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let (code, text) = said(&format!("dump-live-files {db}"));
    assert!(code == 1 && text.contains("checksum mismatch"), "{text}");
    assert!(text.contains("Put\t0\tlogged\t3"), "{text}");
}
