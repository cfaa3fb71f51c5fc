//! Reads records from WALs, including those after damage.
//!
//! 1. A batch is used if its record is intact and it can be read to its end. Its operations on a
//!    family are left out if the family's tables already have them: according to the MANIFEST, or
//!    because the tables hold newer writes (memtables are flushed in order). They are not left out
//!    if tables of the family are damaged or missing and may have held the keys.
//! 2. Damage is a loss, except for what ends every log: reserved zeros, and records from an earlier
//!    use of the file.
//! 3. Operations of write-prepared transactions share sequence numbers, as RocksDB replays them.
//!    The number increases at a noop after operations, which ends a batch, and at a key that the
//!    batch already has.
//! 4. Each log records how the one before it ended (see `wal/predecessor.rs`), which reveals a
//!    cleanly cut off tail. The end of a log that cannot be read is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::directory::{Files, Listed};
use super::families::Families;
use super::files::SourceFiles;
use super::prepared::{PreparedFamilies, PreparedOperations};
use super::report::{SalvageReport, SalvagedFile, SalvagedKind};
use super::runs::LogRuns;
use super::stamps::Adapted;
use crate::base::{
    ColumnFamilyId, Error, FileNumber, InternalKeyBuf, MAX_SEQUENCE_NUMBER, RangeTombstone, Result,
    SequenceNumber, ValueType, timestamp,
};
use crate::batch::{BatchSummary, BatchView, Operation};
use crate::env::RandomAccessFile;
use crate::wal::{
    Damage, DamageKind, Event, Gap, Noted, Reader, ReaderOptions, WalEnd, is_plain, number_at,
    shares_numbers,
};

/// The families of which WALs have batches that count. What is damaged is told when they are read
/// for good.
pub(super) fn families_in_logs(
    source: &Arc<SourceFiles>,
    wals: &Files,
) -> BTreeSet<ColumnFamilyId> {
    let (mut found, mut prepared) = (BTreeSet::new(), PreparedFamilies::default());
    for (&number, listed) in
        wals.iter().flat_map(|(number, files)| files.iter().map(move |file| (number, file)))
    {
        let options = ReaderOptions { search_behind_damage: true, ..ReaderOptions::default() };
        let mut reader = Reader::with_options(source.at(&listed.path), number, options);
        loop {
            match reader.next_event() {
                Err(_) | Ok(Event::End) => break,
                Ok(Event::Damage(_)) => {}
                Ok(Event::Record(record)) => {
                    // What is wrong with it is told later.
                    let named = BatchView::parse(record).and_then(|batch| prepared.families(batch));
                    found.extend(named.unwrap_or_default());
                }
            }
        }
    }
    found
}

/// WALs by the numbers that their records bear, which tell where a file has the name of another.
/// What is left of a recycled one's earlier life has a smaller number than its own. So a larger one
/// is another's; and a smaller one if the file of that name is misnamed as well.
pub(super) fn by_own_numbers(
    source: &Arc<SourceFiles>,
    wals: Files,
    report: &mut SalvageReport,
) -> Files {
    let all: Vec<_> = wals
        .into_iter()
        .flat_map(|(number, files)| files.into_iter().map(move |listed| (number, listed)))
        .map(|(number, listed)| (number, first_other_number(source, &listed, number), listed))
        .collect();
    let mut misnamed = BTreeSet::new();
    loop {
        let known = misnamed.len();
        for (number, other, _) in &all {
            if other.is_some_and(|other| other > *number || misnamed.contains(&other)) {
                misnamed.insert(*number);
            }
        }
        if misnamed.len() == known {
            break;
        }
    }
    let mut found = Files::new();
    for (number, other, listed) in all {
        let own = other.filter(|_| misnamed.contains(&number)).unwrap_or(number);
        if own != number {
            report.note(format!(
                "{} is the WAL {own}.log, judging by its records, and was read as such.",
                listed.path.display()
            ));
        }
        found.entry(own).or_default().push(listed);
    }
    found
}

/// The number of another log that the first intact record of a file bears.
fn first_other_number(
    source: &Arc<SourceFiles>,
    listed: &Listed,
    number: FileNumber,
) -> Option<FileNumber> {
    // Records have no room for more.
    u32::try_from(number.0).ok()?;
    let options = ReaderOptions { search_behind_damage: true, ..ReaderOptions::default() };
    let file = source.at(&listed.path);
    let mut reader = Reader::with_options(file.clone(), number, options);
    loop {
        match reader.next_event() {
            Err(_) | Ok(Event::End | Event::Record(_)) => return None,
            Ok(Event::Damage(Damage { kind: DamageKind::OldRecord { .. }, offset, .. })) => {
                return number_at(&*file, offset).ok()?.map(|number| FileNumber(number.into()));
            }
            Ok(Event::Damage(_)) => {}
        }
    }
}

