//! Where traces go, and come from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{Error, Result};
use crate::env::{BufferedWriter, Env, FileSystem, IoMode, RandomAccessFile, read_until_end};

use super::format::RECORD_HEADER_SIZE;

const BUFFER_SIZE: usize = 64 << 10;

/// Takes the records of a trace (RocksDB's `TraceWriter`).
pub trait TraceWriter: Send {
    /// Takes a whole record. The calls come one after the other.
    ///
    /// # Errors
    /// Nothing is recorded behind a record that failed.
    fn write(&mut self, record: &[u8]) -> Result<()>;

    /// No record follows.
    ///
    /// # Errors
    /// Records may be missing.
    fn close(&mut self) -> Result<()>;

    /// Bytes of all records so far.
    fn size(&self) -> u64;
}

/// Hands out the records of a trace (RocksDB's `TraceReader`).
pub trait TraceReader: Send {
    /// The next record, with its header; `None` at the end.
    ///
    /// # Errors
    /// `Corruption` if the trace ends within a record; those of reading.
    fn read(&mut self) -> Result<Option<Vec<u8>>>;

    /// Goes back to the first record.
    ///
    /// # Errors
    /// Where the source cannot.
    fn reset(&mut self) -> Result<()>;
}

/// Writes a trace to a file, a buffer of 64 KiB at a time. The file is not synced.
///
/// It is made with the first record: a trace that does not begin leaves none behind.
pub struct FileTraceWriter {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    /// Once there is a record.
    file: Option<BufferedWriter>,
}

impl FileTraceWriter {
    /// For a new file.
    ///
    /// # Errors
    /// `InvalidArgument` if the file exists; `IoError`.
    pub fn create(env: &Env, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        match env.fs.metadata(path) {
            Ok(_) => return Err(Error::invalid_argument("the trace file already exists").at(path)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        Ok(Self::replace(env, path))
    }

    /// For a new file, or one that is emptied when the trace begins.
    pub fn replace(env: &Env, path: impl AsRef<Path>) -> Self {
        Self { fs: env.fs.clone(), path: path.as_ref().to_path_buf(), file: None }
    }
}

impl TraceWriter for FileTraceWriter {
    fn write(&mut self, record: &[u8]) -> Result<()> {
        if self.file.is_none() {
            let file = self.fs.create_writable(&self.path, IoMode::Buffered)?;
            self.file = Some(BufferedWriter::new(file, 0, BUFFER_SIZE));
        }
        self.file.as_mut().map_or(Ok(()), |file| file.append(record))
    }

    fn close(&mut self) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), BufferedWriter::flush)
    }

    fn size(&self) -> u64 {
        self.file.as_ref().map_or(0, BufferedWriter::offset)
    }
}

/// Reads a trace from a file.
pub struct FileTraceReader {
    file: Arc<dyn RandomAccessFile>,
    size: u64,
    /// Where the next record starts.
    offset: u64,
    /// Bytes of the file from `window_start` on.
    window: Vec<u8>,
    window_start: u64,
}

impl FileTraceReader {
    /// Opens a file; its header is looked at when it is read.
    ///
    /// # Errors
    /// `IoError`.
    pub fn open(env: &Env, path: impl AsRef<Path>) -> Result<Self> {
        let file = env.fs.open_random_access(path.as_ref(), IoMode::Buffered)?;
        let size = file.size()?;
        Ok(Self { file, size, offset: 0, window: Vec::new(), window_start: 0 })
    }

    /// Where the next record starts in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes from `offset` on, all of which the file should have.
    fn bytes(&mut self, offset: u64, length: usize) -> Result<&[u8]> {
        let end = self.window_start + self.window.len() as u64;
        if offset < self.window_start || offset + length as u64 > end {
            let wanted = BUFFER_SIZE.max(length) as u64;
            // Fits: the file has that many bytes.
            let wanted = wanted.min(self.size - offset) as usize;
            // Should the read fail, the window has nothing.
            let mut window = std::mem::take(&mut self.window);
            window.resize(wanted, 0);
            let filled = read_until_end(&*self.file, offset, &mut window)?;
            window.truncate(filled);
            self.window = window;
            self.window_start = offset;
        }
        let at = (offset - self.window_start) as usize;
        self.window.get(at..at + length).ok_or_else(|| {
            Error::corruption("the trace ends within a record")
                .at(self.file.path())
                .at_offset(offset)
        })
    }
}

impl TraceReader for FileTraceReader {
    fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let left = self.size.saturating_sub(self.offset);
        if left == 0 {
            return Ok(None);
        }
        let start = self.offset;
        let cut_off = |file: &dyn RandomAccessFile| {
            let error = Error::corruption("the trace ends within a record");
            error.at(file.path()).at_offset(start)
        };
        if left < RECORD_HEADER_SIZE as u64 {
            return Err(cut_off(&*self.file));
        }
        let header = self.bytes(start, RECORD_HEADER_SIZE)?;
        let length = [header[9], header[10], header[11], header[12]];
        let length = RECORD_HEADER_SIZE as u64 + u64::from(u32::from_le_bytes(length));
        // Before memory is taken for it.
        if length > left {
            return Err(cut_off(&*self.file));
        }
        let record = self.bytes(start, length as usize)?.to_vec();
        self.offset = start + length;
        Ok(Some(record))
    }

    fn reset(&mut self) -> Result<()> {
        self.offset = 0;
        Ok(())
    }
}
