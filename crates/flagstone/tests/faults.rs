//! A disk that fails: each call of the file system once, at every position of a database's life, and a full disk.
//!
//! Whatever fails, a call of the engine either did what it says or returns an error, and what was acknowledged is there
//! when the database is opened on a healthy disk. `FLAGSTONE_FAULT_STRIDE=1` fails every call; by default every fifth.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flagstone::base::{Result, SubCode};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Clock, Env};
use flagstone::options::{Options, WriteOptions};
use testkit::seeds::Telling;
use testkit::{Call, FaultFs, Injection, compare, settings};

/// What a batch came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Acknowledged,
    /// An error was returned: it may be there or not, but not by halves.
    Unknown,
}

/// One life on a failing disk.
struct Life {
    memory: MemoryFileSystem,
    fs: FaultFs,
    options: Options,
    fates: Vec<Fate>,
}

fn value(number: usize) -> Vec<u8> {
    vec![b'a' + (number % 26) as u8; if number.is_multiple_of(3) { 900 } else { 40 }]
}

fn key(number: usize) -> String {
    format!("{:04}", number * 37 % 1000)
}

impl Life {
    fn new() -> Self {
        let memory = MemoryFileSystem::new();
        let fs = FaultFs::new(Arc::new(memory.clone()));
        let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(fs.clone())));
        let changes = [
            ("write_buffer_size", "4096"),
            ("target_file_size_base", "4096"),
            ("enable_blob_files", "true"),
            ("min_blob_size", "500"),
            ("enable_blob_garbage_collection", "true"),
            ("blob_garbage_collection_age_cutoff", "1.0"),
            ("compression", "kLZ4Compression"),
            ("max_manifest_file_size", "1500"),
        ];
        settings::set(&mut options, &changes);
        Self { memory, fs, options, fates: Vec::new() }
    }

    fn open(&self) -> Result<Db> {
        let listed = [("default", self.options.cf.clone()), ("other", self.options.cf.clone())];
        Db::open_with_families("/db", &self.options, &listed)
    }

    fn write(&mut self, db: &Db, sync: bool) -> Result<()> {
        let number = self.fates.len();
        let Some(other) = db.column_family("other") else { return Ok(()) };
        let mut batch = WriteBatch::new();
        batch.put(key(number).as_bytes(), &value(number)).unwrap();
        batch.put_cf(&other, key(number).as_bytes(), number.to_string().as_bytes()).unwrap();
        let outcome = db.write_with(&WriteOptions { sync, ..WriteOptions::default() }, batch);
        self.fates.push(if outcome.is_ok() { Fate::Acknowledged } else { Fate::Unknown });
        outcome
    }

    fn writes(&mut self, db: &Db, count: usize) {
        for _ in 0..count {
            let sync = self.fates.len() % 7 == 6;
            let failures = self.fs.failed().len();
            let _ = self.write(db, sync);
            let newly = &self.fs.failed()[failures..];
            if newly
                .iter()
                .any(|(call, path)| *call == Call::Sync && path.extension().is_some_and(|e| e == "log"))
            {
                let error = self.write(db, false).expect_err("nothing is acknowledged after a failed sync");
                assert_eq!(error.subcode(), SubCode::Poisoned, "{error}");
            }
        }
    }

    /// Every read is right or an error.
    fn read(&self, db: &Db) {
        for (number, fate) in self.fates.iter().enumerate().step_by(5) {
            if let Ok(found) = db.get(key(number)) {
                match found {
                    Some(found) => assert_eq!(found, value(number)),
                    None => assert_eq!(*fate, Fate::Unknown, "batch {number} is gone"),
                }
            }
        }
        if let Ok(found) = compare::scan(db, db.default_column_family(), &Default::default()) {
            self.check_default(&found);
        }
    }

    fn check_default(&self, found: &[(Vec<u8>, Vec<u8>)]) {
        let found: BTreeMap<_, _> = found.iter().cloned().collect();
        for (number, fate) in self.fates.iter().enumerate() {
            match found.get(key(number).as_bytes()) {
                Some(found) => assert_eq!(*found, value(number)),
                None => assert_eq!(*fate, Fate::Unknown, "batch {number} is gone"),
            }
        }
        assert!(found.len() <= self.fates.len());
    }

    fn half(&mut self) -> Result<()> {
        let db = self.open()?;
        self.writes(&db, 25);
        let _ = db.flush_all();
        self.read(&db);
        self.writes(&db, 10);
        let _ = db.compact_range(db.default_column_family(), None, None, &Default::default());
        self.read(&db);
        self.writes(&db, 5);
        let _ = db.sync_wal();
        let _ = db.set_options(db.default_column_family(), &[("min_blob_size", "400")]);
        db.close()
    }

    /// Opens what is there on a healthy disk, and compares.
    fn check(&self) {
        let options =
            Options { env: Env::memory().with_fs(Arc::new(self.memory.clone())), ..self.options.clone() };
        let db = Db::open("/db", &options).unwrap_or_else(|error| panic!("on the healthy disk: {error}"));
        self.check_default(&compare::scan(&db, db.default_column_family(), &Default::default()).unwrap());
        let other = db.column_family("other");
        for (number, fate) in self.fates.iter().enumerate() {
            let first = db.get(key(number)).unwrap().is_some();
            let second = other.as_ref().and_then(|other| db.get_cf(other, key(number)).unwrap()).is_some();
            assert_eq!(first, second, "half of batch {number} is there");
            assert!(first || *fate == Fate::Unknown, "batch {number} is gone");
        }
        compare::check_files(&db);
        db.put("later", "on").unwrap();
        db.close().unwrap();
    }
}

