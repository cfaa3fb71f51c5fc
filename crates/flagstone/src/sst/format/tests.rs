use super::*;

fn handle(offset: u64, size: u64) -> BlockHandle {
    BlockHandle { offset, size }
}

#[test]
fn golden_footer_of_version_5() {
    let footer = Footer {
        checksum: ChecksumType::Crc32c,
        format_version: 5,
        metaindex: handle(0x52b, 0x6a),
        index: Some(handle(0x8f, 0x0d)),
        base_context_checksum: 0,
    };
    let mut out = Vec::new();
    footer.encode(1434, &mut out);
    let mut expected = vec![0x01, 0xab, 0x0a, 0x6a, 0x8f, 0x01, 0x0d];
    expected.resize(41, 0);
    expected.extend([5, 0, 0, 0, 0xf7, 0xcf, 0xf4, 0x85, 0xb7, 0x41, 0xe2, 0x88]);
    assert_eq!(out, expected);
    assert_eq!(Footer::decode(&out, 1487).unwrap(), footer);
}

#[test]
fn golden_footer_of_version_7() {
    let footer = Footer {
        checksum: ChecksumType::Xxh3,
        format_version: 7,
        metaindex: handle(1312, 129),
        index: None,
        base_context_checksum: 0x7c07_5d8e,
    };
    let mut out = Vec::new();
    footer.encode(1446, &mut out);
    let mut expected = vec![0x04, 0x3e, 0x00, 0x7a, 0x00, 0xbf, 0xdd, 0x35, 0x12];
    expected.extend([0x8e, 0x5d, 0x07, 0x7c, 0x81, 0, 0, 0]);
    expected.resize(41, 0);
    expected.extend([7, 0, 0, 0, 0xf7, 0xcf, 0xf4, 0x85, 0xb7, 0x41, 0xe2, 0x88]);
    assert_eq!(out, expected);
    assert_eq!(Footer::decode(&out, 1446 + 53).unwrap(), footer);
    for at in 0..out.len() {
        let mut flipped = out.clone();
        flipped[at] ^= 0x10;
        assert!(Footer::decode(&flipped, 1446 + 53).is_err(), "byte {at}");
    }
}

#[test]
fn of_what_later_versions_may_add_only_features_are_refused() {
    let metaindex = handle(1312, 129);
    let footer = Footer {
        checksum: ChecksumType::Xxh3,
        format_version: 6,
        metaindex,
        index: None,
        base_context_checksum: 7,
    };
    let mut out = Vec::new();
    footer.encode(1446, &mut out);
    let changed = |at: usize| {
        let mut out = out.clone();
        out[at] = 1;
        out[FOOTER_CHECKSUM_AT..][..4].fill(0);
        let checksum = footer.own_checksum(&out, 1446).to_le_bytes();
        out[FOOTER_CHECKSUM_AT..][..4].copy_from_slice(&checksum);
        Footer::decode(&out, 1446 + 53)
    };
    assert_eq!(changed(17).unwrap(), footer);
    assert_eq!(changed(FEATURES_AT - 1).unwrap(), footer);
    for at in [FEATURES_AT, VERSION_AT - 1] {
        let error = changed(at).unwrap_err();
        assert_eq!(error.code(), crate::base::Code::NotSupported, "{error}");
    }
    let refused = |at: usize, value: u8| {
        let mut out = out.clone();
        out[at] = value;
        Footer::decode(&out, 1446 + 53).unwrap_err().to_string()
    };
    assert!(refused(VERSION_AT, 8).contains("format version 8; 1 to 7 are known"));
    assert!(refused(0, 99).contains("checksum type 99"));
}

#[test]
fn what_is_no_footer_is_refused() {
    assert!(Footer::decode(b"", 0).is_err());
    assert!(Footer::decode(&[0; 53], 53).is_err());
    let mut out = vec![0; 45];
    out.extend(MAGIC.to_le_bytes());
    assert!(Footer::decode(&out, 53).unwrap_err().to_string().contains("version 0"));
    assert!(Footer::decode(&out[1..], 52).is_err());
    out[45..].copy_from_slice(&PLAIN_MAGICS[0].to_le_bytes());
    assert_eq!(Footer::decode(&out, 53).unwrap_err().code(), crate::base::Code::NotSupported);
}

#[test]
fn a_version_0_footer_is_read() {
    let mut out = Vec::new();
    handle(100, 20).encode(&mut out);
    handle(50, 45).encode(&mut out);
    out.resize(40, 0);
    out.extend(LEGACY_MAGIC.to_le_bytes());
    let footer = Footer::decode(&out, 173).unwrap();
    assert_eq!((footer.metaindex, footer.index), (handle(100, 20), Some(handle(50, 45))));
    assert_eq!((footer.format_version, footer.checksum), (0, ChecksumType::Crc32c));
}
