//! Snapshots.

use flagstone::base;

use crate::abi::{Handle, Lent, Tagged, make};
use crate::api::c_api;
use crate::db::Db;

/// A snapshot; none in a transaction without one, which reads the database as it is.
pub struct Snapshot {
    pub(crate) owned: Option<base::Snapshot>,
    /// That of a transaction. C frees such an object as plain memory, so that it owns nothing.
    pub(crate) lent: Lent<base::Snapshot>,
}

impl Handle for Snapshot {
    const NAME: &'static str = "rocksdb_snapshot_t";

    fn holds(&self) -> bool {
        self.engine().is_some()
    }
}

impl Snapshot {
    /// A new one.
    pub fn taken(db: &Db) -> Self {
        Self { owned: Some(db.engine().snapshot()), lent: Lent::nothing() }
    }

    /// The engine's.
    pub fn engine(&self) -> Option<&base::Snapshot> {
        self.owned.as_ref().or_else(|| self.lent.get())
    }
}

c_api! {
    fn rocksdb_create_snapshot(db: &Db) -> *const Tagged<Snapshot> {
        make(Snapshot::taken(db))
    }

    fn rocksdb_release_snapshot(_db: &Db, snapshot: own Snapshot) {
        drop(snapshot);
    }

    fn rocksdb_snapshot_get_sequence_number(snapshot: &Snapshot) -> u64 {
        snapshot.engine().map_or(0, base::Snapshot::sequence)
    }
}
