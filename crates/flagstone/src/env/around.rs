//! Files and file systems around others: a fake that changes a few calls writes only those.
//!
//! A fake is around files of every kind: [`AnyFile::around`] gives it the kind of the file that it
//! is around. Where calls are made on such a type itself, the trait is implemented by its path and
//! not imported: with the trait of the file in scope as well, a call would have two meanings.
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use flagstone::base::Result;
//! use flagstone::env::{AnyFile, FileAround, FileSystem, FileSystemAround, OpenMode};
//!
//! /// Counts the bytes that are written to a file.
//! struct Counted(AnyFile, Arc<AtomicU64>);
//!
//! impl FileAround for Counted {
//!     fn inner(&self) -> &AnyFile {
//!         &self.0
//!     }
//!
//!     fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
//!         self.1.fetch_add(data.len() as u64, Ordering::Relaxed);
//!         self.0.write_at(offset, data)
//!     }
//! }
//!
//! /// Counts the bytes that are written to all files.
//! struct Counting(Arc<dyn FileSystem>, Arc<AtomicU64>);
//!
//! impl FileSystemAround for Counting {
//!     fn inner(&self) -> &dyn FileSystem {
//!         &*self.0
//!     }
//!
//!     fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
//!         Ok(AnyFile::around(Counted(mode.open(&*self.0, path)?, self.1.clone())))
//!     }
//! }
//! ```

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::{
    Advice, AnyFile, FileLock, FileSystem, IoMode, LogFile, Mapping, Metadata, OpenMode,
    PublishedFile, RandomAccessFile, ReclaimableFile, WritableFile,
};
use crate::base::{Result, Temperature};

/// A file around another one, to which all calls go that it does not answer itself.
///
/// No read or write passes it by: those of several buffers come to it one by one, and it has no
/// mappings unless it says so.
#[expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "each stands for the call of the same name"
)]
pub trait FileAround: Send + Sync {
    /// The file that it is around.
    fn inner(&self) -> &AnyFile;

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.inner().read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.inner().write_at(offset, data)
    }

    /// Goes by [`FileAround::write_at`], without the checksum, so that no write passes it by.
    fn write_handed(&self, offset: u64, data: &[u8], _crc32c: u32) -> Result<()> {
        self.write_at(offset, data)
    }

    fn sync(&self) -> Result<()> {
        self.inner().sync()
    }

    fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        self.inner().range_sync(range, strict)
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        self.inner().allocate(length, keep_size)
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.inner().truncate(length)
    }

    fn punch_hole(&self, range: Range<u64>) -> Result<bool> {
        self.inner().punch_hole(range)
    }

    fn size(&self) -> Result<u64> {
        self.inner().size()
    }

    fn metadata(&self) -> Result<Metadata> {
        self.inner().metadata()
    }

    fn is_unwritten(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.inner().is_unwritten(offset, bytes)
    }

    fn share(&self) -> Result<bool> {
        self.inner().share()
    }

    fn claim(&self) -> Result<bool> {
        self.inner().claim()
    }

    fn temperature(&self) -> Temperature {
        self.inner().temperature()
    }

    fn is_mappable(&self) -> bool {
        false
    }

    fn map(&self, _offset: u64, _length: usize) -> Result<Option<Box<dyn Mapping>>> {
        Ok(None)
    }

    fn advise(&self, advice: Advice) {
        self.inner().advise(advice);
    }
}

impl<F: FileAround> RandomAccessFile for F {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        FileAround::read_at(self, offset, buffer)
    }

    fn size(&self) -> Result<u64> {
        FileAround::size(self)
    }

    fn metadata(&self) -> Result<Metadata> {
        FileAround::metadata(self)
    }

    fn is_unwritten(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        FileAround::is_unwritten(self, offset, bytes)
    }

    fn share(&self) -> Result<bool> {
        FileAround::share(self)
    }

    fn path(&self) -> &Path {
        self.inner().path()
    }

    fn is_direct(&self) -> bool {
        self.inner().is_direct()
    }

    fn temperature(&self) -> Temperature {
        FileAround::temperature(self)
    }

    fn advise(&self, advice: Advice) {
        FileAround::advise(self, advice);
    }
}

impl<F: FileAround> WritableFile for F {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        FileAround::write_at(self, offset, data)
    }

    fn write_handed(&self, offset: u64, data: &[u8], crc32c: u32) -> Result<()> {
        FileAround::write_handed(self, offset, data, crc32c)
    }

    fn sync(&self) -> Result<()> {
        FileAround::sync(self)
    }

    fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        FileAround::range_sync(self, range, strict)
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        FileAround::allocate(self, length, keep_size)
    }

    fn truncate(&self, length: u64) -> Result<()> {
        FileAround::truncate(self, length)
    }
}

