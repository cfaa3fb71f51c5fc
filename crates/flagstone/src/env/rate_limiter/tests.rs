//! The policy as text and against its bound; the limiter with a clock in hand.

use std::fmt::Write as _;

use super::*;
use crate::env::rate_limiter::policy::Policy;

/// Requests and periods, and who was served when. `1000` bytes a second in periods of 100 ms are
/// 100 bytes a period.
fn play(fairness: u64, script: &str) -> String {
    let mut policy = Policy::new(1000, 100_000, fairness, false, 0);
    let (mut now, mut waiting, mut told) = (0, Vec::new(), String::new());
    for step in script.split_whitespace() {
        if let Some(milliseconds) = step.strip_prefix('+') {
            now += milliseconds.parse::<u64>().unwrap() * 1000;
            policy.advance(now);
        } else {
            let (name, rest) = step.split_at(1);
            let priority = match name {
                "u" => IoPriority::User,
                "h" => IoPriority::High,
                "m" => IoPriority::Mid,
                _ => IoPriority::Low,
            };
            match policy.request(now, priority, rest.parse().unwrap()) {
                None => write!(told, "{step}@{} ", now / 1000).unwrap(),
                Some(ticket) => waiting.push((step, priority, ticket)),
            }
        }
        waiting.retain(|(step, priority, ticket)| {
            let waits = policy.is_waiting(*priority, *ticket);
            if !waits {
                write!(told, "{step}@{} ", now / 1000).unwrap();
            }
            waits
        });
    }
    told.trim_end().to_string()
}

#[test]
fn the_higher_priority_goes_first_and_each_in_the_order_of_its_coming() {
    assert_eq!(play(1000, "h60 h40 h1 +100"), "h60@0 h40@0 h1@100");
    assert_eq!(
        play(1000, "l100 l50 m50 h60 u40 +100 +100"),
        "l100@0 h60@100 u40@100 l50@200 m50@200"
    );
    assert_eq!(play(1000, "m100 m30 m40 m20 +50 +50"), "m100@0 m30@100 m40@100 m20@100");
}

#[test]
fn what_is_too_large_for_a_period_gets_its_part_of_several() {
    assert_eq!(play(1000, "h250 +100 +50 +50"), "h250@200");
    assert_eq!(play(1000, "h350 +100 u10 +100 +100"), "u10@200 h350@300");
}

#[test]
fn nobody_starves_where_it_is_fair() {
    let script = "h100 l50 h500 +100 +100 +100";
    assert_eq!(play(1000, script), "h100@0");
    // The third period is the turn of the lowest.
    assert_eq!(play(3, script), "h100@0 l50@200");
}

#[test]
fn time_without_requests_is_saved_for_one_period_only() {
    assert_eq!(play(1000, "+10000 h200 h1 +100"), "h200@10000 h1@10100");
}

/// Whatever is asked for and when: no more passes than the rate and two periods allow, and what
/// waits is served in the end.
#[test]
fn no_more_passes_than_is_allowed() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (rate, period) = (random.u64(1..1_000_000), random.u64(1..200_000));
        let mut policy = Policy::new(rate, period, random.u64(1..12), false, 0);
        let quota = (rate * period / 1_000_000).max(1);
        let (mut now, mut passed, mut waiting) = (0u64, 0u64, Vec::new());
        for _ in 0..300 {
            now += random.u64(0..period * 2);
            let bytes = random.u64(1..quota * 3 + 2);
            let priority = IoPriority::ALL[random.usize(..4)];
            match policy.request(now, priority, bytes) {
                None => passed += bytes,
                Some(ticket) => waiting.push((priority, ticket, bytes)),
            }
            waiting.retain(|(priority, ticket, bytes)| {
                let waits = policy.is_waiting(*priority, *ticket);
                passed += if waits { 0 } else { *bytes };
                waits
            });
            let periods = now / period + 1;
            assert!(passed <= quota * (periods + 1), "seed {seed}: {passed} bytes by {now} us");
        }
        let rest: u64 = waiting.iter().map(|(_, _, bytes)| bytes).sum();
        for _ in 0..=rest / quota {
            now += period;
            policy.advance(now);
        }
        assert!(waiting.iter().all(|(priority, ticket, _)| !policy.is_waiting(*priority, *ticket)));
    }
}

#[test]
fn a_tuned_rate_follows_what_is_asked_for() {
    let mut policy = Policy::new(1_000_000, 1000, 10, true, 0);
    assert_eq!(policy.rate(), 500_000);
    let mut now = 0;
    for _ in 0..20_000 {
        now += 1000;
        policy.request(now, IoPriority::Mid, 2000);
    }
    assert_eq!(policy.rate(), 1_000_000, "always too little: up to the limit");
    let mut policy = Policy::new(1_000_000, 1000, 10, true, 0);
    policy.advance(200_000);
    assert_eq!(policy.rate(), 50_000, "nobody asks: a twentieth");
    policy.set_limit(100_000);
    assert_eq!(policy.rate(), 50_000);
    policy.set_limit(10_000);
    assert_eq!(policy.rate(), 10_000);
}

struct Hands(AtomicU64);

impl Clock for Hands {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn unix_seconds(&self) -> u64 {
        self.now_us() / 1_000_000
    }

    fn sleep(&self, duration: Duration) {
        self.0.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
    }
}

#[test]
fn a_limiter_makes_its_callers_wait_and_counts() {
    let clock = Arc::new(Hands(AtomicU64::new(5)));
    let limiter = RateLimiter::with_clock(RateLimiterOptions::new(1 << 20), clock.clone()).unwrap();
    let waited: u64 = (0..64).map(|_| limiter.request(64 << 10, IoPriority::High, || false)).sum();
    assert!((3_700_000..=4_000_000).contains(&waited), "4 MiB took {waited} us");
    assert_eq!(
        (limiter.bytes_through(IoPriority::High), limiter.requests(IoPriority::High)),
        (4 << 20, 64)
    );
    assert_eq!((limiter.waited_us(), limiter.bytes_through(IoPriority::Low)), (waited, 0));

    limiter.set_bytes_per_second(1 << 30).unwrap();
    limiter.request(1 << 20, IoPriority::Mid, || false);
    assert!(limiter.request(64 << 20, IoPriority::Mid, || false) <= 200_000);
    assert_eq!(limiter.request(1 << 40, IoPriority::Mid, || true), 0, "nothing to wait for");
    assert!(limiter.set_bytes_per_second(0).is_err());
    for refill_period_us in [0, 3_600_000_001, u64::MAX] {
        assert!(
            RateLimiter::new(RateLimiterOptions { refill_period_us, ..RateLimiterOptions::new(1) })
                .is_err()
        );
    }
}
