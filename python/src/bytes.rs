//! Bytes that Python gives.

use std::ops::Deref;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView};

/// A key, a value or an operand: any object with the buffer protocol. A `bytes` object, which
/// never changes, is used where it lies; all others are copied, because another thread may change
/// them during the call.
pub struct Input(PyBackedBytes);

impl<'a, 'py> FromPyObject<'a, 'py> for Input {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self(bytes.to_owned().into()));
        }
        let py = object.py();
        let Ok(view) = PyMemoryView::from(&object) else {
            let name = object.get_type().name()?;
            let advice = if name == "str" { "; encode it first" } else { "" };
            let message = format!("a bytes-like object is required, not '{name}'{advice}");
            return Err(PyTypeError::new_err(message));
        };
        let copied = view.call_method0(pyo3::intern!(py, "tobytes"))?;
        Ok(Self(copied.cast_into::<PyBytes>()?.into()))
    }
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Input {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
