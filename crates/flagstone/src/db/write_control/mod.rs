//! What is asked of writers: nothing, a rate, or to wait. They pay for what they write, some of it
//! ahead, and look at one atomic word as long as it is paid for.

use std::time::Duration;

use crate::base::sync::{AtomicI64, AtomicU64, Mutex, Ordering};
use crate::compaction::pick::{Room, WriteHeadroom};
use crate::db::write_control::waits::Waits;
use crate::options::StallCondition;

const NORMAL: u64 = 0;
const STOPPED: u64 = u64::MAX;
/// As normal, but a limit may come near before anybody works out the condition again.
const WATCHED: u64 = u64::MAX - 1;

/// What the worst-off family asks of writers: nothing, a rate, or to wait.
#[derive(Default)]
pub(in crate::db) struct WriteControl {
    /// `NORMAL`, `WATCHED`, `STOPPED`, or the rate in bytes per second.
    rate: AtomicU64,
    /// Bytes that have been charged and not been written yet: while there are enough, nobody looks
    /// at the clock.
    prepaid: AtomicI64,
    account: Mutex<Account>,
    pub(in crate::db) waits: Waits,
}

/// What delayed writers are charged to.
#[derive(Default)]
struct Account {
    /// Bytes that were charged, and those of them that are paid off. That is done at the rate of
    /// the day: were they counted as a time, writers would wait out what they were charged at a low
    /// rate, one second each, long after it has risen.
    charged: f64,
    paid: f64,
    /// When that was worked out, in microseconds of the clock.
    at_us: u64,
    /// The room that they fill, if they have to brake before its end.
    room: Option<Room>,
    /// The space on the disk that they take, likewise.
    headroom: Option<WriteHeadroom>,
    /// Whether debts hold them up hard.
    is_hard: bool,
    /// Bytes that were charged since the headroom was measured.
    unmeasured: u64,
    /// Whether somebody was held up.
    has_braked: bool,
}

impl Account {
    /// How many microseconds of `rate` it takes until so many of the bytes charged are paid off.
    fn wait_us(&mut self, charged: f64, rate: u64, now_us: u64) -> u64 {
        let per_us = rate as f64 / 1_000_000.0;
        let paid = self.paid + now_us.saturating_sub(self.at_us) as f64 * per_us;
        self.paid = paid.min(self.charged);
        self.at_us = self.at_us.max(now_us);
        ((charged - self.paid).max(0.0) / per_us).round() as u64
    }

    /// What is left of a rate where something is about to be full.
    fn brake(&self, rate: u64) -> u64 {
        let rate = self.room.map_or(rate, |room| room.brake(rate));
        self.headroom.map_or(rate, |headroom| rate.min(headroom.rate())).max(1)
    }

    /// Whether debts, or flushes that get no processor, have writers sleep most of their time at a
    /// rate that nothing has braked yet. That they brake for a flush does not count by itself:
    /// those who write as fast as they can do so nearly always, and readers have the time that is
    /// left.
    fn is_hard(&self, rate: u64) -> bool {
        self.is_hard
            || self.room.is_some_and(|room| room.is_hard(rate))
            || self.headroom.is_some_and(|headroom| headroom.is_hard())
    }

    /// What is charged ahead at a rate.
    fn quantum(&self, rate: u64) -> u64 {
        let quantum = u128::from(rate) * u128::from(QUANTUM_US) / 1_000_000;
        let most = self.headroom.map_or(u64::MAX, |headroom| headroom.piece());
        u64::try_from(quantum).unwrap_or(u64::MAX).min(most)
    }
}

/// A delayed writer is charged for what may be written in so many microseconds at a time. Sleeping
/// for less costs more than it smooths, and one write in a thousand should not wait even where
/// writers wait half of their time.
const QUANTUM_US: u64 = 2_000;

/// How often those who brake before the end of a headroom have it measured, as it is perhaps longer
/// than what was charged tells.
const MEASURED: u64 = 16;

/// The verdict for one write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::db) enum Verdict {
    /// Go on.
    Pass,
    /// Go on after this long, or as soon as [`WriteControl::wait_left`] says so for what was
    /// charged before. Hard, if writers are held to a small part of what they achieve.
    Delay { wait: Duration, charged: Charged, is_hard: bool },
    /// Wait until the tree changes.
    Stop,
}

/// What had been charged when a writer came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::db) struct Charged(f64);

impl WriteControl {
    pub(in crate::db) fn set_normal(&self) {
        self.rate.store(NORMAL, Ordering::Release);
    }

    pub(in crate::db) fn set_stopped(&self, now_us: u64) {
        if !self.is_stopped() {
            self.waits.note_stop(now_us);
        }
        self.rate.store(STOPPED, Ordering::Release);
    }

    /// `bytes_per_second` is at least 1; less where `room` is about to be full, or the end of
    /// `headroom` is near. `is_hard` if debts hold writers to a small part of what they achieve.
    pub(in crate::db) fn set_delayed(
        &self,
        bytes_per_second: u64,
        room: Option<Room>,
        headroom: Option<WriteHeadroom>,
        is_hard: bool,
    ) {
        self.set(bytes_per_second.clamp(1, WATCHED - 1), room, headroom, is_hard);
    }

    /// Nobody is delayed but who comes near the end of `headroom`.
    pub(in crate::db) fn set_watched(&self, headroom: WriteHeadroom) {
        self.set(WATCHED, None, Some(headroom), false);
    }

