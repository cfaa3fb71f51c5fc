//! Compactions that other processes do: what a program supplies for them.

use std::fmt;
use std::path::PathBuf;

use super::job_info::CompactionReason;
use crate::base::ColumnFamilyId;

/// How a step of a remote compaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionServiceJobStatus {
    /// It succeeded.
    Success,
    /// It failed. The database does the compaction itself.
    Failure,
    /// It was given up. The database leaves the tables as they are. A requested compaction fails
    /// with `Aborted`. After any other, automatic compactions of the column family pause for 2 to 4
    /// seconds, and are then planned anew. Calls that wait for compactions go on waiting
    /// (`wait_for_compactions`), and so do writers that compactions hold up.
    Aborted,
    /// The service leaves the compaction to the database, which does it itself.
    UseLocal,
}

/// A compaction that a service is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionServiceJobInfo {
    /// The directory of the database.
    pub db_path: PathBuf,
    /// Identity of the database.
    pub db_id: String,
    /// Identity of this opening of the database.
    pub db_session_id: String,
    /// Id of the column family.
    pub family: ColumnFamilyId,
    /// Name of the column family.
    pub family_name: String,
    /// Id of the job. Unique until the database is closed.
    pub job: u64,
    /// Why the compaction takes place.
    pub reason: CompactionReason,
    /// The smallest level of the tables read.
    pub start_level: usize,
    /// Level of the output tables.
    pub output_level: usize,
    /// Whether the compaction reads all tables of the family.
    pub is_full: bool,
    /// Whether a caller asked for the compaction.
    pub is_manual: bool,
    /// Whether nothing older lies below the output.
    pub is_bottommost: bool,
    /// Bytes of the tables that are read.
    pub input_bytes: u64,
    /// A directory for the worker, in that of the database. It does not exist yet and belongs to
    /// this job alone. When the job has ended, or when the database is opened next, the database
    /// removes the tables and blob files in it, and the directory if nothing else is there. A
    /// worker may write to another directory, which must not be that of a database; the service
    /// removes that directory. If a result is refused, files that were moved from there are moved
    /// back.
    pub output_directory: PathBuf,
}

/// How a service answers [`CompactionService::schedule`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionServiceScheduleResponse {
    /// With [`CompactionServiceJobStatus::Success`], what the service calls the job. It must be
    /// unique among all jobs that the service has, of any database.
    pub scheduled_job_id: String,
    /// Whether the job was scheduled.
    pub status: CompactionServiceJobStatus,
}

impl CompactionServiceScheduleResponse {
    /// The job is scheduled under this id.
    pub fn scheduled(scheduled_job_id: impl Into<String>) -> Self {
        let status = CompactionServiceJobStatus::Success;
        Self { scheduled_job_id: scheduled_job_id.into(), status }
    }

    /// The job is not scheduled.
    pub fn not_scheduled(status: CompactionServiceJobStatus) -> Self {
        Self { scheduled_job_id: String::new(), status }
    }
}

/// Has other processes do compactions (RocksDB's remote compaction).
///
/// 1. A compaction that rewrites tables is offered to [`schedule`](Self::schedule), with an `input`
///    that describes it. The service brings the input to a worker.
/// 2. The worker calls [`open_and_compact`](crate::open_and_compact), which reads the database's
///    files, writes new ones to a directory of its own, and returns a result as bytes.
/// 3. [`wait`](Self::wait) brings the result back. The database checks it, moves the new files into
///    its own directories (or copies them, from another device), checks the bytes of each, and
///    installs them.
///
/// Whatever goes wrong, nothing is lost: the inputs stay until verified outputs are installed. If
/// the service or the worker fails, the result does not pass its checks, or files are missing, the
/// database does the compaction itself. `RemoteCompactionsFailed` counts those, and the info log
/// says why. RocksDB ends writing after most of these failures.
///
/// Moves and drops of whole tables are never offered. Nor are compactions of families whose values
/// expire, because they depend on memtables, and those of `open_and_trim_history`. Progress of a
/// requested compaction is reported when it has ended. Caches are not filled with new blocks.
///
/// A service is called in the threads that run compactions, also in several at the same time, and
/// holds no lock of the database meanwhile. The exception is
/// [`cancel_awaiting_jobs`](Self::cancel_awaiting_jobs). A panic ends writing, as in other
/// callbacks; one in `cancel_awaiting_jobs` is logged.
pub trait CompactionService: Send + Sync {
    /// The name of the service.
    fn name(&self) -> &str;

    /// Schedules a compaction. It should not take long.
    fn schedule(
        &self,
        info: &CompactionServiceJobInfo,
        input: &[u8],
    ) -> CompactionServiceScheduleResponse;

    /// Waits for a scheduled compaction. With [`CompactionServiceJobStatus::Success`] the bytes are
    /// what the worker returned; otherwise they are not used.
    ///
    /// `is_wanted` says whether the database still wants the result. It no longer does when the
    /// database is being closed, the column family was dropped, the compaction was canceled,
    /// `abort_all_compactions` was called, or the compaction is a requested one and
    /// `disable_manual_compaction` was called. The result is then discarded, so the service should
    /// stop the worker and return [`CompactionServiceJobStatus::Aborted`]. These calls return only
    /// when `wait` has returned, except the drop of a family. `pause_background_work` waits as
    /// well, but the result stays wanted.
    fn wait(
        &self,
        scheduled_job_id: &str,
        is_wanted: &dyn Fn() -> bool,
    ) -> (CompactionServiceJobStatus, Vec<u8>);

    /// A database is being closed: calls of [`wait`](Self::wait) for it should return. It is closed
    /// only when they have. Called in the thread that closes the database, and again every 50
    /// milliseconds while any call of `wait` goes on. A service that several databases share is not
    /// told which one: it should end those calls whose `is_wanted` returns `false`.
    ///
    /// Closing holds a lock meanwhile, so this must not use the database. A panic is logged, and
    /// the database is closed all the same.
    fn cancel_awaiting_jobs(&self) {}

    /// A scheduled compaction has ended: with `Success` its result is part of the database, with
    /// any other status it was not used. Its files may be removed, those in the output directory of
    /// [`CompactionServiceJobInfo`] were.
    fn on_installation(&self, _scheduled_job_id: &str, _status: CompactionServiceJobStatus) {}
}

impl fmt::Debug for dyn CompactionService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
