//! Transactions that are prepared in WALs, as a replay meets them.
//!
//! 1. A prepared section is kept in memory, under the name of its transaction, until the
//!    transaction is decided or the WALs end. So RocksDB does, and whoever prepared it did.
//! 2. At the commit its operations are applied, with the numbers that follow in the record of the
//!    commit, and its timestamp, if that has one. Operations that had numbers from the beginning
//!    (write-prepared, write-unprepared) all get the commit's number. So numbers ascend, also where
//!    recovery writes tables. No other write has changed these keys in between. If that number
//!    cannot be shared, they keep their own. A family whose tables may have them already does not
//!    get them again.
//! 3. At the rollback they are forgotten. That of a write-prepared transaction also writes what was
//!    there before, for what tables have.
//! 4. What is undecided at the end stays prepared. What a write-prepared transaction has written
//!    may be in tables by then: `settled` undoes that.
//!
//! Once all families have flushed what else a WAL holds, replaying begins behind it, and only
//! `min_log_number_to_keep` says that a transaction still stands there. Such WALs are looked
//! through for sections and decisions alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::{ColumnFamilyId, Error, FileNumber, Remedy, Result, SequenceNumber, file_name};
use crate::batch::{
    BatchIter, BatchSummary, BatchView, HEADER_SIZE, Operation, TRANSACTION_NAME_MAX,
    TransactionPolicy, WriteBatch, commit_stamps,
};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::settings::strips_timestamps;
use crate::env::{IoMode, RandomAccessFile};
use crate::options::Options;
use crate::wal::{
    DamageKind, Event, Reader, RecoveryMode, SectionStep, Sections, Sharing, StampedFamily, Stamps,
    is_plain, shares_numbers,
};

/// The most bytes that undecided transactions may take: a compressed WAL may hold more than there
/// is memory.
const PREPARED_MAX: usize = 8 << 30;

/// The transactions that are not decided yet, by their names.
#[derive(Debug)]
pub(in crate::db) struct Prepared {
    undecided: BTreeMap<Vec<u8>, Transaction>,
    sharing: Sharing,
    /// Whether any section was met.
    is_used: bool,
    /// About what they take, and may take.
    bytes: usize,
    bytes_max: usize,
}

/// What a transaction has written to WALs.
#[derive(Debug)]
pub(in crate::db) struct Transaction {
    pub(in crate::db) policy: TransactionPolicy,
    /// Whether it was prepared: a write-unprepared one that was not is rolled back.
    pub(in crate::db) is_prepared: bool,
    /// Its operations, in order.
    pub(in crate::db) runs: Vec<Run>,
    /// Where its latest section stands.
    wal: FileNumber,
    offset: u64,
}

/// Operations that have one number together, or none yet.
#[derive(Debug)]
pub(in crate::db) struct Run {
    /// The WAL that has them.
    pub(in crate::db) wal: FileNumber,
    /// A batch.
    pub(in crate::db) batch: Arc<Vec<u8>>,
    pub(in crate::db) sequence: Option<SequenceNumber>,
}

/// A record with markers, and where it stands.
#[derive(Clone, Copy)]
pub(in crate::db) struct MarkedRecord<'a> {
    pub(in crate::db) wal: FileNumber,
    pub(in crate::db) offset: u64,
    pub(in crate::db) batch: BatchView<'a>,
    pub(in crate::db) summary: BatchSummary,
}

/// What is to be applied.
pub(in crate::db) enum Due<'a> {
    Operation(Operation<'a>, SequenceNumber),
    /// A batch whose operations have numbers from this one on, or share it, for families that need
    /// what this WAL has. Keys with timestamps get that of the commit.
    Run {
        batch: &'a Arc<Vec<u8>>,
        wal: FileNumber,
        first: SequenceNumber,
        is_shared: bool,
        timestamp: Option<&'a [u8]>,
    },
}

/// Why something was not applied.
pub(in crate::db) enum Refused {
    /// Something is wrong with the record.
    Record(Error),
    /// Something else is.
    Elsewhere(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Record(error)
    }
}

/// Applies something, and says how many numbers it took.
pub(in crate::db) type ApplyDue<'a> = dyn FnMut(Due<'_>) -> Result<u64, Refused> + 'a;

impl Default for Prepared {
    fn default() -> Self {
        Self::with_limit(PREPARED_MAX)
    }
}

