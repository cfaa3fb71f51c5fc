//! The power fails, or a call does, while a family is exported, imported and clipped: at every
//! moment, with what was not synced lost, kept, or by chance.
//!
//! 1. An export that was acknowledged is whole; any other is whole, or no export.
//! 2. A family is imported with all that it had, or is not there.
//! 3. What lies outside of a range is there, or all of it is gone.
//! 4. The next call works, and no file is left that nothing needs.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{create, dump_family};
use flagstone::base::Result;
use flagstone::base::file_name::FileKind;
use flagstone::db::{Db, ExportedFamily};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem};
use flagstone::options::{ColumnFamilyOptions, ImportColumnFamilyOptions, Options};
use testkit::fault::{FaultFs, Injection, Plan};
use testkit::{CrashFs, Survival};

const EXPORT: &str = "/export";

fn options_on(fs: Arc<dyn FileSystem>) -> Options {
    let mut options = Options { env: Env::memory().with_fs(fs), ..create() };
    options.cf.enable_blob_files = Some(true);
    options.cf.min_blob_size = Some(300);
    // Each state of the disk has what the WAL reserves.
    options.cf.write_buffer_size = 64 << 10;
    options.set("max_total_wal_size", "64K").expect("an option");
    options
}

fn family_options() -> ColumnFamilyOptions {
    options_on(Arc::new(MemoryFileSystem::new())).cf
}

fn write_some(db: &Db) {
    let family = db.default_column_family();
    for key in 0..30 {
        let size = if key % 4 == 0 { 2000 } else { 60 };
        let value: Vec<u8> = (0..size).map(|at| (at * 31 + key * 7) as u8).collect();
        db.put_cf(family, format!("key{key:03}"), value).expect("a put");
    }
    db.flush_all().expect("a flush");
    db.delete_range("key010", "key015").expect("a deletion");
}

fn export(db: &Db) -> Result<ExportedFamily> {
    let family = db.default_column_family().clone();
    db.export_column_family(&family, EXPORT)
}

fn import(db: &Db, moves: bool) -> Result<()> {
    let mut how = ImportColumnFamilyOptions::default();
    how.move_files = moves;
    let sources = [ExportedFamily::new(EXPORT)];
    db.create_column_family_with_import("new", &family_options(), &sources, &how).map(|_| ())
}

/// The database with all of its families.
fn opened(fs: &MemoryFileSystem, path: &str) -> Result<Db> {
    let mut options = options_on(Arc::new(fs.clone()));
    options.create_if_missing = false;
    Db::open(path, &options)
}

/// What the family holds, without its name.
fn held(db: &Db, name: &str) -> Option<String> {
    let family = db.column_family(name)?;
    Some(dump_family(db, &family).replace(&format!("{name} "), ""))
}

/// Removes what is left of an export.
fn remove_export(fs: &MemoryFileSystem) {
    for (file, _) in fs.files() {
        if file.starts_with(EXPORT) {
            fs.remove(&file).expect("removed");
        }
    }
    let _ = fs.remove_directory(Path::new(EXPORT));
}

fn survival(at: usize) -> Survival {
    match at % 3 {
        0 => Survival::Lost,
        1 => Survival::Kept,
        _ => Survival::Random(at as u64),
    }
}

/// No file lies in the directory that the database does not need.
fn assert_tidy(db: &Db, fs: &MemoryFileSystem, path: &str, what: &str) {
    let live: Vec<_> = db.live_files().into_iter().map(|file| file.number).collect();
    for (file, _) in fs.files() {
        if file.parent() != Some(Path::new(path)) {
            continue;
        }
        let kind = FileKind::parse(file.file_name().expect("a name").to_str().expect("a text"));
        if let Some(FileKind::Table(number) | FileKind::Blob(number)) = kind {
            assert!(live.contains(&number), "{what}: {} is left", file.display());
        }
    }
}

#[test]
fn a_power_loss_leaves_an_export_whole_or_none_and_an_import_too() {
    for moves in [false, true] {
        let fs = CrashFs::new();
        let options = options_on(Arc::new(fs.clone()));
        let source = Db::open("/source", &options).expect("a database");
        write_some(&source);
        let expected = held(&source, "default").expect("the family");
        let begun = fs.changes();
        export(&source).expect("an export");
        let exported = fs.changes();
        let target = Db::open("/target", &options).expect("a database");
        target.put("other", "1").expect("a put");
        target.sync_wal().expect("a sync");
        let opened_at = fs.changes();
        import(&target, moves).expect("an import");
        let imported = fs.changes();
        let (mut with, mut without) = (0, 0);
        for at in begun..=imported {
            let survival = survival(at);
            let what = format!("{survival:?} after {}", fs.describe(at));
            let disk = fs.after_crash(at, survival);
            if at <= opened_at {
                match opened(&disk, EXPORT) {
                    Ok(copy) => {
                        assert_eq!(held(&copy, "default").as_ref(), Some(&expected), "{what}")
                    }
                    Err(_) => assert!(at < exported, "{what}: the export is lost"),
                }
                continue;
            }
            let db = opened(&disk, "/target").unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(db.get("other").expect("a value").expect("it is there"), "1", "{what}");
            match held(&db, "new") {
                Some(found) => {
                    assert_eq!(found, expected, "{what}: half a family");
                    with += 1;
                }
                None => {
                    assert!(at < imported, "{what}: the family is lost");
                    without += 1;
                    import(&db, moves).unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_eq!(held(&db, "new").as_ref(), Some(&expected), "{what}");
                }
            }
            assert_tidy(&db, &disk, "/target", &what);
            let faults = db.verify(|_| {}).faults;
            assert!(faults.is_empty(), "{what}: {faults:?}");
        }
        assert!(with > 1 && without > 10, "{with} with, {without} without");
    }
}

