//! A database that another process writes, with new files in a directory of one's own.
//!
//! What a worker of a compaction service reads lies in the database's directories. What it writes
//! goes to its own directory, under the same name, and is found there by the name that it would
//! have in the database. Nothing in the database changes: a call that would change a file that
//! was not made here is refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{AnyFile, FileLock, FileSystem, FileSystemAround, Metadata, OpenMode, PublishedFile};
use crate::base::sync::Mutex;
use crate::base::{Error, Result, Temperature};

/// A [`FileSystem`] whose new files lie in `own`.
pub(crate) struct RedirectedFiles {
    fs: Arc<dyn FileSystem>,
    own: PathBuf,
    /// The files that were made, by the names that they would have without this.
    made: Mutex<BTreeSet<PathBuf>>,
}

impl RedirectedFiles {
    /// A view of the files of `fs`; new ones go to the directory `own`, which exists.
    pub(crate) fn new(fs: Arc<dyn FileSystem>, own: &Path) -> Self {
        Self { fs, own: own.to_path_buf(), made: Mutex::default() }
    }

    /// Where a file lies.
    fn place(&self, path: &Path) -> PathBuf {
        if self.made.lock().contains(path) { self.own_name(path) } else { path.to_path_buf() }
    }

    fn own_name(&self, path: &Path) -> PathBuf {
        path.file_name().map_or_else(|| self.own.clone(), |name| self.own.join(name))
    }

    /// Where a file lies that is to be changed.
    fn changeable(&self, path: &Path) -> Result<PathBuf> {
        if self.made.lock().contains(path) {
            return Ok(self.own_name(path));
        }
        Err(refused(path))
    }
}

fn refused(path: &Path) -> Error {
    Error::not_supported("a worker of a compaction service changes no file of the database")
        .at(path)
}

impl FileSystemAround for RedirectedFiles {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        match mode {
            OpenMode::RandomAccess(_) => mode.open(&*self.fs, &self.place(path)),
            OpenMode::CreateWritable(_) => {
                let made = mode.open(&*self.fs, &self.own_name(path))?;
                self.made.lock().insert(path.to_path_buf());
                Ok(made)
            }
            OpenMode::ReopenWritable
            | OpenMode::CreateLog
            | OpenMode::ReopenLog
            | OpenMode::Reclaimable => mode.open(&*self.fs, &self.changeable(path)?),
        }
    }

    fn advise(&self, path: &Path, temperature: Temperature) {
        self.fs.advise(&self.own_name(path), temperature);
    }

    fn rename(&self, source: &Path, _target: &Path) -> Result<()> {
        Err(refused(source))
    }

    fn link(&self, source: &Path, _target: &Path) -> Result<()> {
        Err(refused(source))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.fs.remove(&self.changeable(path)?)?;
        self.made.lock().remove(path);
        Ok(())
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        Err(refused(path))
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        Err(refused(path))
    }

    /// All that was made lies in one directory.
    fn sync_directory(&self, _directory: &Path) -> Result<()> {
        self.fs.sync_directory(&self.own)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.fs.metadata(&self.place(path))
    }

    fn free_space(&self, _directory: &Path) -> Result<Option<u64>> {
        self.fs.free_space(&self.own)
    }

    /// A worker says nothing of a database that is not its own.
    fn publish(&self, _path: &Path) -> Result<Option<Box<dyn PublishedFile>>> {
        Ok(None)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        Err(Error::not_supported("a worker of a compaction service locks no database").at(path))
    }
}

#[cfg(test)]
mod tests;
