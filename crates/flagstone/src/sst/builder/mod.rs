//! Writes one table.
//!
//! 1. Entries go into a data block; a full block is compressed and appended to the file.
//! 2. Its index entry waits for the first key of the next block, between which and its own last key
//!    the separator lies.
//! 3. With a dictionary, blocks are held back until the dictionary can be made, then written all at
//!    once. Or they are compressed in a thread of its own, some blocks ahead of what is written
//!    (see [`parallel`]).
//! 4. Values that go beside the blocks are written at once, before the block with their entry.
//! 5. At the end follow filter, index, dictionary, range tombstones, properties, metaindex and
//!    footer.

mod begin;
mod block_compressor;
mod block_writer;
mod collectors;
mod embedding;
mod filters;
mod finish;
mod held_back;
mod parallel;
mod parts;
mod placement;

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::compression::build_dictionary;
use crate::base::{
    CollectedEntry, EntryKind, Error, InternalKey, InternalKeyBuf, MAX_SEQUENCE_NUMBER,
    PACKED_SIZE, RangeTombstone, Result, SequenceNumber, UniqueId, ValueType,
};
use crate::batch::MAX_ENTRY_SIZE;
use crate::env::{BufferedWriter, Spawn, WritableFile};

use super::block::{Block, BlockBuilder, GuideRoom};
use super::filter::{Filter, FilterPolicy};
use super::format::{BlockHandle, DEFAULT_FORMAT_VERSION, IndexType};
use super::index::{IndexBuilder, PrefixHashBuilder};
use super::properties::{TableProperties, name};
use super::read_cache_hits::Prepopulate;
use super::settings::TableBuilderSettings;
use super::verify::out_of_order;
use block_compressor::BlockCompressor;
use block_writer::BlockWriter;
use collectors::Collectors;
use embedding::Embedding;
use filters::Filters;
use held_back::HeldBack;
use parallel::{Batch, PARALLEL_BLOCK_MAX, ParallelCompressor, WrittenBlock};
use parts::{Bounds, CachedBlocks, Codec, DataBlock, KeyStructures, Stamps};
use placement::Limit;

pub use finish::{RANGE_DELETION_BYTES_MAX, range_deletion_bytes};
pub use parallel::parallel_compression_memory;

/// A block is not filled beyond so many bytes: with what it has besides, it must not become larger
/// than can be read.
const BLOCK_SIZE_MAX: usize = Block::SIZE_MAX - 64;

/// So much of a key is shown in an error.
const KEY_SHOWN_MAX: usize = 100;

const _: () =
    assert!(MAX_ENTRY_SIZE + PACKED_SIZE <= BLOCK_SIZE_MAX, "a block holds the largest entry");

/// Writes one table from entries in order.
///
/// Dropping it without [`TableBuilder::finish`] leaves an incomplete file behind, which the caller
/// removes. After an error it must not be used any more.
pub struct TableBuilder {
    settings: TableBuilderSettings,
    path: PathBuf,
    writer: BlockWriter,
    block: DataBlock,
    codec: Codec,
    cached: CachedBlocks,
    index: IndexBuilder,
    keys: KeyStructures,
    /// What takes large values, if they go beside the blocks.
    embedding: Option<Box<Embedding>>,
    tombstones: Vec<RangeTombstone>,
    properties: TableProperties,
    collectors: Collectors,
    bounds: Bounds,
}

