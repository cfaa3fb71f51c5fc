//! Range tombstones in a flush or compaction: what they cover, which survive, which output file
//! holds them.
//!
//! Two forms are kept. Covering is judged by the tombstones as truncated to their files, place by
//! place, since this is what readers see. Written are ranges of user keys: where a file's bounds
//! cut a tombstone within a user key, the file that has the key's other versions is among the
//! inputs too, and its copy of the tombstone begins with that key.

use std::collections::BTreeMap;

use super::stream_settings::History;
use crate::base::range_tombstone::{
    BoundRef, FragmentedRangeTombstones, Keep, RangeTombstone, RangeTombstoneRef, kept_of,
};
use crate::base::{
    Comparator, InternalKey, InternalKeyBuf, InternalKeyComparator, MAX_SEQUENCE_NUMBER,
    SequenceNumber, Sometimes, TruncatedRangeTombstones, ValueType, timestamp,
};

/// The range tombstones of all inputs of a compaction.
pub struct StreamTombstones {
    comparator: Comparator,
    /// Disjoint stretches of places, ascending.
    stretches: Vec<Stretch>,
    written: FragmentedRangeTombstones,
    /// What is kept of timestamps, where keys have them.
    history: Option<History>,
}

/// The places from `start` up to but not including `end`, over which the same tombstones lie.
struct Stretch {
    start: Place,
    end: Place,
    /// Descending.
    sequences: Vec<SequenceNumber>,
}

impl Stretch {
    fn goes_on(&self, start: BoundRef<'_>, sequences: &[SequenceNumber]) -> bool {
        self.end.borrowed() == start && self.sequences == sequences
    }
}

struct Place {
    user_key: Box<[u8]>,
    packed: u64,
}

impl Place {
    fn new(place: BoundRef<'_>) -> Self {
        Self { user_key: place.user_key.into(), packed: place.packed }
    }

    fn borrowed(&self) -> BoundRef<'_> {
        BoundRef { user_key: &self.user_key, packed: self.packed }
    }
}

impl StreamTombstones {
    /// Gathers the inputs' tombstones: memtables' untruncated, files' truncated to their bounds. Of
    /// those over one place, the ones count that the present or one of `snapshots`, ascending, sees
    /// first.
    pub fn new(
        comparator: &Comparator,
        inputs: &[TruncatedRangeTombstones],
        snapshots: &[SequenceNumber],
    ) -> Self {
        Self::with_history(comparator, inputs, snapshots, None)
    }

    /// The same where keys have timestamps, of which those before the history that is kept are not
    /// told apart. Of the tombstones only those hide anything from everybody.
    pub fn with_history(
        comparator: &Comparator,
        inputs: &[TruncatedRangeTombstones],
        snapshots: &[SequenceNumber],
        history: Option<&History>,
    ) -> Self {
        let trim = history.and_then(|history| history.trim.as_ref());
        let is_trimmed = |timestamp: &[u8]| {
            trim.is_some_and(|trim| comparator.compare_timestamps(timestamp, trim).is_gt())
        };
        let size = comparator.timestamp_size();
        let keep = Keep::Needed(snapshots);
        let mut cuts = Vec::new();
        let mut ranges = Vec::new();
        for fragment in inputs.iter().flat_map(|input| input.fragments()) {
            for (at, &sequence) in fragment.sequences.iter().enumerate() {
                let timestamp =
                    if size == 0 { &[] } else { &fragment.timestamps[at * size..][..size] };
                if size > 0 && is_trimmed(timestamp) {
                    continue;
                }
                if size == 0 || is_forgotten(comparator, history, timestamp) {
                    cuts.push((fragment.start, true, sequence));
                    cuts.push((fragment.end, false, sequence));
                }
                let (start, end) = (fragment.start.user_key, fragment.end.user_key);
                ranges.push(RangeTombstoneRef { start, end, sequence, timestamp });
            }
        }
        cuts.sort_by(|a, b| a.0.compare(&b.0, comparator));
        let mut stretches: Vec<Stretch> = Vec::new();
        let (mut stamped, mut sequences) = (Vec::new(), Vec::new());
        // How many tombstones of each sequence number cover the place that the sweep has reached.
        let mut covering: BTreeMap<(SequenceNumber, &[u8]), usize> = BTreeMap::new();
        let mut reached = BoundRef::before(b"");
        for (place, starts, sequence) in cuts {
            if !covering.is_empty() && reached.compare(&place, comparator).is_lt() {
                kept_of(&covering, keep, &mut stamped);
                sequences.clear();
                sequences.extend(stamped.iter().map(|(sequence, _)| *sequence));
                let end = Place::new(place);
                match stretches.last_mut().filter(|last| last.goes_on(reached, &sequences)) {
                    Some(last) => last.end = end,
                    None => stretches.push(Stretch {
                        start: Place::new(reached),
                        end,
                        sequences: sequences.clone(),
                    }),
                }
            }
            reached = place;
            let count = covering.entry((sequence, &[][..])).or_default();
            // An end may be swept before a start at the same place, never before its own.
            if starts {
                *count += 1;
            } else {
                *count -= 1;
            }
            if *count == 0 {
                covering.remove(&(sequence, &[][..]));
            }
        }
        let written = FragmentedRangeTombstones::keeping(keep, comparator, ranges.into_iter());
        let history = history.cloned();
        Self { comparator: comparator.clone(), stretches, written, history }
    }

