//! Several keys at once, single deletions, range deletions in tables.

use crate::common::{printed, run_with_input};
use crate::{referee, said, tables_in};

#[test]
fn pairs_are_put_at_once_and_read_by_either_engine() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = format!("--db {}", path.display());
    printed(&format!("batch-put {db} a 1 b 2 c 3"));
    assert_eq!(printed(&format!("multi-get {db} c a")), "c\t3\na\t1\n");
    printed(&format!("batchput {db} --hex 64 34"));
    let (code, text) = said(&format!("multi_get {db} d nothing"));
    assert!(code == 1 && text.starts_with("d\t4\n") && text.contains("key 'nothing'"), "{text}");
    let json = printed(&format!("multi-get {db} a --json"));
    assert_eq!(json, "{\"key\":\"a\",\"value\":\"1\"}\n");
    if let Some(referee) = referee() {
        assert_eq!(referee.ldb(&path, &["batchput", "e", "5", "f", "6"]).unwrap(), "OK\n");
        assert_eq!(referee.ldb(&path, &["get", "b"]).unwrap(), "2\n");
        assert_eq!(printed(&format!("multi-get {db} e f")), "e\t5\nf\t6\n");
    }
    // One value is missing: no pair is written.
    let (code, text) = said(&format!("batch-put {db} x 1 y"));
    assert!(code == 2 && text.contains("the last key, 'y', has no value"), "{text}");
    assert_eq!(said(&format!("get {db} x")).0, 1);
    let (code, text) = said(&format!("batch-put {db} --hex 6 31"));
    assert!(code == 2 && text.contains("not hexadecimal"), "{text}");
    let (code, text) = said(&format!("batch-put {db} --cf none a 1"));
    assert!(code == 2 && text.contains("no column family 'none'"), "{text}");
    let missing = scratch.path().join("none");
    let (code, text) = said(&format!("multi-get --db {} a", missing.display()));
    assert!(code == 1 && text.contains("there is no database here"), "{text}");
}

#[test]
fn pairs_of_a_ttl_database_carry_the_time() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    printed(&format!("batch-put {db} --ttl a 1 b 2"));
    assert_eq!(printed(&format!("multi-get {db} --ttl a b")), "a\t1\nb\t2\n");
    assert_ne!(printed(&format!("multi-get {db} --hex 61")), "61\t31\n");
}

#[test]
fn entities_are_read_several_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    printed(&format!("put-entity {db} ada :countess born:1815"));
    printed(&format!("put {db} alan 1912"));
    let shown = printed(&format!("multi-get-entity {db} alan ada"));
    assert_eq!(shown, "alan\t:1912\nada\t:countess born:1815\n");
    assert_eq!(printed(&format!("multi-get {db} ada")), "ada\tcountess\n");
    let json = printed(&format!("multi_get_entity {db} ada --json"));
    let facts: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(facts["columns"][1]["value"], "1815");
    assert_eq!(said(&format!("multi-get-entity {db} ada none")).0, 1);
}

#[test]
fn a_single_deletion_is_one_in_the_wal() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = format!("--db {}", path.display());
    printed(&format!("put {db} a 1"));
    printed(&format!("single-delete {db} a"));
    assert_eq!(said(&format!("get {db} a")).0, 1);
    printed(&format!("put {db} b 1"));
    printed(&format!("singledelete {db} b"));
    let entries = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let mut wals: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|found| found == "log")).collect();
    wals.sort();
    let newest = wals.pop().unwrap();
    let shown = printed(&format!("wal {} --operations", newest.display()));
    assert!(shown.contains("SingleDelete"), "{shown}");
}

#[test]
fn range_deletions_in_tables_are_listed() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = format!("--db {}", path.display());
    let calm = "--set disable_auto_compactions=true";
    let lines = b"put a 1\nput b 2\nput c 3\ndelete-range a b\ndelete-range c d\n";
    printed(&format!("put {db} z 0 {calm}"));
    assert!(run_with_input(&format!("query {db}"), lines).status.success());
    assert_eq!(printed(&format!("list-range-deletions {db}")), "", "they are in a WAL");
    printed(&format!("flush {db} {calm}"));
    let table = tables_in(&path).pop().unwrap();
    let table = table.display();
    let listed = printed(&format!("list-range-deletions {db}"));
    assert_eq!(listed, format!("{table}\ta\tb\t5\n{table}\tc\td\t6\n"));
    let one = printed(&format!("list_file_range_deletes {db} --max_keys=1 --hex"));
    assert_eq!(one, format!("{table}\t61\t62\t5\n"));
    let json = printed(&format!("list-range-deletions {db} --json --limit 1"));
    let facts: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&facts["end_key"], &facts["sequence"]), (&"b".into(), &5.into()), "{json}");
    if let Some(referee) = referee() {
        let theirs = referee.ldb(&path, &["list_file_range_deletes"]).unwrap();
        assert!(theirs.contains("start: 61 end: 62 seq: 5"), "{theirs}");
        assert!(theirs.contains("start: 63 end: 64 seq: 6"), "{theirs}");
    }
    let (code, text) = said(&format!("list-range-deletions {db} --cf none"));
    assert!(code == 2 && text.contains("no column family"), "{text}");
}
