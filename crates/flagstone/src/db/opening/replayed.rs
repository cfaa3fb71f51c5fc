//! What a replay writes to level 0 on its way, and what it tells of its progress.
//!
//! 1. A memtable that is full is taken out, and a thread of its own writes it while the replay
//!    fills the next.
//! 2. One is written at a time: the next one waits for it. So tables come into being in the order
//!    of history, as they would without a thread, and of memtables that are full only one is in
//!    memory.
//! 3. Nobody goes on with the directory while that thread writes to it: it is waited for, also
//!    where the replay fails.
//!
//! In a world without threads the caller writes.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::base::{
    Code, ColumnFamilyId, Error, FileNumber, Result, Sometimes, TableFileCreationReason,
};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::jobs::flush_parts;
use crate::db::tree::output::JobOutput;
use crate::db::tree::state::LiveWal;
use crate::env::Join;
use crate::manifest::{Version, VersionEdit, VersionSet};
use crate::options::{OpenProgress, OpenProgressCallback};

/// Tables that a replay writes.
pub(in crate::db) struct ReplayedTables {
    inner: Arc<DbInner>,
    edits: BTreeMap<ColumnFamilyId, VersionEdit>,
    in_flight: Option<InFlight>,
    /// How many are written.
    pub(in crate::db) count: u64,
}

/// A memtable on its way to a table.
struct InFlight {
    family: ColumnFamilyId,
    thread: Box<dyn Join>,
    outcome: Arc<Mutex<Option<Result<JobOutput>>>>,
}

impl ReplayedTables {
    pub(in crate::db) fn new(inner: &Arc<DbInner>) -> Self {
        Self { inner: inner.clone(), edits: BTreeMap::new(), in_flight: None, count: 0 }
    }

    /// Takes a family's memtable out and writes it, maybe after this returns.
    ///
    /// # Errors
    /// Those of the memtable before, too.
    pub(in crate::db) fn write(&mut self, family: Arc<Family>, mem: Arc<Generation>) -> Result<()> {
        self.settle()?;
        let id = family.id;
        if !self.inner.tree.has_workers() {
            let output = flush_parts::write_level0(
                &self.inner.jobs,
                &family,
                &[mem],
                (TableFileCreationReason::Recovery, 0),
            )?;
            self.add(id, &output);
            return Ok(());
        }
        let (inner, outcome) = (self.inner.clone(), Arc::new(Mutex::new(None)));
        let told = outcome.clone();
        let work = move || {
            let written = catch_unwind(AssertUnwindSafe(|| {
                flush_parts::write_level0(
                    &inner.jobs,
                    &family,
                    &[mem],
                    (TableFileCreationReason::Recovery, 0),
                )
            }));
            let panicked =
                |_| Err(Error::new(Code::Aborted, "writing a memtable during recovery panicked"));
            *told.lock() = Some(written.unwrap_or_else(panicked));
        };
        let thread = self.inner.context.env.spawner.spawn("flagstone-replay", Box::new(work))?;
        self.in_flight = Some(InFlight { family: id, thread, outcome });
        Ok(())
    }

    /// Waits for what is being written.
    fn settle(&mut self) -> Result<()> {
        let Some(InFlight { family, thread, outcome }) = self.in_flight.take() else {
            return Ok(());
        };
        thread.join();
        let outcome = outcome.lock().take();
        let output = outcome.expect("the thread tells what came of it, also of a panic")?;
        self.add(family, &output);
        Ok(())
    }

    fn add(&mut self, family: ColumnFamilyId, output: &JobOutput) {
        Sometimes::RecoveryFlushedOnTheWay.reached();
        let edit = self.edits.entry(family).or_insert_with(|| VersionEdit::new(family));
        output.describe(edit, 0);
        self.count += 1;
    }

    /// The edits that add the tables when all are written, and how many these are.
    ///
    /// # Errors
    /// What went wrong with the last one.
    pub(in crate::db) fn finish(&mut self) -> Result<(BTreeMap<ColumnFamilyId, VersionEdit>, u64)> {
        self.settle()?;
        Ok((std::mem::take(&mut self.edits), self.count))
    }
}

impl Drop for ReplayedTables {
    fn drop(&mut self) {
        if let Some(InFlight { thread, .. }) = self.in_flight.take() {
            thread.join();
        }
    }
}

/// Bytes of WAL between two calls.
const PROGRESS_INTERVAL: u64 = 1 << 20;

/// Files between two calls.
const FILES_INTERVAL: u64 = 100;

/// Tells how far an opening is.
pub(in crate::db) struct ProgressMeter {
    callback: Option<OpenProgressCallback>,
    /// Where each WAL begins, if they are taken as one.
    starts: BTreeMap<FileNumber, u64>,
    progress: OpenProgress,
}

impl ProgressMeter {
    pub(in crate::db) fn new(callback: Option<OpenProgressCallback>) -> Self {
        Self { callback, starts: BTreeMap::new(), progress: OpenProgress::default() }
    }

    fn tell(&self) {
        if let Some(callback) = &self.callback {
            callback(&self.progress);
        }
    }

    /// The files of these versions are to be checked.
    pub(in crate::db) fn checks_files(&mut self, versions: &VersionSet) {
        let count =
            |version: &Version| version.num_files() as u64 + version.blob_files.len() as u64;
        self.progress.files_total = versions.families().map(|family| count(&family.current)).sum();
    }

    /// One of them is.
    pub(in crate::db) fn checked_file(&mut self) {
        self.progress.files_checked += 1;
        if self.progress.files_checked.is_multiple_of(FILES_INTERVAL) {
            self.tell();
        }
    }

    /// These WALs are to be replayed; silent from now on if they have nothing in them.
    pub(in crate::db) fn replays(&mut self, wals: &[LiveWal]) {
        for wal in wals {
            self.starts.insert(wal.number, self.progress.wal_bytes_total);
            self.progress.wal_bytes_total += wal.bytes;
        }
        if self.progress.wal_bytes_total == 0 {
            self.callback = None;
        }
        self.tell();
    }

    /// The replay has come to this place; `done` says how many tables are written and blobs
    /// checked.
    #[inline]
    pub(in crate::db) fn replaying(
        &mut self,
        wal: FileNumber,
        offset: u64,
        done: impl FnOnce() -> (u64, u64),
    ) {
        if self.callback.is_none() {
            return;
        }
        let at = self.starts.get(&wal).copied().unwrap_or(0) + offset;
        let (tables, blobs) = done();
        let progress = &mut self.progress;
        if at >= progress.wal_bytes_replayed + PROGRESS_INTERVAL || tables > progress.tables_written
        {
            progress.wal_bytes_replayed = at.max(progress.wal_bytes_replayed);
            (progress.tables_written, progress.blobs_checked) = (tables, blobs);
            self.tell();
        }
    }

    /// All WALs are replayed, also those that history ended before.
    pub(in crate::db) fn replayed(&mut self, tables: u64, blobs: u64) {
        self.progress.wal_bytes_replayed = self.progress.wal_bytes_total;
        (self.progress.tables_written, self.progress.blobs_checked) = (tables, blobs);
        self.tell();
    }
}

#[cfg(test)]
mod tests;
