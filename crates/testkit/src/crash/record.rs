//! The file system that serves a database from memory and records every change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flagstone::base::{Error, Result};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{
    self, AnyFile, FileAround, FileLock, FileSystem, Mapping, Metadata, OpenMode, RandomAccessFile,
};
use parking_lot::Mutex;

use super::aftermath::Aftermath;
use super::choices::by_chance;
use super::disk::{BLOCK_SIZE, Disk, Entry, Grain, Inode};
use super::stage;

/// One change, in the order of the calls.
#[derive(Clone)]
pub(super) enum Change {
    CreateDirectory(Arc<Path>),
    RemoveDirectory(Arc<Path>),
    SyncDirectory(Arc<Path>),
    Create {
        path: Arc<Path>,
        inode: Inode,
    },
    Link {
        inode: Inode,
        target: Arc<Path>,
    },
    Rename {
        source: Arc<Path>,
        target: Arc<Path>,
        inode: Inode,
    },
    Remove(Arc<Path>),
    Write {
        inode: Inode,
        offset: u64,
        data: Arc<[u8]>,
    },
    Truncate {
        inode: Inode,
        length: u64,
    },
    Allocate {
        inode: Inode,
        length: u64,
        keep_size: bool,
    },
    Punch {
        inode: Inode,
        range: Range<u64>,
    },
    /// A sync of which this is the end makes durable what was there now; without it, what is there
    /// at its end.
    BeginSync(Inode),
    Sync(Inode),
    /// A sync that failed: what was not durable yet never will be, though a later sync succeeds.
    LoseUnsynced(Inode),
    LoseNames(Arc<Path>),
}

/// What becomes of changes that were not synced, without going into details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survival {
    /// All are lost.
    Lost,
    /// All survive.
    Kept,
    /// Chance decides for each page and each name, reproducibly.
    Random(u64),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateDirectory(path) => write!(f, "create directory {}", path.display()),
            Self::RemoveDirectory(path) => write!(f, "remove directory {}", path.display()),
            Self::SyncDirectory(path) => write!(f, "sync directory {}", path.display()),
            Self::Create { path, inode } => write!(f, "create {} (file {inode})", path.display()),
            Self::Link { inode, target } => write!(f, "link file {inode} to {}", target.display()),
            Self::Rename { source, target, inode } => {
                write!(f, "rename {} to {} (file {inode})", source.display(), target.display())
            }
            Self::Remove(path) => write!(f, "remove {}", path.display()),
            Self::Write { inode, offset, data } => {
                write!(f, "write {} bytes at {offset} of file {inode}", data.len())
            }
            Self::Truncate { inode, length } => write!(f, "truncate file {inode} to {length}"),
            Self::Allocate { inode, length, keep_size } => {
                write!(f, "allocate {length} for file {inode}, size kept: {keep_size}")
            }
            Self::Punch { inode, range } => write!(f, "punch a hole at {range:?} of file {inode}"),
            Self::BeginSync(inode) => write!(f, "begin to sync file {inode}"),
            Self::Sync(inode) => write!(f, "sync file {inode}"),
            Self::LoseUnsynced(inode) => write!(f, "fail to sync file {inode}"),
            Self::LoseNames(path) => write!(f, "fail to sync directory {}", path.display()),
        }
    }
}

#[derive(Default)]
struct Log {
    start: Disk,
    changes: Vec<Change>,
    inodes: BTreeMap<PathBuf, Inode>,
    next_inode: Inode,
    /// Files of which the process sees more than the disk will ever have, unless it is written
    /// again.
    lost: BTreeSet<Inode>,
}

impl Log {
    fn inode(&self, path: &Path) -> Inode {
        self.inodes.get(path).copied().expect("the file system in memory has found it")
    }
}

/// The recording file system; clones share it.
#[derive(Clone)]
pub struct CrashFs {
    live: MemoryFileSystem,
    log: Arc<Mutex<Log>>,
    /// Whether the process that these calls come from was killed.
    dead: Arc<AtomicBool>,
    /// Files that this process has open.
    open: Arc<AtomicUsize>,
}

/// Counts as an open file until it is dropped.
struct OpenFile(Arc<AtomicUsize>);

impl OpenFile {
    fn counted_in(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(open.clone())
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for CrashFs {
    fn default() -> Self {
        Self::new()
    }
}

impl CrashFs {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            live: MemoryFileSystem::with_block_size(BLOCK_SIZE),
            log: Arc::default(),
            dead: Arc::default(),
            open: Arc::default(),
        }
    }

