//! The range tombstones of all sources, queried along a scan.
//!
//! 1. Around the key queried last, each source remembers a stretch (from, until) in which its
//!    answer is the same: a fragment of its tombstones, or a gap between two.
//! 2. The view remembers the stretch common to all sources, so a scan compares each key with one
//!    end of one stretch.
//! 3. For a key outside the common stretch, the sources whose own stretch it left search again.

use std::cmp::Ordering;

use super::SortedFiles;
use super::level::partition_point;
use crate::base::range_tombstone::{BoundRef, Sight};
use crate::base::{
    Comparator, InternalKey, InternalKeyBuf, Result, SequenceNumber, TruncatedRangeTombstones,
    ValueType,
};

/// The range tombstones of a level's files, read when a scan comes to them.
pub trait LevelTombstones: SortedFiles {
    /// Those of the file at `index`, truncated to the file's bounds; `None` if it has none.
    ///
    /// # Errors
    /// What opening the file says.
    fn tombstones(&self, index: usize) -> Result<Option<TruncatedRangeTombstones>>;
}

/// Where range tombstones come from.
pub enum TombstoneSource {
    /// A memtable's (untruncated) or an L0 file's (truncated to its bounds).
    One(TruncatedRangeTombstones),
    /// A level's.
    Level(Box<dyn LevelTombstones>),
}

/// What range deletions hide from one snapshot.
pub struct TombstoneView {
    comparator: Comparator,
    snapshot: SequenceNumber,
    /// The newest timestamp that is seen; `None` where keys have none.
    as_of: Option<Box<[u8]>>,
    sources: Vec<Source>,
    /// The direction of the last question, if the common stretch is known.
    last: Option<Towards>,
    /// Which source's stretch starts last and which one's ends first; `None` if no source's does.
    from: Option<usize>,
    until: Option<usize>,
    /// The newest tombstone over the common stretch.
    sequence: SequenceNumber,
    target: InternalKeyBuf,
}

/// The direction in which a scan moves while it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Towards {
    Later,
    Earlier,
}

struct Source {
    child: usize,
    tombstones: TombstoneSource,
    /// The tombstones of the file of a level that was looked at last.
    loaded: Option<(usize, Option<TruncatedRangeTombstones>)>,
    /// Whether it has looked: before, its stretch means nothing.
    has_looked: bool,
    stretch: Stretch,
}

/// The places over which a source's answer is the same.
#[derive(Default)]
struct Stretch {
    from: Edge,
    until: Edge,
    sequence: SequenceNumber,
}

/// One end of a stretch; keeps its allocation.
#[derive(Default)]
struct Edge {
    bounded: bool,
    user_key: Vec<u8>,
    packed: u64,
}

impl Edge {
    fn clear(&mut self) {
        self.bounded = false;
    }

    fn set(&mut self, place: BoundRef<'_>) {
        self.bounded = true;
        self.user_key.clear();
        self.user_key.extend_from_slice(place.user_key);
        self.packed = place.packed;
    }

    fn place(&self) -> Option<BoundRef<'_>> {
        self.bounded.then_some(BoundRef { user_key: &self.user_key, packed: self.packed })
    }
}

impl Stretch {
    fn starts_by(&self, place: BoundRef<'_>, comparator: &Comparator) -> bool {
        self.from.place().is_none_or(|from| from.compare(&place, comparator).is_le())
    }

    fn ends_after(&self, place: BoundRef<'_>, comparator: &Comparator) -> bool {
        self.until.place().is_none_or(|until| place.compare(&until, comparator).is_lt())
    }
}

