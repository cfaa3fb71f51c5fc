//! The threads that wait for a compaction service, and how closing the database ends their waits.
//!
//! **Proof** that closing leaves no thread behind. A thread is counted before it looks whether the
//! database is closing, and the database counts as closing before the count is read. So a thread
//! that is not counted then does not begin to wait. The service is told again and again while any
//! thread is counted: a thread may begin to wait just after the service was told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::base::sync::{Condvar, Mutex};
use crate::db::jobs::Jobs;
use crate::options::InfoLogLevel;

/// After how long the service is told again.
const AGAIN: Duration = Duration::from_millis(50);

/// How many threads wait for the service.
#[derive(Default)]
pub(in crate::db::jobs) struct Awaiting {
    threads: Mutex<usize>,
    ended: Condvar,
}

/// A thread that waits, or is about to.
pub(super) struct Counted<'a>(&'a Awaiting);

impl Awaiting {
    pub(super) fn begin(&self) -> Counted<'_> {
        *self.threads.lock() += 1;
        Counted(self)
    }

    /// Whether any thread waits after this time.
    fn any_after(&self, longest: Duration) -> bool {
        let mut threads = self.threads.lock();
        if *threads > 0 {
            self.ended.wait_for(&mut threads, longest);
        }
        *threads > 0
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        *self.0.threads.lock() -= 1;
        self.0.ended.notify_all();
    }
}

/// Tells the service that the database is being closed. Must be called when it counts as closing.
pub(in crate::db) fn cancel_awaiting(jobs: &Jobs) {
    let service = jobs.context.settings.load().compaction_service.clone();
    // A database that is only read has no jobs, and may share the service with the one that has.
    let Some(service) = service.filter(|_| !jobs.context.read_only) else { return };
    // A panic here would leave a database that cannot be closed.
    if catch_unwind(AssertUnwindSafe(|| service.cancel_awaiting_jobs())).is_err() {
        let text = "the compaction service panicked when the database was closed";
        tracing::error!("{text}");
        jobs.context.log.say(InfoLogLevel::Error, text);
    }
}

/// Returns when no thread waits for the service. Must be called after [`cancel_awaiting`].
pub(in crate::db) fn end_awaiting(jobs: &Jobs) {
    while jobs.awaiting.any_after(AGAIN) {
        cancel_awaiting(jobs);
    }
}
