//! Entries in order: what is to be iterated over, and iterators.

use std::collections::VecDeque;
use std::ops;
use std::sync::{Arc, Mutex, TryLockError};

use flagstone::{Entries, Entry, Keys, View};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::Input;
use crate::errors::{Class, error};
use crate::life::{Held, Life, wait};
use crate::reader::Reader;

/// The most entries that an iterator reads at once, while it is detached from the interpreter.
const AHEAD_MAX: usize = 128;

/// The bytes of keys and values after which an iterator reads no further ahead.
const AHEAD_BYTES: usize = 64 << 10;

/// The keys of a range.
pub enum Bounds {
    Between(Option<Vec<u8>>, Option<Vec<u8>>),
    Prefix(Vec<u8>),
}

impl Bounds {
    /// All entries.
    pub const ALL: Self = Self::Between(None, None);
}

/// The keys from `start` on and before `stop`.
pub fn between(start: Option<Input>, stop: Option<Input>) -> Bounds {
    let owned = |key: Option<Input>| key.map(|key| key.to_vec());
    Bounds::Between(owned(start), owned(stop))
}

/// The keys from `start` on and before `stop`, or those with a prefix.
pub fn bounds(
    start: Option<Input>,
    stop: Option<Input>,
    prefix: Option<Input>,
) -> PyResult<Bounds> {
    match prefix {
        None => Ok(between(start, stop)),
        Some(prefix) if start.is_none() && stop.is_none() => Ok(Bounds::Prefix(prefix.to_vec())),
        Some(_) => Err(PyTypeError::new_err("start and stop, or a prefix; not both")),
    }
}

/// What an iterator gives of each entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Items {
    Entries,
    Keys,
    Values,
}

/// Entries in order of their keys.
///
/// It may be iterated over any number of times. Each `iter()` and `reversed()` sees the database as
/// of its own beginning, or as of the snapshot that the range comes from.
#[pyclass(frozen, module = "flagstone")]
pub struct Range {
    reader: Py<Reader>,
    bounds: Bounds,
    items: Items,
}

impl Range {
    pub fn of(reader: Py<Reader>, bounds: Bounds, items: Items) -> Self {
        Self { reader, bounds, items }
    }
}

#[pymethods]
impl Range {
    fn __iter__(&self, py: Python<'_>) -> PyResult<Iterator> {
        Iterator::begin(self.reader.get(), py, &self.bounds, self.items, false)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Iterator> {
        Iterator::begin(self.reader.get(), py, &self.bounds, self.items, true)
    }

    fn __repr__(&self) -> String {
        let items = match self.items {
            Items::Entries => "items",
            Items::Keys => "keys",
            Items::Values => "values",
        };
        let words = |key: &[u8]| format!("b'{}'", key.escape_ascii());
        let end = |key: &Option<Vec<u8>>| key.as_deref().map_or("None".to_string(), words);
        let bounds = match &self.bounds {
            Bounds::Between(start, stop) => format!("from {} to {}", end(start), end(stop)),
            Bounds::Prefix(prefix) => format!("with prefix {}", words(prefix)),
        };
        format!("<flagstone.Range of {items}, {bounds}>")
    }
}

enum Source {
    Entries(Entries),
    Keys(Keys),
}

/// What an iterator has read and not yet given.
struct Running {
    source: Source,
    items: Items,
    is_reversed: bool,
    ready: VecDeque<Entry>,
    /// How many entries are read at once the next time.
    ahead: usize,
    has_ended: bool,
}

impl Running {
    fn step(&mut self) -> Option<flagstone::Result<Entry>> {
        let of_key = |key| (key, Vec::new());
        match (&mut self.source, self.is_reversed) {
            (Source::Entries(entries), false) => entries.next(),
            (Source::Entries(entries), true) => entries.next_back(),
            (Source::Keys(keys), false) => keys.next().map(|key| key.map(of_key)),
            (Source::Keys(keys), true) => keys.next_back().map(|key| key.map(of_key)),
        }
    }

