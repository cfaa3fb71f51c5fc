//! The bytes of a blob file, shared by its writer and its readers.
//!
//! ```text
//! file   = header, record*, footer            (no footer: not sealed, the writer may have died)
//!
//! header = magic        fixed32   0x00248f37
//!          version      fixed32   1
//!          family       fixed32   the column family's number
//!          flags        u8        bit 0: has a time to live (never here)
//!          compression  u8        one type for all values of the file
//!          expiration   fixed64 x 2   first and last; 0
//!
//! record = key size     fixed64
//!          value size   fixed64   as stored
//!          expiration   fixed64   0
//!          header crc   fixed32   masked CRC32C of the 24 bytes before
//!          blob crc     fixed32   masked CRC32C of key and stored value
//!          key          the user key
//!          value        compressed by itself if the header names a compression, even if longer so
//!
//! footer = magic        fixed32
//!          count        fixed64   of records
//!          expiration   fixed64 x 2
//!          crc          fixed32   masked CRC32C of the 28 bytes before
//!
//! index  = kind         u8        1 (0 and 2 carry a time to live and never occur here)
//!          file         varint64
//!          offset       varint64  of the value, not of its record
//!          size         varint64  of the stored value
//!          compression  u8
//! ```
//!
//! In an index, file 0 stands for the table that holds it (embedded blobs of RocksDB 11.8): `sst`
//! reads those, and nothing outside of it sees one.
//!
//! A record without a key that nothing refers to fills a hole, or, in files of earlier versions,
//! the rest of a block.
//!
//! The index is what a table stores in the place of the value.

use crate::base::checksum::{crc32c, crc32c_append, mask};
use crate::base::coding::{Decoder, put_fixed32, put_fixed64, put_varint64};
use crate::base::{ColumnFamilyId, Error, FileNumber, Result};

/// What a blob file and its footer begin with.
pub const MAGIC: u32 = 0x0024_8f37;
/// The only version there is.
pub const VERSION: u32 = 1;
/// Bytes of the file's header.
pub const HEADER_SIZE: usize = 4 + 4 + 4 + 1 + 1 + 8 + 8;
/// Bytes of a record before its key.
pub const RECORD_HEADER_SIZE: usize = 8 + 8 + 8 + 4 + 4;
/// Bytes of the footer.
pub const FOOTER_SIZE: usize = 4 + 8 + 8 + 8 + 4;

/// No record has a longer key or stored value: both are shorter than 4 GiB, and no codec makes of
/// one twice as much.
pub const PART_SIZE_MAX: u64 = 8 << 30;

const FLAG_HAS_TTL: u8 = 1;
const INDEX_KIND_INLINED_TTL: u8 = 0;
const INDEX_KIND_BLOB: u8 = 1;
const INDEX_KIND_BLOB_TTL: u8 = 2;

const _: () = assert!(HEADER_SIZE == 30 && RECORD_HEADER_SIZE == 32 && FOOTER_SIZE == 32);

/// What a blob file says about itself at its front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobFileHeader {
    /// The family whose values the file holds.
    pub column_family: ColumnFamilyId,
    /// How every value is compressed: the stored byte.
    pub compression: u8,
}

impl BlobFileHeader {
    /// The header's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_SIZE);
        put_fixed32(&mut out, MAGIC);
        put_fixed32(&mut out, VERSION);
        put_fixed32(&mut out, self.column_family.0);
        out.extend_from_slice(&[0, self.compression]);
        put_expiration_range(&mut out);
        debug_assert_eq!(out.len(), HEADER_SIZE);
        out
    }

    /// Reads a header off the front of `bytes`.
    ///
    /// # Errors
    /// `Corruption` if it is cut off, has another magic or version, or a time to live.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut decoder = Decoder::new(bytes);
        let mut read = || {
            Some((
                decoder.fixed32()?,
                decoder.fixed32()?,
                decoder.fixed32()?,
                decoder.u8()?,
                decoder.u8()?,
                decoder.fixed64()?,
                decoder.fixed64()?,
            ))
        };
        let (magic, version, family, flags, compression, first, last) =
            read().ok_or_else(|| Error::corruption("the blob file ends inside its header"))?;
        if magic != MAGIC {
            return Err(Error::corruption(format!(
                "not a blob file: magic {magic:#010x}, not {MAGIC:#010x}"
            )));
        }
        if version != VERSION {
            return Err(Error::corruption(format!(
                "blob file version {version}; only {VERSION} is known"
            )));
        }
        if flags & FLAG_HAS_TTL != 0 || first != 0 || last != 0 {
            return Err(Error::corruption("unexpected TTL blob file"));
        }
        if flags != 0 {
            return Err(Error::corruption(format!("unknown blob file flags {flags:#04x}")));
        }
        Ok(Self { column_family: ColumnFamilyId(family), compression })
    }
}

