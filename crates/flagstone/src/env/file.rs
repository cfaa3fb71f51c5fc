//! Files by kind: what each is opened for, and what it can then do.
//!
//! - A [`RandomAccessFile`] is read: complete tables and blob files, old WALs, a MANIFEST.
//! - A [`WritableFile`] is extended: tables, blob files and the MANIFEST as they are written.
//! - A [`LogFile`] may be mapped: the active WAL.
//! - A [`ReclaimableFile`] is complete, and its space is to be used otherwise: blob files that get
//!   holes, WALs to be written over.
//!
//! [`FileSystem`](super::FileSystem) has a verb to open each kind.
//!
//! Every kind can be read: a value may lie in a blob file that is still being written. So the
//! other three extend [`RandomAccessFile`], which needs three methods and could be implemented by
//! an object store.
//!
//! **Thread safety.** Offsets are the caller's, and the file has no position. Several threads may
//! read, write different ranges and sync at the same time.

use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use super::direct::{AlignedBuffer, DIRECT_BLOCK};
use crate::base::{Error, Result, Temperature};

/// Whether reads and writes go through the system's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoMode {
    /// Through the cache.
    Buffered,
    /// Through the cache, by a mapping of the whole file where the system has mappings: for
    /// complete files that are only read. A read that the device fails, or a file that is cut off
    /// meanwhile, then ends the process (SIGBUS).
    Mapped,
    /// Around the cache. Reads may begin and end anywhere; writes are whole blocks of
    /// [`DIRECT_BLOCK`] bytes, in the file and in memory.
    Direct,
}

impl IoMode {
    /// `Direct` if asked for, otherwise `Buffered`.
    pub fn direct_if(is_direct: bool) -> Self {
        if is_direct { Self::Direct } else { Self::Buffered }
    }

    /// Whether the cache is left out.
    pub fn is_direct(self) -> bool {
        self == Self::Direct
    }
}

/// A file that is read at any offset.
///
/// Only [`read_at`](Self::read_at), [`size`](Self::size) and [`path`](Self::path) must be
/// implemented. The rest are hints, locks and faster ways that an implementation may leave out.
pub trait RandomAccessFile: Send + Sync {
    /// Reads into `buffer` from `offset` until it is full or the file ends. Returns the number of
    /// bytes read. A point read of a block calls it once.
    ///
    /// # Errors
    /// `IoError` naming the file and offset.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// The file's size in bytes.
    ///
    /// # Errors
    /// `IoError`.
    fn size(&self) -> Result<u64>;

    /// The file's path, for messages.
    fn path(&self) -> &Path;

    /// Appends to `buffer` the bytes of the file from `offset` on: `length` of them, or fewer where
    /// the file ends. Returns their number. An implementation may avoid filling `buffer` with zeros
    /// first, which works best if it has room for `length` bytes and no more.
    ///
    /// # Errors
    /// As [`RandomAccessFile::read_at`].
    fn read_onto(&self, offset: u64, length: usize, buffer: &mut Vec<u8>) -> Result<usize> {
        let start = buffer.len();
        buffer.resize(start + length, 0);
        let filled = self.read_at(offset, &mut buffer[start..]);
        buffer.truncate(start + *filled.as_ref().unwrap_or(&0));
        filled
    }

    /// Whether nothing was ever written where `bytes` were read, from `offset` on, since the file
    /// grew there: what a power loss takes of a write. Such bytes are zeros, unless an
    /// implementation changes what it reads.
    ///
    /// # Errors
    /// As [`RandomAccessFile::read_at`].
    fn is_unwritten(&self, _offset: u64, bytes: &[u8]) -> Result<bool> {
        Ok(bytes.iter().all(|byte| *byte == 0))
    }

    /// What is known of the open file, even if its name was removed or taken by another file: at
    /// least its size.
    ///
    /// # Errors
    /// `IoError`.
    fn metadata(&self) -> Result<Metadata> {
        let size = self.size()?;
        Ok(Metadata {
            size,
            is_directory: false,
            modified: None,
            allocated: size,
            block_size: DIRECT_BLOCK as u64,
            links: 1,
            id: None,
        })
    }

