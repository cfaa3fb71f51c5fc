//! Wide columns: values that are made of named parts.

use flagstone::WideColumns;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::bytes::Input;

/// Columns or entries that Python gives: a mapping, or pairs of name and value.
pub struct Pairs(Vec<(Input, Input)>);

impl Pairs {
    pub fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Pairs {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let is_mapping = object.hasattr("keys")?;
        let pairs = if is_mapping { object.call_method0("items")? } else { object.to_owned() };
        pairs.try_iter()?.map(|pair| pair?.extract()).collect::<PyResult<_>>().map(Self)
    }
}

/// Columns as Python sees them, in the order of their names.
pub fn shown<'py>(py: Python<'py>, columns: &WideColumns) -> PyResult<Bound<'py, PyDict>> {
    let shown = PyDict::new(py);
    for (name, value) in columns.iter() {
        shown.set_item(PyBytes::new(py, name), PyBytes::new(py, value))?;
    }
    Ok(shown)
}
