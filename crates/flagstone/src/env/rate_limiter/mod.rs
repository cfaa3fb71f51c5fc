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

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateLimiterMode {
    /// What is read.
    ReadsOnly,
    /// What is written.
    #[default]
    WritesOnly,
    /// Both, together.
    AllIo,
}

/// Whoever asks would wait for longer than an operator looks on; times of the clock do not
/// overflow.
const REFILL_PERIOD_MAX_US: u64 = 3_600_000_000;

/// How a [`RateLimiter`] limits; the defaults are RocksDB's `NewGenericRateLimiter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimiterOptions {
    /// Bytes a second; with `auto_tuned` the most.
    pub bytes_per_second: u64,
    /// Microseconds of a period, an hour at most: bytes are given out once in each.
    pub refill_period_us: u64,
    /// In one of so many periods lower priorities come first.
    pub fairness: u64,
    /// What is limited.
    pub mode: RateLimiterMode,
    /// Lowers the rate while there is less to do, to a twentieth at least, and raises it again.
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

/// Limits the bytes that flushes and compactions, and calls that ask for it, read and write in a
/// second: RocksDB's `RateLimiter`. Databases whose options hold the same one share it.
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
    /// A limiter that goes by the operating system's clock.
    ///
    /// # Errors
    /// As [`RateLimiter::with_clock`].
    pub fn new(options: RateLimiterOptions) -> Result<Self> {
        Self::with_clock(options, Env::os().clock)
    }

    /// A limiter that goes by `clock`.
    ///
    /// # Errors
    /// `InvalidArgument` for no bytes a second, or a period of no time or more than an hour.
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

    /// How it limits: as it was made, with the rate that was set last.
    pub fn options(&self) -> RateLimiterOptions {
        RateLimiterOptions { bytes_per_second: self.policy.lock().limit(), ..self.made }
    }

    /// Bytes a second that are allowed now.
    pub fn bytes_per_second(&self) -> u64 {
        self.policy.lock().rate()
    }

    /// Changes how many bytes a second are allowed; with `auto_tuned` the most.
    ///
    /// # Errors
    /// `InvalidArgument` for none.
    pub fn set_bytes_per_second(&self, bytes_per_second: u64) -> Result<()> {
        check_rate(bytes_per_second)?;
        self.policy.lock().set_limit(bytes_per_second);
        Ok(())
    }

    /// Whether what is read is limited.
    pub fn limits_reads(&self) -> bool {
        self.made.mode != RateLimiterMode::WritesOnly
    }

    /// Whether what is written is limited.
    pub fn limits_writes(&self) -> bool {
        self.made.mode != RateLimiterMode::ReadsOnly
    }

    /// Bytes that have passed with a priority.
    pub fn bytes_through(&self, priority: IoPriority) -> u64 {
        self.bytes[priority as usize].load(Ordering::Relaxed)
    }

    /// Requests that have passed with a priority.
    pub fn requests(&self, priority: IoPriority) -> u64 {
        self.requests[priority as usize].load(Ordering::Relaxed)
    }

    /// Microseconds that requests have waited, all together.
    pub fn waited_us(&self) -> u64 {
        self.waited_us.load(Ordering::Relaxed)
    }

    /// Waits until `bytes` may pass, or `is_over` says that there is nothing to wait for; the
    /// microseconds that it took.
    pub fn request(&self, bytes: u64, priority: IoPriority, is_over: impl Fn() -> bool) -> u64 {
        let begin = self.clock.now_us();
        let mut now = begin;
        let mut policy = self.policy.lock();
        let ticket = if bytes == 0 { None } else { policy.request(now, priority, bytes) };
        if let Some(ticket) = ticket {
            while policy.is_waiting(priority, ticket) {
                if is_over() {
                    policy.withdraw(priority, ticket);
                    break;
                }
                let wait = policy.next_refill_us().saturating_sub(now).max(1);
                drop(policy);
                self.clock.sleep(Duration::from_micros(wait));
                now = self.clock.now_us();
                policy = self.policy.lock();
                policy.advance(now);
            }
        }
        drop(policy);
        let waited = now - begin;
        self.bytes[priority as usize].fetch_add(bytes, Ordering::Relaxed);
        self.requests[priority as usize].fetch_add(1, Ordering::Relaxed);
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
