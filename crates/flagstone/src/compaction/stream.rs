//! What survives a flush or a compaction: an adaptor over the merged input.
//!
//! Two sequence numbers lie in the same stripe if every live snapshot sees both or neither; `E` is
//! the earliest snapshot, or infinity. For each entry, in this order (the first that applies):
//!
//! 1. The newest entry of a key, if it is a value, is shown to the filter, which may turn it into a
//!    deletion.
//! 2. A value under a single deletion that was kept for transactions: its value is cleared.
//! 3. A single deletion: see [`CompactionStream::judge_single_deletion`].
//! 4. A newer entry of the same key lies in the same stripe: dropped, no snapshot can see it.
//! 5. A deletion that all snapshots see, of a key that has no entry below: dropped.
//! 6. A deletion at the bottom: kept only while an entry of an older stripe remains.
//! 7. A timed value that all snapshots see: takes its preferred sequence number.
//! 8. An operand: merged with what lies below it in its stripe (`stream_merge`).
//! 9. A range tombstone of the same stripe covers it: dropped.
//! 10. It is kept.
//!
//! At the bottom what all snapshots see gets sequence number 0, except operands and what is too
//! young for it (`preserve_internal_time_seconds`).

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::stream_entry::{CurrentEntry, JudgedKey, Next, Value, Verdict};
use super::stream_settings::{KeyError, StreamCounts, StreamSettings, ValueSeparator};
use super::stream_tombstones::StreamTombstones;
use crate::base::{
    CompactionFilter, Error, InternalIterator, InternalKey, InternalKeyBuf, Mutant, Result,
    SequenceNumber, Sometimes, ValueType, timestamp,
};
use crate::iter::ValueResolver;

/// So many faults of keys a stream tells, at most.
const FAULTS_TOLD_MAX: usize = 16;
/// So many bytes of their keys, but for the last one.
const FAULT_BYTES_TOLD_MAX: usize = 1 << 20;

/// Says whether a user key surely has no entry below the output.
type KeyNotBelow<'a> = Box<dyn FnMut(&[u8]) -> bool + Send + 'a>;

/// The output of a flush or compaction, entry by entry.
pub struct CompactionStream<'a, I, R, S> {
    pub(super) settings: StreamSettings,
    pub(super) input: I,
    pub(super) filter: Option<&'a dyn CompactionFilter>,
    pub(super) resolver: R,
    pub(super) counts: StreamCounts,
    faults: Vec<KeyError>,
    pub(super) judged: JudgedKey,
    pub(super) entry: CurrentEntry,
    /// Entries to be put out before the input goes on, newest first.
    pub(super) queue: VecDeque<(InternalKeyBuf, Vec<u8>)>,
    pub(super) cover: Cover<'a>,
    key_not_below: KeyNotBelow<'a>,
    separator: S,
    /// Whether the input still stands on the entry put out.
    on_output: bool,
    valid: bool,
    error: Option<Error>,
}

/// The range tombstones over the input.
pub(super) struct Cover<'a> {
    pub(super) tombstones: &'a StreamTombstones,
    /// Where the last search ended: keys ascend.
    pub(super) hint: usize,
}

impl Cover<'_> {
    /// Whether a tombstone hides `key` from every snapshot of its stripe that sees it.
    fn covers(&mut self, key: InternalKey<'_>, stripe: SequenceNumber) -> bool {
        !self.tombstones.is_empty()
            && key.sequence() < self.tombstones.covering(key, stripe, &mut self.hint)
    }
}

impl<'a, I: InternalIterator, R: ValueResolver, S: ValueSeparator> CompactionStream<'a, I, R, S> {
    /// A stream over `input`, which must stand where the compaction begins (usually on its first
    /// entry); it ends with `input`. `key_not_below` says whether a user key surely has no entry in
    /// a level deeper than the output; it is asked with ascending keys, and not at the bottom.
    pub fn new(
        settings: StreamSettings,
        input: I,
        tombstones: &'a StreamTombstones,
        key_not_below: impl FnMut(&[u8]) -> bool + Send + 'a,
        filter: Option<&'a dyn CompactionFilter>,
        resolver: R,
        separator: S,
    ) -> Self {
        debug_assert!(settings.snapshots.is_sorted());
        let mut stream = Self {
            settings,
            input,
            filter,
            resolver,
            counts: StreamCounts::default(),
            faults: Vec::new(),
            judged: JudgedKey::default(),
            entry: CurrentEntry {
                key: InternalKeyBuf::for_seek(b"", 0),
                value: Value::Own,
                own_value: Vec::new(),
                separated: Vec::new(),
            },
            queue: VecDeque::new(),
            cover: Cover { tombstones, hint: 0 },
            key_not_below: Box::new(key_not_below),
            separator,
            on_output: false,
            valid: false,
            error: None,
        };
        stream.advance();
        stream
    }

