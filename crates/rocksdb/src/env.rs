//! The world that databases live in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// Files, time and threads: those of the operating system, or files in memory. Clones are the same
/// world.
///
/// Each database has threads of its own, as many as its `max_background_jobs` asks for, so pools
/// have no sizes here.
#[derive(Clone)]
pub struct Env {
    pub(crate) engine: flagstone::Env,
    /// Whether background threads give way to all others.
    gives_way: Arc<AtomicBool>,
    /// Whether their I/O does.
    has_idle_io: Arc<AtomicBool>,
}

impl Env {
    fn of(engine: flagstone::Env) -> Self {
        Self { engine, gives_way: Arc::default(), has_idle_io: Arc::default() }
    }

    /// The operating system's.
    ///
    /// # Errors
    /// None.
    pub fn new() -> Result<Self, Error> {
        Ok(Self::of(flagstone::Env::os()))
    }

    /// One with files in memory, which are gone when the last clone is dropped and the last
    /// database in it closed.
    ///
    /// # Errors
    /// None.
    pub fn mem_env() -> Result<Self, Error> {
        Ok(Self::of(flagstone::Env::memory()))
    }

    /// Whether databases that are opened from now on have threads of low priority.
    pub(crate) fn gives_way(&self) -> bool {
        self.gives_way.load(Ordering::Relaxed)
    }

    /// Whether databases that are opened from now on have threads whose I/O gives way.
    pub(crate) fn has_idle_io(&self) -> bool {
        self.has_idle_io.load(Ordering::Relaxed)
    }

    /// Has no effect: see [`Env`].
    pub fn set_background_threads(&mut self, _num_threads: i32) {}

    /// Has no effect: see [`Env`].
    pub fn set_high_priority_background_threads(&mut self, _n: i32) {}

    /// Has no effect: see [`Env`].
    pub fn set_low_priority_background_threads(&mut self, _n: i32) {}

    /// Has no effect: see [`Env`].
    pub fn set_bottom_priority_background_threads(&mut self, _n: i32) {}

    /// Returns at once: no thread outlives its database.
    pub fn join_all_threads(&mut self) {}

    /// The disk serves flushes and compactions of databases that are opened from now on only when
    /// no other thread wants it, but not while writers wait for them. Only on Linux, and for
    /// devices whose scheduler knows such classes.
    pub fn lower_thread_pool_io_priority(&mut self) {
        self.has_idle_io.store(true, Ordering::Relaxed);
    }

    /// The same as [`lower_thread_pool_io_priority`](Self::lower_thread_pool_io_priority).
    pub fn lower_high_priority_thread_pool_io_priority(&mut self) {
        self.lower_thread_pool_io_priority();
    }

    /// Flushes and compactions of databases that are opened from now on give way to all other
    /// threads that want the processor, but not while writers wait for them. Only on Linux.
    pub fn lower_thread_pool_cpu_priority(&mut self) {
        self.gives_way.store(true, Ordering::Relaxed);
    }

    /// The same as [`lower_thread_pool_cpu_priority`](Self::lower_thread_pool_cpu_priority).
    pub fn lower_high_priority_thread_pool_cpu_priority(&mut self) {
        self.lower_thread_pool_cpu_priority();
    }
}
