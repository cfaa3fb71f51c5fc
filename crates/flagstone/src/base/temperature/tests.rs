use super::*;

#[test]
fn temperatures_have_rocksdb_s_numbers_and_names() {
    let shown: Vec<_> =
        Temperature::NAMES.iter().map(|(_, value)| (value.as_byte(), value.to_string())).collect();
    let expected =
        [(0, "unknown"), (4, "hot"), (8, "warm"), (10, "cool"), (12, "cold"), (16, "ice")];
    assert_eq!(shown, expected.map(|(byte, name)| (byte, name.to_string())));
    assert_eq!(Temperature::from_byte(99).to_string(), "99");
}
