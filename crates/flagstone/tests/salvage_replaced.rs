//! What a process that dies leaves beside what counts, tables and WALs that were replaced, where
//! the MANIFEST is lost.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::path::Path;

use common::*;
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db, SalvageReport, salvage};
use flagstone::options::{
    BottommostLevelCompaction, CompactFilesOptions, CompactRangeOptions, FlushOptions, Options,
    ReadOptions, WriteOptions,
};

/// With these nothing is compacted unasked.
fn settings(recycled: usize) -> Options {
    let mut options = create();
    let text = "disable_auto_compactions=true;allow_fallocate=false;merge_operator=uint64add";
    options.set_all(text).expect("known options");
    options.set("recycle_log_file_num", &recycled.to_string()).expect("a known option");
    options
}

fn open(scratch: &Path, options: &Options) -> Db {
    Db::open(scratch.join("source"), options).expect("it opens")
}

fn flush(db: &Db, family: &ColumnFamily) {
    db.flush(family, &FlushOptions::default()).expect("a flush");
}

/// Rewrites all tables of the default family.
fn compact(db: &Db) {
    let bottommost_level_compaction = BottommostLevelCompaction::Force;
    let options =
        CompactRangeOptions { bottommost_level_compaction, ..CompactRangeOptions::default() };
    db.compact_range(db.default_column_family(), None, None, &options).expect("a compaction");
}

/// Rebuilds what a process leaves that is killed now.
fn rescue(scratch: &Path, options: &Options, has_manifest: bool) -> (Db, SalvageReport) {
    let [killed, saved] =
        ["killed", "saved"].map(|name| scratch.join(format!("{name} {has_manifest}")));
    copy_directory(&scratch.join("source"), &killed);
    for entry in
        std::fs::read_dir(&killed).expect("a directory").map(|entry| entry.expect("an entry"))
    {
        if !has_manifest && entry.file_name().to_string_lossy().starts_with("MANIFEST") {
            std::fs::remove_file(entry.path()).expect("removed");
        }
    }
    let report = salvage(&killed, &saved, options, &[], &mut |_| {}).expect("salvaged");
    (open_as_written(&saved, true), report)
}

fn held(db: &Db) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let all = entries(db, db.default_column_family());
    all.into_iter().map(|(key, value)| (text(key), text(value))).collect()
}

/// Whether a note tells of a key that a range deletion may have deleted.
fn is_doubted(report: &SalvageReport) -> bool {
    report
        .notes
        .iter()
        .any(|note| note.starts_with("1 key of family 'default' may have been deleted"))
}

/// The bounds that a table notes passed for proof that its range deletion still counts. A cursor
/// held the table of one that a compaction had replaced, and what was written since, and had lost
/// its sequence number, was deleted without a word.
#[test]
fn a_range_deletion_whose_table_was_replaced_deletes_nothing_that_was_written_since() {
    for compactions in [1, 2] {
        let (scratch, options) = (temporary(), settings(0));
        let db = open(scratch.path(), &options);
        db.put("old", "value").expect("a put");
        db.flush_all().expect("a flush");
        compact(&db);
        db.delete_range("a", "z").expect("a deletion");
        db.flush_all().expect("a flush");
        let cursor = db.iter(&ReadOptions::default()).expect("a cursor");
        db.put("p", "new").expect("a put");
        db.flush_all().expect("a flush");
        (0..compactions).for_each(|_| compact(&db));
        assert_eq!(held(&db), [("p".to_string(), "new".to_string())]);
        let (saved, report) = rescue(scratch.path(), &options, false);
        drop(cursor);
        assert_eq!(held(&saved), [("p".to_string(), "new".to_string())], "{report:#?}");
        assert!(report.is_complete() && is_doubted(&report), "{report:#?}");
    }
}

/// A cursor held the table with the deletion of a key that was written again, and had lost its
/// sequence number. Whether the value lay below it nothing tells; it was deleted without a word.
#[test]
fn a_deletion_that_may_be_older_than_a_value_is_told() {
    let (scratch, options) = (temporary(), settings(0));
    let db = open(scratch.path(), &options);
    db.put("p", "old").expect("a put");
    db.flush_all().expect("a flush");
    compact(&db);
    db.delete("p").expect("a deletion");
    db.flush_all().expect("a flush");
    let cursor = db.iter(&ReadOptions::default()).expect("a cursor");
    db.put("p", "new").expect("a put");
    db.flush_all().expect("a flush");
    compact(&db);
    let is_told = |report: &SalvageReport| {
        report
            .notes
            .iter()
            .any(|note| note.starts_with("1 key of family 'default' is treated as deleted"))
    };
    let (saved, report) = rescue(scratch.path(), &options, true);
    assert_eq!(held(&saved), [("p".to_string(), "new".to_string())], "{report:#?}");
    assert!(report.is_complete() && !is_told(&report), "{report:#?}");
    let (_, report) = rescue(scratch.path(), &options, false);
    assert!(is_told(&report), "{report:#?}");
    drop(cursor);
}

