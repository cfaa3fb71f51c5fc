//! Backups in RocksDB's layout.

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use flagstone::backup::{self, BackupEngineOptions, BackupInfo, RestoreMode, RestoreOptions};

use crate::abi::{Out, Result, State, Tagged, calling, handles, make};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::convert::Choice;
use crate::db::Db;
use crate::env::Env;
use crate::options::Options;
use crate::options_groups::Limiter;
use crate::report::with_nul;
use flagstone_rocksdb::parts::engine_env;

/// A directory of backups.
pub struct Backups(backup::BackupEngine);

/// Its options.
pub struct BackupOptions {
    engine: BackupEngineOptions,
    directory: CString,
    /// The number of a way to name files, which may be none.
    naming: i32,
    refused: Option<flagstone_rocksdb::Error>,
}

/// Options of restoring.
pub struct Restore {
    engine: RestoreOptions,
    /// The number of a mode, which may be none.
    mode: i32,
}

impl Default for Restore {
    fn default() -> Self {
        Self { engine: RestoreOptions::default(), mode: RestoreMode::default().number() }
    }
}

impl Restore {
    fn checked(&self) -> Result<RestoreOptions> {
        let mut options = self.engine.clone();
        options.mode = Choice::from_number(self.mode).ok_or_else(|| {
            let text = format_args!("restore mode {:#x}", self.mode);
            flagstone_rocksdb::Error::not_supported(text)
        })?;
        Ok(options)
    }
}

/// What is known of backups, oldest first.
pub struct Infos(Vec<BackupInfo>);

handles! {
    Backups = "backup_engine",
    BackupOptions = "backup_engine_options",
    Restore = "restore_options",
    Infos = "backup_engine_info",
    CreateOptions = "create_backup_options",
}

creates! {
    rocksdb_restore_options_create: Restore,
    rocksdb_create_backup_options_create: CreateOptions,
}

destroys! {
    rocksdb_backup_engine_close: Backups,
    rocksdb_backup_engine_options_destroy: BackupOptions,
    rocksdb_restore_options_destroy: Restore,
    rocksdb_backup_engine_info_destroy: Infos,
    rocksdb_create_backup_options_destroy: CreateOptions,
}

impl BackupOptions {
    fn opened(&self, env: Option<&Env>) -> Result<*mut Tagged<Backups>> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let mut options = self.engine.clone();
        options.share_files_with_checksum_naming =
            Choice::from_number(self.naming).ok_or_else(|| {
                let naming = self.naming;
                let text = format_args!("share_files_with_checksum_naming {naming:#x}");
                flagstone_rocksdb::Error::not_supported(text)
            })?;
        let of_database = env.map(|env| engine_env(&env.rdb).clone());
        options.backup_env = options.backup_env.or(of_database);
        Ok(make(Backups(backup::BackupEngine::open(options)?)))
    }

    fn limiter(
        &mut self,
        limiter: Option<&Limiter>,
    ) -> Option<std::sync::Arc<flagstone::options::RateLimiter>> {
        match limiter.map(|limiter| limiter.0.clone()).transpose() {
            Ok(limiter) => limiter,
            Err(error) => {
                self.refused = Some(error);
                None
            }
        }
    }
}

c_settings! { "rocksdb_backup_engine_options", BackupOptions, |o| {
    value u8, share_table_files: o.engine.share_table_files;
    value u8, sync: o.engine.sync;
    value u8, destroy_old_data: o.engine.destroy_old_data;
    value u8, backup_log_files: o.engine.backup_log_files;
    value u64, io_buffer_size: o.engine.io_buffer_size;
    value u64, backup_rate_limit: o.engine.backup_rate_limit;
    value u64, restore_rate_limit: o.engine.restore_rate_limit;
    value i32, max_background_operations: o.engine.max_background_operations;
    value u64, callback_trigger_interval_size: o.engine.callback_trigger_interval_size;
    value i32, max_valid_backups_to_open: o.engine.max_valid_backups_to_open;
    value i32, share_files_with_checksum_naming: o.naming;
    value u8, share_files_with_checksum: o.engine.share_files_with_checksum;
    value i32, schema_version: o.engine.schema_version;
    value u8, current_temperatures_override_manifest:
        o.engine.current_temperatures_override_manifest;
} }

