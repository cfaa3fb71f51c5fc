//! Callbacks on events in a database.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::job_info::{
    BackgroundErrorReason, BackgroundJobPressure, ErrorRecoveryInfo, FileCreationInfo, JobInfo,
    ManualFlushInfo, MemtableInfo, SubcompactionInfo,
};
use crate::base::{Code, ColumnFamilyId, Error, FileNumber, SequenceNumber};
use crate::env::FileOperationInfo;
use crate::sst::TableProperties;

/// Callbacks on events in a database, set in `Options::listeners`. By default each callback does
/// nothing.
///
/// Calls come one at a time, in the order of the events and soon after them, from a thread of the
/// database or of a caller. No lock is held, so a listener may read and write. It must not wait for
/// a flush or compaction, nor close the database or wait for a thread that does: the thread that
/// runs the callback may be the one that would have to do that work. While writers are delayed or
/// stopped, a listener's own writes are not; memtables and WALs may grow by that much. A panic is
/// caught and reported to `tracing`. No call comes after `Db::close` has returned, unless a
/// listener called that.
///
/// The calls about single reads and writes of files, from [`EventListener::on_file_read_finish`] to
/// [`EventListener::on_io_error`], are different: they come at once, in the thread that did the
/// I/O, from several threads at a time. That thread may hold locks of the database, so such a
/// callback must not call the database. Their panics are caught, too.
pub trait EventListener: Send + Sync {
    /// A flush begins. If it fails, no [`EventListener::on_flush_completed`] follows.
    fn on_flush_begin(&self, _job: &JobInfo) {}

    /// A flush wrote memtables to a table of level 0, or found nothing left to write. The result is
    /// visible.
    fn on_flush_completed(&self, _job: &JobInfo) {}

    /// A caller asked for the flush of these families, and their memtables take no more writes.
    fn on_manual_flush_scheduled(&self, _families: &[ManualFlushInfo]) {}

    /// A compaction begins. Includes compactions that only move or drop files. One call of
    /// [`EventListener::on_compaction_completed`] follows.
    fn on_compaction_begin(&self, _job: &JobInfo) {}

    /// A compaction has written its files. They are not visible yet, and no other compaction may
    /// take its inputs. The call precedes that of [`EventListener::on_compaction_begin`] of a later
    /// compaction of the same files.
    fn on_compaction_pre_commit(&self, _job: &JobInfo) {}

    /// A compaction ended: its result is visible, or, if `job.outcome` is an error, it left
    /// everything as it was. Includes compactions that only moved or dropped files.
    fn on_compaction_completed(&self, _job: &JobInfo) {}

    /// A part of a compaction begins.
    fn on_subcompaction_begin(&self, _part: &SubcompactionInfo) {}

    /// A part of a compaction ended.
    fn on_subcompaction_completed(&self, _part: &SubcompactionInfo) {}

    /// A flush or compaction ended.
    fn on_background_job_pressure_changed(&self, _pressure: &BackgroundJobPressure) {}

    /// A memtable takes no more writes, and waits for a flush.
    fn on_memtable_sealed(&self, _memtable: &MemtableInfo) {}

    /// Writes fail from now on: until there is space on the disk, or, if `is_fatal`, until the
    /// database is reopened. A listener cannot suppress the error.
    fn on_background_error(&self, _reason: BackgroundErrorReason, _error: &Error, _is_fatal: bool) {
    }

    /// Because of this error, the database tries from now on whether it can accept writes again.
    fn on_error_recovery_begin(&self, _reason: BackgroundErrorReason, _error: &Error) {}

    /// These attempts ended.
    fn on_error_recovery_end(&self, _recovery: &ErrorRecoveryInfo) {}

    /// Writes are accepted again after this error.
    fn on_error_recovery_completed(&self, _earlier: &Error) {}

    /// Writers began or ceased to be delayed or stopped.
    fn on_stall_conditions_changed(&self, _stall: &WriteStallInfo) {}

    /// A lookup or compaction found a damaged file, for the first time since the database was
    /// opened.
    fn on_file_damaged(&self, _file: &DamagedFile) {}

    /// A flush or compaction met a key that it cannot process normally (see [`KeyFault`]), and
    /// continues. Reported for the first `KEY_FAULTS_MAX` keys, and for further ones as those are
    /// corrected or removed.
    fn on_key_fault(&self, _fault: &KeyFault) {}

    /// A new WAL found too little space for all that it reserves. Writes continue, but one may find
    /// the disk full. Reported for each such WAL.
    fn on_wal_reserve_short(&self, _reserve: &WalReserveInfo) {}

    /// A job begins to write a table. One call of [`EventListener::on_table_file_created`] follows.
    fn on_table_file_creation_started(&self, _file: &FileCreationInfo) {}

    /// A job completed and synced a table, or failed to. The table is part of the database when the
    /// end of the job is reported; a job whose result is not needed deletes it.
    fn on_table_file_created(&self, _file: &FileCreationInfo) {}

    /// A table that is not or no longer used was deleted.
    fn on_table_file_deleted(&self, _file: &FileInfo) {}

