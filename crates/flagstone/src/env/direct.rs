//! Files that are written and read with direct I/O, bypassing the system's cache.

use std::path::Path;
use std::sync::Arc;

use memmap2::MmapMut;

use super::{AnyFile, FileSystem, IoMode, WritableFile};
use crate::base::{Error, Result, SubCode};

/// Where reads and writes of such a file begin and end, in the file and in memory: a multiple of
/// this. Devices and file systems that want more are refused at open. (Reads may need
/// less: [`read_block`](super::RandomAccessFile::read_block).)
pub const DIRECT_BLOCK: usize = 4096;

/// From so many bytes on memory that comes and goes with a file is a mapping of its own.
const MAPPED_AT_LEAST: usize = 128 << 10;

/// A buffer of a fixed capacity whose bytes begin at a multiple of [`DIRECT_BLOCK`], or of what
/// else it was made for.
#[derive(Default)]
pub struct AlignedBuffer {
    memory: Memory,
    capacity: usize,
}

enum Memory {
    /// From the allocator.
    Allocated {
        /// Never grows past the capacity that it was made with: the bytes stay where they are.
        bytes: Vec<u8>,
        /// What lies before the first aligned byte.
        skipped: usize,
    },
    /// From the system, to which it goes back; as large as the capacity.
    Mapped {
        bytes: MmapMut,
        length: usize,
        /// The most that it ever held: what lies behind is zeros, as it came.
        length_max: usize,
    },
}

impl Default for Memory {
    fn default() -> Self {
        Self::Allocated { bytes: Vec::new(), skipped: 0 }
    }
}

impl AlignedBuffer {
    /// An empty one with room for `capacity` bytes, rounded up to whole blocks.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::aligned_to(DIRECT_BLOCK, capacity.max(1).next_multiple_of(DIRECT_BLOCK))
    }

    /// An empty one with room for `capacity` bytes, which begin at a multiple of `alignment`: with
    /// less of it, less is lost.
    pub fn aligned_to(alignment: usize, capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity + alignment - 1);
        let address = bytes.as_ptr() as usize;
        let skipped = address.next_multiple_of(alignment) - address;
        bytes.resize(skipped, 0);
        Self { memory: Memory::Allocated { bytes, skipped }, capacity }
    }

    /// [`Self::with_capacity`] for bytes that come and go with a file. A large one is a mapping of
    /// its own: `malloc` keeps what large pieces it was given back, megabytes in each thread that
    /// merges, and cuts others out of them.
    pub fn of_its_own(capacity: usize) -> Self {
        let rounded = capacity.max(1).next_multiple_of(DIRECT_BLOCK);
        if rounded < MAPPED_AT_LEAST || cfg!(miri) {
            return Self::with_capacity(capacity);
        }
        // There are only so many for a process.
        let Ok(bytes) = MmapMut::map_anon(rounded) else { return Self::with_capacity(capacity) };
        Self { memory: Memory::Mapped { bytes, length: 0, length_max: 0 }, capacity: rounded }
    }

    /// Whether it has room for `length` bytes that begin at a multiple of `alignment`.
    pub fn suits(&self, alignment: usize, length: usize) -> bool {
        length <= self.capacity && (self.as_slice().as_ptr() as usize).is_multiple_of(alignment)
    }

    /// How much memory it takes.
    pub fn memory(&self) -> usize {
        match &self.memory {
            Memory::Allocated { bytes, .. } => bytes.capacity(),
            Memory::Mapped { bytes, .. } => bytes.len(),
        }
    }

    /// How much it can hold.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How much it holds.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.memory {
            Memory::Allocated { bytes, skipped } => bytes.len() - skipped,
            Memory::Mapped { length, .. } => *length,
        }
    }

    /// Whether it holds nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends as much of `data` as there is room for; the rest.
    #[inline]
    pub fn fill_from<'a>(&mut self, data: &'a [u8]) -> &'a [u8] {
        let (taken, rest) = data.split_at(data.len().min(self.capacity - self.len()));
        match &mut self.memory {
            Memory::Allocated { bytes, .. } => bytes.extend_from_slice(taken),
            Memory::Mapped { bytes, length, length_max } => {
                bytes[*length..*length + taken.len()].copy_from_slice(taken);
                *length += taken.len();
                *length_max = (*length).max(*length_max);
            }
        }
        rest
    }

    /// Cuts it to `length` bytes, or extends it with zeros.
    ///
    /// # Panics
    /// If it has no room for so many.
    pub fn resize(&mut self, length: usize) {
        assert!(length <= self.capacity, "{length} bytes in a buffer of {}", self.capacity);
        match &mut self.memory {
            Memory::Allocated { bytes, skipped } => bytes.resize(*skipped + length, 0),
            Memory::Mapped { bytes, length: before, length_max } => {
                let used = length.min(*length_max);
                if used > *before {
                    bytes[*before..used].fill(0);
                }
                *before = length;
                *length_max = length.max(*length_max);
            }
        }
    }

    /// Extends it with zeros to whole blocks.
    pub fn pad(&mut self) {
        self.resize(self.len().next_multiple_of(DIRECT_BLOCK));
    }

    /// Drops the first `count` bytes; the others move to the front.
    pub fn drop_front(&mut self, count: usize) {
        self.as_mut_slice().copy_within(count.., 0);
        self.resize(self.len() - count);
    }

    /// Its bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match &self.memory {
            Memory::Allocated { bytes, skipped } => &bytes[*skipped..],
            Memory::Mapped { bytes, length, .. } => &bytes[..*length],
        }
    }

    /// Its bytes, to be overwritten.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Allocated { bytes, skipped } => &mut bytes[*skipped..],
            Memory::Mapped { bytes, length, .. } => &mut bytes[..*length],
        }
    }
}

