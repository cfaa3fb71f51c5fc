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
#[inline]
pub(crate) fn entry_header(entries: &[u8], offset: usize) -> Option<EntryHeader> {
    // Nearly always three numbers below 128, and more than three bytes left: one bounds check for all.
    if let Some(&[shared, non_shared, value_length]) = entries.get(offset..offset + 3)
        && (shared | non_shared | value_length) < 0x80
    {
        return Some(EntryHeader {
            shared: u32::from(shared),
            non_shared: u32::from(non_shared),
            value_length: u32::from(value_length),
            suffix: offset as u32 + 3,
        });
    }
    let rest = entries.get(offset..)?;
    let mut decoder = Decoder::new(rest);
    let (shared, non_shared, value_length) = (decoder.varint32()?, decoder.varint32()?, decoder.varint32()?);
    let suffix = (entries.len() - decoder.rest().len()) as u32;
    Some(EntryHeader { shared, non_shared, value_length, suffix })
}
