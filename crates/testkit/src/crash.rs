//! A file system in memory that remembers every change, and can show what a power loss would have left.
//!
//! **The disk's promises**, the weakest that POSIX allows and real file systems are known to use:
//! - Bytes of a file are durable once the file was synced. Before that each 4 KiB page on its own is as it was at
//!   some moment since, also where an earlier page of the same write is lost; a truncation may not have happened.
//! - A name in a directory (from creating, renaming, linking, removing) is durable once the directory was synced;
//!   before that each change on its own may be lost. A rename happens as a whole.
//! - Directories themselves are durable at once.
//!
//! **Algorithm.** The live state serves the engine; a log of changes lies beside it. [`CrashFs::after_crash`] replays
//! a prefix of the log into inodes that have a durable content and pending changes, and directories likewise; what
//! is pending at the end survives as [`Survival`] says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flagstone::base::Result;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{File, FileLock, FileSystem, Metadata, OpenMode, directory_of, read_file};
use parking_lot::Mutex;

const PAGE_SIZE: u64 = 4096;

/// What becomes of changes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survival {
    /// All are lost.
    Lost,
    /// All survive.
    Kept,
    /// Chance decides for each page and each name, reproducibly.
    Random(u64),
}

type Inode = usize;

/// One change, in the order of the calls.
#[derive(Debug, Clone)]
enum Change {
    CreateDirectory(PathBuf),
    Create {
        path: PathBuf,
        inode: Inode,
    },
    Link {
        inode: Inode,
        target: PathBuf,
    },
    Rename {
        inode: Inode,
        source: PathBuf,
        target: PathBuf,
    },
    Remove(PathBuf),
    SyncDirectory(PathBuf),
    Write {
        inode: Inode,
        offset: u64,
        data: Vec<u8>,
    },
    Truncate {
        inode: Inode,
        length: u64,
    },
    Sync(Inode),
    /// A sync that failed: what was not durable yet never will be, though a later sync succeeds.
    LoseUnsynced(Inode),
    LoseNames(PathBuf),
}

#[derive(Default)]
struct Log {
    changes: Vec<Change>,
    inodes: BTreeMap<PathBuf, Inode>,
    next_inode: Inode,
}

/// The recording file system; clones share it.
#[derive(Clone, Default)]
pub struct CrashFs {
    live: MemoryFileSystem,
    log: Arc<Mutex<Log>>,
}

impl CrashFs {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that begins with the files of `directory` on another, all durable.
    ///
    /// # Panics
    /// If they cannot be read.
    pub fn with_files_of(disk: &MemoryFileSystem, directory: &Path) -> Self {
        let fs = Self::new();
        fs.create_directory(directory).expect("a directory in memory");
        for name in disk.list(directory).expect("a listing") {
            let path = directory.join(name);
            let bytes = read_file(disk, &path, u64::MAX).expect("a file in memory");
            let file = fs.open(&path, OpenMode::Create).expect("a file in memory");
            file.write_at(0, &bytes).and_then(|()| file.sync()).expect("a write in memory");
        }
        fs.sync_directory(directory).expect("a directory in memory");
        fs
    }

    /// How many changes there have been; each count is a moment at which the power may fail.
    pub fn changes(&self) -> usize {
        self.log.lock().changes.len()
    }

    /// A sync of the file failed: as on Linux, its unsynced pages now pass for clean, and no later sync writes them.
    pub fn lose_unsynced(&self, path: &Path) {
        let mut log = self.log.lock();
        if let Some(inode) = log.inodes.get(path).copied() {
            log.changes.push(Change::LoseUnsynced(inode));
        }
    }

    /// A sync of the directory failed: its unsynced names stay unsynced, though a later sync succeeds.
    pub fn lose_names(&self, directory: &Path) {
        self.log.lock().changes.push(Change::LoseNames(directory.to_path_buf()));
    }