/// What stands before a key and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// Bytes of the user key.
    pub key_size: u64,
    /// Bytes of the stored value.
    pub value_size: u64,
    /// Masked CRC32C of key and stored value.
    pub blob_crc: u32,
}

impl RecordHeader {
    /// The header of a record of `key` and the stored form of its value.
    pub fn new(key: &[u8], stored: &[u8]) -> Self {
        Self::with_crc(key.len(), stored.len() as u64, crc32c_append(crc32c(key), stored))
    }

    /// The header of a record whose checksum was computed piece by piece.
    pub fn with_crc(key_size: usize, value_size: u64, crc: u32) -> Self {
        Self { key_size: key_size as u64, value_size, blob_crc: mask(crc) }
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; RECORD_HEADER_SIZE] {
        let mut out = [0; RECORD_HEADER_SIZE];
        out[0..8].copy_from_slice(&self.key_size.to_le_bytes());
        out[8..16].copy_from_slice(&self.value_size.to_le_bytes());
        let header_crc = mask(crc32c(&out[..24]));
        out[24..28].copy_from_slice(&header_crc.to_le_bytes());
        out[28..32].copy_from_slice(&self.blob_crc.to_le_bytes());
        out
    }

    /// Reads a record's header off the front of `bytes`.
    ///
    /// # Errors
    /// `Corruption` if it is cut off, its checksum is wrong, it carries a time to live, or a size
    /// is one that no record has.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut decoder = Decoder::new(bytes);
        let mut read = || {
            Some((
                decoder.fixed64()?,
                decoder.fixed64()?,
                decoder.fixed64()?,
                decoder.fixed32()?,
                decoder.fixed32()?,
            ))
        };
        let (key_size, value_size, expiration, header_crc, blob_crc) = read()
            .ok_or_else(|| Error::corruption("the blob file ends inside a record's header"))?;
        let computed = mask(crc32c(&bytes[..24]));
        if header_crc != computed {
            return Err(Error::corruption(format!(
                "blob record header checksum mismatch: stored {header_crc:#010x}, computed {computed:#010x}"
            )));
        }
        if expiration != 0 {
            return Err(Error::corruption("unexpected TTL blob record"));
        }
        if key_size.max(value_size) > PART_SIZE_MAX {
            return Err(Error::corruption(format!(
                "impossible blob record of {key_size} + {value_size} bytes"
            )));
        }
        Ok(Self { key_size, value_size, blob_crc })
    }

    /// Checks key and stored value, which lie next to each other in the record.
    ///
    /// # Errors
    /// `Corruption` if the checksum is another.
    pub fn check_blob(&self, key_and_value: &[u8]) -> Result<()> {
        self.check_blob_crc(crc32c(key_and_value))
    }

    /// The same, where the checksum was computed piece by piece.
    ///
    /// # Errors
    /// As [`RecordHeader::check_blob`].
    pub fn check_blob_crc(&self, crc: u32) -> Result<()> {
        let computed = mask(crc);
        if computed == self.blob_crc {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "blob checksum mismatch: stored {:#010x}, computed {computed:#010x}",
            self.blob_crc
        )))
    }
}

/// What seals a blob file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobFileFooter {
    /// How many records the file has.
    pub count: u64,
}

