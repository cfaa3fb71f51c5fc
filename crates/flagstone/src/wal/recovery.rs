//! Replaying logs: which of their batches are applied, and where recovery stops.
//!
//! The logs are read in the order of their numbers. For each:
//!
//! 1. Damage is judged by the mode ([`RecoveryMode::judge`]): the log ends, recovery fails, stops,
//!    or skips it. A record too short for a batch, or with a sequence number out of range, is
//!    damage too.
//! 2. While recovery is stopped (point in time only), a log is left at its first batch, unless this
//!    starts at exactly the sequence number expected next: then it was written by a process that
//!    had itself recovered up to the stop, and replay resumes.
//! 3. A batch that cannot be read fails recovery in every mode: its checksum matched, so its writer
//!    was wrong.
//! 4. If a blob that it names is not whole ([`Fault::Lost`]), that is judged like a record that is
//!    cut off. Else the batch is applied. Any error fails recovery in every mode: a merge without
//!    operator is the caller's mistake and no damage. To go on without the batch would remove it.
//! 5. No batch may begin before the one before it ended: two writes must not have the same sequence
//!    number. That fails in every mode but [`RecoveryMode::SkipAnyCorruptedRecords`], which leaves
//!    out the batch if it ends no earlier than the one before it. Prepared transactions take no
//!    numbers, or take them for their markers as well ([`super::sections`]): whoever applies a
//!    batch says where it ends.
//!
//! [`super::pieces`] reads the logs, and may be ahead; what it finds counts in the order of the
//! logs.
//!
//! A gap between sequence numbers is not looked for: writes without the log leave such. But after a
//! log that ends at older records or at zeros, where records may have been lost, point-in-time
//! recovery is stopped, and step 2 decides. And a log that begins with a note of the one before
//! ([`Noted`]) stops it, unless that one was read to the end noted, or is no longer needed: a power
//! loss may take the end of a log (all of it, even) and leave the next. What is lost is then the
//! log before. But it leaves the file, whose name was durable before its first record: one that is
//! gone was removed, or is looked for in the wrong place, and fails recovery in every mode but
//! [`RecoveryMode::SkipAnyCorruptedRecords`].

use std::path::Path;
use std::sync::Arc;

use super::damage::{Damage, DamageKind};
use super::format::PredecessorWal;
use super::mode::{RecoveryMode, Verdict};
use super::pieces::{Fault, Finding, Pieces, Reading, What};
use super::predecessor::{Noted, WalEnd};
use crate::base::{
    Error, FileNumber, MAX_SEQUENCE_NUMBER, Remedy, Result, SequenceNumber, Sometimes, file_name,
};
use crate::batch::{BatchSummary, BatchView};
use crate::env::RandomAccessFile;

/// One batch of a log, as it is handed out for applying.
#[derive(Debug, Clone, Copy)]
pub struct ReplayRecord<'a> {
    /// The log it stands in.
    pub wal: FileNumber,
    /// Where its record begins there.
    pub offset: u64,
    /// The batch; all of it has been read once without error.
    pub batch: BatchView<'a>,
    /// What that reading found.
    pub summary: BatchSummary,
    /// What was read together with it: its own bytes lie in there.
    pub piece: &'a Arc<Vec<u8>>,
}

/// What became of a batch.
#[derive(Debug)]
pub enum Applied {
    /// It is in the memtables; the next batch starts at this sequence number.
    Until(SequenceNumber),
    /// It is in the memtables, but something else failed, for which neither the batch nor the log
    /// is to blame.
    Failed(Error),
}

/// Puts a batch into the memtables. An error fails recovery: some of the batch may be in them.
pub type Apply<'a> = dyn FnMut(&ReplayRecord<'_>) -> Result<Applied> + 'a;

/// What replaying one log came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedWal {
    /// Its number.
    pub number: FileNumber,
    /// How many of its batches were applied.
    pub records: u64,
    /// The size of those batches in bytes.
    pub bytes: u64,
    /// Where the record of the last applied batch ends.
    pub good_until: u64,
}

/// Where and why point-in-time recovery stopped.
#[derive(Debug, Clone)]
pub struct Stop {
    /// The log concerned.
    pub wal: FileNumber,
    /// What is there.
    pub error: Error,
    /// Whether this is how a recycled or preallocated log ends when its process dies, and no sign
    /// of damage.
    pub is_expected: bool,
}