    /// The last change before the moment `at`, in words.
    pub fn describe(&self, at: usize) -> String {
        let log = self.log.lock();
        match at.checked_sub(1).and_then(|last| log.changes.get(last)) {
            Some(Change::Write { inode, offset, data }) => {
                format!("Write {{ inode: {inode}, offset: {offset}, length: {} }}", data.len())
            }
            other => format!("{other:?}"),
        }
    }

    /// The files as they are found when the power failed after the first `at` changes.
    pub fn after_crash(&self, at: usize, survival: Survival) -> MemoryFileSystem {
        let log = self.log.lock();
        let mut disk = Disk::default();
        for change in &log.changes[..at] {
            disk.apply(change);
        }
        disk.crash(survival)
    }
}

/// A file's durable bytes and what is on the way to it.
#[derive(Debug, Clone, Default)]
struct Content {
    durable: Vec<u8>,
    pending: Vec<Change>,
}

impl Content {
    fn settle_all(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            apply_to(&mut self.durable, &change, |_| true);
        }
    }

    /// Each page is as it was at some moment since the last sync, chosen for itself.
    fn settle_randomly(&mut self, random: &mut fastrand::Rng) {
        let pending = std::mem::take(&mut self.pending);
        let mut moments: BTreeMap<u64, usize> = BTreeMap::new();
        for (index, change) in pending.iter().enumerate() {
            if matches!(change, Change::Truncate { .. }) && random.bool() {
                continue;
            }
            apply_to(&mut self.durable, change, |page| {
                let moment = moments.entry(page).or_insert_with(|| match random.u8(..4) {
                    0 => 0,
                    1 => random.usize(..pending.len()),
                    _ => usize::MAX,
                });
                index < *moment
            });
        }
    }
}

/// Applies a write, page by page as chosen, or a truncation.
fn apply_to(bytes: &mut Vec<u8>, change: &Change, mut chosen: impl FnMut(u64) -> bool) {
    let (offset, data) = match change {
        Change::Write { offset, data, .. } => (*offset, data),
        Change::Truncate { length, .. } => return bytes.resize(*length as usize, 0),
        _ => return,
    };
    let mut start = offset;
    let end = offset + data.len() as u64;
    while start < end {
        let page = start / PAGE_SIZE;
        let stop = end.min((page + 1) * PAGE_SIZE);
        if chosen(page) {
            if bytes.len() < stop as usize {
                bytes.resize(stop as usize, 0);
            }
            bytes[start as usize..stop as usize]
                .copy_from_slice(&data[(start - offset) as usize..(stop - offset) as usize]);
        }
        start = stop;
    }
}

/// The state of the replay.
#[derive(Debug, Default)]
struct Disk {
    directories: Vec<PathBuf>,
    contents: BTreeMap<Inode, Content>,
    durable_names: BTreeMap<PathBuf, Inode>,
    /// Changes of names, each with the directories that have yet to be synced for it.
    pending_names: Vec<Change>,
}

