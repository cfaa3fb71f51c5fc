//! The operations of a record, with the numbers that they have, where transactions are prepared and
//! decided in the log.
//!
//! A **section** holds what a transaction has prepared: a marker that begins it and tells the
//! policy, operations, and a marker that ends it and names the transaction. Sections do not nest;
//! one record may hold several, and plain operations and decisions between them.
//!
//! - *Write-committed.* Operations of a section take no numbers. At the commit they take those
//!   behind what the record has before the marker.
//! - *Write-prepared, write-unprepared.* Operations of a section have numbers at once, and are in
//!   memtables before they are decided ([`super::Numbering`]). A write-unprepared transaction may
//!   have several sections, of which only the last is prepared.

use std::collections::BTreeMap;

use super::numbering::Numbering;
use crate::base::{Error, Result, SequenceNumber};
use crate::batch::{BatchIter, BatchSummary, BatchView, Operation, TransactionPolicy};

/// What stands in a record, in order. Marks without meaning and log data are passed over.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub enum Step<'a> {
    /// An operation outside of sections, and its bytes in the record.
    Plain { operation: Operation<'a>, encoded: &'a [u8], sequence: SequenceNumber },
    /// One in a section. The number counts only where numbers are shared.
    Prepared { operation: Operation<'a>, encoded: &'a [u8], sequence: SequenceNumber },
    /// The section is that of this transaction.
    EndSection { xid: &'a [u8], policy: TransactionPolicy },
    /// The transaction is committed, maybe as of a user timestamp.
    Commit { xid: &'a [u8], timestamp: Option<&'a [u8]> },
    /// The transaction is rolled back.
    Rollback { xid: &'a [u8] },
}

/// Walks through the operations of a record.
#[derive(Debug)]
pub struct Sections<'a> {
    body: &'a [u8],
    operations: BatchIter<'a>,
    numbering: Numbering<'a>,
    open: Option<TransactionPolicy>,
}

impl<'a> Sections<'a> {
    /// Of a batch whose operations share numbers, or do not.
    pub fn new(batch: BatchView<'a>, are_shared: bool) -> Self {
        Self {
            body: batch.body(),
            operations: batch.iter(),
            numbering: Numbering::new(batch.sequence(), are_shared),
            open: None,
        }
    }

    /// The number behind those that were taken so far.
    pub fn next_sequence(&self) -> SequenceNumber {
        self.numbering.next()
    }

    /// Passes over the numbers that the operations of a transaction take at its commit.
    pub fn skip(&mut self, count: u64) {
        self.numbering.skip(count);
    }

    /// What comes next; `None` at the end.
    ///
    /// # Errors
    /// `Corruption` if a section begins in another, ends without a beginning, or does not end.
    pub fn step(&mut self) -> Result<Option<Step<'a>>> {
        loop {
            let start = self.operations.offset();
            let Some(operation) = self.operations.next().transpose()? else {
                return match self.open {
                    None => Ok(None),
                    Some(_) => Err(Error::corruption("a prepared section does not end")),
                };
            };
            if let Some(step) = self.place(operation, start)? {
                return Ok(Some(step));
            }
        }
    }

    fn place(&mut self, operation: Operation<'a>, start: usize) -> Result<Option<Step<'a>>> {
        let is_decision = matches!(
            operation,
            Operation::Commit { .. }
                | Operation::CommitWithTimestamp { .. }
                | Operation::Rollback { .. }
                | Operation::BeginPrepare(_)
        );
        if is_decision && self.open.is_some() {
            return Err(Error::corruption("a marker stands in a prepared section"));
        }
        let step = match operation {
            Operation::LogData(_) => return Ok(None),
            Operation::Noop => {
                self.numbering.end_part();
                return Ok(None);
            }
            Operation::BeginPrepare(policy) => {
                self.open = Some(policy);
                return Ok(None);
            }
            Operation::EndPrepare { xid } => {
                let policy = self.open.take().ok_or_else(|| {
                    Error::corruption("a prepared section ends that has not begun")
                })?;
                self.numbering.end_section();
                Step::EndSection { xid, policy }
            }
            Operation::Commit { xid } => Step::Commit { xid, timestamp: None },
            Operation::CommitWithTimestamp { timestamp, xid } => {
                Step::Commit { xid, timestamp: Some(timestamp) }
            }
            Operation::Rollback { xid } => Step::Rollback { xid },
            operation => {
                let encoded = &self.body[start..self.operations.offset()];
                let takes = self.open.is_none() || self.numbering.are_shared();
                let sequence = if takes { self.numbering.take(&operation) } else { 0 };
                match self.open {
                    None => Step::Plain { operation, encoded, sequence },
                    Some(_) => Step::Prepared { operation, encoded, sequence },
                }
            }
        };
        if is_decision {
            self.numbering.end_section();
        }
        Ok(Some(step))
    }
}

