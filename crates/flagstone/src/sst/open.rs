//! Opening a table.
//!
//! 1. Read the footer, then the metaindex.
//! 2. Read the properties: index type and flavor, global sequence number, filter contents.
//! 3. Read dictionary, index (the top level if partitioned, with its hash), filter (likewise),
//!    range tombstones.
//!
//! The last bytes of the file are read with one call; what lies in them needs no other.

use std::sync::Arc;

use crate::base::coding::Decoder;
use crate::base::compression::DecompressionDictionary;
use crate::base::perf::{self, BlockKind};
use crate::base::{
    Comparator, Error, FragmentedRangeTombstones, InternalKey, PrefixExtractor, RangeTombstone,
    Result, SequenceNumber, UniqueId, ValueType, timestamp,
};
use crate::cache::Priority;
use crate::env::RandomAccessFile;

use super::block::{Block, BlockWalk, GuideRoom};
use super::cursor::TableIndex;
use super::embedded;
use super::fetch::BlockSource;
use super::fetch::FILTER_OVERHEAD;
use super::filter::Filter;
use super::format::{BlockHandle, FOOTER_SIZE, Footer, IndexType, TRAILER_SIZE, meta_name};
use super::index::{IndexBlock, PrefixHash};
use super::properties::{TableProperties, name};
use super::protection::BlockSums;
use super::settings::TableReadSettings;
use super::table::{FilterKind, Table, TableFilter};

/// What is read at once: enough for metaindex, properties and range tombstones, and for all of a
/// small table.
const TAIL_SIZE: u64 = 32 * 1024;

/// The first format version whose index may have user keys.
const USER_KEYS_SINCE: u32 = 3;

/// Reads only the properties of a table, for tools that do not know its comparator yet.
///
/// # Errors
/// `Corruption`, `NotSupported` or `IoError`, naming the file.
pub fn read_table_properties(
    file: Arc<dyn RandomAccessFile>,
    size: u64,
) -> Result<TableProperties> {
    let path = file.path().to_path_buf();
    let read = || {
        let source = tail_source(file, size)?;
        let meta_blocks = read_metaindex(&source, true)?;
        read_listed_properties(&source, &meta_blocks, true)
    };
    read().map_err(|error| error.at(path))
}

/// Where in a table's file its global sequence number stands, as fixed64; `None` if it has no place
/// for one.
///
/// # Errors
/// As [`read_table_properties`].
pub fn global_sequence_offset(file: Arc<dyn RandomAccessFile>, size: u64) -> Result<Option<u64>> {
    let path = file.path().to_path_buf();
    let find = || {
        let source = tail_source(file, size)?;
        let Some(handle) = properties_handle(&read_metaindex(&source, true)?) else {
            return Ok(None);
        };
        let bytes = source.read_raw(handle, false)?;
        Ok(global_sequence_at(&bytes).map(|at| handle.offset + at as u64))
    };
    find().map_err(|error: Error| error.at(path))
}

/// What reads meta blocks, of a table that is not open.
fn tail_source(file: Arc<dyn RandomAccessFile>, size: u64) -> Result<BlockSource> {
    let (footer, tail) = read_tail(&*file, size)?;
    Ok(uncached(file, size, footer, tail))
}

/// A file whose blocks are not cached.
fn uncached(
    file: Arc<dyn RandomAccessFile>,
    file_size: u64,
    footer: Footer,
    tail: Vec<u8>,
) -> BlockSource {
    BlockSource {
        file,
        file_size,
        footer,
        cache: None,
        second_tier: None,
        cache_id: 0,
        priority: Priority::High,
        dictionary: None,
        guide: GuideRoom::None,
        sums: None,
        records_end: None,
        tail,
    }
}

/// Where the properties lie; `None` for a table without any, as LevelDB writes them.
pub(super) fn properties_handle(meta_blocks: &[(String, BlockHandle)]) -> Option<BlockHandle> {
    let found = meta_blocks.iter().find(|(name, _)| {
        [meta_name::PROPERTIES, meta_name::OLD_PROPERTIES].contains(&name.as_str())
    });
    found.map(|&(_, handle)| handle)
}

