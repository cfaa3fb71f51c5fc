//! Stories of a secondary: it follows a database that another handle, or process, writes.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use common::{create, entries, newest_batch, temporary};
use flagstone::base::{Code, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Secondary};
use flagstone::env::{AnyFile, Env, FileSystem, FileSystemAround, OpenMode};
use flagstone::options::{ColumnFamilyOptions, Options, ReadOptions};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn options(settings: &str) -> Options {
    let mut options = create();
    let text =
        "write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=262144";
    for setting in text.split(';').chain(settings.split(';')).filter(|text| !text.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap();
        options.set(name, value).unwrap();
    }
    options
}

/// A primary in a new directory, and where its secondary has its own.
struct Pair {
    directory: tempfile::TempDir,
    options: Options,
}

impl Pair {
    fn new(settings: &str) -> Self {
        Self { directory: temporary(), options: options(settings) }
    }

    fn primary(&self) -> Db {
        Db::open(self.directory.path().join("db"), &self.options).unwrap()
    }

    fn secondary(&self) -> Secondary {
        self.try_secondary(&self.options).unwrap()
    }

    fn try_secondary(&self, options: &Options) -> Result<Secondary> {
        let (db, own) = (self.directory.path().join("db"), self.directory.path().join("own"));
        Secondary::open(db, own, options)
    }
}

fn contents(db: &Db) -> BTreeMap<String, Entries> {
    let families = db.column_families();
    families.iter().map(|family| (family.name().to_string(), entries(db, family))).collect()
}

fn fill(db: &Db, from: u32, count: u32, size: usize) {
    for number in from..from + count {
        db.put(format!("key{number:06}"), vec![number as u8; size]).unwrap();
    }
}

/// It sees what the primary has by now, by every way of reading.
fn assert_follows(primary: &Db, secondary: &Secondary) {
    secondary.catch_up().unwrap();
    let (now, expected) = (secondary.now(), contents(primary));
    assert_eq!(contents(&now), expected);
    for family in now.column_families() {
        let keys: Vec<_> = expected[family.name()].iter().map(|(key, _)| key.clone()).collect();
        let values = now.multi_get_with(&ReadOptions::default(), &family, &keys);
        for ((key, value), found) in expected[family.name()].iter().zip(values) {
            assert_eq!(found.unwrap().unwrap(), value[..]);
            assert_eq!(now.get_cf(&family, key).unwrap().unwrap(), value[..]);
        }
    }
}

#[test]
fn it_sees_what_is_written_once_it_catches_up() {
    let pair = Pair::new("");
    let primary = pair.primary();
    primary.put("a", "1").unwrap();
    let secondary = pair.secondary();
    assert_eq!(secondary.now().get("a").unwrap().unwrap(), "1");
    assert!(!secondary.catch_up().unwrap(), "nothing was written");
    primary.put("a", "2").unwrap();
    primary.delete("b").unwrap();
    assert_eq!(secondary.now().get("a").unwrap().unwrap(), "1");
    assert!(secondary.catch_up().unwrap());
    assert_eq!(secondary.now().get("a").unwrap().unwrap(), "2");
    assert_eq!(secondary.now().latest_sequence_number(), primary.latest_sequence_number());
}

#[test]
fn it_refuses_writes() {
    let pair = Pair::new("");
    let _primary = pair.primary();
    let secondary = pair.secondary();
    assert_eq!(secondary.now().put("a", "1").unwrap_err().code(), Code::NotSupported);
}

#[test]
fn it_follows_flushes_and_compactions_and_new_lives() {
    let pair = Pair::new("max_manifest_file_size=1000");
    let mut primary = pair.primary();
    let secondary = pair.secondary();
    for round in 0..9 {
        fill(&primary, round * 100, 300, 200);
        if round % 2 == 0 {
            assert_follows(&primary, &secondary);
        }
        match round % 4 {
            0 => primary.flush_all().unwrap(),
            1 => primary
                .compact_range(primary.default_column_family(), None, None, &Default::default())
                .unwrap(),
            2 => {
                primary.close().unwrap();
                primary = pair.primary();
            }
            _ => {}
        }
        assert_follows(&primary, &secondary);
    }
}