impl Prepared {
    fn with_limit(bytes_max: usize) -> Self {
        Self {
            undecided: BTreeMap::new(),
            sharing: Sharing::default(),
            is_used: false,
            bytes: 0,
            bytes_max,
        }
    }

    /// Reads a record, and applies what is to be applied by now. Returns the number behind it.
    ///
    /// # Errors
    /// `Corruption` for sections that are not whole; `NotSupported` for what the engine lacks; what
    /// `apply` returns.
    pub(in crate::db) fn read(
        &mut self,
        record: MarkedRecord<'_>,
        file: impl FnOnce() -> Result<Arc<dyn RandomAccessFile>>,
        apply: &mut ApplyDue<'_>,
    ) -> Result<SequenceNumber, Refused> {
        let undecided = &self.undecided;
        let known = |xid: &[u8]| undecided.get(xid).map(Transaction::shares_numbers);
        let follows = || Ok(shares_numbers(file()?, record.wal));
        let are_shared = self.sharing.of(record.batch, record.summary, known, follows)?;
        let mut sections = Sections::new(record.batch, are_shared);
        let mut section: Vec<(SequenceNumber, WriteBatch)> = Vec::new();
        // Whether an operation has the number that the next marker takes.
        let mut is_taken = false;
        while let Some(step) = sections.step()? {
            match step {
                SectionStep::Plain { operation, sequence, .. } => {
                    apply(Due::Operation(operation, sequence))?;
                    is_taken = true;
                }
                SectionStep::Prepared { operation, encoded, sequence, .. } => {
                    if operation.names_blobs() {
                        let message = "a prepared transaction has a value in a blob file";
                        return Err(Error::not_supported(message).into());
                    }
                    if section.last().is_none_or(|(last, _)| *last != sequence) {
                        section.push((sequence, WriteBatch::new()));
                    }
                    let (_, batch) = section.last_mut().expect("one was added");
                    batch.push_encoded(encoded, operation.is_counted())?;
                }
                SectionStep::EndSection { xid, policy } => {
                    self.add(xid, policy, record, std::mem::take(&mut section))?;
                    is_taken = false;
                }
                SectionStep::Commit { xid, timestamp } => {
                    let next = sections.next_sequence();
                    let own = (are_shared && !is_taken).then(|| next.saturating_sub(1));
                    is_taken = false;
                    let Some(transaction) = self.take(xid) else { continue };
                    if !transaction.shares_numbers() {
                        let place = (record.wal, next);
                        sections.skip(transaction.apply(place, timestamp, apply)?);
                    } else if timestamp.is_none() {
                        transaction.apply_shared(own, apply)?;
                    } else {
                        let message = "a transaction whose writes were in memtables before its \
                                       commit is committed with a user timestamp";
                        return Err(Error::not_supported(message).into());
                    }
                }
                SectionStep::Rollback { xid } => {
                    self.take(xid);
                    is_taken = false;
                }
            }
        }
        Ok(sections.next_sequence())
    }

    /// Keeps a section. A write-unprepared transaction has several; otherwise what is prepared
    /// again is the same.
    fn add(
        &mut self,
        xid: &[u8],
        policy: TransactionPolicy,
        record: MarkedRecord<'_>,
        section: Vec<(SequenceNumber, WriteBatch)>,
    ) -> Result<()> {
        self.is_used = true;
        let is_shared = policy != TransactionPolicy::WriteCommitted;
        let goes_on = |known: &Transaction| known.shares_numbers() == is_shared && is_shared;
        let mut runs = match self.take(xid) {
            Some(known) if goes_on(&known) => known.runs,
            _ => Vec::new(),
        };
        runs.extend(section.into_iter().map(|(sequence, batch)| Run {
            wal: record.wal,
            batch: Arc::new(batch.into_bytes()),
            sequence: Some(sequence).filter(|_| is_shared),
        }));
        let is_prepared = policy != TransactionPolicy::WriteUnprepared;
        let (wal, offset) = (record.wal, record.offset);
        let transaction = Transaction { policy, is_prepared, runs, wal, offset };
        self.bytes += transaction.size(xid);
        self.undecided.insert(xid.to_vec(), transaction);
        if self.bytes <= self.bytes_max {
            return Ok(());
        }
        Err(Error::not_supported(format!(
            "the prepared transactions take more than {} bytes of memory, among them transaction '{}'",
            self.bytes_max,
            shown(xid)
        )))
    }

