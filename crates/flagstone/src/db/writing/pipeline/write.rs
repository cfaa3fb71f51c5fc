//! The way of a write.
//!
//! 1. Look at the poison and, if the tree is behind, wait for room (`admission`).
//! 2. Put large values into blob files (`direct_blob`).
//! 3. Find the families that the batch names ([`NamedFamilies`]).
//! 4. Take the commit lock; check the batch against the families; switch memtables that are full.
//! 5. Assign sequence numbers, append one WAL record (if it is to be synced, to those that the sync
//!    will write), pin the memtables, take a turn ([`super::insertions`]).
//! 6. Leave the lock; insert into the memtables, beside other writers.
//! 7. Publish when all before it are in; or, if this write or one before it asked for a sync, after
//!    the sync ([`super::wal_sync`]).
//!
//! **Lock order.** commit, then state. Readers take neither.

use std::sync::Arc;

use smallvec::smallvec;

use crate::base::checksum::Suffix;
use crate::base::perf::{self, PerfMetric, RestOfWrite};
use crate::base::sync::{MutexGuard, Ordering};
use crate::base::{
    ColumnFamilyId, Error, FileNumber, Mutant, Result, SequenceNumber, Sometimes, SubCode,
};
use crate::batch::WriteBatch;
use crate::cache::MemoryKind;
use crate::db::family::Family;
use crate::db::family::direct_blobs::DirectFile;
use crate::db::reading::unchanged::{Asked, Unchanged};
use crate::db::statistics::Ticker;
use crate::db::writing::commit::{Commit, Pins};
use crate::db::writing::condition::Condition;
use crate::db::writing::direct_blob::{BlobsOfBatch, OwnFile, Source};
use crate::db::writing::pipeline::insert::watch;
use crate::db::writing::pipeline::insertions::Turn;
use crate::db::writing::pipeline::named::NamedFamilies;
use crate::db::writing::pipeline::steps::{CommitEnv, Committed, Numbers, Steps, is_sync_awaited};
use crate::db::writing::pipeline::{Pipeline, protected};
use crate::options::{BackgroundErrorReason, FlushReason, WriteOptions};
use crate::wal;

/// From so many bytes on it takes longer to compute the checksum of a batch than to complete it.
const SUMMED_MIN: usize = 512;

impl Pipeline {
    /// Writes a batch atomically.
    pub(crate) fn write(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        self.write_batch(options, batch, Condition::Nothing)
            .inspect_err(|error| self.tree.refused(error))
    }

    /// Writes a batch if a condition holds.
    ///
    /// # Errors
    /// `Busy` if a key was written behind its snapshot; those of the application.
    pub(in crate::db) fn write_if(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        condition: Condition<'_>,
    ) -> Result<()> {
        self.write_batch(options, batch, condition).inspect_err(|error| self.tree.refused(error))
    }

    pub(in crate::db) fn write_batch(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        condition: Condition<'_>,
    ) -> Result<()> {
        let _rest = RestOfWrite::begin();
        let bytes = batch.byte_size() as u64;
        let _counted = self.tables.account().hold_large(MemoryKind::Writes, batch.memory_usage());
        match self.admission.admit(options, bytes) {
            Err(error) if self.disk.admit_deletions(batch, &error) => {}
            outcome => outcome?,
        }
        protected::protect(options, batch);
        if bytes >= self.limits.direct_blob_min()
            && let Some((mut separated, blobs)) =
                self.separate_values(Source::Batch(batch), options)?
        {
            let _copied =
                self.tables.account().hold_large(MemoryKind::Writes, separated.memory_usage());
            let options = &protected::separated(options, batch)?;
            let committed = self.commit(options, &mut separated, blobs, bytes, condition);
            batch.set_sequence(separated.sequence());
            return committed;
        }
        self.commit(options, batch, BlobsOfBatch::Nothing, bytes, condition)
    }

    /// Sets one key to a large value, which is not copied if it goes to a blob file.
    pub(in crate::db) fn put_large(
        &self,
        options: &WriteOptions,
        family: &Family,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        self.write_large(options, family, key, value).inspect_err(|error| self.tree.refused(error))
    }

    fn write_large(
        &self,
        options: &WriteOptions,
        family: &Family,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        let _rest = RestOfWrite::begin();
        WriteBatch::check_put(key, value)?;
        let bytes = (key.len() + value.len()) as u64;
        self.admission.admit(options, bytes)?;
        let (mut batch, blobs) =
            match self.separate_values(Source::Put(family.id, key, value), options)? {
                Some(separated) => separated,
                None => {
                    let mut batch = WriteBatch::with_capacity(key.len() + value.len() + 32);
                    batch.put_cf(family.id, key, value)?;
                    (batch, BlobsOfBatch::Nothing)
                }
            };
        let _copied = self.tables.account().hold_large(MemoryKind::Writes, batch.memory_usage());
        self.commit(options, &mut batch, blobs, bytes, Condition::Nothing)
    }

