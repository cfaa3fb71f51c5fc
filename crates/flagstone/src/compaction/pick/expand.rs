//! From a few tables to all those that must go with them.
//!
//! **Clean cut.** In a level below 0 the versions of one user key may straddle two tables. Whoever
//! moves one of them down must take the other, or the older version would stand above the newer.
//! Tables that only touch, because one ends at the end of a range tombstone, may be parted.

use std::ops::Range;
use std::sync::Arc;

use super::plan::RunningCompaction;
use crate::base::{Comparator, MAX_SEQUENCE_NUMBER, Sometimes};
use crate::manifest::{TableFile, Version};

/// The smallest and the largest user key of some tables.
pub(super) type Bounds<'a> = (&'a [u8], &'a [u8]);

/// The bounds of all `files`, at least one.
pub(super) fn bounds<'a>(
    user: &Comparator,
    files: impl Iterator<Item = &'a Arc<TableFile>>,
) -> Bounds<'a> {
    let each = files.map(|file| (file.meta.smallest.user_key(), file.meta.largest.user_key()));
    each.reduce(|a, b| join(user, a, b)).expect("at least one table")
}

/// The bounds around two.
pub(super) fn join<'a>(user: &Comparator, a: Bounds<'a>, b: Bounds<'a>) -> Bounds<'a> {
    let smallest = if user.compare(b.0, a.0).is_lt() { b.0 } else { a.0 };
    let largest = if user.compare(b.1, a.1).is_gt() { b.1 } else { a.1 };
    (smallest, largest)
}

/// Whether two ranges of user keys have one in common, both ends counted.
pub(super) fn overlap(user: &Comparator, a: Bounds<'_>, b: Bounds<'_>) -> bool {
    user.compare(a.0, b.1).is_le() && user.compare(b.0, a.1).is_le()
}

/// Whether no two tables have a user key in common.
pub(super) fn are_disjoint(user: &Comparator, files: &[Arc<TableFile>]) -> bool {
    let mut sorted: Vec<_> = files.iter().map(|file| bounds(user, std::iter::once(file))).collect();
    sorted.sort_by(|a, b| user.compare(a.0, b.0));
    sorted.windows(2).all(|pair| user.compare(pair[0].1, pair[1].0).is_lt())
}

/// Widens a range of positions in `level` (1 or deeper) to a clean cut.
pub(super) fn clean_cut(version: &Version, level: usize, range: Range<usize>) -> Range<usize> {
    let files = &version.levels[level];
    let user = version.comparator.keys();
    let share_a_key = |left: usize| {
        let (left, right) = (&files[left].meta.largest, &files[left + 1].meta.smallest);
        // A tombstone's end is exclusive: its marker has the largest sequence number.
        left.as_key().sequence() != MAX_SEQUENCE_NUMBER
            && user.compare(left.user_key(), right.user_key()).is_eq()
    };
    let (mut start, mut end) = (range.start, range.end);
    if start == end {
        return range;
    }
    while start > 0 && share_a_key(start - 1) {
        start -= 1;
    }
    while end < files.len() && share_a_key(end - 1) {
        end += 1;
    }
    if (start, end) != (range.start, range.end) {
        Sometimes::CleanCutWidened.reached();
    }
    start..end
}

/// The positions in `level` (1 or deeper) that overlap `bounds`, widened to a clean cut.
pub(super) fn overlapping(version: &Version, level: usize, bounds: Bounds<'_>) -> Range<usize> {
    clean_cut(version, level, version.overlapping_range(level, Some(bounds.0), Some(bounds.1)))
}

/// The positions in level 0, ascending, that overlap `seeds` directly or through others.
pub(super) fn level0_closure(version: &Version, seeds: &[usize]) -> Vec<usize> {
    let (files, user) = (&version.levels[0], version.comparator.keys());
    let mut taken = vec![false; files.len()];
    seeds.iter().for_each(|&seed| taken[seed] = true);
    let mut frontier = seeds.to_vec();
    while let Some(at) = frontier.pop() {
        let reach = bounds(user, std::iter::once(&files[at]));
        for (other, file) in files.iter().enumerate() {
            if !taken[other] && overlap(user, reach, bounds(user, std::iter::once(file))) {
                taken[other] = true;
                frontier.push(other);
            }
        }
    }
    (0..files.len()).filter(|&at| taken[at]).collect()
}

/// The bytes of some tables.
pub(super) fn total_bytes<'a>(files: impl IntoIterator<Item = &'a Arc<TableFile>>) -> u64 {
    files.into_iter().map(|file| file.meta.size).fold(0, u64::saturating_add)
}

/// Whether a running compaction has one of them as input.
pub(super) fn any_busy<'a>(files: impl IntoIterator<Item = &'a Arc<TableFile>>) -> bool {
    files.into_iter().any(|file| file.is_being_compacted())
}

/// Whether a running compaction writes to `level` within `bounds`.
pub(super) fn is_being_written(
    user: &Comparator,
    running: &[RunningCompaction],
    level: usize,
    bounds: Bounds<'_>,
) -> bool {
    running
        .iter()
        .filter(|compaction| compaction.writes_to(level))
        .any(|compaction| overlap(user, bounds, (&compaction.smallest, &compaction.largest)))
}
