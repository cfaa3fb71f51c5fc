//! How fast holes are punched, and how long the disk is left alone where that is slow (see
//! [`super::punch`]).

use crate::base::sync::{AtomicU64, Ordering};

/// For so long a measured speed is taken for that of the holes to come: a device may have been
/// busy.
const HOLE_SPEED_LASTS_US: u64 = 10_000_000;

/// What holes pass for at least when the first are measured, in bytes a second: it takes several
/// that are slow.
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

    /// Notes that holes of so many bytes were punched between two times, and gave back so many.
    /// Measured over some pieces of work: a thread may have to wait for a processor meanwhile.
    pub(super) fn note(&self, asked: u64, given_back: u64, begun_us: u64, now_us: u64) {
        let us = now_us.saturating_sub(begun_us);
        if asked == 0 || us == 0 {
            return;
        }
        let in_a_second = |bytes: u64| {
            u64::try_from(u128::from(bytes) * 1_000_000 / u128::from(us)).unwrap_or(u64::MAX)
        };
        // How it was before, also where these took longer than that is taken for true.
        let followed = match (self.lately(begun_us), given_back) {
            // Where there were holes already, or nothing was ever written. Others take as long at
            // least: if these were no faster than what is known, it is so still. Else they say
            // nothing.
            (0, 0) => return,
            (known, 0) if in_a_second(asked) > known => return,
            (known, 0) => known / 4 * 3 + in_a_second(asked) / 4,
            // The first says little if it is slow.
            (0, _) => in_a_second(given_back).max(HOLE_SPEED_AT_FIRST),
            (known, _) => known / 4 * 3 + in_a_second(given_back) / 4,
        };
        self.bytes_per_second.store(followed.max(1), Ordering::Relaxed);
        self.measured_at_us.store(now_us, Ordering::Relaxed);
    }

    /// Slow holes were punched, which took so long.
    pub(in crate::db) fn rest(&self, now_us: u64, took_us: u64) {
        let until_us = now_us.saturating_add(took_us.saturating_mul(REST));
        self.rests_until_us.fetch_max(until_us, Ordering::Relaxed);
    }

    /// Whether slow holes may go on.
    pub(in crate::db) fn has_rested(&self, now_us: u64) -> bool {
        self.rests_until_us.load(Ordering::Relaxed) <= now_us
    }
}

#[cfg(test)]
mod tests;
