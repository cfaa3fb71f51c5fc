//! Zstandard, through the C library.

use std::io::Cursor;

use zstd::zstd_safe::{CParameter, DCtx, DDict, WriteBuf, compress_bound};

use super::{CompressionOptions, CompressionType, DecompressionDictionary};
use crate::base::Result;

/// Makes frames.
pub struct Encoder(zstd::bulk::Compressor<'static>);

impl Encoder {
    pub fn new(options: &CompressionOptions, dictionary: &[u8]) -> Result<Self> {
        let set_up = || {
            let level = options.level_or(zstd::DEFAULT_COMPRESSION_LEVEL);
            let mut compressor = zstd::bulk::Compressor::with_dictionary(level, dictionary)?;
            compressor.set_parameter(CParameter::ChecksumFlag(options.checksum))?;
            std::io::Result::Ok(Self(compressor))
        };
        set_up().map_err(|error| CompressionType::Zstd.cannot_be_set_up(error))
    }

    pub fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
        out.reserve(compress_bound(raw.len()));
        let start = out.len() as u64;
        let mut target = Cursor::new(out);
        target.set_position(start);
        self.0.compress_to_buffer(raw, &mut target).ok().map(drop)
    }
}

/// Reads frames; its working memory is made at the first.
#[derive(Default)]
pub struct Decoder(Option<DCtx<'static>>);

impl Decoder {
    pub fn decompress(
        &mut self,
        body: &[u8],
        raw_size: usize,
        dictionary: Option<&DecompressionDictionary>,
    ) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(raw_size);
        self.decompress_to(body, &mut out, dictionary)?;
        Some(out)
    }

    /// Fills `out`, and returns how many bytes it were.
    pub fn decompress_into(
        &mut self,
        body: &[u8],
        out: &mut [u8],
        dictionary: Option<&DecompressionDictionary>,
    ) -> Option<usize> {
        self.decompress_to(body, out, dictionary)
    }

    fn decompress_to<B: WriteBuf + ?Sized>(
        &mut self,
        body: &[u8],
        out: &mut B,
        dictionary: Option<&DecompressionDictionary>,
    ) -> Option<usize> {
        if self.0.is_none() {
            self.0 = DCtx::try_create();
        }
        let context = self.0.as_mut()?;
        match dictionary.filter(|d| !d.bytes().is_empty()) {
            Some(dictionary) => {
                context.decompress_using_ddict(out, body, &dictionary.digested()?.0)
            }
            None => context.decompress(out, body),
        }
        .ok()
    }
}

/// A dictionary as the library wants it for reading.
pub struct Digested(DDict<'static>);

impl Digested {
    /// `None` if it is malformed.
    pub fn new(dictionary: &[u8]) -> Option<Self> {
        DDict::try_create(dictionary).map(Self)
    }
}

/// A dictionary of at most `max_size` bytes, trained with samples that lie one behind the other;
/// empty if they are too few or too much alike.
pub fn train(samples: &[u8], sizes: &[usize], max_size: usize) -> Vec<u8> {
    zstd::dict::from_continuous(samples, sizes, max_size).unwrap_or_default()
}
