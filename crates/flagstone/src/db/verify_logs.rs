//! Checking the WALs that an opening would replay, and the MANIFEST: every record, whatever `wal_recovery_mode` makes of it.
//!
//! 1. Something that is no record is a gap. Where an intact record of a later write follows, in the WAL or in a newer one, the
//!    gap is damage; but a process that was opened after a crash goes on, in a new WAL, at just the sequence number at which the
//!    torn one ended, and then it is none.
//! 2. Where nothing follows, it is how a crash leaves the end of a file, and noted as that. Zeros, and in recycled files what is
//!    left of their earlier lives, are how every WAL ends, and not worth a note.
//! 3. A record that names blobs counts as torn where they are not whole.
//! 4. Each WAL may say how long the one before it was: so a clean cut and a missing file are noticed. That the last one is
//!    missing is noted only: RocksDB's checkpoints leave out an empty one.
//! 5. Another process may be writing: what is damaged is so at a second look, too (see `doctor/logs.rs`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::DbInner;
use super::direct_blob::BlobChecks;
use super::operations::takes_sequence;
use super::replay_inserts::Targets;
use crate::base::{Error, FileNumber, MAX_SEQUENCE_NUMBER, Result, SequenceNumber};
use crate::batch::{BatchView, Operation};
use crate::env::{File, OpenMode};
use crate::manifest::{VersionEdit, read_current};
use crate::wal::{Checks, Damage, DamageKind, Event, Fault, Gap, PredecessorWal, Reader, ReaderOptions};

/// What was found in log files.
#[derive(Default)]
pub(super) struct LogReport {
    /// Files read.
    pub(super) files: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    pub(super) faults: Vec<Error>,
    /// What a crash or a copy may leave so.
    pub(super) notes: Vec<Error>,
}

impl LogReport {
    fn is_clean(&self) -> bool {
        self.faults.is_empty() && self.notes.is_empty()
    }

    /// Keeps what another look has found, too.
    fn confirm(&mut self, other: &Self) {
        let seen: Vec<_> = other.faults.iter().chain(&other.notes).map(place).collect();
        self.faults.retain(|error| seen.contains(&place(error)));
        self.notes.retain(|error| seen.contains(&place(error)));
    }
}

fn torn_end(error: Error) -> Error {
    error.context("the last record is not whole, as after a crash")
}

fn place(error: &Error) -> (Option<PathBuf>, Option<u64>) {
    (error.path().map(PathBuf::from), error.offset())
}

impl DbInner {
    /// Reads the WALs that an opening would replay.
    ///
    /// # Errors
    /// `IoError` if their directory cannot be listed, or one of them not be read.
    pub(super) fn verify_logs(self: &Arc<Self>) -> Result<LogReport> {
        twice_if_need_be(|| self.look_through_logs())
    }

    fn look_through_logs(self: &Arc<Self>) -> Result<LogReport> {
        let (oldest, newest) = self.log_range();
        let logs = self.logs_from(oldest)?;
        let mut scan = Scan {
            checks: BlobChecks::new(self, &Arc::new(Targets::new(self))),
            oldest,
            report: LogReport::default(),
            ends: BTreeMap::new(),
            expected: None,
            torn: Vec::new(),
        };
        for (number, file) in &logs {
            scan.read(*number, file)?;
        }
        let mut report = scan.finish();
        report.notes.extend(self.missing_log(&logs, newest));
        Ok(report)
    }

    /// Reads the MANIFEST, of which an opening passes over what its writer may have left behind in a crash.
    ///
    /// # Errors
    /// `IoError`; `Corruption` if CURRENT does not name one.
    pub(super) fn verify_manifest(&self) -> Result<LogReport> {
        twice_if_need_be(|| {
            let path = read_current(&*self.env.fs, &self.path)?;
            look_through_manifest(self.env.fs.open(&path, OpenMode::Read)?)
        })
    }
}

fn twice_if_need_be(mut look: impl FnMut() -> Result<LogReport>) -> Result<LogReport> {
    let first = look()?;
    if first.is_clean() {
        return Ok(first);
    }
    let mut second = look()?;
    second.confirm(&first);
    Ok(second)
}

