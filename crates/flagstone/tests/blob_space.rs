//! Stories of blob files that are kept within `max_space_amplification`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::collections::BTreeMap;

use common::{add_to_manifest, create, entries, open_as_written, referee, temporary};
use flagstone::base::FileNumber;
use flagstone::db::{Db, SpaceUsage, Ticker};
use flagstone::env::Env;
use flagstone::manifest::{BlobFileGarbage, VersionEdit};
use flagstone::options::{CompactRangeOptions, CompactionControl, Options, ReadOptions};

const STYLES: [&str; 3] = [
    "compaction_style=kCompactionStyleLevel",
    "compaction_style=kCompactionStyleLevel;level_compaction_dynamic_level_bytes=false;max_bytes_for_level_base=4000",
    "compaction_style=kCompactionStyleUniversal",
];

/// Files of 20 values, tables of some 40 keys.
fn options(more: &str) -> Options {
    let mut options = create();
    let text = "enable_blob_files=true;blob_file_size=20000;target_file_size_base=2000;compression=kNoCompression;\
         max_space_amplification=1.3;burst_space_amplification=0";
    for setting in text.split(';').chain(more.split(';')).filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap();
        options.set(name, value).unwrap();
    }
    options
}

fn key(number: u32) -> Vec<u8> {
    format!("key{:05}", number.wrapping_mul(7919) % 100_000).into_bytes()
}

