//! Range deletions as fragments that do not overlap, in the form in which they are looked up.
//!
//! ```text
//! tombstones   [b, m)@3  [k, p)@4
//! fragments    [b, k)@3  [k, m)@4,3  [m, p)@4        sequence numbers descending
//! ```
//!
//! 1. Every start and end is a cut. Between two neighbouring cuts the set of covering tombstones is
//!    constant.
//! 2. The sweep walks the cuts in order and keeps the covering sequence numbers in an ordered set.
//!    Of each set only those are kept that somebody will ask for ([`Keep`]): of nested ranges there
//!    may be as many in each of as many fragments.
//! 3. Neighbours that keep the same sequence numbers become one fragment.
//! 4. A lookup counts the starts and ends up to a key (`sorted_keys`): an odd one lies in a
//!    fragment. Before, it asks bits that know of most keys in no fragment that they are not
//!    (`covered_parts`, `covered_groups`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::comparator::Comparator;
use super::ids::SequenceNumber;
use super::key::InternalKey;
use super::range_tombstone::{RangeTombstone, TruncatedRangeTombstones};
use super::sorted_keys::SortedKeys;
pub(crate) use super::sorted_keys::Within;
use super::timestamp;

/// A range over which the same tombstones lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The first key covered.
    pub start: &'a [u8],
    /// The first key no longer covered.
    pub end: &'a [u8],
    /// The tombstones' sequence numbers, descending, without repetition; never empty. Where keys
    /// have timestamps, a number may come again with another timestamp.
    pub sequences: &'a [SequenceNumber],
    /// The timestamp of each of them, one behind the other; empty where keys have none.
    pub timestamps: &'a [u8],
}

impl Fragment<'_> {
    /// The largest sequence number that `snapshot` sees, or 0.
    #[inline]
    pub fn visible_sequence(&self, snapshot: SequenceNumber) -> SequenceNumber {
        visible_of(self.sequences, snapshot)
    }
}

/// The first of these descending numbers that `snapshot` sees, or 0.
#[inline]
pub(super) fn visible_of(sequences: &[SequenceNumber], snapshot: SequenceNumber) -> SequenceNumber {
    let newer = sequences.partition_point(|&sequence| sequence > snapshot);
    sequences.get(newer).copied().unwrap_or(0)
}

/// Which of the tombstones over a place are seen.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// The order of the keys.
    pub comparator: &'a Comparator,
    /// The newest sequence number.
    pub snapshot: SequenceNumber,
    /// The newest timestamp; `None` for any.
    pub as_of: Option<&'a [u8]>,
}

impl Sight<'_> {
    /// The largest of these descending numbers that is seen, or 0.
    pub(super) fn first_of(
        &self,
        sequences: &[SequenceNumber],
        timestamps: &[u8],
    ) -> SequenceNumber {
        let Some(as_of) = self.as_of.filter(|as_of| !as_of.is_empty()) else {
            return visible_of(sequences, self.snapshot);
        };
        let is_seen = |&(sequence, timestamp): &(&SequenceNumber, &[u8])| {
            *sequence <= self.snapshot
                && self.comparator.compare_timestamps(timestamp, as_of).is_le()
        };
        let stamped = sequences.iter().zip(timestamps.chunks_exact(as_of.len()));
        stamped.into_iter().find(is_seen).map_or(0, |(sequence, _)| *sequence)
    }
}

/// Which sequence numbers of overlapping tombstones are kept.
#[derive(Debug, Clone, Copy)]
pub enum Keep<'a> {
    /// All.
    All,
    /// The largest: for who sees all of the tombstones.
    Newest,
    /// Those that the present or one of these snapshots, ascending, sees first.
    Needed(&'a [SequenceNumber]),
}

/// A range deletion whose keys lie elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct RangeTombstoneRef<'a> {
    /// The first key deleted.
    pub start: &'a [u8],
    /// The first key after it that is not.
    pub end: &'a [u8],
    /// Entries with smaller sequence numbers are deleted.
    pub sequence: SequenceNumber,
    /// Where keys have timestamps: deletes entries with this one and older ones. Otherwise empty.
    pub timestamp: &'a [u8],
}

impl<'a> RangeTombstoneRef<'a> {
    /// One as it is stored: where keys have timestamps, start and end are stored with that of the
    /// deletion.
    pub fn stored(tombstone: &'a RangeTombstone, comparator: &Comparator) -> Self {
        let (_, timestamp) = timestamp::split(&tombstone.start, comparator.timestamp_size());
        let (start, end) = (&tombstone.start, &tombstone.end);
        Self { start, end, sequence: tombstone.sequence, timestamp }
    }
}

#[derive(Debug, Clone, Copy)]
struct Stored {
    /// The largest of its sequence numbers.
    newest: SequenceNumber,
    /// Where its sequence numbers begin in the common list; they end where the next one's begin.
    sequences: usize,
}

