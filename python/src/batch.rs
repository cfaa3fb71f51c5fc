//! Writes that take place together.

use std::sync::{Arc, Mutex};

use flagstone::WriteBatch;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::bytes::Input;
use crate::entity::Pairs;
use crate::errors::{Class, error, raised};
use crate::family::{ColumnFamily, reader, write_options};
use crate::life::{lock, wait};
use crate::snapshot::Snapshot;
use crate::stamp::Stamp;

/// Writes that take place as a whole or not at all, in however many column families.
///
/// `with db.batch() as batch:` writes it at the end of the block, and drops it if the block raises
/// an exception. Without `with`, `commit()` writes it. Until then no read sees it, not
/// even one of the same thread. Nested batches are independent of each other.
///
/// Writes go to the family that the batch was made by, or to `family`.
#[pyclass(frozen, module = "flagstone")]
pub struct Batch {
    family: Py<ColumnFamily>,
    synced: bool,
    since: Option<Py<Snapshot>>,
    /// The writes, until they are committed.
    writes: Mutex<Option<Writes>>,
}

/// What is to be written, and the keys that must be unchanged for it.
#[derive(Default)]
struct Writes {
    batch: WriteBatch,
    unchanged: Vec<(Py<ColumnFamily>, Vec<u8>)>,
}

type AFamily<'a, 'py> = Option<&'a Bound<'py, ColumnFamily>>;

impl Batch {
    pub fn begin(
        family: &Bound<'_, ColumnFamily>,
        synced: bool,
        since: Option<&Bound<'_, Snapshot>>,
    ) -> PyResult<Self> {
        let py = family.py();
        let life = reader(family).life();
        life.check(py)?;
        if since.is_some_and(|since| !Arc::ptr_eq(life, since.as_super().get().life())) {
            let message = "the snapshot is of another database";
            return Err(error(py, Class::InvalidArgument, message));
        }
        let since = since.map(|since| since.clone().unbind());
        let writes = Mutex::new(Some(Writes::default()));
        Ok(Self { family: family.clone().unbind(), synced, since, writes })
    }

    /// The family that is meant, if it is of the batch's database.
    fn chosen<'a, 'py>(
        &'a self,
        py: Python<'py>,
        family: AFamily<'a, 'py>,
    ) -> PyResult<&'a Bound<'py, ColumnFamily>> {
        let own = self.family.bind(py);
        let chosen = family.unwrap_or(own);
        let life = reader(own).life();
        life.check(py)?;
        if !Arc::ptr_eq(life, reader(chosen).life()) {
            let message = "the column family is of another database";
            return Err(error(py, Class::InvalidArgument, message));
        }
        Ok(chosen)
    }

    /// Adds an operation on a family.
    fn add(
        &self,
        py: Python<'_>,
        family: AFamily<'_, '_>,
        fill: impl FnOnce(&mut WriteBatch, &flagstone::Family) -> flagstone::Result<()>,
    ) -> PyResult<()> {
        let chosen = self.chosen(py, family)?;
        let mut writes = lock(&self.writes);
        let writes = writes.as_mut().ok_or_else(|| is_committed(py))?;
        let filled = fill(&mut writes.batch, reader(chosen).family());
        filled.map_err(|error| raised(py, &error, None))
    }
}

fn is_committed(py: Python<'_>) -> PyErr {
    error(py, Class::InvalidArgument, "the batch is committed already; begin another")
}