impl BlobFileFooter {
    /// The footer's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_SIZE);
        put_fixed32(&mut out, MAGIC);
        put_fixed64(&mut out, self.count);
        put_expiration_range(&mut out);
        let crc = mask(crc32c(&out));
        put_fixed32(&mut out, crc);
        debug_assert_eq!(out.len(), FOOTER_SIZE);
        out
    }

    /// Reads a footer that takes up all of `bytes`.
    ///
    /// # Errors
    /// `Corruption` if it has another size, magic or checksum, or an expiration.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut decoder = Decoder::new(bytes);
        let mut read = || {
            Some((
                decoder.fixed32()?,
                decoder.fixed64()?,
                decoder.fixed64()?,
                decoder.fixed64()?,
                decoder.fixed32()?,
            ))
        };
        let (magic, count, first, last, crc) = read()
            .filter(|_| bytes.len() == FOOTER_SIZE)
            .ok_or_else(|| Error::corruption("the blob file ends inside its footer"))?;
        if magic != MAGIC {
            return Err(Error::corruption(format!(
                "no blob file footer (magic {magic:#010x}); the file may not be complete"
            )));
        }
        let computed = mask(crc32c(&bytes[..FOOTER_SIZE - 4]));
        if crc != computed {
            return Err(Error::corruption(format!(
                "blob file footer checksum mismatch: stored {crc:#010x}, computed {computed:#010x}"
            )));
        }
        if first != 0 || last != 0 {
            return Err(Error::corruption("unexpected TTL blob file"));
        }
        Ok(Self { count })
    }
}

fn put_expiration_range(out: &mut Vec<u8>) {
    put_fixed64(out, 0);
    put_fixed64(out, 0);
}

/// Where a value lies: stored in a table in the value's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobIndex {
    /// The blob file.
    pub file: FileNumber,
    /// Where the stored value starts in it.
    pub offset: u64,
    /// Bytes of the stored value.
    pub size: u64,
    /// How it is compressed: the stored byte, the same as in the file's header.
    pub compression: u8,
}

impl BlobIndex {
    /// Bytes that it takes at most.
    pub const SIZE_MAX: usize = 1 + 3 * 10 + 1;

    /// Appends the index's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(INDEX_KIND_BLOB);
        put_varint64(out, self.file.0);
        put_varint64(out, self.offset);
        put_varint64(out, self.size);
        out.push(self.compression);
    }

    /// Reads an index that takes up all of `bytes`, and leads to a blob file.
    ///
    /// # Errors
    /// `Corruption` if it is cut off, followed by more, of an unknown kind, has a time to live, or
    /// names no file.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let index = Self::decode_in_table(bytes)?;
        if index.is_embedded() {
            return Err(Error::corruption("a blob index without the number of a file"));
        }
        Ok(index)
    }

    /// [`Self::decode`], also of an index that leads to a value in its own table.
    ///
    /// # Errors
    /// As [`Self::decode`], but for the last.
    pub fn decode_in_table(bytes: &[u8]) -> Result<Self> {
        let mut decoder = Decoder::new(bytes);
        match decoder.u8() {
            Some(INDEX_KIND_BLOB) => {}
            Some(INDEX_KIND_INLINED_TTL | INDEX_KIND_BLOB_TTL) => {
                return Err(Error::corruption("unexpected TTL blob index"));
            }
            Some(kind) => return Err(Error::corruption(format!("unknown blob index kind {kind}"))),
            None => return Err(Error::corruption("empty blob index")),
        }
        let mut read = || {
            Some(Self {
                file: FileNumber(decoder.varint64()?),
                offset: decoder.varint64()?,
                size: decoder.varint64()?,
                compression: decoder.u8()?,
            })
        };
        read().filter(|_| decoder.is_empty()).ok_or_else(|| {
            Error::corruption(format!("malformed blob index of {} bytes", bytes.len()))
        })
    }

    /// Whether the value lies in the table that holds the index.
    #[inline]
    pub fn is_embedded(&self) -> bool {
        self.file == FileNumber(0)
    }

    /// Bytes of the whole record in the blob file: what garbage is counted in.
    ///
    /// Saturates for sizes that no file has.
    #[inline]
    pub fn record_bytes(&self, user_key_size: usize) -> u64 {
        (RECORD_HEADER_SIZE as u64 + user_key_size as u64).saturating_add(self.size)
    }
}

#[cfg(test)]
mod tests;
