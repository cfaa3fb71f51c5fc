//! Reads as of one moment.

use std::sync::{Arc, Mutex};

use pyo3::PyClassInitializer;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::life::{Held, Life, lock, wait};
use crate::reader::Reader;

/// All column families as of one moment. It reads `default`; `column_family(name)` is any other.
///
/// What it sees stays on the disk until it is closed, by `close()`, at the end of a `with`
/// statement, or when it is deallocated.
#[pyclass(frozen, extends = Reader, module = "flagstone")]
pub struct Snapshot;

/// Takes a snapshot.
pub fn take(py: Python<'_>, life: &Arc<Life>) -> PyResult<PyClassInitializer<Snapshot>> {
    let db = life.db(py)?;
    let snapshot = wait(py, || Ok(db.snapshot()))?;
    let moment = Arc::new(Mutex::new(Some(Arc::new(Held::new(snapshot)))));
    let reader = Reader::at(Arc::clone(life), (**db).clone(), moment);
    Ok(PyClassInitializer::from(reader).add_subclass(Snapshot))
}

#[pymethods]
impl Snapshot {
    /// A column family as of this moment.
    #[pyo3(signature = (name, /))]
    fn column_family(slf: &Bound<'_, Self>, name: &str) -> PyResult<Reader> {
        let reader = slf.as_super().get();
        let moment = Arc::clone(reader.moment().expect("a snapshot has a moment"));
        let db = reader.life().db(slf.py())?;
        let family = wait(slf.py(), || db.column_family(name))?;
        Ok(Reader::at(Arc::clone(reader.life()), family, moment))
    }

    /// Releases what the snapshot sees. Reads of it are then refused (`Closed`).
    fn close(slf: &Bound<'_, Self>) {
        let moment = slf.as_super().get().moment().expect("a snapshot has a moment");
        let held = lock(moment).take();
        drop(held);
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) {
        Self::close(slf);
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let path = slf.as_super().get().life().path().display().to_string();
        format!("<flagstone.Snapshot of '{}'>", path.escape_debug())
    }
}
