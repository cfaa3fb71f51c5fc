use super::*;

#[test]
fn come_back_in_order_from_any_number_of_pieces() {
    let mut hashes = Hashes::default();
    for count in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 5] {
        hashes.clear();
        let all: Vec<u64> =
            (0..count as u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        all.iter().for_each(|&hash| hashes.push(hash));
        assert_eq!((hashes.len(), hashes.is_empty()), (count, count == 0));
        assert!(hashes.iter().eq(all));
    }
}
