//! Long work that yields to other threads, as long as no writer sleeps until it is done.
//!
//! A thread may lower its priority at any time, but needs privileges to raise it again. So the
//! thread that has the work keeps its own priority, and the work is done in turns:
//!
//! 1. While nobody sleeps ([`Sleepers`]), a low-priority thread takes the turn, and the other
//!    thread waits for it.
//! 2. When somebody falls asleep, the turn ends after the current piece of work. The other thread
//!    takes the next turn itself.
//! 3. When nobody has been asleep for [`PATIENCE`], continue with 1.
//!
//! **Invariants.** One of the two threads works at a time, and each finds what the other left. No
//! lock is held between two turns. A turn does at least one piece of work, so both kinds end.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::super::{Clock, LowPriority, Spawn};
use crate::base::sync::{AtomicUsize, Ordering};
use crate::base::{Result, Sometimes};

/// For so long nobody must have slept before work gives way again: who is held up hard sleeps
/// often, and not without a break.
const PATIENCE: Duration = Duration::from_millis(50);

/// Pieces of work between two looks at who sleeps and what time it is, while work does not give
/// way.
const LOOK_INTERVAL: u32 = 16;

/// How many threads sleep until work in the background has come further.
#[derive(Debug, Default)]
pub(crate) struct Sleepers(AtomicUsize);

/// One of [`Sleepers`].
pub(crate) struct Asleep<'a>(&'a Sleepers);

impl Sleepers {
    /// The caller is asleep for as long as it has this.
    pub(crate) fn enter(&self) -> Asleep<'_> {
        self.0.fetch_add(1, Ordering::Release);
        Asleep(self)
    }

    pub(crate) fn are_any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

/// How long a turn takes.
pub(crate) enum Turn<'a> {
    /// Until everything is done.
    Only,
    /// Of a thread that has given way: until somebody sleeps.
    Gentle(&'a Sleepers),
    /// Of one that has not: until nobody does, and has for a while.
    Prompt(Prompt<'a>),
}

pub(crate) struct Prompt<'a> {
    sleepers: &'a Sleepers,
    clock: &'a dyn Clock,
    /// Pieces of work since the last look.
    pieces: u32,
    /// When somebody was asleep last, in microseconds of the clock.
    slept_us: u64,
}

impl<'a> Turn<'a> {
    fn prompt(sleepers: &'a Sleepers, clock: &'a dyn Clock) -> Self {
        Turn::Prompt(Prompt { sleepers, clock, pieces: 0, slept_us: clock.now_us() })
    }

    /// Whether it is over, after a piece of work.
    #[inline]
    pub(crate) fn is_over(&mut self) -> bool {
        match self {
            Turn::Only => false,
            Turn::Gentle(sleepers) => sleepers.are_any(),
            Turn::Prompt(prompt) => prompt.is_over(),
        }
    }
}

impl Prompt<'_> {
    fn is_over(&mut self) -> bool {
        self.pieces += 1;
        if self.pieces < LOOK_INTERVAL {
            return false;
        }
        self.pieces = 0;
        let now_us = self.clock.now_us();
        if self.sleepers.are_any() {
            self.slept_us = now_us;
        }
        now_us.saturating_sub(self.slept_us) >= PATIENCE.as_micros() as u64
    }
}

/// How work is done that gives way.
pub(crate) struct GivingWay<'a> {
    pub(super) spawner: &'a dyn Spawn,
    pub(super) clock: &'a dyn Clock,
    /// How far.
    pub(super) priority: LowPriority,
    pub(super) sleepers: &'a Sleepers,
}

impl GivingWay<'_> {
    /// Has `work` take turns until it says that all is done, or fails; how many of them were
    /// prompt. It panics as the work does.
    ///
    /// # Errors
    /// Those of the work.
    pub(crate) fn take_turns(
        &self,
        mut work: impl FnMut(&mut Turn<'_>) -> Result<bool> + Send,
    ) -> Result<u64> {
        if self.priority == LowPriority::NONE {
            while !work(&mut Turn::Only)? {}
            return Ok(0);
        }
        let mut prompt = 0;
        loop {
            if !self.sleepers.are_any() {
                if self.take_gentle_turn(&mut work)? {
                    return Ok(prompt);
                }
                Sometimes::WorkHurried.reached();
            }
            prompt += 1;
            if work(&mut Turn::prompt(self.sleepers, self.clock))? {
                return Ok(prompt);
            }
        }
    }

    fn take_gentle_turn(
        &self,
        work: &mut (impl FnMut(&mut Turn<'_>) -> Result<bool> + Send),
    ) -> Result<bool> {
        let mut outcome = None;
        let mut take = || {
            outcome =
                Some(catch_unwind(AssertUnwindSafe(|| work(&mut Turn::Gentle(self.sleepers)))));
        };
        self.spawner.run_giving_way("flagstone-gentle", self.priority, Box::new(&mut take));
        outcome
            .expect("it is run before the call returns")
            .unwrap_or_else(|panic| resume_unwind(panic))
    }
}
