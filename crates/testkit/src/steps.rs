//! A world without threads and without the hour of the day: the same seed gives the same calls in
//! the same order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flagstone::base::{Code, Error, Result};
use flagstone::env::{Clock, Env, FileSystem, Join, Plenty, Random, Spawn, Task};
use parking_lot::Mutex;

use crate::fakes;

/// A world over these files whose background work is done by the callers, in an order drawn from
/// the seed. The files break a promise if one of the [fakes] is on.
pub fn world(fs: Arc<dyn FileSystem>, seed: u64) -> Env {
    let steps = Arc::new(Steps::new(seed));
    let fs = fakes::around(fs);
    Env {
        fs,
        clock: Arc::new(SimulatedClock::default()),
        random: steps.clone(),
        spawner: steps,
        resources: Arc::new(Plenty),
    }
}

/// The order of steps, and all other chance, from one seed.
pub struct Steps {
    random: Mutex<fastrand::Rng>,
}

impl Steps {
    /// For this seed.
    pub fn new(seed: u64) -> Self {
        Self { random: Mutex::new(fastrand::Rng::with_seed(seed)) }
    }
}

impl Spawn for Steps {
    fn spawn(&self, name: &str, _work: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>> {
        Err(Error::new(Code::NotSupported, format!("no thread {name} in a world of steps")))
    }

    fn run_all(&self, _name: &str, mut tasks: Vec<Task<'_>>) {
        self.random.lock().shuffle(&mut tasks);
        tasks.into_iter().for_each(|task| task());
    }

    fn choose_step(&self, choices: usize) -> Option<usize> {
        Some(self.random.lock().usize(..choices))
    }
}

impl Random for Steps {
    fn next_u64(&self) -> u64 {
        self.random.lock().u64(..)
    }
}

/// Time that passes by being looked at, one microsecond a look, and by being slept through.
#[derive(Default)]
pub struct SimulatedClock {
    now_us: AtomicU64,
}

impl Clock for SimulatedClock {
    fn now_us(&self) -> u64 {
        self.now_us.fetch_add(1, Ordering::Relaxed)
    }

    fn coarse_us(&self) -> u64 {
        self.now_us.load(Ordering::Relaxed)
    }

    fn unix_seconds(&self) -> u64 {
        const START: u64 = 1_700_000_000;
        START + self.now_us.load(Ordering::Relaxed) / 1_000_000
    }

    fn sleep(&self, duration: Duration) {
        self.now_us.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
