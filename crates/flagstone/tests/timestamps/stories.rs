//! What a program may do with timestamps, and what is refused.

use flagstone::base::timestamp::from_u64;
use flagstone::{
    BottommostLevelCompaction, Code, CompactRangeOptions, Comparator, Cursor, Db, Error,
    ReadOptions, SstFileWriter, SstFileWriterOptions, TransactionDbOptions, WriteBatch,
};

fn open(path: &std::path::Path) -> Db {
    Db::builder(path)
        .column_family("stamped", |family| family.comparator = Comparator::BytewiseU64Ts)
        .column_family("plain", |_| {})
        .open()
        .unwrap()
}

fn as_of(timestamp: u64) -> ReadOptions {
    ReadOptions { timestamp: Some(from_u64(timestamp).into()), ..ReadOptions::default() }
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>, said: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.to_string().contains(said), "{error}");
}

#[test]
fn each_family_has_timestamps_or_none() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let (stamped, plain) =
        (db.column_family("stamped").unwrap(), db.column_family("plain").unwrap());
    refused(stamped.put("k", "v"), "takes writes with timestamps of 8 bytes only");
    refused(stamped.put("k", vec![7; 1 << 20]), "takes writes with timestamps of 8 bytes only");
    refused(stamped.delete("k"), "takes writes with timestamps");
    refused(stamped.put_entity("k", [("a", "b")]), "takes writes with timestamps");
    refused(plain.put_with_timestamp("k", from_u64(1), "v"), "has no timestamps");
    refused(
        stamped.put_with_timestamp("k", b"four", "v"),
        "those of column family 'stamped' have 8",
    );
    refused(stamped.put_with_timestamp("k", b"", "v"), "a timestamp has 1 to 65535 bytes");
    refused(stamped.get("k"), "set ReadOptions::timestamp");
    refused(stamped.get_many(&["k"]), "set ReadOptions::timestamp");
    refused(stamped.cursor(&ReadOptions::default()).map(drop), "set ReadOptions::timestamp");
    refused(plain.get_with("k", &as_of(1)), "has no timestamps");
    refused(plain.cursor(&as_of(1)).map(drop), "has no timestamps");
    refused(stamped.as_of(b"four").get("k"), "have 8");
    refused(plain.full_history_ts_low(), "has no timestamps");
    // Nothing of this was written.
    assert_eq!(stamped.as_of(from_u64(u64::MAX)).get("k").unwrap(), None);
    assert_eq!(stamped.newest_timestamp().unwrap(), None);
}

#[test]
fn a_batch_writes_to_a_family_in_one_way() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let stamped = db.column_family("stamped").unwrap();
    let mut batch = WriteBatch::new();
    batch.put_with_timestamp(&stamped, "a", from_u64(1), "1").unwrap();
    refused(batch.put_cf(&stamped, "b", "2"), "with timestamps of one size only");
    refused(batch.delete_with_timestamp(&stamped, "b", b"four"), "of one size only");
    batch.set_save_point();
    batch.put_cf(&db.column_family("plain").unwrap(), "p", "3").unwrap();
    batch.rollback_to_save_point().unwrap();
    let mut unstamped = WriteBatch::new();
    unstamped.put_cf(&stamped, "c", "4").unwrap();
    unstamped.delete_cf(&stamped, "a").unwrap();
    refused(unstamped.put_with_timestamp(&stamped, "d", from_u64(1), "5"), "of one size only");
    refused(db.write(unstamped.clone()), "takes writes with timestamps");
    let id = stamped.engine_family().id();
    unstamped.set_timestamps(from_u64(2), |family| if family == id { 8 } else { 0 }).unwrap();
    // A second time they take the place of the first.
    unstamped.set_timestamps(from_u64(3), |family| if family == id { 8 } else { 0 }).unwrap();
    db.write(batch).unwrap();
    // As bytes, e.g. from a log, its keys have what they end in.
    db.write(WriteBatch::from_bytes(unstamped.into_bytes()).unwrap()).unwrap();
    assert_eq!(stamped.as_of(from_u64(2)).get("a").unwrap().unwrap(), "1");
    assert_eq!(stamped.as_of(from_u64(2)).get("c").unwrap(), None);
    assert_eq!(stamped.as_of(from_u64(3)).get("a").unwrap(), None);
    assert_eq!(stamped.as_of(from_u64(3)).get("c").unwrap().unwrap(), "4");
    let mut short = WriteBatch::new();
    short.put_cf(&stamped, "short", "").unwrap();
    let short = WriteBatch::from_bytes(short.into_bytes()).unwrap();
    refused(db.write(short), "too short for its timestamp");
}