/// Without a MANIFEST the same files may be left where the range deletion still counts.
#[test]
fn a_range_deletion_above_what_was_compacted_since_needs_a_manifest() {
    let (scratch, options) = (temporary(), settings(0));
    let db = open(scratch.path(), &options);
    let default = db.default_column_family();
    db.put("p", "old").expect("a put");
    db.flush_all().expect("a flush");
    compact(&db);
    let [bottom] = &db.live_files()[..] else { panic!("{:?}", db.live_files()) };
    db.delete_range("a", "z").expect("a deletion");
    db.flush_all().expect("a flush");
    let level = bottom.level.expect("a table");
    db.compact_files(default, &[bottom.number], level, &CompactFilesOptions::default())
        .expect("a compaction");
    assert!(held(&db).is_empty());
    let (saved, report) = rescue(scratch.path(), &options, true);
    assert!(held(&saved).is_empty() && report.is_complete() && !is_doubted(&report), "{report:#?}");
    let (saved, report) = rescue(scratch.path(), &options, false);
    assert_eq!(held(&saved), [("p".to_string(), "old".to_string())], "{report:#?}");
    assert!(report.is_complete() && is_doubted(&report), "{report:#?}");
}

/// Of WALs that became obsolete together the oldest were kept for recycling, with what was put, and
/// the newest removed, with its deletion.
#[test]
fn wals_that_wait_to_be_recycled_bring_back_nothing() {
    let (scratch, options) = (temporary(), settings(2));
    let db = open(scratch.path(), &options);
    let other = db.create_column_family("other", &options.cf).expect("a family");
    let default = db.default_column_family();
    db.put_cf(&other, "it", "keeps the WALs").expect("a put");
    db.put("first", "value").expect("a put");
    flush(&db, default);
    db.put("second", "value").expect("a put");
    flush(&db, default);
    db.delete("first").expect("a deletion");
    db.delete("second").expect("a deletion");
    flush(&db, default);
    compact(&db);
    assert!(db.live_files().is_empty());
    assert_eq!(db.wal_files().len(), 4);
    flush(&db, &other);
    assert_eq!(db.wal_files().len(), 1);
    let (saved, report) = rescue(scratch.path(), &options, false);
    assert!(held(&saved).is_empty() && report.is_complete(), "{:?} {report:#?}", held(&saved));
    let other = saved.column_family("other").expect("the family");
    assert_eq!(entries(&saved, &other).len(), 1);
}

/// What a table notes of the writes that tables have went when a compaction read it that met no
/// sequence number: a WAL that was kept for another family was done once more, an operand counted
/// twice, and what was written without a log was deleted.
#[test]
fn a_wal_that_tables_have_is_passed_over_however_often_these_were_compacted() {
    for compactions in [1, 2, 3] {
        let (scratch, options) = (temporary(), settings(0));
        let db = open(scratch.path(), &options);
        let other = db.create_column_family("other", &options.cf).expect("a family");
        db.put_cf(&other, "it", "keeps the WAL").expect("a put");
        db.merge("sum", 1u64.to_le_bytes()).expect("an operand");
        db.delete_range("a", "c").expect("a deletion");
        let mut batch = WriteBatch::new();
        batch.put(b"b", b"written since").expect("a put");
        db.write_with(&WriteOptions { disable_wal: true, ..WriteOptions::default() }, batch)
            .expect("a write");
        flush(&db, db.default_column_family());
        (0..compactions).for_each(|_| compact(&db));
        let (saved, report) = rescue(scratch.path(), &options, false);
        let value = |key: &str| saved.get(key).expect("a read").map(|value| value.to_vec());
        assert_eq!(value("sum"), Some(1u64.to_le_bytes().to_vec()), "{compactions}: {report:#?}");
        assert_eq!(value("b"), Some(b"written since".to_vec()), "{compactions}: {report:#?}");
    }
}
