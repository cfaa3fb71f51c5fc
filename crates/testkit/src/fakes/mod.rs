//! Components that break their promise, one at a time. They do to a database what a fault of the
//! engine would do, which shows that the laboratory finds it. The engine itself stays as it is.
//!
//! - `file_system`: files whose syncs, writes or removals are left out
//! - `components`: a comparator, a merge operator and a compaction filter

mod components;
mod file_system;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flagstone::env::FileSystem;

pub(crate) use components::{broken_decision, broken_operator, broken_order};

macro_rules! fakes {
    ($($(#[doc = $meaning:literal])+ $name:ident,)+) => {
        /// A promise that a component breaks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Fake {
            $($(#[doc = $meaning])+ $name,)+
        }

        /// All of them: the fake, its name, what it does.
        pub const ALL: &[(Fake, &str, &str)] =
            &[$((Fake::$name, stringify!($name), concat!($($meaning),+))),+];
    };
}

fakes! {
    /// A directory is not synced after a table or blob file was made in it.
    SkipDirectorySync,
    /// Of the directories in which tables and blob files are made, only that with the database's
    /// lock is synced.
    SyncFirstDirectoryOnly,
    /// Tables are not synced.
    SkipTableSync,
    /// Blob files are not synced.
    SkipBlobSync,
    /// WALs are not synced.
    SkipWalSync,
    /// WALs are not synced once a newer one was made.
    SkipSyncOfOlderWals,
    /// WALs are not synced that were there when they were opened.
    SkipSyncOfKeptWals,
    /// A MANIFEST is synced once, and never again.
    SkipManifestSync,
    /// A MANIFEST is synced for the first time when CURRENT names it already.
    CurrentBeforeManifest,
    /// Files in a directory that no database has locked (a checkpoint) are not synced, but for
    /// temporary ones.
    SkipSyncOfCopies,
    /// A directory is not synced after a WAL was made in it.
    SkipWalDirectorySync,
    /// A directory is not synced after a file (CURRENT, say) was renamed over another.
    SkipSyncAfterRename,
    /// Temporary files, which replace others (CURRENT, say), are not synced.
    SkipSyncBeforeRename,
    /// A write to a WAL that failed is reported as done.
    IgnoreFailedWrite,
    /// A sync of a WAL that failed is tried again, and the second answer returned.
    RetryFailedSync,
    /// A sync of a WAL that failed is reported as done.
    ForgetFailedSync,
    /// A full disk that a write to a WAL finds is reported as another error.
    PoisonOnFullLog,
    /// A full disk that the sync of a table finds is reported as another error.
    PoisonOnFullSync,
    /// A disk that was full once stays full for tables.
    LatchFullDisk,
    /// Tables and blob files are not removed.
    ForgetObsoleteFiles,
    /// A hole takes the block behind it, too.
    PunchLiveRecord,
    /// A comparator orders keys by their bytes where it should find them equal.
    TellKeysByBytes,
    /// A comparator orders keys by their lengths where it should find them equal.
    TellKeysByLength,
    /// A merge operator takes its operands in reverse.
    ReorderOperands,
    /// A compaction filter removes the newest version of a key, and not those below.
    ForgetFilteredDeletion,
    /// A compaction filter that has keys skipped names the key behind the first to be kept.
    SkipTooFar,
}

/// The one that is on, counted from 1; 0 is none.
static ON: AtomicUsize = AtomicUsize::new(0);

/// Breaks the components that this process makes from now on.
pub fn turn_on(fake: Fake) {
    ON.store(fake as usize + 1, Ordering::Relaxed);
}

impl Fake {
    /// The one that is on, if any.
    fn now() -> Option<Self> {
        ON.load(Ordering::Relaxed).checked_sub(1).map(|index| ALL[index].0)
    }
}

/// These files, or ones around them that break the promise that is to be broken.
pub(crate) fn around(fs: Arc<dyn FileSystem>) -> Arc<dyn FileSystem> {
    match Fake::now() {
        Some(fake) => Arc::new(file_system::BrokenFs::new(fs, fake)),
        None => fs,
    }
}
