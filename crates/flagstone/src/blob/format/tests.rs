use super::*;

#[test]
fn golden_header_and_footer() {
    let header = BlobFileHeader { column_family: ColumnFamilyId(0), compression: 0 };
    let mut expected = vec![0x37, 0x8f, 0x24, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    expected.extend_from_slice(&[0; 16]);
    assert_eq!(header.encode(), expected);
    assert_eq!(BlobFileHeader::decode(&expected).unwrap(), header);

    let mut expected = vec![0x37, 0x8f, 0x24, 0, 2];
    expected.extend_from_slice(&[0; 23]);
    expected.extend_from_slice(&[0x33, 0xfc, 0x82, 0xc9]);
    assert_eq!(BlobFileFooter { count: 2 }.encode(), expected);
    assert_eq!(BlobFileFooter::decode(&expected).unwrap(), BlobFileFooter { count: 2 });
}

#[test]
fn golden_record_header() {
    let mut expected = vec![2, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0];
    expected.extend_from_slice(&[0; 8]);
    expected.extend_from_slice(&[0xc9, 0x8f, 0x4e, 0x60, 0x72, 0xcc, 0x2e, 0x19]);
    let header = RecordHeader::new(b"a2", b"twotwo");
    assert_eq!(header.encode().as_slice(), expected);
    assert_eq!(RecordHeader::decode(&expected).unwrap(), header);
    header.check_blob(b"a2twotwo").unwrap();
    assert!(header.check_blob(b"a2twotwO").unwrap_err().is_corruption());
}

#[test]
fn golden_index() {
    let index = BlobIndex { file: FileNumber(10), offset: 0x40, size: 6, compression: 0 };
    let mut bytes = Vec::new();
    index.encode(&mut bytes);
    assert_eq!(bytes, [1, 0x0a, 0x40, 6, 0]);
    assert_eq!(BlobIndex::decode(&bytes).unwrap(), index);
    assert_eq!(index.record_bytes(2), 40);
}

#[test]
fn an_index_that_is_short_long_or_strange_is_refused() {
    let mut bytes = Vec::new();
    BlobIndex { file: FileNumber(300), offset: 1 << 40, size: u64::MAX, compression: 7 }
        .encode(&mut bytes);
    for length in 0..bytes.len() {
        assert!(BlobIndex::decode(&bytes[..length]).unwrap_err().is_corruption(), "{length}");
    }
    bytes.push(0);
    assert!(BlobIndex::decode(&bytes).is_err());
    for kind in [0, 2, 3, 0xff] {
        assert!(BlobIndex::decode(&[kind, 10, 64, 6, 0]).is_err(), "{kind}");
    }
}

#[test]
fn every_flipped_byte_of_header_or_footer_is_noticed() {
    let footer = BlobFileFooter { count: 77 }.encode();
    let record = RecordHeader::new(b"key", b"value").encode();
    for (at, bit) in (0..FOOTER_SIZE).flat_map(|at| (0..8).map(move |bit| (at, 1u8 << bit))) {
        let mut broken = footer.clone();
        broken[at] ^= bit;
        assert!(BlobFileFooter::decode(&broken).is_err(), "footer byte {at}");
        let mut broken = record;
        broken[at] ^= bit;
        let noticed =
            RecordHeader::decode(&broken).and_then(|header| header.check_blob(b"keyvalue"));
        assert!(noticed.is_err(), "record byte {at}");
    }
}
