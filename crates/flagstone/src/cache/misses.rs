//! What the misses of a cache cost: the time from the lookup that found nothing until the block is
//! there.

use std::sync::Arc;

use crate::base::Counters;
use crate::base::sync::{AtomicU64, Ordering};
use crate::env::Clock;

/// Microseconds from one look at the costs to the next.
const LOOK_EVERY_US: u64 = 250_000;

/// The costs of all misses so far.
pub struct Misses {
    clock: Arc<dyn Clock>,
    spent_us: Counters<1>,
    /// When the next look is due.
    due_us: AtomicU64,
    look: Box<dyn Fn(u64) + Send + Sync>,
}

impl Misses {
    /// `look` is called with the time, in microseconds, by a thread whose miss is over: at most
    /// four times a second, and with no lock of the cache held.
    pub fn new(clock: Arc<dyn Clock>, look: impl Fn(u64) + Send + Sync + 'static) -> Self {
        let due_us = AtomicU64::new(clock.now_us().saturating_add(LOOK_EVERY_US));
        Self { clock, spent_us: Counters::default(), due_us, look: Box::new(look) }
    }

    /// Microseconds of all threads together.
    pub fn spent_us(&self) -> u64 {
        self.spent_us.get(0)
    }

    /// A thread has missed a block; it has it when what is returned is dropped.
    pub(super) fn begin(&self) -> Miss<'_> {
        Miss { misses: self, since_us: self.clock.now_us() }
    }
}

/// A block that is being fetched.
pub struct Miss<'a> {
    misses: &'a Misses,
    since_us: u64,
}

impl Drop for Miss<'_> {
    fn drop(&mut self) {
        let Misses { clock, spent_us, due_us, look } = self.misses;
        let now_us = clock.now_us();
        spent_us.add(0, now_us.saturating_sub(self.since_us));
        let due = due_us.load(Ordering::Relaxed);
        let next = now_us.saturating_add(LOOK_EVERY_US);
        if now_us >= due
            && due_us.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            look(now_us);
        }
    }
}
