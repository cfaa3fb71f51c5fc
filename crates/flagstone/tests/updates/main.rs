//! Reading along: the writes of a database out of its WALs, applied to another one.

use std::path::Path;
use std::sync::Arc;

use flagstone::base::{Code, FileNumber, file_name};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Updates};
use flagstone::env::IoMode;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{Options, WriteOptions};
use flagstone::wal::{Writer, WriterOptions};
use testkit::{settings, steps};

mod lives;
mod positions;

const PRIMARY: &str = "/primary";

fn options(changes: &[(&str, &str)]) -> Options {
    let mut options = settings::tiny(&steps::world(Arc::new(MemoryFileSystem::new()), 1));
    settings::set(&mut options, changes);
    options
}

fn open(options: &Options) -> Db {
    Db::open(PRIMARY, options).expect("the primary opens")
}

/// The keys that the next updates put.
fn keys(updates: &mut Updates) -> Vec<String> {
    let mut keys = Vec::new();
    while let Some(update) = updates.next_update().expect("an update") {
        for operation in update.batch.iter() {
            if let flagstone::batch::Operation::Put { key, .. } = operation.expect("an operation") {
                keys.push(String::from_utf8_lossy(key).into_owned());
            }
        }
    }
    keys
}

#[test]
fn writes_come_in_their_order_also_from_the_archive() {
    let db = open(&options(&[("WAL_ttl_seconds", "100")]));
    for key in ["a", "b", "c"] {
        db.put(key, "value").unwrap();
        db.flush_all().unwrap();
    }
    assert_eq!(db.oldest_update().unwrap(), Some(1));
    let mut updates = db.get_updates_since(1).unwrap();
    assert_eq!(keys(&mut updates), ["a", "b", "c"]);
    assert_eq!(updates.next_sequence(), 4);
    db.put("d", "value").unwrap();
    assert_eq!(keys(&mut updates), ["d"], "it sees what is written later");
    db.flush_all().unwrap();
    db.put("e", "value").unwrap();
    assert_eq!(keys(&mut updates), ["e"], "in another WAL, too");
    assert_eq!(keys(&mut db.get_updates_since(3).unwrap()), ["c", "d", "e"]);
}

/// RocksDB forgets the number of a write of which a flush left nothing, and gives it out again when
/// it was killed. The second one was passed over in silence.
#[test]
fn of_two_writes_with_the_same_number_none_is_passed_over() {
    let options = options(&[("WAL_ttl_seconds", "100"), ("recycle_log_file_num", "0")]);
    let db = open(&options);
    db.put("a", "value").unwrap();
    db.single_delete("gone").unwrap();
    db.flush_all().unwrap();
    let number = FileNumber(db.wal_files()[0].number.0 + 1);
    db.close().unwrap();
    drop(db);
    let mut again = WriteBatch::new();
    again.put("b", "value").unwrap();
    make_log(
        &options,
        &Path::new(PRIMARY).join(format!("archive/{:06}.log", number.0)),
        number,
        again,
        2,
    );
    let db = open(&options);
    let mut updates = db.get_updates_since(1).unwrap();
    let numbers = [(); 2].map(|()| updates.next_update().unwrap().unwrap().sequence);
    assert_eq!(numbers, [1, 2]);
    let error = updates.next_update().unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("begins at 2"), "{error}");
}

#[test]
fn whoever_asks_for_the_middle_of_a_batch_has_all_of_it() {
    let db = open(&options(&[]));
    let mut batch = WriteBatch::new();
    ["a", "b", "c"].iter().for_each(|key| batch.put(key, "value").unwrap());
    db.write(batch).unwrap();
    db.put("d", "value").unwrap();
    let update = db.get_updates_since(2).unwrap().next_update().unwrap().unwrap();
    assert_eq!((update.sequence, update.next_sequence, update.batch.count()), (1, 4, 3));
}

