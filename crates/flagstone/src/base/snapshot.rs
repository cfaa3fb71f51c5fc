//! Snapshots: sequence numbers that compaction must go on serving.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use super::ids::SequenceNumber;
use super::sync::{AtomicU64, Mutex, Ordering};

/// The live snapshots of one database.
///
/// **Invariant.** A sequence number is read and registered in one critical section, and flush and compaction read
/// the list in another, after everything in their inputs was published: so what a job may drop is invisible to
/// every snapshot that is registered later.
#[derive(Default)]
pub struct SnapshotList {
    /// The last sequence number that readers see.
    pub published: AtomicU64,
    live: Mutex<BTreeMap<SequenceNumber, Held>>,
    /// What the oldest snapshot was (the last sequence number, if none was left) when one was last released; 0 before.
    released: AtomicU64,
}

#[derive(Clone, Copy)]
struct Held {
    count: usize,
    since_unix_seconds: u64,
    taken_at: &'static Location<'static>,
}

/// The snapshot that keeps the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldestSnapshot {
    /// The last sequence number that it sees.
    pub sequence: SequenceNumber,
    /// When it was taken, in seconds since 1970; where several were taken of one sequence number, the first.
    pub since_unix_seconds: u64,
    /// Who took it.
    pub taken_at: &'static Location<'static>,
}

impl SnapshotList {
    /// An empty list.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Registers a snapshot at the published sequence number, for the caller.
    #[track_caller]
    pub fn take(self: &Arc<Self>, unix_seconds: u64) -> Snapshot {
        let mut live = self.live.lock();
        let sequence = self.published.load(Ordering::Acquire);
        let held = Held { count: 0, since_unix_seconds: unix_seconds, taken_at: Location::caller() };
        live.entry(sequence).or_insert(held).count += 1;
        Snapshot(Arc::new(Registered { sequence, list: self.clone() }))
    }

    /// The live sequence numbers, ascending, each once.
    pub fn sequences(&self) -> Vec<SequenceNumber> {
        self.live.lock().keys().copied().collect()
    }

    /// How many snapshots are live.
    pub fn count(&self) -> usize {
        self.live.lock().values().map(|held| held.count).sum()
    }

    /// The oldest snapshot.
    pub fn oldest(&self) -> Option<OldestSnapshot> {
        self.live.lock().first_key_value().map(|(sequence, held)| OldestSnapshot {
            sequence: *sequence,
            since_unix_seconds: held.since_unix_seconds,
            taken_at: held.taken_at,
        })
    }

    /// Below this, entries may have become garbage when a snapshot was released; 0 if none ever was.
    pub fn released(&self) -> SequenceNumber {
        self.released.load(Ordering::Relaxed)
    }

    fn release(&self, sequence: SequenceNumber) {
        let mut live = self.live.lock();
        let held = live.get_mut(&sequence).expect("a registered snapshot is in the list");
        held.count -= 1;
        if held.count == 0 {
            live.remove(&sequence);
        }
        let oldest = live.first_key_value().map(|(sequence, _)| *sequence);
        let oldest = oldest.unwrap_or_else(|| self.published.load(Ordering::Acquire));
        self.released.store(oldest, Ordering::Relaxed);
    }
}

/// A consistent view of the database as of one sequence number.
///
/// Cheap to clone; the versions that it sees are kept until the last clone is dropped.
#[derive(Clone)]
pub struct Snapshot(Arc<Registered>);

struct Registered {
    sequence: SequenceNumber,
    list: Arc<SnapshotList>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.list.release(self.sequence);
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
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_lives_until_its_last_clone() {
        let list = SnapshotList::new();
        list.published.store(7, Ordering::Release);
        let first = list.take(100);
        let second = list.take(200);
        list.published.store(9, Ordering::Release);
        let newer = list.take(300);
        let oldest = list.oldest().unwrap();
        assert_eq!((oldest.sequence, oldest.since_unix_seconds, oldest.taken_at.file()), (7, 100, file!()));
        assert_eq!((list.sequences(), list.count()), (vec![7, 9], 3));
        drop(first);
        assert_eq!(list.sequences(), [7, 9]);
        let clone = second.clone();
        drop(second);
        assert_eq!(list.sequences(), [7, 9]);
        drop((clone, newer));
        assert_eq!((list.sequences(), list.oldest(), list.released()), (vec![], None, 9));
    }
}
