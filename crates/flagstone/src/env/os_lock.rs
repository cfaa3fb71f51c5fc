//! Locks of files that exclude RocksDB and other Flagstones, in this process and in others.
//!
//! 1. The table of this process is searched for the file, by path and by identity.
//! 2. The file is opened and locked by an open file description lock ([`super::description_lock`]).
//!    It conflicts with the POSIX record locks of RocksDB and of earlier Flagstones, and stays when
//!    the process closes other descriptors of the file.
//! 3. An exclusive holder writes its name and process number into the file, since the system
//!    reports no process for such a lock. RocksDB ignores the file's contents.
//!
//! Where the system has no such locks, a POSIX record lock is taken. It ends when the process
//! closes *any* descriptor of the file, so [`check_not_recorded`] refuses to open one.
//!
//! **Invariants.** Only the process that took a lock releases it: a forked child merely closes its
//! descriptor. A descriptor of a file on which this process already has a record lock, such as
//! RocksDB's, is never closed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;

use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
use super::description_lock::{self, Share};
use super::{FileLock, directory_of};
use crate::base::{Code, Error, Result, SubCode};

/// Bytes of the text in a lock file that are read.
const TEXT_MAX: usize = 256;

/// Characters of a program's name that are written and shown.
const NAME_MAX: usize = 64;

/// Without open file description locks, the process has record locks only.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Exclusive,
    Shared,
}

/// The kinds of locks that a system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    Description,
    Record,
}

/// Locks a file for one holder. It is made if it is missing.
///
/// # Errors
/// `Busy` if it is locked; `IoError`.
pub(super) fn lock_exclusively(path: &Path) -> Result<Box<dyn FileLock>> {
    Ok(Box::new(lock(path, Share::Exclusive, Means::Description)?))
}

/// Locks a file against exclusive holders without changing it.
///
/// # Errors
/// `Busy` if it is locked exclusively; `IoError`.
pub(super) fn lock_shared(path: &Path) -> Result<Box<dyn FileLock>> {
    Ok(Box::new(lock(path, Share::Shared, Means::Description)?))
}

/// Refuses to open a file that this process holds by a record lock: closing it would release the
/// lock.
///
/// # Errors
/// The reason.
pub(super) fn check_not_recorded(path: &Path) -> io::Result<()> {
    let recorded: Vec<_> = TABLE
        .lock()
        .locked
        .iter()
        .filter(|locked| locked.means == Means::Record)
        .map(|locked| locked.id)
        .collect();
    // Mostly there is none, and nothing to look up.
    let is_recorded = |found: Metadata| recorded.contains(&id_of(&found));
    if recorded.is_empty() || !fs::metadata(path).is_ok_and(is_recorded) {
        return Ok(());
    }
    Err(io::Error::other(
        "this is the lock file of a database that this process has open; reading it would release the lock",
    ))
}

fn lock(path: &Path, share: Share, means: Means) -> Result<OsLock> {
    let directory = directory_of(path);
    let name = fs::canonicalize(&directory)
        .map_err(|error| Error::io("look up", &directory, error))?
        .join(path.file_name().unwrap_or_default());
    let mut table = TABLE.lock();
    let id = fs::metadata(path).ok().map(|found| id_of(&found));
    if table.locked.iter().any(|other| other.name == name || Some(other.id) == id) {
        return Err(held("another handle of this process", path));
    }
    let file = match table.take_kept(id, share) {
        Some(file) => file,
        None => how(share).open(path).map_err(|error| Error::io("open the lock", path, error))?,
    };
    let found = file.metadata().map_err(|error| Error::io("look up", path, error))?;
    match take(&file, share, means) {
        Ok(means) => {
            let id = id_of(&found);
            table.locked.push(Locked { name, id, means });
            let lock = OsLock { file: Some(file), id, means, share, process: process::id() };
            lock.note_holder(path);
            Ok(lock)
        }
        Err(Errno::AGAIN | Errno::ACCESS) => {
            let holder = Holder::of(&file, means);
            if holder == Holder::ThisProcess {
                table.kept.push(Kept { file, id: id_of(&found), share });
            }
            Err(held(&holder.described(), path))
        }
        Err(error) => Err(Error::io("lock", path, error.into())),
    }
}

fn how(share: Share) -> OpenOptions {
    let mut how = OpenOptions::new();
    how.read(true);
    if share == Share::Exclusive {
        how.write(true).create(true).truncate(false);
    }
    how
}

fn held(by: &str, path: &Path) -> Error {
    Error::new(Code::Busy, format!("the database is in use by {by}; close it there first"))
        .with_subcode(SubCode::LockHeld)
        .at(path)
}

/// Takes the lock; returns by which means.
fn take(file: &File, share: Share, means: Means) -> std::result::Result<Means, Errno> {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    if means == Means::Description {
        match rustix::io::retry_on_intr(|| description_lock::take(file, share)) {
            // Before Linux 3.15, and in some sandboxes.
            Err(Errno::INVAL) => {}
            outcome => return outcome.map(|()| Means::Description),
        }
    }
    let _ = means;
    let operation = match share {
        Share::Exclusive => FlockOperation::NonBlockingLockExclusive,
        Share::Shared => FlockOperation::NonBlockingLockShared,
    };
    rustix::fs::fcntl_lock(file, operation).map(|()| Means::Record)
}

