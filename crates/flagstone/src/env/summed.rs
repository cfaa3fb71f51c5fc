//! A file whose checksum is computed as it is written.
//!
//! Bytes count as they are written from front to back. Where they are written otherwise, as with
//! direct I/O, which writes the last block again, the file is read once more at its end.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::{Advice, RandomAccessFile, WritableFile};
use crate::base::sync::Mutex;
use crate::base::{Error, FileChecksum, Result, RunningFileChecksum};

/// Files are read for their checksums in pieces of this many bytes.
const PIECE: u64 = 1 << 20;

/// Reads the first `size` bytes of a file for their checksum.
///
/// # Errors
/// As [`read_in_pieces`].
pub fn read_for_checksum(
    file: &dyn RandomAccessFile,
    size: u64,
    mut running: RunningFileChecksum,
) -> Result<FileChecksum> {
    read_in_pieces(file, size, |_| {}, |bytes| running.update(bytes))?;
    Ok(running.finish())
}

/// Hands the first `size` bytes of a file to `take`, piece by piece. `before_read` is told how many
/// bytes are about to be read.
///
/// # Errors
/// `Corruption` if the file is shorter; `IoError`.
pub fn read_in_pieces(
    file: &dyn RandomAccessFile,
    size: u64,
    before_read: impl Fn(u64),
    mut take: impl FnMut(&[u8]),
) -> Result<()> {
    file.advise(Advice::Sequential);
    let mut buffer = vec![0; PIECE.min(size) as usize];
    let mut offset = 0;
    while offset < size {
        let wanted = (buffer.len() as u64).min(size - offset) as usize;
        before_read(wanted as u64);
        let read = file.read_at(offset, &mut buffer[..wanted])?;
        if read == 0 {
            let message = format!("the file ends before its {size} bytes");
            return Err(Error::corruption(message).at(file.path()).at_offset(offset));
        }
        take(&buffer[..read]);
        offset += read as u64;
    }
    Ok(())
}

/// Computes the checksum of the file that it is around.
pub struct SummedFile {
    inner: Arc<dyn WritableFile>,
    sum: Mutex<Sum>,
}

struct Sum {
    /// `None` once bytes were written out of order.
    running: Option<RunningFileChecksum>,
    /// How many bytes it has.
    size: u64,
}

impl SummedFile {
    /// Around a file that is empty.
    pub fn new(inner: Arc<dyn WritableFile>, running: RunningFileChecksum) -> Self {
        Self { inner, sum: Mutex::new(Sum { running: Some(running), size: 0 }) }
    }

    /// The checksum of all that was written, if that is `size` bytes, in order; asked for once.
    pub fn take_checksum(&self, size: u64) -> Option<FileChecksum> {
        let mut sum = self.sum.lock();
        let is_whole = sum.size == size;
        sum.running.take().filter(|_| is_whole).map(RunningFileChecksum::finish)
    }

    fn add(&self, offset: u64, parts: &[&[u8]]) {
        let mut sum = self.sum.lock();
        if sum.size != offset {
            sum.running = None;
        }
        for part in parts {
            sum.size += part.len() as u64;
            if let Some(running) = &mut sum.running {
                running.update(part);
            }
        }
    }
}

impl RandomAccessFile for SummedFile {
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

impl WritableFile for SummedFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.inner.write_at(offset, data)?;
        self.add(offset, &[data]);
        Ok(())
    }

    fn write_vectored_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        self.inner.write_vectored_at(offset, parts)?;
        self.add(offset, parts);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
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

#[cfg(test)]
mod tests;
