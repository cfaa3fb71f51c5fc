//! One codec with its options and dictionary, ready to compress block after block.

use std::io::Cursor;

use bzip2::{Action, Compress as Bzip2Compress, Compression as Bzip2Level};
use flate2::{Compress as Deflate, Compression as DeflateLevel, FlushCompress, Status};
use zstd::zstd_safe::{CParameter, compress_bound};

use super::{CompressionOptions, CompressionType, lz4};
use crate::base::coding::put_varint32;
use crate::base::{Error, Result};

/// A codec with its options and dictionary; its working memory is kept from block to block.
pub struct Compressor {
    kind: CompressionType,
    codec: Codec,
}

enum Codec {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zlib { deflate: Box<Deflate>, dictionary: Vec<u8> },
    Bzip2,
    Lz4(lz4::Encoder),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    /// Sets a codec up. Codecs without dictionaries ignore one.
    ///
    /// # Errors
    /// `InvalidArgument` if the codec refuses the options or the dictionary.
    pub fn new(
        kind: CompressionType,
        options: &CompressionOptions,
        dictionary: Option<&[u8]>,
    ) -> Result<Self> {
        let dictionary = dictionary.unwrap_or_default();
        let codec = match kind {
            CompressionType::None => Codec::None,
            CompressionType::Snappy => Codec::Snappy(Box::new(snap::raw::Encoder::new())),
            CompressionType::Zlib => zlib_codec(options, dictionary),
            CompressionType::Bzip2 => Codec::Bzip2,
            CompressionType::Lz4 => lz4_codec(
                lz4::Effort::Fast { acceleration: acceleration(options.level) },
                dictionary,
            )?,
            CompressionType::Lz4hc => {
                lz4_codec(lz4::Effort::High { level: level_or(options.level, 0) }, dictionary)?
            }
            CompressionType::Zstd => {
                zstd_codec(options, dictionary).map_err(|error| cannot_set_up(kind, error))?
            }
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
            Codec::Snappy(encoder) => snappy(encoder, raw, out),
            Codec::Zlib { deflate, dictionary } => zlib(deflate, dictionary, raw, out),
            Codec::Bzip2 => bzip2(raw, out),
            Codec::Lz4(encoder) => encoder.compress(raw, out),
            Codec::Zstd(compressor) => {
                out.reserve(compress_bound(raw.len()));
                let start = out.len() as u64;
                let mut target = Cursor::new(out);
                target.set_position(start);
                compressor.compress_to_buffer(raw, &mut target).ok().map(drop)
            }
        }
    }
}

fn level_or(level: i32, default: i32) -> i32 {
    if level == CompressionOptions::DEFAULT_LEVEL { default } else { level }
}

/// LZ4 has no levels; a negative one asks for speed.
fn acceleration(level: i32) -> i32 {
    if level < 0 { level.saturating_neg() } else { 1 }
}

fn cannot_set_up(kind: CompressionType, why: impl std::fmt::Display) -> Error {
    Error::invalid_argument(format!("cannot set up compression with {kind}: {why}"))
}

fn lz4_codec(effort: lz4::Effort, dictionary: &[u8]) -> Result<Codec> {
    let encoder = lz4::Encoder::new(effort, dictionary);
    encoder.map(Codec::Lz4).ok_or_else(|| cannot_set_up(CompressionType::Lz4, "out of memory"))
}

fn zstd_codec(options: &CompressionOptions, dictionary: &[u8]) -> std::io::Result<Codec> {
    let level = level_or(options.level, zstd::DEFAULT_COMPRESSION_LEVEL);
    let mut compressor = zstd::bulk::Compressor::with_dictionary(level, dictionary)?;
    compressor.set_parameter(CParameter::ChecksumFlag(options.checksum))?;
    Ok(Codec::Zstd(compressor))
}

fn zlib_codec(options: &CompressionOptions, dictionary: &[u8]) -> Codec {
    let level = level_or(options.level, 6).clamp(0, 9) as u32;
    // RocksDB inflates with a window of 2^14, so no larger one may be used.
    let window_bits = options.window_bits.unsigned_abs().clamp(9, 14) as u8;
    let deflate =
        Box::new(Deflate::new_with_window_bits(DeflateLevel::new(level), false, window_bits));
    Codec::Zlib { deflate, dictionary: dictionary.to_vec() }
}

fn snappy(encoder: &mut snap::raw::Encoder, raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    let bound = snap::raw::max_compress_len(raw.len());
    if bound == 0 {
        return None;
    }
    out.resize(start + bound, 0);
    let written = encoder.compress(raw, &mut out[start..]).ok()?;
    out.truncate(start + written);
    Some(())
}

fn zlib(deflate: &mut Deflate, dictionary: &[u8], raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    deflate.reset();
    if !dictionary.is_empty() {
        deflate.set_dictionary(dictionary).ok()?;
    }
    // Nearly always enough for one round: deflate falls back to stored blocks of 5 bytes' overhead.
    out.reserve(raw.len() + raw.len() / 1000 + 64);
    loop {
        let rest = &raw[deflate.total_in() as usize..];
        match deflate.compress_vec(rest, out, FlushCompress::Finish).ok()? {
            Status::StreamEnd => return Some(()),
            Status::Ok | Status::BufError => out.reserve(raw.len() / 8 + 64),
        }
    }
}

/// RocksDB compresses with the smallest block (100 kB) and the default work factor, whatever the
/// level.
fn bzip2(raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut stream = Bzip2Compress::new(Bzip2Level::fast(), 0);
    out.reserve(raw.len() / 4 + 600);
    loop {
        let rest = &raw[stream.total_in() as usize..];
        match stream.compress_vec(rest, out, Action::Finish).ok()? {
            bzip2::Status::StreamEnd => return Some(()),
            _ => out.reserve(raw.len() / 4 + 600),
        }
    }
}
