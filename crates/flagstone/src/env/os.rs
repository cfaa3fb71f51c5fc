//! The operating system's files; `system` has its clock, randomness and threads.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the place that the rest of the engine is sent to"
)]

use std::cell::Cell;
use std::fs::{self, OpenOptions};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use rustix::buffer::spare_capacity;
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use super::direct::{AlignedBuffer, DIRECT_BLOCK, is_aligned};
use super::limits::raise_open_files;
use super::mapping::mapped;
use super::published::OsPublishedFile;
use super::reserve::reserve;
pub use super::system::System;
use super::{
    Advice, FileLock, FileSystem, IoMode, LogFile, Mapping, Metadata, OpenMode, PublishedFile,
    RandomAccessFile, ReclaimableFile, WritableFile, os_lock, range_sync, sharing,
};
use crate::base::perf::{self, IoMetric};
use crate::base::{Error, Result};

/// How many parts of a vectored write go to the system at once.
const VECTOR_MAX: usize = 48;
/// And where they are few, as those of a record are.
const VECTOR_FEW: usize = 4;
/// Bytes of what `stat` calls a block, whatever the file system's are.
const SECTOR: u64 = 512;
/// Bytes that go through a buffer at once when a direct read is not aligned.
const BOUNCED_AT_ONCE: usize = 1 << 20;

/// A longer buffer is not kept for the next of these reads.
const BOUNCED_KEPT: usize = 64 << 10;

/// Bytes more than wanted that are read all the same, since a vector has room for them.
const SLACK_MAX: usize = 4096;

/// The real file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsFileSystem;

struct OsFile {
    file: fs::File,
    path: PathBuf,
    /// Of a file that goes around the system's cache: reads begin and end at multiples of this, a
    /// part of [`DIRECT_BLOCK`].
    direct_block: Option<usize>,
}

thread_local! {
    /// What a direct read goes through that is not aligned, until the next one.
    static BOUNCED: Cell<AlignedBuffer> = Cell::default();
}

impl OsFile {
    fn open(path: &Path, mode: OpenMode) -> Result<Arc<Self>> {
        let _time = perf::time(IoMetric::OpenNanos);
        let mut options = OpenOptions::new();
        options.read(true);
        if mode.is_direct() {
            options.custom_flags(OFlags::DIRECT.bits() as i32);
        }
        let doing = match mode {
            OpenMode::RandomAccess(IoMode::Buffered | IoMode::Mapped) => "open",
            OpenMode::RandomAccess(IoMode::Direct) => "open directly",
            OpenMode::CreateWritable(_) | OpenMode::CreateLog => {
                options.write(true).create(true).truncate(true);
                "create"
            }
            OpenMode::ReopenWritable | OpenMode::ReopenLog | OpenMode::Reclaimable => {
                options.write(true);
                "open for writing"
            }
        };
        if mode.only_reads() {
            let checked = check_readable(path).and_then(|()| os_lock::check_not_recorded(path));
            checked.map_err(|error| Error::io(doing, path, error))?;
        }
        let file = options.open(path).map_err(|error| Error::io(doing, path, error))?;
        let direct_block = mode
            .is_direct()
            .then(|| if mode.only_reads() { block_of(&file) } else { DIRECT_BLOCK });
        Ok(Arc::new(Self { file, path: path.to_path_buf(), direct_block }))
    }

    fn error(&self, doing: &str, source: impl Into<io::Error>) -> Error {
        Error::io(doing, &self.path, source.into())
    }
}

