use super::super::metadata::{BlobReferences, EntryStats};
use super::*;
use crate::base::{Temperature, UniqueId, ValueType};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap())
        .collect()
}

fn encoded(edit: &VersionEdit) -> Vec<u8> {
    let mut out = Vec::new();
    edit.encode(&mut out);
    out
}

fn key(user_key: &str, sequence: u64) -> InternalKeyBuf {
    InternalKeyBuf::new(user_key.as_bytes(), sequence, ValueType::Value)
}

/// The flush that the specification takes apart byte by byte.
const FLUSH: &str = "02 08  09 00  03 0a  04 01  67  00 09 f1 09  09 61 01 01 00 00 00 00 00 00 \
     09 61 01 01 00 00 00 00 00 00  01 01  05 05 b3 f0 84 d8 06  06 05 b3 f0 84 d8 06  0d 01 01 \
     0c 10 d8 a1 97 d9 fd b5 1c 9a 05 ab c3 6b a6 58 17 ab  0f 02 d7 09  01";

fn flush() -> VersionEdit {
    let mut edit = VersionEdit {
        log_number: Some(FileNumber(8)),
        prev_log_number: Some(FileNumber(0)),
        next_file_number: Some(FileNumber(10)),
        last_sequence: Some(1),
        ..VersionEdit::default()
    };
    let file = FileMetadata {
        number: FileNumber(9),
        size: 1265,
        smallest: key("a", 1),
        largest: key("a", 1),
        smallest_seqno: 1,
        largest_seqno: 1,
        oldest_ancestor_time: 1_795_242_035,
        file_creation_time: 1_795_242_035,
        epoch_number: 1,
        unique_id: Some(UniqueId(bytes("d8a197d9fdb51c9a05abc36ba65817ab").try_into().unwrap())),
        tail_size: 1239,
        ..FileMetadata::default()
    };
    edit.add_file(0, file);
    edit
}

/// An edit with every field that there is.
fn full() -> VersionEdit {
    let mut edit = VersionEdit {
        family: ColumnFamilyId(3),
        db_id: Some("4b6f0a3e-0000-4000-8000-000000000000".to_string()),
        comparator: Some("leveldb.BytewiseComparator".to_string()),
        log_number: Some(FileNumber(300)),
        prev_log_number: Some(FileNumber(0)),
        next_file_number: Some(FileNumber(1 << 40)),
        last_sequence: Some((1 << 56) - 1),
        min_log_number_to_keep: Some(FileNumber(7)),
        max_column_family: Some(ColumnFamilyId(u32::MAX)),
        compact_cursors: vec![CompactCursor { level: 2, key: key("cursor", 5) }],
        wal_additions: vec![
            WalAddition { number: FileNumber(4), synced_size: None },
            WalAddition { number: FileNumber(4), synced_size: Some(1 << 33) },
        ],
        wal_deletion: Some(FileNumber(4)),
        family_added: Some("users".to_string()),
        family_dropped: true,
        atomic_group_remaining: Some(2),
        full_history_ts_low: Some(vec![0xff; 8]),
        persist_user_timestamps: Some(false),
        ..VersionEdit::default()
    };
    edit.delete_file(6, FileNumber((1 << 62) - 1));
    edit.blob_file_additions.push(BlobFileAddition {
        number: FileNumber(10),
        total_count: 5,
        total_bytes: 1 << 34,
        checksum_method: "crc32c".to_string(),
        checksum_value: vec![1, 2, 3, 4],
    });
    edit.blob_file_garbages.push(BlobFileGarbage { number: FileNumber(10), count: 1, bytes: 99 });
    edit.add_file(
        1,
        FileMetadata {
            path_id: 3,
            marked_for_compaction: true,
            oldest_blob_file: Some(FileNumber(10)),
            blob_references: BlobReferences::new(
                3,
                vec![(FileNumber(10), 1000), (FileNumber(12), 1)],
            ),
            file_checksum: vec![9; 4],
            file_checksum_function: "FileChecksumCrc32c".to_string(),
            temperature: Temperature::COLD,
            min_timestamp: vec![1; 8],
            max_timestamp: vec![2; 8],
            compensated_range_deletion_size: 77,
            entry_stats: Some(EntryStats {
                entries: 9,
                deletions: 4,
                range_deletions: 1,
                value_bytes: 300,
            }),
            user_timestamps_persisted: false,
            ..flush().new_files[0].1.clone()
        },
    );
    edit
}