#[test]
fn families_come_and_go() {
    let pair = Pair::new("");
    let primary = pair.primary();
    let secondary = pair.secondary();
    let blue = primary.create_column_family("blue", &ColumnFamilyOptions::default()).unwrap();
    primary.put_cf(&blue, "sky", "clear").unwrap();
    assert_follows(&primary, &secondary);
    let before = secondary.now();
    let handle = before.column_family("blue").unwrap();
    primary.drop_column_family(&blue).unwrap();
    let blue = primary.create_column_family("blue", &ColumnFamilyOptions::default()).unwrap();
    primary.put_cf(&blue, "sea", "calm").unwrap();
    assert_follows(&primary, &secondary);
    assert_eq!(before.get_cf(&handle, "sky").unwrap().unwrap(), "clear");
    let error = secondary.now().get_cf(&handle, "sky").unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "a handle belongs to one state: {error}");
}

#[test]
fn a_state_stays_as_it_is_though_the_primary_removes_its_files() {
    let blobs = "enable_blob_files=true;min_blob_size=2000;blob_file_size=65536;\
                 enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=1.0";
    for mode in ["commit", "flush"] {
        let pair = Pair::new(&format!("{blobs};blob_write_mode={mode}"));
        let primary = pair.primary();
        fill(&primary, 0, 100, 3000);
        fill(&primary, 100, 100, 30);
        let secondary = pair.secondary();
        let (first, expected) = (secondary.now(), contents(&primary));
        let mut iterator = first.iter(&ReadOptions::default()).unwrap();
        iterator.seek_to_first();
        for round in 1..4 {
            fill(&primary, 0, 200, 2500 + round);
            primary.flush_all().unwrap();
            primary
                .compact_range(primary.default_column_family(), None, None, &Default::default())
                .unwrap();
            primary.wait_for_compactions().unwrap();
            assert_follows(&primary, &secondary);
        }
        assert_eq!(contents(&first), expected);
        let mut count = 0;
        while iterator.valid() {
            assert_eq!(iterator.value().unwrap(), expected["default"][count].1);
            (count, _) = (count + 1, iterator.next());
        }
        iterator.status().unwrap();
        assert_eq!(count, 200);
    }
}

#[test]
fn every_way_to_write_a_wal_can_be_followed() {
    for settings in [
        "recycle_log_file_num=2;wal_write_mode=mapped",
        "recycle_log_file_num=2;wal_write_mode=plain",
        "recycle_log_file_num=0;wal_write_mode=mapped",
        "recycle_log_file_num=0;wal_compression=kZSTD",
        "avoid_flush_during_recovery=true",
        "atomic_flush=true",
        "min_write_buffer_number_to_merge=3;max_write_buffer_number=6",
    ] {
        let pair = Pair::new(settings);
        let mut primary = pair.primary();
        let blue = primary.create_column_family("blue", &ColumnFamilyOptions::default()).unwrap();
        let secondary = pair.secondary();
        primary.put_cf(&blue, "sky", "clear").unwrap();
        for round in 0..6 {
            fill(&primary, round * 100, 250, 300);
            assert_follows(&primary, &secondary);
            if round % 3 == 2 {
                drop(primary);
                primary = pair.primary();
            }
        }
    }
}

#[test]
fn what_waits_in_the_primarys_memory_comes_with_its_flush() {
    let pair = Pair::new("manual_wal_flush=true");
    let primary = pair.primary();
    primary.put("a", "1").unwrap();
    primary.flush_wal(false).unwrap();
    let secondary = pair.secondary();
    primary.put("a", "2").unwrap();
    secondary.catch_up().unwrap();
    let before = secondary.now();
    assert_eq!(before.get("a").unwrap().unwrap(), "1");
    primary.flush_wal(false).unwrap();
    assert_follows(&primary, &secondary);
    assert_eq!(before.get("a").unwrap().unwrap(), "1");
}

