//! RocksDB's `ldb` restores Flagstone's backups, and Flagstone those of `ldb`.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::path::Path;

use common::{create, dump, dump_family, fixtures, open_as_written, referee, temporary};
use flagstone::backup::{
    BackupEngine, BackupEngineOptions, BackupEngineReadOnly, CreateBackupOptions, RestoreOptions,
};
use flagstone::db::Db;

fn value(seed: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| b'a' + (at * 31 + seed * 7) as u8 % 23).collect()
}

fn fill(db: &Db, from: usize) {
    let other = db.column_family("other").unwrap();
    for i in from..from + 30 {
        db.put(format!("key{i:04}"), value(i, if i % 3 == 0 { 6000 } else { 50 })).unwrap();
        db.put_cf(&other, format!("key{i:04}"), value(i + 1, 5000)).unwrap();
    }
    db.delete(format!("key{from:04}")).unwrap();
}

fn backup_argument(path: &Path) -> String {
    format!("--backup_dir={}", path.display())
}

#[test]
fn ldb_restores_what_flagstone_backed_up() {
    let Some(referee) = referee() else { return };
    for schema in [1, 2] {
        for flushes in [false, true] {
            let directory = temporary();
            let at = |name: &str| directory.path().join(name);
            let mut options = create();
            options.set("enable_blob_files", "true").unwrap();
            let db = Db::open(at("db"), &options).unwrap();
            db.create_column_family("other", &options.cf).unwrap();
            let mut settings = BackupEngineOptions::new(at("backups"));
            settings.schema_version = schema;
            let backups = BackupEngine::open(settings).unwrap();
            let mut request = CreateBackupOptions::default();
            request.flush_before_backup = flushes;
            for round in 0..2 {
                fill(&db, round * 20);
                db.put(format!("small{round}"), "in the WAL").unwrap();
                backups.create_new_backup_with_metadata(&db, &request, b"nightly").unwrap();
            }
            let families = ["default", "other"]
                .map(|name| (name, dump_family(&db, &db.column_family(name).unwrap())));
            let target = at("restored");
            referee.ldb(&target, &["restore", &backup_argument(&at("backups"))]);
            referee.ldb(&target, &["checkconsistency"]);
            referee.verify_tables(&target);
            for (family, contents) in &families {
                assert!(
                    referee.scan(&target, family) == *contents,
                    "schema {schema}, flushed {flushes}: {family} differs"
                );
            }
            // RocksDB goes on in our directory, and shares our files.
            referee
                .ldb(&target, &["backup", "--try_load_options", &backup_argument(&at("backups"))]);
            let infos = backups.get_backup_info(false).unwrap();
            assert_eq!(infos.len(), 3, "{:?}", backups.get_corrupted_backups());
            backups.verify_backup(3, true).unwrap();
            backups.delete_backup(1).unwrap();
            for id in [2, 3] {
                backups.verify_backup(id, true).unwrap();
                let copy = at("copy");
                let options = RestoreOptions::default();
                backups.restore_db_from_backup(id, &copy, &copy, &options).unwrap();
                assert!(dump(&open_as_written(&copy, false)) == dump(&db), "backup {id}");
            }
        }
    }
}

#[test]
fn flagstone_restores_what_ldb_backed_up() {
    let Some(referee) = referee() else { return };
    for fixture in ["basic", "blob-lz4", "cfs", "wal-plain", "universal"] {
        let source = fixtures().join(fixture);
        let directory = temporary();
        let at = |name: &str| directory.path().join(name);
        common::copy_directory(&source, &at("db"));
        let backup = ["backup", "--try_load_options", &backup_argument(&at("backups"))];
        referee.ldb(&at("db"), &backup);
        referee.ldb(&at("db"), &["put", "--try_load_options", "zz", "later"]);
        referee.ldb(&at("db"), &backup);
        let expected = dump(&open_as_written(&at("db"), true));
        let backups = BackupEngineReadOnly::open(BackupEngineOptions::new(at("backups"))).unwrap();
        assert_eq!(backups.get_corrupted_backups().unwrap().len(), 0);
        backups.verify_backup(1, true).unwrap();
        let copy = at("copy");
        let options = RestoreOptions::default();
        assert_eq!(backups.restore_db_from_latest_backup(&copy, &copy, &options).unwrap(), 2);
        assert!(dump(&open_as_written(&copy, false)) == expected, "{fixture}");
        // An engine that writes goes on behind RocksDB's backups.
        let backups = BackupEngine::open(BackupEngineOptions::new(at("backups"))).unwrap();
        let db = open_as_written(&copy, false);
        let id = backups.create_new_backup(&db, &CreateBackupOptions::default()).unwrap();
        assert_eq!(id, 3);
        let shared = |id: u32| -> Vec<String> {
            let files = backups.get_backup(id).unwrap().file_details;
            files.into_iter().filter(|file| file.is_shared).map(|f| f.relative_filename).collect()
        };
        let (theirs, ours) = (shared(2), shared(3));
        let again = ours.iter().filter(|file| theirs.contains(file)).count();
        assert!(again > 0 || theirs.is_empty(), "{theirs:?} {ours:?}");
        referee.ldb(&at("again"), &["restore", &backup_argument(&at("backups"))]);
        assert!(dump(&open_as_written(&at("again"), true)) == expected, "{fixture}");
    }
}