impl Disk {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::CreateDirectory(path) => self.directories.push(path.clone()),
            Change::Write { inode, .. } | Change::Truncate { inode, .. } => {
                self.contents.entry(*inode).or_default().pending.push(change.clone());
            }
            Change::Sync(inode) => self.contents.entry(*inode).or_default().settle_all(),
            Change::LoseUnsynced(inode) => self.contents.entry(*inode).or_default().pending.clear(),
            Change::LoseNames(directory) => self.pending_names.retain(|change| !touches(change, directory)),
            Change::SyncDirectory(directory) => {
                for pending in std::mem::take(&mut self.pending_names) {
                    if touches(&pending, directory) {
                        change_name(&mut self.durable_names, &pending);
                    } else {
                        self.pending_names.push(pending);
                    }
                }
            }
            names => {
                if let Change::Create { inode, .. } = names {
                    self.contents.entry(*inode).or_default();
                }
                self.pending_names.push(names.clone());
            }
        }
    }

    fn crash(mut self, survival: Survival) -> MemoryFileSystem {
        let mut random = fastrand::Rng::with_seed(match survival {
            Survival::Random(seed) => seed,
            _ => 0,
        });
        // File systems with a journal keep a prefix of the changes of names; others, any of them.
        let prefix_only = random.bool();
        let mut ended = false;
        let likely = |random: &mut fastrand::Rng| match survival {
            Survival::Lost => false,
            Survival::Kept => true,
            Survival::Random(_) => random.bool(),
        };
        for change in &self.pending_names {
            let survives = likely(&mut random);
            ended |= prefix_only && !survives;
            if survives && !ended {
                change_name(&mut self.durable_names, change);
            }
        }
        let fs = MemoryFileSystem::new();
        for directory in &self.directories {
            fs.create_directory(directory).expect("a directory in memory");
        }
        let mut settled: BTreeMap<Inode, Vec<u8>> = BTreeMap::new();
        for (path, inode) in &self.durable_names {
            let bytes = settled.entry(*inode).or_insert_with(|| {
                let mut content = self.contents.remove(inode).unwrap_or_default();
                // Whole files lost or kept are likelier than a mixture, and worth as much.
                match (survival, random.u8(..4)) {
                    (Survival::Lost, _) | (Survival::Random(_), 0) => {}
                    (Survival::Kept, _) | (Survival::Random(_), 1) => content.settle_all(),
                    _ => content.settle_randomly(&mut random),
                }
                content.durable
            });
            let file = fs.open(path, OpenMode::Create).expect("a file in memory");
            file.write_at(0, bytes).expect("a write in memory");
        }
        fs
    }
}

/// Whether a sync of the directory makes the change durable.
fn touches(change: &Change, directory: &Path) -> bool {
    match change {
        Change::Create { path, .. } | Change::Remove(path) => directory_of(path) == directory,
        Change::Link { target, .. } => directory_of(target) == directory,
        // Within one directory in practice; else either side's sync commits the journal entry that holds both.
        Change::Rename { source, target, .. } => {
            directory_of(source) == directory || directory_of(target) == directory
        }
        _ => false,
    }
}

fn change_name(names: &mut BTreeMap<PathBuf, Inode>, change: &Change) {
    match change {
        Change::Create { path, inode } => drop(names.insert(path.clone(), *inode)),
        Change::Link { inode, target } => drop(names.insert(target.clone(), *inode)),
        Change::Rename { inode, source, target } => {
            names.remove(source);
            names.insert(target.clone(), *inode);
        }
        Change::Remove(path) => drop(names.remove(path)),
        _ => {}
    }
}

struct CrashFile {
    inner: Arc<dyn File>,
    log: Arc<Mutex<Log>>,
    inode: Inode,
}

impl File for CrashFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut log = self.log.lock();
        log.changes.push(Change::Write { inode: self.inode, offset, data: data.to_vec() });
        self.inner.write_at(offset, data)
    }

    fn sync(&self) -> Result<()> {
        self.log.lock().changes.push(Change::Sync(self.inode));
        self.inner.sync()
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        let mut log = self.log.lock();
        if !keep_size && self.inner.size()? < length {
            log.changes.push(Change::Truncate { inode: self.inode, length });
        }
        self.inner.allocate(length, keep_size)
    }

    fn truncate(&self, length: u64) -> Result<()> {
        let mut log = self.log.lock();
        log.changes.push(Change::Truncate { inode: self.inode, length });
        self.inner.truncate(length)
    }

    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}

