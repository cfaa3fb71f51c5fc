//! Locks between readers of a file and a writer that changes it in place.
//!
//! A process that reads a database without its LOCK holds a shared lock on each file. A writer that is about to destroy what
//! such a file holds (a hole in a blob file, a new log over an old one) tries for the exclusive lock, and leaves the file alone
//! if it fails.
//!
//! The locks are those of `flock`. They belong to the open file: closing another descriptor of the file does not release them,
//! a read-only descriptor can hold one, and two handles of one process exclude each other. They are independent of the record
//! locks that RocksDB takes, and RocksDB takes none of these files.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

/// Takes the shared lock until the file is closed; `false` while a writer holds the exclusive one. A file system without locks
/// grants everything.
pub(super) fn share(file: &File) -> Result<bool, Errno> {
    take(file, FlockOperation::NonBlockingLockShared)
}

/// Takes the exclusive lock until the file is closed; `false` while a reader holds a shared one. A file system without locks
/// grants everything.
pub(super) fn claim(file: &File) -> Result<bool, Errno> {
    take(file, FlockOperation::NonBlockingLockExclusive)
}

fn take(file: &File, operation: FlockOperation) -> Result<bool, Errno> {
    match retry_on_intr(|| flock(file, operation)) {
        Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
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
}
