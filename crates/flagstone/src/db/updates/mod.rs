//! The writes of a database, one after the other, out of its WALs: for a replica, an audit, a
//! search index.
//!
//! 1. WALs are listed under the locks, with how far the active one is written; no further is it
//!    read. The others are read to their ends, also where they lie in the archive.
//! 2. Which WAL holds a sequence number, the first records say: the newest that begins no later. (A
//!    WAL that recovery has left out, as what precedes it was lost, is followed by one that begins
//!    earlier.)
//! 3. From there, each write must go on where the one before ended. Where it does not, or there is
//!    damage, the rest of that WAL does not count, as in recovery, and it must be the next that
//!    goes on; if none does, something is missing, and that is said. Nor does a WAL count that says
//!    of the one before that it held more: a recovery has left it out, though what is missing may
//!    have taken no sequence number. One that begins earlier than the one before has ended is
//!    another history, which is said.
//! 4. A write is handed out once it is published: no reader of a replica sees what a reader of the
//!    database does not.
//!
//! A WAL that is removed meanwhile can be read on, since it is open. One that is used again under
//! another number cannot: its records say whose they are, and what is missing then is not found.

mod open_wal;
pub(in crate::db) mod position;
pub(in crate::db) mod prepared;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::sync::Ordering;
use crate::base::{
    ColumnFamilyId, Error, FileNumber, Remedy, Result, SequenceNumber, ValueType, WideColumns,
};
use crate::batch::{BatchView, Operation, WriteBatch};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::handle::Db;
use crate::db::reading::read::read_settings;
use crate::db::updates::open_wal::OpenWal;
use crate::db::updates::position::UpdatePosition;
use crate::db::updates::prepared::{Marked, PreparedSections};
use crate::db::wal_files::{self, WalFile};
use crate::env::IoMode;
use crate::options::ReadOptions;
use crate::wal::{DamageKind, Event, Noted, PredecessorWal, WalEnd};

/// So often it is looked for a WAL that was moved between the look at the list and the opening.
pub(in crate::db) const LOOKS_MAX: usize = 3;

/// One write, as returned by [`Updates`].
#[derive(Debug, Clone)]
pub struct Update {
    /// Sequence number of its first operation.
    pub sequence: SequenceNumber,
    /// Sequence number of the next write. After the deletion of an empty range the next write may
    /// begin earlier, if the database was reopened in between; [`Update::position`] allows for
    /// that.
    pub next_sequence: SequenceNumber,
    /// The operations. Values in blob files have been fetched.
    pub batch: WriteBatch,
    /// Where to continue after either side restarts, provided that the database then holds the same
    /// writes ([`Db::updates_after`](crate::Db::updates_after)).
    pub position: UpdatePosition,
}

/// The writes of a database in order ([`Db::updates_since`](crate::Db::updates_since)).
pub struct Updates {
    inner: Arc<DbInner>,
    /// The sequence number that is wanted next.
    next: SequenceNumber,
    /// Less where the write before deletes empty ranges: RocksDB counts these, and does not when it
    /// replays them, after which it goes on here.
    lowest: SequenceNumber,
    wal: OpenWal,
    /// The WAL that was read before it, and where its records end.
    before: Option<(FileNumber, WalEnd)>,
    /// Damage that ended the WAL before, if nothing has followed yet: it may be why.
    damage: Option<Error>,
    prepared: PreparedSections,
    /// What has been read, and is not published yet.
    waiting: Option<Update>,
    /// What ended it.
    failed: Option<Error>,
}

/// What a record is to whoever wants the writes from `next` on.
#[derive(Debug, PartialEq, Eq)]
enum Fit {
    /// It comes before.
    Before,
    /// It is the next one.
    Next,
    /// It comes after one that is missing.
    TooLate,
}

/// What comes of a look at the WAL being read.
enum Step {
    Update(Update),
    Passed,
    /// There is no more in it, up to the limit.
    End,
}

