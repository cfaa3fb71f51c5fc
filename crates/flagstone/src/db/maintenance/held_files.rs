//! Files that are kept though the database no longer needs them.

use std::sync::Arc;

use crate::db::DbInner;
use crate::db::handle::Db;

/// Keeps the files of a database until it is dropped: see [`Db::hold_files`]. It does not keep the
/// database open.
#[must_use = "files are removed again when it is dropped"]
pub struct HeldFiles {
    inner: Arc<DbInner>,
}

impl Db {
    /// From now on no file of the database is removed (RocksDB's `DisableFileDeletions`), for a
    /// program that copies them, until what is returned and all others are dropped. A closed
    /// database leaves them to its next opening.
    pub fn hold_files(&self) -> HeldFiles {
        let inner = self.inner().clone();
        inner.tree.pause_deletions(1);
        HeldFiles { inner }
    }
}

impl Drop for HeldFiles {
    fn drop(&mut self) {
        self.inner.pipeline.end_pause(1);
        if self.inner.context.check_open().is_ok() {
            self.inner.jobs.purge_all_obsolete_files();
        }
    }
}

#[cfg(test)]
mod tests;
