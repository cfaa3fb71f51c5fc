//! How far a replica is, and whether what it holds is what the database holds.
//!
//! A power loss takes what was not synced, and what is written then has the same sequence numbers.
//! So a number alone does not say whose history a replica has followed; the WAL that held the write
//! before it does. WALs are only appended to, by one process, and their numbers are not given out
//! again: what survives of one is a prefix.
//!
//! 1. A later WAL that begins before the position belongs to a history that ended earlier, and went
//!    on otherwise. (Unless the record is there, and deletes empty ranges, which a recovery does
//!    not count: what follows may begin before the position.)
//! 2. The position's own WAL, where it is kept, must hold the record. Where it ends before, nobody
//!    can tell, and that is said: what was flushed is kept although its WAL, which nobody synced,
//!    may have lost it.
//! 3. Where it is gone, the next WAL must say that it follows it, and that it ended there. That
//!    tells of a power loss, and not of a copy, which gives out the same numbers: its records alone
//!    are compared.

use crate::base::checksum::crc32c;
use crate::base::{Code, Error, FileNumber, Remedy, Result, SequenceNumber, Sometimes};
use crate::batch::BatchView;
use crate::db::DbInner;
use crate::db::handle::Db;
use crate::db::updates::open_wal::OpenWal;
use crate::db::updates::{self, LOOKS_MAX, Updates, ignoring_absence, missing};
use crate::db::wal_files::WalFile;
use crate::wal::{Event, PredecessorWal};

/// How far a caller has followed a database: [`Update::position`](crate::db::Update::position), to
/// be stored with the applied writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdatePosition {
    /// Sequence number of the next write.
    pub next_sequence: SequenceNumber,
    /// WAL with the record of the previous write.
    pub wal: FileNumber,
    /// CRC32C of that record. It tells copies of a database apart, which give out the same sequence
    /// numbers.
    pub checksum: u32,
}

/// What is known of a WAL behind the position's own.
struct Later {
    number: FileNumber,
    /// The sequence number with which it begins.
    first: Option<SequenceNumber>,
    predecessor: Option<PredecessorWal>,
}

/// What follows the record of a position.
struct Follows {
    /// Read up to there.
    wal: OpenWal,
    /// The lowest sequence number with which the next write may begin.
    lowest: SequenceNumber,
}

/// What the position's own WAL says.
enum Held {
    /// The record is there: what follows it.
    Same(Box<Follows>),
    /// Another is there.
    Other,
    /// It ends before.
    Nothing,
}

impl UpdatePosition {
    /// How many bytes [`UpdatePosition::to_bytes`] makes.
    pub const SIZE: usize = 20;

    /// As bytes, to be stored.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.next_sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.wal.0.to_le_bytes());
        bytes[16..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// From such bytes; `None` if there are more or fewer.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (next_sequence, rest) = bytes.split_first_chunk()?;
        let (wal, checksum) = rest.split_first_chunk()?;
        Some(Self {
            next_sequence: u64::from_le_bytes(*next_sequence),
            wal: FileNumber(u64::from_le_bytes(*wal)),
            checksum: u32::from_le_bytes(checksum.try_into().ok()?),
        })
    }

    pub(in crate::db) fn behind(
        record: &[u8],
        next_sequence: SequenceNumber,
        wal: FileNumber,
    ) -> Self {
        Self { next_sequence, wal, checksum: crc32c(record) }
    }

    /// What this database holds is not what led there.
    fn diverged(self, why: &str) -> Error {
        Sometimes::UpdatesDiverged.reached();
        let Self { next_sequence, wal, .. } = self;
        Error::invalid_argument(format!(
            "the writes before sequence number {next_sequence} differ from those returned from WAL {wal}: {why}; either a \
             power loss destroyed writes that were not synced, or this is another database"
        ))
        .advise(Remedy::MakeNewCopy)
    }

    /// Nobody can tell any longer whether it does.
    fn unknown(self) -> Error {
        missing(
            self.next_sequence.saturating_sub(1),
            "so nobody can tell whether what was handed out is what the database holds",
        )
    }
}

