use super::*;

#[test]
fn a_changed_bit_is_told_and_the_right_bytes_are_taken_again() {
    for bytes in [1, 2, 4, 8] {
        let sums = BlockSums::new(bytes, None).expect("some bytes");
        let (first, second) = (vec![7; 4096], b"another block".to_vec());
        sums.check(0, &first, true).unwrap();
        sums.check(4096, &second, true).unwrap();
        let mut told = 0;
        for at in 0..first.len() {
            let mut changed = first.clone();
            changed[at] ^= 1;
            if let Err(error) = sums.check(0, &changed, false) {
                assert_eq!(error.subcode(), SubCode::MemoryChanged);
                assert!(error.is_corruption());
                told += 1;
                // Nor is it taken for right now that its sum is gone.
                assert!(sums.check(0, &changed, false).is_err());
                assert!(sums.check(0, &first, false).is_err());
                sums.check(0, &first, true).unwrap();
                sums.check(0, &first, false).unwrap();
            }
        }
        // One byte takes one change in 256 for none.
        assert!(told > 4000 && (bytes == 1 || told == 4096), "{bytes}: {told}");
        sums.check(0, &first, true).unwrap();
        sums.check(4096, &second, true).unwrap();
    }
    assert!(BlockSums::new(0, None).is_none());
}

/// The block failed for as long as its table was open.
#[test]
fn a_sum_that_has_changed_itself_is_made_again() {
    let sums = BlockSums::new(8, None).expect("some bytes");
    sums.check(0, b"block", true).unwrap();
    sums.sums.lock().by_offset.entry(0).and_modify(|sum| *sum ^= 1);
    assert!(sums.check(0, b"block", false).is_err());
    sums.check(0, b"block", true).unwrap();
    sums.check(0, b"block", false).unwrap();
}

#[test]
fn the_sums_are_accounted_for() {
    let account = Arc::new(MemoryAccount::default());
    let sums = BlockSums::new(8, Some(&account)).expect("some bytes");
    (0..100).for_each(|number| sums.check(number * 4096, b"block", true).unwrap());
    assert!(account.held(MemoryKind::Tables) >= 100 * SUM_BYTES);
    drop(sums);
    assert_eq!(account.held(MemoryKind::Tables), 0);
}
