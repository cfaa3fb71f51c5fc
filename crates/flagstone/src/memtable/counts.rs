//! What was added to a memtable, counted where each writer meets no other.

use crate::base::SequenceNumber;
use crate::base::sync::{AtomicU64, Ordering};

/// What one addition adds to the counts.
#[derive(Clone, Copy)]
pub(super) struct Addition {
    pub(super) sequence: SequenceNumber,
    /// Point entries.
    pub(super) entries: u64,
    /// Point entries that are deletions.
    pub(super) deletes: u64,
    /// Bytes of internal keys and values.
    pub(super) data_size: u64,
}

/// The sum of additions.
pub(super) struct Counts {
    entries: AtomicU64,
    deletes: AtomicU64,
    data_size: AtomicU64,
    /// Larger than any sequence number if nothing was added.
    first_sequence: AtomicU64,
    largest_sequence: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            entries: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            data_size: AtomicU64::new(0),
            first_sequence: AtomicU64::new(u64::MAX),
            largest_sequence: AtomicU64::new(0),
        }
    }
}

impl Counts {
    /// Counts an addition; other threads may do so, too.
    pub(super) fn add(&self, addition: &Addition) {
        self.entries.fetch_add(addition.entries, Ordering::Relaxed);
        self.deletes.fetch_add(addition.deletes, Ordering::Relaxed);
        self.data_size.fetch_add(addition.data_size, Ordering::Relaxed);
        self.first_sequence.fetch_min(addition.sequence, Ordering::Relaxed);
        self.largest_sequence.fetch_max(addition.sequence, Ordering::Relaxed);
    }

    /// Counts an addition, while no other thread does. It needs no locked instruction, which would
    /// wait until the entry itself is in the cache.
    #[inline]
    pub(super) fn add_alone(&self, addition: &Addition) {
        let bump = |counter: &AtomicU64, by: u64| {
            counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
        };
        bump(&self.entries, addition.entries);
        bump(&self.data_size, addition.data_size);
        if addition.deletes > 0 {
            bump(&self.deletes, addition.deletes);
        }
        if addition.sequence > self.largest_sequence.load(Ordering::Relaxed) {
            self.largest_sequence.store(addition.sequence, Ordering::Relaxed);
        }
        if addition.sequence < self.first_sequence.load(Ordering::Relaxed) {
            self.first_sequence.store(addition.sequence, Ordering::Relaxed);
        }
    }

    pub(super) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    pub(super) fn deletes(&self) -> u64 {
        self.deletes.load(Ordering::Relaxed)
    }

    pub(super) fn data_size(&self) -> u64 {
        self.data_size.load(Ordering::Relaxed)
    }

    pub(super) fn first_sequence(&self) -> SequenceNumber {
        self.first_sequence.load(Ordering::Relaxed)
    }

    pub(super) fn largest_sequence(&self) -> SequenceNumber {
        self.largest_sequence.load(Ordering::Relaxed)
    }
}
