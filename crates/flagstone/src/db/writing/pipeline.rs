//! The commit pipeline: what writers share.

use std::sync::Arc;

use crate::base::sync::AtomicBool;
use crate::base::{CombiningLock, SnapshotList};
use crate::db::background::Background;
use crate::db::context::Context;
use crate::db::disk::Disk;
use crate::db::limits::Limits;
use crate::db::reading::Reader;
use crate::db::tables::Tables;
use crate::db::tree::{Below, Tree};
use crate::db::wal_space::WalSpace;
use crate::db::write_control::WriteControl;
use crate::db::writing::wal_sync::WalSync;
use crate::db::writing::write::Commit;
use crate::memtable::ArenaPool;

/// The way of a write from its caller to the memtables.
pub(in crate::db) struct Pipeline {
    pub(super) context: Arc<Context>,
    pub(super) tree: Arc<Tree>,
    pub(super) disk: Arc<Disk>,
    pub(super) limits: Arc<Limits>,
    pub(super) tables: Arc<Tables>,
    pub(super) reader: Arc<Reader>,
    pub(super) snapshots: Arc<SnapshotList>,
    pub(super) arenas: Arc<ArenaPool>,
    pub(super) background: Arc<Background>,
    pub(in crate::db) commit: CombiningLock<Commit>,
    pub(in crate::db) wal_sync: WalSync,
    pub(in crate::db) wal_space: Arc<WalSpace>,
    /// How fast writers may be.
    pub(in crate::db) control: Arc<WriteControl>,
    /// Something was written without the WAL since the database was opened, be it flushed by now or
    /// not.
    pub(in crate::db) unlogged: AtomicBool,
}

impl Pipeline {
    pub(in crate::db) fn new(
        below: Below,
        tree: Arc<Tree>,
        reader: Arc<Reader>,
        arenas: Arc<ArenaPool>,
    ) -> Self {
        Self {
            context: below.context,
            tree,
            disk: below.disk,
            limits: below.limits,
            tables: below.tables,
            reader,
            snapshots: below.snapshots,
            arenas,
            background: below.background,
            commit: CombiningLock::default(),
            wal_sync: WalSync::default(),
            wal_space: below.wal_space,
            control: below.control,
            unlogged: AtomicBool::new(false),
        }
    }
}
