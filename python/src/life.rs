//! Whether a database may still be used, and how its parts end.
//!
//! A fork copies a process without the threads that flush, compact and release locks. The child
//! therefore uses nothing that was made before the fork, and drops nothing of it either: closing
//! would wait for threads that are not there, and write to files that the parent writes to.
//!
//! When the interpreter ends, databases that are still open are closed while threads of the engine
//! may still call merge operators written in Python.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use flagstone::Db;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Class, error, raised};
use crate::merge;

/// How many forks lie between this process and the one in which the module was loaded.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// The databases that may be open.
static OPEN: Mutex<Vec<Weak<Life>>> = Mutex::new(Vec::new());

/// Locks, whether or not a thread has panicked meanwhile: no state here is half changed.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a call of the engine detached from the interpreter, so that other threads go on.
///
/// An exception of a merge operator is the cause of the error that the engine made of it. If the
/// call succeeds in spite of it, as a compaction does, the exception goes to `sys.unraisablehook`;
/// what is no `Exception`, as `KeyboardInterrupt`, is raised in any case.
pub fn wait<T: Send>(
    py: Python<'_>,
    call: impl FnOnce() -> flagstone::Result<T> + Send,
) -> PyResult<T> {
    let called = merge::Called::begin();
    let result = py.detach(call);
    match (result, called.end()) {
        (Ok(result), None) => Ok(result),
        (Ok(result), Some(exception)) if exception.is_instance_of::<PyException>(py) => {
            exception.write_unraisable(py, None);
            Ok(result)
        }
        (Ok(_), Some(interrupt)) => Err(interrupt),
        (Err(error), exception) => Err(raised(py, &error, exception)),
    }
}

/// A part of the engine that may wait when it is dropped. Released detached from the interpreter,
/// and not at all after a fork.
pub struct Held<T: Send + 'static> {
    part: Option<T>,
    born: u64,
}

impl<T: Send + 'static> Held<T> {
    /// Holds a part.
    pub fn new(part: T) -> Self {
        Self { part: Some(part), born: FORKS.load(Ordering::Relaxed) }
    }

    /// The part.
    pub fn part(&self) -> &T {
        self.part.as_ref().expect("only a drop takes it")
    }

    /// Whether it was made before this process was forked.
    pub fn is_of_parent(&self) -> bool {
        self.born != FORKS.load(Ordering::Relaxed)
    }

    /// The part, for good. Not to be called in a forked child.
    pub fn into_part(mut self) -> T {
        self.part.take().expect("only a drop takes it")
    }

    /// The part, to be changed.
    pub fn part_mut(&mut self) -> &mut T {
        self.part.as_mut().expect("only a drop takes it")
    }
}

impl<T: Send + 'static> Drop for Held<T> {
    fn drop(&mut self) {
        let part = self.part.take();
        if self.is_of_parent() {
            std::mem::forget(part);
            return;
        }
        let mut part = Some(part);
        let taken = &mut part;
        // Where the interpreter has ended there is nothing to detach from.
        let _ = Python::try_attach(|py| py.detach(move || drop(taken.take())));
    }
}

/// The life of a database, from its opening to its close.
pub struct Life {
    db: Held<Db>,
    has_locks: bool,
    is_closed: AtomicBool,
}

impl Life {
    /// Begins the life of a database that was just opened.
    pub fn begin(db: Db, has_locks: bool) -> Arc<Self> {
        let is_closed = AtomicBool::new(false);
        let life = Arc::new(Self { db: Held::new(db), has_locks, is_closed });
        let mut open = lock(&OPEN);
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&life));
        life
    }

    /// The database. `Closed` or `Forked` if it may not be used.
    pub fn db(&self, py: Python<'_>) -> PyResult<&Db> {
        self.check(py).map(|()| self.db.part())
    }

    /// Whether its transactions lock keys.
    pub fn has_locks(&self) -> bool {
        self.has_locks
    }

    /// Where the database is, whether open or not.
    pub fn path(&self) -> &std::path::Path {
        self.db.part().path()
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Refuses use after a close (`Closed`) or in a forked child (`Forked`).
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_of_parent() {
            let path = self.path().display();
            let message = format!(
                "the database in {path} was opened before this process was forked; \
                 open it after the fork, in one process"
            );
            return Err(error(py, Class::Forked, message));
        }
        if self.is_closed() {
            let message = format!("the database in {} is closed", self.path().display());
            return Err(error(py, Class::Closed, message));
        }
        Ok(())
    }

    /// Closes the database. A second call does nothing.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_of_parent() || self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        wait(py, || self.db.part().close())
    }

    fn is_of_parent(&self) -> bool {
        self.db.is_of_parent()
    }
}

#[pyfunction]
fn note_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Closes what is still open when the interpreter ends.
#[pyfunction]
fn close_all(py: Python<'_>) {
    let open: Vec<_> = lock(&OPEN).iter().filter_map(Weak::upgrade).collect();
    for life in open {
        if let Err(error) = life.close(py) {
            error.write_unraisable(py, None);
        }
    }
}

/// Learns of forks and of the end of the interpreter.
pub fn watch(py: Python<'_>) -> PyResult<()> {
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", wrap_pyfunction!(note_fork, py)?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(close_all, py)?,))?;
    Ok(())
}
