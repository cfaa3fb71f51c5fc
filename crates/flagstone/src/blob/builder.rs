//! Writing one blob file from front to back.

use std::sync::Arc;

use bytes::Bytes;

use super::format::{
    BlobFileFooter, BlobFileHeader, BlobIndex, FOOTER_SIZE, RECORD_HEADER_SIZE, RecordHeader,
};
use crate::base::checksum::{crc32c, crc32c_append};
use crate::base::compression::{CompressionOptions, CompressionType, Compressor};
use crate::base::{ColumnFamilyId, Error, FileNumber, Result};
use crate::env::{BufferedWriter, WritableFile};

/// How blob files are written.
#[derive(Debug, Clone)]
pub struct BlobBuilderSettings {
    /// The family whose values they hold.
    pub column_family: ColumnFamilyId,
    /// How each value is compressed, by itself.
    pub compression: CompressionType,
    /// Parameters of that.
    pub compression_options: CompressionOptions,
    /// Bytes that are gathered before they are written; larger values are written at once, without
    /// a copy.
    pub buffer_size: usize,
}

impl Default for BlobBuilderSettings {
    fn default() -> Self {
        Self {
            column_family: ColumnFamilyId::DEFAULT,
            compression: CompressionType::None,
            compression_options: CompressionOptions::default(),
            buffer_size: 256 << 10,
        }
    }
}

/// What a finished blob file holds: the content of its entry in the MANIFEST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobFileSummary {
    /// The file.
    pub number: FileNumber,
    /// Its records.
    pub count: u64,
    /// Bytes of its records; header and footer of the file are not counted.
    pub total_bytes: u64,
}

/// Writes one blob file.
///
/// Nothing is synced here. A builder that is dropped unfinished leaves a file without a footer.
pub struct BlobFileBuilder {
    writer: BufferedWriter,
    number: FileNumber,
    compressor: Option<Compressor>,
    /// The compressed form of the last value.
    compressed: Vec<u8>,
    compression: u8,
    count: u64,
    total_bytes: u64,
}

impl BlobFileBuilder {
    /// Begins the empty file `file` with its header.
    ///
    /// # Errors
    /// `IoError`; `InvalidArgument` if the codec refuses its parameters.
    pub fn new(
        file: Arc<dyn WritableFile>,
        number: FileNumber,
        settings: &BlobBuilderSettings,
    ) -> Result<Self> {
        let compressor = match settings.compression {
            CompressionType::None => None,
            kind => Some(Compressor::new(kind, &settings.compression_options, None)?),
        };
        let compression = settings.compression.to_byte();
        let mut writer = BufferedWriter::new(file, 0, settings.buffer_size);
        writer.append(
            &BlobFileHeader { column_family: settings.column_family, compression }.encode(),
        )?;
        Ok(Self {
            writer,
            number,
            compressor,
            compressed: Vec::new(),
            compression,
            count: 0,
            total_bytes: 0,
        })
    }

    /// Appends a value; where it lies.
    ///
    /// # Errors
    /// `IoError`: the file is then of no further use. `InvalidArgument` if the value is too long
    /// for the codec: the file is unchanged.
    pub fn add(&mut self, user_key: &[u8], value: &[u8]) -> Result<BlobIndex> {
        let stored = match &mut self.compressor {
            Some(compressor) => {
                self.compressed.clear();
                compressor.compress(value, &mut self.compressed)?;
                &self.compressed
            }
            None => value,
        };
        let offset = self.writer.offset() + (RECORD_HEADER_SIZE + user_key.len()) as u64;
        self.writer.append(&RecordHeader::new(user_key, stored).encode())?;
        self.writer.append(user_key)?;
        self.writer.append(stored)?;
        let size = stored.len() as u64;
        Ok(self.note(offset, size, user_key.len()))
    }

    /// Appends a value that `next` gives piece by piece, up to `None`, of a record whose header is
    /// known; where it lies. The file must not be compressed, and is of no further use after an
    /// error.
    ///
    /// # Errors
    /// `Corruption` if the pieces are not what the header says; `IoError`; those of `next`.
    pub fn add_pieces(
        &mut self,
        user_key: &[u8],
        header: &RecordHeader,
        next: &mut dyn FnMut() -> Result<Option<Bytes>>,
    ) -> Result<BlobIndex> {
        assert!(self.compressor.is_none(), "pieces are stored as they are");
        let offset = self.writer.offset() + (RECORD_HEADER_SIZE + user_key.len()) as u64;
        self.writer.append(&header.encode())?;
        self.writer.append(user_key)?;
        let (mut size, mut crc) = (0, crc32c(user_key));
        while let Some(piece) = next()? {
            self.writer.append(&piece)?;
            crc = crc32c_append(crc, &piece);
            size += piece.len() as u64;
        }
        if *header != RecordHeader::with_crc(user_key.len(), size, crc) {
            let message = format!("the value has {size} bytes, its record's header says otherwise");
            return Err(Error::corruption(message));
        }
        Ok(self.note(offset, size, user_key.len()))
    }

    /// Counts a value that was written.
    fn note(&mut self, offset: u64, size: u64, key_size: usize) -> BlobIndex {
        let index = BlobIndex { file: self.number, offset, size, compression: self.compression };
        self.count += 1;
        self.total_bytes += index.record_bytes(key_size);
        index
    }

    /// The file's size if it were finished now.
    #[inline]
    pub fn file_size(&self) -> u64 {
        self.writer.offset() + FOOTER_SIZE as u64
    }

    /// Seals the file with its footer. The caller syncs it, before anything durable refers to it.
    ///
    /// # Errors
    /// `IoError`.
    pub fn finish(mut self) -> Result<BlobFileSummary> {
        self.writer.append(&BlobFileFooter { count: self.count }.encode())?;
        self.writer.flush()?;
        Ok(BlobFileSummary {
            number: self.number,
            count: self.count,
            total_bytes: self.total_bytes,
        })
    }

    /// The file underneath.
    pub fn file(&self) -> &Arc<dyn WritableFile> {
        self.writer.file()
    }
}

#[cfg(test)]
mod tests;
