//! Finding the previous visible key.
//!
//! Versions of a key come oldest first. All versions that the snapshot sees are taken in turn, and
//! each replaces or extends the result of the older ones. A key with very many versions is instead
//! read from its newest visible version.

use super::dead_run::DeadRun;
use super::{DbIter, ValueAt, type_of};
use crate::base::perf::{self, PerfMetric};
use crate::base::{InternalIterator, Result, Sometimes, ValueType};
use crate::iter::ValueResolver;
use crate::iter::tombstones::Towards;

/// Smaller values are copied sooner than their block is pinned.
const PINNED_MIN: usize = 256;

impl<I: InternalIterator, R: ValueResolver> DbIter<I, R> {
    /// Moves to the last visible key from the merged cursor's position back.
    pub(super) fn find_backward(&mut self) {
        self.valid = false;
        self.shown.on_entry = None;
        self.shown.value_at = ValueAt::Unknown;
        self.step.hidden = 0;
        match self.retreat() {
            Ok(found) => self.valid = found,
            Err(error) => self.fail(error),
        }
        self.note_shown();
    }

    fn retreat(&mut self) -> Result<bool> {
        let mut run = DeadRun::towards(Towards::Earlier);
        while self.inner.valid() {
            self.save_key();
            if self.leaves_prefix(&self.saved.key) {
                return Ok(false);
            }
            if let Some(lower) = &self.settings.bounds.lower
                && self.is_below_bounds(&self.saved.key)
            {
                // Not up to the saved key: tables that end before the bound were not looked at.
                self.report_run(&run, lower);
                return Ok(false);
            }
            let is_seen = match self.gather()? {
                Some(is_seen) => is_seen,
                None => {
                    Sometimes::IteratorSoughtNewest.reached();
                    self.pass_hidden()?;
                    self.gather_from_newest()?
                }
            };
            // A cursor that failed may have kept a newer version from us.
            if !self.inner.valid() {
                self.inner.status()?;
            }
            if self.versions.exist() && self.is_over_history() && !self.collect_back()? {
                continue;
            }
            if self.versions.exist() {
                self.report_run(&run, &self.saved.key);
                return Ok(true);
            }
            if is_seen {
                self.leaps_in_run(&mut run);
            }
        }
        self.inner.status()?;
        self.report_run(&run, &self.saved.key);
        Ok(false)
    }

    /// Takes the visible versions of the saved key from the oldest on, and leaves the key; whether
    /// there are any. Gives up when there are too many.
    fn gather(&mut self) -> Result<Option<bool>> {
        self.versions.start(false);
        let (mut taken, hidden_before) = (0, self.step.hidden);
        let mut is_seen = false;
        while self.inner.valid() && self.on_saved_key() {
            taken += 1;
            if taken > self.settings.max_sequential_skips {
                return Ok(None);
            }
            let mut covered = false;
            if self.is_visible() {
                is_seen = true;
                let value_type = type_of(&self.inner)?;
                let shows_deletions = self.is_over_history();
                match value_type {
                    ValueType::Deletion
                    | ValueType::SingleDeletion
                    | ValueType::DeletionWithTimestamp
                        if shows_deletions && !self.is_covered(Towards::Earlier)? =>
                    {
                        self.show_deletion()?;
                    }
                    ValueType::Deletion
                    | ValueType::SingleDeletion
                    | ValueType::DeletionWithTimestamp => {
                        perf::count(PerfMetric::InternalDeleteSkippedCount, 1);
                        self.versions.delete();
                    }
                    _ if self.is_covered(Towards::Earlier)? => {
                        covered = true;
                        perf::count(PerfMetric::InternalKeySkippedCount, 1);
                        self.versions.delete();
                    }
                    ValueType::Merge => {
                        perf::count(PerfMetric::InternalMergeCount, 1);
                        self.note_version();
                        self.versions.push_operand(self.inner.value());
                    }
                    _ => {
                        perf::count(PerfMetric::InternalKeySkippedCount, 1);
                        self.take_base(value_type);
                        self.note_version();
                    }
                }
            } else {
                perf::count(PerfMetric::InternalRecentSkippedCount, 1);
            }
            // All but what the value is made of as it stands.
            self.count_hidden(hidden_before + taken as u64 - self.versions.count())?;
            self.inner.prev();
            if covered && self.inner.valid() {
                self.leap_over_covered(Towards::Earlier);
            }
        }
        Ok(Some(is_seen))
    }

    /// Takes a value that hides the versions before it.
    #[inline]
    fn take_base(&mut self, value_type: ValueType) {
        let is_large = self.inner.value().len() >= PINNED_MIN;
        match is_large.then(|| self.inner.pin_value()).flatten() {
            Some(value) => self.versions.pin_base(value_type, value),
            None => self.versions.set_base(value_type, self.inner.value()),
        }
    }

    /// Seeks the newest visible version of the saved key, takes what makes up its value, and leaves
    /// the key; whether there is one.
    pub(super) fn gather_from_newest(&mut self) -> Result<bool> {
        self.aim_at_newest_of_saved_key();
        self.inner.seek(self.seek_key.as_key());
        // The last question may have been about a later key in this same direction.
        self.tombstones.reset();
        let is_seen = self.inner.valid() && self.on_saved_key();
        self.collect()?;
        if !self.inner.valid() {
            self.inner.status()?;
        }
        self.seek_inner_before_saved_key();
        Ok(is_seen)
    }
}