/// Reads WALs, oldest first.
pub(super) struct Logs<'a, 'b> {
    pub(super) families: &'a mut Families,
    pub(super) runs: &'a mut LogRuns<'b>,
    pub(super) report: &'a mut SalvageReport,
    /// The largest sequence number seen.
    pub(super) last_sequence: &'a mut SequenceNumber,
    /// How far each log goes.
    pub(super) ends: BTreeMap<FileNumber, WalEnd>,
    /// Those that cannot be read, or not all of them.
    pub(super) unreadable: BTreeSet<FileNumber>,
    /// Those whose end is torn, which is a loss: what stood there and behind it is that. Which one
    /// it is in the report, until it says how far the log went.
    pub(super) torn: BTreeMap<FileNumber, Option<usize>>,
    /// Whether the log that is read has lost something before, perhaps which keys end in
    /// timestamps.
    pub(super) is_damaged: bool,
    /// Whether they are out of the archive: tables have had all of it.
    pub(super) is_archive: bool,
    pub(super) prepared: PreparedOperations,
}

impl Logs<'_, '_> {
    /// Takes what is intact of one WAL.
    ///
    /// # Errors
    /// `IoError` of the new database's directory.
    pub(super) fn read(
        &mut self,
        file: Arc<dyn RandomAccessFile>,
        number: FileNumber,
        listed: &Listed,
    ) -> Result<()> {
        let options = ReaderOptions { search_behind_damage: true, ..ReaderOptions::default() };
        self.ends.entry(number).or_default();
        self.is_damaged = false;
        // Files of a number need not be copies.
        self.prepared.forget_sharing();
        let mut reader = Reader::with_options(file, number, options);
        let records = self.read_all(&mut reader, number, listed)?;
        if let Some(noted) = Noted::by_rocksdb(&reader) {
            self.check_predecessor(noted);
        }
        self.report.files.push(SalvagedFile {
            path: listed.path.clone(),
            kind: SalvagedKind::Wal,
            bytes: listed.bytes,
            records,
            left_out: (records == 0).then(|| "the tables hold all of it".to_string()),
        });
        Ok(())
    }

    /// Takes nothing of a copy that was broken off.
    pub(super) fn leave_out(&mut self, copy: &Listed, whole: &Listed) {
        self.report.files.push(SalvagedFile {
            path: copy.path.clone(),
            kind: SalvagedKind::Wal,
            bytes: copy.bytes,
            records: 0,
            left_out: Some(format!("{} has all of it", whole.path.display())),
        });
    }

    fn read_all(
        &mut self,
        reader: &mut Reader,
        number: FileNumber,
        listed: &Listed,
    ) -> Result<u64> {
        let (mut records, mut is_first) = (0, true);
        // It may be the log's end, unless a record follows.
        let mut gap: Option<Gap> = None;
        loop {
            let offset = reader.good_until();
            let event = match reader.next_event() {
                Ok(event) => event,
                Err(error) => {
                    self.lose_unread(number, error.at(&listed.path));
                    break;
                }
            };
            match event {
                Event::End => break,
                Event::Damage(damage) => {
                    let file = reader.file().clone();
                    let outcome = match gap.as_mut() {
                        Some(gap) => gap.add(&damage, number, &*file),
                        None => Gap::new(damage, number, &*file).map(|new| gap = Some(new)),
                    };
                    outcome
                        .unwrap_or_else(|error| self.lose_unread(number, error.at(&listed.path)));
                }
                Event::Record(_) => {
                    if let Some(gap) = gap.take() {
                        self.is_damaged = true;
                        self.lose(part(gap.damage(), listed));
                    }
                    match self.batch(reader, number, std::mem::take(&mut is_first)) {
                        Ok(taken) => records += taken,
                        Err(Refused::Batch(error)) => {
                            self.lose(error.at(&listed.path).at_offset(offset));
                        }
                        Err(Refused::Output(error)) => return Err(error),
                    }
                }
            }
        }
        if let Some(gap) = gap.filter(|gap| !gap.is_end()) {
            let loss = (!self.is_archive).then(|| self.report.next_whole());
            self.torn.insert(number, loss);
            self.lose_whole(part(gap.damage(), listed));
        }
        Ok(records)
    }

