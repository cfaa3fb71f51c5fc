//! The way of a write.
//!
//! 1. Look at the poison and, if the tree is behind, wait for room ([`super::stall`]).
//! 2. Put large values into blob files ([`super::direct_blob`]).
//! 3. Take the commit lock; check the batch against the families; switch memtables that are full.
//! 4. Assign sequence numbers, append one WAL record (if it is to be synced, to those that the sync
//!    will write), insert into the memtables.
//! 5. Publish, or, if this write or one before it asked for a sync, leave the lock and publish
//!    after the sync ([`super::wal_sync`]).
//!
//! Steps 3 and 4, and the publishing of what is not synced, are one piece of work: whoever has the
//! commit lock does it for those who wait for the lock, too
//! ([`CombiningLock`](crate::base::CombiningLock)).
//!
//! **Lock order.** commit, then state. Readers take neither.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{
    Code, ColumnFamilyId, Error, FileNumber, MAX_SEQUENCE_NUMBER, Mutant, Result, SequenceNumber,
    Sometimes, SubCode, ValueType,
};
use crate::batch::{Operation, WriteBatch};
use crate::cache::MemoryKind;
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::settings::no_merge_operator;
use crate::db::statistics::Ticker;
use crate::db::tree::Tree;
use crate::db::writing::direct_blob::{BlobsOfBatch, Source, UnsyncedBlobs, names_blobs};
use crate::db::writing::operations;
use crate::db::writing::pipeline::Pipeline;
use crate::env::WritableFile;
use crate::iter::lookup::locate_value;
use crate::options::WriteOptions;
use crate::wal::{self, PredecessorWal};

/// A family as the writer sees it.
pub(in crate::db) struct WriteTarget {
    pub(in crate::db) family: Arc<Family>,
    pub(in crate::db) mem: Arc<Generation>,
    /// The memtable is full or a flush was asked for: the next writer switches it.
    pub(in crate::db) switch_wanted: bool,
    /// A drop of the family found the disk full: the MANIFEST may say that it is gone.
    pub(in crate::db) drop_in_doubt: bool,
    /// What the memtable has in [`Commit::memtable_bytes`].
    pub(in crate::db) counted: u64,
}

/// What the commit lock guards; the lock itself, which those look at who wait for it, lies in a
/// line of memory of its own.
#[derive(Default)]
#[repr(align(128))]
pub(in crate::db) struct Commit {
    pub(in crate::db) log: ActiveLog,
    /// The last sequence number assigned.
    pub(in crate::db) last_sequence: SequenceNumber,
    pub(in crate::db) targets: BTreeMap<ColumnFamilyId, WriteTarget>,
    /// Bytes of the targets' memtables, but for empty ones.
    pub(in crate::db) memtable_bytes: u64,
    pub(in crate::db) debt: SyncDebt,
    pub(in crate::db) asked: Asked,
    pub(in crate::db) end: Ending,
}

/// The WAL that takes the writes.
#[derive(Default)]
pub(in crate::db) struct ActiveLog {
    /// None while the database is being opened, when it is read-only, and after it was closed.
    pub(in crate::db) writer: Option<wal::Writer>,
    pub(in crate::db) number: FileNumber,
    /// A WAL that could be neither begun nor removed again.
    pub(in crate::db) unbegun: Option<FileNumber>,
    /// What the WAL says of the one before, or is to say.
    pub(in crate::db) predecessor: Option<PredecessorWal>,
    /// Whether it has said so: to its buffer at least.
    pub(in crate::db) is_predecessor_noted: bool,
    /// Lower bound on the sequence number of the oldest record still buffered in memory.
    pub(in crate::db) waiting_from: SequenceNumber,
}

/// What the next sync has to cover.
#[derive(Default)]
pub(in crate::db) struct SyncDebt {
    /// The last sequence number that a writer wants synced before it is published.
    pub(in crate::db) target: SequenceNumber,
    /// Earlier WALs with bytes that no sync has covered, oldest first.
    pub(in crate::db) logs: Vec<(FileNumber, Arc<dyn WritableFile>)>,
    pub(in crate::db) blobs: UnsyncedBlobs,
    /// Records of log data alone, which have no sequence number of their own.
    pub(in crate::db) unnumbered: u64,
    /// How many of them are synced.
    pub(in crate::db) unnumbered_synced: u64,
}

