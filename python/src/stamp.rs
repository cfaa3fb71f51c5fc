//! User timestamps.

use pyo3::prelude::*;

use crate::errors::{Class, error};

/// The timestamp of a write or a read: a number below 2^64, as comparators named `....u64ts` have
/// it.
pub struct Stamp([u8; 8]);

impl<'a, 'py> FromPyObject<'a, 'py> for Stamp {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.extract::<u64>()?.to_le_bytes()))
    }
}

impl AsRef<[u8]> for Stamp {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The number of a timestamp.
pub fn number(py: Python<'_>, timestamp: &[u8]) -> PyResult<u64> {
    let bytes = timestamp.try_into().map_err(|_| {
        let message = format!("a timestamp of {} bytes is no number", timestamp.len());
        error(py, Class::NotSupported, message)
    })?;
    Ok(u64::from_le_bytes(bytes))
}
