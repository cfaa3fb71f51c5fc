//! A buffer in front of a file that is written from front to back.

use std::sync::Arc;

use super::WritableFile;
use super::direct::{AlignedBuffer, DIRECT_BLOCK, Reserved};
use crate::base::{Error, Result};

/// Appends to a file through a buffer. If the file goes around the system's cache, what is written
/// are whole blocks of the buffer, into space that was reserved ahead; a flush pads the last one
/// and then cuts the file to its length.
///
/// Dropping it loses what was not flushed: callers end with [`BufferedWriter::sync`] or
/// [`BufferedWriter::flush`]. After a failure both fail for good: nobody knows what of the file is
/// written.
pub struct BufferedWriter {
    file: Arc<dyn WritableFile>,
    buffer: AlignedBuffer,
    is_direct: bool,
    /// Bytes that are reserved, of a direct file.
    reserved: Reserved,
    /// Bytes that the file itself has, before those of the buffer.
    written: u64,
    /// The first failure.
    failed: Option<Error>,
}

impl BufferedWriter {
    /// Appends to `file`, which holds `offset` bytes that stay.
    ///
    /// # Panics
    /// If the file is direct and `offset` is not a multiple of [`DIRECT_BLOCK`].
    pub fn new(file: Arc<dyn WritableFile>, offset: u64, capacity: usize) -> Self {
        let is_direct = file.is_direct();
        assert!(
            !is_direct || offset.is_multiple_of(DIRECT_BLOCK as u64),
            "a direct file goes on at {offset}"
        );
        let buffer = AlignedBuffer::of_its_own(capacity);
        Self {
            file,
            buffer,
            is_direct,
            reserved: Reserved::default(),
            written: offset,
            failed: None,
        }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// `IoError` of the write that made room, or of one before it.
    #[inline]
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        if self.buffer.len() + data.len() > self.buffer.capacity() {
            return self.unless_failed(|writer| writer.append_and_write(data));
        }
        self.buffer.fill_from(data);
        Ok(())
    }

    /// Takes a step that may fail, once.
    #[cold]
    fn unless_failed(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        step(self).inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn append_and_write(&mut self, data: &[u8]) -> Result<()> {
        let mut rest = data;
        if self.is_direct {
            while self.buffer.len() + rest.len() > self.buffer.capacity() {
                rest = self.buffer.fill_from(rest);
                self.hand_over()?;
            }
        } else {
            self.write_all()?;
            if data.len() >= self.buffer.capacity() {
                self.file.write_at(self.written, data)?;
                self.written += data.len() as u64;
                return Ok(());
            }
        }
        self.buffer.fill_from(rest);
        Ok(())
    }

    /// Hands the full buffer to the direct file, and goes on with another.
    fn hand_over(&mut self) -> Result<()> {
        let capacity = self.buffer.capacity();
        let end = self.written + capacity as u64;
        self.reserved.announce(&*self.file, end)?;
        // If the write fails, the buffer is gone with its bytes; nothing fits what is left in its
        // place.
        let full = std::mem::take(&mut self.buffer);
        (self.buffer, self.written) = (self.file.write_owned(self.written, full)?, end);
        Ok(())
    }

    /// Writes the buffer, whole blocks if the file is direct.
    fn write_buffer(&mut self) -> Result<()> {
        let end = self.written + self.buffer.len() as u64;
        if self.is_direct {
            self.reserved.announce(&*self.file, end)?;
        }
        self.file.write_at(self.written, self.buffer.as_slice())?;
        self.written = end;
        Ok(())
    }

    /// Hands everything to the file.
    ///
    /// # Errors
    /// `IoError`, also of an earlier call; the file's bytes from the last flush on are then
    /// unknown.
    pub fn flush(&mut self) -> Result<()> {
        self.unless_failed(Self::write_all)
    }

    fn write_all(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return self.give_back();
        }
        let (start, length) = (self.written, self.buffer.len());
        if !self.is_direct {
            self.write_buffer()?;
            self.buffer.resize(0);
            return Ok(());
        }
        self.buffer.pad();
        let outcome = self.write_buffer();
        self.buffer.resize(length);
        outcome?;
        // The last block is written once more if something follows.
        let whole = length / DIRECT_BLOCK * DIRECT_BLOCK;
        self.buffer.drop_front(whole);
        self.written = start + whole as u64;
        self.give_back()
    }

    /// Cuts a direct file to its length: the padding goes, and what was reserved in vain.
    fn give_back(&mut self) -> Result<()> {
        if self.is_direct && self.reserved.is_begun() {
            self.file.truncate(self.offset())?;
            self.reserved = Reserved::default();
        }
        Ok(())
    }

    /// Flushes and makes it durable.
    ///
    /// # Errors
    /// As [`BufferedWriter::flush`]; see [`WritableFile::sync`].
    pub fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.unless_failed(|writer| writer.file.sync())
    }

    /// The file's size once flushed.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// The file underneath.
    pub fn file(&self) -> &Arc<dyn WritableFile> {
        &self.file
    }
}

#[cfg(test)]
mod tests;