impl Db {
    /// The writes from the one with this sequence number on, in order, like RocksDB's
    /// `GetUpdatesSince`. A replica, for example, applies each batch as it gets it.
    /// [`Updates::next_update`] continues as the database is written to.
    ///
    /// They are read from the WALs, which are deleted once the memtables are flushed, unless
    /// `WAL_ttl_seconds` or `WAL_size_limit_MB` keep them in the archive. Writes with `disable_wal`
    /// are missing, and reported as missing. Column families are identified by their numbers; their
    /// creation and removal is not in the WALs. With `manual_wal_flush` a write appears once it is
    /// in the WAL's file.
    ///
    /// **Power loss.** A power loss may destroy writes that were not synced, and the next writes
    /// then get the same sequence numbers. A replica that applied the lost writes would then hold
    /// writes that the database does not have, and miss others. The sequence number alone reveals
    /// this only while the replica is ahead, or if batches end elsewhere. So continue with
    /// [`Db::updates_after`](crate::Db::updates_after) and the [`Update::position`] of the last
    /// applied write, which detects it. To prevent it, call [`Db::sync_wal`] before applying
    /// updates, and before continuing from a copy, which has no position. If every write uses
    /// `sync`, this is not needed: a write that waits for its sync is not returned.
    ///
    /// **Blob files.** Values written to blob files at commit (`blob_write_mode`) are read from
    /// there. Once they are overwritten, the file may be deleted before the WAL. For a replica that
    /// may fall far behind use `blob_write_mode=flush`, which is the default if WALs are archived;
    /// it does not cover values written in pieces ([`Db::put_stream`]). Of a value written at
    /// commit to a family that was dropped, only the key is left; it is returned as a deletion with
    /// the same sequence number.
    ///
    /// ```
    /// # use flagstone::db::Db;
    /// # use flagstone::env::Env;
    /// # use flagstone::options::Options;
    /// # fn main() -> flagstone::base::Result<()> {
    /// # let mut options = Options { env: Env::memory(), ..Options::default() };
    /// # options.create_if_missing = true;
    /// options.set("WAL_ttl_seconds", "3600")?;
    /// let (primary, replica) = (Db::open("/primary", &options)?, Db::open("/replica", &options)?);
    /// primary.put("key", "value")?;
    /// primary.flush_all()?;
    ///
    /// let mut updates = primary.get_updates_since(replica.latest_sequence_number() + 1)?;
    /// while let Some(update) = updates.next_update()? {
    ///     primary.sync_wal()?;
    ///     replica.write(update.batch)?;
    /// }
    /// assert_eq!(replica.get("key")?.expect("it was written"), "value");
    ///
    /// primary.delete("key")?;
    /// let update = updates.next_update()?.expect("there is a new one");
    /// replica.write(update.batch)?;
    /// assert!(replica.get("key")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` if that write is no longer in the WALs. `InvalidArgument` if the number is beyond
    /// the next write, so that the caller has seen writes that this database has not.
    /// `NotSupported` if the database is open read-only. `IoError`.
    pub fn get_updates_since(&self, sequence: SequenceNumber) -> Result<Updates> {
        let inner = self.inner();
        inner.context.check_open()?;
        if inner.context.read_only {
            return Err(Error::not_supported("the writes of a database that is open read-only"));
        }
        let wanted = sequence.max(1);
        let last = inner.snapshots.published.load(Ordering::Acquire);
        if wanted > last + 1 {
            return Err(Error::invalid_argument(format!(
                "sequence number {wanted} is not written yet: the last write has {last}"
            )));
        }
        let wal = wal_with(inner, wanted, last)?;
        Ok(Updates::begin(inner, wal, wanted, wanted))
    }

    /// The sequence number of the oldest write that the WALs have; `None` if they have none.
    ///
    /// # Errors
    /// `IoError`.
    pub fn oldest_update(&self) -> Result<Option<SequenceNumber>> {
        for wal in wal_files::wal_files(self.inner()).0 {
            // One that is gone meanwhile is not the oldest.
            let opened = ignoring_absence(open_wal(self.inner(), &wal, wal.size))?;
            if let Some(first) = opened.map(OpenWal::first_sequence).transpose()?.flatten() {
                return Ok(Some(first));
            }
        }
        Ok(None)
    }

