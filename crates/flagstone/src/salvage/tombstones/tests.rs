use super::*;

/// A queue that trims its head. Fifty thousand such ranges in a WAL, 3 MB, took 10 GB.
#[test]
fn nested_ranges_of_wals_take_no_more_memory_than_others() {
    const COUNT: u64 = 3000;
    let (order, mut all) = (Comparator::Bytewise, Tombstones::default());
    for sequence in 1..=COUNT {
        let end = format!("q{sequence:06}").into_bytes();
        all.add_of_log(RangeTombstone { start: b"q".to_vec(), end, sequence }, None);
    }
    all.finish(&order);
    let held = &all.of_tables[0].tombstones;
    let bytes = held.tombstones().memory_usage();
    assert!(bytes < 1 << 20, "{bytes}");
    let deleted_by = |key: &[u8]| {
        let key = InternalKeyBuf::new(key, 0, crate::base::ValueType::Value);
        held.covering_sequence(key.as_key(), MAX_SEQUENCE_NUMBER)
    };
    // The last range is the newest, and covers all keys.
    assert_eq!(
        [deleted_by(b"q000017"), deleted_by(b"q002999"), deleted_by(b"q003000")],
        [COUNT, COUNT, 0]
    );
}
