//! A callback follows a write, and may refuse it at the last moment.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use common::create;
use flagstone::base::{Code, Error, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, WriteCallback, write_with_callback};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{Options, WriteOptions};
use testkit::{Call, FaultFs, Injection, Plan, Sort};

fn open() -> Db {
    Db::open("/db", &Options { env: Env::memory(), ..create() }).unwrap()
}

fn put(key: &str, value: &str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key, value).unwrap();
    batch
}

/// Writes down what it is told, and what it reads then.
struct Follower {
    db: Db,
    calls: Vec<String>,
}

impl Follower {
    fn note(&mut self, call: &str) {
        let seen = self.db.get("key").unwrap().map(|value| value.escape_ascii().to_string());
        self.calls.push(format!("{call}: {}", seen.unwrap_or_default()));
    }
}

impl WriteCallback for Follower {
    fn check(&mut self) -> Result<()> {
        self.note("check");
        Ok(())
    }

    fn on_write_enqueued(&mut self) {
        self.note("enqueued");
    }

    fn on_wal_write_finish(&mut self) {
        self.note("logged");
    }
}

#[test]
fn a_write_is_followed_on_its_way() {
    let db = open();
    db.put("key", "1").unwrap();
    let mut follower = Follower { db: db.clone(), calls: Vec::new() };
    write_with_callback(&db, &WriteOptions::default(), put("key", "2"), &mut follower).unwrap();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    write_with_callback(&db, &unlogged, put("key", "3"), &mut follower).unwrap();
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    write_with_callback(&db, &synced, put("key", "4"), &mut follower).unwrap();
    assert_eq!(
        follower.calls,
        [
            "check: 1",
            "enqueued: 1",
            "logged: 1",
            "check: 2",
            "enqueued: 2",
            "check: 3",
            "enqueued: 3",
            "logged: 3"
        ]
    );
    assert_eq!(db.get("key").unwrap().unwrap().as_ref(), b"4");
}

struct Refuses(fn() -> Result<()>);

impl WriteCallback for Refuses {
    fn check(&mut self) -> Result<()> {
        (self.0)()
    }

    fn on_wal_write_finish(&mut self) {
        panic!("it cannot")
    }
}

#[test]
fn what_is_refused_is_not_written_and_takes_no_number() {
    let db = open();
    db.put("key", "1").unwrap();
    let before = db.latest_sequence_number();
    let mut refuses = Refuses(|| Err(Error::new(Code::Busy, "not now")));
    let options = WriteOptions::default();
    let error = write_with_callback(&db, &options, put("key", "2"), &mut refuses).unwrap_err();
    assert_eq!(error.code(), Code::Busy);
    let mut panics = Refuses(|| panic!("it cannot"));
    let error = write_with_callback(&db, &options, put("key", "2"), &mut panics).unwrap_err();
    assert_eq!(error.code(), Code::Aborted);
    assert_eq!(db.latest_sequence_number(), before);
    assert_eq!(db.get("key").unwrap().unwrap().as_ref(), b"1");
    // A panic behind the log harms nothing.
    let mut late = Refuses(|| Ok(()));
    write_with_callback(&db, &options, put("key", "3"), &mut late).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap().as_ref(), b"3");
    db.put("key", "4").unwrap();
    db.close().unwrap();
}

/// Writes one more than it finds.
struct Counts<'a> {
    db: &'a Db,
    expected: u64,
}

impl WriteCallback for Counts<'_> {
    fn check(&mut self) -> Result<()> {
        let now = self.db.get("count")?.map_or(0, |bytes| bytes.len() as u64);
        if now == self.expected { Ok(()) } else { Err(Error::new(Code::Busy, "it has changed")) }
    }
}

/// A check that is right among many writers loses no update, also if some wait for syncs.
#[test]
fn no_other_write_comes_between_the_check_and_the_write() {
    const EACH: u64 = 100;
    let db = open();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let db = &db;
            scope.spawn(move || {
                let options = WriteOptions { sync: thread < 2, ..WriteOptions::default() };
                for _ in 0..EACH {
                    loop {
                        let count = db.get("count").unwrap().map_or(0, |bytes| bytes.len());
                        let mut batch = WriteBatch::new();
                        batch.put("count", vec![b'x'; count + 1]).unwrap();
                        let mut counts = Counts { db, expected: count as u64 };
                        match write_with_callback(db, &options, batch, &mut counts) {
                            Err(error) if error.code() == Code::Busy => {}
                            outcome => break outcome.unwrap(),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(db.get("count").unwrap().unwrap().len() as u64, 4 * EACH);
}

#[test]
fn a_write_that_is_not_logged_is_not_said_to_be() {
    let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let mut options = Options { env: Env::memory(), ..create() };
    options.env = options.env.with_fs(Arc::new(fs.clone()));
    let db = Db::open("/db", &options).unwrap();
    let mut follower = Follower { db: db.clone(), calls: Vec::new() };
    fs.plan(Plan::Next { call: Call::Write, sort: Sort::Wal, injection: Injection::Io });
    write_with_callback(&db, &WriteOptions::default(), put("key", "1"), &mut follower).unwrap_err();
    assert_eq!(follower.calls, ["check: ", "enqueued: "]);
}
