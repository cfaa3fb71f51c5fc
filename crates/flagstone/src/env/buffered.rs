//! A buffer in front of a file that is written from front to back.

use std::sync::Arc;

use super::File;
use super::direct::{AlignedBuffer, DIRECT_BLOCK, Reserved};
use crate::base::Result;

/// Appends to a file through a buffer. If the file goes around the system's cache, what is written are whole blocks of the
/// buffer, into space that was reserved ahead; a flush pads the last one and then cuts the file to its length.
///
/// Dropping it loses what was not flushed: callers end with [`BufferedWriter::sync`] or [`BufferedWriter::flush`].
pub struct BufferedWriter {
    file: Arc<dyn File>,
    buffer: AlignedBuffer,
    is_direct: bool,
    /// Bytes that are reserved, of a direct file.
    reserved: Reserved,
    /// Bytes that the file itself has, before those of the buffer.
    written: u64,
}

impl BufferedWriter {
    /// Appends to `file`, which holds `offset` bytes that stay.
    ///
    /// # Panics
    /// If the file is direct and `offset` is not a multiple of [`DIRECT_BLOCK`].
    pub fn new(file: Arc<dyn File>, offset: u64, capacity: usize) -> Self {
        let is_direct = file.is_direct();
        assert!(
            !is_direct || offset.is_multiple_of(DIRECT_BLOCK as u64),
            "a direct file goes on at {offset}"
        );
        let buffer = AlignedBuffer::with_capacity(capacity);
        Self { file, buffer, is_direct, reserved: Reserved::default(), written: offset }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// `IoError` of the write that made room.
    #[inline]
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        if self.buffer.len() + data.len() > self.buffer.capacity() {
            return self.append_and_write(data);
        }
        self.buffer.fill_from(data);
        Ok(())
    }

    #[cold]
    fn append_and_write(&mut self, data: &[u8]) -> Result<()> {
        let mut rest = data;
        if self.is_direct {
            while self.buffer.len() + rest.len() > self.buffer.capacity() {
                rest = self.buffer.fill_from(rest);
                self.hand_over()?;
            }
        } else {
            self.flush()?;
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
        match self.file.write_owned(self.written, std::mem::take(&mut self.buffer)) {
            Ok(next) => {
                (self.buffer, self.written) = (next, end);
                Ok(())
            }
            Err(error) => {
                self.buffer = AlignedBuffer::with_capacity(capacity);
                Err(error)
            }
        }
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
    /// `IoError`; the buffer is kept, but the file's bytes from here on are unknown.
    pub fn flush(&mut self) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::env::{FileSystem, OpenMode, memory::MemoryFileSystem, os::OsFileSystem, read_file};

    /// Writes `content` in pieces, flushing now and then; what the file holds afterwards.
    fn written(fs: &dyn FileSystem, path: &Path, mode: OpenMode, content: &[u8], piece: usize) -> Vec<u8> {
        let mut writer = BufferedWriter::new(fs.open(path, mode).unwrap(), 0, 8192);
        for (index, piece) in content.chunks(piece).enumerate() {
            writer.append(piece).unwrap();
            if index % 7 == 3 {
                writer.flush().unwrap();
                let expected = &content[..writer.offset() as usize];
                assert!(read_file(fs, path, u64::MAX).unwrap() == expected, "{} bytes", expected.len());
            }
        }
        writer.sync().unwrap();
        read_file(fs, path, u64::MAX).unwrap()
    }

    #[test]
    fn every_length_around_a_block_is_written_as_it_is() {
        let content: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
        let directory = tempfile::tempdir().unwrap();
        let memory = MemoryFileSystem::new();
        memory.create_directory(directory.path()).unwrap();
        let path = directory.path().join("f");
        let lengths = (0..3).chain(4094..4099).chain(8190..8195).chain(12_286..12_290).chain([50_000]);
        for length in lengths {
            for piece in [1000, 4096, 5000, 8192, 20_000] {
                for mode in [OpenMode::Create, OpenMode::CreateDirect] {
                    for fs in [&OsFileSystem as &dyn FileSystem, &memory] {
                        let found = written(fs, &path, mode, &content[..length], piece);
                        assert!(found == content[..length], "{length} bytes by {piece}, {mode:?}");
                    }
                }
            }
        }
    }
}
