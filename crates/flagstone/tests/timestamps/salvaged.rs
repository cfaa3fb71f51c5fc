//! Damaged databases whose keys end in timestamps are rebuilt.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

use std::path::Path;

use flagstone::base::ValueType;
use flagstone::base::timestamp::from_u64;
use flagstone::db::{SalvageReport, salvage};
use flagstone::options::Options;
use flagstone::{ColumnFamilyOptions, Comparator, Db, TransactionDbOptions, WriteBatch};
use testkit::referee::Referee;

fn stamped(persists: bool) -> impl Fn(&mut ColumnFamilyOptions) {
    move |family| {
        family.comparator = Comparator::BytewiseU64Ts;
        family.settings.persist_user_defined_timestamps = persists;
        family.settings.enable_blob_files = Some(true);
        family.settings.min_blob_size = Some(1000);
        family.settings.disable_auto_compactions = true;
        family.set("merge_operator", "stringappend").unwrap();
    }
}

fn open(path: &Path, persists: bool) -> Db {
    Db::builder(path).column_family("stamped", stamped(persists)).open().unwrap()
}

fn rebuild(source: &Path, target: &Path, persists: bool) -> SalvageReport {
    let mut options = ColumnFamilyOptions::default();
    stamped(persists)(&mut options);
    let families = [("stamped", options)];
    salvage(source, target, &Options::default(), &families, &mut |_| {}).unwrap()
}

/// What is read as of each timestamp, keys with the sizes or bytes of values.
fn all(db: &Db, timestamps: std::ops::RangeInclusive<u64>) -> Vec<(u64, String)> {
    let family = db.column_family("stamped").unwrap();
    let shown = |(key, value): (Vec<u8>, Vec<u8>)| {
        let value = if value.len() > 20 { value.len().to_string().into() } else { value };
        format!("{}={}", key.escape_ascii(), value.escape_ascii())
    };
    let at = |timestamp| {
        let entries = family.as_of(from_u64(timestamp)).iter();
        entries.map(|entry| shown(entry.unwrap())).collect::<Vec<_>>().join(" ")
    };
    timestamps.map(|timestamp| (timestamp, at(timestamp))).collect()
}

/// Puts, deletions of all kinds and operands, in tables, in blob files and in a WAL.
fn fill(db: &Db) {
    let family = db.column_family("stamped").unwrap();
    family.put_with_timestamp("a", from_u64(1), vec![1; 3000]).unwrap();
    family.put_with_timestamp("b", from_u64(1), "b1").unwrap();
    family.put_with_timestamp("c", from_u64(1), "c1").unwrap();
    family.put_with_timestamp("d", from_u64(2), "d2").unwrap();
    family.flush().unwrap();
    family.put_with_timestamp("a", from_u64(3), "a3").unwrap();
    family.delete_with_timestamp("b", from_u64(3)).unwrap();
    family.merge_with_timestamp("c", from_u64(4), "c4").unwrap();
    family.delete_range_with_timestamp("c".."e", from_u64(5)).unwrap();
    family.flush().unwrap();
    family.put_with_timestamp("b", from_u64(6), "b6").unwrap();
    family.merge_with_timestamp("c", from_u64(6), "c6").unwrap();
    family.merge_with_timestamp("c", from_u64(7), "c7").unwrap();
    family.put_with_timestamp("e", from_u64(7), vec![7; 2000]).unwrap();
    family.delete_range_with_timestamp("a".."b", from_u64(8)).unwrap();
    family.put_with_timestamp("a", from_u64(9), "a9").unwrap();
    family.delete_with_timestamp("e", from_u64(9)).unwrap();
}

