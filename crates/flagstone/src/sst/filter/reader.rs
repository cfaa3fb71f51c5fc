//! Asking a filter.

use crate::base::hash::hash64;

/// A key to ask filters for, hashed once for all of them.
#[derive(Debug, Clone, Copy)]
pub struct FilterKey<'a> {
    key: &'a [u8],
    hash: u64,
}

impl<'a> FilterKey<'a> {
    /// Hashes a user key or a prefix.
    #[inline]
    pub fn new(key: &'a [u8]) -> Self {
        Self { key, hash: hash64(key) }
    }

    /// The bytes that were hashed.
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// The 64-bit hash.
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

/// A filter (or filter partition) as read from a file, over any owner of its bytes.
#[derive(Debug, Clone)]
pub struct Filter<B = Vec<u8>> {
    bytes: B,
}

impl<B: AsRef<[u8]>> Filter<B> {
    /// Takes the content of a filter block. What cannot be understood answers true to everything, as a filter from a
    /// later version must.
    pub fn new(bytes: B) -> Self {
        Self { bytes }
    }

    /// Whether the file may hold the key; `false` is certain.
    #[inline]
    pub fn may_contain(&self, _key: FilterKey<'_>) -> bool {
        todo!()
    }

    /// The content of the filter block.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }
}
