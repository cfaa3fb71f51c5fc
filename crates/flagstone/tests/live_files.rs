//! Stories of programs that copy a database file by file.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{create, dump, dump_family, entries, referee, temporary};
use flagstone::base::Code;
use flagstone::base::file_name::FileKind;
use flagstone::db::{Db, StoredFile};
use flagstone::options::{DataPathList, Options};

fn value(seed: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| b'a' + (at * 31 + seed * 7) as u8 % 23).collect()
}

fn with_blobs() -> Options {
    let mut options = create();
    options.set_all("enable_blob_files=true;min_blob_size=4096").unwrap();
    options
}

/// What an outside tool does with the list.
fn assemble(files: &[StoredFile], target: &Path) {
    std::fs::create_dir(target).unwrap();
    assert_eq!(files.last().unwrap().kind, FileKind::Current);
    for file in files {
        let bytes = file.replacement_contents.clone().unwrap_or_else(|| {
            let mut bytes = std::fs::read(file.directory.join(&file.name)).unwrap();
            assert!(bytes.len() as u64 >= file.size, "{file:?}");
            assert!(file.trim_to_size || bytes.len() as u64 == file.size, "{file:?}");
            bytes.truncate(file.size as usize);
            bytes
        });
        assert_eq!(bytes.len() as u64, file.size);
        std::fs::write(target.join(&file.name), bytes).unwrap();
    }
}

fn kinds(files: &[StoredFile], is_it: impl Fn(FileKind) -> bool) -> usize {
    files.iter().filter(|file| is_it(file.kind)).count()
}

#[test]
fn a_copy_by_the_list_is_the_database_beside_a_writer() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let mut options = with_blobs();
    options.set("write_buffer_size", "65536").unwrap();
    let db = Db::open(at("db"), &options).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..2000 {
                let size = if i % 3 == 0 { 5000 } else { 40 };
                db.put(format!("key{i:05}"), value(i, size)).unwrap();
            }
            is_over.store(true, Ordering::Release);
        });
        for round in 0.. {
            let is_last = is_over.load(Ordering::Acquire);
            db.disable_file_deletions().unwrap();
            let flush_at = [0, u64::MAX, 100_000][round % 3];
            let files = db.live_files_storage(flush_at).unwrap();
            let target = at(&format!("copy{round}"));
            assemble(&files, &target);
            assert_eq!(db.enable_file_deletions(false).unwrap(), 0);
            let copy = Db::open(&target, &options).unwrap();
            let found = entries(&copy, copy.default_column_family());
            for (i, (key, found)) in found.iter().enumerate() {
                assert_eq!(*key, format!("key{i:05}").into_bytes());
                assert_eq!(*found, value(i, if i % 3 == 0 { 5000 } else { 40 }));
            }
            let faults = copy.verify(|_| {}).faults;
            assert!(faults.is_empty(), "{faults:?}");
            drop(copy);
            std::fs::remove_dir_all(&target).unwrap();
            if is_last {
                assert_eq!(found.len(), 2000);
                break;
            }
        }
    });
}

#[test]
fn the_options_file_is_listed_unless_it_names_other_directories() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let listed = |db: &Db| {
        let files = db.live_files_storage(0).unwrap();
        files.into_iter().find(|file| matches!(file.kind, FileKind::Options(_))).unwrap()
    };
    let db = Db::open(at("db"), &create()).unwrap();
    let family = db.default_column_family().clone();
    for size in ["1000000", "2000000"] {
        db.set_options(&family, &[("write_buffer_size", size)]).unwrap();
        let file = listed(&db);
        assert_eq!(file.replacement_contents, None);
        let text = std::fs::read_to_string(file.directory.join(&file.name)).unwrap();
        assert!(text.len() as u64 == file.size && text.contains(size), "{text}");
    }
    let mut options = create();
    options.wal_dir = at("wals").to_str().unwrap().to_string();
    let elsewhere = Db::open(at("elsewhere"), &options).unwrap();
    let text = String::from_utf8(listed(&elsewhere).replacement_contents.unwrap()).unwrap();
    assert!(!text.contains("wals"), "{text}");
}

#[test]
fn rocksdb_reads_a_directory_that_was_made_by_the_list() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let db = Db::open(at("db"), &with_blobs()).unwrap();
    let other = db.create_column_family("other", &with_blobs().cf).unwrap();
    for i in 0..200 {
        db.put(format!("key{i:04}"), value(i, if i % 2 == 0 { 6000 } else { 50 })).unwrap();
        db.put_cf(&other, format!("key{i:04}"), value(i, 20)).unwrap();
        if i == 100 {
            db.flush_all().unwrap();
        }
    }
    for (name, flush_at) in [("unflushed", u64::MAX), ("flushed", 0)] {
        db.put("in the WAL", name).unwrap();
        let held = db.hold_files();
        assemble(&db.live_files_storage(flush_at).unwrap(), &at(name));
        drop(held);
        referee.ldb(&at(name), &["checkconsistency"]);
        referee.verify_tables(&at(name));
        for family in ["default", "other"] {
            let contents = dump_family(&db, &db.column_family(family).unwrap());
            assert!(referee.scan(&at(name), family) == contents, "{name}: {family} differs");
        }
    }
}

