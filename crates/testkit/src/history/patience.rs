//! Losing patience: an operation that makes files without end becomes a failure, which can be shrunk.
//!
//! Files that are opened to be read do not count: with `max_open_files` each block may open its file anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flagstone::base::Result;
use flagstone::env::{File, FileSystem, FileSystemAround, OpenMode};

use crate::crash::CrashFs;

/// More files than any operation of a history makes.
const MADE_MAX: u64 = 20_000;

/// The files of a [`CrashFs`], of which each operation may make so many.
pub(super) struct Patience {
    fs: CrashFs,
    made: Arc<AtomicU64>,
}

impl Patience {
    /// Counts from when `made` was last set to zero.
    pub(super) fn new(fs: CrashFs, made: Arc<AtomicU64>) -> Self {
        Self { fs, made }
    }
}

impl FileSystemAround for Patience {
    fn inner(&self) -> &dyn FileSystem {
        &self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let before = self.made.fetch_add(u64::from(mode.creates()), Ordering::Relaxed);
        assert!(before < MADE_MAX, "one operation makes files without end");
        self.fs.open(path, mode)
    }
}