impl TombstoneView {
    /// A view of `sources`, each with the index of the merging iterator's child whose tombstones
    /// they are. Sources without tombstones are best left out.
    pub fn new(
        comparator: Comparator,
        snapshot: SequenceNumber,
        sources: Vec<(usize, TombstoneSource)>,
    ) -> Self {
        let make = |(child, tombstones)| {
            let stretch = Stretch::default();
            Source { child, tombstones, loaded: None, has_looked: false, stretch }
        };
        Self {
            comparator,
            snapshot,
            as_of: None,
            sources: sources.into_iter().map(make).collect(),
            last: None,
            from: None,
            until: None,
            sequence: 0,
            target: InternalKeyBuf::for_seek(b"", 0),
        }
    }

    /// The same as of a timestamp.
    #[must_use]
    pub fn as_of(self, timestamp: Box<[u8]>) -> Self {
        Self { as_of: Some(timestamp), ..self }
    }

    /// Whether there are no sources.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Forgets where the scan stood.
    pub(super) fn reset(&mut self) {
        self.last = None;
    }

    /// The newest tombstone over `key` that the snapshot sees: its sequence number, or 0. Unless
    /// reset in between, a question in the same direction as the last one must not be about an
    /// earlier place in that direction.
    #[inline]
    pub(super) fn covering(
        &mut self,
        key: InternalKey<'_>,
        towards: Towards,
    ) -> Result<SequenceNumber> {
        let place = BoundRef::from(key);
        let before_end = || {
            self.until.is_none_or(|i| self.sources[i].stretch.ends_after(place, &self.comparator))
        };
        let after_start =
            || self.from.is_none_or(|i| self.sources[i].stretch.starts_by(place, &self.comparator));
        let inside = match (self.last, towards) {
            (None, _) => false,
            (Some(Towards::Later), Towards::Later) => before_end(),
            (Some(Towards::Earlier), Towards::Earlier) => after_start(),
            _ => before_end() && after_start(),
        };
        if !inside {
            self.last = None;
            self.locate(place)?;
        }
        self.last = Some(towards);
        Ok(self.sequence)
    }

    fn locate(&mut self, place: BoundRef<'_>) -> Result<()> {
        let comparator = &self.comparator;
        let sight = Sight { comparator, snapshot: self.snapshot, as_of: self.as_of.as_deref() };
        for source in &mut self.sources {
            let known = source.has_looked
                && source.stretch.starts_by(place, comparator)
                && source.stretch.ends_after(place, comparator);
            if !known {
                source.locate(place, &sight)?;
                source.has_looked = true;
            }
        }
        self.sequence =
            self.sources.iter().map(|source| source.stretch.sequence).max().unwrap_or(0);
        self.until = self.outermost(|stretch| stretch.until.place(), Ordering::Less);
        self.from = self.outermost(|stretch| stretch.from.place(), Ordering::Greater);
        Ok(())
    }

