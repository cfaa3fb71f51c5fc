//! What a salvage found, in a form for programs; the command puts it into words.

use std::path::PathBuf;

use crate::base::{Error, FileNumber};
use crate::db::checks::verify::Fault;

/// Memory that lost values may take which the report lists.
const LISTED_BYTES_MAX: usize = 64 << 20;
/// About as much is said of one, and where it was.
const WORDS_BYTES: usize = 300;

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

/// What [`super::salvage`] did.
#[derive(Debug, Clone, Default)]
pub struct SalvageReport {
    /// The source's files, by kind and number.
    pub files: Vec<SalvagedFile>,
    /// The new database's families.
    pub families: Vec<SalvagedFamily>,
    /// What was lost, or may have been: damage in files that hold records.
    pub losses: Vec<Fault>,
    /// Large values and entities that were lost, for as many as there is room: about 100,000. A loss says how many others there
    /// are of a family, and between which keys.
    pub lost_values: Vec<LostValue>,
    /// How many others there are.
    pub lost_values_unlisted: u64,
    /// Damage for which nothing was lost.
    pub harmless: Vec<Error>,
    /// What else a reader should know, as sentences.
    pub notes: Vec<String>,
    /// Bytes of what is in `lost_values`.
    listed_bytes: usize,
}

impl SalvageReport {
    /// Whether every record that the files should hold was recovered.
    pub fn is_complete(&self) -> bool {
        self.losses.is_empty() && self.lost_values.is_empty()
    }

    /// Records in the new database.
    pub fn records(&self) -> u64 {
        self.families.iter().map(|family| family.records).sum()
    }

    pub(super) fn lose(&mut self, error: Error, key_range: Option<(Vec<u8>, Vec<u8>)>) {
        self.losses.push(Fault { error, key_range });
    }

    /// Lists a lost value, if there is room; whether there was.
    pub(super) fn lose_value(&mut self, lost: LostValue) -> bool {
        let bytes = size_of::<LostValue>() + lost.key.len() + lost.family.len() + WORDS_BYTES;
        if self.listed_bytes + bytes > LISTED_BYTES_MAX {
            self.lost_values_unlisted += 1;
            return false;
        }
        self.listed_bytes += bytes;
        self.lost_values.push(lost);
        true
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
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
mod tests {
    use super::*;

    /// Of a missing blob file with a hundred million values as many were listed, in memory.
    #[test]
    fn what_is_listed_of_lost_values_has_a_bound() {
        let mut report = SalvageReport::default();
        let lost = |key: Vec<u8>| LostValue {
            family: "default".to_string(),
            key,
            file: FileNumber(7),
            error: Error::corruption("lost"),
            has_other_version: false,
        };
        let listed = (0..100).filter(|_| report.lose_value(lost(vec![b'k'; 1 << 20]))).count();
        assert!((60..64).contains(&listed), "{listed}");
        assert!(report.lose_value(lost(b"small".to_vec())), "others have room");
        assert_eq!(report.lost_values.len(), listed + 1);
        assert_eq!(report.lost_values_unlisted, 100 - listed as u64);
    }
}