/// What [`TableBuilder::finish`] wrote.
#[derive(Debug, Clone)]
pub struct TableSummary {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes after the last data block.
    pub tail_size: u64,
    /// The properties as written.
    pub properties: TableProperties,
    /// For the MANIFEST, if the identities were given.
    pub unique_id: Option<UniqueId>,
    /// The smallest key, range tombstones' starts included; `None` for an empty table.
    pub smallest: Option<InternalKeyBuf>,
    /// The largest key, range tombstones' (exclusive) ends included.
    pub largest: Option<InternalKeyBuf>,
    /// The smallest sequence number; 0 for an empty table.
    pub smallest_sequence: SequenceNumber,
    /// The largest sequence number; 0 for an empty table.
    pub largest_sequence: SequenceNumber,
    /// Whether blocks of it are in the block cache.
    pub is_cached: bool,
    /// Whether a collector of properties wants it to be compacted soon.
    pub needs_compaction: bool,
    /// A filter over the keys, for [`super::TableReadSettings::key_filter`]; if it was asked for,
    /// and none was written.
    pub key_filter: Option<Filter>,
}

impl TableBuilder {
    /// Starts an empty table in an empty file.
    ///
    /// # Errors
    /// `InvalidArgument` if the settings contradict each other.
    pub fn new(file: Arc<dyn WritableFile>, settings: TableBuilderSettings) -> Result<Self> {
        let path = file.path().to_path_buf();
        begin::check(&settings)?;
        let options = &settings.compression_options;
        let with_dictionary = options.max_dict_bytes > 0 && settings.compression.uses_dictionary();
        let compressor = BlockCompressor::new(&settings, None)?;
        let buffered = BufferedWriter::new(file, 0, settings.buffer_size);
        let context_base = begin::context_base(&settings);
        let writer =
            BlockWriter::new(buffered, settings.format_version, settings.checksum, context_base)
                .placing(begin::placement(&settings));
        let hashed = settings.index_type == IndexType::HashSearch;
        let hash_extractor = settings.prefix_extractor.clone().filter(|_| hashed);
        let index = IndexBuilder::new(begin::index(&settings));
        let filters = begin::filters(&settings);
        let key_filter = (settings.key_filter && filters.is_none())
            .then(|| FilterPolicy::DEFAULT.builder(DEFAULT_FORMAT_VERSION, settings.written_by))
            .flatten();
        Ok(Self {
            path,
            writer,
            block: DataBlock {
                entries: BlockBuilder::new(
                    settings.block_restart_interval,
                    settings.data_block_hash_ratio,
                ),
                limit: Limit::NONE,
                first_key: Vec::new(),
                last_key: Vec::new(),
                number: 0,
                written: None,
            },
            codec: Codec {
                compressor,
                held_back: with_dictionary.then(|| HeldBack::new(options.max_dict_buffer_bytes)),
                parallel: None,
                dictionary: Vec::new(),
            },
            cached: CachedBlocks { prepopulate: None, is_cached: false },
            index,
            keys: KeyStructures {
                filters,
                key_filter,
                prefix_hash: hash_extractor.map(PrefixHashBuilder::new),
            },
            embedding: settings.embedded_from.map(|size| Box::new(Embedding::new(size))),
            tombstones: Vec::new(),
            properties: TableProperties::default(),
            collectors: Collectors::new(&settings.collectors, begin::collector_context(&settings)),
            bounds: Bounds {
                smallest: None,
                sequences: (MAX_SEQUENCE_NUMBER, 0),
                stamps: Stamps::of(&settings.comparator),
            },
            settings,
        })
    }

    /// Puts data blocks into the block cache as they are written.
    #[must_use]
    pub fn prepopulating(mut self, prepopulate: Option<Prepopulate>) -> Self {
        self.cached.prepopulate = prepopulate;
        self
    }