/// Damage that was met, and what the mode made of it.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The log concerned.
    pub wal: FileNumber,
    /// What is there.
    pub error: Error,
    /// What was done about it; not [`Verdict::Fail`], which ends the replay.
    pub verdict: Verdict,
}

/// What replaying came to.
#[derive(Debug, Clone, Default)]
pub struct RecoveryOutcome {
    /// The sequence number after the last batch applied; `None` if none was.
    pub next_sequence: Option<SequenceNumber>,
    /// Set when recovery ended stopped. Families whose tables hold data from logs behind this one
    /// are then ahead of the others, which is corruption.
    pub stopped: Option<Stop>,
    /// Every stop, also those that replay resumed after. If there is any, the new log must begin
    /// with an empty batch at `next_sequence`, synced, so that a later recovery can resume there.
    pub stops: Vec<Stop>,
    /// All damage that was met, and ends of logs that may be damage.
    pub judged: Vec<Judged>,
    /// How many batches were applied.
    pub records: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The logs in order; of the last one, `good_until` is what it can be cut to.
    pub wals: Vec<ReplayedWal>,
}

/// Replays `wals`, which are in ascending order, as far as `mode` allows. `apply` puts a batch into
/// the memtables and returns the sequence number after it: [`BatchView::next_sequence`], unless the
/// batch has operations that take none (range deletions of nothing) or transaction markers. Logs
/// from `needed_from` on were not removed by their writer.
///
/// # Errors
/// `Corruption` with file and offset for what the mode does not tolerate; `IoError` from the files;
/// what `apply` returned.
pub fn replay(
    wals: &[(FileNumber, Arc<dyn RandomAccessFile>)],
    needed_from: FileNumber,
    mode: RecoveryMode,
    reading: &Reading,
    apply: &mut Apply<'_>,
) -> Result<RecoveryOutcome> {
    let mut pieces = Pieces::new(wals, reading);
    let mut replay =
        Replay { mode, needed_from, expected: None, outcome: RecoveryOutcome::default() };
    for (at, (number, file)) in wals.iter().enumerate() {
        replay.outcome.wals.push(ReplayedWal {
            number: *number,
            records: 0,
            bytes: 0,
            good_until: 0,
        });
        let mut wal = Wal { number: *number, file: &**file, at, pieces: &mut pieces };
        while let Flow::Next = replay.step(&mut wal, apply)? {}
        pieces.leave(at);
    }
    Ok(replay.outcome)
}

/// The log that is being replayed.
struct Wal<'a> {
    number: FileNumber,
    file: &'a dyn RandomAccessFile,
    /// Which of all it is.
    at: usize,
    pieces: &'a mut Pieces,
}

struct Replay {
    mode: RecoveryMode,
    needed_from: FileNumber,
    expected: Option<Expected>,
    outcome: RecoveryOutcome,
}

/// The sequence number that the next batch is expected to start at.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// When operations without effect take none: what RocksDB goes on with after recovery.
    pub lowest: SequenceNumber,
    /// When they do: what a running database goes on with.
    pub highest: SequenceNumber,
}

impl Expected {
    /// Behind a batch whose operations took the numbers before `next`.
    pub fn behind(batch: BatchView<'_>, summary: BatchSummary, next: SequenceNumber) -> Self {
        let is_as_counted = !summary.has_transaction_markers && !summary.ends_in_noop;
        let highest = if is_as_counted { next.max(batch.next_sequence()) } else { next };
        Self { lowest: next, highest }
    }

    /// Whether history may go on at this number.
    pub fn holds(self, sequence: SequenceNumber) -> bool {
        (self.lowest..=self.highest).contains(&sequence)
    }

    /// # Errors
    /// `Corruption` if the batch takes a number that was taken before.
    pub fn check(self, batch: BatchView<'_>) -> Result<()> {
        let (begin, end) = (batch.sequence(), self.lowest);
        if begin >= end {
            return Ok(());
        }
        let message = format!(
            "the sequence number goes back: a batch begins at {begin}, the one before it ends before {end}"
        );
        Err(Error::corruption(message))
    }
}

/// Whether any record stands in the rest of the log, which is then read: one that goes on had not
/// ended.
///
/// # Errors
/// `IoError`.
fn has_record(wal: &mut Wal<'_>) -> Result<bool> {
    loop {
        match wal.pieces.next(wal.at)?.what {
            What::Record { .. } => return Ok(true),
            What::Damage(_) => {}
            What::End => return Ok(false),
        }
    }
}

