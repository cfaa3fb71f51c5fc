//! Which tables of level 0 FIFO compaction merges where tables are small beside what their values
//! take in blob files (`use_kv_ratio_compaction`).
//!
//! The other rule goes by the size of a memtable, which such tables never come to: it merges all of
//! them again and again. Here sizes follow from what is to be kept.
//!
//! 1. Tables have `max_data_files_size` times their present part in all data, once it is used up.
//!    The target is the part of that which one of `level0_file_num_compaction_trigger` tables has;
//!    or `max_compaction_bytes`, where that is set.
//! 2. Tiers end at the target, at that divided by the trigger, and so on down to 10 KiB.
//! 3. In the smallest tier in which there are such, neighbouring tables that are below its end are
//!    merged, from the oldest on, once they reach it together. So nothing is rewritten more often
//!    than there are tiers, and what has come to the target is not touched until it is dropped.

use std::sync::Arc;

use super::expand::total_bytes;
use super::settings::LeveledSettings;
use crate::manifest::{TableFile, Version};
use crate::options::FifoCompactionOptions;

/// No tier ends below.
const TIER_MIN: u64 = 10 << 10;

/// Bytes from which on a table is not merged any more; `None` if this is not how tables are to be
/// merged. Without `max_data_files_size` there is nothing to go by.
pub fn merge_target(
    version: &Version,
    settings: &LeveledSettings,
    fifo: &FifoCompactionOptions,
) -> Option<u64> {
    if !fifo.use_kv_ratio_compaction || fifo.max_data_files_size == 0 {
        return None;
    }
    if settings.max_compaction_bytes > 0 {
        return Some(settings.max_compaction_bytes);
    }
    let tables = total_bytes(&version.levels[0]);
    let blobs =
        version.blob_files.values().map(|blob| blob.bytes_on_disk()).fold(0, u64::saturating_add);
    let all = u128::from(tables) + u128::from(blobs);
    let of_tables = u128::from(fifo.max_data_files_size) * u128::from(tables) / all.max(1);
    Some(of_tables as u64 / trigger(settings))
}

/// The tables to merge, newest first, of those that need not stay as they are; empty for none.
pub fn tables_to_merge(
    version: &Version,
    settings: &LeveledSettings,
    target: u64,
    stays: impl Fn(&TableFile) -> bool,
) -> Vec<Arc<TableFile>> {
    // As long as there are deeper levels, which another style has left behind, these are dropped
    // first.
    if version.levels[1..].iter().any(|files| !files.is_empty()) {
        return Vec::new();
    }
    let chosen = tier_ends(target, trigger(settings))
        .find_map(|end| run_below(&version.levels[0], end, &stays));
    chosen.map(<[_]>::to_vec).unwrap_or_default()
}

fn trigger(settings: &LeveledSettings) -> u64 {
    settings.level0_file_num_compaction_trigger.max(2) as u64
}

/// Ascending.
fn tier_ends(target: u64, trigger: u64) -> impl Iterator<Item = u64> {
    let below = std::iter::successors(Some(target), |end| Some(end / trigger));
    let mut ends: Vec<u64> = below.take_while(|end| *end >= TIER_MIN.min(target.max(1))).collect();
    ends.reverse();
    ends.into_iter()
}

/// The oldest neighbouring tables below `end` that together reach it.
fn run_below(
    files: &[Arc<TableFile>],
    end: u64,
    stays: impl Fn(&TableFile) -> bool,
) -> Option<&[Arc<TableFile>]> {
    let mut runs = files.rsplit(|file| file.meta.size >= end || stays(file));
    runs.find_map(|run| {
        let mut bytes = 0u64;
        // Two or more, as each is too small by itself.
        let first = run.iter().rposition(|file| {
            bytes = bytes.saturating_add(file.meta.size);
            bytes >= end
        })?;
        Some(&run[first..])
    })
}
