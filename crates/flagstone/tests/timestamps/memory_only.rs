//! `persist_user_defined_timestamps=false`: timestamps in memory and in logs, and in no table.

use flagstone::base::timestamp::from_u64;
use flagstone::{Builder, Code, Comparator, Db, ReadOptions, Result};

fn builder(path: &std::path::Path, comparator: Comparator, persists: bool) -> Builder {
    Db::builder(path).column_family("f", move |family| {
        family.comparator = comparator;
        family.settings.persist_user_defined_timestamps = persists;
        family.settings.min_blob_size = Some(1000);
        family.settings.enable_blob_files = Some(true);
        family.set("filter_policy", "bloomfilter:10").unwrap();
    })
}

fn open(path: &std::path::Path, comparator: Comparator, persists: bool) -> Result<Db> {
    builder(path, comparator, persists).open()
}

fn as_of(timestamp: u64) -> ReadOptions {
    ReadOptions { timestamp: Some(from_u64(timestamp).into()), ..ReadOptions::default() }
}

fn all(db: &Db, timestamp: u64) -> Vec<(String, usize)> {
    let entries = db.column_family("f").unwrap().as_of(from_u64(timestamp)).iter();
    let shown = |(key, value): (Vec<u8>, Vec<u8>)| (String::from_utf8(key).unwrap(), value.len());
    let forward: Vec<_> = entries.map(|entry| shown(entry.unwrap())).collect();
    let entries = db.column_family("f").unwrap().as_of(from_u64(timestamp)).iter();
    let mut back: Vec<_> = entries.rev().map(|entry| shown(entry.unwrap())).collect();
    back.reverse();
    assert_eq!(forward, back);
    forward
}

fn expected(entries: &[(&str, usize)]) -> Vec<(String, usize)> {
    entries.iter().map(|(key, size)| ((*key).to_owned(), *size)).collect()
}

#[test]
fn a_flush_forgets_timestamps() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path(), Comparator::BytewiseU64Ts, false).unwrap();
    let family = db.column_family("f").unwrap();
    for (timestamp, size) in [(10, 1), (20, 20_000), (30, 3)] {
        family.put_with_timestamp("a", from_u64(timestamp), vec![7; size]).unwrap();
    }
    family.put_with_timestamp("ab", from_u64(30), vec![7; 2000]).unwrap();
    family.put_with_timestamp("b", from_u64(30), vec![7; 9]).unwrap();
    family.put_with_timestamp("c", from_u64(30), "").unwrap();
    family.delete_with_timestamp("c", from_u64(31)).unwrap();
    assert_eq!(all(&db, 25), expected(&[("a", 20_000)]));
    family.flush().unwrap();
    assert_eq!(family.full_history_ts_low().unwrap().unwrap(), from_u64(32));
    let refused = family.get_with("a", &as_of(25)).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    let kept = expected(&[("a", 3), ("ab", 2000), ("b", 9)]);
    assert_eq!(all(&db, 32), kept);
    assert_eq!(family.get_with("ab", &as_of(40)).unwrap().unwrap().len(), 2000);
    // Newer versions in memory over those in tables, and tables over tables.
    family.delete_with_timestamp("a", from_u64(40)).unwrap();
    family.delete_range_with_timestamp("b".."c", from_u64(41)).unwrap();
    assert_eq!(all(&db, 39), kept);
    assert_eq!(all(&db, 41), expected(&[("ab", 2000)]));
    drop((family, db));
    let db = open(directory.path(), Comparator::BytewiseU64Ts, false).unwrap();
    let family = db.column_family("f").unwrap();
    // Opening has flushed what the log had.
    assert_eq!(family.full_history_ts_low().unwrap().unwrap(), from_u64(42));
    let refused = family.get_with("a", &as_of(39)).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert_eq!(all(&db, 42), expected(&[("ab", 2000)]));
    family.put_with_timestamp("d", from_u64(50), vec![7; 1500]).unwrap();
    family.compact().unwrap();
    assert_eq!(all(&db, 51), expected(&[("ab", 2000), ("d", 1500)]));
    drop((family, db));
    let db = open(directory.path(), Comparator::BytewiseU64Ts, false).unwrap();
    assert_eq!(all(&db, 51), expected(&[("ab", 2000), ("d", 1500)]));
    assert!(db.verify(|_| {}).faults.is_empty());
}

#[test]
fn a_family_gets_timestamps_and_loses_them() {
    let directory = tempfile::tempdir().unwrap();
    let plain = || open(directory.path(), Comparator::Bytewise, true);
    let stamped = |persists| open(directory.path(), Comparator::BytewiseU64Ts, persists);
    let db = plain().unwrap();
    let family = db.column_family("f").unwrap();
    family.put("flushed", "1").unwrap();
    family.flush().unwrap();
    family.put("logged", "22").unwrap();
    drop((family, db));
    let refused = stamped(true).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    let db = stamped(false).unwrap();
    assert_eq!(all(&db, 1), expected(&[("flushed", 1), ("logged", 2)]));
    let family = db.column_family("f").unwrap();
    family.put_with_timestamp("logged", from_u64(5), "333").unwrap();
    family.put_with_timestamp("new", from_u64(6), "4444").unwrap();
    assert_eq!(all(&db, 5), expected(&[("flushed", 1), ("logged", 3)]));
    drop((family, db));
    let refused = stamped(true).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    // What the log has loses its timestamps.
    let db = plain().unwrap();
    let family = db.column_family("f").unwrap();
    let found = |key: &str| family.get(key).unwrap().map(|value| value.len());
    assert_eq!(["flushed", "logged", "new"].map(found), [Some(1), Some(3), Some(4)]);
    family.compact().unwrap();
    drop((family, db));
    let db = stamped(false).unwrap();
    assert_eq!(all(&db, 1), expected(&[("flushed", 1), ("logged", 3), ("new", 4)]));
}

#[test]
fn a_family_with_blob_files_keeps_its_timestamps_or_lack_of_them() {
    for gets_them in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let plain = || open(directory.path(), Comparator::Bytewise, true);
        let stamped = || open(directory.path(), Comparator::BytewiseU64Ts, false);
        let db = if gets_them { plain() } else { stamped() }.unwrap();
        let family = db.column_family("f").unwrap();
        if gets_them {
            family.put("k", vec![7; 2000]).unwrap();
        } else {
            family.put_with_timestamp("k", from_u64(3), vec![7; 2000]).unwrap();
        }
        family.flush().unwrap();
        drop((family, db));
        let refused = if gets_them { stamped() } else { plain() }.unwrap_err();
        assert_eq!(refused.code(), Code::NotSupported, "{refused}");
        assert!(refused.to_string().contains("copy its entries"), "{refused}");
        let other = if gets_them { Comparator::BytewiseU64Ts } else { Comparator::Bytewise };
        let own = tempfile::tempdir().unwrap();
        let secondary = builder(directory.path(), other, !gets_them).open_secondary(own.path());
        let refused = secondary.map(drop).unwrap_err();
        assert_eq!(refused.code(), Code::NotSupported, "{refused}");
        let db = if gets_them { plain() } else { stamped() }.unwrap();
        let family = db.column_family("f").unwrap();
        let options = if gets_them { ReadOptions::default() } else { as_of(9) };
        assert_eq!(family.get_with("k", &options).unwrap().unwrap().len(), 2000);
    }
}
