//! What is wrong with the WALs that an opening would replay.
//!
//! 1. They are replayed under the mode, and nothing is applied: that says what recovery would
//!    refuse, and where it would end.
//! 2. Behind each such place intact records are counted, for all of a WAL's places in one go. If
//!    there is none, the WAL ends as it may.
//! 3. A WAL that cannot be read is told of, and those before it and behind it are replayed apart.
//! 4. Another process may be writing. Its records become visible one after the other, so that a WAL
//!    may seem to be damaged where one is being written, and to go on behind it when that is read a
//!    moment later. What was seen behind it was written after it: what is damaged still at a second
//!    look is damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::file_name::{self, FileKind};
use crate::base::{Error, FileNumber, MAX_SEQUENCE_NUMBER, Result, SequenceNumber};
use crate::batch::BatchView;
use crate::db::DbInner;
use crate::db::facts::types::{LogFacts, LogFate};
use crate::db::opening::blob_checks::BlobChecks;
use crate::db::opening::replay_inserts::Targets;
use crate::env::{IoMode, RandomAccessFile};
use crate::options::value::SettingValue;
use crate::wal::{
    Applied, Event, Judged, Reader, ReaderOptions, Reading, RecoveryMode, RecoveryOutcome,
    ReplayRecord, Stop, Verdict, replay,
};

pub(in crate::db) type Log = (FileNumber, Arc<dyn RandomAccessFile>);

/// A WAL, or why it cannot be opened.
pub(in crate::db) type Opened = (FileNumber, Result<Arc<dyn RandomAccessFile>>);

/// Something that is wrong.
struct Found {
    error: Error,
    fate: LogFate,
    behind: Behind,
}

/// Intact records behind a place.
#[derive(Clone, Copy, Default)]
struct Behind {
    records: u64,
    bytes: u64,
}

/// Where records count: behind an offset of a WAL, or all of it.
type Place = (FileNumber, Option<u64>);

/// Intact records behind each of some places.
struct Counts(BTreeMap<FileNumber, BTreeMap<Option<u64>, Behind>>);

impl Found {
    fn place(&self) -> (Option<PathBuf>, Option<u64>) {
        (self.error.path().map(PathBuf::from), self.error.offset())
    }
}

/// Counts what recovery would apply.
fn try_record(record: &ReplayRecord<'_>) -> Result<Applied> {
    let mut sequence = record.batch.sequence();
    for operation in record.batch.iter() {
        sequence += u64::from(operation?.takes_sequence());
    }
    Ok(Applied::Until(sequence))
}

/// What an opening under `mode` would make of damage in WALs, and those that cannot be read. A
/// database that is open for writing has replayed its own.
///
/// # Errors
/// `IoError` if their directory cannot be listed.
pub(super) fn log_facts(
    db: &Arc<DbInner>,
    mode: RecoveryMode,
) -> Result<(Vec<LogFacts>, Vec<Error>)> {
    let seen = look_at_logs(db, mode)?;
    if seen.0.is_empty() && seen.1.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let (mut found, mut unreadable) = look_at_logs(db, mode)?;
    let places: BTreeSet<_> = seen.0.iter().map(Found::place).collect();
    found.retain(|found| places.contains(&found.place()));
    let paths: BTreeSet<_> = seen.1.iter().map(Error::path).collect();
    unreadable.retain(|error| paths.contains(&error.path()));
    let facts = found.into_iter().map(|found| LogFacts {
        what: found.error.without_remedy().to_string(),
        fate: found.fate,
        mode: mode.text(),
        records_behind: found.behind.records,
        bytes_behind: found.behind.bytes,
    });
    Ok((facts.collect(), unreadable))
}