/// How one log goes on.
enum Flow {
    Next,
    EndOfWal,
}

/// That a log which is needed is not there, and what helps. `what` says which it is.
pub fn missing_wal(path: &Path, what: &str) -> Error {
    Error::corruption(format!("the MANIFEST needs {what}, but it is missing"))
        .advise(Remedy::FindWal)
        .at(path)
}

fn directory_of(file: &dyn RandomAccessFile) -> &Path {
    file.path().parent().unwrap_or(Path::new(""))
}

fn batch_of(record: &[u8]) -> Result<BatchView<'_>> {
    let batch = BatchView::parse(record)?;
    if batch.sequence() > MAX_SEQUENCE_NUMBER {
        return Err(Error::corruption(format!(
            "sequence number {} is too large",
            batch.sequence()
        )));
    }
    Ok(batch)
}

/// A record of a log.
struct Found<'a> {
    bytes: &'a [u8],
    piece: &'a Arc<Vec<u8>>,
    summary: Option<Result<BatchSummary>>,
    fault: Option<Fault>,
}

impl Replay {
    fn step(&mut self, wal: &mut Wal<'_>, apply: &mut Apply<'_>) -> Result<Flow> {
        let mut finding = wal.pieces.next(wal.at)?;
        match std::mem::replace(&mut finding.what, What::End) {
            What::End => Ok(Flow::EndOfWal),
            What::Damage(damage) => self.damage(wal, &finding, &damage),
            What::Record { range, batch: summary, fault } => {
                let piece = wal.pieces.bytes().clone();
                let found = Found { bytes: &piece[range], piece: &piece, summary, fault };
                self.record(wal, &finding, found, apply)
            }
        }
    }

    fn record(
        &mut self,
        wal: &Wal<'_>,
        finding: &Finding,
        found: Found<'_>,
        apply: &mut Apply<'_>,
    ) -> Result<Flow> {
        let locate = |error: Error| error.at(wal.file.path()).at_offset(finding.offset);
        let batch = match batch_of(found.bytes) {
            Ok(batch) => batch,
            Err(error) => {
                return self
                    .obey(self.mode.judge_bad_record(), wal.number, false, || locate(error));
            }
        };
        if self.outcome.stopped.is_some() {
            match self.expected {
                Some(expected) if expected.holds(batch.sequence()) => {
                    Sometimes::ReplayResumed.reached();
                    self.outcome.stopped = None;
                }
                _ => {
                    Sometimes::ReplayLeftWal.reached();
                    // History went on here, so it had not ended at the stop. An empty batch says
                    // nothing: a recovery that died before the MANIFEST counted leaves one.
                    if let Some(stop) =
                        self.outcome.stopped.as_mut().filter(|_| !batch.body().is_empty())
                    {
                        stop.is_expected = false;
                    }
                    return Ok(Flow::EndOfWal);
                }
            }
        }
        let summary = found.summary.expect("what parses was read").map_err(locate)?;
        if let Some(noted) = self.incomplete_predecessor(batch) {
            return self.lost_predecessor(wal, noted, locate);
        }
        if let Some(fault) = found.fault {
            let lost = fault.lost().map_err(locate)?;
            return self.obey(self.mode.judge_lost_blob(), wal.number, false, || locate(lost));
        }
        // Those of transactions need not take numbers.
        if let Some(expected) = self.expected.filter(|_| !summary.has_transaction_markers)
            && let Err(error) = expected.check(batch)
        {
            let goes_back = batch.next_sequence() < expected.lowest || !error.is_corruption();
            let verdict = if goes_back { Verdict::Fail } else { self.mode.judge_overlap() };
            return self.obey(verdict, wal.number, false, || locate(error));
        }
        let (offset, piece) = (finding.offset, found.piece);
        let record = ReplayRecord { wal: wal.number, offset, batch, summary, piece };
        let next = match apply(&record) {
            Ok(Applied::Until(next)) => next,
            Ok(Applied::Failed(error)) => return Err(error),
            Err(error) => return Err(locate(error)),
        };
        let expected = Expected::behind(batch, summary, next);
        self.expected = Some(expected);
        self.count(batch, expected.highest, finding.good_until);
        Ok(Flow::Next)
    }

