//! The Python package `flagstone`: the engine's front door as a mapping of bytes.
//!
//! - `database`: `Database` and how it is opened; `family`: `ColumnFamily`; `snapshot`: `Snapshot`
//! - `reader`: what these three have in common, the reads of one column family
//! - `range`: `Range` and `Iterator`, entries in order; `batch`: `Batch`; `transaction`:
//!   `Transaction`
//! - `backup`: `Backups`; `table`: `TableWriter`; `following`: `Secondary`
//! - `stamp`: user timestamps; `entity`: wide columns; `reports`: what a database tells of itself
//! - `value`: `Value`, bytes that Python reads where they lie; `bytes`: bytes that Python gives
//! - `options`: keyword arguments as options; `merge`: merge operators written in Python
//! - `life`: whether a database may still be used; `errors`: the classes of errors
//!
//! **Thread safety**
//! 1. A call that may wait (for a disk, a lock of the engine, another thread) runs detached from
//!    the interpreter (`life::wait`): a thread of the engine that runs a merge operator may need
//!    the interpreter before it can release what the call waits for.
//! 2. What may wait when it is dropped is dropped detached, too (`life::Held`).
//! 3. A lock of this crate that is taken while attached is never held by a detached thread that
//!    waits; `Iterator` and `Transaction` are the exceptions, and ask with `try_lock`.
//! 4. All classes are frozen: what changes lies behind a lock.

mod backup;
mod batch;
mod bytes;
mod database;
mod entity;
mod errors;
mod family;
mod following;
mod life;
mod merge;
mod options;
mod range;
mod reader;
mod reports;
mod snapshot;
mod stamp;
mod table;
mod transaction;
mod value;

use pyo3::prelude::*;
use pyo3::types::PyModule;

/// A key-value store on disk: an LSM tree that reads and writes RocksDB's files.
///
/// `flagstone.open(path)` opens a database, which is a mapping from bytes to bytes.
///
/// Threads may share all objects. Processes may not: after a fork, the child gets `Forked`.
// The interpreter's own lock stays on in builds without one, where none of the tests have run.
#[pymodule(name = "flagstone", gil_used = true)]
fn package(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::add_to(module)?;
    module.add_class::<reader::Reader>()?;
    module.add_class::<family::ColumnFamily>()?;
    module.add_class::<database::Database>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<range::Range>()?;
    module.add_class::<range::Iterator>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<value::Value>()?;
    module.add_class::<merge::MergeOperator>()?;
    module.add_class::<backup::Backups>()?;
    module.add_class::<backup::BackupInfo>()?;
    module.add_class::<table::TableWriter>()?;
    module.add_class::<table::TableInfo>()?;
    module.add_class::<following::Secondary>()?;
    module.add_class::<reports::LiveFile>()?;
    module.add_function(wrap_pyfunction!(following::open_secondary, module)?)?;
    module.add_function(wrap_pyfunction!(following::open_follower, module)?)?;
    module.add_function(wrap_pyfunction!(database::open, module)?)?;
    module.add_function(wrap_pyfunction!(database::open_with_stored_options, module)?)?;
    module.add_function(wrap_pyfunction!(database::list_column_families, module)?)?;
    life::watch(module.py())
}