#[test]
fn the_flush_of_the_specification() {
    assert_eq!(encoded(&flush()), bytes(FLUSH));
    assert_eq!(VersionEdit::decode(&bytes(FLUSH)).unwrap(), flush());
}

#[test]
fn the_first_records_of_a_manifest_of_rocksdb_11() {
    let edit = VersionEdit::decode(&bytes(
        "01 1a 6c6576656c64622e4279746577697365436f6d70617261746f72 89 40 01 01",
    ))
    .unwrap();
    assert_eq!(edit.comparator.as_deref(), Some("leveldb.BytewiseComparator"));
    assert_eq!(edit.persist_user_timestamps, Some(true));
    assert_eq!(VersionEdit::decode(&[]).unwrap(), VersionEdit::default());
    let size_of_last_manifest = bytes("8b 40 01 76");
    assert_eq!(VersionEdit::decode(&size_of_last_manifest).unwrap(), VersionEdit::default());
}

#[test]
fn every_field_comes_back() {
    assert_eq!(VersionEdit::decode(&encoded(&full())).unwrap(), full());
}

#[test]
fn the_older_forms_of_a_new_file_are_read() {
    let bounds = "09 61 01 05 00 00 00 00 00 00  09 62 01 03 00 00 00 00 00 00";
    for (head, tail, path_id, seqnos) in [
        ("07 01 09 64", "", 0, (0, 0)),
        ("64 01 09 64", "02 09", 0, (2, 9)),
        ("66 01 09 02 64", "02 09", 2, (2, 9)),
    ] {
        let edit = VersionEdit::decode(&bytes(&format!("{head} {bounds} {tail}"))).unwrap();
        let (level, file) = &edit.new_files[0];
        assert_eq!(
            (*level, file.number, file.size, file.path_id),
            (1, FileNumber(9), 100, path_id)
        );
        assert_eq!((file.smallest_seqno, file.largest_seqno), seqnos);
        assert_eq!((&file.smallest, &file.largest), (&key("a", 5), &key("b", 3)));
    }
}

#[test]
fn unknown_fields_are_skipped_only_where_they_may_be() {
    let decode = |hex: &str| VersionEdit::decode(&bytes(hex));
    assert_eq!(decode("ff 40 03 616263 04 07").unwrap().last_sequence, Some(7), "bit 13 is set");
    assert!(decode("0b 03 616263").unwrap_err().message().contains("unknown tag 11"));
    assert!(decode("08 03 616263").is_err(), "tag 8 is dead");
    let file = &FLUSH[..FLUSH.len() - 2];
    assert_eq!(decode(&format!("{file} 3f 02 ffff 01")).unwrap(), flush());
    assert!(
        decode(&format!("{file} 7f 02 ffff 01"))
            .unwrap_err()
            .message()
            .contains("custom field 127")
    );
    assert!(
        decode("90 03 0a 05 64 00 00 01 02 ffff 00").is_ok(),
        "an ignorable field of a blob file"
    );
    assert!(decode("90 03 0a 05 64 00 00 41 02 ffff 00").is_err());
}

#[test]
fn impossible_numbers_are_refused() {
    for hex in [
        "06 80808001 05",
        "04 ffffffffffffffffff01",
        "06 00 ffffffffffffffffff01",
        "02 ff",
        "05 00 02 6161",
    ] {
        assert!(VersionEdit::decode(&bytes(hex)).unwrap_err().is_corruption(), "{hex}");
    }
}

#[test]
fn damaged_edits_are_errors_or_other_edits() {
    let good = encoded(&full());
    for length in 0..good.len() {
        let _ = VersionEdit::decode(&good[..length]);
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[length] ^= 1 << bit;
            let _ = VersionEdit::decode(&bad);
        }
    }
}

#[test]
fn people_can_read_it() {
    let text = full().to_string();
    for part in [
        "family 3",
        "comparator: leveldb",
        "level 6, 4611686018427387903.sst",
        "a@1:Value",
        "10.blob",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(VersionEdit::default().to_string(), "edit of column family 0");
}
