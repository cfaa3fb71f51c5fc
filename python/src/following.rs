//! Databases that another process writes, followed for reading.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use flagstone::Db;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::bytes::Input;
use crate::database::{self, Database};
use crate::errors::{Class, error};
use crate::life::{Held, lock, wait};

enum Following {
    Secondary(Box<flagstone::Secondary>),
    Follower(Box<flagstone::Follower>),
}

impl Following {
    fn now(&self) -> flagstone::Result<Db> {
        match self {
            Self::Secondary(secondary) => secondary.now(),
            Self::Follower(follower) => follower.now(),
        }
    }
}

/// A database that another process writes, Flagstone or RocksDB, followed for reading: made by
/// `open_secondary` or `open_follower`.
///
/// It shows the state as of the last `catch_up()`; a follower catches up by itself, too.
#[pyclass(frozen, module = "flagstone")]
pub struct Secondary {
    path: PathBuf,
    following: Mutex<Option<Arc<Held<Following>>>>,
}

impl Secondary {
    fn of(path: PathBuf, following: Following) -> Self {
        Self { path, following: Mutex::new(Some(Arc::new(Held::new(following)))) }
    }

    fn following(&self, py: Python<'_>) -> PyResult<Arc<Held<Following>>> {
        let path = self.path.display();
        let Some(following) = lock(&self.following).clone() else {
            let message = format!("the database in {path} is no longer followed");
            return Err(error(py, Class::Closed, message));
        };
        if following.is_of_parent() {
            let message = format!(
                "following the database in {path} began before this process was forked; begin after it"
            );
            return Err(error(py, Class::Forked, message));
        }
        Ok(following)
    }
}

/// Follows the database in the directory `path`, its logs included. `directory` is the
/// secondary's own, and stays empty. Options are as those of `Database`.
#[pyfunction]
#[pyo3(signature = (path, directory, /, *, column_families = None, **options))]
pub fn open_secondary(
    py: Python<'_>,
    path: PathBuf,
    directory: PathBuf,
    column_families: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Secondary> {
    let builder = database::builder(&path, false, column_families, options)?;
    let secondary = wait(py, || builder.open_secondary(directory))?;
    Ok(Secondary::of(path, Following::Secondary(Box::new(secondary))))
}

/// Follows the tables of the database in the directory `path`, without its logs, through links to
/// its files, or copies of them, in `directory`. It catches up by itself, every
/// `follower_refresh_catchup_period_ms`. Options are as those of `Database`.
#[pyfunction]
#[pyo3(signature = (path, directory, /, *, column_families = None, **options))]
pub fn open_follower(
    py: Python<'_>,
    path: PathBuf,
    directory: PathBuf,
    column_families: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Secondary> {
    let builder = database::builder(&path, false, column_families, options)?;
    let follower = wait(py, || builder.open_follower(directory))?;
    Ok(Secondary::of(path, Following::Follower(Box::new(follower))))
}

#[pymethods]
impl Secondary {
    /// Where the database is that it follows.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Goes on to what the other process has written by now. Whether there was anything new.
    fn catch_up(&self, py: Python<'_>) -> PyResult<bool> {
        let following = self.following(py)?;
        wait(py, || match following.part() {
            Following::Secondary(secondary) => secondary.catch_up(),
            Following::Follower(follower) => follower.catch_up(),
        })
    }

    /// The database as of the last time that it caught up: a state that never changes, and refuses
    /// writes.
    fn now<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Database>> {
        let following = self.following(py)?;
        let db = wait(py, || following.part().now())?;
        Bound::new(py, database::initializer(db, false))
    }

    /// The value of `key` as of the last time that it caught up, or `default`.
    #[pyo3(signature = (key, default = None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Input,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let following = self.following(py)?;
        let value = wait(py, || following.part().now()?.get(&key))?;
        Ok(value.map(|value| PyBytes::new(py, &value).into_any()).or(default))
    }

    /// Ends the following, once no other thread uses it. States that `now()` gave may be read on. A
    /// second time does nothing.
    fn close(&self) {
        let following = lock(&self.following).take();
        drop(following);
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        format!("<flagstone.Secondary of '{}'>", self.path.display().to_string().escape_debug())
    }
}
