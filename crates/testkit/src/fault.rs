//! A file system whose calls fail when told to.
//!
//! Calls are counted as they come in; a plan says which of them fail and how. What a failed call did is the worst
//! that is allowed: a write leaves half of its bytes behind, a rename and a sync did nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flagstone::base::{Code, Error, Result, SubCode};
use flagstone::env::{Advice, File, FileLock, FileSystem, Metadata, OpenMode};
use parking_lot::Mutex;

/// The calls that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "they are named as the methods of the traits")]
pub enum Call {
    Open,
    Create,
    Update,
    Read,
    Write,
    Sync,
    Allocate,
    Truncate,
    Size,
    Rename,
    Link,
    Remove,
    CreateDirectory,
    RemoveDirectory,
    List,
    SyncDirectory,
    Metadata,
    Lock,
}

impl Call {
    /// Whether the call takes space, so that a full disk makes it fail. (Where space is found only when a file is synced,
    /// its data is lost; that is another story.)
    pub fn takes_space(self) -> bool {
        matches!(self, Self::Create | Self::Write | Self::Allocate | Self::Rename)
    }
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Injection {
    /// The device failed.
    Io,
    /// The device is full.
    NoSpace,
    /// A read of a table or blob file returns half of what is there, without an error, as if the file were cut off;
    /// other calls fail as by [`Injection::Io`]. (A log that is cut off is as if its writer had died there.)
    ShortRead,
}

/// Which calls fail.
#[derive(Debug, Clone, Copy, Default)]
enum Plan {
    #[default]
    None,
    /// One call, counted from 0 over the calls of that kind, or over all.
    Once { kind: Option<Call>, at: u64, injection: Injection },
    /// All calls that take space, from one on.
    Full { from: u64 },
}

#[derive(Default)]
struct State {
    plan: Plan,
    calls: u64,
    /// Calls of the planned kind.
    matching: u64,
    failed: Vec<(Call, PathBuf)>,
}

/// Counts and fails the calls of another file system; clones share the count.
#[derive(Clone)]
pub struct FaultFs {
    inner: Arc<dyn FileSystem>,
    state: Arc<Mutex<State>>,
}

impl FaultFs {
    /// One that lets everything through.
    pub fn new(inner: Arc<dyn FileSystem>) -> Self {
        Self { inner, state: Arc::default() }
    }

    /// Makes the call number `at` from now fail, counted from 0 over all calls or those of one kind.
    pub fn fail_once(&self, kind: Option<Call>, at: u64, injection: Injection) {
        let mut state = self.state.lock();
        state.matching = 0;
        state.plan = Plan::Once { kind, at, injection };
    }

    /// From the call number `at` from now on, everything that takes space fails, until [`FaultFs::heal`].
    pub fn fill_disk(&self, at: u64) {
        let mut state = self.state.lock();
        state.matching = 0;
        state.plan = Plan::Full { from: at };
    }

    /// Lets everything through again.
    pub fn heal(&self) {
        self.state.lock().plan = Plan::None;
    }

    /// How many calls there have been.
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// The calls that were made to fail, oldest first.
    pub fn failed(&self) -> Vec<(Call, PathBuf)> {
        self.state.lock().failed.clone()
    }

    fn pass(&self, call: Call, path: &Path) -> std::result::Result<(), Injection> {
        let mut state = self.state.lock();
        state.calls += 1;
        let injection = match state.plan {
            Plan::None => return Ok(()),
            Plan::Once { kind, at, injection } => {
                if kind.is_some_and(|kind| kind != call) {
                    return Ok(());
                }
                let number = state.matching;
                state.matching += 1;
                if number != at {
                    return Ok(());
                }
                injection
            }
            Plan::Full { from } => {
                let number = state.matching;
                state.matching += 1;
                if number < from || !call.takes_space() {
                    return Ok(());
                }
                Injection::NoSpace
            }
        };
        state.failed.push((call, path.to_path_buf()));
        Err(injection)
    }

