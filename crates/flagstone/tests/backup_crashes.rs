//! The power fails, or a call does, while backups are made, removed and restored: at every moment,
//! with what was not synced lost, kept, or by chance.
//!
//! 1. A backup whose making was acknowledged is whole until its removal begins.
//! 2. Every other backup is there and whole, or not there.
//! 3. The next call works, and leaves nothing but what the backups need.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{create, dump};
use flagstone::backup::{
    BackupEngine, BackupEngineOptions, CreateBackupOptions, RestoreMode, RestoreOptions,
};
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem};
use flagstone::options::{FlushOptions, Options};
use testkit::fault::{FaultFs, Injection, Plan};
use testkit::{CrashFs, Survival};

const BACKUPS: &str = "/backups";

fn options_on(env: Env) -> Options {
    let mut options = Options { env, ..create() };
    options.cf.enable_blob_files = Some(true);
    options.cf.min_blob_size = Some(300);
    // Each state of the disk has what the WAL reserves.
    options.cf.write_buffer_size = 64 << 10;
    options.set("max_total_wal_size", "64K").expect("an option");
    options
}

fn env_on(fs: Arc<dyn FileSystem>) -> Env {
    Env::memory().with_fs(fs)
}

fn engine(fs: Arc<dyn FileSystem>) -> flagstone::base::Result<BackupEngine> {
    let mut options = BackupEngineOptions::new(BACKUPS);
    options.backup_env = Some(env_on(fs));
    BackupEngine::open(options)
}

fn write_some(db: &Db, round: usize) {
    for key in 0..12 {
        let size = if key % 4 == 0 { 5000 } else { 60 };
        let value: Vec<u8> = (0..size).map(|at| (at * 31 + key * 7 + round) as u8).collect();
        db.put(format!("key{:03}", key + round * 5), value).expect("a put");
    }
}

fn opened(fs: &MemoryFileSystem, path: &str) -> Option<String> {
    let mut options = options_on(env_on(Arc::new(fs.clone())));
    options.create_if_missing = false;
    let db = Db::open(path, &options).ok()?;
    Some(dump(&db))
}

/// How the power fails at a moment: in turns with all lost, all kept, and by chance.
fn survival(at: usize) -> Survival {
    match at % 3 {
        0 => Survival::Lost,
        1 => Survival::Kept,
        _ => Survival::Random(at as u64),
    }
}

/// The backups, each of which is verified, and what those hold that are `wanted`.
fn restored(fs: &MemoryFileSystem, what: &str, wanted: &[u32]) -> BTreeMap<u32, Option<String>> {
    let backups = engine(Arc::new(fs.clone())).expect("an engine");
    let damaged = backups.get_corrupted_backups().expect("a listing");
    assert!(damaged.is_empty(), "{what}: {damaged:?}");
    let listed = backups.get_backup_info(false).expect("a listing");
    let restore = |id: u32| {
        backups.verify_backup(id, true).unwrap_or_else(|error| panic!("{what}: {error}"));
        if !wanted.contains(&id) {
            return (id, None);
        }
        let copy = format!("/copy{id}");
        let options = RestoreOptions::default();
        backups.restore_db_from_backup(id, &copy, &copy, &options).expect("restored");
        (id, Some(opened(fs, &copy).expect("a database")))
    };
    listed.iter().map(|info| restore(info.backup_id)).collect()
}

/// A garbage collection leaves the files of the backups alone.
fn assert_tidy(fs: &MemoryFileSystem, what: &str) {
    let backups = engine(Arc::new(fs.clone())).expect("an engine");
    backups.garbage_collect().expect("collected");
    let mut needed: BTreeSet<PathBuf> = BTreeSet::new();
    for info in backups.get_backup_info(true).expect("a listing") {
        needed.insert(Path::new(BACKUPS).join(format!("meta/{}", info.backup_id)));
        needed.extend(info.file_details.into_iter().map(|file| file.path));
    }
    let found = fs.files().into_iter().map(|(path, _)| path);
    let found: BTreeSet<PathBuf> =
        found.filter(|path| path.starts_with(BACKUPS) && !path.ends_with("LOCK")).collect();
    assert_eq!(found, needed, "{what}");
}

/// A stretch of the disk's history, and the backups that must be there in all of it, and may be.
struct Stretch {
    until: usize,
    must: Vec<u32>,
    may: Vec<u32>,
}