impl FileSystem for CrashFs {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut log = self.log.lock();
        let inner = self.live.open(path, mode)?;
        let inode = match (log.inodes.get(path).copied(), mode) {
            (Some(inode), OpenMode::Create) => {
                log.changes.push(Change::Truncate { inode, length: 0 });
                inode
            }
            (Some(inode), _) => inode,
            (None, _) => {
                let inode = log.next_inode;
                log.next_inode += 1;
                log.inodes.insert(path.to_path_buf(), inode);
                log.changes.push(Change::Create { path: path.to_path_buf(), inode });
                inode
            }
        };
        Ok(Arc::new(CrashFile { inner, log: self.log.clone(), inode }))
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        let mut log = self.log.lock();
        self.live.rename(source, target)?;
        let inode = log.inodes.remove(source).expect("every file was created here");
        log.inodes.insert(target.to_path_buf(), inode);
        let (source, target) = (source.to_path_buf(), target.to_path_buf());
        log.changes.push(Change::Rename { inode, source, target });
        Ok(())
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        let mut log = self.log.lock();
        self.live.link(source, target)?;
        let inode = log.inodes[source];
        log.inodes.insert(target.to_path_buf(), inode);
        log.changes.push(Change::Link { inode, target: target.to_path_buf() });
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut log = self.log.lock();
        self.live.remove(path)?;
        log.inodes.remove(path);
        log.changes.push(Change::Remove(path.to_path_buf()));
        Ok(())
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        let mut log = self.log.lock();
        self.live.create_directory(path)?;
        log.changes.push(Change::CreateDirectory(path.to_path_buf()));
        Ok(())
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.live.remove_directory(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.live.list(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        let mut log = self.log.lock();
        self.live.sync_directory(directory)?;
        log.changes.push(Change::SyncDirectory(directory.to_path_buf()));
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
mod tests {
    use super::*;

    #[test]
    fn only_what_was_synced_is_sure_to_survive() {
        let fs = CrashFs::new();
        let (directory, path, new) = (Path::new("/d"), Path::new("/d/f"), Path::new("/d/g"));
        fs.create_directory(directory).unwrap();
        let file = fs.open(path, OpenMode::Create).unwrap();
        file.write_at(0, b"one").unwrap();
        file.sync().unwrap();
        let nameless = fs.changes();
        fs.sync_directory(directory).unwrap();
        file.write_at(3, b"two").unwrap();
        fs.rename(path, new).unwrap();
        let end = fs.changes();

        assert!(fs.after_crash(nameless, Survival::Lost).metadata(path).unwrap_err().is_not_found());
        let lost = fs.after_crash(end, Survival::Lost);
        assert_eq!(read_file(&lost, path, 10).unwrap(), b"one");
        let kept = fs.after_crash(end, Survival::Kept);
        assert_eq!(read_file(&kept, new, 10).unwrap(), b"onetwo");
        assert!(kept.metadata(path).is_err());
        let outcomes: std::collections::BTreeSet<_> = (0..100)
            .map(|seed| {
                let fs = fs.after_crash(end, Survival::Random(seed));
                let renamed = fs.metadata(new).is_ok();
                let survivor = if renamed { new } else { path };
                (renamed, read_file(&fs, survivor, 10).unwrap())
            })
            .collect();
        assert_eq!(outcomes.len(), 4);
    }

    #[test]
    fn a_sync_after_a_failed_one_brings_nothing_back() {
        let fs = CrashFs::new();
        let (directory, path) = (Path::new("/d"), Path::new("/d/f"));
        fs.create_directory(directory).unwrap();
        let file = fs.open(path, OpenMode::Create).unwrap();
        fs.sync_directory(directory).unwrap();
        file.write_at(0, b"one").unwrap();
        fs.lose_unsynced(path);
        fs.rename(path, Path::new("/d/g")).unwrap();
        fs.lose_names(directory);
        file.write_at(3, b"two").unwrap();
        file.sync().unwrap();
        fs.sync_directory(directory).unwrap();
        let after = fs.after_crash(fs.changes(), Survival::Kept);
        assert_eq!(read_file(&after, path, 10).unwrap(), b"\0\0\0two");
    }

    #[test]
    fn pages_of_one_write_may_be_lost_one_by_one() {
        let fs = CrashFs::new();
        fs.create_directory(Path::new("/d")).unwrap();
        let path = Path::new("/d/f");
        let file = fs.open(path, OpenMode::Create).unwrap();
        fs.sync_directory(Path::new("/d")).unwrap();
        file.write_at(0, &[1; 8192]).unwrap();
        let has_hole = |seed| {
            let after = fs.after_crash(fs.changes(), Survival::Random(seed));
            let bytes = read_file(&after, path, 10_000).unwrap();
            bytes.len() == 8192 && bytes[0] == 0
        };
        assert!((0..100).any(has_hole));
    }
}
