//! The tail of a table: everything after the data blocks.

use std::fmt::Write as _;

use crate::base::compression::CompressionType;
use crate::base::{
    Error, InternalKey, InternalKeyBuf, MAX_SEQUENCE_NUMBER, PACKED_SIZE, RangeTombstone, Result,
    SequenceNumber, ValueType, WriteTimes, timestamp,
};

use super::super::block::{Block, BlockBuilder};
use super::super::filter::{Filter, FilterPolicy};
use super::super::format::{BlockHandle, IndexType, meta_name};
use super::super::index::{IndexFlavor, IndexSizes};
use super::super::properties::{TableProperties, name};
use super::super::settings::TableBuilderSettings;
use super::block_compressor::BlockCompressor;
use super::block_writer::BlockWriter;
use super::embedding::Embedding;
use super::parts::Stamps;
use super::{TableBuilder, TableSummary, collectors};

pub(super) fn finish(mut builder: TableBuilder) -> Result<TableSummary> {
    let tail_start = builder.writer.offset();
    let flavor = builder.index.flavor();
    let settings = &builder.settings;
    let mut meta: Vec<(&str, BlockHandle)> = Vec::new();

    let mut filter = None;
    if let Some(filters) = builder.keys.filters.take() {
        filter =
            filters.finish(&mut builder.writer, flavor, settings.index_block_restart_interval)?;
    }
    if let Some((handle, size, elements)) = filter {
        let partitioned = settings.partition_filters;
        let name = if partitioned { meta_name::PARTITIONED_FILTER } else { meta_name::FULL_FILTER };
        meta.push((name, handle));
        builder.properties.filter_size = size;
        builder.properties.num_filter_entries = elements;
    }

    // Index blocks are not compressed with the data blocks' dictionary.
    let mut compressor =
        if settings.compress_index { BlockCompressor::new(settings, None)? } else { None };
    let writer = &mut builder.writer;
    let mut hash_size = 0;
    if let Some(hash) = &mut builder.keys.prefix_hash {
        let (prefixes, metadata) = hash.finish();
        hash_size = (prefixes.len() + metadata.len()) as u64;
        meta.push((meta_name::HASH_PREFIXES, writer.write(prefixes, compressor.as_mut())?));
        meta.push((meta_name::HASH_METADATA, writer.write(metadata, compressor.as_mut())?));
    }
    let (index, mut sizes) =
        builder.index.finish(|block| writer.write(block, compressor.as_mut()))?;
    sizes.total += hash_size;
    if settings.format_version >= 6 {
        meta.push((meta_name::INDEX, index));
    }
    if !builder.codec.dictionary.is_empty() {
        meta.push((meta_name::DICTIONARY, writer.write_raw(&builder.codec.dictionary)?));
    }
    if !builder.tombstones.is_empty() {
        sort(&mut builder.tombstones, settings);
        let block = encode_tombstones(&builder.tombstones, settings.range_deletion_bytes_max);
        let block = block.map_err(|error| error.at(&builder.path))?;
        meta.push((meta_name::RANGE_DELETIONS, writer.write_raw(&block)?));
    }
    let (collected, needs_compaction) = builder.collectors.finish();
    builder.properties.raw.extend(collected);
    let met = (builder.embedding.as_deref(), builder.bounds.stamps.as_ref());
    set_what_was_met(&mut builder.properties, met);
    set_write_times(&mut builder.properties, settings, builder.bounds.sequences);
    fill_properties(&mut builder.properties, settings, &builder.writer, flavor, sizes, tail_start);
    meta.push((meta_name::PROPERTIES, builder.writer.write_raw(&builder.properties.encode())?));
    let metaindex = builder.writer.write_raw(&encode_metaindex(meta))?;
    let (smallest, largest) = bounds(&builder);
    let size = builder.writer.finish(metaindex, index)?;
    let empty = builder.properties.num_entries == 0;
    Ok(TableSummary {
        size,
        tail_size: size - tail_start,
        unique_id: builder.properties.unique_id(),
        properties: builder.properties,
        smallest,
        largest,
        smallest_sequence: if empty { 0 } else { builder.bounds.sequences.0 },
        largest_sequence: builder.bounds.sequences.1,
        is_cached: builder.cached.is_cached,
        needs_compaction,
        key_filter: builder.keys.key_filter.map(|mut keys| Filter::new(keys.finish())),
    })
}