fn value(number: u32, round: u32) -> Vec<u8> {
    let mut value = vec![number as u8; 1000];
    value[..4].copy_from_slice(&round.to_le_bytes());
    value
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn put(db: &Db, contents: &mut Contents, numbers: impl Iterator<Item = u32>, round: u32) {
    for number in numbers {
        db.put(key(number), value(number, round)).unwrap();
        contents.insert(key(number), value(number, round));
    }
}

/// Flushes, and waits for what the engine does of its own accord.
fn rest(db: &Db) -> SpaceUsage {
    db.flush_all().unwrap();
    db.wait_for_compactions().unwrap();
    db.space(db.default_column_family()).unwrap()
}

fn property(db: &Db, name: &str) -> u64 {
    db.int_property(db.default_column_family(), name).unwrap()
}

fn assert_within(usage: &SpaceUsage, limit: f64, story: &str) {
    let records = usage.live_bytes + usage.hidden_bytes + usage.garbage_bytes;
    assert!(records as f64 <= limit * usage.live_bytes as f64, "{story}: {usage:?}");
}

fn assert_holds(db: &Db, contents: &Contents) {
    let found: Contents = entries(db, db.default_column_family()).into_iter().collect();
    assert!(&found == contents, "{} entries, {} expected", found.len(), contents.len());
}

#[test]
fn whatever_is_overwritten_an_idle_database_stays_within_its_limit() {
    for style in STYLES {
        let directory = temporary();
        let mut contents = Contents::new();
        let db = Db::open(directory.path(), &options(style)).unwrap();
        put(&db, &mut contents, 0..200, 0);
        assert_within(&rest(&db), 1.0, style);
        // All of it at once, then a few again and again, then every third.
        put(&db, &mut contents, 0..200, 1);
        assert_within(&rest(&db), 1.3, style);
        for round in 2..12 {
            put(&db, &mut contents, 0..10, round);
        }
        assert_within(&rest(&db), 1.3, style);
        put(&db, &mut contents, (0..200).step_by(3), 12);
        assert_within(&rest(&db), 1.3, style);
        assert_holds(&db, &contents);
        db.close().unwrap();
        drop(db);
        check_with_rocksdb(directory.path(), &mut contents, style);
    }
}

/// RocksDB reads the database and writes it anew; of its own tables it says no more than the oldest
/// blob file.
fn check_with_rocksdb(path: &std::path::Path, contents: &mut Contents, style: &str) {
    let Some(referee) = referee() else { return };
    referee.ldb(path, &["checkconsistency"]);
    assert_eq!(referee.scan(path, "default").lines().count(), contents.len(), "{style}");
    referee.ldb(path, &["put", "--try_load_options", "from", "rocksdb"]);
    referee.ldb(path, &["compact", "--try_load_options"]);
    contents.insert(b"from".to_vec(), b"rocksdb".to_vec());
    let db = open_as_written(path, false);
    put(&db, contents, (0..200).step_by(2), 13);
    assert_within(&rest(&db), 1.3, style);
    assert_holds(&db, contents);
}

#[test]
fn deleted_values_leave_the_disk() {
    for style in STYLES {
        let directory = temporary();
        let mut contents = Contents::new();
        let db = Db::open(directory.path(), &options(style)).unwrap();
        put(&db, &mut contents, 0..200, 0);
        let before = rest(&db);
        for number in (0..200).filter(|number| number % 4 != 0) {
            db.delete(key(number)).unwrap();
            contents.remove(&key(number));
        }
        let after = rest(&db);
        assert_eq!(after.live_bytes, before.live_bytes / 4);
        assert_within(&after, 1.3, style);
        assert_holds(&db, &contents);
    }
}

#[test]
fn nothing_is_moved_where_keys_are_only_added() {
    for style in STYLES {
        let directory = temporary();
        let mut contents = Contents::new();
        let db = Db::open(directory.path(), &options(style)).unwrap();
        for begin in (0..500).step_by(100) {
            put(&db, &mut contents, begin..begin + 100, 0);
            rest(&db);
        }
        assert_eq!(db.statistics().get(Ticker::BlobGcRelocatedKeys), 0, "{style}");
        assert_holds(&db, &contents);
    }
}

#[test]
fn without_a_limit_garbage_stays_until_one_is_set() {
    let directory = temporary();
    let mut contents = Contents::new();
    let db = Db::open(directory.path(), &options("max_space_amplification=0")).unwrap();
    for round in 0..4 {
        put(&db, &mut contents, (0..200).filter(|number| round == 0 || number % 10 != 0), round);
        rest(&db);
    }
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    let usage = rest(&db);
    assert!(usage.garbage_bytes > usage.live_bytes / 10, "{usage:?}");
    assert_eq!(usage.reclaimable_bytes(), usage.garbage_bytes + usage.hidden_bytes);
    // Which tables refer to which files is known to whoever opens the database next.
    db.close().unwrap();
    drop(db);
    let db = Db::open(directory.path(), &options("max_space_amplification=1.1")).unwrap();
    assert_within(&rest(&db), 1.1, "1.1");
    assert_holds(&db, &contents);
}

/// With tables larger than the values in blob files nothing was collected, however much garbage
/// there was.
#[test]
fn garbage_beside_large_tables_takes_no_more_than_they_are_larger() {
    let directory = temporary();
    let mut contents = Contents::new();
    let more = "min_blob_size=1000;target_file_size_base=1000000";
    let db = Db::open(directory.path(), &options(more)).unwrap();
    for number in 0..8000u32 {
        let (key, value) = (key(50_000 + number), vec![number as u8; 700]);
        db.put(&key, &value).unwrap();
        contents.insert(key, value);
    }
    // Of what is written at once a few values stay, and with them their files.
    for round in 0..40 {
        put(&db, &mut contents, (0..190).chain(1000 + round * 10..1010 + round * 10), round);
        db.flush_all().unwrap();
    }
    let usage = rest(&db);
    let by_tables = (usage.table_bytes - (4 << 20)) as f64;
    let room = 0.3 * usage.live_bytes as f64 + by_tables;
    assert!(((usage.hidden_bytes + usage.garbage_bytes) as f64) < room, "{room}: {usage:?}");
    assert_holds(&db, &contents);
    let moved = db.statistics().get(Ticker::BlobGcRelocatedBytes);
    assert!(moved < 2 * usage.live_bytes, "{moved} of {usage:?}");
}

#[test]
fn who_keeps_garbage_is_told() {
    let directory = temporary();
    let mut contents = Contents::new();
    let db = Db::open(directory.path(), &options("")).unwrap();
    put(&db, &mut contents, 0..100, 0);
    let before = rest(&db);
    let snapshot = db.snapshot();
    put(&db, &mut contents, 0..50, 1);
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    let pinned = rest(&db);
    assert_eq!(
        (pinned.live_bytes, pinned.snapshot_bytes),
        (before.live_bytes, before.live_bytes / 2)
    );
    assert_eq!(pinned.reader_bytes, 0, "{pinned:?}");

    drop(snapshot);
    // A table is rewritten for what no snapshot needs any longer once something newer was written.
    put(&db, &mut contents, 50..51, 1);
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    let read = rest(&db);
    assert_eq!(read.snapshot_bytes, 0);
    assert_within(&read, 1.3, "without a snapshot");
    assert!(read.reader_bytes >= before.live_bytes / 2, "{read:?}");
    let (total, live) = (
        property(&db, "rocksdb.total-blob-file-size"),
        property(&db, "rocksdb.live-blob-file-size"),
    );
    assert_eq!(live, read.blob_bytes);
    assert!(total > live, "{total} {live}");

    drop(iter);
    assert_eq!(rest(&db).reader_bytes, 0);
    assert_eq!(property(&db, "rocksdb.total-blob-file-size"), live);
    assert_holds(&db, &contents);
}

/// It reads all tables, and nobody could see how far it was.
#[test]
fn a_measurement_of_space_is_followed_and_canceled() {
    let (directory, mut contents) = (temporary(), Contents::new());
    let db = Db::open(directory.path(), &options(STYLES[0])).unwrap();
    put(&db, &mut contents, 0..500, 0);
    let usage = rest(&db);
    let control = CompactionControl::new();
    assert_eq!(db.space_followed(db.default_column_family(), &control).unwrap(), usage);
    let reached = control.progress();
    assert_eq!((reached.bytes_done, reached.bytes_total), (usage.table_bytes, usage.table_bytes));
    control.cancel();
    let canceled = db.space_followed(db.default_column_family(), &control).unwrap_err();
    assert_eq!(canceled.code(), flagstone::base::Code::Incomplete);
}

/// Garbage that was counted twice made more of it than a file has: no compaction that met any more
/// of it could be recorded, and the database was poisoned. Or it made up a whole file, which was
/// then removed, though a table refers to it.
#[test]
fn garbage_that_was_counted_twice_takes_no_value_away() {
    let mut options =
        options("max_space_amplification=0;blob_punch_holes=false;disable_auto_compactions=true");
    options.env = Env::memory();
    let open = || Db::open("/db", &options).unwrap();
    let compact = |db: &Db| {
        db.flush_all().unwrap();
        db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
            .unwrap();
    };
    let blobs = |db: &Db| {
        let files = db.live_files().into_iter().filter(|file| file.level.is_none());
        files.map(|file| file.number).collect::<Vec<FileNumber>>()
    };
    // That a table refers to the other file, too, only this engine's own fields of the MANIFEST
    // say.
    for is_oldest in [false, true] {
        let db = open();
        let older = if is_oldest { &[][..] } else { &[14][..] };
        for numbers in [older, &[0, 1, 2, 3]].into_iter().filter(|numbers| !numbers.is_empty()) {
            numbers.iter().for_each(|number| db.put(key(*number), value(*number, 0)).unwrap());
            db.flush_all().unwrap();
        }
        compact(&db);
        let file = *blobs(&db).last().unwrap();
        db.close().unwrap();
        let twice = BlobFileGarbage { number: file, count: 3, bytes: 3 * 1040 };
        add_to_manifest(
            &options.env,
            &VersionEdit { blob_file_garbages: vec![twice], ..VersionEdit::default() },
        );

        let db = open();
        db.delete(key(0)).unwrap();
        if is_oldest {
            db.delete(key(1)).unwrap();
        }
        compact(&db);
        assert_eq!(db.get(key(2)).unwrap().unwrap(), value(2, 0));
        db.close().unwrap();

        let db = open();
        assert_eq!(db.get(key(3)).unwrap().unwrap(), value(3, 0));
        (0..4).for_each(|number| db.delete(key(number)).unwrap());
        compact(&db);
        assert!(!blobs(&db).contains(&file), "all of it is garbage");
        db.delete(key(14)).unwrap();
        compact(&db);
        assert_eq!(blobs(&db), []);
        db.close().unwrap();
    }
}