    fn take(&mut self, xid: &[u8]) -> Option<Transaction> {
        let transaction = self.undecided.remove(xid)?;
        self.bytes -= transaction.size(xid);
        Some(transaction)
    }

    /// Whether any section was met: entries in memtables may then need WALs that are older than
    /// those in which they were committed.
    pub(in crate::db) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Whether any of them has sequence numbers already.
    pub(in crate::db) fn shares_numbers(&self) -> bool {
        self.undecided.values().any(Transaction::shares_numbers)
    }

    /// The oldest WAL that has something undecided.
    pub(in crate::db) fn oldest_wal(&self) -> Option<FileNumber> {
        self.undecided.values().map(Transaction::oldest_wal).min()
    }

    /// What is not decided.
    pub(in crate::db) fn into_undecided(self) -> BTreeMap<Vec<u8>, Transaction> {
        self.undecided
    }

    /// Refuses a database that is not to have such transactions.
    ///
    /// # Errors
    /// `NotSupported` if it has any.
    pub(in crate::db) fn refuse(
        &self,
        inner: &DbInner,
        is_refused: impl Fn(&Transaction) -> bool,
    ) -> Result<()> {
        let refused = self.undecided.iter().find(|(_, transaction)| is_refused(transaction));
        let Some((xid, transaction)) = refused else { return Ok(()) };
        let message = format!(
            "transaction '{}' is prepared but neither committed nor rolled back",
            shown(xid)
        );
        let path = file_name::wal(&inner.context.wal_directory, transaction.wal);
        Err(Error::not_supported(message)
            .advise(Remedy::DecidePrepared)
            .at(path)
            .at_offset(transaction.offset))
    }
}

/// The beginning of a transaction's name, which may be longer where a WAL is damaged.
fn shown(xid: &[u8]) -> impl std::fmt::Display + '_ {
    xid[..xid.len().min(TRANSACTION_NAME_MAX)].escape_ascii()
}

impl Transaction {
    /// Whether its operations are in memtables before it is decided.
    pub(in crate::db) fn shares_numbers(&self) -> bool {
        self.policy != TransactionPolicy::WriteCommitted
    }

    fn size(&self, xid: &[u8]) -> usize {
        let runs = self.runs.iter().map(|run| size_of::<Run>() + run.batch.len());
        xid.len() + size_of::<(Vec<u8>, Self)>() + runs.sum::<usize>()
    }

    /// The oldest WAL that has something of it.
    pub(in crate::db) fn oldest_wal(&self) -> FileNumber {
        self.runs.iter().map(|run| run.wal).min().unwrap_or(self.wal)
    }

    /// All of its operations; those of one section are not copied.
    ///
    /// # Errors
    /// `InvalidArgument` if they are too many for one batch.
    pub(in crate::db) fn into_operations(self) -> Result<WriteBatch> {
        let mut all = WriteBatch::new();
        for (at, run) in self.runs.into_iter().enumerate() {
            let batch = WriteBatch::from_bytes(Arc::unwrap_or_clone(run.batch))?;
            if at == 0 {
                all = batch;
            } else {
                all.append(&batch)?;
            }
        }
        Ok(all)
    }
}

/// Applying what is committed.
impl Transaction {
    /// With numbers from `next` on, to families that need what the WAL of the commit has. Returns
    /// how many numbers that took.
    fn apply(
        &self,
        (wal, next): (FileNumber, SequenceNumber),
        timestamp: Option<&[u8]>,
        apply: &mut ApplyDue<'_>,
    ) -> Result<u64, Refused> {
        let mut taken = 0;
        for Run { batch, .. } in &self.runs {
            let first = next + taken;
            taken += apply(Due::Run { batch, wal, first, is_shared: false, timestamp })?;
        }
        Ok(taken)
    }

