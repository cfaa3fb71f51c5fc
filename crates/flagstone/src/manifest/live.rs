//! Files in use: what the versions of a family share, and how a file is noticed that nobody uses any longer.
//!
//! **Invariants**
//! - A table or blob file has one `Arc<TableFile>` or `Arc<BlobFile>`, shared by all versions that contain it.
//! - It is marked obsolete once the newest version no longer contains it, after that is durable in the MANIFEST.
//! - When the last owner of a marked file lets go (an old version, an iterator), the file is pushed to the
//!   [`ObsoleteFiles`] queue, once; the database's purger then removes it from the disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::metadata::{BlobFileAddition, FileMetadata};
use crate::base::FileNumber;
use crate::sst::Table;

/// A file that nothing refers to any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObsoleteFile {
    /// A table, and the index of the directory it lies in.
    Table {
        /// The table's number.
        number: FileNumber,
        /// Index of its directory (0: the database's own).
        path_id: u32,
    },
    /// A blob file.
    Blob(FileNumber),
}

/// The queue of files that may be removed from the disk.
#[derive(Debug, Default)]
pub struct ObsoleteFiles(Mutex<Vec<ObsoleteFile>>);

impl ObsoleteFiles {
    /// Takes all that has gathered.
    pub fn take(&self) -> Vec<ObsoleteFile> {
        std::mem::take(&mut *self.0.lock())
    }

    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Adds a file (the purger does, for one whose removal failed).
    pub fn push(&self, file: ObsoleteFile) {
        self.0.lock().push(file);
    }
}

/// A table that is part of at least one version.
#[derive(Debug)]
pub struct TableFile {
    /// What the MANIFEST says of it.
    pub meta: FileMetadata,
    /// Whether a running compaction has it as input; set and cleared under the database's lock.
    pub being_compacted: AtomicBool,
    /// The open table, once somebody needed it.
    pub table: OnceLock<Arc<Table>>,
    obsolete: AtomicBool,
    queue: Arc<ObsoleteFiles>,
}

impl TableFile {
    /// A table not yet opened; `queue` hears when it is no longer used.
    pub fn new(meta: FileMetadata, queue: Arc<ObsoleteFiles>) -> Self {
        Self {
            meta,
            being_compacted: AtomicBool::new(false),
            table: OnceLock::new(),
            obsolete: AtomicBool::new(false),
            queue,
        }
    }

    /// Its number.
    #[inline]
    pub fn number(&self) -> FileNumber {
        self.meta.number
    }

    /// Whether a running compaction has it as input.
    pub fn is_being_compacted(&self) -> bool {
        self.being_compacted.load(Ordering::Relaxed)
    }

    /// The newest version no longer contains it.
    pub(super) fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        if *self.obsolete.get_mut() {
            let (number, path_id) = (self.meta.number, self.meta.path_id);
            self.queue.push(ObsoleteFile::Table { number, path_id });
        }
    }
}

/// A blob file that is part of at least one version.
#[derive(Debug)]
pub struct BlobFile {
    /// What the MANIFEST says of it.
    pub meta: BlobFileAddition,
    obsolete: AtomicBool,
    queue: Arc<ObsoleteFiles>,
}

impl BlobFile {
    /// A blob file; `queue` hears when it is no longer used.
    pub fn new(meta: BlobFileAddition, queue: Arc<ObsoleteFiles>) -> Self {
        Self { meta, obsolete: AtomicBool::new(false), queue }
    }

    /// Its number.
    #[inline]
    pub fn number(&self) -> FileNumber {
        self.meta.number
    }

    /// The newest version no longer contains it.
    pub(super) fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for BlobFile {
    fn drop(&mut self) {
        if *self.obsolete.get_mut() {
            self.queue.push(ObsoleteFile::Blob(self.meta.number));
        }
    }
}
