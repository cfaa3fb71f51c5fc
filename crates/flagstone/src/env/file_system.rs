//! Files and directories: one method to open each kind of file, and operations on names.

use std::path::Path;
use std::sync::Arc;

use super::{
    IoMode, LogFile, Metadata, PublishedFile, RandomAccessFile, ReclaimableFile, WritableFile,
    read_until_end,
};
use crate::base::{Error, Result, Temperature};

/// Files and directories.
pub trait FileSystem: Send + Sync {
    /// Opens an existing file for reading.
    ///
    /// # Errors
    /// `IoError`, with subcode `PathNotFound` if it (or its directory) is missing.
    fn open_random_access(&self, path: &Path, io: IoMode) -> Result<Arc<dyn RandomAccessFile>>;

    /// Creates a file to be written. An existing one is emptied.
    ///
    /// # Errors
    /// `IoError`, with subcode `PathNotFound` if its directory is missing.
    fn create_writable(&self, path: &Path, io: IoMode) -> Result<Arc<dyn WritableFile>>;

    /// Opens an existing file to be written, through the system's cache. Its bytes are kept, e.g.
    /// so that a torn tail can be cut off.
    ///
    /// # Errors
    /// As [`FileSystem::open_random_access`].
    fn reopen_writable(&self, path: &Path) -> Result<Arc<dyn WritableFile>>;

    /// Creates a log. An existing file is emptied.
    ///
    /// # Errors
    /// As [`FileSystem::create_writable`].
    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>>;

    /// Opens an existing file to write a log over it. Its bytes are kept until then.
    ///
    /// # Errors
    /// As [`FileSystem::open_random_access`].
    fn reopen_log(&self, path: &Path) -> Result<Arc<dyn LogFile>>;

    /// Opens an existing file whose space is to be used otherwise. Its bytes are kept.
    ///
    /// # Errors
    /// As [`FileSystem::open_random_access`].
    fn open_reclaimable(&self, path: &Path) -> Result<Arc<dyn ReclaimableFile>>;

    /// Hints how often the file at `path` is expected to be read, before it is created or opened;
    /// for tables of which that is known. A file system of several devices may choose one by it.
    fn advise(&self, _path: &Path, _temperature: Temperature) {}

    /// Renames a file, replacing `target`; durable after [`FileSystem::sync_directory`].
    ///
    /// # Errors
    /// `IoError`.
    fn rename(&self, source: &Path, target: &Path) -> Result<()>;

    /// Gives a file a second name.
    ///
    /// # Errors
    /// `IoError`, also when the file system has no links.
    fn link(&self, source: &Path, target: &Path) -> Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// `IoError`.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Makes a directory and its parents; one that exists is fine.
    ///
    /// # Errors
    /// `IoError`.
    fn create_directory(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `IoError`.
    fn remove_directory(&self, path: &Path) -> Result<()>;

    /// The names in a directory, in no particular order.
    ///
    /// # Errors
    /// `IoError`.
    fn list(&self, directory: &Path) -> Result<Vec<String>>;

    /// Makes the names in a directory durable. The engine calls it by way of
    /// [`Names`](super::Names) alone.
    ///
    /// # Errors
    /// `IoError`.
    fn sync_directory(&self, directory: &Path) -> Result<()>;

    /// Size and kind.
    ///
    /// # Errors
    /// `IoError`, with subcode `PathNotFound` if there is no such thing.
    fn metadata(&self, path: &Path) -> Result<Metadata>;

    /// Bytes that may still be written below a directory; `None` where nobody knows.
    ///
    /// # Errors
    /// `IoError`.
    fn free_space(&self, _directory: &Path) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Whether an obsolete log may be written over, as [`FileSystem::reopen_log`] does. Otherwise
    /// it is removed.
    fn may_write_over(&self) -> bool {
        true
    }

    /// Lets this process have as many files open as the system allows it, and says how many that
    /// are; `None` where there is no limit, or none is known.
    fn raise_open_files(&self) -> Option<u64> {
        None
    }

    /// Begins a file in which this process says something to others, in the place of one of that
    /// name; `None` where no other process could read it.
    ///
    /// # Errors
    /// `IoError`.
    fn publish(&self, _path: &Path) -> Result<Option<Box<dyn PublishedFile>>> {
        Ok(None)
    }

    /// Takes the lock that keeps other processes (and other handles of this one) out; released on
    /// drop.
    ///
    /// # Errors
    /// `Busy` with subcode `LockHeld`, or `IoError`.
    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>>;

    /// Keeps others out who would write, as [`FileSystem::lock`] does, where the file can only be
    /// read: the lock's file must be there, and is not changed.
    ///
    /// # Errors
    /// As [`FileSystem::lock`].
    fn lock_for_reading(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.lock(path)
    }
}

/// A held lock; dropping it releases it.
pub trait FileLock: Send + Sync {}

/// Reads a whole file of at most `limit` bytes.
///
/// # Errors
/// `IoError`, or `Corruption` if the file is larger.
pub fn read_file(fs: &dyn FileSystem, path: &Path, limit: u64) -> Result<Vec<u8>> {
    let file = fs.open_random_access(path, IoMode::Buffered)?;
    let size = file.size()?;
    if size > limit {
        return Err(Error::corruption(format!("file has {size} bytes, more than {limit}")).at(path));
    }
    let mut bytes = vec![0; size as usize];
    let read = read_until_end(&*file, 0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// [`FileSystem::advise`], if the temperature is known.
pub(crate) fn hint_temperature(fs: &dyn FileSystem, path: &Path, temperature: Temperature) {
    if temperature.is_known() {
        fs.advise(path, temperature);
    }
}

/// Removes a file that may be missing.
///
/// # Errors
/// `IoError`.
pub(crate) fn remove_if_there(fs: &dyn FileSystem, path: &Path) -> Result<()> {
    match fs.remove(path) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
