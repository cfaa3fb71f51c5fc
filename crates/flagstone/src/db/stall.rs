//! Holding writers up when flushes and compactions fall behind.
//!
//! The condition of each family is worked out when its tree changes; a writer looks at one atomic word.

use std::time::Duration;

use crate::base::sync::{AtomicU64, Mutex, Ordering};

const NORMAL: u64 = 0;
const STOPPED: u64 = u64::MAX;

/// What the worst-off family asks of writers: nothing, a rate, or to wait.
#[derive(Default)]
pub(super) struct WriteControl {
    /// `NORMAL`, `STOPPED`, or the rate in bytes per second.
    rate: AtomicU64,
    /// When the next delayed byte may pass, in microseconds of the clock.
    next_us: Mutex<u64>,
}

/// The verdict for one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Go on.
    Pass,
    /// Go on after this long.
    Delay(Duration),
    /// Wait until the tree changes.
    Stop,
}

impl WriteControl {
    pub(super) fn set_normal(&self) {
        self.rate.store(NORMAL, Ordering::Release);
    }

    pub(super) fn set_stopped(&self) {
        self.rate.store(STOPPED, Ordering::Release);
    }

    /// `bytes_per_second` is at least 1.
    pub(super) fn set_delayed(&self, bytes_per_second: u64) {
        self.rate.store(bytes_per_second.clamp(1, STOPPED - 1), Ordering::Release);
    }

    /// Whether writers need not look any further.
    #[inline]
    pub(super) fn is_normal(&self) -> bool {
        self.rate.load(Ordering::Acquire) == NORMAL
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.rate.load(Ordering::Acquire) == STOPPED
    }

    /// The rate in bytes per second that writers are held to; 0 when they are not delayed.
    pub(super) fn delayed_rate(&self) -> u64 {
        match self.rate.load(Ordering::Acquire) {
            STOPPED => 0,
            rate => rate,
        }
    }

    /// Charges a write of `bytes` at `now_us`.
    pub(super) fn charge(&self, bytes: u64, now_us: u64) -> Verdict {
        let rate = self.rate.load(Ordering::Acquire);
        match rate {
            NORMAL => Verdict::Pass,
            STOPPED => Verdict::Stop,
            _ => {
                let mut next = self.next_us.lock();
                let start = (*next).max(now_us);
                *next = start.saturating_add(bytes.saturating_mul(1_000_000) / rate);
                // Sleeping for less than a millisecond costs more than it smooths.
                match start - now_us {
                    0..1_000 => Verdict::Pass,
                    wait => Verdict::Delay(Duration::from_micros(wait.min(1_000_000))),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delayed_writers_keep_to_the_rate() {
        let control = WriteControl::default();
        assert_eq!(control.charge(1 << 20, 0), Verdict::Pass);
        control.set_delayed(1_000_000);
        assert_eq!(control.charge(500_000, 0), Verdict::Pass, "the first pays afterwards");
        assert_eq!(control.charge(1, 0), Verdict::Delay(Duration::from_millis(500)));
        assert_eq!(control.charge(1, 600_000), Verdict::Pass, "time heals");
        control.set_stopped();
        assert_eq!(control.charge(1, 0), Verdict::Stop);
        control.set_normal();
        assert!(control.is_normal());
    }
}
