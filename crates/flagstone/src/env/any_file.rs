//! A file of any kind, and the mode that opens it, for file systems that treat all kinds alike.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::{
    Advice, FileAround, FileSystem, IoMode, LogFile, Mapping, Metadata, RandomAccessFile,
    ReclaimableFile, WritableFile,
};
use crate::base::{Error, Result, Temperature};

/// Which verb of a [`FileSystem`] opens a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// [`FileSystem::open_random_access`].
    RandomAccess(IoMode),
    /// [`FileSystem::create_writable`].
    CreateWritable(IoMode),
    /// [`FileSystem::reopen_writable`].
    ReopenWritable,
    /// [`FileSystem::create_log`].
    CreateLog,
    /// [`FileSystem::reopen_log`].
    ReopenLog,
    /// [`FileSystem::open_reclaimable`].
    Reclaimable,
}

impl OpenMode {
    /// Opens a file by this verb.
    ///
    /// # Errors
    /// As the verb.
    pub fn open(self, fs: &dyn FileSystem, path: &Path) -> Result<AnyFile> {
        Ok(match self {
            Self::RandomAccess(io) => AnyFile::RandomAccess(fs.open_random_access(path, io)?),
            Self::CreateWritable(io) => AnyFile::Writable(fs.create_writable(path, io)?),
            Self::ReopenWritable => AnyFile::Writable(fs.reopen_writable(path)?),
            Self::CreateLog => AnyFile::Log(fs.create_log(path)?),
            Self::ReopenLog => AnyFile::Log(fs.reopen_log(path)?),
            Self::Reclaimable => AnyFile::Reclaimable(fs.open_reclaimable(path)?),
        })
    }

    /// Whether the file is new afterwards.
    pub fn creates(self) -> bool {
        matches!(self, Self::CreateWritable(_) | Self::CreateLog)
    }

    /// Whether the file is only read.
    pub fn only_reads(self) -> bool {
        matches!(self, Self::RandomAccess(_))
    }

    /// Whether the system's cache is left out.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::RandomAccess(IoMode::Direct) | Self::CreateWritable(IoMode::Direct))
    }
}

/// An open file of any kind.
#[derive(Clone)]
pub enum AnyFile {
    /// A file that is read.
    RandomAccess(Arc<dyn RandomAccessFile>),
    /// A file that is written.
    Writable(Arc<dyn WritableFile>),
    /// A log.
    Log(Arc<dyn LogFile>),
    /// A file whose space is to be used otherwise.
    Reclaimable(Arc<dyn ReclaimableFile>),
}

impl AnyFile {
    /// `file` as a file of the kind that it is around.
    pub fn around<F: FileAround + 'static>(file: F) -> Self {
        match file.inner() {
            Self::RandomAccess(_) => Self::RandomAccess(Arc::new(file)),
            Self::Writable(_) => Self::Writable(Arc::new(file)),
            Self::Log(_) => Self::Log(Arc::new(file)),
            Self::Reclaimable(_) => Self::Reclaimable(Arc::new(file)),
        }
    }

    /// The file, to be read.
    pub fn into_random_access(self) -> Arc<dyn RandomAccessFile> {
        match self {
            Self::RandomAccess(file) => file,
            Self::Writable(file) => file,
            Self::Log(file) => file,
            Self::Reclaimable(file) => file,
        }
    }

    /// The file, to be written.
    ///
    /// # Errors
    /// `NotSupported` if it was opened for something else.
    pub fn into_writable(self) -> Result<Arc<dyn WritableFile>> {
        match self {
            Self::Writable(file) => Ok(file),
            Self::Log(file) => Ok(file),
            other => Err(other.refusal("writing")),
        }
    }

    /// The file as a log.
    ///
    /// # Errors
    /// `NotSupported` if it was opened for something else.
    pub fn into_log(self) -> Result<Arc<dyn LogFile>> {
        match self {
            Self::Log(file) => Ok(file),
            other => Err(other.refusal("a log")),
        }
    }

    /// The file, so that its space can be used otherwise.
    ///
    /// # Errors
    /// `NotSupported` if it was opened for something else.
    pub fn into_reclaimable(self) -> Result<Arc<dyn ReclaimableFile>> {
        match self {
            Self::Reclaimable(file) => Ok(file),
            other => Err(other.refusal("use of its space")),
        }
    }

    fn refusal(&self, what: &str) -> Error {
        Error::not_supported(format!("the file was not opened for {what}")).at(self.path())
    }

    fn read(&self) -> &dyn RandomAccessFile {
        match self {
            Self::RandomAccess(file) => &**file,
            Self::Writable(file) => &**file,
            Self::Log(file) => &**file,
            Self::Reclaimable(file) => &**file,
        }
    }

    fn written(&self) -> Result<&dyn WritableFile> {
        match self {
            Self::Writable(file) => Ok(&**file),
            Self::Log(file) => Ok(&**file),
            _ => Err(self.refusal("writing")),
        }
    }

    fn reclaimed(&self) -> Result<&dyn ReclaimableFile> {
        match self {
            Self::Reclaimable(file) => Ok(&**file),
            _ => Err(self.refusal("use of its space")),
        }
    }
}

