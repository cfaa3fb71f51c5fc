use super::*;

fn separator(comparator: &Comparator, start: &[u8], limit: &[u8]) -> Vec<u8> {
    let mut key = start.to_vec();
    comparator.find_shortest_separator(&mut key, limit);
    key
}

#[test]
fn bytewise_separators() {
    let c = Comparator::Bytewise;
    assert_eq!(separator(&c, b"abcdef", b"abzz"), b"abd");
    assert_eq!(separator(&c, b"abc", b"abcd"), b"abc");
    assert_eq!(separator(&c, b"aa1x", b"aa2"), b"aa1y");
    assert_eq!(separator(&c, b"aa1\xff", b"aa2"), b"aa1\xff");
    assert_eq!(separator(&c, b"aa1xyz", b"aa2z"), b"aa2");
    assert_eq!(separator(&c, b"b", b"a"), b"b");
}

#[test]
fn a_separator_lies_between_its_keys() {
    let keys: [&[u8]; 9] =
        [b"", b"\0", b"a", b"a\xff", b"a\xff\xff", b"ab", b"b", b"\xff", b"\xff\xff\x01"];
    for comparator in [Comparator::Bytewise, Comparator::ReverseBytewise] {
        for start in keys {
            for limit in keys.iter().filter(|limit| comparator.compare(start, limit).is_lt()) {
                let between = separator(&comparator, start, limit);
                assert!(comparator.compare(start, &between).is_le(), "{start:?} {between:?}");
                assert!(comparator.compare(&between, limit).is_lt(), "{between:?} {limit:?}");
            }
            let mut successor = start.to_vec();
            comparator.find_short_successor(&mut successor);
            assert!(comparator.compare(start, &successor).is_le());
        }
    }
}

#[test]
fn an_unknown_name_is_an_error_that_says_what_to_do() {
    let error = Comparator::from_name("my.Order").unwrap_err();
    assert!(error.to_string().contains("my.Order"), "{error}");
}
