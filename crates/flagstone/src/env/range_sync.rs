//! A file that is written back while it grows, so that the sync at its end has little left to do
//! (RocksDB's `bytes_per_sync`).
//!
//! Each time a given number of bytes has been written, the system is asked to start writing them to
//! the device. The last MiB is left alone, because its pages may still be written to, and some file
//! systems also write the neighbours of a range.
//!
//! **Invariant.** Nothing is durable before [`WritableFile::sync`] succeeds, and after a failed
//! range sync it fails. The system may report a failure only once, and the range sync consumed that
//! report.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::{Advice, RandomAccessFile, WritableFile};
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::base::{Error, Result};

/// Bytes at the end of what is written that are left alone.
const LEFT_ALONE: u64 = 1 << 20;

/// Ranges begin and end with a page.
const PAGE: u64 = 4096;

/// How a file is written back while it grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeSyncs {
    every: u64,
    strict: bool,
}

impl RangeSyncs {
    /// Each time that `every` bytes are written; `strict` is to wait then until those before are on
    /// the device. `None` for 0.
    pub fn new(every: u64, strict: bool) -> Option<Self> {
        (every > 0).then_some(Self { every, strict })
    }
}

/// Asks for range syncs of the file that it is around.
pub struct RangeSyncedFile {
    inner: Arc<dyn WritableFile>,
    syncs: RangeSyncs,
    /// Whether each write counts, and not what [`RangeSyncedFile::note_written`] is told.
    follows_writes: bool,
    /// Up to where the system was asked.
    upto: AtomicU64,
    /// The first failure. Held while the system is asked, and if that waits, while the file is
    /// synced.
    failed: Mutex<Option<Error>>,
}

impl RangeSyncedFile {
    /// Around a file that is written through [`WritableFile`] alone, from front to back.
    pub fn following(inner: Arc<dyn WritableFile>, syncs: RangeSyncs) -> Self {
        Self { follows_writes: true, ..Self::told(inner, syncs) }
    }

    /// Around a file whose writer says how far it has come.
    pub fn told(inner: Arc<dyn WritableFile>, syncs: RangeSyncs) -> Self {
        Self {
            inner,
            syncs,
            follows_writes: false,
            upto: AtomicU64::new(0),
            failed: Mutex::default(),
        }
    }

    /// All before `end` is written: asks the system to write back what has become enough.
    ///
    /// # Errors
    /// `IoError`; what was not synced before must then be taken for lost.
    pub fn note_written(&self, end: u64) -> Result<()> {
        let before = self.upto.load(Ordering::Acquire);
        let upto = end.saturating_sub(LEFT_ALONE) / PAGE * PAGE;
        let is_enough = upto > before && upto - before >= self.syncs.every;
        // Of several threads one asks; for the others it is too early again.
        let elects = || {
            self.upto.compare_exchange(before, upto, Ordering::AcqRel, Ordering::Acquire).is_ok()
        };
        if !is_enough || !elects() {
            return Ok(());
        }
        let mut failed = self.failed.lock();
        let asked = self
            .inner
            .range_sync(before..upto, self.syncs.strict)
            .and_then(|can| if can || !self.syncs.strict { Ok(()) } else { self.inner.sync() });
        asked.inspect_err(|error| {
            failed.get_or_insert_with(|| error.clone());
        })
    }

    fn after_write(&self, end: u64) -> Result<()> {
        if self.follows_writes { self.note_written(end) } else { Ok(()) }
    }
}

impl RandomAccessFile for RangeSyncedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.inner.read_at(offset, buffer)
    }

    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.inner.descriptor()
    }

    fn note_read(&self, place: (u64, usize), since: Instant) {
        self.inner.note_read(place, since);
    }

    fn is_direct(&self) -> bool {
        self.inner.is_direct()
    }

    fn read_block(&self) -> usize {
        self.inner.read_block()
    }

    fn advise(&self, advice: Advice) {
        self.inner.advise(advice);
    }
}

impl WritableFile for RangeSyncedFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.inner.write_at(offset, data)?;
        self.after_write(offset + data.len() as u64)
    }

    fn write_vectored_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        self.inner.write_vectored_at(offset, parts)?;
        self.after_write(offset + parts.iter().map(|part| part.len() as u64).sum::<u64>())
    }

    fn sync(&self) -> Result<()> {
        let failed = self.failed.lock();
        if let Some(error) = &*failed {
            return Err(error.clone());
        }
        // Who waits for the device may take away what this sync would be told.
        let _alone = self.syncs.strict.then_some(failed);
        self.inner.sync()
    }

    fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        self.inner.range_sync(range, strict)
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        self.inner.allocate(length, keep_size)
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.inner.truncate(length)
    }
}

/// The number by which the kernel knows ZFS, which takes such calls and does nothing (statfs(2)).
#[cfg(target_os = "linux")]
const ZFS: u64 = 0x2FC1_2FC1;

/// Asks the system; `false` if it cannot.
#[cfg(target_os = "linux")]
pub(super) fn ask(file: &fs::File, range: Range<u64>, strict: bool) -> io::Result<bool> {
    use std::os::fd::AsRawFd;
    if rustix::fs::fstatfs(file).is_ok_and(|fs| fs.f_type as u64 == ZFS) {
        return Ok(false);
    }
    let (start, flags) = if strict {
        (0, libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE)
    } else {
        (range.start, libc::SYNC_FILE_RANGE_WRITE)
    };
    let length = range.end.saturating_sub(start);
    // SAFETY: no memory is handed over, and the descriptor stays open while the file is borrowed.
    #[expect(unsafe_code, reason = "rustix does not have the call")]
    let answer = unsafe {
        libc::sync_file_range(file.as_raw_fd(), start.cast_signed(), length.cast_signed(), flags)
    };
    if answer == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENOSYS) { Ok(false) } else { Err(error) }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn ask(_file: &fs::File, _range: Range<u64>, _strict: bool) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests;
