//! Who may read or write how much, and when: a pure state machine that is passed the time.
//!
//! 1. Time is cut into periods. Each adds the bytes that the rate allows; unused bytes are kept for
//!    one period.
//! 2. A request takes available bytes. If they are not enough, it queues for the rest, behind other
//!    requests of its priority.
//! 3. When a period adds bytes, the queues are served, the highest priority first. In one of
//!    `fairness` periods the queues below the user's are served in reverse order, so that the
//!    lowest never starves.
//! 4. When self-tuned, the rate moves between a twentieth of its limit and the limit. Every 100
//!    periods it falls by 5% if fewer than half of them ran dry, rises by 5% if more than 90% did,
//!    and drops to its minimum if none did.
//!
//! In any time `t` at most `rate * t` plus two periods' bytes pass. The rules and numbers are
//! RocksDB's (util/rate_limiter.cc), except for the turns of fairness, which RocksDB draws at
//! random.

use std::collections::VecDeque;

/// How urgent a read or write is; RocksDB's `IOPriority`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoPriority {
    /// Compactions that only reclaim space in blob files.
    Low,
    /// Other compactions.
    Mid,
    /// Flushes.
    High,
    /// Requests that a caller waits for, and all flushes and compactions while writers are delayed
    /// or stopped.
    User,
}

impl IoPriority {
    /// All, the lowest first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Mid, Self::High, Self::User];
}

/// Who is served first where it is not the turn of the others.
const USUAL: [IoPriority; 4] =
    [IoPriority::User, IoPriority::High, IoPriority::Mid, IoPriority::Low];
const TURNED: [IoPriority; 4] =
    [IoPriority::User, IoPriority::Low, IoPriority::Mid, IoPriority::High];

/// Periods between two looks at the rate.
const TUNE_PERIODS: u64 = 100;
/// The rate's least part of its limit.
const RANGE: u64 = 20;

/// A request that waits.
pub(super) type Ticket = u64;

/// The state of a limiter.
#[derive(Debug)]
pub(super) struct Policy {
    /// Bytes a second: the limit, and what is allowed now.
    limit: u64,
    rate: u64,
    is_tuned: bool,
    period_us: u64,
    fairness: u64,
    available: u64,
    next_refill_us: u64,
    refills: u64,
    next_ticket: Ticket,
    /// By priority: who waits, and for how many bytes more.
    queues: [VecDeque<(Ticket, u64)>; 4],
    /// Periods since the rate was looked at, and those of them that ran dry.
    periods: u64,
    drained: u64,
}

impl Policy {
    pub(super) fn new(
        limit: u64,
        period_us: u64,
        fairness: u64,
        is_tuned: bool,
        now_us: u64,
    ) -> Self {
        Self {
            limit,
            rate: if is_tuned { (limit / 2).max(1) } else { limit },
            is_tuned,
            period_us: period_us.max(1),
            fairness: fairness.max(1),
            available: 0,
            next_refill_us: now_us,
            refills: 0,
            next_ticket: 0,
            queues: Default::default(),
            periods: 0,
            drained: 0,
        }
    }

    /// Bytes a second that are allowed now.
    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    /// The most bytes a second that are ever allowed.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Changes the limit.
    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.rate =
            if self.is_tuned { self.rate.clamp((limit / RANGE).max(1), limit) } else { limit };
        self.available = self.available.min(self.quota().saturating_mul(2));
    }

    fn quota(&self) -> u64 {
        let quota = u128::from(self.rate) * u128::from(self.period_us) / 1_000_000;
        u64::try_from(quota).unwrap_or(u64::MAX).max(1)
    }

    /// Asks for `bytes`; `None` if they are granted.
    pub(super) fn request(
        &mut self,
        now_us: u64,
        priority: IoPriority,
        bytes: u64,
    ) -> Option<Ticket> {
        self.advance(now_us);
        let at_once = bytes.min(self.available);
        self.available -= at_once;
        if at_once == bytes {
            return None;
        }
        self.drained += 1;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queues[priority as usize].push_back((ticket, bytes - at_once));
        Some(ticket)
    }

    /// Whether a request still waits.
    pub(super) fn is_waiting(&self, priority: IoPriority, ticket: Ticket) -> bool {
        self.queues[priority as usize].iter().any(|(waiting, _)| *waiting == ticket)
    }

    /// Takes a request back.
    pub(super) fn withdraw(&mut self, priority: IoPriority, ticket: Ticket) {
        self.queues[priority as usize].retain(|(waiting, _)| *waiting != ticket);
    }

    /// When the next bytes come, in microseconds of the clock.
    pub(super) fn next_refill_us(&self) -> u64 {
        self.next_refill_us
    }

    /// Lets time go on.
    pub(super) fn advance(&mut self, now_us: u64) {
        if now_us < self.next_refill_us {
            return;
        }
        let periods = (now_us - self.next_refill_us) / self.period_us + 1;
        self.next_refill_us += periods * self.period_us;
        self.tune(periods);
        let quota = self.quota();
        self.available = self
            .available
            .saturating_add(quota.saturating_mul(periods))
            .min(quota.saturating_mul(2));
        self.refills += 1;
        self.serve();
    }

    fn serve(&mut self) {
        let order = if self.refills.is_multiple_of(self.fairness) { TURNED } else { USUAL };
        for priority in order {
            let queue = &mut self.queues[priority as usize];
            while self.available > 0
                && let Some((_, missing)) = queue.front_mut()
            {
                let granted = self.available.min(*missing);
                self.available -= granted;
                *missing -= granted;
                if *missing == 0 {
                    queue.pop_front();
                }
            }
        }
        if self.queues.iter().any(|queue| !queue.is_empty()) {
            self.drained += 1;
        }
    }

    fn tune(&mut self, periods: u64) {
        self.periods += periods;
        if !self.is_tuned || self.periods < TUNE_PERIODS {
            return;
        }
        let percent = self.drained * 100 / self.periods;
        (self.periods, self.drained) = (0, 0);
        let least = (self.limit / RANGE).max(1);
        self.rate = match percent {
            0 => least,
            1..50 => (self.rate - self.rate / 20).max(least),
            91.. => self.rate.saturating_add((self.rate / 20).max(1)).min(self.limit),
            _ => self.rate,
        };
    }
}
