//! Compression of blocks and blob values, in the form that files of format_version 2 and later
//! hold:
//!
//! ```text
//! none            the bytes themselves
//! Snappy          one raw Snappy block (it carries its size)
//! all others      varint32 uncompressed size, then
//!   Zlib            a raw deflate stream, no header or trailer
//!   BZip2           a bzip2 stream
//!   LZ4, LZ4HC      one LZ4 block, no frame
//!   ZSTD            one zstd frame
//! ```

//! Each codec is a feature of the crate, and has its module. In a build without it
//! [`CompressionType::check_built_in`] refuses before anything else does.

#[cfg(feature = "bzip2")]
mod bzip2;
mod compressor;
mod decompressor;
mod dictionary;
#[cfg(not(all(
    feature = "bzip2",
    feature = "lz4",
    feature = "snappy",
    feature = "zlib",
    feature = "zstd"
)))]
mod left_out;
#[cfg(feature = "lz4")]
mod lz4;
mod options;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "zlib")]
mod zlib;
#[cfg(feature = "zstd")]
mod zstd;

use std::fmt;

#[cfg(not(feature = "bzip2"))]
use left_out::bzip2;
#[cfg(not(feature = "lz4"))]
use left_out::lz4;
#[cfg(not(feature = "snappy"))]
use left_out::snappy;
#[cfg(not(feature = "zlib"))]
use left_out::with_dictionary as zlib;
#[cfg(not(feature = "zstd"))]
use left_out::with_dictionary as zstd;

use crate::base::{Error, Result};

pub use compressor::Compressor;
pub use decompressor::{Decompressor, decompress, decompress_into};
pub use dictionary::{DecompressionDictionary, build_dictionary};
pub use options::CompressionOptions;

/// Compression of bytes; block trailers, blob file headers and properties store the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum CompressionType {
    /// No compression.
    None = 0,
    /// Snappy, RocksDB's default.
    #[default]
    Snappy = 1,
    /// Deflate.
    Zlib = 2,
    /// BZip2.
    Bzip2 = 3,
    /// LZ4, fast.
    Lz4 = 4,
    /// LZ4 with a more thorough search; read like LZ4.
    Lz4hc = 5,
    /// Zstandard.
    Zstd = 7,
}

/// The most bytes that one LZ4 block can hold (`LZ4_MAX_INPUT_SIZE`).
const LZ4_RAW_SIZE_MAX: usize = 0x7e00_0000;

/// ZSTD in files from before its format was final (2016); the frames are the same.
const ZSTD_NOT_FINAL: u8 = 0x40;

impl CompressionType {
    /// Every type.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Snappy, Self::Zlib, Self::Bzip2, Self::Lz4, Self::Lz4hc, Self::Zstd];

    /// The types whose codec this build has.
    #[doc(alias = "GetSupportedCompressions")]
    pub fn supported() -> Vec<Self> {
        Self::ALL.into_iter().filter(|compression| compression.is_built_in()).collect()
    }

    /// The type that a stored byte stands for; `None` for Xpress, custom and unknown types.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::None,
            1 => Self::Snappy,
            2 => Self::Zlib,
            3 => Self::Bzip2,
            4 => Self::Lz4,
            5 => Self::Lz4hc,
            7 | ZSTD_NOT_FINAL => Self::Zstd,
            _ => return None,
        })
    }

    /// Whether RocksDB has a type of this byte that is missing here: Xpress (6), and those of
    /// applications.
    pub fn is_elsewhere(byte: u8) -> bool {
        matches!(byte, 6 | 0x80..=0xfe)
    }

    /// The byte that is stored.
    #[inline]
    pub fn to_byte(self) -> u8 {
        self as u8
    }

    /// The name in the property `rocksdb.compression`, such as `LZ4`.
    pub fn property_name(self) -> &'static str {
        match self {
            Self::None => "NoCompression",
            Self::Snappy => "Snappy",
            Self::Zlib => "Zlib",
            Self::Bzip2 => "BZip2",
            Self::Lz4 => "LZ4",
            Self::Lz4hc => "LZ4HC",
            Self::Zstd => "ZSTD",
        }
    }

    /// The short name for people, such as `lz4`.
    pub fn short_name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
            Self::Lz4hc => "lz4hc",
            Self::Zstd => "zstd",
        }
    }

    /// The feature of the crate that has the codec; `None` for no compression.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Lz4hc => Some(Self::Lz4.short_name()),
            other => Some(other.short_name()),
        }
    }

    /// Whether this build has the codec.
    #[inline]
    pub const fn is_built_in(self) -> bool {
        match self {
            Self::None => true,
            Self::Snappy => cfg!(feature = "snappy"),
            Self::Zlib => cfg!(feature = "zlib"),
            Self::Bzip2 => cfg!(feature = "bzip2"),
            Self::Lz4 | Self::Lz4hc => cfg!(feature = "lz4"),
            Self::Zstd => cfg!(feature = "zstd"),
        }
    }

    /// Refuses a codec that this build does not have.
    ///
    /// # Errors
    /// `NotSupported`, naming the feature.
    #[inline]
    pub fn check_built_in(self) -> Result<()> {
        if self.is_built_in() { Ok(()) } else { Err(self.is_left_out()) }
    }

    #[cold]
    pub(crate) fn is_left_out(self) -> Error {
        let feature = self.feature().unwrap_or_default();
        Error::not_supported(format!(
            "{self} was left out of this build; build the crate flagstone with its feature `{feature}`"
        ))
    }

    /// LZ4, or none in a build without it.
    pub const fn fast() -> Self {
        if Self::Lz4.is_built_in() { Self::Lz4 } else { Self::None }
    }

    fn cannot_be_set_up(self, why: impl fmt::Display) -> Error {
        Error::invalid_argument(format!("cannot set up compression with {self}: {why}"))
    }

    /// The most bytes that can be compressed as one.
    pub fn raw_size_max(self) -> usize {
        match self {
            Self::Lz4 | Self::Lz4hc => LZ4_RAW_SIZE_MAX,
            // Beyond it the most that can come of it is no number of 32 bits, and the codec
            // refuses.
            Self::Snappy => 3_681_400_511,
            Self::None | Self::Zlib | Self::Bzip2 | Self::Zstd => u32::MAX as usize,
        }
    }

    /// Whether a dictionary makes a difference; the other types ignore one.
    pub fn uses_dictionary(self) -> bool {
        matches!(self, Self::Zlib | Self::Lz4 | Self::Lz4hc | Self::Zstd)
    }
}

impl fmt::Display for CompressionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short_name())
    }
}

#[cfg(test)]
mod tests;
