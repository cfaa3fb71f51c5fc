//! Deflate, without zlib's header and trailer.

use flate2::{
    Compress as Deflate, Compression as DeflateLevel, Decompress as Inflate, FlushCompress,
    FlushDecompress, Status,
};

use super::{CompressionOptions, DecompressionDictionary};
use crate::base::Result;

/// Makes streams.
pub struct Encoder {
    deflate: Box<Deflate>,
    dictionary: Vec<u8>,
}

impl Encoder {
    #[expect(clippy::unnecessary_wraps, reason = "other codecs may fail")]
    pub fn new(options: &CompressionOptions, dictionary: &[u8]) -> Result<Self> {
        let level = options.level_or(6).clamp(0, 9) as u32;
        // RocksDB inflates with a window of 2^14, so no larger one may be used.
        let window_bits = options.window_bits.unsigned_abs().clamp(9, 14) as u8;
        let deflate = Deflate::new_with_window_bits(DeflateLevel::new(level), false, window_bits);
        Ok(Self { deflate: Box::new(deflate), dictionary: dictionary.to_vec() })
    }

    pub fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let Self { deflate, dictionary } = self;
        deflate.reset();
        if !dictionary.is_empty() {
            deflate.set_dictionary(dictionary).ok()?;
        }
        // Nearly always enough for one round: deflate falls back to stored blocks of 5 bytes'
        // overhead.
        out.reserve(raw.len() + raw.len() / 1000 + 64);
        loop {
            let rest = &raw[deflate.total_in() as usize..];
            match deflate.compress_vec(rest, out, FlushCompress::Finish).ok()? {
                Status::StreamEnd => return Some(()),
                Status::Ok | Status::BufError => out.reserve(raw.len() / 8 + 64),
            }
        }
    }
}

/// Reads streams; its working memory is made at the first.
#[derive(Default)]
pub struct Decoder(Option<Inflate>);

impl Decoder {
    pub fn decompress(
        &mut self,
        body: &[u8],
        raw_size: usize,
        dictionary: Option<&DecompressionDictionary>,
    ) -> Option<Vec<u8>> {
        let inflate = self.0.get_or_insert_with(|| Inflate::new(false));
        inflate.reset(false);
        if let Some(dictionary) = dictionary.filter(|d| !d.bytes().is_empty()) {
            inflate.set_dictionary(dictionary.bytes()).ok()?;
        }
        // One byte more than is due, so that a stream that holds more is seen to.
        let mut out = Vec::with_capacity(raw_size + 1);
        let status = inflate.decompress_vec(body, &mut out, FlushDecompress::Finish).ok()?;
        (status == Status::StreamEnd).then_some(out)
    }
}