    /// A job begins to write a blob file. One call of [`EventListener::on_blob_file_created`]
    /// follows. Not called for a blob file that writes fill.
    fn on_blob_file_creation_started(&self, _file: &FileCreationInfo) {}

    /// A job completed and synced a blob file, or failed to; or it adopted one that writes filled.
    fn on_blob_file_created(&self, _file: &FileCreationInfo) {}

    /// A blob file that is not or no longer used was deleted.
    fn on_blob_file_deleted(&self, _file: &FileInfo) {}

    /// A table that was written outside of the database is now part of it.
    fn on_external_file_ingested(&self, _table: &IngestionInfo) {}

    /// The database is being closed. Other calls may still follow.
    fn on_shutdown_begin(&self) {}

    /// Whether the calls about single reads and writes of files are wanted, from
    /// [`EventListener::on_file_read_finish`] to [`EventListener::on_io_error`]. Asked once, when
    /// the database is opened. If so, WALs are not written through mappings. Secondaries and
    /// followers make no such calls.
    fn should_be_notified_on_file_io(&self) -> bool {
        false
    }

    /// A read of a file ended.
    fn on_file_read_finish(&self, _operation: &FileOperationInfo) {}

    /// A write to a file ended.
    fn on_file_write_finish(&self, _operation: &FileOperationInfo) {}

    /// Bytes collected in memory were handed to the file. The engine's own buffers are handed over
    /// by writes, so this is not called.
    fn on_file_flush_finish(&self, _operation: &FileOperationInfo) {}

    /// A sync of a file ended.
    fn on_file_sync_finish(&self, _operation: &FileOperationInfo) {}

    /// The system was asked to begin writing a range of a file to the device.
    fn on_file_range_sync_finish(&self, _operation: &FileOperationInfo) {}

    /// The size of a file was set.
    fn on_file_truncate_finish(&self, _operation: &FileOperationInfo) {}

    /// A file was closed.
    fn on_file_close_finish(&self, _operation: &FileOperationInfo) {}

    /// An operation on a file failed; its own call precedes.
    fn on_io_error(&self, _operation: &FileOperationInfo) {}
}

/// The listeners of a database.
pub type Listeners = Vec<Arc<dyn EventListener>>;

/// Space that a WAL was to reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalReserveInfo {
    /// Path of the WAL.
    pub path: PathBuf,
    /// Bytes that it was to reserve.
    pub wanted: u64,
    /// Bytes of these for which there was no space.
    pub missing: u64,
}

/// A file of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// File number.
    pub number: FileNumber,
    /// Current or former path.
    pub path: PathBuf,
    /// Size in bytes, for a blob file the size of its records; 0 for a deleted file.
    pub size: u64,
}

/// A table or blob file whose contents are wrong or cannot be read. With a `NotSupported` error the
/// file need not be damaged; the error says what this engine cannot do with it.
#[derive(Debug, Clone)]
pub struct DamagedFile {
    /// Id of the column family.
    pub family: ColumnFamilyId,
    /// Name of the column family.
    pub family_name: String,
    /// File number.
    pub number: FileNumber,
    /// Path of the file.
    pub path: PathBuf,
    /// Smallest and largest key in the table; for a blob file, of the keys whose values may be
    /// there.
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

/// Number of faulty keys that are remembered.
pub const KEY_FAULTS_MAX: usize = 64;

/// Bytes that are remembered of each of these keys.
pub const KEY_FAULT_KEY_MAX: usize = 1024;

/// A key that a flush or compaction could not process normally. Either its merge operands stay as
/// they are, because the merge operator refused them or there is none; or a single deletion met a
/// plain deletion of the same key, which must be deleted in one way only.
#[derive(Debug, Clone)]
pub struct KeyFault {
    /// Id of the column family.
    pub family: ColumnFamilyId,
    /// Name of the column family.
    pub family_name: String,
    /// The key, or its first `KEY_FAULT_KEY_MAX` bytes.
    pub key: Vec<u8>,
    /// What is wrong; the text names the key.
    pub error: Error,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "family '{}': {}", self.family_name, self.error)
    }
}

/// A table that was ingested.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct IngestionInfo {
    /// Id of the column family.
    pub family: ColumnFamilyId,
    /// Name of the column family.
    pub family_name: String,
    /// Path that the caller gave.
    pub external_path: PathBuf,
    /// The table as part of the database.
    pub file: FileInfo,
    /// Sequence number of all of its entries; 0 if they have none or their own.
    pub global_seqno: SequenceNumber,
    /// The table's properties.
    pub properties: Arc<TableProperties>,
}

/// A change of what writers have to heed.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WriteStallInfo {
    /// Name of the column family that holds writers up most, or did until now; `None` if the
    /// memtables or WALs of all families together do.
    pub family_name: Option<String>,
    /// What they had to heed.
    pub before: StallCondition,
    /// What they have to heed now.
    pub now: StallCondition,
}

/// Whether writers are delayed or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StallCondition {
    /// Neither.
    #[default]
    Normal,
    /// Writers are limited to a rate.
    Delayed,
    /// Writers wait until flushes or compactions have caught up.
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
