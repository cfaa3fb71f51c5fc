//! Which of a family's directories a compaction writes to, by RocksDB's rules.
//!
//! Leveled: level 0 (taken to be as large as the next level) and the levels below it are laid into
//! the directories one after the other, by the sizes that they should have; a level that does not
//! fit into what is left of a directory goes to the next. The last directory takes all the rest.
//!
//! Universal: the first directory with room for the run, and for what will have come together, by
//! its size, before the run is merged again. What lies there now is not looked at, nor is what
//! other families write.

use super::settings::LeveledSettings;

/// The path id for tables of `level`, if `settings.path_sizes` are the sizes of the directories.
pub fn path_of_level(settings: &LeveledSettings, level: usize) -> u32 {
    let sizes = &settings.path_sizes;
    let Some((_, limited)) = sizes.split_last() else { return 0 };
    let mut level_size = settings.max_bytes_for_level_base;
    let mut at = 0;
    for (path_id, &size) in limited.iter().enumerate() {
        let mut left = size;
        while level_size <= left {
            if at == level {
                return path_id as u32;
            }
            left -= level_size;
            if at > 0 {
                level_size = (level_size as f64 * settings.level_factor(at)) as u64;
            }
            at += 1;
        }
    }
    limited.len() as u32
}

/// The path id for a sorted run of `bytes`, if directories of these sizes are there. A run is
/// merged with the next as soon as that is within `size_ratio` percent of its size.
pub fn path_of_run(sizes: &[u64], size_ratio: u32, bytes: u64) -> u32 {
    let Some((_, limited)) = sizes.split_last() else { return 0 };
    let percent = u128::from(100u32.saturating_sub(size_ratio));
    let future = u128::from(bytes) * percent / 100;
    let mut before = 0u128;
    for (path_id, &size) in limited.iter().enumerate() {
        let has_room = size > bytes && before + u128::from(size - bytes) > future;
        if has_room {
            return path_id as u32;
        }
        before += u128::from(size);
    }
    limited.len() as u32
}
