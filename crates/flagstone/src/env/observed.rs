//! Files whose reads and writes are reported one by one.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{AnyFile, Clock, FileAround, FileSystem, FileSystemAround, OpenMode};
use crate::base::{Error, Result};

/// An operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileOperation {
    /// Opening or creating it. Reported only if it fails.
    Open,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Syncing.
    Sync,
    /// Asking the system to begin writing a range to the device.
    RangeSync,
    /// Setting the size.
    Truncate,
    /// Closing.
    Close,
}

/// An operation on a file that has ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileOperationInfo {
    /// What was done.
    pub operation: FileOperation,
    /// Path of the file.
    pub path: PathBuf,
    /// Offset of the first byte; for a truncation the new size, 0 where no bytes are concerned.
    pub offset: u64,
    /// Bytes that were read, or were to be written; 0 where no bytes are concerned.
    pub length: usize,
    /// When it began, in seconds since 1970.
    pub started_at: u64,
    /// Microseconds that it took.
    pub micros: u64,
    /// Why it failed.
    pub error: Option<Error>,
}

/// Is told of each operation, in the thread that did it, whatever locks that holds. It must not
/// panic.
pub(crate) trait FileObserver: Send + Sync {
    fn observe(&self, operation: &FileOperationInfo);
}

/// A file system around another one, all of whose files are observed.
pub(crate) struct ObservedFiles {
    fs: Arc<dyn FileSystem>,
    watch: Watch,
}

#[derive(Clone)]
struct Watch {
    clock: Arc<dyn Clock>,
    observer: Arc<dyn FileObserver>,
}

/// When an operation began: in seconds since 1970, and by the monotonic clock.
type Begun = (u64, u64);

impl Watch {
    fn begin(&self) -> Begun {
        (self.clock.unix_seconds(), self.clock.now_us())
    }

    /// Reports what began then.
    fn report<T>(
        &self,
        operation: FileOperation,
        path: &Path,
        (offset, length): (u64, usize),
        (started_at, began_us): Begun,
        outcome: &Result<T>,
    ) {
        self.observer.observe(&FileOperationInfo {
            operation,
            path: path.to_path_buf(),
            offset,
            length,
            started_at,
            micros: self.clock.now_us().saturating_sub(began_us),
            error: outcome.as_ref().err().cloned(),
        });
    }
}

impl ObservedFiles {
    pub(crate) fn new(
        fs: Arc<dyn FileSystem>,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn FileObserver>,
    ) -> Self {
        Self { fs, watch: Watch { clock, observer } }
    }
}

impl FileSystemAround for ObservedFiles {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let begun = self.watch.begin();
        let opened = mode.open(&*self.fs, path);
        // A file that is looked for and is not there is no failure.
        if opened.as_ref().is_err_and(|error| !error.is_not_found()) {
            self.watch.report(FileOperation::Open, path, (0, 0), begun, &opened);
        }
        Ok(AnyFile::around(Observed { file: opened?, watch: self.watch.clone() }))
    }
}

/// A file of which each operation is reported.
struct Observed {
    file: AnyFile,
    watch: Watch,
}

impl Observed {
    fn watched<T>(
        &self,
        operation: FileOperation,
        extent: (u64, usize),
        work: impl FnOnce(&AnyFile) -> Result<T>,
    ) -> Result<T> {
        let begun = self.watch.begin();
        let outcome = work(&self.file);
        self.watch.report(operation, self.file.path(), extent, begun, &outcome);
        outcome
    }
}

impl FileAround for Observed {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let begun = self.watch.begin();
        let outcome = self.file.read_at(offset, buffer);
        let length = outcome.as_ref().map_or(buffer.len(), |read| *read);
        self.watch.report(FileOperation::Read, self.file.path(), (offset, length), begun, &outcome);
        outcome
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.watched(FileOperation::Write, (offset, data.len()), |file| file.write_at(offset, data))
    }

    fn sync(&self) -> Result<()> {
        self.watched(FileOperation::Sync, (0, 0), AnyFile::sync)
    }

    fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let extent = (range.start, length);
        self.watched(FileOperation::RangeSync, extent, |file| file.range_sync(range, strict))
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.watched(FileOperation::Truncate, (length, 0), |file| file.truncate(length))
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        let begun = self.watch.begin();
        self.watch.report(FileOperation::Close, self.file.path(), (0, 0), begun, &Ok(()));
    }
}

#[cfg(test)]
mod tests;