    /// One that begins with what a process finds on this disk: also what is not durable yet.
    pub fn on(disk: Disk) -> Self {
        let found = disk.after(&Aftermath::kept());
        let mut log = Log { next_inode: disk.next_inode(), ..Log::default() };
        for (path, entry) in disk.names_after(&Aftermath::kept()) {
            if let Entry::File(inode) = entry {
                log.inodes.insert(path.to_path_buf(), inode);
            }
        }
        log.start = disk.found();
        Self {
            live: found.to_memory(),
            log: Arc::new(Mutex::new(log)),
            dead: Arc::default(),
            open: Arc::default(),
        }
    }

    /// How many files the process has open.
    pub fn open_files(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// How many changes there have been; each count is a moment at which the power may fail.
    pub fn changes(&self) -> usize {
        self.log.lock().changes.len()
    }

    /// A sync of the file failed: as on Linux, its unsynced pages now pass for clean, and no later
    /// sync writes them.
    pub fn lose_unsynced(&self, path: &Path) {
        let mut log = self.log.lock();
        if let Some(inode) = log.inodes.get(path).copied() {
            log.changes.push(Change::LoseUnsynced(inode));
            log.lost.insert(inode);
        }
    }

    /// A sync of the directory failed: its unsynced names stay unsynced, though a later sync
    /// succeeds.
    pub fn lose_names(&self, directory: &Path) {
        self.log.lock().changes.push(Change::LoseNames(directory.into()));
    }

    /// The last change before the moment `at`, in words.
    pub fn describe(&self, at: usize) -> String {
        let log = self.log.lock();
        let last = at.checked_sub(1).and_then(|last| log.changes.get(last));
        last.map_or("nothing".to_string(), |change| match change {
            Change::Write { inode, .. }
            | Change::Truncate { inode, .. }
            | Change::Punch { inode, .. }
            | Change::BeginSync(inode)
            | Change::Sync(inode) => {
                let name = log.changes[..at].iter().rev().find_map(|change| match change {
                    Change::Create { path, inode: named }
                    | Change::Rename { target: path, inode: named, .. }
                        if named == inode =>
                    {
                        Some(path.display().to_string())
                    }
                    _ => None,
                });
                format!("{change} ({})", name.as_deref().unwrap_or("from before"))
            }
            change => change.to_string(),
        })
    }

    /// The files as they are found when the power failed after the first `at` changes.
    pub fn after_crash(&self, at: usize, survival: Survival) -> MemoryFileSystem {
        let disk = {
            let log = self.log.lock();
            let mut disk = log.start.clone();
            log.changes[..at].iter().for_each(|change| disk.apply(change));
            disk
        };
        let aftermath = match survival {
            Survival::Lost => Aftermath::lost(),
            Survival::Kept => Aftermath::kept(),
            Survival::Random(seed) => {
                by_chance(&disk, Grain::REAL, &mut fastrand::Rng::with_seed(seed))
            }
        };
        disk.after(&aftermath).to_memory()
    }

    /// What the process was given and all changes since.
    pub(super) fn recorded(&self) -> (Disk, Vec<Change>) {
        let log = self.log.lock();
        (log.start.clone(), log.changes.clone())
    }

    /// Kills the process: no call through this handle has any effect from now on. The same disk for
    /// the next one.
    #[must_use]
    pub fn kill(&self) -> Self {
        self.dead.store(true, Ordering::Release);
        Self {
            live: self.live.clone(),
            log: self.log.clone(),
            dead: Arc::default(),
            open: Arc::default(),
        }
    }
}

fn check_alive(dead: &AtomicBool, path: &Path) -> Result<()> {
    if !dead.load(Ordering::Acquire) {
        Ok(())
    } else {
        Err(Error::io("go on after being killed", path, io::Error::other("the process is dead")))
    }
}

struct CrashFile {
    inner: AnyFile,
    log: Arc<Mutex<Log>>,
    dead: Arc<AtomicBool>,
    inode: Inode,
    open: OpenFile,
}

impl CrashFile {
    fn change(&self, change: Change, live: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut log = self.log.lock();
        check_alive(&self.dead, self.path())?;
        log.changes.push(change);
        live()
    }
}

impl FileAround for CrashFile {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut there = vec![0; data.len()];
        let is_lost = self.log.lock().lost.contains(&self.inode);
        if !is_lost && self.inner.read_at(offset, &mut there)? == data.len() && there == data {
            // Unless a sync failed, whether this reaches the disk makes no difference to what is
            // found there; it would only make for many ways to find the same.
            return check_alive(&self.dead, self.path());
        }
        let change = Change::Write { inode: self.inode, offset, data: data.into() };
        self.change(change, || self.inner.write_at(offset, data))
    }

    fn sync(&self) -> Result<()> {
        if stage::stops_at(self.path()) {
            self.change(Change::BeginSync(self.inode), || Ok(()))?;
            stage::stop();
        }
        self.change(Change::Sync(self.inode), || self.inner.sync())
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        let change = Change::Allocate { inode: self.inode, length, keep_size };
        self.change(change, || self.inner.allocate(length, keep_size))
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.change(Change::Truncate { inode: self.inode, length }, || self.inner.truncate(length))
    }

