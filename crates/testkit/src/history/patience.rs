//! Losing patience: an operation that makes files without end becomes a failure, which can be
//! shrunk.
//!
//! Files that are opened to be read do not count: with `max_open_files` each block may open its
//! file anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flagstone::base::Result;
use flagstone::env::{AnyFile, FileSystem, FileSystemAround, OpenMode};
use flagstone::options::CompactionControl;
use parking_lot::Mutex;

use crate::crash::CrashFs;

/// More files than any operation of a history makes.
const MADE_MAX: u64 = 20_000;

/// The files that an operation has made, and whether it is to be given up for that.
#[derive(Default)]
pub(super) struct Made {
    count: AtomicU64,
    canceled: Mutex<Option<(u64, Arc<CompactionControl>)>>,
}

impl Made {
    /// Counts from here on.
    pub(super) fn begin(&self) {
        self.count.store(0, Ordering::Relaxed);
        *self.canceled.lock() = None;
    }

    /// What cancels a compaction that is about to make its file of this number from here on,
    /// counted from 0.
    pub(super) fn cancel_at(&self, number: u64) -> Arc<CompactionControl> {
        let control = CompactionControl::new();
        *self.canceled.lock() =
            Some((self.count.load(Ordering::Relaxed) + number, control.clone()));
        control
    }

    fn note(&self) {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        if let Some((number, control)) = &*self.canceled.lock()
            && *number <= before
        {
            control.cancel();
        }
        assert!(before < MADE_MAX, "one operation makes files without end");
    }
}

/// The files of a [`CrashFs`], of which each operation may make so many.
pub(super) struct Patience {
    fs: CrashFs,
    made: Arc<Made>,
}

impl Patience {
    /// Counts in `made`.
    pub(super) fn new(fs: CrashFs, made: Arc<Made>) -> Self {
        Self { fs, made }
    }
}

impl FileSystemAround for Patience {
    fn inner(&self) -> &dyn FileSystem {
        &self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        if mode.creates() {
            self.made.note();
        }
        mode.open(&self.fs, path)
    }
}