    fn check(&self, call: Call, path: &Path) -> Result<()> {
        self.pass(call, path).map_err(|injection| failure(call, path, injection))
    }
}

fn failure(call: Call, path: &Path, injection: Injection) -> Error {
    match injection {
        Injection::NoSpace => Error::new(Code::IoError, format!("{call:?}: no space left (injected)"))
            .with_subcode(SubCode::NoSpace)
            .at(path),
        _ => Error::io(&format!("{call:?} (injected)"), path, io::Error::from_raw_os_error(5)),
    }
}

struct FaultFile {
    fs: FaultFs,
    inner: Arc<dyn File>,
}

impl File for FaultFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match self.fs.pass(Call::Read, self.path()) {
            Ok(()) => self.inner.read_at(offset, buffer),
            Err(Injection::ShortRead) => {
                let is_log = self.path().extension().is_none_or(|kind| kind != "sst" && kind != "blob");
                let half = if is_log { buffer.len() } else { buffer.len() / 2 };
                self.inner.read_at(offset, &mut buffer[..half])
            }
            Err(injection) => Err(failure(Call::Read, self.path(), injection)),
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if let Err(injection) = self.fs.pass(Call::Write, self.path()) {
            // Torn: any part of the data may have been written.
            self.inner.write_at(offset, &data[..data.len() / 2])?;
            return Err(failure(Call::Write, self.path(), injection));
        }
        self.inner.write_at(offset, data)
    }

    fn sync(&self) -> Result<()> {
        self.fs.check(Call::Sync, self.path())?;
        self.inner.sync()
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        self.fs.check(Call::Allocate, self.path())?;
        self.inner.allocate(length, keep_size)
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.fs.check(Call::Truncate, self.path())?;
        self.inner.truncate(length)
    }

    fn size(&self) -> Result<u64> {
        self.fs.check(Call::Size, self.path())?;
        self.inner.size()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn advise(&self, advice: Advice) {
        self.inner.advise(advice);
    }
}

impl FileSystem for FaultFs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let call = match mode {
            OpenMode::Read => Call::Open,
            OpenMode::Create => Call::Create,
            OpenMode::Update => Call::Update,
        };
        self.check(call, path)?;
        Ok(Arc::new(FaultFile { fs: self.clone(), inner: self.inner.open(path, mode)? }))
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        self.check(Call::Rename, source)?;
        self.inner.rename(source, target)
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        self.check(Call::Link, source)?;
        self.inner.link(source, target)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.check(Call::Remove, path)?;
        self.inner.remove(path)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.check(Call::CreateDirectory, path)?;
        self.inner.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.check(Call::RemoveDirectory, path)?;
        self.inner.remove_directory(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.check(Call::List, directory)?;
        self.inner.list(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        self.check(Call::SyncDirectory, directory)?;
        self.inner.sync_directory(directory)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.check(Call::Metadata, path)?;
        self.inner.metadata(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.check(Call::Lock, path)?;
        self.inner.lock(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flagstone::env::memory::MemoryFileSystem;

    #[test]
    fn the_second_write_is_torn_and_the_disk_fills_until_it_is_healed() {
        let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
        let (directory, path) = (Path::new("/d"), Path::new("/d/f"));
        fs.create_directory(directory).unwrap();
        let file = fs.open(path, OpenMode::Create).unwrap();
        fs.fail_once(Some(Call::Write), 1, Injection::Io);
        file.write_at(0, b"ab").unwrap();
        assert!(file.write_at(2, b"cd").is_err());
        assert_eq!(file.size().unwrap(), 3);
        assert_eq!(fs.failed(), [(Call::Write, path.to_path_buf())]);

        fs.fill_disk(0);
        assert_eq!(file.allocate(100, true).unwrap_err().subcode(), SubCode::NoSpace);
        assert_eq!(file.read_at(0, &mut [0; 2]).unwrap(), 2);
        fs.heal();
        file.write_at(2, b"cd").unwrap();
    }
}