/// Such databases were refused.
#[test]
fn all_versions_of_keys_are_rebuilt() {
    for loses_manifest in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (source, target) = (directory.path().join("db"), directory.path().join("saved"));
        let db = open(&source, true);
        fill(&db);
        let expected = all(&db, 0..=10);
        assert_eq!(expected[7].1, "a=a3 b=b6 c=c6,c7 e=2000");
        assert_eq!(expected[8].1, "b=b6 c=c6,c7 e=2000");
        db.close().unwrap();
        if loses_manifest {
            for file in std::fs::read_dir(&source).unwrap() {
                let path = file.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if name.starts_with("MANIFEST") || name == "CURRENT" {
                    std::fs::remove_file(path).unwrap();
                }
            }
        }
        let report = rebuild(&source, &target, true);
        assert!(report.is_complete(), "{report:#?}");
        let doubt = |note: &String| note.contains("from which on its history is complete");
        assert_eq!(report.notes.iter().any(doubt), loses_manifest, "{report:#?}");
        let db = open(&target, true);
        assert_eq!(all(&db, 0..=10), expected, "{report:#?}");
        if let Some(referee) = Referee::find() {
            assert_eq!(referee.verify_tables(&target).unwrap(), 1);
        }
        let report = db.engine().verify(|_| {});
        assert!(report.faults.is_empty(), "{:?}", report.faults);
        let family = db.column_family("stamped").unwrap();
        family.compact().unwrap();
        assert_eq!(all(&db, 0..=10), expected);
    }
}

#[test]
fn history_begins_where_it_did_before() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("db"), directory.path().join("saved"));
    let db = open(&source, true);
    fill(&db);
    let family = db.column_family("stamped").unwrap();
    family.increase_full_history_ts_low(from_u64(6)).unwrap();
    family.compact().unwrap();
    let expected = all(&db, 6..=10);
    drop(family);
    db.close().unwrap();
    let report = rebuild(&source, &target, true);
    assert!(report.is_complete(), "{report:#?}");
    let db = open(&target, true);
    assert_eq!(all(&db, 6..=10), expected);
    let family = db.column_family("stamped").unwrap();
    assert_eq!(family.full_history_ts_low().unwrap().unwrap(), from_u64(6));
    assert!(family.as_of(from_u64(5)).get("a").is_err());
}

/// As after a flush, the timestamps of what was in the WAL are forgotten.
#[test]
fn the_newest_versions_are_rebuilt_of_tables_without_timestamps() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("db"), directory.path().join("saved"));
    let db = open(&source, false);
    fill(&db);
    let expected = all(&db, 10..=11);
    assert_eq!(expected[0].1, "a=a9 b=b6 c=c6,c7");
    db.close().unwrap();
    let report = rebuild(&source, &target, false);
    assert!(report.is_complete(), "{report:#?}");
    let db = open(&target, false);
    assert_eq!(all(&db, 10..=11), expected);
    let family = db.column_family("stamped").unwrap();
    assert_eq!(family.full_history_ts_low().unwrap().unwrap(), from_u64(10));
    family.put_with_timestamp("b", from_u64(12), "b12").unwrap();
    family.compact().unwrap();
    assert_eq!(all(&db, 13..=13), [(13, "a=a9 b=b12 c=c6,c7".to_string())]);
}

#[test]
fn large_values_are_rebuilt_of_tables_without_timestamps() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("db"), directory.path().join("saved"));
    let db = open(&source, false);
    let family = db.column_family("stamped").unwrap();
    family.put_with_timestamp("a", from_u64(1), vec![1; 3000]).unwrap();
    family.flush().unwrap();
    family.put_with_timestamp("b", from_u64(2), vec![2; 5000]).unwrap();
    drop(family);
    db.close().unwrap();
    let report = rebuild(&source, &target, false);
    assert!(report.is_complete(), "{report:#?}");
    let db = open(&target, false);
    assert_eq!(all(&db, 3..=3), [(3, "a=3000 b=5000".to_string())]);
}

