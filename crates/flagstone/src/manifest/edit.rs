//! One change of the set of files: what a MANIFEST is a sequence of.

use super::metadata::{BlobFileAddition, BlobFileGarbage, FileMetadata};
use crate::base::{ColumnFamilyId, FileNumber, InternalKeyBuf, SequenceNumber};

/// Where the next compaction of a level starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactCursor {
    /// The level.
    pub level: usize,
    /// The key after which it starts.
    pub key: InternalKeyBuf,
}

/// A WAL that the MANIFEST tracks; read for completeness, never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalAddition {
    /// The WAL's number.
    pub number: FileNumber,
    /// The bytes of it that were synced, once that is known.
    pub synced_size: Option<u64>,
}

/// A change of one column family's files, or of the database's counters.
///
/// What is `None` or empty is not part of the change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VersionEdit {
    /// The family that the edit is about.
    pub family: ColumnFamilyId,
    /// The database's identity.
    pub db_id: Option<String>,
    /// The name of the family's comparator.
    pub comparator: Option<String>,
    /// The oldest WAL that holds unflushed data of the family.
    pub log_number: Option<FileNumber>,
    /// Always 0 where written.
    pub prev_log_number: Option<FileNumber>,
    /// The next number of the counter shared by all files.
    pub next_file_number: Option<FileNumber>,
    /// No smaller than any sequence number in any file.
    pub last_sequence: Option<SequenceNumber>,
    /// The oldest WAL that any family needs.
    pub min_log_number_to_keep: Option<FileNumber>,
    /// The largest id ever given to a family.
    pub max_column_family: Option<ColumnFamilyId>,
    /// Where the next compactions start.
    pub compact_cursors: Vec<CompactCursor>,
    /// Tables that leave: their level and number.
    pub deleted_files: Vec<(usize, FileNumber)>,
    /// Tables that join, with their level.
    pub new_files: Vec<(usize, FileMetadata)>,
    /// Blob files that join.
    pub blob_file_additions: Vec<BlobFileAddition>,
    /// Blobs that have become garbage.
    pub blob_file_garbages: Vec<BlobFileGarbage>,
    /// WALs that are tracked from here on.
    pub wal_additions: Vec<WalAddition>,
    /// All tracked WALs below this number are gone.
    pub wal_deletion: Option<FileNumber>,
    /// The family is created, under this name.
    pub family_added: Option<String>,
    /// The family is dropped.
    pub family_dropped: bool,
    /// The edit belongs to a group applied as a whole; how many edits of it follow.
    pub atomic_group_remaining: Option<u32>,
    /// User timestamps below this are no longer kept.
    pub full_history_ts_low: Option<Vec<u8>>,
    /// Whether user timestamps are stored in tables.
    pub persist_user_timestamps: Option<bool>,
}

impl VersionEdit {
    /// An edit of `family` that changes nothing yet.
    pub fn new(family: ColumnFamilyId) -> Self {
        Self { family, ..Self::default() }
    }

    /// A table joins `level`.
    pub fn add_file(&mut self, level: usize, file: FileMetadata) {
        self.new_files.push((level, file));
    }

    /// What of the WALs is there, if the edit tells: this one or a newer one. An edit that does no
    /// more than raise the family's log number may name a WAL that never was. RocksDB 11.8 notes
    /// the number behind its last WAL so when it closes a database and the family's memtable is
    /// empty (`optimize_manifest_for_recovery`), and when it opens one.
    pub fn known_wal(&self) -> Option<FileNumber> {
        let number = self.log_number?;
        let is_alone = self.family_added.is_none()
            && self.comparator.is_none()
            && self.new_files.is_empty()
            && self.deleted_files.is_empty()
            && self.blob_file_additions.is_empty();
        Some(if is_alone { FileNumber(number.0.saturating_sub(1)) } else { number })
    }

    /// Whether it says anything of the family's tables and blob files.
    pub fn changes_files(&self) -> bool {
        !(self.new_files.is_empty()
            && self.deleted_files.is_empty()
            && self.blob_file_additions.is_empty()
            && self.blob_file_garbages.is_empty())
    }

    /// A table leaves `level`.
    pub fn delete_file(&mut self, level: usize, number: FileNumber) {
        self.deleted_files.push((level, number));
    }
}

#[cfg(test)]
mod tests;
