//! What stands in the place of `compression` in a build without zstd: nothing is compressed, and
//! what was is refused.

use crate::base::Result;
use crate::base::compression::CompressionType;

/// What a frame begins with: the number of the format, little-endian.
pub(super) const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub(super) enum Compressor {}

impl Compressor {
    pub fn new() -> Result<Self> {
        Err(CompressionType::Zstd.is_left_out())
    }

    pub fn compress(&mut self, _: &[&[u8]]) -> Result<&[u8]> {
        match *self {}
    }

    pub fn memory_usage(&self) -> usize {
        match *self {}
    }

    pub fn shrink(&mut self, _: usize) {
        match *self {}
    }
}

pub(super) enum Decompressor {}

impl Decompressor {
    pub fn new() -> Result<Self> {
        Err(CompressionType::Zstd.is_left_out())
    }

    pub fn decompress(&mut self, _: &[u8], _: &mut Vec<u8>, _: usize) -> bool {
        match *self {}
    }
}