#[test]
fn what_was_prepared_is_rebuilt_as_of_its_commit() {
    for persists in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let (source, target) = (directory.path().join("db"), directory.path().join("saved"));
        let builder = Db::builder(&source).column_family("stamped", stamped(persists));
        let db = builder.open_transaction_db(&TransactionDbOptions::default()).unwrap();
        let family = db.column_family("stamped").unwrap();
        for (name, commits) in [("first", true), ("second", false)] {
            let mut transaction = db.begin();
            transaction.set_name(name).unwrap();
            transaction.put(&family, name, "value").unwrap();
            transaction.prepare().unwrap();
            if commits {
                transaction.set_commit_timestamp(from_u64(4));
                transaction.commit().unwrap();
            }
        }
        drop((family, db));
        let report = rebuild(&source, &target, persists);
        assert!(!report.is_complete(), "the second is lost: {report:#?}");
        let db = open(&target, persists);
        assert_eq!(all(&db, 5..=5), [(5, "first=value".to_string())]);
        if persists {
            assert_eq!(all(&db, 3..=3), [(3, String::new())]);
        } else {
            let family = db.column_family("stamped").unwrap();
            assert_eq!(family.full_history_ts_low().unwrap().unwrap(), from_u64(5));
        }
    }
}

/// RocksDB keeps a deletion of this kind from the older timestamps of its key.
#[test]
fn deletions_of_a_wal_have_the_kind_that_timestamps_ask_for() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("db"), directory.path().join("saved"));
    let db = open(&source, true);
    let family = db.column_family("stamped").unwrap();
    family.put_with_timestamp("e", from_u64(7), "e7").unwrap();
    family.delete_with_timestamp("e", from_u64(9)).unwrap();
    drop(family);
    db.close().unwrap();
    assert!(rebuild(&source, &target, true).is_complete());
    let db = open(&target, true);
    let family = db.column_family("stamped").unwrap();
    let versions = family.key_versions::<&str>(.., 10).unwrap();
    let kinds: Vec<_> = versions.iter().map(|version| version.kind).collect();
    assert_eq!(kinds, [ValueType::DeletionWithTimestamp, ValueType::Value]);
}

#[test]
fn a_dropped_family_with_timestamps_costs_others_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("db"), directory.path().join("saved"));
    let db = open(&source, true);
    let family = db.column_family("stamped").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("stone", "flag").unwrap();
    batch.put_with_timestamp(family.engine_family(), "e", from_u64(7), "e7").unwrap();
    db.write(batch).unwrap();
    db.drop_column_family(&family).unwrap();
    drop(family);
    db.close().unwrap();
    let report = salvage(&source, &target, &Options::default(), &[], &mut |_| {}).unwrap();
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(Db::open(&target).unwrap().get("stone").unwrap().unwrap(), "flag");
}

/// The log says once which keys end in timestamps.
#[test]
fn no_key_is_invented_where_the_log_lost_what_it_said_of_timestamps() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("db"), directory.path().join("saved"));
    let db = open(&source, false);
    let family = db.column_family("stamped").unwrap();
    db.put("stone", "flag").unwrap();
    for number in 1..5 {
        family.put_with_timestamp("key", from_u64(number), "value").unwrap();
    }
    drop(family);
    db.close().unwrap();
    let files = std::fs::read_dir(&source).unwrap().map(|file| file.unwrap().path());
    let log = files.filter(|path| path.extension().is_some_and(|is| is == "log")).max().unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    // A recyclable record of sizes: its payload is the family, and 8.
    let sizes = [1, 0, 0, 0, 8, 0];
    let at = bytes.windows(6).position(|window| window == sizes).unwrap();
    bytes[at] ^= 0x80;
    std::fs::write(&log, bytes).unwrap();
    let report = rebuild(&source, &target, false);
    assert!(!report.is_complete());
    let db = open(&target, false);
    assert_eq!(db.get("stone").unwrap().unwrap(), "flag");
    assert_eq!(all(&db, 9..=9), [(9, String::new())]);
}
