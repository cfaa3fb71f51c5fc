//! The hash index: beside a binary index, the blocks that hold keys of each prefix, in two blocks
//! of their own.
//!
//! ```text
//! prefixes = the prefixes, one behind the other, in the order of the keys
//! metadata = for each: varint32 length, varint32 first data block, varint32 number of data blocks
//! ```
//!
//! In memory only the prefixes' 64-bit hashes are kept. Two prefixes with the same hash share the
//! blocks of both, so that an answer may name too many blocks but never too few.

use crate::base::coding::{Decoder, put_varint32};
use crate::base::hash::hash64;
use crate::base::{Error, PrefixExtractor, Result};

/// Collects the two blocks while a table is written.
#[derive(Debug)]
pub(crate) struct PrefixHashBuilder {
    extractor: PrefixExtractor,
    prefixes: Vec<u8>,
    metadata: Vec<u8>,
    /// The prefix of the last keys, and the first and last block in which it occurred.
    current: Vec<u8>,
    blocks: Option<(u32, u32)>,
}

impl PrefixHashBuilder {
    pub fn new(extractor: PrefixExtractor) -> Self {
        Self {
            extractor,
            prefixes: Vec::new(),
            metadata: Vec::new(),
            current: Vec::new(),
            blocks: None,
        }
    }

    /// Notes that the data block number `block` holds a user key. Keys come in order.
    #[inline]
    pub fn add(&mut self, user_key: &[u8], block: u32) {
        let Some(prefix) = self.extractor.prefix(user_key) else { return };
        if let Some((_, last)) = &mut self.blocks
            && self.current == prefix
        {
            *last = block;
            return;
        }
        self.close();
        self.current.clear();
        self.current.extend_from_slice(prefix);
        self.blocks = Some((block, block));
    }

    fn close(&mut self) {
        let Some((first, last)) = self.blocks.take() else { return };
        self.prefixes.extend_from_slice(&self.current);
        put_varint32(&mut self.metadata, self.current.len() as u32);
        put_varint32(&mut self.metadata, first);
        put_varint32(&mut self.metadata, last - first + 1);
    }

    pub fn estimated_size(&self) -> usize {
        self.prefixes.len() + self.metadata.len()
    }

    /// The two blocks: prefixes and metadata.
    pub fn finish(&mut self) -> (&[u8], &[u8]) {
        self.close();
        (&self.prefixes, &self.metadata)
    }
}

/// Which data blocks hold keys of a prefix.
#[derive(Debug)]
pub(crate) struct PrefixHash {
    extractor: PrefixExtractor,
    /// Open addressing; the number of slots is a power of two and at least twice the number of
    /// prefixes.
    slots: Vec<Slot>,
}

/// The blocks `first..end`; an empty range stands for a free slot.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    hash: u64,
    first: u32,
    end: u32,
}

impl PrefixHash {
    /// Reads the two blocks of a table with so many data blocks.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn decode(
        prefixes: &[u8],
        metadata: &[u8],
        num_blocks: usize,
        extractor: PrefixExtractor,
    ) -> Result<Self> {
        let entries = Self::entries(prefixes, metadata, num_blocks)
            .ok_or_else(|| Error::corruption("bad entry in the hash index"))?;
        let mut hash = Self {
            extractor,
            slots: vec![Slot::default(); (2 * entries.len()).next_power_of_two()],
        };
        for entry in entries {
            let at = hash.slot_of(entry.hash);
            let slot = &mut hash.slots[at];
            *slot = match *slot {
                Slot { first, end, .. } if first < end => {
                    Slot { first: first.min(entry.first), end: end.max(entry.end), ..entry }
                }
                _ => entry,
            };
        }
        Ok(hash)
    }

    fn entries(prefixes: &[u8], metadata: &[u8], num_blocks: usize) -> Option<Vec<Slot>> {
        let (mut prefixes, mut metadata) = (Decoder::new(prefixes), Decoder::new(metadata));
        let mut entries = Vec::new();
        while !metadata.is_empty() {
            let prefix = prefixes.bytes(metadata.varint32()? as usize)?;
            let (first, count) = (metadata.varint32()?, metadata.varint32()?);
            // Earlier RocksDB noted the last prefix of a table without asking if there was one.
            if num_blocks == 0 && prefix.is_empty() && (first, count) == (0, 0) {
                continue;
            }
            let end = first.checked_add(count)?;
            if first >= end || end as usize > num_blocks {
                return None;
            }
            entries.push(Slot { hash: hash64(prefix), first, end });
        }
        prefixes.is_empty().then_some(entries)
    }

    /// The slot with that hash, else a free one.
    #[inline]
    fn slot_of(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].first < self.slots[at].end && self.slots[at].hash != hash {
            at = (at + 1) & mask;
        }
        at
    }

    /// The blocks (from, to before) that hold all entries of a user key if there are any; an empty
    /// range if there are none; `None` for a key without a prefix, which may be anywhere.
    #[inline]
    pub fn blocks_of(&self, user_key: &[u8]) -> Option<(usize, usize)> {
        let slot = self.slots[self.slot_of(hash64(self.extractor.prefix(user_key)?))];
        Some((slot.first as usize, slot.end as usize))
    }

    /// What this takes in memory, in bytes.
    pub fn memory_usage(&self) -> usize {
        size_of::<Slot>() * self.slots.capacity()
    }
}

#[cfg(test)]
mod tests;