/// What the next writer has to do before it writes.
#[derive(Default)]
pub(in crate::db) struct Asked {
    /// Whether any target has `switch_wanted`.
    pub(in crate::db) switch: bool,
    /// Whether any target has `drop_in_doubt`.
    pub(in crate::db) settle_drop: bool,
    /// The oldest WAL for whose sake families were switched because the WALs took too much.
    pub(in crate::db) wal_limit: u64,
    /// The oldest WAL for whose sake all families were switched because the WALs had reached their
    /// cap.
    pub(in crate::db) wal_cap: u64,
}

/// How far closing is.
#[derive(Default)]
pub(in crate::db) struct Ending {
    /// What closing flushes is the last that was written.
    pub(in crate::db) has_begun: bool,
    /// Up to where closing has synced the last WAL, if it could.
    pub(in crate::db) synced: Option<Result<SequenceNumber>>,
}

/// Bytes of the largest batch that one writer commits for another, its large values included, which
/// may have to be written once more: no call is to take much longer for what others write, and with
/// larger ones there is less to gain.
const OTHERS_BATCH_MAX: u64 = 8 << 10;

/// What remains of a write once its batch is in the log and the memtables.
enum Committed {
    /// Nothing.
    Published,
    /// It waits for a sync up to `wanted`, or `for_its_own`, before all up to `last`, its own, is
    /// published.
    Waits { wanted: SequenceNumber, last: SequenceNumber, for_its_own: bool },
}

/// Where a comparator of the application panics, what is in the memtable of a batch is not all of
/// it, and the next batch would take its sequence numbers once more.
struct WholeOrPoisoned<'a>(&'a Tree);

impl Drop for WholeOrPoisoned<'_> {
    #[cold]
    fn drop(&mut self) {
        let error = Error::new(Code::Aborted, "a write ended with a panic, half done");
        self.0.fail(&error);
    }
}

impl Commit {
    /// # Errors
    /// `ShutdownInProgress`, once closing has begun.
    fn check_not_ending(&self) -> Result<()> {
        if self.end.has_begun {
            Err(Error::new(Code::ShutdownInProgress, "the database is being closed"))
        } else {
            Ok(())
        }
    }

    /// The active WAL.
    ///
    /// # Errors
    /// `ShutdownInProgress` after the database was closed.
    pub(in crate::db) fn wal(&mut self) -> Result<&mut wal::Writer> {
        self.log
            .writer
            .as_mut()
            .ok_or_else(|| Error::new(Code::ShutdownInProgress, "the database is closed"))
    }

    /// Bytes in the active WAL.
    pub(in crate::db) fn wal_size(&self) -> u64 {
        self.log.writer.as_ref().map_or(0, wal::Writer::offset)
    }

    pub(in crate::db) fn target(&self, id: ColumnFamilyId) -> Option<&WriteTarget> {
        self.targets.get(&id)
    }

    pub(in crate::db) fn add_target(&mut self, family: Arc<Family>, mem: Arc<Generation>) {
        let counted = mem.bytes_in_use();
        self.memtable_bytes += counted;
        let id = family.id;
        let target =
            WriteTarget { family, mem, switch_wanted: false, drop_in_doubt: false, counted };
        self.targets.insert(id, target);
    }

    pub(in crate::db) fn remove_target(&mut self, id: ColumnFamilyId) {
        if let Some(target) = self.targets.remove(&id) {
            self.memtable_bytes -= target.counted;
        }
    }
}

