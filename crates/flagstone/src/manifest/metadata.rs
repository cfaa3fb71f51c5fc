//! What the MANIFEST says of a table or blob file: plain data.

use crate::base::{
    FileChecksum, FileNumber, InternalKeyBuf, SequenceNumber, Temperature, UniqueId, ValueType,
};
use crate::sst::TableProperties;

/// One table file, as the MANIFEST records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMetadata {
    /// Its number, in the counter shared by all files.
    pub number: FileNumber,
    /// Index of the directory it lies in (0: the database's own).
    pub path_id: u32,
    /// Its exact size in bytes.
    pub size: u64,
    /// The smallest internal key, range tombstones included.
    pub smallest: InternalKeyBuf,
    /// The largest internal key, range tombstones included.
    pub largest: InternalKeyBuf,
    /// The smallest sequence number of any entry.
    pub smallest_seqno: SequenceNumber,
    /// The largest sequence number of any entry.
    pub largest_seqno: SequenceNumber,
    /// Whether a compaction was asked for by whoever wrote the file.
    pub marked_for_compaction: bool,
    /// The smallest number of a blob file that an entry refers to.
    pub oldest_blob_file: Option<FileNumber>,
    /// What its entries have to do with blob files, if that is known: of a table that RocksDB wrote
    /// it is not.
    pub blob_references: Option<BlobReferences>,
    /// When its oldest key was written, in seconds since 1970; 0 if unknown.
    pub oldest_ancestor_time: u64,
    /// When it was created, in seconds since 1970; 0 if unknown.
    pub file_creation_time: u64,
    /// Its rank in level 0 (larger is newer), from the family's counter; 0 if unknown.
    pub epoch_number: u64,
    /// A checksum of the whole file; empty if there is none.
    pub file_checksum: Vec<u8>,
    /// The name of the function behind `file_checksum`; empty if there is none.
    pub file_checksum_function: String,
    /// How often it is expected to be read, as its file system was told.
    pub temperature: Temperature,
    /// The smallest user timestamp; empty if there is none.
    pub min_timestamp: Vec<u8>,
    /// The largest user timestamp; empty if there is none.
    pub max_timestamp: Vec<u8>,
    /// The identity that its properties repeat.
    pub unique_id: Option<UniqueId>,
    /// Bytes in deeper levels that its range tombstones cover.
    pub compensated_range_deletion_size: u64,
    /// What its entries are, if that is known: of a table that RocksDB wrote the MANIFEST does not
    /// say it.
    pub entry_stats: Option<EntryStats>,
    /// Bytes from the first block after the data blocks to the end; 0 if unknown.
    pub tail_size: u64,
    /// Whether user timestamps stand in the file (true unless the MANIFEST says otherwise).
    pub user_timestamps_persisted: bool,
    /// If they do not: the bytes of the least timestamp that the bounds end in here, and not in the
    /// MANIFEST. 0 where the family has none.
    pub padded_bytes: usize,
}

impl FileMetadata {
    /// The checksum of the whole file, if there is one.
    pub fn checksum(&self) -> Option<FileChecksum> {
        FileChecksum::of(&self.file_checksum_function, &self.file_checksum)
    }

    /// This metadata with the checksum of the whole file.
    #[must_use]
    pub fn with_checksum(mut self, checksum: Option<FileChecksum>) -> Self {
        self.set_checksum(checksum);
        self
    }

    /// Notes the checksum of the whole file.
    pub fn set_checksum(&mut self, checksum: Option<FileChecksum>) {
        let FileChecksum { function, value } = checksum.unwrap_or_default();
        (self.file_checksum_function, self.file_checksum) = (function, value);
    }
}

