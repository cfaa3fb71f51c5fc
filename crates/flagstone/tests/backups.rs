//! Stories of backups.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use common::{create, dump, open_as_written, temporary};
use flagstone::backup::{
    BackupEngine, BackupEngineOptions, BackupEngineReadOnly, CreateBackupOptions, RestoreMode,
    RestoreOptions, ShareFilesNaming,
};
use flagstone::base::Code;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::options::{Options, WriteOptions};

fn value(seed: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 31 + seed * 7) as u8).collect()
}

/// Values of 4 KiB and more go to blob files, at commit where they can.
fn options() -> Options {
    let mut options = create();
    options.set("enable_blob_files", "true").unwrap();
    options
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(temporary())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn backup_options(&self) -> BackupEngineOptions {
        BackupEngineOptions::new(self.at("backups"))
    }

    fn backups(&self) -> BackupEngine {
        BackupEngine::open(self.backup_options()).unwrap()
    }

    fn db(&self) -> Db {
        let db = Db::open(self.at("db"), &options()).unwrap();
        db.create_column_family("other", &options().cf).unwrap();
        db
    }

    fn restored(&self, backups: &BackupEngineReadOnly, id: u32) -> String {
        let copy = self.at("copy");
        backups.restore(id, &copy).unwrap();
        let db = open_as_written(&copy, false);
        let faults = db.verify(|_| {}).faults;
        assert!(faults.is_empty(), "{faults:?}");
        dump(&db)
    }

    /// Files of a directory and below, with their bytes.
    fn files(&self, directory: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        gather(&self.at(directory), &mut files);
        files
    }
}

fn gather(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather(&path, files);
        } else {
            files.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
}

fn write_some(db: &Db, from: usize) {
    let other = db.column_family("other").unwrap();
    for i in from..from + 20 {
        db.put(format!("key{i:04}"), value(i, if i % 4 == 0 { 6000 } else { 100 })).unwrap();
        db.put_cf(&other, format!("key{i:04}"), value(i + 1, 5000)).unwrap();
    }
}

fn now() -> CreateBackupOptions {
    CreateBackupOptions::default()
}

fn flushed() -> CreateBackupOptions {
    let mut options = CreateBackupOptions::default();
    options.flush_before_backup = true;
    options
}

#[test]
fn each_backup_restores_what_the_database_was() {
    let place = Place::new();
    let db = place.db();
    let backups = place.backups();
    let mut expected = Vec::new();
    for round in 0..4 {
        write_some(&db, round * 15);
        let request = if round % 2 == 0 { now() } else { flushed() };
        let id = backups.create_new_backup(&db, &request).unwrap();
        assert_eq!(id as usize, round + 1);
        expected.push(dump(&db));
        backups.verify_backup(id, true).unwrap();
    }
    let infos = backups.get_backup_info(true).unwrap();
    assert_eq!(infos.len(), 4);
    let named = |round: usize| -> Vec<_> {
        infos[round].file_details.iter().map(|file| &file.relative_filename).collect()
    };
    // Tables and blob files of earlier backups are not copied again.
    assert!(named(3).iter().any(|file| named(1).contains(file)), "{:?}", named(3));
    assert!(named(3).iter().any(|file| file.ends_with(".blob")), "{:?}", named(3));
    for (round, expected) in expected.iter().enumerate() {
        assert!(place.restored(&backups, round as u32 + 1) == *expected, "backup {}", round + 1);
    }
    drop(backups);
    let reading = BackupEngineReadOnly::open(place.backup_options()).unwrap();
    assert!(place.restored(&reading, 2) == expected[1]);
}

/// Values that writers put into blob files which no MANIFEST names are flushed, however many write.
#[test]
fn no_wal_of_a_backup_names_a_blob_file_that_its_manifest_lacks() {
    let place = Place::new();
    let db = place.db();
    let backups = place.backups();
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for i in 0..600 {
                db.put(format!("key{i:04}"), value(i, 5000)).unwrap();
                written.store(i as u64 + 1, Ordering::Release);
            }
        });
        while !writer.is_finished() {
            let before = written.load(Ordering::Acquire);
            let id = backups.create_new_backup(&db, &now()).unwrap();
            let after = written.load(Ordering::Acquire);
            let copy = place.at("copy");
            backups.restore_db_from_backup(id, &copy, &copy, &RestoreOptions::default()).unwrap();
            let facts = Db::open_read_only(&copy, &Options::default()).unwrap();
            let found = facts.prefix_count();
            assert!((before..=after + 1).contains(&found), "{before} {found} {after}");
            let blobs: Vec<_> = facts.live_files().iter().map(|file| file.number).collect();
            for path in place.files("copy").into_keys() {
                let is_blob = path.extension().is_some_and(|kind| kind == "blob");
                let stem = path.file_stem().unwrap().to_str().unwrap();
                assert!(
                    !is_blob || blobs.iter().any(|number| number.to_string() == stem),
                    "{} is not in the MANIFEST",
                    path.display()
                );
            }
            drop(facts);
            backups.purge_old_backups(1).unwrap();
        }
    });
}