    /// The source whose edge comes first (`Less`) or last (`Greater`) of those that have one.
    fn outermost(
        &self,
        edge: fn(&Stretch) -> Option<BoundRef<'_>>,
        wanted: Ordering,
    ) -> Option<usize> {
        let mut best: Option<(usize, BoundRef<'_>)> = None;
        for (index, source) in self.sources.iter().enumerate() {
            let Some(place) = edge(&source.stretch) else { continue };
            if best.is_none_or(|(_, best)| place.compare(&best, &self.comparator) == wanted) {
                best = Some((index, place));
            }
        }
        best.map(|(index, _)| index)
    }

    /// Which children may skip ahead, and to where: those older than the newest source whose
    /// tombstone covers the key asked last, to that tombstone's end in the given direction. All
    /// that they hold up to there is deleted.
    pub(super) fn skip(&mut self, towards: Towards) -> Option<(usize, InternalKey<'_>)> {
        let covering = self.sources.iter().filter(|source| source.stretch.sequence > 0);
        let source = covering.min_by_key(|source| source.child)?;
        let place = match towards {
            Towards::Later => source.stretch.until.place()?,
            Towards::Earlier => source.stretch.from.place()?,
        };
        // No stored type comes between one that is none and the one to seek with.
        let value_type = ValueType::from_byte(place.packed as u8).unwrap_or(ValueType::FOR_SEEK);
        self.target.set(place.user_key, place.packed >> 8, value_type);
        Some((source.child + 1, self.target.as_key()))
    }
}

impl Source {
    fn locate(&mut self, place: BoundRef<'_>, sight: &Sight<'_>) -> Result<()> {
        match &self.tombstones {
            TombstoneSource::One(tombstones) => {
                locate_in(tombstones, place, sight, &mut self.stretch);
                Ok(())
            }
            TombstoneSource::Level(level) => {
                let stretch = &mut self.stretch;
                locate_in_level(level.as_ref(), &mut self.loaded, place, sight, stretch)
            }
        }
    }
}

/// Finds the fragment, or the gap between two, in which `place` lies.
fn locate_in(
    tombstones: &TruncatedRangeTombstones,
    place: BoundRef<'_>,
    sight: &Sight<'_>,
    stretch: &mut Stretch,
) {
    let comparator = sight.comparator;
    stretch.from.clear();
    stretch.until.clear();
    stretch.sequence = 0;
    let whole = tombstones.tombstones();
    let first = whole.first_ending_after(place.user_key);
    let next = (first..whole.len()).find_map(|index| tombstones.get(index));
    match next {
        Some(fragment) if fragment.end.compare(&place, comparator).is_le() => {
            // Cut off within the user key, by the end of the file: there is nothing behind.
            stretch.from.set(fragment.end);
        }
        Some(fragment) if fragment.start.compare(&place, comparator).is_le() => {
            stretch.from.set(fragment.start);
            stretch.until.set(fragment.end);
            stretch.sequence = fragment.seen_by(sight);
        }
        gap_before => {
            if let Some(fragment) = gap_before {
                stretch.until.set(fragment.start);
            }
            if let Some(fragment) = (0..first).rev().find_map(|index| tombstones.get(index)) {
                stretch.from.set(fragment.end);
            }
        }
    }
}

/// As [`locate_in`], in the file whose bounds enclose `place`, or the gap between two files.
fn locate_in_level(
    level: &dyn LevelTombstones,
    loaded: &mut Option<(usize, Option<TruncatedRangeTombstones>)>,
    place: BoundRef<'_>,
    sight: &Sight<'_>,
    stretch: &mut Stretch,
) -> Result<()> {
    let comparator = sight.comparator;
    let largest = |index| BoundRef::from(level.largest(index));
    let smallest = |index| BoundRef::from(level.smallest(index));
    let index =
        partition_point(level.len(), |index| largest(index).compare(&place, comparator).is_lt());
    let inside = index < level.len() && smallest(index).compare(&place, comparator).is_le();
    if inside && loaded.as_ref().is_none_or(|(of, _)| *of != index) {
        // Before the stretch changes: half of one would be taken for an answer after an error.
        *loaded = Some((index, level.tombstones(index)?));
    }
    stretch.from.clear();
    stretch.until.clear();
    stretch.sequence = 0;
    if !inside {
        if index < level.len() {
            stretch.until.set(smallest(index));
        }
        if index > 0 {
            // The largest key itself still belongs to the file.
            let BoundRef { user_key, packed } = largest(index - 1);
            stretch
                .from
                .set(packed.checked_sub(1).map_or(place, |packed| BoundRef { user_key, packed }));
        }
        return Ok(());
    }
    if let Some((_, Some(tombstones))) = loaded {
        locate_in(tombstones, place, sight, stretch);
    }
    // Beyond the file's bounds its neighbours answer.
    if !stretch.from.bounded {
        stretch.from.set(smallest(index));
    }
    if !stretch.until.bounded && index + 1 < level.len() {
        let end = largest(index);
        // At the largest key itself, up to just behind it.
        let at_end = end.compare(&place, comparator).is_eq();
        let behind = end.packed.checked_sub(1).unwrap_or(end.packed);
        stretch.until.set(if at_end { BoundRef { packed: behind, ..end } } else { end });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