    /// The sequence number of the first write in a WAL, or the next one that an empty record has.
    ///
    /// # Errors
    /// `IoError`, also if the WAL was removed meanwhile.
    pub fn start_of_wal(&self, wal: &WalFile) -> Result<Option<SequenceNumber>> {
        open_wal(self.inner(), wal, wal.size)?.first_sequence()
    }
}

pub(in crate::db) fn ignoring_absence<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(error) if error.is_not_found() => Ok(None),
        outcome => outcome.map(Some),
    }
}

fn open_wal(db: &DbInner, wal: &WalFile, limit: u64) -> Result<OpenWal> {
    let file = db.context.env.fs.open_random_access(&wal.path, IoMode::Buffered)?;
    Ok(OpenWal::new(file, wal.number, limit))
}

/// The WALs, oldest first, each with how far it may be read: the active one grows.
pub(in crate::db) fn readable_wals(db: &DbInner) -> Vec<(WalFile, u64)> {
    let (wals, active) = wal_files::wal_files(db);
    let limit = |wal: &WalFile| if Some(wal.number) == active { wal.size } else { u64::MAX };
    wals.into_iter().map(|wal| (limit(&wal), wal)).map(|(limit, wal)| (wal, limit)).collect()
}

/// The WAL in which the write with the sequence number `wanted` is; `last` had been published
/// before.
fn wal_with(db: &DbInner, wanted: SequenceNumber, last: SequenceNumber) -> Result<OpenWal> {
    let mut looks = 1;
    // Before the look at the files: what waits no longer is seen there.
    let may_wait = db.pipeline.may_wait_in_memory(wanted);
    'look: loop {
        let (mut oldest, mut empty) = (None, None);
        for (wal, limit) in readable_wals(db).iter().rev() {
            // It is opened once: a moment later it may have gone.
            let opened = open_wal(db, wal, *limit);
            let looked_at = opened.and_then(|opened| Ok((opened.anew().first_sequence()?, opened)));
            match ignoring_absence(looked_at)? {
                // It was moved to the archive, or removed.
                None if looks < LOOKS_MAX => {
                    looks += 1;
                    continue 'look;
                }
                None => {}
                Some((None, opened)) => drop(empty.get_or_insert(opened)),
                // What was written instead begins no later, so that only the first may be
                // another one.
                Some((Some(first), opened)) if first == wanted && is_left_out(db, &opened)? => {}
                Some((Some(first), opened)) if first <= wanted => return Ok(opened),
                Some((first, _)) => oldest = first,
            }
        }
        return match (empty, oldest) {
            // Nothing was written since, or nothing has come to the file.
            (Some(opened), None) if wanted > last || may_wait => Ok(opened),
            (Some(opened), Some(_)) if wanted > last => Ok(opened),
            (_, Some(oldest)) => {
                Err(missing(wanted, &format!("the oldest write there begins at {oldest}")))
            }
            (_, None) => Err(missing(wanted, "they hold none")),
        };
    }
}

/// Whether a WAL says of one before it that it held more than it does: then a recovery has left
/// it out.
fn is_left_out(db: &DbInner, wal: &OpenWal) -> Result<bool> {
    let wals = readable_wals(db);
    let mut wal = wal.anew();
    loop {
        let Some((first, Some(noted))) = wal.anew().begin()? else { return Ok(false) };
        let found = wals.iter().find(|(listed, _)| listed.number == noted.number());
        let opened = found.map(|(listed, limit)| ignoring_absence(open_wal(db, listed, *limit)));
        let Some(before) = opened.transpose()?.flatten() else { return Ok(false) };
        if !noted.is_held(before.anew().end()?) {
            return Ok(true);
        }
        // One that holds no write may have been left out itself.
        if before.anew().first_sequence()? != Some(first) {
            return Ok(false);
        }
        wal = before;
    }
}

