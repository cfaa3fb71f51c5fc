//! How fast holes are punched, and how long the disk is left alone where that is slow (see [`super::punch`]).

use crate::base::sync::{AtomicU64, Ordering};

/// For so long a measured speed is taken for that of the holes to come: a device may have been busy.
const HOLE_SPEED_LASTS_US: u64 = 10_000_000;

/// What holes pass for at least when the first are measured, in bytes a second: it takes several that are slow.
const HOLE_SPEED_AT_FIRST: u64 = 1 << 30;

/// After slow holes the disk is left alone for so many times as long as they took.
const REST: u64 = 9;

/// How fast holes give bytes back, as far as any were punched lately, and when slow ones go on.
#[derive(Default)]
pub(in crate::db) struct HoleSpeed {
    bytes_per_second: AtomicU64,
    measured_at_us: AtomicU64,
    /// Of whatever family they are.
    rests_until_us: AtomicU64,
}

impl HoleSpeed {
    /// Bytes in a second; 0 if that is not known, or was too long ago to be true still.
    pub(in crate::db) fn lately(&self, now_us: u64) -> u64 {
        let age_us = now_us.saturating_sub(self.measured_at_us.load(Ordering::Relaxed));
        if age_us > HOLE_SPEED_LASTS_US { 0 } else { self.bytes_per_second.load(Ordering::Relaxed) }
    }

    /// Notes that so many bytes were given back between two times. Measured over some pieces of work: a thread may have to wait
    /// for a processor meanwhile.
    pub(super) fn note(&self, bytes: u64, begun_us: u64, now_us: u64) {
        let us = now_us.saturating_sub(begun_us);
        if bytes == 0 || us == 0 {
            return;
        }
        let measured = u64::try_from(u128::from(bytes) * 1_000_000 / u128::from(us)).unwrap_or(u64::MAX);
        let followed = match self.lately(now_us) {
            // The first says little if it is slow.
            0 => measured.max(HOLE_SPEED_AT_FIRST),
            known => known / 4 * 3 + measured / 4,
        };
        self.bytes_per_second.store(followed.max(1), Ordering::Relaxed);
        self.measured_at_us.store(now_us, Ordering::Relaxed);
    }

    /// Slow holes were punched, which took so long.
    pub(super) fn rest(&self, now_us: u64, took_us: u64) {
        let until_us = now_us.saturating_add(took_us.saturating_mul(REST));
        self.rests_until_us.fetch_max(until_us, Ordering::Relaxed);
    }

    /// Whether slow holes may go on.
    pub(super) fn has_rested(&self, now_us: u64) -> bool {
        self.rests_until_us.load(Ordering::Relaxed) <= now_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_holes_that_stay_slow_are_slow_and_not_for_ever() {
        const MB: u64 = 1_000_000;
        let speed = HoleSpeed::default();
        assert_eq!(speed.lately(0), 0, "nobody knows");
        let mut now = 1_000_000;
        for _ in 0..4 {
            speed.note(MB, now, now + 100_000);
            now += 100_000;
        }
        assert!(speed.lately(now) > 200 * MB, "a busy moment: {}", speed.lately(now));
        for _ in 0..20 {
            speed.note(MB, now, now + 100_000);
            now += 100_000;
        }
        assert!((10 * MB..20 * MB).contains(&speed.lately(now)), "{}", speed.lately(now));
        assert_eq!(speed.lately(now + 11_000_000), 0);
    }
}