/// A table's fragments may have so many sequence numbers, 128 MiB of them, or two for each
/// tombstone, if that is more.
const NUMBERS_MIN: usize = 1 << 24;

/// Range tombstones in the form in which they are looked up.
#[derive(Debug, Clone)]
pub struct FragmentedRangeTombstones {
    comparator: Comparator,
    fragments: Vec<Stored>,
    sequences: Vec<SequenceNumber>,
    /// Where keys have timestamps: that of each sequence number, one behind the other.
    timestamps: Vec<u8>,
    /// The start and the end of each fragment; where keys have timestamps, with the greatest one.
    bounds: SortedKeys,
    /// The smallest and the largest of the fragments' newest sequence numbers.
    newest: (SequenceNumber, SequenceNumber),
}

impl FragmentedRangeTombstones {
    /// Fragments tombstones given in any order, and keeps all of their sequence numbers. Dropped
    /// are ranges that are empty, inverted, or too short for their timestamps.
    pub fn new(comparator: &Comparator, tombstones: Vec<RangeTombstone>) -> Self {
        let stored = tombstones.iter().map(|one| RangeTombstoneRef::stored(one, comparator));
        Self::keeping(Keep::All, comparator, stored)
    }

    /// Those of a table; `None` if its ranges are nested so deeply that the sequence numbers of all
    /// fragments would fill the memory. What is written in fragments, as all tables are today, has
    /// one number for each tombstone.
    pub fn of_table(comparator: &Comparator, tombstones: &[RangeTombstone]) -> Option<Self> {
        let most = NUMBERS_MIN.max(2 * tombstones.len());
        let stored = tombstones.iter().map(|one| RangeTombstoneRef::stored(one, comparator));
        Self::sweep(Keep::All, comparator, stored, most)
    }