/// The batch of a record, with the values that it only refers to.
fn resolved(db: &DbInner, batch: BatchView<'_>, names_blobs: bool) -> Result<WriteBatch> {
    if !names_blobs {
        return WriteBatch::from_bytes(batch.data().to_vec());
    }
    let mut whole = WriteBatch::with_capacity(batch.data().len());
    let mut operations = batch.iter();
    loop {
        let start = operations.offset();
        let Some(operation) = operations.next().transpose()? else { break };
        match operation {
            Operation::BlobIndex { cf, key, .. } | Operation::PutEntity { cf, key, .. }
                if operation.names_blobs() =>
            {
                let (kind, _, stored) = operation.entry().expect("it sets a key");
                put_fetched(db, &mut whole, cf, key, (kind, stored))?
            }
            other => {
                whole
                    .push_encoded(&batch.body()[start..operations.offset()], other.is_counted())?;
            }
        }
    }
    whole.set_sequence(batch.sequence());
    Ok(whole)
}

fn put_fetched(
    db: &DbInner,
    batch: &mut WriteBatch,
    cf: ColumnFamilyId,
    key: &[u8],
    (kind, stored): (ValueType, &[u8]),
) -> Result<()> {
    // Of a dropped family nothing is left to read. Were it left out, what follows would have
    // other numbers for the replica.
    let Some(family) = db.tree.families.read().get(&cf).cloned() else {
        return batch.delete_cf(cf, key);
    };
    let sequence = batch.sequence();
    if kind == ValueType::BlobIndex {
        return batch.put_cf(cf, key, fetch(db, &family, key, stored, sequence)?);
    }
    let stored = Bytes::copy_from_slice(stored);
    let columns = WideColumns::of_entity(stored, |index| fetch(db, &family, key, index, sequence))?;
    batch.put_entity_cf(cf, key, columns.iter())
}

/// The value that the batch of this number has in a blob file.
fn fetch(
    db: &DbInner,
    family: &Arc<Family>,
    key: &[u8],
    index: &[u8],
    sequence: SequenceNumber,
) -> Result<Bytes> {
    let version = family.current.load().version.clone();
    let place = db.tables.place_of_blob(family, key, index)?;
    let settings = read_settings(&ReadOptions { fill_cache: false, ..ReadOptions::default() });
    db.tables.read_blob(family, &version, key, &place, &settings, None).map_err(|error| {
        let known = family.current.load().version.blob_files.get(&place.index.file).cloned();
        let is_given_back = known.is_none_or(|blob| blob.given_back() > 0);
        if is_given_back && (error.is_corruption() || error.is_not_found()) {
            let what = "a value was overwritten and its space in a blob file was reclaimed";
            return missing(sequence, what).at(family.paths.blob(place.index.file));
        }
        error
    })
}

pub(in crate::db) fn missing(wanted: SequenceNumber, why: &str) -> Error {
    Error::not_found(format!(
        "the write with sequence number {wanted} is no longer in the WALs: {why}"
    ))
    .advise(Remedy::MakeNewCopy)
    .advise(Remedy::KeepWals)
}

/// What a batch is, if the write is wanted that begins at `next`, or no earlier than at `lowest`.
fn fit(batch: BatchView<'_>, lowest: SequenceNumber, next: SequenceNumber) -> Fit {
    let (begin, end) = (batch.sequence(), batch.next_sequence());
    match (begin > next, end > next || begin >= lowest) {
        (true, _) => Fit::TooLate,
        (false, true) => Fit::Next,
        (false, false) => Fit::Before,
    }
}

/// The WAL that was read before, and what it lacks, if it does not hold all that is noted of it.
fn what_is_missed(
    noted: Noted,
    before: Option<(FileNumber, WalEnd)>,
) -> Option<(FileNumber, String)> {
    let (number, end) = before.filter(|(number, _)| *number == noted.number())?;
    (!noted.is_held(end)).then(|| (number, noted.missed(end)))
}

