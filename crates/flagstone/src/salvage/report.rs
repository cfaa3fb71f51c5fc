//! What a salvage found, as data; the command puts it into words.

use std::path::PathBuf;

use crate::base::{Error, FileNumber, counted, form};
use crate::db::Fault;

/// Memory that lost values may take which the report lists.
const LISTED_BYTES_MAX: usize = 64 << 20;
/// The same for places with damage; half of it where nothing was lost.
const DAMAGE_BYTES_MAX: usize = 32 << 20;
/// About as much is said of one, and where it was.
const WORDS_BYTES: usize = 300;

/// The first and last key, if they are known.
type KeyRange = Option<(Vec<u8>, Vec<u8>)>;

/// What a file of the source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SalvagedKind {
    /// A table.
    Table,
    /// A write-ahead log.
    Wal,
    /// A file of large values.
    Blob,
}

/// A file of the source.
#[derive(Debug, Clone)]
pub struct SalvagedFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub kind: SalvagedKind,
    /// Its bytes.
    pub bytes: u64,
    /// Intact records in it that were taken; of blob files, those that are referred to.
    pub records: u64,
    /// Why nothing was taken from it, if so.
    pub left_out: Option<String>,
}

/// A column family of the new database.
#[derive(Debug, Clone)]
pub struct SalvagedFamily {
    /// Its name.
    pub name: String,
    /// Keys in it.
    pub keys: u64,
    /// Records written: one a key, or its merge operands as well.
    pub records: u64,
    /// Of these, values in blob files.
    pub large_values: u64,
}

/// A large value that is referred to, and is damaged or gone; or an entity that cannot be read.
#[derive(Debug, Clone)]
pub struct LostValue {
    /// The column family.
    pub family: String,
    /// The key.
    pub key: Vec<u8>,
    /// The blob file; 0 if it is not known, or there is none.
    pub file: FileNumber,
    /// What is wrong.
    pub error: Error,
    /// An older version of the key, or merge operands, came in its place.
    pub has_other_version: bool,
}

/// What a salvage did.
#[derive(Debug, Clone, Default)]
pub struct SalvageReport {
    /// The source's files, by kind and number.
    pub files: Vec<SalvagedFile>,
    /// The new database's families.
    pub families: Vec<SalvagedFamily>,
    /// What was lost, or may have been: first all that concerns whole files and families, then
    /// places in files that hold records, for as many as there is room: about 70,000.
    pub losses: Vec<Fault>,
    /// How many of `losses`, the first ones, concern whole files and families, or stand for places
    /// in a table that have no room.
    pub whole_losses: usize,
    /// How many other places there are.
    pub losses_unlisted: u64,
    /// Large values and entities that were lost, for as many as there is room: about 100,000. A
    /// loss says how many others there are of a family, and between which keys.
    pub lost_values: Vec<LostValue>,
    /// How many others there are.
    pub lost_values_unlisted: u64,
    /// Damage for which nothing was lost, for as much as there is room.
    pub harmless: Vec<Error>,
    /// How much else there is.
    pub harmless_unlisted: u64,
    /// What else a reader should know, as sentences.
    pub notes: Vec<String>,
    /// What `losses` will begin with. Of these there are no more than files and families; places,
    /// of which there may be any number, are found first, and would leave them no room.
    wholes: Vec<Fault>,
    /// Bytes of what is in `lost_values`.
    listed_bytes: usize,
    /// Of the places in `losses`.
    losses_bytes: usize,
    /// Of what is in `harmless`.
    harmless_bytes: usize,
}

/// Takes bytes of what has room for `max`, if there are as many.
fn take_room(taken: &mut usize, bytes: usize, max: usize) -> bool {
    let has_room = bytes <= max - *taken;
    *taken += if has_room { bytes } else { 0 };
    has_room
}

impl SalvageReport {
    /// Whether every record that the files should hold was recovered.
    pub fn is_complete(&self) -> bool {
        self.places_lost() == 0 && self.values_lost() == 0
    }

    /// Places where something was lost, listed or not.
    pub fn places_lost(&self) -> u64 {
        (self.wholes.len() + self.losses.len()) as u64 + self.losses_unlisted
    }

