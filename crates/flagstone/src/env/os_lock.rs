//! Locks of files, as RocksDB takes them: POSIX record locks.

use std::fs::{self, Metadata, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::{Flock, FlockType};

use super::FileLock;
use crate::base::{Code, Error, Result, SubCode};

/// Takes the lock, `operation` says how, of the file that is opened as `how` says.
///
/// # Errors
/// `Busy` if somebody has it.
pub(super) fn lock_as(
    path: &Path,
    how: &OpenOptions,
    operation: FlockOperation,
) -> Result<Box<dyn FileLock>> {
    let held = |why: &str| {
        Error::new(Code::Busy, format!("the database is in use by {why}; close it there first"))
            .with_subcode(SubCode::LockHeld)
            .at(path)
    };
    // POSIX record locks belong to the process, so a second handle within it needs a table of its own.
    let directory = super::directory_of(path);
    let name = fs::canonicalize(&directory)
        .map_err(|error| Error::io("look up", &directory, error))?
        .join(path.file_name().unwrap_or_default());
    let mut locked = LOCKED.lock();
    let id = fs::metadata(path).ok().map(|found| id_of(&found));
    if locked.iter().any(|other| other.name == name || Some(other.id) == id) {
        return Err(held("another handle of this process"));
    }
    let file = how.open(path).map_err(|error| Error::io("open the lock", path, error))?;
    match rustix::fs::fcntl_lock(&file, operation) {
        Ok(()) => {
            let found = file.metadata().map_err(|error| Error::io("look up", path, error))?;
            locked.push(Locked { name: name.clone(), id: id_of(&found) });
            Ok(Box::new(OsLock { file: Some(file), name }))
        }
        Err(Errno::AGAIN | Errno::ACCESS) => Err(held(&format!("another process{}", holder(&file)))),
        Err(error) => Err(Error::io("lock", path, error.into())),
    }
}

/// Who holds the lock, as far as the system tells: nothing of a process in another namespace, or on another machine.
fn holder(file: &fs::File) -> String {
    let held = rustix::process::fcntl_getlk(file, &Flock::from(FlockType::WriteLock)).ok().flatten();
    let Some(pid) = held.and_then(|held| held.pid) else { return String::new() };
    let pid = pid.as_raw_nonzero();
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!(" ({}, process {pid})", name.trim_end().escape_debug()),
        Err(_) => format!(" (process {pid})"),
    }
}

/// Files locked by this process. Closing *any* descriptor of a locked file drops a POSIX lock, so none is opened
/// while it stands here.
static LOCKED: Mutex<Vec<Locked>> = Mutex::new(Vec::new());

/// By its path, and by what the system knows it by whatever its path: a copy of hard links has the same file.
struct Locked {
    name: PathBuf,
    id: (u64, u64),
}

fn id_of(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

struct OsLock {
    file: Option<fs::File>,
    name: PathBuf,
}

impl FileLock for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        let mut locked = LOCKED.lock();
        // Closed before the name is free: it would drop the next holder's lock.
        self.file = None;
        locked.retain(|other| other.name != self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::FileSystem;
    use crate::env::os::OsFileSystem;

    #[test]
    fn a_lock_is_held_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("LOCK");
        let first = OsFileSystem.lock(&path).unwrap();
        let error = OsFileSystem.lock(&path).err().expect("the second lock must fail");
        assert_eq!((error.code(), error.subcode()), (Code::Busy, SubCode::LockHeld));
        drop(first);
        OsFileSystem.lock(&path).unwrap();
    }

    /// The system has one lock for both, which the process had twice, until the first of them was closed: then it had none.
    #[test]
    fn a_lock_with_two_names_is_held_once() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["LOCK", "LOCK of a copy"].map(|name| directory.path().join(name));
        let held = OsFileSystem.lock(&path).unwrap();
        OsFileSystem.link(&path, &other).unwrap();
        for lock in [OsFileSystem.lock(&other), OsFileSystem.lock_for_reading(&other)] {
            assert_eq!(lock.err().expect("it is held under another name").subcode(), SubCode::LockHeld);
        }
        drop(held);
        OsFileSystem.lock(&other).unwrap();
    }
}