/// The properties that the metaindex lists; without a block of them, each is missing.
fn read_listed_properties(
    source: &BlockSource,
    meta_blocks: &[(String, BlockHandle)],
    verify: bool,
) -> Result<TableProperties> {
    match properties_handle(meta_blocks) {
        Some(handle) => read_properties(source, handle, verify),
        None => Ok(TableProperties::default()),
    }
}

pub(super) fn open(
    file: Arc<dyn RandomAccessFile>,
    size: u64,
    settings: TableReadSettings,
) -> Result<Table> {
    let (footer, tail) = read_tail(&*file, size)?;
    let verify = settings.verify_checksums;
    let mut source = BlockSource {
        cache: settings.cache.clone(),
        second_tier: settings.second_tier.clone(),
        cache_id: settings.cache_id,
        priority: if settings.high_priority { Priority::High } else { Priority::Low },
        ..uncached(file, size, footer, tail)
    };
    let meta_blocks = read_metaindex(&source, verify)?;
    let find = |name: &str| find(&meta_blocks, name);
    let properties = read_listed_properties(&source, &meta_blocks, verify)?;
    source.records_end = embedded::records_end(&properties, size);
    let order = settings.comparator.clone();
    let (mut settings, padding) = as_keys_are_stored(settings, &properties)?;
    check_unique_id(&properties, settings.unique_id)?;
    let beside = std::mem::take(&mut settings.beside_blocks);
    source.sums = BlockSums::new(beside.checksum_bytes, settings.account.as_ref());
    source.guide = GuideRoom::of_table(properties.num_entries, properties.num_data_blocks);
    if let Some(handle) = find(meta_name::DICTIONARY) {
        let _kind = perf::reading(BlockKind::Dictionary);
        source.dictionary = Some(DecompressionDictionary::new(source.read_raw(handle, verify)?));
    }
    let comparator = &settings.comparator;
    let index_handle = find(meta_name::INDEX).or(source.footer.index);
    let index_handle = index_handle.ok_or_else(|| Error::corruption("table has no index"))?;
    let mut index = read_index(&source, index_handle, &properties, comparator, verify)?;
    let has_points = index.top.len() > 0;
    let is_cached = settings.cache_index_and_filter;
    if is_cached && !index.in_partitions {
        index = hand_to_cache(index, index_handle, &source);
    }
    if index.index_type == IndexType::HashSearch && !index.in_partitions {
        index.hash = read_prefix_hash(&source, &find, &properties, &settings, &index)?;
    }
    let filter = read_filter(&source, &find, &properties, &settings, &index)?;
    let filter = given_filter(filter, &mut settings);
    let global_sequence = properties.global_sequence(settings.largest_sequence)?;
    let (range_tombstones, num_range_tombstones) = match find(meta_name::RANGE_DELETIONS) {
        Some(handle) => {
            let numbered = (global_sequence, verify);
            fragmented_tombstones(&source, handle, (&order, padding), numbered)?
        }
        None => (FragmentedRangeTombstones::new(&order, Vec::new()), 0),
    };
    source.tail = Vec::new();
    Ok(Table {
        rows: beside.rows.filter(|_| may_have_rows(&settings.comparator, padding)),
        range_tombstones: Arc::new(range_tombstones),
        has_points,
        num_range_tombstones,
        comparator: settings.comparator,
        padding,
        properties,
        index,
        filter,
        global_sequence,
        verify_checksums: verify,
        meta_blocks,
        source,
        held: None,
    })
}

/// Whether a key is found by its bytes, without timestamps.
fn may_have_rows(order: &Comparator, padding: usize) -> bool {
    padding == 0 && order.timestamp_size() == 0 && order.tells_bytes_apart()
}

/// The settings for a table whose keys are stored without their timestamps, and the bytes of one;
/// 0 for other tables.
fn as_keys_are_stored(
    settings: TableReadSettings,
    properties: &TableProperties,
) -> Result<(TableReadSettings, usize)> {
    let is_stripped = settings.is_stripped
        || properties.number(super::properties::name::TIMESTAMPS_PERSISTED)? == Some(0);
    let padding = if is_stripped { settings.comparator.timestamp_size() } else { 0 };
    if padding == 0 {
        return Ok((settings, 0));
    }
    let comparator = settings.comparator.without_timestamps();
    Ok((TableReadSettings { comparator, ..settings }, padding))
}