#[test]
fn history_is_read_down_to_its_low_mark() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let stamped = db.column_family("stamped").unwrap();
    for timestamp in 1..=5 {
        stamped.put_with_timestamp("k", from_u64(timestamp), timestamp.to_string()).unwrap();
    }
    assert_eq!(stamped.full_history_ts_low().unwrap(), None);
    stamped.increase_full_history_ts_low(from_u64(4)).unwrap();
    stamped.increase_full_history_ts_low(from_u64(4)).unwrap();
    refused(stamped.increase_full_history_ts_low(from_u64(3)), "is higher already");
    refused(stamped.increase_full_history_ts_low(b"four"), "have 8");
    refused(stamped.get_with("k", &as_of(3)), "timestamp 3 is older than full_history_ts_low 4");
    let from_3 = ReadOptions { iter_start_ts: Some(from_u64(3).into()), ..as_of(5) };
    refused(stamped.cursor(&from_3).map(drop), "timestamp 3 is older");
    stamped.compact().unwrap();
    // The newest before the mark stays, and nothing older.
    assert_eq!(entries(&db), 3);
    for timestamp in 4..=5 {
        let found = stamped.get_with("k", &as_of(timestamp)).unwrap();
        assert_eq!(found.unwrap(), timestamp.to_string()[..]);
    }
    drop((stamped, db));
    let db = open(directory.path());
    let stamped = db.column_family("stamped").unwrap();
    assert_eq!(stamped.full_history_ts_low().unwrap().unwrap(), from_u64(4));
    refused(stamped.get_with("k", &as_of(3)), "timestamp 3 is older");
    assert_eq!(stamped.newest_timestamp().unwrap().unwrap(), from_u64(5));
}

fn to_the_bottom() -> CompactRangeOptions {
    CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    }
}

/// How many entries the family's tables have.
fn entries(db: &Db) -> u64 {
    let files = db.live_files();
    let own = files.iter().filter(|file| file.column_family == "stamped");
    own.filter_map(|file| file.entries).map(|(entries, _)| entries).sum()
}

#[test]
fn deletions_and_what_they_delete_go_together_once_they_are_before_history() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let stamped = db.column_family("stamped").unwrap();
    stamped.put_with_timestamp("k", from_u64(1), "1").unwrap();
    stamped.put_with_timestamp("r", from_u64(1), "1").unwrap();
    stamped.delete_with_timestamp("k", from_u64(2)).unwrap();
    stamped.delete_range_with_timestamp("q".."s", from_u64(2)).unwrap();
    stamped.compact().unwrap();
    assert_eq!(stamped.as_of(from_u64(1)).iter().count(), 2);
    assert_eq!(stamped.as_of(from_u64(2)).iter().count(), 0);
    stamped.increase_full_history_ts_low(from_u64(3)).unwrap();
    stamped.put_with_timestamp("a", from_u64(4), "1").unwrap();
    stamped.compact_range::<&str>(.., &to_the_bottom()).unwrap();
    assert_eq!(stamped.as_of(from_u64(4)).iter().count(), 1);
    assert_eq!(entries(&db), 1);
}

#[test]
fn tables_with_timestamps_are_written_outside_and_taken_in() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory.path().join("db"));
    let stamped = db.column_family("stamped").unwrap();
    let table = directory.path().join("table.sst");
    let mut options = SstFileWriterOptions::default();
    options.family.comparator = Comparator::BytewiseU64Ts;
    let mut writer = SstFileWriter::create(&table, &options).unwrap();
    writer.put_with_timestamp("a", from_u64(7), "new").unwrap();
    writer.put_with_timestamp("a", from_u64(3), "old").unwrap();
    writer.delete_with_timestamp("b", from_u64(7)).unwrap();
    writer.finish().unwrap();
    stamped.ingest_external_files(&[&table], &Default::default()).unwrap();
    assert_eq!(stamped.as_of(from_u64(7)).get("a").unwrap().unwrap(), "new");
    assert_eq!(stamped.as_of(from_u64(6)).get("a").unwrap().unwrap(), "old");
    // Which of two tables has the newer version of a key nothing would tell.
    refused(stamped.ingest_external_files(&[&table], &Default::default()), "timestamps");

    let mut writer = SstFileWriter::create(&table, &options).unwrap();
    refused(writer.put("c", "no timestamp"), "put_with_timestamp");
    let mut writer = SstFileWriter::create(&table, &options).unwrap();
    refused(writer.put_with_timestamp("c", b"four", "v"), "have 8");
    let plain = SstFileWriterOptions::default();
    let mut writer = SstFileWriter::create(&table, &plain).unwrap();
    writer.put("c", "v").unwrap();
    writer.finish().unwrap();
    refused(stamped.ingest_external_files(&[&table], &Default::default()), "ordered by comparator");
}

