//! Threads that begin together, and what they did added up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::Builder;

use crate::engine::Result;
use crate::measure::Recorder;

/// Runs `body` on so many threads, each with its number and a recorder started when all are ready.
pub fn on_threads(
    threads: u32,
    body: impl Fn(u32, &mut Recorder) -> Result<()> + Sync,
) -> Result<Recorder> {
    on_built(threads, |_| Builder::new(), body)
}

/// The same on threads that are built so, each by its number.
fn on_built(
    threads: u32,
    build: impl Fn(u32) -> Builder,
    body: impl Fn(u32, &mut Recorder) -> Result<()> + Sync,
) -> Result<Recorder> {
    let start = Start::of(threads);
    let one = |index: u32| -> Result<Recorder> {
        start.wait()?;
        let mut recorder = Recorder::start();
        body(index, &mut recorder)?;
        Ok(recorder)
    };
    std::thread::scope(|scope| {
        let mut started = Vec::new();
        for index in 0..threads {
            let one = &one;
            match build(index).spawn_scoped(scope, move || one(index)) {
                Ok(thread) => started.push(thread),
                Err(error) => {
                    start.give_up();
                    return Err(
                        format!("thread {index} of {threads} cannot be started: {error}").into()
                    );
                }
            }
        }
        let mut all: Option<Recorder> = None;
        for thread in started {
            let recorder = thread.join().map_err(|_| "a thread panicked")??;
            match &mut all {
                Some(all) => all.merge(&recorder),
                None => all = Some(recorder),
            }
        }
        all.ok_or_else(|| "no threads".into())
    })
}

/// Where threads wait for one another, or hear that one of them will not come: at a `Barrier` they
/// would wait for it for ever.
struct Start {
    /// How many are missing; none where the start was given up.
    missing: Mutex<Option<u32>>,
    changed: Condvar,
}

impl Start {
    fn of(threads: u32) -> Self {
        Self { missing: Mutex::new(Some(threads)), changed: Condvar::new() }
    }

    /// Waits until all are here.
    fn wait(&self) -> Result<()> {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.map(|missing| missing - 1);
        self.changed.notify_all();
        let is_open = |missing: &mut Option<u32>| missing.is_none_or(|missing| missing == 0);
        let missing = self.changed.wait_while(missing, |missing| !is_open(missing));
        match *missing.unwrap_or_else(PoisonError::into_inner) {
            Some(_) => Ok(()),
            None => Err("another thread cannot be started".into()),
        }
    }

    fn give_up(&self) {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.changed.notify_all();
    }
}

/// Says that something is over when it goes, also in a panic: the threads that go on until then are
/// waited for.
pub struct Ending<'a>(pub &'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The part of `0..count` that falls to thread `index` of `threads`.
pub fn share(count: u64, index: u32, threads: u32) -> std::ops::Range<u64> {
    let (index, threads) = (u64::from(index), u64::from(threads));
    count * index / threads..count * (index + 1) / threads
}

#[cfg(test)]
mod tests;
