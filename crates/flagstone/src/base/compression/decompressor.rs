//! From the stored form back to the bytes, never trusting a size that the stored form claims.
//!
//! A claimed size is checked twice before memory is taken for it: against the caller's limit, and
//! against what the stored bytes could hold at their codec's best ratio. BZip2, which has no useful
//! ratio, grows its output as it goes.

use std::cell::RefCell;

use super::{CompressionType, DecompressionDictionary, bzip2, lz4, snappy, zlib, zstd};
use crate::base::coding::Decoder;
use crate::base::{Error, Result, SharedRoom};

/// The working memory of decompression, reusable for any codec.
#[derive(Default)]
pub struct Decompressor {
    snappy: snappy::Decoder,
    zlib: zlib::Decoder,
    zstd: zstd::Decoder,
}

impl Decompressor {
    /// Empty; codecs set themselves up when first used.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes that `stored` holds, at most `limit` of them.
    ///
    /// # Errors
    /// `Corruption` (without a place: the caller knows it) if the bytes are malformed or claim more
    /// than `limit`; `NotSupported` if this build does not have the codec.
    pub fn decompress(
        &mut self,
        kind: CompressionType,
        stored: &[u8],
        dictionary: Option<&DecompressionDictionary>,
        limit: usize,
    ) -> Result<Vec<u8>> {
        let (raw_size, body) = measure(kind, stored, limit)?;
        let raw = match kind {
            CompressionType::None => Some(body.to_vec()),
            CompressionType::Snappy => {
                let mut out = vec![0; raw_size];
                self.snappy.decompress_into(body, &mut out).map(|_| out)
            }
            CompressionType::Zlib => self.zlib.decompress(body, raw_size, dictionary),
            CompressionType::Bzip2 => bzip2::decompress(body, raw_size),
            CompressionType::Lz4 | CompressionType::Lz4hc => {
                lz4::decompress(body, raw_size, dictionary.map_or(&[], |d| d.bytes()))
            }
            CompressionType::Zstd => self.zstd.decompress(body, raw_size, dictionary),
        };
        raw.filter(|raw| raw.len() == raw_size).ok_or_else(|| malformed(kind, stored))
    }

    /// [`Self::decompress`] into what `room` makes for so many bytes.
    ///
    /// # Errors
    /// As there.
    pub fn decompress_into<K>(
        &mut self,
        kind: CompressionType,
        stored: &[u8],
        dictionary: Option<&DecompressionDictionary>,
        limit: usize,
        room: impl FnOnce(usize) -> SharedRoom<K>,
    ) -> Result<SharedRoom<K>> {
        if matches!(kind, CompressionType::None | CompressionType::Zlib | CompressionType::Bzip2) {
            // What BZip2 claims is not to be believed before it is there.
            let raw = self.decompress(kind, stored, dictionary, limit)?;
            let mut out = room(raw.len());
            out.unwritten().copy_from(&raw);
            return Ok(out);
        }
        let (raw_size, body) = measure(kind, stored, limit)?;
        let mut out = room(raw_size);
        let is_filled = match kind {
            CompressionType::Snappy => {
                self.snappy.decompress_into(body, &mut out) == Some(raw_size)
            }
            CompressionType::Lz4 | CompressionType::Lz4hc => {
                lz4::decompress_into(body, out.unwritten(), dictionary.map_or(&[], |d| d.bytes()))
                    .is_some()
            }
            CompressionType::Zstd => {
                self.zstd.decompress_into(body, &mut out, dictionary) == Some(raw_size)
            }
            CompressionType::None | CompressionType::Zlib | CompressionType::Bzip2 => false,
        };
        is_filled.then_some(out).ok_or_else(|| malformed(kind, stored))
    }
}

thread_local! {
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// What to work with is the thread's, or new where that is gone: a thread's last reads may come
/// from what goes after it.
fn with_own<T>(work: impl FnOnce(&mut Decompressor) -> T) -> T {
    match DECOMPRESSOR.try_with(|_| ()) {
        Ok(()) => DECOMPRESSOR.with_borrow_mut(work),
        Err(_) => work(&mut Decompressor::new()),
    }
}

/// [`Decompressor::decompress`] with this thread's working memory.
///
/// # Errors
/// As there.
pub fn decompress(
    kind: CompressionType,
    stored: &[u8],
    dictionary: Option<&DecompressionDictionary>,
    limit: usize,
) -> Result<Vec<u8>> {
    with_own(|d| d.decompress(kind, stored, dictionary, limit))
}

/// [`Decompressor::decompress_into`] with this thread's working memory.
///
/// # Errors
/// As there.
pub fn decompress_into<K>(
    kind: CompressionType,
    stored: &[u8],
    dictionary: Option<&DecompressionDictionary>,
    limit: usize,
    room: impl FnOnce(usize) -> SharedRoom<K>,
) -> Result<SharedRoom<K>> {
    with_own(|d| d.decompress_into(kind, stored, dictionary, limit, room))
}

/// How much the stored form holds, and what the codec is to work on.
///
/// # Errors
/// `NotSupported` if this build does not have the codec; `Corruption` if it is malformed, or claims
/// more than `limit` or than it can hold.
fn measure(kind: CompressionType, stored: &[u8], limit: usize) -> Result<(usize, &[u8])> {
    kind.check_built_in()?;
    let (raw_size, body) = split(kind, stored).ok_or_else(|| malformed(kind, stored))?;
    let is_absurd = raw_size > limit.min(best_case(kind, body.len()));
    if is_absurd {
        let message =
            format!("{} bytes compressed with {kind} claim to hold {raw_size}", stored.len());
        return Err(Error::corruption(message));
    }
    Ok((raw_size, body))
}

fn malformed(kind: CompressionType, stored: &[u8]) -> Error {
    Error::corruption(format!("{} bytes do not decompress with {kind}", stored.len()))
}

/// The size that the stored form claims to hold, and what the codec is to work on.
fn split(kind: CompressionType, stored: &[u8]) -> Option<(usize, &[u8])> {
    match kind {
        CompressionType::None => Some((stored.len(), stored)),
        CompressionType::Snappy => Some((snappy::raw_size(stored)?, stored)),
        _ => {
            let mut decoder = Decoder::new(stored);
            let raw_size = decoder.varint32()?;
            Some((raw_size as usize, decoder.rest()))
        }
    }
}

/// The most that `size` bytes can hold.
fn best_case(kind: CompressionType, size: usize) -> usize {
    match kind {
        CompressionType::None => size,
        // A copy of 64 bytes takes 3.
        CompressionType::Snappy => size.saturating_mul(32),
        // A copy of 258 bytes takes 2 bits.
        CompressionType::Zlib => size.saturating_mul(1032),
        CompressionType::Bzip2 => usize::MAX,
        // A byte of a long match's length stands for 255.
        CompressionType::Lz4 | CompressionType::Lz4hc => {
            size.saturating_mul(255).saturating_add(32)
        }
        // A block of 128 KiB takes at least 4 bytes.
        CompressionType::Zstd => (size / 4 + 1).saturating_mul(128 << 10),
    }
}
