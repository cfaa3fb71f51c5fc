//! Range deletions, and what the bounds of the file that holds them leave of them.
//!
//! A tombstone `[start, end)@s` hides the entries of its keys that have a smaller sequence number
//! than `s`. For lookup they are cut into fragments (see `fragmented`).

use std::cmp::Ordering;
use std::sync::Arc;

use super::comparator::Comparator;
use super::fragmented::visible_of;
pub use super::fragmented::{
    Fragment, FragmentedRangeTombstones, Keep, RangeTombstoneRef, Sight, kept_of,
};
use super::ids::SequenceNumber;
use super::key::{InternalKey, MAX_SEQUENCE_NUMBER, ValueType, pack_sequence_and_type};

/// One range deletion: the keys from `start` up to but not including `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeTombstone {
    /// The first key deleted; where keys have timestamps, with that of the deletion, which spares
    /// newer ones. So is the end.
    pub start: Vec<u8>,
    /// The first key after it that is not.
    pub end: Vec<u8>,
    /// Entries with smaller sequence numbers are deleted.
    pub sequence: SequenceNumber,
}

/// A place in internal-key order: before or after entries of its user key, depending on the packed
/// number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The user key.
    pub user_key: Vec<u8>,
    /// Sequence number and type, descending; `u64::MAX` stands before all entries of the user key.
    pub packed: u64,
}

impl Bound {
    fn borrowed(&self) -> BoundRef<'_> {
        BoundRef { user_key: &self.user_key, packed: self.packed }
    }
}

/// A borrowed [`Bound`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundRef<'a> {
    /// The user key.
    pub user_key: &'a [u8],
    /// Sequence number and type, descending; `u64::MAX` stands before all entries of the user key.
    pub packed: u64,
}

impl<'a> BoundRef<'a> {
    /// The place before all entries of a user key.
    pub fn before(user_key: &'a [u8]) -> Self {
        Self { user_key, packed: u64::MAX }
    }

    /// The order of two places.
    pub fn compare(&self, other: &BoundRef<'_>, comparator: &Comparator) -> Ordering {
        comparator
            .compare(self.user_key, other.user_key)
            .then_with(|| other.packed.cmp(&self.packed))
    }
}

impl<'a> From<InternalKey<'a>> for BoundRef<'a> {
    fn from(key: InternalKey<'a>) -> Self {
        Self { user_key: key.user_key(), packed: key.packed() }
    }
}

/// Nothing of a file lies before its smallest key, whatever type that has.
fn lower_bound(smallest: InternalKey<'_>) -> Bound {
    Bound { user_key: smallest.user_key().to_vec(), packed: smallest.packed() | 0xff }
}

/// The first place after a file's largest key.
///
/// A largest key that is the end of a range deletion (the sentinel) is itself that place. Behind a
/// key with sequence number 0 no entry of the same user key can follow in the next file, so the key
/// may stand for the place after it.
fn upper_bound(largest: InternalKey<'_>) -> Bound {
    let sentinel = pack_sequence_and_type(MAX_SEQUENCE_NUMBER, ValueType::RangeDeletion);
    let packed = match (largest.packed(), largest.sequence()) {
        (packed, _) if packed == sentinel => u64::MAX,
        (packed, 0) => packed,
        (_, sequence) => ((sequence - 1) << 8) | 0xff,
    };
    Bound { user_key: largest.user_key().to_vec(), packed }
}

/// A file's range tombstones cut to the file's bounds: beyond them a neighbouring file decides.
#[derive(Debug, Clone)]
pub struct TruncatedRangeTombstones {
    tombstones: Arc<FragmentedRangeTombstones>,
    lower: Option<Bound>,
    upper: Option<Bound>,
}

/// A fragment cut to its file's bounds: the internal keys from `start` up to but not including
/// `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncatedFragment<'a> {
    /// The first place covered.
    pub start: BoundRef<'a>,
    /// The first place no longer covered.
    pub end: BoundRef<'a>,
    /// The tombstones' sequence numbers, descending; never empty.
    pub sequences: &'a [SequenceNumber],
    /// The timestamp of each of them, one behind the other; empty where keys have none.
    pub timestamps: &'a [u8],
}

impl TruncatedFragment<'_> {
    /// The largest sequence number that `snapshot` sees, or 0.
    #[inline]
    pub fn visible_sequence(&self, snapshot: SequenceNumber) -> SequenceNumber {
        visible_of(self.sequences, snapshot)
    }

    /// The largest sequence number that is seen, or 0.
    pub fn seen_by(&self, sight: &Sight<'_>) -> SequenceNumber {
        sight.first_of(self.sequences, self.timestamps)
    }
}

impl TruncatedRangeTombstones {
    pub(super) fn within(
        tombstones: Arc<FragmentedRangeTombstones>,
        smallest: InternalKey<'_>,
        largest: InternalKey<'_>,
    ) -> Self {
        Self { tombstones, lower: Some(lower_bound(smallest)), upper: Some(upper_bound(largest)) }
    }

    pub(super) fn whole(tombstones: Arc<FragmentedRangeTombstones>) -> Self {
        Self { tombstones, lower: None, upper: None }
    }

    /// The tombstones without the bounds.
    pub fn tombstones(&self) -> &Arc<FragmentedRangeTombstones> {
        &self.tombstones
    }

    fn comparator(&self) -> &Comparator {
        self.tombstones.comparator()
    }

    /// The cut fragment at `index` of [`FragmentedRangeTombstones::get`]; `None` past the last one,
    /// and also for one of which the bounds leave nothing (these are at both ends only).
    pub fn get(&self, index: usize) -> Option<TruncatedFragment<'_>> {
        let fragment = self.tombstones.get(index)?;
        let comparator = self.comparator();
        let (mut start, mut end) =
            (BoundRef::before(fragment.start), BoundRef::before(fragment.end));
        if let Some(lower) = self.lower.as_ref().map(Bound::borrowed)
            && lower.compare(&start, comparator).is_gt()
        {
            start = lower;
        }
        if let Some(upper) = self.upper.as_ref().map(Bound::borrowed)
            && upper.compare(&end, comparator).is_lt()
        {
            end = upper;
        }
        let (sequences, timestamps) = (fragment.sequences, fragment.timestamps);
        start.compare(&end, comparator).is_lt().then_some(TruncatedFragment {
            start,
            end,
            sequences,
            timestamps,
        })
    }

    /// All cut fragments in order.
    pub fn fragments(&self) -> impl DoubleEndedIterator<Item = TruncatedFragment<'_>> {
        (0..self.tombstones.len()).filter_map(|index| self.get(index))
    }

    /// The cut fragment that covers the place of `key`, if one does. Binary search.
    pub fn covering(&self, key: InternalKey<'_>) -> Option<TruncatedFragment<'_>> {
        let fragment = self.get(self.tombstones.first_ending_after(key.user_key()))?;
        let (place, comparator) = (BoundRef::from(key), self.comparator());
        let covered = fragment.start.compare(&place, comparator).is_le()
            && place.compare(&fragment.end, comparator).is_lt();
        covered.then_some(fragment)
    }

    /// The newest tombstone over the place of `key` that `snapshot` sees: its sequence number, or 0
    /// if there is none. The entry at `key` is deleted if its own sequence number is smaller.
    pub fn covering_sequence(
        &self,
        key: InternalKey<'_>,
        snapshot: SequenceNumber,
    ) -> SequenceNumber {
        self.covering(key).map_or(0, |fragment| fragment.visible_sequence(snapshot))
    }
}

#[cfg(test)]
#[path = "range_tombstone_tests.rs"]
mod tests;
