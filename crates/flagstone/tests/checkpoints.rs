//! Stories of checkpoints of large values that are not in tables yet.

mod common;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use common::{create, entries, temporary};
use flagstone::base::Result;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{AnyFile, Env, FileSystem, FileSystemAround, OpenMode};
use flagstone::options::{CheckpointOptions, DataPathList, Options, load_latest};

fn value(key: &str, size: usize) -> Vec<u8> {
    key.bytes().cycle().take(size).collect()
}

/// Everything the tools would complain about.
fn assert_sound(db: &Db) {
    let faults = db.verify(|_| {}).faults;
    assert!(faults.is_empty(), "{faults:?}");
    let report = db.check().expect("a listing");
    assert!(report.faults.is_empty(), "{report:?}");
}

#[test]
fn a_checkpoint_has_the_values_of_memtables() {
    let directory = temporary();
    let mut options = create();
    options.set("enable_blob_files", "true").unwrap();
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for i in 0..400 {
                db.put(format!("key{i}"), value("v", 5000 + i)).unwrap();
            }
        });
        for i in 0.. {
            let copy = directory.path().join(format!("copy{i}"));
            db.checkpoint(&copy).unwrap();
            let copy = Db::open(&copy, &options).unwrap();
            for (at, (key, value)) in
                entries(&copy, copy.default_column_family()).into_iter().enumerate()
            {
                let i: usize = std::str::from_utf8(&key[3..]).unwrap().parse().unwrap();
                assert_eq!(value.len(), 5000 + i, "entry {at}");
            }
            assert_sound(&copy);
            if writer.is_finished() {
                break;
            }
        }
    });
}

/// It said the number alone.
#[test]
fn a_checkpoint_names_the_file_that_is_missing() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let mut options = create();
    options.db.db_paths = DataPathList::of(&[(at("tables").to_str().unwrap(), 0)]);
    options.set_all("enable_blob_files=true;min_blob_size=100").unwrap();
    let db = Db::open(at("db"), &options).unwrap();
    db.put("large", value("v", 1000)).unwrap();
    db.flush_all().unwrap();
    for kind in ["sst", "blob"] {
        let listed = std::fs::read_dir(at("tables")).unwrap().map(|entry| entry.unwrap().path());
        let file =
            listed.into_iter().find(|path| path.extension().is_some_and(|found| found == kind));
        let file = file.unwrap();
        std::fs::rename(&file, at("away")).unwrap();
        let error = db.checkpoint(at("copy")).unwrap_err();
        assert!(error.is_corruption() && error.to_string().contains("is missing"), "{error}");
        assert_eq!(error.path(), Some(file.as_path()));
        assert!(!at("copy").exists());
        std::fs::rename(at("away"), &file).unwrap();
    }
    db.checkpoint(at("copy")).unwrap();
}

/// Calls `then` when the checkpoint makes its copy of a WAL.
struct Onlooker {
    fs: MemoryFileSystem,
    then: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl FileSystemAround for Onlooker {
    fn inner(&self) -> &dyn FileSystem {
        &self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let is_copy = path.starts_with("/copy")
            && path.extension().is_some_and(|extension| extension == "log");
        if let Some(then) = self.then.get().filter(|_| is_copy && mode.creates()) {
            then();
        }
        mode.open(&self.fs, path)
    }
}

/// RocksDB did not open the copy: its WAL named blob files that its MANIFEST did not list.
#[test]
fn no_copy_has_a_wal_that_names_a_blob_file_which_its_manifest_lacks() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let mut options = create();
    options.set("enable_blob_files", "true").unwrap();
    let db = Db::open(at("db"), &options).unwrap();
    for i in 0..4 {
        db.put(format!("large{i}"), value("v", 6000 + i)).unwrap();
    }
    db.put("small", "1").unwrap();
    let listed = |path: &Path| {
        let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|found| found == "blob")).count()
    };
    assert!(listed(&at("db")) > 0, "values lie in a memtable's blob file");
    db.checkpoint_with_wals(at("copy")).unwrap();
    let copy = Db::open_read_only(at("copy"), &options).unwrap();
    let in_manifest = copy.live_files().iter().filter(|file| file.level.is_none()).count();
    assert!(in_manifest > 0);
    assert_eq!(listed(&at("copy")), in_manifest);
    assert_eq!(entries(&copy, copy.default_column_family()).len(), 5);
    assert_sound(&copy);
    if let Some(referee) = common::referee() {
        let contents = common::dump_family(&db, db.default_column_family());
        assert!(referee.scan(&at("copy"), "default") == contents);
    }
}