    /// The same for some of the sequence numbers. Linear where the tombstones come in a few
    /// ascending runs.
    pub fn keeping<'a>(
        keep: Keep<'_>,
        comparator: &Comparator,
        tombstones: impl Iterator<Item = RangeTombstoneRef<'a>>,
    ) -> Self {
        Self::sweep(keep, comparator, tombstones, usize::MAX).expect("as many numbers as there are")
    }

    /// `None` if that takes more than `most` sequence numbers.
    fn sweep<'a>(
        keep: Keep<'_>,
        comparator: &Comparator,
        tombstones: impl Iterator<Item = RangeTombstoneRef<'a>>,
        most: usize,
    ) -> Option<Self> {
        let stamp_size = comparator.timestamp_size();
        // A reader may ask for any timestamp.
        let keep = if stamp_size == 0 { keep } else { Keep::All };
        let whole = |key: &'a [u8]| timestamp::opening(key, stamp_size);
        let mut cuts: Vec<(Cow<'a, [u8]>, Cut<'a>)> =
            Vec::with_capacity(2 * tombstones.size_hint().0);
        // Where ranges begin and end is a question of the order.
        let is_range = |one: &RangeTombstoneRef<'_>| {
            one.start.len().min(one.end.len()) >= stamp_size
                && comparator.compare_keys(one.start, one.end).is_lt()
                && !comparator.is_unknown()
        };
        for tombstone in tombstones.filter(is_range) {
            let stamped = (tombstone.sequence, tombstone.timestamp);
            cuts.push((whole(tombstone.start), Cut::Starts(stamped)));
            cuts.push((whole(tombstone.end), Cut::Ends(stamped)));
        }
        cuts.sort_by(|a, b| comparator.compare(&a.0, &b.0));
        let mut fragmented = Self {
            comparator: comparator.clone(),
            fragments: Vec::new(),
            sequences: Vec::new(),
            timestamps: Vec::new(),
            bounds: SortedKeys::default(),
            newest: (SequenceNumber::MAX, 0),
        };
        // How many tombstones of each sequence number cover the place that the sweep has reached.
        let mut covering: BTreeMap<Stamped<'_>, usize> = BTreeMap::new();
        let mut kept = Vec::new();
        let mut previous: Cow<'_, [u8]> = Cow::Borrowed(&[]);
        for (at, cut) in cuts {
            if !covering.is_empty() && comparator.compare(&previous, &at).is_lt() {
                kept_of(&covering, keep, &mut kept);
                if kept.len() > most - fragmented.sequences.len() {
                    return None;
                }
                fragmented.push(&previous, &at, &kept);
            }
            previous = at;
            match cut {
                Cut::Starts(stamped) => *covering.entry(stamped).or_default() += 1,
                Cut::Ends(stamped) => {
                    if let Some(count) = covering.get_mut(&stamped) {
                        *count -= 1;
                        if *count == 0 {
                            covering.remove(&stamped);
                        }
                    }
                }
            }
        }
        fragmented.bounds.finish(comparator);
        Some(fragmented)
    }

    fn push(&mut self, start: &[u8], end: &[u8], stamped: &[Stamped<'_>]) {
        if self.bounds.last() == Some(start) && self.last_has(stamped) {
            self.bounds.remove_last();
            self.bounds.add(end);
            return;
        }
        self.bounds.add(start);
        self.bounds.add(end);
        let newest = stamped[0].0;
        self.newest = (self.newest.0.min(newest), self.newest.1.max(newest));
        self.fragments.push(Stored { newest, sequences: self.sequences.len() });
        for (sequence, timestamp) in stamped {
            self.sequences.push(*sequence);
            self.timestamps.extend_from_slice(timestamp);
        }
    }

    /// Whether the last fragment has just these tombstones.
    fn last_has(&self, stamped: &[Stamped<'_>]) -> bool {
        let Some(last) = self.fragments.last() else { return false };
        let size = self.comparator.timestamp_size();
        self.sequences[last.sequences..].iter().eq(stamped.iter().map(|(sequence, _)| sequence))
            && self.timestamps[last.sequences * size..]
                .iter()
                .eq(stamped.iter().flat_map(|(_, timestamp)| timestamp.iter()))
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

    /// Bytes of memory that it takes.
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>()
            + self.fragments.capacity() * size_of::<Stored>()
            + self.bounds.memory_usage()
            + self.sequences.capacity() * size_of::<SequenceNumber>()
            + self.timestamps.capacity()
    }

    /// The fragment at `index`, if there are that many.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Fragment<'_>> {
        let fragment = self.fragments.get(index)?;
        let end = self.fragments.get(index + 1).map_or(self.sequences.len(), |next| next.sequences);
        Some(Fragment {
            start: self.bounds.get(2 * index),
            end: self.bounds.get(2 * index + 1),
            sequences: &self.sequences[fragment.sequences..end],
            timestamps: self.timestamps_of(fragment.sequences..end),
        })
    }

    #[inline]
    fn timestamps_of(&self, sequences: Range<usize>) -> &[u8] {
        if self.timestamps.is_empty() {
            return &[];
        }
        let size = self.comparator.timestamp_size();
        &self.timestamps[sequences.start * size..sequences.end * size]
    }

    /// All fragments in key order.
    pub fn fragments(&self) -> impl DoubleEndedIterator<Item = Fragment<'_>> + ExactSizeIterator {
        (0..self.len()).map(|index| self.get(index).expect("the index is one of a fragment"))
    }

    /// A tombstone for each sequence number of each fragment: what it was made from, or stands for
    /// it.
    pub fn tombstones(&self) -> impl Iterator<Item = RangeTombstoneRef<'_>> {
        let size = self.comparator.timestamp_size();
        self.fragments().flat_map(move |Fragment { start, end, sequences, timestamps }| {
            sequences.iter().enumerate().map(move |(at, &sequence)| {
                let timestamp = if size == 0 { &[][..] } else { &timestamps[at * size..][..size] };
                RangeTombstoneRef { start, end, sequence, timestamp }
            })
        })
    }

    /// The index of the first fragment that ends after `user_key`: the one that covers it, or the
    /// next one; [`FragmentedRangeTombstones::len`] if there is none. Logarithmic.
    #[inline]
    pub fn first_ending_after(&self, user_key: &[u8]) -> usize {
        self.bounds.count_up_to(&self.comparator, user_key) / 2
    }

    /// Begins to look for what covers `user_key`: the memory that the rest will wait for is on its
    /// way. `None` if nothing does, whatever a snapshot sees.
    #[inline]
    pub(crate) fn seek(&self, user_key: &[u8]) -> Option<Within> {
        self.bounds.seek(user_key)
    }

    /// Whether `snapshot` sees a tombstone over the key that was sought; `None` if to tell that
    /// takes a search of many keys, as in an order of the application's.
    #[inline]
    pub(crate) fn covers(
        &self,
        within: Within,
        user_key: &[u8],
        snapshot: SequenceNumber,
    ) -> Option<bool> {
        self.bounds.are_numbers().then(|| self.covering_at(within, user_key, snapshot, 0) > 0)
    }

    /// The newest tombstone over `user_key` that `snapshot` sees: its sequence number, or 0 if
    /// there is none.
    #[inline]
    pub fn covering_sequence(&self, user_key: &[u8], snapshot: SequenceNumber) -> SequenceNumber {
        self.seek(user_key)
            .map_or(0, |within| self.covering_at(within, user_key, snapshot, SequenceNumber::MAX))
    }

    /// The same for a key that was sought, but instead of a number larger than `enough` it may be
    /// another one that is.
    #[inline]
    pub(crate) fn covering_at(
        &self,
        within: Within,
        user_key: &[u8],
        snapshot: SequenceNumber,
        enough: SequenceNumber,
    ) -> SequenceNumber {
        let (least, largest) = self.newest;
        let any_will_do = least > enough && largest <= snapshot;
        if any_will_do && matches!(within, Within::Yes(_)) {
            return least;
        }
        let bounds = self.bounds.count_from(&self.comparator, within, user_key);
        if bounds.is_multiple_of(2) {
            0
        } else if any_will_do {
            least
        } else {
            self.visible_in(bounds / 2, snapshot)
        }
    }

    #[inline(never)]
    fn visible_in(&self, fragment: usize, snapshot: SequenceNumber) -> SequenceNumber {
        match self.fragments[fragment].newest {
            newest if newest <= snapshot => newest,
            _ => self.get(fragment).map_or(0, |fragment| fragment.visible_sequence(snapshot)),
        }
    }

    /// The tombstones that a table must hold so that each of `snapshots` (ascending) and the
    /// present see the same deletions as before: one per fragment, and one more for each snapshot
    /// that would otherwise see an older one go.
    pub fn for_writing(&self, snapshots: &[SequenceNumber]) -> Vec<RangeTombstone> {
        debug_assert!(snapshots.is_sorted());
        if !self.timestamps.is_empty() {
            return self.tombstones().map(|one| self.as_stored(&one)).collect();
        }
        let mut kept = Vec::with_capacity(self.fragments.len());
        for fragment in self.fragments() {
            let older = |sequence| {
                let visible = fragment.sequences.partition_point(|&candidate| candidate > sequence);
                fragment.sequences.get(visible).copied()
            };
            for sequence in needed(fragment.sequences.first().copied(), snapshots, older) {
                kept.push(RangeTombstone {
                    start: fragment.start.to_vec(),
                    end: fragment.end.to_vec(),
                    sequence,
                });
            }
        }
        kept
    }

    /// A tombstone with timestamp as it is stored.
    fn as_stored(&self, tombstone: &RangeTombstoneRef<'_>) -> RangeTombstone {
        let RangeTombstoneRef { start, end, sequence, timestamp } = *tombstone;
        let size = self.comparator.timestamp_size();
        let stored = |key| timestamp::join(timestamp::strip(key, size), timestamp);
        RangeTombstone { start: stored(start), end: stored(end), sequence }
    }

    /// These tombstones as far as they lie within a file's bounds; shares them.
    pub fn truncated(
        self: &Arc<Self>,
        smallest: InternalKey<'_>,
        largest: InternalKey<'_>,
    ) -> TruncatedRangeTombstones {
        TruncatedRangeTombstones::within(self.clone(), smallest, largest)
    }

    /// These tombstones without bounds, as a memtable holds them; shares them.
    pub fn untruncated(self: &Arc<Self>) -> TruncatedRangeTombstones {
        TruncatedRangeTombstones::whole(self.clone())
    }
}