    /// Whether none hides anything from everybody.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// The newest tombstone over `key` that `snapshot` sees: its sequence number, or 0. `hint`, 0
    /// at first, is carried from call to call, whose keys must ascend.
    pub(super) fn covering(
        &self,
        key: InternalKey<'_>,
        snapshot: SequenceNumber,
        hint: &mut usize,
    ) -> SequenceNumber {
        let place = BoundRef::from(key);
        while let Some(stretch) = self.stretches.get(*hint) {
            if place.compare(&stretch.end.borrowed(), &self.comparator).is_lt() {
                if place.compare(&stretch.start.borrowed(), &self.comparator).is_lt() {
                    return 0;
                }
                let newer = stretch.sequences.partition_point(|&sequence| sequence > snapshot);
                return stretch.sequences.get(newer).copied().unwrap_or(0);
            }
            *hint += 1;
        }
        0
    }

    /// The tombstones that the output must hold, in the order in which tables store them: by start
    /// key, newest first.
    ///
    /// One that every snapshot sees may go if nothing older lies under it: if the output is
    /// `bottommost`, or if `nothing_below(start, end)` says that no deeper file overlaps its keys
    /// (`end` is exclusive). A flush, and a family into which files are ingested behind, pass
    /// `false` for both.
    pub fn surviving(
        &self,
        snapshots: &[SequenceNumber],
        bottommost: bool,
        mut nothing_below: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Vec<RangeTombstone> {
        let earliest = snapshots.first().copied().unwrap_or(MAX_SEQUENCE_NUMBER);
        let mut surviving = self.written.for_writing(snapshots);
        let size = self.comparator.timestamp_size();
        if size > 0 {
            self.collapse_history(snapshots, &mut surviving);
        }
        surviving.retain(|tombstone| {
            let (_, timestamp) = timestamp::split(&tombstone.start, size);
            let obsolete = tombstone.sequence <= earliest
                && (size == 0 || self.forgets(timestamp))
                && (bottommost || nothing_below(&tombstone.start, &tombstone.end));
            if obsolete {
                Sometimes::RangeTombstoneDropped.reached();
            }
            !obsolete
        });
        surviving
    }
}

impl StreamTombstones {
    fn forgets(&self, timestamp: &[u8]) -> bool {
        is_forgotten(&self.comparator, self.history.as_ref(), timestamp)
    }

    /// Where keys have timestamps: whether a tombstone over `user_key` hides `older` from some
    /// readers, and `newer` from none. Of a key whose timestamps `are_forgotten`, those count whose
    /// own are not: the others hide it from everybody.
    pub(super) fn part(
        &self,
        user_key: &[u8],
        (older, newer): (SequenceNumber, SequenceNumber),
        are_forgotten: bool,
    ) -> bool {
        let size = self.comparator.timestamp_size();
        // Where a file's bounds cut one, more than it hides may be kept.
        let at = if size == 0 { None } else { Some(self.written.first_ending_after(user_key)) };
        let Some(fragment) = at.and_then(|at| self.written.get(at)) else { return false };
        self.comparator.compare_keys(fragment.start, user_key).is_le()
            && fragment.sequences.iter().zip(fragment.timestamps.chunks_exact(size)).any(
                |(sequence, timestamp)| {
                    older < *sequence
                        && *sequence <= newer
                        && !(are_forgotten && self.forgets(timestamp))
                },
            )
    }

    /// Of tombstones over one range whose timestamps are not kept apart, the newest that each
    /// snapshot sees is enough.
    fn collapse_history(&self, snapshots: &[SequenceNumber], surviving: &mut Vec<RangeTombstone>) {
        let size = self.comparator.timestamp_size();
        let stripe = |sequence| snapshots.partition_point(|&snapshot| snapshot < sequence);
        let mut kept: Option<(Vec<u8>, usize)> = None;
        surviving.retain(|tombstone| {
            let (start, timestamp) = timestamp::split(&tombstone.start, size);
            if !self.forgets(timestamp) {
                return true;
            }
            let this = (start.to_vec(), stripe(tombstone.sequence));
            let is_hidden = kept.as_ref() == Some(&this);
            kept = Some(this);
            !is_hidden
        });
    }
}

/// Whether a tombstone is judged without regard to its timestamp.
fn is_forgotten(comparator: &Comparator, history: Option<&History>, timestamp: &[u8]) -> bool {
    history.is_some_and(|history| history.forgets(comparator, timestamp))
}

/// What an output file is, as far as its point entries and its neighbours decide.
#[derive(Debug, Clone, Copy)]
pub struct OutputFile<'a> {
    /// The first and the last point entry. None only for the one output of a compaction that has no
    /// point entries.
    pub points: Option<(InternalKey<'a>, InternalKey<'a>)>,
    /// Whether the compaction (or subcompaction) wrote a file before this one.
    pub has_previous: bool,
    /// Where the subcompaction begins (inclusive user key).
    pub begin: Option<&'a [u8]>,
    /// The user key of the first entry of the next file; for the last file, where the subcompaction
    /// ends (exclusive).
    pub next: Option<&'a [u8]>,
}

