//! What is deleted leaves the disk without waiting for more to be written.
//!
//! 1. **Tables that a range deletion covers.** Whoever writes a table with range tombstones notes
//!    over which whole tables below it they lie ([`DeletedRanges`]). Once no snapshot sees these
//!    any longer they are dropped, by an edit and without being read. For as long as the table with
//!    the tombstones is there, all that lies below it under one of them is older.
//! 2. **Tables full of deletions.** A table frees about as much as its deletions are many, times
//!    what an entry of the tables below takes on average, and what its range tombstones cover of
//!    these. If that is a tenth of what all tables below hold in its range, it goes down: so ten
//!    bytes are written for one that is freed, at most. Where nothing lies below it is rewritten,
//!    if a tenth of its entries are deletions, which then go.
//! 3. Not before its oldest entry has waited for the delay: as long as more is written, other
//!    compactions take it along. And not while a snapshot keeps what it deletes.
//!
//! Each such compaction takes deletions down a level, and from the last level they vanish: so there
//! is an end.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::expand::{Bounds, bounds, clean_cut, overlap, overlapping, total_bytes};
use super::leveled::{Draft, Picker};
use super::plan::{CompactionPlan, CompactionReason};
use super::settings::{LeveledSettings, PickContext};
use super::universal::UniversalPicker;
use crate::base::{
    Comparator, FileNumber, InternalKeyBuf, MAX_SEQUENCE_NUMBER, RangeTombstone, SequenceNumber,
};
use crate::manifest::{TableFile, Version};

/// A table goes down if it frees one part in so many of what lies below it.
const WORTHWHILE: u64 = 10;

/// Ranges of user keys that a table's range tombstones delete, each with whole tables below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedRanges {
    /// The table with the tombstones.
    pub table: FileNumber,
    /// Ascending and disjoint.
    ranges: Vec<DeletedRange>,
}

/// Keys that range tombstones delete, side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DeletedRange {
    start: Vec<u8>,
    /// The first key that is not deleted.
    end: Vec<u8>,
    /// The smallest and the largest of their sequence numbers: what is older than the one is
    /// deleted for who sees the other.
    oldest: SequenceNumber,
    newest: SequenceNumber,
}

impl DeletedRanges {
    /// What `tombstones`, ascending and disjoint but for older ones of the same range, delete of
    /// whole tables of `version` below `level`; `None` if there are none. The table with the
    /// tombstones is `table`, between these bounds.
    pub fn new(
        version: &Version,
        level: usize,
        table: FileNumber,
        (smallest, largest): (&InternalKeyBuf, &InternalKeyBuf),
        tombstones: &[RangeTombstone],
    ) -> Option<Self> {
        let user = version.comparator.keys();
        let mut ranges: Vec<DeletedRange> = Vec::new();
        for tombstone in tombstones {
            match ranges.last_mut() {
                // An older one of the same range.
                Some(last) if user.compare(&tombstone.start, &last.end).is_lt() => {}
                Some(last) if last.end == tombstone.start => {
                    last.end.clone_from(&tombstone.end);
                    last.oldest = last.oldest.min(tombstone.sequence);
                    last.newest = last.newest.max(tombstone.sequence);
                }
                _ => ranges.push(DeletedRange {
                    start: tombstone.start.clone(),
                    end: tombstone.end.clone(),
                    oldest: tombstone.sequence,
                    newest: tombstone.sequence,
                }),
            }
        }
        // The neighbours of the table decide beyond its bounds.
        let (smallest, largest) = (smallest.user_key(), largest.user_key());
        if let Some(first) =
            ranges.first_mut().filter(|first| user.compare(&first.start, smallest).is_lt())
        {
            first.start = smallest.to_vec();
            // Other versions of this key may lie in the table before.
            first.start.push(0);
            if !user.is_bytewise() {
                ranges.remove(0);
            }
        }
        if let Some(last) =
            ranges.last_mut().filter(|last| user.compare(&last.end, largest).is_gt())
        {
            last.end = largest.to_vec();
        }
        let mut deleted = Self { table, ranges };
        let covered: BTreeSet<_> =
            below(version, level, 0).filter_map(|(_, file)| deleted.over(user, file)).collect();
        let mut index = 0;
        deleted.ranges.retain(|_| {
            index += 1;
            covered.contains(&(index - 1))
        });
        (!deleted.ranges.is_empty()).then_some(deleted)
    }