    /// Compresses data blocks in so many threads of this spawner's more, so that the table is
    /// written in less time. Not where there is nothing to compress, where a dictionary is made
    /// first, where values go beside the blocks, or where how large a block is depends on where the
    /// one before ends.
    ///
    /// # Errors
    /// `NotSupported` if the codec cannot be set up.
    pub fn compressing_in_parallel(
        mut self,
        spawner: &Arc<dyn Spawn>,
        threads: usize,
    ) -> Result<Self> {
        let is_placed = self.settings.super_block.is_some() || self.settings.block_align.is_some();
        let serves = self.codec.held_back.is_none() && !is_placed && self.embedding.is_none();
        if !serves || threads == 0 {
            return Ok(self);
        }
        let compressors = (0..threads).map(|_| BlockCompressor::new(&self.settings, None));
        // None of them is there if there is nothing to compress.
        let compressors: Option<Vec<_>> = compressors.collect::<Result<_>>()?;
        if let Some(compressors) = compressors
            && let Some(own) = self.codec.compressor.take()
        {
            let spawner = spawner.clone();
            self.codec.parallel = Some(ParallelCompressor::new(spawner, own, compressors));
        }
        Ok(self)
    }

    /// Adds an entry; it must sort after the last one.
    ///
    /// # Errors
    /// `IoError` naming the file, `InvalidArgument` for an entry of almost 4 GiB or more.
    /// `Corruption`, which names no file, if the entry does not sort after the last one, or is of a
    /// type that does not belong among entries: what it comes from is damaged.
    pub fn add(&mut self, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        check_entry_size(key, value.len(), BLOCK_SIZE_MAX).map_err(|error| error.at(&self.path))?;
        self.check_order(key)?;
        match &self.embedding {
            None => self.add_stored(key, value),
            Some(_) => self.add_embedding(key, value),
        }
    }

    /// Adds what the table stores of an entry.
    #[inline]
    fn add_stored(&mut self, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        if let Some(stamps) = &mut self.bounds.stamps {
            stamps.take(key.user_key(), &self.settings.comparator);
        }
        self.count(key, value)?;
        if self.data_block_is_full(key, value) {
            self.finish_data_block()?;
        }
        if let Some(handle) = self.block.written.take() {
            self.index.add_block(
                &self.block.first_key,
                InternalKey::from_checked(&self.block.last_key),
                Some(key),
                handle,
            );
        }
        if self.block.entries.is_empty() {
            self.block.first_key.clear();
            self.block.first_key.extend_from_slice(key.as_bytes());
        }
        if let Some(filters) = &mut self.keys.filters {
            filters.add(key.user_key());
        }
        if let Some(filter) = &mut self.keys.key_filter {
            filter.add(key.user_key());
        }
        if let Some(hash) = &mut self.keys.prefix_hash {
            hash.add(key.user_key(), self.block.number);
        }
        if !self.collectors.is_empty()
            && let Some(kind) = key.value_type().map(EntryKind::of)
        {
            let (entry, size) = ((key.user_key(), value), self.writer.offset());
            self.collectors.add(&CollectedEntry::new(entry, kind, key.sequence(), size));
        }
        self.block.entries.add(key.as_bytes(), value);
        self.block.last_key.clear();
        self.block.last_key.extend_from_slice(key.as_bytes());
        Ok(())
    }

    #[inline]
    fn check_order(&mut self, key: InternalKey<'_>) -> Result<()> {
        if self.bounds.smallest.is_none() {
            self.bounds.smallest = Some(key.to_buf());
            return Ok(());
        }
        let last = InternalKey::from_checked(&self.block.last_key);
        let order = self.settings.comparator.compare(last.user_key(), key.user_key());
        let ascending = order.is_lt() || (order.is_eq() && last.packed() > key.packed());
        if ascending { Ok(()) } else { Err(out_of_order(last, key)) }
    }

    #[inline]
    fn count(&mut self, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        let properties = &mut self.properties;
        properties.num_entries += 1;
        properties.raw_key_size += key.as_bytes().len() as u64;
        properties.raw_value_size += value.len() as u64;
        match key.value_type() {
            Some(
                ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp,
            ) => {
                properties.num_deletions += 1;
            }
            Some(ValueType::Merge) => properties.num_merge_operands += 1,
            Some(ValueType::RangeDeletion) | None => {
                return Err(Error::corruption(format!("{key:?} does not belong among entries")));
            }
            Some(_) => {}
        }
        self.note_sequence(key.sequence());
        Ok(())
    }

