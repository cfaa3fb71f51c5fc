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

use crate::base::Error;
use crate::base::sync::{Mutex, Rank, ranked};
use crate::manifest::ObsoleteFile;
use crate::options::{
    DamagedFile, EventListener, FileInfo, IngestionInfo, JobInfo, KeyFault, Listeners,
    StallCondition, WalReserveInfo,
};

thread_local! {
    static TELLING: Cell<bool> = const { Cell::new(false) };
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
    Flushed(JobInfo),
    Compacted(JobInfo),
    Failed(Error, bool),
    Recovered(Error),
    Stalled(StallCondition, StallCondition),
    Damaged(DamagedFile),
    KeyFault(KeyFault),
    WalReserveShort(WalReserveInfo),
    TableDeleted(FileInfo),
    BlobFileDeleted(FileInfo),
    Ingested(IngestionInfo),
}

/// What has happened and was not told yet.
#[derive(Default)]
pub(crate) struct Events {
    listeners: Listeners,
    noted: Mutex<Noted>,
    /// Held by who tells. Before `noted`.
    telling: Mutex<()>,
}

#[derive(Default)]
struct Noted {
    events: VecDeque<Event>,
    /// No more is taken note of.
    has_ended: bool,
}

impl Events {
    pub(super) fn new(listeners: Listeners) -> Self {
        Self { listeners, noted: Mutex::default(), telling: ranked(Rank::Telling, ()) }
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
            Self::Flushed(job) => {
                tell_of_files(listener, job);
                listener.on_flush_completed(job);
            }
            Self::Compacted(job) => {
                tell_of_files(listener, job);
                listener.on_compaction_completed(job);
            }
            Self::Failed(error, is_fatal) => listener.on_background_error(error, *is_fatal),
            Self::Recovered(error) => listener.on_error_recovery_completed(error),
            Self::Stalled(before, now) => listener.on_stall_conditions_changed(*before, *now),
            Self::Damaged(file) => listener.on_file_damaged(file),
            Self::KeyFault(fault) => listener.on_key_fault(fault),
            Self::WalReserveShort(reserve) => listener.on_wal_reserve_short(reserve),
            Self::TableDeleted(file) => listener.on_table_file_deleted(file),
            Self::BlobFileDeleted(file) => listener.on_blob_file_deleted(file),
            Self::Ingested(table) => listener.on_external_file_ingested(table),
        }
    }
}

fn tell_of_files(listener: &dyn EventListener, job: &JobInfo) {
    job.blob_files.iter().for_each(|file| listener.on_blob_file_created(file));
    job.tables.iter().for_each(|file| listener.on_table_file_created(file));
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
