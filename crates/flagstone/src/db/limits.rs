//! What follows from the options of all families together.

use crate::base::sync::{AtomicU64, Mutex};
use crate::sst::RANGE_DELETION_BYTES_MAX;

/// Figures that writers and jobs look at without a lock.
pub(super) struct Limits {
    /// Held from the look at all options until what follows from them counts; taken after all other
    /// locks.
    pub(super) update: Mutex<()>,
    /// Bytes of the memtables that are written to at which the largest are switched.
    pub(super) memtable_bytes: AtomicU64,
    pub(super) largest_write_buffer: AtomicU64,
    /// The smallest value that any family puts into a blob file when it is committed.
    pub(super) direct_blob_min: AtomicU64,
    /// How many bytes of range deletions go into one table.
    pub(super) range_deletion_bytes_max: AtomicU64,
}

impl Limits {
    pub(super) fn new() -> Self {
        Self {
            update: Mutex::default(),
            memtable_bytes: AtomicU64::new(u64::MAX),
            largest_write_buffer: AtomicU64::new(0),
            direct_blob_min: AtomicU64::new(u64::MAX),
            range_deletion_bytes_max: AtomicU64::new(RANGE_DELETION_BYTES_MAX as u64),
        }
    }
}