/// Reads the next record, if there is one. Damage, unless a log that a crash ended may end so, goes
/// to `before`.
fn reads_record(wal: &mut OpenWal, before: &mut Option<Error>) -> Result<bool> {
    let damage = match wal.reader.next_event()? {
        Event::End => return Ok(false),
        Event::Record(_) => return Ok(true),
        Event::Damage(damage) => damage,
    };
    let is_end = matches!(
        damage.kind,
        DamageKind::OldRecord { in_fragment: false } | DamageKind::Zeros { in_fragment: false }
    );
    let error = damage.to_error(&**wal.reader.file());
    *before = Some(error.clone()).filter(|_| !is_end);
    wal.left = Some(error);
    Ok(false)
}

/// Whether a batch is nobody's write: what the engine notes for its own recovery.
fn is_own(batch: BatchView<'_>) -> Result<bool> {
    if batch.count() > 0 {
        return Ok(false);
    }
    if PredecessorWal::from_batch(batch).is_some() {
        return Ok(true);
    }
    for operation in batch.iter() {
        if matches!(operation?, Operation::LogData(_)) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Updates({} in WAL {})", self.next, self.wal.number)
    }
}

impl Updates {
    /// From `next` on, or what begins before it, but not before `lowest`.
    fn begin(
        inner: &Arc<DbInner>,
        wal: OpenWal,
        next: SequenceNumber,
        lowest: SequenceNumber,
    ) -> Self {
        Self {
            inner: inner.clone(),
            next,
            lowest,
            wal,
            before: None,
            damage: None,
            prepared: PreparedSections::default(),
            waiting: None,
            failed: None,
        }
    }

