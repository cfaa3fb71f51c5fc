use crate::db::facts::gather;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::{Error, Result};
use crate::db::facts::gather::Facts;
use crate::db::handle::Db;
use crate::env::os::OsFileSystem;
use crate::env::{AnyFile, Env, FileSystem, FileSystemAround, IoMode, OpenMode};
use crate::options::Options;

/// Once it is mute it tells neither what is free nor what a directory holds.
#[derive(Default)]
struct Mute(AtomicBool);

impl Mute {
    fn unless_mute<T>(&self, directory: &Path, ask: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.0.load(Ordering::Relaxed) {
            Err(Error::io("look at", directory, std::io::Error::other("broken")))
        } else {
            ask()
        }
    }
}

impl FileSystemAround for Mute {
    fn inner(&self) -> &dyn FileSystem {
        &OsFileSystem
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.unless_mute(directory, || OsFileSystem.list(directory))
    }

    fn free_space(&self, directory: &Path) -> Result<Option<u64>> {
        self.unless_mute(directory, || OsFileSystem.free_space(directory))
    }
}

/// No file of a table may be opened.
struct Forbidden;

impl FileSystemAround for Forbidden {
    fn inner(&self) -> &dyn FileSystem {
        &OsFileSystem
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        if path.extension().is_some_and(|kind| kind == "sst") {
            Err(Error::io("open", path, ErrorKind::PermissionDenied.into()))
        } else {
            mode.open(&OsFileSystem, path)
        }
    }
}

/// Whoever asked as another user was told to restore the table from a copy.
#[test]
fn a_table_that_this_user_may_not_read_is_not_to_be_restored() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = Db::open(directory.path(), &options).unwrap();
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    drop(db);
    options.paranoid_checks = false;
    options.env = Env::os().with_fs(Arc::new(Forbidden));
    let db = Db::open_read_only(directory.path(), &options).unwrap();
    let facts = db.facts().unwrap();
    assert!(facts.faults.is_empty() && facts.refused.len() == 1, "{facts:?}");
    let found = db.doctor().unwrap();
    assert!(found[0].what.contains(".sst") && found[0].advice().contains("owner"), "{found:?}");
    assert!(!found[0].advice().contains("restore"), "{found:?}");
}

/// The tables that a compaction is writing were said to be left over.
#[test]
fn files_of_a_running_database_are_not_left_over() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = Db::open(directory.path(), &options).unwrap();
    let stray = directory.path().join("999999.sst");
    options
        .env
        .fs
        .create_writable(&stray, IoMode::Buffered)
        .unwrap()
        .write_at(0, b"being written")
        .unwrap();
    assert_eq!(db.facts().unwrap().database.strays, 0);
    db.close().unwrap();
    drop(db);
    let db = Db::open_read_only(directory.path(), &options).unwrap();
    assert_eq!(db.facts().unwrap().database.strays, 1);
}

#[test]
fn what_the_system_does_not_tell_is_a_fault_and_not_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let fs = Arc::new(Mute::default());
    let mut options = Options::default();
    options.create_if_missing = true;
    options.env = Env::os().with_fs(fs.clone());
    let db = Db::open(directory.path(), &options).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    let db = Db::open_read_only(directory.path(), &options).unwrap();
    let look = || {
        let mut facts = Facts::default();
        (gather::database_facts(db.inner(), 0, &mut facts).wal_bytes > 0, facts.faults.len())
    };
    assert_eq!(look(), (true, 0));
    fs.0.store(true, Ordering::Relaxed);
    assert_eq!(look(), (false, 2), "the free space, and the WALs");
}

/// Partitions that nobody had asked for counted, and what is held beside the cache.
#[test]
fn of_indexes_and_filters_those_count_that_the_cache_holds_as_a_whole() {
    let cached = |settings: &str| {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        let settings = format!(
            "create_if_missing=true;disable_auto_compactions=true;table.cache_index_and_filter_blocks=true;\
             table.filter_policy=bloomfilter:10:false;{settings}"
        );
        options.set_all(&settings).unwrap();
        let db = Db::open("/db", &options).unwrap();
        (0..2000).for_each(|key| db.put(format!("key{key}"), [b'v'; 100]).unwrap());
        db.flush_all().unwrap();
        let facts = db.facts().unwrap().database;
        assert!(facts.is_running);
        facts.cached_index_bytes
    };
    let whole = cached("");
    let filter = 2000 * 10 / 8;
    assert!(whole > filter, "{whole}");
    assert_eq!(cached("table.pin_l0_filter_and_index_blocks_in_cache=true"), 0);
    let beside_partitions = cached("table.index_type=kTwoLevelIndexSearch");
    assert!((filter..whole).contains(&beside_partitions), "{beside_partitions}");
    assert_eq!(cached("table.index_type=kTwoLevelIndexSearch;table.partition_filters=true"), 0);
}

#[test]
fn filters_are_weighed_by_the_keys_that_they_are_over() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.set_all("create_if_missing=true;table.filter_policy=bloomfilter:10:false").unwrap();
    let db = Db::open("/db", &options).unwrap();
    (0..2000).for_each(|key| db.put(format!("key{key}"), "value").unwrap());
    db.flush_all().unwrap();
    let facts = &db.facts().unwrap().families[0];
    assert_eq!(facts.filtered_entries, 2000);
    assert!((2500..2800).contains(&facts.filter_bytes), "{}", facts.filter_bytes);
}

#[test]
fn memtables_are_counted_where_they_have_a_limit() {
    let facts = |settings: &str| {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        let always = "create_if_missing=true;memory_budget=0;enable_blob_files=false";
        options.set_all(&format!("{always};{settings}")).unwrap();
        let db = Db::open("/db", &options).unwrap();
        let family = db.create_column_family("family", &options.cf).unwrap();
        db.put("key", [b'v'; 100_000]).unwrap();
        db.put_cf(&family, "key", [b'v'; 100_000]).unwrap();
        let facts = db.facts().unwrap().database;
        (facts.memtable_bytes >= 200_000, facts.memtable_bytes_max)
    };
    assert_eq!(facts("db_write_buffer_size=8000000"), (true, 8_000_000));
    assert_eq!(facts(""), (false, 0));
}

/// Only how many writes were made was counted, and few large values take as much as many small
/// ones.
#[test]
fn what_a_snapshot_keeps_is_known_by_its_size() {
    let mut options = Options::default();
    options.create_if_missing = true;
    options.env = Env::memory();
    let db = Db::open("/db", &options).unwrap();
    let snapshot = db.snapshot();
    (0..50).for_each(|key| db.put(format!("key{key}"), [b'v'; 10_000]).unwrap());
    let facts = db.facts().unwrap().database;
    assert_eq!(facts.snapshot_writes, 50);
    assert!(
        (500_000..520_000).contains(&facts.snapshot_write_bytes),
        "{}",
        facts.snapshot_write_bytes
    );
    drop(snapshot);
    assert_eq!(db.facts().unwrap().database.snapshot_write_bytes, 0);
}
