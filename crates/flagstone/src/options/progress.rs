//! What opening a database tells of its progress.

use std::sync::Arc;

/// How far the opening of a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OpenProgress {
    /// Bytes of WALs that were replayed; all, once what they hold is in memory.
    pub wal_bytes_replayed: u64,
    /// Bytes of the WALs that are to be replayed, with what they may have reserved at their ends.
    pub wal_bytes_total: u64,
    /// Tables of level 0 into which the replay has written what it found.
    pub tables_written: u64,
}

/// Is told how far the opening of a database is: when it has seen the WALs, after each MiB and table, and when all are replayed.
/// Not called if there is nothing to replay. It runs in the thread that opens the database, which waits for it.
pub type OpenProgressCallback = Arc<dyn Fn(&OpenProgress) + Send + Sync>;
