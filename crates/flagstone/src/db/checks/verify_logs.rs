//! Checking the WALs that an opening would replay: every record, whatever `wal_recovery_mode` makes
//! of it.
//!
//! 1. Something that is no record is a gap. Where an intact record of a later write follows, in the
//!    WAL or in a newer one, the gap is damage; but a process that was opened after a crash goes
//!    on, in a new WAL, at just the sequence number at which the torn one ended, and then it is
//!    none.
//! 2. Where nothing follows, it is how a crash leaves the end of a file, and noted as that. Zeros,
//!    and in recycled files what is left of their earlier lives, are how every WAL ends, and not
//!    worth a note.
//! 3. A record that names blobs counts as torn where they are not whole: history may go on at its
//!    number.
//! 4. Each WAL may say how long the one before it was (see `wal/predecessor.rs`): so a clean cut
//!    and a missing file are noticed. That counts before the records behind it. That the last one
//!    is missing is noted only: RocksDB's checkpoints leave out an empty one.
//! 5. Another process may be writing: what is damaged is so at a second look, too (see
//!    `facts/logs.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::{Error, FileNumber, MAX_SEQUENCE_NUMBER, Result, SequenceNumber};
use crate::batch::BatchView;
use crate::db::DbInner;
use crate::db::facts::logs;
use crate::db::opening::blob_checks::BlobChecks;
use crate::db::opening::replay_inserts::Targets;
use crate::env::RandomAccessFile;
use crate::wal::{
    Checks, Damage, Event, Expected, Fault, Gap, Noted, Reader, ReaderOptions, SectionCounts,
    WalEnd, is_plain, shares_numbers,
};

/// What was found in log files.
#[derive(Default)]
pub(in crate::db) struct LogReport {
    /// Files read.
    pub(in crate::db) files: u64,
    /// Their bytes.
    pub(in crate::db) bytes: u64,
    pub(in crate::db) faults: Vec<Error>,
    /// What a crash or a copy may leave so.
    pub(in crate::db) notes: Vec<Error>,
}

impl LogReport {
    fn is_clean(&self) -> bool {
        self.faults.is_empty() && self.notes.is_empty()
    }

    /// Keeps what another look has found, too.
    fn confirm(&mut self, other: &Self) {
        let seen: BTreeSet<_> = other.faults.iter().chain(&other.notes).map(place).collect();
        self.faults.retain(|error| seen.contains(&place(error)));
        self.notes.retain(|error| seen.contains(&place(error)));
    }
}

/// A note of the last record.
pub(in crate::db) fn torn_end(error: Error) -> Error {
    error.context("the last record is incomplete, as after a crash")
}

fn place(error: &Error) -> (Option<PathBuf>, Option<u64>) {
    (error.path().map(PathBuf::from), error.offset())
}

/// Reads the WALs that an opening would replay.
///
/// # Errors
/// `IoError` if their directory cannot be listed.
pub(in crate::db) fn verify_logs(db: &Arc<DbInner>) -> Result<LogReport> {
    twice_if_need_be(|| look_through_logs(db))
}

fn look_through_logs(db: &Arc<DbInner>) -> Result<LogReport> {
    let (oldest, newest) = logs::log_range(db);
    let logs = logs::logs_from(db, oldest)?;
    let mut scan = Scan {
        checks: BlobChecks::new(db, &Arc::new(Targets::new(db))),
        oldest,
        report: LogReport::default(),
        ends: BTreeMap::new(),
        expected: None,
        sections: SectionCounts::default(),
        torn: Vec::new(),
        unreadable: BTreeSet::new(),
    };
    for (number, file) in &logs {
        let read = file.as_ref().map_err(Error::clone).and_then(|file| scan.read(*number, file));
        read.unwrap_or_else(|error| scan.pass_over(*number, error));
    }
    let mut report = scan.finish();
    report.notes.extend(logs::missing_log(db, &logs, newest));
    Ok(report)
}

/// Another process may be writing: what is wrong is so at a second look, too.
///
/// # Errors
/// Those of a look.
pub(in crate::db) fn twice_if_need_be(
    mut look: impl FnMut() -> Result<LogReport>,
) -> Result<LogReport> {
    let first = look()?;
    if first.is_clean() {
        return Ok(first);
    }
    let mut second = look()?;
    second.confirm(&first);
    Ok(second)
}

/// Something that is not whole, unless it turns out to be the end.
enum Torn {
    /// Part of a log.
    Log(FileNumber, Gap, Arc<dyn RandomAccessFile>),
    /// A blob that a record of a log names.
    Blob(FileNumber, Error),
}

