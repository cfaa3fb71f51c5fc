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

/// The CRC32C of the end of some bytes. That of all of them follows from it once their beginning is
/// known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suffix {
    crc: u32,
    /// x to the number of its bits.
    factor: u32,
}

impl Suffix {
    /// The longest in bytes.
    pub const LENGTH_MAX: usize = 32 << 10;

    /// # Panics
    /// If it is longer than [`Self::LENGTH_MAX`].
    pub fn of(bytes: &[u8]) -> Self {
        let (few, many) = (bytes.len() % 256, bytes.len() / 256);
        Self { crc: crc32c(bytes), factor: multiply(BYTES[few], BYTES_256[many]) }
    }

    /// The CRC32C of the whole, of which `crc` covers the rest.
    #[inline]
    pub fn behind(self, crc: u32) -> u32 {
        multiply(self.factor, crc) ^ self.crc
    }
}

/// The polynomial of CRC32C. Here as in all of its numbers the highest bit stands for 1, the next
/// for x.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// x to the power of eight times the index.
const BYTES: [u32; 256] = powers(1 << 31, 1 << (31 - 8));

/// x to the power of eight times 256 times the index.
const BYTES_256: [u32; Suffix::LENGTH_MAX / 256 + 1] =
    powers(1 << 31, multiply(BYTES[255], BYTES[1]));

/// `first`, and each number behind `factor` times the one before.
const fn powers<const N: usize>(first: u32, factor: u32) -> [u32; N] {
    let mut powers = [first; N];
    let mut at = 1;
    while at < N {
        powers[at] = multiply(powers[at - 1], factor);
        at += 1;
    }
    powers
}

/// The product of two polynomials, modulo that of CRC32C.
#[inline]
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 32;
    while bit > 0 {
        bit -= 1;
        product ^= b & 0u32.wrapping_sub(a >> bit & 1);
        b = b >> 1 ^ POLYNOMIAL & 0u32.wrapping_sub(b & 1);
    }
    product
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

/// Checksum of the blocks of a table; the footer stores the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum ChecksumType {
    /// No checksum: 0 is stored.
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

/// The checksum over `block` followed by `last` (a block's compression type, or a footer's last
/// byte), as stored in files up to format_version 5; later ones add [`context_modifier`].
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

/// What is added (modulo 2^32) to a checksum in a file whose footer has the context checksum
/// `base`, for bytes at `offset`; 0 for files before format_version 6, whose base counts as 0.
#[inline]
pub fn context_modifier(base: u32, offset: u64) -> u32 {
    if base == 0 { 0 } else { base ^ (offset as u32).wrapping_add((offset >> 32) as u32) }
}

#[cfg(test)]
mod tests;