impl Db {
    /// The writes behind a position, for whoever goes on after a restart: [`Db::get_updates_since`]
    /// its [`next_sequence`](UpdatePosition::next_sequence), but only if what was handed out up to
    /// there is what this database holds. Then a power loss that takes writes which a replica had
    /// applied is told from one that does not.
    ///
    /// What tells are the WAL that the position names and those after it: keep WALs for as long as
    /// a replica may be away (`WAL_ttl_seconds`, `WAL_size_limit_MB`). Without them a power loss is
    /// still told, if the next WAL is there; but not a copy of the database that was put in its
    /// place and went on otherwise. The WAL that the position names is read up to there.
    ///
    /// ```
    /// # use flagstone::db::{Db, UpdatePosition};
    /// # use flagstone::env::Env;
    /// # use flagstone::options::Options;
    /// # fn main() -> flagstone::base::Result<()> {
    /// # let mut options = Options { env: Env::memory(), ..Options::default() };
    /// # options.create_if_missing = true;
    /// # options.set("WAL_ttl_seconds", "3600")?;
    /// # let primary = Db::open("/primary", &options)?;
    /// # let replica = Db::open("/replica", &options)?;
    /// # primary.put("key", "value")?;
    /// let position = replica.get("position")?;
    /// let mut updates = match position.and_then(|bytes| UpdatePosition::from_bytes(&bytes)) {
    ///     Some(position) => primary.get_updates_after(position)?,
    ///     None => primary.get_updates_since(1)?,
    /// };
    /// while let Some(mut update) = updates.next_update()? {
    ///     update.batch.put("position", update.position.to_bytes())?;
    ///     replica.write(update.batch)?;
    /// }
    /// # assert_eq!(replica.get("key")?.expect("it was written"), "value");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`, if other writes have led to that sequence number, or none have: make a
    /// new copy. `NotFound`, if the next write is in the WALs no longer, or what tells of the one
    /// before is not. Else as [`Db::get_updates_since`].
    pub fn get_updates_after(&self, position: UpdatePosition) -> Result<Updates> {
        let next = position.next_sequence;
        let updates = self.get_updates_since(next);
        let is_behind_all = |error: &Error| error.code() == Code::InvalidArgument;
        if updates.as_ref().is_err_and(|error| !error.is_not_found() && !is_behind_all(error)) {
            return updates;
        }
        let mut checked = check_position(self.inner(), position);
        for _ in 0..LOOKS_MAX {
            // It may have been moved to the archive between the look at the list and the opening.
            if !checked.as_ref().is_err_and(Error::is_not_found) {
                break;
            }
            checked = check_position(self.inner(), position);
        }
        match checked {
            Ok(Some(Follows { wal, lowest })) if lowest < next => {
                Ok(Updates::begin(self.inner(), wal, next, lowest))
            }
            // That the database has not come so far says more than any record.
            _ if updates.as_ref().is_err_and(is_behind_all) => updates,
            // That the next write is gone says more than that nobody can tell of the one before.
            Err(error) if error.is_not_found() => updates.and(Err(error)),
            checked => checked.and(updates),
        }
    }
}

/// What follows the record, if it is there.
fn check_position(db: &DbInner, position: UpdatePosition) -> Result<Option<Follows>> {
    let next = position.next_sequence;
    let wals = updates::readable_wals(db);
    let own = wals.iter().find(|(wal, _)| wal.number == position.wal);
    let held = own.map(|(wal, limit)| held(db, wal, *limit, position)).transpose()?.flatten();
    let lowest = if let Some(Held::Same(follows)) = &held { follows.lowest } else { next };
    let mut later: Vec<Later> = Vec::new();
    for (wal, limit) in wals.iter().filter(|(wal, _)| wal.number > position.wal) {
        later.extend(later_wal(db, wal, *limit)?);
    }
    if let Some(wal) = later.iter().find(|wal| wal.first.is_some_and(|first| first < lowest)) {
        let begins = format!("WAL {} begins at {}", wal.number, wal.first.unwrap_or_default());
        return Err(position.diverged(&begins));
    }
    match held {
        Some(Held::Same(follows)) => return Ok(Some(*follows)),
        Some(Held::Other) => return Err(position.diverged("a different record ends there")),
        Some(Held::Nothing) => return Err(position.unknown()),
        None => {}
    }
    let noted = later.first().and_then(|wal| wal.predecessor);
    let follows = |noted: PredecessorWal| {
        FileNumber(noted.number) == position.wal && noted.last_sequence == next.saturating_sub(1)
    };
    if noted.is_some_and(follows) { Ok(None) } else { Err(position.unknown()) }
}

/// `None` if it is gone.
fn later_wal(db: &DbInner, wal: &WalFile, limit: u64) -> Result<Option<Later>> {
    let number = wal.number;
    let opened = ignoring_absence(updates::open_wal(db, wal, limit))?;
    let Some(begin) = opened.map(OpenWal::begin).transpose()? else { return Ok(None) };
    let (first, noted) = begin.unzip();
    // What it will say with its first record, which waits in memory or has yet to come.
    let unwritten = || db.pipeline.predecessor_of_active(number);
    Ok(Some(Later {
        number,
        first,
        predecessor: noted.flatten().map(|noted| noted.wal).or_else(unwritten),
    }))
}

/// `None` if it is gone.
fn held(db: &DbInner, wal: &WalFile, limit: u64, position: UpdatePosition) -> Result<Option<Held>> {
    let Some(mut wal) = ignoring_absence(updates::open_wal(db, wal, limit))? else {
        return Ok(None);
    };
    let mut held = Held::Nothing;
    while let Event::Record(_) = wal.reader.next_event()? {
        let record = wal.reader.record();
        let locate =
            |error: Error| error.at(wal.reader.file().path()).at_offset(wal.reader.record_offset());
        let batch = BatchView::parse(record).map_err(locate)?;
        if batch.sequence() > position.next_sequence {
            break;
        }
        // How many numbers a commit takes is told by what was prepared, perhaps in another WAL.
        let is_marked = batch.validate().is_ok_and(|summary| summary.has_transaction_markers);
        if !is_marked && batch.next_sequence() < position.next_sequence {
            continue;
        }
        if !is_marked && batch.next_sequence() > position.next_sequence {
            break;
        }
        if crc32c(record) == position.checksum {
            let lowest = if is_marked {
                position.next_sequence
            } else {
                batch.end_without_empty_ranges().map_err(locate)?
            };
            return Ok(Some(Held::Same(Box::new(Follows { wal, lowest }))));
        }
        if !is_marked {
            held = Held::Other;
        }
    }
    Ok(Some(held))
}
