//! Automatic compactions, and removals of files, that are held back for a time.

use std::sync::Arc;

use crate::base::Result;
use crate::db::DbInner;
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;

/// Keeps automatic compactions of a family from beginning until it is dropped: see
/// [`Db::hold_automatic_compactions`].
#[must_use = "compactions begin again when it is dropped"]
pub struct HeldCompactions<'a> {
    inner: &'a DbInner,
    family: Arc<Family>,
}

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

    /// From now on no automatic compaction of the family begins, until what is returned is dropped;
    /// one that runs is not waited for. What is called for by name ([`Db::compact_range`],
    /// [`Db::compact_files`]) is done as ever, and so its result stays as it is: with
    /// `level_compaction_dynamic_level_bytes`, automatic compactions take tables down again that
    /// [`change_level`](crate::options::CompactRangeOptions::change_level) has moved up. As with
    /// `disable_auto_compactions`, writers are not held up meanwhile, however much there is to
    /// compact; afterwards they may be, until that is done. Unlike it, it is nothing that an
    /// OPTIONS file remembers.
    ///
    /// # Errors
    /// `ColumnFamilyDropped`; `InvalidArgument` for a handle of another database.
    pub fn hold_automatic_compactions(&self, family: &ColumnFamily) -> Result<HeldCompactions<'_>> {
        let inner = self.inner();
        inner.disk.check_owner(&family.0)?;
        family.0.check_alive()?;
        inner.tree.hold_compactions(&family.0);
        Ok(HeldCompactions { inner, family: family.0.clone() })
    }
}

impl Drop for HeldCompactions<'_> {
    fn drop(&mut self) {
        if self.inner.context.process.is_this() {
            self.inner.tree.let_compactions_go(&self.family);
        }
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
