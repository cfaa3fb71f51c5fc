//! Finding the next visible key.
//!
//! Versions of a key come newest first. The first version that the snapshot sees decides: a value
//! is returned in place, a deletion hides the key, and an operand starts a collection of what it is
//! merged with. The other versions are skipped.

use super::dead_run::DeadRun;
use super::{DbIter, ValueAt, type_of};
use crate::base::perf::{self, PerfMetric};
use crate::base::{InternalIterator, Result, Sometimes, ValueType};
use crate::iter::ValueResolver;
use crate::iter::tombstones::Towards;

/// What is to be done with the entry on which the merged cursor stands.
enum Step {
    /// It decides that the key is shown; the cursor may have moved on, collecting operands.
    Show,
    /// The scan is over.
    Stop,
    /// The entry is invisible: on to the next.
    Pass,
    /// The entry hides its key.
    Hide { covered: bool },
}

/// The counter of an entry that is passed.
fn skipped(is_deletion: bool) -> PerfMetric {
    if is_deletion {
        PerfMetric::InternalDeleteSkippedCount
    } else {
        PerfMetric::InternalKeySkippedCount
    }
}

impl<I: InternalIterator, R: ValueResolver> DbIter<I, R> {
    /// With automatic prefixes: confines a seek to the prefix of its key, if all keys from there to
    /// the upper bound have that prefix.
    pub(super) fn confine_within_bounds(&mut self) {
        if let Some(extractor) = &self.settings.auto_prefix
            && let Some(upper) = &self.settings.bounds.upper
        {
            let target = self.seek_key.user_key();
            let is_confined = extractor.covers(target, upper, &self.settings.comparator);
            self.inner.confine(is_confined);
        }
    }

    /// Moves to the first visible key from the merged cursor's position on; if asked to, past the
    /// saved key.
    pub(super) fn find_forward(&mut self, past_saved_key: bool) {
        self.valid = false;
        self.shown.on_entry = None;
        self.shown.value_at = ValueAt::Unknown;
        self.step.hidden = 0;
        let _time = perf::time(PerfMetric::FindNextUserEntryTime);
        if let Err(error) = self.advance(past_saved_key) {
            self.fail(error);
        }
        self.note_shown();
    }

    /// Counts the bytes of what is shown.
    #[inline]
    pub(super) fn note_shown(&self) {
        if perf::counts() && self.valid {
            let value = self.found_value().map_or(0, <[u8]>::len);
            perf::count(PerfMetric::IterReadBytes, (self.key().len() + value) as u64);
        }
    }

    /// Counts the bytes of a value that was looked for behind its key.
    pub(super) fn note_found(&self) {
        if perf::counts() {
            let value = self.found_value().map_or(0, <[u8]>::len);
            perf::count(PerfMetric::IterReadBytes, value as u64);
        }
    }

    fn advance(&mut self, mut past_saved_key: bool) -> Result<()> {
        // Invisible versions of one key, passed in a row.
        let mut passed = 0;
        let mut run = DeadRun::towards(Towards::Later);
        while self.inner.valid() {
            if past_saved_key && self.on_saved_key() {
                perf::count(PerfMetric::InternalKeySkippedCount, 1);
                self.pass_hidden()?;
                passed += 1;
                if passed > self.settings.max_sequential_skips {
                    self.aim_behind_saved_key();
                    self.inner.seek(self.seek_key.as_key());
                    // In the key's last place there may be deletions, from tables that were
                    // ingested.
                    while self.inner.valid() && self.on_saved_key() {
                        self.inner.next();
                    }
                    passed = 0;
                } else {
                    self.inner.next();
                }
                continue;
            }
            match self.judge()? {
                Step::Show => {
                    self.valid = true;
                    self.report_run(&run, self.key());
                    return Ok(());
                }
                Step::Stop => {
                    self.report_run(&run, &self.saved.key);
                    return Ok(());
                }
                Step::Pass => {
                    perf::count(PerfMetric::InternalRecentSkippedCount, 1);
                    self.pass_hidden()?;
                    passed += 1;
                    if passed > self.settings.max_sequential_skips {
                        Sometimes::IteratorReseeked.reached();
                        self.aim_at_visible_version();
                        self.inner.seek(self.seek_key.as_key());
                        passed = 0;
                    } else {
                        self.inner.next();
                    }
                }
                Step::Hide { covered } => {
                    perf::count(skipped(!covered), 1);
                    self.pass_hidden()?;
                    self.save_key();
                    if self.leaps_in_run(&mut run) {
                        past_saved_key = false;
                        continue;
                    }
                    past_saved_key = true;
                    passed = 0;
                    self.inner.next();
                    if covered && self.inner.valid() {
                        self.leap_over_covered(Towards::Later);
                    }
                }
            }
        }
        if self.inner.status().is_ok() {
            self.report_run(&run, &self.saved.key);
        }
        Ok(())
    }