    /// A WAL is missing, or was not replayed to the end that a batch of `wal` says it had.
    fn lost_predecessor(
        &mut self,
        wal: &Wal<'_>,
        noted: PredecessorWal,
        locate: impl Fn(Error) -> Error,
    ) -> Result<Flow> {
        let lost = FileNumber(noted.number);
        if !self.outcome.wals.iter().any(|wal| wal.number == lost) {
            let error = missing_wal(&file_name::wal(directory_of(wal.file), lost), "this WAL");
            return self.obey(self.mode.judge_missing_wal(), lost, false, || error);
        }
        let message = format!("WAL {} should have {} bytes of records", noted.number, noted.size);
        let verdict = self.mode.judge_lost_tail();
        if verdict == Verdict::Stop {
            Sometimes::ReplayStoppedAtLostTail.reached();
        }
        self.obey(verdict, lost, false, || locate(Error::corruption(message)))
    }

    /// What a batch says of the WAL before, if that was not replayed to its end, or is missing.
    fn incomplete_predecessor(&self, batch: BatchView<'_>) -> Option<PredecessorWal> {
        let wals = &self.outcome.wals;
        let noted = Noted::in_batch(batch, wals.last().is_some_and(|own| own.records == 0))?;
        let good_until = match wals.iter().find(|wal| wal.number == noted.number()) {
            Some(replayed) => replayed.good_until,
            None if noted.number() < self.needed_from => return None,
            None => 0,
        };
        // RocksDB's record, which knows the last batch, counts for RocksDB with
        // `track_and_verify_wals` alone.
        let end = WalEnd { good_until, ..WalEnd::default() };
        (!noted.is_held(end)).then_some(noted.wal)
    }

    fn count(&mut self, batch: BatchView<'_>, next: SequenceNumber, good_until: u64) {
        let bytes = batch.data().len() as u64;
        self.outcome.next_sequence = Some(next);
        self.outcome.records += 1;
        self.outcome.bytes += bytes;
        let wal = self.outcome.wals.last_mut().expect("the log being read was added");
        wal.records += 1;
        wal.bytes += bytes;
        wal.good_until = good_until;
    }

    fn damage(&mut self, wal: &mut Wal<'_>, finding: &Finding, damage: &Damage) -> Result<Flow> {
        let kind = &damage.kind;
        let mut is_expected = matches!(
            kind,
            DamageKind::OldRecord { in_fragment: false } | DamageKind::Zeros { in_fragment: false }
        );
        let mut verdict = self.mode.judge(kind, finding.is_recyclable);
        if verdict == Verdict::End
            && self.mode == RecoveryMode::AbsoluteConsistency
            && has_record(wal)?
        {
            verdict = Verdict::Fail;
        }
        if verdict == Verdict::Stop {
            // Where the log goes on, it had not ended.
            is_expected &= !matches!(wal.pieces.next(wal.at)?.what, What::Record { .. });
            match kind {
                DamageKind::Zeros { .. } => Sometimes::ReplayStoppedAtZeros.reached(),
                DamageKind::OldRecord { .. } => Sometimes::ReplayStoppedAtOldRecord.reached(),
                _ => Sometimes::ReplayStoppedAtTornRecord.reached(),
            }
        }
        self.obey(verdict, wal.number, is_expected, || damage.to_error(wal.file))
    }

    fn obey(
        &mut self,
        verdict: Verdict,
        wal: FileNumber,
        is_expected: bool,
        error: impl FnOnce() -> Error,
    ) -> Result<Flow> {
        let error = error();
        if verdict != Verdict::Fail {
            self.outcome.judged.push(Judged { wal, error: error.clone(), verdict });
        }
        match verdict {
            Verdict::Skip => {
                Sometimes::ReplaySkippedDamage.reached();
                Ok(Flow::Next)
            }
            Verdict::End => Ok(Flow::EndOfWal),
            Verdict::Fail => {
                Sometimes::ReplayRefusedDamage.reached();
                Err(error)
            }
            Verdict::Stop => {
                let stop = Stop { wal, error, is_expected };
                // The first stop counts: whatever lies behind it is lost, further damage or not.
                self.outcome.stopped.get_or_insert_with(|| stop.clone());
                self.outcome.stops.push(stop);
                Ok(Flow::EndOfWal)
            }
        }
    }
}