impl OsFile {
    /// Reads whole blocks around the bytes that are wanted. A read that stops inside a block met
    /// the file's end.
    fn read_blocks(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let block = self.read_block();
        let skipped = offset as usize % block;
        let room = (skipped + buffer.len()).min(BOUNCED_AT_ONCE);
        let mut blocks = BOUNCED.try_with(Cell::take).unwrap_or_default();
        if blocks.capacity() < room {
            blocks = AlignedBuffer::with_capacity(room);
        }
        blocks.resize(blocks.capacity());
        let (mut filled, mut position) = (0, offset - skipped as u64);
        while filled < buffer.len() {
            let before = if filled == 0 { skipped } else { 0 };
            let wanted =
                (before + buffer.len() - filled).next_multiple_of(block).min(blocks.capacity());
            let blocks = &mut blocks.as_mut_slice()[..wanted];
            let read = self.read_plainly(position, blocks)?;
            let useful = blocks.get(before..read).unwrap_or_default();
            let count = useful.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&useful[..count]);
            filled += count;
            position += read as u64;
            if read < wanted {
                break;
            }
        }
        if blocks.capacity() <= BOUNCED_KEPT {
            // A thread that is about to end keeps none.
            let _ = BOUNCED.try_with(|kept| kept.set(blocks));
        }
        Ok(filled)
    }

    fn read_plainly(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let _times = begin_read();
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error("read", error).at_offset(offset)),
            }
            if !filled.is_multiple_of(self.read_block()) {
                break;
            }
        }
        perf::count(IoMetric::BytesRead, filled as u64);
        Ok(filled)
    }

    /// Writes parts one behind the other, up to `N` at once.
    fn write_parts<const N: usize>(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let _times = begin_write(parts.iter().map(|part| part.len()).sum());
        let mut position = offset;
        for parts in parts.chunks(N) {
            let mut slices = [IoSlice::new(&[]); N];
            for (slice, part) in slices.iter_mut().zip(parts) {
                *slice = IoSlice::new(part);
            }
            let mut rest = &mut slices[..parts.len()];
            IoSlice::advance_slices(&mut rest, 0);
            while !rest.is_empty() {
                match rustix::io::pwritev(&self.file, rest, position) {
                    Ok(0) => {
                        let source = io::Error::from(io::ErrorKind::WriteZero);
                        return Err(self.error("write", source).at_offset(position));
                    }
                    Ok(count) => {
                        position += count as u64;
                        IoSlice::advance_slices(&mut rest, count);
                    }
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(self.error("write", error).at_offset(position)),
                }
            }
        }
        Ok(())
    }
}

impl RandomAccessFile for OsFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if self.is_direct() && !is_aligned(offset, buffer) {
            self.read_blocks(offset, buffer)
        } else {
            self.read_plainly(offset, buffer)
        }
    }

    fn size(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|error| self.error("read the size", error))?.len())
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn read_onto(&self, offset: u64, length: usize, buffer: &mut Vec<u8>) -> Result<usize> {
        let start = buffer.len();
        buffer.reserve_exact(length);
        if self.is_direct() || buffer.capacity() - start > length + SLACK_MAX {
            buffer.resize(start + length, 0);
            let filled = self.read_at(offset, &mut buffer[start..]);
            buffer.truncate(start + *filled.as_ref().unwrap_or(&0));
            return filled;
        }
        let _times = begin_read();
        let mut filled = 0;
        while filled < length {
            match rustix::io::pread(&self.file, spare_capacity(buffer), offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(error) => {
                    buffer.truncate(start);
                    return Err(self.error("read", error).at_offset(offset));
                }
            }
            if !filled.is_multiple_of(self.read_block()) {
                break;
            }
        }
        buffer.truncate(start + length);
        perf::count(IoMetric::BytesRead, filled.min(length) as u64);
        Ok(filled.min(length))
    }

    fn metadata(&self) -> Result<Metadata> {
        Ok(told(&self.file.metadata().map_err(|error| self.error("look up", error))?))
    }

    fn share(&self) -> Result<bool> {
        sharing::share(&self.file).map_err(|error| self.error("lock for reading", error))
    }

    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        Some(std::os::fd::AsFd::as_fd(&self.file))
    }

    fn is_direct(&self) -> bool {
        self.direct_block.is_some()
    }

    fn read_block(&self) -> usize {
        self.direct_block.unwrap_or(1)
    }

    fn advise(&self, advice: Advice) {
        use rustix::fs::Advice as Posix;
        let (offset, length, advice) = match advice {
            Advice::Random => (0, None, Posix::Random),
            Advice::Sequential => (0, None, Posix::Sequential),
            Advice::WillNeed { offset, length } => {
                (offset, std::num::NonZeroU64::new(length), Posix::WillNeed)
            }
            Advice::DontNeed => (0, None, Posix::DontNeed),
        };
        // Only a hint: a file system that refuses it loses nothing but speed.
        let _ = rustix::fs::fadvise(&self.file, offset, length, advice);
    }
}

