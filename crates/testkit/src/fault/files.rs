//! What files are for, and what they have been through.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flagstone::base::file_name::FileKind;
use parking_lot::Mutex;

/// What a file is for, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "they are named as the files")]
pub enum Sort {
    Wal,
    Table,
    Blob,
    Manifest,
    Current,
    Identity,
    Options,
    Temporary,
    Lock,
    Directory,
}

/// What the file at this path is for; what has no name of the engine's is a directory.
pub fn sort_of(path: &Path) -> Sort {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match FileKind::parse(name) {
        Some(FileKind::Wal(_)) => Sort::Wal,
        Some(FileKind::Table(_)) => Sort::Table,
        Some(FileKind::Blob(_)) => Sort::Blob,
        Some(FileKind::Manifest(_)) => Sort::Manifest,
        Some(FileKind::Current) => Sort::Current,
        Some(FileKind::Identity) => Sort::Identity,
        Some(FileKind::Options(_)) => Sort::Options,
        Some(FileKind::Temporary(_)) => Sort::Temporary,
        Some(FileKind::Lock) => Sort::Lock,
        _ => Sort::Directory,
    }
}

/// What a file has been through, whatever its name.
#[derive(Default)]
pub(super) struct HistoryEpoch {
    /// After a failed sync: how much of the file, from its front, has been written again since.
    rewritten: Mutex<Option<u64>>,
    /// How much of it, from its front, is reserved.
    reserved: Mutex<u64>,
}

impl HistoryEpoch {
    pub(super) fn write(&self, offset: u64, length: u64) {
        if let Some(rewritten) = &mut *self.rewritten.lock()
            && offset <= *rewritten
        {
            *rewritten = (*rewritten).max(offset + length);
        }
    }

    /// Notes that the file's front is reserved.
    pub(super) fn reserve(&self, length: u64) {
        let mut reserved = self.reserved.lock();
        *reserved = (*reserved).max(length);
    }

    /// Notes that all behind its front is given back.
    pub(super) fn cut(&self, length: u64) {
        let mut reserved = self.reserved.lock();
        *reserved = (*reserved).min(length);
    }

    /// Whether there is space for its front on a full disk, too.
    pub(super) fn has_reserved(&self, length: u64) -> bool {
        length <= *self.reserved.lock()
    }

    /// Notes a sync that is about to be made of a file of this size.
    ///
    /// # Panics
    /// If one has failed before, and not all has been written again since: the system may say that
    /// all is well although the data is lost.
    pub(super) fn begin_sync(&self, path: &Path, size: u64) {
        let whole = self.rewritten.lock().is_none_or(|rewritten| rewritten >= size);
        // What closes the database after a finding must not turn that into an abort.
        let told = std::thread::panicking();
        assert!(whole || told, "{} is synced again after a failed sync", path.display());
    }

    pub(super) fn end_sync(&self, failed: bool) {
        *self.rewritten.lock() = failed.then_some(0);
    }
}

/// The files by their present names.
#[derive(Default)]
pub(super) struct Pasts(BTreeMap<PathBuf, Arc<HistoryEpoch>>);

impl Pasts {
    /// That of an opened file; one that is emptied begins anew.
    pub(super) fn opened(&mut self, path: &Path, emptied: bool) -> Arc<HistoryEpoch> {
        if emptied {
            self.0.remove(path);
        }
        self.0.entry(path.to_path_buf()).or_default().clone()
    }

    pub(super) fn renamed(&mut self, source: &Path, target: &Path) {
        if let Some(past) = self.0.remove(source) {
            self.0.insert(target.to_path_buf(), past);
        }
    }

    pub(super) fn linked(&mut self, source: &Path, target: &Path) {
        if let Some(past) = self.0.get(source).cloned() {
            self.0.insert(target.to_path_buf(), past);
        }
    }

    pub(super) fn removed(&mut self, path: &Path) {
        self.0.remove(path);
    }
}
