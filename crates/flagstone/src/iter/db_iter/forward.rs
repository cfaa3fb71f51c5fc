//! Finding the next visible key.
//!
//! Versions of a key come newest first. The first one that the snapshot sees decides: a value is shown where it stands, a
//! deletion hides the key, an operand starts to collect what it is to be merged with. The others are passed.

use super::{DbIter, ValueAt, type_of};
use crate::base::{InternalIterator, MAX_SEQUENCE_NUMBER, Mutant, Result, Sometimes, ValueType};
use crate::iter::ValueResolver;
use crate::iter::tombstones::Towards;

/// After so many deleted keys in a row a scan asks whether the end of their run is known.
const SHORT_RUN: usize = 4;
/// After so many times `max_sequential_skips` it reports the run, and asks again.
const LONG_RUN: usize = 4;

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

impl<I: InternalIterator, R: ValueResolver> DbIter<I, R> {
    /// Moves to the first visible key from the merged cursor's position on; if asked to, past the saved key.
    pub(super) fn find_forward(&mut self, past_saved_key: bool) {
        self.valid = false;
        self.on_entry = None;
        self.value_at = ValueAt::Unknown;
        self.hidden = 0;
        if let Err(error) = self.advance(past_saved_key) {
            self.fail(error);
        }
    }

    fn advance(&mut self, mut past_saved_key: bool) -> Result<()> {
        // Invisible versions of one key, and deleted keys, passed in a row.
        let (mut passed, mut deleted) = (0, 0);
        let mut asks_at = SHORT_RUN;
        while self.inner.valid() {
            if past_saved_key && self.on_saved_key() {
                self.pass_hidden()?;
                passed += 1;
                if passed > self.settings.max_sequential_skips {
                    self.seek_key.set(&self.saved_key, 0, ValueType::Deletion);
                    self.inner.seek(self.seek_key.as_key());
                    passed = 0;
                } else {
                    self.inner.next();
                }
                continue;
            }
            match self.judge()? {
                Step::Show => {
                    self.valid = true;
                    self.report_run(deleted, true);
                    return Ok(());
                }
                Step::Stop => {
                    self.report_run(deleted, false);
                    return Ok(());
                }
                Step::Pass => {
                    self.pass_hidden()?;
                    passed += 1;
                    if passed > self.settings.max_sequential_skips {
                        Sometimes::IteratorReseeked.reached();
                        let user_key = self.inner.key().user_key();
                        let visible = if Mutant::ReseekTooFar.is_on() { 0 } else { self.settings.snapshot };
                        self.seek_key.set(user_key, visible, ValueType::FOR_SEEK);
                        self.inner.seek(self.seek_key.as_key());
                        passed = 0;
                    } else {
                        self.inner.next();
                    }
                }
                Step::Hide { covered } => {
                    self.pass_hidden()?;
                    self.save_key();
                    deleted += 1;
                    if deleted == asks_at {
                        asks_at = deleted.saturating_add(self.long_run());
                        if self.leap_over_dead(deleted == SHORT_RUN) {
                            past_saved_key = false;
                            continue;
                        }
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
            self.report_run(deleted, false);
        }
        Ok(())
    }

    /// How many deleted keys in a row are worth a report.
    fn long_run(&self) -> usize {
        self.settings.max_sequential_skips.max(1).saturating_mul(LONG_RUN)
    }

    /// In a run of deleted keys: leaps to its end, if one is known, from the saved key.
    #[cold]
    fn leap_over_dead(&mut self, is_start: bool) -> bool {
        if is_start {
            self.run_start.clear();
            self.run_start.extend_from_slice(&self.saved_key);
        }
        let ranges = self.settings.dead_ranges.as_ref();
        let Some(end) = ranges.and_then(|ranges| ranges.end_of(&self.saved_key, self.settings.snapshot))
        else {
            return false;
        };
        Sometimes::IteratorLeaptOverDead.reached();
        self.seek_key.set(&end, MAX_SEQUENCE_NUMBER, ValueType::FOR_SEEK);
        self.inner.seek(self.seek_key.as_key());
        true
    }

    /// After a run of so many deleted keys, tells where it was: up to the key shown, else up to the last one of them.
    #[inline]
    fn report_run(&mut self, deleted: usize, shows: bool) {
        if deleted < SHORT_RUN || deleted < self.long_run() {
            return;
        }
        if let Some(ranges) = &self.settings.dead_ranges {
            let on_entry = shows && self.on_entry.is_some();
            let end = if on_entry { self.inner.key().user_key() } else { &self.saved_key };
            ranges.report(&self.run_start, end, self.settings.snapshot);
        }
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
        match type_of(&self.inner)? {
            ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp => {
                Ok(Step::Hide { covered: false })
            }
            _ if self.is_covered(Towards::Later)? => Ok(Step::Hide { covered: true }),
            ValueType::Merge => {
                self.save_key();
                self.collect()?;
                Ok(if self.inner.valid() || self.inner.status().is_ok() { Step::Show } else { Step::Stop })
            }
            value_type => {
                self.on_entry = Some(value_type);
                if value_type == ValueType::Value {
                    self.value_at = ValueAt::Entry;
                }
                Ok(Step::Show)
            }
        }
    }

    /// From the newest visible version of the saved key on, collects what makes up its value.
    pub(super) fn collect(&mut self) -> Result<()> {
        self.versions.start(true);
        while self.inner.valid() && self.on_saved_key() {
            let value_type = type_of(&self.inner)?;
            match value_type {
                ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp => break,
                _ if self.is_covered(Towards::Later)? => break,
                ValueType::Merge => self.versions.push_operand(self.inner.value()),
                _ => {
                    self.versions.set_base(value_type, self.inner.value());
                    break;
                }
            }
            self.inner.next();
        }
        Ok(())
    }
}