    /// Whether the stream stands on an entry. If not, [`CompactionStream::status`] tells the end
    /// from an error.
    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// Moves on; the stream must be valid.
    pub fn next(&mut self) {
        assert!(self.valid, "next() needs a valid stream");
        if self.on_output {
            self.input.next();
        }
        self.advance();
    }

    /// The entry's key; the stream must be valid.
    #[inline]
    pub fn key(&self) -> InternalKey<'_> {
        self.entry.key.as_key()
    }

    /// The entry's value; the stream must be valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.entry.value {
            Value::Input => self.input.value(),
            Value::Own => &self.entry.own_value,
        }
    }

    /// The error that ended the stream, if one did.
    ///
    /// # Errors
    /// The input's; `Corruption` for keys of no known type; the resolver's and separator's.
    pub fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// What was seen and dropped so far.
    pub fn counts(&self) -> StreamCounts {
        self.counts
    }

    /// What was wrong with keys, of which only the first are told: [`StreamCounts::key_faults`]
    /// counts all.
    pub fn take_faults(&mut self) -> Vec<KeyError> {
        std::mem::take(&mut self.faults)
    }

    /// The key that is being judged is not as it should be. The job goes on: one that failed would
    /// be tried again and fail again, and in the end nothing could be written any more, for one
    /// key.
    #[cold]
    pub(super) fn note_fault(&mut self, error: Error) {
        self.counts.key_faults += 1;
        let bytes: usize = self.faults.iter().map(|fault| fault.user_key.len()).sum();
        if self.faults.len() < FAULTS_TOLD_MAX && bytes < FAULT_BYTES_TOLD_MAX {
            self.faults.push(KeyError { user_key: self.judged.user_key.clone(), error });
        }
    }

    /// The input.
    pub fn input(&self) -> &I {
        &self.input
    }

    /// Gives the separator back.
    pub fn into_separator(self) -> S {
        self.separator
    }

    fn advance(&mut self) {
        self.on_output = false;
        match self.find_next() {
            Ok(found) => self.valid = found,
            Err(error) => {
                self.valid = false;
                self.error = Some(error);
            }
        }
    }

    fn find_next(&mut self) -> Result<bool> {
        loop {
            if let Some((key, value)) = self.queue.pop_front() {
                (self.entry.key, self.entry.own_value, self.entry.value) = (key, value, Value::Own);
                self.put_out()?;
                return Ok(true);
            }
            if !self.input.valid() {
                self.input.status()?;
                return Ok(false);
            }
            if self.settings.trims(self.input.key().user_key()) {
                self.counts.input_entries += 1;
                self.counts.dropped_obsolete += 1;
                self.input.next();
                continue;
            }
            match self.judge()? {
                Verdict::Keep => {
                    self.on_output = true;
                    self.put_out()?;
                    return Ok(true);
                }
                Verdict::KeepAndStay => {
                    self.put_out()?;
                    return Ok(true);
                }
                Verdict::Drop => self.input.next(),
                Verdict::DropAndStay => {}
            }
        }
    }

    /// Applies the rules to the entry on which the input stands.
    fn judge(&mut self) -> Result<Verdict> {
        self.entry.key.set_from(self.input.key());
        self.entry.value = Value::Input;
        let mut value_type = self.type_of_input()?;
        self.counts.input_entries += 1;
        if self.comes_to_another_user_key()? {
            self.begin_user_key();
            if self.filter.is_some()
                && let Some(verdict) = self.apply_filter(value_type)?
            {
                return Ok(verdict);
            }
            value_type = self.entry.key.as_key().value_type().unwrap_or(value_type);
        }
        let sequence = self.entry.key.as_key().sequence();
        let stripe = self.settings.stripe(sequence);
        if std::mem::take(&mut self.judged.clear_next) {
            self.replace(ValueType::Value, Vec::new());
            return Ok(Verdict::Keep);
        }
        if value_type == ValueType::SingleDeletion && self.judged.may_forget {
            return self.judge_single_deletion(sequence, stripe);
        }
        if self.judged.hiding_stripe.is_some_and(|newer| newer <= stripe) {
            self.counts.dropped_hidden += 1;
            return Ok(Verdict::Drop);
        }
        if self.judged.hiding_stripe.is_some() {
            Sometimes::SnapshotKeptVersion.reached();
        }
        if value_type == ValueType::ValuePreferredSeqno && self.settings.times.is_some() {
            value_type = self.replace_time(sequence);
        }
        match value_type {
            ValueType::Deletion | ValueType::DeletionWithTimestamp
                if self.judged.may_forget
                    && self.settings.all_see(sequence)
                    && (Mutant::DropTombstoneTooEarly.is_on() || self.is_not_below()) =>
            {
                self.hide_stripe(stripe);
                self.counts.dropped_obsolete += 1;
                return Ok(Verdict::Drop);
            }
            ValueType::Deletion | ValueType::DeletionWithTimestamp
                if self.judged.may_forget && self.settings.at_bottom() =>
            {
                return self.judge_deletion_at_bottom(value_type, stripe);
            }
            ValueType::Merge => return self.merge(stripe),
            ValueType::ValuePreferredSeqno
                if self.settings.history.is_none()
                    && self.settings.all_see(sequence)
                    && self.is_not_below()
                    && self.take_preferred_sequence() =>
            {
                self.hide_stripe(stripe);
                return Ok(Verdict::Keep);
            }
            _ => {}
        }
        self.hide_stripe(stripe);
        if self.is_covered(stripe) {
            self.counts.dropped_range_deleted += 1;
            return Ok(Verdict::Drop);
        }
        Ok(Verdict::Keep)
    }

    /// Whether the input stands on a user key other than the last one.
    ///
    /// # Errors
    /// `Corruption` if what it stands on sorts before the last entry. The output may be in order
    /// all the same, as what deletes a key is dropped where it should be: what it had deleted would
    /// come back.
    fn comes_to_another_user_key(&mut self) -> Result<bool> {
        if self.settings.history.is_some() {
            return self.comes_to_another_version();
        }
        let key = self.input.key();
        let order = if self.judged.is_set {
            self.settings.comparator.compare(key.user_key(), &self.judged.user_key)
        } else {
            Ordering::Greater
        };
        if order.is_lt() || order.is_eq() && key.packed() > self.judged.last_packed {
            return Err(self.goes_back());
        }
        self.judged.last_packed = key.packed();
        Ok(order.is_gt())
    }

    /// The same where keys have timestamps: versions whose timestamps are not kept apart are one
    /// key.
    fn comes_to_another_version(&mut self) -> Result<bool> {
        let (comparator, key) = (&self.settings.comparator, self.input.key());
        if self.judged.is_set {
            let order = comparator.compare(key.user_key(), &self.judged.last_user_key);
            if order.is_lt() || order.is_eq() && key.packed() > self.judged.last_packed {
                return Err(self.goes_back());
            }
        }
        let is_same = self.judged.is_set
            && comparator.compare_keys(key.user_key(), &self.judged.user_key).is_eq()
            && (self.judged.may_forget
                || comparator.compare(key.user_key(), &self.judged.user_key).is_eq());
        if key.user_key().len() < comparator.timestamp_size() {
            let size = comparator.timestamp_size();
            return Err(timestamp::is_too_short(key.user_key(), size));
        }
        let judged = &mut self.judged;
        judged.last_packed = key.packed();
        judged.last_user_key.clear();
        judged.last_user_key.extend_from_slice(key.user_key());
        Ok(!is_same)
    }

    #[cold]
    fn goes_back(&self) -> Error {
        let (key, last) = (self.input.key(), self.judged.user_key.escape_ascii());
        Error::corruption(format!(
            "entries are out of order: {key:?} follows an entry of key '{last}'"
        ))
    }

    /// The input stands on a user key other than the last one.
    fn begin_user_key(&mut self) {
        let judged = &mut self.judged;
        judged.user_key.clear();
        judged.user_key.extend_from_slice(self.entry.key.user_key());
        judged.is_set = true;
        let size = self.settings.comparator.timestamp_size();
        judged.may_forget = self.settings.history.is_none()
            || self.settings.is_before_history(timestamp::split(&judged.user_key, size).1);
        judged.hiding_stripe = None;
        judged.was_output = false;
        judged.was_zeroed = false;
        judged.clear_next = false;
    }

    /// The type of the entry on which the input stands.
    pub(super) fn type_of_input(&self) -> Result<ValueType> {
        let key = self.input.key();
        key.value_type().ok_or_else(|| Error::corruption(format!("entry of unknown type: {key:?}")))
    }

    /// Whether the input stands on an entry of the key being judged and, if so, whether it lies in
    /// `stripe`.
    pub(super) fn next_of_key(&mut self, stripe: SequenceNumber) -> Result<Next> {
        if !self.input.valid() {
            self.input.status()?;
            return Ok(Next::OtherKey);
        }
        if self.comes_to_another_user_key()? {
            return Ok(Next::OtherKey);
        }
        let same = self.settings.stripe(self.input.key().sequence()) == stripe;
        Ok(if same { Next::SameStripe } else { Next::OlderStripe })
    }

    /// From here on, entries of the key in `stripe` are hidden.
    pub(super) fn hide_stripe(&mut self, stripe: SequenceNumber) {
        if self.judged.hiding_stripe != Some(stripe) {
            self.judged.hiding_stripe = Some(stripe);
            self.judged.was_output = false;
        }
    }

    /// Changes the current entry.
    pub(super) fn replace(&mut self, value_type: ValueType, value: Vec<u8>) {
        self.entry.replace(value_type, value);
    }

    /// Whether a range tombstone hides the current entry from every snapshot that sees it.
    fn is_covered(&mut self, stripe: SequenceNumber) -> bool {
        self.judged.may_forget && self.cover.covers(self.entry.key.as_key(), stripe)
    }

    /// As [`CompactionStream::is_covered`], for the entry on which the input stands.
    pub(super) fn input_is_covered(&mut self, stripe: SequenceNumber) -> bool {
        self.judged.may_forget && self.cover.covers(self.input.key(), stripe)
    }

    /// Whether the key surely has no entry below the output.
    fn is_not_below(&mut self) -> bool {
        !self.settings.ingest_behind
            && self.judged.may_forget
            && (self.settings.bottommost || (self.key_not_below)(&self.judged.user_key))
    }

    /// The key being judged, as merge operators see it: without its timestamp.
    pub(super) fn bare_key(&self) -> &[u8] {
        timestamp::strip(&self.judged.user_key, self.settings.comparator.timestamp_size())
    }

    /// Drops what the deletion hides; keeps the deletion itself while an older stripe has entries.
    fn judge_deletion_at_bottom(
        &mut self,
        value_type: ValueType,
        stripe: SequenceNumber,
    ) -> Result<Verdict> {
        self.hide_stripe(stripe);
        self.replace(value_type, Vec::new());
        self.input.next();
        loop {
            match self.next_of_key(stripe)? {
                Next::SameStripe => {
                    self.counts.input_entries += 1;
                    self.counts.dropped_hidden += 1;
                    self.input.next();
                }
                Next::OlderStripe => {
                    Sometimes::DeletionKeptAtBottom.reached();
                    return Ok(Verdict::KeepAndStay);
                }
                Next::OtherKey => {
                    self.counts.dropped_obsolete += 1;
                    return Ok(Verdict::DropAndStay);
                }
            }
        }
    }

    /// A single deletion goes together with the one value under it:
    ///
    /// ```text
    /// next entry                    what happens
    /// same stripe, single deletion  this one goes, the next one is judged
    /// same stripe, deletion         this one goes; a fault of the key if contracts are enforced
    /// same stripe, value            both go; for a transaction's conflict check they stay, with the value cleared
    /// older stripe                  it stays
    /// none of this key              it goes if all snapshots see it and the key has no entry below, else it stays
    /// ```
    ///
    /// What remains behind the two is judged as if they had never been.
    fn judge_single_deletion(
        &mut self,
        sequence: SequenceNumber,
        stripe: SequenceNumber,
    ) -> Result<Verdict> {
        self.replace(ValueType::SingleDeletion, Vec::new());
        self.input.next();
        match self.next_of_key(stripe)? {
            Next::OtherKey
                if self.judged.was_zeroed
                    || (self.settings.all_see(sequence) && self.is_not_below()) =>
            {
                self.counts.dropped_obsolete += 1;
                return Ok(Verdict::DropAndStay);
            }
            next @ (Next::OtherKey | Next::OlderStripe) => {
                if next == Next::OlderStripe {
                    Sometimes::SingleDeleteUnderSnapshot.reached();
                }
                self.hide_stripe(stripe);
                return Ok(Verdict::KeepAndStay);
            }
            Next::SameStripe => {}
        }
        match self.type_of_input()? {
            ValueType::SingleDeletion => {
                self.counts.dropped_hidden += 1;
                return Ok(Verdict::DropAndStay);
            }
            ValueType::Deletion | ValueType::DeletionWithTimestamp if !self.judged.was_zeroed => {
                if self.settings.enforce_single_del_contracts {
                    let (key, below) = (self.entry.key.as_key(), self.input.key());
                    let message = format!(
                        "single deletion {key:?} covers deletion {below:?}: use either single_delete or delete for a key, not \
                         both"
                    );
                    self.note_fault(Error::corruption(message));
                }
                self.counts.dropped_obsolete += 1;
                return Ok(Verdict::DropAndStay);
            }
            _ => {}
        }
        let superseded = self.judged.was_output && self.judged.hiding_stripe == Some(stripe);
        if superseded || sequence <= self.settings.write_conflict_snapshot {
            Sometimes::SingleDeleteMetPut.reached();
            self.counts.input_entries += 1;
            self.counts.dropped_obsolete += 1;
            self.counts.dropped_hidden += 1;
            return Ok(Verdict::Drop);
        }
        self.hide_stripe(stripe);
        self.judged.clear_next = true;
        Ok(Verdict::KeepAndStay)
    }

    /// The last touches to an entry that is kept: sequence number 0 at the bottom, and the value's
    /// place.
    fn put_out(&mut self) -> Result<()> {
        let (packed, value_type) =
            (self.entry.key.as_key().sequence(), self.entry.key.as_key().value_type());
        let (mut sequence, mut value_type) = (packed, value_type.unwrap_or(ValueType::Value));
        let zeroable = match value_type {
            ValueType::Value | ValueType::BlobIndex | ValueType::WideColumnEntity => true,
            ValueType::Merge
            | ValueType::Deletion
            | ValueType::SingleDeletion
            | ValueType::RangeDeletion
            | ValueType::DeletionWithTimestamp
            | ValueType::ValuePreferredSeqno => false,
        };
        self.judged.was_output = true;
        let may_be_zero = self.settings.all_see(sequence) && sequence <= self.settings.zeroed_until;
        self.judged.was_zeroed = zeroable && may_be_zero && self.sees_whole_history();
        if self.settings.history.as_ref().is_some_and(|history| history.is_stripped) {
            let size = self.settings.comparator.timestamp_size();
            let key = self.entry.key.as_key();
            let bare = timestamp::strip(key.user_key(), size);
            // All that is left of the timestamp, also in the records of blob files.
            let oldest = timestamp::last_of(bare, size);
            self.entry.key.set(&oldest, sequence, value_type);
        }
        self.judged.was_zeroed =
            self.judged.was_zeroed && !self.are_parted(self.entry.key.user_key(), 0, sequence);
        if self.judged.was_zeroed {
            sequence = 0;
            self.entry.key.set_version(sequence, value_type);
        }
        if zeroable {
            self.entry.separated.clear();
            let value = match self.entry.value {
                Value::Input => self.input.value(),
                Value::Own => &self.entry.own_value,
            };
            if let Some(changed) =
                self.separator.place(self.entry.key.as_key(), value, &mut self.entry.separated)?
            {
                value_type = changed;
                std::mem::swap(&mut self.entry.own_value, &mut self.entry.separated);
                self.entry.value = Value::Own;
                self.entry.key.set_version(sequence, value_type);
            }
        }
        Ok(())
    }
}
