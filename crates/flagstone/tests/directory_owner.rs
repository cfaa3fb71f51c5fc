//! Stories of directories that only one database may have: those of `wal_dir`, `db_paths` and
//! `cf_paths`. A copy that was opened with the original's took the original's files for leftovers
//! of its own, and removed them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{create, referee, temporary};
use flagstone::base::{Code, Error};
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem};
use flagstone::options::{DataPathList, Options};
use testkit::{Call, FaultFs, Injection, Plan, Sort};

/// Tables and WALs lie in `tables` and `wals` beside the database.
fn options(root: &Path) -> Options {
    let at = |name: &str| root.join(name).to_str().unwrap().to_string();
    let mut options = create();
    options.db.db_paths = DataPathList::of(&[(&at("tables"), 0)]);
    options.db.wal_dir = at("wals");
    options
}

/// Has a key in a table, and one in a WAL.
fn fill(path: &Path, options: &Options) {
    let db = Db::open(path, options).unwrap();
    db.put("flushed", "1").unwrap();
    db.flush_all().unwrap();
    db.put("logged", "2").unwrap();
    db.close().unwrap();
}

fn assert_is_whole(db: &Db) {
    assert_eq!(db.get("flushed").unwrap().unwrap(), "1");
    assert_eq!(db.get("logged").unwrap().unwrap(), "2");
    assert!(db.verify(|_| {}).faults.is_empty());
}

/// Opens, looks and closes.
fn assert_opens(path: &Path, options: &Options) {
    for read_only in [true, false] {
        let db = open(path, options, read_only).unwrap();
        assert_is_whole(&db);
        db.close().unwrap();
    }
}

fn open(path: &Path, options: &Options, read_only: bool) -> Result<Db, Error> {
    if read_only { Db::open_read_only(path, options) } else { Db::open(path, options) }
}

fn assert_is_refused(path: &Path, options: &Options, owner: &Path) {
    for read_only in [true, false] {
        let error = open(path, options, read_only).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.message().contains(owner.to_str().unwrap()), "{error}");
        assert_eq!(error.path().unwrap().file_name().unwrap(), "OWNER", "{error}");
    }
}

/// `cp -r`
fn copy(source: &Path, target: &Path) {
    std::fs::create_dir(target).unwrap();
    for entry in std::fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
    }
}

/// Of a database whose files lie elsewhere, it has none that would show it.
#[test]
fn a_copy_is_not_opened_with_the_original_s_directories() {
    let root = temporary();
    let (path, other) = (root.path().join("db"), root.path().join("copy"));
    let both = options(root.path());
    fill(&path, &both);
    copy(&path, &other);
    assert_is_refused(&other, &both, &path);
    let mut one = both.clone();
    one.db.wal_dir.clear();
    assert_is_refused(&other, &one, &path);
    // Nor while it is open.
    let db = Db::open(&path, &both).unwrap();
    assert_is_refused(&other, &both, &path);
    assert_is_whole(&db);
    db.close().unwrap();
    drop(db);
    assert_opens(&path, &both);
}

#[test]
fn a_checkpoint_without_tables_is_not_opened_with_the_original_s_directories() {
    // In memory a directory has no number by which it would be known.
    for env in [Env::os(), Env::memory()] {
        let root = temporary();
        let (path, other) = (root.path().join("db"), root.path().join("copy"));
        let mut options = options(root.path());
        options.env = env;
        options.db.wal_dir.clear();
        let db = Db::open(&path, &options).unwrap();
        db.checkpoint(&other).unwrap();
        assert_is_refused(&other, &options, &path);
        db.put("flushed", "1").unwrap();
        db.flush_all().unwrap();
        db.put("logged", "2").unwrap();
        assert_is_refused(&other, &options, &path);
        db.close().unwrap();
        drop(db);
        assert_opens(&path, &options);
        options.stand_alone();
        assert!(Db::open(&other, &options).unwrap().get("flushed").unwrap().is_none());
    }
}

#[test]
fn a_database_may_be_moved_with_its_directories_or_without() {
    let root = temporary();
    let at = |name: &str| root.path().join(name);
    let before = options(root.path());
    fill(&at("db"), &before);
    std::fs::rename(at("db"), at("moved")).unwrap();
    assert_opens(&at("moved"), &before);
    // What comes to its old place finds that it has moved.
    copy(&at("moved"), &at("db"));
    assert_is_refused(&at("db"), &before, &at("moved"));

    let elsewhere = at("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for name in ["moved", "tables", "wals"] {
        std::fs::rename(at(name), elsewhere.join(name)).unwrap();
    }
    assert_opens(&elsewhere.join("moved"), &options(&elsewhere));
    assert_is_refused(&at("db"), &options(&elsewhere), &elsewhere.join("moved"));
}