/// Notes what only the entries told.
fn set_what_was_met(
    properties: &mut TableProperties,
    (embedding, stamps): (Option<&Embedding>, Option<&Stamps>),
) {
    if let Some(embedding) = embedding {
        embedding.note(properties);
    }
    if let Some((oldest, newest)) = stamps.and_then(Stamps::ends) {
        properties.set(name::TIMESTAMP_MIN, oldest);
        properties.set(name::TIMESTAMP_MAX, newest);
    }
}

fn set_write_times(
    properties: &mut TableProperties,
    settings: &TableBuilderSettings,
    (smallest, largest): (SequenceNumber, SequenceNumber),
) {
    let Some(all) = &settings.write_times else { return };
    let own = all.about(smallest, largest).limited(WriteTimes::TABLE_MAX);
    if !own.is_empty() {
        properties.set(name::WRITE_TIMES, &own.encode());
    }
}

/// So many bytes of range deletions a table has room for at most.
pub const RANGE_DELETION_BYTES_MAX: usize = Block::SIZE_MAX;

fn sort(tombstones: &mut [RangeTombstone], settings: &TableBuilderSettings) {
    tombstones.sort_by(|a, b| {
        settings.comparator.compare(&a.start, &b.start).then_with(|| b.sequence.cmp(&a.sequence))
    });
}

/// # Errors
/// `InvalidArgument` if they may need more than `size_max` bytes: nobody could read the block.
fn encode_tombstones(tombstones: &[RangeTombstone], size_max: usize) -> Result<Vec<u8>> {
    let mut block = BlockBuilder::new(1, None);
    for tombstone in tombstones {
        let key =
            InternalKeyBuf::new(&tombstone.start, tombstone.sequence, ValueType::RangeDeletion);
        if block.estimated_size_after(key.as_bytes(), &tombstone.end) > size_max {
            let count = tombstones.len();
            return Err(Error::invalid_argument(format!(
                "{count} range deletions with long keys do not fit into a table, which holds up to {size_max} bytes of them"
            )));
        }
        block.add(key.as_bytes(), &tombstone.end);
    }
    Ok(block.finish().to_vec())
}

/// At most so many bytes of the block of range deletions.
pub fn range_deletion_bytes(tombstone: &RangeTombstone) -> u64 {
    // Three lengths, and the restart.
    (tombstone.start.len() + PACKED_SIZE + tombstone.end.len() + 3 * 5 + 4) as u64
}

fn encode_metaindex(mut entries: Vec<(&str, BlockHandle)>) -> Vec<u8> {
    entries.sort_unstable_by_key(|&(name, _)| name);
    let mut block = BlockBuilder::new(1, None);
    for (name, handle) in entries {
        let mut value = Vec::new();
        handle.encode(&mut value);
        block.add(name.as_bytes(), &value);
    }
    block.finish().to_vec()
}

