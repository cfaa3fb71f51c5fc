//! The numbers in front of an entry.

use crate::base::coding::Decoder;

/// `varint32 shared, varint32 non_shared, varint32 value_length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryHeader {
    /// Bytes of the previous key that this one starts with.
    pub shared: u32,
    /// Bytes of the key that follow.
    pub non_shared: u32,
    /// Bytes of the value.
    pub value_length: u32,
    /// Where the key suffix starts.
    pub suffix: u32,
}

/// Reads the header at `offset` of `entries`, which ends where the entries do.
#[inline(always)]
pub(crate) fn entry_header(entries: &[u8], offset: usize) -> Option<EntryHeader> {
    // Nearly always keys are shorter than 128 bytes and values than 16 KiB, and more than a header
    // follows: one bounds check for all numbers.
    if let Some(&[shared, non_shared, low, high]) = entries.get(offset..offset + 4)
        && (shared | non_shared) < 0x80
        && (low & high) < 0x80
    {
        let (value_length, size) = if low < 0x80 {
            (u32::from(low), 3)
        } else {
            (u32::from(low & 0x7f) | u32::from(high) << 7, 4)
        };
        return Some(EntryHeader {
            shared: u32::from(shared),
            non_shared: u32::from(non_shared),
            value_length,
            suffix: offset as u32 + size,
        });
    }
    long_header(entries, offset)
}

/// A header of long numbers, or at the very end.
#[cold]
fn long_header(entries: &[u8], offset: usize) -> Option<EntryHeader> {
    let rest = entries.get(offset..)?;
    let mut decoder = Decoder::new(rest);
    let (shared, non_shared, value_length) =
        (decoder.varint32()?, decoder.varint32()?, decoder.varint32()?);
    let suffix = (entries.len() - decoder.rest().len()) as u32;
    Some(EntryHeader { shared, non_shared, value_length, suffix })
}

#[cfg(test)]
mod tests;
