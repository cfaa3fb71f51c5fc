//! Compactions that a compaction service has another process do.
//!
//! 1. List the snapshots and reserve file numbers, as the inputs are marked; describe the
//!    compaction (`order`).
//! 2. The service schedules it, and waits for the worker (`db/opening/worker.rs`).
//! 3. Check what the result says (`check`), take its files into the database's directories, and
//!    read each (`intake`).
//! 4. The output is installed as that of any compaction.
//!
//! Before step 4 the database is as it was: files that were taken in are removed again, and the
//! compaction is done here. A file that a crash leaves behind has a number that the MANIFEST does
//! not name, so the next opening removes it. What a worker leaves in the directory that it was
//! offered is removed when the job ends, and at the next opening.

mod awaiting;
mod check;
mod intake;
mod order;
mod sums;

use std::path::Path;

use crate::base::file_name::{self, FileKind};
use crate::base::sync::Ordering;
use crate::base::{Code, Error, Result, Sometimes};
use crate::compaction::remote::CompactionOrder;
use crate::db::jobs::{Jobs, output};
use crate::db::statistics::Ticker;
use crate::db::tree::compaction_job::{CompactionJob, check_not_canceled};
use crate::db::tree::output::JobOutput;
use crate::db::tree::paused_work;
use crate::env::{FileSystem, ThreadStage, enter_stage, remove_if_there};
use crate::expiry::TtlCompactionFilterFactory;
use crate::options::{
    CompactionService, CompactionServiceJobInfo, CompactionServiceJobStatus, InfoLogLevel,
};

pub(in crate::db::jobs) use awaiting::Awaiting;
pub(in crate::db) use awaiting::{cancel_awaiting, end_awaiting};
pub(in crate::db) use sums::sum_of_file;

/// Rewrites the inputs of a compaction, by the service if there is one, otherwise here.
pub(in crate::db::jobs) fn rewrite(jobs: &Jobs, job: &CompactionJob) -> Result<JobOutput> {
    let service = jobs.context.settings.load().compaction_service.clone();
    let remote = match service.filter(|_| may_be_remote(job)) {
        Some(service) => Attempt { jobs, job, service: &*service }.run()?,
        None => None,
    };
    match remote {
        Some(output) => Ok(output),
        None => jobs.rewrite(job),
    }
}

/// Tells the service what became of a result that was to be installed.
pub(in crate::db::jobs) fn note_installation(jobs: &Jobs, job: &CompactionJob, is_installed: bool) {
    let status = if is_installed {
        CompactionServiceJobStatus::Success
    } else {
        CompactionServiceJobStatus::Aborted
    };
    note_end(jobs, job, status);
}

/// A result passed its checks, but its tables do not fit into the tree.
pub(in crate::db::jobs) fn note_refused(jobs: &Jobs, job: &CompactionJob, error: &Error) {
    Sometimes::RemoteResultRefused.reached();
    if let Some(service) = jobs.context.settings.load().compaction_service.clone() {
        let attempt = Attempt { jobs, job, service: &*service };
        attempt.note_failure(&format!("its tables do not fit: {error}"));
    }
    note_end(jobs, job, CompactionServiceJobStatus::UseLocal);
}

fn note_end(jobs: &Jobs, job: &CompactionJob, status: CompactionServiceJobStatus) {
    let Some(id) = job.remote.scheduled.lock().take() else { return };
    if let Some(service) = jobs.context.settings.load().compaction_service.clone() {
        service.on_installation(&id, status);
    }
}

/// Whether all that decides about the entries can be told to another process. Whether a value has
/// expired depends on what was merged onto it in memory, and on this process's clock. A worker
/// writes to one level.
fn may_be_remote(job: &CompactionJob) -> bool {
    let options = job.family.options.load();
    let expires = options
        .compaction_filter_factory
        .as_ref()
        .is_some_and(|factory| TtlCompactionFilterFactory::find(&**factory).is_some());
    !expires && job.trim.is_none() && job.plan.proximal.is_none()
}

/// # Errors
/// `ShutdownInProgress`, `ColumnFamilyDropped`, `Aborted`, `Incomplete`: the compaction is no
/// longer wanted.
fn check_wanted(jobs: &Jobs, job: &CompactionJob) -> Result<()> {
    output::check_wanted(jobs, &job.family)?;
    paused_work::check_not_stopped(&jobs.tree, job.is_manual)?;
    check_not_canceled(job.control.as_deref())
}

/// One compaction, and the service that is asked to do it.
struct Attempt<'a> {
    jobs: &'a Jobs,
    job: &'a CompactionJob,
    service: &'a dyn CompactionService,
}

