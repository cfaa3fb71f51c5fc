//! The databases that this process has open, by directory.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::FileSystem;

/// Where the files of a database lie; `None` once it is gone.
type Ask = Arc<dyn Fn() -> Option<Directories> + Send + Sync>;

/// The directories of a database.
pub(crate) struct Directories {
    /// The file system in which they are.
    pub(crate) fs: Arc<dyn FileSystem>,
    /// Their paths; some may not be there.
    pub(crate) paths: Vec<PathBuf>,
}

static OPEN: Mutex<Vec<(u64, Ask)>> = Mutex::new(Vec::new());

/// A database in the list of this process, until this is dropped.
pub(crate) struct Listed {
    id: u64,
}

/// Adds a database to the list. `ask` is called without a lock held here.
pub(crate) fn list_database(
    ask: impl Fn() -> Option<Directories> + Send + Sync + 'static,
) -> Listed {
    let mut open = OPEN.lock();
    let id = open.last().map_or(0, |(last, _)| last + 1);
    open.push((id, Arc::new(ask)));
    Listed { id }
}

/// The directories of all databases in the list.
pub(crate) fn open_databases() -> Vec<Directories> {
    let asked: Vec<Ask> = OPEN.lock().iter().map(|(_, ask)| ask.clone()).collect();
    asked.iter().filter_map(|ask| ask()).collect()
}

impl Drop for Listed {
    fn drop(&mut self) {
        OPEN.lock().retain(|(id, _)| *id != self.id);
    }
}
