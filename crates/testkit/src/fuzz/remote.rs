//! What a database and a worker of its compaction service tell each other.

use std::path::PathBuf;

use flagstone::base::compression::CompressionType;
use flagstone::base::{ColumnFamilyId, FileNumber, InternalKeyBuf, Temperature, ValueType};
use flagstone::compaction::JobCounts;
use flagstone::compaction::pick::{CompactionReason, OutputCompression, OutputSizes};
use flagstone::compaction::remote::{
    CompactionOrder, CompactionResult, OrderedFile, OrderedLevel, OrderedPlan, SummedOutput,
};
use flagstone::manifest::{BlobFileAddition, BlobFileGarbage, FileMetadata, VersionEdit};

/// Orders and results: neither target takes one for the other.
pub fn messages() -> Vec<Vec<u8>> {
    [orders(), results()].concat()
}

/// An order.
fn orders() -> Vec<Vec<u8>> {
    let file = OrderedFile { number: FileNumber(9), size: 4096 };
    let order = CompactionOrder {
        token: [1; 16],
        db_id: "database".to_string(),
        family: ColumnFamilyId(1),
        family_name: "family".to_string(),
        manifest: (FileNumber(5), 100),
        first_number: FileNumber(20),
        numbers: 100,
        options: "[Version]".to_string(),
        plan: OrderedPlan {
            reason: CompactionReason::Level0Files,
            inputs: vec![OrderedLevel { level: 0, files: vec![file, file] }],
            output_level: 1,
            path_id: 0,
            bottommost: false,
            emptied: vec![FileNumber(3)],
            grandparents: vec![FileNumber(4)],
            sizes: OutputSizes::UNLIMITED,
            compression: OutputCompression { codec: CompressionType::Lz4, is_bottommost: false },
            temperature: Temperature::UNKNOWN,
        },
        snapshots: vec![7, 8],
        flushed_until: 9,
        is_manual: true,
        blob_gc: (Some(true), Some(0.5)),
        max_subcompactions: Some(2),
    };
    vec![order.encode()]
}

/// Results.
fn results() -> Vec<Vec<u8>> {
    let bound = |key: &[u8]| InternalKeyBuf::new(key, 1, ValueType::Value);
    let table = FileMetadata {
        number: FileNumber(20),
        size: 10,
        smallest: bound(b"a"),
        largest: bound(b"b"),
        ..FileMetadata::default()
    };
    let blob = BlobFileAddition { number: FileNumber(21), ..BlobFileAddition::default() };
    let result = CompactionResult {
        token: [1; 16],
        directory: PathBuf::from("/out"),
        changes: VersionEdit {
            new_files: vec![(1, table)],
            blob_file_additions: vec![blob],
            blob_file_garbages: vec![BlobFileGarbage { number: FileNumber(3), count: 1, bytes: 2 }],
            ..VersionEdit::default()
        },
        files: vec![SummedOutput { number: FileNumber(20), size: 10, sum: 3 }],
        is_filtered: true,
        key_faults: vec![(b"key".to_vec(), "why".to_string())],
        counts: JobCounts::default(),
    };
    vec![result.encode(), CompactionResult::default().encode()]
}

/// An order that is read is written as the same.
pub fn compaction_order(data: &[u8]) {
    if let Ok(order) = CompactionOrder::decode(data) {
        let again = CompactionOrder::decode(&order.encode()).expect("it was just written");
        assert_eq!(again.encode(), order.encode());
    }
}

/// The same of a result.
pub fn compaction_result(data: &[u8]) {
    if let Ok(result) = CompactionResult::decode(data) {
        let again = CompactionResult::decode(&result.encode()).expect("it was just written");
        assert_eq!(again.encode(), result.encode());
    }
}
