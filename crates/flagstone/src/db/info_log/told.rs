//! What is written of events.

use std::borrow::Cow;
use std::path::Path;

use crate::base::Error;
use crate::db::info_log::{InfoLogger, json};
use crate::options::{
    BackgroundErrorReason, DamagedFile, EventListener, FileCreationInfo, FileInfo, InfoLogLevel,
    IngestionInfo, JobInfo, JobReason, KeyFault, MemtableInfo, WalReserveInfo, WriteStallInfo,
};

/// `[family] [JOB 7] compaction (level size)`.
fn job_text(job: &JobInfo) -> String {
    let work = match job.reason {
        JobReason::Flush(reason) => format!("flush ({reason:?})"),
        JobReason::Compaction(reason) => format!("compaction ({reason})"),
    };
    let remote = if job.stats.is_remote { ", by the compaction service" } else { "" };
    format!("[{}] [JOB {}] {work}{remote}", job.family_name, job.job)
}

/// What a job wrote, and how long that took.
fn outputs(job: &JobInfo) -> String {
    let tables = job.tables.iter().map(|table| table.size);
    let bytes: u64 = tables.chain(job.blob_files.iter().map(|blob| blob.size)).sum();
    let (tables, blobs) = (job.tables.len(), job.blob_files.len());
    format!(
        "{tables} tables and {blobs} blob files, {bytes} bytes, in L{}, {} microseconds",
        job.output_level, job.stats.micros
    )
}

fn name_of(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

impl InfoLogger {
    fn job_ended(&self, job: &JobInfo) {
        match &job.outcome {
            Ok(()) => {
                self.event(|micros| Some(json::job_ended(micros, job)));
                self.info(|| format!("{} ended: {}", job_text(job), outputs(job)));
            }
            Err(error) => {
                let text = format!("{} failed: {error}", job_text(job));
                self.say(InfoLogLevel::Warn, &text);
            }
        }
    }

    fn file_created(&self, kind: &str, file: &FileCreationInfo) {
        let name = name_of(&file.path);
        let file_text = format!("[{}] [JOB {}] {kind} {name}", file.family_name, file.job);
        match &file.outcome {
            Ok(()) => self.info(|| {
                format!("{file_text} created: {} entries, {} bytes", file.count, file.size)
            }),
            Err(error) => {
                self.say(InfoLogLevel::Warn, &format!("{file_text} was not completed: {error}"));
            }
        }
    }
}

impl EventListener for InfoLogger {
    fn on_flush_begin(&self, job: &JobInfo) {
        self.event(|micros| json::job_begun(micros, job));
        self.info(|| format!("{} begins", job_text(job)));
    }

    fn on_flush_completed(&self, job: &JobInfo) {
        self.job_ended(job);
    }

    fn on_compaction_begin(&self, job: &JobInfo) {
        self.event(|micros| json::job_begun(micros, job));
        self.info(|| {
            let bytes: u64 = job.inputs.iter().map(|table| table.size).sum();
            let (count, from, to) = (job.inputs.len(), job.start_level, job.output_level);
            format!("{} begins: {count} tables, {bytes} bytes, L{from} to L{to}", job_text(job))
        });
    }

    fn on_compaction_completed(&self, job: &JobInfo) {
        self.job_ended(job);
    }

    fn on_memtable_sealed(&self, memtable: &MemtableInfo) {
        self.info(|| {
            let MemtableInfo { family_name, num_entries, num_deletes, reason, .. } = memtable;
            format!(
                "[{family_name}] memtable of {num_entries} entries, {num_deletes} of them deletions, \
                 waits for a flush ({reason:?})"
            )
        });
    }

    fn on_background_error(&self, reason: BackgroundErrorReason, error: &Error, is_fatal: bool) {
        let level = if is_fatal { InfoLogLevel::Fatal } else { InfoLogLevel::Error };
        self.say(level, &format!("writes are refused ({reason:?}): {error}"));
    }

    fn on_error_recovery_completed(&self, earlier: &Error) {
        self.info(|| format!("writes are accepted again, after: {earlier}"));
    }

    fn on_stall_conditions_changed(&self, stall: &WriteStallInfo) {
        let WriteStallInfo { before, now, .. } = stall;
        self.say(InfoLogLevel::Warn, &format!("writers: {now}, before: {before}"));
    }

    fn on_file_damaged(&self, file: &DamagedFile) {
        self.say(InfoLogLevel::Error, &format!("damaged file: {file}"));
    }

    fn on_key_fault(&self, fault: &KeyFault) {
        self.say(InfoLogLevel::Warn, &fault.to_string());
    }

    fn on_wal_reserve_short(&self, reserve: &WalReserveInfo) {
        let WalReserveInfo { path, wanted, missing } = reserve;
        let text = format!(
            "{}: {missing} of {wanted} bytes could not be reserved; a write may find the disk full",
            path.display()
        );
        self.say(InfoLogLevel::Warn, &text);
    }

    fn on_table_file_created(&self, file: &FileCreationInfo) {
        self.event(|micros| Some(json::table_created(micros, file)));
        self.file_created("table", file);
    }

    fn on_table_file_deleted(&self, file: &FileInfo) {
        self.event(|micros| Some(json::file_deleted(micros, file, "table_file_deletion")));
        self.info(|| format!("table {} deleted", name_of(&file.path)));
    }

    fn on_blob_file_created(&self, file: &FileCreationInfo) {
        self.event(|micros| Some(json::blob_file_created(micros, file)));
        self.file_created("blob file", file);
    }

    fn on_blob_file_deleted(&self, file: &FileInfo) {
        self.event(|micros| Some(json::file_deleted(micros, file, "blob_file_deletion")));
        self.info(|| format!("blob file {} deleted", name_of(&file.path)));
    }

    fn on_external_file_ingested(&self, table: &IngestionInfo) {
        self.event(|micros| Some(json::ingested(micros, table)));
        self.info(|| {
            let (name, from) = (name_of(&table.file.path), table.external_path.display());
            format!("[{}] table {name} ingested from {from}", table.family_name)
        });
    }

    fn on_shutdown_begin(&self) {
        self.info(|| "the database is being closed".to_string());
    }
}