/// What would make replaying an operation of a batch fail; `family` is what it names, if it is
/// there.
#[inline]
pub(super) fn check_operation(
    operation: &Operation<'_>,
    family: Option<&Family>,
    ignore_missing_families: bool,
) -> Result<()> {
    if operation.is_transaction_marker() {
        return Err(Error::not_supported("a batch with two-phase transactions cannot be written"));
    }
    let Some(family) = family else {
        return match operation.family() {
            Some(id) if !ignore_missing_families => Err(Error::invalid_argument(format!(
                "the batch names column family {id}, which does not exist or was dropped"
            ))),
            _ => Ok(()),
        };
    };
    match operation {
        Operation::Merge { .. } if family.options.load().merge_operator.is_none() => {
            Err(no_merge_operator(&family.name))
        }
        Operation::PutEntity { key, entity, .. } => {
            locate_value(key, ValueType::WideColumnEntity, entity).map(drop).map_err(as_argument)
        }
        Operation::DeleteRange { begin, end, .. }
            if family.comparator().compare(begin, end).is_gt() =>
        {
            Err(Error::invalid_argument("the begin of a range deletion is after its end"))
        }
        _ => Ok(()),
    }
}

impl WriteTarget {
    /// Counts what the memtable has come to, or what a fresh one has, in all memtables' `sum`.
    #[inline]
    pub(in crate::db) fn count(&mut self, sum: &mut u64) {
        let now = self.mem.bytes_in_use();
        *sum = *sum - self.counted + now;
        self.counted = now;
    }
}

impl Pipeline {
    /// Writes a batch atomically.
    pub(crate) fn write(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        self.write_batch(options, batch).inspect_err(|error| self.tree.refused(error))
    }

    pub(in crate::db) fn write_batch(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        let bytes = batch.byte_size() as u64;
        let _counted = self.tables.account().hold_large(MemoryKind::Writes, batch.memory_usage());
        match self.admit(options, bytes) {
            Err(error) if self.disk.admit_deletions(batch, &error) => {}
            outcome => outcome?,
        }
        if bytes >= self.limits.direct_blob_min()
            && let Some((mut separated, blobs)) = self.separate(Source::Batch(batch), options)?
        {
            let _copied =
                self.tables.account().hold_large(MemoryKind::Writes, separated.memory_usage());
            let committed = self.commit(options, &mut separated, blobs, bytes);
            batch.set_sequence(separated.sequence());
            return committed;
        }
        self.commit(options, batch, BlobsOfBatch::Nothing, bytes)
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
        WriteBatch::check_put(key, value)?;
        let bytes = (key.len() + value.len()) as u64;
        self.admit(options, bytes)?;
        let (mut batch, blobs) = match self.separate(Source::Put(family.id, key, value), options)? {
            Some(separated) => separated,
            None => {
                let mut batch = WriteBatch::with_capacity(key.len() + value.len() + 32);
                batch.put_cf(family.id, key, value)?;
                (batch, BlobsOfBatch::Nothing)
            }
        };
        let _copied = self.tables.account().hold_large(MemoryKind::Writes, batch.memory_usage());
        self.commit(options, &mut batch, blobs, bytes)
    }

    /// Refuses what cannot be written, and waits while the tree is behind.
    pub(in crate::db) fn admit(&self, options: &WriteOptions, bytes: u64) -> Result<()> {
        if options.sync && options.disable_wal {
            return Err(Error::invalid_argument(
                "a write cannot be synced (sync) without the WAL (disable_wal)",
            ));
        }
        self.context.check_writable()?;
        if options.low_pri && options.no_slowdown {
            self.check_gives_way()?;
        }
        let is_paid = self.control.passes(bytes);
        if !is_paid || options.low_pri {
            self.wait_for_room(options, bytes, is_paid)?;
        }
        self.background.before_limited_write(options, bytes);
        Ok(())
    }

