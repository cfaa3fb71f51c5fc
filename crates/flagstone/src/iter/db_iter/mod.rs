//! The keys and values that a snapshot sees.
//!
//! The cursor rests in one of two states:
//!
//! 1. Moving forward over a plain entry, the merged cursor stays on that entry, which is pinned
//!    there. Nothing is copied.
//! 2. Otherwise (operands, or moving back) the key and the parts of its value are copied out.
//!    Moving forward, the merged cursor is then after the versions of the key that were used;
//!    moving back, it is before all its versions.
//!
//! - `as_of`: what timestamps make of the keys
//! - `forward`: finding the next visible key
//! - `backward`: finding the previous one
//! - `settings`: how entries are looked at
//! - `dead_run`: how both treat many deleted keys in a row
//! - `versions`: the copied versions of one key

mod as_of;
mod backward;
mod dead_run;
mod forward;
#[cfg(test)]
mod leap_tests;
mod settings;
#[cfg(test)]
mod tests;
mod versions;

use std::cmp::Ordering;

use bytes::Bytes;

use super::lookup::{Stored, columns_of, locate_value};
use super::tombstones::Towards;
use super::{MergingIterator, TombstoneView, ValueResolver};
use crate::base::perf::{self, PerfMetric};
use crate::base::{
    Comparator, Error, InternalIterator, InternalKeyBuf, MAX_SEQUENCE_NUMBER, Result,
    SequenceNumber, Sometimes, ValueType, WideColumns, timestamp,
};
pub use as_of::{AsOf, newest_timestamp};
pub use settings::{DbIterSettings, KeyBounds};
use versions::{Collected, Versions};

/// After so many entries in a row that a range tombstone covers, the older sources seek to its end.
const COVERED_RUN: usize = 4;

/// How much a buffer keeps when the cursor rests.
const KEPT_BYTES: usize = 4096;

/// A cursor over the keys and values that one snapshot sees.
///
/// Cheap when nothing hides anything: a step forward allocates nothing, and the value stays where
/// the child holds it. Blobs are fetched and operands merged when the value is asked for, so a scan
/// of keys never does either.
pub struct DbIter<I, R> {
    settings: DbIterSettings,
    inner: MergingIterator<I>,
    tombstones: TombstoneView,
    resolver: R,
    valid: bool,
    error: Option<Error>,
    forward: bool,
    shown: Shown,
    saved: SavedKey,
    versions: Versions,
    /// The prefix to stay in, if there is one.
    prefix: Option<Vec<u8>>,
    seek_key: InternalKeyBuf,
    step: Step,
}

/// What the cursor shows.
struct Shown {
    /// The type of the entry shown, while the merged cursor stands on it.
    on_entry: Option<ValueType>,
    value_at: ValueAt,
    made_value: Bytes,
}

/// The key shown where the merged cursor does not stand on its entry; while moving, the key whose
/// versions are passed.
#[derive(Default)]
struct SavedKey {
    key: Vec<u8>,
    fingerprint: u64,
}

/// What the present step has passed.
#[derive(Default)]
struct Step {
    /// How many covered entries were just passed in a row.
    covered_run: usize,
    /// How many hidden entries were passed.
    hidden: u64,
    /// The first of a run of deleted keys.
    run_start: Vec<u8>,
}

/// Where the value shown is.
#[derive(Debug, Clone, Copy)]
enum ValueAt {
    /// Not looked for yet.
    Unknown,
    /// It is the merged cursor's value.
    Entry,
    /// In this part of the merged cursor's value.
    EntryPart(usize, usize),
    /// In this part of the copied base.
    BasePart(usize, usize),
    /// In `made_value`.
    Made,
}

