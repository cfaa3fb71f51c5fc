use super::*;

#[test]
fn every_type_is_known_by_its_byte_and_names() {
    for kind in CompressionType::ALL {
        assert_eq!(CompressionType::from_byte(kind.to_byte()), Some(kind));
        for name in [kind.option_name(), kind.property_name(), kind.short_name()] {
            assert_eq!(CompressionType::from_name(name), Some(kind), "{name}");
        }
    }
    assert_eq!(CompressionType::from_byte(0x40), Some(CompressionType::Zstd));
    assert_eq!((CompressionType::from_byte(6), CompressionType::from_byte(0x80)), (None, None));
    assert_eq!(CompressionType::from_name("kDisableCompressionOption"), None);
}