    /// Keeps [`ReclaimableFile::claim`] of other handles and processes from succeeding until this
    /// file is closed. Returns `false` while another handle has claimed the file. Where files do
    /// not change in place, or there are no such locks, nothing is done.
    ///
    /// # Errors
    /// `IoError`.
    fn share(&self) -> Result<bool> {
        Ok(true)
    }

    /// The system's descriptor of the file, with which [`read_together`](super::read_together)
    /// hands the kernel many reads at a time. Reads of the descriptor must return what `read_at`
    /// returns. `None` if every read has to go through `read_at`.
    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    /// Bytes of it, from this offset on and so many, were read through
    /// [`RandomAccessFile::descriptor`], and the read was handed over then: for files that count or
    /// record what is read of them. A file around another one passes it on.
    fn note_read(&self, _place: (u64, usize), _since: Instant) {}

    /// Whether it was opened in [`IoMode::Direct`].
    fn is_direct(&self) -> bool {
        false
    }

    /// Reads through [`RandomAccessFile::descriptor`] must begin and end at multiples of this many
    /// bytes.
    fn read_block(&self) -> usize {
        1
    }

    /// Where a file system of several devices has the file, in terms of how often it is expected to
    /// be read; `UNKNOWN` where it cannot say.
    fn temperature(&self) -> Temperature {
        Temperature::UNKNOWN
    }

    /// Tells the system which accesses are coming. Only a hint: it cannot fail, and need not do
    /// anything.
    fn advise(&self, _advice: Advice) {}
}

/// A file that one writer extends from its front to its end.
///
/// The writer says where its end is. It may write a range again, e.g. over zeros that it wrote
/// ahead, or the last block of a file in [`IoMode::Direct`], which it had padded.
pub trait WritableFile: RandomAccessFile {
    /// Writes all of `data` at `offset`, growing the file as needed.
    ///
    /// # Errors
    /// `IoError`, with subcode `NoSpace` on a full device. Any part of the data may have been
    /// written.
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()>;

    /// [`WritableFile::write_at`] with the CRC32C of `data`, by which an implementation can tell
    /// whether the bytes that it has are those that were meant. Called for the kinds of files in
    /// [`ChecksumHandoff`](super::ChecksumHandoff). The default leaves the checksum alone.
    ///
    /// # Errors
    /// As [`WritableFile::write_at`]; `Corruption` if the bytes do not match.
    fn write_handed(&self, offset: u64, data: &[u8], _crc32c: u32) -> Result<()> {
        self.write_at(offset, data)
    }

    /// Makes all completed writes and the size durable (`fdatasync`).
    ///
    /// # Errors
    /// `IoError`. Bytes that were not synced before must then be taken for lost, and the file must
    /// never be synced again.
    fn sync(&self) -> Result<()>;

    /// Sets the file's size. Space behind it is given back.
    ///
    /// # Errors
    /// `IoError`.
    fn truncate(&self, length: u64) -> Result<()>;

    /// Writes `parts` one behind the other from `offset` on, as one write. The default copies them
    /// together first.
    ///
    /// # Errors
    /// As [`WritableFile::write_at`].
    fn write_vectored_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        self.write_at(offset, &parts.concat())
    }

    /// Writes a buffer at `offset`, and returns an empty one to be filled next. An implementation
    /// may return before the bytes are written; if that write fails, the next call of any method
    /// fails.
    ///
    /// # Errors
    /// As [`WritableFile::write_at`].
    fn write_owned(&self, offset: u64, mut buffer: AlignedBuffer) -> Result<AlignedBuffer> {
        self.write_at(offset, buffer.as_slice())?;
        buffer.resize(0);
        Ok(buffer)
    }

    /// Asks the system to begin writing a range of bytes to the device, so that a later sync has
    /// less to do. Nothing is durable by that. With `strict`, it first waits for everything before
    /// the range's end that was asked for earlier. Returns `false` if the system cannot.
    ///
    /// # Errors
    /// `IoError`, with the consequences of a failed [`WritableFile::sync`].
    fn range_sync(&self, _range: Range<u64>, _strict: bool) -> Result<bool> {
        Ok(false)
    }

    /// Reserves space for bytes `0..length`. With `keep_size`, the file's size stays; otherwise the
    /// file grows with zeros to `length`. Does nothing where the file system cannot.
    ///
    /// # Errors
    /// `IoError`, with subcode `NoSpace` if there is too little. Some of the space may then be
    /// taken; [`WritableFile::truncate`] gives it back.
    fn allocate(&self, _length: u64, _keep_size: bool) -> Result<()> {
        Ok(())
    }
}

