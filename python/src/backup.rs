//! Backups.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flagstone::backup::{
    BackupEngine, BackupEngineOptions, BackupEngineReadOnly, CreateBackupOptions, RestoreOptions,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::Input;
use crate::database::{Database, life};
use crate::errors::{Class, error};
use crate::life::{Held, wait};

enum Engine {
    Writing(BackupEngine),
    Reading(BackupEngineReadOnly),
}

/// A directory of backups, which share the files that they have in common. RocksDB reads it, and
/// Flagstone reads RocksDB's.
///
/// `Backups(path, ...)` makes the directory if there is none; with `read_only=True` it must be
/// there, and several may read it. Rates are bytes per second, 0 for no limit; `threads` is how
/// many copy. Without `sync` a loss of power may damage the newest backup. `schema_version=2` also
/// records sizes and temperatures, which RocksDB reads from 6.19 on. One call at a time changes
/// them; another raises `Busy`.
#[pyclass(frozen, module = "flagstone")]
pub struct Backups {
    path: PathBuf,
    engine: Held<Engine>,
    /// Somebody changes them.
    is_changing: AtomicBool,
}

/// Ends a change when it is dropped.
struct Change<'a>(&'a Backups);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.is_changing.store(false, Ordering::Release);
    }
}

/// What a directory of backups says of one.
#[pyclass(frozen, get_all, module = "flagstone")]
pub struct BackupInfo {
    /// Its number; later ones have larger numbers.
    id: u32,
    /// When it was made, in seconds since 1970.
    timestamp: u64,
    /// The last write that it has.
    sequence_number: u64,
    /// Bytes of its files, those that it shares included.
    size: u64,
    number_files: usize,
    metadata: Py<PyBytes>,
}

#[pymethods]
impl BackupInfo {
    fn __repr__(&self) -> String {
        format!("<flagstone.BackupInfo {}: {} bytes>", self.id, self.size)
    }
}

impl Backups {
    /// The engine, in the process that opened it.
    fn engine(&self, py: Python<'_>) -> PyResult<&Engine> {
        if self.engine.is_of_parent() {
            let path = self.path.display();
            let message =
                format!("the backups in {path} were opened before this process was forked");
            return Err(error(py, Class::Forked, message));
        }
        Ok(self.engine.part())
    }

    fn reading(&self, py: Python<'_>) -> PyResult<&BackupEngineReadOnly> {
        Ok(match self.engine(py)? {
            Engine::Writing(engine) => engine,
            Engine::Reading(engine) => engine,
        })
    }

    /// The engine, for one change at a time: what is told of progress must not wait for the change
    /// that tells it.
    fn changing(&self, py: Python<'_>) -> PyResult<(&BackupEngine, Change<'_>)> {
        match self.engine(py)? {
            Engine::Writing(_) if self.is_changing.swap(true, Ordering::AcqRel) => {
                let message = format!("the backups in {} are being changed", self.path.display());
                Err(error(py, Class::Busy, message))
            }
            Engine::Writing(engine) => Ok((engine, Change(self))),
            Engine::Reading(_) => {
                let message = format!("the backups in {} are read only", self.path.display());
                Err(error(py, Class::NotSupported, message))
            }
        }
    }
}

/// Tells Python how far a backup is. What it raises goes to `sys.unraisablehook`.
fn report(progress: &Py<PyAny>, copied: u64, total: u64) {
    // Where the interpreter has ended nobody listens.
    let _ = Python::try_attach(|py| {
        if let Err(raised) = progress.call1(py, (copied, total)) {
            raised.write_unraisable(py, Some(progress.bind(py)));
        }
    });
}