impl<I: InternalIterator, R: ValueResolver> DbIter<I, R> {
    /// A cursor, not positioned yet.
    pub fn new(
        settings: DbIterSettings,
        inner: MergingIterator<I>,
        tombstones: TombstoneView,
        resolver: R,
    ) -> Self {
        Self {
            settings,
            inner,
            tombstones,
            resolver,
            valid: false,
            error: None,
            forward: true,
            shown: Shown { on_entry: None, value_at: ValueAt::Unknown, made_value: Bytes::new() },
            saved: SavedKey::default(),
            versions: Versions::default(),
            prefix: None,
            seek_key: InternalKeyBuf::for_seek(b"", 0),
            step: Step::default(),
        }
    }

    /// Fetches what lies in blob files.
    pub fn resolver(&self) -> &R {
        &self.resolver
    }

    /// Stands nowhere, and lets go of what a cursor that is kept for later need not hold; `rest`
    /// does so for a child.
    pub fn rest(&mut self, rest: impl FnMut(&mut I)) {
        self.begin(true, None);
        self.shown.on_entry = None;
        self.inner.rest(rest);
        self.versions.shrink(KEPT_BYTES);
        self.saved.key.clear();
        self.saved.key.shrink_to(KEPT_BYTES);
        self.shown.made_value = Bytes::new();
    }

    /// Turns a cursor that rested to what another snapshot of the same sources sees.
    pub fn begin_anew(&mut self, snapshot: SequenceNumber, max_sequential_skips: usize) {
        debug_assert!(
            !self.valid && self.tombstones.is_empty(),
            "tombstones are those of one snapshot"
        );
        self.settings.snapshot = snapshot;
        self.settings.max_sequential_skips = max_sequential_skips;
    }

