//! The background error that stops a database from acknowledging anything more.
//!
//! A failed sync or a panicking worker *poisons* for good: what the disk holds is then unknown. A
//! full disk only *suspends*: nothing was lost, and the database resumes when a retry succeeds.
//! Where it is only compactions that find no room, writes go on until they would have to wait for
//! one.

use std::sync::Arc;

use crate::base::sync::{AtomicU8, AtomicU64, Mutex, Ordering};
use crate::base::{Error, Result, Sometimes, SubCode};
use crate::db::events::{Event, Events};
use crate::options::{BackgroundErrorReason, ErrorRecoveryInfo};

const HEALTHY: u8 = 0;
const SUSPENDED: u8 = 1;
const POISONED: u8 = 2;

/// Whether writes are acknowledged, and if not, why.
#[derive(Default)]
pub(crate) struct Poison {
    level: AtomicU8,
    cause: Mutex<Option<Error>>,
    /// Why the last compaction found no room.
    starved: Mutex<Option<Error>>,
    /// Failures that were recorded.
    failures: AtomicU64,
    events: Arc<Events>,
}

impl Poison {
    /// A healthy database, whose listeners are told otherwise.
    pub(super) fn new(events: Arc<Events>) -> Self {
        Self { events, ..Self::default() }
    }

    /// How many failures of background work, and of syncs, there were.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Counts failures anew.
    pub(crate) fn forget_failures(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// The state of the database, and why, in words.
    pub(crate) fn describe(&self) -> String {
        match (self.check(), self.check_starved()) {
            (Err(error), _) if error.subcode() == SubCode::Poisoned => format!("poisoned: {error}"),
            (Err(error), _) => format!("suspended: {error}"),
            (Ok(()), Err(error)) => format!("healthy, but {error}"),
            (Ok(()), Ok(())) => "healthy".to_string(),
        }
    }

    /// Passes a healthy database; one load.
    ///
    /// # Errors
    /// The cause, with subcode `Poisoned` when only reopening helps.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.level.load(Ordering::Acquire) == HEALTHY {
            Ok(())
        } else {
            self.refusal().map_or(Ok(()), Err)
        }
    }

    /// Passes a database whose disk is merely full, too: for what was begun before that was known.
    ///
    /// # Errors
    /// The cause, with subcode `Poisoned`.
    pub(crate) fn check_fatal(&self) -> Result<()> {
        if self.is_fatal() { self.refusal().map_or(Ok(()), Err) } else { Ok(()) }
    }

    /// Why nothing is acknowledged; nothing if that has just ended.
    #[cold]
    fn refusal(&self) -> Option<Error> {
        // The level changes under this lock, together with the cause.
        let cause = self.cause.lock();
        let error = cause.clone()?;
        Some(match self.level.load(Ordering::Acquire) {
            POISONED => error
                .context(
                    "the database stopped accepting writes after a failure; close and reopen it",
                )
                .with_subcode(SubCode::Poisoned),
            _ => error.context("writes are suspended until space is available"),
        })
    }

    /// Records a failure of background work or of a sync. A full disk suspends, all else poisons;
    /// the first cause of the worse kind is kept.
    pub(crate) fn record(&self, reason: BackgroundErrorReason, error: &Error) {
        let level = if error.waits_for_space() { SUSPENDED } else { POISONED };
        self.raise(level, reason, error);
    }

    /// Records a failure after which the state of the disk is unknown, whatever its reason.
    pub(crate) fn record_fatal(&self, reason: BackgroundErrorReason, error: &Error) {
        self.raise(POISONED, reason, error);
    }

    fn raise(&self, level: u8, reason: BackgroundErrorReason, error: &Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut cause = self.cause.lock();
        if level > self.level.load(Ordering::Acquire) {
            tracing::error!(%error, "background error");
            if level == POISONED {
                Sometimes::Poisoned.reached()
            } else {
                Sometimes::Suspended.reached()
            }
            let earlier = cause.replace(error.clone());
            self.events.note(|| Event::Failed(reason, error.clone(), level == POISONED));
            match earlier {
                Some(earlier) => self.events.note(|| {
                    Event::RecoveryEnded(ErrorRecoveryInfo { earlier, now: Some(error.clone()) })
                }),
                None if level == SUSPENDED => {
                    self.events.note(|| Event::RecoveryBegun(reason, error.clone()));
                }
                None => {}
            }
            self.level.store(level, Ordering::Release);
        }
    }

    /// Ends a suspension after background work succeeded.
    pub(crate) fn resume(&self) {
        let mut cause = self.cause.lock();
        if self.level.load(Ordering::Acquire) == SUSPENDED {
            Sometimes::Resumed.reached();
            if let Some(earlier) = cause.take() {
                let ended = ErrorRecoveryInfo { earlier, now: None };
                self.events.note(|| Event::RecoveryEnded(ended));
            }
            self.level.store(HEALTHY, Ordering::Release);
        }
    }

    /// Records how the last compaction ended: whether it found no room.
    pub(crate) fn record_starved(&self, error: Option<&Error>) {
        self.failures.fetch_add(u64::from(error.is_some()), Ordering::Relaxed);
        *self.starved.lock() = error.cloned();
    }

    /// For those who would wait for compactions.
    ///
    /// # Errors
    /// Why the last one found no room.
    pub(crate) fn check_starved(&self) -> Result<()> {
        match &*self.starved.lock() {
            None => Ok(()),
            Some(cause) => Err(cause.clone().context("compactions are behind and cannot continue")),
        }
    }

    /// Whether only reopening helps.
    pub(crate) fn is_fatal(&self) -> bool {
        self.level.load(Ordering::Acquire) == POISONED
    }
}

#[cfg(test)]
mod tests;
