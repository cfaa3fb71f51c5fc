//! What is damaged, for a program to ask (`tree/damage.rs`).

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
