//! Compressed WALs: every logical record is one zstd frame.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::base::{Error, Result};

/// How much room the output gets at a time: what a frame claims to hold is not believed.
const STEP: usize = 256 * 1024;

/// What a frame begins with: the number of the format, little-endian.
pub(super) const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Compresses one record after the other.
pub(super) struct Compressor {
    context: zstd::bulk::Compressor<'static>,
    gathered: Vec<u8>,
    output: Vec<u8>,
}

impl Compressor {
    pub fn new() -> Result<Self> {
        let failed =
            |error: std::io::Error| Error::not_supported(format!("cannot set up zstd: {error}"));
        let mut context =
            zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL).map_err(failed)?;
        context.include_checksum(true).map_err(failed)?;
        Ok(Self { context, gathered: Vec::new(), output: Vec::new() })
    }

    /// The frame that holds all `parts`, one behind the other.
    pub fn compress(&mut self, parts: &[&[u8]]) -> Result<&[u8]> {
        let input = match parts {
            [one] => one,
            _ => {
                self.gathered.clear();
                self.gathered.extend(parts.iter().copied().flatten());
                &self.gathered[..]
            }
        };
        self.output.clear();
        self.output.reserve(zstd::zstd_safe::compress_bound(input.len()));
        self.context.compress_to_buffer(input, &mut self.output).map_err(|error| {
            Error::not_supported(format!("zstd cannot compress a WAL record: {error}"))
        })?;
        Ok(&self.output)
    }

    /// Bytes of its buffers.
    pub fn memory_usage(&self) -> usize {
        self.gathered.capacity() + self.output.capacity()
    }

    /// Lets go of what an enormous record has grown beyond `most` bytes.
    pub fn shrink(&mut self, most: usize) {
        for buffer in [&mut self.gathered, &mut self.output] {
            if buffer.capacity() > most {
                *buffer = Vec::new();
            }
        }
    }
}

/// Undoes it.
pub(super) struct Decompressor {
    context: Decoder<'static>,
}

impl Decompressor {
    pub fn new() -> Result<Self> {
        let context = Decoder::new()
            .map_err(|error| Error::not_supported(format!("cannot set up zstd: {error}")))?;
        Ok(Self { context })
    }

    /// Replaces `output` by what `frame` holds; `false` if it is not exactly one frame of at most
    /// `limit` bytes.
    pub fn decompress(&mut self, frame: &[u8], output: &mut Vec<u8>, limit: usize) -> bool {
        output.clear();
        if self.context.reinit().is_err() {
            return false;
        }
        let mut input = InBuffer::around(frame);
        let mut complete = frame.is_empty();
        while !complete {
            let before = (input.pos(), output.len());
            output.reserve(STEP);
            let start = output.len();
            let Ok(hint) = self.context.run(&mut input, &mut OutBuffer::around_pos(output, start))
            else {
                return false;
            };
            complete = hint == 0;
            let stuck = before == (input.pos(), output.len());
            if output.len() > limit || (stuck && !complete) {
                return false;
            }
        }
        input.pos() == frame.len()
    }
}

#[cfg(test)]
mod tests;