c_settings! { "rocksdb_create_backup_options", CreateOptions, |o| {
    value u8, flush_before_backup: o.flush_before_backup;
    value u8, decrease_background_thread_cpu_priority: o.decrease_priority;
    value i32, background_thread_cpu_priority: o.priority;
    value u8, atomic_flush: o.atomic_flush;
} }

c_settings! { "rocksdb_restore_options", Restore, |o| {
    value i32, mode: o.mode;
} }

impl Infos {
    fn at(&self, index: c_int) -> Option<&BackupInfo> {
        usize::try_from(index).ok().and_then(|index| self.0.get(index))
    }
}

/// How a backup is made.
#[derive(Default)]
pub struct CreateOptions {
    flush_before_backup: bool,
    decrease_priority: bool,
    priority: i32,
    atomic_flush: bool,
    progress: Option<backup::ProgressCallback>,
    excludes: Option<backup::ExcludeFilesCallback>,
}

/// Is told that a backup goes on.
type OnProgress = extern "C-unwind" fn(*mut c_void);
/// Whether a backup does without a file: state, its name, the length of that.
type Excludes = extern "C-unwind" fn(*mut c_void, *const c_char, usize) -> u8;

fn progress(state: State, callback: OnProgress) -> backup::ProgressCallback {
    Arc::new(move |_| calling("a progress callback", || callback(state.pointer())))
}

fn excluding(state: State, callback: Excludes) -> backup::ExcludeFilesCallback {
    Arc::new(move |files| {
        for file in files {
            let name = with_nul(file.relative_file.as_bytes());
            file.exclude_decision = calling("a callback for files of a backup", || {
                callback(state.pointer(), name.as_ptr().cast(), name.len() - 1) != 0
            });
        }
    })
}

impl CreateOptions {
    fn engine(&self) -> backup::CreateBackupOptions {
        let mut options = backup::CreateBackupOptions::default();
        options.flush_before_backup = self.flush_before_backup;
        options.decrease_background_thread_cpu_priority = self.decrease_priority;
        options.atomic_flush = self.atomic_flush;
        options.progress_callback.clone_from(&self.progress);
        options.exclude_files_callback.clone_from(&self.excludes);
        options
    }
}

fn back_up(backups: &Backups, db: &Db, flush: bool) -> Result<()> {
    let mut options = backup::CreateBackupOptions::default();
    options.flush_before_backup = flush;
    backups.0.create_new_backup(db.engine(), &options)?;
    Ok(())
}

