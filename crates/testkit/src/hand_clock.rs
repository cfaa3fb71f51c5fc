//! A clock that stands until somebody turns it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flagstone::env::Clock;

/// Tells the seconds it was set to; who sleeps by it wakes at once.
pub struct HandClock(AtomicU64);

impl HandClock {
    /// One that stands at so many seconds since 1970.
    pub fn at(unix_seconds: u64) -> Self {
        Self(AtomicU64::new(unix_seconds))
    }

    /// Turns it forward.
    pub fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now_us(&self) -> u64 {
        self.unix_seconds() * 1_000_000
    }

    fn unix_seconds(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn sleep(&self, _duration: Duration) {}
}