    /// Which of the ranges has all of `file` in it.
    fn over(&self, user: &Comparator, file: &TableFile) -> Option<usize> {
        let (smallest, largest) = (file.meta.smallest.user_key(), &file.meta.largest);
        let index = self.ranges.partition_point(|range| user.compare(&range.end, smallest).is_le());
        let range = self.ranges.get(index)?;
        let ends_inside = match user.compare(largest.user_key(), &range.end) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => largest.as_key().sequence() == MAX_SEQUENCE_NUMBER,
            std::cmp::Ordering::Greater => false,
        };
        let is_inside = user.compare(&range.start, smallest).is_le() && ends_inside;
        (is_inside && file.meta.largest_seqno < range.oldest).then_some(index)
    }

    /// Whether the table is still in `version`, and tables below it under its tombstones.
    pub fn matter_in(&self, version: &Version) -> bool {
        self.tables(version, MAX_SEQUENCE_NUMBER).next().is_some()
    }

    /// The tables of `version` that are deleted altogether, for all who see `oldest_snapshot`, with
    /// their levels.
    fn tables<'a>(
        &'a self,
        version: &'a Version,
        oldest_snapshot: SequenceNumber,
    ) -> impl Iterator<Item = (usize, &'a Arc<TableFile>)> {
        let place = version.levels.iter().enumerate().find_map(|(level, files)| {
            let at = files.iter().position(|file| file.number() == self.table)?;
            Some((level, at))
        });
        let user = version.comparator.keys();
        place.into_iter().flat_map(move |(level, at)| below(version, level, at + 1)).filter(
            move |(_, file)| {
                self.over(user, file)
                    .is_some_and(|index| self.ranges[index].newest <= oldest_snapshot)
            },
        )
    }
}

/// The tables below a table at `level`; in level 0, those from the position `from` on are older,
/// too.
fn below(
    version: &Version,
    level: usize,
    from: usize,
) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
    let older = version.levels[0].iter().skip(if level == 0 { from } else { usize::MAX });
    let deeper = version.levels.iter().enumerate().skip(level + 1);
    older
        .map(|file| (0, file))
        .chain(deeper.flat_map(|(level, files)| files.iter().map(move |file| (level, file))))
}

/// Drops the tables that were deleted altogether, if there are any.
pub fn drop_deleted(version: &Version, context: &PickContext<'_>) -> Option<CompactionPlan> {
    let mut files: Vec<(usize, &Arc<TableFile>)> = Vec::new();
    for deleted in context.deleted {
        let idle = deleted.tables(version, context.oldest_snapshot);
        files.extend(idle.filter(|(_, file)| !file.is_being_compacted()));
    }
    files.sort_by_key(|(level, file)| (*level, file.number()));
    files.dedup_by_key(|(_, file)| file.number());
    let mut levels: Vec<(usize, Vec<Arc<TableFile>>)> = Vec::new();
    for (level, file) in files {
        match levels.last_mut() {
            Some((known, files)) if *known == level => files.push(file.clone()),
            _ => levels.push((level, vec![file.clone()])),
        }
    }
    CompactionPlan::dropping(version, CompactionReason::Deletions, levels)
}

/// What a table's deletions are.
struct Weight {
    entries: u64,
    /// Of keys and of ranges.
    deletions: u64,
    ranges: u64,
    covered: u64,
}

impl Weight {
    /// That of some tables, if one of them is old enough and no snapshot keeps what they delete.
    fn of(
        files: &[Arc<TableFile>],
        settings: &LeveledSettings,
        context: &PickContext<'_>,
    ) -> Option<Self> {
        let delay = settings.deletion_compaction_delay;
        let mut weight = Self { entries: 0, deletions: 0, ranges: 0, covered: 0 };
        let mut is_due = false;
        for file in files {
            let stats = (context.stats)(file).unwrap_or_default();
            let deletions = stats.deletions.saturating_add(stats.range_deletions);
            weight.entries = weight.entries.saturating_add(stats.entries);
            if deletions == 0 || file.meta.largest_seqno > context.oldest_snapshot {
                continue;
            }
            weight.deletions = weight.deletions.saturating_add(deletions);
            weight.ranges = weight.ranges.saturating_add(stats.range_deletions);
            weight.covered =
                weight.covered.saturating_add(file.meta.compensated_range_deletion_size);
            is_due |=
                file.meta.oldest_ancestor_time.saturating_add(delay) <= context.now_unix_seconds;
        }
        (delay > 0 && is_due).then_some(weight)
    }