    /// Commits a batch whose large values lie in `blobs`; with them it has `bytes` bytes.
    pub(in crate::db) fn commit(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        mut blobs: BlobsOfBatch<'_>,
        bytes: u64,
        mut condition: Condition<'_>,
    ) -> Result<()> {
        let families = NamedFamilies::of(batch, &blobs)?;
        let tail = self.tail_of(options, batch, &blobs);
        let mut pins = self.memtables.shown.pins();
        // Let go of without the lock.
        let mut asked = Asked::default();
        let appended = {
            let commit = &mut match condition {
                Condition::Unchanged(unchanged) => {
                    self.lock_unchanged(options, unchanged, &mut asked)?
                }
                _ => self.lock_to_write(!options.no_slowdown)?,
            };
            if matches!(condition, Condition::Callback(_)) {
                // What is inserted or synced still, reads would not see.
                self.sync_pending_writes(commit)?;
            }
            let locked = Locked {
                pipeline: self,
                commit,
                families: &families,
                blobs: &mut blobs,
                tail,
                pins: &mut pins,
            };
            let appended = self.append_locked(locked, options, batch, bytes, &mut condition)?;
            self.trace(batch, &blobs);
            appended
        };
        if !options.disable_wal {
            condition.note_logged();
        }
        self.insert_and_publish(pins, &families, batch, appended)
    }

    /// What comes behind the commit lock: the batch goes into its memtables, and readers see it
    /// when all before it are in, and what it waits for is synced.
    #[inline]
    pub(super) fn insert_and_publish(
        &self,
        pins: Pins,
        families: &NamedFamilies,
        batch: &WriteBatch,
        appended: Appended<'_>,
    ) -> Result<()> {
        let Appended { first, committed, turn, ahead } = appended;
        self.insert(&pins, families, batch, first, &turn)?;
        let turn = turn.done();
        // This write is inserted: no other write waits for this thread.
        for to in families.ids().filter_map(|id| pins.get(id)) {
            to.fetch_ahead();
        }
        // A wait for a sync is not to keep memtables that a flush is done with.
        drop(pins);
        if let Some(ahead) = ahead {
            ahead.fetch();
        }
        let (wanted, last, for_its_own) = match committed {
            Committed::Published => {
                let is_forgotten = Mutant::AcknowledgeOutOfOrder.is_on();
                return if is_forgotten { Ok(()) } else { self.insertions.wait_for(turn) };
            }
            Committed::Waits { wanted, last, for_its_own } => (wanted, last, for_its_own),
        };
        if for_its_own {
            self.sync_and_publish()?;
        } else {
            self.wal_sync.wait_for(wanted, &*self.context.env.clock, || self.sync_and_publish())?;
        }
        // Whatever up to here asked for a sync has it; this write need not wait for a sync of its
        // own.
        self.insertions.wait_for(turn)?;
        self.insertions.publish(last);
        Ok(())
    }