fn look_at_logs(db: &Arc<DbInner>, mode: RecoveryMode) -> Result<(Vec<Found>, Vec<Error>)> {
    let (oldest, newest) = log_range(db);
    let opened = logs_from(db, oldest)?;
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    let mut needed_from = oldest;
    for run in opened.chunk_by(|(_, before), (_, after)| before.is_ok() && after.is_ok()) {
        if let [(number, Err(error))] = run {
            needed_from = behind_unreadable(*number);
            unreadable.push(error.clone());
            continue;
        }
        let mut rest = run;
        while let Err(error) =
            look_at_run(db, rest, needed_from, mode).map(|of_run| found.extend(of_run))
        {
            // It could be opened, and not be read.
            let place = rest.iter().position(|(number, _)| *number == number_of(&error));
            unreadable.push(error);
            let Some(place) = place else { break };
            match look_at_run(db, &rest[..place], needed_from, mode) {
                Ok(of_run) => found.extend(of_run),
                Err(error) => unreadable.push(error),
            }
            needed_from = behind_unreadable(rest[place].0);
            rest = &rest[place + 1..];
        }
    }
    let missing = missing_log(db, &opened, newest);
    found.extend(missing.map(|error| Found {
        error,
        fate: LogFate::Missing,
        behind: Behind::default(),
    }));
    Ok((found, unreadable))
}

/// Replays WALs that follow one another.
fn look_at_run(
    db: &Arc<DbInner>,
    run: &[Opened],
    needed_from: FileNumber,
    mode: RecoveryMode,
) -> Result<Vec<Found>> {
    let logs: Vec<Log> = run
        .iter()
        .filter_map(|(number, file)| Some((*number, file.as_ref().ok()?.clone())))
        .collect();
    let checks = BlobChecks::new(db, &Arc::new(Targets::new(db)));
    let reading = Reading { checks: Some(Arc::new(checks)), ..Reading::default() };
    match replay(&logs, needed_from, mode, &reading, &mut try_record) {
        Ok(outcome) => judge(db, &logs, &outcome),
        Err(error) if error.is_corruption() => {
            let places: Vec<_> = places_behind(&logs, number_of(&error), &error, true).collect();
            let behind = Counts::of(&logs, places.iter().copied())?.behind(places);
            Ok(vec![Found { error, fate: LogFate::Refused, behind }])
        }
        Err(error) => Err(error),
    }
}

/// The oldest WAL that any family needs, and the newest that the MANIFEST knows of; that is
/// older where a family that was dropped had been flushed last.
pub(in crate::db) fn log_range(db: &DbInner) -> (FileNumber, FileNumber) {
    (db.tree.oldest_log_number(), db.tree.newest_recorded_wal())
}

/// What there is to say if `newest`, which is still needed, is not among these WALs, nor a
/// newer one. RocksDB's checkpoints have none that is empty.
pub(in crate::db) fn missing_log(
    db: &DbInner,
    logs: &[Opened],
    newest: FileNumber,
) -> Option<Error> {
    let is_needed = newest > FileNumber(0) && newest >= log_range(db).0;
    let is_missing = is_needed && !logs.iter().any(|(number, _)| *number >= newest);
    is_missing.then(|| {
        let path = file_name::wal(&db.context.wal_directory, newest);
        Error::corruption("the newest WAL is missing, unless it was empty").at(path)
    })
}

/// The WALs from that one on.
///
/// # Errors
/// `IoError` if their directory cannot be listed.
pub(in crate::db) fn logs_from(db: &DbInner, oldest: FileNumber) -> Result<Vec<Opened>> {
    let names = db.context.env.fs.list(&db.context.wal_directory)?;
    let mut numbers: Vec<_> = names
        .iter()
        .filter_map(|name| match FileKind::parse(name) {
            Some(FileKind::Wal(number)) if number >= oldest => Some(number),
            _ => None,
        })
        .collect();
    numbers.sort_unstable();
    let mut logs = Vec::new();
    for number in numbers {
        match db.context.env.fs.open_random_access(
            &file_name::wal(&db.context.wal_directory, number),
            IoMode::Buffered,
        ) {
            // Whoever writes the database has flushed it meanwhile.
            Err(error) if error.is_not_found() => {}
            opened => logs.push((number, opened)),
        }
    }
    Ok(logs)
}

