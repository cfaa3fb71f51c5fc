//! What a replay writes to level 0 on its way, and what it tells of its progress.
//!
//! 1. A memtable that is full is taken out, and a thread of its own writes it while the replay fills the next.
//! 2. One is written at a time: the next one waits for it. So tables come into being in the order of history, as they would
//!    without a thread, and of memtables that are full only one is in memory.
//! 3. Nobody goes on with the directory while that thread writes to it: it is waited for, also where the replay fails.
//!
//! In a world without threads the caller writes.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::base::{Code, ColumnFamilyId, Error, FileNumber, Result, Sometimes, TableFileCreationReason};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::generation::Generation;
use crate::db::jobs::job::JobOutput;
use crate::db::state::LiveWal;
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
            let output = self.inner.jobs.write_level0(&family, &[mem], TableFileCreationReason::Recovery)?;
            self.add(id, &output);
            return Ok(());
        }
        let (inner, outcome) = (self.inner.clone(), Arc::new(Mutex::new(None)));
        let told = outcome.clone();
        let work = move || {
            let written = catch_unwind(AssertUnwindSafe(|| {
                inner.jobs.write_level0(&family, &[mem], TableFileCreationReason::Recovery)
            }));
            let panicked = |_| Err(Error::new(Code::Aborted, "writing a memtable during recovery panicked"));
            *told.lock() = Some(written.unwrap_or_else(panicked));
        };
        let thread = self.inner.context.env.spawner.spawn("flagstone-replay", Box::new(work))?;
        self.in_flight = Some(InFlight { family: id, thread, outcome });
        Ok(())
    }

    /// Waits for what is being written.
    fn settle(&mut self) -> Result<()> {
        let Some(InFlight { family, thread, outcome }) = self.in_flight.take() else { return Ok(()) };
        thread.join();
        let outcome = outcome.lock().take();
        let output = outcome.expect("the thread tells what came of it, also of a panic")?;
        self.add(family, &output);
        Ok(())
    }

    fn add(&mut self, family: ColumnFamilyId, output: &JobOutput) {
        Sometimes::RecoveryFlushedOnTheWay.reached();
        output.describe(self.edits.entry(family).or_insert_with(|| VersionEdit::new(family)), 0);
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
        let count = |version: &Version| version.num_files() as u64 + version.blob_files.len() as u64;
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

    /// The replay has come to this place; `done` says how many tables are written and blobs checked.
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
        if at >= progress.wal_bytes_replayed + PROGRESS_INTERVAL || tables > progress.tables_written {
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
mod tests {
    use super::*;
    use crate::batch::WriteBatch;
    use crate::db::Db;
    use crate::env::Env;
    use crate::options::{FlushOptions, Options};

    const KEYS: usize = 100;
    const WRITES: usize = 20_000;

    fn options(env: &Env, write_buffer_size: u64) -> Options {
        let mut options = Options { env: env.clone(), ..Options::default() };
        options.create_if_missing = true;
        options.cf.settings.disable_auto_compactions = true;
        options.cf.settings.level0_slowdown_writes_trigger = 1000;
        options.cf.settings.level0_stop_writes_trigger = 1000;
        options.cf.settings.write_buffer_size = write_buffer_size;
        options
    }

    /// A database whose WAL holds versions of a few keys, in two families.
    fn unflushed() -> Env {
        let env = Env::memory();
        let db = Db::open("/db", &options(&env, 64 << 20)).unwrap();
        let family = db.create_column_family("other", &options(&env, 64 << 20).cf).unwrap();
        for i in 0..WRITES {
            let (key, value) = (format!("key{:03}", i % KEYS), format!("{i:0100}"));
            if i % 3 == 0 {
                db.put_cf(&family, key, value).unwrap();
            } else {
                db.put(key, value).unwrap();
            }
        }
        db.delete("key000").unwrap();
        db.close().unwrap();
        env
    }

    /// The last write of a key in a family.
    fn expected(key: usize, is_other: bool) -> usize {
        (0..WRITES).rev().find(|i| i % KEYS == key && (i % 3 == 0) == is_other).unwrap()
    }

    #[test]
    fn memtables_that_fill_up_in_the_replay_keep_the_order_of_history() {
        let env = unflushed();
        let db = Db::open("/db", &options(&env, 64 << 10)).unwrap();
        let other = db.column_family("other").unwrap();
        let tables = db.live_files().len();
        assert!(tables > 10, "{tables} tables: the replay wrote none on its way");
        for key in 0..KEYS {
            let name = format!("key{key:03}");
            let value = |is_other| format!("{:0100}", expected(key, is_other));
            assert_eq!(db.get_cf(&other, &name).unwrap().unwrap(), value(true).as_str());
            match db.get(&name).unwrap() {
                None => assert_eq!(key, 0),
                Some(found) => assert_eq!(found, value(false).as_str()),
            }
        }
        assert_eq!(db.latest_sequence_number(), WRITES as u64 + 1);
        // Newest first: a flush that overtook another would stand in the wrong place.
        let largest: Vec<_> = db.default_column_family().0.current.load().version.levels[0]
            .iter()
            .map(|file| file.meta.largest_seqno)
            .collect();
        assert!(largest.is_sorted_by(|newer, older| newer > older), "{largest:?}");
    }

    /// All of it came into one memtable, which became many times as large as it may, beside a list of all its operations.
    #[test]
    fn a_batch_that_is_larger_than_a_memtable_fills_several() {
        let env = Env::memory();
        let db = Db::open("/db", &options(&env, 64 << 20)).unwrap();
        let mut batch = WriteBatch::new();
        for i in 0..WRITES {
            batch.put(format!("key{:03}", i % KEYS), format!("{i:0100}")).unwrap();
        }
        db.write(batch).unwrap();
        db.close().unwrap();
        drop(db);
        let db = Db::open("/db", &options(&env, 64 << 10)).unwrap();
        let tables = db.live_files().len();
        assert!(tables > 10, "{tables} tables");
        for key in 0..KEYS {
            let found = db.get(format!("key{key:03}")).unwrap().unwrap();
            assert_eq!(found, format!("{:0100}", WRITES - KEYS + key).as_str());
        }
        assert_eq!(db.latest_sequence_number(), WRITES as u64);
    }

    #[test]
    fn opening_tells_how_far_it_is() {
        let env = unflushed();
        let told = Arc::new(Mutex::new(Vec::new()));
        let ear = told.clone();
        let mut options = options(&env, 64 << 10);
        options.open_progress = Some(Arc::new(move |progress| ear.lock().push(*progress)));
        let db = Db::open("/db", &options).unwrap();
        let tables = db.live_files().len() as u64;
        let steps = std::mem::take(&mut *told.lock());
        let (first, last) = (steps[0], steps[steps.len() - 1]);
        assert_eq!((first.wal_bytes_replayed, first.tables_written), (0, 0));
        assert_eq!((last.files_total, last.blobs_checked), (0, 0));
        assert!(last.wal_bytes_total > 2_000_000 && last.wal_bytes_replayed == last.wal_bytes_total);
        // Each family's last memtable is written after that.
        assert!(tables > 10 && last.tables_written == tables - 2, "{last:?}, {tables}");
        let is_ahead = |a: &OpenProgress, b: &OpenProgress| {
            a.wal_bytes_replayed <= b.wal_bytes_replayed && a.tables_written <= b.tables_written
        };
        assert!(steps.is_sorted_by(is_ahead), "{steps:?}");
        db.close().unwrap();
        drop(db);
        // Nothing to replay, nothing to tell.
        drop(Db::open("/db", &options).unwrap());
        assert_eq!(*told.lock(), []);
        drop(options);
        assert_eq!(Arc::strong_count(&told), 1, "an open database keeps the callback");
    }
    #[test]
    fn opening_counts_what_it_checks() {
        let env = Env::memory();
        let mut options = options(&env, 64 << 20);
        options.cf.settings.blob_commit_min_size = 1000;
        options.cf.settings.enable_blob_files = Some(true);
        options.cf.settings.min_blob_size = Some(1000);
        let db = Db::open("/db", &options).unwrap();
        for at in 0..101 {
            db.put(format!("{at}"), "small").unwrap();
            db.flush(db.default_column_family(), &FlushOptions::default()).unwrap();
        }
        // Closing would flush them.
        (0..7).for_each(|at| db.put(format!("{at}"), vec![b'v'; 2000]).unwrap());
        let told = Arc::new(Mutex::new(Vec::new()));
        let ear = told.clone();
        options.open_progress = Some(Arc::new(move |progress| ear.lock().push(*progress)));
        drop(Db::open_read_only("/db", &options).unwrap());
        let steps = told.lock();
        let checked: Vec<_> = steps.iter().map(|step| (step.files_checked, step.files_total)).collect();
        assert_eq!(checked, [(100, 101), (101, 101), (101, 101)]);
        assert_eq!(steps.iter().map(|step| step.blobs_checked).collect::<Vec<_>>(), [0, 0, 7]);
    }
}
