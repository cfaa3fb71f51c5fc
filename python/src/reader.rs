//! Reads of one column family, as of now or as of a snapshot.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use flagstone::{Family, ReadOptions, Snapshot, View};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::bytes::Input;
use crate::entity::shown;
use crate::errors::{Class, error};
use crate::life::{Held, Life, lock, wait};
use crate::range::{Bounds, Items, Iterator, Range, between, bounds};
use crate::stamp::{Stamp, number};
use crate::value::Value;

/// A snapshot, until it is closed.
pub type Moment = Mutex<Option<Arc<Held<Snapshot>>>>;

/// What databases, column families and snapshots have in common: reads of one column family.
///
/// It is iterated over like a mapping, by keys, in order. It has no `len()`, because the engine
/// would have to read all entries to count them: `approximate_count()` is free.
#[pyclass(frozen, subclass, mapping, module = "flagstone")]
pub struct Reader {
    life: Arc<Life>,
    family: Held<Family>,
    moment: Option<Arc<Moment>>,
    /// In a family with user timestamps: as of which one it reads.
    stamp: Option<Stamp>,
}

impl Reader {
    /// Reads a family as of now.
    pub fn now(life: Arc<Life>, family: Family) -> Self {
        Self { life, family: Held::new(family), moment: None, stamp: None }
    }

    /// Reads a family as of a snapshot.
    pub fn at(life: Arc<Life>, family: Family, moment: Arc<Moment>) -> Self {
        Self { life, family: Held::new(family), moment: Some(moment), stamp: None }
    }

    pub fn life(&self) -> &Arc<Life> {
        &self.life
    }

    pub fn family(&self) -> &Family {
        self.family.part()
    }

    pub fn moment(&self) -> Option<&Arc<Moment>> {
        self.moment.as_ref()
    }

    /// Reads, detached from the interpreter.
    pub fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&View) -> flagstone::Result<T> + Send,
    ) -> PyResult<T> {
        self.life.check(py)?;
        let family = self.family();
        let read = |view: &View| match &self.stamp {
            Some(stamp) => read(&view.as_of(stamp)),
            None => read(view),
        };
        let Some(snapshot) = self.snapshot(py)? else {
            return wait(py, || read(family));
        };
        wait(py, || read(&snapshot.part().family(family)?))
    }

    fn value(&self, py: Python<'_>, key: &[u8]) -> PyResult<Option<flagstone::Value>> {
        self.read(py, |view| view.get(key))
    }

    /// The value of a key, copied.
    pub fn copied<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.value(py, key)?.map(|value| PyBytes::new(py, &value)))
    }

    /// The snapshot that it reads, if it is not closed.
    pub fn snapshot(&self, py: Python<'_>) -> PyResult<Option<Arc<Held<Snapshot>>>> {
        let Some(moment) = &self.moment else { return Ok(None) };
        let snapshot = lock(moment).clone();
        snapshot.map(Some).ok_or_else(|| error(py, Class::Closed, "the snapshot is closed"))
    }
}

/// What a mapping raises for a key that is not there.
pub fn missing(py: Python<'_>, key: &[u8]) -> PyErr {
    PyKeyError::new_err(PyBytes::new(py, key).unbind())
}

