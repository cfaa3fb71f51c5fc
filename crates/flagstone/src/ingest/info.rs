//! What a finished table holds.

use std::path::PathBuf;

use crate::base::FileChecksum;

/// What [`SstFileWriter::finish`](super::SstFileWriter::finish) wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SstFileInfo {
    /// The file.
    pub path: PathBuf,
    /// The smallest key of an entry; `None` if the table has range deletions alone.
    pub smallest_key: Option<Vec<u8>>,
    /// The largest key of an entry; `None` if the table has range deletions alone.
    pub largest_key: Option<Vec<u8>>,
    /// Where the first range deletion begins; `None` without range deletions.
    pub smallest_range_deletion: Option<Vec<u8>>,
    /// Where the last range deletion ends (exclusive); `None` without range deletions.
    pub largest_range_deletion: Option<Vec<u8>>,
    /// Entries, without range deletions.
    pub num_entries: u64,
    /// Range deletions.
    pub num_range_deletions: u64,
    /// Bytes of the file.
    pub file_size: u64,
    /// Checksum of the whole file, if
    /// [`SstFileWriterOptions::file_checksum`](super::SstFileWriterOptions::file_checksum) asked
    /// for it.
    pub file_checksum: Option<FileChecksum>,
}
