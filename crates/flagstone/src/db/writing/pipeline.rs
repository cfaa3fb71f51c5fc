//! The commit pipeline: what writers share.

use std::sync::Arc;

use super::wal_space::WalSpace;
use super::wal_sync::WalSync;
use super::write::Commit;
use super::write_control::WriteControl;
use crate::base::CombiningLock;
use crate::base::sync::AtomicBool;

/// The way of a write from its caller to the memtables.
pub(in crate::db) struct Pipeline {
    pub(in crate::db) commit: CombiningLock<Commit>,
    pub(in crate::db) wal_sync: WalSync,
    pub(in crate::db) wal_space: Arc<WalSpace>,
    /// How fast writers may be.
    pub(in crate::db) control: Arc<WriteControl>,
    /// Something was written without the WAL since the database was opened, be it flushed by now or not.
    pub(in crate::db) unlogged: AtomicBool,
}

impl Pipeline {
    pub(in crate::db) fn new() -> Self {
        Self {
            commit: CombiningLock::default(),
            wal_sync: WalSync::default(),
            wal_space: Arc::new(WalSpace::new()),
            control: Arc::default(),
            unlogged: AtomicBool::new(false),
        }
    }
}
