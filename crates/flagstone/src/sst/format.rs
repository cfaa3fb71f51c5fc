//! What a table file consists of: handles, trailers, the footer, names.
//!
//! ```text
//! table   = data blocks, [filter], [index partitions], index, [dictionary], [range tombstones], properties, metaindex, footer
//! each block is followed by a trailer: compression type (1), checksum: fixed32 (over the block and the type)
//! handle  = varint64 offset, varint64 size (without the trailer)
//!
//! footer, versions 1-5 (53 bytes)             footer, versions 6 and 7 (53 bytes)
//!  0  1 checksum type                          0  1 checksum type
//!  1 40 metaindex handle, index handle, zeros  1  4 extended magic 3e 00 7a 00
//!                                              5  4 checksum of the footer, this field taken for 0
//!                                              9  4 base of the context checksums, not 0
//!                                             13  4 size of the metaindex, which lies right before the footer
//!                                             17 16 zeros, which a reader passes over
//!                                             33  8 zeros; anything else is a feature that a reader must know
//! 41  4 format version                        41  4 format version
//! 45  8 magic f7 cf f4 85 b7 41 e2 88         45  8 magic
//!
//! footer, version 0 (48 bytes): metaindex handle, index handle, zeros to 40, legacy magic; checksums are CRC32C
//! ```

use crate::base::checksum::{ChecksumType, block_checksum, context_modifier};
use crate::base::coding::{
    Decoder, MAX_VARINT64_SIZE, fixed32_at, fixed64_at, put_fixed32, put_fixed64, put_varint64,
};
use crate::base::{Error, Result};

/// Bytes after each block: compression type and checksum.
pub const TRAILER_SIZE: usize = 5;
/// Bytes of the footer, version 1 and later.
pub const FOOTER_SIZE: usize = 53;
/// The format version that tables are written in unless asked otherwise: RocksDB 6.6 and later read
/// it.
pub const DEFAULT_FORMAT_VERSION: u32 = 5;
/// The latest format version.
pub const MAX_FORMAT_VERSION: u32 = 7;

const LEGACY_FOOTER_SIZE: usize = 48;
const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
const LEGACY_MAGIC: u64 = 0xdb47_7524_8b80_fb57;
const PLAIN_MAGICS: [u64; 2] = [0x8242_2296_63bf_9564, 0x4f34_18eb_7a8f_13b8];
const CUCKOO_MAGIC: u64 = 0x9267_89d0_c5f1_7873;
const EXTENDED_MAGIC: [u8; 4] = [0x3e, 0, 0x7a, 0];
const HANDLE_SIZE_MAX: usize = 2 * MAX_VARINT64_SIZE;
const VERSION_AT: usize = 41;
const MAGIC_AT: usize = 45;
const FOOTER_CHECKSUM_AT: usize = 5;
const FEATURES_AT: usize = 33;

const _: () = assert!(1 + 2 * HANDLE_SIZE_MAX == VERSION_AT);
const _: () = assert!(MAGIC_AT + 8 == FOOTER_SIZE);

/// Names in the metaindex.
pub(crate) mod meta_name {
    pub const PROPERTIES: &str = "rocksdb.properties";
    pub const INDEX: &str = "rocksdb.index";
    pub const RANGE_DELETIONS: &str = "rocksdb.range_del";
    pub const DICTIONARY: &str = "rocksdb.compression_dict";
    pub const HASH_PREFIXES: &str = "rocksdb.hashindex.prefixes";
    pub const HASH_METADATA: &str = "rocksdb.hashindex.metadata";
    pub const FULL_FILTER: &str = "fullfilter.rocksdb.BuiltinBloomFilter";
    pub const PARTITIONED_FILTER: &str = "partitionedfilter.rocksdb.BuiltinBloomFilter";
    /// Written by versions before RocksDB 2.7 knew.
    pub const OLD_PROPERTIES: &str = "rocksdb.stats";
}

/// Where a block lies in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BlockHandle {
    /// The first byte.
    pub offset: u64,
    /// Bytes, without the trailer.
    pub size: u64,
}

impl BlockHandle {
    /// Appends the handle.
    pub fn encode(self, out: &mut Vec<u8>) {
        put_varint64(out, self.offset);
        put_varint64(out, self.size);
    }

