//! Transactions that are prepared in WALs: what counts is what is committed there, too.
//!
//! Tables may have what a write-prepared transaction of RocksDB has written and never decided. They
//! do not tell it from the rest, and it is saved with it.

use std::collections::{BTreeMap, BTreeSet};

use super::logs::Refused;
use crate::base::{ColumnFamilyId, Result, SequenceNumber};
use crate::batch::{
    BatchIter, BatchSummary, BatchView, HEADER_SIZE, Operation, TransactionPolicy, WriteBatch,
    commit_stamps,
};
use crate::wal::{SectionStep, Sections, Sharing};

/// Operations that are prepared and not decided, by the names of their transactions.
#[derive(Default)]
pub(super) struct PreparedOperations {
    sharing: Sharing,
    undecided: BTreeMap<Vec<u8>, Transaction>,
    /// The timestamps as of which families were written, since they were last taken.
    committed_stamps: BTreeSet<(ColumnFamilyId, Vec<u8>)>,
}

/// Operations with the numbers that they have together, if they have any yet.
struct Transaction {
    are_shared: bool,
    runs: Vec<(SequenceNumber, WriteBatch)>,
}

/// Takes an operation, if it is wanted.
type Take<'a> = dyn FnMut(&Operation<'_>, SequenceNumber) -> Result<bool> + 'a;

impl PreparedOperations {
    /// The next file says anew whether operations share numbers.
    pub(super) fn forget_sharing(&mut self) {
        self.sharing = Sharing::default();
    }

    /// Takes the timestamps of commits, by the families that these wrote to.
    pub(super) fn take_committed_stamps(&mut self) -> BTreeSet<(ColumnFamilyId, Vec<u8>)> {
        std::mem::take(&mut self.committed_stamps)
    }

    /// The names of those that were never decided.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.undecided.keys().map(Vec::as_slice)
    }

    /// Takes what a record writes: its plain operations, and those that it decides, with the
    /// timestamp of the commit in families for which `stamp_size` says a size. Returns the number
    /// behind it, and how many operations were wanted.
    pub(super) fn read(
        &mut self,
        (batch, summary): (BatchView<'_>, BatchSummary),
        follows: impl FnOnce() -> bool,
        stamp_size: &dyn Fn(ColumnFamilyId) -> usize,
        take: &mut Take<'_>,
    ) -> Result<(SequenceNumber, u64), Refused> {
        let Self { sharing, undecided, .. } = self;
        let known = |xid: &[u8]| undecided.get(xid).map(|transaction| transaction.are_shared);
        let are_shared =
            sharing.of(batch, summary, known, || Ok(follows())).map_err(Refused::Batch)?;
        let mut sections = Sections::new(batch, are_shared);
        let mut section: Vec<(SequenceNumber, WriteBatch)> = Vec::new();
        let mut taken = 0;
        while let Some(step) = sections.step().map_err(Refused::Batch)? {
            match step {
                SectionStep::Plain { operation, sequence, .. } => {
                    taken += u64::from(take(&operation, sequence).map_err(Refused::Output)?);
                }
                SectionStep::Prepared { operation, encoded, sequence, .. } => {
                    if section.last().is_none_or(|(last, _)| *last != sequence) {
                        section.push((sequence, WriteBatch::new()));
                    }
                    let (_, run) = section.last_mut().expect("one was added");
                    run.push_encoded(encoded, operation.is_counted()).map_err(Refused::Batch)?;
                }
                SectionStep::EndSection { xid, policy } => {
                    let are_shared = policy != TransactionPolicy::WriteCommitted;
                    let known = self.undecided.remove(xid).filter(|known| known.are_shared);
                    let mut runs =
                        known.filter(|_| are_shared).map(|known| known.runs).unwrap_or_default();
                    runs.append(&mut section);
                    self.undecided.insert(xid.to_vec(), Transaction { are_shared, runs });
                }
                SectionStep::Commit { xid, timestamp } => {
                    if let Some(mut transaction) = self.undecided.remove(xid) {
                        if let Some(stamp) = timestamp {
                            transaction.stamp(stamp, stamp_size).map_err(Refused::Batch)?;
                            let written = transaction.families();
                            self.committed_stamps.extend(written.map(|id| (id, stamp.to_vec())));
                        }
                        let (next, wanted) = transaction.take(sections.next_sequence(), take)?;
                        sections.skip(next - sections.next_sequence());
                        taken += wanted;
                    }
                }
                SectionStep::Rollback { xid } => {
                    // What was there before is written back by the same record.
                    if let Some(transaction) = self.undecided.remove(xid)
                        && transaction.are_shared
                    {
                        taken += transaction.take(0, take)?.1;
                    }
                }
            }
        }
        Ok((sections.next_sequence(), taken))
    }
}

/// The families that undecided transactions name.
#[derive(Default)]
pub(super) struct PreparedFamilies(BTreeMap<Vec<u8>, BTreeSet<ColumnFamilyId>>);

impl PreparedFamilies {
    /// The families that a record writes to, and those of the transactions that it commits.
    pub(super) fn families(&mut self, batch: BatchView<'_>) -> Result<BTreeSet<ColumnFamilyId>> {
        batch.validate()?;
        let mut sections = Sections::new(batch, false);
        let (mut found, mut section) = (BTreeSet::new(), BTreeSet::new());
        while let Some(step) = sections.step()? {
            match step {
                SectionStep::Plain { operation, .. } => found.extend(operation.family()),
                SectionStep::Prepared { operation, .. } => section.extend(operation.family()),
                SectionStep::EndSection { xid, .. } => {
                    self.0.entry(xid.to_vec()).or_default().append(&mut section);
                }
                SectionStep::Commit { xid, .. } => {
                    found.extend(self.0.remove(xid).unwrap_or_default());
                }
                SectionStep::Rollback { xid } => drop(self.0.remove(xid)),
            }
        }
        Ok(found)
    }
}

impl Transaction {
    /// Gives its keys the timestamp of the commit.
    fn stamp(&mut self, stamp: &[u8], size_of: &dyn Fn(ColumnFamilyId) -> usize) -> Result<()> {
        for (_, run) in &mut self.runs {
            if let Some(stamped) = commit_stamps(run.as_view(), stamp, size_of)? {
                *run = WriteBatch::from_bytes(stamped)?;
            }
        }
        Ok(())
    }

    /// The families of its operations, which may come again.
    fn families(&self) -> impl Iterator<Item = ColumnFamilyId> {
        self.runs.iter().flat_map(|(_, run)| run.iter().flatten()).filter_map(|it| it.family())
    }

    /// Takes its operations, with numbers from `next` on if they have none. Returns the number
    /// behind those, and how many were wanted.
    fn take(
        &self,
        mut next: SequenceNumber,
        take: &mut Take<'_>,
    ) -> Result<(SequenceNumber, u64), Refused> {
        let mut taken = 0;
        for (shared, run) in &self.runs {
            for operation in BatchIter::new(&run.data()[HEADER_SIZE..]) {
                let operation = operation.map_err(Refused::Batch)?;
                let sequence = if self.are_shared { *shared } else { next };
                taken += u64::from(take(&operation, sequence).map_err(Refused::Output)?);
                next += u64::from(operation.takes_sequence() && !self.are_shared);
            }
        }
        Ok((next, taken))
    }
}
