//! From the stored form back to the bytes, never trusting a size that the stored form claims.

use super::{CompressionType, DecompressionDictionary};
use crate::base::Result;

/// The working memory of decompression, reusable for any codec.
#[derive(Default)]
pub struct Decompressor {}

impl Decompressor {
    /// Empty; codecs set themselves up when first used.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes that `stored` holds, at most `limit` of them.
    ///
    /// # Errors
    /// `Corruption` (without a place: the caller knows it) if the bytes are malformed or claim more than `limit`.
    pub fn decompress(
        &mut self,
        _kind: CompressionType,
        _stored: &[u8],
        _dictionary: Option<&DecompressionDictionary>,
        _limit: usize,
    ) -> Result<Vec<u8>> {
        todo!()
    }
}

/// [`Decompressor::decompress`] with this thread's working memory.
///
/// # Errors
/// As there.
pub fn decompress(
    _kind: CompressionType,
    _stored: &[u8],
    _dictionary: Option<&DecompressionDictionary>,
    _limit: usize,
) -> Result<Vec<u8>> {
    todo!()
}
