//! RocksDB's tools take our tables, and we take theirs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flagstone::db::Db;
use flagstone::ingest::{SstFileWriter, SstFileWriterOptions};
use flagstone::options::IngestExternalFileOptions;

use super::common::{create, open_as_written, referee, temporary};
use super::{all, ingest};

fn table(path: &Path, first: u32, count: u32) -> PathBuf {
    let mut writer =
        SstFileWriter::create(path, &SstFileWriterOptions::default()).expect("a writer");
    for key in first..first + count {
        writer.put(format!("key{key:06}"), format!("ours{key}")).expect("a put");
    }
    writer.finish().expect("a table").path
}

/// `ldb write_extern_sst` with these lines as its input.
fn write_extern_sst(db: &Path, table: &Path, keys: std::ops::Range<u32>) {
    let mut ldb = Command::new("ldb")
        .arg(format!("--db={}", db.display()))
        .args(["--create_if_missing", "write_extern_sst"])
        .arg(table)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("ldb");
    let lines: String = keys.map(|key| format!("key{key:06} ==> theirs{key}\n")).collect();
    ldb.stdin.take().expect("its input").write_all(lines.as_bytes()).expect("a pipe");
    let output = ldb.wait_with_output().expect("ldb");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn rocksdb_takes_our_tables() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let tables = directory.path().join("tables");
    std::fs::create_dir(&tables).expect("a directory");
    let first = table(&tables.join("1.sst"), 0, 1000);
    let second = table(&tables.join("2.sst"), 500, 1000);
    referee.verify_tables(&tables);
    referee.ldb(&path, &["--create_if_missing", "put", "key000700", "old"]);
    for file in [first, second] {
        let file = file.to_str().expect("a path of text").to_string();
        referee.ldb(&path, &["ingest_extern_sst", &file]);
    }
    let db = open_as_written(&path, false);
    assert_eq!(db.get("key000700").expect("a read").expect("a value"), "ours700");
    assert_eq!(all(&db).split(' ').count(), 1500);
    assert!(db.verify(|_| {}).faults.is_empty());
}

#[test]
fn rocksdb_reads_what_we_ingested() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let (ours, theirs) = (directory.path().join("1.sst"), directory.path().join("2.sst"));
    table(&ours, 0, 1000);
    write_extern_sst(&directory.path().join("scratch"), &theirs, 500..1500);
    let expected = {
        let db = Db::open(&path, &create()).expect("a database");
        db.put("key000700", "old").expect("a put");
        db.put("key001700", "old").expect("a put");
        ingest(&db, &[&theirs]);
        ingest(&db, &[&ours]);
        let moved = IngestExternalFileOptions { move_files: true, ..Default::default() };
        db.ingest_external_files(db.default_column_family(), &[&theirs], &moved)
            .expect("the same table again");
        db.put("key000701", "new").expect("a put");
        all(&db)
    };
    assert!(!theirs.exists());
    assert_eq!(expected.split(' ').count(), 1501);
    assert!(expected.contains("key000499=ours499 key000500=theirs500 "));
    assert!(expected.contains("key000700=theirs700 key000701=new key000702=theirs702 "));
    referee.verify_tables(&path);
    referee.ldb(&path, &["checkconsistency"]);
    let scanned = referee.ldb(&path, &["scan", "--try_load_options"]);
    let scanned: Vec<_> = scanned
        .lines()
        .filter_map(|line| line.split_once(" ==> ").or_else(|| line.split_once(" : ")))
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    assert_eq!(scanned.join(" "), expected);
    referee.ldb(&path, &["compact", "--try_load_options"]);
    let db = open_as_written(&path, false);
    assert_eq!(all(&db), expected);
    assert!(db.verify(|_| {}).faults.is_empty());
}
