//! Losing patience: an operation that opens files without end becomes a failure, which can be shrunk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flagstone::base::Result;
use flagstone::env::{File, FileLock, FileSystem, Metadata, OpenMode};

use crate::crash::CrashFs;

/// More files than any operation of a history needs.
const OPENS_MAX: u64 = 20_000;

/// The files of a [`CrashFs`], of which each operation may open so many.
pub(super) struct Patience {
    fs: CrashFs,
    opens: Arc<AtomicU64>,
}

impl Patience {
    /// Counts from when `opens` was last set to zero.
    pub(super) fn new(fs: CrashFs, opens: Arc<AtomicU64>) -> Self {
        Self { fs, opens }
    }
}

impl FileSystem for Patience {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let before = self.opens.fetch_add(1, Ordering::Relaxed);
        assert!(before < OPENS_MAX, "one operation opens files without end");
        self.fs.open(path, mode)
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        self.fs.rename(source, target)
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        self.fs.link(source, target)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.fs.remove(path)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.fs.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.fs.remove_directory(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.fs.list(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        self.fs.sync_directory(directory)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.fs.metadata(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.fs.lock(path)
    }
}
