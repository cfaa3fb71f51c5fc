//! A clock that stands until somebody turns it, or sleeps by it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flagstone::env::Clock;

/// Tells the time it was set to, in microseconds since 1970. Who sleeps by it wakes at once, and so
/// much later.
pub struct HandClock(AtomicU64);

impl HandClock {
    /// One that stands at so many seconds since 1970.
    pub fn at(unix_seconds: u64) -> Self {
        Self(AtomicU64::new(unix_seconds * 1_000_000))
    }

    /// Turns it forward.
    pub fn advance(&self, seconds: u64) {
        self.sleep(Duration::from_secs(seconds));
    }
}

impl Clock for HandClock {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn unix_seconds(&self) -> u64 {
        self.now_us() / 1_000_000
    }

    fn unix_micros(&self) -> u64 {
        self.now_us()
    }

    fn sleep(&self, duration: Duration) {
        self.0.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
    }
}