/// The table's own filter or, if it has none, the one that the settings bring.
fn given_filter(own: TableFilter, settings: &mut TableReadSettings) -> TableFilter {
    if !settings.use_filter || !matches!(own.kind, FilterKind::None) {
        return own;
    }
    let Some(given) = settings.key_filter.take() else { return own };
    let kind = FilterKind::Full(given);
    TableFilter { kind, whole_keys: true, prefixes: None, overlaps: false }
}

/// Where the meta block of this name lies.
fn find(meta_blocks: &[(String, BlockHandle)], name: &str) -> Option<BlockHandle> {
    meta_blocks.iter().find(|(other, _)| other == name).map(|&(_, handle)| handle)
}

/// The range tombstones at `handle`, cut where they overlap, and how many were stored.
fn fragmented_tombstones(
    source: &BlockSource,
    handle: BlockHandle,
    (comparator, padding): (&Comparator, usize),
    (global_sequence, verify): (Option<SequenceNumber>, bool),
) -> Result<(FragmentedRangeTombstones, u64)> {
    let mut stored = read_range_tombstones(source, handle, global_sequence, verify)?;
    pad_tombstones(&mut stored, padding);
    let size = comparator.timestamp_size();
    let keys = stored.iter().flat_map(|one| [&one.start, &one.end]);
    if let Some(short) = keys.into_iter().find(|key| key.len() < size) {
        let error = timestamp::is_too_short(short, size).context("range deletions");
        return Err(source.locate(error, handle));
    }
    let too_deep = || source.locate(Error::corruption("range deletions nested too deeply"), handle);
    let fragmented =
        FragmentedRangeTombstones::of_table(comparator, &stored).ok_or_else(too_deep)?;
    Ok((fragmented, stored.len() as u64))
}

/// Gives range tombstones the timestamp that their table does not store.
pub(super) fn pad_tombstones(tombstones: &mut [RangeTombstone], padding: usize) {
    for key in tombstones.iter_mut().flat_map(|one| [&mut one.start, &mut one.end]) {
        key.resize(key.len() + padding, 0);
    }
}

/// Reads the footer and, with it, the end of the file.
pub(super) fn read_tail(file: &dyn RandomAccessFile, size: u64) -> Result<(Footer, Vec<u8>)> {
    let length = size.min(TAIL_SIZE);
    let mut tail = vec![0; length as usize];
    let read = file.read_at(size - length, &mut tail)?;
    if read < tail.len() {
        return Err(Error::corruption(format!(
            "file is shorter than the {size} bytes it should have"
        )));
    }
    let footer = Footer::decode(&tail, size);
    let footer =
        footer.map_err(|error| error.at_offset(size.saturating_sub(FOOTER_SIZE as u64)))?;
    Ok((footer, tail))
}

pub(super) fn read_metaindex(
    source: &BlockSource,
    verify: bool,
) -> Result<Vec<(String, BlockHandle)>> {
    let handle = source.footer.metaindex;
    // LevelDB compresses it like any other block.
    let block = source.read_block(handle, verify, false)?;
    let mut entries = vec![("metaindex".to_owned(), handle)];
    let mut walk = BlockWalk::new(&block).map_err(|error| source.locate(error, handle))?;
    while let Some(value) = walk.next().map_err(|error| source.locate(error, handle))? {
        let name = String::from_utf8_lossy(walk.key()).into_owned();
        // Blocks whose meaning is unknown may have values of any form.
        if let Some(place) = BlockHandle::decode(&mut Decoder::new(value)) {
            entries.push((name, place));
        }
    }
    Ok(entries)
}

/// Reads the properties, also where ingestion changed the global sequence number in place: the
/// checksum was then taken with zeros there.
pub(super) fn read_properties(
    source: &BlockSource,
    handle: BlockHandle,
    verify: bool,
) -> Result<TableProperties> {
    let checked = source.read_raw(handle, verify);
    let bytes = match checked {
        Err(error) if error.is_corruption() && verify => match read_rewritten(source, handle)? {
            Some(bytes) => bytes,
            None => return Err(error),
        },
        other => other?,
    };
    Block::new(&bytes)
        .and_then(|block| TableProperties::decode(&block))
        .map_err(|error| source.locate(error, handle))
}

