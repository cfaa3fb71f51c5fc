//! The commit pipeline: what writers share.
//!
//! - `steps`: the order of the steps of a commit.
//! - `insertions`: publishing in order what is inserted side by side.
//! - `write`: the way of a batch; `named`: the families that it names; `insert`: its way into the
//!   memtables.
//! - `switch`: memtables and WALs that take over from full ones.
//! - `two_phase`: transactions that are prepared in the WAL, and decided later.
//! - `wal_sync`: syncs of the WAL, for many writers at once.
//! - `held_back`: writers that wait while tables are ingested.
//!
//! Here is what the rest of the engine asks of it. None of these verbs hands out the commit lock;
//! work that must happen between two commits is given to the verb.

mod held_back;
mod insert;
pub(in crate::db::writing) mod insertions;
pub(in crate::db::writing) mod named;
mod protected;
pub(in crate::db::writing) mod steps;
mod switch;
pub(in crate::db) mod two_phase;
mod wal_sync;
pub(in crate::db::writing) mod write;

use std::sync::Arc;

use crate::base::perf::{self, PerfMetric};
use crate::base::sync::{AtomicBool, Mutex, MutexGuard, Ordering, Rank, ranked};
use crate::base::{
    Code, ColumnFamilyId, Error, FileNumber, MAX_SEQUENCE_NUMBER, Result, SequenceNumber,
};
use crate::batch::WriteBatch;
use crate::blob::{BlobIndex, GarbageMeter};
use crate::db::context::Context;
use crate::db::disk::Disk;
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::limits::Limits;
use crate::db::reading::Reader;
use crate::db::tables::Tables;
use crate::db::tree::flushes::Wanted;
use crate::db::tree::output::JobOutput;
use crate::db::tree::{Below, Tree};
use crate::db::wal_space::WalSpace;
use crate::db::write_control::WriteControl;
use crate::db::writing::admission::Admission;
use crate::db::writing::commit::{Commit, MemtableBytes, ShownDestinations};
use crate::db::writing::direct_blob::{DirectBlobs, DirectInputs, PausedSeparation};
use crate::db::writing::file_syncs::FileSyncs;
pub(in crate::db) use crate::db::writing::pipeline::held_back::WritesHeldBack;
use crate::db::writing::pipeline::insertions::Insertions;
use crate::db::writing::pipeline::two_phase::TwoPhase;
use crate::db::writing::pipeline::wal_sync::WalSync;
use crate::db::writing::wal_files::WalFiles;
use crate::memtable::ArenaPool;
use crate::options::FlushReason;
use crate::wal::{self, PredecessorWal};

/// The way of a write from its caller to the memtables.
pub(in crate::db) struct Pipeline {
    context: Arc<Context>,
    tree: Arc<Tree>,
    disk: Arc<Disk>,
    limits: Arc<Limits>,
    tables: Arc<Tables>,
    reader: Arc<Reader>,
    admission: Admission,
    wals: WalFiles,
    blobs: DirectBlobs,
    syncs: Arc<FileSyncs>,
    commit: Mutex<Commit>,
    insertions: Insertions,
    memtables: Memtables,
    wal_sync: WalSync,
    wal_space: Arc<WalSpace>,
}

/// What the memtables that take writes have come to, told without the commit lock.
struct Memtables {
    /// Where their memory comes from.
    arenas: Arc<ArenaPool>,
    bytes: MemtableBytes,
    /// Which they are.
    shown: ShownDestinations,
    /// A memtable that takes writes has become full: the next writer switches it.
    is_any_full: AtomicBool,
}

/// The WAL that takes the writes, at one moment.
#[derive(Clone, Copy)]
pub(in crate::db) struct ActiveWal {
    pub(in crate::db) number: FileNumber,
    /// Bytes that are in its file.
    pub(in crate::db) written: u64,
}

impl Pipeline {
    pub(in crate::db) fn new(
        below: Below,
        tree: Arc<Tree>,
        reader: Arc<Reader>,
        arenas: Arc<ArenaPool>,
    ) -> Self {
        let syncs = Arc::new(FileSyncs::new(below.context.clone()));
        let write_buffers = below.limits.write_buffers().cloned();
        Self {
            admission: Admission::new(&below, &tree),
            wals: WalFiles::new(&below, &tree),
            blobs: DirectBlobs::new(&below, &tree, &syncs),
            context: below.context,
            tree,
            disk: below.disk,
            limits: below.limits,
            tables: below.tables,
            reader,
            insertions: Insertions::new(below.snapshots),
            memtables: Memtables {
                arenas,
                bytes: MemtableBytes::new(write_buffers),
                shown: ShownDestinations::default(),
                is_any_full: AtomicBool::new(false),
            },
            syncs,
            commit: ranked(Rank::Commit, Commit::default()),
            wal_sync: WalSync::default(),
            wal_space: below.wal_space,
        }
    }
}

