use std::path::Path;
use std::sync::Arc;

use crate::env::os::OsFileSystem;
use crate::env::{File, FileSystem, OpenMode};

fn open(path: &Path, mode: OpenMode) -> Arc<dyn File> {
    OsFileSystem.open(path, mode).unwrap()
}

#[test]
fn a_file_is_changed_in_place_only_while_no_reader_holds_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("000007.blob");
    let writer = open(&path, OpenMode::Create);
    let readers = [open(&path, OpenMode::Read), open(&path, OpenMode::Read)];
    assert!(readers.iter().all(|reader| reader.share().unwrap()));
    assert!(!writer.claim().unwrap());
    // A record lock would be gone with any descriptor of the file.
    drop(open(&path, OpenMode::Read));
    let [first, second] = readers;
    drop(first);
    assert!(!writer.claim().unwrap());
    drop(second);
    assert!(writer.claim().unwrap());
    let late = open(&path, OpenMode::Read);
    assert!(!late.share().unwrap());
    drop(writer);
    assert!(late.share().unwrap());
}
