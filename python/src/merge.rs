//! Merge operators written in Python.
//!
//! The engine calls them on the thread of a read, and on threads of its own during flushes and
//! compactions. An exception makes the operator refuse its operands: the read fails with an error
//! whose cause is the exception; a flush or compaction keeps the operands as they are, and the
//! exception goes to `sys.unraisablehook` (`life::wait`).

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use flagstone::Error;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::bytes::Input;

thread_local! {
    /// Whether a call from Python waits on this thread, and can raise an exception.
    static IS_CALLED: Cell<bool> = const { Cell::new(false) };
    /// The first exception of an operator during the call, until the call raises it.
    static EXCEPTION: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// The last exception of an operator in words, until the engine asks why it refused.
    static REASON: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A call from Python into the engine, while it lasts.
pub struct Called {
    was_called: bool,
}

impl Called {
    /// Notes that the call begins.
    pub fn begin() -> Self {
        Self { was_called: IS_CALLED.replace(true) }
    }

    /// Notes that it has ended, and gives the exception that an operator raised on this thread.
    pub fn end(self) -> Option<PyErr> {
        EXCEPTION.take()
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        IS_CALLED.set(self.was_called);
    }
}

/// A merge operator written in Python, for the option `merge_operator`.
///
/// `merge(key, existing, operands)` returns the new value. `existing` is the value before the
/// operands, or `None`; `operands` is a list, from the oldest to the newest. All are `bytes`.
/// `None` for a result means that the operands make no sense: the read raises `Corruption`.
///
/// `partial(key, operands)`, if given, combines operands without the value before them, or returns
/// `None`. The result is then one of the operands of a later call.
///
/// Both may be called by any thread, and must not use the database. `name` goes to the OPTIONS
/// file and to each table: a database that was written with one operator is not to be opened with
/// another.
#[pyclass(frozen, module = "flagstone")]
pub struct MergeOperator {
    name: String,
    merge: Arc<Py<PyAny>>,
    partial: Option<Arc<Py<PyAny>>>,
}

#[pymethods]
impl MergeOperator {
    #[new]
    #[pyo3(signature = (name, merge, partial = None))]
    fn new(
        name: String,
        merge: &Bound<'_, PyAny>,
        partial: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if name.is_empty() {
            return Err(PyValueError::new_err("a merge operator needs a name"));
        }
        if !merge.is_callable() || partial.is_some_and(|partial| !partial.is_callable()) {
            return Err(PyTypeError::new_err("a merge operator is made of callables"));
        }
        let shared = |object: &Bound<'_, PyAny>| Arc::new(object.clone().unbind());
        Ok(Self { name, merge: shared(merge), partial: partial.map(shared) })
    }

    /// The operator's name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        format!("<flagstone.MergeOperator '{}'>", self.name.escape_debug())
    }
}

impl MergeOperator {
    /// The operator as the engine calls it.
    pub fn operator(&self) -> Arc<dyn flagstone::MergeOperator> {
        Arc::new(Operator {
            name: self.name.clone(),
            merge: Arc::clone(&self.merge),
            partial: self.partial.clone(),
        })
    }
}

struct Operator {
    name: String,
    merge: Arc<Py<PyAny>>,
    partial: Option<Arc<Py<PyAny>>>,
}

/// What a callable makes of operands.
fn combined(
    py: Python<'_>,
    callable: &Py<PyAny>,
    key: &[u8],
    existing: Option<Option<&[u8]>>,
    operands: &[&[u8]],
) -> PyResult<Option<Vec<u8>>> {
    let key = PyBytes::new(py, key);
    let operands = PyList::new(py, operands.iter().map(|operand| PyBytes::new(py, operand)))?;
    let result = match existing {
        Some(existing) => {
            let existing = existing.map(|value| PyBytes::new(py, value));
            callable.bind(py).call1((key, existing, operands))?
        }
        None => callable.bind(py).call1((key, operands))?,
    };
    if result.is_none() {
        return Ok(None);
    }
    Ok(Some(result.extract::<Input>()?.to_vec()))
}

/// Keeps the first exception for the call that waits, and reports all others.
fn note(py: Python<'_>, exception: PyErr, callable: &Py<PyAny>) {
    REASON.set(Some(exception.to_string()));
    if IS_CALLED.get() && EXCEPTION.with_borrow(Option::is_none) {
        EXCEPTION.set(Some(exception));
    } else {
        exception.write_unraisable(py, Some(callable.bind(py)));
    }
}

impl Operator {
    fn call(
        &self,
        callable: &Py<PyAny>,
        key: &[u8],
        existing: Option<Option<&[u8]>>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        REASON.set(None);
        let attached = Python::try_attach(|py| {
            combined(py, callable, key, existing, operands).unwrap_or_else(|exception| {
                note(py, exception, callable);
                None
            })
        });
        attached.unwrap_or_else(|| {
            REASON.set(Some("the Python interpreter has ended".to_string()));
            None
        })
    }
}

impl flagstone::MergeOperator for Operator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        self.call(&self.merge, key, Some(existing), operands)
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.call(self.partial.as_ref()?, key, None, operands)
    }

    fn refusal(&self, key: &[u8], operand_count: usize) -> Error {
        let why = match REASON.take() {
            Some(reason) => format!("failed with {reason}"),
            None => "returned None".to_string(),
        };
        Error::corruption(format!(
            "merge operator '{}' {why}, for the {operand_count} operands of key '{}'",
            self.name,
            key.escape_ascii()
        ))
    }
}