#[pymethods]
impl Reader {
    /// The name of the column family.
    #[getter]
    fn name(&self) -> &str {
        self.family().name()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Input) -> PyResult<Bound<'py, PyBytes>> {
        self.copied(py, &key)?.ok_or_else(|| missing(py, &key))
    }

    fn __contains__(&self, py: Python<'_>, key: Input) -> PyResult<bool> {
        Ok(self.value(py, &key)?.is_some())
    }

    fn __len__(&self) -> PyResult<usize> {
        Err(PyTypeError::new_err(
            "counting all entries means reading them: sum(1 for _ in db) does; \
             approximate_count() is free",
        ))
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Iterator> {
        Iterator::begin(slf.get(), slf.py(), &Bounds::ALL, Items::Keys, false)
    }

    fn __reversed__(slf: &Bound<'_, Self>) -> PyResult<Iterator> {
        Iterator::begin(slf.get(), slf.py(), &Bounds::ALL, Items::Keys, true)
    }

    /// The value of `key`, or `default`.
    #[pyo3(signature = (key, default = None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Input,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.copied(py, &key)?.map(Bound::into_any).or(default))
    }

    /// The value of `key` and when it is gone, in seconds since 1970, or `None` if it never is.
    /// `None` alone if there is no value.
    #[pyo3(signature = (key, /))]
    fn get_with_expiry<'py>(
        &self,
        py: Python<'py>,
        key: Input,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Option<u64>)>> {
        let found = self.read(py, |view| view.get_with_expiry(&key))?;
        let seconds = |expiry: SystemTime| {
            expiry.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
        };
        Ok(found.map(|found| (PyBytes::new(py, &found.value), found.expiry.map(seconds))))
    }

    /// The value of `key` and the timestamp of its write, or `None`: in a column family whose
    /// comparator has user timestamps.
    #[pyo3(signature = (key, /))]
    fn get_with_timestamp<'py>(
        &self,
        py: Python<'py>,
        key: Input,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, u64)>> {
        let found = self.read(py, |view| view.get_with_timestamp(&key, &ReadOptions::default()))?;
        let Some((value, timestamp)) = found else { return Ok(None) };
        Ok(Some((PyBytes::new(py, &value), number(py, &timestamp)?)))
    }

    /// The same column family as of a user timestamp.
    #[pyo3(signature = (timestamp, /))]
    fn as_of(&self, timestamp: Stamp) -> Self {
        Self {
            life: Arc::clone(&self.life),
            family: Held::new(self.family().clone()),
            moment: self.moment.clone(),
            stamp: Some(timestamp),
        }
    }

    /// The columns of `key`, by their names, or `None`. A plain value is the column `b""`.
    #[pyo3(signature = (key, /))]
    fn get_entity<'py>(&self, py: Python<'py>, key: Input) -> PyResult<Option<Bound<'py, PyDict>>> {
        let columns = self.read(py, |view| view.get_entity(&key))?;
        columns.as_ref().map(|columns| shown(py, columns)).transpose()
    }

    /// The operands that wait to be merged into the value of `key`, oldest first, behind the value
    /// that is there. `Incomplete` if there are more than `at_most`.
    #[pyo3(signature = (key, /, *, at_most = 1000))]
    fn get_merge_operands<'py>(
        &self,
        py: Python<'py>,
        key: Input,
        at_most: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let operands = self.read(py, |view| view.get_merge_operands(&key, at_most))?;
        PyList::new(py, operands.iter().map(|operand| PyBytes::new(py, operand)))
    }

    /// The value of `key` without a copy, or `None`: `memoryview(value)` reads it where it lies.
    #[pyo3(signature = (key, /))]
    fn get_buffer(&self, py: Python<'_>, key: Input) -> PyResult<Option<Value>> {
        Ok(self.value(py, &key)?.map(Value::of))
    }

    /// The bytes of the value of `key` from position `start` up to `stop`, or `None` if there is no
    /// value. What lies behind the value's end is left out. Of a large value that is not compressed
    /// little more is read than that part.
    #[pyo3(signature = (key, start, stop, /))]
    fn get_part<'py>(
        &self,
        py: Python<'py>,
        key: Input,
        start: u64,
        stop: u64,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let part = self.read(py, |view| view.get_part(&key, start..stop))?;
        Ok(part.map(|part| PyBytes::new(py, &part.bytes)))
    }

    /// The values of several keys, or `None` for each that is not there, in the order of the keys,
    /// all as of one moment. Faster than one after the other.
    #[pyo3(signature = (keys, /))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys = keys.try_iter()?.map(|key| key?.extract()).collect::<PyResult<Vec<Input>>>()?;
        let values = self.read(py, |view| view.get_many(&keys))?;
        PyList::new(py, values.iter().map(|value| value.as_ref().map(|v| PyBytes::new(py, v))))
    }

    /// The entries with keys from `start` on and before `stop`, as pairs of key and value, in
    /// order.
    #[pyo3(signature = (start = None, stop = None))]
    fn range(slf: Bound<'_, Self>, start: Option<Input>, stop: Option<Input>) -> Range {
        Range::of(slf.unbind(), between(start, stop), Items::Entries)
    }

    /// The entries whose keys begin with `prefix`, as pairs of key and value, in order.
    #[pyo3(signature = (prefix, /))]
    fn prefix(slf: Bound<'_, Self>, prefix: Input) -> Range {
        Range::of(slf.unbind(), Bounds::Prefix(prefix.to_vec()), Items::Entries)
    }

    /// The keys, in order: all, those from `start` on and before `stop`, or those that begin with
    /// `prefix`. No value is read.
    #[pyo3(signature = (start = None, stop = None, *, prefix = None))]
    fn keys(
        slf: Bound<'_, Self>,
        start: Option<Input>,
        stop: Option<Input>,
        prefix: Option<Input>,
    ) -> PyResult<Range> {
        Ok(Range::of(slf.unbind(), bounds(start, stop, prefix)?, Items::Keys))
    }

    /// The values of these keys, in the order of the keys.
    #[pyo3(signature = (start = None, stop = None, *, prefix = None))]
    fn values(
        slf: Bound<'_, Self>,
        start: Option<Input>,
        stop: Option<Input>,
        prefix: Option<Input>,
    ) -> PyResult<Range> {
        Ok(Range::of(slf.unbind(), bounds(start, stop, prefix)?, Items::Values))
    }

    /// Pairs of key and value, in the order of the keys.
    #[pyo3(signature = (start = None, stop = None, *, prefix = None))]
    fn items(
        slf: Bound<'_, Self>,
        start: Option<Input>,
        stop: Option<Input>,
        prefix: Option<Input>,
    ) -> PyResult<Range> {
        Ok(Range::of(slf.unbind(), bounds(start, stop, prefix)?, Items::Entries))
    }
}