fn read_rewritten(source: &BlockSource, handle: BlockHandle) -> Result<Option<Vec<u8>>> {
    let mut trailer = [0; TRAILER_SIZE];
    let bytes = source.read_raw(handle, false)?;
    source.file.read_at(handle.offset + handle.size, &mut trailer)?;
    let stored = u32::from_le_bytes([trailer[1], trailer[2], trailer[3], trailer[4]]);
    let Some(at) = global_sequence_at(&bytes) else { return Ok(None) };
    let mut zeroed = bytes.clone();
    zeroed[at..at + 8].fill(0);
    let matches = source.footer.checksum_of(&zeroed, trailer[0], handle.offset) == stored;
    Ok(matches.then_some(bytes))
}

/// Where the fixed64 of the global sequence number lies in a properties block.
fn global_sequence_at(bytes: &[u8]) -> Option<usize> {
    let block = Block::new(bytes).ok()?;
    let mut walk = BlockWalk::new(&block).ok()?;
    while let Some(value) = walk.next().ok()? {
        if walk.key() == name::EXTERNAL_GLOBAL_SEQUENCE.as_bytes() {
            return (value.len() == 8).then(|| walk.offset() - 8);
        }
    }
    None
}

fn check_unique_id(properties: &TableProperties, expected: Option<UniqueId>) -> Result<()> {
    let Some(expected) = expected else { return Ok(()) };
    let found = match properties.unique_id() {
        Some(found) if found == expected => return Ok(()),
        Some(found) => found.to_string(),
        None => "none".to_owned(),
    };
    Err(Error::corruption(format!(
        "the table is not the one that the MANIFEST names: unique id {found}, expected {expected}"
    )))
}

fn read_index(
    source: &BlockSource,
    handle: BlockHandle,
    properties: &TableProperties,
    comparator: &Comparator,
    verify: bool,
) -> Result<TableIndex> {
    let index_type = properties.index_type()?;
    let flavor = properties.index_flavor(index_type)?;
    let kind = perf::reading(BlockKind::Index);
    let block = source.read_block(handle, verify, false)?;
    drop(kind);
    let top = IndexBlock::decode(&block, flavor, comparator, source.file_size)
        .map_err(|error| source.locate(error, handle))?;
    if source.footer.format_version >= USER_KEYS_SINCE && !properties.tells_index_keys() {
        check_internal_keys(&top).map_err(|error| source.locate(error, handle))?;
    }
    Ok(TableIndex {
        index_type,
        flavor,
        in_partitions: index_type == IndexType::TwoLevel,
        top,
        hash: None,
    })
}

/// Keys of an index are internal keys where the table does not tell. User keys would pass for some,
/// and keys would not be found.
fn check_internal_keys(index: &IndexBlock) -> Result<()> {
    let is_internal = |at: usize| {
        InternalKey::parse(&index.key(at)).is_some_and(|key| key.value_type().is_some())
    };
    if (0..index.len()).all(is_internal) {
        Ok(())
    } else {
        Err(Error::corruption(
            "the table's index has neither internal keys nor a note that it has user keys",
        ))
    }
}

/// Puts an index into the cache, if it fits: from now on it is the only partition of an index with
/// one entry. A hash is not used then.
fn hand_to_cache(index: TableIndex, handle: BlockHandle, source: &BlockSource) -> TableIndex {
    let fits =
        source.cache.as_ref().is_some_and(|cache| index.top.memory_usage() <= cache.largest());
    let Some(top) = index.top.above(handle).filter(|_| fits) else { return index };
    source.keep_index(handle, index.top);
    TableIndex { top, in_partitions: true, ..index }
}

