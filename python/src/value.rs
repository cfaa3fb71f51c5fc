//! A value that Python reads where it lies.
//!
//! **Invariants**
//! 1. The bytes of a value never move and never change as long as the `flagstone::Value` lives: it
//!    owns a vector that is not touched, or shares immutable memory by counting its owners.
//! 2. A [`Value`] drops its `flagstone::Value` when the Python object is deallocated, and not
//!    before: the class is frozen and has no method that takes it out.
//! 3. Each buffer holds a reference to the Python object, which the interpreter takes back when the
//!    buffer is released.
#![expect(unsafe_code, reason = "the buffer protocol hands out a pointer")]

use std::ffi::c_int;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::bytes::Input;
use crate::life::Held;

/// A value that is read where it lies: `memoryview(value)` copies nothing.
///
/// It may share a block of the cache, which it keeps in memory as long as it or a `memoryview` of
/// it lives. It outlives the database.
#[pyclass(frozen, module = "flagstone")]
pub struct Value(Held<flagstone::Value>);

impl Value {
    /// Shares a value with Python.
    pub fn of(value: flagstone::Value) -> Self {
        Self(Held::new(value))
    }
}

#[pymethods]
impl Value {
    fn __len__(&self) -> usize {
        self.0.part().len()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = other.py();
        match other.extract::<Input>() {
            Ok(other) => {
                Ok((**self.0.part() == *other).into_pyobject(py)?.to_owned().into_any().unbind())
            }
            Err(_) => Ok(py.NotImplemented()),
        }
    }

    fn __repr__(&self) -> String {
        format!("<flagstone.Value of {} bytes>", self.__len__())
    }

    /// Lends the bytes, read-only.
    ///
    /// # Safety
    /// `view` points to a `Py_buffer` to be filled, or is null: the interpreter calls this.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes: &[u8] = slf.get().0.part();
        let length = ffi::Py_ssize_t::try_from(bytes.len())
            .map_err(|_| PyBufferError::new_err("the value is too long for a buffer"))?;
        // SAFETY: `view` is as the caller promises, and null is refused by the function. The bytes
        // stay where they are and as they are until `slf` is deallocated (invariants 1 and 2),
        // which the buffer prevents (invariant 3: the function takes a reference to `slf`). The
        // pointer is handed out as one to constant bytes: a buffer is read-only with 1 for
        // `readonly`, and the function refuses flags that ask for more.
        let filled = unsafe {
            let start = bytes.as_ptr().cast_mut().cast();
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags)
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