c_api! {
    fn rocksdb_backup_engine_options_create(directory: cstr) -> *mut Tagged<BackupOptions> {
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(directory.to_bytes()));
        let engine = BackupEngineOptions::new(path);
        let naming = engine.share_files_with_checksum_naming.number();
        make(BackupOptions { engine, directory: directory.to_owned(), naming, refused: None })
    }

    fn rocksdb_backup_engine_options_set_backup_dir(o: &mut BackupOptions, directory: cstr) {
        o.engine.backup_dir = std::ffi::OsStr::from_bytes(directory.to_bytes()).into();
        o.directory = directory.to_owned();
    }

    fn rocksdb_backup_engine_options_get_backup_dir(
        o: &BackupOptions, len: Out<usize>
    ) -> *const c_char {
        len.set(o.directory.count_bytes());
        o.directory.as_ptr()
    }

    fn rocksdb_backup_engine_options_set_env(o: &mut BackupOptions, env: ?Env) {
        o.engine.backup_env = env.map(|env| engine_env(&env.rdb).clone());
    }

    fn rocksdb_backup_engine_options_set_backup_rate_limiter(
        o: &mut BackupOptions, limiter: ?Limiter
    ) {
        o.engine.backup_rate_limiter = o.limiter(limiter);
    }

    fn rocksdb_backup_engine_options_set_restore_rate_limiter(
        o: &mut BackupOptions, limiter: ?Limiter
    ) {
        o.engine.restore_rate_limiter = o.limiter(limiter);
    }

    fn rocksdb_create_backup_options_set_progress_callback(
        o: &mut CreateOptions, state: *mut c_void, callback: Option<OnProgress>
    ) {
        let state = State::new(state, None);
        o.progress = callback.map(|callback| progress(state, callback));
    }

    fn rocksdb_create_backup_options_set_exclude_files_callback(
        o: &mut CreateOptions, state: *mut c_void, callback: Option<Excludes>
    ) {
        let state = State::new(state, None);
        o.excludes = callback.map(|callback| excluding(state, callback));
    }

    fn rocksdb_backup_engine_open(options: &Options, path: path, error) -> *mut Tagged<Backups> {
        let mut engine = BackupEngineOptions::new(path);
        engine.backup_env = Some(options.rdb.engine()?.env.clone());
        make(Backups(backup::BackupEngine::open(engine)?))
    }

    fn rocksdb_backup_engine_open_opts(
        options: &BackupOptions, env: ?Env, error
    ) -> *mut Tagged<Backups> {
        options.opened(env)?
    }

    fn rocksdb_backup_engine_create_new_backup(backups: &Backups, db: &Db, error) {
        back_up(backups, db, false)?
    }

    fn rocksdb_backup_engine_create_new_backup_flush(
        backups: &Backups, db: &Db, flush: flag, error
    ) {
        back_up(backups, db, flush)?
    }

    fn rocksdb_backup_engine_create_new_backup_with_options(
        backups: &Backups, db: &Db, options: &CreateOptions, id: Out<u32>, error
    ) {
        id.set(backups.0.create_new_backup(db.engine(), &options.engine())?);
    }

    fn rocksdb_backup_engine_create_new_backup_with_metadata(
        backups: &Backups, db: &Db, options: &CreateOptions, metadata: [u8], id: Out<u32>, error
    ) {
        let options = options.engine();
        let made = backups.0.create_new_backup_with_metadata(db.engine(), &options, metadata)?;
        id.set(made);
    }

    fn rocksdb_backup_engine_info_app_metadata(
        infos: &Infos, index: i32, len: Out<usize>
    ) -> *const c_char {
        let metadata = infos.at(index).map_or(&[][..], |info| &info.app_metadata);
        len.set(metadata.len());
        metadata.as_ptr().cast()
    }

    fn rocksdb_backup_engine_purge_old_backups(backups: &Backups, keep: u32, error) {
        backups.0.purge_old_backups(keep as usize)?
    }

    fn rocksdb_backup_engine_verify_backup(backups: &Backups, id: u32, error) {
        backups.0.verify_backup(id, false)?
    }

    fn rocksdb_backup_engine_stop_backup(backups: &Backups) {
        backups.0.stop_backup();
    }

    fn rocksdb_backup_engine_restore_db_from_latest_backup(
        backups: &Backups, directory: path, wal_directory: path, options: &Restore, error
    ) {
        backups.0.restore_db_from_latest_backup(directory, wal_directory, &options.checked()?)?;
    }

    fn rocksdb_backup_engine_restore_db_from_backup(
        backups: &Backups, directory: path, wal_directory: path, options: &Restore, id: u32, error
    ) {
        backups.0.restore_db_from_backup(id, directory, wal_directory, &options.checked()?)?
    }

    fn rocksdb_restore_options_set_keep_log_files(options: &mut Restore, keep: i32) {
        options.engine.keep_log_files = keep != 0;
    }

    fn rocksdb_restore_options_get_keep_log_files(options: &Restore) -> u8 {
        options.engine.keep_log_files.into()
    }

    fn rocksdb_backup_engine_get_backup_info(backups: &Backups) -> *const Tagged<Infos> {
        make(Infos(backups.0.get_backup_info(false).unwrap_or_else(|error| {
            tracing::warn!(%error, "the list of backups");
            Vec::new()
        })))
    }

    fn rocksdb_backup_engine_info_count(infos: &Infos) -> i32 {
        i32::try_from(infos.0.len()).unwrap_or(i32::MAX)
    }

    fn rocksdb_backup_engine_info_timestamp(infos: &Infos, index: i32) -> i64 {
        infos.at(index).map_or(0, |info| i64::try_from(info.timestamp).unwrap_or(i64::MAX))
    }

    fn rocksdb_backup_engine_info_backup_id(infos: &Infos, index: i32) -> u32 {
        infos.at(index).map_or(0, |info| info.backup_id)
    }

    fn rocksdb_backup_engine_info_size(infos: &Infos, index: i32) -> u64 {
        infos.at(index).map_or(0, |info| info.size)
    }

    fn rocksdb_backup_engine_info_number_files(infos: &Infos, index: i32) -> u32 {
        infos.at(index).map_or(0, |info| u32::try_from(info.number_files).unwrap_or(u32::MAX))
    }
}
