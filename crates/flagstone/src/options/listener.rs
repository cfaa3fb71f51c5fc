//! What a database tells those who listen.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::{Code, ColumnFamilyId, Error, FileNumber};

/// Is told what happens in a database. By default each call does nothing. Given by
/// `Options::listeners`.
///
/// Calls come one after the other, in the order of what they tell, soon after it happened; from
/// threads of the database, or from one that has called it. No lock is held, so that a listener may
/// read and write; but it must not wait for a flush or compaction, nor close the database or wait
/// for somebody who does, since it may be called by the thread that is to do it, and is waited for.
/// Where writers are held up, its own writes are not: memtables and WALs may then be larger by what
/// it writes. A panic is caught and reported to `tracing`. None comes after `Db::close` has
/// returned, unless a listener called that.
pub trait EventListener: Send + Sync {
    /// Memtables became a table of level 0, or nothing was left of them.
    fn on_flush_completed(&self, _job: &JobInfo) {}

    /// A compaction was done, and its result is visible; also one that only moved or dropped files.
    fn on_compaction_completed(&self, _job: &JobInfo) {}

    /// Writes are refused from now on: until there is space on the disk, or (`is_fatal`) until the
    /// database is reopened.
    fn on_background_error(&self, _error: &Error, _is_fatal: bool) {}

    /// Writes are accepted again, after this error.
    fn on_error_recovery_completed(&self, _earlier: &Error) {}

    /// Writers are held up otherwise than before.
    fn on_stall_conditions_changed(&self, _before: StallCondition, _now: StallCondition) {}

    /// A lookup or a compaction met a damaged file, for the first time since the database was
    /// opened.
    fn on_file_damaged(&self, _file: &DamagedFile) {}

    /// A flush or compaction met a key that was written in a way that cannot be; it goes on. Told
    /// of the first [`KEY_FAULTS_MAX`] keys, and of others as these are mended or gone.
    fn on_key_fault(&self, _fault: &KeyFault) {}

    /// A new WAL found no room for all that it reserves. Writes go on; one may meet the full disk.
    /// Told of each such WAL.
    fn on_wal_reserve_short(&self, _reserve: &WalReserveInfo) {}

    /// A flush or compaction made a table, which counts now.
    fn on_table_file_created(&self, _file: &FileInfo) {}

    /// A table that nobody used any longer was removed.
    fn on_table_file_deleted(&self, _file: &FileInfo) {}

    /// A flush or compaction made a blob file, or took one over that writes had filled; it counts
    /// now.
    fn on_blob_file_created(&self, _file: &FileInfo) {}

    /// A blob file that nobody used any longer was removed.
    fn on_blob_file_deleted(&self, _file: &FileInfo) {}
}

/// Those who listen.
pub type Listeners = Vec<Arc<dyn EventListener>>;

/// What a WAL reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalReserveInfo {
    /// Where the WAL is.
    pub path: PathBuf,
    /// Bytes that it was to reserve.
    pub wanted: u64,
    /// Bytes of these that there was no room for.
    pub missing: u64,
}

/// A file of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// Its number.
    pub number: FileNumber,
    /// Where it is, or was.
    pub path: PathBuf,
    /// Its size in bytes, of a blob file that of its records; 0 for one that was deleted.
    pub size: u64,
}

/// A table or blob file that is not what was written, or cannot be read; or, where the error is
/// `NotSupported`, one that need not be damaged: it says what this engine cannot do with it.
#[derive(Debug, Clone)]
pub struct DamagedFile {
    /// The column family.
    pub family: ColumnFamilyId,
    /// Its name.
    pub family_name: String,
    /// The file's number.
    pub number: FileNumber,
    /// Where it is.
    pub path: PathBuf,
    /// The smallest and the largest key that it holds, or, of a blob file, that may have their
    /// values there.
    pub key_range: (Vec<u8>, Vec<u8>),
    /// What is wrong.
    pub error: Error,
}

impl DamagedFile {
    /// Whether it is a sound table that no compaction takes for the sake of snapshots: of what is
    /// not supported that alone says what helps.
    pub(crate) fn waits_for_snapshots(&self) -> bool {
        self.error.code() == Code::NotSupported && self.error.remedy().is_some()
    }
}

impl fmt::Display for DamagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (smallest, largest) =
            (self.key_range.0.escape_ascii(), self.key_range.1.escape_ascii());
        write!(f, "family '{}', keys '{smallest}' to '{largest}': {}", self.family_name, self.error)
    }
}

/// So many keys are remembered with what is wrong with them.
pub const KEY_FAULTS_MAX: usize = 64;

/// So many bytes of each of these keys.
pub const KEY_FAULT_KEY_MAX: usize = 1024;

/// A key that a flush or compaction could not treat as it should: its merge operands stay as they
/// are, since the operator refuses them or there is none, or its single deletion went beside a
/// plain one, where a key must be deleted in one of the two ways.
#[derive(Debug, Clone)]
pub struct KeyFault {
    /// The column family.
    pub family: ColumnFamilyId,
    /// Its name.
    pub family_name: String,
    /// The key; the first [`KEY_FAULT_KEY_MAX`] bytes of a longer one.
    pub key: Vec<u8>,
    /// What is wrong, in words that name the key.
    pub error: Error,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "family '{}': {}", self.family_name, self.error)
    }
}

/// A flush or compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobInfo {
    /// The column family.
    pub family: ColumnFamilyId,
    /// Its name.
    pub family_name: String,
    /// The tables that were read; none for a flush.
    pub inputs: Vec<FileNumber>,
    /// The level that the outputs are in.
    pub output_level: usize,
    /// The tables that were written.
    pub tables: Vec<FileInfo>,
    /// The blob files that were written, or taken over.
    pub blob_files: Vec<FileInfo>,
}

/// How writers are held up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StallCondition {
    /// They are not.
    Normal,
    /// To a rate.
    Delayed,
    /// Until flushes or compactions have caught up.
    Stopped,
}

impl fmt::Display for StallCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::Delayed => "delayed",
            Self::Stopped => "stopped",
        })
    }
}
