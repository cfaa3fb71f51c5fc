//! For how long writers are held up: what is felt of it, however many wait at a time.

use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::env::Clock;

/// When anybody has waited.
#[derive(Default)]
pub(in crate::db) struct Waits {
    counted: Mutex<Counted>,
    /// When the last stop began, in microseconds of the clock.
    stopped_at_us: AtomicU64,
}

#[derive(Default)]
struct Counted {
    waiting: usize,
    /// When the first of those who wait began.
    since_us: u64,
    /// Microseconds of what was before.
    ended_us: u64,
}

impl Waits {
    /// A writer waits until the answer is dropped.
    pub(in crate::db) fn begin<'a>(&'a self, clock: &'a dyn Clock) -> Waiting<'a> {
        let mut counted = self.counted.lock();
        if counted.waiting == 0 {
            counted.since_us = clock.now_us();
        }
        counted.waiting += 1;
        Waiting { waits: self, clock }
    }

    /// For how many microseconds anybody has waited, those among them who wait still.
    pub(in crate::db) fn total_us(&self, now_us: u64) -> u64 {
        let counted = self.counted.lock();
        let present = if counted.waiting > 0 { now_us.saturating_sub(counted.since_us) } else { 0 };
        counted.ended_us + present
    }

    /// All writers are stopped from now on.
    pub(in crate::db) fn note_stop(&self, now_us: u64) {
        self.stopped_at_us.store(now_us, Ordering::Relaxed);
    }

    /// Microseconds since they were.
    pub(in crate::db) fn since_stop_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.stopped_at_us.load(Ordering::Relaxed))
    }
}

/// A writer who waits.
pub(in crate::db) struct Waiting<'a> {
    waits: &'a Waits,
    clock: &'a dyn Clock,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut counted = self.waits.counted.lock();
        counted.waiting -= 1;
        if counted.waiting == 0 {
            counted.ended_us += self.clock.now_us().saturating_sub(counted.since_us);
        }
    }
}

#[cfg(test)]
mod tests;
