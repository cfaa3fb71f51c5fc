use std::path::Path;

use super::*;
use crate::base::{InternalKeyBuf, MAX_SEQUENCE_NUMBER, Temperature, ValueType};
use crate::env::memory::MemoryFileSystem;
use crate::env::{FileSystem, IoMode};
use crate::sst::{TableBuilder, TableBuilderSettings, TableReadSettings};

fn table(number: u64, queue: &Arc<ObsoleteFiles>) -> TableFile {
    let meta = FileMetadata { number: FileNumber(number), ..FileMetadata::default() };
    TableFile::new(meta, &DataPaths::default(), queue.clone())
}

/// An open table of so many range deletions, from `d000` on, and of one key if asked for.
fn deletions(count: u64, has_key: bool) -> Arc<Table> {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/t")).unwrap();
    let file = fs.create_writable(Path::new("/t/000007.sst"), IoMode::Buffered).unwrap();
    let mut builder = TableBuilder::new(file.clone(), TableBuilderSettings::default()).unwrap();
    if has_key {
        let key = InternalKeyBuf::new(b"d0005", 7, ValueType::Value);
        builder.add(key.as_key(), b"value").unwrap();
    }
    for at in 0..count {
        builder.add_range_tombstone(
            format!("d{at:03}").as_bytes(),
            format!("d{at:03}x").as_bytes(),
            9,
        );
    }
    let summary = builder.finish().unwrap();
    Table::open(file, summary.size, TableReadSettings::default()).unwrap()
}

/// Lookups of keys beyond the bounds do not come to a file: what it deletes there must not count.
#[test]
fn only_many_deletions_within_the_bounds_stand_for_the_whole_table() {
    let queue = Arc::new(ObsoleteFiles::default());
    let is_only = |count, has_key, smallest: &str, largest: &str| {
        let meta = FileMetadata {
            smallest: InternalKeyBuf::new(smallest.as_bytes(), 9, ValueType::RangeDeletion),
            largest: InternalKeyBuf::new(
                largest.as_bytes(),
                MAX_SEQUENCE_NUMBER,
                ValueType::RangeDeletion,
            ),
            ..FileMetadata::default()
        };
        let file = TableFile::new(meta, &DataPaths::default(), queue.clone());
        assert!(file.deletions_only().is_none(), "nobody has opened it");
        file.opened(deletions(count, has_key));
        file.deletions_only().is_some()
    };
    assert!(is_only(100, false, "d000", "d099x"));
    assert!(is_only(100, false, "a", "z"));
    assert!(!is_only(100, false, "d000x", "d099x"), "the first begins before the bounds");
    assert!(!is_only(100, false, "d000", "d099"), "the last ends behind them");
    assert!(!is_only(100, true, "d000", "d099x"), "there is a key");
    assert!(!is_only(10, false, "d000", "d009x"), "they are few");
}

#[test]
fn a_file_is_queued_when_its_last_user_lets_go() {
    let queue = Arc::new(ObsoleteFiles::default());
    let (old_version, iterator) = {
        let file = Arc::new(table(7, &queue));
        (file.clone(), file)
    };
    old_version.mark_obsolete();
    drop(old_version);
    assert!(queue.is_empty(), "an iterator still reads it");
    drop(iterator);
    assert_eq!(
        queue.take(usize::MAX),
        [ObsoleteFile::table(&DataPaths::default(), FileNumber(7), 0)]
    );
}

#[test]
fn a_file_that_was_not_removed_stays() {
    let queue = Arc::new(ObsoleteFiles::default());
    drop(table(7, &queue));
    drop(BlobFile::new(BlobFileAddition::default(), &DataPaths::default(), queue.clone()));
    assert!(queue.is_empty(), "closing the database removes nothing");
}

#[test]
fn a_blob_file_that_was_claimed_before_it_was_added_stays_for_both() {
    let queue = Arc::new(ObsoleteFiles::default());
    let paths = DataPaths::default();
    let addition = || BlobFileAddition { number: FileNumber(7), ..BlobFileAddition::default() };
    for memtable_goes_first in [true, false] {
        let claim = BlobFileClaim::new(FileNumber(7), &paths, &queue);
        // An edit that was not made durable, and one that was.
        drop(BlobFile::new(addition(), &paths, queue.clone()));
        let added = BlobFile::new(addition(), &paths, queue.clone());
        added.mark_obsolete();
        if memtable_goes_first {
            drop(claim);
            assert!(queue.is_empty(), "a version reads it");
            drop(added);
        } else {
            drop(added);
            assert!(queue.is_empty(), "a memtable reads it");
            drop(claim);
        }
        assert_eq!(queue.take(usize::MAX), [ObsoleteFile::blob(&paths, FileNumber(7))]);
    }
    BlobFileClaim::new(FileNumber(8), &paths, &queue).give_up();
    assert_eq!(queue.take(usize::MAX), [ObsoleteFile::blob(&paths, FileNumber(8))]);
    drop(BlobFileClaim::new(FileNumber(9), &paths, &queue));
    assert!(queue.is_empty(), "closing the database removes nothing");
}

#[test]
fn a_table_with_new_facts_is_still_the_same_file() {
    let queue = Arc::new(ObsoleteFiles::default());
    let old = table(7, &queue);
    let new = old.with_meta(FileMetadata { temperature: Temperature::HOT, ..old.meta.clone() });
    new.mark_obsolete();
    drop(new);
    assert!(queue.is_empty(), "an old version still reads it");
    drop(old);
    assert_eq!(queue.take(usize::MAX).len(), 1);
}