/// Whether the operations of records share numbers, as far as that is known.
#[derive(Debug, Default)]
pub struct Sharing(Option<bool>);

impl Sharing {
    /// What holds for a record: its sections say so, or the transactions that it decides (`known`),
    /// or what was read before, or what `follows` in the log.
    ///
    /// # Errors
    /// `Corruption` of the batch; what `follows` returns.
    pub fn of(
        &mut self,
        batch: BatchView<'_>,
        summary: BatchSummary,
        known: impl Fn(&[u8]) -> Option<bool>,
        follows: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        let mut decided = None;
        if summary.has_transaction_markers {
            for operation in batch.iter() {
                match operation? {
                    Operation::BeginPrepare(policy) => {
                        return Ok(*self.0.insert(policy != TransactionPolicy::WriteCommitted));
                    }
                    Operation::Commit { xid }
                    | Operation::CommitWithTimestamp { xid, .. }
                    | Operation::Rollback { xid } => {
                        decided = decided.or_else(|| known(xid));
                    }
                    _ => {}
                }
            }
        }
        match decided.or(self.0) {
            Some(are_shared) => Ok(are_shared),
            None if summary.ends_in_noop && summary.count > 1 => Ok(*self.0.insert(follows()?)),
            None => Ok(false),
        }
    }
}

/// Counts the numbers that records take, where transactions are prepared and decided.
#[derive(Debug, Default)]
pub struct SectionCounts {
    sharing: Sharing,
    /// How many numbers the commit of a transaction takes; none where it had them before.
    undecided: BTreeMap<Vec<u8>, Option<u64>>,
}

impl SectionCounts {
    /// The number behind a record, if all that it decides was read.
    ///
    /// # Errors
    /// As [`Sharing::of`] and [`Sections::step`].
    pub fn next_sequence(
        &mut self,
        batch: BatchView<'_>,
        summary: BatchSummary,
        follows: impl FnOnce() -> Result<bool>,
    ) -> Result<SequenceNumber> {
        let Self { sharing, undecided } = self;
        let known = |xid: &[u8]| undecided.get(xid).map(|count| count.is_none());
        let are_shared = sharing.of(batch, summary, known, follows)?;
        let mut sections = Sections::new(batch, are_shared);
        let mut count = 0;
        while let Some(step) = sections.step()? {
            match step {
                Step::Plain { .. } => {}
                Step::Prepared { operation, .. } => count += u64::from(operation.takes_sequence()),
                Step::EndSection { xid, policy } => {
                    let is_committed = policy == TransactionPolicy::WriteCommitted;
                    undecided.insert(xid.to_vec(), is_committed.then_some(count));
                    count = 0;
                }
                Step::Commit { xid, .. } => {
                    sections.skip(undecided.remove(xid).flatten().unwrap_or(0));
                }
                Step::Rollback { xid } => drop(undecided.remove(xid)),
            }
        }
        Ok(sections.next_sequence())
    }
}

/// Whether a record takes as many numbers as it has operations.
pub fn is_plain(summary: BatchSummary) -> bool {
    !(summary.has_transaction_markers || summary.ends_in_noop && summary.count > 1)
}

#[cfg(test)]
mod tests;
