//! The handles of a directory of backups.
//!
//! **Thread safety.** What is in the directory is read anew by each call. A lock keeps calls that
//! change it apart, within the process and, by the file LOCK, between processes. Calls that read
//! do not wait: one that meets a backup while it is removed reports it as damaged.

use std::path::Path;
use std::sync::Arc;

use crate::base::sync::{AtomicBool, AtomicU32, Mutex, Ordering, Rank, ranked};
use crate::base::{Error, Result, file_name};
use crate::db::Db;
use crate::env::{Env, FileLock, LowPriority, Names, RateLimiter, RateLimiterOptions};

use super::create::{Creation, check_not_stopped};
use super::directory::{Backups, Directory, shared_directory, size_of};
use super::format::MetaFile;
use super::info::BackupInfo;
use super::layout::BackupPath;
use super::options::{BackupEngineOptions, BackupId, CreateBackupOptions, RestoreOptions};
use super::restore::Restoration;
use super::transfer::{Progress, Transfer};

/// Reads, verifies and restores backups. See the [module](super).
pub struct BackupEngineReadOnly {
    options: BackupEngineOptions,
    env: Env,
    directory: Directory,
    backup_limiter: Option<Arc<RateLimiter>>,
    restore_limiter: Option<Arc<RateLimiter>>,
    stop: AtomicBool,
}

/// Makes and removes backups, and all that a [`BackupEngineReadOnly`] does. See the
/// [module](super).
pub struct BackupEngine {
    reading: BackupEngineReadOnly,
    changing: Mutex<()>,
    /// The largest number of a backup that was seen: none is given twice.
    newest: AtomicU32,
}

impl std::fmt::Debug for BackupEngineReadOnly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BackupEngineReadOnly").field(&self.directory.path).finish()
    }
}

impl std::fmt::Debug for BackupEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BackupEngine").field(&self.reading.directory.path).finish()
    }
}

fn limiter(
    given: Option<&Arc<RateLimiter>>,
    rate: u64,
    env: &Env,
) -> Result<Option<Arc<RateLimiter>>> {
    match given {
        Some(given) => Ok(Some(given.clone())),
        None if rate == 0 => Ok(None),
        None => {
            let options = RateLimiterOptions::new(rate);
            Ok(Some(Arc::new(RateLimiter::with_clock(options, env.clock.clone())?)))
        }
    }
}

impl BackupEngineReadOnly {
    /// Opens a directory of backups without changing it.
    ///
    /// # Errors
    /// `NotFound` if there is none; `InvalidArgument` and `NotSupported` for options; `IoError`.
    pub fn open(options: BackupEngineOptions) -> Result<Self> {
        if options.destroy_old_data {
            let message = "destroy_old_data goes with an engine that writes only";
            return Err(Error::invalid_argument(message));
        }
        let engine = Self::unchecked(options)?;
        engine.directory.load()?;
        Ok(engine)
    }

