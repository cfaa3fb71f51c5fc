//! Which records of WALs an opening replays.

use std::path::Path;

use crate::base::{ColumnFamilyId, Error, FileNumber};
use crate::batch::WriteBatch;

/// Decides, while a database is opened, what becomes of each record that its WALs still hold
/// ([`Options::wal_filter`](super::Options::wal_filter)).
///
/// What a filter leaves out is gone when the opening returns. In an opening for reading it is only
/// not shown.
pub trait WalFilter: Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &str;

    /// A replay begins, with all families. A family ignores the records of WALs before its
    /// `log_number`, because its tables have them. An opening for reading beside a writer may begin
    /// several times.
    fn families(&self, _families: &[ReplayedFamily]) {}

    /// What becomes of the record `batch`, which stands in WAL number `wal` at `path`. Called in
    /// the order of writing, in the opening thread. A record may hold several batches that were
    /// written together. A value that is in a blob file already is an
    /// [`Operation::BlobIndex`](crate::batch::Operation::BlobIndex). Records without operations are
    /// not shown.
    fn record(&self, wal: FileNumber, path: &Path, batch: &WriteBatch) -> WalDecision;
}

/// A family as a [`WalFilter`] sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayedFamily {
    /// Its id, by which batches name it.
    pub id: ColumnFamilyId,
    /// Its name.
    pub name: String,
    /// The number of the oldest WAL whose records the family needs.
    pub log_number: FileNumber,
}

impl ReplayedFamily {
    pub(crate) fn new(id: ColumnFamilyId, name: &str, log_number: FileNumber) -> Self {
        Self { id, name: name.to_string(), log_number }
    }
}

/// What a [`WalFilter`] says of a record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WalDecision {
    /// It is replayed.
    Replay,
    /// It is left out.
    LeaveOut,
    /// These operations are replayed instead. There may not be more than the record has, and a
    /// record with values in blob files cannot be replaced: the opening fails then.
    Replace(WriteBatch),
    /// It and all records after it are left out.
    Stop,
    /// It is damaged: `wal_recovery_mode` says what follows.
    Damaged,
    /// The opening fails with this error.
    Fail(Error),
}
