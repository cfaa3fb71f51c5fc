//! Scans of keys that end in timestamps.
//!
//! - *As of a timestamp* all versions of a key are one key, of which the newest version counts that
//!   is neither newer than the timestamp nor than the snapshot.
//! - *Over history* each timestamp of a key, down to the oldest that is asked for, is a key of its
//!   own, and deletions are shown. Operands and what they are merged with, under whatever
//!   timestamps, are one entry, shown under the timestamp of the newest operand. A deletion below
//!   operands is not shown.

use std::ops::ControlFlow;

use super::super::lookup::check_value;
use super::super::tombstones::Towards;
use super::{DbIter, type_of};
use crate::base::{
    InternalIterator, InternalKey, InternalKeyBuf, InternalKeyComparator, MAX_SEQUENCE_NUMBER,
    Result, SequenceNumber, ValueType, timestamp,
};
use crate::iter::ValueResolver;
use crate::memtable::MemTable;

/// Which timestamps a scan sees.
#[derive(Debug, Clone)]
pub struct AsOf {
    /// The newest one.
    pub newest: Box<[u8]>,
    /// The oldest one of a scan over history; `None` for a scan of keys.
    pub oldest: Option<Box<[u8]>>,
}

impl AsOf {
    /// The bytes of a timestamp.
    #[inline]
    pub(super) fn size(&self) -> usize {
        self.newest.len()
    }
}