fn judge(db: &DbInner, logs: &[Log], outcome: &RecoveryOutcome) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    let met = outcome.judged.iter().filter(|judged| judged.verdict != Verdict::Stop);
    let behind_met = |judged: &Judged| places_behind(logs, judged.wal, &judged.error, false);
    let behind_stop = |stop: &Stop| places_behind(logs, stop.wal, &stop.error, true);
    let places =
        met.clone().flat_map(behind_met).chain(outcome.stopped.iter().flat_map(behind_stop));
    let counts = Counts::of(logs, places)?;
    for judged in met {
        let behind = counts.behind(behind_met(judged));
        if behind.records > 0 {
            let is_passed = judged.verdict == Verdict::Skip;
            let fate = if is_passed { LogFate::PassedOver } else { LogFate::WalEnds };
            found.push(Found { error: judged.error.clone(), fate, behind });
        }
    }
    // Others are where an opening has gone on already.
    let Some(stop) = &outcome.stopped else { return Ok(found) };
    let behind = counts.behind(behind_stop(stop));
    let refused = db.check_families_agree(outcome).err();
    let is_end_lost = number_of(&stop.error) != stop.wal;
    let fate = match &refused {
        Some(_) => LogFate::Refused,
        None if behind.records > 0 || is_end_lost => LogFate::HistoryEnds,
        None if stop.is_expected => return Ok(found),
        None => LogFate::TornEnd,
    };
    found.push(Found { error: refused.unwrap_or_else(|| stop.error.clone()), fate, behind });
    Ok(found)
}

/// What lies behind a WAL that cannot be read does not miss it.
fn behind_unreadable(number: FileNumber) -> FileNumber {
    FileNumber(number.0.saturating_add(1))
}

/// The WAL that an error speaks of.
fn number_of(error: &Error) -> FileNumber {
    let name = error.path().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
    match name.and_then(|name| FileKind::parse(&name)) {
        Some(FileKind::Wal(number)) => number,
        _ => FileNumber(0),
    }
}

/// Where records stand behind damage in the WAL `damaged`, which `error` describes; `in_newer` has
/// newer WALs, too.
fn places_behind<'a>(
    logs: &'a [Log],
    damaged: FileNumber,
    error: &Error,
    in_newer: bool,
) -> impl Iterator<Item = Place> + use<'a> {
    let own = (number_of(error) == damaged).then(|| (damaged, error.offset()));
    let others = if in_newer { logs } else { &[] };
    let newer = others.iter().map(|(number, _)| *number).filter(move |number| *number > damaged);
    own.into_iter().chain(newer.map(|number| (number, None)))
}

impl Counts {
    /// Reads each WAL once in which there are places.
    ///
    /// # Errors
    /// `IoError`.
    fn of(logs: &[Log], places: impl Iterator<Item = Place>) -> Result<Self> {
        let mut counts: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for (number, offset) in places {
            counts.entry(number).or_default().insert(offset, Behind::default());
        }
        for (number, file) in logs {
            if let Some(places) = counts.get_mut(number) {
                count(*number, file, places)?;
            }
        }
        Ok(Self(counts))
    }

    /// What stands behind these places, each of which is in another WAL.
    fn behind(&self, places: impl IntoIterator<Item = Place>) -> Behind {
        let mut all = Behind::default();
        for (number, offset) in places {
            all.add(self.0[&number][&offset]);
        }
        all
    }
}

impl Behind {
    fn add(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

/// Counts records that begin behind places in a WAL. A torn value may hold what looks like a
/// record; of those that were written after it the sequence numbers are larger.
fn count(
    number: FileNumber,
    file: &Arc<dyn RandomAccessFile>,
    places: &mut BTreeMap<Option<u64>, Behind>,
) -> Result<()> {
    let options = ReaderOptions { search_behind_damage: true, ..ReaderOptions::default() };
    let mut reader = Reader::with_options(file.clone(), number, options);
    let mut last: Option<SequenceNumber> = None;
    loop {
        match reader.next_event()? {
            Event::End => break,
            Event::Damage(_) => continue,
            Event::Record(_) => {}
        }
        let Ok(batch) = BatchView::parse(reader.record()) else { continue };
        let is_newer = last.is_none_or(|last| batch.sequence() > last);
        if batch.count() == 0 || batch.sequence() > MAX_SEQUENCE_NUMBER || !is_newer {
            continue;
        }
        last = Some(batch.sequence());
        if let Some((_, behind)) = places.range_mut(..Some(reader.record_offset())).next_back() {
            behind.add(Behind { records: 1, bytes: batch.data().len() as u64 });
        }
    }
    // So far each has what stands in front of the next one.
    let mut later = Behind::default();
    for behind in places.values_mut().rev() {
        later.add(*behind);
        *behind = later;
    }
    Ok(())
}