/// A file of records that may be appended through a [`Mapping`].
///
/// The log's writer reserves space with [`WritableFile::allocate`], maps it, and cuts the file with
/// [`WritableFile::truncate`] when it is done. Without mappings a log is written like any
/// [`WritableFile`].
pub trait LogFile: WritableFile {
    /// Whether parts of the file may be written to through [`LogFile::map`]: the system has
    /// mappings, and allocated space is certain to be writable. Otherwise a full disk would show
    /// where no error can be returned.
    fn is_mappable(&self) -> bool {
        false
    }

    /// Maps `length` bytes from `offset` for writing. Returns `None` where that cannot be. The
    /// bytes must have been allocated, and the file must not be cut below their end while they are
    /// written to.
    ///
    /// # Errors
    /// `IoError`.
    fn map(&self, _offset: u64, _length: usize) -> Result<Option<Box<dyn Mapping>>> {
        Ok(None)
    }
}

/// A complete file whose space is to be used otherwise: a blob file that gets holes, or an obsolete
/// WAL that is to be renamed and written over.
pub trait ReclaimableFile: RandomAccessFile {
    /// Keeps [`RandomAccessFile::share`] of other handles and processes from succeeding until this
    /// file is closed, so that it can be changed in place. Returns `false` while a reader shares
    /// it. Where there are no such locks, always `true`.
    ///
    /// # Errors
    /// `IoError`.
    fn claim(&self) -> Result<bool> {
        Ok(true)
    }

    /// Turns a range of bytes into zeros and gives its whole blocks back to the file system. The
    /// file's size stays. Returns `false` where the file system cannot; nothing has changed then.
    ///
    /// # Errors
    /// `IoError`. Any part of the range may have been given back.
    fn punch_hole(&self, _range: Range<u64>) -> Result<bool> {
        Ok(false)
    }
}

/// A stretch of a [`LogFile`] as memory. What is written is in the file at once and outlives the
/// process. [`WritableFile::sync`] makes it durable, and reports errors of the device.
pub trait Mapping: Send + Sync {
    /// Copies `data` to `at`, counted from the mapping's beginning.
    ///
    /// # Panics
    /// If that is not within the mapping.
    fn write(&mut self, at: usize, data: &[u8]);

    /// Fetches the pages of a range, so that writing to them neither waits nor meets an error.
    ///
    /// # Errors
    /// `IoError`. The pages must then not be written to.
    fn populate(&mut self, range: Range<usize>) -> Result<()>;
}

/// A hint about coming accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Single blocks here and there: no readahead.
    Random,
    /// From front to back.
    Sequential,
    /// These bytes will be read soon.
    WillNeed {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// The cached pages of the file will not be used again.
    DontNeed,
}

/// What is known of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Size in bytes.
    pub size: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Time of the last write, in seconds since 1970, where that is known.
    pub modified: Option<u64>,
    /// Bytes taken on the disk: fewer than `size` if the file has holes.
    pub allocated: u64,
    /// Bytes of a block: the smallest hole that gives space back.
    pub block_size: u64,
    /// Number of names.
    pub links: u64,
    /// Device, and number on that device. Two names with the same `id` are of one file or
    /// directory. `None` where that is not known; directories are then told apart by their paths.
    pub id: Option<(u64, u64)>,
}

/// [`RandomAccessFile::read_at`] for files whose length nothing else tells. A read that stops short
/// of the end, which it must not, is repeated from there; otherwise a log would seem to end in the
/// middle.
///
/// # Errors
/// `IoError`, also if the file cannot be read up to its size.
pub fn read_until_end(
    file: &dyn RandomAccessFile,
    offset: u64,
    buffer: &mut [u8],
) -> Result<usize> {
    let mut filled = file.read_at(offset, buffer)?;
    while filled < buffer.len() {
        let end = offset + filled as u64;
        if file.size()? <= end {
            break;
        }
        let more = file.read_at(end, &mut buffer[filled..])?;
        if more == 0 {
            let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            return Err(Error::io("read up to the file's size", file.path(), source).at_offset(end));
        }
        filled += more;
    }
    Ok(filled)
}
