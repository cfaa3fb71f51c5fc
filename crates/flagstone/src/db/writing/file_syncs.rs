//! Syncing WALs and the blob files that they name, one thread at a time.

use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::base::{Error, Mutant, Result, Sometimes};
use crate::db::context::Context;
use crate::db::family::direct_blobs::DirectFile;
use crate::db::statistics::Ticker;
use crate::db::writing::direct_blob::BlobsToSync;
use crate::env::WritableFile;
use crate::options::BackgroundErrorReason;

/// Syncs files that writers append to. After a failure no file is synced again.
pub(super) struct FileSyncs {
    context: Arc<Context>,
    /// Held while files are synced: the system reports a failure only once, and the thread that
    /// syncs a file next must know of it.
    one_at_a_time: Mutex<()>,
}

impl FileSyncs {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self { context, one_at_a_time: Mutex::default() }
    }

    fn note_failure(&self, error: &Error) {
        self.context.poison.record_fatal(BackgroundErrorReason::Write, error);
    }

    /// Syncs WALs.
    pub(super) fn sync_wals(&self, files: &[Arc<dyn WritableFile>]) -> Result<()> {
        let _one_at_a_time = self.one_at_a_time.lock();
        for file in files {
            self.context.poison.check_fatal()?;
            file.sync().inspect_err(|error| self.note_failure(error))?;
            self.context.statistics.add(Ticker::WalSyncs, 1);
        }
        Ok(())
    }

    /// Syncs blob files, before the WALs that name them.
    pub(super) fn sync_blobs(&self, blobs: &BlobsToSync) -> Result<()> {
        if Mutant::SkipBlobSyncBeforeWal.is_on() || blobs.files().is_empty() {
            return Ok(());
        }
        Sometimes::BlobSyncedBeforeWal.reached();
        self.sync_direct_files(blobs.files())
    }

    /// Syncs blob files of memtables.
    pub(super) fn sync_direct_files(&self, files: &[Arc<DirectFile>]) -> Result<()> {
        let _one_at_a_time = self.one_at_a_time.lock();
        let sync =
            || files.iter().filter(|file| file.sealed().is_none()).try_for_each(|file| file.sync());
        self.context.poison.check_fatal()?;
        sync().inspect_err(|error| self.note_failure(error))
    }
}
