use super::*;

#[test]
fn a_wrong_choice_is_told_the_right_ones() {
    let mut checksum = ChecksumType::None;
    let reason = checksum.assign("kCRC").unwrap_err().to_string();
    assert!(reason.contains("kCRC32c") && reason.contains("'kCRC'"), "{reason}");
}

/// A wrong name was answered with codecs that a WAL cannot have, and each of these with another
/// error.
#[test]
fn a_wrong_compression_of_wals_is_told_those_that_there_are() {
    for wrong in ["kLZ4", "lz4", "kLZ4Compression", "kZSTDNotFinalCompression"] {
        let reason = WalCompression::None.assign(wrong).unwrap_err();
        assert_eq!(
            reason.message(),
            format!("expected one of kNoCompression, kZSTD, found '{wrong}'")
        );
    }
}

#[test]
fn disabled_compression_means_none_of_its_own() {
    let mut bottommost = Some(CompressionType::Lz4);
    bottommost.assign("kDisableCompressionOption").unwrap();
    assert_eq!((bottommost, bottommost.text().as_str()), (None, "kDisableCompressionOption"));
}

/// `blob_compression_type` was the only one of the three options of blob files that depend on
/// others that did not take it.
#[test]
fn a_compression_may_be_left_to_other_settings() {
    let mut of_blobs = Some(CompressionType::Lz4);
    of_blobs.assign("auto").unwrap();
    assert_eq!(of_blobs, None);
}
