//! What a database tells of itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flagstone::cache::TraceOptions;
use flagstone::trace::{FileTraceWriter, IoTraceOptions, OperationTraceOptions};
use flagstone::{Db, Env, Ticker};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Class, error};
use crate::life::wait;

/// A table or blob file of a database.
#[pyclass(frozen, get_all, module = "flagstone")]
pub struct LiveFile {
    column_family: String,
    number: u64,
    path: PathBuf,
    /// Of a table; `None` for a blob file.
    level: Option<usize>,
    size: u64,
    smallest_key: Py<PyBytes>,
    largest_key: Py<PyBytes>,
    being_compacted: bool,
}

#[pymethods]
impl LiveFile {
    fn __repr__(&self) -> String {
        format!("<flagstone.LiveFile '{}': {} bytes>", self.path.display(), self.size)
    }
}

pub fn live_files(py: Python<'_>, db: &Db) -> PyResult<Vec<LiveFile>> {
    let files = wait(py, || Ok(db.live_files()))?;
    let of = |file: flagstone::reports::LiveFile| LiveFile {
        column_family: file.column_family,
        number: file.number.0,
        path: file.path,
        level: file.level,
        size: file.size,
        smallest_key: PyBytes::new(py, &file.smallest).unbind(),
        largest_key: PyBytes::new(py, &file.largest).unbind(),
        being_compacted: file.being_compacted,
    };
    Ok(files.into_iter().map(of).collect())
}

/// All counters.
pub fn statistics(db: &Db) -> BTreeMap<&'static str, u64> {
    let statistics = db.statistics();
    Ticker::ALL.iter().map(|ticker| (ticker.name(), statistics.get(*ticker))).collect()
}

/// What is wrong with the files.
pub fn verify(db: &Db) -> Vec<String> {
    let report = db.verify(|_| {});
    report.faults.iter().map(|fault| fault.error.to_string()).collect()
}

/// What a trace records.
#[derive(Clone, Copy)]
pub enum TraceKind {
    Operations,
    BlockCache,
    Io,
}

pub fn trace_kind(py: Python<'_>, kind: &str) -> PyResult<TraceKind> {
    match kind {
        "operations" => Ok(TraceKind::Operations),
        "block_cache" => Ok(TraceKind::BlockCache),
        "io" => Ok(TraceKind::Io),
        other => {
            let message = format!(
                "a trace is of kind 'operations', 'block_cache' or 'io', not '{}'",
                other.escape_debug()
            );
            Err(error(py, Class::InvalidArgument, message))
        }
    }
}

pub fn start_trace(
    db: &Db,
    kind: TraceKind,
    path: &Path,
    sampling_frequency: u64,
) -> flagstone::Result<()> {
    let writer = || -> flagstone::Result<_> {
        Ok(Box::new(FileTraceWriter::create(&Env::default(), path)?))
    };
    match kind {
        TraceKind::Operations => {
            let options =
                OperationTraceOptions { sampling_frequency, ..OperationTraceOptions::default() };
            db.engine().start_trace(&options, writer()?)
        }
        TraceKind::BlockCache => {
            let options = TraceOptions { sampling_frequency, ..TraceOptions::default() };
            db.engine().start_block_cache_trace(path, &options)
        }
        TraceKind::Io => {
            let options = IoTraceOptions { sampling_frequency, ..IoTraceOptions::default() };
            db.engine().start_io_trace(&options, writer()?)
        }
    }
}

/// Ends a trace: how many records it has.
pub fn end_trace(db: &Db, kind: TraceKind) -> flagstone::Result<Option<u64>> {
    Ok(match kind {
        TraceKind::Operations => db.engine().end_trace()?.map(|summary| summary.operations),
        TraceKind::BlockCache => {
            db.engine().end_block_cache_trace()?.map(|summary| summary.requests)
        }
        TraceKind::Io => db.engine().end_io_trace()?.map(|summary| summary.calls),
    })
}
