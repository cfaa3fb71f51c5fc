//! How many bytes each level should hold.
//!
//! Static sizes: level 1 holds the base, each further one `multiplier` times more.
//!
//! Dynamic sizes: the last level is as large as it is; the levels above it are sized downwards from
//! it.
//! 1. The largest level's bytes are divided by the multiplier once for each level from the one
//!    above the last up to the first that has files.
//! 2. If the result is below the base divided by the multiplier, the first level with files stays
//!    where level 0 goes, and the levels above the highest one still large enough are
//!    *unnecessary*: they are drained downwards.
//! 3. Otherwise, while the result exceeds the base, the level above is opened.

use super::settings::LeveledSettings;
use crate::manifest::Version;

/// The shape that a leveled tree should have.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelTargets {
    /// Where level 0 goes: 1 with static sizes.
    pub base_level: usize,
    /// Levels from the first with files down to this one hold too little to be worth having.
    pub lowest_unnecessary: Option<usize>,
    bytes: Vec<u64>,
}

impl LevelTargets {
    /// The targets for the files of `version`.
    pub fn new(version: &Version, settings: &LeveledSettings) -> Self {
        if settings.dynamic_level_bytes {
            Self::from_last_level(version, settings)
        } else {
            Self::from_first_level(version.levels.len(), settings)
        }
    }

    /// Bytes that `level` should hold at most; without limit where nothing should be.
    pub fn bytes(&self, level: usize) -> u64 {
        self.bytes.get(level).copied().unwrap_or(u64::MAX)
    }

    fn from_first_level(num_levels: usize, settings: &LeveledSettings) -> Self {
        let mut bytes = vec![u64::MAX; num_levels];
        let mut target = settings.max_bytes_for_level_base;
        for (level, bytes) in bytes.iter_mut().enumerate().skip(1) {
            *bytes = target;
            target = scaled(target, settings.level_factor(level));
        }
        Self { base_level: 1.min(num_levels - 1), lowest_unnecessary: None, bytes }
    }

    fn from_last_level(version: &Version, settings: &LeveledSettings) -> Self {
        let last = version.levels.len() - 1;
        let mut bytes = vec![u64::MAX; last + 1];
        let largest = (1..=last).map(|level| version.level_bytes(level)).max().unwrap_or(0);
        let Some(first) = (1..=last).find(|&level| !version.levels[level].is_empty()) else {
            return Self { base_level: last, lowest_unnecessary: None, bytes };
        };
        let (max, multiplier) =
            (settings.max_bytes_for_level_base, settings.max_bytes_for_level_multiplier);
        let min = (max as f64 / multiplier) as u64;
        let mut lowest_unnecessary = None;
        let mut size = largest;
        for level in (first..last).rev() {
            size = (size as f64 / multiplier) as u64;
            // The proximal level has what must not lie below.
            let is_needed = settings.holds_young() && level + 1 == last;
            if lowest_unnecessary.is_none() && size <= min && !is_needed {
                lowest_unnecessary = Some(level);
            }
        }
        let mut base_level = first;
        let base_bytes = if size <= min {
            min.saturating_add(1)
        } else {
            while base_level > 1 && size > max {
                base_level -= 1;
                size = (size as f64 / multiplier) as u64;
            }
            size.clamp(1, max)
        };
        let mut target = base_bytes;
        for (level, bytes) in bytes.iter_mut().enumerate().skip(base_level) {
            if level > base_level {
                target = scaled(target, multiplier);
            }
            *bytes = target.max(max);
        }
        Self { base_level, lowest_unnecessary, bytes }
    }
}

/// `bytes * factor`, `u64::MAX` where that is too much, unchanged for a factor that makes no sense.
fn scaled(bytes: u64, factor: f64) -> u64 {
    // A cast from a float saturates.
    if factor > 0.0 { (bytes as f64 * factor) as u64 } else { bytes }
}
