//! Where a compaction is cut into parts that run at the same time (RocksDB's subcompactions).
//!
//! 1. Only compactions that nothing else can run beside are cut: those of level 0, whose tables overlap each other, those of
//!    whole sorted runs, and those that somebody waits for. Others run beside each other as they are.
//! 2. The tables' index blocks say how many bytes lie before some of their keys. In the order of these keys, bytes are
//!    added up, and a part ends at the first key by which it has its share of all.
//! 3. No part is smaller than one output table, so a compaction with little to do is left whole.
//!
//! Cuts lie between user keys: all versions of a key are judged in one part.

use super::plan::{CompactionPlan, CompactionReason};
use crate::base::Comparator;
use crate::sst::TableAnchor;

/// Whether a compaction of this kind may be cut. Tables in level 0 are never cut, so those that write there are not.
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

/// The user keys at which an input is cut into at most `parts_max` parts of about equal bytes, at least `part_bytes_min`
/// each: ascending, each the first key of a part but the first. `anchors` are those of all tables of the input.
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
        let is_behind = || boundaries.last().is_none_or(|last| user.compare(last, &user_key).is_lt());
        if now_filled > filled && is_behind() {
            boundaries.push(user_key);
        }
        filled = now_filled;
    }
    boundaries
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables as `key:bytes`, one after the other; where they are cut, as text.
    fn cut(parts_max: usize, part_bytes_min: u64, tables: &[&str]) -> String {
        let anchors = tables.iter().flat_map(|table| table.split_whitespace()).map(|anchor| {
            let (user_key, size) = anchor.split_once(':').unwrap();
            TableAnchor { user_key: user_key.as_bytes().to_vec(), size: size.parse().unwrap() }
        });
        let cuts =
            subcompaction_boundaries(&Comparator::Bytewise, anchors.collect(), parts_max, part_bytes_min);
        let cuts: Vec<_> = cuts.iter().map(|cut| cut.escape_ascii().to_string()).collect();
        cuts.join(" ")
    }

    #[test]
    fn parts_have_about_equal_bytes() {
        let table = "a:10 b:10 c:10 d:10 e:10 f:10 g:10 h:10";
        assert_eq!(cut(2, 10, &[table]), "d");
        assert_eq!(cut(4, 10, &[table]), "b d f");
        assert_eq!(cut(3, 10, &[table]), "c f");
        assert_eq!(cut(8, 10, &[table]), "a b c d e f g");
        assert_eq!(cut(2, 10, &["a:1 b:1 c:1 d:90 e:1 f:1 g:1"]), "d");
        assert_eq!(cut(2, 10, &["a:90 b:1 c:1 d:1 e:1 f:1 g:1"]), "a");
    }

    #[test]
    fn tables_that_overlap_are_counted_together() {
        assert_eq!(cut(2, 10, &["a:10 m:10", "n:10 z:10"]), "m");
        assert_eq!(cut(2, 10, &["a:10 z:10", "b:10 c:10", "d:10 e:10"]), "c");
        // Nobody knows where in a table the bytes before its only anchor lie.
        assert_eq!(cut(2, 10, &["m:30", "z:30"]), "m");
    }

    #[test]
    fn no_part_is_smaller_than_a_table() {
        let table = "a:10 b:10 c:10 d:10 e:10 f:10 g:10 h:10";
        assert_eq!(cut(8, 40, &[table]), "d");
        assert_eq!(cut(8, 41, &[table]), "");
        assert_eq!(cut(8, 81, &[table]), "");
        assert_eq!(cut(1, 1, &[table]), "");
        assert_eq!(cut(0, 0, &[table]), "");
        assert_eq!(cut(4, 0, &[]), "");
        assert_eq!(cut(4, 1, &["a:0 b:0"]), "");
    }

    #[test]
    fn a_key_is_never_cut() {
        // So many versions of `c` that they would be several parts.
        assert_eq!(cut(4, 10, &["a:10 c:10 c:10 c:10 c:10", "c:10 c:10 z:10"]), "c");
        assert_eq!(cut(4, 10, &["c:40", "c:40"]), "c");
        assert_eq!(cut(4, 10, &["a:10 b:1000 c:10 d:10"]), "b");
    }

    #[test]
    fn the_largest_sizes_do_not_overflow() {
        let size = u64::MAX;
        assert_eq!(cut(3, u64::MAX, &[&format!("a:{size} b:{size} c:{size}")]), "a b");
    }

    #[test]
    fn other_orders_of_keys_are_followed() {
        let anchor = |key: &[u8]| TableAnchor { user_key: key.to_vec(), size: 10 };
        let anchors = vec![anchor(b"a"), anchor(b"b"), anchor(b"c"), anchor(b"d")];
        let cuts = subcompaction_boundaries(&Comparator::ReverseBytewise, anchors, 2, 1);
        assert_eq!(cuts, [b"c".to_vec()]);
    }
}