#[test]
fn a_power_loss_leaves_all_of_what_is_clipped_or_nothing() {
    let fs = CrashFs::new();
    let db = Db::open("/db", &options_on(Arc::new(fs.clone()))).expect("a database");
    write_some(&db);
    db.sync_wal().expect("a sync");
    let all = held(&db, "default").expect("the family");
    let begun = fs.changes();
    let family = db.default_column_family().clone();
    db.clip_column_family(&family, b"key005", b"key020").expect("a clip");
    let kept = held(&db, "default").expect("the family");
    let (mut before, mut after) = (0, 0);
    for at in begun..=fs.changes() {
        let survival = survival(at);
        let what = format!("{survival:?} after {}", fs.describe(at));
        let disk = fs.after_crash(at, survival);
        let db = opened(&disk, "/db").unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = held(&db, "default").expect("the family");
        if found == all {
            before += 1;
            assert!(after == 0 || survival != Survival::Lost || at < fs.changes(), "{what}");
        } else {
            assert_eq!(found, kept, "{what}: half of it");
            after += 1;
        }
        let family = db.default_column_family().clone();
        db.clip_column_family(&family, b"key005", b"key020").expect("a clip");
        assert_eq!(held(&db, "default").as_ref(), Some(&kept), "{what}");
        // A reader may have held tables until now.
        db.close().expect("closed");
        let db = opened(&disk, "/db").unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(held(&db, "default").as_ref(), Some(&kept), "{what}");
        assert_tidy(&db, &disk, "/db", &what);
    }
    assert!(before > 3 && after > 3, "{before} before, {after} after");
    let disk = fs.after_crash(fs.changes(), Survival::Lost);
    let db = opened(&disk, "/db").expect("a database");
    assert_eq!(held(&db, "default").as_ref(), Some(&kept), "it was acknowledged");
}

#[test]
fn a_call_that_fails_leaves_nothing_half_done() {
    let memory = MemoryFileSystem::new();
    let healthy = options_on(Arc::new(memory.clone()));
    let source = Db::open("/source", &healthy).expect("a database");
    write_some(&source);
    let expected = held(&source, "default").expect("the family");
    let faults = FaultFs::new(Arc::new(memory.clone()));
    let (mut failed, mut done) = (0, 0);
    for injection in [Injection::Io, Injection::NoSpace, Injection::Late, Injection::Short] {
        for at in 0.. {
            let path = format!("/target-{injection:?}-{at}");
            let db = Db::open(&path, &options_on(Arc::new(faults.clone()))).expect("a database");
            if memory.files().iter().all(|(file, _)| file != &Path::new(EXPORT).join("CURRENT")) {
                remove_export(&memory);
                export(&source).expect("an export");
            }
            faults.plan(Plan::Once { at, injection });
            let outcome = import(&db, at % 2 == 0);
            let calls = faults.calls();
            faults.heal();
            let what = format!("{injection:?} of call {at}");
            let found = held(&db, "new");
            assert!(outcome.is_err() || found.is_some(), "{what}");
            assert!(found.is_none() || found.as_ref() == Some(&expected), "{what}: half a family");
            let was_poisoned = db.put("later", "1").is_err();
            drop(db);
            let db = opened(&memory, &path).unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = held(&db, "new");
            match outcome {
                Ok(()) => {
                    done += 1;
                    assert_eq!(found.as_ref(), Some(&expected), "{what}: the family is lost");
                }
                Err(_) => {
                    failed += 1;
                    assert!(found.is_none() || found.as_ref() == Some(&expected), "{what}");
                }
            }
            let later = db.get("later").expect("a read");
            assert_eq!(later.is_some(), !was_poisoned, "{what}");
            assert_tidy(&db, &memory, &path, &what);
            if found.is_none() {
                assert!(memory.files().iter().any(|(file, _)| file.ends_with("export/CURRENT")));
                import(&db, false).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(held(&db, "new").as_ref(), Some(&expected), "{what}");
            }
            db.close().expect("closed");
            if at >= calls {
                break;
            }
        }
    }
    assert!(failed > 100 && done >= 4, "{failed} failures, {done} successes");
}

#[test]
fn an_export_of_which_a_call_fails_leaves_no_export() {
    let memory = MemoryFileSystem::new();
    let faults = FaultFs::new(Arc::new(memory.clone()));
    let db = Db::open("/source", &options_on(Arc::new(faults.clone()))).expect("a database");
    write_some(&db);
    db.flush_all().expect("a flush");
    let expected = held(&db, "default").expect("the family");
    let mut failed = 0;
    for injection in [Injection::Io, Injection::NoSpace, Injection::Late, Injection::Short] {
        for at in 0.. {
            faults.plan(Plan::Once { at, injection });
            let outcome = export(&db);
            let calls = faults.calls();
            faults.heal();
            let what = format!("{injection:?} of call {at}");
            let is_there = memory.files().iter().any(|(file, _)| file.ends_with("export/CURRENT"));
            assert!(outcome.is_err() || is_there, "{what}");
            if is_there {
                let copy = opened(&memory, EXPORT).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(held(&copy, "default").as_ref(), Some(&expected), "{what}");
            }
            failed += usize::from(outcome.is_err());
            remove_export(&memory);
            if at >= calls {
                break;
            }
        }
    }
    assert!(failed > 20, "{failed} failures");
    assert_eq!(held(&db, "default").as_ref(), Some(&expected));
}
