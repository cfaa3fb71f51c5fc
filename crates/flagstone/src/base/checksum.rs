//! CRC32C as RocksDB stores it, and the block checksums of tables.

use xxhash_rust::xxh3::xxh3_64;
use xxhash_rust::xxh32::Xxh32;
use xxhash_rust::xxh64::Xxh64;

/// CRC32C (Castagnoli) of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// CRC32C of what `crc` covered, followed by `bytes`.
#[inline]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

const MASK_DELTA: u32 = 0xa282_ead8;

/// The form in which a CRC is stored, so that a CRC over bytes that hold CRCs stays meaningful.
#[inline]
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// The inverse of [`mask`].
#[inline]
pub fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(MASK_DELTA).rotate_left(15)
}

/// How the blocks of a table are protected; the footer stores the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum ChecksumType {
    /// Not at all: 0 is stored.
    None = 0,
    /// Masked CRC32C.
    Crc32c = 1,
    /// XXH32.
    XxHash = 2,
    /// The low half of XXH64.
    XxHash64 = 3,
    /// The low half of XXH3, the last byte mixed in afterwards.
    #[default]
    Xxh3 = 4,
}

impl ChecksumType {
    /// The type that a footer's byte stands for.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::None,
            1 => Self::Crc32c,
            2 => Self::XxHash,
            3 => Self::XxHash64,
            4 => Self::Xxh3,
            _ => return None,
        })
    }

    /// The byte that a footer stores.
    pub fn to_byte(self) -> u8 {
        self as u8
    }
}

/// The checksum over `block` followed by `last` (a block's compression type, or a footer's last byte), as stored in
/// files up to format_version 5; later ones add [`context_modifier`].
#[inline]
pub fn block_checksum(kind: ChecksumType, block: &[u8], last: u8) -> u32 {
    match kind {
        ChecksumType::None => 0,
        ChecksumType::Crc32c => mask(crc32c_append(crc32c(block), &[last])),
        ChecksumType::XxHash => {
            let mut hash = Xxh32::new(0);
            hash.update(block);
            hash.update(&[last]);
            hash.digest()
        }
        ChecksumType::XxHash64 => {
            let mut hash = Xxh64::new(0);
            hash.update(block);
            hash.update(&[last]);
            hash.digest() as u32
        }
        ChecksumType::Xxh3 => (xxh3_64(block) as u32) ^ u32::from(last).wrapping_mul(0x6b90_83d9),
    }
}

/// What is added (modulo 2^32) to a checksum in a file whose footer has the context checksum `base`, for bytes at
/// `offset`; 0 for files before format_version 6, whose base counts as 0.
#[inline]
pub fn context_modifier(base: u32, offset: u64) -> u32 {
    if base == 0 { 0 } else { base ^ (offset as u32).wrapping_add((offset >> 32) as u32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32c_of_the_published_vectors() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c_append(crc32c(b"1234"), b"56789"), crc32c(b"123456789"));
    }

    #[test]
    fn masking_is_undone() {
        for crc in [0, 1, 0xffff_ffff, 0x1234_5678] {
            assert_eq!(unmask(mask(crc)), crc);
            assert_ne!(mask(crc), crc);
        }
    }

    #[test]
    fn golden_first_record_of_a_wal() {
        // wal.md 2.6: type byte 01, then the batch of Put("foo", "bar").
        let covered = b"\x01\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\x03foo\x03bar";
        assert_eq!(mask(crc32c(covered)).to_le_bytes(), [0xaf, 0xbf, 0xeb, 0x5e]);
    }

    #[test]
    fn golden_block_of_a_table() {
        // sst.md 13: the data block of the worked example and its trailer.
        let block = b"\0\x0a\x03a1\x01\0\0\0\0\0\0\0one\x01\x09\x032\x01\0\0\0\0\0\0\0two\
            \0\x09\0b\0\0\0\0\0\0\0\0\0\x09\x01c\x02\0\0\0\0\0\0\0m\0\0\0\0\x01\0\0\0";
        assert_eq!(block.len(), 0x40);
        assert_eq!(block_checksum(ChecksumType::Crc32c, block, 0).to_le_bytes(), [0x4d, 0xae, 0x9a, 0x3f]);
        // The same block in the format 7 file, which has XXH3 and a context checksum.
        let plain = block_checksum(ChecksumType::Xxh3, block, 0);
        assert_eq!(plain, 0x73de_b36c);
        assert_eq!(plain.wrapping_add(context_modifier(0x7c07_5d8e, 0)), 0xefe6_10fa);
        assert_eq!(0xce3d_6a2b_u32.wrapping_add(context_modifier(0x7c07_5d8e, 0x45)), 0x4a44_c7f6);
    }

    #[test]
    fn a_context_folds_the_offset_to_32_bits() {
        assert_eq!(context_modifier(0, 12345), 0);
        assert_eq!(context_modifier(5, 0x0000_0002_0000_0001), 5 ^ 3);
        assert_eq!(context_modifier(5, 0xffff_ffff_0000_0001), 5);
    }

    #[test]
    fn every_type_sees_every_byte() {
        let block: Vec<u8> = (0..300u32).map(|i| i as u8).collect();
        for byte in 1..=4 {
            let kind = ChecksumType::from_byte(byte).unwrap();
            assert_eq!(kind.to_byte(), byte);
            let good = block_checksum(kind, &block, 4);
            assert_ne!(block_checksum(kind, &block, 5), good);
            for i in 0..block.len() {
                let mut bad = block.clone();
                bad[i] ^= 1;
                assert_ne!(block_checksum(kind, &bad, 4), good);
            }
        }
    }
}