    /// Whether that frees enough of what lies below; where nothing does, whether it is enough of
    /// the tables. There, only what a snapshot kept can be left of range tombstones and of what
    /// they cover.
    fn is_worthwhile(&self, below: &[&Arc<TableFile>], context: &PickContext<'_>) -> bool {
        if below.is_empty() {
            return self.ranges > 0 || self.deletions.saturating_mul(WORTHWHILE) >= self.entries;
        }
        let bytes = total_bytes(below.iter().copied());
        let known =
            below.iter().filter_map(|file| Some((file.meta.size, (context.stats)(file)?.entries)));
        let (known_bytes, entries) = known.fold((0u64, 0u64), |(bytes, entries), (size, count)| {
            (bytes.saturating_add(size), entries.saturating_add(count))
        });
        let each = known_bytes / entries.max(1);
        let freed = self.deletions.saturating_mul(each).saturating_add(self.covered);
        freed >= bytes / WORTHWHILE
    }
}

impl Picker<'_> {
    /// A table that frees much goes down, or gets rid of its deletions.
    pub(super) fn by_deletions(&self) -> Option<CompactionPlan> {
        let last = self.version.last_level_with_files()?;
        let places = (0..=last)
            .flat_map(|level| (0..self.version.levels[level].len()).map(move |at| (level, at)));
        places.into_iter().find_map(|(level, at)| self.by_deletions_of(level, at))
    }

    fn by_deletions_of(&self, level: usize, at: usize) -> Option<CompactionPlan> {
        let file = &self.version.levels[level][at];
        // Deletions whose history is kept would stay where they are.
        let stays = || self.version.comparator.timestamp_size() > 0 && self.is_young(level, file);
        if file.is_being_compacted() || stays() {
            return None;
        }
        let weight = Weight::of(std::slice::from_ref(file), self.settings, self.context)?;
        let range = bounds(self.user(), std::iter::once(file));
        let below = self.overlapping_below(level, at, range);
        if !weight.is_worthwhile(&below, self.context) {
            return None;
        }
        let draft: Option<Draft> = if below.is_empty() && level > 0 {
            self.draft_range(level, clean_cut(self.version, level, at..at + 1), level)
        } else {
            self.draft_down(level, at)
        };
        let mut plan = self.complete(CompactionReason::Deletions, draft?);
        if below.is_empty() {
            // With its neighbours a table at the bottom may be one no longer, and would be
            // rewritten for nothing.
            plan.trivial_move = false;
            return plan.bottommost.then_some(plan);
        }
        Some(plan)
    }

    /// The tables older than that at `at` of `level` which overlap `range`.
    fn overlapping_below(
        &self,
        level: usize,
        at: usize,
        range: Bounds<'_>,
    ) -> Vec<&Arc<TableFile>> {
        let older =
            self.version.levels[0].iter().skip(if level == 0 { at + 1 } else { usize::MAX });
        let older = older.filter(|file| {
            overlap(self.user(), range, bounds(self.user(), std::iter::once(*file)))
        });
        let deeper = (level + 1..self.version.levels.len()).flat_map(|deeper| {
            self.version.levels[deeper][overlapping(self.version, deeper, range)].iter()
        });
        older.chain(deeper).collect()
    }
}

impl UniversalPicker<'_> {
    /// The newest run that frees much is merged with all older ones; the oldest is rewritten.
    pub(super) fn by_deletions(&self, context: &PickContext<'_>) -> Option<CompactionPlan> {
        let start = (0..self.runs.len()).find(|&at| {
            let is_idle = self.runs[at..].iter().all(|run| !run.busy);
            let older: Vec<_> = self.runs[at + 1..].iter().flat_map(|run| run.files).collect();
            is_idle
                && Weight::of(self.runs[at].files, self.settings, context)
                    .is_some_and(|weight| weight.is_worthwhile(&older, context))
        })?;
        if self.settings.ingest_behind {
            return None;
        }
        let plan = self.all_of(CompactionReason::Deletions, start..self.runs.len())?;
        Some(CompactionPlan { trivial_move: false, ..plan })
    }
}
