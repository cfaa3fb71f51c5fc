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

use crate::base::Error;
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::db::tree::damage;
use crate::options::{DamagedFile, KeyFault};

impl Db {
    /// The damaged files that lookups, scans and compactions have met since the database was
    /// opened. A file that was mended or restored is in use again after the next opening;
    /// [`crate::db::salvage`] saves what the others hold.
    ///
    /// A table whose error is `NotSupported` need not be damaged: no compaction takes it, or this
    /// engine cannot read it. The error says what helps, if anything does.
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        damage::note_suspects(&self.inner().tree);
        damage::damaged_files(&self.inner().tree)
    }

    /// Takes note of a damaged file that a lookup has met.
    pub(in crate::db) fn note_damage(&self, family: &ColumnFamily, error: &Error) {
        damage::note_damage(&self.inner().tree, &family.0, error);
    }

    /// What is wrong with keys that flushes and compactions have met since the database was opened
    /// and that are still there, of at most
    /// [`KEY_FAULTS_MAX`](crate::options::KEY_FAULTS_MAX) keys; `flagstone.key.faults` counts all.
    pub fn key_faults(&self) -> Vec<KeyFault> {
        damage::key_faults(&self.inner().tree)
    }
}