/// Writes a log of one batch, as RocksDB writes it.
fn make_log(options: &Options, path: &Path, number: FileNumber, batch: WriteBatch, sequence: u64) {
    let file = options.env.fs.create_writable(path, IoMode::Buffered).expect("a file");
    let mut writer = Writer::new(file, number, WriterOptions::default()).expect("a log");
    let mut record = batch.into_bytes();
    record[..8].copy_from_slice(&sequence.to_le_bytes());
    writer.add_record(&record).expect("a write");
}

/// Puts a key and deletes nothing.
fn with_an_empty_range(key: &str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key, "value").expect("a put");
    batch.delete_range("k", "k").expect("a deletion");
    batch
}

/// RocksDB counts the deletion of an empty range when it is written, and not when it is replayed:
/// after a recovery the next write begins at a number that the one before seems to have. It was
/// passed over.
#[test]
fn what_rocksdb_wrote_behind_the_deletion_of_an_empty_range_is_not_passed_over() {
    let options = options(&[("WAL_ttl_seconds", "100")]);
    open(&options).close().unwrap();
    let path = |number| file_name::wal(Path::new(PRIMARY), FileNumber(number));
    make_log(&options, &path(900), FileNumber(900), with_an_empty_range("a"), 1);
    let mut behind = WriteBatch::new();
    behind.put("b", "value").unwrap();
    make_log(&options, &path(901), FileNumber(901), behind, 2);
    let db = open(&options);
    let mut updates = db.get_updates_since(1).unwrap();
    assert_eq!(keys(&mut updates), ["a", "b"]);
    db.put("c", "value").unwrap();
    assert_eq!(keys(&mut updates), ["c"]);
}

/// The same where the recovery was RocksDB's: what came last waited for a number to be published
/// that no write has.
#[test]
fn the_deletion_of_an_empty_range_that_rocksdb_replayed_does_not_hold_up_its_write() {
    let options = options(&[("WAL_ttl_seconds", "100")]);
    let db = open(&options);
    db.put("a", "value").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    let db = open(&options);
    let log = db.wal_files().into_iter().find(|log| log.archived).expect("it is archived");
    db.close().unwrap();
    make_log(&options, &log.path, log.number, with_an_empty_range("a"), 1);
    let db = open(&options);
    assert_eq!(db.latest_sequence_number(), 1);
    let mut updates = db.get_updates_since(1).unwrap();
    assert_eq!(keys(&mut updates), ["a"]);
    db.put("b", "value").unwrap();
    assert_eq!(keys(&mut updates), ["b"]);
}

/// A batch that deletes nothing but empty ranges held up what was published behind it; and who went
/// on from its position was told of a power loss, or missed what had begun again at its number.
#[test]
fn behind_a_write_of_empty_ranges_alone_others_come_also_by_its_position() {
    let options = options(&[("WAL_ttl_seconds", "100")]);
    let db = open(&options);
    ["w", "x", "y", "z"].iter().for_each(|key| db.put(key, "value").expect("a write"));
    db.close().expect("closed");
    let path = |number| file_name::wal(Path::new(PRIMARY), FileNumber(number));
    let mut nothing = WriteBatch::new();
    nothing.delete_range("k", "k").expect("a deletion");
    nothing.delete_range("l", "l").expect("a deletion");
    make_log(&options, &path(900), FileNumber(900), nothing, 5);
    let mut behind = WriteBatch::new();
    behind.put("b", "value").expect("a put");
    make_log(&options, &path(901), FileNumber(901), behind, 5);
    let db = open(&options);
    assert_eq!(db.latest_sequence_number(), 5);
    let mut updates = db.get_updates_since(4).expect("updates");
    assert_eq!(updates.next_update().expect("readable").expect("z").sequence, 4);
    let empty = updates.next_update().expect("readable").expect("the empty ranges");
    assert_eq!((empty.sequence, empty.batch.count()), (5, 2));
    assert_eq!(keys(&mut updates), ["b"]);
    // At first the position is behind all that there is, and then in the midst of it.
    for key in ["c", "d", "e"] {
        let mut after = db.get_updates_after(empty.position).expect("nothing was lost");
        let update = after.next_update().expect("readable").expect("b");
        assert_eq!((update.sequence, update.next_sequence), (5, 6));
        keys(&mut after);
        assert_eq!(after.next_sequence(), db.latest_sequence_number() + 1);
        db.put(key, "value").expect("a write");
    }
    let mut after = db.get_updates_after(empty.position).expect("nothing was lost");
    assert_eq!(keys(&mut after), ["b", "c", "d", "e"]);
}