    /// Reads a handle off the front; `None` if there is none or its end exceeds what a file can
    /// have.
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        let handle = Self { offset: decoder.varint64()?, size: decoder.varint64()? };
        handle.offset.checked_add(handle.size)?.checked_add(TRAILER_SIZE as u64)?;
        Some(handle)
    }

    /// The first byte after the trailer.
    pub fn end(self) -> u64 {
        self.offset + self.size + TRAILER_SIZE as u64
    }
}

/// Structure of a table's index; the numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum IndexType {
    /// One sorted block of separators.
    #[default]
    BinarySearch = 0,
    /// Like `BinarySearch`, with an additional hash over prefixes for point lookups. Needs a prefix
    /// extractor.
    HashSearch = 1,
    /// A sorted block over partitions of the index.
    TwoLevel = 2,
    /// [`IndexType::BinarySearch`] with the first key of each block.
    BinarySearchWithFirstKey = 3,
}

impl IndexType {
    /// The type of that stored number.
    pub fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::BinarySearch,
            1 => Self::HashSearch,
            2 => Self::TwoLevel,
            3 => Self::BinarySearchWithFirstKey,
            _ => return None,
        })
    }
}

/// RocksDB's kinds of table files. Flagstone reads and writes the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// Sorted blocks and an index.
    BlockBased,
    /// Entries one behind the other, to be mapped into memory.
    Plain,
    /// A hash table.
    Cuckoo,
}

impl TableKind {
    /// The kind that `tail`, the end of a file, claims, however damaged the file is.
    pub fn claimed(tail: &[u8]) -> Option<Self> {
        let magic = tail.len().checked_sub(8).and_then(|at| fixed64_at(tail, at))?;
        match magic {
            MAGIC | LEGACY_MAGIC => Some(Self::BlockBased),
            CUCKOO_MAGIC => Some(Self::Cuckoo),
            _ => PLAIN_MAGICS.contains(&magic).then_some(Self::Plain),
        }
    }
}

/// The end of a table file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footer {
    /// How blocks are checked.
    pub checksum: ChecksumType,
    /// 0 to 7.
    pub format_version: u32,
    /// Where the metaindex lies.
    pub metaindex: BlockHandle,
    /// Where the index lies; from version 6 on the metaindex says so.
    pub index: Option<BlockHandle>,
    /// Makes checksums depend on where a block lies; 0 before version 6.
    pub base_context_checksum: u32,
}

impl Footer {
    /// The most bytes that a footer takes.
    pub const SIZE_MAX: usize = FOOTER_SIZE;

    /// Appends the footer of a file whose metaindex ends at `offset`.
    ///
    /// # Panics
    /// If the version is below 1 or above 7, or 6 and later and the metaindex does not end at
    /// `offset`.
    pub fn encode(&self, offset: u64, out: &mut Vec<u8>) {
        assert!(
            (1..=MAX_FORMAT_VERSION).contains(&self.format_version),
            "a version that can be written"
        );
        let start = out.len();
        out.push(self.checksum as u8);
        if self.format_version < 6 {
            self.metaindex.encode(out);
            self.index.unwrap_or_default().encode(out);
        } else {
            assert!(self.metaindex.end() == offset, "the metaindex lies right before the footer");
            let size = u32::try_from(self.metaindex.size).expect("a metaindex is small");
            out.extend_from_slice(&EXTENDED_MAGIC);
            put_fixed32(out, 0);
            put_fixed32(out, self.base_context_checksum);
            put_fixed32(out, size);
        }
        out.resize(start + VERSION_AT, 0);
        put_fixed32(out, self.format_version);
        put_fixed64(out, MAGIC);
        if self.format_version >= 6 {
            let checksum = self.own_checksum(&out[start..], offset);
            out[start + FOOTER_CHECKSUM_AT..][..4].copy_from_slice(&checksum.to_le_bytes());
        }
    }

    /// The checksum of a footer whose checksum field is 0.
    fn own_checksum(&self, footer: &[u8], offset: u64) -> u32 {
        let (&last, rest) = footer.split_last().expect("a footer has bytes");
        block_checksum(self.checksum, rest, last)
            .wrapping_add(context_modifier(self.base_context_checksum, offset))
    }

