//! One codec with its options and dictionary, ready to compress block after block.

use super::{CompressionOptions, CompressionType, bzip2, lz4, snappy, zlib, zstd};
use crate::base::coding::put_varint32;
use crate::base::{Error, Result};

/// A codec with its options and dictionary; its working memory is kept from block to block.
pub struct Compressor {
    kind: CompressionType,
    codec: Codec,
}

enum Codec {
    None,
    Snappy(Box<snappy::Encoder>),
    Zlib(zlib::Encoder),
    Bzip2,
    Lz4(lz4::Encoder),
    Zstd(zstd::Encoder),
}

impl Compressor {
    /// Sets a codec up. Codecs without dictionaries ignore one.
    ///
    /// # Errors
    /// `NotSupported` if this build does not have the codec; `InvalidArgument` if it refuses the
    /// options or the dictionary.
    pub fn new(
        kind: CompressionType,
        options: &CompressionOptions,
        dictionary: Option<&[u8]>,
    ) -> Result<Self> {
        kind.check_built_in()?;
        let dictionary = dictionary.unwrap_or_default();
        let codec = match kind {
            CompressionType::None => Codec::None,
            CompressionType::Snappy => Codec::Snappy(Box::new(snappy::Encoder::new())),
            CompressionType::Zlib => Codec::Zlib(zlib::Encoder::new(options, dictionary)?),
            CompressionType::Bzip2 => Codec::Bzip2,
            CompressionType::Lz4 => lz4_codec(
                lz4::Effort::Fast { acceleration: acceleration(options.level) },
                dictionary,
            )?,
            CompressionType::Lz4hc => {
                lz4_codec(lz4::Effort::High { level: options.level_or(0) }, dictionary)?
            }
            CompressionType::Zstd => Codec::Zstd(zstd::Encoder::new(options, dictionary)?),
        };
        Ok(Self { kind, codec })
    }

    /// The codec.
    pub fn kind(&self) -> CompressionType {
        self.kind
    }

    /// Appends the stored form of `raw` to `out`, even where it is longer than `raw`.
    ///
    /// # Errors
    /// `InvalidArgument` if `raw` is longer than [`CompressionType::raw_size_max`], or the codec
    /// fails; `out` is as it was.
    pub fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let done = self.try_compress(raw, out);
        if done.is_none() {
            out.truncate(start);
            let message = format!("{} cannot compress a value of {} bytes", self.kind, raw.len());
            return Err(Error::invalid_argument(message));
        }
        Ok(())
    }

    fn try_compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let raw_size = u32::try_from(raw.len()).ok()?;
        if !matches!(self.codec, Codec::None | Codec::Snappy(_)) {
            put_varint32(out, raw_size);
        }
        match &mut self.codec {
            Codec::None => {
                out.extend_from_slice(raw);
                Some(())
            }
            Codec::Snappy(encoder) => encoder.compress(raw, out),
            Codec::Zlib(encoder) => encoder.compress(raw, out),
            Codec::Bzip2 => bzip2::compress(raw, out),
            Codec::Lz4(encoder) => encoder.compress(raw, out),
            Codec::Zstd(encoder) => encoder.compress(raw, out),
        }
    }
}

/// LZ4 has no levels; a negative one asks for speed.
fn acceleration(level: i32) -> i32 {
    if level < 0 { level.saturating_neg() } else { 1 }
}

fn lz4_codec(effort: lz4::Effort, dictionary: &[u8]) -> Result<Codec> {
    let encoder = lz4::Encoder::new(effort, dictionary);
    let is_short = || CompressionType::Lz4.cannot_be_set_up("out of memory");
    encoder.map(Codec::Lz4).ok_or_else(is_short)
}