/// Opening and closing.
impl Pipeline {
    /// What prepares transactions and decides on them.
    pub(in crate::db) fn two_phase(&self) -> TwoPhase<'_> {
        TwoPhase::of(self)
    }

    /// Numbers writes from behind this one on, which readers see.
    pub(in crate::db) fn set_last_sequence(&self, last: SequenceNumber) {
        self.insertions.begin_behind(last);
        self.commit.lock().numbers.last = last;
    }

    /// Begins to take writes: a new WAL, and the memtables that `begin` returns. `is_cut` says that
    /// what was replayed ended early, which the WAL then says with its first record.
    pub(in crate::db) fn begin(
        &self,
        number: FileNumber,
        is_cut: bool,
        begin: impl FnOnce() -> Result<Vec<(Arc<Family>, Arc<Generation>)>>,
    ) -> Result<()> {
        let mut commit = self.commit.lock();
        let mut writer = self.wals.create(number, &mut commit.log.unbegun)?;
        // Behind the last number that there is nothing can follow.
        if is_cut && commit.numbers.last < MAX_SEQUENCE_NUMBER {
            let mut marker = WriteBatch::new();
            marker.set_sequence(commit.numbers.last + 1);
            writer.add_record(marker.data())?;
            writer.write_gathered()?;
            writer.file().sync()?;
        }
        commit.log.writer = Some(writer);
        commit.log.number = number;
        for (family, mem) in begin()? {
            commit.add_target(family, mem, &self.memtables.bytes);
        }
        commit.show_destinations(&self.memtables.shown);
        Ok(())
    }

    /// Refuses writes from now on: what is flushed next is the last that was written.
    pub(in crate::db) fn begin_ending(&self) {
        let mut commit = self.commit.lock();
        commit.end.has_begun = true;
        commit.wal_locks = 0;
        drop(commit);
        self.admission.writes_go_on.notify_all();
    }

    /// Whether anything was written without the WAL since the database was opened.
    pub(in crate::db) fn has_unlogged(&self) -> bool {
        self.commit.lock().has_unlogged
    }

    /// Whether the blob is there, and whole, that a replayed WAL names.
    pub(in crate::db) fn check_recovered_blob(
        &self,
        family: &Family,
        key: &[u8],
        index: &BlobIndex,
    ) -> Result<()> {
        self.blobs.check_recovered(family, key, index)
    }

    /// What is not there, or not yet, of a blob that the WAL of another process names.
    ///
    /// # Errors
    /// `IoError`.
    pub(in crate::db) fn find_blob(
        &self,
        family: &Family,
        index: &BlobIndex,
    ) -> Result<Option<Error>> {
        self.blobs.find(family, index)
    }

    /// Tells a memtable, which gets the address of a blob that was found whole, of the file.
    pub(in crate::db) fn take_recovered_blob(
        &self,
        family: &Family,
        mem: &Generation,
        key: &[u8],
        index: &BlobIndex,
    ) -> Result<()> {
        self.blobs.take_recovered(family, mem, key, index)
    }
}

/// Column families, flushes and checkpoints.
impl Pipeline {
    /// Takes writes to new families, which `create` makes between two commits; it is told the
    /// active WAL.
    pub(in crate::db) fn add_families(
        &self,
        create: impl FnOnce(FileNumber) -> Result<Vec<(Arc<Family>, Arc<Generation>)>>,
    ) -> Result<Vec<Arc<Family>>> {
        self.add_families_to(&mut self.commit.lock(), create)
    }

    fn add_families_to(
        &self,
        commit: &mut Commit,
        create: impl FnOnce(FileNumber) -> Result<Vec<(Arc<Family>, Arc<Generation>)>>,
    ) -> Result<Vec<Arc<Family>>> {
        let families = create(commit.log.number)?;
        for (family, mem) in &families {
            commit.add_target(family.clone(), mem.clone(), &self.memtables.bytes);
        }
        commit.show_destinations(&self.memtables.shown);
        Ok(families.into_iter().map(|(family, _)| family).collect())
    }

    /// Drops a family between two commits.
    pub(in crate::db) fn drop_family(&self, family: &Arc<Family>) -> Result<()> {
        let mut commit = self.commit.lock();
        self.disk.check_may_free()?;
        family.check_alive()?;
        self.tree.drop_family(family).inspect_err(|_| {
            if let Some(target) = commit.targets.get_mut(&family.id) {
                target.drop_in_doubt = true;
                commit.asked.settle_drop = true;
            }
        })?;
        self.insertions.wait_for_all(&commit.turns)?;
        commit.remove_target(family.id, &self.memtables.bytes);
        commit.show_destinations(&self.memtables.shown);
        commit.ask_again_for_wals();
        Ok(())
    }