/// Its former name was taken for that of another database, with the same IDENTITY.
#[test]
fn a_database_may_be_moved_to_another_disk_with_a_link_in_its_place() {
    let root = temporary();
    let at = |name: &str| root.path().join(name);
    let options = options(root.path());
    fill(&at("db"), &options);
    copy(&at("db"), &at("larger"));
    std::fs::remove_dir_all(at("db")).unwrap();
    std::os::unix::fs::symlink(at("larger"), at("db")).unwrap();
    assert_opens(&at("larger"), &options);
    assert_opens(&at("db"), &options);
    copy(&at("db"), &at("copy"));
    assert_is_refused(&at("copy"), &options, &at("db"));
}

#[test]
fn a_database_that_was_copied_with_its_directories_stands_beside_the_original() {
    let root = temporary();
    let (first, second) = (root.path().join("first"), root.path().join("second"));
    std::fs::create_dir(&first).unwrap();
    fill(&first.join("db"), &options(&first));
    std::fs::create_dir(&second).unwrap();
    for name in ["db", "tables", "wals"] {
        copy(&first.join(name), &second.join(name));
    }
    for root in [&second, &first] {
        assert_opens(&root.join("db"), &options(root));
    }
    assert_is_refused(&second.join("db"), &options(&first), &first.join("db"));
}

#[test]
fn what_a_database_that_is_gone_has_left_is_for_its_copy() {
    let root = temporary();
    let at = |name: &str| root.path().join(name);
    let options = options(root.path());
    fill(&at("db"), &options);
    copy(&at("db"), &at("copy"));
    assert_is_refused(&at("copy"), &options, &at("db"));
    // Another one in its place is not the one that is named.
    std::fs::remove_dir_all(at("db")).unwrap();
    drop(Db::open(at("db"), &create()).unwrap());
    assert_opens(&at("copy"), &options);
    assert_is_refused(&at("db"), &options, &at("copy"));

    // Or the user says so.
    copy(&at("copy"), &at("third"));
    for name in ["tables", "wals"] {
        std::fs::remove_file(at(name).join("OWNER")).unwrap();
    }
    assert_opens(&at("third"), &options);
    assert_is_refused(&at("copy"), &options, &at("third"));
}

/// As those have that RocksDB has made.
#[test]
fn directories_without_an_owner_get_one_by_an_opening_for_writing() {
    let root = temporary();
    let path = root.path().join("db");
    let options = options(root.path());
    fill(&path, &options);
    let owners = || ["tables", "wals"].map(|name| root.path().join(name).join("OWNER"));
    owners().iter().for_each(|owner| std::fs::remove_file(owner).unwrap());
    drop(Db::open_read_only(&path, &options).unwrap());
    assert!(!owners().iter().any(|owner| owner.exists()));
    assert_opens(&path, &options);
    assert!(owners().iter().all(|owner| std::fs::metadata(owner).unwrap().len() > 1));
    assert!(!path.join("OWNER").exists());
}

/// It was overwritten; and where it was large the database was not opened, for Corruption.
#[test]
fn a_file_of_somebody_else_that_is_called_owner_stays_as_it_is() {
    let large = "alice and bob\n".repeat(10_000);
    for text in ["", "alice@example.org\n", "a\0b\0c\0d\0e\0", &large] {
        let root = temporary();
        let options = options(root.path());
        let owners = ["tables", "wals"].map(|name| root.path().join(name).join("OWNER"));
        for owner in &owners {
            std::fs::create_dir(owner.parent().unwrap()).unwrap();
            std::fs::write(owner, text).unwrap();
        }
        let path = root.path().join("db");
        fill(&path, &options);
        assert_opens(&path, &options);
        assert!(
            owners.iter().all(|owner| std::fs::read_to_string(owner).unwrap() == text),
            "{text:.9?}"
        );
        // Nor must it be a file.
        std::fs::remove_file(&owners[0]).unwrap();
        std::fs::create_dir(&owners[0]).unwrap();
        assert_opens(&path, &options);
        assert!(owners[0].is_dir());
    }
}

