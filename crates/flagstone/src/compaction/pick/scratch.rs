//! How much room the largest compaction wants that may come: what it writes before its inputs are
//! given back, if nothing in them turns out to be garbage. Values in blob files are not in it:
//! `max_space_amplification` says what these may take.

use super::expand::{bounds, overlapping, total_bytes};
use super::fifo_ratio::merge_target;
use super::settings::{LeveledSettings, PickContext};
use super::targets::LevelTargets;
use super::universal::UniversalPicker;
use crate::manifest::{TableFile, Version};
use crate::options::{FifoCompactionOptions, UniversalCompactionOptions};

/// Of leveled compaction: level 0 goes into the level below as a whole, deeper levels in pieces.
pub fn leveled_scratch(version: &Version, settings: &LeveledSettings) -> u64 {
    let user = version.comparator.keys();
    let base_level = LevelTargets::new(version, settings).base_level;
    let level0 = &version.levels[0];
    let mut from_level0 = total_bytes(level0);
    if base_level > 0 && !level0.is_empty() {
        let met = overlapping(version, base_level, bounds(user, level0.iter()));
        from_level0 = from_level0.saturating_add(total_bytes(&version.levels[base_level][met]));
    }
    let with_below = |level: usize, file: &TableFile| {
        let Some(below) = version.levels.get(level + 1) else { return file.meta.size };
        let range = (file.meta.smallest.user_key(), file.meta.largest.user_key());
        file.meta.size.saturating_add(total_bytes(&below[overlapping(version, level + 1, range)]))
    };
    let deeper = || version.files().filter(|(level, _)| *level > 0);
    let of_one = deeper().map(|(level, file)| with_below(level, file)).max().unwrap_or(0);
    let most = settings.effective_max_compaction_bytes().max(of_one);
    from_level0.max(most.min(total_bytes(deeper().map(|(_, file)| file))))
}

/// Of universal compaction: all runs, in pieces if these are small enough.
pub fn universal_scratch(
    version: &Version,
    settings: &LeveledSettings,
    universal: &UniversalCompactionOptions,
) -> u64 {
    UniversalPicker::new(version, settings, universal, &PickContext::default()).scratch()
}

/// Of FIFO compaction, which mostly writes nothing.
pub fn fifo_scratch(
    version: &Version,
    settings: &LeveledSettings,
    fifo: &FifoCompactionOptions,
) -> u64 {
    let level0 = &version.levels[0];
    let merged = if fifo.allow_compaction {
        // Tables below the target that come to it together are not twice as large.
        let target = merge_target(version, settings, fifo).map(|target| target.saturating_mul(2));
        total_bytes(level0).min(target.unwrap_or_else(|| settings.effective_max_compaction_bytes()))
    } else {
        0
    };
    let moved = if fifo.temperature_ages().0.is_empty() {
        0
    } else {
        level0.iter().map(|file| file.meta.size).max().unwrap_or(0)
    };
    merged.max(moved)
}