trait Count {
    fn prefix_count(&self) -> u64;
}

impl Count for Db {
    fn prefix_count(&self) -> u64 {
        common::entries(self, self.default_column_family()).len() as u64
    }
}

#[test]
fn a_backup_needs_the_wal_only_if_asked_to() {
    let place = Place::new();
    let db = place.db();
    db.put("flushed", "1").unwrap();
    db.flush_all().unwrap();
    db.put("logged", "1").unwrap();
    let mut without = place.backup_options();
    without.backup_log_files = false;
    let backups = BackupEngine::open(without).unwrap();
    let id = backups.create_new_backup(&db, &now()).unwrap();
    assert!(!place.restored(&backups, id).contains(&hex("logged")));
    let mut unlogged = WriteOptions::default();
    unlogged.disable_wal = true;
    let mut batch = WriteBatch::new();
    batch.put("unlogged", "1").unwrap();
    db.write_with(&unlogged, batch).unwrap();
    let id = backups.create_new_backup(&db, &flushed()).unwrap();
    assert!(place.restored(&backups, id) == dump(&db));
    assert!(
        backups
            .get_backup(id)
            .unwrap()
            .file_details
            .iter()
            .all(|file| { !file.relative_filename.ends_with(".log") })
    );
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn files_go_with_the_last_backup_that_has_them() {
    let place = Place::new();
    let db = place.db();
    let backups = place.backups();
    for round in 0..3 {
        write_some(&db, round * 20);
        backups.create_new_backup(&db, &flushed()).unwrap();
    }
    let expected = dump(&db);
    backups.delete_backup(2).unwrap();
    assert_eq!(backups.delete_backup(2).unwrap_err().code(), Code::NotFound);
    assert_eq!(backups.get_backup(2).unwrap_err().code(), Code::NotFound);
    backups.verify_backup(1, true).unwrap();
    assert!(place.restored(&backups, 3) == expected);
    backups.purge_old_backups(1).unwrap();
    assert!(place.restored(&backups, 3) == expected);
    let last = backups.get_latest_backup_info().unwrap();
    let mut left: Vec<_> = place.files("backups").into_keys().collect();
    left.retain(|path| !path.ends_with("LOCK") && !path.ends_with("meta/3"));
    let mut named: Vec<_> = last.file_details.iter().map(|file| file.path.clone()).collect();
    named.sort();
    assert_eq!(left, named);
    // The number of a deleted backup is not given again.
    backups.delete_backup(3).unwrap();
    assert_eq!(backups.create_new_backup(&db, &now()).unwrap(), 4);
    let mut destroying = place.backup_options();
    destroying.destroy_old_data = true;
    let backups = BackupEngine::open(destroying).unwrap();
    assert_eq!(backups.get_backup_info(false).unwrap(), []);
    assert_eq!(place.files("backups").len(), 1, "only LOCK");
}

#[test]
fn restoring_keeps_what_is_the_same() {
    for mode in [RestoreMode::KeepLatestDbSessionIdFiles, RestoreMode::VerifyChecksum] {
        let place = Place::new();
        let db = place.db();
        for family in [db.default_column_family(), &db.column_family("other").unwrap()] {
            // No table is merged into another behind the backup.
            db.set_options(family, &[("disable_auto_compactions", "true")]).unwrap();
        }
        write_some(&db, 0);
        let backups = place.backups();
        backups.create_new_backup(&db, &flushed()).unwrap();
        let expected = dump(&db);
        let target = place.at("db");
        let mut options = RestoreOptions::default();
        options.mode = mode;
        let restore = || backups.restore_db_from_backup(1, &target, &target, &options);
        assert_eq!(restore().unwrap_err().code(), Code::Busy, "the database is open");
        let table =
            place.files("db").into_keys().find(|path| path.extension().is_some_and(|e| e == "sst"));
        let table = table.unwrap();
        write_some(&db, 10);
        db.flush_all().unwrap();
        db.close().unwrap();
        drop(db);
        let inode = |path: &Path| {
            use std::os::unix::fs::MetadataExt;
            std::fs::metadata(path).unwrap().ino()
        };
        let before = inode(&table);
        restore().unwrap();
        assert_eq!(inode(&table), before, "{mode:?}: the table was kept");
        assert!(dump(&open_as_written(&target, false)) == expected, "{mode:?}");
        // A damaged file of this name and size is not kept when checksums are compared.
        if mode == RestoreMode::VerifyChecksum {
            let mut bytes = std::fs::read(&table).unwrap();
            bytes[20] ^= 1;
            std::fs::write(&table, bytes).unwrap();
            restore().unwrap();
            assert_ne!(inode(&table), before);
            assert!(dump(&open_as_written(&target, false)) == expected);
        }
    }
}

#[test]
fn restoring_may_keep_the_wals() {
    let place = Place::new();
    let db = place.db();
    db.put("flushed", "1").unwrap();
    db.flush_all().unwrap();
    let mut without = place.backup_options();
    without.backup_log_files = false;
    let backups = BackupEngine::open(without).unwrap();
    backups.create_new_backup(&db, &now()).unwrap();
    db.put("logged", "2").unwrap();
    db.flush_wal(true).unwrap();
    let expected = dump(&db);
    // As if the process had died.
    let (target, wals) = (place.at("target"), place.at("wals"));
    std::fs::create_dir(&wals).unwrap();
    for path in
        place.files("db").into_keys().filter(|path| path.extension().is_some_and(|e| e == "log"))
    {
        std::fs::copy(&path, wals.join(path.file_name().unwrap())).unwrap();
    }
    let mut options = RestoreOptions::default();
    options.keep_log_files = true;
    backups.restore_db_from_latest_backup(&target, &wals, &options).unwrap();
    let mut with_wals = Options::default();
    with_wals.db.wal_dir = wals.clone().into_os_string().into_string().unwrap();
    let families = [("default", with_wals.cf.clone()), ("other", with_wals.cf.clone())];
    assert!(dump(&Db::open_with_families(&target, &with_wals, &families).unwrap()) == expected);
}

/// A damaged backup leaves the database as it was, and the one before takes its place.
#[test]
fn the_newest_whole_backup_is_restored() {
    let place = Place::new();
    let db = place.db();
    let backups = place.backups();
    write_some(&db, 0);
    backups.create_new_backup(&db, &flushed()).unwrap();
    let first = dump(&db);
    write_some(&db, 100);
    backups.create_new_backup(&db, &flushed()).unwrap();
    let (one, two) = (backups.get_backup(1).unwrap(), backups.get_backup(2).unwrap());
    let own = two.file_details.iter().find(|file| {
        file.is_shared && !one.file_details.iter().any(|other| other.path == file.path)
    });
    let own = own.unwrap().path.clone();
    let mut bytes = std::fs::read(&own).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&own, &bytes).unwrap();
    let copy = place.at("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::write(copy.join("notes.txt"), "mine").unwrap();
    let error = backups.restore(2, &copy).unwrap_err();
    assert!(error.is_corruption() && error.path() == Some(own.as_path()), "{error}");
    assert_eq!(place.files("copy").len(), 1, "nothing is left");
    backups.verify_backup(2, false).unwrap();
    let error = backups.verify_backup(2, true).unwrap_err();
    assert!(error.is_corruption() && error.path() == Some(own.as_path()), "{error}");
    assert_eq!(backups.restore_latest(&copy).unwrap(), 1);
    assert!(dump(&open_as_written(&copy, false)) == first);
    assert!(copy.join("notes.txt").exists(), "a file that is not the engine's stays");
    // Too short: listed as damaged, and no other backup is.
    std::fs::write(&own, &bytes[1..]).unwrap();
    let damaged = backups.get_corrupted_backups().unwrap();
    assert_eq!(damaged.len(), 1);
    assert!(damaged[0].1.is_corruption() && damaged[0].1.path() == Some(own.as_path()));
    assert_eq!(backups.get_latest_backup_info().unwrap().backup_id, 1);
    // What a damaged backup has stays until it is deleted.
    backups.garbage_collect().unwrap();
    assert!(own.exists());
    backups.delete_backup(2).unwrap();
    assert!(!own.exists());
    backups.verify_backup(1, true).unwrap();
}

#[test]
fn a_meta_file_of_another_release_is_refused_and_what_it_may_need_stays() {
    let place = Place::new();
    let db = place.db();
    let backups = place.backups();
    write_some(&db, 0);
    backups.create_new_backup(&db, &flushed()).unwrap();
    std::fs::write(place.at("backups/meta/7"), "schema_version 3.0\n1\n1\n0\n").unwrap();
    std::fs::write(place.at("backups/shared_checksum/000001_1_1.sst"), "x").unwrap();
    std::fs::write(place.at("backups/shared_checksum/.000009.sst.tmp"), "x").unwrap();
    std::fs::create_dir(place.at("backups/private/9")).unwrap();
    std::fs::write(place.at("backups/private/9/CURRENT"), "x").unwrap();
    let error = backups.get_backup(7).unwrap_err();
    assert_eq!(error.code(), Code::NotSupported, "{error}");
    assert_eq!(backups.create_new_backup(&db, &now()).unwrap(), 8);
    assert!(place.at("backups/shared_checksum/000001_1_1.sst").exists());
    assert!(!place.at("backups/shared_checksum/.000009.sst.tmp").exists());
    assert!(!place.at("backups/private/9").exists());
    backups.delete_backup(7).unwrap();
    assert!(!place.at("backups/shared_checksum/000001_1_1.sst").exists());
    std::fs::write(place.at("backups/shared_checksum/notes.txt"), "x").unwrap();
    backups.garbage_collect().unwrap();
    assert!(place.at("backups/shared_checksum/notes.txt").exists(), "not an engine's");
}

#[test]
fn a_file_that_is_elsewhere_may_be_left_out() {
    let place = Place::new();
    let db = place.db();
    write_some(&db, 0);
    let elsewhere = BackupEngine::open(BackupEngineOptions::new(place.at("elsewhere"))).unwrap();
    elsewhere.create_new_backup(&db, &flushed()).unwrap();
    let mut request = flushed();
    let asked: Arc<OnceLock<usize>> = Arc::default();
    let seen = asked.clone();
    request.exclude_files_callback = Some(Arc::new(move |files| {
        seen.set(files.len()).unwrap();
        files.iter_mut().for_each(|file| file.exclude_decision = true);
    }));
    let refused = place.backups().create_new_backup(&db, &request).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let mut newer = place.backup_options();
    newer.schema_version = 2;
    let backups = BackupEngine::open(newer).unwrap();
    let id = backups.create_new_backup(&db, &request).unwrap();
    let info = backups.get_backup(id).unwrap();
    assert_eq!(Some(&info.excluded_files.len()), asked.get());
    assert!(info.excluded_files.len() >= 3, "{:?}", info.excluded_files);
    let copy = place.at("copy");
    let mut options = RestoreOptions::default();
    let error = backups.restore_db_from_backup(id, &copy, &copy, &options).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    let other = BackupEngineReadOnly::open(BackupEngineOptions::new(place.at("elsewhere")));
    options.alternate_dirs.push(Arc::new(other.unwrap()));
    backups.restore_db_from_backup(id, &copy, &copy, &options).unwrap();
    assert!(dump(&open_as_written(&copy, false)) == dump(&db));
}

#[test]
fn every_way_to_name_files_restores() {
    let ways = [
        (true, true, ShareFilesNaming::UseDbSessionId),
        (true, true, ShareFilesNaming::LegacyCrc32cAndFileSize),
        (true, false, ShareFilesNaming::default()),
        (false, true, ShareFilesNaming::default()),
    ];
    let place = Place::new();
    let db = place.db();
    for (round, (shares, with_checksum, naming)) in ways.into_iter().enumerate() {
        let mut options = place.backup_options();
        options.share_table_files = shares;
        options.share_files_with_checksum = with_checksum;
        options.share_files_with_checksum_naming = naming;
        options.schema_version = 1 + round as u32 % 2;
        options.max_background_operations = 3;
        let backups = BackupEngine::open(options).unwrap();
        write_some(&db, round * 30);
        for _ in 0..2 {
            let id = backups.create_new_backup(&db, &flushed()).unwrap();
            backups.verify_backup(id, true).unwrap();
            assert!(place.restored(&backups, id) == dump(&db), "way {round}");
        }
    }
}

/// With names that tell nothing of the contents, another database's files would take the place of
/// the first one's.
#[test]
fn a_file_of_another_database_with_the_same_number_is_refused() {
    let place = Place::new();
    let mut options = place.backup_options();
    options.share_files_with_checksum = false;
    let backups = BackupEngine::open(options).unwrap();
    let fill = |name: &str, text: &str| {
        let db = Db::open(place.at(name), &create()).unwrap();
        db.put("key", text).unwrap();
        db
    };
    backups.create_new_backup(&fill("one", "a"), &flushed()).unwrap();
    let error = backups.create_new_backup(&fill("two", "b"), &flushed()).unwrap_err();
    assert!(error.is_corruption(), "{error}");
    backups.verify_backup(1, true).unwrap();
    assert_eq!(backups.get_backup_info(false).unwrap().len(), 1);
}

#[test]
fn a_backup_reports_its_progress_and_can_be_stopped() {
    let place = Place::new();
    let db = place.db();
    write_some(&db, 0);
    let mut options = place.backup_options();
    options.callback_trigger_interval_size = 10_000;
    options.io_buffer_size = 4096;
    let backups = Arc::new(BackupEngine::open(options).unwrap());
    let calls = Arc::new(AtomicU64::new(0));
    let mut request = flushed();
    let counted = calls.clone();
    request.progress_callback = Some(Arc::new(move |progress| {
        assert!(progress.bytes_copied <= progress.bytes_total);
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    request.decrease_background_thread_cpu_priority = true;
    let id = backups.create_new_backup_with_metadata(&db, &request, b"\x00nightly").unwrap();
    let info = backups.get_backup(id).unwrap();
    assert_eq!(info.app_metadata, b"\x00nightly");
    let calls = calls.load(Ordering::Relaxed);
    assert!((info.size / 20_000..=info.size / 10_000).contains(&calls), "{calls} calls");
    write_some(&db, 50);
    let stopping = backups.clone();
    request.progress_callback = Some(Arc::new(move |_| stopping.stop_backup()));
    let error = backups.create_new_backup(&db, &request).unwrap_err();
    assert_eq!(error.code(), Code::Incomplete, "{error}");
    assert_eq!(backups.create_new_backup(&db, &now()).unwrap_err().code(), Code::Incomplete);
    assert_eq!(backups.get_backup_info(false).unwrap().len(), 1);
    assert_eq!(place.backups().create_new_backup(&db, &now()).unwrap(), 2);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let place = Place::new();
    let open = |change: &dyn Fn(&mut BackupEngineOptions)| {
        let mut options = place.backup_options();
        change(&mut options);
        BackupEngine::open(options).unwrap_err().code()
    };
    assert_eq!(open(&|options| options.schema_version = 3), Code::NotSupported);
    assert_eq!(open(&|options| options.schema_version = 0), Code::NotSupported);
    assert_eq!(open(&|options| options.max_background_operations = 0), Code::InvalidArgument);
    assert_eq!(open(&|options| options.callback_trigger_interval_size = 0), Code::InvalidArgument);
    assert!(!place.at("backups").exists());
    let missing = BackupEngineReadOnly::open(place.backup_options()).unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    let db = place.db();
    let within = BackupEngine::open(BackupEngineOptions::new(place.at("db"))).unwrap_err();
    assert_eq!(within.code(), Code::InvalidArgument, "the directory of a database");
    let mut request = now();
    request.atomic_flush = true;
    let refused = place.backups().create_new_backup(&db, &request).unwrap_err();
    assert_eq!(refused.code(), Code::NotSupported);
}

/// A database that is open for reading beside no writer.
#[test]
fn a_read_only_database_is_backed_up_if_its_wals_name_no_blob_files() {
    let place = Place::new();
    let db = place.db();
    write_some(&db, 0);
    db.flush_all().unwrap();
    db.put("small", "1").unwrap();
    db.close().unwrap();
    drop(db);
    let db = open_as_written(&place.at("db"), true);
    let backups = place.backups();
    let id = backups.create_new_backup(&db, &flushed()).unwrap();
    assert!(place.restored(&backups, id) == dump(&db));
    drop(db);
    let db = open_as_written(&place.at("db"), false);
    db.put("large", value(1, 100_000)).unwrap();
    // As if the process had died: closing may flush.
    common::copy_directory(&place.at("db"), &place.at("died"));
    let db = open_as_written(&place.at("died"), true);
    let error = backups.create_new_backup(&db, &now()).unwrap_err();
    assert_eq!(error.code(), Code::NotSupported, "{error}");
    assert!(error.path().is_some_and(|path| path.extension().is_some_and(|e| e == "blob")));
}
