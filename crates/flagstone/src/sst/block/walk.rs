//! Reads a block from front to back, whatever its keys mean: for meta blocks and for decoding an
//! index.

use crate::base::coding::Decoder;
use crate::base::{Error, Result};

use super::{Block, entry_header};

/// How many bytes of keys, put together, there may be for each byte of a block, and for any block:
/// keys that share much with those before would otherwise make more of few bytes than there is
/// memory. Names of meta blocks share little or nothing.
const KEYS_PER_BYTE: usize = 128;
const KEYS_MIN: usize = 16 << 20;
/// The same for an index, whose keys may be long, and whose restarts far apart.
const INDEX_KEYS_PER_BYTE: usize = 16;
const INDEX_KEYS_MIN: usize = 1 << 30;

/// A walk over the entries of a block whose values do not lie apart. Who keeps all keys needs a
/// bounded amount of memory.
pub(crate) struct BlockWalk<'a> {
    block: &'a Block,
    offset: usize,
    key: Vec<u8>,
    /// So many bytes of keys may still come.
    left: usize,
}

fn damage(offset: usize) -> Error {
    Error::corruption(format!("bad entry in block at byte {offset}"))
}

impl<'a> BlockWalk<'a> {
    /// Starts before the first entry.
    ///
    /// # Errors
    /// `Corruption` for a block with values apart: only data blocks may be such.
    pub fn new(block: &'a Block) -> Result<Self> {
        if block.layout().values_offset.is_some() {
            return Err(Error::corruption(
                "bad block contents: values apart in a meta or index block",
            ));
        }
        let left = block.data().len().saturating_mul(KEYS_PER_BYTE).max(KEYS_MIN);
        Ok(Self { block, offset: 0, key: Vec::new(), left })
    }

    /// The same in an index.
    ///
    /// # Errors
    /// As there.
    pub fn of_index(block: &'a Block) -> Result<Self> {
        let left = block.data().len().saturating_mul(INDEX_KEYS_PER_BYTE).max(INDEX_KEYS_MIN);
        Ok(Self { left, ..Self::new(block)? })
    }

    /// How many entries there are where each is a restart, as in most indexes; else fewer than
    /// there are.
    pub fn restarts(&self) -> usize {
        (self.block.layout().num_restarts as usize).min(self.entries().len())
    }

    fn entries(&self) -> &'a [u8] {
        &self.block.data()[..self.block.entries_end()]
    }

    /// Steps to the next entry: its value, or `None` at the end. [`BlockWalk::key`] is then its
    /// key.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn next(&mut self) -> Result<Option<&'a [u8]>> {
        let entries = self.entries();
        if self.offset >= entries.len() {
            return Ok(None);
        }
        let header = entry_header(entries, self.offset).ok_or_else(|| damage(self.offset))?;
        let start = header.suffix as usize + header.non_shared as usize;
        let value = entries.get(start..start + header.value_length as usize);
        let value = value.ok_or_else(|| damage(self.offset))?;
        self.take_key(header.shared as usize, &entries[header.suffix as usize..start])?;
        self.offset = start + value.len();
        Ok(Some(value))
    }

    /// Steps to the next entry of a block without value lengths: how much its key shares and all
    /// that follows the key. The caller says with [`BlockWalk::skip`] how much of that is the
    /// value.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn next_without_length(&mut self) -> Result<Option<(usize, &'a [u8])>> {
        let entries = self.entries();
        if self.offset >= entries.len() {
            return Ok(None);
        }
        let mut decoder = Decoder::new(&entries[self.offset..]);
        let mut numbers = || {
            let (shared, non_shared) = (decoder.varint32()?, decoder.varint32()?);
            Some((shared as usize, decoder.bytes(non_shared as usize)?))
        };
        let (shared, suffix) = numbers().ok_or_else(|| damage(self.offset))?;
        self.take_key(shared, suffix)?;
        self.offset = entries.len() - decoder.rest().len();
        Ok(Some((shared, decoder.rest())))
    }

    /// Steps over a value.
    pub fn skip(&mut self, value_length: usize) {
        self.offset += value_length;
    }

    /// The byte of the block at which the next entry starts.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The current entry's key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    fn take_key(&mut self, shared: usize, suffix: &[u8]) -> Result<()> {
        if shared > self.key.len() {
            return Err(damage(self.offset));
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(suffix);
        let left = self.left.checked_sub(self.key.len());
        self.left = left.ok_or_else(|| {
            Error::corruption("bad block contents: keys that are too much larger than the block")
        })?;
        Ok(())
    }
}