impl Torn {
    fn wal(&self) -> FileNumber {
        match self {
            Self::Log(wal, ..) | Self::Blob(wal, _) => *wal,
        }
    }

    fn is_gap(&self) -> bool {
        matches!(self, Self::Log(..))
    }

    fn into_error(self) -> Error {
        match self {
            Self::Log(_, gap, file) => gap.damage().to_error(&*file),
            Self::Blob(_, error) => error,
        }
    }
}

/// Where a record stands.
#[derive(Clone, Copy)]
struct Place {
    wal: FileNumber,
    /// Where it ends.
    until: u64,
    /// Whether it is the first of its WAL that is intact.
    is_first: bool,
}

struct Scan {
    checks: BlobChecks,
    /// WALs from this one on were not removed by the engine.
    oldest: FileNumber,
    report: LogReport,
    ends: BTreeMap<FileNumber, WalEnd>,
    expected: Option<Expected>,
    sections: SectionCounts,
    /// What no record has followed yet, in the order of WALs.
    torn: Vec<Torn>,
    /// Those of which nobody knows how far they go.
    unreadable: BTreeSet<FileNumber>,
}

impl Scan {
    fn read(&mut self, number: FileNumber, file: &Arc<dyn RandomAccessFile>) -> Result<()> {
        self.report.files += 1;
        self.report.bytes += file.size()?;
        self.ends.insert(number, WalEnd::default());
        let options = ReaderOptions { search_behind_damage: true, ..ReaderOptions::default() };
        let mut reader = Reader::with_options(file.clone(), number, options);
        let (mut noted, mut is_first) = (None, true);
        loop {
            let damage = match reader.next_event()? {
                Event::End => break,
                Event::Damage(damage) => Some(damage),
                Event::Record(_) => None,
            };
            self.noted_at_front(&mut noted, &reader, number);
            let Some(damage) = damage else {
                let place = Place { wal: number, until: reader.good_until(), is_first };
                is_first = false;
                if let Err(error) = self.record(place, reader.record(), file) {
                    self.fault(error.at(file.path()).at_offset(reader.record_offset()));
                }
                continue;
            };
            // What cannot be read is no end of a log. How far it goes nobody knows, unless records
            // follow.
            if let Err(error) = self.gap(number, damage, file) {
                self.unreadable.insert(number);
                self.fault(error);
            }
        }
        self.noted_at_front(&mut noted, &reader, number);
        self.forget_gaps(number, Gap::is_end);
        Ok(())
    }

    /// Nothing tells where one behind this one should begin, and so not whether what was torn
    /// before it was an end.
    fn pass_over(&mut self, number: FileNumber, error: Error) {
        self.unreadable.insert(number);
        self.expected = None;
        self.report.notes.extend(self.torn.drain(..).map(Torn::into_error).map(torn_end));
        self.fault(error);
    }

    /// RocksDB's own record of the WAL before stands in front of all others. `noted` is what was
    /// looked at already.
    fn noted_at_front(&mut self, noted: &mut Option<Noted>, reader: &Reader, number: FileNumber) {
        if noted.is_some() {
            return;
        }
        *noted = Noted::by_rocksdb(reader);
        if let Some(predecessor) = *noted
            && let Err(error) = self.check_predecessor(number, predecessor)
        {
            self.fault(error.at(reader.file().path()));
        }
    }

    fn fault(&mut self, error: Error) {
        self.report.faults.push(error);
    }

    /// What adjoins a gap is part of it.
    fn gap(
        &mut self,
        wal: FileNumber,
        damage: Damage,
        file: &Arc<dyn RandomAccessFile>,
    ) -> Result<()> {
        match self.torn.last_mut() {
            Some(Torn::Log(number, gap, _)) if *number == wal => gap.add(&damage, wal, &**file)?,
            _ => self.torn.push(Torn::Log(wal, Gap::new(damage, wal, &**file)?, file.clone())),
        }
        Ok(())
    }