impl Default for FileMetadata {
    /// An empty file without a number; both keys are the empty user key.
    fn default() -> Self {
        let empty_key = || InternalKeyBuf::new(b"", 0, ValueType::Deletion);
        Self {
            number: FileNumber(0),
            path_id: 0,
            size: 0,
            smallest: empty_key(),
            largest: empty_key(),
            smallest_seqno: 0,
            largest_seqno: 0,
            marked_for_compaction: false,
            oldest_blob_file: None,
            blob_references: None,
            oldest_ancestor_time: 0,
            file_creation_time: 0,
            epoch_number: 0,
            file_checksum: Vec::new(),
            file_checksum_function: String::new(),
            temperature: Temperature::UNKNOWN,
            min_timestamp: Vec::new(),
            max_timestamp: Vec::new(),
            unique_id: None,
            compensated_range_deletion_size: 0,
            entry_stats: None,
            tail_size: 0,
            user_timestamps_persisted: true,
            padded_bytes: 0,
        }
    }
}

/// What a table's entries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryStats {
    /// Entries, deletions included.
    pub entries: u64,
    /// Deletions of single keys.
    pub deletions: u64,
    /// Deletions of ranges of keys.
    pub range_deletions: u64,
    /// Bytes of all values, uncompressed.
    pub value_bytes: u64,
}

impl EntryStats {
    /// As a table says of itself.
    pub fn of(properties: &TableProperties) -> Self {
        let range_deletions = properties.num_range_deletions;
        Self {
            entries: properties.num_entries,
            deletions: properties.num_deletions.saturating_sub(range_deletions),
            range_deletions,
            value_bytes: properties.raw_value_size,
        }
    }
}

/// What a table's entries have to do with blob files. RocksDB records the oldest file alone; to
/// empty any other, one must know which tables refer to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlobReferences {
    /// Entries that refer to none, such as deletions: each may hide a blob that an older table
    /// refers to.
    pub others: u64,
    /// Bytes of the records that the entries refer to, by file, ascending.
    files: Vec<(FileNumber, u64)>,
    /// The sum of these.
    bytes: u64,
}

impl BlobReferences {
    /// `files` ascending, with the bytes of the records referred to; `None` if there is nothing to
    /// say.
    pub fn new(others: u64, files: Vec<(FileNumber, u64)>) -> Option<Self> {
        let bytes = files.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        (others > 0 || !files.is_empty()).then_some(Self { others, files, bytes })
    }

    /// Bytes of the records referred to, by file, ascending.
    pub fn files(&self) -> &[(FileNumber, u64)] {
        &self.files
    }

    /// Bytes of all records referred to.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the records of `file` that are referred to.
    pub fn bytes_in(&self, file: FileNumber) -> u64 {
        self.files
            .binary_search_by_key(&file, |(number, _)| *number)
            .map_or(0, |at| self.files[at].1)
    }
}

/// A blob file joins the database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlobFileAddition {
    /// Its number, in the counter shared by all files.
    pub number: FileNumber,
    /// How many blobs it holds.
    pub total_count: u64,
    /// The bytes of its records: the sum of 32 + key + stored value.
    pub total_bytes: u64,
    /// The name of the function behind `checksum_value`; empty if there is none.
    pub checksum_method: String,
    /// A checksum of the whole file; empty if there is none.
    pub checksum_value: Vec<u8>,
}

impl BlobFileAddition {
    /// The checksum of the whole file, if there is one.
    pub fn checksum(&self) -> Option<FileChecksum> {
        FileChecksum::of(&self.checksum_method, &self.checksum_value)
    }

    /// This addition with the checksum of the whole file.
    #[must_use]
    pub fn with_checksum(self, checksum: Option<FileChecksum>) -> Self {
        let FileChecksum { function, value } = checksum.unwrap_or_default();
        Self { checksum_method: function, checksum_value: value, ..self }
    }
}

/// Blobs of a file that no table refers to any longer; adds to what was recorded before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlobFileGarbage {
    /// The blob file.
    pub number: FileNumber,
    /// How many more blobs are garbage.
    pub count: u64,
    /// How many more bytes are garbage, counted as in [`BlobFileAddition::total_bytes`].
    pub bytes: u64,
}
