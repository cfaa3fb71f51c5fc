//! Writing one value, piece by piece, to a blob file of its own.
//!
//! The record's header, with size and checksum, is written last: until then the file is no blob
//! file, and nothing refers to it. A value that is given up leaves nothing but that file.

use std::sync::Arc;

use super::builder::BlobFileSummary;
use super::format::{
    BlobFileFooter, BlobFileHeader, BlobIndex, HEADER_SIZE, RECORD_HEADER_SIZE, RecordHeader,
};
use crate::base::checksum::{crc32c, crc32c_append};
use crate::base::compression::CompressionType;
use crate::base::{ColumnFamilyId, FileNumber, Result};
use crate::env::{BufferedWriter, WritableFile};

/// Small pieces are gathered to this many bytes.
const BUFFER_SIZE: usize = 256 << 10;

/// Writes one value to a blob file of its own, uncompressed.
pub struct BlobStream {
    writer: BufferedWriter,
    number: FileNumber,
    column_family: ColumnFamilyId,
    key_size: usize,
    value_size: u64,
    /// Of the key and what there is of the value.
    crc: u32,
}

impl BlobStream {
    /// Bytes of memory that one takes.
    pub const MEMORY: usize = BUFFER_SIZE;

    /// Begins the empty file `file` for a value of `user_key`.
    ///
    /// # Errors
    /// `IoError`.
    pub fn new(
        file: Arc<dyn WritableFile>,
        number: FileNumber,
        column_family: ColumnFamilyId,
        user_key: &[u8],
    ) -> Result<Self> {
        let start = (HEADER_SIZE + RECORD_HEADER_SIZE) as u64;
        let mut writer = BufferedWriter::new(file, start, BUFFER_SIZE);
        writer.append(user_key)?;
        let (key_size, crc) = (user_key.len(), crc32c(user_key));
        Ok(Self { writer, number, column_family, key_size, value_size: 0, crc })
    }

    /// Appends a piece of the value.
    ///
    /// # Errors
    /// `IoError`: the file is then of no further use.
    pub fn write(&mut self, piece: &[u8]) -> Result<()> {
        self.writer.append(piece)?;
        self.crc = crc32c_append(self.crc, piece);
        self.value_size += piece.len() as u64;
        Ok(())
    }

    /// Bytes of the value so far.
    pub fn value_size(&self) -> u64 {
        self.value_size
    }

    /// Completes and seals the file. The caller syncs it, before anything durable refers to it.
    ///
    /// # Errors
    /// `IoError`.
    pub fn finish(mut self) -> Result<(BlobIndex, BlobFileSummary)> {
        let compression = CompressionType::None.to_byte();
        self.writer.append(&BlobFileFooter { count: 1 }.encode())?;
        self.writer.flush()?;
        let header = BlobFileHeader { column_family: self.column_family, compression }.encode();
        let record = RecordHeader::with_crc(self.key_size, self.value_size, self.crc).encode();
        self.writer.file().write_vectored_at(0, &[&header, &record])?;
        let offset = (HEADER_SIZE + RECORD_HEADER_SIZE + self.key_size) as u64;
        let index = BlobIndex { file: self.number, offset, size: self.value_size, compression };
        let total_bytes = index.record_bytes(self.key_size);
        Ok((index, BlobFileSummary { number: self.number, count: 1, total_bytes }))
    }

    /// The file underneath.
    pub fn file(&self) -> &Arc<dyn WritableFile> {
        self.writer.file()
    }
}