    /// Large values and entities that were lost, listed or not.
    pub fn values_lost(&self) -> u64 {
        self.lost_values.len() as u64 + self.lost_values_unlisted
    }

    /// Records in the new database.
    pub fn records(&self) -> u64 {
        self.families.iter().map(|family| family.records).sum()
    }

    /// Adds a place in a file.
    pub(super) fn lose(&mut self, error: Error, key_range: Option<(Vec<u8>, Vec<u8>)>) {
        let keys = key_range.as_ref().map_or(0, |(first, last)| first.len() + last.len());
        let bytes = size_of::<Fault>() + keys + WORDS_BYTES;
        if take_room(&mut self.losses_bytes, bytes, DAMAGE_BYTES_MAX) {
            self.losses.push(Fault { error, key_range })
        } else {
            self.losses_unlisted += 1
        }
    }

    /// Adds places in a table with keys of that range. Where there is no room for all, the first of
    /// the others stands for them, so that the table is named.
    pub(super) fn lose_blocks(
        &mut self,
        places: impl Iterator<Item = (Error, KeyRange)>,
        of_table: KeyRange,
    ) {
        let unlisted_before = self.losses_unlisted;
        let mut first = None;
        for (error, key_range) in places {
            let before = self.losses_unlisted;
            let named = first.is_none().then(|| error.clone());
            self.lose(error, key_range);
            if self.losses_unlisted > before && first.is_none() {
                first = named;
            }
        }
        if let Some(first) = first {
            let unlisted = self.losses_unlisted - unlisted_before;
            self.losses_unlisted -= 1;
            let what = format!(
                "the first of {} here that {} no room in this report",
                counted(unlisted, "damaged place"),
                form(unlisted, "finds", "find")
            );
            self.lose_whole(first.context(what), of_table);
        }
    }

    /// Adds what concerns a whole file or family.
    pub(super) fn lose_whole(&mut self, error: Error, key_range: Option<(Vec<u8>, Vec<u8>)>) {
        self.wholes.push(Fault { error, key_range });
    }

    /// Which one the next is that [`Self::lose_whole`] adds.
    pub(super) fn next_whole(&self) -> usize {
        self.wholes.len()
    }

    /// Says more of one of these.
    pub(super) fn say_more(&mut self, nth: usize, what: &str) {
        let loss = &mut self.wholes[nth].error;
        *loss = loss.clone().context(what);
    }

    /// Adds damage for which nothing is lost.
    pub(super) fn pass_over(&mut self, error: Error) {
        if take_room(
            &mut self.harmless_bytes,
            size_of::<Error>() + WORDS_BYTES,
            DAMAGE_BYTES_MAX / 2,
        ) {
            self.harmless.push(error)
        } else {
            self.harmless_unlisted += 1
        }
    }

    /// Adds what another one says was lost.
    pub(super) fn lose_all_of(&mut self, other: Self) {
        self.wholes.extend(other.wholes);
        other.losses.into_iter().for_each(|loss| self.lose(loss.error, loss.key_range));
        self.losses_unlisted += other.losses_unlisted;
    }

    /// Lists a lost value, if there is room; whether there was.
    pub(super) fn lose_value(&mut self, lost: LostValue) -> bool {
        let bytes = size_of::<LostValue>() + lost.key.len() + lost.family.len() + WORDS_BYTES;
        let has_room = take_room(&mut self.listed_bytes, bytes, LISTED_BYTES_MAX);
        if has_room {
            self.lost_values.push(lost)
        } else {
            self.lost_values_unlisted += 1
        }
        has_room
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Puts first what matters most.
    pub(super) fn finish(mut self) -> Self {
        self.whole_losses = self.wholes.len();
        drop(self.losses.splice(..0, std::mem::take(&mut self.wholes)));
        self
    }
}

/// How far a salvage is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SalvageProgress {
    /// Bytes of the source read.
    pub bytes_read: u64,
    /// Bytes to read: tables count twice, once for looking and once for copying.
    pub bytes_total: u64,
    /// Records written.
    pub records: u64,
}

#[cfg(test)]
mod tests;