    #[inline]
    fn note_sequence(&mut self, sequence: SequenceNumber) {
        self.bounds.sequences =
            (self.bounds.sequences.0.min(sequence), self.bounds.sequences.1.max(sequence));
    }

    /// Adds a range tombstone, in any order: keys from `start` to before `end`, older than
    /// `sequence`, are deleted. An empty range is left out.
    pub fn add_range_tombstone(&mut self, start: &[u8], end: &[u8], sequence: SequenceNumber) {
        if self.settings.comparator.compare_keys(start, end).is_ge() {
            return;
        }
        if let Some(stamps) = &mut self.bounds.stamps {
            stamps.take(start, &self.settings.comparator);
        }
        let properties = &mut self.properties;
        properties.num_entries += 1;
        properties.num_deletions += 1;
        properties.num_range_deletions += 1;
        properties.raw_key_size += (start.len() + PACKED_SIZE) as u64;
        properties.raw_value_size += end.len() as u64;
        self.note_sequence(sequence);
        if !self.collectors.is_empty() {
            let size = self.writer.offset();
            let entry = CollectedEntry::new((start, end), EntryKind::RangeDelete, sequence, size);
            self.collectors.add(&entry);
        }
        self.tombstones.push(RangeTombstone { start: start.to_vec(), end: end.to_vec(), sequence });
    }

    /// Notes the table's bounds, as the MANIFEST will have them, in a property: range tombstones
    /// end there, and who has lost the MANIFEST must know.
    pub fn note_bounds(&mut self, smallest: InternalKey<'_>, largest: InternalKey<'_>) {
        self.properties.set(name::BOUNDS, &TableProperties::encode_bounds(smallest, largest));
    }

    /// Notes up to which sequence number tables have all writes of the family.
    pub fn note_flushed_until(&mut self, sequence: SequenceNumber) {
        self.properties.set_number(name::FLUSHED_UNTIL, sequence);
    }

    #[inline]
    fn data_block_is_full(&self, key: InternalKey<'_>, value: &[u8]) -> bool {
        if self.block.entries.is_empty() {
            return false;
        }
        let (size, wanted) = (self.block.entries.estimated_size(), self.settings.block_size);
        if size >= wanted || size + key.as_bytes().len() + value.len() > BLOCK_SIZE_MAX {
            return true;
        }
        let at_most = || self.block.entries.estimated_size_after(key.as_bytes(), value);
        if self
            .block
            .limit
            .ends(size, at_most, || self.block.entries.size_with(key.as_bytes(), value))
        {
            return true;
        }
        let enough = wanted * 100usize.saturating_sub(self.settings.block_size_deviation) / 100;
        size > enough && at_most() > wanted
    }

    fn finish_data_block(&mut self) -> Result<()> {
        self.block.number += 1;
        if !self.collectors.is_empty() {
            self.collectors.block_added(self.block.entries.estimated_size());
        }
        if let Some(parallel) = &mut self.codec.parallel {
            let size = self.block.entries.finish().len();
            self.properties.uncompressed_data_size += size as u64;
            let is_huge = size > PARALLEL_BLOCK_MAX;
            let is_due = parallel.push(
                self.block.entries.go_on(),
                &self.block.first_key,
                &self.block.last_key,
            );
            return match (is_huge, is_due) {
                (true, _) => self.write_compressed(),
                (false, true) => self.hand_over(),
                (false, false) => Ok(()),
            };
        }
        let guide = self.guide_room(1);
        let block = self.block.entries.finish();
        self.properties.uncompressed_data_size += block.len() as u64;
        if let Some(held_back) = &mut self.codec.held_back {
            held_back.push(block, &self.block.first_key, &self.block.last_key);
            self.block.entries.clear();
            return if held_back.is_full() { self.release_held_back() } else { Ok(()) };
        }
        let handle = self.writer.write_data(block, self.codec.compressor.as_mut())?;
        if let Some(prepopulate) = &self.cached.prepopulate {
            self.cached.is_cached |=
                prepopulate.offer(handle, (block, guide), self.writer.stored(block))?;
        }
        self.block.written = Some(handle);
        self.block.entries.clear();
        self.block_written()
    }

