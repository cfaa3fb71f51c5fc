//! Opening a database, recovery, and closing it.

pub(in crate::db) mod blob_checks;
pub(super) mod lifecycle;
mod moving;
pub(super) mod open;
mod prepared;
pub(super) mod recovery;
pub(super) mod replay_inserts;
pub(super) mod replayed;
mod wal_directory;

use crate::base::Result;
use crate::base::sync::{AtomicBool, Mutex, Rank, ranked};
use crate::env::{GroupMember, Listed};

/// What opening and closing a database need.
pub(super) struct Lifecycle {
    /// How closing went; held meanwhile, before all other locks.
    pub(super) closed: Mutex<Option<Result<()>>>,
    /// Its place in the list of the open databases of the process, while it is open.
    pub(super) listed: Mutex<Option<Listed>>,
    /// Its part of the memory of all databases of the process, while it is open.
    pub(super) memory_share: Mutex<Option<GroupMember>>,
    /// A recording of the block cache was begun here, and perhaps not ended.
    pub(super) records_cache: AtomicBool,
    /// Held while a checkpoint looks for its directory and makes it.
    pub(super) checkpoint_begins: Mutex<()>,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            closed: ranked(Rank::Closing, None),
            listed: Mutex::default(),
            memory_share: Mutex::default(),
            records_cache: AtomicBool::new(false),
            checkpoint_begins: ranked(Rank::Checkpoint, ()),
        }
    }
}
