//! Snapshots: sequence numbers that compaction must go on serving.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::ids::SequenceNumber;
use super::sync::{AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Ordering};

/// The live snapshots of one database.
///
/// **Invariant.** A sequence number is read and registered in one critical section, and flush and
/// compaction read the list in another, after everything in their inputs was published: so what a
/// job may drop is invisible to every snapshot that is registered later.
#[derive(Default)]
pub struct SnapshotList {
    /// The last sequence number that readers see.
    pub published: AtomicU64,
    /// By what they see, and of one sequence number in the order in which they were taken.
    live: Mutex<BTreeMap<(SequenceNumber, u64), Origin>>,
    /// None may be taken; changed with `live` locked.
    is_shut: AtomicBool,
    /// Signalled when some may be taken again.
    opened: Condvar,
    /// What the oldest snapshot was (the last sequence number, if none was left) when one was last
    /// released; 0 before.
    released: AtomicU64,
}

#[derive(Clone, Copy)]
struct Origin {
    since_unix_seconds: u64,
    taken_at: &'static Location<'static>,
}

/// A snapshot that somebody holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSnapshot {
    /// The last sequence number that it sees.
    pub sequence: SequenceNumber,
    /// When it was taken, in seconds since 1970.
    pub since_unix_seconds: u64,
    /// Who took it.
    pub taken_at: &'static Location<'static>,
}

impl SnapshotList {
    /// An empty list.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Shows readers all writes up to a sequence number.
    #[inline]
    pub fn publish(&self, sequence: SequenceNumber) {
        if self.published.load(Ordering::Acquire) < sequence {
            self.published.fetch_max(sequence, Ordering::AcqRel);
        }
    }

    /// Registers a snapshot at the published sequence number, for the caller.
    #[track_caller]
    pub fn take(self: &Arc<Self>, unix_seconds: u64) -> Snapshot {
        let mut live = self.lock_open();
        let sequence = self.published.load(Ordering::Acquire);
        // After those of the same sequence number, which are the last ones: it never falls.
        let number = live.last_key_value().map_or(0, |(key, _)| key.1 + 1);
        let origin = Origin { since_unix_seconds: unix_seconds, taken_at: Location::caller() };
        live.insert((sequence, number), origin);
        Snapshot(Arc::new(Registered { sequence, number, list: self.clone() }))
    }

    /// The snapshots, once one may be taken.
    fn lock_open(&self) -> MutexGuard<'_, BTreeMap<(SequenceNumber, u64), Origin>> {
        let mut live = self.live.lock();
        while self.is_shut.load(Ordering::Relaxed) {
            self.opened.wait(&mut live);
        }
        live
    }

    /// If there is no snapshot, has those wait that want to take one, until the answer is dropped:
    /// what is about to change, older sequence numbers will see as well.
    pub fn keep_out(&self) -> Option<KeptOut<'_>> {
        let live = self.live.lock();
        let is_free = live.is_empty() && !self.is_shut.load(Ordering::Relaxed);
        is_free.then(|| {
            self.is_shut.store(true, Ordering::Relaxed);
            KeptOut(self)
        })
    }

    /// The live sequence numbers, ascending, each once.
    pub fn sequences(&self) -> Vec<SequenceNumber> {
        let mut sequences: Vec<_> =
            self.live.lock().keys().map(|(sequence, _)| *sequence).collect();
        sequences.dedup();
        sequences
    }

    /// How many snapshots are live.
    pub fn count(&self) -> usize {
        self.live.lock().len()
    }

    /// The oldest snapshot, which keeps the most.
    pub fn oldest(&self) -> Option<LiveSnapshot> {
        self.oldest_ones(1).pop()
    }

    /// The oldest snapshots, so many at most; the oldest first.
    pub fn oldest_ones(&self, most: usize) -> Vec<LiveSnapshot> {
        let live = self.live.lock();
        let oldest = live.iter().take(most).map(|((sequence, _), origin)| LiveSnapshot {
            sequence: *sequence,
            since_unix_seconds: origin.since_unix_seconds,
            taken_at: origin.taken_at,
        });
        oldest.collect()
    }

    /// Below this, entries may have become garbage when a snapshot was released; 0 if none ever
    /// was.
    pub fn released(&self) -> SequenceNumber {
        self.released.load(Ordering::Relaxed)
    }

    fn release(&self, sequence: SequenceNumber, number: u64) {
        let mut live = self.live.lock();
        live.remove(&(sequence, number)).expect("a registered snapshot is in the list");
        let oldest = live.first_key_value().map(|((sequence, _), _)| *sequence);
        let oldest = oldest.unwrap_or_else(|| self.published.load(Ordering::Acquire));
        self.released.store(oldest, Ordering::Relaxed);
    }
}

/// No snapshot is taken until this is dropped.
pub struct KeptOut<'a>(&'a SnapshotList);

impl Drop for KeptOut<'_> {
    fn drop(&mut self) {
        let live = self.0.live.lock();
        self.0.is_shut.store(false, Ordering::Relaxed);
        drop(live);
        self.0.opened.notify_all();
    }
}

/// A consistent view of the database as of one sequence number.
///
/// Cheap to clone; the versions that it sees are kept until the last clone is dropped.
#[derive(Clone)]
pub struct Snapshot(Arc<Registered>);

struct Registered {
    sequence: SequenceNumber,
    number: u64,
    list: Arc<SnapshotList>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.list.release(self.sequence, self.number);
    }
}

impl Snapshot {
    /// The last sequence number that the snapshot sees.
    pub fn sequence(&self) -> SequenceNumber {
        self.0.sequence
    }

    /// Whether the snapshot was taken from the database that `list` belongs to.
    pub fn belongs_to(&self, list: &Arc<SnapshotList>) -> bool {
        Arc::ptr_eq(&self.0.list, list)
    }
}

impl PartialEq for Snapshot {
    /// Whether both are the same snapshot, not only of the same sequence number.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Snapshot {}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({})", self.0.sequence)
    }
}

#[cfg(test)]
mod tests;
