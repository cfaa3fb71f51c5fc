//! Collects index entries while data blocks are written, and writes the index blocks at the end.
//!
//! Whether user keys suffice is known only when the last block is written, so everything is kept
//! until then.

use crate::base::coding::{put_lps, put_varsigned64};
use crate::base::{
    Comparator, InternalKey, InternalKeyBuf, MAX_SEQUENCE_NUMBER, PACKED_SIZE, Result, ValueType,
};

use super::super::block::BlockBuilder;
use super::super::format::{BlockHandle, IndexType, TRAILER_SIZE};
use super::super::settings::IndexShortening;
use super::IndexFlavor;

/// Builds the index of one table.
#[derive(Debug)]
pub(crate) struct IndexBuilder {
    comparator: Comparator,
    index_type: IndexType,
    shortening: IndexShortening,
    restart_interval: usize,
    partition_size: usize,
    flavor: IndexFlavor,
    /// Separators as internal keys, one behind the other; then first keys likewise.
    keys: Vec<u8>,
    first_keys: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key_end: usize,
    first_key_end: usize,
    handle: BlockHandle,
}

/// What the index takes in the file, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IndexSizes {
    /// Everything, with trailers.
    pub total: u64,
    /// The block over the partitions, if there are any.
    pub top_level: u64,
    /// The number of partitions.
    pub partitions: u64,
}

/// The parts of the table's settings that matter to the index.
pub(crate) struct IndexBuilderSettings {
    pub comparator: Comparator,
    pub index_type: IndexType,
    pub shortening: IndexShortening,
    pub restart_interval: usize,
    pub partition_size: usize,
    /// Format version 3 and later may store user keys.
    pub user_keys: bool,
    /// Format version 4 and later encode values as differences, unless blocks are padded.
    pub delta_values: bool,
}

impl IndexBuilder {
    pub fn new(settings: IndexBuilderSettings) -> Self {
        let flavor = IndexFlavor {
            user_keys: settings.user_keys,
            delta_values: settings.delta_values,
            first_keys: settings.index_type == IndexType::BinarySearchWithFirstKey,
        };
        Self {
            comparator: settings.comparator,
            index_type: settings.index_type,
            shortening: settings.shortening,
            restart_interval: settings.restart_interval,
            partition_size: settings.partition_size.max(1),
            flavor,
            keys: Vec::new(),
            first_keys: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// How keys and values are stored; final once the last block was added.
    pub fn flavor(&self) -> IndexFlavor {
        self.flavor
    }

    /// Notes a data block: its keys, where it lies, and the first key of the block that follows, if
    /// one does.
    pub fn add_block(
        &mut self,
        first: &[u8],
        last: InternalKey<'_>,
        next: Option<InternalKey<'_>>,
        handle: BlockHandle,
    ) {
        if let Some(next) = next
            && self.comparator.compare(last.user_key(), next.user_key()).is_eq()
        {
            self.flavor.user_keys = false;
        }
        let separator = self.separator(last, next);
        self.keys.extend_from_slice(
            separator.as_ref().map_or(last.as_bytes(), InternalKeyBuf::as_bytes),
        );
        if self.flavor.first_keys {
            self.first_keys.extend_from_slice(first);
        }
        let (key_end, first_key_end) = (self.keys.len(), self.first_keys.len());
        self.entries.push(Entry { key_end, first_key_end, handle });
    }

    /// A shorter key between `last` and `next`, if there is one.
    fn separator(
        &self,
        last: InternalKey<'_>,
        next: Option<InternalKey<'_>>,
    ) -> Option<InternalKeyBuf> {
        let mut user = last.user_key().to_vec();
        match (self.shortening, next) {
            (IndexShortening::None, _) | (IndexShortening::Separators, None) => return None,
            (_, Some(next)) => self.comparator.find_shortest_separator(&mut user, next.user_key()),
            (IndexShortening::SeparatorsAndSuccessor, None) => {
                self.comparator.find_short_successor(&mut user)
            }
        }
        let shortened = user.len() <= last.user_key().len()
            && self.comparator.compare(last.user_key(), &user).is_lt();
        shortened.then(|| InternalKeyBuf::new(&user, MAX_SEQUENCE_NUMBER, ValueType::FOR_SEEK))
    }

    /// About how large the index is so far, in bytes.
    pub fn estimated_size(&self) -> u64 {
        (self.keys.len() + self.first_keys.len() + 10 * self.entries.len()) as u64
    }

    /// Writes the index; `write` writes one block and says where it lies. Returns the handle of the
    /// (top) index.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn finish(
        &self,
        mut write: impl FnMut(&[u8]) -> Result<BlockHandle>,
    ) -> Result<(BlockHandle, IndexSizes)> {
        let mut sizes = IndexSizes::default();
        let mut writer = IndexBlockWriter::new(self.flavor, self.restart_interval);
        if self.index_type != IndexType::TwoLevel {
            for index in 0..self.entries.len() {
                writer.add(self.key(index), self.entries[index].handle, self.first_key(index));
            }
            let block = writer.finish();
            sizes.total = (block.len() + TRAILER_SIZE) as u64;
            return Ok((write(block)?, sizes));
        }
        let mut top = IndexBlockWriter::new(self.flavor, self.restart_interval);
        for index in 0..self.entries.len() {
            writer.add(self.key(index), self.entries[index].handle, self.first_key(index));
            let full =
                writer.estimated_size() >= self.partition_size || index + 1 == self.entries.len();
            if full {
                let block = writer.finish();
                sizes.total += (block.len() + TRAILER_SIZE) as u64;
                sizes.partitions += 1;
                top.add(self.key(index), write(block)?, &[]);
                writer.clear();
            }
        }
        let block = top.finish();
        sizes.top_level = block.len() as u64;
        sizes.total += (block.len() + TRAILER_SIZE) as u64;
        Ok((write(block)?, sizes))
    }

    fn key(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.entries[index - 1].key_end };
        &self.keys[start..self.entries[index].key_end]
    }