    fn set(&self, rate: u64, room: Option<Room>, headroom: Option<WriteHeadroom>, is_hard: bool) {
        let mut account = self.account.lock();
        (account.room, account.headroom, account.unmeasured) = (room, headroom, 0);
        account.is_hard = is_hard;
        // What was paid for at a higher rate is not to be had at a lower one.
        let quantum = signed(account.quantum(account.brake(rate)));
        let too_much = self.prepaid.load(Ordering::Relaxed) - quantum;
        if too_much > 0 {
            self.prepaid.fetch_sub(too_much, Ordering::Relaxed);
            account.paid = (account.paid + too_much as f64).min(account.charged);
        }
        // It will be written without being charged again.
        let prepaid = self.prepaid.load(Ordering::Relaxed).max(0).unsigned_abs();
        if let Some(headroom) = &mut account.headroom {
            headroom.left = headroom.left.saturating_sub(prepaid);
        }
        self.rate.store(rate, Ordering::Release);
    }

    /// Whether the caller is to have the tree looked at before it is charged: writers come to the
    /// end of a headroom, and not all that is charged takes up what it measures. Values that
    /// overwrite nothing do not, nor do those of other families.
    pub(in crate::db) fn wants_look(&self) -> bool {
        let mut account = self.account.lock();
        let is_due = |headroom: WriteHeadroom| {
            headroom.left < headroom.brakes_at
                && account.unmeasured >= (headroom.brakes_at / MEASURED).max(1)
        };
        let wants = account.headroom.is_some_and(is_due);
        if wants {
            // One of them looks.
            account.unmeasured = 0;
        }
        wants
    }

    /// Whether writers go on freely, and have since that was asked last.
    pub(in crate::db) fn lets_go_freely(&self) -> bool {
        let has_braked = std::mem::take(&mut self.account.lock().has_braked);
        self.condition() == StallCondition::Normal && !has_braked
    }

    pub(in crate::db) fn condition(&self) -> StallCondition {
        match self.rate.load(Ordering::Acquire) {
            NORMAL | WATCHED => StallCondition::Normal,
            STOPPED => StallCondition::Stopped,
            _ => StallCondition::Delayed,
        }
    }

    pub(in crate::db) fn is_stopped(&self) -> bool {
        self.rate.load(Ordering::Acquire) == STOPPED
    }

    /// For how many microseconds writers have been stopped; 0 where they are not.
    pub(in crate::db) fn stopped_us(&self, now_us: u64) -> u64 {
        if self.is_stopped() { self.waits.since_stop_us(now_us) } else { 0 }
    }

    /// For how many microseconds anybody was held up, and is.
    pub(in crate::db) fn held_up_us(&self, now_us: u64) -> u64 {
        self.waits.total_us(now_us)
    }

    /// The rate in bytes per second that writers are held to; 0 when they are not delayed.
    pub(in crate::db) fn delayed_rate(&self) -> u64 {
        match self.rate.load(Ordering::Acquire) {
            STOPPED | WATCHED => 0,
            rate => rate,
        }
    }

    /// Whether a write of `bytes` need not look at the clock: nobody is held up, or it is paid for.
    /// Where it is delayed and not paid for, [`WriteControl::charge`] follows.
    #[inline]
    pub(in crate::db) fn passes(&self, bytes: u64) -> bool {
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

    /// Charges a write of `bytes` at `now_us`, and a little of those that follow. Nobody pays for a
    /// write that would have to wait and must not.
    pub(in crate::db) fn charge(&self, bytes: u64, now_us: u64, may_wait: bool) -> Verdict {
        let rate = self.rate.load(Ordering::Acquire);
        match rate {
            NORMAL => Verdict::Pass,
            STOPPED => Verdict::Stop,
            _ => {
                let mut account = self.account.lock();
                let charged = Charged(account.charged);
                let is_hard = account.is_hard(rate);
                let rate = account.brake(rate);
                let wait = account.wait_us(charged.0, rate, now_us);
                let delay = || Verdict::Delay {
                    wait: Duration::from_micros(wait.min(1_000_000)),
                    charged,
                    is_hard,
                };
                if wait >= QUANTUM_US && !may_wait {
                    return delay();
                }
                let quantum = account.quantum(rate);
                let taken = bytes.saturating_add(quantum);
                account.charged += taken as f64;
                if let Some(room) = &mut account.room {
                    room.left = room.left.saturating_sub(taken);
                }
                if let Some(headroom) = &mut account.headroom {
                    headroom.left = headroom.left.saturating_sub(taken);
                }
                account.unmeasured = account.unmeasured.saturating_add(taken);
                self.prepaid.fetch_add(signed(quantum), Ordering::Relaxed);
                if wait < QUANTUM_US {
                    return Verdict::Pass;
                }
                account.has_braked = true;
                delay()
            }
        }
    }

    /// Whether who is delayed is held to a small part of what writers achieve.
    pub(in crate::db) fn is_hard(&self) -> bool {
        match self.rate.load(Ordering::Acquire) {
            NORMAL | STOPPED => false,
            rate => self.account.lock().is_hard(rate),
        }
    }

    /// How long somebody has to wait still who was delayed: the rate may have changed since.
    pub(in crate::db) fn wait_left(&self, charged: Charged, now_us: u64) -> Duration {
        let rate = self.rate.load(Ordering::Acquire);
        if matches!(rate, NORMAL | STOPPED) {
            return Duration::ZERO;
        }
        let mut account = self.account.lock();
        let rate = account.brake(rate);
        match account.wait_us(charged.0, rate, now_us) {
            0..QUANTUM_US => Duration::ZERO,
            wait => Duration::from_micros(wait),
        }
    }
}

#[cfg(test)]
impl WriteControl {
    /// Bytes that were ever charged.
    pub(in crate::db) fn charged(&self) -> f64 {
        self.account.lock().charged
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
pub(in crate::db) mod waits;