/// The calls of all kinds. Those that the file's kind does not have fail with `NotSupported`.
#[expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "each stands for the call of the same name"
)]
impl AnyFile {
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.read().read_at(offset, buffer)
    }

    pub fn size(&self) -> Result<u64> {
        self.read().size()
    }

    pub fn metadata(&self) -> Result<Metadata> {
        self.read().metadata()
    }

    pub fn is_unwritten(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.read().is_unwritten(offset, bytes)
    }

    pub fn share(&self) -> Result<bool> {
        self.read().share()
    }

    pub fn path(&self) -> &Path {
        self.read().path()
    }

    pub fn is_direct(&self) -> bool {
        self.read().is_direct()
    }

    pub fn temperature(&self) -> Temperature {
        self.read().temperature()
    }

    pub fn advise(&self, advice: Advice) {
        self.read().advise(advice);
    }

    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.written()?.write_at(offset, data)
    }

    pub fn write_handed(&self, offset: u64, data: &[u8], crc32c: u32) -> Result<()> {
        self.written()?.write_handed(offset, data, crc32c)
    }

    pub fn sync(&self) -> Result<()> {
        self.written()?.sync()
    }

    pub fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        self.written()?.range_sync(range, strict)
    }

    pub fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        self.written()?.allocate(length, keep_size)
    }

    pub fn truncate(&self, length: u64) -> Result<()> {
        self.written()?.truncate(length)
    }

    pub fn is_mappable(&self) -> bool {
        matches!(self, Self::Log(file) if file.is_mappable())
    }

    pub fn map(&self, offset: u64, length: usize) -> Result<Option<Box<dyn Mapping>>> {
        match self {
            Self::Log(file) => file.map(offset, length),
            _ => Err(self.refusal("a log")),
        }
    }

    pub fn claim(&self) -> Result<bool> {
        self.reclaimed()?.claim()
    }

    pub fn punch_hole(&self, range: Range<u64>) -> Result<bool> {
        self.reclaimed()?.punch_hole(range)
    }
}

impl From<Arc<dyn RandomAccessFile>> for AnyFile {
    fn from(file: Arc<dyn RandomAccessFile>) -> Self {
        Self::RandomAccess(file)
    }
}

impl From<Arc<dyn WritableFile>> for AnyFile {
    fn from(file: Arc<dyn WritableFile>) -> Self {
        Self::Writable(file)
    }
}

impl From<Arc<dyn LogFile>> for AnyFile {
    fn from(file: Arc<dyn LogFile>) -> Self {
        Self::Log(file)
    }
}

impl From<Arc<dyn ReclaimableFile>> for AnyFile {
    fn from(file: Arc<dyn ReclaimableFile>) -> Self {
        Self::Reclaimable(file)
    }
}