    fn first_key(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.entries[index - 1].first_key_end };
        &self.first_keys[start..self.entries[index].first_key_end]
    }
}

/// Writes one index block, or the block over filter partitions.
#[derive(Debug)]
pub(crate) struct IndexBlockWriter {
    flavor: IndexFlavor,
    block: BlockBuilder,
    last: BlockHandle,
    full: Vec<u8>,
    delta: Vec<u8>,
}

impl IndexBlockWriter {
    pub fn new(flavor: IndexFlavor, restart_interval: usize) -> Self {
        Self {
            flavor,
            block: BlockBuilder::new(restart_interval, None),
            last: BlockHandle::default(),
            full: Vec::new(),
            delta: Vec::new(),
        }
    }

    /// Adds an entry; `key` is an internal key, of which the flavor may store only the user key.
    pub fn add(&mut self, key: &[u8], handle: BlockHandle, first_key: &[u8]) {
        let key = if self.flavor.user_keys { &key[..key.len() - PACKED_SIZE] } else { key };
        self.full.clear();
        self.delta.clear();
        handle.encode(&mut self.full);
        put_varsigned64(&mut self.delta, handle.size.wrapping_sub(self.last.size) as i64);
        if self.flavor.first_keys {
            put_lps(&mut self.full, first_key);
            put_lps(&mut self.delta, first_key);
        }
        if self.flavor.delta_values {
            // Where a block lies, its value says only if it follows the one before.
            let follows = handle.offset == self.last.offset + self.last.size + TRAILER_SIZE as u64;
            let delta = follows.then_some(self.delta.as_slice());
            self.block.add_without_length(key, &self.full, delta);
        } else {
            self.block.add(key, &self.full);
        }
        self.last = handle;
    }

    pub fn estimated_size(&self) -> usize {
        self.block.estimated_size()
    }

    pub fn finish(&mut self) -> &[u8] {
        self.block.finish()
    }

    pub fn clear(&mut self) {
        self.block.clear();
    }
}
