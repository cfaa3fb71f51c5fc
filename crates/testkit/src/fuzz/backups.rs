//! Meta files of backups, and directories that have them.

use std::path::Path;
use std::sync::Arc;

use flagstone::backup::{
    BackupEngine, BackupEngineOptions, CreateBackupOptions, RestoreOptions, check_meta,
};
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, read_file};
use flagstone::options::Options;

use super::input::{ok, put_file};

/// Meta files of both schemas.
pub fn sound() -> Vec<Vec<u8>> {
    [1, 2].map(|schema| meta_of(&backed_up(schema))).into()
}

fn meta_of(fs: &MemoryFileSystem) -> Vec<u8> {
    read_file(fs, Path::new("/backups/meta/1"), 1 << 20).expect("a meta file")
}

fn env_on(fs: &MemoryFileSystem) -> Env {
    Env::memory().with_fs(Arc::new(fs.clone()))
}

fn engine(fs: &MemoryFileSystem, schema: u32) -> BackupEngine {
    let mut options = BackupEngineOptions::new("/backups");
    options.schema_version = schema;
    options.backup_env = Some(env_on(fs));
    BackupEngine::open(options).expect("a directory of backups")
}

fn backed_up(schema: u32) -> MemoryFileSystem {
    let fs = MemoryFileSystem::new();
    let mut options = Options { env: env_on(&fs), ..Options::default() };
    options.db.create_if_missing = true;
    let db = Db::open("/db", &options).expect("a new database");
    db.put("key", "value").expect("a write");
    db.flush_all().expect("a flush");
    db.put("key", "logged").expect("a write");
    let backups = engine(&fs, schema);
    let request = CreateBackupOptions::default();
    backups.create_new_backup_with_metadata(&db, &request, b"data").expect("a backup");
    fs
}

/// Reads a meta file with these bytes, restores what it names, and removes it: the backup beside it
/// stays whole.
pub fn backup_meta(data: &[u8]) {
    ok(check_meta(data));
    let fs = backed_up(1);
    let request = CreateBackupOptions::default();
    put_file(&fs, "/backups/meta/2", data);
    let backups = engine(&fs, 1);
    let listed = backups.get_backup_info(true).expect("a listing");
    let damaged = backups.get_corrupted_backups().expect("a listing");
    assert_eq!(listed.len() + damaged.len(), 2);
    ok(backups.verify_backup(2, true));
    let restored = backups.restore_db_from_backup(2, "/copy", "/copy", &RestoreOptions::default());
    if ok(restored).is_some() {
        ok(Db::open_read_only("/copy", &Options { env: env_on(&fs), ..Options::default() }));
    }
    backups.delete_backup(2).expect("a backup of any contents is removed");
    backups.verify_backup(1, true).expect("the other backup is whole");
    let options = Options { env: env_on(&fs), ..Options::default() };
    let db = Db::open("/db", &options).expect("the database");
    assert_eq!(backups.create_new_backup(&db, &request).expect("a backup"), 3);
    let left = fs.list(Path::new("/backups/private")).expect("a directory");
    assert_eq!(left.len(), 2, "{left:?}");
}