    #[inline]
    fn judge(&mut self) -> Result<Step> {
        if self.is_limited() {
            let user_key = self.inner.key().user_key();
            if self.is_above_bounds(user_key) || self.leaves_prefix(user_key) {
                return Ok(Step::Stop);
            }
        }
        if self.inner.head().sequence() > self.settings.snapshot {
            return Ok(Step::Pass);
        }
        if self.settings.as_of.is_some()
            && let Some(step) = self.judge_timestamp()?
        {
            return Ok(step);
        }
        match type_of(&self.inner)? {
            ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp => {
                Ok(Step::Hide { covered: false })
            }
            _ if self.is_covered(Towards::Later)? => Ok(Step::Hide { covered: true }),
            ValueType::Merge => {
                self.save_key();
                self.collect()?;
                Ok(if self.inner.valid() || self.inner.status().is_ok() {
                    Step::Show
                } else {
                    Step::Stop
                })
            }
            value_type => {
                self.shown.on_entry = Some(value_type);
                if value_type == ValueType::Value {
                    self.shown.value_at = ValueAt::Entry;
                }
                Ok(Step::Show)
            }
        }
    }

    /// What the timestamp of the entry says about it, if that is all there is to say.
    #[cold]
    fn judge_timestamp(&mut self) -> Result<Option<Step>> {
        if self.is_too_new() {
            return Ok(Some(Step::Pass));
        }
        if self.is_too_old() {
            // Its key has no older version that is not, too.
            return Ok(Some(Step::Hide { covered: false }));
        }
        if !self.is_over_history() {
            return Ok(None);
        }
        let value_type = type_of(&self.inner)?;
        let is_deletion = matches!(
            value_type,
            ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp
        );
        if is_deletion && !self.is_covered(Towards::Later)? {
            self.shown.on_entry = Some(value_type);
            return Ok(Some(Step::Show));
        }
        Ok(None)
    }

    /// From the newest visible version of the saved key on, collects what makes up its value: over
    /// history, operands and what they are merged with under older timestamps.
    pub(super) fn collect(&mut self) -> Result<()> {
        self.versions.start(true);
        while self.inner.valid() && self.is_below_collected() {
            let value_type = type_of(&self.inner)?;
            // Under a newer timestamp there may be a newer sequence number.
            if self.settings.as_of.is_some() && !self.is_collected() {
                self.inner.next();
                continue;
            }
            match value_type {
                ValueType::Deletion
                | ValueType::SingleDeletion
                | ValueType::DeletionWithTimestamp => {
                    if self.is_over_history() && !self.is_covered(Towards::Later)? {
                        self.collect_deletion()?;
                    }
                    break;
                }
                _ if self.is_covered(Towards::Later)? => break,
                ValueType::Merge => {
                    self.note_version();
                    perf::count(PerfMetric::InternalMergeCount, 1);
                    self.versions.push_operand(self.inner.value());
                }
                _ => {
                    self.note_version();
                    self.versions.set_base(value_type, self.inner.value());
                    break;
                }
            }
            self.inner.next();
        }
        Ok(())
    }
}
