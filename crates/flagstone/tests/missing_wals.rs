//! Stories of WALs that are missing, or not where they are looked for. An opening made the
//! directory anew and went on without what had been acknowledged, and the next MANIFEST let go of
//! it.

mod common;

use std::path::{Path, PathBuf};

use common::{create, temporary};
use flagstone::base::{Error, SubCode};
use flagstone::db::Db;
use flagstone::options::{FlushOptions, Options, RecoveryMode};

/// WALs lie in `wals` beside the database.
fn options(root: &Path) -> Options {
    let mut options = create();
    options.db.wal_dir = root.join("wals").to_str().expect("text").to_string();
    options
}

/// Has a key in a table, and one in a WAL.
fn fill(path: &Path, options: &Options) {
    let db = Db::open(path, options).expect("a new database");
    db.put("flushed", "1").expect("a write");
    db.flush_all().expect("a flush");
    db.put("logged", "2").expect("a write");
    db.close().expect("a clean close");
}

fn open(path: &Path, options: &Options, read_only: bool) -> Result<Db, Error> {
    if read_only { Db::open_read_only(path, options) } else { Db::open(path, options) }
}

fn assert_is_whole(path: &Path, options: &Options) {
    let db = Db::open(path, options).expect("it opens");
    assert_eq!(db.get("flushed").expect("a read").expect("it is there"), "1");
    assert_eq!(db.get("logged").expect("a read").expect("it is there"), "2");
}

/// What an opening says, for reading as for writing, in every mode but the last.
fn refusal(path: &Path, options: &Options) -> Error {
    let mut options = options.clone();
    let mut said = None;
    for mode in [
        RecoveryMode::PointInTimeRecovery,
        RecoveryMode::TolerateCorruptedTailRecords,
        RecoveryMode::AbsoluteConsistency,
    ] {
        options.db.wal_recovery_mode = mode;
        for read_only in [true, false] {
            let error = open(path, &options, read_only).expect_err("a WAL is missing");
            assert!(
                error.to_string().contains("wal_recovery_mode=kSkipAnyCorruptedRecords"),
                "{error}"
            );
            said = Some(error);
        }
    }
    said.expect("several")
}

fn assert_opens_without(path: &Path, options: &Options) {
    let mut options = options.clone();
    options.db.wal_recovery_mode = RecoveryMode::SkipAnyCorruptedRecords;
    let db = Db::open(path, &options).expect("as it was asked to");
    assert_eq!(db.get("flushed").expect("a read").expect("it is there"), "1");
    assert_eq!(db.get("logged").expect("a read"), None);
    db.put("later", "3").expect("a write");
    db.close().expect("a clean close");
    drop(db);
    options.db.wal_recovery_mode = RecoveryMode::PointInTimeRecovery;
    let db = Db::open(path, &options).expect("nothing is missing any longer");
    assert_eq!(db.get("later").expect("a read").expect("it is there"), "3");
}

fn wals(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut wals: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
    wals.sort();
    wals
}

#[test]
fn a_database_does_not_open_while_its_wal_dir_is_not_there() {
    let root = temporary();
    let (path, there) = (root.path().join("db"), root.path().join("wals"));
    let options = options(root.path());
    fill(&path, &options);
    let away = root.path().join("unmounted");
    std::fs::rename(&there, &away).expect("a new name");
    let error = refusal(&path, &options);
    assert_eq!(
        (error.subcode(), error.path()),
        (SubCode::PathNotFound, Some(there.as_path())),
        "{error}"
    );
    assert!(!there.exists(), "an opening that was refused made it");
    std::fs::rename(&away, &there).expect("the old name");
    assert_is_whole(&path, &options);
}

#[test]
fn a_database_does_not_open_over_the_empty_place_where_its_wal_dir_is_mounted() {
    let root = temporary();
    let (path, there) = (root.path().join("db"), root.path().join("wals"));
    let options = options(root.path());
    fill(&path, &options);
    let away = root.path().join("unmounted");
    std::fs::rename(&there, &away).expect("a new name");
    std::fs::create_dir(&there).expect("a directory");
    let error = refusal(&path, &options);
    let newest = wals(&away).pop().expect("there is one");
    let missing = there.join(newest.file_name().expect("a name"));
    assert!(error.is_corruption() && error.path() == Some(&missing), "{error}");
    assert_eq!(std::fs::read_dir(&there).expect("a directory").count(), 0, "it was written to");
    std::fs::remove_dir(&there).expect("it is empty");
    std::fs::rename(&away, &there).expect("the old name");
    assert_is_whole(&path, &options);
}

#[test]
fn who_asks_for_it_goes_on_without_the_wals() {
    for is_made in [true, false] {
        let root = temporary();
        let (path, there) = (root.path().join("db"), root.path().join("wals"));
        let options = options(root.path());
        fill(&path, &options);
        std::fs::remove_dir_all(&there).expect("removed");
        if is_made {
            std::fs::create_dir(&there).expect("a directory");
        }
        assert_opens_without(&path, &options);
    }
}

/// History ended in front of it, and what newer ones held was given up.
#[test]
fn a_wal_that_is_missing_between_others_is_named() {
    let root = temporary();
    let path = root.path().join("db");
    let options = create();
    let db = Db::open(&path, &options).expect("a new database");
    db.put("flushed", "1").expect("a write");
    db.flush_all().expect("a flush");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    db.put("logged", "2").expect("a write");
    // Only this family is flushed: the other needs the WAL that ends here, and has more in the
    // next.
    db.put_cf(&other, "key", "value").expect("a write");
    db.flush(&other, &FlushOptions::default()).expect("a flush");
    db.put("later", "3").expect("a write");
    db.close().expect("a clean close");
    drop(db);
    let [older, _] = &wals(&path)[..] else { panic!("not two: {:?}", wals(&path)) };
    let away = root.path().join("away");
    std::fs::rename(older, &away).expect("a new name");
    let error = refusal(&path, &options);
    assert!(error.is_corruption() && error.path() == Some(older), "{error}");
    std::fs::rename(&away, older).expect("the old name");
    assert_is_whole(&path, &options);
}

/// RocksDB's checkpoints and backups leave out a WAL that is empty. They have no LOCK.
#[test]
fn a_copy_without_an_empty_wal_opens_also_with_a_wal_dir_that_is_to_be_made() {
    for wal_dir in [true, false] {
        let root = temporary();
        let (path, copy) = (root.path().join("db"), root.path().join("copy"));
        let db = Db::open(&path, &create()).expect("a new database");
        db.put("flushed", "1").expect("a write");
        db.flush_all().expect("a flush");
        db.checkpoint(&copy).expect("a checkpoint");
        for wal in wals(&copy) {
            std::fs::remove_file(wal).expect("removed");
        }
        let options = if wal_dir { options(root.path()) } else { create() };
        let db = Db::open(&copy, &options).expect("it opens");
        assert_eq!(db.get("flushed").expect("a read").expect("it is there"), "1");
        db.put("later", "3").expect("a write");
        db.close().expect("a clean close");
        drop(db);
        drop(Db::open(&copy, &options).expect("it opens again"));
    }
}
