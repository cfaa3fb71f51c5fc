//! Removing files that nothing uses any longer.
//!
//! A table or blob file leaves the tree with a version edit and turns up in the queue when the last
//! version that has it is dropped: no reader is left then. WALs go when the MANIFEST says that
//! nobody needs them. What a crash left behind is found by listing the directory when the database
//! is opened.

use crate::base::{Result, Sometimes};
use crate::db::jobs::{Jobs, remote};
use crate::db::tree::directories;
use crate::manifest::ObsoleteFile;

/// So many files a thread removes between two flushes: the next memtable may be waiting for it.
const REMOVED_BETWEEN_FLUSHES: usize = 8;

/// While more than so many files wait for the removal of others, no thread begins to replace more:
/// on a disk that is slow to remove they would become ever more.
const UNREMOVED_MAX: usize = 32;

impl Jobs {
    /// Removes the tables and blob files whose last user is gone; unless deletions are paused.
    pub(in crate::db) fn purge_obsolete_files(&self) {
        self.try_to_purge(usize::MAX);
    }

    /// The same, by a thread that goes on to flush.
    pub(in crate::db) fn purge_between_flushes(&self) {
        self.try_to_purge(REMOVED_BETWEEN_FLUSHES);
    }

    /// Whether another thread is removing files, and is behind. Who is not alone with that may
    /// flush meanwhile; who is, does it.
    pub(in crate::db) fn removal_is_behind(&self) -> bool {
        let (gathered, _) = self.disk.count_obsolete();
        if gathered <= UNREMOVED_MAX || self.try_to_purge(usize::MAX) {
            return false;
        }
        let is_at_it = || {
            let (gathered, taken) = self.disk.count_obsolete();
            // Who has the lock only to find that deletions are paused is not.
            taken > 0 && is_behind(gathered, taken)
        };
        if !is_at_it() {
            return false;
        }
        self.disk.await_removal();
        // Who is at it still, and puts back what could not be removed after this look, sees that
        // somebody waits.
        is_at_it()
    }

    /// Whether nobody else was at it.
    fn try_to_purge(&self, at_most: usize) -> bool {
        // Here, and not where the last reader lets go of a table, since that takes milliseconds.
        self.disk.uncache_retired();
        // Who finds it taken leaves the work to whoever comes next.
        let is_alone = self.disk.try_removal(|| self.purge(at_most));
        if is_alone {
            self.end_purge();
        }
        is_alone
    }

    /// The same, and waits for whoever is at it: what a caller has asked for has then freed its
    /// space.
    pub(in crate::db) fn purge_all_obsolete_files(&self) {
        self.disk.uncache_retired();
        self.disk.removal(|| self.purge(usize::MAX));
        self.end_purge();
    }

    /// Once the lock is free: who finds it taken again looks no further. Who waited is told also
    /// where nothing could be removed: then he finds nobody at it.
    fn end_purge(&self) {
        if self.disk.end_awaited_removal() {
            Sometimes::RemovalBehind.reached();
            self.tree.call();
        }
    }

    fn purge(&self, at_most: usize) {
        if self.context.read_only || self.disk.has_no_obsolete() {
            return;
        }
        let Some(files) = self.tree.take_obsolete(at_most) else {
            Sometimes::DeletionsPaused.reached();
            return;
        };
        // A table is closed before its file is removed.
        self.disk.uncache_retired();
        self.tables.uncache_blob_files(files.iter().filter_map(|file| match file {
            ObsoleteFile::Blob { number, .. } => Some(*number),
            ObsoleteFile::Table { .. } => None,
        }));
        let (taken, mut failed) = (files.len(), Vec::new());
        for file in files {
            match &file {
                ObsoleteFile::Table { number, .. } => self.tables.forget_table(*number),
                ObsoleteFile::Blob { number, .. } => self.tables.forget_blob_file(*number),
            }
            if let Err(error) = self.disk.remove(&file.path()) {
                // Only space is lost until it is tried again.
                tracing::warn!(%error, "cannot remove an obsolete file");
                failed.push(file);
            } else {
                self.context.events.note_deleted(&file);
            }
        }
        self.disk.end_removal(taken, failed);
    }

    /// At open: removes what a crash left behind. Files with names that are not the engine's stay.
    pub(in crate::db) fn remove_leftovers(&self) -> Result<()> {
        let active = self.pipeline.active_wal();
        remote::remove_outputs_if_possible(&*self.context.env.fs, &self.context.path);
        self.tree.remove_leftovers(active, directories::data_files(&self.tree)?, |number| {
            self.tables.forget_blob_file(number)
        })
    }
}

/// Whether too many files have gathered while so many others are removed. Of a dropped family these
/// may be thousands, and no reason why compactions stand still: half as many may gather, so that
/// they become fewer each time.
fn is_behind(gathered: usize, taken: usize) -> bool {
    gathered > UNREMOVED_MAX.max(taken / 2)
}

#[cfg(test)]
mod tests;
