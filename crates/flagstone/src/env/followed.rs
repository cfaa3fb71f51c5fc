//! The files of a database that another process writes, for readers that follow it.
//!
//! **Algorithm.**
//! 1. A table or blob file that is opened for reading is locked against changes in place
//!    ([`RandomAccessFile::share`]). As long as anything has it open, each request for its name
//!    gets that file: the other process may have removed the name.
//! 2. A directory lists the names of these files, too.
//! 3. WALs are opened by [`FollowedFiles::open_wal`], locked as well, and not remembered: their
//!    reader keeps them, and looks whether a name still leads to the file that it has.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{
    AnyFile, Clock, Env, FileSystem, FileSystemAround, IoMode, Metadata, OpenMode, RandomAccessFile,
};
use crate::base::file_name::FileKind;
use crate::base::sync::Mutex;
use crate::base::{Code, Error, Result};

/// How often a file is asked for that the other process is changing in place, which takes it some
/// milliseconds.
const ATTEMPTS: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// A [`FileSystem`] in which tables and blob files stay readable as long as they are open.
pub(crate) struct FollowedFiles {
    fs: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    open: Mutex<HashMap<PathBuf, Weak<dyn RandomAccessFile>>>,
}

impl FollowedFiles {
    /// A view of `env`'s files.
    pub(crate) fn new(env: &Env) -> Self {
        Self { fs: env.fs.clone(), clock: env.clock.clone(), open: Mutex::default() }
    }

    /// Opens a WAL and locks it, so that a writer that is Flagstone begins no other one over it.
    ///
    /// # Errors
    /// `IoError`; `TryAgain` if another process keeps changing it in place.
    pub(crate) fn open_wal(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        self.open_shared(path, IoMode::Buffered)
    }

    /// Whether the name still leads to this file.
    ///
    /// # Errors
    /// `IoError`.
    pub(crate) fn is_in_place(&self, file: &dyn RandomAccessFile) -> Result<bool> {
        match self.fs.metadata(file.path()) {
            Ok(found) => Ok(found.id == file.metadata()?.id),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Forgets the files that nothing has open.
    pub(crate) fn forget_closed(&self) {
        self.open.lock().retain(|_, file| file.strong_count() > 0);
    }

    fn opened(&self, path: &Path) -> Option<Arc<dyn RandomAccessFile>> {
        self.open.lock().get(path).and_then(Weak::upgrade)
    }

    /// The names of the tables and blob files that are open.
    pub(crate) fn open_paths(&self) -> HashSet<PathBuf> {
        let open = self.open.lock();
        let alive = open.iter().filter(|(_, file)| file.strong_count() > 0);
        alive.map(|(path, _)| path.clone()).collect()
    }

    fn open_shared(&self, path: &Path, io: IoMode) -> Result<Arc<dyn RandomAccessFile>> {
        open_shared(&*self.fs, &*self.clock, path, io)
    }
}

impl FileSystemAround for FollowedFiles {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let io = match mode {
            OpenMode::RandomAccess(io) if is_kept(path) => io,
            _ => return mode.open(&*self.fs, path),
        };
        if let Some(file) = self.opened(path) {
            return Ok(file.into());
        }
        let file = self.open_shared(path, io)?;
        let mut open = self.open.lock();
        // Another thread may have been faster: all readers have one.
        if let Some(other) = open.get(path).and_then(Weak::upgrade) {
            return Ok(other.into());
        }
        open.insert(path.to_path_buf(), Arc::downgrade(&file));
        Ok(file.into())
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        let mut names = self.fs.list(directory)?;
        let open = self.open.lock();
        let kept = open
            .iter()
            .filter(|(path, file)| file.strong_count() > 0 && path.parent() == Some(directory));
        names.extend(kept.filter_map(|(path, _)| Some(path.file_name()?.to_str()?.to_string())));
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        match self.opened(path) {
            Some(file) => file.metadata(),
            None => self.fs.metadata(path),
        }
    }
}

/// Opens a file for reading, and locks it against changes in place.
///
/// # Errors
/// `IoError`; `TryAgain` if another process keeps changing it.
pub(super) fn open_shared(
    fs: &dyn FileSystem,
    clock: &dyn Clock,
    path: &Path,
    io: IoMode,
) -> Result<Arc<dyn RandomAccessFile>> {
    let file = fs.open_random_access(path, io)?;
    for _ in 0..ATTEMPTS {
        if file.share()? {
            return Ok(file);
        }
        clock.sleep(PAUSE);
    }
    let message = "another process keeps changing this file; try again";
    Err(Error::new(Code::TryAgain, message).at(path))
}

/// Whether it never changes under its name, but for holes and its growth.
pub(super) fn is_kept(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    matches!(name.and_then(FileKind::parse), Some(FileKind::Table(_) | FileKind::Blob(_)))
}

#[cfg(test)]
mod tests;
