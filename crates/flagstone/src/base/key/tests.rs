use super::*;

#[test]
fn newer_entries_of_a_key_come_first() {
    let order = InternalKeyComparator::new(Comparator::Bytewise);
    let key = |user: &str, sequence, kind| InternalKeyBuf::new(user.as_bytes(), sequence, kind);
    let sorted = [
        InternalKeyBuf::for_seek(b"a", 9),
        key("a", 9, ValueType::Value),
        key("a", 9, ValueType::Deletion),
        key("a", 8, ValueType::Merge),
        key("aa", 100, ValueType::Value),
        key("b", 1, ValueType::Value),
    ];
    for (i, a) in sorted.iter().enumerate() {
        for (j, b) in sorted.iter().enumerate() {
            assert_eq!(order.compare(a.as_key(), b.as_key()), i.cmp(&j), "{a:?} {b:?}");
        }
    }
}

#[test]
fn short_or_strange_bytes_are_no_key() {
    assert!(InternalKey::parse(b"1234567").is_none());
    assert!(InternalKey::parse(b"k\x7f\0\0\0\0\0\0\0").is_none());
    assert!(InternalKey::parse(b"\x01\0\0\0\0\0\0\0").is_some());
}