/// The locks of this process. Held while a lock is taken or released.
static TABLE: Mutex<Table> = Mutex::new(Table { locked: Vec::new(), kept: Vec::new() });

struct Table {
    locked: Vec<Locked>,
    kept: Vec<Kept>,
}

/// A locked file, by its path and by its identity: a copy of hard links has the same file.
struct Locked {
    name: PathBuf,
    id: (u64, u64),
    means: Means,
}

/// A descriptor of a file on which another library of this process has a record lock. It stays open
/// for the next attempt.
struct Kept {
    file: File,
    id: (u64, u64),
    share: Share,
}

impl Table {
    fn take_kept(&mut self, id: Option<(u64, u64)>, share: Share) -> Option<File> {
        let at = self.kept.iter().position(|kept| Some(kept.id) == id && kept.share == share)?;
        Some(self.kept.swap_remove(at).file)
    }
}

fn id_of(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

struct OsLock {
    file: Option<File>,
    id: (u64, u64),
    means: Means,
    share: Share,
    /// The process that took the lock.
    process: u32,
}

impl FileLock for OsLock {}

impl OsLock {
    /// Writes into the file which process holds it. Without that text the lock holds all the same.
    fn note_holder(&self, path: &Path) {
        let Some(file) = self.file.as_ref().filter(|_| self.share == Share::Exclusive) else {
            return;
        };
        let text =
            format!("{}, process {}\n", name_of(self.process).unwrap_or_default(), self.process);
        let written = file.set_len(0).and_then(|()| file.write_all_at(text.as_bytes(), 0));
        if let Err(error) = written {
            tracing::debug!(%error, file = %path.display(), "cannot record which process holds the lock");
        }
    }

    fn release(&self) {
        let Some(file) = self.file.as_ref().filter(|_| self.process == process::id()) else {
            return;
        };
        if self.share == Share::Exclusive {
            // A text that stays is of no harm: it is read only while the file is locked.
            let _ = file.set_len(0);
        }
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        if self.means == Means::Description {
            // A child may have inherited the descriptor, so that closing this one releases nothing.
            let _ = description_lock::release(file);
        }
    }
}

impl Drop for OsLock {
    fn drop(&mut self) {
        let mut table = TABLE.lock();
        self.release();
        // Closed before the name is free: closing would release a record lock of the next holder.
        self.file = None;
        table.locked.retain(|other| other.id != self.id);
    }
}

/// The holder of a lock in the way, as far as it is known.
#[derive(Debug, PartialEq, Eq)]
enum Holder {
    /// Another library of this process, by a record lock.
    ThisProcess,
    Named(String, u32),
    Numbered(u32),
    /// Several may read.
    Reader,
    /// In another process namespace, or on another machine.
    Unknown,
}

impl Holder {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn of(file: &File, means: Means) -> Self {
        let found = match means {
            Means::Description => description_lock::holder(file),
            Means::Record => description_lock::holder_against_record(file),
        };
        match found.ok().flatten() {
            Some(found) if found.process > 0 => Self::numbered(found.process.unsigned_abs()),
            Some(found) if found.share == Share::Shared => Self::Reader,
            Some(found) if found.process < 0 => Self::written_in(file),
            _ => Self::Unknown,
        }
    }

    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    fn of(file: &File, _means: Means) -> Self {
        let writing = rustix::process::Flock::from(rustix::process::FlockType::WriteLock);
        let found = rustix::process::fcntl_getlk(file, &writing).ok().flatten();
        match found.and_then(|found| found.pid) {
            Some(process) => Self::numbered(process.as_raw_nonzero().get().unsigned_abs()),
            None => Self::written_in(file),
        }
    }

    fn numbered(process: u32) -> Self {
        match name_of(process) {
            _ if process == process::id() => Self::ThisProcess,
            Some(name) => Self::Named(name, process),
            None => Self::Numbered(process),
        }
    }

    /// What an exclusive holder wrote into the file.
    fn written_in(file: &File) -> Self {
        let mut text = [0; TEXT_MAX];
        let length = file.read_at(&mut text, 0).unwrap_or(0);
        Self::parse(&text[..length]).unwrap_or(Self::Unknown)
    }

    /// Parses `NAME, process N`. Any program may have written the text, so it is cut off and
    /// escaped.
    fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let (name, number) = text.trim_end().rsplit_once(", process ")?;
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u32 = number.parse().ok().filter(|number| is_number && *number > 0)?;
        match shown(name) {
            name if name.is_empty() => Some(Self::Numbered(number)),
            name => Some(Self::Named(name, number)),
        }
    }

    fn described(&self) -> String {
        match self {
            Self::ThisProcess => "another library of this process".to_string(),
            Self::Named(name, number) => format!("{name}, process {number}"),
            Self::Numbered(number) => format!("process {number}"),
            Self::Reader => "another process that only reads it".to_string(),
            Self::Unknown => "another process".to_string(),
        }
    }
}

/// A process's name, as far as the system has it.
#[expect(clippy::disallowed_methods, reason = "it is no file of a database")]
fn name_of(process: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{process}/comm")).ok()?;
    Some(shown(&String::from_utf8_lossy(&name)))
}

fn shown(name: &str) -> String {
    let start: String = name.trim().chars().take(NAME_MAX).collect();
    start.escape_debug().to_string()
}

#[cfg(test)]
#[path = "os_lock_tests.rs"]
mod tests;