impl WritableFile for OsFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let _times = begin_write(data.len());
        self.file
            .write_all_at(data, offset)
            .map_err(|error| self.error("write", error).at_offset(offset))
    }

    fn sync(&self) -> Result<()> {
        let _times = (perf::time(IoMetric::FsyncNanos), perf::time(IoMetric::CpuWriteNanos));
        self.file.sync_data().map_err(|error| self.error("sync", error))
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.file.set_len(length).map_err(|error| self.error("truncate", error))
    }

    fn write_vectored_at(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        // Mostly they are few: to set up room for many takes longer than to fill room for few.
        match parts.len() {
            ..=VECTOR_FEW => self.write_parts::<VECTOR_FEW>(offset, parts),
            _ => self.write_parts::<VECTOR_MAX>(offset, parts),
        }
    }

    fn range_sync(&self, range: Range<u64>, strict: bool) -> Result<bool> {
        let start = range.start;
        let _time = perf::time(IoMetric::RangeSyncNanos);
        range_sync::ask(&self.file, range, strict)
            .map_err(|error| self.error("begin to write back", error).at_offset(start))
    }

    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        let _time = perf::time(IoMetric::AllocateNanos);
        let flags = if keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
        match reserve(length, |start, length| {
            rustix::fs::fallocate(&self.file, flags, start, length)
        }) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(self.error(&format!("reserve space for {length} bytes"), error)),
        }
    }
}

impl LogFile for OsFile {
    fn is_mappable(&self) -> bool {
        super::mapping::is_mappable(&self.file)
    }

    fn map(&self, offset: u64, length: usize) -> Result<Option<Box<dyn Mapping>>> {
        super::mapping::map(&self.file, &self.path, offset, length)
    }
}

impl ReclaimableFile for OsFile {
    fn claim(&self) -> Result<bool> {
        sharing::claim(&self.file).map_err(|error| self.error("lock for a change", error))
    }

    fn punch_hole(&self, range: Range<u64>) -> Result<bool> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let length = range.end.saturating_sub(range.start);
        match rustix::io::retry_on_intr(|| {
            rustix::fs::fallocate(&self.file, flags, range.start, length)
        }) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            Err(error) => Err(self.error("punch a hole", error).at_offset(range.start)),
        }
    }
}

/// Takes the times of a read.
fn begin_read() -> (perf::Timer<IoMetric>, perf::Timer<IoMetric>) {
    (perf::time(IoMetric::ReadNanos), perf::time(IoMetric::CpuReadNanos))
}

/// Counts a write, and takes its times.
fn begin_write(bytes: usize) -> (perf::Timer<IoMetric>, perf::Timer<IoMetric>) {
    perf::count(IoMetric::BytesWritten, bytes as u64);
    (perf::time(IoMetric::WriteNanos), perf::time(IoMetric::CpuWriteNanos))
}

/// What direct reads of a file must begin and end at: less than [`DIRECT_BLOCK`] if the system says
/// so, since smaller reads are faster where many are made at once.
#[cfg(target_os = "linux")]
fn block_of(file: &fs::File) -> usize {
    use rustix::fs::{AtFlags, StatxFlags};
    let found = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    // Systems before Linux 6.1, and file systems that do not know, leave zeros.
    let known = found.ok().filter(|found| found.stx_dio_mem_align <= found.stx_dio_offset_align);
    let block = known.map_or(0, |found| found.stx_dio_offset_align as usize);
    if block > 0 && DIRECT_BLOCK.is_multiple_of(block) { block } else { DIRECT_BLOCK }
}

#[cfg(not(target_os = "linux"))]
fn block_of(_file: &fs::File) -> usize {
    DIRECT_BLOCK
}