#[test]
fn a_power_loss_leaves_every_backup_whole_or_none() {
    let fs = CrashFs::new();
    let db = Db::open("/db", &options_on(env_on(Arc::new(fs.clone())))).expect("a database");
    let backups = engine(Arc::new(fs.clone())).expect("an engine");
    let mut expected = BTreeMap::new();
    let mut stretches = Vec::new();
    let mut request = CreateBackupOptions::default();
    for round in 0..3u32 {
        write_some(&db, round as usize);
        request.flush_before_backup = round != 1;
        let id = backups.create_new_backup(&db, &request).expect("a backup");
        expected.insert(id, dump(&db));
        let until = fs.changes();
        stretches.push(Stretch { until, must: (1..id).collect(), may: vec![id] });
    }
    backups.delete_backup(2).expect("deleted");
    stretches.push(Stretch { until: fs.changes(), must: vec![1, 3], may: vec![2] });
    backups.purge_old_backups(1).expect("purged");
    stretches.push(Stretch { until: fs.changes(), must: vec![3], may: vec![1] });
    let (mut begin, mut states) = (0, 0);
    for Stretch { until, must, may } in stretches {
        for at in begin..until {
            {
                let survival = survival(at);
                let what = format!("{survival:?} after {}", fs.describe(at));
                let disk = fs.after_crash(at, survival);
                let found = restored(&disk, &what, &may);
                states += 1;
                assert!(must.iter().all(|id| found.contains_key(id)), "{what}: {must:?} is lost");
                for (id, contents) in found {
                    assert!(must.contains(&id) || may.contains(&id), "{what}: {id} is back");
                    assert!(
                        contents.is_none_or(|contents| contents == expected[&id]),
                        "{what}: backup {id} differs"
                    );
                }
                assert_tidy(&disk, &what);
            }
        }
        begin = until;
    }
    println!("{states} states");
    assert!(states > 200, "{states} states");
    let last = restored(&fs.after_crash(fs.changes(), Survival::Lost), "at the end", &[3]);
    assert_eq!(last.into_keys().collect::<Vec<_>>(), [3]);
}

#[test]
fn a_power_loss_while_restoring_leaves_no_half_database() {
    let fs = CrashFs::new();
    let db = Db::open("/db", &options_on(env_on(Arc::new(fs.clone())))).expect("a database");
    let backups = engine(Arc::new(fs.clone())).expect("an engine");
    let mut expected = Vec::new();
    for round in 0..2 {
        write_some(&db, round);
        backups.create_new_backup(&db, &CreateBackupOptions::default()).expect("a backup");
        expected.push(dump(&db));
    }
    drop(db);
    let options = RestoreOptions::default();
    backups.restore_db_from_backup(1, "/copy", "/copy", &options).expect("restored");
    let begun = fs.changes();
    backups.restore_db_from_backup(2, "/copy", "/copy", &options).expect("restored");
    let (mut old, mut none, mut new) = (0, 0, 0);
    for at in begun..=fs.changes() {
        {
            let survival = survival(at);
            let what = format!("{survival:?} after {}", fs.describe(at));
            let disk = fs.after_crash(at, survival);
            match opened(&disk, "/copy") {
                None => none += 1,
                Some(found) if found == expected[0] => old += 1,
                Some(found) => {
                    assert!(found == expected[1], "{what}: half a database");
                    new += 1;
                }
            }
            if at % 7 != 0 {
                continue;
            }
            let again = engine(Arc::new(disk.clone())).expect("an engine");
            let newest = again.restore_db_from_latest_backup("/copy", "/copy", &options);
            assert_eq!(newest.expect("restored"), 2, "{what}");
            assert!(opened(&disk, "/copy").as_ref() == Some(&expected[1]), "{what}");
        }
    }
    assert!(old > 10 && none > 5 && new > 0, "{old} old, {none} none, {new} new");
    for survival in [Survival::Lost, Survival::Random(1)] {
        let disk = fs.after_crash(fs.changes(), survival);
        assert!(opened(&disk, "/copy").as_ref() == Some(&expected[1]), "it was acknowledged");
    }
}

