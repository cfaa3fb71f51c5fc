//! Memory-mapped files of the operating system.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::{Advice, MmapMut, MmapOptions, MmapRaw};

use super::{Mapping, Metadata, RandomAccessFile};
use crate::base::perf::{self, IoMetric};
use crate::base::{Error, Result};

/// Numbers by which the kernel tells file systems apart (statfs(2)).
const EXT: u64 = 0xEF53;
const XFS: u64 = 0x5846_5342;
const TMPFS: u64 = 0x0102_1994;

/// Only file systems are taken on which allocated space can be written to for sure: one that copies
/// on write needs new space each time, one in the network may lose its server, and both would end
/// the process with SIGBUS.
pub(super) fn is_mappable(file: &fs::File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|fs| matches!(fs.f_type as u64, EXT | XFS | TMPFS))
}

/// Maps a part of `file`; `None` if the file is too short, because its file system cannot allocate.
pub(super) fn map(
    file: &fs::File,
    path: &Path,
    offset: u64,
    length: usize,
) -> Result<Option<Box<dyn Mapping>>> {
    let failed = |error: std::io::Error| Error::io("map", path, error).at_offset(offset);
    if file.metadata().map_err(failed)?.len() < offset + length as u64 {
        return Ok(None);
    }
    // SAFETY: only the bytes of a WAL or a blob file that its one writer has reserved are mapped,
    // behind what has been written; LOCK keeps other processes from the directory. Nothing reads
    // through the mapping, and the holders of mappings only copy bytes into them, of which each
    // byte has one place, so no reference sees them change.
    #[expect(unsafe_code, reason = "the one place where files are mapped")]
    let bytes = unsafe { MmapOptions::new().offset(offset).len(length).map_mut(file) };
    let bytes = bytes.map_err(failed)?;
    // Fetched page by page: of pages that the cache keeps as one, it writes back all when one was
    // written to. What the kernel does not know of this, it does as it likes.
    let _ = bytes.advise(Advice::Random);
    Ok(Some(Box::new(OsMapping { bytes, path: path.to_path_buf() })))
}

struct OsMapping {
    bytes: MmapMut,
    path: PathBuf,
}

impl Mapping for OsMapping {
    #[inline]
    fn write(&mut self, at: usize, data: &[u8]) {
        perf::count(IoMetric::BytesWritten, data.len() as u64);
        self.bytes[at..at + data.len()].copy_from_slice(data);
    }

    fn populate(&mut self, range: Range<usize>) -> Result<()> {
        match self.bytes.advise_range(Advice::PopulateWrite, range.start, range.len()) {
            // Before Linux 5.14. The pages come one by one, when they are written to.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                Ok(())
            }
            outcome => outcome.map_err(|error| Error::io("fetch pages of", &self.path, error)),
        }
    }
}

/// A complete file to be read through a mapping of all its bytes: `opened` itself if it is empty,
/// or the system does not map it.
pub(super) fn mapped(
    file: &fs::File,
    opened: Arc<dyn RandomAccessFile>,
) -> Arc<dyn RandomAccessFile> {
    let Ok(bytes) = MmapOptions::new().map_raw_read_only(file) else { return opened };
    // The engine reads blocks here and there, and asks for what it reads ahead.
    let _ = bytes.advise(Advice::Random);
    Arc::new(MappedFile { bytes, opened })
}

struct MappedFile {
    bytes: MmapRaw,
    opened: Arc<dyn RandomAccessFile>,
}

impl MappedFile {
    /// Fills `buffer` from `offset` on, as far as the file goes; how many bytes that were.
    fn copy_to(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let Ok(start) = usize::try_from(offset) else { return 0 };
        let count = buffer.len().min(self.bytes.len().saturating_sub(start));
        if count == 0 {
            return 0;
        }
        // SAFETY: `start..start + count` lies within the mapping, which lives as long as `self`,
        // and `buffer`, which is borrowed mutably, does not overlap it. No reference to mapped
        // bytes is ever made: the file's writer is done with it, and if another process changes
        // the file all the same (holes of a blob file become zeros so), the copy has old bytes or
        // new ones, which checksums tell. A file that is cut off ends the process by a signal, as
        // the option says that asks for mappings; that reads no other memory.
        #[expect(unsafe_code, reason = "the one place where mapped files are read")]
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.bytes.as_ptr().add(start),
                buffer.as_mut_ptr(),
                count,
            );
        }
        count
    }
}

impl RandomAccessFile for MappedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        Ok(self.copy_to(offset, buffer))
    }

    fn size(&self) -> Result<u64> {
        self.opened.size()
    }

    fn path(&self) -> &Path {
        self.opened.path()
    }

    fn metadata(&self) -> Result<Metadata> {
        self.opened.metadata()
    }

    fn share(&self) -> Result<bool> {
        self.opened.share()
    }

    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.opened.descriptor()
    }

    fn advise(&self, advice: super::Advice) {
        self.opened.advise(advice);
    }
}