    /// Reads the footer off the end of a file of `file_size` bytes, of which `tail` are the last.
    ///
    /// # Errors
    /// `Corruption` if it is none, `NotSupported` for another kind of table or a later version.
    pub fn decode(tail: &[u8], file_size: u64) -> Result<Self> {
        let bad = |what: String| Error::corruption(format!("bad table footer: {what}"));
        let magic_at =
            tail.len().checked_sub(8).ok_or_else(|| bad("the file is too short".to_owned()))?;
        let magic = fixed64_at(tail, magic_at).unwrap_or_default();
        if magic == LEGACY_MAGIC {
            return Self::decode_legacy(tail).ok_or_else(|| bad("block handles".to_owned()));
        }
        if PLAIN_MAGICS.contains(&magic) || magic == CUCKOO_MAGIC {
            return Err(Error::not_supported(
                "the table is not block-based (plain or cuckoo format)",
            ));
        }
        if magic != MAGIC {
            return Err(bad(format!("magic number {magic:#018x}")));
        }
        let start = tail
            .len()
            .checked_sub(FOOTER_SIZE)
            .ok_or_else(|| bad("the file is too short".to_owned()))?;
        let footer = &tail[start..];
        let format_version = fixed32_at(footer, VERSION_AT).unwrap_or_default();
        if !(1..=MAX_FORMAT_VERSION).contains(&format_version) {
            return Err(bad(format!(
                "format version {format_version}; 1 to {MAX_FORMAT_VERSION} are known"
            )));
        }
        let checksum = ChecksumType::from_byte(footer[0])
            .ok_or_else(|| bad(format!("checksum type {}", footer[0])))?;
        if format_version < 6 {
            let mut decoder = Decoder::new(&footer[1..VERSION_AT]);
            let handles = BlockHandle::decode(&mut decoder).zip(BlockHandle::decode(&mut decoder));
            let (metaindex, index) = handles.ok_or_else(|| bad("block handles".to_owned()))?;
            let index = Some(index);
            return Ok(Self {
                checksum,
                format_version,
                metaindex,
                index,
                base_context_checksum: 0,
            });
        }
        let decoded =
            Self::decode_extended(footer, checksum, format_version, file_size - FOOTER_SIZE as u64)
                .map_err(|what| bad(what.to_owned()))?;
        match fixed64_at(footer, FEATURES_AT).unwrap_or_default() {
            0 => Ok(decoded),
            features => Err(Error::not_supported(format!(
                "the table's footer requires features of a later RocksDB, {features:#018x}, that are not supported"
            ))),
        }
    }

    /// Whether `tail`, the end of a file, is that of some kind of table, however damaged.
    pub fn is_claimed(tail: &[u8]) -> bool {
        TableKind::claimed(tail).is_some()
    }

    fn decode_legacy(tail: &[u8]) -> Option<Self> {
        let mut decoder =
            Decoder::new(&tail[tail.len().checked_sub(LEGACY_FOOTER_SIZE)?..tail.len() - 8]);
        let metaindex = BlockHandle::decode(&mut decoder)?;
        let index = Some(BlockHandle::decode(&mut decoder)?);
        let checksum = ChecksumType::Crc32c;
        Some(Self { checksum, format_version: 0, metaindex, index, base_context_checksum: 0 })
    }

    fn decode_extended(
        footer: &[u8],
        checksum: ChecksumType,
        format_version: u32,
        offset: u64,
    ) -> Result<Self, &'static str> {
        let field = |at| fixed32_at(footer, at).unwrap_or_default();
        if footer[1..5] != EXTENDED_MAGIC {
            return Err("extended magic number");
        }
        let (stored, base_context_checksum, size) = (field(5), field(9), u64::from(field(13)));
        if base_context_checksum == 0 {
            return Err("no base for the context checksums");
        }
        let start = offset.checked_sub(size + TRAILER_SIZE as u64).ok_or("metaindex size")?;
        let metaindex = BlockHandle { offset: start, size };
        let result =
            Self { checksum, format_version, metaindex, index: None, base_context_checksum };
        let mut zeroed = [0; FOOTER_SIZE];
        zeroed.copy_from_slice(footer);
        zeroed[FOOTER_CHECKSUM_AT..FOOTER_CHECKSUM_AT + 4].fill(0);
        if checksum != ChecksumType::None && result.own_checksum(&zeroed, offset) != stored {
            return Err("checksum mismatch");
        }
        Ok(result)
    }

    /// The checksum that the trailer of a block at `offset` holds.
    #[inline]
    pub fn checksum_of(&self, block: &[u8], compression: u8, offset: u64) -> u32 {
        let checksum = block_checksum(self.checksum, block, compression);
        checksum.wrapping_add(context_modifier(self.base_context_checksum, offset))
    }
}

#[cfg(test)]
mod tests;
