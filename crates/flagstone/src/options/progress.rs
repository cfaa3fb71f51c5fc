//! Progress of opening a database.

use std::sync::Arc;

/// Progress of opening a database: first its files are checked, then its WALs are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OpenProgress {
    /// Files checked so far: that tables and blob files exist, and that tables have the right size.
    pub files_checked: u64,
    /// Files that the MANIFEST names; 0 without `paranoid_checks`.
    pub files_total: u64,
    /// Bytes of WALs replayed so far.
    pub wal_bytes_replayed: u64,
    /// Bytes of all WALs to replay, including space reserved at their ends.
    pub wal_bytes_total: u64,
    /// Tables that the replay has written to level 0.
    pub tables_written: u64,
    /// Values in blob files that WALs refer to and that were checked for completeness, ahead of the
    /// replay.
    pub blobs_checked: u64,
}

/// Called with the progress of opening a database: after each hundred files checked, once the WALs
/// are known, after each MiB and each table, and at the end of the replay. Not called if there are
/// few files and nothing to replay. A read-only opening may start over if the database is being
/// written to. The callback runs in the opening thread, which waits for it.
pub type OpenProgressCallback = Arc<dyn Fn(&OpenProgress) + Send + Sync>;