    /// Commits a batch whose large values lie in `blobs`; with them it has `bytes` bytes.
    pub(in crate::db) fn commit(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        mut blobs: BlobsOfBatch<'_>,
        bytes: u64,
    ) -> Result<()> {
        let committed = if bytes <= OTHERS_BATCH_MAX {
            self.commit
                .run(|commit| self.commit_locked(commit, options, batch, &mut blobs, bytes))?
        } else {
            self.commit_locked(&mut self.commit.lock(), options, batch, &mut blobs, bytes)?
        };
        let Committed::Waits { wanted, last, for_its_own } = committed else { return Ok(()) };
        if for_its_own {
            self.sync_and_publish()?;
        } else {
            self.wal_sync.wait_for(wanted, &*self.context.env.clock, || self.sync_and_publish())?;
        }
        // Whatever up to here asked for a sync has it; this write need not wait for a sync of its
        // own.
        self.publish(last);
        Ok(())
    }

    /// Where the batch is to be synced, or one before it is, it is not published.
    fn commit_locked(
        &self,
        commit: &mut Commit,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        blobs: &mut BlobsOfBatch<'_>,
        bytes: u64,
    ) -> Result<Committed> {
        // Since the first look: without this, an unlogged write would be acknowledged and lost.
        commit.check_not_ending()?;
        commit.wal()?;
        self.check_batch(commit, batch, blobs, options.ignore_missing_column_families)?;
        if commit.asked.settle_drop && !Mutant::ForgetDoubtfulDrop.is_on() {
            self.settle_drops(commit, batch)?;
        }
        if commit.asked.switch
            || self.wal_limit_reached(commit)
            || self.memtable_limit_reached(commit)
        {
            self.switch_wanted_memtables(commit)?;
        }
        self.disk.check_healthy_for(batch)?;
        self.refresh_blobs(commit, batch, blobs)?;
        let first = commit.last_sequence + 1;
        if commit.last_sequence + u64::from(batch.count().max(1)) > MAX_SEQUENCE_NUMBER {
            return Err(Error::not_supported("the database's sequence numbers are used up"));
        }
        batch.set_sequence(first);
        let asks_for_sync = options.sync;
        let is_unnumbered = batch.count() == 0 && !batch.is_empty();
        if !options.disable_wal {
            // Nothing of an empty batch is to be synced: what was before it may have been, and then
            // nobody writes its record.
            let joins_sync = asks_for_sync && !batch.is_empty()
                || self.is_sync_awaited(commit) && self.context.settings.load().manual_wal_flush;
            self.append_to_wal(commit, batch, joins_sync)?;
            commit.debt.unnumbered += u64::from(is_unnumbered);
            let wal = commit.log.number;
            let last = commit.last_sequence + u64::from(batch.count());
            commit.debt.blobs.note(blobs, wal, last);
        } else if !batch.is_empty() {
            self.unlogged.store(true, Ordering::Release);
        }
        let last = commit.last_sequence + u64::from(batch.count());
        Mutant::PublishBeforeInsert.breaks(|| self.publish(last));
        blobs.attach(commit);
        let whole = WholeOrPoisoned(&self.tree);
        self.insert(commit, batch, first);
        std::mem::forget(whole);
        commit.last_sequence = last;
        let count = |ticker, count| self.context.statistics.add_committing(ticker, count);
        count(Ticker::Writes, 1);
        count(Ticker::LoggedWrites, u64::from(!options.disable_wal));
        count(Ticker::KeysWritten, u64::from(batch.count()));
        count(Ticker::BytesWritten, bytes);

        Mutant::PublishBeforeSync.breaks(|| self.publish(last));
        if asks_for_sync {
            commit.debt.target = last;
        } else if !self.is_sync_awaited(commit) {
            self.snapshots.published.store(last, Ordering::Release);
            return Ok(Committed::Published);
        }
        let wanted = commit.debt.target;
        Ok(Committed::Waits { wanted, last, for_its_own: asks_for_sync && is_unnumbered })
    }

    /// What would make replaying the batch fail must fail now, before anything is logged.
    fn check_batch(
        &self,
        commit: &Commit,
        batch: &WriteBatch,
        blobs: &BlobsOfBatch<'_>,
        ignore_missing_families: bool,
    ) -> Result<()> {
        for operation in batch.iter() {
            let operation = operation?;
            if matches!((&operation, blobs), (Operation::BlobIndex { .. }, BlobsOfBatch::Nothing)) {
                return Err(names_blobs());
            }
            let target = operation.family().and_then(|id| commit.target(id));
            check_operation(
                &operation,
                target.map(|target| &*target.family),
                ignore_missing_families,
            )?;
        }
        Ok(())
    }

