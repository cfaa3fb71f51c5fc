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

/// Who knows a codec as zstd was told to write kZSTD.
#[test]
fn a_choice_is_read_by_its_short_name() {
    let compression = |text: &str| {
        let mut value = CompressionType::Bzip2;
        value.assign(text).map(|()| value).map_err(|error| error.message().to_string())
    };
    for (text, value) in [
        ("zstd", CompressionType::Zstd),
        ("ZSTD", CompressionType::Zstd),
        ("lz4hc", CompressionType::Lz4hc),
        ("snappy", CompressionType::Snappy),
        ("none", CompressionType::None),
        ("kLZ4Compression", CompressionType::Lz4),
    ] {
        assert_eq!(compression(text), Ok(value), "{text}");
    }
    for (text, meant) in [("zst", "kZSTD"), ("kSnapy", "kSnappyCompression")] {
        let message = compression(text).unwrap_err();
        assert!(message.ends_with(&format!("did you mean '{meant}'?")), "{message}");
    }
    assert!(!compression("brotli").unwrap_err().contains("mean"));
    assert!(compression("").is_err() && compression("k").is_err());

    let mut style = CompactionStyle::None;
    style.assign("universal").unwrap();
    assert_eq!(style, CompactionStyle::Universal);
    let mut recovery = RecoveryMode::AbsoluteConsistency;
    recovery.assign("point_in_time_recovery").unwrap();
    assert_eq!(recovery, RecoveryMode::PointInTimeRecovery);
    let mut checksum = ChecksumType::None;
    checksum.assign("xxh3").unwrap();
    assert_eq!(checksum, ChecksumType::Xxh3);
    let mut index = IndexType::HashSearch;
    index.assign("binary").unwrap();
    assert_eq!(index, IndexType::BinarySearch);
}

/// Two values with one short name would take each other's place.
#[test]
fn short_names_are_unambiguous() {
    fn check<T: NamedChoice + std::fmt::Debug>() {
        for (name, value) in T::NAMES {
            let short = crate::options::value::short::<T>(name);
            let mut read = T::NAMES[0].1;
            read.assign(&short).unwrap();
            assert_eq!(read, *value, "{short} for {name}");
        }
    }
    check::<CompressionType>();
    check::<ChecksumType>();
    check::<IndexType>();
    check::<DataBlockIndexType>();
    check::<PrepopulateBlockCache>();
    check::<PrepopulateBlobCache>();
    check::<IndexShortening>();
    check::<RecoveryMode>();
    check::<WalCompression>();
    check::<WalWriteMode>();
    check::<PolicyKind>();
    check::<BlobWriteMode>();
    check::<CompactionStyle>();
    check::<CompactionPri>();
    check::<CompactionStopStyle>();
}