/// OPTIONS told of the families that there were when all was copied, the MANIFEST of those when
/// that began: neither RocksDB nor Flagstone opened the copy as its OPTIONS file says.
#[test]
fn a_checkpoint_s_options_are_of_the_moment_of_its_manifest() {
    let onlooker = Arc::new(Onlooker { fs: MemoryFileSystem::new(), then: OnceLock::new() });
    let mut options = create();
    options.env = Env::os().with_fs(onlooker.clone());
    let db = Arc::new(Db::open("/db", &options).unwrap());
    db.create_column_family("dropped", &options.cf).unwrap();
    let (writer, family) = (Arc::downgrade(&db), options.cf.clone());
    let then = move || {
        let db = writer.upgrade().expect("it is making a checkpoint");
        let Some(dropped) = db.column_family("dropped") else { return };
        db.drop_column_family(&dropped).unwrap();
        db.create_column_family("late", &family).unwrap();
    };
    assert!(onlooker.then.set(Box::new(then)).is_ok());
    db.checkpoint("/copy").unwrap();
    assert!(db.column_family("dropped").is_none() && db.column_family("late").is_some());
    let env = Env::os().with_fs(onlooker);
    let loaded = load_latest(&env, Path::new("/copy")).unwrap().unwrap();
    let named: Vec<&str> = loaded.families.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(named, ["default", "dropped"]);
    let options = Options { env, ..loaded.options };
    let families: Vec<_> =
        loaded.families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    let copy = Db::open_with_families("/copy", &options, &families).unwrap();
    assert_sound(&copy);
}

#[test]
fn a_checkpoint_flushes_when_the_wal_has_grown_to_the_size_that_is_asked_for() {
    let directory = temporary();
    let options = create();
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    db.put("key", value("v", 1000)).unwrap();
    let flushed_at = |name: &str, log_size_for_flush| {
        let mut options = CheckpointOptions::default();
        options.log_size_for_flush = log_size_for_flush;
        db.checkpoint_with(directory.path().join(name), &options).unwrap();
        db.live_files().len()
    };
    assert_eq!(flushed_at("large", 100_000), 0);
    assert_eq!(flushed_at("small", 1000), 1);
    for name in ["large", "small"] {
        let copy = Db::open(directory.path().join(name), &options).unwrap();
        assert_eq!(copy.get("key").unwrap().unwrap(), value("v", 1000));
    }
}

#[test]
fn a_checkpoint_without_links_shares_no_file() {
    use std::os::unix::fs::MetadataExt;
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let mut options = create();
    options.set("enable_blob_files", "true").unwrap();
    let db = Db::open(at("db"), &options).unwrap();
    db.put("small", "1").unwrap();
    db.put("large", value("v", 6000)).unwrap();
    db.flush_all().unwrap();
    let shared = |copy: &str| {
        let files = std::fs::read_dir(at(copy)).unwrap().map(|entry| entry.unwrap());
        files.filter(|file| file.metadata().unwrap().nlink() > 1).count()
    };
    db.checkpoint(at("linked")).unwrap();
    assert_eq!(shared("linked"), db.live_files().len(), "tables and blob files");
    let mut copied = CheckpointOptions::default();
    copied.link_files = false;
    db.checkpoint_with(at("copied"), &copied).unwrap();
    assert_eq!(shared("copied"), 0);
    let copy = Db::open(at("copied"), &options).unwrap();
    assert_eq!(entries(&copy, copy.default_column_family()).len(), 2);
    assert_sound(&copy);
}

#[test]
fn a_checkpoint_without_a_flush_has_what_is_in_the_wal() {
    let directory = temporary();
    let options = create();
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    db.put("table", "1").unwrap();
    db.flush_all().unwrap();
    db.put("wal", "2").unwrap();
    let copy = directory.path().join("copy");
    db.checkpoint_with_wals(&copy).unwrap();
    let memtable =
        db.int_property(db.default_column_family(), "rocksdb.num-entries-active-mem-table");
    assert_eq!(memtable, Some(1), "nothing was flushed");
    let copy = Db::open(&copy, &options).unwrap();
    assert_eq!(copy.get("table").unwrap().unwrap(), "1");
    assert_eq!(copy.get("wal").unwrap().unwrap(), "2");
    assert_sound(&copy);
}