/// Refuses what is opened for reading as a file is, and then is none: a directory; a pipe, which
/// would be waited for until somebody writes into it; a device, which may have zeros, or a
/// terminal's keys, without end. What cannot be looked up cannot be opened.
fn check_readable(path: &Path) -> io::Result<()> {
    let Ok(kind) = fs::metadata(path).map(|found| found.file_type()) else { return Ok(()) };
    let what = match kind {
        _ if kind.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
        _ if kind.is_fifo() => "pipe",
        _ if kind.is_socket() => "socket",
        _ if kind.is_char_device() || kind.is_block_device() => "device",
        _ => return Ok(()),
    };
    Err(io::Error::other(format!("it is a {what}, not a file")))
}

/// What the system says of a file or directory.
fn told(metadata: &fs::Metadata) -> Metadata {
    let since_1970 = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Metadata {
        size: metadata.len(),
        is_directory: metadata.is_dir(),
        modified: since_1970.map(|since| since.as_secs()),
        allocated: metadata.blocks().saturating_mul(SECTOR),
        block_size: metadata.blksize().max(SECTOR),
        links: metadata.nlink(),
        id: Some((metadata.dev(), metadata.ino())),
    }
}

/// A file whose reads fail.
#[cfg(test)]
pub(super) fn open_unreadable(path: &Path) -> Arc<dyn WritableFile> {
    let file = OpenOptions::new().write(true).open(path).expect("the file is there");
    Arc::new(OsFile { file, path: path.to_path_buf(), direct_block: None })
}

impl FileSystem for OsFileSystem {
    fn open_random_access(&self, path: &Path, io: IoMode) -> Result<Arc<dyn RandomAccessFile>> {
        let opened = OsFile::open(path, OpenMode::RandomAccess(io))?;
        Ok(if io == IoMode::Mapped { mapped(&opened.file, opened.clone()) } else { opened })
    }

    fn create_writable(&self, path: &Path, io: IoMode) -> Result<Arc<dyn WritableFile>> {
        Ok(OsFile::open(path, OpenMode::CreateWritable(io))?)
    }

    fn reopen_writable(&self, path: &Path) -> Result<Arc<dyn WritableFile>> {
        Ok(OsFile::open(path, OpenMode::ReopenWritable)?)
    }

    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        Ok(OsFile::open(path, OpenMode::CreateLog)?)
    }

    fn reopen_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        Ok(OsFile::open(path, OpenMode::ReopenLog)?)
    }

    fn open_reclaimable(&self, path: &Path) -> Result<Arc<dyn ReclaimableFile>> {
        Ok(OsFile::open(path, OpenMode::Reclaimable)?)
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        fs::rename(source, target).map_err(|error| Error::io("rename to this name", target, error))
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        fs::hard_link(source, target).map_err(|error| Error::io("link to this name", target, error))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|error| Error::io("remove", path, error))
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        fs::create_dir_all(path).map_err(|error| Error::io("create the directory", path, error))
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(|error| Error::io("remove the directory", path, error))
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        let failed = |error| Error::io("list the directory", directory, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            // Names that are not UTF-8 are never the engine's.
            if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        let failed = |error| Error::io("sync the directory", directory, error);
        fs::File::open(directory).map_err(failed)?.sync_all().map_err(failed)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        Ok(told(&fs::metadata(path).map_err(|error| Error::io("look up", path, error))?))
    }

    fn free_space(&self, directory: &Path) -> Result<Option<u64>> {
        let found = rustix::fs::statvfs(directory)
            .map_err(|error| Error::io("look up the free space of", directory, error.into()))?;
        Ok(Some(found.f_bavail.saturating_mul(found.f_frsize)))
    }

    fn raise_open_files(&self) -> Option<u64> {
        raise_open_files()
    }

    fn publish(&self, path: &Path) -> Result<Option<Box<dyn PublishedFile>>> {
        Ok(Some(Box::new(OsPublishedFile::create(path)?)))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        os_lock::lock_exclusively(path)
    }

    fn lock_for_reading(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        check_readable(path).map_err(|error| Error::io("open the lock", path, error))?;
        os_lock::lock_shared(path)
    }
}

#[cfg(test)]
#[path = "os_tests.rs"]
mod tests;
