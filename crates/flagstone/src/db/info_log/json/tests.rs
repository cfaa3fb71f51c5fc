use std::path::PathBuf;

use super::{Fields, blob_file_created, recovery_started, table_created};
use crate::base::{Code, ColumnFamilyId, Error, FileChecksum, FileNumber, TableFileCreationReason};
use crate::options::FileCreationInfo;

fn file() -> FileCreationInfo {
    FileCreationInfo {
        family: ColumnFamilyId(0),
        family_name: "a \"quoted\\ name\n".to_string(),
        job: 7,
        reason: TableFileCreationReason::Flush,
        number: FileNumber(12),
        path: PathBuf::from("/db/000012.sst"),
        size: 345,
        count: 6,
        properties: None,
        seqnos: (1, 9),
        oldest_blob_file: Some(FileNumber(5)),
        checksum: Some(FileChecksum { function: "Sum".to_string(), value: vec![0xab, 1] }),
        outcome: Ok(()),
    }
}

#[test]
fn lines_are_objects_with_rocksdb_s_names() {
    assert_eq!(
        recovery_started(17, 1, [3, 4].into_iter()),
        "EVENT_LOG_v1 {\"time_micros\": 17, \"job\": 1, \"event\": \"recovery_started\", \"wal_files\": [3, 4]}"
    );
    assert_eq!(
        table_created(17, &file()),
        "EVENT_LOG_v1 {\"time_micros\": 17, \"cf_name\": \"a \\\"quoted\\\\ name\\u000a\", \"job\": 7, \"event\": \
         \"table_file_creation\", \"file_number\": 12, \"file_size\": 345, \"file_checksum\": \"AB01\", \
         \"file_checksum_func_name\": \"Sum\", \"smallest_seqno\": 1, \"largest_seqno\": 9, \
         \"oldest_blob_file_number\": 5, \"status\": \"OK\"}"
    );
    let failed = FileCreationInfo {
        checksum: None,
        outcome: Err(Error::new(Code::Aborted, "why")),
        ..file()
    };
    let line = blob_file_created(1, &failed);
    assert!(line.contains("\"file_checksum\": \"\", \"file_checksum_func_name\": \"Unknown\""));
    assert!(line.ends_with("\"status\": \"aborted: why\"}"), "{line}");
    let empty = Fields::at(1).object("o", |fields| fields).numbers("n", std::iter::empty()).end();
    assert_eq!(empty, "EVENT_LOG_v1 {\"time_micros\": 1, \"o\": {}, \"n\": []}");
}
