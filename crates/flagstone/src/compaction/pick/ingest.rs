//! Where in the tree a table goes that was written outside of it.
//!
//! Its entries are newer than all others, so whatever shares a key with it must lie below it. It
//! goes down from level 0 as long as no table of the level overlaps it, and lies at the deepest
//! level that it passes where
//! - it may lie by the shape of the tree: not above the base level of sizes that follow from the
//!   last level, and with universal compaction at the very last level or in level 0; and
//! - no running compaction may write a table that overlaps it.

use super::expand::{Bounds, overlap};
use super::plan::RunningCompaction;
use super::settings::LeveledSettings;
use super::targets::LevelTargets;
use crate::manifest::Version;
use crate::options::CompactionStyle;

/// Tables that go to a level by the same change.
pub type Arrivals<'a> = [(usize, Bounds<'a>)];

/// The deepest level at which a table with these smallest and largest user keys may lie, if it is
/// newer than all tables of the version and than `arrivals`.
pub fn level_above_older(
    version: &Version,
    style: CompactionStyle,
    settings: &LeveledSettings,
    running: &[RunningCompaction],
    arrivals: &Arrivals<'_>,
    bounds: Bounds<'_>,
) -> usize {
    if style == CompactionStyle::Fifo {
        return 0;
    }
    let last = last_level(version, settings);
    let is_universal = style == CompactionStyle::Universal;
    let first = if is_universal { last } else { LevelTargets::new(version, settings).base_level };
    let mut found = 0;
    for level in 0..=last {
        if is_taken(version, arrivals, level, bounds) {
            break;
        }
        let is_written_to = |compaction: &RunningCompaction| {
            is_universal || writes_to(version, compaction, level, bounds)
        };
        if level >= first && !running.iter().any(is_written_to) {
            found = level;
        }
    }
    found
}

/// The last level, if a table with these bounds, older than all others, may lie there.
pub fn level_below_all(
    version: &Version,
    running: &[RunningCompaction],
    arrivals: &Arrivals<'_>,
    bounds: Bounds<'_>,
) -> Option<usize> {
    let last = version.levels.len() - 1;
    let is_free = last > 0
        && !is_taken(version, arrivals, last, bounds)
        && !running.iter().any(|compaction| writes_to(version, compaction, last, bounds));
    is_free.then_some(last)
}

/// The last level that compactions fill.
pub fn last_level(version: &Version, settings: &LeveledSettings) -> usize {
    let last = version.levels.len() - 1;
    if settings.ingest_behind { last.saturating_sub(1) } else { last }
}

/// Whether a table of the level, there or on its way, overlaps the bounds.
fn is_taken(version: &Version, arrivals: &Arrivals<'_>, level: usize, bounds: Bounds<'_>) -> bool {
    let user = version.comparator.keys();
    let (begin, end) = (Some(bounds.0), Some(bounds.1));
    let is_there = match level {
        0 => !version.files_overlapping(0, begin, end).is_empty(),
        _ => !version.overlapping_range(level, begin, end).is_empty(),
    };
    is_there || arrivals.iter().any(|&(at, other)| at == level && overlap(user, bounds, other))
}

fn writes_to(
    version: &Version,
    compaction: &RunningCompaction,
    level: usize,
    bounds: Bounds<'_>,
) -> bool {
    let written = (compaction.smallest.as_slice(), compaction.largest.as_slice());
    compaction.writes_to(level) && overlap(version.comparator.keys(), bounds, written)
}