    /// Takes the commit lock at a moment at which none of these keys was written behind their
    /// snapshot. Until it is given back none is.
    #[cold]
    fn lock_unchanged<'a>(
        &'a self,
        options: &WriteOptions,
        unchanged: &Unchanged<'_>,
        asked: &mut Asked,
    ) -> Result<MutexGuard<'a, Commit>> {
        loop {
            *asked = unchanged.ask_tables(&self.reader)?;
            let commit = self.lock_to_write(!options.no_slowdown)?;
            if !Mutant::AskBeforeInsertions.is_on() {
                self.insertions.wait_for_all(&commit.turns)?;
            }
            if unchanged.ask_memtables(asked)? {
                return Ok(commit);
            }
        }
    }

    /// What must be in order: the record, its sequence numbers, the memtables that it goes to, and
    /// its turn to be published.
    fn append_locked<'a>(
        &'a self,
        locked: Locked<'a, '_, '_>,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        bytes: u64,
        condition: &mut Condition<'_>,
    ) -> Result<Appended<'a>> {
        let mut steps = Steps::new(locked, options.sync);
        steps.check(|locked| locked.check(batch, options).and_then(|()| condition.check()))?;
        protected::verify(options, batch)?;
        steps.number(batch)?;
        let logged = if options.disable_wal { None } else { Some(steps.append(batch)?) };
        if logged.is_none() && !batch.is_empty() {
            steps.env().commit.has_unlogged = true;
        }
        let first = steps.take_numbers(batch, logged);
        self.count(batch, options, bytes);
        let ahead = logged.and_then(|_| steps.env().commit.wal().ok()?.fetch_ahead());
        let (committed, turn) = steps.finish();
        Ok(Appended { first, committed, turn, ahead })
    }

    /// The checksum of a batch's bytes, without the sequence number that it begins with, if that is
    /// worth computing before the commit lock is taken: of a short batch it takes as long to
    /// compute as to complete. Addresses of blobs may change under the lock.
    #[inline]
    fn tail_of(
        &self,
        options: &WriteOptions,
        batch: &WriteBatch,
        blobs: &BlobsOfBatch<'_>,
    ) -> Option<Suffix> {
        let may_change = options.disable_wal || !matches!(blobs, BlobsOfBatch::Nothing);
        if may_change || batch.byte_size() < SUMMED_MIN { None } else { wal::tail_of(batch.data()) }
    }

    #[inline]
    fn count(&self, batch: &WriteBatch, options: &WriteOptions, bytes: u64) {
        let statistics = &self.context.statistics;
        statistics.add_committing(Ticker::Writes, 1);
        statistics.add_committing(Ticker::LoggedWrites, u64::from(!options.disable_wal));
        statistics.add_committing(Ticker::KeysWritten, u64::from(batch.count()));
        statistics.add_committing(Ticker::BytesWritten, bytes);
    }

    /// Whether a write waits for its sync, and with it all that came later.
    pub(super) fn is_sync_awaited(&self, commit: &Commit) -> bool {
        is_sync_awaited(&commit.numbers, self.insertions.published())
    }

    /// Logs a batch. One that `joins_sync` waits in memory for it, if space is reserved, or else is
    /// written at once: the sync must not find a full disk. Behind any other the process may die,
    /// unless the log is flushed by hand.
    pub(in crate::db) fn append_to_wal(
        &self,
        commit: &mut Commit,
        batch: &WriteBatch,
        tail: Option<Suffix>,
        joins_sync: bool,
    ) -> Result<()> {
        let _time = perf::time(PerfMetric::WriteWalTime);
        let (bytes, most) = (batch.byte_size(), commit.wal()?.record_size_max());
        if bytes > most {
            return Err(Error::invalid_argument(format!(
                "a batch of {bytes} bytes is too long for a compressed WAL, which takes up to {most}; split it"
            )));
        }
        let noted = commit.log.is_predecessor_noted;
        if let Some(predecessor) = commit.log.predecessor.filter(|_| !noted) {
            let mut note = WriteBatch::new();
            note.set_sequence(commit.numbers.last + 1);
            note.put_log_data(predecessor.to_note())?;
            self.add_to_wal(commit, &note, None, joins_sync)?;
            commit.log.is_predecessor_noted = true;
        }
        self.add_to_wal(commit, batch, tail, joins_sync)
    }

    /// Before a batch is logged: what is written to a family whose drop failed would be gone with
    /// it if the MANIFEST that is read next says that it was dropped. So one must count first that
    /// has the family.
    #[cold]
    fn settle_drops(&self, commit: &mut Commit, batch: &WriteBatch) -> Result<()> {
        let mut families = batch.iter().filter_map(|operation| operation.ok()?.family());
        if !families.any(|id| commit.target(id).is_some_and(|target| target.drop_in_doubt)) {
            return Ok(());
        }
        self.tree.settle_drops()?;
        commit.targets.values_mut().for_each(|target| target.drop_in_doubt = false);
        commit.asked.settle_drop = false;
        Ok(())
    }

    fn add_to_wal(
        &self,
        commit: &mut Commit,
        batch: &WriteBatch,
        tail: Option<Suffix>,
        joins_sync: bool,
    ) -> Result<()> {
        let wal = commit.wal()?;
        let (before, is_first) = (wal.offset(), wal.written() == wal.offset());
        let noted = commit.log_stamped_families(joins_sync);
        let wal = commit.wal()?;
        let added = if noted.is_err() {
            noted
        } else if joins_sync {
            wal.gather_record(batch.data())
        } else {
            wal.add_summed_record(batch.data(), tail)
        };
        if let Err(error) = added {
            Sometimes::WalWriteFailed.reached();
            // Nothing is acknowledged, and the next record goes to the same offset; what the failed
            // one left behind is cut off so that it cannot be taken for a record.
            let is_full = |error: &Error| error.subcode() == SubCode::NoSpace;
            let is_left = match wal.cut() {
                // There is nothing of it: what waits before it found no room, and is written again
                // by whoever comes next.
                Err(error) if is_full(&error) => wal.written() == wal.offset(),
                cut => cut.is_err(),
            };
            if !is_full(&error) || is_left {
                self.tree.fail(BackgroundErrorReason::Write, &error);
            }
            return Err(error);
        }
        let offset = wal.offset();
        if is_first && wal.written() < offset {
            commit.log.waiting_from = batch.sequence();
        }
        self.context.statistics.add_committing(Ticker::WalBytes, offset - before);
        // Others need not have the line of memory, but where it matters.
        if self.wal_space.cap.load(Ordering::Relaxed) < u64::MAX {
            self.wal_space.active_bytes.store(offset, Ordering::Relaxed);
        }
        Ok(())
    }

    /// [`DirectBlobs::separate`](super::super::direct_blob::DirectBlobs::separate), with room for
    /// the values made under the commit lock.
    pub(in crate::db::writing) fn separate_values<'a>(
        &self,
        source: Source<'a>,
        options: &WriteOptions,
    ) -> Result<Option<(WriteBatch, BlobsOfBatch<'a>)>> {
        self.blobs.separate(source, options, |family| {
            self.prepare_for_blobs(&mut self.commit.lock(), family)
        })
    }

    /// Sees to it that the family's active memtable has room, and a file to append to. The commit
    /// lock keeps the directory from being let go meanwhile.
    fn prepare_for_blobs(&self, commit: &mut Commit, family: &Family) -> Result<()> {
        commit.wal()?;
        // Perhaps nobody has asked for the switch: a writer whose batch failed has filled the file.
        let target = commit.targets.get_mut(&family.id);
        if let Some(target) = target.filter(|target| family.is_full(&target.to.mem)) {
            target.switch_wanted = Some(FlushReason::WriteBufferFull);
            commit.asked.switch = true;
        }
        if self.is_switch_wanted(commit) {
            self.switch_wanted_memtables(commit)?;
        }
        match commit.target(family.id) {
            Some(target) => target.to.mem.blobs.prepare(|| self.blobs.create_file(family)),
            None => Ok(()),
        }
    }

    /// Waits until a piece of a value may be written.
    pub(in crate::db) fn admit(&self, options: &WriteOptions, bytes: u64) -> Result<()> {
        self.admission.admit(options, bytes)
    }

    /// Begins a blob file for one value, and what removes it unless it is committed.
    pub(in crate::db) fn create_own_file(&self, family: &Family, key: &[u8]) -> Result<OwnFile> {
        self.blobs.create_own_file(family, key, |open| {
            // Keeps the directory from being let go meanwhile.
            let mut commit = self.commit.lock();
            commit.wal()?;
            open()
        })
    }

    /// Commits a value that lies in a file of its own.
    pub(in crate::db) fn commit_own_file(
        &self,
        own: OwnFile,
        options: &WriteOptions,
        family: &Family,
        key: &[u8],
    ) -> Result<()> {
        let bytes = key.len() as u64 + own.value_size();
        // The value was, piece by piece.
        self.admit(options, key.len() as u64)?;
        let (index, file) = self.complete_own_file(own, family)?;
        let mut batch = WriteBatch::new();
        batch.put_blob_index(family.id, key, &index)?;
        let blobs = BlobsOfBatch::Whole(smallvec![(family.id, file.clone())]);
        self.commit(options, &mut batch, blobs, bytes, Condition::Nothing)
            .inspect_err(|_| self.give_up_uncommitted(file))
    }

    /// Completes a file of one value, which a batch may name that is written later.
    pub(in crate::db) fn complete_own_file(
        &self,
        own: OwnFile,
        family: &Family,
    ) -> Result<(Vec<u8>, Arc<DirectFile>)> {
        self.blobs.complete_own_file(own, family)
    }

    /// Has a file removed whose value was not committed.
    pub(in crate::db) fn give_up_uncommitted(&self, file: Arc<DirectFile>) {
        self.blobs.give_up_uncommitted(file);
    }

    /// [`Self::write`], or [`Self::write_if`], of a batch that names files of one value.
    /// Its other values stay in the WAL up to the flush.
    pub(in crate::db) fn write_streamed(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        files: &[(ColumnFamilyId, Arc<DirectFile>)],
        condition: Condition<'_>,
    ) -> Result<()> {
        let bytes = batch.byte_size() as u64;
        let _counted = self.tables.account().hold_large(MemoryKind::Writes, batch.memory_usage());
        let blobs = BlobsOfBatch::Whole(files.into());
        self.admit(options, bytes)
            .and_then(|()| self.commit(options, batch, blobs, bytes, condition))
            .inspect_err(|error| self.tree.refused(error))
    }

    /// Whether a memtable was found full, or a flush was asked for.
    #[inline]
    fn is_switch_wanted(&self, commit: &Commit) -> bool {
        commit.asked.switch || self.memtables.is_any_full.load(Ordering::Acquire)
    }
}

