//! What single operations cost: RocksDB's `PerfContext` and `IOStatsContext`.
//!
//! 1. Each thread has a level and counters of its own ([`set_perf_level`]). Nothing is counted
//!    until a thread raises its level, so that programs that never ask pay next to nothing.
//! 2. A place that counts first reads [`HIGHEST`], the highest level of all threads. It changes
//!    only when a thread sets its level or ends. If it is high enough, the place reads the level of
//!    its own thread. In a shared library that read costs a function call.
//! 3. Times are read from the system's clocks and not from an `Env`: nothing depends on them.
//!
//! **Thread safety.** A thread reads and writes its own counters only. What other threads do for an
//! operation, as background jobs and readers of asynchronous calls do, counts for them.

mod blocks;
mod by_level;
mod context;
mod io;
mod metric;
mod metrics;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

pub(crate) use blocks::{BlockKind, asked_filter, hit, read_block, reading};
pub use by_level::PerfLevelMetric;
pub(crate) use by_level::{at_level, count_at_level, time_table};
pub use context::PerfContext;
pub use io::{IoMetric, IoStatsContext};
use metric::Metric;
pub use metrics::PerfMetric;

/// How much a thread counts (RocksDB's `PerfLevel`). Each level also counts what those before it
/// do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum PerfLevel {
    /// Nothing. The default here; in RocksDB a thread begins with `EnableCount`.
    #[default]
    Disable = 1,
    /// Numbers and bytes.
    EnableCount = 2,
    /// The time that a writer waits for other writers, for flushes or for compactions.
    EnableWait = 3,
    /// Other times, but for those of locks.
    EnableTimeExceptForMutex = 4,
    /// Processor time. Reading that clock is a system call.
    EnableTimeAndCpuTimeExceptForMutex = 5,
    /// The time that is waited for locks.
    EnableTime = 6,
}

/// Alone on its cache line: all threads read it, and what else is written would cost them.
#[repr(align(128))]
struct Alone(AtomicU8);

/// The highest level that any thread has.
static HIGHEST: Alone = Alone(AtomicU8::new(PerfLevel::Disable as u8));

/// How many threads have each level. [`HIGHEST`] is written under its lock.
static THREADS: Mutex<[usize; LEVELS]> = Mutex::new([0; LEVELS]);

const LEVELS: usize = PerfLevel::EnableTime as usize + 1;

/// Ends a thread's part in [`THREADS`] with the thread.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        change_level(PerfLevel::Disable);
    }
}

thread_local! {
    static COUNTED: Counted = const { Counted };
    static LEVEL: Cell<PerfLevel> = const { Cell::new(PerfLevel::Disable) };
}

/// Sets how much the calling thread counts from now on; its counters stay as they are.
///
/// Counting costs a few nanoseconds a place, and a time some 50 nanoseconds. While a thread has a
/// level, the other threads of the process look at their own wherever that counts.
pub fn set_perf_level(level: PerfLevel) {
    // A thread that is ending can no longer lower its level.
    if level == LEVEL.get() || COUNTED.try_with(|_| ()).is_err() {
        return;
    }
    change_level(level);
}

fn change_level(level: PerfLevel) {
    let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let before = LEVEL.replace(level);
    if before != PerfLevel::Disable {
        threads[before as usize] -= 1;
    }
    if level != PerfLevel::Disable {
        threads[level as usize] += 1;
    }
    let highest = threads.iter().rposition(|count| *count > 0);
    HIGHEST.0.store(highest.unwrap_or(PerfLevel::Disable as usize) as u8, Ordering::Relaxed);
}

/// How much the calling thread counts.
pub fn perf_level() -> PerfLevel {
    LEVEL.get()
}

/// Whether the calling thread counts what begins with that level.
#[inline]
pub(crate) fn is_on(level: PerfLevel) -> bool {
    HIGHEST.0.load(Ordering::Relaxed) >= level as u8 && is_own(level)
}

#[cold]
#[inline(never)]
fn is_own(level: PerfLevel) -> bool {
    LEVEL.get() >= level
}

/// Whether the calling thread counts numbers and bytes.
#[inline]
pub(crate) fn counts() -> bool {
    is_on(PerfLevel::EnableCount)
}

/// Adds to a counter of the calling thread, if it counts that.
#[inline]
pub(crate) fn count(metric: impl Metric, amount: u64) {
    if is_on(metric.level()) {
        metric.add(amount);
    }
}

/// Takes the time until it is dropped, if the calling thread takes that metric's.
#[inline]
pub(crate) fn time<M: Metric>(metric: M) -> Timer<M> {
    let begun = if is_on(metric.level()) { now(metric.level()) } else { 0 };
    Timer { metric, begun }
}

/// Adds the nanoseconds up to its end to a counter.
#[must_use = "a timer that is dropped at once takes no time"]
pub(crate) struct Timer<M: Metric = PerfMetric> {
    metric: M,
    /// 0 if no time is taken.
    begun: u64,
}

impl<M: Metric> Drop for Timer<M> {
    #[inline]
    fn drop(&mut self) {
        if self.begun != 0 {
            self.end();
        }
    }
}

impl<M: Metric> Timer<M> {
    /// Adds what it has taken, and takes no more until [`Timer::resume`].
    #[inline]
    pub(crate) fn pause(&mut self) {
        if self.begun != 0 {
            self.end();
            self.begun = 0;
        }
    }

    /// Goes on behind a pause.
    #[inline]
    pub(crate) fn resume(&mut self) {
        *self = time(self.metric);
    }

    #[cold]
    #[inline(never)]
    fn end(&self) {
        self.metric.add(now(self.metric.level()).saturating_sub(self.begun));
    }
}

/// The clock of a level, in nanoseconds; never 0.
#[cold]
#[inline(never)]
fn now(level: PerfLevel) -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let clock = match level {
        PerfLevel::EnableTimeAndCpuTimeExceptForMutex => ClockId::ThreadCPUTime,
        _ => ClockId::Monotonic,
    };
    let now = clock_gettime(clock);
    let nanos = now.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000);
    nanos.wrapping_add(now.tv_nsec.cast_unsigned()).max(1)
}

/// Takes the part of a write that is none of the steps with times of their own.
pub(crate) struct RestOfWrite {
    timer: Timer,
    taken_before: u64,
}

/// The steps of a write that have times of their own.
const STEPS: [PerfMetric; 4] = [
    PerfMetric::WriteWalTime,
    PerfMetric::WriteMemtableTime,
    PerfMetric::WriteDelayTime,
    PerfMetric::WriteSchedulingFlushesCompactionsTime,
];

impl RestOfWrite {
    /// A write begins.
    #[inline]
    pub(crate) fn begin() -> Self {
        let timer = time(PerfMetric::WritePreAndPostProcessTime);
        let taken_before = if timer.begun == 0 { 0 } else { steps_taken() };
        Self { timer, taken_before }
    }
}

impl Drop for RestOfWrite {
    #[inline]
    fn drop(&mut self) {
        if self.timer.begun != 0 {
            // What the steps took moves the beginning.
            let taken = steps_taken().saturating_sub(self.taken_before);
            self.timer.begun = self.timer.begun.saturating_add(taken);
        }
    }
}

#[cold]
#[inline(never)]
fn steps_taken() -> u64 {
    STEPS.iter().map(|step| step.value()).sum()
}
