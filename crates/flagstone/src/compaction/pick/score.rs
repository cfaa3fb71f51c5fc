//! How badly each level wants to be compacted, and how much work that is.
//!
//! A level wants it from a score of 1 on. Level 0 is scored by its files and its bytes; a deeper
//! level by its bytes against its target, those due to come down from above counted as if they were
//! part of the target, so that a level that is about to be overrun does not go first. A table full
//! of deletions counts for more than its size: compacting it frees what it deletes.

use std::sync::Arc;

use super::settings::{LeveledSettings, PickContext};
use super::targets::LevelTargets;
use crate::manifest::{EntryStats, TableFile, Version};

/// How badly a level wants to be compacted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelScore {
    /// The level.
    pub level: usize,
    /// 1.0 and more: it should be.
    pub score: f64,
}

/// The factor by which scores above 1 are spread, so that how far they exceed it stays visible
/// after the division.
const SCORE_SCALE: f64 = 10.0;

/// What each table counts for, by level and position: its bytes, what its range tombstones cover
/// below, and twice the values that its deletions outnumber.
pub fn compensated_sizes(version: &Version, context: &PickContext<'_>) -> Vec<Vec<u64>> {
    let stats: Vec<Vec<_>> = version
        .levels
        .iter()
        .map(|files| files.iter().map(|file| (context.stats)(file)).collect())
        .collect();
    let (mut values, mut value_bytes) = (0u64, 0u64);
    for known in stats.iter().flatten().flatten() {
        values = values.saturating_add(known.entries.saturating_sub(known.deletions));
        value_bytes = value_bytes.saturating_add(known.value_bytes);
    }
    let average = value_bytes.checked_div(values).unwrap_or(0);
    let size_of = |(file, stats): (&Arc<TableFile>, &Option<EntryStats>)| {
        let EntryStats { entries, deletions, .. } = stats.unwrap_or_default();
        let outnumbering = deletions.saturating_mul(2).saturating_sub(entries);
        let by_deletions = outnumbering.saturating_mul(average).saturating_mul(2);
        let by_ranges = file.meta.compensated_range_deletion_size;
        file.meta.size.saturating_add(by_deletions).saturating_add(by_ranges)
    };
    version
        .levels
        .iter()
        .zip(&stats)
        .map(|(files, stats)| files.iter().zip(stats).map(size_of).collect())
        .collect()
}

/// The scores of all levels that a compaction can start from, the most urgent first.
pub fn scores(
    version: &Version,
    settings: &LeveledSettings,
    targets: &LevelTargets,
    sizes: &[Vec<u64>],
) -> Vec<LevelScore> {
    let num_levels = version.levels.len();
    let mut scores = vec![LevelScore {
        level: 0,
        score: score_of_level0(version, settings, targets, &sizes[0]),
    }];
    let mut coming_down = version.level_bytes(0);
    for (level, sizes) in sizes.iter().enumerate().take(num_levels.saturating_sub(1)).skip(1) {
        let idle = idle_bytes(version, level, sizes);
        let target = targets.bytes(level);
        let mut score = idle as f64 / target as f64;
        if settings.dynamic_level_bytes {
            if idle >= target {
                score = idle as f64 * SCORE_SCALE / (target as f64 + coming_down as f64);
            }
            if let Some(lowest) = targets.lowest_unnecessary
                && level <= lowest
                && idle > 0
            {
                score = score.max(SCORE_SCALE * (1.001 + 0.001 * (lowest - level) as f64));
            }
            coming_down =
                u64::saturating_add(coming_down, version.level_bytes(level).saturating_sub(target));
        }
        scores.push(LevelScore { level, score });
    }
    // Stable: of equal scores the upper level goes first.
    scores.sort_by(|a, b| b.score.total_cmp(&a.score));
    scores
}

fn score_of_level0(
    version: &Version,
    settings: &LeveledSettings,
    targets: &LevelTargets,
    sizes: &[u64],
) -> f64 {
    let idle_files = version.levels[0].iter().filter(|file| !file.is_being_compacted()).count();
    let trigger = settings.level0_file_num_compaction_trigger.max(1);
    let mut score = idle_files as f64 / trigger as f64;
    if version.levels.len() == 1 {
        return score;
    }
    let (bytes, base_bytes) = (idle_bytes(version, 0, sizes), settings.max_bytes_for_level_base);
    if !settings.dynamic_level_bytes {
        return score.max(bytes as f64 / base_bytes as f64);
    }
    if bytes >= base_bytes {
        score = score.max(1.01);
    }
    let target = targets.bytes(targets.base_level);
    if bytes > target {
        score =
            score.max(bytes as f64 / version.level_bytes(targets.base_level).max(target) as f64);
    }
    if score > 1.0 { score * SCORE_SCALE } else { score }
}

fn idle_bytes(version: &Version, level: usize, sizes: &[u64]) -> u64 {
    let idle =
        version.levels[level].iter().zip(sizes).filter(|(file, _)| !file.is_being_compacted());
    idle.fold(0, |sum, (_, &size)| sum.saturating_add(size))
}

/// An estimate of the bytes that compactions must rewrite until all levels are within their
/// targets: what write stalls go by.
pub fn pending_compaction_bytes(
    version: &Version,
    settings: &LeveledSettings,
    targets: &LevelTargets,
) -> u64 {
    let num_levels = version.levels.len();
    let level0_bytes = version.level_bytes(0);
    let level0_is_due = version.levels[0].len() >= settings.level0_file_num_compaction_trigger
        || level0_bytes >= settings.max_bytes_for_level_base;
    let mut coming_down = if level0_is_due { level0_bytes } else { 0 };
    let mut pending = coming_down;
    for level in targets.base_level.max(1)..num_levels.saturating_sub(1) {
        let own = version.level_bytes(level);
        if level == targets.base_level && level0_is_due {
            pending = pending.saturating_add(own);
        }
        let size = own.saturating_add(coming_down);
        // What is young does not go into the last level, however much it is.
        let is_held = settings.holds_young() && level + 2 == num_levels;
        coming_down = if is_held { 0 } else { size.saturating_sub(targets.bytes(level)) };
        let below = version.level_bytes(level + 1);
        if coming_down > 0 && below > 0 {
            let fan_out = below as f64 / size as f64 + 1.0;
            pending = pending.saturating_add((coming_down as f64 * fan_out) as u64);
        }
    }
    pending
}