fn stride() -> usize {
    std::env::var("FLAGSTONE_FAULT_STRIDE").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

fn fail_each(injection: Injection) {
    let mut at = 0;
    loop {
        let mut life = Life::new();
        let _telling = Telling(format!("{injection:?} of call {at}"));
        life.fs.fail_once(None, at, injection);
        let first = life.half();
        let second = life.half();
        let failed = life.fs.failed();
        let _failed = Telling(format!("{failed:?}: {first:?}, {second:?}"));
        life.fs.heal();
        life.check();
        if failed.is_empty() {
            println!("{injection:?}: {at} calls, of which every {} failed once", stride());
            return;
        }
        at += stride() as u64;
    }
}

#[test]
fn every_call_fails_once_with_an_error_of_the_device() {
    fail_each(Injection::Io);
}

#[test]
fn every_call_fails_once_for_want_of_space() {
    fail_each(Injection::NoSpace);
}

#[test]
fn every_read_is_cut_short_once() {
    fail_each(Injection::ShortRead);
}

#[test]
fn a_full_disk_is_left_behind_without_reopening() {
    let clock = Env::os().clock;
    let mut at = 0;
    loop {
        let mut life = Life::new();
        let db = life.open().unwrap();
        let _telling = Telling(format!("full from call {at} on"));
        life.fs.fill_disk(at);
        life.writes(&db, 30);
        let _ = db.flush_all();
        let failed = life.fs.failed();
        life.fs.heal();
        for _ in 0..10 {
            wait_until_it_works(&*clock, || life.write(&db, false));
        }
        wait_until_it_works(&*clock, || db.flush_all());
        life.read(&db);
        db.close().unwrap();
        drop(db);
        life.check();
        if failed.is_empty() {
            println!("full disk: {at} positions, every {}", stride() * 2);
            return;
        }
        at += stride() as u64 * 2;
    }
}

/// A failure from before there was space may still be on its way to the writers.
fn wait_until_it_works(clock: &dyn Clock, mut work: impl FnMut() -> Result<()>) {
    let begun = clock.now_us();
    while let Err(error) = work() {
        assert!(clock.now_us() - begun < 10_000_000, "the database does not resume: {error}");
        clock.sleep(Duration::from_millis(20));
    }
}
