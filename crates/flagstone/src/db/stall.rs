//! Holding writers up when flushes and compactions fall behind.
//!
//! The condition of each family is worked out when its tree changes; a writer looks at one atomic word.

use std::time::Duration;

use crate::base::sync::{AtomicI64, AtomicU64, Mutex, Ordering};
use crate::options::StallCondition;

const NORMAL: u64 = 0;
const STOPPED: u64 = u64::MAX;

/// What the worst-off family asks of writers: nothing, a rate, or to wait.
#[derive(Default)]
pub(super) struct WriteControl {
    /// `NORMAL`, `STOPPED`, or the rate in bytes per second.
    rate: AtomicU64,
    /// Bytes that have been charged and not been written yet: while there are enough, nobody looks at the clock.
    prepaid: AtomicI64,
    /// When the next delayed byte may be charged, in microseconds of the clock.
    next_us: Mutex<u64>,
}

/// A delayed writer is charged for what may be written in so many microseconds at a time. Sleeping for less costs more than
/// it smooths.
const QUANTUM_US: u64 = 1_000;

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

    pub(super) fn condition(&self) -> StallCondition {
        match self.rate.load(Ordering::Acquire) {
            NORMAL => StallCondition::Normal,
            STOPPED => StallCondition::Stopped,
            _ => StallCondition::Delayed,
        }
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

    /// Whether a write of `bytes` need not look at the clock: nobody is held up, or it is paid for. Where it is delayed and
    /// not paid for, [`WriteControl::charge`] follows.
    #[inline]
    pub(super) fn passes(&self, bytes: u64) -> bool {
        match self.rate.load(Ordering::Acquire) {
            NORMAL => true,
            STOPPED => false,
            _ => {
                let bytes = signed(bytes);
                let is_paid = self.prepaid.fetch_sub(bytes, Ordering::Relaxed) >= bytes;
                if !is_paid {
                    self.prepaid.fetch_add(bytes, Ordering::Relaxed);
                }
                is_paid
            }
        }
    }

    /// Charges a write of `bytes` at `now_us`, and a little of those that follow.
    pub(super) fn charge(&self, bytes: u64, now_us: u64) -> Verdict {
        let rate = self.rate.load(Ordering::Acquire);
        match rate {
            NORMAL => Verdict::Pass,
            STOPPED => Verdict::Stop,
            _ => {
                let mut next = self.next_us.lock();
                let start = (*next).max(now_us);
                let quantum = rate.saturating_mul(QUANTUM_US) / 1_000_000;
                let paid = bytes.saturating_add(quantum);
                *next = start.saturating_add(paid.saturating_mul(1_000_000) / rate);
                self.prepaid.fetch_add(signed(quantum), Ordering::Relaxed);
                match start - now_us {
                    0..QUANTUM_US => Verdict::Pass,
                    wait => Verdict::Delay(Duration::from_micros(wait.min(1_000_000))),
                }
            }
        }
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
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
        assert_eq!(control.charge(1, 0), Verdict::Delay(Duration::from_millis(501)));
        assert_eq!(control.charge(1, 600_000), Verdict::Pass, "time heals");
        control.set_stopped();
        assert_eq!(control.charge(1, 0), Verdict::Stop);
        assert!(!control.passes(1));
        control.set_normal();
        assert!(control.is_normal() && control.passes(u64::MAX));
    }

    #[test]
    fn nobody_looks_at_the_clock_for_what_is_paid() {
        let control = WriteControl::default();
        control.set_delayed(1_000_000);
        assert!(!control.passes(1), "nothing is paid yet");
        assert_eq!(control.charge(100, 0), Verdict::Pass);
        for _ in 0..10 {
            assert!(control.passes(100));
        }
        assert!(!control.passes(100), "a millisecond's worth");
        assert_eq!(control.charge(100, 0), Verdict::Delay(Duration::from_micros(1_100)));
        assert!(!control.passes(1_001) && control.passes(1_000), "what was refused was not taken off");
    }
}
