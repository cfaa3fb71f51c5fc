//! Range deletions: fragmented for lookup, and cut to the bounds of the file that holds them.
//!
//! A tombstone `[start, end)@s` hides the entries of its keys that have a smaller sequence number than `s`. Overlapping
//! tombstones are turned into fragments that do not overlap:
//!
//! ```text
//! tombstones   [b, m)@3  [k, p)@4
//! fragments    [b, k)@3  [k, m)@4,3  [m, p)@4        sequence numbers descending
//! ```
//!
//! 1. Every start and end is a cut. Between two neighbouring cuts the set of covering tombstones is constant.
//! 2. The sweep walks the cuts in order and keeps the covering sequence numbers in an ordered set.
//! 3. A lookup finds by binary search the one fragment that may cover a key, and in it the largest visible number.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::comparator::Comparator;
use super::ids::SequenceNumber;
use super::key::{InternalKey, MAX_SEQUENCE_NUMBER, ValueType, pack_sequence_and_type};

/// One range deletion: the keys from `start` up to but not including `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeTombstone {
    /// The first key deleted.
    pub start: Vec<u8>,
    /// The first key after it that is not.
    pub end: Vec<u8>,
    /// Entries with smaller sequence numbers are deleted.
    pub sequence: SequenceNumber,
}

/// A range over which the same tombstones lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The first key covered.
    pub start: &'a [u8],
    /// The first key no longer covered.
    pub end: &'a [u8],
    /// The tombstones' sequence numbers, descending, without repetition; never empty.
    pub sequences: &'a [SequenceNumber],
}

impl Fragment<'_> {
    /// The largest sequence number that `snapshot` sees, or 0.
    #[inline]
    pub fn visible_sequence(&self, snapshot: SequenceNumber) -> SequenceNumber {
        let newer = self.sequences.partition_point(|&sequence| sequence > snapshot);
        self.sequences.get(newer).copied().unwrap_or(0)
    }
}

#[derive(Debug, Clone)]
struct StoredFragment {
    start: Vec<u8>,
    end: Vec<u8>,
    /// Where its sequence numbers begin and end in the common list.
    sequences: (usize, usize),
}

/// Range tombstones in the form in which they are looked up.
#[derive(Debug, Clone)]
pub struct FragmentedRangeTombstones {
    comparator: Comparator,
    fragments: Vec<StoredFragment>,
    sequences: Vec<SequenceNumber>,
}

impl FragmentedRangeTombstones {
    /// Fragments tombstones given in any order; empty and inverted ranges are dropped.
    pub fn new(comparator: &Comparator, mut tombstones: Vec<RangeTombstone>) -> Self {
        tombstones.retain(|tombstone| comparator.compare(&tombstone.start, &tombstone.end).is_lt());
        let mut fragmented =
            Self { comparator: comparator.clone(), fragments: Vec::new(), sequences: Vec::new() };
        let mut cuts: Vec<(&[u8], Cut)> = Vec::with_capacity(2 * tombstones.len());
        for tombstone in &tombstones {
            cuts.push((&tombstone.start, Cut::Starts(tombstone.sequence)));
            cuts.push((&tombstone.end, Cut::Ends(tombstone.sequence)));
        }
        cuts.sort_by(|a, b| comparator.compare(a.0, b.0));
        // How many tombstones of each sequence number cover the place that the sweep has reached.
        let mut covering: BTreeMap<SequenceNumber, usize> = BTreeMap::new();
        let mut previous: &[u8] = &[];
        for (at, cut) in cuts {
            if !covering.is_empty() && comparator.compare(previous, at).is_lt() {
                fragmented.push(previous, at, covering.keys().rev().copied());
            }
            previous = at;
            match cut {
                Cut::Starts(sequence) => *covering.entry(sequence).or_default() += 1,
                Cut::Ends(sequence) => {
                    if let Some(count) = covering.get_mut(&sequence) {
                        *count -= 1;
                        if *count == 0 {
                            covering.remove(&sequence);
                        }
                    }
                }
            }
        }
        fragmented
    }