/// The pipeline with its commit lock held, for one write.
pub(super) struct Locked<'a, 'b, 'c> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) commit: &'b mut Commit,
    pub(super) families: &'b NamedFamilies,
    pub(super) blobs: &'b mut BlobsOfBatch<'c>,
    /// The checksum of the batch, but for its beginning.
    pub(super) tail: Option<Suffix>,
    pub(super) pins: &'b mut Pins,
}

/// A write that has its place behind all writes before it.
pub(super) struct Appended<'a> {
    /// Its first sequence number.
    pub(super) first: SequenceNumber,
    pub(super) committed: Committed,
    pub(super) turn: Turn<'a>,
    /// What makes the part of the WAL that is mapped next, if that is this writer's to make.
    pub(super) ahead: Option<wal::FetchAhead>,
}

impl Locked<'_, '_, '_> {
    /// What may refuse an ordinary write: whatever a replay would refuse, a full disk, and closing.
    /// A memtable that is full is switched.
    #[inline]
    fn check(&mut self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        self.check_operations(batch, options)?;
        let Self { pipeline, commit, blobs, .. } = self;
        pipeline.blobs.refresh(batch, blobs, commit, |commit, family| {
            pipeline.prepare_for_blobs(commit, family)
        })
    }

    /// The same, of operations whose values lie in no blob file.
    #[inline]
    pub(super) fn check_operations(
        &mut self,
        batch: &WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        let Self { pipeline, commit, families, .. } = self;
        // Since the first look: without this, an unlogged write would be acknowledged and lost.
        commit.check_not_ending()?;
        commit.wal()?;
        families.check(commit, batch, options.ignore_missing_column_families)?;
        if commit.asked.settle_drop && !Mutant::ForgetDoubtfulDrop.is_on() {
            pipeline.settle_drops(commit, batch)?;
        }
        if pipeline.is_switch_wanted(commit)
            || pipeline.wal_limit_reached(commit)
            || pipeline.memtables_reach_limit()
        {
            pipeline.switch_wanted_memtables(commit)?;
        }
        pipeline.disk.check_healthy_for(batch)
    }
}

