//! Syncing blob files for the WAL's sake.
//!
//! **Invariant.** A record of the WAL that a sync covers names blobs that this sync, or one before
//! it, covers too. So files stay listed until a sync that began after their last record has
//! succeeded.

use std::sync::{Arc, Weak};

use crate::base::{FileNumber, SequenceNumber};
use crate::db::family::direct_blobs::DirectFile;
use crate::db::writing::direct_blob::separate::BlobsOfBatch;

/// Blob files with values that WALs name and no sync has covered.
#[derive(Default)]
pub(in crate::db) struct UnsyncedBlobs {
    files: Vec<Unsynced>,
}

struct Unsynced {
    /// Gone if its memtable is: it was flushed, or its family dropped.
    file: Weak<DirectFile>,
    /// The WAL of the first record that names it.
    wal: FileNumber,
    /// The last record that does.
    last: SequenceNumber,
}

/// What one sync is to cover.
pub(in crate::db) struct BlobsToSync {
    files: Vec<Arc<DirectFile>>,
    last: SequenceNumber,
}

impl BlobsToSync {
    pub(in crate::db::writing) fn files(&self) -> &[Arc<DirectFile>] {
        &self.files
    }
}

impl UnsyncedBlobs {
    /// Notes what a batch that ends at `last` names, once it is in the WAL.
    pub(in crate::db) fn note(
        &mut self,
        blobs: &BlobsOfBatch<'_>,
        wal: FileNumber,
        last: SequenceNumber,
    ) {
        for file in blobs.files() {
            match self.files.iter_mut().find(|known| is_same(&known.file, file)) {
                Some(known) => known.last = last,
                None => {
                    self.files.retain(|unsynced| unsynced.file.strong_count() > 0);
                    self.files.push(Unsynced { file: Arc::downgrade(file), wal, last });
                }
            }
        }
    }

    /// What the WALs before `wal` name, when the last sequence number is `last`.
    pub(in crate::db) fn before(&mut self, wal: FileNumber, last: SequenceNumber) -> BlobsToSync {
        self.files.retain(|unsynced| unsynced.file.strong_count() > 0);
        let named = self.files.iter().filter(|unsynced| unsynced.wal < wal);
        BlobsToSync { files: named.filter_map(|unsynced| unsynced.file.upgrade()).collect(), last }
    }

    /// What all WALs name, when the last sequence number is `last`.
    pub(in crate::db) fn all(&mut self, last: SequenceNumber) -> BlobsToSync {
        self.before(FileNumber(u64::MAX), last)
    }

    /// Takes off the list what was synced, but for files that have got more since.
    pub(in crate::db) fn synced(&mut self, done: &BlobsToSync) {
        let is_done = |unsynced: &Unsynced| {
            unsynced.last <= done.last
                && done.files.iter().any(|file| is_same(&unsynced.file, file))
        };
        self.files.retain(|unsynced| !is_done(unsynced));
    }
}

fn is_same(known: &Weak<DirectFile>, file: &Arc<DirectFile>) -> bool {
    std::ptr::eq(known.as_ptr(), Arc::as_ptr(file))
}

#[cfg(test)]
mod tests;
