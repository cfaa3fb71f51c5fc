//! Holding writers up when flushes and compactions fall behind.
//!
//! The condition of each family is worked out when its tree changes; a writer looks at one atomic word.

use std::time::Duration;

use crate::base::sync::{AtomicI64, AtomicU64, Mutex, Ordering};
use crate::compaction::pick::Room;
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
    account: Mutex<Account>,
}

/// What delayed writers are charged to.
#[derive(Default)]
struct Account {
    /// Bytes that were charged ahead. They are paid off at the rate of the day: were they counted as a time, writers would wait
    /// out what they were charged at a low rate, one second each, long after it has risen.
    owed: f64,
    /// When that was worked out, in microseconds of the clock.
    at_us: u64,
    /// The room that they fill, if they have to brake before its end.
    room: Option<Room>,
}

impl Account {
    /// Owes `bytes` more; how many microseconds of `rate` it takes to pay off what was owed before.
    fn charge(&mut self, bytes: u64, rate: u64, now_us: u64) -> u64 {
        let per_us = rate as f64 / 1_000_000.0;
        let paid = now_us.saturating_sub(self.at_us) as f64 * per_us;
        let owed = (self.owed - paid).max(0.0);
        self.owed = owed + bytes as f64;
        self.at_us = self.at_us.max(now_us);
        (owed / per_us).round() as u64
    }
}

/// A delayed writer is charged for what may be written in so many microseconds at a time. Sleeping for less costs more than
/// it smooths, and one write in a thousand should not wait even where writers wait half of their time.
const QUANTUM_US: u64 = 2_000;

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

    /// `bytes_per_second` is at least 1; less where `room` is about to be full.
    pub(super) fn set_delayed(&self, bytes_per_second: u64, room: Option<Room>) {
        self.account.lock().room = room;
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
                let mut account = self.account.lock();
                let rate = account.room.map_or(rate, |room| room.brake(rate)).max(1);
                let quantum = rate.saturating_mul(QUANTUM_US) / 1_000_000;
                let paid = bytes.saturating_add(quantum);
                let wait = account.charge(paid, rate, now_us);
                if let Some(room) = &mut account.room {
                    room.left = room.left.saturating_sub(paid);
                }
                self.prepaid.fetch_add(signed(quantum), Ordering::Relaxed);
                match wait {
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
        control.set_delayed(1_000_000, None);
        assert_eq!(control.charge(500_000, 0), Verdict::Pass, "the first pays afterwards");
        assert_eq!(control.charge(1, 0), Verdict::Delay(Duration::from_millis(502)));
        assert_eq!(control.charge(1, 600_000), Verdict::Pass, "time heals");
        control.set_stopped();
        assert_eq!(control.charge(1, 0), Verdict::Stop);
        assert!(!control.passes(1));
        control.set_normal();
        assert!(control.is_normal() && control.passes(u64::MAX));
    }

    /// What was charged at the lowest rate was waited out at any: after one batch of a mebibyte, each write took a second for a
    /// minute, however fast flushes were again.
    #[test]
    fn what_is_owed_is_paid_off_at_the_rate_of_the_day() {
        let control = WriteControl::default();
        control.set_delayed(16 << 10, None);
        assert_eq!(control.charge(1 << 20, 0), Verdict::Pass, "the first pays afterwards");
        assert_eq!(control.charge(100, 0), Verdict::Delay(Duration::from_secs(1)));
        control.set_delayed(16 << 20, None);
        let delays = (0..5).map(|nth| match control.charge(100, 20_000 * nth) {
            Verdict::Delay(wait) => wait,
            _ => Duration::ZERO,
        });
        let all: Duration = delays.sum();
        assert!(all < Duration::from_millis(200), "{all:?}");
        assert_eq!(control.charge(100, 200_000), Verdict::Pass);
    }

    #[test]
    fn nobody_looks_at_the_clock_for_what_is_paid() {
        let control = WriteControl::default();
        control.set_delayed(1_000_000, None);
        assert!(!control.passes(1), "nothing is paid yet");
        assert_eq!(control.charge(100, 0), Verdict::Pass);
        for _ in 0..20 {
            assert!(control.passes(100));
        }
        assert!(!control.passes(100), "two milliseconds' worth");
        assert_eq!(control.charge(100, 0), Verdict::Delay(Duration::from_micros(2_100)));
        assert!(!control.passes(2_001) && control.passes(2_000), "what was refused was not taken off");
    }

    #[test]
    fn who_fills_the_last_memtable_brakes() {
        let control = WriteControl::default();
        control.set_delayed(1_000_000, Some(Room { left: 400_000, whole: 400_000 }));
        let mut now_us = 0;
        let mut filled_us = |bytes: u64| {
            let before_us = now_us;
            for _ in 0..bytes / 100 {
                if !control.passes(100)
                    && let Verdict::Delay(duration) = control.charge(100, now_us)
                {
                    now_us += duration.as_micros() as u64;
                }
            }
            now_us - before_us
        };
        assert!((290_000..310_000).contains(&filled_us(300_000)), "as fast as it may");
        assert!((65_000..75_000).contains(&filled_us(50_000)), "half of the last quarter");
        assert!((65_000..75_000).contains(&filled_us(25_000)));
        assert!((110_000..240_000).contains(&filled_us(20_000)));
        assert!((150_000..170_000).contains(&filled_us(10_000)), "at a sixteenth");
    }
}