#[test]
fn the_list_says_what_is_flushed_and_where_files_lie() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let mut options = with_blobs();
    options.db.db_paths = DataPathList::of(&[(at("tables").to_str().unwrap(), 0)]);
    options.db.wal_dir = at("wals").to_str().unwrap().to_string();
    let db = Db::open(at("db"), &options).unwrap();
    db.put("table", "1").unwrap();
    db.flush_all().unwrap();
    db.put("wal", value(1, 1000)).unwrap();
    let is_wal = |kind| matches!(kind, FileKind::Wal(_));
    let is_table = |kind| matches!(kind, FileKind::Table(_));
    for (flush_at, tables) in [(u64::MAX, 1), (100_000, 1), (1000, 2), (0, 2)] {
        let files = db.live_files_storage(flush_at).unwrap();
        assert_eq!(kinds(&files, is_table), tables, "{flush_at}");
        for file in &files {
            let place = match file.kind {
                FileKind::Table(_) | FileKind::Blob(_) => "tables",
                FileKind::Wal(_) => "wals",
                _ => "db",
            };
            assert_eq!(file.directory, at(place), "{file:?}");
            assert_eq!(file.trim_to_size, is_wal(file.kind) || file.name.starts_with("MANIFEST"));
        }
        let logged: u64 = files.iter().filter(|file| is_wal(file.kind)).map(|file| file.size).sum();
        assert_eq!(logged > 1000, tables == 1, "{flush_at}");
    }
    // Values that lie in blob files already make it flush in any case.
    db.put("large", value(2, 6000)).unwrap();
    let files = db.live_files_storage(u64::MAX).unwrap();
    assert_eq!(kinds(&files, |kind| matches!(kind, FileKind::Blob(_))), 1);
    assemble(&files, &at("copy"));
    let copy = Db::open(at("copy"), &with_blobs()).unwrap();
    assert_eq!(dump(&copy), dump(&db));

    let (names, manifest_size) = db.live_file_names(true).unwrap();
    let sizes: u64 = names
        .iter()
        .map(|name| ["db", "tables"].map(|place| at(place).join(name)))
        .map(|places| places.iter().find_map(|path| path.metadata().ok()).expect("it exists").len())
        .sum();
    assert!(manifest_size > 0 && sizes > 6000, "{names:?}");
    assert!(names.contains(&"CURRENT".to_string()), "{names:?}");
}

#[test]
fn files_stay_until_deletions_are_enabled_as_often_as_disabled() {
    let directory = temporary();
    let db = Db::open(directory.path(), &create()).unwrap();
    let rewrite = || {
        for round in 0..2 {
            db.put("key", format!("{round}")).unwrap();
            db.flush_all().unwrap();
        }
        db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    };
    let tables = || {
        let listed = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap());
        listed.filter(|entry| entry.path().extension().is_some_and(|kind| kind == "sst")).count()
    };
    assert_eq!(db.enable_file_deletions(false).unwrap(), 0, "nothing to take back");
    db.disable_file_deletions().unwrap();
    db.disable_file_deletions().unwrap();
    rewrite();
    let kept = tables();
    assert!(kept > 1);
    assert_eq!(db.enable_file_deletions(false).unwrap(), 1);
    assert_eq!(tables(), kept);
    assert_eq!(db.enable_file_deletions(false).unwrap(), 0);
    assert_eq!(tables(), 1);

    (0..3).for_each(|_| db.disable_file_deletions().unwrap());
    let guard = db.hold_files();
    rewrite();
    assert_eq!(db.enable_file_deletions(true).unwrap(), 0, "all calls are taken back");
    assert!(tables() > 1, "but not the guard");
    drop(guard);
    assert_eq!(tables(), 1);
}

#[test]
fn a_database_that_is_open_for_reading_lists_what_it_can() {
    let directory = temporary();
    let at = |name: &str| directory.path().join(name);
    let db = Db::open(at("db"), &with_blobs()).unwrap();
    db.put("small", "1").unwrap();
    let reader = Db::open_read_only(at("db"), &with_blobs()).unwrap();
    assemble(&reader.live_files_storage(0).unwrap(), &at("copy"));
    assert_eq!(dump(&Db::open(at("copy"), &with_blobs()).unwrap()), dump(&db));
    assert_eq!(reader.disable_file_deletions().unwrap_err().code(), Code::NotSupported);
    db.put("large", value(1, 6000)).unwrap();
    let reader = Db::open_read_only(at("db"), &with_blobs()).unwrap();
    let error = reader.live_files_storage(0).unwrap_err();
    assert_eq!(error.code(), Code::NotSupported);
    assert!(error.to_string().contains("open it for writing"), "{error}");
}
