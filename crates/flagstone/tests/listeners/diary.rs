//! A listener that writes down what it is told.

use std::path::Path;

use flagstone::options::{
    BackgroundErrorReason, BackgroundJobPressure, ErrorRecoveryInfo, EventListener,
    FileCreationInfo, FileInfo, IngestionInfo, JobInfo, ManualFlushInfo, MemtableInfo,
    SubcompactionInfo,
};
use parking_lot::Mutex;

/// Writes down what it is told.
#[derive(Default)]
pub(super) struct Diary(Mutex<Vec<String>>);

impl Diary {
    fn note(&self, line: String) {
        self.0.lock().push(line);
    }

    /// What was told since the last reading.
    pub(super) fn read(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }

    /// The lines that begin so.
    pub(super) fn read_about(&self, about: &str) -> Vec<String> {
        self.read().into_iter().filter(|line| line.starts_with(about)).collect()
    }
}

pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn made(file: &FileCreationInfo) -> String {
    let outcome = if file.outcome.is_ok() { "" } else { " failed" };
    format!("{} of job {} by {:?}{outcome}", name(&file.path), file.job, file.reason)
}

impl EventListener for Diary {
    fn on_flush_begin(&self, job: &JobInfo) {
        assert!(job.tables.is_empty() && job.outcome.is_ok());
        self.note(format!("flush {} begins: {:?}", job.job, job.reason));
    }

    fn on_flush_completed(&self, job: &JobInfo) {
        let entries = |number: usize| job.tables[number].properties.as_ref().unwrap().num_entries;
        let tables: Vec<_> = (0..job.tables.len()).map(entries).collect();
        let (blobs, read) = (job.blob_files.len(), job.stats.entries_read);
        self.note(format!(
            "flush {} completed: {read} entries read, {tables:?} written, {blobs} blob files",
            job.job
        ));
    }

    fn on_manual_flush_scheduled(&self, families: &[ManualFlushInfo]) {
        let names: Vec<_> = families.iter().map(|family| &family.family_name).collect();
        self.note(format!("manual flush of {names:?}"));
    }

    fn on_compaction_begin(&self, job: &JobInfo) {
        let known = job.inputs.iter().filter(|input| input.properties.is_some()).count();
        self.note(format!(
            "compaction {} begins: {:?} of {} ({known} known) from level {} to {}",
            job.job,
            job.reason,
            job.inputs.len(),
            job.start_level,
            job.output_level
        ));
    }

    fn on_compaction_pre_commit(&self, job: &JobInfo) {
        self.note(format!("compaction {} wrote {} tables", job.job, job.tables.len()));
    }

    fn on_compaction_completed(&self, job: &JobInfo) {
        let garbage: u64 = job.blob_garbage.iter().map(|garbage| garbage.count).sum();
        let outcome = match &job.outcome {
            Ok(()) => format!("{garbage} blobs are garbage"),
            Err(error) => format!("{:?}", error.code()),
        };
        self.note(format!("compaction {} completed: {outcome}", job.job));
    }

    fn on_subcompaction_begin(&self, part: &SubcompactionInfo) {
        self.note(format!("part {} of {} of {} begins", part.part, part.parts, part.job));
    }

    fn on_subcompaction_completed(&self, part: &SubcompactionInfo) {
        assert!(part.outcome.is_err() || part.entries_read > 0);
        self.note(format!("part {} of {} of {} completed", part.part, part.parts, part.job));
    }

    fn on_background_job_pressure_changed(&self, pressure: &BackgroundJobPressure) {
        let running = pressure.flushes_running + pressure.compactions_running;
        self.note(format!("pressure {}%, {running} jobs run", pressure.stall_proximity));
    }

    fn on_memtable_sealed(&self, memtable: &MemtableInfo) {
        self.note(format!(
            "sealed {}: {} entries, {} deletions, from {}, for {:?}",
            memtable.family_name,
            memtable.num_entries,
            memtable.num_deletes,
            memtable.first_seqno,
            memtable.reason
        ));
    }

    fn on_background_error(
        &self,
        reason: BackgroundErrorReason,
        error: &flagstone::Error,
        is_fatal: bool,
    ) {
        self.note(format!("error in {reason:?}, {:?}, fatal: {is_fatal}", error.subcode()));
    }

    fn on_error_recovery_begin(&self, reason: BackgroundErrorReason, _error: &flagstone::Error) {
        self.note(format!("error recovery in {reason:?} begins"));
    }

    fn on_error_recovery_end(&self, recovery: &ErrorRecoveryInfo) {
        self.note(format!("error recovery ends, recovered: {}", recovery.now.is_none()));
    }

    fn on_error_recovery_completed(&self, _earlier: &flagstone::Error) {
        self.note("error recovery completed".to_string());
    }

    fn on_table_file_creation_started(&self, file: &FileCreationInfo) {
        self.note(format!("table begun: {}", made(file)));
    }

    fn on_table_file_created(&self, file: &FileCreationInfo) {
        self.note(format!("table created: {}", made(file)));
    }

    fn on_table_file_deleted(&self, file: &FileInfo) {
        self.note(format!("table deleted: {}", name(&file.path)));
    }

    fn on_blob_file_creation_started(&self, file: &FileCreationInfo) {
        self.note(format!("blob file begun: {}", made(file)));
    }

    fn on_blob_file_created(&self, file: &FileCreationInfo) {
        self.note(format!("blob file created: {}, {} values", made(file), file.count));
    }

    fn on_blob_file_deleted(&self, file: &FileInfo) {
        self.note(format!("blob file deleted: {}", name(&file.path)));
    }

    fn on_external_file_ingested(&self, table: &IngestionInfo) {
        self.note(format!("ingested {} entries", table.properties.num_entries));
    }

    fn on_shutdown_begin(&self) {
        self.note("shutdown".to_string());
    }
}
