//! A buffer in front of a file that is written from front to back.

use std::sync::Arc;

use super::File;
use crate::base::Result;

/// Appends to a file through a buffer.
///
/// Dropping it loses what was not flushed: callers end with [`BufferedWriter::sync`] or [`BufferedWriter::flush`].
pub struct BufferedWriter {
    file: Arc<dyn File>,
    buffer: Vec<u8>,
    capacity: usize,
    /// Bytes that the file itself has.
    written: u64,
}

impl BufferedWriter {
    /// Appends to `file`, which holds `offset` bytes that stay.
    pub fn new(file: Arc<dyn File>, offset: u64, capacity: usize) -> Self {
        Self { file, buffer: Vec::with_capacity(capacity), capacity, written: offset }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// `IoError` of the write that made room.
    #[inline]
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        if self.buffer.len() + data.len() > self.capacity {
            self.flush()?;
            if data.len() >= self.capacity {
                self.file.write_at(self.written, data)?;
                self.written += data.len() as u64;
                return Ok(());
            }
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    /// Hands everything to the file.
    ///
    /// # Errors
    /// `IoError`; the buffer is kept, but the file's bytes from here on are unknown.
    pub fn flush(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.file.write_at(self.written, &self.buffer)?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Flushes and makes it durable.
    ///
    /// # Errors
    /// `IoError`; see [`File::sync`].
    pub fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.file.sync()
    }

    /// The file's size once flushed.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// The file underneath.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }
}
