//! Stories of databases whose tables lie in several directories. Which directory is chosen when is
//! told in `compaction/pick/testdata/paths.txt`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{create, entries, open_as_written, referee, temporary};
use flagstone::base::Code;
use flagstone::db::{Db, salvage};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::manifest;
use flagstone::options::{CompactRangeOptions, DataPathList, Options};

/// Levels 0 and 1 go to `fast`, the rest to `slow`.
const FAST_BYTES: u64 = 40_000;

fn options(root: &Path) -> Options {
    let mut options = create();
    let (fast, slow) = (root.join("fast"), root.join("slow"));
    options.db.db_paths =
        DataPathList::of(&[(fast.to_str().unwrap(), FAST_BYTES), (slow.to_str().unwrap(), 0)]);
    options
        .set_all("write_buffer_size=8192;max_bytes_for_level_base=20000;target_file_size_base=8192;compression=kNoCompression")
        .unwrap();
    options
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Writes at random until tables have gone deep; what must be there. Compactions end before the
/// next flush: where memtables hold more than a round writes, the same runs are merged on each
/// machine.
fn fill(db: &Db, contents: &mut Contents) {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..12 {
        for _ in 0..100 {
            let key = format!("{:05}", random.u32(0..3000)).into_bytes();
            let value = format!("{round} {}", "v".repeat(random.usize(0..90))).into_bytes();
            db.put(&key, &value).unwrap();
            contents.insert(key, value);
        }
        db.flush_all().unwrap();
        db.wait_for_compactions().unwrap();
    }
}

fn assert_holds(db: &Db, contents: &Contents) {
    let expected: Vec<_> =
        contents.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert!(entries(db, db.default_column_family()) == expected);
}

/// A thread removes what its job has replaced after it has said that the job is done.
fn wait_until_tidy(db: &Db) {
    let start = Instant::now();
    loop {
        let check = db.check().unwrap();
        assert!(check.faults.is_empty(), "{check:?}");
        if check.strays.is_empty() {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{check:?}");
        std::thread::yield_now();
    }
}

fn names(directory: &Path, extension: &str) -> BTreeSet<PathBuf> {
    let Ok(listed) = std::fs::read_dir(directory) else { return BTreeSet::new() };
    let paths = listed.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// The levels of the tables in a directory.
fn levels_in(db: &Db, directory: &Path) -> BTreeSet<usize> {
    let files = db.live_files();
    files
        .iter()
        .filter(|file| file.path.starts_with(directory))
        .filter_map(|file| file.level)
        .collect()
}

#[test]
fn levels_lie_in_the_directory_that_they_fit_into() {
    let root = temporary();
    let (path, fast, slow) =
        (root.path().join("db"), root.path().join("fast"), root.path().join("slow"));
    let db = Db::open(&path, &options(root.path())).unwrap();
    let mut contents = Contents::new();
    fill(&db, &mut contents);
    db.put("last", "one").unwrap();
    contents.insert(b"last".to_vec(), b"one".to_vec());
    db.flush_all().unwrap();
    db.wait_for_compactions().unwrap();
    wait_until_tidy(&db);
    assert_holds(&db, &contents);
    assert!(levels_in(&db, &fast).iter().all(|level| *level <= 1), "{:?}", levels_in(&db, &fast));
    assert!(
        levels_in(&db, &slow).iter().all(|level| *level >= 2) && !levels_in(&db, &slow).is_empty()
    );
    // What compactions have replaced is gone from both.
    let live: BTreeSet<PathBuf> = db.live_files().into_iter().map(|file| file.path).collect();
    let found: BTreeSet<PathBuf> =
        [&path, &fast, &slow].into_iter().flat_map(|at| names(at, "sst")).collect();
    assert_eq!(live, found);
    assert!(names(&path, "sst").is_empty());
    db.close().unwrap();
    drop(db);

    // Its OPTIONS file knows where they are.
    for read_only in [true, false] {
        let db = open_as_written(&path, read_only);
        assert_holds(&db, &contents);
        assert!(db.verify(|_| {}).faults.is_empty());
        db.close().unwrap();
    }
}

#[test]
fn rocksdb_reads_what_lies_in_the_database_directory() {
    let root = temporary();
    let path = root.path().join("db");
    let mut options = options(root.path());
    options.db.db_paths.0[0] =
        DataPathList::of(&[(path.to_str().unwrap(), FAST_BYTES)]).0[0].clone();
    let db = Db::open(&path, &options).unwrap();
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    drop(db);
    let Some(referee) = referee() else { return };
    assert_eq!(referee.ldb(&path, &["get", "key"]).trim(), "value");
    // Its OPTIONS file passes for one of RocksDB's.
    referee.ldb(&path, &["put", "--try_load_options", "by", "ldb"]);
    assert_eq!(Db::open(&path, &options).unwrap().get("by").unwrap().unwrap(), "ldb");
}

#[test]
fn leftovers_are_removed_wherever_they_lie() {
    let root = temporary();
    let path = root.path().join("db");
    let options = options(root.path());
    let db = Db::open(&path, &options).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    for directory in ["db", "fast", "slow"] {
        for name in ["000777.sst", "000778.blob", "000779.dbtmp", "photo.jpg"] {
            std::fs::write(root.path().join(directory).join(name), "x").unwrap();
        }
    }
    // A number that a file has in any of them is not given out again.
    let db = Db::open_read_only(&path, &options).unwrap();
    assert_eq!(db.check().unwrap().strays.len(), 9);
    drop(db);
    let db = Db::open(&path, &options).unwrap();
    assert!(db.check().unwrap().strays.is_empty());
    for directory in ["db", "fast", "slow"] {
        assert!(names(&root.path().join(directory), "dbtmp").is_empty());
        assert_eq!(names(&root.path().join(directory), "jpg").len(), 1);
    }
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
}

#[test]
fn a_directory_that_is_not_named_is_missed() {
    let root = temporary();
    let path = root.path().join("db");
    let mut options = options(root.path());
    let db = Db::open(&path, &options).unwrap();
    let mut contents = Contents::new();
    fill(&db, &mut contents);
    db.close().unwrap();
    drop(db);
    options.db.create_if_missing = false;
    let both = options.db.db_paths.clone();
    options.db.db_paths.0.pop();
    let error = Db::open(&path, &options).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.to_string().contains("path id 1, but only 1 is given"), "{error}");
    // Nothing was removed.
    options.db.db_paths = both.clone();
    assert_holds(&Db::open(&path, &options).unwrap(), &contents);
    // In the wrong order, the tables are not where they should be.
    options.db.db_paths.0.reverse();
    assert!(Db::open(&path, &options).unwrap_err().is_corruption());
    // A directory more does no harm.
    let third = root.path().join("third");
    options.db.db_paths = both;
    options.db.db_paths.0.extend(DataPathList::of(&[(third.to_str().unwrap(), 0)]).0);
    assert_holds(&Db::open(&path, &options).unwrap(), &contents);
}

#[test]
fn another_database_s_directory_is_not_taken() {
    let root = temporary();
    let other = root.path().join("slow");
    let db = Db::open(&other, &create()).unwrap();
    db.put("its", "own").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    drop(db);
    let error = Db::open(root.path().join("db"), &options(root.path())).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert_eq!(Db::open(&other, &create()).unwrap().get("its").unwrap().unwrap(), "own");
}

#[test]
fn what_cannot_be_is_refused() {
    let root = temporary();
    let path = root.path().join("db");
    let mut five = create();
    five.db.db_paths = DataPathList::of(&[("/a", 0); 5]);
    assert_eq!(Db::open(&path, &five).unwrap_err().code(), Code::NotSupported);
    let mut fifo = options(root.path());
    fifo.set("compaction_style", "kCompactionStyleFIFO").unwrap();
    assert_eq!(Db::open(&path, &fifo).unwrap_err().code(), Code::NotSupported);
    assert!(!path.join("CURRENT").exists());
    // With a directory of its own the family need not choose.
    fifo.set("cf_paths", root.path().join("fast").to_str().unwrap()).unwrap();
    let db = Db::open(&path, &fifo).unwrap();
    let request = CompactRangeOptions { target_path_id: 1, ..CompactRangeOptions::default() };
    let refused = db.compact_range(db.default_column_family(), None, None, &request).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
}

#[test]
fn a_family_has_directories_of_its_own() {
    let root = temporary();
    let (path, own) = (root.path().join("db"), root.path().join("own"));
    let db = Db::open(&path, &options(root.path())).unwrap();
    let mut family = (*db.default_column_family().options()).clone();
    let settings = [
        ("cf_paths", own.to_str().unwrap()),
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
    ];
    settings.iter().for_each(|(name, value)| family.set(name, value).unwrap());
    family.set("blob_commit_min_size", "1000").unwrap();
    let photos = db.create_column_family("photos", &family).unwrap();
    db.put_cf(&photos, "small", "x".repeat(200)).unwrap();
    db.put_cf(&photos, "large", "y".repeat(2000)).unwrap();
    db.put("elsewhere", "z").unwrap();
    assert_eq!(names(&own, "blob").len(), 1, "values that are committed to a blob file go there");
    drop((photos, db));

    let db = open_as_written(&path, false);
    let photos = db.column_family("photos").unwrap();
    assert_eq!(db.get_cf(&photos, "large").unwrap().unwrap(), "y".repeat(2000));
    assert_eq!(db.get_cf(&photos, "small").unwrap().unwrap(), "x".repeat(200));
    assert!(!names(&own, "blob").is_empty() && names(&root.path().join("fast"), "blob").is_empty());
    assert_eq!(names(&own, "sst").len(), 1);
    // What a dropped family had goes from its own directories.
    db.drop_column_family(&photos).unwrap();
    drop(photos);
    db.close().unwrap();
    assert!(names(&own, "sst").is_empty() && names(&own, "blob").is_empty());
}

#[test]
fn a_checkpoint_has_all_files_in_its_own_directory() {
    let root = temporary();
    let (path, copy) = (root.path().join("db"), root.path().join("copy"));
    let db = Db::open(&path, &options(root.path())).unwrap();
    let mut contents = Contents::new();
    fill(&db, &mut contents);
    db.checkpoint(&copy).unwrap();
    db.close().unwrap();
    drop(db);
    // RocksDB ends itself when it removes a table whose path id it has no directory for.
    let env = Env::os();
    let fs = &*env.fs;
    let manifest = manifest::read_current(fs, &copy).unwrap();
    for (_, edit) in manifest::dump(fs, &manifest).unwrap() {
        assert!(edit.unwrap().new_files.iter().all(|(_, file)| file.path_id == 0));
    }
    for directory in ["db", "fast", "slow"] {
        std::fs::remove_dir_all(root.path().join(directory)).unwrap();
    }
    let db = open_as_written(&copy, false);
    assert_holds(&db, &contents);
    fill(&db, &mut contents);
    assert_holds(&db, &contents);
    assert!(db.live_files().iter().all(|file| file.path.starts_with(&copy)));
    assert!(!root.path().join("fast").exists());
    db.close().unwrap();
    let Some(referee) = referee() else { return };
    assert_eq!(referee.ldb(&copy, &["scan"]).lines().count(), contents.len());
}

/// A checkpoint that was opened with the options of the original took that one's tables and WALs
/// for its own, and removed all that it did not know.
#[test]
fn a_checkpoint_is_not_opened_with_the_original_s_directories() {
    let cases: [(&[&str], _); 4] = [
        (&["tables"], None),
        (&["db", "slow"], None),
        (&["db"], Some("wals")),
        (&[], Some("wals")),
    ];
    // In memory a directory has no number by which it would be known.
    for ((paths, wals), env) in
        cases.iter().flat_map(|case| [(*case, Env::os()), (*case, Env::memory())])
    {
        let root = temporary();
        let at = |name: &str| root.path().join(name).to_str().unwrap().to_string();
        let mut options = create();
        options.env = env;
        let named: Vec<_> = paths.iter().map(|name| (at(name), 0)).collect();
        let named: Vec<_> = named.iter().map(|(path, size)| (path.as_str(), *size)).collect();
        options.db.db_paths = DataPathList::of(&named);
        options.db.wal_dir = wals.map_or(String::new(), at);
        let db = Db::open(at("db"), &options).unwrap();
        db.put("before", "1").unwrap();
        db.checkpoint(at("copy")).unwrap();
        db.put("after", "2").unwrap();
        db.flush_all().unwrap();
        db.put("last", "3").unwrap();
        // It may be open meanwhile.
        let refused = |read_only| {
            if read_only {
                Db::open_read_only(at("copy"), &options)
            } else {
                Db::open(at("copy"), &options)
            }
        };
        for read_only in [false, true] {
            let error = refused(read_only).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{paths:?} {wals:?} {error}");
        }
        db.close().unwrap();
        drop(db);
        let db = Db::open(at("db"), &options).unwrap();
        for (key, value) in [("before", "1"), ("after", "2"), ("last", "3")] {
            assert_eq!(db.get(key).unwrap().unwrap(), value, "{paths:?} {wals:?}");
        }
        assert!(db.verify(|_| {}).faults.is_empty());
        options.stand_alone();
        let copy = Db::open(at("copy"), &options).unwrap();
        assert_eq!(copy.get("before").unwrap().unwrap(), "1");
        assert!(copy.get("after").unwrap().is_none());
    }
}

/// The database's own directory may be called by another name.
#[test]
fn a_directory_has_several_names() {
    let root = temporary();
    let at = |name: &str| root.path().join(name).to_str().unwrap().to_string();
    std::fs::create_dir(at("db")).unwrap();
    std::os::unix::fs::symlink(at("db"), at("link")).unwrap();
    let mut options = create();
    for name in ["db", "link"] {
        options.db.db_paths = DataPathList::of(&[(&at("link"), 0)]);
        options.db.wal_dir = at("link");
        let db = Db::open(at(name), &options).unwrap();
        db.put(name, "value").unwrap();
        db.flush_all().unwrap();
        db.put(format!("{name} unflushed"), "value").unwrap();
        db.close().unwrap();
    }
    options.stand_alone();
    let db = Db::open(at("db"), &options).unwrap();
    assert_eq!(entries(&db, db.default_column_family()).len(), 4);
}

#[test]
fn a_manual_compaction_goes_where_it_is_told() {
    let root = temporary();
    let db = Db::open(root.path().join("db"), &options(root.path())).unwrap();
    let mut contents = Contents::new();
    fill(&db, &mut contents);
    for (target_path_id, directory) in [(0, "fast"), (1, "slow")] {
        let request = CompactRangeOptions {
            target_path_id,
            bottommost_level_compaction: flagstone::options::BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        db.compact_range(db.default_column_family(), None, None, &request).unwrap();
        let directory = root.path().join(directory);
        assert!(db.live_files().iter().all(|file| file.path.starts_with(&directory)));
        assert_holds(&db, &contents);
    }
}

#[test]
fn salvage_looks_in_all_directories() {
    let root = temporary();
    let path = root.path().join("db");
    let options = options(root.path());
    let db = Db::open(&path, &options).unwrap();
    let mut contents = Contents::new();
    fill(&db, &mut contents);
    db.flush_all().unwrap();
    db.close().unwrap();
    drop(db);
    std::fs::remove_file(path.join("CURRENT")).unwrap();
    // A new database in its place would remove its tables, wherever they lie.
    let error = Db::open(&path, &options).unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains("flagstone salvage"), "{error}");
    let saved = root.path().join("saved");
    salvage(&path, &saved, &options, &[], &mut |_| {}).unwrap();
    assert_holds(&open_as_written(&saved, false), &contents);
}

#[test]
fn a_table_that_is_missing_is_named_with_its_directory() {
    let root = temporary();
    let (path, slow) = (root.path().join("db"), root.path().join("slow"));
    let mut options = options(root.path());
    let db = Db::open(&path, &options).unwrap();
    fill(&db, &mut Contents::new());
    db.close().unwrap();
    drop(db);
    let gone = names(&slow, "sst").pop_first().unwrap();
    std::fs::remove_file(&gone).unwrap();
    let error = Db::open(&path, &options).unwrap_err();
    assert!(error.is_corruption() && error.path() == Some(gone.as_path()), "{error}");
    options.db.paranoid_checks = false;
    let db = Db::open_read_only(&path, &options).unwrap();
    let faults = db.check().unwrap().faults;
    assert_eq!(faults[0].error.path(), Some(gone.as_path()), "{faults:?}");
}

#[test]
fn universal_compaction_moves_what_has_grown_large() {
    let root = temporary();
    let mut options = options(root.path());
    options.set("compaction_style", "kCompactionStyleUniversal").unwrap();
    options.set("level_compaction_dynamic_level_bytes", "true").unwrap();
    // Nothing but `fill` flushes: how large the runs are is no matter of chance.
    options.set("write_buffer_size", "65536").unwrap();
    options.env = Env::memory().with_fs(Arc::new(MemoryFileSystem::new()));
    let db = Db::open(root.path().join("db"), &options).unwrap();
    let mut contents = Contents::new();
    fill(&db, &mut contents);
    assert_holds(&db, &contents);
    let slow = root.path().join("slow");
    let (low, high): (Vec<_>, Vec<_>) =
        db.live_files().into_iter().partition(|file| file.path.starts_with(&slow));
    assert!(low.iter().map(|file| file.size).sum::<u64>() > FAST_BYTES, "the oldest run is there");
    assert!(high.iter().map(|file| file.size).sum::<u64>() <= FAST_BYTES, "the new ones are not");
}
