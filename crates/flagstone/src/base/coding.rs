//! The primitive encodings that all files share.
//!
//! ```text
//! fixed16, fixed32, fixed64   little-endian, unsigned
//! varint32, varint64          7 bits a byte, least significant group first, bit 7 set on all but the last
//! lps                         length-prefixed slice: varint32 byte count, then the bytes
//! ```

/// The most bytes that a varint64 takes.
pub const MAX_VARINT64_SIZE: usize = 10;

/// Appends a fixed32.
pub fn put_fixed32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a fixed64.
pub fn put_fixed64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a varint32.
#[inline]
pub fn put_varint32(out: &mut Vec<u8>, value: u32) {
    put_varint64(out, u64::from(value));
}

/// Appends a varint64.
#[inline]
pub fn put_varint64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number as a zigzag varint64.
pub fn put_varsigned64(out: &mut Vec<u8>, value: i64) {
    put_varint64(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends a length-prefixed slice.
///
/// # Panics
/// If `bytes` is 4 GiB or longer; callers check user input before they encode it.
pub fn put_lps(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint32(
        out,
        u32::try_from(bytes.len()).expect("a length-prefixed slice is shorter than 4 GiB"),
    );
    out.extend_from_slice(bytes);
}

/// The fixed32 at `offset`, or `None` if the bytes end before.
#[inline]
pub fn fixed32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset.checked_add(4)?)?.try_into().ok()?))
}

/// The fixed64 at `offset`, or `None` if the bytes end before.
#[inline]
pub fn fixed64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(offset..offset.checked_add(8)?)?.try_into().ok()?))
}

/// Reads primitive encodings off the front of a byte slice.
///
/// Every method returns `None` and leaves the position undefined when the bytes end too early or
/// are malformed; the caller turns that into a corruption that names file and offset.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Starts at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// A fixed16.
    pub fn fixed16(&mut self) -> Option<u16> {
        self.bytes(2).map(|b| u16::from_le_bytes([b[0], b[1]]))
    }

    /// A fixed32.
    #[inline]
    pub fn fixed32(&mut self) -> Option<u32> {
        let value = fixed32_at(self.rest, 0)?;
        self.rest = &self.rest[4..];
        Some(value)
    }

    /// A fixed64.
    #[inline]
    pub fn fixed64(&mut self) -> Option<u64> {
        let value = fixed64_at(self.rest, 0)?;
        self.rest = &self.rest[8..];
        Some(value)
    }

    /// A varint32; a value of 2^32 or more is malformed.
    #[inline]
    pub fn varint32(&mut self) -> Option<u32> {
        if let Some((&first, rest)) = self.rest.split_first()
            && first < 0x80
        {
            self.rest = rest;
            return Some(u32::from(first));
        }
        u32::try_from(self.varint64()?).ok()
    }

    /// A varint64 of at most ten bytes.
    #[inline]
    pub fn varint64(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().take(MAX_VARINT64_SIZE).enumerate() {
            let group = u64::from(byte & 0x7f);
            if index == 9 && group > 1 {
                return None;
            }
            value |= group << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Some(value);
            }
        }
        None
    }

    /// A zigzag varint64.
    pub fn varsigned64(&mut self) -> Option<i64> {
        self.varint64().map(|v| (v >> 1) as i64 ^ -((v & 1) as i64))
    }

    /// A length-prefixed slice.
    #[inline]
    pub fn lps(&mut self) -> Option<&'a [u8]> {
        let length = self.varint32()?;
        self.bytes(length as usize)
    }
}

#[cfg(test)]
mod tests;