/// Bytes of a direct file that are reserved at a time.
const RESERVED_AT_ONCE: u64 = 16 << 20;

/// What of a direct file is reserved, and what writes have been announced.
#[derive(Default)]
pub struct Reserved {
    until: u64,
    announced: u64,
}

impl Reserved {
    /// Reserves space ahead of a write up to `end` that is about to begin, without changing the
    /// file's size: blocks that lie together, and less work for each write. A disk that is too full
    /// for that may have room for what is in fact written, and the write will say; what a failed
    /// call took is given back, for others to use.
    ///
    /// # Errors
    /// As [`WritableFile::truncate`].
    pub fn announce(&mut self, file: &dyn WritableFile, end: u64) -> Result<()> {
        self.announced = self.announced.max(end);
        if end <= self.until {
            return Ok(());
        }
        let wanted = end + RESERVED_AT_ONCE;
        if file.allocate(wanted, true).is_ok() {
            self.until = wanted;
            return Ok(());
        }
        self.until = u64::MAX;
        // Nobody writes behind what was announced.
        file.truncate(self.announced)
    }

    /// Whether there may be something behind the file's end, or its end is not that of what was
    /// written.
    pub fn is_begun(&self) -> bool {
        self.until > 0
    }
}

/// A file of which no space is reserved ahead.
pub struct UnreservedFile(AnyFile);

impl UnreservedFile {
    /// Around `inner`.
    pub fn new(inner: Arc<dyn WritableFile>) -> Self {
        Self(inner.into())
    }
}

impl super::FileAround for UnreservedFile {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn allocate(&self, _length: u64, _keep_size: bool) -> Result<()> {
        Ok(())
    }
}

/// Checks that files in `directory` can be written around the cache: writes one block to the file
/// `probe` there, reads it back, and removes it. A disk on which there is no room for that says
/// nothing against it.
///
/// # Errors
/// `InvalidArgument` if the file system cannot; `IoError`.
pub fn check_direct_writes(fs: &dyn FileSystem, probe: &Path) -> Result<()> {
    let check = || {
        let file = fs.create_writable(probe, IoMode::Direct)?;
        let mut block = AlignedBuffer::with_capacity(DIRECT_BLOCK);
        block.resize(DIRECT_BLOCK);
        file.write_at(0, block.as_slice())?;
        file.read_at(0, block.as_mut_slice())
    };
    let checked = check();
    let removed = fs.remove(probe);
    match checked {
        Err(error) if error.subcode() == SubCode::NoSpace => Ok(()),
        checked => checked.map_err(|error| explain(error, probe)).and(removed),
    }
}

/// Checks that `file`, which exists, can be read around the cache.
///
/// # Errors
/// `InvalidArgument` if the file system cannot; `IoError`.
pub fn check_direct_reads(fs: &dyn FileSystem, file: &Path) -> Result<()> {
    let mut block = AlignedBuffer::with_capacity(DIRECT_BLOCK);
    block.resize(DIRECT_BLOCK);
    let read = fs
        .open_random_access(file, IoMode::Direct)
        .and_then(|file| file.read_at(0, block.as_mut_slice()));
    read.map(drop).map_err(|error| explain(error, file))
}

/// EINVAL is what a file system answers that has no direct I/O, or wants larger blocks.
fn explain(error: Error, path: &Path) -> Error {
    let source = std::error::Error::source(&error)
        .and_then(|source| source.downcast_ref::<std::io::Error>());
    if source.is_some_and(|source| source.kind() == std::io::ErrorKind::InvalidInput) {
        return Error::invalid_argument(format!(
            "the file system does not support direct I/O in blocks of {DIRECT_BLOCK} bytes: unset the options that ask for it"
        ))
        .at(path);
    }
    error
}

/// Whether a read or write can go around the cache as it is.
#[inline]
pub(super) fn is_aligned(offset: u64, data: &[u8]) -> bool {
    (offset as usize | data.len() | data.as_ptr() as usize).is_multiple_of(DIRECT_BLOCK)
}

#[cfg(test)]
mod tests;