    fn lose_unread(&mut self, number: FileNumber, error: Error) {
        if self.unreadable.insert(number) { self.lose_whole(error) } else { self.lose(error) }
    }

    /// What is lost of an archive, tables had: it is not lost for that.
    fn lose(&mut self, error: Error) {
        if self.is_archive { self.report.pass_over(error) } else { self.report.lose(error, None) }
    }

    /// The same of what concerns the whole log.
    fn lose_whole(&mut self, error: Error) {
        if self.is_archive {
            self.report.pass_over(error)
        } else {
            self.report.lose_whole(error, None)
        }
    }

    /// Takes the batch that was read; how many of its operations are wanted.
    fn batch(&mut self, reader: &Reader, wal: FileNumber, is_first: bool) -> Result<u64, Refused> {
        let parsed = BatchView::parse(reader.record());
        if let Some(noted) =
            parsed.as_ref().ok().and_then(|batch| Noted::in_batch(*batch, is_first))
        {
            self.check_predecessor(noted);
        }
        // Whatever is in it, the log goes so far.
        let end = self.ends.entry(wal).or_default();
        end.good_until = reader.good_until().max(end.good_until);
        let batch = parsed.map_err(Refused::Batch)?;
        end.last_sequence = batch.sequence().max(end.last_sequence);
        let summary = batch.validate().map_err(Refused::Batch)?;
        let told = |id| usize::from(reader.timestamp_size(id));
        let adapted = self.families.adapt_batch(batch, told, self.is_damaged);
        let Adapted { batch: adapted, removed, refused } = adapted.map_err(Refused::Batch)?;
        if !is_plain(summary)
            && let Some((_, error)) = refused.first_key_value()
        {
            return Err(Refused::Batch(error.clone()));
        }
        let batch =
            adapted.as_deref().map_or(Ok(batch), BatchView::parse).map_err(Refused::Batch)?;
        let (next, taken) = if is_plain(summary) {
            let (mut next, mut taken) = (batch.sequence(), 0);
            for operation in batch.iter() {
                let operation = operation.map_err(Refused::Batch)?;
                if !operation.family().is_some_and(|id| refused.contains_key(&id)) {
                    let kept = self.take(&operation, next, wal).map_err(Refused::Output)?;
                    taken += u64::from(kept);
                }
                next += u64::from(operation.takes_sequence());
            }
            (next, taken)
        } else {
            self.marked(batch, summary, wal, reader)?
        };
        removed.into_iter().for_each(|(id, newest)| self.families.note_removed(id, newest));
        let last = next.saturating_sub(1).min(MAX_SEQUENCE_NUMBER);
        *self.last_sequence = last.max(*self.last_sequence);
        match refused.into_values().next() {
            Some(error) if taken == 0 => Err(Refused::Batch(error)),
            Some(error) => {
                self.lose(error.at(reader.file().path()).at_offset(reader.record_offset()));
                Ok(taken)
            }
            None => Ok(taken),
        }
    }

    /// Takes what a record writes that prepares or decides transactions, or whose operations may
    /// share numbers: the number behind it, and how many operations are wanted.
    fn marked(
        &mut self,
        batch: BatchView<'_>,
        summary: BatchSummary,
        wal: FileNumber,
        reader: &Reader,
    ) -> Result<(SequenceNumber, u64), Refused> {
        let mut prepared = std::mem::take(&mut self.prepared);
        let is_stamped = |operation| matches!(operation, Operation::CommitWithTimestamp { .. });
        let kept = if batch.iter().flatten().any(is_stamped) {
            self.families.kept_stamps()
        } else {
            BTreeMap::new()
        };
        let read = prepared.read(
            (batch, summary),
            || shares_numbers(reader.file().clone(), wal),
            &|id| kept.get(&id).copied().unwrap_or(0),
            &mut |operation, sequence| self.take(operation, sequence, wal),
        );
        for (id, stamp) in prepared.take_committed_stamps() {
            self.families.note_removed(id, timestamp::to_u64(&stamp));
        }
        self.prepared = prepared;
        read
    }

    /// All logs are read: what was prepared and never decided is lost.
    pub(super) fn finish(self) {
        for name in self.prepared.names() {
            let message = format!(
                "transaction '{}' was prepared and not decided; what it would have written is left out",
                name.escape_ascii()
            );
            self.report.lose(Error::not_supported(message), None);
        }
    }