#[test]
fn a_call_that_fails_leaves_earlier_backups_whole() {
    let memory = MemoryFileSystem::new();
    // The database's own calls do not fail.
    let db = Db::open("/db", &options_on(env_on(Arc::new(memory.clone())))).expect("a database");
    let faults = FaultFs::new(Arc::new(memory.clone()));
    let request = CreateBackupOptions::default();
    write_some(&db, 0);
    let first = {
        let backups = engine(Arc::new(faults.clone())).expect("an engine");
        let id = backups.create_new_backup(&db, &request).expect("a backup");
        (id, dump(&db))
    };
    let mut failed = 0;
    for injection in [Injection::Io, Injection::NoSpace, Injection::Late, Injection::Short] {
        for at in 0.. {
            write_some(&db, at as usize % 7);
            faults.plan(Plan::Once { at, injection });
            let made = engine(Arc::new(faults.clone()))
                .and_then(|backups| {
                    backups.create_new_backup(&db, &request).map(|id| (backups, id))
                })
                .and_then(|(backups, id)| backups.purge_old_backups(2).map(|()| id));
            let calls = faults.calls();
            faults.heal();
            let what = format!("{injection:?} of call {at}");
            let found = restored(&memory, &what, &[first.0]);
            assert!(
                found.get(&first.0) == Some(&Some(first.1.clone())),
                "{what}: the first backup"
            );
            match made {
                Ok(id) => assert!(found.contains_key(&id), "{what}: backup {id} is lost"),
                Err(_) => failed += 1,
            }
            let backups = engine(Arc::new(memory.clone())).expect("an engine");
            assert_tidy(&memory, &what);
            for id in found.into_keys().filter(|id| *id != first.0) {
                backups.delete_backup(id).expect("deleted");
            }
            assert!(backups.get_backup(first.0).is_ok(), "{what}: the first backup is lost");
            if at >= calls {
                break;
            }
        }
    }
    assert!(failed > 100, "{failed} failures");
}

#[test]
fn a_call_that_fails_while_restoring_leaves_the_old_database_or_says_that_it_may_be_gone() {
    let memory = MemoryFileSystem::new();
    let faults = FaultFs::new(Arc::new(memory.clone()));
    let mut expected = Vec::new();
    {
        let env = env_on(Arc::new(memory.clone()));
        let db = Db::open("/db", &options_on(env)).expect("a database");
        let backups = engine(Arc::new(memory.clone())).expect("an engine");
        for round in 0..2 {
            write_some(&db, round);
            db.flush(db.default_column_family(), &FlushOptions::default()).expect("flushed");
            backups.create_new_backup(&db, &CreateBackupOptions::default()).expect("a backup");
            expected.push(dump(&db));
        }
    }
    let mut options = RestoreOptions::default();
    let (mut old, mut gone, mut new) = (0, 0, 0);
    for mode in [
        RestoreMode::PurgeAllFiles,
        RestoreMode::KeepLatestDbSessionIdFiles,
        RestoreMode::VerifyChecksum,
    ] {
        options.mode = mode;
        for injection in [Injection::Io, Injection::NoSpace, Injection::Late, Injection::Short] {
            for at in 0.. {
                let whole = engine(Arc::new(memory.clone())).expect("an engine");
                whole.restore_db_from_backup(1, "/copy", "/copy", &options).expect("restored");
                faults.plan(Plan::Once { at, injection });
                let restored = engine(Arc::new(faults.clone())).and_then(|backups| {
                    backups.restore_db_from_backup(2, "/copy", "/copy", &options)
                });
                let calls = faults.calls();
                faults.heal();
                let what = format!("{mode:?}, {injection:?} of call {at}: {restored:?}");
                let found = opened(&memory, "/copy");
                match restored {
                    Ok(()) => {
                        new += 1;
                        assert!(found.as_ref() == Some(&expected[1]), "{what}");
                    }
                    Err(error) if error.to_string().contains("the old database may be gone") => {
                        gone += 1;
                        let is_whole = found.as_ref().is_none_or(|found| expected.contains(found));
                        assert!(is_whole, "{what}: half a database");
                    }
                    Err(_) => {
                        old += 1;
                        assert!(found.as_ref() == Some(&expected[0]), "{what}");
                    }
                }
                whole.restore_db_from_backup(2, "/copy", "/copy", &options).expect("once more");
                assert!(opened(&memory, "/copy").as_ref() == Some(&expected[1]), "{what}");
                if at >= calls {
                    break;
                }
            }
        }
    }
    assert!(old > 100 && gone > 50 && new > 10, "{old} old, {gone} gone, {new} new");
}