#[test]
fn a_transaction_is_written_as_of_its_commit_timestamp() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path())
        .column_family("stamped", |family| family.comparator = Comparator::BytewiseU64Ts)
        .column_family("plain", |_| {});
    let db = builder.open_transaction_db(&TransactionDbOptions::default()).unwrap();
    let (stamped, plain) =
        (db.column_family("stamped").unwrap(), db.column_family("plain").unwrap());
    stamped.put_with_timestamp("a", from_u64(10), "old").unwrap();

    let mut first = db.begin();
    first.set_read_timestamp(from_u64(10));
    assert_eq!(first.get_for_update(&stamped, "a").unwrap().unwrap(), "old");
    first.put(&stamped, "a", "new").unwrap();
    first.put(&stamped, "ab", "other").unwrap();
    first.delete(&stamped, "b").unwrap();
    first.put(&plain, "p", "plain").unwrap();
    // It reads what it has written, also in order.
    assert_eq!(first.get(&stamped, "a").unwrap().unwrap(), "new");
    let seen: Vec<_> =
        first.family(&stamped).unwrap().iter().keys().collect::<Result<_, _>>().unwrap();
    assert_eq!(seen, [b"a".to_vec(), b"ab".to_vec()]);
    refused(first.commit(), "call set_commit_timestamp first");
    first.set_commit_timestamp(b"four");
    refused(first.commit(), "have 8");
    // A key is locked, whatever its timestamp.
    let locked = stamped.put_with_timestamp("a", from_u64(20), "locked out").unwrap_err();
    assert_eq!(locked.code(), Code::TimedOut, "{locked}");
    first.set_commit_timestamp(from_u64(30));
    first.commit().unwrap();
    assert_eq!(stamped.as_of(from_u64(29)).get("a").unwrap().unwrap(), "old");
    assert_eq!(stamped.as_of(from_u64(30)).get("a").unwrap().unwrap(), "new");
    assert_eq!(plain.get("p").unwrap().unwrap(), "plain");

    // What is newer than it reads must not follow from what it read.
    let mut second = db.begin();
    second.set_read_timestamp(from_u64(20));
    let newer = second.get_for_update(&stamped, "a").unwrap_err();
    assert_eq!(newer.code(), Code::Busy, "{newer}");
    let newer = second.put(&stamped, "b", "under a newer deletion").unwrap_err();
    assert_eq!(newer.code(), Code::Busy, "{newer}");
    second.put(&stamped, "c", "nothing is newer").unwrap();
    second.set_commit_timestamp(from_u64(40));
    second.commit().unwrap();
    assert_eq!(stamped.as_of(from_u64(40)).iter().count(), 3);
}

#[test]
fn a_transaction_without_locks_meets_what_was_written_with_timestamps() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let stamped = db.column_family("stamped").unwrap();
    stamped.put_with_timestamp("a", from_u64(10), "old").unwrap();
    for (now, flushes) in [(100, false), (200, true)] {
        let mut transaction = db.begin();
        transaction.set_read_timestamp(from_u64(now));
        transaction.get_for_update(&stamped, "a").unwrap();
        transaction.put(&stamped, "b", "follows from a").unwrap();
        stamped.put_with_timestamp("a", from_u64(now + 10), "meanwhile").unwrap();
        if flushes {
            stamped.flush().unwrap();
        }
        transaction.set_commit_timestamp(from_u64(now + 20));
        let conflict = transaction.commit().unwrap_err();
        assert_eq!(conflict.code(), Code::Busy, "{conflict}");
    }
}

