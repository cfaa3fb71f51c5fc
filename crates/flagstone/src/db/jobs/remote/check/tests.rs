use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::check;
use crate::base::{
    Comparator, DataPaths, FileNumber, InternalKeyBuf, InternalKeyComparator, ValueType,
};
use crate::compaction::pick::CompactionPlan;
use crate::compaction::remote::{CompactionOrder, CompactionResult, OrderedPlan, SummedOutput};
use crate::manifest::{
    BlobFileAddition, BlobFileGarbage, FileMetadata, ObsoleteFiles, Version, VersionBuilder,
    VersionEdit,
};

fn bound(key: &str) -> InternalKeyBuf {
    InternalKeyBuf::new(key.as_bytes(), 5, ValueType::Value)
}

fn table(number: u64, keys: (&str, &str)) -> FileMetadata {
    FileMetadata {
        number: FileNumber(number),
        size: 10,
        smallest: bound(keys.0),
        largest: bound(keys.1),
        smallest_seqno: 1,
        largest_seqno: 9,
        epoch_number: 1,
        ..FileMetadata::default()
    }
}

/// A version with a table from `b` to `y`, and a blob file.
fn version() -> Version {
    let order = InternalKeyComparator::new(Comparator::Bytewise);
    let paths = DataPaths::single(Path::new("/db"));
    let empty = Version::empty(order, paths, 7);
    let mut builder = VersionBuilder::new(&empty, Arc::new(ObsoleteFiles::default()));
    let edit = VersionEdit {
        new_files: vec![(
            2,
            FileMetadata { oldest_blob_file: Some(FileNumber(3)), ..table(2, ("b", "y")) },
        )],
        blob_file_additions: vec![BlobFileAddition {
            number: FileNumber(3),
            total_count: 4,
            total_bytes: 400,
            ..BlobFileAddition::default()
        }],
        ..VersionEdit::default()
    };
    builder.apply(&edit).unwrap();
    builder.build().unwrap()
}

/// Checks a good result after it was changed; what is wrong.
fn wrong(change: impl FnOnce(&mut CompactionResult)) -> Option<String> {
    let version = version();
    let plan = CompactionPlan { output_level: 4, ..CompactionPlan::of_all(&version).unwrap() };
    let order = CompactionOrder {
        token: [7; 16],
        db_id: String::new(),
        family: Default::default(),
        family_name: String::new(),
        manifest: (FileNumber(1), 1),
        first_number: FileNumber(10),
        numbers: 5,
        options: String::new(),
        plan: OrderedPlan::of(&plan),
        snapshots: Vec::new(),
        flushed_until: 9,
        is_manual: false,
        blob_gc: (None, None),
        max_subcompactions: None,
    };
    let file = |number, size| SummedOutput { number: FileNumber(number), size, sum: 0 };
    let mut result = CompactionResult {
        token: [7; 16],
        changes: VersionEdit {
            new_files: vec![
                (
                    4,
                    FileMetadata {
                        oldest_blob_file: Some(FileNumber(12)),
                        ..table(10, ("b", "d"))
                    },
                ),
                (4, table(11, ("e", "y"))),
            ],
            blob_file_additions: vec![BlobFileAddition {
                number: FileNumber(12),
                total_count: 1,
                total_bytes: 100,
                ..BlobFileAddition::default()
            }],
            blob_file_garbages: vec![BlobFileGarbage {
                number: FileNumber(3),
                count: 4,
                bytes: 400,
            }],
            ..VersionEdit::default()
        },
        files: vec![file(10, 10), file(11, 10), file(12, 150)],
        ..CompactionResult::default()
    };
    change(&mut result);
    let checked = check(&order, &plan, &version, &result).map(|sums: BTreeMap<_, _>| sums.len());
    checked.err().map(|error| error.message().to_string())
}

#[test]
fn a_good_result_passes() {
    assert_eq!(wrong(|_| {}), None);
    assert_eq!(
        wrong(|result| {
            *result = CompactionResult { token: [7; 16], ..CompactionResult::default() };
        }),
        None,
        "all was deleted"
    );
}

#[test]
fn what_cannot_be_is_refused() {
    type Change = fn(&mut CompactionResult);
    let cases: [(&str, Change); 19] = [
        ("another order", |result| result.token = [8; 16]),
        ("more than files", |result| result.changes.log_number = Some(FileNumber(3))),
        ("more than files", |result| result.changes.delete_file(2, FileNumber(2))),
        ("file 000015", |result| result.changes.new_files[0].1.number = FileNumber(15)),
        ("file 000011", |result| result.changes.new_files[0].1.number = FileNumber(11)),
        ("file 000010", |result| result.files[0].size = 11),
        ("no table and no blob file", |result| {
            result.files.push(SummedOutput { number: FileNumber(13), size: 1, sum: 0 });
        }),
        ("no table and no blob file", |result| result.files.push(result.files[0])),
        ("another level", |result| result.changes.new_files[1].0 = 3),
        ("another level", |result| result.changes.new_files[1].1.path_id = 1),
        ("beyond those of the inputs", |result| {
            result.changes.new_files[0].1.smallest = bound("a");
        }),
        ("beyond those of the inputs", |result| {
            result.changes.new_files[1].1.largest = bound("z");
        }),
        ("bounds that cannot be", |result| result.changes.new_files[1].1.largest = bound("d")),
        ("overlap", |result| result.changes.new_files[0].1.largest = bound("f")),
        ("sequence numbers", |result| result.changes.new_files[0].1.largest_seqno = 10),
        ("place in history", |result| result.changes.new_files[0].1.epoch_number = 1 << 62),
        ("place in history", |result| result.changes.new_files[1].1.epoch_number = 0),
        ("blob file 000004, which does not exist", |result| {
            result.changes.new_files[0].1.oldest_blob_file = Some(FileNumber(4));
        }),
        ("more garbage", |result| result.changes.blob_file_garbages[0].count = 5),
    ];
    for (said, change) in cases {
        let found = wrong(change).unwrap_or_else(|| panic!("'{said}' is not noticed"));
        assert!(found.contains(said), "{found}, not {said}");
    }
}