#[test]
fn no_database_is_made_in_a_directory_of_another() {
    let root = temporary();
    let path = root.path().join("db");
    let options = options(root.path());
    let db = Db::open(&path, &options).unwrap();
    let error = Db::open(root.path().join("tables"), &create()).unwrap_err();
    assert!(
        error.code() == Code::InvalidArgument && error.message().contains("another database"),
        "{error}"
    );
    assert!(!root.path().join("tables/CURRENT").exists());
    db.close().unwrap();
    drop(db);
    fill(&path, &options);
    assert_opens(&path, &options);
}

/// It would have removed that one's WALs.
#[test]
fn another_database_s_directory_is_no_wal_dir() {
    let root = temporary();
    let other = root.path().join("wals");
    fill(&other, &create());
    for read_only in [false, true] {
        let error = open(&root.path().join("db"), &options(root.path()), read_only).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
    assert_opens(&other, &create());
}

#[test]
fn a_new_family_does_not_get_another_database_s_directory() {
    let root = temporary();
    let at = |name: &str| root.path().join(name);
    fill(&at("db"), &options(root.path()));
    let db = Db::open(at("other"), &create()).unwrap();
    let mut family = (*db.default_column_family().options()).clone();
    family.set("cf_paths", at("tables").to_str().unwrap()).unwrap();
    let error = db.create_column_family("photos", &family).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.message().contains(at("db").to_str().unwrap()), "{error}");
    family.set("cf_paths", at("own").to_str().unwrap()).unwrap();
    db.create_column_family("photos", &family).unwrap();
    assert!(at("own").join("OWNER").exists());
    assert_opens(&at("db"), &options(root.path()));
}

/// Tables and WALs in memory, in directories of their own.
fn in_memory(fs: &FaultFs) -> Options {
    let mut options = options(Path::new("/"));
    options.env = Env::memory().with_fs(Arc::new(fs.clone()));
    options.db.db_paths = DataPathList::of(&[("/tables", 1 << 30), ("/cold", 0)]);
    options
}

/// Of two with cold tables on a disk of their own that is full, or mounted for reading, the one
/// without an OWNER, or with one that has got outdated as the disk had another number after the
/// last start, was not opened.
#[test]
fn a_database_is_opened_that_has_a_directory_which_takes_no_file() {
    for (call, injection) in
        [(Call::Write, Injection::NoSpace), (Call::Create, Injection::ReadOnly)]
    {
        let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
        let options = in_memory(&fs);
        fill(Path::new("/db"), &options);
        FileSystem::remove(&fs, Path::new("/cold/OWNER")).unwrap();
        let disk = fs.clone();
        fs.before_each(move |now, path| {
            if now == call && path.starts_with("/cold") {
                disk.plan(Plan::Next { call, sort: Sort::Temporary, injection });
            }
        });
        let db = Db::open("/db", &options).unwrap();
        assert_is_whole(&db);
        assert_eq!(fs.failed().len(), 1);
        fs.before_each(|_, _| {});
        db.close().unwrap();
        drop(db);
        assert_opens(Path::new("/db"), &options);
        assert!(FileSystem::metadata(&fs, Path::new("/cold/OWNER")).is_ok());
    }
}

/// Both wrote the OWNER under the same temporary name: the second found that it was gone.
#[test]
fn two_families_get_the_same_new_directory_at_the_same_time() {
    let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let options = in_memory(&fs);
    let db = Db::open("/db", &options).unwrap();
    let mut family = options.cf.clone();
    family.set("cf_paths", "/photos").unwrap();
    let (other, spec, has_begun) = (db.clone(), family.clone(), AtomicBool::new(false));
    fs.before_each(move |call, path| {
        if call == Call::Rename
            && path.starts_with("/photos")
            && !has_begun.swap(true, Ordering::Relaxed)
        {
            other.create_column_family("second", &spec).unwrap();
        }
    });
    db.create_column_family("first", &family).unwrap();
    fs.before_each(|_, _| {});
    assert!(["first", "second"].iter().all(|name| db.column_family(name).is_some()));
}

#[test]
fn rocksdb_leaves_the_owner_alone() {
    let root = temporary();
    let path = root.path().join("db");
    let mut options = options(root.path());
    options.db.db_paths = DataPathList::default();
    fill(&path, &options);
    let owner = root.path().join("wals/OWNER");
    let before = std::fs::read(&owner).unwrap();
    let Some(referee) = referee() else { return };
    referee.ldb(&path, &["put", "--try_load_options", "by", "ldb"]);
    referee.ldb(&path, &["compact", "--try_load_options"]);
    assert_eq!(std::fs::read(&owner).unwrap(), before);
    assert_opens(&path, &options);
    assert_eq!(Db::open(&path, &options).unwrap().get("by").unwrap().unwrap(), "ldb");
}
