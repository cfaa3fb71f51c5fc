//! Snappy.

/// Makes blocks.
pub struct Encoder(snap::raw::Encoder);

impl Encoder {
    pub fn new() -> Self {
        Self(snap::raw::Encoder::new())
    }

    pub fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        let bound = snap::raw::max_compress_len(raw.len());
        if bound == 0 {
            return None;
        }
        out.resize(start + bound, 0);
        let written = self.0.compress(raw, &mut out[start..]).ok()?;
        out.truncate(start + written);
        Some(())
    }
}

/// Reads blocks.
#[derive(Default)]
pub struct Decoder(snap::raw::Decoder);

impl Decoder {
    /// Fills `out`, and returns how many bytes it were.
    pub fn decompress_into(&mut self, body: &[u8], out: &mut [u8]) -> Option<usize> {
        self.0.decompress(body, out).ok()
    }
}

/// The size that a block claims to hold.
pub fn raw_size(stored: &[u8]) -> Option<usize> {
    snap::raw::decompress_len(stored).ok()
}