    fn punch_hole(&self, range: Range<u64>) -> Result<bool> {
        let change = Change::Punch { inode: self.inode, range: range.clone() };
        self.change(change, || self.inner.punch_hole(range).map(drop))?;
        Ok(true)
    }

    fn is_mappable(&self) -> bool {
        true
    }

    fn map(&self, offset: u64, length: usize) -> Result<Option<Box<dyn Mapping>>> {
        let is_there = self.inner.size()? >= offset + length as u64;
        let file = Self {
            inner: self.inner.clone(),
            log: self.log.clone(),
            dead: self.dead.clone(),
            inode: self.inode,
            open: OpenFile::counted_in(&self.open.0),
        };
        Ok(is_there.then(|| Box::new(CrashMapping { file, offset, length }) as Box<dyn Mapping>))
    }
}

/// What is written to it may be lost, kept and torn as any write.
struct CrashMapping {
    file: CrashFile,
    offset: u64,
    length: usize,
}

impl Mapping for CrashMapping {
    fn write(&mut self, at: usize, data: &[u8]) {
        let offset = self.offset + at as u64;
        let end = offset + data.len() as u64;
        assert!(at + data.len() <= self.length, "a write behind the end of a mapping");
        let size = self.file.inner.size().expect("it is in memory");
        // Where the system would send SIGBUS. A process that is dead does nothing.
        assert!(
            end <= size || self.file.dead.load(Ordering::Acquire),
            "a write to a mapping of what was cut off"
        );
        let _ = FileAround::write_at(&self.file, offset, data);
    }

    fn populate(&mut self, range: Range<usize>) -> Result<()> {
        assert!(range.end <= self.length, "pages behind the end of a mapping");
        Ok(())
    }
}

impl env::FileSystemAround for CrashFs {
    fn inner(&self) -> &dyn FileSystem {
        &self.live
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let mut log = self.log.lock();
        if !mode.only_reads() {
            check_alive(&self.dead, path)?;
        }
        let inner = mode.open(&self.live, path)?;
        let inode = match (log.inodes.get(path).copied(), mode.creates()) {
            (Some(inode), true) => {
                log.changes.push(Change::Truncate { inode, length: 0 });
                inode
            }
            (Some(inode), _) => inode,
            (None, _) => {
                let inode = log.next_inode;
                log.next_inode += 1;
                log.inodes.insert(path.to_path_buf(), inode);
                log.changes.push(Change::Create { path: path.into(), inode });
                inode
            }
        };
        let (log, dead) = (self.log.clone(), self.dead.clone());
        let open = OpenFile::counted_in(&self.open);
        Ok(AnyFile::around(CrashFile { inner, log, dead, inode, open }))
    }

    /// From one directory to another, too: durable as a whole when that of the new name is synced.
    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        let mut log = self.log.lock();
        check_alive(&self.dead, source)?;
        self.live.rename(source, target)?;
        let inode = log.inode(source);
        log.inodes.remove(source);
        log.inodes.insert(target.to_path_buf(), inode);
        log.changes.push(Change::Rename { source: source.into(), target: target.into(), inode });
        Ok(())
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        let mut log = self.log.lock();
        check_alive(&self.dead, source)?;
        self.live.link(source, target)?;
        let inode = log.inode(source);
        log.inodes.insert(target.to_path_buf(), inode);
        log.changes.push(Change::Link { inode, target: target.into() });
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut log = self.log.lock();
        check_alive(&self.dead, path)?;
        self.live.remove(path)?;
        log.inodes.remove(path);
        log.changes.push(Change::Remove(path.into()));
        Ok(())
    }

    /// Each directory on the way that is new is a name of its own.
    fn create_directory(&self, path: &Path) -> Result<()> {
        let mut log = self.log.lock();
        check_alive(&self.dead, path)?;
        let is_new = |directory: &&Path| {
            self.live.metadata(directory).is_err() && directory.parent().is_some()
        };
        let mut made: Vec<Arc<Path>> =
            path.ancestors().take_while(is_new).map(Into::into).collect();
        made.reverse();
        log.changes.extend(made.into_iter().map(Change::CreateDirectory));
        self.live.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        let mut log = self.log.lock();
        check_alive(&self.dead, path)?;
        self.live.remove_directory(path)?;
        log.changes.push(Change::RemoveDirectory(path.into()));
        Ok(())
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.live.list(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        let mut log = self.log.lock();
        check_alive(&self.dead, directory)?;
        self.live.sync_directory(directory)?;
        log.changes.push(Change::SyncDirectory(directory.into()));
        Ok(())
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.live.metadata(path)
    }

    /// The lock's file is not recorded: nothing is ever read from it.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.live.lock(path)
    }
}

#[cfg(test)]
mod tests;