    /// Takes an operation if its family wants it.
    fn take(
        &mut self,
        operation: &Operation<'_>,
        sequence: SequenceNumber,
        wal: FileNumber,
    ) -> Result<bool> {
        let Some(id) = operation.family() else { return Ok(false) };
        let found = if self.is_archive {
            self.families.for_archived_record(id).map(|family| (family, true))
        } else {
            self.families.for_log_record(id, wal, sequence)
        };
        let Some((family, is_flushed)) = found else { return Ok(false) };
        let (kind, key, value) = match *operation {
            Operation::Put { key, value, .. } => (ValueType::Value, key, value),
            Operation::TimedPut { key, timed, .. } => (ValueType::Value, key, timed.value()),
            // So that RocksDB keeps it from older timestamps.
            Operation::Delete { key, .. } if family.stamps.kind.kept_size() > 0 => {
                (ValueType::DeletionWithTimestamp, key, &b""[..])
            }
            Operation::Delete { key, .. } => (ValueType::Deletion, key, &b""[..]),
            Operation::SingleDelete { key, .. } => (ValueType::SingleDeletion, key, &b""[..]),
            Operation::Merge { key, operand, .. } => (ValueType::Merge, key, operand),
            Operation::BlobIndex { key, index, .. } => (ValueType::BlobIndex, key, index),
            Operation::PutEntity { key, entity, .. } => (ValueType::WideColumnEntity, key, entity),
            Operation::DeleteRange { begin, end, .. } => {
                if is_flushed && !family.may_have_lost(begin, Some(end)) {
                    return Ok(false);
                }
                let tombstone =
                    RangeTombstone { start: begin.to_vec(), end: end.to_vec(), sequence };
                family.tombstones.add_of_log(tombstone, is_flushed.then_some(wal));
                return Ok(true);
            }
            _ => return Ok(false),
        };
        if is_flushed && !family.may_have_lost(key, None) {
            return Ok(false);
        }
        let key = InternalKeyBuf::new(key, sequence, kind);
        let runs = if is_flushed { &mut self.runs.flushed } else { &mut self.runs.fresh };
        runs.add(&family.name, &family.comparator, key.as_key(), value)?;
        Ok(true)
    }

    /// Whether the log before ended as the one after it says. Of an archive, tables have had all.
    fn check_predecessor(&mut self, noted: Noted) {
        let number = noted.number();
        let known = self.ends.get(&number).copied();
        let end = known.unwrap_or_default();
        if self.is_archive || self.unreadable.contains(&number) || noted.is_held(end) {
            return;
        }
        let missed = format!("the log should continue {}", noted.missed(end));
        match (self.torn.get_mut(&number), known) {
            // One loss, however much of the log is gone behind the record that is cut off.
            (Some(torn), _) => {
                torn.take().into_iter().for_each(|loss| self.report.say_more(loss, &missed))
            }
            (None, Some(_)) => {
                self.report.lose_whole(Error::corruption(format!("{number}.log: {missed}")), None);
            }
            (None, None) if self.families.need_log(number) => {
                self.report.lose_whole(Error::corruption(format!("{number}.log is missing")), None);
            }
            (None, None) => {}
        }
    }
}

/// Why a batch is not taken.
pub(super) enum Refused {
    /// It cannot be read.
    Batch(Error),
    /// The new database cannot be written.
    Output(Error),
}

/// A part of a log that is lost.
fn part(damage: &Damage, listed: &Listed) -> Error {
    let message = format!("{}: {} bytes of the log are lost", what(&damage.kind), damage.dropped);
    Error::corruption(message).at(&listed.path).at_offset(damage.offset)
}

fn what(kind: &DamageKind) -> &'static str {
    match kind {
        DamageKind::TruncatedHeader | DamageKind::TruncatedBody | DamageKind::TruncatedRecord => {
            "a record is cut off"
        }
        DamageKind::Checksum | DamageKind::Length => "a record is damaged",
        DamageKind::PartialRecord | DamageKind::MissingStart | DamageKind::MiddleOfRecord => {
            "a part of a record is missing"
        }
        DamageKind::Decompression => "a compressed record is damaged",
        DamageKind::Zeros { .. } => "zeros instead of records",
        DamageKind::OldRecord { .. } => {
            "a record from an earlier use of the file instead of another"
        }
        _ => "a record is malformed",
    }
}
