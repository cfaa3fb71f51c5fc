//! What opening a database tells of its progress.

use std::sync::Arc;

/// How far the opening of a database is: first its files are checked, then its WALs replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OpenProgress {
    /// Tables and blob files that were looked for, tables also by their size.
    pub files_checked: u64,
    /// All that the MANIFEST names; 0 where nobody looks (`paranoid_checks`).
    pub files_total: u64,
    /// Bytes of WALs that were replayed; all, once what they hold is in memory.
    pub wal_bytes_replayed: u64,
    /// Bytes of the WALs that are to be replayed, with what they may have reserved at their ends.
    pub wal_bytes_total: u64,
    /// Tables of level 0 into which the replay has written what it found.
    pub tables_written: u64,
    /// Values in blob files that the WALs name, and that were read to see whether they are whole;
    /// ahead of the replay.
    pub blobs_checked: u64,
}

/// Is told how far the opening of a database is: after each hundred files checked, when it has seen
/// the WALs, after each MiB and table, and when all are replayed. Not called if there are few
/// files, and nothing to replay. An opening for reading may begin again, if the database is being
/// written to. It runs in the thread that opens the database, which waits for it.
pub type OpenProgressCallback = Arc<dyn Fn(&OpenProgress) + Send + Sync>;