    /// Has the blocks that are finished compressed, and writes those that were.
    fn hand_over(&mut self) -> Result<()> {
        let Some(parallel) = &mut self.codec.parallel else { return Ok(()) };
        let oldest = parallel
            .hand_over(&mut self.block.entries)
            .map_err(|error| self.writer.locate(error))?;
        oldest.map_or(Ok(()), |batch| self.write_batch(batch))
    }

    /// Writes all blocks that are finished.
    fn write_compressed(&mut self) -> Result<()> {
        while let Some(parallel) = &mut self.codec.parallel {
            let oldest = parallel.take_back().map_err(|error| self.writer.locate(error))?;
            let Some(batch) = oldest else {
                let rest = parallel.take_rest(&mut self.block.entries);
                return rest
                    .map_err(|error| self.writer.locate(error))
                    .and_then(|rest| self.write_batch(rest));
            };
            self.write_batch(batch)?;
        }
        Ok(())
    }

    fn write_batch(&mut self, batch: Batch) -> Result<()> {
        let guide = self.guide_room(batch.blocks().count() as u64);
        for block in batch.blocks() {
            let handle = self.writer.write_stored(block.stored, block.kind)?;
            if let Some(prepopulate) = &self.cached.prepopulate {
                let stored = (block.stored, block.kind.to_byte());
                self.cached.is_cached |= prepopulate.offer(handle, (block.raw, guide), stored)?;
            }
            self.index_in_parallel(block.first_key, block.last_key, handle);
            self.block_written()?;
        }
        if let Some(parallel) = &mut self.codec.parallel {
            parallel.reuse(batch);
        }
        Ok(())
    }

    /// Adds the block written before to the index, now that the key behind it is known.
    fn index_in_parallel(&mut self, first_key: &[u8], last_key: &[u8], handle: BlockHandle) {
        let Some(parallel) = &mut self.codec.parallel else { return };
        let written =
            WrittenBlock { first_key: first_key.to_vec(), last_key: last_key.to_vec(), handle };
        if let Some(before) = parallel.last_written.replace(written) {
            let next = Some(InternalKey::from_checked(first_key));
            let last = InternalKey::from_checked(&before.last_key);
            self.index.add_block(&before.first_key, last, next, before.handle);
        }
    }

    /// Writes what was compressed, and adds the last block to the index.
    fn release_parallel(&mut self) -> Result<()> {
        self.write_compressed()?;
        if let Some(last) =
            self.codec.parallel.take().and_then(|mut parallel| parallel.last_written.take())
        {
            self.index.add_block(
                &last.first_key,
                InternalKey::from_checked(&last.last_key),
                None,
                last.handle,
            );
        }
        Ok(())
    }

    /// What a cached block has for its guide, where `waiting` are not written yet.
    fn guide_room(&self, waiting: u64) -> GuideRoom {
        GuideRoom::of_table(self.properties.num_entries, self.properties.num_data_blocks + waiting)
    }

    fn block_written(&mut self) -> Result<()> {
        if let Some(alignment) = self.settings.block_align {
            self.writer.pad(alignment)?;
        }
        self.properties.num_data_blocks += 1;
        self.properties.data_size = self.writer.offset();
        self.block.limit = self.writer.limit();
        Ok(())
    }

