//! Files that leave out some of what they are asked for, and say that it is done.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flagstone::base::file_name::FileKind;
use flagstone::base::{Error, FileNumber, Result, SubCode};
use flagstone::env::{
    AnyFile, FileAround, FileLock, FileSystem, FileSystemAround, Mapping, OpenMode,
};
use parking_lot::Mutex;

use super::Fake;
use crate::fault::{Sort, sort_of};

/// The smallest hole that gives space back.
const BLOCK_SIZE: u64 = 4096;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// A file system that breaks one promise.
pub(super) struct BrokenFs {
    inner: Arc<dyn FileSystem>,
    fake: Fake,
    seen: Arc<Mutex<Seen>>,
}

/// What this process has done to the files.
#[derive(Default)]
struct Seen {
    /// What was made in a directory since it was last synced.
    made: BTreeMap<PathBuf, BTreeSet<Sort>>,
    /// The directories that a database has locked.
    locked: BTreeSet<PathBuf>,
    newest_wal: Option<FileNumber>,
    /// The MANIFEST whose first sync is put off.
    unsynced_manifest: Option<AnyFile>,
    /// Whether a table has met a full disk.
    is_full: bool,
}

impl BrokenFs {
    pub(super) fn new(inner: Arc<dyn FileSystem>, fake: Fake) -> Self {
        Self { inner, fake, seen: Arc::default() }
    }

    fn note_made(&self, path: &Path) {
        let mut seen = self.seen.lock();
        seen.made.entry(parent(path)).or_default().insert(sort_of(path));
        if let Some(number) = wal_number(path) {
            seen.newest_wal = seen.newest_wal.max(Some(number));
        }
    }

    fn skips_sync_of_directory(&self, directory: &Path) -> bool {
        let mut seen = self.seen.lock();
        let made = seen.made.remove(directory).unwrap_or_default();
        let has_any = |sorts: &[Sort]| sorts.iter().any(|sort| made.contains(sort));
        match self.fake {
            Fake::SkipDirectorySync => has_any(&[Sort::Table, Sort::Blob]),
            Fake::SyncFirstDirectoryOnly => {
                has_any(&[Sort::Table, Sort::Blob]) && !seen.locked.contains(directory)
            }
            Fake::SkipWalDirectorySync => has_any(&[Sort::Wal]),
            Fake::SkipSyncAfterRename => has_any(&[Sort::Current, Sort::Identity, Sort::Options]),
            _ => false,
        }
    }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_path_buf()
}

fn wal_number(path: &Path) -> Option<FileNumber> {
    match FileKind::parse(path.file_name()?.to_str()?) {
        Some(FileKind::Wal(number)) => Some(number),
        _ => None,
    }
}

impl FileSystemAround for BrokenFs {
    fn inner(&self) -> &dyn FileSystem {
        &*self.inner
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let inner = mode.open(&*self.inner, path)?;
        if mode.creates() {
            self.note_made(path);
        }
        Ok(AnyFile::around(BrokenFile {
            inner,
            fake: self.fake,
            seen: self.seen.clone(),
            sort: sort_of(path),
            was_there: !mode.creates() && !mode.only_reads(),
            was_synced: AtomicBool::new(false),
        }))
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        self.inner.rename(source, target)?;
        self.note_made(target);
        let put_off =
            self.seen.lock().unsynced_manifest.take_if(|_| sort_of(target) == Sort::Current);
        put_off.map_or(Ok(()), |manifest| manifest.sync())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match (self.fake, sort_of(path)) {
            (Fake::ForgetObsoleteFiles, Sort::Table | Sort::Blob) => Ok(()),
            _ => self.inner.remove(path),
        }
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        if self.skips_sync_of_directory(directory) {
            return Ok(());
        }
        self.inner.sync_directory(directory)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.seen.lock().locked.insert(parent(path));
        self.inner.lock(path)
    }
}

struct BrokenFile {
    inner: AnyFile,
    fake: Fake,
    seen: Arc<Mutex<Seen>>,
    sort: Sort,
    /// Whether it was opened to be changed, and not made.
    was_there: bool,
    was_synced: AtomicBool,
}

impl BrokenFile {
    fn skips_sync(&self) -> bool {
        let path = self.inner.path();
        let was_synced = self.was_synced.swap(true, Ordering::Relaxed);
        let mut seen = self.seen.lock();
        match (self.fake, self.sort) {
            (Fake::SkipTableSync, Sort::Table)
            | (Fake::SkipBlobSync, Sort::Blob)
            | (Fake::SkipWalSync, Sort::Wal)
            | (Fake::SkipSyncBeforeRename, Sort::Temporary) => true,
            (Fake::SkipSyncOfOlderWals, Sort::Wal) => wal_number(path) < seen.newest_wal,
            (Fake::SkipSyncOfKeptWals, Sort::Wal) => self.was_there,
            (Fake::SkipManifestSync, Sort::Manifest) => was_synced,
            (Fake::CurrentBeforeManifest, Sort::Manifest) if !was_synced => {
                seen.unsynced_manifest = Some(self.inner.clone());
                true
            }
            (Fake::SkipSyncOfCopies, sort) => {
                sort != Sort::Temporary && !seen.locked.contains(&parent(path))
            }
            _ => false,
        }
    }

    fn fails(&self, number: i32) -> Error {
        Error::io("broken (injected)", self.inner.path(), io::Error::from_raw_os_error(number))
    }

    fn hides_full_disk<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| match error.subcode() {
            SubCode::NoSpace => self.fails(EIO),
            _ => error,
        })
    }
}

impl FileAround for BrokenFile {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        match (self.fake, self.sort) {
            (Fake::IgnoreFailedWrite, Sort::Wal) => {
                let _ = self.inner.write_at(offset, data);
                Ok(())
            }
            (Fake::PoisonOnFullLog, Sort::Wal) => {
                self.hides_full_disk(self.inner.write_at(offset, data))
            }
            (Fake::LatchFullDisk, Sort::Table) if self.seen.lock().is_full => {
                Err(self.fails(ENOSPC))
            }
            (Fake::LatchFullDisk, _) => self.inner.write_at(offset, data).inspect_err(|error| {
                self.seen.lock().is_full |= error.subcode() == SubCode::NoSpace;
            }),
            _ => self.inner.write_at(offset, data),
        }
    }

    fn sync(&self) -> Result<()> {
        if self.skips_sync() {
            return Ok(());
        }
        match (self.fake, self.sort) {
            (Fake::RetryFailedSync, Sort::Wal) => self.inner.sync().or_else(|_| self.inner.sync()),
            (Fake::ForgetFailedSync, Sort::Wal) => {
                let _ = self.inner.sync();
                Ok(())
            }
            (Fake::PoisonOnFullSync, Sort::Table) => self.hides_full_disk(self.inner.sync()),
            _ => self.inner.sync(),
        }
    }

    fn punch_hole(&self, range: Range<u64>) -> Result<bool> {
        let more = if self.fake == Fake::PunchLiveRecord { BLOCK_SIZE } else { 0 };
        self.inner.punch_hole(range.start..range.end + more)
    }

    fn is_mappable(&self) -> bool {
        self.inner.is_mappable()
    }

    fn map(&self, offset: u64, length: usize) -> Result<Option<Box<dyn Mapping>>> {
        self.inner.map(offset, length)
    }
}