/// The tombstones of an output file, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputBounds {
    /// Which of the tombstones go into the file.
    pub tombstones: Vec<RangeTombstone>,
    /// The smallest key, tombstones included; `None` for a file without any content, which is not
    /// to be written.
    pub smallest: Option<InternalKeyBuf>,
    /// The largest key, tombstones included.
    pub largest: Option<InternalKeyBuf>,
}

/// Which of `tombstones` (in [`StreamTombstones::surviving`]'s order) go into an output file, and
/// the file's bounds.
///
/// A tombstone is written whole into each file that it overlaps, and readers cut it to the file's
/// bounds. These reach from the file's first entry to where the next one begins, so that neighbours
/// touch without overlapping.
pub fn bounds_of_output(
    comparator: &Comparator,
    tombstones: &[RangeTombstone],
    file: OutputFile<'_>,
) -> OutputBounds {
    let order = InternalKeyComparator::new(comparator.clone());
    let size = order.timestamp_size();
    // What lies before the first entry belongs to the previous file, if there is one.
    let first_entry = file.points.map(|(first, _)| first.user_key()).filter(|_| file.has_previous);
    let lower = first_entry.or(file.begin).map(|key| timestamp::opening(key, size));
    let next = file.next.map(|key| timestamp::opening(key, size));
    let (lower, file) = (lower.as_deref(), OutputFile { next: next.as_deref(), ..file });
    let last_of_shared_key = file.points.map(|(_, last)| last).filter(|last| {
        file.next.is_some_and(|next| comparator.compare(last.user_key(), next).is_eq())
    });
    // They do not overlap, but for several of the same range: what belongs lies together.
    let first = lower.map_or(0, |lower| {
        let ends_before = |one: &RangeTombstone| {
            comparator.compare(&timestamp::opening(&one.end, size), lower).is_le()
        };
        tombstones.partition_point(ends_before)
    });
    let begins_here = |tombstone: &RangeTombstone| {
        file.next.is_none_or(|next| {
            match comparator.compare(&timestamp::opening(&tombstone.start, size), next) {
                std::cmp::Ordering::Less => true,
                // The file has versions of the next one's first key. Those older than the tombstone
                // it must cover here too; if there are none it is to stay away, as RocksDB has it:
                // its iterators going back rely on it.
                std::cmp::Ordering::Equal => last_of_shared_key.is_some_and(|last| {
                    let start =
                        InternalKeyBuf::new(next, tombstone.sequence, ValueType::RangeDeletion);
                    order.compare(start.as_key(), last).is_le()
                }),
                std::cmp::Ordering::Greater => false,
            }
        })
    };
    let kept = &tombstones[first..];
    let kept = kept[..kept.partition_point(begins_here)].to_vec();
    let mut smallest = file.points.map(|(first, _)| first.to_buf());
    let mut largest = file.points.map(|(_, last)| last.to_buf());
    if let (Some(first), Some(last)) = (kept.first(), kept.last()) {
        let (first_start, last_end) =
            (timestamp::opening(&first.start, size), timestamp::opening(&last.end, size));
        let start = match lower.filter(|lower| comparator.compare(&first_start, lower).is_le()) {
            // Behind all versions of the key in the previous file.
            Some(lower) if first_entry.is_some() => {
                InternalKeyBuf::new(lower, 0, ValueType::RangeDeletion)
            }
            Some(lower) => InternalKeyBuf::new(lower, first.sequence, ValueType::RangeDeletion),
            None => InternalKeyBuf::new(&first_start, first.sequence, ValueType::RangeDeletion),
        };
        let next = file.next.filter(|next| comparator.compare(next, &last_end).is_le());
        if next.is_some() {
            Sometimes::RangeTombstoneCut.reached();
        }
        let end = next.unwrap_or(&last_end);
        let end = InternalKeyBuf::new(end, MAX_SEQUENCE_NUMBER, ValueType::RangeDeletion);
        let is_before =
            |a: &InternalKeyBuf, b: &InternalKeyBuf| order.compare(a.as_key(), b.as_key()).is_lt();
        if smallest.as_ref().is_none_or(|least| is_before(&start, least)) {
            smallest = Some(start);
        }
        if largest.as_ref().is_none_or(|most| is_before(most, &end)) {
            largest = Some(end);
        }
    }
    OutputBounds { tombstones: kept, smallest, largest }
}

#[cfg(test)]
mod tests;