    /// Makes the dictionary and writes the blocks that waited for it.
    fn release_held_back(&mut self) -> Result<()> {
        let Some(held_back) = self.codec.held_back.take() else { return Ok(()) };
        let options = &self.settings.compression_options;
        let samples = held_back
            .samples(options.zstd_max_train_bytes as usize, options.max_dict_bytes as usize);
        self.codec.dictionary = build_dictionary(self.settings.compression, options, &samples);
        if !self.codec.dictionary.is_empty() {
            self.codec.compressor =
                BlockCompressor::new(&self.settings, Some(&self.codec.dictionary))?;
        }
        let guide = self.guide_room(held_back.blocks.len() as u64);
        let mut blocks = held_back.blocks.into_iter().peekable();
        while let Some(block) = blocks.next() {
            let handle = self.writer.write_data(&block.bytes, self.codec.compressor.as_mut())?;
            if let Some(prepopulate) = &self.cached.prepopulate {
                let bytes = &block.bytes[..];
                self.cached.is_cached |=
                    prepopulate.offer(handle, (bytes, guide), self.writer.stored(bytes))?;
            }
            self.block_written()?;
            let last = InternalKey::from_checked(&block.last_key);
            match blocks.peek() {
                Some(next) => {
                    let next = InternalKey::from_checked(&next.first_key);
                    self.index.add_block(&block.first_key, last, Some(next), handle);
                }
                None => {
                    self.block.first_key = block.first_key;
                    self.block.last_key = block.last_key;
                    self.block.written = Some(handle);
                }
            }
        }
        Ok(())
    }

    /// About how large the file would become if it were finished now, in bytes.
    pub fn estimated_size(&self) -> u64 {
        let held_back = self.codec.held_back.as_ref().map_or(0, HeldBack::size)
            + self.codec.parallel.as_ref().map_or(0, ParallelCompressor::size);
        let filter = self.keys.filters.as_ref().map_or(0, Filters::estimated_size);
        self.writer.offset()
            + (self.block.entries.estimated_size() + held_back + filter) as u64
            + self.index.estimated_size()
            + self.keys.prefix_hash.as_ref().map_or(0, PrefixHashBuilder::estimated_size) as u64
    }

    /// Entries so far, range tombstones included.
    pub fn num_entries(&self) -> u64 {
        self.properties.num_entries
    }

    /// The last point entry added.
    pub fn last_key(&self) -> Option<InternalKey<'_>> {
        (!self.block.last_key.is_empty()).then(|| InternalKey::from_checked(&self.block.last_key))
    }

    /// Writes what follows the data and hands everything to the file; the caller syncs it.
    ///
    /// # Errors
    /// `IoError` naming the file; `InvalidArgument` for range tombstones of 4 GiB and more.
    pub fn finish(mut self) -> Result<TableSummary> {
        if !self.block.entries.is_empty() {
            self.finish_data_block()?;
        }
        self.release_held_back()?;
        self.release_parallel()?;
        if let Some(handle) = self.block.written.take() {
            self.index.add_block(
                &self.block.first_key,
                InternalKey::from_checked(&self.block.last_key),
                None,
                handle,
            );
        }
        finish::finish(self)
    }
}

/// Entries that are too large for a table come from the WAL of another engine alone: here they are
/// refused when they are written.
#[inline]
fn check_entry_size(key: InternalKey<'_>, value_size: usize, size_max: usize) -> Result<()> {
    let size = key.as_bytes().len() + value_size;
    if size <= size_max { Ok(()) } else { Err(entry_too_large(key.user_key(), size, size_max)) }
}

#[cold]
fn entry_too_large(user_key: &[u8], size: usize, size_max: usize) -> Error {
    let (start, more) =
        (&user_key[..user_key.len().min(KEY_SHOWN_MAX)], user_key.len() > KEY_SHOWN_MAX);
    Error::invalid_argument(format!(
        "key '{}{}' and its value have {size} bytes, and an entry of a table has at most {size_max}: with enable_blob_files \
         such a value goes to a blob file",
        start.escape_ascii(),
        if more { "..." } else { "" },
    ))
}

#[cfg(test)]
mod tests;