#[pymethods]
impl Batch {
    fn __setitem__(&self, py: Python<'_>, key: Input, value: Input) -> PyResult<()> {
        self.put(py, key, value, None, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: Input) -> PyResult<()> {
        self.delete(py, key, None, None)
    }

    /// Sets `key` to `value`.
    #[pyo3(signature = (key, value, /, *, family = None, timestamp = None))]
    fn put(
        &self,
        py: Python<'_>,
        key: Input,
        value: Input,
        family: AFamily<'_, '_>,
        timestamp: Option<Stamp>,
    ) -> PyResult<()> {
        self.add(py, family, |writes, family| match &timestamp {
            Some(timestamp) => writes.put_with_timestamp(family, &key, timestamp, &value),
            None => writes.put_cf(family, &key, &value),
        })
    }

    /// Sets `key` to columns, a mapping of names and values.
    #[pyo3(signature = (key, columns, /, *, family = None))]
    fn put_entity(
        &self,
        py: Python<'_>,
        key: Input,
        columns: Pairs,
        family: AFamily<'_, '_>,
    ) -> PyResult<()> {
        self.add(py, family, |writes, family| writes.put_entity_cf(family, &key, columns.pairs()))
    }

    /// Removes `key`, which need not be there.
    #[pyo3(signature = (key, /, *, family = None, timestamp = None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: Input,
        family: AFamily<'_, '_>,
        timestamp: Option<Stamp>,
    ) -> PyResult<()> {
        self.add(py, family, |writes, family| match &timestamp {
            Some(timestamp) => writes.delete_with_timestamp(family, &key, timestamp),
            None => writes.delete_cf(family, &key),
        })
    }

    /// Removes `key`, which was put at most once since it was last removed, and never merged.
    #[pyo3(signature = (key, /, *, family = None))]
    fn single_delete(&self, py: Python<'_>, key: Input, family: AFamily<'_, '_>) -> PyResult<()> {
        self.add(py, family, |writes, family| writes.single_delete_cf(family, &key))
    }

    /// Removes all keys from `start` on and before `stop`.
    #[pyo3(signature = (start, stop, /, *, family = None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Input,
        stop: Input,
        family: AFamily<'_, '_>,
    ) -> PyResult<()> {
        self.add(py, family, |writes, family| writes.delete_range_cf(family, &start, &stop))
    }

    /// Merges `operand` into the value of `key`.
    #[pyo3(signature = (key, operand, /, *, family = None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: Input,
        operand: Input,
        family: AFamily<'_, '_>,
    ) -> PyResult<()> {
        self.add(py, family, |writes, family| writes.merge_cf(family, &key, &operand))
    }

    /// Makes the commit depend on `key`: if it was written to after the snapshot `since`, `Busy` is
    /// raised, and nothing is written.
    #[pyo3(signature = (key, /, *, family = None))]
    fn check_unchanged(&self, py: Python<'_>, key: Input, family: AFamily<'_, '_>) -> PyResult<()> {
        let chosen = self.chosen(py, family)?;
        if self.since.is_none() {
            let message = "since when? A batch that checks keys is begun with since=snapshot";
            return Err(error(py, Class::InvalidArgument, message));
        }
        let mut writes = lock(&self.writes);
        let writes = writes.as_mut().ok_or_else(|| is_committed(py))?;
        writes.unchanged.push((chosen.clone().unbind(), key.to_vec()));
        Ok(())
    }

    /// How many writes there are.
    fn __len__(&self) -> usize {
        lock(&self.writes).as_ref().map_or(0, |writes| writes.batch.count() as usize)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Drops all writes and checks, and keeps the batch.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let mut writes = lock(&self.writes);
        *writes.as_mut().ok_or_else(|| is_committed(py))? = Writes::default();
        Ok(())
    }

    /// Writes the batch.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let db = reader(self.family.bind(py)).life().db(py)?;
        let since = self.since.as_ref().map(|since| since.bind(py).as_super().get().snapshot(py));
        let since = since.transpose()?.flatten();
        let writes = lock(&self.writes).take().ok_or_else(|| is_committed(py))?;
        let options = write_options(self.synced);
        let Some(since) = since else {
            return wait(py, || db.write_with(writes.batch, &options));
        };
        let unchanged: Vec<_> = writes
            .unchanged
            .iter()
            .map(|(family, key)| (reader(family.bind(py)).family(), &**key))
            .collect();
        let batch = writes.batch;
        wait(py, || db.write_if_unchanged_with(batch, since.part(), &unchanged, &options))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        if exception.get_item(0).is_ok_and(|class| !class.is_none()) {
            lock(&self.writes).take();
            return Ok(());
        }
        if lock(&self.writes).is_none() {
            return Ok(());
        }
        self.commit(py)
    }

    fn __repr__(&self) -> String {
        format!("<flagstone.Batch of {} writes>", self.__len__())
    }
}
