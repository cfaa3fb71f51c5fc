//! Reading a part of a large value.
//!
//! The format has one checksum for a whole record, by which a part cannot be checked. So:
//!
//! 1. Whoever wants a part first reads the value from front to back once, checks the record, and
//!    makes a checksum for each piece of `PIECE_SIZE` bytes. The value need not fit into memory.
//! 2. These are kept: 4 bytes for 64 KiB.
//! 3. Whoever has them reads the pieces in which the wanted bytes lie, and checks each.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::format::BlobIndex;
use super::reader::{BlobFileReader, CHECK_SIZE, read_exactly};
use crate::base::checksum::{crc32c, crc32c_append};
use crate::base::compression::CompressionType;
use crate::base::{Error, Result};

/// Bytes of a value that have a checksum of their own. Smaller values are better read whole.
pub const PIECE_SIZE: u64 = 64 << 10;

const _: () = assert!(CHECK_SIZE.is_multiple_of(PIECE_SIZE));

/// The checksums of the pieces of one value, whose record was found sound: first that of its key
/// and size.
pub type PieceChecksums = Arc<[u32]>;

impl BlobFileReader {
    /// Some bytes of a value that is stored as it is, verified. A range that leaves the value is
    /// cut off at its end.
    ///
    /// With the checksums that an earlier call gave, only the pieces in which the bytes lie are
    /// read. Without, or with those of another value, all of it is read once, and they are made.
    ///
    /// # Errors
    /// `NotSupported` if the file is compressed; as [`BlobFileReader::get`] otherwise.
    pub fn get_verified_range(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        range: Range<u64>,
        known: Option<&PieceChecksums>,
    ) -> Result<(Bytes, Option<PieceChecksums>)> {
        if self.compression() != CompressionType::None {
            return Err(Error::not_supported("a part of a compressed value").at(self.file().path()));
        }
        let range = range.start.min(index.size)..range.end.min(index.size);
        let range = range.start..range.end.max(range.start);
        self.by_either_key(user_key, index, |key| {
            self.verified_range(key, index, range.clone(), known)
        })
    }

    fn verified_range(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        range: Range<u64>,
        known: Option<&PieceChecksums>,
    ) -> Result<(Bytes, Option<PieceChecksums>)> {
        self.record(user_key, index)?;
        let count = 1 + index.size.div_ceil(PIECE_SIZE) as usize;
        match known.filter(|known| known.len() == count && known[0] == identity(user_key, index)) {
            Some(known) => Ok((self.read_pieces(index, range, known)?, None)),
            None => {
                let (bytes, made) = self.read_whole(user_key, index, range)?;
                Ok((bytes, Some(made)))
            }
        }
    }

    /// Reads the pieces in which `range` lies, and checks them.
    fn read_pieces(
        &self,
        index: &BlobIndex,
        range: Range<u64>,
        known: &PieceChecksums,
    ) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let first = range.start / PIECE_SIZE;
        let (start, end) =
            (first * PIECE_SIZE, range.end.next_multiple_of(PIECE_SIZE).min(index.size));
        let bytes = read_exactly(&**self.file(), index.offset + start, (end - start) as usize)?;
        for (number, piece) in (first..).zip(bytes.chunks(PIECE_SIZE as usize)) {
            if crc32c(piece) != known[1 + number as usize] {
                let offset = index.offset + number * PIECE_SIZE;
                let message = "a piece of a blob changed after the blob was checked";
                return Err(Error::corruption(message).at(self.file().path()).at_offset(offset));
            }
        }
        Ok(Bytes::from(bytes).slice((range.start - start) as usize..(range.end - start) as usize))
    }

    /// Reads and checks all of a value, and keeps the bytes of `range`.
    fn read_whole(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        range: Range<u64>,
    ) -> Result<(Bytes, PieceChecksums)> {
        let (mut kept, mut made) = (Vec::new(), vec![identity(user_key, index)]);
        self.read_through(user_key, index, |at, bytes| {
            made.extend(bytes.chunks(PIECE_SIZE as usize).map(crc32c));
            let end = at + bytes.len() as u64;
            let wanted = range.start.max(at)..range.end.min(end);
            if !wanted.is_empty() {
                kept.extend_from_slice(
                    &bytes[(wanted.start - at) as usize..(wanted.end - at) as usize],
                );
            }
        })?;
        Ok((kept.into(), made.into()))
    }
}

/// Tells a value from another that a damaged index may name at the same place.
fn identity(user_key: &[u8], index: &BlobIndex) -> u32 {
    crc32c_append(crc32c(user_key), &index.size.to_le_bytes())
}

#[cfg(test)]
mod tests;
