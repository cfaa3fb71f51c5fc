//! What the database takes on the disk, and how it is given back.

pub(super) mod archive;
pub(super) mod hole_speed;
pub(super) mod holes;
pub(super) mod reserve;

use std::path::Path;
use std::sync::Arc;

use crate::base::sync::{AtomicBool, AtomicU64, Mutex};
use crate::base::{Result, SubCode};
use crate::db::context::Context;
use crate::db::limits::Limits;
use crate::env::FileLock;
use crate::manifest::ObsoleteFiles;

/// The database's directory, and what is given back to it.
pub(super) struct Disk {
    context: Arc<Context>,
    limits: Arc<Limits>,
    /// The directory's lock, while the database is open.
    pub(super) lock: Mutex<Option<Box<dyn FileLock>>>,
    pub(super) obsolete: Arc<ObsoleteFiles>,
    /// Somebody left a compaction for later since another thread was removing files.
    pub(super) removal_awaited: AtomicBool,
    pub(super) reserve: reserve::Reserve,
    /// Bytes of the smallest hole that gives space back; 0 where files can have none.
    pub(super) hole_size: AtomicU64,
    pub(super) hole_speed: hole_speed::HoleSpeed,
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
        Self {
            context,
            limits,
            lock: Mutex::default(),
            obsolete,
            removal_awaited: AtomicBool::new(false),
            reserve,
            hole_size: AtomicU64::new(0),
            hole_speed: hole_speed::HoleSpeed::default(),
        }
    }
}

impl Disk {
    /// A file that is gone already is as good as removed.
    pub(in crate::db) fn remove(&self, path: &Path) -> Result<()> {
        let is_table = path.extension().is_some_and(|extension| extension == "sst");
        match self.context.env.fs.remove(path) {
            // LevelDB's name for a table.
            Err(error) if error.subcode() == SubCode::PathNotFound && is_table => {
                self.remove(&path.with_extension("ldb"))
            }
            Err(error) if error.subcode() != SubCode::PathNotFound => Err(error),
            _ => Ok(()),
        }
    }
}
