use super::*;

fn text(text: &str) -> u64 {
    u64::from_be_bytes(*text.as_bytes().first_chunk().unwrap())
}

#[test]
fn digits_say_a_number_and_other_bytes_none() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..2000 {
        let number = random.u64(..100_000_000);
        let mut bytes = format!("{number:08}").into_bytes();
        assert_eq!(decimal(text(&format!("{number:08}"))), Some(number));
        bytes[random.usize(..8)] = random.u8(..);
        let said = std::str::from_utf8(&bytes)
            .ok()
            .filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let changed = u64::from_be_bytes(*bytes.first_chunk().unwrap());
        assert_eq!(decimal(changed), said.and_then(|text| text.parse().ok()), "{bytes:?}");
    }
}

#[test]
fn a_bound_is_told_from_digits_by_the_number_it_says() {
    for (bound, said) in
        [("00000019", 19), ("0000001:", 20), ("00000020", 20), ("9999999:", 100_000_000)]
    {
        assert_eq!(decimal_bound(text(bound)), Some(said));
        for number in 0..30 {
            let digits = format!("{number:08}");
            assert_eq!(digits.as_str() >= bound, number >= said, "{digits} and {bound}");
        }
    }
    for none in ["000000:0", "0000001;", "0000001/", "user0001"] {
        assert_eq!(decimal_bound(text(none)), None, "{none}");
    }
}