#[test]
fn history_is_trimmed_when_a_database_is_opened_so() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let stamped = db.column_family("stamped").unwrap();
    db.column_family("plain").unwrap().put("p", "stays").unwrap();
    for (timestamp, value) in [(10, "1"), (20, "2"), (30, "3")] {
        stamped.put_with_timestamp("a", from_u64(timestamp), value).unwrap();
        stamped.put_with_timestamp(value, from_u64(timestamp), value).unwrap();
        if timestamp == 20 {
            stamped.compact().unwrap();
        }
    }
    stamped.delete_range_with_timestamp("0".."z", from_u64(40)).unwrap();
    stamped.flush().unwrap();
    stamped.put_with_timestamp("b", from_u64(50), "in the log").unwrap();
    stamped.increase_full_history_ts_low(from_u64(15)).unwrap();
    drop((stamped, db));
    let builder = || {
        Db::builder(directory.path())
            .column_family("stamped", |family| family.comparator = Comparator::BytewiseU64Ts)
            .column_family("plain", |_| {})
    };
    refused(builder().open_and_trim_history(b"four"), "have 8");
    refused(builder().open_and_trim_history(from_u64(14)), "before its full_history_ts_low");
    let db = builder().open_and_trim_history(from_u64(25)).unwrap();
    let stamped = db.column_family("stamped").unwrap();
    let keys = |timestamp| -> Vec<_> {
        let view = stamped.as_of(from_u64(timestamp));
        let shown = view.iter().map(|entry| entry.unwrap());
        shown.map(|(key, value)| String::from_utf8([key, value].join(&b'=')).unwrap()).collect()
    };
    assert_eq!(keys(u64::MAX), ["1=1", "2=2", "a=2"]);
    assert_eq!(keys(15), ["1=1", "a=1"]);
    assert_eq!(stamped.newest_timestamp().unwrap().unwrap(), from_u64(20));
    assert_eq!(db.column_family("plain").unwrap().get("p").unwrap().unwrap(), "stays");
}

/// The entries that RocksDB 11.8.1 shows going forward, and their reverse going back (it does not
/// merge there).
#[test]
fn history_shows_operands_and_what_they_are_merged_with_as_one_entry() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path())
        .column_family("stamped", |family| {
            family.comparator = Comparator::BytewiseU64Ts;
            family.set("merge_operator", "stringappend").unwrap();
        })
        .open()
        .unwrap();
    let stamped = db.column_family("stamped").unwrap();
    let put = |key, stamp, value| stamped.put_with_timestamp(key, from_u64(stamp), value).unwrap();
    let delete = |key, stamp| stamped.delete_with_timestamp(key, from_u64(stamp)).unwrap();
    let merge =
        |key, stamp, value| stamped.merge_with_timestamp(key, from_u64(stamp), value).unwrap();
    put("a", 1, "p1");
    merge("a", 2, "m2");
    merge("a", 3, "m3");
    delete("b", 1);
    merge("b", 2, "m2");
    put("b", 3, "p3");
    merge("b", 4, "m4");
    put("c", 5, "p5");
    for (stamp, value) in [(1, "m1"), (2, "m2"), (2, "m2b"), (3, "m3")] {
        merge("d", stamp, value);
    }
    put("f", 1, "p1");
    delete("f", 2);
    merge("f", 3, "m3");
    let expected = [
        ("a", 3, "p1,m2,m3"),
        ("b", 4, "p3,m4"),
        ("b", 2, "m2"),
        ("c", 5, "p5"),
        ("d", 3, "m1,m2,m2b,m3"),
        ("f", 3, "m3"),
        ("f", 1, "p1"),
    ];
    let from_1 = ReadOptions { iter_start_ts: Some(from_u64(1).into()), ..as_of(9) };
    for is_flushed in [false, true] {
        let mut cursor = stamped.cursor(&from_1).unwrap();
        let shows = |cursor: &mut Cursor, (key, stamp, value): (&str, u64, &str)| {
            assert_eq!(cursor.key(), key.as_bytes());
            assert_eq!(cursor.timestamp(), from_u64(stamp));
            assert_eq!(cursor.value().unwrap(), value.as_bytes(), "{key}@{stamp}, {is_flushed}");
        };
        cursor.seek_to_first();
        for entry in expected {
            shows(&mut cursor, entry);
            cursor.next();
        }
        assert!(!cursor.valid());
        cursor.status().unwrap();
        cursor.seek_to_last();
        for entry in expected.into_iter().rev() {
            shows(&mut cursor, entry);
            cursor.prev();
        }
        assert!(!cursor.valid());
        cursor.status().unwrap();
        stamped.flush().unwrap();
    }
    // A value below the oldest timestamp shown is merged with all the same.
    let from_3 = ReadOptions { iter_start_ts: Some(from_u64(3).into()), ..as_of(3) };
    let mut cursor = stamped.cursor(&from_3).unwrap();
    cursor.seek("a");
    assert_eq!(cursor.value().unwrap(), b"p1,m2,m3");
}
