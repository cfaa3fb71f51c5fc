//! Options of backups, with RocksDB's names and defaults.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{Error, Result};
use crate::env::{Env, RateLimiter};

use super::engine::BackupEngineReadOnly;

/// The number of a backup; later ones have larger numbers.
pub type BackupId = u32;

/// How the tables and blob files are named that backups share. A table that does not say which
/// session wrote it, and a blob file, is named by its checksum in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ShareFilesNaming {
    /// By number, CRC-32C and size: `kLegacyCrc32cAndFileSize`. Each backup reads all tables.
    LegacyCrc32cAndFileSize,
    /// By number and the session that wrote the table: `kUseDbSessionId`.
    UseDbSessionId,
    /// By number, session and size: `kUseDbSessionId | kFlagIncludeFileSize`.
    #[default]
    UseDbSessionIdAndFileSize,
}

/// Options of a directory of backups.
#[derive(Clone)]
#[non_exhaustive]
pub struct BackupEngineOptions {
    /// The directory of the backups; not that of a database.
    pub backup_dir: PathBuf,
    /// The world of the directory; `None` for that of the operating system.
    pub backup_env: Option<Env>,
    /// Whether backups share tables and blob files. Otherwise each has its own.
    pub share_table_files: bool,
    /// Whether a backup or a restored database is synced before the call returns. Without it, a
    /// loss of power may damage it, and no other.
    pub sync: bool,
    /// Whether opening deletes all backups that are there.
    pub destroy_old_data: bool,
    /// Whether backups have the WALs. Without them a backup has what is in tables.
    pub backup_log_files: bool,
    /// Bytes read at a time; 0 for 256 KiB.
    pub io_buffer_size: u64,
    /// Bytes per second that a backup copies at most; 0 for no limit.
    pub backup_rate_limit: u64,
    /// Limits copying for a backup, instead of `backup_rate_limit`.
    pub backup_rate_limiter: Option<Arc<RateLimiter>>,
    /// Bytes per second that restoring copies at most; 0 for no limit.
    pub restore_rate_limit: u64,
    /// Limits restoring, instead of `restore_rate_limit`.
    pub restore_rate_limiter: Option<Arc<RateLimiter>>,
    /// Whether the names of shared files tell files with one number apart. Without it, a file with
    /// the number of another one is refused.
    pub share_files_with_checksum: bool,
    /// How shared files are named.
    pub share_files_with_checksum_naming: ShareFilesNaming,
    /// Threads that copy, at least 1.
    pub max_background_operations: usize,
    /// Bytes between two calls of a progress callback.
    pub callback_trigger_interval_size: u64,
    /// How many backups that are not corrupt are shown at most, from the newest on, if the
    /// directory is opened for reading only.
    pub max_valid_backups_to_open: usize,
    /// The form of new meta files: 1, which every RocksDB reads, or 2 (RocksDB 6.19 and later),
    /// which has sizes, temperatures and excluded files.
    pub schema_version: u32,
    /// Whether a file has the temperature that its file system says, if it says one
    /// ([`RandomAccessFile::temperature`](crate::env::RandomAccessFile::temperature)), rather than
    /// that in the MANIFEST. Without it, the file system is believed if the MANIFEST has none.
    pub current_temperatures_override_manifest: bool,
}

impl BackupEngineOptions {
    /// RocksDB's defaults.
    pub fn new(backup_dir: impl AsRef<Path>) -> Self {
        Self {
            backup_dir: backup_dir.as_ref().to_path_buf(),
            backup_env: None,
            share_table_files: true,
            sync: true,
            destroy_old_data: false,
            backup_log_files: true,
            io_buffer_size: 0,
            backup_rate_limit: 0,
            backup_rate_limiter: None,
            restore_rate_limit: 0,
            restore_rate_limiter: None,
            share_files_with_checksum: true,
            share_files_with_checksum_naming: ShareFilesNaming::default(),
            max_background_operations: 1,
            callback_trigger_interval_size: 4 << 20,
            max_valid_backups_to_open: usize::MAX,
            schema_version: 1,
            current_temperatures_override_manifest: false,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let refused = if self.backup_dir.as_os_str().is_empty() {
            "backup_dir is empty"
        } else if self.max_background_operations == 0 {
            "max_background_operations must be at least 1"
        } else if self.callback_trigger_interval_size == 0 {
            "callback_trigger_interval_size must be at least 1"
        } else if !(1..=2).contains(&self.schema_version) {
            return Err(Error::not_supported(format!(
                "schema_version must be 1 or 2, not {}",
                self.schema_version
            )));
        } else {
            return Ok(());
        };
        Err(Error::invalid_argument(refused))
    }
}

impl fmt::Debug for BackupEngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackupEngineOptions")
            .field("backup_dir", &self.backup_dir)
            .finish_non_exhaustive()
    }
}

/// How far a backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BackupProgress {
    /// Bytes that were copied.
    pub bytes_copied: u64,
    /// Bytes of all files of the backup; files that earlier backups have are not copied.
    pub bytes_total: u64,
}

/// A file that a backup may do without, because it is known to be elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaybeExcludeBackupFile {
    /// Where it would lie, relative to the directory of backups.
    pub relative_file: String,
    /// Set this to leave it out.
    pub exclude_decision: bool,
}

/// Called about every `callback_trigger_interval_size` bytes, in the thread that copies.
pub type ProgressCallback = Arc<dyn Fn(BackupProgress) + Send + Sync>;

/// Decides which files that no earlier backup has are left out.
pub type ExcludeFilesCallback = Arc<dyn Fn(&mut [MaybeExcludeBackupFile]) + Send + Sync>;

/// Options of one backup.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CreateBackupOptions {
    /// Whether memtables are flushed before. They are in any case if a WAL names values in blob
    /// files that are not complete yet. Writes without a WAL are lost without it.
    pub flush_before_backup: bool,
    /// Shows progress.
    pub progress_callback: Option<ProgressCallback>,
    /// Leaves files out; needs `schema_version` 2. Such a backup is restored with
    /// [`RestoreOptions::alternate_dirs`].
    pub exclude_files_callback: Option<ExcludeFilesCallback>,
    /// Whether the threads that copy give way to all others.
    pub decrease_background_thread_cpu_priority: bool,
    /// Not supported: set the database's option `atomic_flush`.
    pub atomic_flush: bool,
}

impl fmt::Debug for CreateBackupOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateBackupOptions")
            .field("flush_before_backup", &self.flush_before_backup)
            .finish_non_exhaustive()
    }
}

/// Which files of a database that is replaced are kept, because the backup has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestoreMode {
    /// None.
    #[default]
    PurgeAllFiles,
    /// Tables whose number, session and size are those in the name of the backup's file.
    KeepLatestDbSessionIdFiles,
    /// Tables and blob files whose checksum is that in the backup. Reads them.
    VerifyChecksum,
}

/// Options of restoring.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RestoreOptions {
    /// Whether the WALs stay that the directory has. Those in its archive move back.
    pub keep_log_files: bool,
    /// Directories of backups that have the files that a backup was made without.
    pub alternate_dirs: Vec<Arc<BackupEngineReadOnly>>,
    /// Which files are kept.
    pub mode: RestoreMode,
}
