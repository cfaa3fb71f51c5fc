//! What the database takes on the disk, and how it is given back.

pub(super) mod archive;
mod file_manager;
pub(super) mod hole_speed;
pub(super) mod holes;
pub(super) mod reserve;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::sync::{AtomicBool, AtomicU64, Mutex, Ordering, Rank, ranked};
use crate::base::{DataPaths, FileNumber, Result, SubCode};
use crate::db::context::Context;
use crate::db::family::Family;
use crate::db::limits::Limits;
use crate::env::{FileLock, TrackedFiles};
use crate::manifest::{BlobFileClaim, ObsoleteFile, ObsoleteFiles};

/// The database's directory, and what is given back to it.
pub(super) struct Disk {
    context: Arc<Context>,
    limits: Arc<Limits>,
    /// The directory's lock, while the database is open.
    lock: Mutex<Option<Box<dyn FileLock>>>,
    /// Files that nothing uses any longer; families and blob files know their database by it.
    obsolete: Arc<ObsoleteFiles>,
    /// Somebody left a compaction for later since another thread was removing files.
    removal_awaited: AtomicBool,
    reserve: reserve::Reserve,
    /// Bytes of the smallest hole that gives space back; 0 where files can have none.
    hole_size: AtomicU64,
    hole_speed: hole_speed::HoleSpeed,
    /// Counts the files, and removes them at a rate, if the options say so.
    tracked: Option<TrackedFiles>,
}

impl Disk {
    /// Nobody has the lock yet.
    pub(super) fn new(
        context: Arc<Context>,
        limits: Arc<Limits>,
        obsolete: Arc<ObsoleteFiles>,
    ) -> Self {
        let wanted =
            if context.read_only { 0 } else { context.settings.load().reserved_disk_space };
        let reserve = reserve::Reserve::new(wanted);
        let manager = context.settings.load().sst_file_manager.clone();
        let manager = manager.filter(|_| !context.read_only);
        let fs = context.env.fs.clone();
        let tracked = manager.map(|manager| TrackedFiles::new(manager, fs));
        Self {
            context,
            limits,
            lock: ranked(Rank::Removal, None),
            obsolete,
            removal_awaited: AtomicBool::new(false),
            reserve,
            hole_size: AtomicU64::new(0),
            hole_speed: hole_speed::HoleSpeed::default(),
            tracked,
        }
    }
}

impl Disk {
    /// Keeps the directory's lock, if the database has one, until [`Self::release_directory`].
    pub(in crate::db) fn hold_directory(&self, lock: Option<Box<dyn FileLock>>) {
        *self.lock.lock() = lock;
    }

    /// Lets others open the directory.
    pub(in crate::db) fn release_directory(&self) {
        *self.lock.lock() = None;
    }

    /// Refuses a family of another database.
    ///
    /// # Errors
    /// `InvalidArgument`.
    #[inline]
    pub(in crate::db) fn check_owner(&self, family: &Family) -> Result<()> {
        family.check_owner(&self.obsolete)
    }

    /// What a family is told of the database that it belongs to.
    pub(in crate::db) fn owner(&self) -> Arc<ObsoleteFiles> {
        self.obsolete.clone()
    }

    /// A claim on a new blob file, which becomes obsolete when it is given up.
    pub(in crate::db) fn claim_blob_file(
        &self,
        number: FileNumber,
        paths: &DataPaths,
    ) -> BlobFileClaim {
        BlobFileClaim::new(number, paths, &self.obsolete)
    }

    /// A file that is gone already is as good as removed.
    pub(in crate::db) fn remove(&self, path: &Path) -> Result<()> {
        let is_table = path.extension().is_some_and(|extension| extension == "sst");
        match self.give_back(path) {
            // LevelDB's name for a table.
            Err(error) if error.subcode() == SubCode::PathNotFound && is_table => {
                self.remove(&path.with_extension("ldb"))
            }
            Err(error) if error.subcode() != SubCode::PathNotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Files that nothing uses any longer.
impl Disk {
    /// Has `remove` remove files unless another thread does so. The directory's lock is kept
    /// meanwhile, so that the next owner of the directory has it alone; where it is not held,
    /// nothing is removed. Returns whether no other thread was removing files.
    pub(in crate::db) fn try_removal(&self, remove: impl FnOnce()) -> bool {
        let Some(directory) = self.lock.try_lock() else { return false };
        if directory.is_some() && self.context.process.is_this() {
            remove();
        }
        true
    }

    /// Waits until no other thread removes files, and then does as [`Self::try_removal`].
    pub(in crate::db) fn removal(&self, remove: impl FnOnce()) {
        if !self.context.process.is_this() {
            return;
        }
        let directory = self.lock.lock();
        if directory.is_some() {
            remove();
        }
    }

    /// How many files wait to be removed, and how many were taken and are being removed.
    pub(in crate::db) fn count_obsolete(&self) -> (usize, usize) {
        self.obsolete.counts()
    }

    /// Whether no file waits to be removed.
    pub(in crate::db) fn has_no_obsolete(&self) -> bool {
        self.obsolete.is_empty()
    }

    /// Takes up to that many obsolete files. All must be removed, or put back.
    pub(in crate::db) fn take_obsolete(&self, at_most: usize) -> Vec<ObsoleteFile> {
        self.obsolete.take(at_most)
    }

    /// Ends the removal of so many files that were taken; those that `failed` wait again.
    pub(in crate::db) fn end_removal(&self, taken: usize, failed: Vec<ObsoleteFile>) {
        self.obsolete.put_back(taken, failed);
    }

    /// Adds a file to those that wait to be removed.
    pub(in crate::db) fn add_obsolete(&self, file: ObsoleteFile) {
        self.obsolete.push(file);
    }

    /// Paths of the tables that wait to be removed.
    pub(in crate::db) fn obsolete_tables(&self) -> Vec<PathBuf> {
        self.obsolete.tables()
    }

    /// Takes what caches hold of tables that are gone out of them.
    pub(in crate::db) fn uncache_retired(&self) {
        self.obsolete.uncache_retired();
    }

    /// A compaction waits until files are removed.
    pub(in crate::db) fn await_removal(&self) {
        self.removal_awaited.store(true, Ordering::Release);
    }

    /// Whether a compaction has waited for this; it does so no longer.
    pub(in crate::db) fn end_awaited_removal(&self) -> bool {
        self.removal_awaited.swap(false, Ordering::AcqRel)
    }

    #[cfg(test)]
    pub(in crate::db) fn is_removal_awaited(&self) -> bool {
        self.removal_awaited.load(Ordering::Relaxed)
    }
}
