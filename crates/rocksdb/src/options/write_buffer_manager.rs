//! One limit for the memtables of several databases.
//!
//! The engine limits the memtables of one database. So each database that is open has an equal part
//! of the limit, and all parts change when one is opened or closed.
//!
//! **Thread safety.** The list of databases and the parts each have a lock, so that usage can be
//! asked for while parts change. A part is set with the second one held: parts are those of one
//! list.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flagstone::db::Db;

use crate::cache::Cache;

/// Limits the memory of memtables. Clones are the same limit.
///
/// A change of the limit, and the opening and closing of a database that has it, change an option
/// of all of these databases: each writes its OPTIONS file.
#[derive(Clone)]
pub struct WriteBufferManager {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    parts: Mutex<()>,
}

struct State {
    buffer_size: u64,
    allow_stall: bool,
    next_id: u64,
    open: Vec<(u64, Db)>,
}

/// Keeps a database among those that have a part of the limit, until it is dropped. It holds the
/// database open.
pub(super) struct LimitedDatabase {
    shared: Arc<Shared>,
    id: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic leaves a list or a part half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// The bytes of one of `count` databases; 0 for no limit. The engine flushes at half of them,
    /// and lets writers wait at all.
    fn part(&self, count: usize) -> u64 {
        if self.buffer_size == 0 {
            return 0;
        }
        let times = if self.allow_stall { 1 } else { 2 };
        let all = self.buffer_size.saturating_mul(times);
        (all / count.max(1) as u64).max(1)
    }
}

impl Shared {
    /// Gives each database its part.
    fn divide(&self) {
        let _parts = locked(&self.parts);
        let (open, part) = {
            let state = locked(&self.state);
            (state.open.clone(), state.part(state.open.len()))
        };
        for (_, db) in &open {
            // One that is closed, or open for reading, has no use for it.
            if let Err(error) = db.set_db_options(&[("db_write_buffer_size", &part.to_string())]) {
                tracing::debug!(%error, "a database keeps its part of the write buffers");
            }
        }
    }
}

impl WriteBufferManager {
    /// A limit of `buffer_size` bytes for all databases that have it together, each open one an
    /// equal part; 0 for no limit. With `allow_stall` memtables are flushed at half of it, and
    /// writers wait at all of it; without, memtables are flushed at all of it, and writers wait at
    /// twice as much.
    pub fn new_write_buffer_manager(buffer_size: usize, allow_stall: bool) -> Self {
        let state =
            State { buffer_size: buffer_size as u64, allow_stall, next_id: 0, open: Vec::new() };
        let shared = Shared { state: Mutex::new(state), parts: Mutex::new(()) };
        Self { shared: Arc::new(shared) }
    }

    /// The same: memtables are not charged to the cache.
    pub fn new_write_buffer_manager_with_cache(
        buffer_size: usize,
        allow_stall: bool,
        _cache: Cache,
    ) -> Self {
        Self::new_write_buffer_manager(buffer_size, allow_stall)
    }

    /// Bytes of the memtables of these databases.
    pub fn get_usage(&self) -> usize {
        let open = locked(&self.shared.state).open.clone();
        open.iter().map(|(_, db)| db.memory_usage().memtables() as usize).sum()
    }

    /// The limit in bytes.
    pub fn get_buffer_size(&self) -> usize {
        locked(&self.shared.state).buffer_size as usize
    }

    /// Changes the limit.
    pub fn set_buffer_size(&self, new_size: usize) {
        locked(&self.shared.state).buffer_size = new_size as u64;
        self.shared.divide();
    }

    /// Whether there is a limit.
    pub fn enabled(&self) -> bool {
        locked(&self.shared.state).buffer_size > 0
    }

    /// Changes where writers wait.
    pub fn set_allow_stall(&self, allow_stall: bool) {
        locked(&self.shared.state).allow_stall = allow_stall;
        self.shared.divide();
    }

    /// What one more database would have.
    pub(super) fn next_part(&self) -> u64 {
        let state = locked(&self.shared.state);
        state.part(state.open.len() + 1)
    }

    /// Gives a database its part.
    pub(super) fn limit(&self, db: &Db) -> LimitedDatabase {
        let id = {
            let mut state = locked(&self.shared.state);
            state.next_id += 1;
            let id = state.next_id;
            state.open.push((id, db.clone()));
            id
        };
        self.shared.divide();
        LimitedDatabase { shared: Arc::clone(&self.shared), id }
    }
}

impl Drop for LimitedDatabase {
    fn drop(&mut self) {
        let left = {
            let mut state = locked(&self.shared.state);
            let at = state.open.iter().position(|(id, _)| *id == self.id);
            at.map(|at| state.open.swap_remove(at))
        };
        // The last handle closes the database, which frees its memtables.
        drop(left);
        self.shared.divide();
    }
}