/// The sequence number and the timestamp of a tombstone; the latter is empty where keys have none.
type Stamped<'a> = (SequenceNumber, &'a [u8]);

#[derive(Debug, Clone, Copy)]
enum Cut<'a> {
    Starts(Stamped<'a>),
    Ends(Stamped<'a>),
}

/// What is kept of the tombstones that cover a place, descending.
pub fn kept_of<'a>(
    covering: &BTreeMap<Stamped<'a>, usize>,
    keep: Keep<'_>,
    kept: &mut Vec<Stamped<'a>>,
) {
    kept.clear();
    let newest = covering.last_key_value().map(|(stamped, _)| *stamped);
    match keep {
        Keep::All => kept.extend(covering.keys().rev()),
        Keep::Newest => kept.extend(newest),
        Keep::Needed(snapshots) => {
            // Only where there are no timestamps.
            let visible_to = |snapshot: SequenceNumber| {
                let before = covering.range(..(snapshot + 1, &[][..]));
                before.map(|((sequence, _), _)| *sequence).next_back()
            };
            let sequences = needed(newest.map(|(sequence, _)| sequence), snapshots, visible_to);
            kept.extend(sequences.map(|sequence| (sequence, &[][..])));
        }
    }
}

/// The newest, then for each older stripe its largest, down to the first that every snapshot sees.
/// `visible_to` says what a snapshot sees first.
fn needed(
    newest: Option<SequenceNumber>,
    snapshots: &[SequenceNumber],
    visible_to: impl Fn(SequenceNumber) -> Option<SequenceNumber>,
) -> impl Iterator<Item = SequenceNumber> {
    std::iter::successors(newest, move |&sequence| {
        // The greatest snapshot that cannot see this one decides which is needed next.
        let older = snapshots.partition_point(|&snapshot| snapshot < sequence);
        older.checked_sub(1).and_then(|index| visible_to(snapshots[index]))
    })
}