    /// Reads ahead, twice as far each time. After an error the source has ended.
    fn read_ahead(&mut self) -> flagstone::Result<()> {
        let mut bytes = 0;
        while self.ready.len() < self.ahead && bytes < AHEAD_BYTES {
            match self.step() {
                Some(entry) => {
                    let entry = entry?;
                    bytes += entry.0.len() + entry.1.len();
                    self.ready.push_back(entry);
                }
                None => {
                    self.has_ended = true;
                    break;
                }
            }
        }
        self.ahead = (self.ahead * 2).min(AHEAD_MAX);
        Ok(())
    }
}

/// Gives entries one by one. It keeps the files that it may read until it is closed or
/// deallocated. One thread at a time may use it.
#[pyclass(frozen, module = "flagstone")]
pub struct Iterator {
    life: Arc<Life>,
    state: Mutex<State>,
}

/// An iterator's state: what runs, until it is closed; and an error that comes after what is ready.
struct State {
    running: Option<Held<Running>>,
    error: Option<PyErr>,
}

impl Iterator {
    /// Begins to iterate over what `reader` sees now.
    pub fn begin(
        reader: &Reader,
        py: Python<'_>,
        bounds: &Bounds,
        items: Items,
        is_reversed: bool,
    ) -> PyResult<Self> {
        let entries = reader.read(py, |view| Ok(open(view, bounds)))?;
        Ok(Self::over(Arc::clone(reader.life()), entries, items, is_reversed))
    }

    /// Iterates over these entries of a database.
    pub fn over(life: Arc<Life>, entries: Entries, items: Items, is_reversed: bool) -> Self {
        let source = match items {
            Items::Keys => Source::Keys(entries.keys()),
            Items::Entries | Items::Values => Source::Entries(entries),
        };
        let running = Running {
            source,
            items,
            is_reversed,
            ready: VecDeque::new(),
            ahead: 1,
            has_ended: false,
        };
        let state = State { running: Some(Held::new(running)), error: None };
        Self { life, state: Mutex::new(state) }
    }

    /// Uses the state, if no other thread does.
    fn with<T>(&self, py: Python<'_>, run: impl FnOnce(&mut State) -> PyResult<T>) -> PyResult<T> {
        match self.state.try_lock() {
            Ok(mut state) => run(&mut state),
            Err(TryLockError::Poisoned(state)) => run(&mut state.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(error(py, Class::Busy, "the iterator is in use by another thread"))
            }
        }
    }
}

/// The entries of a view within bounds.
pub fn open(view: &View, bounds: &Bounds) -> Entries {
    match bounds {
        Bounds::Prefix(prefix) => view.prefix(prefix),
        Bounds::Between(start, stop) => {
            let start = start.as_deref().map_or(ops::Bound::Unbounded, ops::Bound::Included);
            let stop = stop.as_deref().map_or(ops::Bound::Unbounded, ops::Bound::Excluded);
            view.range::<&[u8]>((start, stop))
        }
    }
}

fn item(py: Python<'_>, items: Items, entry: &Entry) -> PyResult<Py<PyAny>> {
    let (key, value) = entry;
    Ok(match items {
        Items::Keys => PyBytes::new(py, key).into_any().unbind(),
        Items::Values => PyBytes::new(py, value).into_any().unbind(),
        Items::Entries => {
            let pair = [PyBytes::new(py, key), PyBytes::new(py, value)];
            PyTuple::new(py, pair)?.into_any().unbind()
        }
    })
}

impl State {
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Some(held) = &mut self.running else {
            return Err(error(py, Class::Closed, "the iterator is closed"));
        };
        let running = held.part_mut();
        if running.ready.is_empty() && !running.has_ended && self.error.is_none() {
            self.error = wait(py, || running.read_ahead()).err();
        }
        let running = held.part_mut();
        match running.ready.pop_front() {
            Some(entry) => item(py, running.items, &entry).map(Some),
            None => {
                running.has_ended = true;
                self.error.take().map_or(Ok(None), Err)
            }
        }
    }
}

#[pymethods]
impl Iterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.life.check(py)?;
        self.with(py, |state| state.next(py))
    }

    /// Releases the files that the iterator keeps. What comes after is `Closed`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let running = self.with(py, |state| Ok(state.running.take()))?;
        drop(running);
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
