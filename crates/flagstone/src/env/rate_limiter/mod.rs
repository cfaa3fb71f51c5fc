//! A limit on the bytes per second that background work reads and writes. Several databases may
//! share one.
//!
//! **Thread safety.** The policy is behind a mutex, held for one look at a time. A caller that has
//! to wait sleeps, by the clock of the limiter's world, until the next period and looks again.
//!
//! - `policy`: who is served when
//! - `file`: a file that asks before it is written or read

mod file;
mod policy;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Clock, Env};
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::base::{Error, Result};

pub use file::{IoWatch, LimitedFile};
pub use policy::IoPriority;
use policy::Policy;

/// What a [`RateLimiter`] limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateLimiterMode {
    /// Reads.
    ReadsOnly,
    /// Writes.
    #[default]
    WritesOnly,
    /// Reads and writes together.
    AllIo,
}

/// Whoever asks would wait for longer than an operator looks on; times of the clock do not
/// overflow.
const REFILL_PERIOD_MAX_US: u64 = 3_600_000_000;

/// Settings of a [`RateLimiter`]; the defaults are those of RocksDB's `NewGenericRateLimiter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimiterOptions {
    /// Bytes per second; with `auto_tuned` the maximum.
    pub bytes_per_second: u64,
    /// Length of a period in microseconds, at most an hour. Bytes become available once per period.
    pub refill_period_us: u64,
    /// In one of this many periods, lower priorities are served first.
    pub fairness: u64,
    /// What is limited.
    pub mode: RateLimiterMode,
    /// Lowers the rate while there is little to do, at most to a twentieth, and raises it again.
    pub auto_tuned: bool,
}

impl RateLimiterOptions {
    /// RocksDB's defaults.
    pub fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second,
            refill_period_us: 100_000,
            fairness: 10,
            mode: RateLimiterMode::WritesOnly,
            auto_tuned: false,
        }
    }
}

/// Limits the bytes per second that flushes, compactions and calls that request it read and write:
/// RocksDB's `RateLimiter`. Databases whose options hold the same limiter share it.
pub struct RateLimiter {
    policy: Mutex<Policy>,
    made: RateLimiterOptions,
    clock: Arc<dyn Clock>,
    /// By priority.
    bytes: [AtomicU64; 4],
    requests: [AtomicU64; 4],
    waited_us: AtomicU64,
}

impl RateLimiter {
    /// A limiter that uses the operating system's clock.
    ///
    /// # Errors
    /// As [`RateLimiter::with_clock`].
    pub fn new(options: RateLimiterOptions) -> Result<Self> {
        Self::with_clock(options, Env::os().clock)
    }

    /// A limiter that uses `clock`.
    ///
    /// # Errors
    /// `InvalidArgument` for a rate of 0, or a period of 0 or more than an hour.
    pub fn with_clock(options: RateLimiterOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let RateLimiterOptions { bytes_per_second, refill_period_us, fairness, auto_tuned, .. } =
            options;
        check_rate(bytes_per_second)?;
        if !(1..=REFILL_PERIOD_MAX_US).contains(&refill_period_us) {
            return Err(Error::invalid_argument(format!(
                "a rate limiter's period must be 1 to {REFILL_PERIOD_MAX_US} microseconds, not {refill_period_us}"
            )));
        }
        let policy =
            Policy::new(bytes_per_second, refill_period_us, fairness, auto_tuned, clock.now_us());
        Ok(Self {
            policy: Mutex::new(policy),
            made: options,
            clock,
            bytes: Default::default(),
            requests: Default::default(),
            waited_us: AtomicU64::new(0),
        })
    }

    /// The options that it was created with, and the rate that was set last.
    pub fn options(&self) -> RateLimiterOptions {
        RateLimiterOptions { bytes_per_second: self.policy.lock().limit(), ..self.made }
    }

    /// The current rate in bytes per second.
    pub fn bytes_per_second(&self) -> u64 {
        self.policy.lock().rate()
    }

    /// Changes the rate in bytes per second; with `auto_tuned` the maximum.
    ///
    /// # Errors
    /// `InvalidArgument` for 0.
    pub fn set_bytes_per_second(&self, bytes_per_second: u64) -> Result<()> {
        check_rate(bytes_per_second)?;
        self.policy.lock().set_limit(bytes_per_second);
        Ok(())
    }

    /// Whether reads are limited.
    pub fn limits_reads(&self) -> bool {
        self.made.mode != RateLimiterMode::WritesOnly
    }

    /// Whether writes are limited.
    pub fn limits_writes(&self) -> bool {
        self.made.mode != RateLimiterMode::ReadsOnly
    }

    /// Bytes that have passed with this priority.
    pub fn bytes_through(&self, priority: IoPriority) -> u64 {
        self.bytes[priority as usize].load(Ordering::Relaxed)
    }

    /// Requests that have passed with this priority.
    pub fn requests(&self, priority: IoPriority) -> u64 {
        self.requests[priority as usize].load(Ordering::Relaxed)
    }

    /// Microseconds that all requests have waited, added up.
    pub fn waited_us(&self) -> u64 {
        self.waited_us.load(Ordering::Relaxed)
    }

    /// Waits until `bytes` may pass, or until `is_over` returns true, and returns the microseconds
    /// waited. A request that is over before its bytes passed is not counted.
    pub fn request(&self, bytes: u64, priority: IoPriority, is_over: impl Fn() -> bool) -> u64 {
        self.request_within(bytes, priority, || if is_over() { 0 } else { u64::MAX })
    }

    /// [`Self::request`] that waits no longer than the microseconds that `left_us` returns.
    pub(crate) fn request_within(
        &self,
        bytes: u64,
        priority: IoPriority,
        left_us: impl Fn() -> u64,
    ) -> u64 {
        let begin = self.clock.now_us();
        let mut now = begin;
        let mut policy = self.policy.lock();
        let ticket = if bytes == 0 { None } else { policy.request(now, priority, bytes) };
        let mut has_passed = true;
        if let Some(ticket) = ticket {
            while policy.is_waiting(priority, ticket) {
                let left_us = left_us();
                if left_us == 0 {
                    policy.withdraw(priority, ticket);
                    has_passed = false;
                    break;
                }
                let wait = policy.next_refill_us().saturating_sub(now).clamp(1, left_us);
                drop(policy);
                self.clock.sleep(Duration::from_micros(wait));
                now = self.clock.now_us();
                policy = self.policy.lock();
                policy.advance(now);
            }
        }
        drop(policy);
        let waited = now - begin;
        if has_passed {
            self.bytes[priority as usize].fetch_add(bytes, Ordering::Relaxed);
            self.requests[priority as usize].fetch_add(1, Ordering::Relaxed);
        }
        self.waited_us.fetch_add(waited, Ordering::Relaxed);
        waited
    }
}

fn check_rate(bytes_per_second: u64) -> Result<()> {
    if bytes_per_second > 0 {
        return Ok(());
    }
    Err(Error::invalid_argument(
        "a rate limiter's rate must be at least 1 byte a second; for no limit, set no rate limiter",
    ))
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RateLimiter({} bytes a second)", self.bytes_per_second())
    }
}
