//! Threads that begin together, and what they did added up.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::Result;
use crate::measure::Recorder;

/// Runs `body` on so many threads, each with its number and a recorder started when all are ready.
pub fn on_threads(threads: u32, body: impl Fn(u32, &mut Recorder) -> Result<()> + Sync) -> Result<Recorder> {
    let barrier = Barrier::new(threads as usize);
    let one = |index: u32| -> Result<Recorder> {
        barrier.wait();
        let mut recorder = Recorder::start();
        body(index, &mut recorder)?;
        Ok(recorder)
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|index| {
                let one = &one;
                scope.spawn(move || one(index))
            })
            .collect();
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

/// Says that something is over when it goes, also in a panic: the threads that go on until then are waited for.
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
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        let all: Vec<u64> = (0..3).flat_map(|index| share(10, index, 3)).collect();
        assert!(all.into_iter().eq(0..10));
    }

    #[test]
    fn what_threads_did_is_added_up() {
        let body = |index: u32, recorder: &mut Recorder| {
            (0..=index).for_each(|_| recorder.finished(1));
            Ok(())
        };
        assert_eq!(on_threads(3, body).unwrap().part("x").operations, 6);
        assert!(on_threads(2, |_, _| Err("no".into())).is_err());
    }
}
