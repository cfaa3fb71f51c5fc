//! The range tombstones of a memtable.
//!
//! **Thread safety.** Additions and the making of the fragmented form happen under one lock; the finished form is read
//! without it. An addition empties the cache before it returns, so whoever learns of the deletion afterwards finds
//! either no cached form or one that holds it.

use std::sync::Arc;

use crate::base::sync::{ArcSwapOption, AtomicUsize, Mutex, Ordering};
use crate::base::{Comparator, FragmentedRangeTombstones, RangeTombstone};

#[derive(Default)]
pub(super) struct RangeDeletes {
    all: Mutex<Vec<RangeTombstone>>,
    count: AtomicUsize,
    memory: AtomicUsize,
    fragmented: ArcSwapOption<FragmentedRangeTombstones>,
}

impl RangeDeletes {
    pub(super) fn add(&self, tombstone: RangeTombstone) {
        let size = size_of::<RangeTombstone>() + tombstone.start.len() + tombstone.end.len();
        let mut all = self.all.lock();
        all.push(tombstone);
        self.fragmented.store(None);
        self.memory.fetch_add(size, Ordering::Relaxed);
        self.count.store(all.len(), Ordering::Release);
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Approximate heap bytes.
    pub(super) fn memory_usage(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    pub(super) fn fragmented(&self, comparator: &Comparator) -> Option<Arc<FragmentedRangeTombstones>> {
        if self.count() == 0 {
            return None;
        }
        if let Some(cached) = self.fragmented.load_full() {
            return Some(cached);
        }
        let all = self.all.lock();
        // Another reader may have been here first.
        if let Some(cached) = self.fragmented.load_full() {
            return Some(cached);
        }
        let made = Arc::new(FragmentedRangeTombstones::new(comparator, all.clone()));
        self.fragmented.store(Some(Arc::clone(&made)));
        Some(made)
    }
}
