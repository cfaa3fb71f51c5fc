use super::*;

fn parse(text: &str) -> Result<FilterBits> {
    let mut bits = FilterBits::default();
    bits.assign(text).map(|()| bits)
}

#[test]
fn each_level_has_its_bits_and_the_last_is_for_those_below() {
    let bloom = |bits_per_key| FilterPolicy::Bloom { bits_per_key };
    let of = |text: &str| {
        [0, 1, 2, 6].map(|level| parse(text).unwrap().of_level(FilterPolicy::DEFAULT, level))
    };
    assert_eq!(of(""), [Some(FilterPolicy::DEFAULT); 4]);
    assert_eq!(of("14"), [Some(bloom(14.0)); 4]);
    assert_eq!(of("14:12.5:0"), [Some(bloom(14.0)), Some(bloom(12.5)), None, None]);
    let ribbon =
        |bits| FilterPolicy::Ribbon { bloom_equivalent_bits_per_key: bits, bloom_before_level: 2 };
    assert_eq!(parse("14:8").unwrap().of_level(ribbon(10.0), 3), Some(ribbon(8.0)));
    for text in ["", "14", "14:12.5:0"] {
        assert_eq!(parse(text).unwrap().text(), text);
    }
    for wrong in ["14:", "-1", "14:101", "14:x", "14;12"] {
        let error = parse(wrong).unwrap_err().to_string();
        assert!(error.contains("14:14:12:10") && error.contains(wrong), "{error}");
    }
}
