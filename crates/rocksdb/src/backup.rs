//! Backups in RocksDB's layout.

use std::path::Path;

use flagstone::backup;

use crate::db::{DBCommon, DBInner, ThreadMode};
use crate::env::Env;
use crate::error::Error;

/// What is known of a backup.
pub struct BackupEngineInfo {
    /// When it was made, in seconds since 1970.
    pub timestamp: i64,
    /// Its number.
    pub backup_id: u32,
    /// Bytes of its files.
    pub size: u64,
    /// The number of its files.
    pub num_files: u32,
}

/// Makes, verifies, restores and removes backups in one directory.
///
/// ```
/// use flagstone_rocksdb::backup::{BackupEngine, BackupEngineOptions, RestoreOptions};
/// use flagstone_rocksdb::{DB, Env};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let at = |name: &str| directory.path().join(name);
/// let db = DB::open_default(at("db")).unwrap();
/// db.put("stone", "flag").unwrap();
/// let options = BackupEngineOptions::new(at("backups")).unwrap();
/// let mut backups = BackupEngine::open(&options, &Env::new().unwrap()).unwrap();
/// backups.create_new_backup(&db).unwrap();
/// let restoring = RestoreOptions::default();
/// backups.restore_from_latest_backup(at("copy"), at("copy"), &restoring).unwrap();
/// assert!(DB::open_default(at("copy")).unwrap().get("stone").unwrap().is_some());
/// ```
pub struct BackupEngine {
    engine: backup::BackupEngine,
}

/// Options of a directory of backups.
pub struct BackupEngineOptions {
    engine: backup::BackupEngineOptions,
}

/// Options of restoring.
#[derive(Default)]
pub struct RestoreOptions {
    engine: backup::RestoreOptions,
}

impl BackupEngine {
    /// Opens a directory of backups in `env`, and makes it if there is none.
    ///
    /// # Errors
    /// `InvalidArgument` for options; `IOError`.
    pub fn open(opts: &BackupEngineOptions, env: &Env) -> Result<Self, Error> {
        let mut options = opts.engine.clone();
        options.backup_env = Some(env.engine.clone());
        Ok(Self { engine: backup::BackupEngine::open(options)? })
    }

    /// Makes a backup. Writes without a WAL that are not flushed are not in it.
    ///
    /// # Errors
    /// `Corruption` if a file of the database is missing; `Busy` if another engine changes the
    /// directory; `IOError`.
    pub fn create_new_backup<T: ThreadMode, D: DBInner>(
        &mut self,
        db: &DBCommon<T, D>,
    ) -> Result<(), Error> {
        self.create_new_backup_flush(db, false)
    }

    /// As [`create_new_backup`](Self::create_new_backup), after a flush if asked to.
    ///
    /// # Errors
    /// As [`create_new_backup`](Self::create_new_backup).
    pub fn create_new_backup_flush<T: ThreadMode, D: DBInner>(
        &mut self,
        db: &DBCommon<T, D>,
        flush_before_backup: bool,
    ) -> Result<(), Error> {
        let mut options = backup::CreateBackupOptions::default();
        options.flush_before_backup = flush_before_backup;
        self.engine.create_new_backup(db.inner.inner().db(), &options)?;
        Ok(())
    }

    /// Removes all backups but the newest ones.
    ///
    /// # Errors
    /// `Busy`; `IOError`.
    pub fn purge_old_backups(&mut self, num_backups_to_keep: usize) -> Result<(), Error> {
        Ok(self.engine.purge_old_backups(num_backups_to_keep)?)
    }

    /// Replaces the database in `db_dir`, whose WALs lie in `wal_dir`, by the newest backup that is
    /// whole.
    ///
    /// # Errors
    /// `NotFound`; `Corruption`; `Busy` if the database is open; `IOError`.
    pub fn restore_from_latest_backup<D: AsRef<Path>, W: AsRef<Path>>(
        &mut self,
        db_dir: D,
        wal_dir: W,
        opts: &RestoreOptions,
    ) -> Result<(), Error> {
        self.engine.restore_db_from_latest_backup(db_dir, wal_dir, &opts.engine)?;
        Ok(())
    }

    /// As [`restore_from_latest_backup`](Self::restore_from_latest_backup), from one backup.
    ///
    /// # Errors
    /// As [`restore_from_latest_backup`](Self::restore_from_latest_backup).
    pub fn restore_from_backup<D: AsRef<Path>, W: AsRef<Path>>(
        &mut self,
        db_dir: D,
        wal_dir: W,
        opts: &RestoreOptions,
        backup_id: u32,
    ) -> Result<(), Error> {
        Ok(self.engine.restore_db_from_backup(backup_id, db_dir, wal_dir, &opts.engine)?)
    }

    /// Compares the sizes of a backup's files with what is recorded.
    ///
    /// # Errors
    /// `NotFound`; `Corruption`; `IOError`.
    pub fn verify_backup(&self, backup_id: u32) -> Result<(), Error> {
        Ok(self.engine.verify_backup(backup_id, false)?)
    }

    /// The backups that are not damaged, oldest first; none if the directory cannot be read.
    pub fn get_backup_info(&self) -> Vec<BackupEngineInfo> {
        let listed = self.engine.get_backup_info(false).unwrap_or_default();
        let info = |info: backup::BackupInfo| BackupEngineInfo {
            timestamp: i64::try_from(info.timestamp).unwrap_or(i64::MAX),
            backup_id: info.backup_id,
            size: info.size,
            num_files: u32::try_from(info.number_files).unwrap_or(u32::MAX),
        };
        listed.into_iter().map(info).collect()
    }
}

impl BackupEngineOptions {
    /// RocksDB's defaults for this directory.
    ///
    /// # Errors
    /// None.
    pub fn new<P: AsRef<Path>>(backup_dir: P) -> Result<Self, Error> {
        Ok(Self { engine: backup::BackupEngineOptions::new(backup_dir) })
    }

    /// Sets the number of threads that copy files; 1 by default.
    pub fn set_max_background_operations(&mut self, max_background_operations: i32) {
        self.engine.max_background_operations =
            usize::try_from(max_background_operations).unwrap_or_default();
    }

    /// Sets whether backups and restored databases are synced; true by default.
    pub fn set_sync(&mut self, sync: bool) {
        self.engine.sync = sync;
    }

    /// Whether they are.
    pub fn get_sync(&mut self) -> bool {
        self.engine.sync
    }
}

impl RestoreOptions {
    /// Sets whether the WALs stay that the directory has; false by default.
    pub fn set_keep_log_files(&mut self, keep_log_files: bool) {
        self.engine.keep_log_files = keep_log_files;
    }
}
