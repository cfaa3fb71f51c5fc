//! The large values that an iterator asks for.

use std::sync::Arc;

use bytes::Bytes;

use super::family::{Family, SuperVersion};
use super::files::Tables;
use super::read::read_settings;
use crate::base::sync::Mutex;
use crate::base::{Result, SnapshotList};
use crate::blob::BlobReadahead;
use crate::cache::{Holder, MemoryAccount};
use crate::iter::ValueResolver;
use crate::options::ReadOptions;

/// Fetches blobs for a cursor; keeps the version alive that names their files.
pub(super) struct CursorBlobs {
    pub(super) tables: Arc<Tables>,
    pub(super) family: Arc<Family>,
    pub(super) current: Arc<SuperVersion>,
    pub(super) options: ReadOptions,
    /// Nobody else ever holds this lock.
    pub(super) ahead: Mutex<CountedReadahead>,
    pub(super) snapshots: Arc<SnapshotList>,
}

impl ValueResolver for CursorBlobs {
    fn resolve_blob(&self, user_key: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        let (version, settings) = (&self.current.version, read_settings(&self.options));
        let mut ahead = self.ahead.lock();
        let blobs = Some(&mut ahead.blobs);
        let value = self.tables.read_blob(&self.family, version, user_key, blob_index, &settings, blobs);
        ahead.count(self.tables.account());
        value
    }
}

impl Drop for CursorBlobs {
    fn drop(&mut self) {
        self.forget_ahead();
    }
}

impl CursorBlobs {
    /// Lets go of what was read ahead.
    pub(super) fn forget_ahead(&self) {
        let mut ahead = self.ahead.lock();
        ahead.blobs.forget();
        ahead.count(self.tables.account());
    }
}

/// What a cursor reads ahead of blob files, in the account.
#[derive(Default)]
pub(super) struct CountedReadahead {
    blobs: BlobReadahead,
    /// So many bytes are in the account.
    counted: usize,
}

impl CountedReadahead {
    fn count(&mut self, account: &MemoryAccount) {
        let (before, now) = (self.counted, self.blobs.memory());
        if now > before {
            account.add(Holder::Cursors, now - before);
        } else if now < before {
            account.subtract(Holder::Cursors, before - now);
        }
        self.counted = now;
    }
}
