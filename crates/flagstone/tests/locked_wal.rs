//! Writers that wait while the WAL is locked.

mod common;

use std::sync::Mutex;
use std::thread;

use common::create;
use flagstone::base::{Code, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{Options, WriteOptions};

fn code<T: std::fmt::Debug>(outcome: Result<T>) -> Code {
    outcome.expect_err("a refusal").code()
}

fn in_memory() -> Options {
    Options { env: Env::memory(), ..create() }
}

fn put_at_once(db: &Db, key: &str) -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.put(key, "value")?;
    db.write_with(&WriteOptions::without_waiting(), batch)
}

#[test]
fn writers_wait_until_all_locks_are_taken_back() {
    let db = Db::open("/db", &in_memory()).unwrap();
    db.put("before", "value").unwrap();
    db.lock_wal().unwrap();
    db.lock_wal().unwrap();
    let last = db.latest_sequence_number();
    let events = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (db, events) = (&db, &events);
                scope.spawn(move || {
                    // Small and large values take different ways.
                    let value = "x".repeat(1 << (6 * writer));
                    db.put(format!("{writer}"), value).unwrap();
                    events.lock().unwrap().push("written");
                })
            })
            .collect();
        assert_eq!(code(put_at_once(&db, "now")), Code::Incomplete);
        // What changes no contents goes on.
        db.flush_all().unwrap();
        db.checkpoint("/copy").unwrap();
        db.sync_wal().unwrap();
        db.unlock_wal().unwrap();
        assert_eq!(code(put_at_once(&db, "now")), Code::Incomplete, "it is locked once more");
        assert_eq!(db.latest_sequence_number(), last);
        events.lock().unwrap().push("unlocked");
        db.unlock_wal().unwrap();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    assert_eq!(events.into_inner().unwrap()[0], "unlocked");
    put_at_once(&db, "now").unwrap();
    assert_eq!(db.latest_sequence_number(), last + 5);
    assert_eq!(code(db.unlock_wal()), Code::Aborted);
    let copy = Db::open("/copy", &Options { env: db.options().env.clone(), ..create() }).unwrap();
    assert_eq!(copy.get("before").unwrap().unwrap(), "value");
    assert!(copy.get("0").unwrap().is_none());
}

/// A lock finds writers between the WAL and the memtable, and those that wait for a sync.
#[test]
fn what_is_locked_stays_as_it_is() {
    let db = Db::open("/db", &in_memory()).unwrap();
    thread::scope(|scope| {
        for writer in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for number in 0..300 {
                    let mut batch = WriteBatch::new();
                    batch.put(format!("{writer}/{number}"), "value").unwrap();
                    let options = WriteOptions { sync: number % 3 == 0, ..WriteOptions::default() };
                    db.write_with(&options, batch).unwrap();
                }
            });
        }
        for _ in 0..50 {
            db.lock_wal().unwrap();
            let look = || (db.latest_sequence_number(), common::dump(&db));
            let (first, second) = (look(), look());
            assert_eq!(first.1.lines().count() as u64, first.0, "each write that counts is seen");
            assert_eq!(first, second);
            db.unlock_wal().unwrap();
        }
    });
    assert_eq!(db.latest_sequence_number(), 1200);
}

/// Records that wait in memory would not be in a copy of the files.
#[test]
fn a_lock_writes_what_waits_in_memory() {
    let mut options = in_memory();
    options.set("manual_wal_flush", "true").unwrap();
    let db = Db::open("/db", &options).unwrap();
    db.put("key", "value").unwrap();
    db.lock_wal().unwrap();
    let other = Db::open_read_only("/db", &options).unwrap();
    assert_eq!(other.get("key").unwrap().unwrap(), "value");
    assert_eq!(code(other.lock_wal()), Code::NotSupported);
}

#[test]
fn closing_ends_the_wait_of_writers() {
    let db = Db::open("/db", &in_memory()).unwrap();
    db.lock_wal().unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| code(db.put("key", "value")));
        db.close().unwrap();
        assert_eq!(writer.join().unwrap(), Code::ShutdownInProgress);
    });
    assert_eq!(code(db.unlock_wal()), Code::ShutdownInProgress);
    assert_eq!(code(db.lock_wal()), Code::ShutdownInProgress);
}