    /// Whether a write waits for its sync, and with it all that came later.
    pub(super) fn is_sync_awaited(&self, commit: &Commit) -> bool {
        commit.debt.target > self.snapshots.published.load(Ordering::Acquire)
    }

    /// Logs a batch. One that `joins_sync` waits in memory for it, if space is reserved, or else is
    /// written at once: the sync must not find a full disk. Behind any other the process may die,
    /// unless the log is flushed by hand.
    pub(in crate::db) fn append_to_wal(
        &self,
        commit: &mut Commit,
        batch: &WriteBatch,
        joins_sync: bool,
    ) -> Result<()> {
        let (bytes, most) = (batch.byte_size(), commit.wal()?.record_size_max());
        if bytes > most {
            return Err(Error::invalid_argument(format!(
                "a batch of {bytes} bytes is too long for a compressed WAL, which takes {most}; write it in parts"
            )));
        }
        let noted = commit.log.is_predecessor_noted;
        if let Some(predecessor) = commit.log.predecessor.filter(|_| !noted) {
            let mut note = WriteBatch::new();
            note.set_sequence(commit.last_sequence + 1);
            note.put_log_data(predecessor.to_note())?;
            self.add_to_wal(commit, &note, joins_sync)?;
            commit.log.is_predecessor_noted = true;
        }
        self.add_to_wal(commit, batch, joins_sync)
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

    fn add_to_wal(&self, commit: &mut Commit, batch: &WriteBatch, joins_sync: bool) -> Result<()> {
        let wal = commit.wal()?;
        let before = wal.offset();
        let is_first = wal.written() == before;
        let added =
            if joins_sync { wal.gather_record(batch.data()) } else { wal.add_record(batch.data()) };
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
                self.tree.fail(&error);
            }
            return Err(error);
        }
        let offset = wal.offset();
        if is_first {
            commit.log.waiting_from = batch.sequence();
        }
        self.context.statistics.add_committing(Ticker::WalBytes, offset - before);
        // Others need not have the line of memory, but where it matters.
        if self.wal_space.cap.load(Ordering::Relaxed) < u64::MAX {
            self.wal_space.active_bytes.store(offset, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Puts a checked batch into the memtables; each counted operation takes one sequence number,
    /// but an empty range deletion takes none away from those after it.
    pub(in crate::db) fn insert(
        &self,
        commit: &mut Commit,
        batch: &WriteBatch,
        first: SequenceNumber,
    ) {
        let mut full = false;
        let mut sequence = first;
        for operation in batch.iter().map_while(Result::ok) {
            let Some(id) = operation.family() else { continue };
            let Some(target) = commit.targets.get_mut(&id) else {
                // Its family is gone and the writer does not mind; replay counts it the same way.
                sequence += u64::from(operation.takes_sequence());
                continue;
            };
            if target.family.dead_ranges.is_watching() {
                target.family.dead_ranges.write(sequence - 1, operation.key_set());
            }
            let order = target.family.comparator();
            let merge =
                |key: &[u8], operand: &[u8]| self.merged_at_once(target, key, operand, sequence);
            sequence +=
                u64::from(operations::insert(&target.mem, &operation, sequence, order, merge));
            target.count(&mut commit.memtable_bytes);
            if target.family.is_full(&target.mem) {
                target.switch_wanted = true;
                full = true;
            }
        }
        commit.asked.switch |= full;
    }

    pub(super) fn publish(&self, sequence: SequenceNumber) {
        self.snapshots.published.fetch_max(sequence, Ordering::AcqRel);
    }
}

/// What is damage where it is read is a mistake of the caller where it is written.
fn as_argument(error: Error) -> Error {
    if error.is_corruption() { Error::invalid_argument(error.message()) } else { error }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
