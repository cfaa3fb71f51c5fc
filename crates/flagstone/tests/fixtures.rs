//! Every database in `fixtures/`, written by RocksDB 7.8 or 11.8 or by LevelDB, reads back exactly
//! as its writer read it.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::*;
use flagstone::base::{Code, FileNumber};
use flagstone::db::{Db, salvage};
use flagstone::env::{Env, IoMode};
use flagstone::manifest::{VersionEdit, read_current};
use flagstone::options::{Options, SizeApproximationOptions};
use flagstone::wal::{Writer, WriterOptions};

fn directories_in(parent: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(parent)
        .expect("the fixtures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn of_leveldb() -> Vec<PathBuf> {
    let found = directories_in(&fixtures().join("../leveldb"));
    assert!(found.len() >= 5, "fixtures are missing: {found:?}");
    found
}

fn all() -> Vec<PathBuf> {
    let mut found = directories_in(&fixtures());
    assert!(found.len() >= 30, "fixtures are missing: {found:?}");
    found.extend(directories_in(&fixtures().join("../rocksdb-11.8")));
    found.extend(of_leveldb());
    found
}

fn expected(path: &Path) -> String {
    std::fs::read_to_string(path.with_extension("expected")).expect("the expected contents")
}

#[test]
fn read_only_without_touching_the_directory() {
    for path in all() {
        let db = open_as_written(&path, true);
        assert!(dump(&db) == expected(&path), "{path:?} differs");
        for family in db.column_families() {
            assert!(
                entries(&db, &family) == entries_backwards(&db, &family),
                "{path:?} differs backwards"
            );
        }
    }
}

#[test]
fn every_key_is_found_by_get() {
    for path in all() {
        let db = open_as_written(&path, true);
        for family in db.column_families() {
            for (key, value) in entries(&db, &family) {
                let found = db
                    .get_cf(&family, &key)
                    .expect("no error")
                    .unwrap_or_else(|| panic!("{path:?}: {key:?}"));
                assert!(found == value, "{path:?}: {key:?}");
            }
        }
    }
}

#[test]
fn opened_for_writing_compacted_and_reopened() {
    for fixture in all() {
        // As it was written, it drops what is older than 30 days.
        if fixture.ends_with("fifo") {
            continue;
        }
        let directory = temporary();
        let path = directory.path().join("db");
        copy_directory(&fixture, &path);
        let db = open_as_written(&path, false);
        let expected = expected(&fixture);
        assert!(dump(&db) == expected, "{fixture:?} differs after recovery");
        let report = db.verify(|_| {});
        assert!(report.faults.is_empty(), "{fixture:?}: {:?}", report.faults);
        for family in db.column_families() {
            db.compact_range(&family, None, None, &Default::default()).expect("a compaction");
        }
        assert!(dump(&db) == expected, "{fixture:?} differs after compaction");
        let report = db.verify(|_| {});
        assert!(report.faults.is_empty(), "{fixture:?}: {:?}", report.faults);
        db.close().expect("a clean close");
        drop(db);
        assert!(
            dump(&open_as_written(&path, false)) == expected,
            "{fixture:?} differs after reopening"
        );
    }
}

fn names_with(extension: &str, directory: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(directory).expect("a directory");
    let names =
        names.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    names.filter(|name| name.ends_with(extension)).collect()
}

/// `open_as_written`, for a directory without an OPTIONS file.
fn open(path: &Path) -> Db {
    Db::open(path, &Options::default())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Went wrong: LevelDB's tables have no properties block, and each of them was damaged to whoever
/// read it.
#[test]
fn leveldb_directories_are_taken_over_file_by_file() {
    let referee = referee();
    for fixture in of_leveldb() {
        let directory = temporary();
        let (path, copy) = (directory.path().join("db"), directory.path().join("copy"));
        copy_directory(&fixture, &path);
        let before = names_with(".ldb", &path);
        assert!(before.len() > 1, "{before:?}");
        // Nothing is to replace the tables before they are looked at.
        let mut options = Options::default();
        options.set("disable_auto_compactions", "true").expect("an option");
        let db = Db::open(&path, &options).expect("a directory of LevelDB");
        let listed = db.live_files();
        assert!(listed.iter().all(|file| file.path.exists()), "{listed:?}");
        let levels: BTreeSet<_> = listed.iter().map(|file| file.level).collect();
        assert!(levels.len() > 1, "{fixture:?}: {levels:?}");
        let expected = expected(&fixture);

        // A copy has the tables by the names that they have.
        db.checkpoint(&copy).expect("a checkpoint");
        assert_eq!(names_with(".ldb", &copy), before);
        assert!(dump(&open(&copy)) == expected, "{fixture:?} differs in a checkpoint");

        let family = db.default_column_family().clone();
        let all = db.int_property(&family, "rocksdb.total-sst-files-size").expect("a size");
        let range = [(&b""[..], &b"\xff\xff"[..])];
        let options = SizeApproximationOptions::default();
        let sizes = db.approximate_sizes(&family, &range, &options).expect("sizes");
        assert!(sizes[0] > all / 3 && sizes[0] <= all, "{sizes:?} of {all}");
        db.put("key0000", "ours").expect("a write");
        db.compact_range(&family, None, None, &Default::default()).expect("a compaction");
        db.close().expect("a clean close");
        drop((family, db));
        assert!(names_with(".ldb", &path).is_empty(), "what was merged is gone under its own name");
        let db = open(&path);
        assert_eq!(db.get("key0000").expect("a lookup").expect("it was written"), "ours");
        drop(db);
        if let Some(referee) = &referee {
            referee.ldb(&path, &["checkconsistency"]);
            let keys = referee.ldb(&path, &["scan", "--no_value"]).lines().count();
            let has_key = expected.lines().any(|line| line.starts_with("default 6b657930303030 "));
            assert_eq!(keys, expected.lines().count() + usize::from(!has_key), "{fixture:?}");
        }
    }
}

/// RocksDB 7.8 does not open what it reads of LevelDB's level 0 as two tables without sequence
/// numbers, unless its checks are off. What Flagstone notes of them it opens.
#[test]
fn rocksdb_opens_a_leveldb_directory_after_flagstone() {
    let Some(referee) = referee() else { return };
    for fixture in of_leveldb() {
        let directory = temporary();
        let path = directory.path().join("db");
        copy_directory(&fixture, &path);
        let db = open(&path);
        db.flush_all().expect("a flush");
        db.close().expect("a clean close");
        drop(db);
        let keys =
            referee.ldb(&path, &["scan", "--no_value", "--try_load_options"]).lines().count();
        assert_eq!(keys, expected(&fixture).lines().count(), "{fixture:?}");
    }
}

#[test]
fn leveldb_directories_are_healthy_and_salvaged_whole() {
    for fixture in of_leveldb() {
        let directory = temporary();
        let (path, target) = (directory.path().join("db"), directory.path().join("new"));
        copy_directory(&fixture, &path);
        let db = Db::open_read_only(&path, &Options::default()).expect("it opens");
        let found = db.doctor().expect("it looks");
        assert!(found.is_empty(), "{fixture:?}: {found:?}");
        drop(db);
        let report =
            salvage(&path, &target, &Options::default(), &[], &mut |_| {}).expect("a salvage");
        assert!(report.is_complete(), "{fixture:?}: {report:?}");
        assert!(dump(&open(&target)) == expected(&fixture), "{fixture:?} differs when salvaged");
    }
}

/// Without a MANIFEST, what the tables and logs have is all there is: all of it is the default
/// family's.
#[test]
fn a_leveldb_directory_without_manifest_is_salvaged() {
    for fixture in of_leveldb() {
        let directory = temporary();
        let (path, target) = (directory.path().join("db"), directory.path().join("new"));
        copy_directory(&fixture, &path);
        for name in names_with("", &path).into_iter().filter(|name| name.starts_with("MANIFEST")) {
            std::fs::remove_file(path.join(name)).expect("a file");
        }
        salvage(&path, &target, &Options::default(), &[], &mut |_| {}).expect("a salvage");
        let db = open(&target);
        assert_eq!(db.column_families().len(), 1);
        assert!(
            dump(&db) == expected(&fixture),
            "{fixture:?} differs when salvaged without its MANIFEST"
        );
    }
}

#[test]
fn the_order_of_an_application_is_named() {
    let fixture = of_leveldb().swap_remove(0);
    let directory = temporary();
    let path = directory.path().join("db");
    copy_directory(&fixture, &path);
    let env = Env::os();
    let mut edit = Vec::new();
    let named = VersionEdit {
        comparator: Some("idb_cmp1".to_owned()),
        log_number: Some(FileNumber(3)),
        next_file_number: Some(FileNumber(99)),
        last_sequence: Some(9),
        ..VersionEdit::default()
    };
    named.encode(&mut edit);
    let manifest = read_current(&*env.fs, &path).expect("a MANIFEST");
    let file = env.fs.create_writable(&manifest, IoMode::Buffered).expect("a file");
    let mut writer = Writer::new(file, FileNumber(0), WriterOptions::default()).expect("a log");
    writer.add_record(&edit).expect("a record");
    drop(writer);
    let error = Db::open(&path, &Options::default()).expect_err("its order is not built in");
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.to_string().contains("idb_cmp1"), "{error}");
}