    /// Looks at an intact record.
    ///
    /// # Errors
    /// What is wrong with it.
    fn record(
        &mut self,
        place: Place,
        record: &[u8],
        file: &Arc<dyn RandomAccessFile>,
    ) -> Result<()> {
        let wal = place.wal;
        let batch = BatchView::parse(record)?;
        if batch.sequence() > MAX_SEQUENCE_NUMBER {
            return Err(Error::corruption(format!(
                "sequence number {} is out of range",
                batch.sequence()
            )));
        }
        let summary = batch.validate()?;
        if batch.count() == 0 && !summary.has_transaction_markers {
            return self.mark(place, batch);
        }
        let next = if is_plain(summary) {
            let mut next = batch.sequence();
            for operation in batch.iter() {
                next += u64::from(operation?.takes_sequence());
            }
            next
        } else {
            let follows = || Ok(shares_numbers(file.clone(), wal));
            self.sections.next_sequence(batch, summary, follows)?
        };
        let in_order = self.expected.map_or(Ok(()), |expected| expected.check(batch));
        if in_order.is_err() && self.torn.last().is_some_and(|torn| torn.wal() == wal) {
            // What a torn value holds may look like a record.
            return Ok(());
        }
        self.note_end(place, batch.sequence());
        let fault = if summary.names_blobs {
            self.checks.check(&[(wal, batch)]).remove(0).err()
        } else {
            None
        };
        let unknown = match fault {
            Some(Fault::Lost(error)) => {
                self.torn.push(Torn::Blob(wal, error));
                return Ok(());
            }
            Some(Fault::Unknown(error)) => Err(error),
            None => Ok(()),
        };
        let goes_on = self.expected.is_some_and(|expected| expected.holds(batch.sequence()));
        self.expected = Some(Expected::behind(batch, summary, next));
        // Once: the records behind are compared with this one.
        in_order?;
        self.settle(wal, goes_on);
        unknown
    }

    /// Looks at a batch that changes nothing: it says where history goes on, or how long the WAL
    /// before was.
    ///
    /// # Errors
    /// `Corruption` if that one is shorter.
    fn mark(&mut self, place: Place, batch: BatchView<'_>) -> Result<()> {
        let noted = Noted::in_batch(batch, place.is_first);
        let is_held = noted.map_or(Ok(()), |noted| self.check_predecessor(place.wal, noted));
        // RocksDB's record of this WAL counts it as any other.
        self.note_end(place, batch.sequence());
        if batch.body().is_empty()
            && self.expected.is_some_and(|expected| expected.holds(batch.sequence()))
        {
            self.settle(place.wal, true);
        }
        is_held
    }

    /// A record of `wal` follows what is torn; whether it goes on where the records before had
    /// ended.
    fn settle(&mut self, wal: FileNumber, goes_on: bool) {
        for torn in std::mem::take(&mut self.torn) {
            let was_end = goes_on && torn.wal() < wal;
            let error = torn.into_error();
            if was_end { self.report.notes.push(torn_end(error)) } else { self.fault(error) }
        }
    }

    fn note_end(&mut self, place: Place, last_sequence: SequenceNumber) {
        self.ends.insert(place.wal, WalEnd { good_until: place.until, last_sequence });
    }

    /// Where in `torn` a WAL begins.
    fn place_in_torn(&self, wal: FileNumber) -> usize {
        self.torn.partition_point(|torn| torn.wal() < wal)
    }

    /// Forgets those gaps in a WAL that are nothing.
    fn forget_gaps(&mut self, wal: FileNumber, is_nothing: impl Fn(&Gap) -> bool) {
        let mut torn = self.torn.split_off(self.place_in_torn(wal));
        torn.retain(
            |torn| !matches!(torn, Torn::Log(number, gap, _) if *number == wal && is_nothing(gap)),
        );
        self.torn.append(&mut torn);
    }

    /// Whether the WAL before goes as far as `wal` says.
    ///
    /// # Errors
    /// `Corruption` if it does not, and no gap says so already.
    fn check_predecessor(&mut self, wal: FileNumber, noted: Noted) -> Result<()> {
        let before = noted.number();
        let end = match self.ends.get(&before) {
            Some(end) => *end,
            None if before < self.oldest => return Ok(()),
            None => WalEnd::default(),
        };
        if noted.is_held(end) {
            // What is behind its end is nothing.
            self.forget_gaps(before, |_| true);
            return Ok(());
        }
        if self.unreadable.contains(&before) {
            return Ok(());
        }
        let mut of_it =
            self.torn[self.place_in_torn(before)..].iter().take_while(|torn| torn.wal() == before);
        if of_it.any(Torn::is_gap) {
            self.settle(wal, false);
            return Ok(());
        }
        Err(Error::corruption(format!("WAL {before} should continue {}", noted.missed(end))))
    }

    fn finish(mut self) -> LogReport {
        self.report.notes.extend(self.torn.into_iter().map(Torn::into_error).map(torn_end));
        self.report
    }
}

#[cfg(test)]
mod tests;
