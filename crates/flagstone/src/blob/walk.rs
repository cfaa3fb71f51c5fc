//! Reading a value from front to back, piece by piece: it need not fit into memory.
//!
//! The record's header and key are checked first. The record's checksum covers all of it, so the
//! last piece is handed out only where that is right; pieces before it may be of a damaged value.

use std::sync::Arc;

use bytes::Bytes;

use super::format::{BlobIndex, RECORD_HEADER_SIZE, RecordHeader};
use super::reader::{BlobFileReader, CHECK_SIZE, check_header, read_exactly};
use crate::base::checksum::{crc32c, crc32c_append};
use crate::base::compression::CompressionType;
use crate::base::{Error, Result};

/// Whether the value that an index leads to is read in pieces where that can be: it is stored as it
/// is, and has more than one.
pub fn is_read_in_pieces(index: &BlobIndex) -> bool {
    index.compression == CompressionType::None.to_byte() && index.size > CHECK_SIZE
}

/// How far a record is read.
pub(super) struct RecordWalk {
    user_key: Vec<u8>,
    index: BlobIndex,
    /// Where the record starts in the file.
    start: u64,
    /// The key in the record, which may have other bytes than `user_key`.
    key: Vec<u8>,
    header: RecordHeader,
    /// Of the key and what was read of the value.
    crc: u32,
    /// Bytes of the value that were read.
    at: u64,
}

impl RecordWalk {
    /// Reads what stands before the value of `user_key`, and checks it.
    ///
    /// # Errors
    /// As [`BlobFileReader::get`].
    pub(super) fn begin(
        reader: &BlobFileReader,
        user_key: &[u8],
        index: &BlobIndex,
    ) -> Result<Self> {
        let record = reader.record(user_key, index)?;
        let place = |error: Error| error.at(reader.file().path()).at_offset(record.start);
        let head =
            read_exactly(&**reader.file(), record.start, (index.offset - record.start) as usize)?;
        let header = check_header(&head, user_key.len(), index).map_err(place)?;
        let key = head[RECORD_HEADER_SIZE..].to_vec();
        reader.check_bytes(&key, user_key).map_err(place)?;
        let crc = crc32c(&key);
        Ok(Self {
            user_key: user_key.to_vec(),
            index: *index,
            start: record.start,
            key,
            header,
            crc,
            at: 0,
        })
    }

    /// The next piece as stored, of up to `CHECK_SIZE` bytes; `None` at the end.
    ///
    /// # Errors
    /// `Corruption`, instead of the last piece, if a checksum is wrong or the record is of another
    /// key; `IoError`.
    pub(super) fn next(&mut self, reader: &BlobFileReader) -> Result<Option<Vec<u8>>> {
        let length = CHECK_SIZE.min(self.index.size - self.at) as usize;
        let piece = read_exactly(&**reader.file(), self.index.offset + self.at, length)?;
        self.crc = crc32c_append(self.crc, &piece);
        self.at += length as u64;
        if self.at == self.index.size {
            let place = |error: Error| error.at(reader.file().path()).at_offset(self.start);
            self.header.check_blob_crc(self.crc).map_err(place)?;
            // It is sound: now the order may be asked about it.
            reader.check_key(&self.key, &self.user_key).map_err(place)?;
        }
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}

/// A value that is stored as it is, being read from front to back.
pub struct BlobPieces {
    reader: Arc<BlobFileReader>,
    walk: RecordWalk,
}

impl BlobPieces {
    /// Bytes that one piece has at most.
    pub const PIECE_MAX: u64 = CHECK_SIZE;

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// `Corruption`, instead of the last piece, if the value is not what was written; `IoError`. No
    /// further piece is of use then.
    pub fn next_piece(&mut self) -> Result<Option<Bytes>> {
        Ok(self.walk.next(&self.reader)?.map(Bytes::from))
    }

    /// Bytes of the whole value.
    pub fn size(&self) -> u64 {
        self.walk.index.size
    }

    /// What the record says of itself; its checksum of key and value is right only if no piece
    /// fails.
    pub fn header(&self) -> &RecordHeader {
        &self.walk.header
    }

    /// The key in the record: where the order takes other bytes for the same key, it may have
    /// those.
    pub fn key(&self) -> &[u8] {
        &self.walk.key
    }

    /// The last bytes of the value, or all that there are. No checksum covers them before the last
    /// piece is read.
    ///
    /// # Errors
    /// As [`BlobFileReader::get_range`].
    pub fn tail(&self, size: u64) -> Result<Vec<u8>> {
        let end = self.size();
        self.reader.get_range(&self.walk.key, &self.walk.index, end.saturating_sub(size)..end)
    }
}

impl BlobFileReader {
    /// Begins to read a value that is stored as it is, piece by piece.
    ///
    /// # Errors
    /// `NotSupported` if the file is compressed; as [`BlobFileReader::get`] otherwise, but that the
    /// value itself is checked as it is read.
    pub fn pieces(self: &Arc<Self>, user_key: &[u8], index: &BlobIndex) -> Result<BlobPieces> {
        if self.compression() != CompressionType::None {
            return Err(Error::not_supported("a compressed value in pieces").at(self.file().path()));
        }
        let walk = self.by_either_key(user_key, index, |key| {
            let walk = RecordWalk::begin(self, key, index)?;
            // A key of another length is asked about by the order, so its record must be sound.
            if key.len() != user_key.len() {
                self.check(key, index)?;
            }
            Ok(walk)
        })?;
        Ok(BlobPieces { reader: self.clone(), walk })
    }
}

#[cfg(test)]
mod tests;
