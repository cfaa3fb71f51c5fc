use std::path::Path;

use super::*;
use crate::base::compression::CompressionType;
use crate::base::{ColumnFamilyId, DataPaths};
use crate::blob::BlobFileSummary;
use crate::env::{Env, IoMode};
use crate::manifest::{BlobFileClaim, ObsoleteFiles};

fn blob_file() -> Arc<DirectFile> {
    let fs = Env::memory().fs;
    fs.create_directory(Path::new("/db")).unwrap();
    let file = fs.create_writable(Path::new("/db/000007.blob"), IoMode::Buffered).unwrap();
    let summary = BlobFileSummary { number: FileNumber(7), count: 1, total_bytes: 100 };
    let claim = BlobFileClaim::new(
        summary.number,
        &DataPaths::default(),
        &Arc::new(ObsoleteFiles::default()),
    );
    Arc::new(DirectFile::whole(file, CompressionType::None, summary, false, claim))
}

/// Went wrong: a blob file that a writer appended to during its sync counted as synced. A power
/// loss then took a value whose record in the WAL was durable.
#[test]
fn a_file_that_grows_during_its_sync_is_synced_again() {
    let blobs = BlobsOfBatch::Whole([(ColumnFamilyId::DEFAULT, blob_file())].into_iter().collect());
    let mut unsynced = UnsyncedBlobs::default();
    unsynced.note(&blobs, FileNumber(3), 5);
    let first = unsynced.all(5);
    unsynced.note(&blobs, FileNumber(3), 6);
    unsynced.synced(&first);
    let second = unsynced.all(6);
    assert_eq!(second.files.len(), 1);
    unsynced.synced(&second);
    assert!(unsynced.all(6).files.is_empty());
}
