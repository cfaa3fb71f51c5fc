//! How much space the WALs take, and how much they may.

use crate::base::sync::AtomicU64;

/// Bytes of the WALs, which writers look at without a lock.
pub(in crate::db) struct WalSpace {
    /// Those of the WALs before the active one.
    pub(in crate::db) older_bytes: AtomicU64,
    /// The number of the oldest WAL.
    pub(in crate::db) oldest: AtomicU64,
    /// Those of the active WAL, where there is a cap.
    pub(in crate::db) active_bytes: AtomicU64,
    /// Bytes of all at which memtables are flushed for their sake.
    pub(in crate::db) limit: AtomicU64,
    /// Bytes that all may have.
    pub(in crate::db) cap: AtomicU64,
    /// Bytes that the active WAL was to reserve, and found no room for.
    pub(in crate::db) reserve_missing: AtomicU64,
}

impl WalSpace {
    pub(in crate::db) fn new() -> Self {
        Self {
            older_bytes: AtomicU64::new(0),
            oldest: AtomicU64::new(0),
            active_bytes: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            cap: AtomicU64::new(u64::MAX),
            reserve_missing: AtomicU64::new(0),
        }
    }
}
