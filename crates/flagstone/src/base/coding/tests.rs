use super::*;

#[test]
fn varints_round_trip_at_every_boundary() {
    for shift in 0..64 {
        for value in [(1u64 << shift) - 1, 1 << shift, (1 << shift) | 1, u64::MAX >> shift] {
            let mut out = Vec::new();
            put_varint64(&mut out, value);
            assert_eq!(
                out.len() as u32,
                (64 - (value | 1).leading_zeros()).div_ceil(7),
                "the shortest form"
            );
            let mut decoder = Decoder::new(&out);
            assert_eq!((decoder.varint64(), decoder.is_empty()), (Some(value), true));
        }
    }
}

#[test]
fn malformed_varints_are_refused() {
    assert_eq!(Decoder::new(&[0x80; 11]).varint64(), None);
    assert_eq!(Decoder::new(&[0xff, 0xff]).varint64(), None);
    assert_eq!(Decoder::new(&[0xff, 0xff, 0xff, 0xff, 0x10]).varint32(), None);
    assert_eq!(
        Decoder::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).varint64(),
        None
    );
}

#[test]
fn signed_numbers_round_trip() {
    for value in [0, -1, 1, i64::MIN, i64::MAX, -300] {
        let mut out = Vec::new();
        put_varsigned64(&mut out, value);
        assert_eq!(Decoder::new(&out).varsigned64(), Some(value));
    }
}

#[test]
fn a_slice_longer_than_its_bytes_is_refused() {
    assert_eq!(Decoder::new(&[5, 1, 2]).lps(), None);
    assert_eq!(Decoder::new(&[2, 1, 2]).lps(), Some(&[1u8, 2][..]));
}
