//! Admission of writers: what cannot be written is refused, and writers are held up when
//! flushes and compactions fall behind.
//!
//! The condition of each family is worked out when its tree changes, and what the worst-off one
//! asks stands in a [`WriteControl`]; here writers wait for it.

use std::sync::Arc;
use std::time::Duration;

use crate::base::perf::{self, PerfMetric};
use crate::base::sync::Condvar;
use crate::base::{Error, Result, Sometimes};
use crate::db::background::Background;
use crate::db::context::Context;
use crate::db::events::is_telling;
use crate::db::statistics::Ticker;
use crate::db::tree::{Below, Tree};
use crate::db::write_control::{Charged, Verdict, WriteControl};
use crate::options::WriteOptions;

/// After so long a writer who is delayed looks whether writers may go faster by now.
const DELAY_STEP: Duration = Duration::from_millis(5);

/// Says when a write may begin.
pub(super) struct Admission {
    context: Arc<Context>,
    tree: Arc<Tree>,
    background: Arc<Background>,
    /// How fast writers may be.
    control: Arc<WriteControl>,
    /// Signalled when writers need not wait for tables that are ingested.
    pub(super) writes_go_on: Condvar,
}

impl Admission {
    pub(super) fn new(below: &Below, tree: &Arc<Tree>) -> Self {
        Self {
            context: below.context.clone(),
            tree: tree.clone(),
            background: below.background.clone(),
            control: below.control.clone(),
            writes_go_on: Condvar::new(),
        }
    }

    /// How fast writers may be, and how long they were held up.
    pub(super) fn control(&self) -> &WriteControl {
        &self.control
    }

    /// Refuses what cannot be written, and waits while the tree is behind.
    pub(super) fn admit(&self, options: &WriteOptions, bytes: u64) -> Result<()> {
        if options.sync && options.disable_wal {
            return Err(Error::invalid_argument(
                "sync and disable_wal cannot be set together: without the WAL there is nothing to sync",
            ));
        }
        if !matches!(options.protection_bytes_per_key, 0 | 8) {
            return Err(Error::invalid_argument("protection_bytes_per_key must be 0 or 8"));
        }
        self.context.check_writable()?;
        if options.low_pri && options.no_slowdown {
            self.check_gives_way()?;
        }
        let is_paid = self.control.passes(bytes);
        if !is_paid || options.low_pri {
            self.wait_for_room(options, bytes, is_paid)?;
        }
        self.background.before_limited_write(options, bytes);
        Ok(())
    }

    /// Waits for so long, or until what was charged before is paid off, as writers may go faster
    /// again. What they wait for is hurried from the moment on that they are held up hard.
    fn sit_out(&self, duration: Duration, charged: Charged, is_hard: bool) {
        let sleep_for_them = || self.background.sleep_for_them();
        let mut asleep = is_hard.then(sleep_for_them);
        let mut left = duration;
        while !left.is_zero() {
            let step = left.min(DELAY_STEP);
            self.context.env.clock.sleep(step);
            let at_rate = self.control.wait_left(charged, self.context.env.clock.now_us());
            left = (left - step).min(at_rate);
            asleep = asleep.or_else(|| self.control.is_hard().then(sleep_for_them));
        }
    }

    /// Refuses a write of low priority that must not give way to compactions. Before it is paid
    /// for.
    #[cold]
    fn check_gives_way(&self) -> Result<()> {
        if self.tree.compactions_are_behind() {
            Err(Error::incomplete(
                "the write would have to wait for compactions (low_pri), but no_slowdown is set",
            ))
        } else {
            Ok(())
        }
    }

    /// Holds the writer up while the tree is behind, unless the write `is_paid` for, and who has
    /// time while compactions are.
    #[cold]
    fn wait_for_room(&self, options: &WriteOptions, bytes: u64, is_paid: bool) -> Result<()> {
        let _time = perf::time(PerfMetric::WriteDelayTime);
        let start = self.context.env.clock.now_us();
        if !is_paid {
            self.wait_until_paid(options, bytes)?;
        }
        if options.low_pri && !options.no_slowdown && self.tree.compactions_are_behind() {
            self.context.env.clock.sleep(Duration::from_millis(1));
        }
        self.context.statistics.add(Ticker::StallMicros, self.context.env.clock.now_us() - start);
        Ok(())
    }

    fn wait_until_paid(&self, options: &WriteOptions, bytes: u64) -> Result<()> {
        loop {
            if self.control.wants_look() {
                self.tree.measure_space();
            }
            match self.control.charge(bytes, self.context.env.clock.now_us(), !options.no_slowdown)
            {
                Verdict::Pass => return Ok(()),
                // The next flush may be for want of the thread that is with the listener who writes
                // this.
                _ if is_telling() => return Ok(()),
                _ if options.no_slowdown => {
                    return Err(Error::incomplete(
                        "the write would have to wait, but no_slowdown is set",
                    ));
                }
                Verdict::Delay { wait, charged, is_hard } => {
                    Sometimes::WriteDelayed.reached();
                    let _held_up = self.control.waits.begin(&*self.context.env.clock);
                    self.sit_out(wait, charged, is_hard);
                    return Ok(());
                }
                Verdict::Stop => {
                    let _held_up = self.control.waits.begin(&*self.context.env.clock);
                    let _asleep = self.background.sleep_for_them();
                    Sometimes::WriteStopped.reached();
                    self.tree.wait_while_stopped()?;
                }
            }
            self.context.check_writable()?;
        }
    }
}

#[cfg(test)]
mod tests;
