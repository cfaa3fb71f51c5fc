//! Memtables of a database that another process writes: each has what one WAL holds for a family.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::base::{ColumnFamilyId, FileNumber};
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::tree::Tree;
use crate::db::tree::family_state::{FamilyState, Immutable};
use crate::options::FlushReason;

/// The memtables of one family.
pub(in crate::db) struct FollowedMemtables {
    /// Takes what is read next.
    mem: Arc<Generation>,
    /// The WAL that it has entries of.
    wal: FileNumber,
    /// Those before, oldest first, each with its WAL.
    older: VecDeque<(FileNumber, Arc<Generation>)>,
}

impl FollowedMemtables {
    /// No entries yet; the first will be of this WAL or a later one.
    pub(in crate::db) fn new(mem: Arc<Generation>, wal: FileNumber) -> Self {
        Self { mem, wal, older: VecDeque::new() }
    }

    /// The memtable that takes what is read next.
    pub(in crate::db) fn mem(&self) -> &Arc<Generation> {
        &self.mem
    }

    /// Lets go of what the family's tables have: that of WALs below `log_number`.
    pub(in crate::db) fn without_flushed(
        mut self,
        log_number: FileNumber,
        fresh: impl FnOnce() -> Arc<Generation>,
    ) -> Self {
        self.older.retain(|(wal, _)| *wal >= log_number);
        if self.wal < log_number && !self.mem.is_empty() {
            self.mem = fresh();
        }
        self
    }

    /// What the state knows of the family.
    pub(in crate::db) fn into_state(self, family: Arc<Family>) -> FamilyState {
        let mut known = FamilyState::new(family, self.mem, self.wal);
        let older = self.older.into_iter();
        known.immutable = older
            .map(|(wal, mem)| Immutable {
                mem,
                wal,
                seal: 0,
                flushing: false,
                reason: FlushReason::Recovery,
            })
            .collect();
        known
    }
}

/// What is read next is of this WAL: each memtable with entries is followed by an empty one.
pub(in crate::db) fn begin_followed_wal(
    tree: &Tree,
    wal: FileNumber,
    fresh: impl Fn(&Family) -> Arc<Generation>,
) {
    let mut state = tree.state.lock();
    for known in state.families.values_mut() {
        if !known.mem.is_empty() {
            let mem = std::mem::replace(&mut known.mem, fresh(&known.family));
            let (wal, seal) = (known.mem_wal, 0);
            known.immutable.push_back(Immutable {
                mem,
                wal,
                seal,
                flushing: false,
                reason: FlushReason::Recovery,
            });
        }
        known.mem_wal = wal;
    }
}

/// The memtables of all families that name blob files.
pub(in crate::db) fn memtables_with_blobs(tree: &Tree) -> Vec<Arc<Generation>> {
    let state = tree.state.lock();
    let memtables = state.families.values().flat_map(FamilyState::generations);
    memtables.filter(|mem| !mem.blobs.is_empty()).cloned().collect()
}

/// The blob files of all families.
pub(in crate::db) fn blob_files_of_versions(tree: &Tree) -> BTreeSet<FileNumber> {
    let state = tree.state.lock();
    let families = state.versions.families();
    families.flat_map(|family| family.current.blob_files.keys().copied()).collect()
}

/// The memtables of all families, for the next state.
pub(in crate::db) fn followed_memtables(
    tree: &Tree,
) -> BTreeMap<ColumnFamilyId, FollowedMemtables> {
    let state = tree.state.lock();
    let memtables = state.families.iter().map(|(id, known)| {
        let older = known.immutable.iter().map(|older| (older.wal, older.mem.clone()));
        let (mem, wal) = (known.mem.clone(), known.mem_wal);
        (*id, FollowedMemtables { mem, wal, older: older.collect() })
    });
    memtables.collect()
}
