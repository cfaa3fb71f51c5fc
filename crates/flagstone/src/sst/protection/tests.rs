use super::*;

#[test]
fn a_changed_bit_is_told_and_the_right_bytes_are_taken_again() {
    for bytes in [1, 2, 4, 8] {
        let sums = BlockSums::new(bytes, None).expect("some bytes");
        let (first, second) = (vec![7; 4096], b"another block".to_vec());
        sums.check(0, &first).unwrap();
        sums.check(4096, &second).unwrap();
        let mut told = 0;
        for at in 0..first.len() {
            let mut changed = first.clone();
            changed[at] ^= 1;
            if let Err(error) = sums.check(0, &changed) {
                assert_eq!(error.subcode(), SubCode::MemoryChanged);
                assert!(error.is_corruption());
                told += 1;
            }
        }
        // One byte takes one change in 256 for none.
        assert!(told > 4000 && (bytes == 1 || told == 4096), "{bytes}: {told}");
        sums.check(0, &first).unwrap();
        sums.check(4096, &second).unwrap();
    }
    assert!(BlockSums::new(0, None).is_none());
}

#[test]
fn the_sums_are_accounted_for() {
    let account = Arc::new(MemoryAccount::default());
    let sums = BlockSums::new(8, Some(&account)).expect("some bytes");
    (0..100).for_each(|number| sums.check(number * 4096, b"block").unwrap());
    assert!(account.held(MemoryKind::Tables) >= 100 * SUM_BYTES);
    drop(sums);
    assert_eq!(account.held(MemoryKind::Tables), 0);
}
