use super::{moment, rate};

#[test]
fn moments_are_dates() {
    for (seconds, expected) in [
        (0, "1970-01-01 00:00:00 UTC"),
        (951_782_399, "2000-02-28 23:59:59 UTC"),
        (951_782_400, "2000-02-29 00:00:00 UTC"),
        (1_709_251_200, "2024-03-01 00:00:00 UTC"),
        (4_107_542_399, "2100-02-28 23:59:59 UTC"),
        (4_107_542_400, "2100-03-01 00:00:00 UTC"),
    ] {
        assert_eq!(moment(seconds), expected);
    }
}

#[test]
fn rates_have_suffixes() {
    assert_eq!(rate("50M"), Ok(50 << 20));
    assert!(rate("0").is_err() && rate("fast").is_err());
}