    fn push(&mut self, start: &[u8], end: &[u8], sequences: impl Iterator<Item = SequenceNumber>) {
        let first = self.sequences.len();
        self.sequences.extend(sequences);
        let sequences = (first, self.sequences.len());
        self.fragments.push(StoredFragment { start: start.to_vec(), end: end.to_vec(), sequences });
    }

    /// The order of the keys.
    pub fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// Whether nothing is deleted.
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The number of fragments.
    pub fn len(&self) -> usize {
        self.fragments.len()
    }

    /// The fragment at `index`, if there are that many.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Fragment<'_>> {
        self.fragments.get(index).map(|fragment| self.resolve(fragment))
    }

    #[inline]
    fn resolve<'a>(&'a self, fragment: &'a StoredFragment) -> Fragment<'a> {
        let (first, last) = fragment.sequences;
        Fragment { start: &fragment.start, end: &fragment.end, sequences: &self.sequences[first..last] }
    }

    /// All fragments in key order.
    pub fn fragments(&self) -> impl DoubleEndedIterator<Item = Fragment<'_>> + ExactSizeIterator {
        self.fragments.iter().map(|fragment| self.resolve(fragment))
    }

    /// The index of the first fragment that ends after `user_key`: the one that covers it, or the next one;
    /// [`FragmentedRangeTombstones::len`] if there is none. Binary search.
    #[inline]
    pub fn first_ending_after(&self, user_key: &[u8]) -> usize {
        self.fragments.partition_point(|fragment| self.comparator.compare(&fragment.end, user_key).is_le())
    }

    /// The fragment that covers `user_key`, if one does.
    #[inline]
    pub fn covering(&self, user_key: &[u8]) -> Option<Fragment<'_>> {
        let fragment = self.get(self.first_ending_after(user_key))?;
        self.comparator.compare(fragment.start, user_key).is_le().then_some(fragment)
    }

    /// The newest tombstone over `user_key` that `snapshot` sees: its sequence number, or 0 if there is none.
    #[inline]
    pub fn covering_sequence(&self, user_key: &[u8], snapshot: SequenceNumber) -> SequenceNumber {
        self.covering(user_key).map_or(0, |fragment| fragment.visible_sequence(snapshot))
    }

    /// Whether some tombstone covers a key of `[start, end]`, both inclusive.
    pub fn overlaps(&self, start: &[u8], end: &[u8]) -> bool {
        self.get(self.first_ending_after(start))
            .is_some_and(|fragment| self.comparator.compare(fragment.start, end).is_le())
    }

    /// The smallest and the largest sequence number, if there is any.
    pub fn sequence_range(&self) -> Option<(SequenceNumber, SequenceNumber)> {
        Some((*self.sequences.iter().min()?, *self.sequences.iter().max()?))
    }

    /// The tombstones that a table must hold so that each of `snapshots` (ascending) and the present see the same
    /// deletions as before: one per fragment, and one more for each snapshot that would otherwise see an older one go.
    pub fn for_writing(&self, snapshots: &[SequenceNumber]) -> Vec<RangeTombstone> {
        debug_assert!(snapshots.is_sorted());
        let mut kept = Vec::with_capacity(self.fragments.len());
        for fragment in self.fragments() {
            for sequence in needed_sequences(fragment.sequences, snapshots) {
                kept.push(RangeTombstone {
                    start: fragment.start.to_vec(),
                    end: fragment.end.to_vec(),
                    sequence,
                });
            }
        }
        kept
    }

    /// These tombstones as far as they lie within a file's bounds; shares them.
    pub fn truncated(
        self: &Arc<Self>,
        smallest: InternalKey<'_>,
        largest: InternalKey<'_>,
    ) -> TruncatedRangeTombstones {
        TruncatedRangeTombstones {
            tombstones: Arc::clone(self),
            lower: Some(lower_bound(smallest)),
            upper: Some(upper_bound(largest)),
        }
    }

    /// These tombstones without bounds, as a memtable holds them; shares them.
    pub fn untruncated(self: &Arc<Self>) -> TruncatedRangeTombstones {
        TruncatedRangeTombstones { tombstones: Arc::clone(self), lower: None, upper: None }
    }
}

#[derive(Debug, Clone, Copy)]
enum Cut {
    Starts(SequenceNumber),
    Ends(SequenceNumber),
}