impl<'a> CommitEnv for Locked<'a, '_, '_> {
    #[inline]
    fn numbers(&mut self) -> &mut Numbers {
        &mut self.commit.numbers
    }

    fn is_flushed_by_hand(&self) -> bool {
        self.pipeline.context.settings.load().manual_wal_flush
    }

    #[inline]
    fn append(&mut self, batch: &WriteBatch, joins_sync: bool) -> Result<FileNumber> {
        self.pipeline.append_to_wal(self.commit, batch, self.tail, joins_sync)?;
        let wal = self.commit.log.number;
        let last = self.commit.numbers.last + u64::from(batch.count());
        self.commit.debt.blobs.note(self.blobs, wal, last);
        Ok(wal)
    }

    #[inline]
    fn pin(&mut self, batch: &WriteBatch, first: SequenceNumber, logged: Option<FileNumber>) {
        if let Some(wal) = logged.filter(|wal| *wal < self.commit.log.number) {
            self.pipeline.keep_wal(self.commit, batch, wal);
        }
        self.blobs.attach(self.commit);
        self.commit.pin(self.pins);
        for id in self.families.ids() {
            let to = self.pins.get(id);
            debug_assert!(
                self.commit.target(id).map(|target| &raw const *target.to)
                    == to.map(|to| &raw const *to),
                "what is shown is what the commit lock guards"
            );
            if let Some(to) = to.filter(|to| to.family.dead_ranges.is_watching()) {
                watch(&to.family, batch, first);
            }
        }
        let last = first - 1 + u64::from(batch.count());
        Mutant::PublishBeforeInsert.breaks(|| self.pipeline.insertions.publish(last));
    }

    #[inline]
    fn published(&self) -> SequenceNumber {
        self.pipeline.insertions.published()
    }

    type Turn = Turn<'a>;

    #[inline]
    fn take_turn(&mut self, publishes: Option<SequenceNumber>) -> Turn<'a> {
        self.pipeline.insertions.begin(&mut self.commit.turns, publishes)
    }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
