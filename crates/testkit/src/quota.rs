//! A file system whose files below one directory may only take so many bytes: a small disk without
//! a mount.
//!
//! A file takes what it holds or has reserved, whichever is more, until its last name and its last
//! handle are gone, as on a real disk. A write that does not fit leaves the part that does and
//! fails with `NoSpace`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flagstone::base::{Code, Error, Result, SubCode};
use flagstone::env::{
    self, AnyFile, DIRECT_BLOCK, FileAround, FileSystem, Mapping, OpenMode, RandomAccessFile,
};
use parking_lot::Mutex;

/// What all files take together, and may take.
#[derive(Default)]
struct Account {
    limit: AtomicU64,
    used: AtomicU64,
}

impl Account {
    /// Takes as much of `wanted` as there is room for.
    fn take(&self, wanted: u64) -> u64 {
        let limit = self.limit.load(Ordering::Relaxed);
        let taken = |used: u64| wanted.min(limit.saturating_sub(used));
        let before =
            self.used.update(Ordering::Relaxed, Ordering::Relaxed, |used| used + taken(used));
        taken(before)
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The space of one file, given back when nothing holds it any longer.
struct Space {
    bytes: Mutex<u64>,
    account: Arc<Account>,
}

impl Space {
    /// Grows to `end` or as far as there is room; how far that is.
    fn grow(&self, end: u64) -> u64 {
        let mut bytes = self.bytes.lock();
        if end > *bytes {
            *bytes += self.account.take(end - *bytes);
        }
        end.min(*bytes)
    }

    fn shrink(&self, end: u64) {
        let mut bytes = self.bytes.lock();
        self.account.give_back(bytes.saturating_sub(end));
        *bytes = end.min(*bytes);
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.account.give_back(*self.bytes.get_mut());
    }
}

/// Limits what another file system holds below a directory; clones share the account.
#[derive(Clone)]
pub struct QuotaFs {
    inner: Arc<dyn FileSystem>,
    directory: PathBuf,
    account: Arc<Account>,
    files: Arc<Mutex<HashMap<PathBuf, Arc<Space>>>>,
}

impl QuotaFs {
    /// Allows the files below `directory` to take `limit` bytes; those that are there count.
    ///
    /// # Errors
    /// `IoError` if what is there cannot be listed.
    pub fn new(inner: Arc<dyn FileSystem>, directory: &Path, limit: u64) -> Result<Self> {
        let account = Arc::new(Account { limit: AtomicU64::new(limit), used: AtomicU64::new(0) });
        let fs = Self { inner, directory: directory.to_path_buf(), account, files: Arc::default() };
        if fs.inner.metadata(directory).is_ok() {
            fs.count(directory)?;
        }
        Ok(fs)
    }

    /// Allows more, or less; what is there stays even if it is too much.
    pub fn set_limit(&self, limit: u64) {
        self.account.limit.store(limit, Ordering::Relaxed);
    }

    /// Bytes taken.
    pub fn used(&self) -> u64 {
        self.account.used.load(Ordering::Relaxed)
    }

    /// How many bytes there may be.
    pub fn limit(&self) -> u64 {
        self.account.limit.load(Ordering::Relaxed)
    }

    fn count(&self, directory: &Path) -> Result<()> {
        for name in self.inner.list(directory)? {
            let path = directory.join(name);
            let found = self.inner.metadata(&path)?;
            if found.is_directory {
                self.count(&path)?;
            } else {
                self.account.used.fetch_add(found.size, Ordering::Relaxed);
                self.files.lock().insert(path, self.space(found.size));
            }
        }
        Ok(())
    }

    /// A file's space; its bytes are in the account already.
    fn space(&self, bytes: u64) -> Arc<Space> {
        Arc::new(Space { bytes: Mutex::new(bytes), account: self.account.clone() })
    }

    fn is_limited(&self, path: &Path) -> bool {
        path.starts_with(&self.directory)
    }

    /// Makes what an operation did to names known; a name that is replaced lets go of its file.
    fn rename_space(&self, source: &Path, target: &Path) {
        let mut files = self.files.lock();
        if let Some(space) = files.remove(source) {
            files.insert(target.to_path_buf(), space);
        }
    }
}

fn full(path: &Path) -> Error {
    Error::new(Code::IoError, "no space left (quota)").with_subcode(SubCode::NoSpace).at(path)
}

struct QuotaFile {
    inner: AnyFile,
    space: Arc<Space>,
}

impl FileAround for QuotaFile {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let end = offset + data.len() as u64;
        let reached = self.space.grow(end);
        if reached == end {
            return self.inner.write_at(offset, data);
        }
        let mut fits = reached.saturating_sub(offset) as usize;
        if self.is_direct() {
            fits -= fits % DIRECT_BLOCK;
        }
        self.inner.write_at(offset, &data[..fits])?;
        Err(full(self.path()).at_offset(offset))
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        if self.space.grow(length) < length {
            return Err(full(self.path()));
        }
        self.inner.allocate(length, keep_size)
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.inner.truncate(length)?;
        self.space.shrink(length);
        Ok(())
    }

    fn is_mappable(&self) -> bool {
        self.inner.is_mappable()
    }

    fn map(&self, offset: u64, length: usize) -> Result<Option<Box<dyn Mapping>>> {
        self.inner.map(offset, length)
    }
}

impl env::FileSystemAround for QuotaFs {
    fn inner(&self) -> &dyn FileSystem {
        &*self.inner
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let inner = mode.open(&*self.inner, path)?;
        if !self.is_limited(path) {
            return Ok(inner);
        }
        let space = match self.files.lock().entry(path.to_path_buf()) {
            std::collections::hash_map::Entry::Occupied(known) => known.get().clone(),
            std::collections::hash_map::Entry::Vacant(new) => new.insert(self.space(0)).clone(),
        };
        if mode.creates() {
            space.shrink(0);
        }
        Ok(AnyFile::around(QuotaFile { inner, space }))
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        self.inner.rename(source, target)?;
        self.rename_space(source, target);
        Ok(())
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        self.inner.link(source, target)?;
        let mut files = self.files.lock();
        if let Some(space) = files.get(source).cloned() {
            files.insert(target.to_path_buf(), space);
        }
        Ok(())
    }

    fn free_space(&self, directory: &Path) -> Result<Option<u64>> {
        if self.is_limited(directory) {
            Ok(Some(self.limit().saturating_sub(self.used())))
        } else {
            self.inner.free_space(directory)
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)?;
        self.files.lock().remove(path);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
