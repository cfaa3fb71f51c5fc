//! Flushes and other background work that a program asks for, and writes that go on after a full
//! disk.

use crate::base::Result;
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::db::tree::{Steps, paused_work};
use crate::env::Role;
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

    /// Does one flush or compaction in the calling thread; whether there was one to do. Only where
    /// the environment has no worker threads ([`crate::env::Spawn::choose_step`]); elsewhere the
    /// workers do it and this does nothing.
    ///
    /// # Errors
    /// Those of the flush or compaction, which the database has taken note of as of a worker's.
    pub fn background_step(&self) -> Result<bool> {
        self.inner().jobs.background_step()
    }

    /// Tries at once whether there is space again for what suspended writes; the database does so
    /// twice a second by itself. Waits for a flush that is running.
    ///
    /// # Errors
    /// Why writes are refused still: a full disk, or what only reopening helps against (subcode
    /// `Poisoned`).
    pub fn resume(&self) -> Result<()> {
        let inner = self.inner();
        inner.context.check_open()?;
        let _asleep = inner.background.sleep_for_them();
        let attempted = loop {
            if inner.context.poison.is_fatal() {
                break Ok(());
            }
            match inner.jobs.attempt_one(Role::Flush) {
                Ok(true) => {}
                Ok(false) if inner.context.poison.check().is_err() => {
                    if !paused_work::wait_for_running_flushes(&inner.tree) {
                        break Ok(());
                    }
                }
                outcome => break outcome.map(|_| ()),
            }
        };
        inner.context.events.tell();
        attempted?;
        inner.context.check_writable()
    }
}
