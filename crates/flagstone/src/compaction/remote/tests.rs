use std::path::PathBuf;

use super::{
    CompactionOrder, CompactionResult, OrderedFile, OrderedLevel, OrderedPlan, SummedOutput,
};
use crate::base::compression::CompressionType;
use crate::base::{
    Code, ColumnFamilyId, FileNumber, InternalKeyBuf, Result, Temperature, ValueType,
};
use crate::compaction::JobCounts;
use crate::compaction::pick::{CompactionReason, OutputCompression, OutputSizes};
use crate::manifest::{BlobFileAddition, BlobFileGarbage, FileMetadata, VersionEdit};

fn order() -> CompactionOrder {
    CompactionOrder {
        token: *b"sixteen bytes ok",
        db_id: "a database".to_string(),
        family: ColumnFamilyId(3),
        family_name: "photos".to_string(),
        manifest: (FileNumber(7), 1234),
        first_number: FileNumber(100),
        numbers: 50,
        options: "[Version]\n".to_string(),
        plan: OrderedPlan {
            reason: CompactionReason::BlobGarbage,
            inputs: vec![
                OrderedLevel {
                    level: 0,
                    files: vec![OrderedFile { number: FileNumber(9), size: 1 << 33 }],
                },
                OrderedLevel { level: 4, files: Vec::new() },
            ],
            output_level: 4,
            path_id: 1,
            bottommost: true,
            emptied: vec![FileNumber(5), FileNumber(6)],
            grandparents: vec![FileNumber(8)],
            sizes: OutputSizes { target: 1, max: 2, max_with_grandparents: u64::MAX },
            compression: OutputCompression { codec: CompressionType::Zstd, is_bottommost: true },
            temperature: Temperature::UNKNOWN,
        },
        snapshots: vec![3, 4, 4000],
        flushed_until: 5000,
        is_manual: true,
        blob_gc: (Some(false), Some(0.25)),
        max_subcompactions: Some(4),
    }
}

fn result() -> CompactionResult {
    let bound = |key: &[u8]| InternalKeyBuf::new(key, 5, ValueType::Value);
    let table = FileMetadata {
        number: FileNumber(100),
        size: 77,
        smallest: bound(b"a"),
        largest: bound(b"z"),
        ..FileMetadata::default()
    };
    let garbage = BlobFileGarbage { number: FileNumber(5), count: 2, bytes: 99 };
    CompactionResult {
        token: *b"sixteen bytes ok",
        directory: PathBuf::from("/somewhere else"),
        changes: VersionEdit {
            new_files: vec![(4, table)],
            blob_file_additions: vec![BlobFileAddition {
                number: FileNumber(101),
                total_count: 3,
                total_bytes: 300,
                ..BlobFileAddition::default()
            }],
            blob_file_garbages: vec![garbage],
            ..VersionEdit::default()
        },
        files: vec![SummedOutput { number: FileNumber(100), size: 77, sum: u64::MAX - 1 }],
        is_filtered: true,
        key_faults: vec![(b"key".to_vec(), "it is faulty".to_string())],
        counts: JobCounts { raw_bytes: 1, micros: u64::MAX, ..JobCounts::default() },
    }
}

#[test]
fn messages_come_back_as_they_were() {
    assert_eq!(CompactionOrder::decode(&order().encode()).unwrap(), order());
    let bare = CompactionOrder {
        snapshots: Vec::new(),
        blob_gc: (None, None),
        max_subcompactions: None,
        ..order()
    };
    assert_eq!(CompactionOrder::decode(&bare.encode()).unwrap(), bare);
    assert_eq!(CompactionResult::decode(&result().encode()).unwrap(), result());
    let nothing = CompactionResult::default();
    assert_eq!(CompactionResult::decode(&nothing.encode()).unwrap(), nothing);
}

/// Whatever is wrong, it is an error.
fn are_refused<T: std::fmt::Debug>(message: &[u8], decode: impl Fn(&[u8]) -> Result<T>) {
    for cut in 0..message.len() {
        assert_eq!(decode(&message[..cut]).unwrap_err().code(), Code::Corruption, "{cut}");
    }
    for at in 0..message.len() {
        let mut flipped = message.to_vec();
        flipped[at] ^= 0x10;
        assert_eq!(decode(&flipped).unwrap_err().code(), Code::Corruption, "{at}");
    }
    // A checksum that is right does not make the rest so.
    for (at, byte) in (8..message.len() - 4).flat_map(|at| [(at, 0), (at, 1), (at, 0xff)]) {
        let mut changed = message[..message.len() - 4].to_vec();
        changed[at] = byte;
        let _ = decode(&super::format::end(changed));
    }
    let mut newer = message[..message.len() - 4].to_vec();
    newer[8] = 2;
    let refused = decode(&super::format::end(newer)).unwrap_err();
    assert_eq!(refused.code(), Code::NotSupported);
    let longer = [&message[..message.len() - 4], b"more"].concat();
    assert_eq!(decode(&super::format::end(longer)).unwrap_err().code(), Code::Corruption);
}

/// A snapshot that came twice made a worker panic.
#[test]
fn snapshots_that_do_not_ascend_are_refused() {
    for snapshots in [vec![3, 3], vec![0, 0], vec![1 << 56]] {
        let message = CompactionOrder { snapshots, ..order() }.encode();
        assert_eq!(CompactionOrder::decode(&message).unwrap_err().code(), Code::Corruption);
    }
    let first = CompactionOrder { snapshots: vec![0, (1 << 56) - 1], ..order() };
    assert_eq!(CompactionOrder::decode(&first.encode()).unwrap(), first);
}

#[test]
fn malformed_messages_are_refused() {
    are_refused(&order().encode(), CompactionOrder::decode);
    are_refused(&result().encode(), CompactionResult::decode);
    assert!(CompactionOrder::decode(&result().encode()).is_err(), "one is not the other");
}