#[test]
fn log_data_is_handed_on_and_what_the_engine_notes_is_not() {
    let db = open(&options(&[("WAL_ttl_seconds", "100")]));
    db.put("a", "value").unwrap();
    db.flush_all().unwrap();
    let mut batch = WriteBatch::new();
    batch.put_log_data("a word to the replica").unwrap();
    db.write(batch).unwrap();
    db.put("b", "value").unwrap();
    let mut updates = db.get_updates_since(1).unwrap();
    let counts: Vec<u32> = std::iter::from_fn(|| updates.next_update().unwrap())
        .map(|update| update.batch.count())
        .collect();
    assert_eq!(counts, [1, 0, 1]);
}

#[test]
fn what_is_no_longer_there_is_said_to_be() {
    let db = open(&options(&[("recycle_log_file_num", "0")]));
    for key in ["a", "b", "c"] {
        db.put(key, "value").unwrap();
    }
    let mut behind = db.get_updates_since(2).unwrap();
    db.flush_all().unwrap();
    db.put("d", "value").unwrap();
    let error = db.get_updates_since(2).expect_err("it is gone");
    assert_eq!(error.code(), Code::NotFound);
    assert!(
        error
            .to_string()
            .contains("number 2 is no longer in the WALs: the oldest write there begins at 4"),
        "{error}"
    );
    assert_eq!(keys(&mut behind), ["b", "c", "d"], "who had it open reads on");
    assert_eq!(keys(&mut db.get_updates_since(4).unwrap()), ["d"]);
}

