//! From what happens to those who listen: events are noted where they happen, under whatever lock,
//! and told where none is held.
//!
//! **Invariants**
//! - Events are told in the order in which they were noted, by one thread at a time.
//! - Whoever notes one sees to it that somebody tells it: workers do before they sleep, callers
//!   before they return.
//! - Once the database is closed nothing is told any longer: what happens then is not noted.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::Error;
use crate::base::sync::{AtomicBool, AtomicU64, Mutex, Ordering, Rank, ranked};
use crate::manifest::ObsoleteFile;
use crate::options::{
    BackgroundErrorReason, BackgroundJobPressure, DamagedFile, ErrorRecoveryInfo, EventListener,
    FileCreationInfo, FileInfo, IngestionInfo, JobInfo, KeyFault, Listeners, ManualFlushInfo,
    MemtableInfo, SubcompactionInfo, WalReserveInfo, WriteStallInfo,
};

thread_local! {
    static TELLING: Cell<bool> = const { Cell::new(false) };
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// Identifies this thread in the process; never 0.
pub(super) fn thread_id() -> u64 {
    static THREADS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    if THREAD.get() == 0 {
        THREAD.set(THREADS.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    }
    THREAD.get()
}

/// Whether this thread is with a listener: nobody may be waited for who needs this thread.
pub(super) fn is_telling() -> bool {
    TELLING.get()
}

/// From now on until it is dropped this thread is with a listener.
struct Telling {
    before: bool,
}

impl Telling {
    fn begin() -> Self {
        Self { before: TELLING.replace(true) }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        TELLING.set(self.before);
    }
}

pub(super) enum Event {
    FlushBegun(JobInfo),
    Flushed(JobInfo),
    ManualFlush(Vec<ManualFlushInfo>),
    CompactionBegun(JobInfo),
    CompactionWritten(JobInfo),
    Compacted(JobInfo),
    SubcompactionBegun(SubcompactionInfo),
    Subcompacted(SubcompactionInfo),
    JobEnded(BackgroundJobPressure),
    Sealed(MemtableInfo),
    Failed(BackgroundErrorReason, Error, bool),
    RecoveryBegun(BackgroundErrorReason, Error),
    RecoveryEnded(ErrorRecoveryInfo),
    Stalled(WriteStallInfo),
    Damaged(DamagedFile),
    KeyFault(KeyFault),
    WalReserveShort(WalReserveInfo),
    TableBegun(FileCreationInfo),
    TableCreated(FileCreationInfo),
    TableDeleted(FileInfo),
    BlobFileBegun(FileCreationInfo),
    BlobFileCreated(FileCreationInfo),
    BlobFileDeleted(FileInfo),
    Ingested(IngestionInfo),
    ShutdownBegun,
}

/// What has happened and was not told yet.
#[derive(Default)]
pub(crate) struct Events {
    listeners: Listeners,
    has_program_listeners: bool,
    noted: Mutex<Noted>,
    /// Held by who tells. Before `noted`.
    telling: Mutex<()>,
    /// How many jobs have begun.
    jobs: AtomicU64,
    has_shutdown_begun: AtomicBool,
}

#[derive(Default)]
struct Noted {
    events: VecDeque<Event>,
    /// No more is taken note of.
    has_ended: bool,
}

impl Events {
    /// Tells the program's listeners, and the log if there is one.
    pub(super) fn new(mut listeners: Listeners, log: Option<Arc<dyn EventListener>>) -> Self {
        let has_program_listeners = !listeners.is_empty();
        listeners.extend(log);
        Self {
            listeners,
            has_program_listeners,
            telling: ranked(Rank::Telling, ()),
            ..Self::default()
        }
    }

    /// Whether anybody listens but the log.
    pub(super) fn has_program_listeners(&self) -> bool {
        self.has_program_listeners
    }

    /// Whether anybody listens.
    pub(super) fn has_listeners(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// An id for a flush or compaction.
    pub(super) fn next_job(&self) -> u64 {
        self.jobs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The database is being closed. Only the first call is told.
    pub(super) fn note_shutdown(&self) {
        if self.has_listeners() && !self.has_shutdown_begun.swap(true, Ordering::AcqRel) {
            self.note(|| Event::ShutdownBegun);
        }
    }

    /// Takes note of an event; takes no other lock. Nobody listening, it is not even made.
    pub(super) fn note(&self, event: impl FnOnce() -> Event) {
        if self.listeners.is_empty() {
            return;
        }
        let mut noted = self.noted.lock();
        if !noted.has_ended {
            noted.events.push_back(event());
        }
    }

    /// Tells what has been noted, unless another thread is at it. No lock may be held.
    pub(super) fn tell(&self) {
        // Again where something was noted between the last look and the end of telling: its noter
        // may have found us at it.
        while !self.listeners.is_empty() && !self.noted.lock().events.is_empty() {
            let Some(_one_at_a_time) = self.telling.try_lock() else { return };
            let _telling = Telling::begin();
            while let Some(event) = self.take() {
                for listener in &self.listeners {
                    if catch_unwind(AssertUnwindSafe(|| event.tell(&**listener))).is_err() {
                        tracing::error!("a listener panicked");
                    }
                }
            }
        }
    }

    /// Tells what has been noted, and waits for another thread that is at it. In a listener, which
    /// would wait for itself, it does not. No lock may be held.
    pub(super) fn tell_to_the_end(&self) {
        while !self.listeners.is_empty() {
            self.tell();
            if is_telling() {
                return;
            }
            drop(self.telling.lock());
            if self.noted.lock().events.is_empty() {
                return;
            }
        }
    }

    /// Tells what has been noted, and nothing that comes later; waits for another thread that is at
    /// it. No lock may be held.
    pub(super) fn end(&self) {
        while !self.listeners.is_empty() {
            self.tell();
            // A listener that closes the database would wait for itself, or for another that closes
            // another one.
            let others = (!is_telling()).then(|| self.telling.lock());
            let mut noted = self.noted.lock();
            if noted.events.is_empty() || others.is_none() {
                noted.has_ended = true;
                return;
            }
        }
    }

    fn take(&self) -> Option<Event> {
        self.noted.lock().events.pop_front()
    }
}

impl Event {
    fn tell(&self, listener: &dyn EventListener) {
        match self {
            Self::FlushBegun(job) => listener.on_flush_begin(job),
            Self::Flushed(job) => listener.on_flush_completed(job),
            Self::ManualFlush(families) => listener.on_manual_flush_scheduled(families),
            Self::CompactionBegun(job) => listener.on_compaction_begin(job),
            Self::CompactionWritten(job) => listener.on_compaction_pre_commit(job),
            Self::Compacted(job) => listener.on_compaction_completed(job),
            Self::SubcompactionBegun(part) => listener.on_subcompaction_begin(part),
            Self::Subcompacted(part) => listener.on_subcompaction_completed(part),
            Self::JobEnded(pressure) => listener.on_background_job_pressure_changed(pressure),
            Self::Sealed(memtable) => listener.on_memtable_sealed(memtable),
            Self::Failed(reason, error, is_fatal) => {
                listener.on_background_error(*reason, error, *is_fatal);
            }
            Self::RecoveryBegun(reason, error) => listener.on_error_recovery_begin(*reason, error),
            Self::RecoveryEnded(recovery) => {
                if recovery.now.is_none() {
                    listener.on_error_recovery_completed(&recovery.earlier);
                }
                listener.on_error_recovery_end(recovery);
            }
            Self::Stalled(stall) => listener.on_stall_conditions_changed(stall),
            Self::Damaged(file) => listener.on_file_damaged(file),
            Self::KeyFault(fault) => listener.on_key_fault(fault),
            Self::WalReserveShort(reserve) => listener.on_wal_reserve_short(reserve),
            Self::TableBegun(file) => listener.on_table_file_creation_started(file),
            Self::TableCreated(file) => listener.on_table_file_created(file),
            Self::TableDeleted(file) => listener.on_table_file_deleted(file),
            Self::BlobFileBegun(file) => listener.on_blob_file_creation_started(file),
            Self::BlobFileCreated(file) => listener.on_blob_file_created(file),
            Self::BlobFileDeleted(file) => listener.on_blob_file_deleted(file),
            Self::Ingested(table) => listener.on_external_file_ingested(table),
            Self::ShutdownBegun => listener.on_shutdown_begin(),
        }
    }
}

impl Events {
    pub(super) fn note_deleted(&self, file: &ObsoleteFile) {
        self.note(|| match file {
            ObsoleteFile::Table { number, .. } => {
                Event::TableDeleted(FileInfo { number: *number, path: file.path(), size: 0 })
            }
            ObsoleteFile::Blob { number, .. } => {
                Event::BlobFileDeleted(FileInfo { number: *number, path: file.path(), size: 0 })
            }
        });
    }
}
