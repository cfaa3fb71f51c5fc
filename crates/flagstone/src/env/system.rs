//! The operating system's clock, randomness and threads.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the place that the rest of the engine is sent to"
)]

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use super::limits;
use super::{Clock, Join, LowPriority, MemoryState, Random, Resources, Spawn, Task};
use crate::base::{Error, Result};

/// The system's clock, randomness and threads.
#[derive(Debug)]
pub struct System {
    start: Instant,
    #[cfg(target_os = "linux")]
    coarse_start: rustix::time::Timespec,
    random: RandomState,
    drawn: std::sync::atomic::AtomicU64,
}

impl System {
    /// Starts the clock.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            #[cfg(target_os = "linux")]
            coarse_start: rustix::time::clock_gettime(rustix::time::ClockId::Monotonic),
            random: RandomState::new(),
            drawn: std::sync::atomic::AtomicU64::new(0),
        }
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for System {
    fn now_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    fn now_nanos(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Read from memory that the kernel writes at each tick (the last may have been before the
    /// start): no system call.
    #[cfg(target_os = "linux")]
    fn coarse_us(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
        let (seconds, nanos) =
            (now.tv_sec - self.coarse_start.tv_sec, now.tv_nsec - self.coarse_start.tv_nsec);
        (seconds * 1_000_000 + nanos / 1000).max(0) as u64
    }

    fn unix_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    fn unix_micros(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

impl Resources for System {
    fn processor_us(&self) -> u64 {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        (used.tv_sec * 1_000_000 + used.tv_nsec / 1000).max(0) as u64
    }

    fn memory(&self) -> MemoryState {
        limits::memory_state()
    }
}

impl Random for System {
    fn next_u64(&self) -> u64 {
        // The standard library seeds its hasher from the system's entropy; each call hashes another
        // counter.
        let mut hasher = self.random.build_hasher();
        hasher.write_u64(self.drawn.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        hasher.write_u128(
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos()),
        );
        hasher.finish()
    }
}

impl Spawn for System {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>> {
        let handle = std::thread::Builder::new()
            .name(name.to_string())
            .spawn(work)
            .map_err(|error| Error::io("start a thread", name, error))?;
        Ok(Box::new(OsThread(handle)))
    }

    fn run_all(&self, name: &str, tasks: Vec<Task<'_>>) {
        let threads = tasks.len();
        let waiting = Mutex::new(tasks.into_iter());
        let next = || waiting.lock().next();
        let work = || {
            while let Some(task) = next() {
                task();
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                let started =
                    std::thread::Builder::new().name(name.to_string()).spawn_scoped(scope, work);
                if let Err(error) = started {
                    // Those that there are do it all.
                    tracing::warn!(%error, name, "no thread is left");
                    break;
                }
            }
            work();
        });
    }

    #[cfg(target_os = "linux")]
    fn run_giving_way(&self, name: &str, priority: LowPriority, task: Task<'_>) {
        super::niceness::run_giving_way(name, priority, task);
    }
}

struct OsThread(std::thread::JoinHandle<()>);

impl Join for OsThread {
    fn join(self: Box<Self>) -> bool {
        self.0.join().is_err()
    }
}