impl<I: InternalIterator, R: ValueResolver> DbIter<I, R> {
    /// Shows the versions of a key that the scan sees, newest first, until told to stop, or one is
    /// deleted. Deletions are not shown.
    ///
    /// # Errors
    /// Those of the sources and of `visit`.
    pub fn visit_versions(
        &mut self,
        key: &[u8],
        mut visit: impl FnMut(InternalKey<'_>, ValueType, &[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.begin(true, None);
        self.aim_at_first_visible(key);
        self.inner.seek(self.seek_key.as_key());
        while self.inner.valid()
            && self.is_same_key(self.inner.key().user_key(), self.seek_key.user_key())
        {
            if self.is_visible() {
                let value_type = type_of(&self.inner)?;
                let is_deletion = matches!(
                    value_type,
                    ValueType::Deletion
                        | ValueType::SingleDeletion
                        | ValueType::DeletionWithTimestamp
                );
                if is_deletion || self.is_covered(Towards::Later)? {
                    return Ok(());
                }
                let (entry, stored) = (self.inner.key(), self.inner.value());
                check_value(entry.user_key(), value_type, stored)?;
                if visit(entry, value_type, stored)?.is_break() {
                    return Ok(());
                }
            }
            self.inner.next();
        }
        self.inner.status()
    }

    /// The key without its timestamp, if it has one.
    #[inline]
    pub(super) fn bare<'a>(&self, user_key: &'a [u8]) -> &'a [u8] {
        match &self.settings.as_of {
            None => user_key,
            Some(as_of) => timestamp::strip(user_key, as_of.size()),
        }
    }

    /// The timestamp of the version shown; empty where keys have none. The cursor must be valid.
    pub fn timestamp(&self) -> &[u8] {
        let Some(as_of) = &self.settings.as_of else { return &[] };
        timestamp::split(self.full_key(), as_of.size()).1
    }

    /// What the version shown is, and its sequence number; the cursor must be valid. A merged value
    /// has the number of its newest operand, and is told as the type of what lies under the
    /// operands, or as an operand.
    ///
    /// Without timestamps, or as of one, the number of a version that was found while moving back
    /// is not known, and 0.
    pub fn version(&self) -> (SequenceNumber, ValueType) {
        match self.shown.on_entry {
            Some(value_type) => (self.inner.head().sequence(), value_type),
            None => {
                let value_type = self.versions.base().unwrap_or(ValueType::Merge);
                (self.versions.newest_sequence(), value_type)
            }
        }
    }

    /// The key shown with its timestamp: that of the newest version that the value is made of.
    pub(super) fn full_key(&self) -> &[u8] {
        assert!(self.valid, "key() needs a valid cursor");
        if self.shown.on_entry.is_some() {
            self.inner.key().user_key()
        } else {
            self.versions.newest_key().unwrap_or(&self.saved.key)
        }
    }

    /// The stored key of the version shown, in a scan over history: with its timestamp, sequence
    /// number and type, as RocksDB's iterator shows it. The cursor must be valid.
    #[inline]
    pub fn internal_key(&self) -> Option<InternalKeyBuf> {
        self.is_over_history().then(|| {
            let (sequence, value_type) = self.version();
            InternalKeyBuf::new(self.full_key(), sequence, value_type)
        })
    }

    /// Whether the scan shows each version.
    #[inline]
    pub(super) fn is_over_history(&self) -> bool {
        self.settings.as_of.as_ref().is_some_and(|as_of| as_of.oldest.is_some())
    }

    /// Whether the entry on which the merged cursor stands is newer than the scan sees, by its
    /// timestamp.
    pub(super) fn is_too_new(&self) -> bool {
        self.settings.as_of.as_ref().is_some_and(|as_of| {
            let (_, stamp) = timestamp::split(self.inner.key().user_key(), as_of.size());
            self.settings.comparator.compare_timestamps(stamp, &as_of.newest).is_gt()
        })
    }

    /// Whether it is older than a scan over history shows.
    pub(super) fn is_too_old(&self) -> bool {
        let Some(AsOf { newest, oldest: Some(oldest) }) = &self.settings.as_of else {
            return false;
        };
        let (_, stamp) = timestamp::split(self.inner.key().user_key(), newest.len());
        self.settings.comparator.compare_timestamps(stamp, oldest).is_lt()
    }

    /// Whether the timestamp and the sequence number of the entry lie within what the scan sees.
    #[inline]
    pub(super) fn is_visible(&self) -> bool {
        self.is_merged_with() && (self.settings.as_of.is_none() || !self.is_too_old())
    }

    /// Whether the entry is part of what newer operands are merged with: a scan over history sees
    /// it even if its timestamp is too old to be shown.
    #[inline]
    fn is_merged_with(&self) -> bool {
        self.inner.head().sequence() <= self.settings.snapshot
            && (self.settings.as_of.is_none() || !self.is_too_new())
    }

    /// Whether the entry counts that comes after the versions collected so far, newest first.
    #[inline]
    pub(super) fn is_collected(&self) -> bool {
        if self.versions.exist() { self.is_merged_with() } else { self.is_visible() }
    }

    /// Whether the merged cursor, which must be valid, stands on a version that may be collected:
    /// one of the saved key, or over history, under operands, one with an older timestamp.
    #[inline]
    pub(super) fn is_below_collected(&self) -> bool {
        self.on_saved_key()
            || self.is_over_history()
                && self.versions.exist()
                && self.is_version_of(&self.saved.key)
    }

    /// Whether the merged cursor stands on a version of a key, under whatever timestamp.
    fn is_version_of(&self, stored: &[u8]) -> bool {
        self.settings.comparator.compare_keys(self.inner.key().user_key(), stored).is_eq()
    }

    /// Whether two stored keys are one key for the scan.
    pub(super) fn is_same_key(&self, a: &[u8], b: &[u8]) -> bool {
        let order = &self.settings.comparator;
        match &self.settings.as_of {
            Some(AsOf { oldest: None, .. }) => order.compare_keys(a, b).is_eq(),
            _ => order.compare(a, b).is_eq(),
        }
    }

    /// The place of the first entry of a key that the scan sees.
    pub(super) fn aim_at_first_visible(&mut self, key: &[u8]) {
        let snapshot = self.settings.snapshot;
        match &self.settings.as_of {
            None => self.seek_key.set(key, snapshot, ValueType::FOR_SEEK),
            Some(as_of) => {
                set(&mut self.seek_key, key, &as_of.newest, snapshot, ValueType::FOR_SEEK);
            }
        }
    }

    /// The last place that an entry of a key can have.
    pub(super) fn aim_behind(&mut self, key: &[u8]) {
        let size = self.settings.as_of.as_ref().map_or(0, AsOf::size);
        let oldest = vec![0; size];
        set(&mut self.seek_key, key, &oldest, 0, ValueType::Deletion);
    }

    /// The last place that an entry of the saved key can have.
    pub(super) fn aim_behind_saved_key(&mut self) {
        if self.settings.as_of.is_none() || self.is_over_history() {
            self.seek_key.set(&self.saved.key, 0, ValueType::Deletion);
        } else {
            let saved = std::mem::take(&mut self.saved.key);
            let size = self.settings.as_of.as_ref().map_or(0, AsOf::size);
            self.aim_behind(timestamp::strip(&saved, size));
            self.saved.key = saved;
        }
    }

    /// Where the merged cursor, whose entry is hidden, may go on: at the first version of its key
    /// that the scan sees, or at the same key's older versions.
    pub(super) fn aim_at_visible_version(&mut self) {
        if self.is_too_new() {
            let user_key = self.inner.key().user_key().to_vec();
            let size = self.settings.as_of.as_ref().map_or(0, AsOf::size);
            self.aim_at_first_visible(timestamp::strip(&user_key, size));
        } else {
            let user_key = self.inner.key().user_key();
            self.seek_key.set(user_key, self.settings.snapshot, ValueType::FOR_SEEK);
        }
    }

    /// The newest place that an entry of the saved key can have that the scan sees.
    pub(super) fn aim_at_newest_of_saved_key(&mut self) {
        if self.settings.as_of.is_none() || self.is_over_history() {
            let snapshot = self.settings.snapshot;
            self.seek_key.set(&self.saved.key, snapshot, ValueType::FOR_SEEK);
        } else {
            let bare = self.bare(&self.saved.key).to_vec();
            self.aim_at_first_visible(&bare);
        }
    }

    /// The place before all entries of the saved key.
    pub(super) fn aim_before_saved_key(&mut self) {
        match &self.settings.as_of {
            Some(AsOf { newest, oldest: None }) => {
                let first = timestamp::before_all(self.bare(&self.saved.key), newest.len());
                self.seek_key.set(&first, MAX_SEQUENCE_NUMBER, ValueType::FOR_SEEK);
            }
            _ => self.seek_key.set(&self.saved.key, MAX_SEQUENCE_NUMBER, ValueType::FOR_SEEK),
        }
    }

    /// Notes the entry on which the merged cursor stands as one that the value is made of.
    #[inline]
    pub(super) fn note_version(&mut self) {
        if self.settings.as_of.is_some() {
            let key = self.inner.key();
            self.versions.note_key(key.user_key(), key.sequence());
        }
    }

    /// Before a scan over history leaves what it shows towards older versions: they begin behind
    /// the last entry that the value is made of.
    pub(super) fn leave_shown_versions(&mut self) {
        if self.is_over_history()
            && let Some(last) = self.versions.last_key()
        {
            self.saved.key.clear();
            self.saved.key.extend_from_slice(last);
        }
    }

    /// Coming back to the saved key in a scan over history, whose own versions were gathered:
    /// collects what its operands are merged with, unless it is itself part of what newer operands
    /// are merged with. Whether it is shown.
    pub(super) fn collect_back(&mut self) -> Result<bool> {
        if self.is_under_operands()? {
            return Ok(false);
        }
        if self.versions.have_operands() {
            self.gather_from_newest()?;
        }
        Ok(true)
    }

    /// Whether what is visible under the next newer timestamp of the saved key are operands only,
    /// so that they are merged with it. Leaves the merged cursor before the saved key.
    fn is_under_operands(&mut self) -> Result<bool> {
        let mut has_moved = false;
        let mut decided = None;
        let mut newer: Option<Vec<u8>> = None;
        let mut operands = 0;
        while self.inner.valid() && self.is_version_of(&self.saved.key) && !self.is_too_new() {
            let user_key = self.inner.key().user_key();
            if !newer.as_ref().is_some_and(|newer| self.is_same_key(newer, user_key)) {
                if operands > 0 {
                    break;
                }
                newer = Some(user_key.to_vec());
            }
            if self.is_merged_with() {
                let is_operand = type_of(&self.inner)? == ValueType::Merge;
                if !is_operand || self.is_covered(Towards::Earlier)? {
                    decided = Some(false);
                    break;
                }
                operands += 1;
            }
            self.inner.prev();
            has_moved = true;
        }
        self.inner.status()?;
        if has_moved {
            self.seek_inner_before_saved_key();
        }
        // The last question may have been about an earlier key in this same direction.
        self.tombstones.reset();
        self.step.covered_run = 0;
        Ok(decided.unwrap_or(operands > 0))
    }

    /// In a scan over history a deletion ends what operands are merged with, or is shown.
    pub(super) fn collect_deletion(&mut self) -> Result<()> {
        if self.versions.exist() {
            self.note_version();
            return Ok(());
        }
        self.show_deletion()
    }

    /// In a scan over history a deletion is shown as a value that is empty.
    pub(super) fn show_deletion(&mut self) -> Result<()> {
        let value_type = type_of(&self.inner)?;
        self.versions.set_base(value_type, b"");
        self.note_version();
        Ok(())
    }
}

fn set(
    target: &mut InternalKeyBuf,
    key: &[u8],
    stamp: &[u8],
    sequence: SequenceNumber,
    value_type: ValueType,
) {
    if stamp.is_empty() {
        target.set(key, sequence, value_type);
    } else {
        target.set(&timestamp::join(key, stamp), sequence, value_type);
    }
}

/// The newest timestamp of a memtable's entries and range deletions; `None` if it has none.
pub fn newest_timestamp(mem: &MemTable, order: &InternalKeyComparator) -> Option<Vec<u8>> {
    let (size, comparator) = (order.timestamp_size(), &order.user);
    let mut newest: Option<Vec<u8>> = None;
    let mut take = |stamp: &[u8]| {
        if newest.as_ref().is_none_or(|known| comparator.compare_timestamps(stamp, known).is_gt()) {
            newest = Some(stamp.to_vec());
        }
    };
    let mut entries = mem.iter();
    entries.seek_to_first();
    while entries.valid() {
        take(timestamp::split(entries.key().user_key(), size).1);
        entries.next();
    }
    for part in mem.range_tombstones(MAX_SEQUENCE_NUMBER) {
        part.tombstones().for_each(|tombstone| take(tombstone.timestamp));
    }
    newest
}
