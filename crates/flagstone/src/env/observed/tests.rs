//! What an observer hears of a file's life.

use std::path::Path;
use std::sync::Arc;

use super::{FileObserver, FileOperation, FileOperationInfo, ObservedFiles};
use crate::base::sync::Mutex;
use crate::env::memory::MemoryFileSystem;
use crate::env::{Env, FileSystem, IoMode};

#[derive(Default)]
struct Heard(Mutex<Vec<(FileOperation, u64, usize, bool)>>);

impl FileObserver for Heard {
    fn observe(&self, info: &FileOperationInfo) {
        let FileOperationInfo { operation, offset, length, .. } = *info;
        self.0.lock().push((operation, offset, length, info.error.is_some()));
    }
}

#[test]
fn each_operation_is_reported_with_its_extent() {
    let heard = Arc::new(Heard::default());
    let clock = Env::memory().clock;
    let files = ObservedFiles::new(Arc::new(MemoryFileSystem::new()), clock, heard.clone());
    files.create_directory(Path::new("/")).unwrap();
    let file = files.create_writable(Path::new("/file"), IoMode::Buffered).unwrap();
    file.write_at(0, b"twelve bytes").unwrap();
    file.write_vectored_at(12, &[b"and ", b"more"]).unwrap();
    file.sync().unwrap();
    let mut buffer = [0; 100];
    assert_eq!(file.read_at(7, &mut buffer).unwrap(), 13);
    file.truncate(3).unwrap();
    drop(file);
    files.open_random_access(Path::new("/none"), IoMode::Buffered).err().unwrap();
    files.create_writable(Path::new("/no/directory"), IoMode::Buffered).err().unwrap();
    let expected = [
        (FileOperation::Write, 0, 12, false),
        (FileOperation::Write, 12, 8, false),
        (FileOperation::Sync, 0, 0, false),
        (FileOperation::Read, 7, 13, false),
        (FileOperation::Truncate, 3, 0, false),
        (FileOperation::Close, 0, 0, false),
    ];
    assert_eq!(*heard.0.lock(), expected);
}