    /// The next write; `None` if there is none yet. What is written later comes when it is asked
    /// for again.
    ///
    /// # Errors
    /// `NotFound`, if the next write is not in the WALs: it was written without, or they are gone,
    /// or its value in a blob file is, or a power loss or RocksDB's recovery had another write take
    /// a number that was handed out. `Corruption`; `NotSupported` for transactions that RocksDB
    /// writes before they are committed; `ShutdownInProgress` when the database is closed;
    /// `IoError`. After an error there is no more: begin again at [`Updates::next_sequence`].
    pub fn next_update(&mut self) -> Result<Option<Update>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let outcome = self.next_published();
        self.failed = outcome.as_ref().err().cloned();
        outcome
    }

    /// The sequence number of the next write: where [`Db::updates_since`](crate::Db::updates_since)
    /// would go on. See [`Update::next_sequence`].
    pub fn next_sequence(&self) -> SequenceNumber {
        self.waiting.as_ref().map_or(self.next, |waiting| waiting.sequence)
    }

    fn next_published(&mut self) -> Result<Option<Update>> {
        self.inner.context.check_open()?;
        if self.waiting.is_none() {
            self.waiting = self.read()?;
        }
        let published = self.inner.snapshots.published.load(Ordering::Acquire);
        let (sequence, lowest) = (self.next_sequence(), self.lowest);
        // What has none but empty ranges is published with what comes next, if not before.
        let end = move |update: &Update| lowest.max((sequence + 1).min(update.next_sequence));
        Ok(self.waiting.take_if(|update| end(update) <= published + 1))
    }

    fn read(&mut self) -> Result<Option<Update>> {
        loop {
            match self.step()? {
                Step::Update(update) => return Ok(Some(update)),
                Step::Passed => {}
                Step::End => {
                    if !self.go_on()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Looks at the next record of the WAL.
    fn step(&mut self) -> Result<Step> {
        let Self { inner, next, lowest, wal, before: wal_before, damage: before, prepared, .. } =
            self;
        if wal.left.is_some() {
            return Ok(Step::End);
        }
        if !reads_record(wal, before)? {
            return Ok(Step::End);
        }
        let (offset, path) = (wal.reader.record_offset(), wal.reader.file().path());
        let locate = |error: Error| error.at(path).at_offset(offset);
        let batch = BatchView::parse(wal.reader.record()).map_err(locate)?;
        let noted = Noted::in_batch(batch, !std::mem::replace(&mut wal.has_begun, true));
        if let Some((number, missed)) = noted.and_then(|noted| what_is_missed(noted, *wal_before)) {
            let gap = || missing(*next, &format!("WAL {number} should go on {missed}")).at(path);
            wal.left = Some(before.clone().unwrap_or_else(gap));
            return Ok(Step::End);
        }
        let summary = batch.validate();
        if batch.sequence() <= *next
            && summary.as_ref().is_ok_and(|summary| summary.has_transaction_markers)
        {
            let marked = Marked { batch, wal: wal.number };
            let (written, next_sequence) = prepared.read(inner, marked).map_err(locate)?;
            if written.is_empty() || next_sequence <= *next {
                return Ok(Step::Passed);
            }
            let position = UpdatePosition::behind(batch.data(), next_sequence, wal.number);
            let sequence = batch.sequence();
            (*next, *lowest, *before) = (next_sequence, next_sequence, None);
            return Ok(Step::Update(Update { sequence, next_sequence, batch: written, position }));
        }
        match fit(batch, *lowest, *next) {
            // It is there twice: what was handed out was lost, and the other one was written
            // instead.
            Fit::Before if batch.count() > 0 && wal_before.is_some() => {
                let what = format!(
                    "WAL {} begins at {} and continues differently",
                    wal.number,
                    batch.sequence()
                );
                return Err(missing(*next, &what).at(path).at_offset(offset));
            }
            Fit::Before => return Ok(Step::Passed),
            Fit::TooLate => {
                let what = format!("what follows begins at {}", batch.sequence());
                let gap = || missing(*next, &what).at(path).at_offset(offset);
                wal.left = Some(before.clone().unwrap_or_else(gap));
                return Ok(Step::End);
            }
            Fit::Next => {}
        }
        let summary = summary.map_err(locate)?;
        if is_own(batch).map_err(locate)? {
            return Ok(Step::Passed);
        }
        let next_sequence = batch.next_sequence();
        let update = Update {
            sequence: batch.sequence(),
            next_sequence,
            batch: resolved(inner, batch, summary.names_blobs)?,
            position: UpdatePosition::behind(batch.data(), next_sequence, wal.number),
        };
        (*next, *lowest, *before) = (update.next_sequence, batch.end_without_empty_ranges()?, None);
        Ok(Step::Update(update))
    }

    /// Goes on where the WAL has grown, or in the next one; `false` if there is nothing more yet.
    fn go_on(&mut self) -> Result<bool> {
        let mut looks = 0;
        loop {
            looks += 1;
            // In this order: what is published, and waits in memory no longer, is in the files.
            let published = self.inner.snapshots.published.load(Ordering::Acquire);
            let may_wait = self.inner.pipeline.may_wait_in_memory(self.next);
            let wals = readable_wals(&self.inner);
            let wal = &mut self.wal;
            let listed = wals.iter().find(|(listed, _)| listed.number == wal.number);
            // One that is gone has no more than its file; what another log has written there since
            // is no damage.
            let limit = listed.map_or(u64::MAX, |(_, limit)| *limit);
            self.damage = self.damage.take().filter(|_| listed.is_some());
            if wal.left.is_none() && limit > wal.limit {
                wal.limit = limit;
                wal.reader.read_until(limit);
                return Ok(true);
            }
            let Some((next, limit)) = wals.iter().find(|(listed, _)| listed.number > wal.number)
            else {
                self.inner.context.check_open()?;
                return match (wal.left.take(), &self.damage) {
                    (Some(error), _) => Err(error),
                    (None, _) if self.next > published || may_wait => Ok(false),
                    (None, Some(error)) => Err(error.clone()),
                    (None, None) => Err(missing(self.next, "no WAL has the next write")),
                };
            };
            match open_wal(&self.inner, next, *limit) {
                // It was moved to the archive, or removed.
                Err(error) if error.is_not_found() && looks < LOOKS_MAX => {}
                opened => {
                    let ended = std::mem::replace(&mut self.wal, opened?);
                    self.before = Some((ended.number, ended.so_far()));
                    return Ok(true);
                }
            }
        }
    }
}
