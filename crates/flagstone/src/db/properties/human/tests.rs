use super::*;

#[test]
fn numbers_look_as_in_rocksdb() {
    assert_eq!([bytes(0), bytes(1536), bytes(5 << 40)], ["0.00 KB", "1.50 KB", "5.00 TB"]);
    assert_eq!(bytes(u64::MAX), "16777216.00 TB");
    assert_eq!(
        [9999, 10_000, 12_345_678, 12_345_678_901].map(count),
        ["9999", "10K", "12M", "12G"]
    );
    assert_eq!(micros(3_723_004_000), "01:02:3.004 H:M:S");
}

#[test]
fn numbers_are_read_back() {
    assert_eq!([0, 9_999].map(|number| parse_count(&count(number))), [Some(0), Some(9_999)]);
    assert_eq!(
        [12_345, 12_345_678].map(|number| parse_count(&count(number))),
        [Some(12_000), Some(12_000_000)]
    );
    assert_eq!([1536, 5 << 40].map(|size| parse_bytes(&bytes(size))), [Some(1536), Some(5 << 40)]);
    assert_eq!(parse_bytes("1.50 KB seed"), Some(1536));
    assert_eq!(parse_micros("01:02:3.004"), Some(3_723_004_000));
    assert_eq!(["x", "K"].map(parse_count), [None; 2]);
    assert_eq!(["2.00", "x MB"].map(parse_bytes), [None; 2]);
}
