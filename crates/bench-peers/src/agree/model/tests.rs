use super::*;

#[test]
fn a_family_that_is_ordered_backwards_deletes_ranges_backwards() {
    let mut family =
        Family::new(Traits { reversed: true, merge: MergeOperator::Max, has_merges: true });
    for key in ["a", "b", "c"] {
        family.apply(&Edit::Put { key: key.into(), value: key.into() });
    }
    family.apply(&Edit::DeleteRange { begin: "c".into(), end: "a".into() });
    assert_eq!(family.within(None, None), [(&b"a".to_vec(), &b"a".to_vec())]);
}

#[test]
fn operands_are_merged_as_the_operator_says() {
    let of =
        |merge: MergeOperator, value: Option<&[u8]>, operand: &[u8]| merge.merge(value, operand);
    assert_eq!(of(MergeOperator::StringAppend, Some(b"a"), b"b"), b"a,b");
    assert_eq!(of(MergeOperator::StringAppend, None, b"b"), b"b");
    assert_eq!(of(MergeOperator::Uint64Add, Some(b"?"), &7u64.to_le_bytes()), 7u64.to_le_bytes());
    assert_eq!(of(MergeOperator::Max, Some(b"b"), b"a"), b"b");
    assert_eq!(of(MergeOperator::Put, Some(b"b"), b"a"), b"a");
    assert_eq!(of(MergeOperator::BytesXor, Some(b"ab"), b"a"), b"\0b");
}
