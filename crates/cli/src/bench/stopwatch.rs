//! Latencies: the engine's clock counts whole microseconds, and many a put takes a quarter of one.

use std::time::Instant;

/// Counts nanoseconds.
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// One that begins now.
    #[expect(clippy::disallowed_methods, reason = "the engine's clock counts whole microseconds")]
    pub fn begin() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since it began.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}