fn fill_properties(
    properties: &mut TableProperties,
    settings: &TableBuilderSettings,
    writer: &BlockWriter,
    flavor: IndexFlavor,
    sizes: IndexSizes,
    tail_start: u64,
) {
    properties.index_size = sizes.total;
    properties.tail_start_offset = tail_start;
    properties.format_version = u64::from(settings.format_version);
    properties.column_family = Some(settings.column_family.0);
    properties.column_family_name.clone_from(&settings.column_family_name);
    properties.comparator = match &settings.stripped_order {
        None => settings.comparator.name().to_owned(),
        Some(name) => {
            properties.set_number(name::TIMESTAMPS_PERSISTED, 0);
            name.clone()
        }
    };
    properties.merge_operator = settings.merge_operator_name.clone().unwrap_or_default();
    properties.prefix_extractor = settings
        .prefix_extractor
        .as_ref()
        .map(|extractor| extractor.name().into_owned())
        .unwrap_or_default();
    properties.filter_policy = settings
        .filter_policy
        .as_ref()
        .map(FilterPolicy::property_name)
        .unwrap_or_default()
        .to_owned();
    properties.compression = compression_name(settings, writer);
    properties.creation_time = settings.creation_time;
    properties.oldest_key_time = settings.oldest_key_time;
    properties.newest_key_time = settings.newest_key_time.unwrap_or(0);
    properties.file_creation_time = settings.file_creation_time;
    properties.db_identity.clone_from(&settings.db_identity);
    properties.session_identity.clone_from(&settings.session_identity);
    properties.original_file_number = settings.file_number.0;

    for (name, value) in &settings.user_properties {
        properties.raw.insert(name.clone(), value.clone());
    }
    properties.set(name::INDEX_TYPE, &(settings.index_type as u32).to_le_bytes());
    let flag = |set: bool| if set { b"1" } else { b"0" };
    properties.set(name::WHOLE_KEY_FILTERING, flag(settings.whole_key_filtering));
    properties.set(name::PREFIX_FILTERING, flag(settings.prefix_extractor.is_some()));
    properties.set(name::DECOUPLED_FILTERS, flag(true));
    properties.set_number(name::INDEX_KEY_IS_USER_KEY, u64::from(flavor.user_keys));
    properties.set_number(name::INDEX_VALUE_IS_DELTA, u64::from(flavor.delta_values));
    properties.set_number(name::FIXED_KEY_LENGTH, 0);
    if settings.index_type == IndexType::TwoLevel {
        properties.set_number(name::INDEX_PARTITIONS, sizes.partitions);
        properties.set_number(name::TOP_LEVEL_INDEX_SIZE, sizes.top_level);
    }
    let kind = settings.compression.to_byte();
    let compression_options = format!("{}_type={kind}; ", settings.compression_options);
    properties.set(name::COMPRESSION_OPTIONS, compression_options.as_bytes());
    let (data, index) = (settings.block_restart_interval, settings.index_block_restart_interval);
    properties.set_number(name::DATA_RESTART_INTERVAL, data as u64);
    properties.set_number(name::INDEX_RESTART_INTERVAL, index as u64);
    let collectors = collectors::names(&settings.collectors);
    properties.set(name::PROPERTY_COLLECTORS, collectors.as_bytes());
    properties.fill_raw();
}

/// The codec's name; from version 7 on the types that really occur, as RocksDB's built-in manager
/// lists them.
fn compression_name(settings: &TableBuilderSettings, writer: &BlockWriter) -> String {
    if settings.format_version < 7 {
        return settings.compression.property_name().to_owned();
    }
    if settings.compression == CompressionType::None {
        return ";;".to_owned();
    }
    let mut name = "BuiltinV2;".to_owned();
    for kind in writer.types_used() {
        let _ = write!(name, "{:02X}", kind.to_byte());
    }
    name.push(';');
    name
}

/// The smallest and largest key, with what range tombstones cover.
fn bounds(builder: &TableBuilder) -> (Option<InternalKeyBuf>, Option<InternalKeyBuf>) {
    let comparator = &builder.settings.comparator;
    let below = |a: InternalKey<'_>, b: InternalKey<'_>| {
        let order = comparator.compare(a.user_key(), b.user_key());
        order.is_lt() || (order.is_eq() && a.packed() > b.packed())
    };
    let mut smallest = builder.bounds.smallest.clone();
    let mut largest = builder.last_key().map(|key| key.to_buf());
    for tombstone in &builder.tombstones {
        let size = comparator.timestamp_size();
        let (start, end) =
            (timestamp::opening(&tombstone.start, size), timestamp::opening(&tombstone.end, size));
        let start = InternalKeyBuf::new(&start, tombstone.sequence, ValueType::RangeDeletion);
        if smallest.as_ref().is_none_or(|smallest| below(start.as_key(), smallest.as_key())) {
            smallest = Some(start);
        }
        let end = InternalKeyBuf::new(&end, MAX_SEQUENCE_NUMBER, ValueType::RangeDeletion);
        if largest.as_ref().is_none_or(|largest| below(largest.as_key(), end.as_key())) {
            largest = Some(end);
        }
    }
    (smallest, largest)
}

#[cfg(test)]
mod tests;
