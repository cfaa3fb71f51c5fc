use super::zeros_to_skip;

/// Each of them was looked at: zeros at the end of a large table took as long as searching it.
#[test]
fn of_a_run_of_zeros_only_the_last_may_begin_a_block() {
    assert_eq!(zeros_to_skip(&[0; 5000]), 4999);
    assert_eq!(zeros_to_skip(&[0, 0, 0, 9, b'k']), 2);
    assert_eq!([zeros_to_skip(&[0, 9]), zeros_to_skip(&[9, 0]), zeros_to_skip(&[])], [0, 0, 0]);
}
