//! One codec with its options and dictionary, ready to compress block after block.

use super::{CompressionOptions, CompressionType};
use crate::base::Result;

/// A codec with its options and dictionary; its working memory is kept from block to block.
pub struct Compressor {
    kind: CompressionType,
}

impl Compressor {
    /// Sets a codec up.
    ///
    /// # Errors
    /// `InvalidArgument` if the codec refuses the options or the dictionary.
    pub fn new(
        kind: CompressionType,
        _options: &CompressionOptions,
        _dictionary: Option<&[u8]>,
    ) -> Result<Self> {
        Ok(Self { kind })
    }

    /// The codec.
    pub fn kind(&self) -> CompressionType {
        self.kind
    }

    /// Appends the stored form of `raw` to `out`, even where it is longer than `raw`.
    ///
    /// # Errors
    /// `InvalidArgument` if `raw` is too long for the codec (2 GiB for LZ4, 4 GiB for the others).
    pub fn compress(&mut self, _raw: &[u8], _out: &mut Vec<u8>) -> Result<()> {
        todo!()
    }
}