fn look_through_manifest(file: Arc<dyn File>) -> Result<LogReport> {
    let mut report = LogReport { files: 1, bytes: file.size()?, ..LogReport::default() };
    let options = ReaderOptions { search_behind_damage: true, ..ReaderOptions::default() };
    let mut reader = Reader::with_options(file.clone(), FileNumber(0), options);
    let mut gap = None;
    loop {
        let decoded = match reader.next_event()? {
            Event::Record(record) => VersionEdit::decode(record).map(drop),
            Event::Damage(damage) => {
                gap.get_or_insert(damage);
                continue;
            }
            Event::End => break,
        };
        report.faults.extend(gap.take().map(|damage| damage.to_error(&*file)));
        if let Err(error) = decoded {
            report.faults.push(error.at(file.path()).at_offset(reader.record_offset()));
        }
    }
    if let Some(damage) = gap {
        let is_cut_off = matches!(
            damage.kind,
            DamageKind::TruncatedHeader | DamageKind::TruncatedBody | DamageKind::TruncatedRecord
        );
        let error = damage.to_error(&*file);
        match is_cut_off {
            true => report.notes.push(torn_end(error)),
            false => report.faults.push(error),
        }
    }
    Ok(report)
}

/// Something that is not whole, unless it turns out to be the end.
enum Torn {
    /// Part of a log.
    Log(FileNumber, Gap, Arc<dyn File>),
    /// A blob that a record of a log names.
    Blob(FileNumber, Error),
}

impl Torn {
    fn wal(&self) -> FileNumber {
        match self {
            Self::Log(wal, ..) | Self::Blob(wal, _) => *wal,
        }
    }

    fn is_gap_of(&self, number: FileNumber) -> bool {
        matches!(self, Self::Log(wal, ..) if *wal == number)
    }

    fn into_error(self) -> Error {
        match self {
            Self::Log(_, gap, file) => gap.damage().to_error(&*file),
            Self::Blob(_, error) => error,
        }
    }
}

/// How far a WAL was read.
#[derive(Clone, Copy, Default)]
struct End {
    good_until: u64,
    /// The number in the header of its last batch.
    last_sequence: SequenceNumber,
}

/// The sequence numbers at which the next batch may begin: see `wal/recovery.rs`.
#[derive(Clone, Copy)]
struct Expected {
    lowest: SequenceNumber,
    highest: SequenceNumber,
}

impl Expected {
    fn holds(self, sequence: SequenceNumber) -> bool {
        (self.lowest..=self.highest).contains(&sequence)
    }
}

struct Scan {
    checks: BlobChecks,
    /// WALs from this one on were not removed by the engine.
    oldest: FileNumber,
    report: LogReport,
    ends: BTreeMap<FileNumber, End>,
    expected: Option<Expected>,
    /// What no record has followed yet.
    torn: Vec<Torn>,
}

impl Scan {
    fn read(&mut self, number: FileNumber, file: &Arc<dyn File>) -> Result<()> {
        self.report.files += 1;
        self.report.bytes += file.size()?;
        self.ends.insert(number, End::default());
        let options = ReaderOptions { search_behind_damage: true, ..ReaderOptions::default() };
        let mut reader = Reader::with_options(file.clone(), number, options);
        loop {
            match reader.next_event()? {
                Event::End => break,
                Event::Damage(damage) => self.gap(number, damage, file)?,
                Event::Record(_) => {
                    let (offset, until) = (reader.record_offset(), reader.good_until());
                    if let Err(error) = self.record(number, reader.record(), until) {
                        self.fault(error.at(file.path()).at_offset(offset));
                    }
                }
            }
        }
        if let Some(noted) = reader.predecessor()
            && let Err(error) = self.check_predecessor(number, noted, false)
        {
            self.fault(error.at(file.path()));
        }
        self.torn.retain(|torn| !matches!(torn, Torn::Log(_, gap, _) if gap.is_end()));
        Ok(())
    }

    fn fault(&mut self, error: Error) {
        self.report.faults.push(error);
    }

    /// What adjoins a gap is part of it.
    fn gap(&mut self, wal: FileNumber, damage: Damage, file: &Arc<dyn File>) -> Result<()> {
        match self.torn.last_mut() {
            Some(Torn::Log(number, gap, _)) if *number == wal => gap.add(&damage, wal, &**file)?,
            _ => self.torn.push(Torn::Log(wal, Gap::new(damage, wal, &**file)?, file.clone())),
        }
        Ok(())
    }

