//! The classes of errors: one for each code of the engine, all below `flagstone.Error`.

use flagstone::{Code, SubCode};
use pyo3::exceptions::{PyException, PyOSError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule, PyTuple, PyType};

/// A class of errors; its number is its place in [`CLASSES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Error,
    NotFound,
    Corruption,
    NotSupported,
    InvalidArgument,
    IoError,
    Incomplete,
    Closed,
    TimedOut,
    Aborted,
    Busy,
    TryAgain,
    ColumnFamilyDropped,
    Forked,
    Expired,
}

/// A second base of the class, which is built in.
#[derive(Clone, Copy)]
enum Like {
    Nothing,
    Value,
    Os,
    Timeout,
}

/// Name, built-in base and documentation, in the order of [`Class`].
const CLASSES: [(&str, Like, &str); 15] = [
    ("Error", Like::Nothing, ERROR),
    ("NotFound", Like::Nothing, "A column family, a file or a database that does not exist."),
    ("Corruption", Like::Nothing, "Damaged files, or operands that a merge operator refused."),
    ("NotSupported", Like::Nothing, "The engine does not do this."),
    ("InvalidArgument", Like::Value, "A request that cannot be right, as an unknown option."),
    ("IOError", Like::Os, "A call of the operating system failed. `errno` says how."),
    ("Incomplete", Like::Nothing, "The call would have had to wait, and was told not to."),
    ("Closed", Like::Value, "The database, snapshot or iterator was closed."),
    ("TimedOut", Like::Timeout, "Something took too long."),
    ("Aborted", Like::Nothing, "Another operation took precedence."),
    ("Busy", Like::Nothing, "The database, or an iterator, is in use elsewhere."),
    ("TryAgain", Like::Nothing, "Repeating the operation may succeed."),
    ("ColumnFamilyDropped", Like::Nothing, "The column family was dropped."),
    ("Forked", Like::Nothing, "The database was opened by a parent of this process."),
    ("Expired", Like::Nothing, "The transaction took longer than its `expiration`."),
];

const ERROR: &str = "What the engine refuses or fails at: the base of all errors here.

`path` and `offset` say where it happened, if in a file. `subcode` is a finer reason.";

static TYPES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

fn types(py: Python<'_>) -> PyResult<&'static Vec<Py<PyType>>> {
    TYPES.get_or_try_init(py, || make(py))
}

fn make(py: Python<'_>) -> PyResult<Vec<Py<PyType>>> {
    let mut made: Vec<Py<PyType>> = Vec::with_capacity(CLASSES.len());
    for (name, like, text) in CLASSES {
        let first = match made.first() {
            Some(base) => base.bind(py).clone(),
            None => py.get_type::<PyException>(),
        };
        let second = match like {
            Like::Nothing => None,
            Like::Value => Some(py.get_type::<PyValueError>()),
            Like::Os => Some(py.get_type::<PyOSError>()),
            Like::Timeout => Some(py.get_type::<PyTimeoutError>()),
        };
        let bases = PyTuple::new(py, std::iter::once(first).chain(second).collect::<Vec<_>>())?;
        let members = PyDict::new(py);
        members.set_item("__module__", "flagstone")?;
        members.set_item("__doc__", text)?;
        if made.is_empty() {
            members.set_item("path", py.None())?;
            members.set_item("offset", py.None())?;
            members.set_item("subcode", py.None())?;
        }
        let class = py.get_type::<PyType>().call1((name, bases, members))?;
        made.push(class.cast_into::<PyType>()?.unbind());
    }
    Ok(made)
}

/// Adds the classes to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let types = types(module.py())?;
    for ((name, ..), class) in CLASSES.iter().zip(types) {
        module.add(*name, class.bind(module.py()))?;
    }
    Ok(())
}

/// An error of this class.
pub fn error(py: Python<'_>, class: Class, message: impl Into<String>) -> PyErr {
    match types(py) {
        Ok(types) => PyErr::from_type(types[class as usize].bind(py).clone(), (message.into(),)),
        Err(error) => error,
    }
}

/// Whether an exception is of this class.
pub fn is_of(py: Python<'_>, raised: &PyErr, class: Class) -> bool {
    types(py).is_ok_and(|types| raised.is_instance(py, types[class as usize].bind(py)))
}

fn class_of(code: Code) -> Class {
    match code {
        Code::NotFound => Class::NotFound,
        Code::Corruption => Class::Corruption,
        Code::NotSupported => Class::NotSupported,
        Code::InvalidArgument => Class::InvalidArgument,
        Code::IoError => Class::IoError,
        Code::Incomplete => Class::Incomplete,
        Code::ShutdownInProgress => Class::Closed,
        Code::TimedOut => Class::TimedOut,
        Code::Aborted => Class::Aborted,
        Code::Busy => Class::Busy,
        Code::TryAgain => Class::TryAgain,
        Code::ColumnFamilyDropped => Class::ColumnFamilyDropped,
        Code::Expired => Class::Expired,
        _ => Class::Error,
    }
}

/// What a failed call of the engine raises. `exception` is that of a merge operator written in
/// Python during the call: the cause of the error, if the engine made the error of it. What is no
/// `Exception` is raised itself.
pub fn raised(py: Python<'_>, error: &flagstone::Error, exception: Option<PyErr>) -> PyErr {
    let raised = self::error(py, class_of(error.code()), error.to_string());
    match exception {
        Some(exception) if !exception.is_instance_of::<PyException>(py) => return exception,
        Some(exception) if error.subcode() == SubCode::MergeOperatorFailed => {
            raised.set_cause(py, Some(exception));
        }
        Some(exception) => exception.write_unraisable(py, None),
        None => {}
    }
    // The error is worth more than what is told beside it.
    let _ = tell(raised.value(py), error);
    raised
}

fn tell(raised: &Bound<'_, PyAny>, error: &flagstone::Error) -> PyResult<()> {
    if let Some(path) = error.path() {
        raised.setattr("path", path.to_string_lossy())?;
    }
    if let Some(offset) = error.offset() {
        raised.setattr("offset", offset)?;
    }
    if error.subcode() != SubCode::None {
        raised.setattr("subcode", format!("{:?}", error.subcode()))?;
    }
    let source = std::error::Error::source(error);
    let of_system = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    let number = of_system.and_then(std::io::Error::raw_os_error);
    if let Some(number) = number.filter(|_| raised.is_instance_of::<PyOSError>()) {
        raised.setattr("errno", number)?;
    }
    Ok(())
}
