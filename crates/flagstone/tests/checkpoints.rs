//! Stories of checkpoints of large values that are not in tables yet.

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use common::{create, entries, temporary};
use flagstone::base::Result;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{AnyFile, Env, FileSystem, FileSystemAround, OpenMode};
use flagstone::options::{DataPathList, Options, load_latest};

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

/// Calls `then` when the checkpoint makes its directory, and when it makes its copy of a blob file.
struct Onlooker {
    fs: MemoryFileSystem,
    then: OnceLock<Box<dyn Fn(Moment) + Send + Sync>>,
}

enum Moment {
    Begins,
    CopiesBlobs,
}

impl FileSystemAround for Onlooker {
    fn inner(&self) -> &dyn FileSystem {
        &self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let is_copy = path.starts_with("/copy")
            && path.extension().is_some_and(|extension| extension == "blob");
        if let Some(then) = self.then.get().filter(|_| is_copy && mode.creates()) {
            then(Moment::CopiesBlobs);
        }
        mode.open(&self.fs, path)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        if let Some(then) = self.then.get().filter(|_| path == Path::new("/copy")) {
            then(Moment::Begins);
        }
        self.fs.create_directory(path)
    }
}

/// The checkpoint failed: the zeros behind the values were gone.
#[test]
fn a_blob_file_may_be_sealed_while_a_checkpoint_copies_it() {
    let onlooker = Arc::new(Onlooker { fs: MemoryFileSystem::new(), then: OnceLock::new() });
    let mut options = create();
    options.env = Env::os().with_fs(onlooker.clone());
    options.set("enable_blob_files", "true").unwrap();
    let db = Arc::new(Db::open("/db", &options).unwrap());
    let (writer, copied) = (Arc::downgrade(&db), Arc::new(AtomicBool::new(false)));
    let is_copied = copied.clone();
    let then = move |moment| {
        let db = writer.upgrade().expect("it is making a checkpoint");
        match moment {
            // Behind the flush with which a checkpoint begins.
            Moment::Begins => {
                (0..4).for_each(|i| db.put(format!("key{i}"), value("v", 6000)).unwrap())
            }
            Moment::CopiesBlobs => {
                db.flush_all().unwrap();
                is_copied.store(true, Ordering::Relaxed);
            }
        }
    };
    assert!(onlooker.then.set(Box::new(then)).is_ok());
    db.checkpoint("/copy").unwrap();
    assert!(copied.load(Ordering::Relaxed), "a memtable's blob file was copied");
    let copy = Db::open("/copy", &options).unwrap();
    assert_eq!(entries(&copy, copy.default_column_family()).len(), 4);
    assert_sound(&copy);
}

/// OPTIONS told of the families that there were when all was copied, the MANIFEST of those when
/// that began: neither RocksDB nor Flagstone opened the copy as its OPTIONS file says.
#[test]
fn a_checkpoint_s_options_are_of_the_moment_of_its_manifest() {
    let onlooker = Arc::new(Onlooker { fs: MemoryFileSystem::new(), then: OnceLock::new() });
    let mut options = create();
    options.env = Env::os().with_fs(onlooker.clone());
    options.set("enable_blob_files", "true").unwrap();
    let db = Arc::new(Db::open("/db", &options).unwrap());
    db.create_column_family("dropped", &options.cf).unwrap();
    let (writer, family) = (Arc::downgrade(&db), options.cf.clone());
    let then = move |moment| {
        let db = writer.upgrade().expect("it is making a checkpoint");
        match moment {
            Moment::Begins => db.put("key", value("v", 6000)).unwrap(),
            Moment::CopiesBlobs => {
                // Whoever opens the copy makes blob files there, too.
                let Some(dropped) = db.column_family("dropped") else { return };
                db.drop_column_family(&dropped).unwrap();
                db.create_column_family("late", &family).unwrap();
            }
        }
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
