//! Holding back automatic compactions, and removals of files, for a while.

use std::sync::Arc;

use crate::base::{Error, Result};
use crate::db::DbInner;
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::tree::requested_pauses;

/// Keeps automatic compactions of a family from starting until it is dropped; see
/// [`Family::hold_compactions`](crate::Family::hold_compactions).
#[must_use = "compactions begin again when it is dropped"]
pub struct HeldCompactions<'a> {
    inner: &'a DbInner,
    family: Arc<Family>,
}

/// Keeps the files of a database until it is dropped: see
/// [`Db::hold_files`](crate::Db::hold_files). It does not keep the database open.
#[must_use = "files are removed again when it is dropped"]
pub struct HeldFiles {
    inner: Arc<DbInner>,
}

impl Db {
    /// Keeps all files of the database until the returned guard and all others are dropped
    /// (RocksDB's `DisableFileDeletions`), so that a program can copy them. A database closed
    /// meanwhile removes them at its next opening.
    pub fn hold_files(&self) -> HeldFiles {
        let inner = self.inner().clone();
        inner.tree.pause_deletions(1);
        HeldFiles { inner }
    }

    /// Keeps all files of the database until [`Db::enable_file_deletions`] is called as often;
    /// [`Db::hold_files`] has a guard instead. A database closed meanwhile removes them at its next
    /// opening.
    ///
    /// # Errors
    /// `NotSupported` if the database is open for reading; `ShutdownInProgress`.
    pub fn disable_file_deletions(&self) -> Result<()> {
        self.check_may_remove()?;
        requested_pauses::begin(&self.inner().tree);
        Ok(())
    }

    /// Takes back one call of [`Db::disable_file_deletions`], or all of them with `force`, and
    /// returns how many are left. With none left, files are removed that are no longer needed,
    /// unless a guard, a checkpoint or a backup keeps them. Without any such call nothing happens.
    ///
    /// # Errors
    /// As [`Db::disable_file_deletions`].
    pub fn enable_file_deletions(&self, force: bool) -> Result<usize> {
        self.check_may_remove()?;
        let inner = self.inner();
        let ended = requested_pauses::end(&inner.tree, force);
        if ended > 0 {
            inner.pipeline.end_pause(ended);
            inner.jobs.purge_all_obsolete_files();
        }
        Ok(requested_pauses::count(&inner.tree))
    }

    fn check_may_remove(&self) -> Result<()> {
        let context = &self.inner().context;
        context.check_open()?;
        if context.read_only {
            let message = "the database is open for reading, and removes no files";
            return Err(Error::not_supported(message));
        }
        Ok(())
    }

    /// Keeps automatic compactions of the family from starting until the returned guard is dropped.
    /// A compaction that is running is not waited for.
    ///
    /// Requested compactions ([`Db::compact_range`], [`Db::compact_files`]) still run, and their
    /// result stays in place: otherwise, with `level_compaction_dynamic_level_bytes`, automatic
    /// compactions move tables down again that
    /// [`change_level`](crate::options::CompactRangeOptions::change_level) has moved up. As with
    /// `disable_auto_compactions`, writers are not delayed meanwhile however much there is to
    /// compact; afterwards they may be, until it is done. Unlike that option, the hold is not saved
    /// in the OPTIONS file.
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