#[pymethods]
impl Backups {
    #[new]
    #[pyo3(signature = (
        path, /, *, read_only = false, backup_rate_limit = 0, restore_rate_limit = 0, threads = 1,
        sync = true, share_files = true, schema_version = 1
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        read_only: bool,
        backup_rate_limit: u64,
        restore_rate_limit: u64,
        threads: usize,
        sync: bool,
        share_files: bool,
        schema_version: u32,
    ) -> PyResult<Self> {
        let mut options = BackupEngineOptions::new(&path);
        options.backup_rate_limit = backup_rate_limit;
        options.restore_rate_limit = restore_rate_limit;
        options.max_background_operations = threads;
        options.sync = sync;
        options.share_table_files = share_files;
        options.schema_version = schema_version;
        let engine = wait(py, || {
            Ok(if read_only {
                Engine::Reading(BackupEngineReadOnly::open(options)?)
            } else {
                Engine::Writing(BackupEngine::open(options)?)
            })
        })?;
        Ok(Self { path, engine: Held::new(engine), is_changing: AtomicBool::new(false) })
    }

    /// Makes a backup of an open database, and gives its number. Writers go on meanwhile. Tables
    /// and blob files that an earlier backup has are not copied again. With `flush=True` the
    /// memtables are flushed first, else the write-ahead logs are copied. `progress` is called
    /// with the bytes copied and the bytes of all files, about every 4 MiB, by another thread.
    #[pyo3(signature = (database, /, *, flush = false, metadata = None, progress = None))]
    fn create(
        &self,
        py: Python<'_>,
        database: &Bound<'_, Database>,
        flush: bool,
        metadata: Option<Input>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u32> {
        let (engine, _change) = self.changing(py)?;
        let db = life(database).db(py)?;
        let mut options = CreateBackupOptions::default();
        options.flush_before_backup = flush;
        options.progress_callback = progress.map(|progress| {
            let told = move |now: flagstone::backup::BackupProgress| {
                report(&progress, now.bytes_copied, now.bytes_total);
            };
            Arc::new(told) as Arc<dyn Fn(flagstone::backup::BackupProgress) + Send + Sync>
        });
        let metadata = metadata.as_deref().unwrap_or_default();
        wait(py, || engine.create_new_backup_with_metadata(db, &options, metadata))
    }

    /// The backups that are not damaged, from the oldest on.
    fn list(&self, py: Python<'_>) -> PyResult<Vec<BackupInfo>> {
        let engine = self.reading(py)?;
        let found = wait(py, || engine.get_backup_info(false))?;
        let of = |info: flagstone::backup::BackupInfo| BackupInfo {
            id: info.backup_id,
            timestamp: info.timestamp,
            sequence_number: info.sequence_number,
            size: info.size,
            number_files: info.number_files,
            metadata: PyBytes::new(py, &info.app_metadata).unbind(),
        };
        Ok(found.into_iter().map(of).collect())
    }

    /// The numbers of the backups that are damaged, each with what is wrong.
    fn damaged(&self, py: Python<'_>) -> PyResult<Vec<(u32, String)>> {
        let engine = self.reading(py)?;
        let found = wait(py, || engine.get_corrupted_backups())?;
        Ok(found.into_iter().map(|(id, error)| (id, error.to_string())).collect())
    }

    /// Checks the sizes of a backup's files; with `checksums=True` reads them all. `Corruption`
    /// names a file that is not as it was.
    #[pyo3(signature = (id, /, *, checksums = false))]
    fn verify(&self, py: Python<'_>, id: u32, checksums: bool) -> PyResult<()> {
        let engine = self.reading(py)?;
        wait(py, || engine.verify_backup(id, checksums))
    }

    /// Replaces the database in the directory `target`, which must not be open, or makes it: by
    /// the backup `id`, or the newest that is whole. Gives its number. Logs lie in `wal_dir` if
    /// that is given. With `keep_log_files=True` those that are there stay.
    #[pyo3(signature = (target, /, *, id = None, wal_dir = None, keep_log_files = false))]
    fn restore(
        &self,
        py: Python<'_>,
        target: PathBuf,
        id: Option<u32>,
        wal_dir: Option<PathBuf>,
        keep_log_files: bool,
    ) -> PyResult<u32> {
        let engine = self.reading(py)?;
        let wal_dir = wal_dir.unwrap_or_else(|| target.clone());
        let mut options = RestoreOptions::default();
        options.keep_log_files = keep_log_files;
        wait(py, || match id {
            Some(id) => {
                engine.restore_db_from_backup(id, &target, &wal_dir, &options)?;
                Ok(id)
            }
            None => engine.restore_db_from_latest_backup(&target, &wal_dir, &options),
        })
    }

    /// Deletes a backup, and the files that no other one needs.
    #[pyo3(signature = (id, /))]
    fn delete(&self, py: Python<'_>, id: u32) -> PyResult<()> {
        let (engine, _change) = self.changing(py)?;
        wait(py, || engine.delete_backup(id))
    }

    /// Deletes all backups but the newest `keep`.
    #[pyo3(signature = (keep, /))]
    fn purge(&self, py: Python<'_>, keep: usize) -> PyResult<()> {
        let (engine, _change) = self.changing(py)?;
        wait(py, || engine.purge_old_backups(keep))
    }

    /// Removes what an interrupted backup or deletion has left.
    fn collect_garbage(&self, py: Python<'_>) -> PyResult<()> {
        let (engine, _change) = self.changing(py)?;
        wait(py, || engine.garbage_collect())
    }

    fn __repr__(&self) -> String {
        format!("<flagstone.Backups '{}'>", self.path.display().to_string().escape_debug())
    }
}
