use super::*;

fn checksum(factory: &FileChecksums, function: &str, parts: &[&[u8]]) -> FileChecksum {
    let mut running = factory.of_function(function).unwrap();
    parts.iter().for_each(|part| running.update(part));
    running.finish()
}

/// RFC 3720, B.4: 32 bytes of zeros. RocksDB stores the most significant byte first.
#[test]
fn the_built_in_function_is_the_crc32c_most_significant_byte_first() {
    let found = checksum(&FileChecksums::default(), FILE_CHECKSUM_CRC32C, &[&[0; 20], &[0; 12]]);
    assert_eq!(found.value, [0x8a, 0x91, 0x36, 0xaa]);
    assert_eq!(found.as_crc32c(), Some(0x8a91_36aa));
    assert_eq!(found, FileChecksum::crc32c(0x8a91_36aa));
    assert_eq!(found.to_string(), "FileChecksumCrc32c:8a9136aa");
}

#[test]
fn an_unknown_function_is_refused_by_name() {
    let error = FileChecksums::default().of_function("xor").err().unwrap();
    assert!(error.to_string().contains("'xor' is not known"), "{error}");
}

#[test]
fn new_files_get_checksums_only_with_a_factory() {
    assert!(FileChecksums::default().for_new_file().unwrap().is_none());
    let with = FileChecksums::new(Some(Arc::new(Crc32cFileChecksums)));
    assert!(with.for_new_file().unwrap().is_some());
    assert_eq!(with.function(), Some(FILE_CHECKSUM_CRC32C));
}

#[test]
fn another_checksum_is_corruption_that_shows_both() {
    let error = FileChecksum::crc32c(1).check(&FileChecksum::crc32c(2)).unwrap_err();
    assert!(error.is_corruption());
    let text = error.to_string();
    assert!(text.contains(":00000002") && text.contains(":00000001"), "{text}");
}
