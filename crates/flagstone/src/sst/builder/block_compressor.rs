//! Compresses blocks and, with `verify_compression`, decompresses each again: a codec, or memory,
//! that garbles a block must not be found out when the only copy is read.

use crate::base::compression::{
    CompressionOptions, CompressionType, Compressor, DecompressionDictionary, Decompressor,
};
use crate::base::{Error, Result};

use super::super::settings::TableBuilderSettings;

pub(super) struct BlockCompressor {
    compressor: Compressor,
    options: CompressionOptions,
    /// Larger blocks are stored as they are.
    block_size_max: usize,
    check: Option<Check>,
}

struct Check {
    decompressor: Decompressor,
    dictionary: Option<DecompressionDictionary>,
}

impl BlockCompressor {
    /// One of the kind that the settings say; `None` if blocks are not to be compressed.
    ///
    /// # Errors
    /// `NotSupported` if the codec cannot be set up.
    pub fn new(settings: &TableBuilderSettings, dictionary: Option<&[u8]>) -> Result<Option<Self>> {
        if settings.compression == CompressionType::None {
            return Ok(None);
        }
        let compressor =
            Compressor::new(settings.compression, &settings.compression_options, dictionary)?;
        let check = settings.verify_compression.then(|| Check {
            decompressor: Decompressor::new(),
            dictionary: dictionary.map(|bytes| DecompressionDictionary::new(bytes.to_vec())),
        });
        let options = settings.compression_options.clone();
        let block_size_max = settings.compression.raw_size_max();
        Ok(Some(Self { compressor, options, block_size_max, check }))
    }

    /// Appends the compressed form of `block` to `out`, if the codec can compress it and that saves
    /// enough; how. Else nothing is appended, and the block is stored as it is.
    ///
    /// # Errors
    /// `InvalidArgument` if the codec fails, or `Corruption` if it has garbled the block.
    pub fn compress(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<CompressionType> {
        if block.len() > self.block_size_max {
            return Ok(CompressionType::None);
        }
        let start = out.len();
        self.compressor.compress(block, out)?;
        if !self.options.is_worthwhile(block.len(), out.len() - start) {
            out.truncate(start);
            return Ok(CompressionType::None);
        }
        self.check(block, &out[start..])?;
        Ok(self.compressor.kind())
    }

    /// Compresses with a dictionary that no reader has.
    #[cfg(test)]
    pub fn garble(&mut self, dictionary: &[u8]) {
        let kind = self.compressor.kind();
        self.compressor = Compressor::new(kind, &self.options, Some(dictionary)).unwrap();
    }

    /// Checks that `stored` is what `block` was compressed to, if that is wanted.
    ///
    /// # Errors
    /// `Corruption`.
    fn check(&mut self, block: &[u8], stored: &[u8]) -> Result<()> {
        let kind = self.compressor.kind();
        let Some(check) = &mut self.check else { return Ok(()) };
        let raw =
            check.decompressor.decompress(kind, stored, check.dictionary.as_ref(), block.len());
        match raw {
            Ok(raw) if raw == block => Ok(()),
            Ok(_) => Err(Error::corruption("a block decompresses to different bytes")),
            Err(error) => Err(error.context("a block that was just compressed")),
        }
    }
}

#[cfg(test)]
mod tests;
