//! Large values that go to a blob file when they are committed; WAL and memtable carry only where
//! they lie.
//!
//! 1. **Separate** (`separate`): before a writer takes the commit lock it appends its large values
//!    to the blob file of its family's active memtable, and makes a batch with their addresses in
//!    their place.
//! 2. **Commit** (`pipeline::write`): under the lock it looks whether that memtable is still the
//!    active one. If not, it writes the values again, now under the lock: what a memtable names
//!    lies in its own files, so its flush knows when a file is complete, and a file is registered
//!    by the first table that needs it.
//! 3. **Sync** (`sync`): a sync of the WAL first syncs the blob files that the WAL names.
//! 4. **Flush** (`settle`): the memtable's files are sealed, synced, and added to the MANIFEST by
//!    the edit that adds the table, together with what of them is garbage already. A file of
//!    garbage alone is removed instead.
//! 5. **Recovery** (`recover`): each value that a replayed WAL names is checked; at the first that
//!    is not whole, history ends as at a torn record. The others move to new files when their
//!    memtable is flushed, at once: what the dead process left of a file cannot be trusted to
//!    become durable.
//!
//! `own_file` keeps a value that need not fit into memory, and is written piece by piece.
//!
//! **Invariants**
//! - The bytes of a value are in its file before the WAL has a record that names them.
//! - A memtable names only blobs of its own files, and nobody appends to these once it is being
//!   flushed.
//! - A file lives as long as a memtable or a version that may name it; until it is in the MANIFEST
//!   only memtables (and WALs) name it, and nobody but those that own it removes it.

pub(in crate::db) mod own_file;
mod recover;
pub(in crate::db) mod separate;
mod settle;
mod sync;

pub(in crate::db) use own_file::OwnFile;
pub(in crate::db) use separate::{BlobsOfBatch, Source, names_blobs};
pub(in crate::db) use settle::DirectInputs;
pub(in crate::db) use sync::{BlobsToSync, UnsyncedBlobs};

use std::sync::Arc;

use crate::base::sync::{AtomicUsize, Ordering};
use crate::db::background::Background;
use crate::db::context::Context;
use crate::db::disk::Disk;
use crate::db::limits::Limits;
use crate::db::tables::Tables;
use crate::db::tree::{Below, Tree};
use crate::db::writing::file_syncs::FileSyncs;

/// Writes, seals and recovers the blob files of memtables.
pub(in crate::db::writing) struct DirectBlobs {
    context: Arc<Context>,
    tree: Arc<Tree>,
    disk: Arc<Disk>,
    limits: Arc<Limits>,
    tables: Arc<Tables>,
    background: Arc<Background>,
    syncs: Arc<FileSyncs>,
    /// While above zero, values of batches stay in the batches.
    pauses: AtomicUsize,
}

/// While it lives, no value of a batch goes to a blob file when it is committed.
pub(in crate::db) struct PausedSeparation<'a>(&'a AtomicUsize);

impl Drop for PausedSeparation<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl DirectBlobs {
    pub(in crate::db::writing) fn new(
        below: &Below,
        tree: &Arc<Tree>,
        syncs: &Arc<FileSyncs>,
    ) -> Self {
        Self {
            context: below.context.clone(),
            tree: tree.clone(),
            disk: below.disk.clone(),
            limits: below.limits.clone(),
            tables: below.tables.clone(),
            background: below.background.clone(),
            syncs: syncs.clone(),
            pauses: AtomicUsize::new(0),
        }
    }

    /// Leaves values in their batches until what is returned is dropped: flushes move them then.
    pub(in crate::db::writing) fn pause_separation(&self) -> PausedSeparation<'_> {
        self.pauses.fetch_add(1, Ordering::AcqRel);
        PausedSeparation(&self.pauses)
    }
}
