use std::path::Path;
use std::sync::Arc;

use crate::env::os::OsFileSystem;
use crate::env::{FileSystem, IoMode, RandomAccessFile};

fn open(path: &Path) -> Arc<dyn RandomAccessFile> {
    OsFileSystem.open_random_access(path, IoMode::Buffered).unwrap()
}

#[test]
fn a_file_is_changed_in_place_only_while_no_reader_holds_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000007.blob");
    drop(OsFileSystem.create_writable(&path, IoMode::Buffered).unwrap());
    let writer = OsFileSystem.open_reclaimable(&path).unwrap();
    let readers = [open(&path), open(&path)];
    assert!(readers.iter().all(|reader| reader.share().unwrap()));
    assert!(!writer.claim().unwrap());
    // A record lock would be gone with any descriptor of the file.
    drop(open(&path));
    let [first, second] = readers;
    drop(first);
    assert!(!writer.claim().unwrap());
    drop(second);
    assert!(writer.claim().unwrap());
    let late = open(&path);
    assert!(!late.share().unwrap());
    drop(writer);
    assert!(late.share().unwrap());
}