#[test]
fn a_log_that_is_used_again_is_no_damage() {
    let db = open(&options(&[
        ("recycle_log_file_num", "2"),
        ("wal_recovery_mode", "kPointInTimeRecovery"),
    ]));
    for key in ["a", "b", "c"] {
        db.put(key, "value").unwrap();
    }
    let mut behind = db.get_updates_since(1).unwrap();
    for key in ["d", "e", "f"] {
        db.flush_all().unwrap();
        db.put(key, "another value, longer than before").unwrap();
    }
    let mut found = Vec::new();
    let error = loop {
        match behind.next_update() {
            Ok(Some(update)) => found.push(update.sequence),
            Ok(None) => panic!("the latest writes were skipped"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(found.is_empty() || found.iter().copied().eq(1..=found.len() as u64), "{found:?}");
    let again = behind.next_update().unwrap_err();
    assert_eq!(again.to_string(), error.to_string(), "it does not go on behind what is missing");
}

#[test]
fn what_was_written_without_the_log_is_missing() {
    let db = open(&options(&[]));
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    db.put("a", "value").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("b", "value").unwrap();
    db.write_with(&unlogged, batch).unwrap();
    let after_a = || {
        let mut updates = db.get_updates_since(1).unwrap();
        assert_eq!(updates.next_update().unwrap().unwrap().next_sequence, 2);
        updates.next_update().unwrap_err()
    };
    let error = after_a();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(
        error.to_string().contains("number 2 is no longer in the WALs: no WAL has the next write"),
        "{error}"
    );
    db.put("c", "value").unwrap();
    let error = after_a();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(
        error.to_string().contains("number 2 is no longer in the WALs: what follows begins at 3"),
        "{error}"
    );
}

/// It was taken for the end, until something else was written.
#[test]
fn the_end_is_not_where_the_rest_is_gone() {
    let db = open(&options(&[("recycle_log_file_num", "0")]));
    db.put("a", "value").unwrap();
    let mut behind = db.get_updates_since(1).unwrap();
    assert_eq!(keys(&mut behind), ["a"]);
    for key in ["b", "c", "d"] {
        db.flush_all().unwrap();
        db.put(key, "value").unwrap();
    }
    db.flush_all().unwrap();
    let error = behind.next_update().unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
}

#[test]
fn the_future_is_refused() {
    let options = options(&[]);
    let db = open(&options);
    assert!(db.get_updates_since(0).unwrap().next_update().unwrap().is_none());
    let mut updates = db.get_updates_since(1).unwrap();
    assert!(updates.next_update().unwrap().is_none(), "nothing was written yet");
    let ahead = db.get_updates_since(2).expect_err("nobody has seen that");
    assert_eq!(ahead.code(), Code::InvalidArgument, "{ahead}");
    db.put("a", "value").unwrap();
    assert_eq!(keys(&mut updates), ["a"]);
    db.close().unwrap();
    assert_eq!(updates.next_update().unwrap_err().code(), Code::ShutdownInProgress);
    let db = Db::open_read_only(PRIMARY, &options).unwrap();
    assert_eq!(db.get_updates_since(1).unwrap_err().code(), Code::NotSupported);
}

#[test]
fn what_waits_in_memory_comes_when_it_is_written() {
    let db =
        open(&options(&[("manual_wal_flush", "true"), ("writable_file_max_buffer_size", "65536")]));
    db.put("a", "value").unwrap();
    let mut updates = db.get_updates_since(1).unwrap();
    assert!(updates.next_update().unwrap().is_none());
    db.flush_wal(false).unwrap();
    assert_eq!(keys(&mut updates), ["a"]);
}

/// Somebody who waited for it would have waited until something else was written: what waited in
/// memory came behind it.
#[test]
fn what_is_missing_is_said_also_while_later_writes_wait_in_memory() {
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    let batch = |key: &str| {
        let mut batch = WriteBatch::new();
        batch.put(key, "value").unwrap();
        batch
    };
    for is_switched in [false, true] {
        let settings = [
            ("manual_wal_flush", "true"),
            ("writable_file_max_buffer_size", "65536"),
            ("WAL_ttl_seconds", "1000"),
        ];
        let db = open(&options(&settings));
        db.put("a", "value").unwrap();
        db.flush_wal(false).unwrap();
        let mut updates = db.get_updates_since(1).unwrap();
        assert_eq!(keys(&mut updates), ["a"]);
        db.write_with(&unlogged, batch("b")).unwrap();
        if is_switched {
            db.put("c", "value").unwrap();
            db.flush_all().unwrap();
        }
        db.put("d", "value").unwrap();
        let error = updates.next_update().unwrap_err();
        assert!(
            error.code() == Code::NotFound && error.to_string().contains("number 2"),
            "{error}"
        );
        // It may be what waits.
        let from = if is_switched { 4 } else { 3 };
        let mut updates = db.get_updates_since(from).unwrap();
        assert!(updates.next_update().unwrap().is_none());
        db.flush_wal(false).unwrap();
        assert_eq!(keys(&mut updates), ["d"]);
    }
}

/// A value that a record refers to is handed out as long as its blob file is there.
#[test]
fn values_in_blob_files_are_fetched() {
    let blobs = [
        ("enable_blob_files", "true"),
        ("blob_write_mode", "commit"),
        ("blob_commit_min_size", "10"),
    ];
    let db = open(&options(&[&blobs[..], &[("WAL_ttl_seconds", "100")]].concat()));
    let large = [7; 3000];
    db.put("large", large).unwrap();
    let mut updates = db.get_updates_since(1).unwrap();
    let update = updates.next_update().unwrap().unwrap();
    let mut expected = WriteBatch::new();
    expected.put("large", large).unwrap();
    assert_eq!((update.sequence, update.batch.body()), (1, expected.body()));
    db.delete("large").unwrap();
    db.flush_all().unwrap();
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    let error = db.get_updates_since(1).unwrap().next_update().unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(error.to_string().contains("overwritten"), "{error}");
    assert!(updates.next_update().unwrap().is_some(), "the deletion");
}

/// By default an archive has the values themselves: whoever reads along finds also what was
/// overwritten.
#[test]
fn where_logs_are_kept_values_go_through_them() {
    for (mode, is_there) in [("auto", true), ("commit", false)] {
        let changes = [
            ("enable_blob_files", "auto"),
            ("blob_write_mode", mode),
            ("WAL_ttl_seconds", "100"),
            ("min_blob_size", "auto"),
        ];
        let db = open(&options(&changes));
        db.put("large", [7; 5000]).unwrap();
        db.flush_all().unwrap();
        assert_eq!(
            db.int_property(db.default_column_family(), "rocksdb.num-blob-files"),
            Some(1),
            "{mode}"
        );
        db.delete("large").unwrap();
        db.flush_all().unwrap();
        db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
        let update = db.get_updates_since(1).unwrap().next_update();
        assert_eq!(update.is_ok_and(|update| update.is_some()), is_there, "{mode}");
    }
}

/// A large value of a family that was dropped since was left out, and its sequence number with it:
/// a replica that went on by its own was given the next write a second time.
#[test]
fn a_large_value_of_a_dropped_family_keeps_its_number() {
    let blobs = [
        ("enable_blob_files", "true"),
        ("blob_write_mode", "commit"),
        ("blob_commit_min_size", "10"),
    ];
    let options = options(&[&blobs[..], &[("WAL_ttl_seconds", "100")]].concat());
    let (db, replica) = (open(&options), Db::open("/replica", &options).unwrap());
    let family = db.create_column_family("photos", &options.cf).unwrap();
    let mut batch = WriteBatch::new();
    batch.put("one", [1; 3000]).unwrap();
    batch.put_cf(&family, "photo", [2; 3000]).unwrap();
    batch.put("another", [3; 3000]).unwrap();
    db.write(batch).unwrap();
    db.put_cf(&family, "photo", [4; 3000]).unwrap();
    db.put("last", [5; 3000]).unwrap();
    db.drop_column_family(&family).unwrap();
    let how = WriteOptions { ignore_missing_column_families: true, ..WriteOptions::default() };
    let mut updates = db.get_updates_since(1).unwrap();
    while let Some(update) = updates.next_update().unwrap() {
        replica.write_with(&how, update.batch).unwrap();
        assert_eq!(replica.latest_sequence_number() + 1, update.next_sequence);
    }
    assert_eq!(replica.get("another").unwrap().unwrap(), &[3; 3000][..]);
    let after =
        db.get_updates_since(replica.latest_sequence_number() + 1).unwrap().next_update().unwrap();
    assert!(after.is_none(), "{after:?}");
}

/// On a real disk, where the WAL is mapped, while others write and flush.
#[test]
fn a_replica_follows_writers_in_other_threads() {
    const WRITES: u64 = 2000;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut options = Options::default();
    options.create_if_missing = true;
    options.set_all("WAL_ttl_seconds=100000;write_buffer_size=65536").expect("options");
    let db = Db::open(directory.path().join("db"), &options).expect("a database");
    let mut next = 1;
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..WRITES / 2 {
                    let sync = n % 100 == 0;
                    let how = WriteOptions { sync, ..WriteOptions::default() };
                    let mut batch = WriteBatch::new();
                    batch.put(format!("{writer} {n}"), [7; 100]).expect("a small batch");
                    db.write_with(&how, batch).expect("a write");
                }
            });
        }
        let mut updates = db.get_updates_since(1).expect("updates");
        while next <= WRITES {
            match updates.next_update().expect("an update") {
                None => std::thread::yield_now(),
                Some(update) => {
                    assert_eq!((update.sequence, update.batch.count()), (next, 1));
                    next = update.next_sequence;
                }
            }
        }
    });
}
