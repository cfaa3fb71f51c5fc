//! CRC32C as RocksDB stores it, and the block checksums of tables.

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
}