    /// Whether the cursor stands on a key. If not, [`DbIter::status`] tells the end from an error.
    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        if let Some(lower) = self.settings.bounds.lower.clone() {
            return self.seek(self.bare(&lower));
        }
        let _measured = begin_seek();
        self.begin(true, None);
        let sought = perf::time(PerfMetric::SeekInternalSeekTime);
        self.inner.seek_to_first();
        drop(sought);
        self.find_forward(false);
        self.stay_in_prefix_of_current();
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        let _measured = begin_seek();
        self.begin(false, None);
        let sought = perf::time(PerfMetric::SeekInternalSeekTime);
        self.seek_inner_to_last();
        drop(sought);
        self.find_backward();
        self.stay_in_prefix_of_current();
    }

    /// Moves to the first key at or after `target`.
    pub fn seek(&mut self, target: &[u8]) {
        let _measured = begin_seek();
        self.begin(true, Some(target));
        self.aim_at_first_visible(target);
        if let Some(lower) = &self.settings.bounds.lower
            && self.is_below_bounds(self.seek_key.user_key())
        {
            self.seek_key.set(lower, self.settings.snapshot, ValueType::FOR_SEEK);
        }
        let sought = perf::time(PerfMetric::SeekInternalSeekTime);
        self.confine_within_bounds();
        self.inner.seek(self.seek_key.as_key());
        drop(sought);
        self.find_forward(false);
    }

    /// Moves to the last key at or before `target`.
    pub fn seek_for_prev(&mut self, target: &[u8]) {
        let _measured = begin_seek();
        self.begin(false, Some(target));
        self.aim_behind(target);
        let sought = perf::time(PerfMetric::SeekInternalSeekTime);
        if self.is_above_bounds(self.seek_key.user_key()) {
            self.seek_inner_to_last();
        } else {
            self.inner.seek_for_prev(self.seek_key.as_key());
        }
        drop(sought);
        self.find_backward();
    }

    /// Moves on; the cursor must be valid.
    pub fn next(&mut self) {
        assert!(self.valid, "next() needs a valid cursor");
        perf::count(PerfMetric::IterNextCount, 1);
        let _cpu = perf::time(PerfMetric::IterNextCpuNanos);
        if self.shown.on_entry.is_none() {
            self.leave_shown_versions();
        }
        if !self.forward {
            Sometimes::IteratorTurned.reached();
            self.forward = true;
            self.aim_behind_saved_key();
            self.inner.seek(self.seek_key.as_key());
        } else if self.shown.on_entry.is_some() {
            self.save_key();
            perf::count(PerfMetric::InternalKeySkippedCount, 1);
            self.inner.next();
        }
        self.find_forward(true);
    }

    /// Moves back; the cursor must be valid.
    pub fn prev(&mut self) {
        assert!(self.valid, "prev() needs a valid cursor");
        perf::count(PerfMetric::IterPrevCount, 1);
        let _cpu = perf::time(PerfMetric::IterPrevCpuNanos);
        if self.forward {
            Sometimes::IteratorTurned.reached();
            self.forward = false;
            if self.shown.on_entry.is_some() {
                self.save_key();
            }
            if self.settings.auto_prefix.is_some() {
                self.inner.confine(false);
            }
            self.seek_inner_before_saved_key();
        }
        self.find_backward();
    }

    /// The key, without its timestamp; the cursor must be valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        assert!(self.valid, "key() needs a valid cursor");
        self.bare(self.shown_key())
    }

    #[inline]
    fn shown_key(&self) -> &[u8] {
        if self.shown.on_entry.is_some() { self.inner.key().user_key() } else { &self.saved.key }
    }

    /// Whether the cursor stands on this key, in whatever bytes the order takes for it.
    pub fn stands_on(&self, key: &[u8]) -> bool {
        let is_same = |key: &[u8]| self.is_same_key(self.shown_key(), key);
        match &self.settings.as_of {
            _ if !self.valid => false,
            None => is_same(key),
            Some(_) => is_same(&timestamp::join(key, self.timestamp())),
        }
    }

    /// The value, fetched or merged now if need be; the cursor must be valid, and stays so after an
    /// error. An entity shows its default column.
    ///
    /// # Errors
    /// `Corruption`, a refused merge, `InvalidArgument` for operands without an operator, or what
    /// the blob file says.
    #[inline]
    pub fn value(&mut self) -> Result<&[u8]> {
        assert!(self.valid, "value() needs a valid cursor");
        if matches!(self.shown.value_at, ValueAt::Unknown) {
            self.shown.value_at = self.find_value()?;
            self.note_found();
        }
        Ok(self.found_value().unwrap_or_else(|| self.inner.value()))
    }

    /// The value, if it is at hand: always after [`DbIter::value`], until the cursor moves.
    #[inline]
    pub fn found_value(&self) -> Option<&[u8]> {
        if !self.valid {
            return None;
        }
        match self.shown.value_at {
            ValueAt::Unknown => None,
            ValueAt::Entry => Some(self.inner.value()),
            ValueAt::EntryPart(start, end) => Some(&self.inner.value()[start..end]),
            ValueAt::BasePart(start, end) => Some(&self.versions.base_value()[start..end]),
            ValueAt::Made => Some(&self.shown.made_value),
        }
    }

    /// All columns, fetched or merged now if need be; a plain value is one. Copies what is stored.
    /// The cursor must be valid, and stays so after an error.
    ///
    /// # Errors
    /// As [`DbIter::value`].
    pub fn columns(&mut self) -> Result<WideColumns> {
        assert!(self.valid, "columns() needs a valid cursor");
        let Some(value_type) = self.shown.on_entry else {
            let operator = self.settings.merge_operator.as_deref();
            let key = self.bare(&self.saved.key);
            return self.versions.resolve_columns(key, operator, &self.resolver);
        };
        if value_type == ValueType::WideColumnEntity {
            let stored = Bytes::copy_from_slice(self.inner.value());
            return columns_of(self.inner.key().user_key(), value_type, stored, &self.resolver);
        }
        let value = self.value()?;
        let value = Bytes::copy_from_slice(value);
        Ok(WideColumns::of_value(value))
    }

    /// Whether the key was set to an entity; the cursor must be valid.
    pub fn is_entity(&self) -> bool {
        assert!(self.valid, "is_entity() needs a valid cursor");
        let base = self.shown.on_entry.or_else(|| self.versions.base());
        base == Some(ValueType::WideColumnEntity)
    }

    /// What leads to the value, if it lies in a blob file as it is; the cursor must be valid.
    pub fn blob_index(&self) -> Option<&[u8]> {
        assert!(self.valid, "blob_index() needs a valid cursor");
        match self.shown.on_entry {
            Some(ValueType::BlobIndex) => Some(self.inner.value()),
            Some(_) => None,
            None => self.versions.blob_index(),
        }
    }

    /// The error that ended the iteration, if one did.
    ///
    /// # Errors
    /// That of the child that failed.
    pub fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => self.inner.status(),
        }
    }

    /// Finds or makes the value of a key that is not a plain entry.
    #[inline(never)]
    fn find_value(&mut self) -> Result<ValueAt> {
        // Before the next one is fetched: its memory may then be used again.
        self.shown.made_value = Bytes::new();
        let made = if let Some(value_type) = self.shown.on_entry {
            let (user_key, stored) = (self.inner.key().user_key(), self.inner.value());
            match locate_value(user_key, value_type, stored)? {
                Stored::Inline(range) => return Ok(ValueAt::EntryPart(range.start, range.end)),
                Stored::Blob(index) => {
                    self.resolver.resolve_in_scan(user_key, &stored[index], &|visit| {
                        self.inner.upcoming(&mut |kind, value| {
                            kind != ValueType::BlobIndex as u8 || visit(value)
                        });
                    })?
                }
            }
        } else {
            let operator = self.settings.merge_operator.as_deref();
            let key = self.bare(&self.saved.key);
            match self.versions.resolve(key, operator, &self.resolver)? {
                Collected::InBase(start, end) => return Ok(ValueAt::BasePart(start, end)),
                Collected::Made(value) => value,
            }
        };
        self.shown.made_value = made;
        Ok(ValueAt::Made)
    }

    /// Before a seek: forward or back, to stay in the prefix of `target` if there is one. All seeks
    /// up to the next beginning are confined to that prefix then, and otherwise none is: not even
    /// when the scan ends with the prefix of its first key, for it passes others before.
    fn begin(&mut self, forward: bool, target: Option<&[u8]>) {
        self.valid = false;
        self.error = None;
        self.forward = forward;
        self.step.covered_run = 0;
        self.tombstones.reset();
        if let Some(extractor) = &self.settings.same_prefix {
            self.prefix = target.and_then(|target| extractor.prefix(target)).map(<[u8]>::to_vec);
            self.inner.confine(self.prefix.is_some());
        } else if self.settings.auto_prefix.is_some() {
            self.inner.confine(false);
        }
    }

    /// To the last entry within the upper bound.
    fn seek_inner_to_last(&mut self) {
        match &self.settings.bounds.upper {
            None => self.inner.seek_to_last(),
            Some(upper) => {
                self.seek_key.set(upper, MAX_SEQUENCE_NUMBER, ValueType::FOR_SEEK);
                self.inner.seek_for_prev(self.seek_key.as_key());
            }
        }
    }

    /// To the last entry before all versions of the saved key.
    fn seek_inner_before_saved_key(&mut self) {
        self.aim_before_saved_key();
        self.inner.seek_for_prev(self.seek_key.as_key());
    }

    #[inline]
    fn save_key(&mut self) {
        self.saved.key.clear();
        self.saved.key.extend_from_slice(self.inner.key().user_key());
        self.saved.fingerprint = self.inner.head().fingerprint;
    }

    #[inline]
    fn order(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.settings.comparator.compare(a, b)
    }

    #[inline]
    fn is_below_bounds(&self, user_key: &[u8]) -> bool {
        self.settings
            .bounds
            .lower
            .as_deref()
            .is_some_and(|lower| self.order(user_key, lower).is_lt())
    }

    /// Whether a scan forward may have to stop before the last key: at the upper bound, or the end
    /// of a prefix.
    #[inline]
    fn is_limited(&self) -> bool {
        self.settings.bounds.upper.is_some() || self.prefix.is_some()
    }

    #[inline]
    fn is_above_bounds(&self, user_key: &[u8]) -> bool {
        let upper = self.settings.bounds.upper.as_deref();
        upper.is_some_and(|upper| self.order(user_key, upper).is_ge())
    }

    /// Whether the merged cursor, which must be valid, stands on a version of the saved key.
    #[inline]
    fn on_saved_key(&self) -> bool {
        match self.settings.comparator {
            Comparator::Custom(_)
            | Comparator::BytewiseU64Ts
            | Comparator::ReverseBytewiseU64Ts => {
                self.is_same_key(self.inner.key().user_key(), &self.saved.key)
            }
            Comparator::Bytewise | Comparator::ReverseBytewise => {
                self.inner.head().fingerprint == self.saved.fingerprint
                    && self.inner.key().user_key() == self.saved.key
            }
        }
    }

    fn stay_in_prefix_of_current(&mut self) {
        if let Some(extractor) = self.settings.same_prefix.as_ref().filter(|_| self.valid) {
            self.prefix = extractor.prefix(self.key()).map(<[u8]>::to_vec);
        }
    }

    #[inline]
    fn leaves_prefix(&self, user_key: &[u8]) -> bool {
        match (&self.prefix, &self.settings.same_prefix) {
            (Some(prefix), Some(extractor)) => {
                extractor.prefix(self.bare(user_key)) != Some(prefix)
            }
            _ => false,
        }
    }

    /// Whether a range tombstone hides the entry on which the merged cursor stands.
    #[inline]
    fn is_covered(&mut self, towards: Towards) -> Result<bool> {
        if self.tombstones.is_empty() {
            return Ok(false);
        }
        let key = self.inner.key();
        let covered = self.inner.head().sequence() < self.tombstones.covering(key, towards)?;
        self.step.covered_run = if covered { self.step.covered_run + 1 } else { 0 };
        Ok(covered)
    }

    /// After a covered entry was passed: leaps over a long run of them.
    #[inline]
    fn leap_over_covered(&mut self, towards: Towards) {
        if self.step.covered_run < COVERED_RUN {
            return;
        }
        self.step.covered_run = 0;
        if let Some((first, target)) = self.tombstones.skip(towards) {
            Sometimes::IteratorLeapt.reached();
            match towards {
                Towards::Later => self.inner.skip_to(first, target),
                Towards::Earlier => self.inner.skip_back_to(first, target),
            }
        }
    }

    /// Counts a hidden entry.
    #[inline]
    fn pass_hidden(&mut self) -> Result<()> {
        self.count_hidden(self.step.hidden + 1)
    }

    /// Notes that the present step has passed so many hidden entries.
    #[inline]
    fn count_hidden(&mut self, count: u64) -> Result<()> {
        self.step.hidden = count;
        let limit = self.settings.max_skippable;
        if limit > 0 && self.step.hidden > limit {
            return Err(Error::incomplete(format!(
                "more than {limit} hidden entries in a row, the limit of max_skippable_internal_keys"
            )));
        }
        Ok(())
    }

    /// Ends the iteration with an error, until the next seek.
    pub(crate) fn fail(&mut self, error: Error) {
        self.valid = false;
        self.error = Some(error);
    }
}

/// Counts a seek, and takes its processor time.
#[inline]
fn begin_seek() -> perf::Timer {
    perf::count(PerfMetric::IterSeekCount, 1);
    perf::time(PerfMetric::IterSeekCpuNanos)
}

/// The type of the current entry of a valid cursor. Range tombstones do not lie among entries.
#[inline]
fn type_of<I: InternalIterator>(inner: &MergingIterator<I>) -> Result<ValueType> {
    let known = ValueType::from_byte(inner.head().packed as u8)
        .filter(|&kind| kind != ValueType::RangeDeletion);
    known.ok_or_else(|| {
        Error::corruption(format!("entry of a type that entries do not have: {:?}", inner.key()))
    })
}
