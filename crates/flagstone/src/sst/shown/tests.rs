use super::*;

fn shown(padding: usize, has_records: bool) -> Shown {
    Shown { padding, has_records, key: Vec::new(), value: None }
}

fn place_of(shown: &Shown, kind: ValueType, back: bool) -> Option<ValueType> {
    let place = InternalKeyBuf::new(b"key", 7, kind);
    let stored = shown.place(place.as_key(), back);
    assert_eq!((stored.user_key(), stored.as_key().sequence()), (&b"key"[..], 7));
    stored.as_key().value_type()
}

/// A value that lies apart is stored as a blob index, which sorts before it.
#[test]
fn a_place_at_a_value_is_found_where_it_is_stored() {
    let apart = shown(0, true);
    assert_eq!(place_of(&apart, ValueType::Value, false), Some(ValueType::BlobIndex));
    assert_eq!(place_of(&apart, ValueType::Merge, false), Some(ValueType::BlobIndex));
    assert_eq!(place_of(&apart, ValueType::FOR_SEEK, false), Some(ValueType::FOR_SEEK));
    assert_eq!(place_of(&apart, ValueType::Deletion, false), Some(ValueType::Deletion));
    assert_eq!(place_of(&apart, ValueType::Value, true), Some(ValueType::Value));
    assert_eq!(place_of(&apart, ValueType::Merge, true), Some(ValueType::Merge));
    assert_eq!(place_of(&apart, ValueType::Deletion, true), Some(ValueType::Deletion));
}

#[test]
fn a_place_without_its_least_timestamp_is_one_among_stored_keys() {
    let padded = shown(3, false);
    let place = InternalKeyBuf::new(b"key\0\0\0", 7, ValueType::Value);
    assert_eq!(
        padded.place(place.as_key(), false),
        InternalKeyBuf::new(b"key", 7, ValueType::Value)
    );
    let newer = InternalKeyBuf::new(b"key\0\0\x01", 7, ValueType::Value);
    let first = InternalKeyBuf::new(b"key", MAX_SEQUENCE_NUMBER, ValueType::FOR_SEEK);
    assert_eq!(padded.place(newer.as_key(), false), first);
}
