//! Cursors that nobody uses now.
//!
//! Most scans are short, and to set a cursor up (a child for each source, with its buffers) takes
//! as long as several of its steps. So a family keeps the cursors of some iterators that were
//! dropped, for the next ones.
//!
//! **Invariants.** A parked cursor belongs to the family's current super version, hence keeps
//! nothing alive that is not in use anyway: who replaces the super version clears the park
//! afterwards, and a cursor of an older one is not parked. So with the family's options, by which
//! cursors read. It holds no block. Once the park is closed it stays empty: cursors know their
//! family and would keep it alive.
//!
//! **Thread safety.** One lock, which nobody waits for to read: who finds it taken makes a new
//! cursor, or drops his own.

use std::any::Any;
use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::db::family::SuperVersion;

/// How many cursors a family keeps.
const KEPT: usize = 16;

/// A cursor that a family can keep.
pub(in crate::db) trait Parked: Any + Send {
    /// Whether it reads this super version.
    fn is_of(&self, current: &Arc<SuperVersion>) -> bool;

    /// Lets go of what is not needed to begin anew.
    fn rest(&mut self);
}

/// The cursors of one family.
#[derive(Default)]
pub(in crate::db) struct ParkedCursors(Mutex<Park>);

#[derive(Default)]
struct Park {
    closed: bool,
    cursors: Vec<Box<dyn Parked>>,
}

impl ParkedCursors {
    /// A cursor of that super version, if there is one.
    pub(in crate::db) fn take<C: Parked>(&self, current: &Arc<SuperVersion>) -> Option<Box<C>> {
        let mut park = self.0.try_lock()?;
        // One of an older super version is about to be cleared.
        let cursor: Box<dyn Any> = park.cursors.pop_if(|cursor| cursor.is_of(current))?;
        cursor.downcast().ok()
    }

    /// Keeps a cursor, if there is room and `is_current` holds.
    pub(in crate::db) fn park<C: Parked>(
        &self,
        mut cursor: Box<C>,
        is_current: impl FnOnce(&C) -> bool,
    ) {
        cursor.rest();
        if let Some(mut park) = self.0.try_lock()
            && !park.closed
            && park.cursors.len() < KEPT
            && is_current(&cursor)
        {
            park.cursors.push(cursor);
        }
    }

    /// Drops the cursors, after the super version or the options were replaced.
    pub(in crate::db) fn clear(&self) {
        let cleared = std::mem::take(&mut self.0.lock().cursors);
        drop(cleared);
    }

    /// Drops the cursors and keeps none from now on.
    pub(in crate::db) fn close(&self) {
        self.0.lock().closed = true;
        self.clear();
    }
}

#[cfg(test)]
mod tests;
