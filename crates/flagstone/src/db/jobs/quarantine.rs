//! Damaged files are set aside, so that the rest of the database goes on.
//!
//! 1. A compaction that cannot read an input (a checksum that does not match, a file cut off or
//!    missing, a failing device, something that a later RocksDB writes), that met entries out of
//!    order, or range deletions of one start that no table can hold, gives up. The table stays
//!    marked as an input of a compaction, so that no other picks it; of a blob file, the tables
//!    among the inputs that refer to it. That ends with the next opening; of range deletions, once
//!    the oldest snapshot is another, since they need not be so many then. Blob files to which they
//!    refer cannot be emptied until then: these are not waited for, and others are.
//! 2. The database is not poisoned: nothing that is written went wrong. Flushes and the other
//!    compactions go on. Writers no longer wait for compactions of that family: those that would
//!    let them go on may never come.
//! 3. A read that meets damage fails; nothing is answered from what is older. What a lookup or a
//!    scan meets is noted here, too.
//!
//! Tables of level 0 that are newer than one set aside stay in level 0, merged with one another:
//! below it they would be taken for older. FIFO compaction drops a table that was set aside, or
//! that it cannot read, when its turn comes.

use std::sync::Arc;

use crate::base::Error;
use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::tree::damage::may_be_damage;
use crate::options::DamagedFile;

impl Db {
    /// The damaged files that lookups, scans and compactions have met since the database was
    /// opened. A file that was mended or restored is in use again after the next opening;
    /// [`crate::db::salvage`] saves what the others hold.
    ///
    /// A table whose error is `NotSupported` need not be damaged: no compaction takes it, or this
    /// engine cannot read it. The error says what helps, if anything does.
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        self.inner().tree.note_suspects();
        self.inner().tree.damaged_files()
    }

    /// Takes note of a damaged file that a lookup has met.
    pub(in crate::db) fn note_damage(&self, family: &ColumnFamily, error: &Error) {
        self.inner().tree.note_damage(&family.0, error);
    }
}

/// So many errors wait to be noted at most; what is left out is met again.
const REPORTS_MAX: usize = 64;

/// Errors of cursors, who do not know the engine's state. Whoever asks for damaged files takes note
/// of them, and each round of background work.
#[derive(Default)]
pub(in crate::db) struct DamageReports {
    met: Mutex<Vec<(Arc<Family>, Error)>>,
    any: AtomicBool,
}

impl DamageReports {
    /// A cursor over this family has met this error.
    #[cold]
    pub(in crate::db) fn add(&self, family: &Arc<Family>, error: &Error) {
        if !may_be_damage(error) {
            return;
        }
        let mut met = self.met.lock();
        let is_known = met.iter().any(|(_, known)| known.path() == error.path());
        if !is_known && met.len() < REPORTS_MAX {
            met.push((family.clone(), error.clone()));
            self.any.store(true, Ordering::Release);
        }
    }

    pub(in crate::db) fn take(&self) -> Vec<(Arc<Family>, Error)> {
        if self.any.load(Ordering::Acquire) && self.any.swap(false, Ordering::AcqRel) {
            std::mem::take(&mut *self.met.lock())
        } else {
            Vec::new()
        }
    }
}
