//! Losing patience: an operation that opens files without end becomes a failure, which can be shrunk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flagstone::base::Result;
use flagstone::env::{File, FileSystem, FileSystemAround, OpenMode};

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

impl FileSystemAround for Patience {
    fn inner(&self) -> &dyn FileSystem {
        &self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let before = self.opens.fetch_add(1, Ordering::Relaxed);
        assert!(before < OPENS_MAX, "one operation opens files without end");
        self.fs.open(path, mode)
    }
}
