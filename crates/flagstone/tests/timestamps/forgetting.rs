//! What flushes and compactions make of operands and range deletions with timestamps.

use std::path::Path;

use flagstone::base::timestamp::from_u64;
use flagstone::{
    BottommostLevelCompaction, CompactRangeOptions, Comparator, Db, Error, Family, FlushOptions,
};

fn open(path: &Path, comparator: Comparator, persists: bool) -> Db {
    Db::builder(path)
        .column_family("f", move |family| {
            family.comparator = comparator;
            family.settings.persist_user_defined_timestamps = persists;
            family.set("merge_operator", "stringappend").unwrap();
        })
        .open()
        .unwrap()
}

fn stamped(path: &Path, persists: bool) -> Db {
    open(path, Comparator::BytewiseU64Ts, persists)
}

fn rewrite(family: &Family) {
    family.flush().unwrap();
    let to_the_bottom = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    family.compact_range::<&str>(.., &to_the_bottom).unwrap();
}

fn read(family: &Family, timestamp: u64) -> Option<String> {
    let found = family.as_of(from_u64(timestamp)).get("k").unwrap();
    found.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn what_follows_a_range_deletion_stays_when_a_family_gets_timestamps() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path(), Comparator::Bytewise, true);
    let family = db.column_family("f").unwrap();
    family.put("old", "v").unwrap();
    family.delete_range("a".."z").unwrap();
    family.put("k", "v").unwrap();
    family.flush().unwrap();
    drop((family, db));
    for _ in 0..2 {
        let db = stamped(directory.path(), false);
        let family = db.column_family("f").unwrap();
        rewrite(&family);
        assert_eq!(read(&family, 1).as_deref(), Some("v"));
        assert_eq!(family.as_of(from_u64(1)).iter().count(), 1);
    }
}

#[test]
fn a_flush_without_timestamps_minds_a_range_deletion_as_of_the_greatest() {
    let directory = tempfile::tempdir().unwrap();
    let db = stamped(directory.path(), false);
    let family = db.column_family("f").unwrap();
    family.merge_with_timestamp("k", from_u64(u64::MAX), "a").unwrap();
    family.delete_range_with_timestamp("a".."z", from_u64(u64::MAX)).unwrap();
    family.merge_with_timestamp("k", from_u64(u64::MAX), "b").unwrap();
    assert_eq!(read(&family, u64::MAX).as_deref(), Some("b"));
    family.flush().unwrap();
    assert_eq!(read(&family, u64::MAX).as_deref(), Some("b"));
    rewrite(&family);
    assert_eq!(read(&family, u64::MAX).as_deref(), Some("b"));
}

/// Writes `first`, a range deletion and an operand, in this order, and compares what is read
/// before and after tables are written, as of all timestamps from `low` on.
fn check_parted(
    first: impl Fn(&Family) -> Result<(), Error>,
    (deletion, operand): (u64, u64),
    low: Option<u64>,
) {
    let directory = tempfile::tempdir().unwrap();
    let db = stamped(directory.path(), true);
    let family = db.column_family("f").unwrap();
    first(&family).unwrap();
    family.delete_range_with_timestamp("k".."l", from_u64(deletion)).unwrap();
    family.merge_with_timestamp("k", from_u64(operand), "b").unwrap();
    if let Some(low) = low {
        family.increase_full_history_ts_low(from_u64(low)).unwrap();
    }
    let from = low.unwrap_or(0);
    let seen = || (from..30).map(|at| read(&family, at)).collect::<Vec<_>>();
    let before = seen();
    assert_eq!(before.last().unwrap().as_deref(), Some("b"));
    family.flush_with(&FlushOptions::default()).unwrap();
    assert_eq!(seen(), before, "after the flush");
    for _ in 0..2 {
        rewrite(&family);
        assert_eq!(seen(), before, "after a compaction");
    }
}

#[test]
fn operands_are_not_merged_across_a_range_deletion() {
    for deletion in [5, 10, 20] {
        let put = |family: &Family| family.put_with_timestamp("k", from_u64(10), "a");
        check_parted(put, (deletion, 10), None);
        let merge = |family: &Family| family.merge_with_timestamp("k", from_u64(10), "a");
        check_parted(merge, (deletion, 10), None);
    }
}

#[test]
fn nor_where_only_the_range_deletion_is_of_the_history_that_is_kept() {
    let put = |family: &Family| family.put_with_timestamp("k", from_u64(5), "a");
    check_parted(put, (20, 6), Some(15));
    let merge = |family: &Family| family.merge_with_timestamp("k", from_u64(5), "a");
    check_parted(merge, (20, 6), Some(15));
}

#[test]
fn a_version_stays_newer_than_a_range_deletion_of_the_history_that_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let db = stamped(directory.path(), true);
    let family = db.column_family("f").unwrap();
    family.delete_range_with_timestamp("a".."z", from_u64(20)).unwrap();
    family.put_with_timestamp("k", from_u64(6), "v").unwrap();
    family.increase_full_history_ts_low(from_u64(15)).unwrap();
    for _ in 0..2 {
        rewrite(&family);
        assert_eq!(read(&family, 20).as_deref(), Some("v"));
    }
}
