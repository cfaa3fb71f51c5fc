//! Holding back background work, removals of files, and writes, for a while.

use std::sync::Arc;

use crate::base::{Error, Result};
use crate::db::DbInner;
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::tree::{paused_work, requested_pauses};
use crate::options::WaitForCompactOptions;

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
        self.check_changes()?;
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
        self.check_changes()?;
        let inner = self.inner();
        let ended = requested_pauses::end(&inner.tree, force);
        if ended > 0 {
            inner.pipeline.end_pause(ended);
            inner.jobs.purge_all_obsolete_files();
        }
        Ok(requested_pauses::count(&inner.tree))
    }

    fn check_changes(&self) -> Result<()> {
        let context = &self.inner().context;
        context.check_open()?;
        if context.read_only {
            let message = "the database is open for reading, and neither removes files nor works in the background";
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

/// Pausing background work, and ending compactions, until a program takes that back; and stopping
/// writes.
impl Db {
    /// Waits for the flushes and compactions that run, and begins no more of them until
    /// [`Db::continue_background_work`] was called as often. Requested compactions still run once
    /// there is nothing to flush. A requested flush waits, and so do writers whose memtables are
    /// full. Closing the database ends the pause.
    ///
    /// # Errors
    /// `NotSupported` if the database is open for reading; `ShutdownInProgress`.
    pub fn pause_background_work(&self) -> Result<()> {
        self.check_changes()?;
        paused_work::pause_work(&self.inner().tree)
    }

    /// Takes back one call of [`Db::pause_background_work`].
    ///
    /// # Errors
    /// As [`Db::pause_background_work`]; `InvalidArgument` if background work is not paused.
    pub fn continue_background_work(&self) -> Result<()> {
        self.check_changes()?;
        paused_work::continue_work(&self.inner().tree)
    }

    /// Ends all compactions, requested ones too, and returns when they have ended, after at most
    /// some 1,000 entries each. What they have written is removed. None begins until as many calls
    /// of [`Db::resume_all_compactions`]; requests fail with `Incomplete`, subcode
    /// `CompactionAborted`. Writers stalled by compactions wait, too.
    ///
    /// # Errors
    /// As [`Db::pause_background_work`].
    pub fn abort_all_compactions(&self) -> Result<()> {
        self.check_changes()?;
        paused_work::abort_compactions(&self.inner().tree);
        Ok(())
    }

    /// Takes back one call of [`Db::abort_all_compactions`].
    ///
    /// # Errors
    /// As [`Db::pause_background_work`]; `InvalidArgument` if no compactions are aborted.
    pub fn resume_all_compactions(&self) -> Result<()> {
        self.check_changes()?;
        paused_work::resume_compactions(&self.inner().tree)
    }

    /// Ends requested compactions as [`Db::abort_all_compactions`] does, and refuses them until
    /// [`Db::enable_manual_compaction`] was called as often: they are `Incomplete`, with the
    /// subcode `ManualCompactionPaused`.
    ///
    /// # Errors
    /// As [`Db::pause_background_work`].
    pub fn disable_manual_compaction(&self) -> Result<()> {
        self.check_changes()?;
        paused_work::disable_requested(&self.inner().tree);
        Ok(())
    }

    /// Takes back one call of [`Db::disable_manual_compaction`].
    ///
    /// # Errors
    /// As [`Db::pause_background_work`]; `InvalidArgument` if requested compactions are not
    /// disabled.
    pub fn enable_manual_compaction(&self) -> Result<()> {
        self.check_changes()?;
        paused_work::enable_requested(&self.inner().tree)
    }

    /// Ends background work for good: what was written without the WAL is flushed, compactions end
    /// soon, and from then on the database can only be read. With `wait` that is [`Db::close`];
    /// without, the call does not wait for running work, and the database keeps its directory until
    /// it is closed or dropped.
    ///
    /// # Errors
    /// As [`Db::close`].
    pub fn cancel_all_background_work(&self, wait: bool) -> Result<()> {
        if wait { self.close() } else { self.inner().begin_closing() }
    }

    /// Waits until neither flush nor compaction has anything left to do, as `options` say.
    ///
    /// # Errors
    /// What had poisoned the database; `TimedOut`; `Aborted` if background work is paused and
    /// `options.abort_on_pause` is set; those of the flush and of closing.
    pub fn wait_for_compact(&self, options: &WaitForCompactOptions) -> Result<()> {
        let inner = self.inner();
        if options.flush {
            if options.abort_on_pause {
                paused_work::check_work_goes_on(&inner.tree)?;
            }
            self.flush_all()?;
        }
        inner.wait_until_idle_as(options)?;
        if options.close_db { self.close() } else { Ok(()) }
    }

    /// Stops all writes, so that the contents stay as they are, until [`Db::unlock_wal`] was called
    /// as often, by any thread. Waits for the writes that have begun; all are in the WAL's file
    /// then, also with `manual_wal_flush`. Writers wait, with `no_slowdown` they fail with
    /// `Incomplete`; tables that are ingested wait, too. Flushes, compactions and checkpoints go
    /// on. Closing the database ends the wait, and those writers fail.
    ///
    /// # Errors
    /// As [`Db::flush_wal`]; `NotSupported` if the database is open for reading. Nothing is locked
    /// then.
    pub fn lock_wal(&self) -> Result<()> {
        let inner = self.inner();
        inner.pipeline.lock_wal().inspect_err(|error| inner.tree.refused(error))
    }

    /// Takes back one call of [`Db::lock_wal`].
    ///
    /// # Errors
    /// `Aborted` if the WAL is not locked; `ShutdownInProgress`.
    pub fn unlock_wal(&self) -> Result<()> {
        self.inner().pipeline.unlock_wal()
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