    /// Switches the memtables of these families (with `atomic_flush`, of all), and asks for their
    /// flush before anything is written to the new ones. Returns what is to be flushed.
    pub(in crate::db) fn seal(
        &self,
        families: &[Arc<Family>],
        reason: FlushReason,
    ) -> Result<Vec<Wanted>> {
        self.context.process.check()?;
        let mut commit = self.commit.lock();
        self.disk.check_changeable()?;
        let ids: Vec<ColumnFamilyId> = if self.tree.flushes_together() {
            self.tree.families.read().keys().copied().collect()
        } else {
            families.iter().map(|family| family.id).collect()
        };
        self.switch_memtables(&mut commit, &ids, reason)?;
        Ok(self.tree.ask_for_flush(&ids))
    }

    /// Seals and syncs the blob files of memtables that a flush's output refers to.
    pub(in crate::db) fn settle_direct_files(
        &self,
        family: &Family,
        inputs: &DirectInputs,
        meter: &mut GarbageMeter,
        output: &mut JobOutput,
    ) -> Result<()> {
        self.blobs.settle(family, inputs, meter, output)
    }

    /// Leaves large values of batches in the WAL until what is returned is dropped.
    pub(in crate::db) fn pause_separation(&self) -> PausedSeparation<'_> {
        self.blobs.pause_separation()
    }

    /// Has `work` look at the database between two commits; it is told the active WAL, unless none
    /// is written.
    pub(in crate::db) fn between_commits<T>(&self, work: impl FnOnce(Option<ActiveWal>) -> T) -> T {
        let commit = self.commit.lock();
        // Behind a panic the database is poisoned, and what is not inserted stays so.
        self.insertions.wait_for_all(&commit.turns).ok();
        work(commit.active_wal())
    }

    /// The same, once all records are in the WAL's file.
    pub(in crate::db) fn between_flushed_commits<T>(
        &self,
        work: impl FnOnce(Option<ActiveWal>) -> Result<T>,
    ) -> Result<T> {
        let mut commit = self.commit.lock();
        if commit.log.writer.is_some() {
            self.flush_log(&mut commit)?;
            self.insertions.wait_for_all(&commit.turns)?;
        }
        work(commit.active_wal())
    }

    /// Files may be deleted again, unless something else keeps them. WALs that flushes would have
    /// removed meanwhile go now.
    pub(in crate::db) fn end_pause(&self, pause: usize) {
        let mut commit = self.commit.lock();
        // Nobody is to be asked in a database that is closed by now, or open for reading only.
        let is_written = commit.log.writer.is_some();
        if is_written {
            commit.ask_again_for_wals();
        }
        self.tree.resume_deletions(pause, is_written);
    }
}

/// Tables from outside.
impl Pipeline {
    /// Holds back the writes that have not begun, after others who do so.
    ///
    /// # Errors
    /// `ShutdownInProgress`; `Aborted` behind a write that panicked.
    pub(in crate::db) fn hold_back_writes(&self) -> Result<WritesHeldBack<'_>> {
        let mut commit = self.lock_to_write(true)?;
        commit.check_not_ending()?;
        self.insertions.wait_for_all(&commit.turns)?;
        commit.are_writes_held_back = true;
        Ok(WritesHeldBack(self))
    }

    /// Takes the commit lock for a write, once none are held back.
    ///
    /// # Errors
    /// `Incomplete` while the WAL is locked, unless the write `waits` for that.
    #[inline]
    pub(in crate::db::writing) fn lock_to_write(
        &self,
        waits: bool,
    ) -> Result<MutexGuard<'_, Commit>> {
        let time = perf::time(PerfMetric::DbMutexLockNanos);
        let mut commit = self.commit.lock();
        drop(time);
        while commit.are_writes_held_back || commit.wal_locks > 0 {
            if commit.wal_locks > 0 && !waits {
                return Err(Error::incomplete(
                    "the write would have to wait for unlock_wal, but no_slowdown is set",
                ));
            }
            self.admission.writes_go_on.wait(&mut commit);
        }
        Ok(commit)
    }
}