/// Counts the bytes that are read from files.
struct Counting(Arc<dyn FileSystem>, Arc<AtomicU64>);

struct Counted(AnyFile, Arc<AtomicU64>);

impl flagstone::env::FileAround for Counted {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let read = self.0.read_at(offset, buffer)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl FileSystemAround for Counting {
    fn inner(&self) -> &dyn FileSystem {
        &*self.0
    }

    fn open(&self, path: &std::path::Path, mode: OpenMode) -> Result<AnyFile> {
        Ok(AnyFile::around(Counted(mode.open(&*self.0, path)?, self.1.clone())))
    }
}

#[test]
fn catching_up_reads_what_is_new_alone() {
    let pair = Pair::new("write_buffer_size=100000000;recycle_log_file_num=0");
    let primary = pair.primary();
    fill(&primary, 0, 2000, 100);
    primary.flush_all().unwrap();
    fill(&primary, 0, 8_000, 300);
    let read = Arc::new(AtomicU64::new(0));
    let env = Env::os();
    let env = env.clone().with_fs(Arc::new(Counting(env.fs, read.clone())));
    let secondary = pair.try_secondary(&Options { env, ..pair.options.clone() }).unwrap();
    let opening = read.swap(0, Ordering::Relaxed);
    assert!((2_000_000..10_000_000).contains(&opening), "{opening} bytes");
    primary.put("new", "value").unwrap();
    assert!(secondary.catch_up().unwrap());
    let (one, bytes) = (secondary.now().get("new").unwrap(), read.load(Ordering::Relaxed));
    assert_eq!(one.unwrap(), "value");
    // A window of the WAL, asked for again where it ends, CURRENT and the MANIFEST.
    assert!(bytes < opening / 2 && bytes < 1_500_000, "{bytes} bytes");
    // Many records are read by the window, not each by one of its own.
    fill(&primary, 0, 8_000, 300);
    read.store(0, Ordering::Relaxed);
    assert!(secondary.catch_up().unwrap());
    let bytes = read.load(Ordering::Relaxed);
    assert!((2_000_000..10_000_000).contains(&bytes), "{bytes} bytes");
}

#[test]
fn beside_a_writer_at_full_speed_each_state_is_one_that_the_primary_had() {
    for settings in [
        "",
        "enable_blob_files=true;min_blob_size=100;blob_write_mode=commit;blob_commit_min_size=100",
        "recycle_log_file_num=2;wal_write_mode=mapped;max_manifest_file_size=5000",
    ] {
        let pair = Pair::new(settings);
        let primary = pair.primary();
        let blue = primary.create_column_family("blue", &pair.options.cf).unwrap();
        let (done, last) = (AtomicBool::new(false), AtomicU64::new(0));
        let failures = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    number += 1;
                    let mut batch = WriteBatch::new();
                    let value = format!("{number:0300}");
                    for key in ["last", &format!("key{}", number % 60)] {
                        batch.put(key, &value).unwrap();
                        batch.put_cf(&blue, key, &value).unwrap();
                    }
                    primary.write(batch).unwrap();
                    last.store(number, Ordering::Release);
                    if number.is_multiple_of(3000) {
                        primary.flush_all().unwrap();
                    }
                }
            });
            let follow = || {
                let secondary = pair.secondary();
                let (mut seen, mut rounds) = (0, 0);
                while rounds < 40 || seen < 4000 {
                    let least = last.load(Ordering::Acquire);
                    secondary.catch_up().unwrap();
                    let found = newest_batch(&secondary.now());
                    assert!(found >= least.max(seen), "{found} after {least} and {seen}");
                    (seen, rounds) = (found, rounds + 1);
                }
            };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(follow));
            failures.lock().unwrap().extend(outcome.err());
            done.store(true, Ordering::Relaxed);
        });
        if let Some(panic) = failures.into_inner().unwrap().pop() {
            std::panic::resume_unwind(panic);
        }
    }
}
