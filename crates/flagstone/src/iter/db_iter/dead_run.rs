//! Runs of deleted keys. Scans in both directions report them to
//! [`DeadRanges`](crate::iter::DeadRanges) and leap over known ones.

use super::{DbIter, DbIterSettings};
use crate::base::{InternalIterator, MAX_SEQUENCE_NUMBER, Sometimes, ValueType};
use crate::iter::ValueResolver;
use crate::iter::tombstones::Towards;

/// After so many deleted keys in a row a scan asks whether the end of their run is known.
const SHORT_RUN: usize = 4;
/// After so many times `max_sequential_skips` it reports the run, and asks again.
const LONG_RUN: usize = 4;

/// The deleted keys that one step has passed in a row.
pub(super) struct DeadRun {
    towards: Towards,
    deleted: usize,
    asks_at: usize,
}

impl DeadRun {
    pub(super) fn towards(towards: Towards) -> Self {
        Self { towards, deleted: 0, asks_at: SHORT_RUN }
    }
}

impl<I: InternalIterator, R: ValueResolver> DbIter<I, R> {
    /// How many deleted keys in a row are worth a report.
    fn long_run(&self) -> usize {
        self.settings.max_sequential_skips.max(1).saturating_mul(LONG_RUN)
    }

    /// Counts the saved key, which is deleted. If it is time to, leaps from there to the end of the
    /// run, if one is known; whether it did.
    #[inline]
    pub(super) fn leaps_in_run(&mut self, run: &mut DeadRun) -> bool {
        run.deleted += 1;
        if run.deleted < run.asks_at {
            return false;
        }
        let is_start = run.deleted == SHORT_RUN;
        run.asks_at = run.deleted.saturating_add(self.long_run());
        self.leap_over_dead(run.towards, is_start)
    }

    #[cold]
    fn leap_over_dead(&mut self, towards: Towards, is_start: bool) -> bool {
        if is_start {
            self.step.run_start.clear();
            self.step.run_start.extend_from_slice(&self.saved.key);
        }
        let DbIterSettings { dead_ranges, past, snapshot, .. } = &self.settings;
        let Some(end) = dead_ranges
            .as_ref()
            .and_then(|ranges| ranges.end_of(&self.saved.key, towards, *past, *snapshot))
        else {
            return false;
        };
        match towards {
            Towards::Later => {
                Sometimes::IteratorLeaptOverDead.reached();
                self.seek_key.set(&end, MAX_SEQUENCE_NUMBER, ValueType::FOR_SEEK);
                self.inner.seek(self.seek_key.as_key());
            }
            Towards::Earlier => {
                Sometimes::IteratorLeaptBackOverDead.reached();
                self.seek_key.set(&end, 0, ValueType::Deletion);
                self.inner.seek_for_prev(self.seek_key.as_key());
            }
        }
        true
    }

    /// After a long run of deleted keys, tells where it was: up to, not including, the key shown,
    /// the bound, or else the last one of them. Up to there the scan must have looked at
    /// everything.
    #[inline]
    pub(super) fn report_run(&self, run: &DeadRun, end: &[u8]) {
        if run.deleted < SHORT_RUN || run.deleted < self.long_run() {
            return;
        }
        if let Some(ranges) = &self.settings.dead_ranges {
            ranges.report(
                &self.step.run_start,
                end,
                run.towards,
                self.settings.past,
                self.settings.snapshot,
            );
        }
    }
}
