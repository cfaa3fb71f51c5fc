//! Where a compaction is cut into parts that run at the same time (RocksDB's subcompactions).
//!
//! 1. Only compactions that nothing else can run beside are cut: those of level 0, whose tables
//!    overlap each other, those of whole sorted runs, and those that somebody waits for. Others run
//!    beside each other as they are.
//! 2. The tables' index blocks say how many bytes lie before some of their keys. In the order of
//!    these keys, bytes are added up, and a part ends at the first key by which it has its share of
//!    all.
//! 3. No part is smaller than one output table, so a compaction with little to do is left whole.
//!
//! Cuts lie between user keys: all versions of a key are judged in one part.

use super::plan::{CompactionPlan, CompactionReason};
use crate::base::Comparator;
use crate::sst::TableAnchor;

/// Whether a compaction of this kind may be cut. Tables in level 0 are never cut, so those that
/// write there are not.
pub fn is_divisible(plan: &CompactionPlan) -> bool {
    let is_alone = match plan.reason {
        CompactionReason::SizeAmplification
        | CompactionReason::SizeRatio
        | CompactionReason::SortedRuns
        | CompactionReason::Manual => true,
        _ => plan.start_level() == 0,
    };
    !plan.trivial_move && plan.output_level > 0 && is_alone
}

/// The user keys at which an input is cut into at most `parts_max` parts of about equal bytes, at
/// least `part_bytes_min` each: ascending, each the first key of a part but the first. `anchors`
/// are those of all tables of the input.
pub fn subcompaction_boundaries(
    user: &Comparator,
    mut anchors: Vec<TableAnchor>,
    parts_max: usize,
    part_bytes_min: u64,
) -> Vec<Vec<u8>> {
    let total: u128 = anchors.iter().map(|anchor| u128::from(anchor.size)).sum();
    let parts = (total / u128::from(part_bytes_min.max(1))).min(parts_max as u128);
    anchors.sort_by(|a, b| user.compare(&a.user_key, &b.user_key));
    let mut boundaries: Vec<Vec<u8>> = Vec::new();
    // Bytes up to the anchor, and of how many parts they are all.
    let (mut bytes, mut filled) = (0, 0);
    for TableAnchor { user_key, size } in anchors {
        bytes += u128::from(size);
        let now_filled = bytes * parts / total.max(1);
        if now_filled >= parts {
            break;
        }
        // A key that alone is larger than a part ends only one.
        let is_behind =
            || boundaries.last().is_none_or(|last| user.compare(last, &user_key).is_lt());
        if now_filled > filled && is_behind() {
            boundaries.push(user_key);
        }
        filled = now_filled;
    }
    boundaries
}

#[cfg(test)]
mod tests;
