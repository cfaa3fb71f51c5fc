//! The tree: versions, families, and the jobs that run on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::family::{Family, FamilyState};
use super::state::State;
use crate::base::ColumnFamilyId;
use crate::base::sync::{Condvar, Mutex, RwLock};
use crate::manifest::{FileNumbers, VersionSet};

/// What changes as tables come and go.
pub(super) struct Tree {
    pub(super) state: Mutex<State>,
    /// By id; what handles and readers go through.
    pub(super) families: RwLock<BTreeMap<ColumnFamilyId, Arc<Family>>>,
    pub(super) file_numbers: Arc<FileNumbers>,
    /// Signalled when a worker changed the tree or failed.
    pub(super) progress: Condvar,
}

impl Tree {
    pub(super) fn new(versions: VersionSet, families: BTreeMap<ColumnFamilyId, FamilyState>) -> Self {
        let handles = families.iter().map(|(id, known)| (*id, known.family.clone())).collect();
        Self {
            file_numbers: versions.file_numbers().clone(),
            state: Mutex::new(State::new(versions, families)),
            families: RwLock::new(handles),
            progress: Condvar::new(),
        }
    }
}
