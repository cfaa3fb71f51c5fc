use super::*;

#[test]
fn keys_are_bytes_or_hexadecimal_digits() {
    for length in [16, 24, 32] {
        let key: Vec<u8> = (0..length).map(|byte| byte * 7).collect();
        assert_eq!(decode(&key).expect("a key"), key);
        let digits: String = key.iter().map(|byte| format!("{byte:02X}")).collect();
        for text in [digits.clone(), digits.to_lowercase(), format!("{digits}\n")] {
            assert_eq!(decode(text.as_bytes()).expect("a key"), key);
        }
    }
    for wrong in [&b""[..], b"short", &[b'x'; 64], &[b'1'; 63], &[b'1'; 67]] {
        assert!(decode(wrong).is_err(), "{wrong:?}");
    }
}
