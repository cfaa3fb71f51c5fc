//! BZip2.

use bzip2::{Action, Compress, Compression};

/// The most that the output of decompression grows at once.
const STEP: usize = 1 << 20;

/// Appends a stream.
///
/// RocksDB compresses with the smallest block (100 kB) and the default work factor, whatever the
/// level.
pub fn compress(raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut stream = Compress::new(Compression::fast(), 0);
    out.reserve(raw.len() / 4 + 600);
    loop {
        let rest = &raw[stream.total_in() as usize..];
        match stream.compress_vec(rest, out, Action::Finish).ok()? {
            bzip2::Status::StreamEnd => return Some(()),
            _ => out.reserve(raw.len() / 4 + 600),
        }
    }
}

/// The bytes of a stream, a few more than `raw_size` at most.
pub fn decompress(body: &[u8], raw_size: usize) -> Option<Vec<u8>> {
    let mut stream = bzip2::Decompress::new(false);
    let mut out = Vec::new();
    while out.len() <= raw_size {
        out.reserve((raw_size - out.len() + 1).min(STEP));
        let (read, written) = (stream.total_in(), stream.total_out());
        let rest = &body[read as usize..];
        if stream.decompress_vec(rest, &mut out).ok()? == bzip2::Status::StreamEnd {
            return Some(out);
        }
        if (read, written) == (stream.total_in(), stream.total_out()) {
            return None;
        }
    }
    None
}
