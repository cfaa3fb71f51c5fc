//! A listener that looks whether what it is told goes together: what ends has begun, once, and what
//! has begun ends.

use std::collections::BTreeSet;

use flagstone::options::{
    EventListener, FileCreationInfo, FileInfo, JobInfo, JobReason, SubcompactionInfo,
};
use parking_lot::Mutex;

/// Audits one open database. Dropped after a close, it panics if something did not go together.
#[derive(Default)]
pub struct Auditor(Mutex<Books>);

#[derive(Default)]
struct Books {
    /// What has begun and not ended.
    open: BTreeSet<String>,
    /// Files that jobs completed.
    created: BTreeSet<String>,
    faults: Vec<String>,
    is_closing: bool,
}

impl Auditor {
    fn begin(&self, what: String) {
        let mut books = self.0.lock();
        if !books.open.insert(what.clone()) {
            books.faults.push(format!("{what} begins twice"));
        }
    }

    fn end(&self, what: &str) {
        let mut books = self.0.lock();
        if !books.open.remove(what) {
            books.faults.push(format!("{what} ends, and has not begun"));
        }
    }

    fn fault_if(&self, is_fault: bool, fault: impl FnOnce() -> String) {
        if is_fault {
            self.0.lock().faults.push(fault());
        }
    }

    /// A job ended well: its files were completed before.
    fn check_files(&self, job: &JobInfo) {
        let tables = job.tables.iter().map(|table| (table.number, table.properties.is_some()));
        for (number, is_known) in tables {
            let is_created = self.0.lock().created.contains(&number.to_string());
            self.fault_if(!is_created, || format!("table {number} of a job was not created"));
            self.fault_if(!is_known, || format!("table {number} of a job has no properties"));
        }
    }
}

impl EventListener for Auditor {
    fn on_flush_begin(&self, job: &JobInfo) {
        // One that fails does not end; the next has another id.
        self.fault_if(!matches!(job.reason, JobReason::Flush(_)), || format!("{job:?}"));
        self.0.lock().open.insert(format!("flush {}", job.job));
    }

    fn on_flush_completed(&self, job: &JobInfo) {
        self.end(&format!("flush {}", job.job));
        self.check_files(job);
    }

    fn on_compaction_begin(&self, job: &JobInfo) {
        self.begin(format!("compaction {}", job.job));
    }

    fn on_compaction_pre_commit(&self, job: &JobInfo) {
        let is_open = self.0.lock().open.contains(&format!("compaction {}", job.job));
        self.fault_if(!is_open, || format!("compaction {} is written, and not open", job.job));
    }

    fn on_compaction_completed(&self, job: &JobInfo) {
        self.end(&format!("compaction {}", job.job));
        if job.outcome.is_ok() {
            self.check_files(job);
        }
    }

    fn on_subcompaction_begin(&self, part: &SubcompactionInfo) {
        self.begin(format!("part {} of {}", part.part, part.job));
    }

    fn on_subcompaction_completed(&self, part: &SubcompactionInfo) {
        self.end(&format!("part {} of {}", part.part, part.job));
    }

    fn on_table_file_creation_started(&self, file: &FileCreationInfo) {
        self.begin(format!("table {}", file.number));
    }

    fn on_table_file_created(&self, file: &FileCreationInfo) {
        self.end(&format!("table {}", file.number));
        if file.outcome.is_ok() {
            self.0.lock().created.insert(file.number.to_string());
        }
    }

    fn on_table_file_deleted(&self, file: &FileInfo) {
        self.0.lock().created.remove(&file.number.to_string());
    }

    fn on_blob_file_creation_started(&self, file: &FileCreationInfo) {
        self.begin(format!("blob file {}", file.number));
    }

    fn on_blob_file_created(&self, file: &FileCreationInfo) {
        // Those that writes filled are adopted.
        self.0.lock().open.remove(&format!("blob file {}", file.number));
    }

    fn on_shutdown_begin(&self) {
        self.0.lock().is_closing = true;
    }
}

impl Drop for Auditor {
    fn drop(&mut self) {
        let books = self.0.get_mut();
        if books.is_closing && !std::thread::panicking() {
            books.open.retain(|what| !what.starts_with("flush"));
            assert!(books.faults.is_empty(), "listeners were told: {:?}", books.faults);
            assert!(books.open.is_empty(), "listeners were told of no end: {:?}", books.open);
        }
    }
}