    /// With that number, if no two operations are on one key; otherwise with their own.
    fn apply_shared(
        &self,
        number: Option<SequenceNumber>,
        apply: &mut ApplyDue<'_>,
    ) -> Result<(), Refused> {
        let mut keys = BTreeSet::new();
        let mut are_distinct = true;
        for run in &self.runs {
            for operation in BatchIter::new(&run.batch[HEADER_SIZE..]) {
                let operation = operation?;
                let entry = operation.family().zip(operation.entry());
                let place = entry.map(|(family, (_, key, _))| (family, key));
                are_distinct &= place.is_none_or(|place| keys.insert(place));
            }
        }
        let number = number.filter(|_| are_distinct);
        for Run { wal, batch, sequence } in &self.runs {
            let first = number.or(*sequence).unwrap_or_default();
            let wal = *wal;
            apply(Due::Run { batch, wal, first, is_shared: true, timestamp: None })?;
        }
        Ok(())
    }
}

impl DbInner {
    /// Looks through WALs, oldest first, that are kept and need no replaying: all families have in
    /// tables what these hold for them.
    ///
    /// # Errors
    /// `Corruption` for damage, where `allow_2pc` says that what is prepared counts; without it,
    /// damage there is nobody's loss. `NotSupported`, `IoError`.
    pub(in crate::db) fn prepared_in(&self, wals: &[FileNumber]) -> Result<Prepared> {
        let (mut prepared, settings) = (Prepared::default(), self.context.settings.load_full());
        let families: Vec<_> = self.tree.families.read().values().cloned().collect();
        let stamped = stamped_families(families.iter());
        for number in wals {
            let path = file_name::wal(&self.context.wal_directory, *number);
            let file = match self.context.env.fs.open_random_access(&path, IoMode::Buffered) {
                Ok(file) => file,
                // Whoever writes the database has removed it meanwhile.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error),
            };
            let mut reader = Reader::new(file.clone(), *number);
            let mut stamps = Stamps::default();
            loop {
                match reader.next_event()? {
                    Event::End => break,
                    Event::Damage(damage) if may_hide_prepared(&settings, &damage.kind) => {
                        return Err(damage.to_error(&*file));
                    }
                    Event::Damage(_) => continue,
                    Event::Record(_) => {}
                }
                let Ok(batch) = BatchView::parse(reader.record()) else { continue };
                let Ok(summary) = batch.validate() else { continue };
                if is_plain(summary) {
                    continue;
                }
                let offset = reader.record_offset();
                let at = |error: Error| error.at(&path).at_offset(offset);
                let adapted = stamps.adapt(&reader, *number, batch.data(), &stamped, |_, _| true);
                let adapted = adapted.map_err(at)?;
                let batch = adapted.as_deref().map_or(Ok(batch), BatchView::parse)?;
                let record = MarkedRecord { wal: *number, offset, batch, summary };
                let read = prepared.read(record, || Ok(file.clone()), &mut |_| Ok(0));
                read.map_err(|refused| match refused {
                    Refused::Record(error) => at(error),
                    Refused::Elsewhere(error) => error,
                })?;
            }
        }
        Ok(prepared)
    }
}

/// The families whose keys end in timestamps.
pub(in crate::db) fn stamped_families<'a>(
    families: impl Iterator<Item = &'a Arc<Family>>,
) -> Vec<StampedFamily> {
    let stamped = families.map(|family| StampedFamily {
        family: family.id,
        size: family.order.timestamp_size(),
        are_always_there: !strips_timestamps(&family.options.load()),
    });
    stamped.filter(|stamped| stamped.size > 0).collect()
}

/// A batch that was prepared, with the timestamp of its commit, if that has one.
///
/// # Errors
/// As [`commit_stamps`].
pub(in crate::db) fn stamped_run(
    batch: &Arc<Vec<u8>>,
    timestamp: Option<&[u8]>,
    size_of: impl Fn(ColumnFamilyId) -> usize,
) -> Result<Arc<Vec<u8>>> {
    let Some(timestamp) = timestamp else { return Ok(batch.clone()) };
    let stamped = commit_stamps(BatchView::parse(batch)?, timestamp, size_of)?;
    Ok(stamped.map_or_else(|| batch.clone(), Arc::new))
}

/// Whether what was prepared may be lost to damage, which is not how logs end.
fn may_hide_prepared(settings: &Options, damage: &DamageKind) -> bool {
    settings.allow_2pc
        && settings.wal_recovery_mode != RecoveryMode::SkipAnyCorruptedRecords
        && matches!(damage, DamageKind::Checksum | DamageKind::Length)
}

#[cfg(test)]
mod tests;
