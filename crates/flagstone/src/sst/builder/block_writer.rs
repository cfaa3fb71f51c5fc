//! Appends blocks to the file: compressed where that pays, with their trailers.

use crate::base::checksum::ChecksumType;
use crate::base::compression::CompressionType;
use crate::base::{Error, Result};
use crate::env::BufferedWriter;

use super::super::format::{BlockHandle, Footer, TRAILER_SIZE};
use super::block_compressor::BlockCompressor;
use super::placement::{Limit, Placement};

const ZEROS: [u8; 4096] = [0; 4096];

pub(super) struct BlockWriter {
    writer: BufferedWriter,
    footer: Footer,
    compressed: Vec<u8>,
    placement: Option<Placement>,
    /// Of the block that [`BlockWriter::write`] wrote last.
    last_kind: CompressionType,
    /// Bit `n` is set if a block of compression type `n` was written.
    types_used: u8,
}

impl BlockWriter {
    pub fn new(
        writer: BufferedWriter,
        format_version: u32,
        checksum: ChecksumType,
        base_context_checksum: u32,
    ) -> Self {
        let footer = Footer {
            checksum,
            format_version,
            metaindex: BlockHandle::default(),
            index: None,
            base_context_checksum,
        };
        Self {
            writer,
            footer,
            compressed: Vec::new(),
            placement: None,
            last_kind: CompressionType::None,
            types_used: 0,
        }
    }

    /// Places data blocks so.
    pub fn placing(self, placement: Option<Placement>) -> Self {
        Self { placement, ..self }
    }

    /// The size of the file once everything is handed over.
    pub fn offset(&self) -> u64 {
        self.writer.offset()
    }

    /// The types of compressed blocks so far, ascending.
    pub fn types_used(&self) -> impl Iterator<Item = CompressionType> {
        CompressionType::ALL.into_iter().filter(|kind| {
            *kind != CompressionType::None && self.types_used >> kind.to_byte() & 1 == 1
        })
    }

    /// Writes a block that readers expect uncompressed.
    ///
    /// # Errors
    /// `IoError`.
    pub fn write_raw(&mut self, block: &[u8]) -> Result<BlockHandle> {
        append(&mut self.writer, &self.footer, block, CompressionType::None)
    }

    /// Writes a block, compressed if there is a compressor that can and it saves enough.
    ///
    /// # Errors
    /// `IoError`, `InvalidArgument` if the codec fails, or `Corruption` if it was garbled.
    pub fn write(
        &mut self,
        block: &[u8],
        compressor: Option<&mut BlockCompressor>,
    ) -> Result<BlockHandle> {
        self.last_kind = self.compress(block, compressor)?;
        self.append_stored(block)
    }

    /// As [`BlockWriter::write`], a data block: where it is to be.
    ///
    /// # Errors
    /// As there.
    pub fn write_data(
        &mut self,
        block: &[u8],
        compressor: Option<&mut BlockCompressor>,
    ) -> Result<BlockHandle> {
        self.last_kind = self.compress(block, compressor)?;
        let size = self.stored(block).0.len();
        if let Some(placement) = &mut self.placement {
            placement.note(block.len(), size);
            let padding = placement.padding(self.writer.offset(), (size + TRAILER_SIZE) as u64);
            self.skip(padding)?;
        }
        self.append_stored(block)
    }

    /// Writes what is stored of a block that was compressed elsewhere.
    ///
    /// # Errors
    /// `IoError`.
    pub fn write_stored(&mut self, stored: &[u8], kind: CompressionType) -> Result<BlockHandle> {
        self.types_used |= 1 << kind.to_byte();
        append(&mut self.writer, &self.footer, stored, kind)
    }

    /// Compresses a block into `compressed`, if there is a compressor; how.
    fn compress(
        &mut self,
        block: &[u8],
        compressor: Option<&mut BlockCompressor>,
    ) -> Result<CompressionType> {
        let Some(compressor) = compressor else { return Ok(CompressionType::None) };
        self.compressed.clear();
        compressor.compress(block, &mut self.compressed).map_err(|error| self.locate(error))
    }

    /// Names the file, and where in it the next block was to be, of an error.
    pub fn locate(&self, error: Error) -> Error {
        error.at(self.writer.file().path()).at_offset(self.offset())
    }

    /// How large the next data block may become.
    pub fn limit(&self) -> Limit {
        self.placement.as_ref().map_or(Limit::NONE, |placement| placement.limit(self.offset()))
    }

    /// What the file has of `block`, which [`BlockWriter::write`] was given last, and its
    /// compression type.
    pub fn stored<'a>(&'a self, block: &'a [u8]) -> (&'a [u8], u8) {
        let is_compressed = self.last_kind != CompressionType::None;
        (if is_compressed { &self.compressed } else { block }, self.last_kind.to_byte())
    }

    fn append_stored(&mut self, block: &[u8]) -> Result<BlockHandle> {
        self.types_used |= 1 << self.last_kind.to_byte();
        let stored = if self.last_kind == CompressionType::None { block } else { &self.compressed };
        append(&mut self.writer, &self.footer, stored, self.last_kind)
    }

    /// Fills the file with zeros up to a multiple of `alignment`, a power of two.
    ///
    /// # Errors
    /// `IoError`.
    pub fn pad(&mut self, alignment: usize) -> Result<()> {
        self.skip(self.offset().next_multiple_of(alignment as u64) - self.offset())
    }

    fn skip(&mut self, mut missing: u64) -> Result<()> {
        while missing > 0 {
            let count = missing.min(ZEROS.len() as u64);
            self.writer.append(&ZEROS[..count as usize])?;
            missing -= count;
        }
        Ok(())
    }

    /// Writes the footer and hands everything to the file; its size.
    ///
    /// # Errors
    /// `IoError`.
    pub fn finish(mut self, metaindex: BlockHandle, index: BlockHandle) -> Result<u64> {
        let footer = Footer { metaindex, index: Some(index), ..self.footer };
        let mut bytes = Vec::new();
        footer.encode(self.offset(), &mut bytes);
        self.writer.append(&bytes)?;
        self.writer.flush()?;
        Ok(self.offset())
    }
}

fn append(
    writer: &mut BufferedWriter,
    footer: &Footer,
    block: &[u8],
    kind: CompressionType,
) -> Result<BlockHandle> {
    let handle = BlockHandle { offset: writer.offset(), size: block.len() as u64 };
    let mut trailer = [0; TRAILER_SIZE];
    trailer[0] = kind.to_byte();
    trailer[1..]
        .copy_from_slice(&footer.checksum_of(block, kind.to_byte(), handle.offset).to_le_bytes());
    writer.append(block)?;
    writer.append(&trailer)?;
    Ok(handle)
}
