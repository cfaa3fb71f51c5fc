//! What follows from the options of all families together.

use std::sync::Arc;

use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::cache::WriteBuffers;
use crate::sst::RANGE_DELETION_BYTES_MAX;

/// What the options of all families together amount to.
pub(super) struct Figures {
    /// Bytes of the memtables that are written to at which the largest are switched.
    pub(super) memtable_bytes: u64,
    pub(super) largest_write_buffer: u64,
    /// The smallest value that any family puts into a blob file when it is committed.
    pub(super) direct_blob_min: u64,
    /// The shortest and the longest time for which a family keeps times of its writes.
    pub(super) preserved_seconds: Option<(u64, u64)>,
}

/// Figures that writers and jobs look at without a lock.
pub(super) struct Limits {
    /// Held from the look at all options until what follows from them counts; taken after all other
    /// locks.
    update: Mutex<()>,
    /// Bytes of the memtables that are written to at which the largest are switched.
    memtable_bytes: AtomicU64,
    largest_write_buffer: AtomicU64,
    /// The smallest value that any family puts into a blob file when it is committed.
    direct_blob_min: AtomicU64,
    /// The shortest and the longest time for which a family keeps times of its writes, in seconds;
    /// 0 if none does.
    preserved_seconds: (AtomicU64, AtomicU64),
    /// How many bytes of range deletions go into one table.
    range_deletion_bytes_max: AtomicU64,
    /// The memtables of this database among those of several that have one limit.
    write_buffers: Option<Arc<WriteBuffers>>,
}

impl Limits {
    pub(super) fn new() -> Self {
        Self {
            update: Mutex::default(),
            memtable_bytes: AtomicU64::new(u64::MAX),
            largest_write_buffer: AtomicU64::new(0),
            direct_blob_min: AtomicU64::new(u64::MAX),
            preserved_seconds: Default::default(),
            range_deletion_bytes_max: AtomicU64::new(RANGE_DELETION_BYTES_MAX as u64),
            write_buffers: None,
        }
    }

    /// These limits, and one that several databases have together, if there is one.
    pub(super) fn with_write_buffers(self, write_buffers: Option<Arc<WriteBuffers>>) -> Self {
        Self { write_buffers, ..self }
    }

    /// The memtables of this database among those of several that have one limit.
    pub(super) fn write_buffers(&self) -> Option<&Arc<WriteBuffers>> {
        self.write_buffers.as_ref()
    }

    /// Has `work` look at all options and [`set`](Self::set) what follows from them, one thread at
    /// a time, so that the last look decides.
    pub(super) fn update(&self, work: impl FnOnce()) {
        let _one_at_a_time = self.update.lock();
        work();
    }

    /// Replaces the figures.
    pub(super) fn set(&self, figures: &Figures) {
        self.memtable_bytes.store(figures.memtable_bytes, Ordering::Relaxed);
        self.largest_write_buffer.store(figures.largest_write_buffer, Ordering::Relaxed);
        self.direct_blob_min.store(figures.direct_blob_min, Ordering::Relaxed);
        let (shortest, longest) = figures.preserved_seconds.unwrap_or_default();
        self.preserved_seconds.0.store(shortest, Ordering::Relaxed);
        self.preserved_seconds.1.store(longest, Ordering::Relaxed);
    }

    /// Bytes of the memtables that are written to at which the largest are switched.
    #[inline]
    pub(super) fn memtable_bytes(&self) -> u64 {
        self.memtable_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn largest_write_buffer(&self) -> u64 {
        self.largest_write_buffer.load(Ordering::Relaxed)
    }

    /// The smallest value that any family puts into a blob file when it is committed.
    #[inline]
    pub(super) fn direct_blob_min(&self) -> u64 {
        self.direct_blob_min.load(Ordering::Relaxed)
    }

    /// The shortest and the longest time, in seconds, for which a family keeps times of its writes.
    pub(super) fn preserved_seconds(&self) -> Option<(u64, u64)> {
        let shortest = self.preserved_seconds.0.load(Ordering::Relaxed);
        let longest = self.preserved_seconds.1.load(Ordering::Relaxed);
        (shortest > 0).then_some((shortest, longest))
    }

    /// How many bytes of range deletions go into one table.
    pub(super) fn range_deletion_bytes_max(&self) -> u64 {
        self.range_deletion_bytes_max.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn set_range_deletion_bytes_max(&self, bytes: u64) {
        self.range_deletion_bytes_max.store(bytes, Ordering::Relaxed);
    }
}