    fn unchecked(options: BackupEngineOptions) -> Result<Self> {
        options.check()?;
        let env = options.backup_env.clone().unwrap_or_else(Env::os);
        let names = Names::new(env.fs.clone());
        let directory = Directory { path: options.backup_dir.clone(), names };
        let backup_limiter =
            limiter(options.backup_rate_limiter.as_ref(), options.backup_rate_limit, &env)?;
        let restore_limiter =
            limiter(options.restore_rate_limiter.as_ref(), options.restore_rate_limit, &env)?;
        let stop = AtomicBool::new(false);
        Ok(Self { options, env, directory, backup_limiter, restore_limiter, stop })
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// What the directory's backups record of a file that they share.
    pub(super) fn file(&self, path: &BackupPath) -> Result<Option<MetaFile>> {
        Ok(self.directory.load()?.shared().remove(path).map(|(file, _)| file))
    }

    fn load(&self) -> Result<Backups> {
        let mut backups = self.directory.load()?;
        while backups.whole.len() > self.options.max_valid_backups_to_open {
            backups.whole.pop_first();
        }
        Ok(backups)
    }

    /// The backups that are not damaged, oldest first; with the files of each if `with_details`.
    ///
    /// # Errors
    /// `IoError`.
    #[doc(alias = "GetBackupInfo")]
    pub fn get_backup_info(&self, with_details: bool) -> Result<Vec<BackupInfo>> {
        let backups = self.load()?;
        let info = |(id, backup): (&BackupId, &super::directory::Backup)| {
            backup.info(*id, &self.directory.path, with_details)
        };
        Ok(backups.whole.iter().map(info).collect())
    }

    /// One backup, with its files.
    ///
    /// # Errors
    /// `NotFound`; for a damaged one what is wrong with it: `Corruption`, or `NotSupported` for
    /// one of another release; `IoError`.
    pub fn get_backup(&self, id: BackupId) -> Result<BackupInfo> {
        let backups = self.load()?;
        let backup = backups.get(id).map_err(|error| error.at(&self.directory.path))?;
        Ok(backup.info(id, &self.directory.path, true))
    }

    /// The newest backup that is not damaged, with its files.
    ///
    /// # Errors
    /// `NotFound`; `IoError`.
    #[doc(alias = "GetLatestBackupInfo")]
    pub fn get_latest_backup_info(&self) -> Result<BackupInfo> {
        let backups = self.load()?;
        let newest = backups.whole.last_key_value();
        let (id, backup) = newest.ok_or_else(|| self.no_backup())?;
        Ok(backup.info(*id, &self.directory.path, true))
    }

    fn no_backup(&self) -> Error {
        Error::not_found("there is no backup that is not damaged").at(&self.directory.path)
    }

    /// The backups that cannot be read, or lack files, and what is wrong with each.
    ///
    /// # Errors
    /// `IoError`.
    #[doc(alias = "GetCorruptedBackups")]
    pub fn get_corrupted_backups(&self) -> Result<Vec<(BackupId, Error)>> {
        let corrupt = self.load()?.corrupt;
        Ok(corrupt.into_iter().map(|(id, corrupt)| (id, corrupt.error)).collect())
    }

    /// Compares the files of a backup with what is recorded: their sizes as far as they are known
    /// (all in schema 2; those of shared files in schema 1), with `verify_with_checksum` each byte.
    ///
    /// # Errors
    /// `NotFound`; `Corruption` naming a file; `IoError`.
    #[doc(alias = "VerifyBackup")]
    pub fn verify_backup(&self, id: BackupId, verify_with_checksum: bool) -> Result<()> {
        let backups = self.load()?;
        let backup = backups.get(id).map_err(|error| error.at(&self.directory.path))?;
        let (progress, running) = (self.progress(), AtomicBool::new(false));
        let transfer = self.transfer(self.backup_limiter.as_deref(), &progress, &running);
        let threads = (&*self.env.spawner, self.options.max_background_operations);
        self.directory.verify(backup, verify_with_checksum, &transfer, threads)
    }

    fn progress(&self) -> Progress {
        Progress { interval: self.options.callback_trigger_interval_size, ..Progress::default() }
    }

    fn transfer<'a>(
        &self,
        limiter: Option<&'a RateLimiter>,
        progress: &'a Progress,
        stop: &'a AtomicBool,
    ) -> Transfer<'a> {
        let (buffer_size, sync) = (self.options.io_buffer_size, self.options.sync);
        Transfer { limiter, buffer_size, sync, stop, progress }
    }

    /// Replaces the database in the directory `path` by a backup, or makes it if there is none. Its
    /// WALs lie there, too; [`Self::restore_db_from_backup`] puts them elsewhere, and has options.
    ///
    /// # Errors
    /// As [`Self::restore_db_from_backup`].
    #[doc(alias = "RestoreDBFromBackup")]
    pub fn restore(&self, id: BackupId, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.restore_db_from_backup(id, path, path, &RestoreOptions::default())
    }

    /// As [`Self::restore`], from the newest backup that is whole: one that proves damaged is
    /// passed over. Returns its number.
    ///
    /// # Errors
    /// As [`Self::restore_db_from_latest_backup`].
    #[doc(alias = "RestoreDBFromLatestBackup")]
    pub fn restore_latest(&self, path: impl AsRef<Path>) -> Result<BackupId> {
        let path = path.as_ref();
        self.restore_db_from_latest_backup(path, path, &RestoreOptions::default())
    }

    /// Replaces the database in `db_dir`, and its WALs in `wal_dir` (mostly the same directory), by
    /// a backup. Needs room for both until the copies are complete. The database is opened with
    /// `wal_dir` set if it is another directory.
    ///
    /// # Errors
    /// `NotFound`; `Corruption` naming a file of the backup; `Busy` if the database is open;
    /// `InvalidArgument` if files that the backup was made without are nowhere; `IoError`. The
    /// database stays as it was, unless the message says that it may be gone.
    #[doc(alias = "RestoreDBFromBackup")]
    pub fn restore_db_from_backup(
        &self,
        id: BackupId,
        db_dir: impl AsRef<Path>,
        wal_dir: impl AsRef<Path>,
        options: &RestoreOptions,
    ) -> Result<()> {
        let backups = self.load()?;
        self.restore_from(&backups, id, (db_dir.as_ref(), wal_dir.as_ref()), options)
    }

    fn restore_from(
        &self,
        backups: &Backups,
        id: BackupId,
        (db_dir, wal_dir): (&Path, &Path),
        options: &RestoreOptions,
    ) -> Result<()> {
        let backup = backups.get(id).map_err(|error| error.at(&self.directory.path))?;
        let (progress, running) = (self.progress(), AtomicBool::new(false));
        let names = Names::new(self.env.fs.clone());
        let restoration = Restoration {
            directory: &self.directory,
            backup,
            options,
            transfer: self.transfer(self.restore_limiter.as_deref(), &progress, &running),
            threads: self.options.max_background_operations,
            env: &self.env,
            names: &names,
            db_dir,
            wal_dir,
        };
        restoration.run()
    }

    /// As [`Self::restore_db_from_backup`], from the newest backup that is whole: one that proves
    /// damaged is passed over. Returns its number.
    ///
    /// # Errors
    /// `NotFound` if there is none; if all are damaged, what is wrong with the newest; otherwise as
    /// there.
    #[doc(alias = "RestoreDBFromLatestBackup")]
    pub fn restore_db_from_latest_backup(
        &self,
        db_dir: impl AsRef<Path>,
        wal_dir: impl AsRef<Path>,
        options: &RestoreOptions,
    ) -> Result<BackupId> {
        let backups = self.load()?;
        let mut first = None;
        for id in backups.whole.keys().rev() {
            match self.restore_from(&backups, *id, (db_dir.as_ref(), wal_dir.as_ref()), options) {
                Ok(()) => return Ok(*id),
                Err(error) if error.is_corruption() => {
                    tracing::warn!(backup = id, %error, "a backup is damaged; trying the one before");
                    first.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(first.unwrap_or_else(|| self.no_backup()))
    }
}

impl BackupEngine {
    /// Opens a directory of backups, and makes it if there is none.
    ///
    /// # Errors
    /// `InvalidArgument` and `NotSupported` for options; `Busy`; `IoError`.
    pub fn open(options: BackupEngineOptions) -> Result<Self> {
        let destroys = options.destroy_old_data;
        let reading = BackupEngineReadOnly::unchecked(BackupEngineOptions {
            max_valid_backups_to_open: usize::MAX,
            ..options
        })?;
        let options = &reading.options;
        if size_of(&*reading.env.fs, &file_name::current(&options.backup_dir))?.is_some() {
            let message = "backup_dir is the directory of a database";
            return Err(Error::invalid_argument(message).at(&options.backup_dir));
        }
        let shared = shared_directory(options.share_table_files, options.share_files_with_checksum);
        reading.directory.create(shared)?;
        let newest = AtomicU32::new(reading.directory.load()?.newest());
        let engine = Self { reading, changing: ranked(Rank::Backup, ()), newest };
        if destroys {
            engine.change(|backups| {
                let all: Vec<_> =
                    backups.whole.keys().chain(backups.corrupt.keys()).copied().collect();
                engine.reading.directory.delete(backups, &all)
            })?;
        }
        Ok(engine)
    }

    /// Does work on the backups that are there while no one else changes them.
    fn change<T>(&self, work: impl FnOnce(&mut Backups) -> Result<T>) -> Result<T> {
        let _within_process = self.changing.lock();
        let _between_processes: Box<dyn FileLock> = self.reading.directory.lock()?;
        let mut backups = self.reading.directory.load()?;
        self.newest.fetch_max(backups.newest(), Ordering::AcqRel);
        work(&mut backups)
    }

    /// Copies the database as it is now, but for files that earlier backups have. Writers go on
    /// meanwhile, and no file is removed. Returns the backup's number.
    ///
    /// # Errors
    /// `InvalidArgument` and `NotSupported` for options; `Busy` if another engine changes the
    /// directory; `Incomplete` after [`Self::stop_backup`]; `Corruption` if a file of the database
    /// is missing, too short, or differs from one of its name in an earlier backup; `TryAgain` if
    /// values are streamed faster than they are flushed; `IoError`. Earlier backups stay whole.
    #[doc(alias = "CreateNewBackup")]
    pub fn create_new_backup(
        &self,
        db: &impl AsRef<Db>,
        options: &CreateBackupOptions,
    ) -> Result<BackupId> {
        self.create_new_backup_with_metadata(db, options, b"")
    }

    /// As [`Self::create_new_backup`], with up to 1 MiB that [`BackupInfo::app_metadata`] returns.
    ///
    /// # Errors
    /// As there; `InvalidArgument` for more.
    #[doc(alias = "CreateNewBackupWithMetadata")]
    pub fn create_new_backup_with_metadata(
        &self,
        db: &impl AsRef<Db>,
        options: &CreateBackupOptions,
        app_metadata: &[u8],
    ) -> Result<BackupId> {
        check_not_stopped(&self.reading.stop)?;
        let db = db.as_ref();
        self.change(|backups| {
            let newest = self.newest.load(Ordering::Acquire);
            let id = newest.checked_add(1);
            let id = id.ok_or_else(|| Error::invalid_argument("no number is left for a backup"))?;
            let creation = Creation {
                directory: &self.reading.directory,
                options: &self.reading.options,
                request: options,
                backups,
                id,
                limiter: self.reading.backup_limiter.as_deref(),
                stop: &self.reading.stop,
            };
            let mut outcome = Ok(());
            if options.decrease_background_thread_cpu_priority {
                let spawner = &self.reading.env.spawner;
                let work = Box::new(|| outcome = creation.run(db, app_metadata));
                spawner.run_giving_way("backup", LOWEST_PRIORITY, work);
            } else {
                outcome = creation.run(db, app_metadata);
            }
            outcome?;
            self.newest.fetch_max(id, Ordering::AcqRel);
            Ok(id)
        })
    }

    /// Has the backup that is being made, and all later ones of this engine, fail with
    /// `Incomplete`. Returns at once.
    #[doc(alias = "StopBackup")]
    pub fn stop_backup(&self) {
        self.reading.stop.store(true, Ordering::Release);
    }

    /// Removes a backup, and the files that no other one has. A damaged one is removed, too.
    ///
    /// # Errors
    /// `NotFound`; `Busy`; `IoError`.
    #[doc(alias = "DeleteBackup")]
    pub fn delete_backup(&self, id: BackupId) -> Result<()> {
        self.change(|backups| self.reading.directory.delete(backups, &[id]))
    }

    /// Removes all backups but the newest `num_backups_to_keep` that are not damaged.
    ///
    /// # Errors
    /// `Busy`; `IoError`.
    #[doc(alias = "PurgeOldBackups")]
    pub fn purge_old_backups(&self, num_backups_to_keep: usize) -> Result<()> {
        self.change(|backups| {
            let old = backups.whole.len().saturating_sub(num_backups_to_keep);
            let old: Vec<_> = backups.whole.keys().take(old).copied().collect();
            self.reading.directory.delete(backups, &old)
        })
    }

    /// Removes what interrupted calls left. Every call that makes or removes a backup does so.
    ///
    /// # Errors
    /// `Busy`; `IoError`.
    #[doc(alias = "GarbageCollect")]
    pub fn garbage_collect(&self) -> Result<()> {
        self.change(|backups| self.reading.directory.collect_garbage(backups))
    }
}

/// Above the caller's niceness.
const LOWEST_PRIORITY: LowPriority = LowPriority::of_niceness(19);

impl std::ops::Deref for BackupEngine {
    type Target = BackupEngineReadOnly;

    fn deref(&self) -> &BackupEngineReadOnly {
        &self.reading
    }
}