/// Reads the hash index; `None` if the table lacks it or made it by another rule: the binary index
/// then does alone.
fn read_prefix_hash(
    source: &BlockSource,
    find: &impl Fn(&str) -> Option<BlockHandle>,
    properties: &TableProperties,
    settings: &TableReadSettings,
    index: &TableIndex,
) -> Result<Option<PrefixHash>> {
    let Some(extractor) = same_extractor(properties, settings) else { return Ok(None) };
    let blocks = find(meta_name::HASH_PREFIXES).zip(find(meta_name::HASH_METADATA));
    let Some((prefixes, metadata)) = blocks else { return Ok(None) };
    let verify = settings.verify_checksums;
    let prefixes = source.read(prefixes, verify, false)?;
    let entries = source.read(metadata, verify, false)?;
    PrefixHash::decode(&prefixes, &entries, index.top.len(), extractor.clone())
        .map(Some)
        .map_err(|error| source.locate(error, metadata))
}

/// The current prefix rule if the table was made by it.
fn same_extractor<'a>(
    properties: &TableProperties,
    settings: &'a TableReadSettings,
) -> Option<&'a PrefixExtractor> {
    settings
        .prefix_extractor
        .as_ref()
        .filter(|extractor| extractor.name() == properties.prefix_extractor)
}

fn read_filter(
    source: &BlockSource,
    find: &impl Fn(&str) -> Option<BlockHandle>,
    properties: &TableProperties,
    settings: &TableReadSettings,
    index: &TableIndex,
) -> Result<TableFilter> {
    let verify = settings.verify_checksums;
    let _kind = perf::reading(BlockKind::Filter);
    // Where there are no keys, earlier RocksDB wrote a block of no bytes.
    let partitioned = find(meta_name::PARTITIONED_FILTER).filter(|handle| handle.size > 0);
    let kind = if !settings.use_filter {
        FilterKind::None
    } else if let Some(handle) = find(meta_name::FULL_FILTER) {
        let fits = source
            .cache
            .as_ref()
            .is_some_and(|cache| handle.size as usize + FILTER_OVERHEAD <= cache.largest());
        if settings.cache_index_and_filter && fits {
            FilterKind::Cached(handle)
        } else {
            FilterKind::Full(Filter::new(source.read_raw(handle, verify)?))
        }
    } else if let Some(handle) = partitioned {
        let block = source.read_block(handle, verify, false)?;
        let flavor = super::index::IndexFlavor { first_keys: false, ..index.flavor };
        let top = IndexBlock::decode(&block, flavor, &settings.comparator, source.file_size)
            .map_err(|error| source.locate(error, handle))?;
        FilterKind::Partitioned(top)
    } else {
        FilterKind::None
    };
    let has_prefixes = match kind {
        FilterKind::Partitioned(_) => {
            properties.prefix_filtering() && properties.repeats_prefixes()
        }
        _ => properties.prefix_filtering(),
    };
    let prefixes = same_extractor(properties, settings).filter(|_| has_prefixes).cloned();
    let overlaps = properties.decoupled_filters();
    // Filters go by bytes: under another order the key may be there in other bytes.
    let whole_keys = properties.whole_key_filtering() && settings.comparator.is_built_in();
    Ok(TableFilter { kind, whole_keys, prefixes, overlaps })
}

/// Reads the range tombstones as they are stored.
pub(super) fn read_range_tombstones(
    source: &BlockSource,
    handle: BlockHandle,
    global_sequence: Option<SequenceNumber>,
    verify: bool,
) -> Result<Vec<RangeTombstone>> {
    let block = source.read_raw(handle, verify).and_then(|bytes| Block::new(&bytes));
    let block = block.map_err(|error| source.locate(error, handle))?;
    let bad =
        || source.locate(Error::corruption("bad entry in the block of range tombstones"), handle);
    let mut tombstones = Vec::new();
    let mut walk = BlockWalk::new(&block).map_err(|error| source.locate(error, handle))?;
    while let Some(end) = walk.next().map_err(|error| source.locate(error, handle))? {
        let key = InternalKey::parse(walk.key()).ok_or_else(bad)?;
        if key.value_type() != Some(ValueType::RangeDeletion)
            || (global_sequence.is_some() && key.sequence() != 0)
        {
            return Err(bad());
        }
        tombstones.push(RangeTombstone {
            start: key.user_key().to_vec(),
            end: end.to_vec(),
            sequence: global_sequence.unwrap_or(key.sequence()),
        });
    }
    Ok(tombstones)
}
