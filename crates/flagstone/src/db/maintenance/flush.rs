//! Flushes that a program asks for, of memtables and of the WAL.

use crate::base::Result;
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::options::{FlushOptions, FlushReason};

impl Db {
    /// Writes what a family has in memory to a table; with `atomic_flush`, what all families have.
    ///
    /// # Errors
    /// `IoError`, or what had poisoned the database; `ColumnFamilyDropped`.
    pub fn flush(&self, family: &ColumnFamily, options: &FlushOptions) -> Result<()> {
        self.inner().disk.check_owner(&family.0)?;
        family.0.check_alive()?;
        if !options.allow_write_stall {
            self.inner().tree.wait_until_a_flush_stalls_nobody(&family.0)?;
        }
        self.inner().jobs.flush_asked_for(
            std::slice::from_ref(&family.0),
            options.wait,
            FlushReason::Manual,
        )
    }

    /// As [`Db::flush`], for all families, at once and waiting, whatever that means for writers.
    ///
    /// # Errors
    /// As [`Db::flush`].
    pub fn flush_all(&self) -> Result<()> {
        let families: Vec<_> = self.inner().tree.families.read().values().cloned().collect();
        self.inner().jobs.flush_asked_for(&families, true, FlushReason::Manual)
    }

    /// With `manual_wal_flush`, brings the log records that wait in the process's memory into the
    /// WAL's file: what was written so far survives the death of the process, and with `sync`, as
    /// after [`Db::sync_wal`], a power loss. Without `manual_wal_flush` nothing waits.
    ///
    /// # Errors
    /// `IoError`; after one with the subcode `NoSpace` that a write meets the records wait on,
    /// after others the database accepts no more writes.
    pub fn flush_wal(&self, sync: bool) -> Result<()> {
        self.inner().pipeline.flush_wal(sync).inspect_err(|error| self.inner().tree.refused(error))
    }

    /// Makes everything written so far survive a power loss.
    ///
    /// # Errors
    /// `IoError`; the database then accepts no more writes.
    pub fn sync_wal(&self) -> Result<()> {
        self.inner().context.check_syncable()?;
        self.inner().pipeline.sync_wal().inspect_err(|error| self.inner().tree.refused(error))
    }
}
