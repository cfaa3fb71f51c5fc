use super::*;

#[test]
fn properties_round_trip() {
    let mut written = TableProperties {
        num_entries: 300,
        raw_key_size: 4000,
        comparator: "leveldb.BytewiseComparator".to_owned(),
        column_family: Some(7),
        ..TableProperties::default()
    };
    written.set("app.property", b"\x00\xff");
    written.set(name::INDEX_TYPE, &2u32.to_le_bytes());
    written.fill_raw();
    let read = TableProperties::decode(&Block::new(&written.encode()).unwrap()).unwrap();
    assert_eq!(read, written);
    assert_eq!(read.index_type().unwrap(), IndexType::TwoLevel);
    assert_eq!(read.raw["rocksdb.merge.operator".as_bytes()], b"nullptr");
}

#[test]
fn a_missing_index_type_is_assumed_and_an_unknown_one_is_named() {
    let mut properties = TableProperties::default();
    assert_eq!(properties.index_type().unwrap(), IndexType::BinarySearch);
    properties.set_number(name::INDEX_PARTITIONS, 3);
    assert_eq!(properties.index_type().unwrap(), IndexType::TwoLevel);
    properties.set(name::INDEX_TYPE, &9u32.to_le_bytes());
    assert!(properties.index_type().unwrap_err().message().contains("is 9; 0 to 3 are known"));
    properties.set(name::INDEX_TYPE, b"ab");
    assert!(properties.index_type().unwrap_err().message().contains("is ab;"));
}

#[test]
fn the_global_sequence_number_follows_the_manifest() {
    let mut properties = TableProperties::default();
    assert_eq!(properties.global_sequence(Some(9)).unwrap(), None);
    properties.set(name::EXTERNAL_GLOBAL_SEQUENCE, &0u64.to_le_bytes());
    assert!(properties.global_sequence(Some(9)).is_err());
    properties.set(name::EXTERNAL_VERSION, &2u32.to_le_bytes());
    assert_eq!(properties.global_sequence(Some(9)).unwrap(), Some(9));
    assert_eq!(properties.global_sequence(None).unwrap(), None);
    properties.set(name::EXTERNAL_GLOBAL_SEQUENCE, &8u64.to_le_bytes());
    assert!(properties.global_sequence(Some(9)).is_err());
    assert_eq!(properties.global_sequence(None).unwrap(), Some(8));
    properties.set(name::EXTERNAL_VERSION, &1u32.to_le_bytes());
    assert!(properties.global_sequence(None).is_err());
}
