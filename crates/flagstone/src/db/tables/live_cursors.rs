//! The iterators that there are: since when, made where, and what they read.
//!
//! A cursor is entered when it is made, and leaves when it is dropped. The iterators that have it
//! one after another (`super::parked`) only note when they were made: a store, and where the one
//! before was made elsewhere a lock that nobody else wants.
//!
//! **Thread safety.** One list for each of some threads, behind a lock that is held for one entry;
//! who looks takes one after the other. What is found of an iterator is as of about now: its cursor
//! may change hands meanwhile.

use std::panic::Location;
use std::sync::{Arc, Weak};

use crate::base::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};
use crate::base::{STRIPES, own_stripe};
use crate::db::family::{Family, SuperVersion};

/// All cursors of one database.
pub(in crate::db) struct LiveCursors {
    lists: Box<[List]>,
}

/// Not on a cache line with another.
#[derive(Default)]
#[repr(align(128))]
struct List(Mutex<Vec<Arc<Entry>>>);

struct Entry {
    list: usize,
    /// Its place in the list; changed under the list's lock.
    position: AtomicUsize,
    family: Weak<Family>,
    reads: Weak<SuperVersion>,
    /// When the iterator was made that has the cursor now, in microseconds of the clock; 0 while it
    /// is parked.
    since_us: AtomicU64,
    made_at: Mutex<&'static Location<'static>>,
}

/// An iterator that is in use.
pub(in crate::db) struct InUse {
    pub(in crate::db) since_us: u64,
    pub(in crate::db) made_at: &'static Location<'static>,
    pub(in crate::db) family: Arc<Family>,
    pub(in crate::db) reads: Arc<SuperVersion>,
}

/// When and where an iterator was made.
#[derive(Clone, Copy)]
pub(in crate::db) struct Origin {
    pub(in crate::db) since_us: u64,
    pub(in crate::db) made_at: &'static Location<'static>,
}

/// A cursor's entry, until it is dropped.
pub(in crate::db) struct Registered {
    entry: Arc<Entry>,
    origin: Origin,
    all: Arc<LiveCursors>,
}

impl LiveCursors {
    /// No cursors.
    pub(in crate::db) fn new() -> Arc<Self> {
        let lists = (0..STRIPES).map(|_| List::default()).collect();
        Arc::new(Self { lists })
    }

    /// Enters a cursor that an iterator begins with.
    pub(in crate::db) fn register(
        self: &Arc<Self>,
        family: &Arc<Family>,
        reads: &Arc<SuperVersion>,
        origin: Origin,
    ) -> Registered {
        let list = own_stripe();
        let entry = Arc::new(Entry {
            list,
            position: AtomicUsize::new(0),
            family: Arc::downgrade(family),
            reads: Arc::downgrade(reads),
            since_us: AtomicU64::new(origin.since_us.max(1)),
            made_at: Mutex::new(origin.made_at),
        });
        let mut entries = self.lists[list].0.lock();
        entry.position.store(entries.len(), Ordering::Relaxed);
        entries.push(entry.clone());
        drop(entries);
        Registered { entry, origin, all: self.clone() }
    }

    /// Those that iterators have now.
    pub(in crate::db) fn in_use(&self) -> Vec<InUse> {
        let mut found = Vec::new();
        for list in &self.lists {
            // To let go of a super version is work that needs no lock.
            let entries: Vec<_> = list.0.lock().clone();
            found.extend(entries.iter().filter_map(|entry| {
                let since_us = entry.since_us.load(Ordering::Relaxed);
                let (family, reads) = (entry.family.upgrade()?, entry.reads.upgrade()?);
                let made_at = *entry.made_at.lock();
                (since_us > 0).then_some(InUse { since_us, made_at, family, reads })
            }));
        }
        found
    }
}

impl Registered {
    /// Another iterator has the cursor from now on.
    #[inline]
    pub(in crate::db) fn begin(&mut self, origin: Origin) {
        if !std::ptr::eq(self.origin.made_at, origin.made_at) {
            *self.entry.made_at.lock() = origin.made_at;
        }
        self.origin = origin;
        self.entry.since_us.store(origin.since_us.max(1), Ordering::Relaxed);
    }

    /// No iterator has it.
    #[inline]
    pub(in crate::db) fn rest(&self) {
        self.entry.since_us.store(0, Ordering::Relaxed);
    }

    /// Of the iterator that has the cursor.
    pub(in crate::db) fn origin(&self) -> Origin {
        self.origin
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut entries = self.all.lists[self.entry.list].0.lock();
        let position = self.entry.position.load(Ordering::Relaxed);
        entries.swap_remove(position);
        if let Some(moved) = entries.get(position) {
            moved.position.store(position, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