impl<F: FileAround> LogFile for F {
    fn is_mappable(&self) -> bool {
        FileAround::is_mappable(self)
    }

    fn map(&self, offset: u64, length: usize) -> Result<Option<Box<dyn Mapping>>> {
        FileAround::map(self, offset, length)
    }
}

impl<F: FileAround> ReclaimableFile for F {
    fn claim(&self) -> Result<bool> {
        FileAround::claim(self)
    }

    fn punch_hole(&self, range: Range<u64>) -> Result<bool> {
        FileAround::punch_hole(self, range)
    }
}

/// A [`FileSystem`] around another one, to which all calls go that it does not answer itself.
#[expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "each stands for the call of the same name"
)]
pub trait FileSystemAround: Send + Sync {
    /// The file system that it is around.
    fn inner(&self) -> &dyn FileSystem;

    /// Opens a file by any of the verbs. It must be of the verb's kind, which [`AnyFile::around`]
    /// sees to.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        mode.open(self.inner(), path)
    }

    fn advise(&self, path: &Path, temperature: Temperature) {
        self.inner().advise(path, temperature);
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        self.inner().rename(source, target)
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        self.inner().link(source, target)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner().remove(path)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.inner().create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.inner().remove_directory(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.inner().list(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        self.inner().sync_directory(directory)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.inner().metadata(path)
    }

    fn free_space(&self, directory: &Path) -> Result<Option<u64>> {
        self.inner().free_space(directory)
    }

    fn may_write_over(&self) -> bool {
        self.inner().may_write_over()
    }

    fn raise_open_files(&self) -> Option<u64> {
        self.inner().raise_open_files()
    }

    fn publish(&self, path: &Path) -> Result<Option<Box<dyn PublishedFile>>> {
        self.inner().publish(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.inner().lock(path)
    }

    fn lock_for_reading(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.inner().lock_for_reading(path)
    }
}

impl<F: FileSystemAround> FileSystem for F {
    fn open_random_access(&self, path: &Path, io: IoMode) -> Result<Arc<dyn RandomAccessFile>> {
        let mode = OpenMode::RandomAccess(io);
        FileSystemAround::open(self, path, mode).map(AnyFile::into_random_access)
    }

    fn create_writable(&self, path: &Path, io: IoMode) -> Result<Arc<dyn WritableFile>> {
        FileSystemAround::open(self, path, OpenMode::CreateWritable(io))?.into_writable()
    }

    fn reopen_writable(&self, path: &Path) -> Result<Arc<dyn WritableFile>> {
        FileSystemAround::open(self, path, OpenMode::ReopenWritable)?.into_writable()
    }

    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        FileSystemAround::open(self, path, OpenMode::CreateLog)?.into_log()
    }

    fn reopen_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        FileSystemAround::open(self, path, OpenMode::ReopenLog)?.into_log()
    }

    fn open_reclaimable(&self, path: &Path) -> Result<Arc<dyn ReclaimableFile>> {
        FileSystemAround::open(self, path, OpenMode::Reclaimable)?.into_reclaimable()
    }

    fn advise(&self, path: &Path, temperature: Temperature) {
        FileSystemAround::advise(self, path, temperature);
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        FileSystemAround::rename(self, source, target)
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        FileSystemAround::link(self, source, target)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        FileSystemAround::remove(self, path)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        FileSystemAround::create_directory(self, path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        FileSystemAround::remove_directory(self, path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        FileSystemAround::list(self, directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        FileSystemAround::sync_directory(self, directory)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        FileSystemAround::metadata(self, path)
    }

    fn free_space(&self, directory: &Path) -> Result<Option<u64>> {
        FileSystemAround::free_space(self, directory)
    }

    fn may_write_over(&self) -> bool {
        FileSystemAround::may_write_over(self)
    }

    fn raise_open_files(&self) -> Option<u64> {
        FileSystemAround::raise_open_files(self)
    }

    fn publish(&self, path: &Path) -> Result<Option<Box<dyn PublishedFile>>> {
        FileSystemAround::publish(self, path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        FileSystemAround::lock(self, path)
    }

    fn lock_for_reading(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        FileSystemAround::lock_for_reading(self, path)
    }
}
