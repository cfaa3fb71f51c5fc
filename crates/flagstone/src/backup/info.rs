//! What is known of a backup.

use std::path::PathBuf;

use crate::base::{SequenceNumber, Temperature};

use super::options::BackupId;

/// A backup.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BackupInfo {
    /// Its number.
    pub backup_id: BackupId,
    /// When it was made, in seconds since 1970.
    pub timestamp: u64,
    /// The last sequence number of the database.
    pub sequence_number: SequenceNumber,
    /// Bytes of all its files, those included that it shares.
    pub size: u64,
    /// Its files, without the meta file.
    pub number_files: usize,
    /// Bytes that the application gave along.
    pub app_metadata: Vec<u8>,
    /// The files, if they were asked for.
    pub file_details: Vec<BackupFileInfo>,
    /// The files that it was made without, relative to a directory of backups; if they were asked
    /// for.
    pub excluded_files: Vec<String>,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupFileInfo {
    /// Its path.
    pub path: PathBuf,
    /// Its path relative to the directory of backups.
    pub relative_filename: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its CRC-32C, if it is recorded.
    pub crc32c: Option<u32>,
    /// How often it is expected to be read, if that is recorded.
    pub temperature: Temperature,
    /// Whether other backups may have it, too.
    pub is_shared: bool,
}
