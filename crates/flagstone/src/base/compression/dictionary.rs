//! Dictionaries: bytes that the compressed blocks of one file refer back to.

use super::{CompressionOptions, CompressionType};

/// A file's dictionary, prepared once for all its blocks.
pub struct DecompressionDictionary {
    bytes: Vec<u8>,
}

impl DecompressionDictionary {
    /// Takes the content of the dictionary block.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The content of the dictionary block.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Makes a dictionary of at most `options.max_dict_bytes` out of sample blocks: trained for ZSTD if
/// `zstd_max_train_bytes` says so, the samples themselves otherwise. Empty if the codec ignores dictionaries or the
/// samples are too few.
pub fn build_dictionary(
    _kind: CompressionType,
    _options: &CompressionOptions,
    _samples: &[&[u8]],
) -> Vec<u8> {
    todo!()
}