/// The largest number, then for each older stripe its largest, down to the first that every snapshot sees.
fn needed_sequences(sequences: &[SequenceNumber], snapshots: &[SequenceNumber]) -> Vec<SequenceNumber> {
    let mut needed = Vec::new();
    let mut next = sequences.first().copied();
    while let Some(sequence) = next {
        needed.push(sequence);
        // The greatest snapshot that cannot see this one decides which is needed next.
        let older = snapshots.partition_point(|&snapshot| snapshot < sequence);
        next = older.checked_sub(1).and_then(|index| {
            let visible = sequences.partition_point(|&candidate| candidate > snapshots[index]);
            sequences.get(visible).copied()
        });
    }
    needed
}

/// A place in internal-key order: before or after entries of its user key, depending on the packed number.
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
        comparator.compare(self.user_key, other.user_key).then_with(|| other.packed.cmp(&self.packed))
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
/// A largest key that is the end of a range deletion (the sentinel) is itself that place. Behind a key with sequence
/// number 0 no entry of the same user key can follow in the next file, so the key may stand for the place after it.
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

/// A fragment cut to its file's bounds: the internal keys from `start` up to but not including `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruncatedFragment<'a> {
    /// The first place covered.
    pub start: BoundRef<'a>,
    /// The first place no longer covered.
    pub end: BoundRef<'a>,
    /// The tombstones' sequence numbers, descending; never empty.
    pub sequences: &'a [SequenceNumber],
}

impl TruncatedFragment<'_> {
    /// The largest sequence number that `snapshot` sees, or 0.
    #[inline]
    pub fn visible_sequence(&self, snapshot: SequenceNumber) -> SequenceNumber {
        let newer = self.sequences.partition_point(|&sequence| sequence > snapshot);
        self.sequences.get(newer).copied().unwrap_or(0)
    }
}

impl TruncatedRangeTombstones {
    /// The tombstones without the bounds.
    pub fn tombstones(&self) -> &Arc<FragmentedRangeTombstones> {
        &self.tombstones
    }

    fn comparator(&self) -> &Comparator {
        &self.tombstones.comparator
    }

    /// Whether nothing is deleted.
    pub fn is_empty(&self) -> bool {
        self.fragments().next().is_none()
    }

    /// The cut fragment at `index` of [`FragmentedRangeTombstones::get`]; `None` past the last one, and also for one of
    /// which the bounds leave nothing (these are at both ends only).
    pub fn get(&self, index: usize) -> Option<TruncatedFragment<'_>> {
        let fragment = self.tombstones.get(index)?;
        let comparator = self.comparator();
        let (mut start, mut end) = (BoundRef::before(fragment.start), BoundRef::before(fragment.end));
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
        let sequences = fragment.sequences;
        start.compare(&end, comparator).is_lt().then_some(TruncatedFragment { start, end, sequences })
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

    /// The newest tombstone over the place of `key` that `snapshot` sees: its sequence number, or 0 if there is none.
    /// The entry at `key` is deleted if its own sequence number is smaller.
    pub fn covering_sequence(&self, key: InternalKey<'_>, snapshot: SequenceNumber) -> SequenceNumber {
        self.covering(key).map_or(0, |fragment| fragment.visible_sequence(snapshot))
    }

    /// Whether some tombstone covers a key of `[start, end]`, both inclusive.
    pub fn overlaps(&self, start: &[u8], end: &[u8]) -> bool {
        let comparator = self.comparator();
        let first = self.tombstones.first_ending_after(start);
        let candidates = (first..self.tombstones.len()).map_while(|index| {
            let begins = self.tombstones.get(index)?.start;
            comparator.compare(begins, end).is_le().then(|| self.get(index))
        });
        // A place inside the user key `end` or `start` still belongs to that user key.
        candidates.flatten().any(|fragment| {
            comparator.compare(fragment.start.user_key, end).is_le()
                && match comparator.compare(fragment.end.user_key, start) {
                    Ordering::Greater => true,
                    Ordering::Equal => fragment.end.packed != u64::MAX,
                    Ordering::Less => false,
                }
        })
    }
}

#[cfg(test)]
#[path = "range_tombstone_tests.rs"]
mod tests;