    /// Looks at an intact record that ends at `until`.
    ///
    /// # Errors
    /// What is wrong with it.
    fn record(&mut self, wal: FileNumber, record: &[u8], until: u64) -> Result<()> {
        let batch = BatchView::parse(record)?;
        if batch.sequence() > MAX_SEQUENCE_NUMBER {
            return Err(Error::corruption(format!("sequence number {} is out of range", batch.sequence())));
        }
        batch.validate()?;
        if batch.body().is_empty() {
            if self.expected.is_some_and(|expected| expected.holds(batch.sequence())) {
                self.settle(wal, true);
            }
            self.note_end(wal, until, None);
            return Ok(());
        }
        let mut next = batch.sequence();
        for operation in batch.iter() {
            let operation = operation?;
            next += u64::from(takes_sequence(&operation));
            if let (0, Operation::LogData(data)) = (batch.count(), &operation)
                && let Some(noted) = PredecessorWal::from_note(data)
            {
                self.note_end(wal, until, None);
                self.check_predecessor(wal, noted, true)?;
            }
        }
        if batch.count() == 0 {
            self.note_end(wal, until, None);
            return Ok(());
        }
        if let Some(expected) = self.expected
            && next < expected.lowest
        {
            // What a torn value holds may look like a record.
            return match self.torn.iter().any(|torn| torn.wal() == wal) {
                true => Ok(()),
                false => Err(Error::corruption(format!(
                    "the sequence number goes back: a batch ends before {next}, the one before it at {}",
                    expected.lowest
                ))),
            };
        }
        let goes_on = self.expected.is_some_and(|expected| expected.holds(batch.sequence()));
        self.settle(wal, goes_on);
        let highest = next.max(batch.next_sequence());
        self.expected = Some(Expected { lowest: next, highest });
        self.note_end(wal, until, Some(batch.sequence()));
        match self.checks.check(&[(wal, batch)]).pop() {
            Some(Err(Fault::Lost(error))) => {
                self.torn.push(Torn::Blob(wal, error));
                Ok(())
            }
            Some(Err(Fault::Unknown(error))) => Err(error),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// A record of `wal` follows what is torn; whether it goes on where the records before had ended.
    fn settle(&mut self, wal: FileNumber, goes_on: bool) {
        for torn in std::mem::take(&mut self.torn) {
            let was_end = goes_on && torn.wal() < wal;
            let error = torn.into_error();
            match was_end {
                true => self.report.notes.push(torn_end(error)),
                false => self.fault(error),
            }
        }
    }

    fn note_end(&mut self, wal: FileNumber, good_until: u64, sequence: Option<SequenceNumber>) {
        let end = self.ends.entry(wal).or_default();
        end.good_until = good_until;
        end.last_sequence = sequence.unwrap_or(end.last_sequence);
    }

    /// Whether the WAL before goes as far as `wal` says. The engine's own note knows to which byte, RocksDB's to which batch.
    ///
    /// # Errors
    /// `Corruption` if it does not, and no gap says so already.
    fn check_predecessor(&mut self, wal: FileNumber, noted: PredecessorWal, is_own: bool) -> Result<()> {
        let before = FileNumber(noted.number);
        let end = match self.ends.get(&before) {
            Some(end) => *end,
            None if before < self.oldest => return Ok(()),
            None => End::default(),
        };
        let is_complete = match is_own {
            true => end.good_until >= noted.size,
            false => end.last_sequence >= noted.last_sequence,
        };
        if is_complete {
            // What is behind its end is nothing.
            self.torn.retain(|torn| !torn.is_gap_of(before));
            return Ok(());
        }
        if self.torn.iter().any(|torn| torn.is_gap_of(before)) {
            self.settle(wal, false);
            return Ok(());
        }
        Err(Error::corruption(format!(
            "WAL {before} should have {} bytes, the last batch with sequence number {}; intact records end at {}",
            noted.size, noted.last_sequence, end.good_until
        )))
    }

    fn finish(mut self) -> LogReport {
        self.report.notes.extend(self.torn.into_iter().map(Torn::into_error).map(torn_end));
        self.report
    }
}
