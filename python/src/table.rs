//! Tables that are written outside a database.

use std::path::PathBuf;
use std::sync::{Mutex, TryLockError};

use flagstone::{SstFileInfo, SstFileWriter, SstFileWriterOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::bytes::Input;
use crate::entity::Pairs;
use crate::errors::{Class, error};
use crate::life::{Held, wait};
use crate::options;
use crate::stamp::Stamp;

/// Writes a table file, with keys in ascending order, for `ColumnFamily.ingest` or RocksDB: the
/// fastest way to bring many entries in.
///
/// `TableWriter(path, **options)` takes options of a column family by RocksDB's names; the
/// comparator must be that of the family. `with TableWriter(path) as table:` finishes it at the end
/// of the block, and removes it if the block raises an exception. One thread at a time may use it.
#[pyclass(frozen, module = "flagstone")]
pub struct TableWriter {
    path: PathBuf,
    writer: Mutex<Option<Held<SstFileWriter>>>,
}

/// What a finished table holds.
#[pyclass(frozen, get_all, module = "flagstone")]
pub struct TableInfo {
    path: PathBuf,
    smallest_key: Option<Py<PyBytes>>,
    largest_key: Option<Py<PyBytes>>,
    entries: u64,
    range_deletions: u64,
    size: u64,
}

#[pymethods]
impl TableInfo {
    fn __repr__(&self) -> String {
        format!("<flagstone.TableInfo '{}': {} entries>", self.path.display(), self.entries)
    }
}

impl TableWriter {
    /// Takes the writer for one call.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Option<Held<SstFileWriter>>) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(writer)) => writer.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(error(py, Class::Busy, "another thread uses the table writer"));
            }
        };
        if writer.as_ref().is_some_and(Held::is_of_parent) {
            let message = "the table was begun before this process was forked";
            return Err(error(py, Class::Forked, message));
        }
        call(&mut writer)
    }

    /// Adds an entry.
    fn add(
        &self,
        py: Python<'_>,
        add: impl FnOnce(&mut SstFileWriter) -> flagstone::Result<()> + Send,
    ) -> PyResult<()> {
        self.with(py, |writer| {
            let writer = writer.as_mut().ok_or_else(|| is_finished(py))?;
            wait(py, || add(writer.part_mut()))
        })
    }
}

fn is_finished(py: Python<'_>) -> PyErr {
    error(py, Class::Closed, "the table is finished, or was dropped; begin another")
}

#[pymethods]
impl TableWriter {
    #[new]
    #[pyo3(signature = (path, /, **options))]
    fn new(py: Python<'_>, path: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let family = options::family(options)?;
        if family.lifetime.is_some() {
            let message = "a table of values that expire is not written outside a database";
            return Err(error(py, Class::NotSupported, message));
        }
        let options = SstFileWriterOptions::new(&family.options);
        let writer = wait(py, || SstFileWriter::create(&path, &options))?;
        Ok(Self { path, writer: Mutex::new(Some(Held::new(writer))) })
    }

    fn __setitem__(&self, py: Python<'_>, key: Input, value: Input) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    /// Adds `key` with `value`.
    #[pyo3(signature = (key, value, /, *, timestamp = None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Input,
        value: Input,
        timestamp: Option<Stamp>,
    ) -> PyResult<()> {
        self.add(py, |writer| match &timestamp {
            Some(timestamp) => writer.put_with_timestamp(&key, timestamp, &value),
            None => writer.put(&key, &value),
        })
    }

    /// Adds `key` with columns, a mapping of names and values.
    #[pyo3(signature = (key, columns, /))]
    fn put_entity(&self, py: Python<'_>, key: Input, columns: Pairs) -> PyResult<()> {
        self.add(py, |writer| writer.put_entity(&key, columns.pairs()))
    }

    /// Adds an operand that is merged into what the database has for `key`.
    #[pyo3(signature = (key, operand, /))]
    fn merge(&self, py: Python<'_>, key: Input, operand: Input) -> PyResult<()> {
        self.add(py, |writer| writer.merge(&key, &operand))
    }

    /// Adds the removal of `key`.
    #[pyo3(signature = (key, /, *, timestamp = None))]
    fn delete(&self, py: Python<'_>, key: Input, timestamp: Option<Stamp>) -> PyResult<()> {
        self.add(py, |writer| match &timestamp {
            Some(timestamp) => writer.delete_with_timestamp(&key, timestamp),
            None => writer.delete(&key),
        })
    }

    /// Adds the removal of what the database has from `start` on and before `stop`. In no order
    /// with the keys.
    #[pyo3(signature = (start, stop, /, *, timestamp = None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Input,
        stop: Input,
        timestamp: Option<Stamp>,
    ) -> PyResult<()> {
        self.add(py, |writer| match &timestamp {
            Some(timestamp) => writer.delete_range_with_timestamp(&start, &stop, timestamp),
            None => writer.delete_range(&start, &stop),
        })
    }

    /// Completes the table, durably. One without entries is refused (`InvalidArgument`).
    fn finish(&self, py: Python<'_>) -> PyResult<TableInfo> {
        let finished: SstFileInfo = self.with(py, |writer| {
            let writer = writer.take().ok_or_else(|| is_finished(py))?;
            wait(py, || writer.into_part().finish())
        })?;
        let key = |key: Option<Vec<u8>>| key.map(|key| PyBytes::new(py, &key).unbind());
        Ok(TableInfo {
            path: finished.path,
            smallest_key: key(finished.smallest_key),
            largest_key: key(finished.largest_key),
            entries: finished.num_entries,
            range_deletions: finished.num_range_deletions,
            size: finished.file_size,
        })
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let has_raised = exception.get_item(0).is_ok_and(|class| !class.is_none());
        let is_open = self.with(py, |writer| {
            if has_raised {
                drop(writer.take());
            }
            Ok(writer.is_some())
        })?;
        if is_open { self.finish(py).map(drop) } else { Ok(()) }
    }

    fn __repr__(&self) -> String {
        format!("<flagstone.TableWriter '{}'>", self.path.display().to_string().escape_debug())
    }
}
