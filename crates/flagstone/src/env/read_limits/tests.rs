use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::env::{RateLimiterMode, RateLimiterOptions};

/// Time that reads and sleeps take.
#[derive(Default)]
struct Hands(AtomicU64);

impl Clock for Hands {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn unix_seconds(&self) -> u64 {
        self.unix_micros() / 1_000_000
    }

    fn unix_micros(&self) -> u64 {
        5_000_000 + self.now_us()
    }

    fn sleep(&self, duration: Duration) {
        self.0.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
    }
}

/// A file each of whose reads takes some time.
struct Slow {
    clock: Arc<Hands>,
    takes_us: u64,
    reads: AtomicU64,
    path: PathBuf,
}

impl RandomAccessFile for Slow {
    fn read_at(&self, _offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.clock.sleep(Duration::from_micros(self.takes_us));
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(buffer.len())
    }

    fn size(&self) -> Result<u64> {
        Ok(1 << 20)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

struct World {
    clock: Arc<Hands>,
    slow: Arc<Slow>,
    file: BoundedFile,
}

impl World {
    fn new(takes_us: u64) -> Self {
        let clock = Arc::new(Hands::default());
        let (reads, path) = (AtomicU64::new(0), PathBuf::from("/db/000007.sst"));
        let slow = Arc::new(Slow { clock: clock.clone(), takes_us, reads, path });
        Self { clock, file: BoundedFile(slow.clone()), slow }
    }

    fn limits(&self, deadline_us: u64, timeout_us: u64) -> Arc<ReadLimits> {
        let deadline_us = deadline_us.saturating_add(5_000_000);
        Arc::new(ReadLimits::new(self.clock.clone(), deadline_us, timeout_us))
    }

    fn read(&self) -> Result<usize> {
        self.file.read_at(0, &mut [0; 100])
    }

    fn reads(&self) -> u64 {
        self.slow.reads.load(Ordering::Relaxed)
    }
}

fn is_timeout<T>(outcome: &Result<T>) -> bool {
    outcome.as_ref().is_err_and(|error| error.code() == Code::TimedOut)
}

#[test]
fn reads_without_limits_take_as_long_as_they_take() {
    let world = World::new(1000);
    assert_eq!(world.read().unwrap(), 100);
    world.limits(u64::MAX, 1).during(|| Ok(())).unwrap();
    assert_eq!(world.read().unwrap(), 100, "the limits were the call's");
}

#[test]
fn reads_end_with_the_deadline() {
    let world = World::new(1000);
    let limits = world.limits(2500, u64::MAX);
    let outcome = limits.during(|| {
        for _ in 0..2 {
            world.read()?;
        }
        assert!(is_timeout(&world.read()), "it ended 500 microseconds too late");
        assert_eq!(world.reads(), 3);
        world.read()
    });
    assert!(is_timeout(&outcome));
    assert_eq!(outcome.unwrap_err().path(), Some(Path::new("/db/000007.sst")));
    assert_eq!(world.reads(), 3, "the last one was not begun");
    let mut is_called = false;
    let late = limits.during(|| {
        is_called = true;
        Ok(())
    });
    assert!(is_timeout(&late) && !is_called);
}

#[test]
fn each_read_has_its_own_time() {
    let world = World::new(1000);
    let patient = world.limits(u64::MAX, 1000);
    patient.during(|| (0..5).try_for_each(|_| world.read().map(drop))).unwrap();
    let outcome = world.limits(u64::MAX, 999).during(|| world.read());
    assert!(is_timeout(&outcome));
    assert!(outcome.unwrap_err().to_string().contains("1000 microseconds"));
}

#[test]
fn reads_wait_for_the_rate_limiter_but_not_longer_than_the_deadline() {
    let world = World::new(0);
    let options = RateLimiterOptions {
        mode: RateLimiterMode::AllIo,
        refill_period_us: 1000,
        ..RateLimiterOptions::new(100_000)
    };
    let limiter = Arc::new(RateLimiter::with_clock(options, world.clock.clone()).unwrap());
    let limits = ReadLimits::new(world.clock.clone(), 5_000_000 + 3500, u64::MAX)
        .limited_by(limiter.clone(), IoPriority::Mid);
    let outcome = Arc::new(limits).during(|| (0..100).try_for_each(|_| world.read().map(drop)));
    assert!(is_timeout(&outcome));
    assert!((1..=5).contains(&world.reads()), "100 bytes a millisecond: {}", world.reads());
    assert!(limiter.bytes_through(IoPriority::Mid) >= 100 * world.reads());
    assert!(world.clock.now_us() < 10_000, "{}", world.clock.now_us());
}

#[test]
fn a_wait_for_the_rate_limiter_ends_with_the_deadline_and_not_with_the_period() {
    let world = World::new(0);
    let options = RateLimiterOptions {
        mode: RateLimiterMode::AllIo,
        refill_period_us: 1_000_000,
        ..RateLimiterOptions::new(100)
    };
    let limiter = Arc::new(RateLimiter::with_clock(options, world.clock.clone()).unwrap());
    let limits = ReadLimits::new(world.clock.clone(), 5_000_000 + 3500, u64::MAX)
        .limited_by(limiter.clone(), IoPriority::Mid);
    let outcome = Arc::new(limits).during(|| (0..100).try_for_each(|_| world.read().map(drop)));
    assert!(is_timeout(&outcome));
    assert_eq!(world.clock.now_us(), 3500);
    assert_eq!(limiter.requests(IoPriority::Mid), world.reads(), "what was withdrawn is none");
    assert_eq!(limiter.bytes_through(IoPriority::Mid), 100 * world.reads());
}

#[test]
fn a_part_for_which_others_wait_passes_the_rate_limiter() {
    let world = World::new(10);
    let options = RateLimiterOptions { mode: RateLimiterMode::AllIo, ..RateLimiterOptions::new(1) };
    let limiter = Arc::new(RateLimiter::with_clock(options, world.clock.clone()).unwrap());
    let limits = ReadLimits::new(world.clock.clone(), 5_000_000 + 35, u64::MAX)
        .limited_by(limiter.clone(), IoPriority::Mid);
    let outcome = Arc::new(limits).during(|| {
        ReadLimits::without_limiter(|| (0..3).try_for_each(|_| world.read().map(drop)))?;
        assert_eq!((world.clock.now_us(), limiter.requests(IoPriority::Mid)), (30, 0));
        ReadLimits::without_limiter(|| world.read())
    });
    assert!(is_timeout(&outcome), "the deadline holds");
    ReadLimits::without_limiter(|| world.read()).unwrap();
}

#[test]
fn limits_within_limits_end_with_their_call_even_by_a_panic() {
    let world = World::new(10);
    let (outer, inner) = (world.limits(u64::MAX, u64::MAX), world.limits(u64::MAX, 1));
    outer
        .during(|| {
            assert!(is_timeout(&inner.during(|| world.read())));
            let call = std::panic::AssertUnwindSafe(|| inner.during(|| -> Result<()> { panic!() }));
            assert!(std::panic::catch_unwind(call).is_err());
            world.read()
        })
        .unwrap();
    assert!(!are_in_force());
}