impl Attempt<'_> {
    /// What the service has done; `None` if it is to be done here.
    fn run(&self) -> Result<Option<JobOutput>> {
        // Before the snapshots are listed: all that are live then see what is older.
        let released = self.jobs.snapshots.released();
        let Some(order) = order::order_of(self.jobs, self.job) else { return Ok(None) };
        let info = order::info_of(self.jobs, self.job, &order);
        let outcome = self.schedule(&info, &order);
        warn_of(remove_output(&*self.jobs.context.env.fs, &info.output_directory));
        let mut output = outcome?;
        if let Some(output) = &mut output {
            output.settle(self.job.plan.bottommost, released);
        }
        Ok(output)
    }

    fn schedule(
        &self,
        info: &CompactionServiceJobInfo,
        order: &CompactionOrder,
    ) -> Result<Option<JobOutput>> {
        let response = self.service.schedule(info, &order.encode());
        if response.status != CompactionServiceJobStatus::Success {
            return self.not_done(response.status, "schedule it");
        }
        let id = response.scheduled_job_id;
        let outcome = self.wait(&id, order);
        let status = match &outcome {
            // It is told when that is installed.
            Ok(Some(_)) => {
                *self.job.remote.scheduled.lock() = Some(id);
                return outcome;
            }
            Ok(None) => CompactionServiceJobStatus::UseLocal,
            Err(_) => CompactionServiceJobStatus::Aborted,
        };
        self.service.on_installation(&id, status);
        outcome
    }

    fn wait(&self, id: &str, order: &CompactionOrder) -> Result<Option<JobOutput>> {
        let (jobs, job) = (self.jobs, self.job);
        let counted = jobs.awaiting.begin();
        check_wanted(jobs, job)?;
        enter_stage(ThreadStage::CompactionRemote);
        let (status, message) = self.service.wait(id, &|| check_wanted(jobs, job).is_ok());
        drop(counted);
        check_wanted(jobs, job)?;
        if status != CompactionServiceJobStatus::Success {
            return self.not_done(status, "do it");
        }
        match intake::take_in(jobs, job, order, &message) {
            Ok(output) => {
                self.count(&output);
                Ok(Some(output))
            }
            Err(error) => {
                check_wanted(jobs, job)?;
                Sometimes::RemoteResultRefused.reached();
                self.note_failure(&format!("its result cannot be used: {error}"));
                Ok(None)
            }
        }
    }

    /// The service has not done it.
    fn not_done(
        &self,
        status: CompactionServiceJobStatus,
        what: &str,
    ) -> Result<Option<JobOutput>> {
        match status {
            CompactionServiceJobStatus::Failure => {
                self.note_failure(&format!("it failed to {what}"));
                Ok(None)
            }
            CompactionServiceJobStatus::Aborted => {
                check_wanted(self.jobs, self.job)?;
                self.job.remote.is_put_off.store(true, Ordering::Relaxed);
                let name = self.service.name();
                let message = format!("the compaction service '{name}' has aborted the compaction");
                Err(Error::new(Code::Aborted, message))
            }
            // Also a service that says it has done what it has not scheduled.
            _ => Ok(None),
        }
    }

    fn note_failure(&self, why: &str) {
        let (context, family) = (&self.jobs.context, &self.job.family.name);
        let text = format!(
            "[{family}] the compaction service '{}' did not do a compaction, which is done here: {why}",
            self.service.name()
        );
        tracing::warn!("{text}");
        context.log.say(InfoLogLevel::Warn, &text);
        context.statistics.add(Ticker::RemoteCompactionsFailed, 1);
    }

    fn count(&self, output: &JobOutput) {
        let add = |ticker, count| self.jobs.context.statistics.add(ticker, count);
        let read = output.counts.relocated_bytes.saturating_add(self.job.plan.input_bytes());
        let tables = output.tables.iter().map(|table| table.size);
        add(Ticker::RemoteCompactReadBytes, read);
        add(
            Ticker::RemoteCompactWriteBytes,
            tables.fold(output.counts.blob_bytes, u64::saturating_add),
        );
        add(Ticker::BlobGcRelocatedKeys, output.counts.relocated_blobs);
        add(Ticker::BlobGcRelocatedBytes, output.counts.relocated_bytes);
        add(Ticker::Compactions, 1);
        add(Ticker::Subcompactions, output.counts.subcompactions);
    }
}

/// Removes what workers have left in the directories that they were offered.
///
/// # Errors
/// The first failure, after all has been tried.
pub(in crate::db) fn remove_outputs(fs: &dyn FileSystem, database: &Path) -> Result<()> {
    let all = file_name::remote_compactions(database);
    let mut outcome = Ok(());
    for name in list_if_there(fs, &all)?.iter().filter(|name| order::is_directory_of_job(name)) {
        Sometimes::RemoteOutputRemoved.reached();
        outcome = outcome.and(remove_output(fs, &all.join(name)));
    }
    // One in which there is something else stays.
    let _ = fs.remove_directory(&all);
    outcome
}

/// [`remove_outputs`]; what cannot be removed now is left to the next opening, as a worker may
/// still be writing there.
pub(in crate::db) fn remove_outputs_if_possible(fs: &dyn FileSystem, database: &Path) {
    warn_of(remove_outputs(fs, database));
}

fn warn_of(removed: Result<()>) {
    if let Err(error) = removed {
        tracing::warn!(%error, "cannot remove files of a remote compaction");
    }
}

fn list_if_there(fs: &dyn FileSystem, directory: &Path) -> Result<Vec<String>> {
    match fs.list(directory) {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        listed => listed,
    }
}

/// Removes the tables and blob files in a directory that a worker was offered, and the directory.
fn remove_output(fs: &dyn FileSystem, directory: &Path) -> Result<()> {
    let is_own = |name: &&String| {
        matches!(FileKind::parse(name), Some(FileKind::Table(_) | FileKind::Blob(_)))
    };
    let mut outcome = Ok(());
    for name in list_if_there(fs, directory)?.iter().filter(is_own) {
        outcome = outcome.and(remove_if_there(fs, &directory.join(name)));
    }
    // The directory above stays: other jobs may be about to use it.
    let _ = fs.remove_directory(directory);
    outcome
}

#[cfg(test)]
mod tests;
