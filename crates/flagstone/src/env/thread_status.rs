//! What the threads that work for databases do now (RocksDB's `GetThreadList`).
//!
//! A database with `enable_thread_tracking` has its threads listed. Others ask one option a job.
//!
//! **Thread safety.** A lock guards the list, and one each thread's entry. Both are held for a look
//! or a change, and may be taken under any of the engine's locks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Clock;

/// What a thread is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadType {
    /// Flushes.
    HighPriority,
    /// Compactions.
    LowPriority,
    /// The program's own thread.
    User,
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ThreadOperation {
    /// Nothing.
    #[default]
    Idle,
    /// A compaction, or a part of one.
    Compaction,
    /// A flush.
    Flush,
    /// Opening a database.
    DbOpen,
}

/// How far a thread has come with what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ThreadStage {
    /// No stage that has a name.
    #[default]
    Unknown,
    /// A flush has begun.
    FlushRun,
    /// A flush writes tables and blob files.
    FlushWriteLevel0,
    /// A flush becomes part of the database, or waits for that.
    FlushInstall,
    /// A compaction has begun.
    CompactionPrepare,
    /// A compaction opens its inputs, or waits for its parts.
    CompactionRun,
    /// A compaction reads and writes entries.
    CompactionProcess,
    /// A compaction waits for a worker of a compaction service.
    CompactionRemote,
    /// A compaction becomes part of the database.
    CompactionInstall,
}

impl fmt::Display for ThreadType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HighPriority => "High Pri",
            Self::LowPriority => "Low Pri",
            Self::User => "User",
        })
    }
}

impl fmt::Display for ThreadOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "",
            Self::Compaction => "Compaction",
            Self::Flush => "Flush",
            Self::DbOpen => "DBOpen",
        })
    }
}

impl fmt::Display for ThreadStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "",
            Self::FlushRun => "FlushJob::Run",
            Self::FlushWriteLevel0 => "FlushJob::WriteLevel0Table",
            Self::FlushInstall => "MemTableList::TryInstallMemtableFlushResults",
            Self::CompactionPrepare => "CompactionJob::Prepare",
            Self::CompactionRun => "CompactionJob::Run",
            Self::CompactionProcess => "CompactionJob::ProcessKeyValueCompaction",
            Self::CompactionRemote => "CompactionService::Wait",
            Self::CompactionInstall => "CompactionJob::Install",
        })
    }
}

/// What a thread does at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadStatus {
    /// Id of the thread, as in [`JobInfo::thread`](crate::reports::JobInfo::thread).
    pub thread: u64,
    /// What the thread is there for.
    pub kind: ThreadType,
    /// The database that it works for; empty if it is idle.
    pub db_path: PathBuf,
    /// The column family that it works for; empty if it is idle, or works for several.
    pub family_name: String,
    /// What it does.
    pub operation: ThreadOperation,
    /// Microseconds since it began that.
    pub elapsed_micros: u64,
    /// How far it has come.
    pub stage: ThreadStage,
    /// Details by RocksDB's names, such as `JobID`, `TotalInputBytes` and `BytesMemtables`.
    pub properties: Vec<(&'static str, u64)>,
}

/// What a thread is about to do.
#[derive(Clone)]
pub(crate) struct Activity {
    pub(crate) db_path: Arc<Path>,
    pub(crate) family_name: String,
    pub(crate) operation: ThreadOperation,
    pub(crate) stage: ThreadStage,
    pub(crate) properties: Vec<(&'static str, u64)>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A thread in the list, and since when it does what it does.
struct Entry {
    kind: ThreadType,
    now: Option<(Activity, u64)>,
}

static THREADS: Mutex<BTreeMap<u64, Arc<Mutex<Entry>>>> = Mutex::new(BTreeMap::new());

thread_local! {
    static THIS: RefCell<Option<Listed>> = const { RefCell::new(None) };
}

/// This thread's place in the list; it is left when the thread ends.
struct Listed {
    thread: u64,
    entry: Arc<Mutex<Entry>>,
}

impl Listed {
    fn new(thread: u64, kind: ThreadType) -> Self {
        let entry = Arc::new(Mutex::new(Entry { kind, now: None }));
        THREADS.lock().insert(thread, entry.clone());
        Self { thread, entry }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        THREADS.lock().remove(&self.thread);
    }
}

/// Lists this thread until it ends, also while it is idle. A thread that is listed already is of
/// this kind from now on.
pub(crate) fn list_thread(thread: u64, kind: ThreadType) {
    with_this(|this| {
        let listed = this.get_or_insert_with(|| Listed::new(thread, kind));
        listed.entry.lock().kind = kind;
    });
}

/// Looks at this thread's place. One that ends has none any more, though a database that it closes
/// then may flush: it is not listed.
fn with_this<T>(look: impl FnOnce(&mut Option<Listed>) -> T) -> Option<T> {
    THIS.try_with(|this| look(&mut this.borrow_mut())).ok()
}

/// This thread does something, until this is dropped.
pub(crate) struct Doing {
    before: Option<(Activity, u64)>,
    was_listed: bool,
}

impl Doing {
    /// Begins something; a thread that is not listed is listed as `kind` meanwhile.
    pub(crate) fn begin(thread: u64, kind: ThreadType, activity: Activity) -> Self {
        with_this(|this| {
            let was_listed = this.is_some();
            let listed = this.get_or_insert_with(|| Listed::new(thread, kind));
            let since_us = activity.clock.now_us();
            let before = listed.entry.lock().now.replace((activity, since_us));
            Self { before, was_listed }
        })
        .unwrap_or_else(|| Self { before: None, was_listed: false })
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        let before = self.before.take();
        with_this(|this| {
            if let Some(listed) = this.as_ref().filter(|_| self.was_listed) {
                listed.entry.lock().now = before;
            } else {
                drop(this.take());
            }
        });
    }
}

/// This thread has come to a stage of what it does, if it is listed.
pub(crate) fn enter_stage(stage: ThreadStage) {
    with_this(|this| {
        let Some(listed) = this else { return };
        if let Some((activity, _)) = &mut listed.entry.lock().now {
            activity.stage = stage;
        }
    });
}

/// What the threads do now that work for databases of this process with `enable_thread_tracking`:
/// the databases' own, and those of the program that open a database, flush or compact. A
/// database's own thread has the kind of the job that it looked for last.
///
/// Costs a lock for each thread.
#[doc(alias = "GetThreadList")]
pub fn thread_list() -> Vec<ThreadStatus> {
    let threads: Vec<_> =
        THREADS.lock().iter().map(|(thread, entry)| (*thread, entry.clone())).collect();
    threads.into_iter().map(|(thread, entry)| status_of(thread, &entry.lock())).collect()
}

fn status_of(thread: u64, entry: &Entry) -> ThreadStatus {
    let idle = ThreadStatus {
        thread,
        kind: entry.kind,
        db_path: PathBuf::new(),
        family_name: String::new(),
        operation: ThreadOperation::Idle,
        elapsed_micros: 0,
        stage: ThreadStage::Unknown,
        properties: Vec::new(),
    };
    match &entry.now {
        None => idle,
        Some((activity, since_us)) => ThreadStatus {
            db_path: activity.db_path.to_path_buf(),
            family_name: activity.family_name.clone(),
            operation: activity.operation,
            elapsed_micros: activity.clock.now_us().saturating_sub(*since_us),
            stage: activity.stage,
            properties: activity.properties.clone(),
            ..idle
        },
    }
}

#[cfg(test)]
mod tests;