/// Freezing the contents. Writes that have their sequence numbers end: they are inserted, synced if
/// that is awaited, and published. No other begins. Flushes go on: they change no contents.
impl Pipeline {
    /// Lets no write begin until [`Self::unlock_wal`] was called as often. All records are in the
    /// WAL's file then, and readers see all writes.
    ///
    /// # Errors
    /// Those of writes; nothing is locked then.
    pub(in crate::db) fn lock_wal(&self) -> Result<()> {
        self.context.check_writable()?;
        let (last, is_awaited) = {
            let mut commit = self.commit.lock();
            while commit.are_writes_held_back {
                self.admission.writes_go_on.wait(&mut commit);
            }
            commit.check_not_ending()?;
            self.insertions.wait_for_all(&commit.turns)?;
            self.flush_log(&mut commit)?;
            commit.wal_locks += 1;
            (commit.numbers.last, self.is_sync_awaited(&commit))
        };
        if is_awaited {
            let clock = &*self.context.env.clock;
            let synced = self.wal_sync.wait_for(last, clock, || self.sync_and_publish());
            if let Err(error) = synced {
                self.take_back_lock();
                return Err(error);
            }
        }
        // Writers that waited for the sync of others may not have come round to it.
        self.insertions.publish(last);
        Ok(())
    }

    /// # Errors
    /// `Aborted` if the WAL is not locked.
    pub(in crate::db) fn unlock_wal(&self) -> Result<()> {
        self.context.check_open()?;
        if self.take_back_lock() {
            Ok(())
        } else {
            Err(Error::new(Code::Aborted, "the WAL is not locked"))
        }
    }

    /// Whether there was a lock to take back: closing takes back all.
    fn take_back_lock(&self) -> bool {
        let mut commit = self.commit.lock();
        let Some(left) = commit.wal_locks.checked_sub(1) else { return false };
        commit.wal_locks = left;
        drop(commit);
        if left == 0 {
            self.admission.writes_go_on.notify_all();
        }
        true
    }
}

/// What is to be known of the WALs and of writers.
impl Pipeline {
    /// The number of the active WAL.
    pub(in crate::db) fn active_wal(&self) -> FileNumber {
        self.commit.lock().log.number
    }

    /// Bytes of all WALs.
    pub(in crate::db) fn wal_bytes(&self) -> u64 {
        self.commit.lock().wal_size() + self.wal_space.older_bytes.load(Ordering::Relaxed)
    }

    /// [`Self::wal_bytes`], unless the commit lock is held.
    pub(in crate::db) fn wal_bytes_at_hand(&self) -> Option<u64> {
        let active = self.commit.try_lock()?.wal_size();
        Some(active + self.wal_space.older_bytes.load(Ordering::Relaxed))
    }

    /// Bytes of the active WAL that are mapped into memory.
    pub(in crate::db) fn mapped_wal_bytes(&self) -> u64 {
        self.commit.lock().log.writer.as_ref().map_or(0, wal::Writer::mapped_bytes)
    }

    /// Whether WALs before the active one have bytes that no sync has covered.
    pub(in crate::db) fn owes_syncs_of_older_wals(&self) -> bool {
        !self.commit.lock().debt.logs.is_empty()
    }

    /// Whether the log record of that write may wait in memory, in no file, though the write may be
    /// published.
    pub(in crate::db) fn may_wait_in_memory(&self, wanted: SequenceNumber) -> bool {
        let commit = self.commit.lock();
        let is_any = commit.log.writer.as_ref().is_some_and(|wal| wal.written() < wal.offset());
        is_any && commit.log.waiting_from <= wanted
    }

    /// What the active WAL, if it has this number, says of the one before it, or is to say.
    pub(in crate::db) fn predecessor_of_active(
        &self,
        number: FileNumber,
    ) -> Option<PredecessorWal> {
        let commit = self.commit.lock();
        commit.log.predecessor.filter(|_| commit.log.number == number)
    }

    /// Sets the bytes of all WALs at which memtables are flushed for their sake, and those that all
    /// may have.
    pub(in crate::db) fn set_wal_limits(&self, flushed_at: u64, cap: u64) {
        self.wal_space.limit.store(flushed_at, Ordering::Relaxed);
        self.wal_space.cap.store(cap, Ordering::Relaxed);
    }

    /// Bytes that a WAL is to reserve.
    pub(in crate::db) fn wal_reserve(&self) -> u64 {
        self.wals.reserve_size()
    }

    /// Bytes that the active WAL was to reserve, and found no room for.
    pub(in crate::db) fn missing_wal_reserve(&self) -> u64 {
        self.wal_space.reserve_missing.load(Ordering::Relaxed)
    }

    /// How fast writers may be, and how long they were held up.
    pub(in crate::db) fn control(&self) -> &WriteControl {
        self.admission.control()
    }

    /// Keeps all writes waiting until it is dropped.
    #[cfg(test)]
    pub(in crate::db) fn hold_writes(&self) -> impl Sized + '_ {
        self.commit.lock()
    }
}
