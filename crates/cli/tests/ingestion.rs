//! `write-extern-sst` and `ingest`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use common::{failed, printed, run_with_input};

#[test]
fn a_dump_becomes_a_table_and_is_ingested() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("target"));
    let (source, target) = (source.display(), target.display());
    let table = scratch.path().join("table.sst");
    let at = table.display();
    for (key, value) in [("a", "1"), ("b", "2"), ("c", "3")] {
        printed(&format!("put --db {source} {key} {value}"));
    }
    printed(&format!("put --db {target} b old"));
    printed(&format!("put --db {target} d old"));
    let dump = printed(&format!("dump --db {source}"));
    let output = run_with_input(&format!("write-extern-sst --db {target} {at}"), dump.as_bytes());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "3 keys written\n");
    assert_eq!(printed(&format!("ingest --db {target} {at}")), "1 table ingested\n");
    assert_eq!(printed(&format!("count --db {target}")).trim(), "4");
    assert_eq!(printed(&format!("get --db {target} b")).trim(), "2");
    assert!(table.exists());
    let moved = printed(&format!("ingest --db {target} --json --move-files {at}"));
    assert_eq!(moved, "{\"tables\":1}\n");
    assert!(!table.exists());
    assert!(printed(&format!("verify --db {target}")).contains("sound"));
}

/// Large values lie beside the blocks: the table says so, shows them and is sound.
#[test]
fn a_table_with_embedded_blobs_is_written_shown_and_ingested() {
    let scratch = tempfile::tempdir().unwrap();
    let (db, table) = (scratch.path().join("db"), scratch.path().join("table.sst"));
    let (db, at) = (db.display(), table.display());
    let large = "v".repeat(3000);
    printed(&format!("put --db {db} a small"));
    printed(&format!("put --db {db} b {large}"));
    let dump = printed(&format!("dump --db {db}"));
    let write = |more: &str| {
        run_with_input(&format!("write-extern-sst --db {db} {more} {at}"), dump.as_bytes())
    };
    let refused = write("--embedded-blobs --set format_version=5");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("need format_version 7"), "{said}");
    for (more, count) in [("--embedded-blobs", 1), ("--embedded-blobs=5", 2)] {
        let written = write(&format!("{more} --set format_version=7"));
        assert!(written.status.success(), "{written:?}");
        let entries = printed(&format!("sst --entries {at}"));
        assert!(entries.contains(&large), "{entries}");
        let shown = printed(&format!("sst --verify {at}"));
        assert!(shown.contains(", every block read: sound"), "{shown}");
        let bytes = if count == 1 { 3000 } else { 3005 };
        assert!(shown.contains(&format!("embedded.blob.stats: [{count},{bytes}]")), "{shown}");
        printed(&format!("ingest --db {db} --verify {at}"));
        assert_eq!(printed(&format!("get --db {db} b")).trim(), large);
        assert!(printed(&format!("verify --db {db}")).contains("sound"));
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db");
    let (db, table) = (db.display(), scratch.path().join("table.sst"));
    let at = table.display();
    printed(&format!("put --db {db} a 1"));
    for (input, says) in [
        ("default 62 31\ndefault 61 31\n", "keys must ascend, but 'a' comes after 'b'"),
        ("other 61 31\n", "line 1 of standard input: it is of column family 'other'"),
        ("no dump at all\n", "line 1 of standard input: "),
        ("", "a table without entries"),
    ] {
        let output = run_with_input(&format!("write-extern-sst --db {db} {at}"), input.as_bytes());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{input}: {said}");
        assert!(said.contains(says), "{input}: {said}");
        assert!(!table.exists());
    }
    std::fs::write(&table, "no table").unwrap();
    let (code, said) = failed(&format!("ingest --db {db} {at}"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("table.sst"), "{said}");
    let (code, said) = failed(&format!("ingest --db {db} --cf nope {at}"));
    assert_eq!(code, 2, "{said}");
    assert_eq!(printed(&format!("count --db {db}")).trim(), "1");
}
