//! What a block that was found without an index holds.

use std::collections::BTreeMap;

use crate::base::coding::Decoder;
use crate::base::{Comparator, Error, InternalKey, InternalKeyBuf, MAX_SEQUENCE_NUMBER, ValueType};
use crate::env::read_until_end;

use super::super::block::{Block, BlockIter, BlockWalk};
use super::super::fetch::BlockSource;
use super::super::format::{BlockHandle, Footer, meta_name};
use super::super::index::{IndexBlock, IndexFlavor};
use super::super::properties::TableProperties;

/// Zeros between two blocks that pass for padding: of super blocks with the usual part for it, up
/// to 512 KiB.
const PADDING_MAX: u64 = 4096;

/// What a block holds.
pub(super) enum Contents {
    /// Entries in order.
    Data,
    /// Range tombstones.
    RangeDeletions,
    /// Something intact that cannot be made out, although it may be entries: its dictionary is
    /// lost.
    Unreadable(Error),
    /// No entries: index, filter, properties and the like.
    Other,
}

/// The metaindex, if it is among the blocks found: it comes last. It names properties that were
/// found, or stands where nothing but the footer can follow: that of a table in a value does
/// neither.
pub(super) fn find_metaindex(source: &BlockSource, found: &[BlockHandle]) -> Option<BlockHandle> {
    let is_metaindex = |handle: &&BlockHandle| {
        let entries =
            source.read_block(**handle, true, false).ok().and_then(|block| all_entries(&block));
        entries.is_some_and(|entries| {
            [meta_name::PROPERTIES, meta_name::OLD_PROPERTIES].iter().any(|name| {
                let value = entries.get(name.as_bytes());
                let place = value.and_then(|value| BlockHandle::decode(&mut Decoder::new(value)));
                let is_last = handle.end() + Footer::SIZE_MAX as u64 >= source.file_size;
                place.is_some_and(|place| {
                    found.contains(&place) || is_last && place.end() <= handle.offset
                })
            })
        })
    };
    found.iter().rev().find(is_metaindex).copied()
}

/// The properties, if they are among the blocks found. They lie behind the data, which ends where a
/// block does: those of a table in a value say of another place that it does. Where no block of the
/// data is left to tell, they must come last, but for the metaindex.
pub(super) fn find_properties(
    source: &BlockSource,
    found: &[BlockHandle],
) -> Option<TableProperties> {
    found.iter().enumerate().rev().find_map(|(at, &handle)| {
        let block = source.read_block(handle, true, false).ok()?;
        let properties = TableProperties::decode(&block).ok()?;
        let end = properties.data_size;
        let begun = found.partition_point(|other| other.offset < end);
        let ends_there = match found[..begun].last() {
            Some(last) => last.end() <= end,
            None => end == 0 || at + 2 >= found.len(),
        };
        let is_whole = properties.raw.contains_key(b"rocksdb.num.entries".as_slice());
        (is_whole && end <= handle.offset && ends_there).then_some(properties)
    })
}

/// All entries of a block whose values have lengths; `None` if it is another.
fn all_entries(block: &Block) -> Option<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut walk = BlockWalk::new(block).ok()?;
    let mut entries = BTreeMap::new();
    while let Some(value) = walk.next().ok()? {
        entries.insert(walk.key().to_vec(), value.to_vec());
    }
    Some(entries)
}

/// What the block at `handle` holds; `before` are the blocks found before it in the file.
/// `data_size` is how far data blocks go, if that is known: none begins behind that, and no other
/// before.
pub(super) fn tell(
    source: &BlockSource,
    handle: BlockHandle,
    before: &[BlockHandle],
    comparator: &Comparator,
    data_size: Option<u64>,
) -> Contents {
    let is_data = data_size.map(|size| handle.offset < size);
    let block = match source.read_block(handle, true, true) {
        Ok(block) => block,
        Err(error) => {
            // What is stored as it is cannot be read only if it is no block of entries: a filter, a
            // dictionary.
            let is_compressed =
                source.read_stored(handle, true).is_ok_and(|(_, compression)| compression != 0);
            return if is_compressed { Contents::Unreadable(error) } else { Contents::Other };
        }
    };
    if is_data != Some(true) {
        if is_index(source, &block, handle, before, comparator) {
            return Contents::Other;
        }
        if are_range_deletions(&block, comparator) {
            return Contents::RangeDeletions;
        }
    }
    if is_data == Some(false) {
        return Contents::Other;
    }
    let mut iter = BlockIter::new(block, comparator.clone(), None);
    let mut last = None;
    iter.seek_to_first();
    while iter.valid() {
        // No write has the largest number: keys of an index do that were shortened.
        if iter.key().sequence() == MAX_SEQUENCE_NUMBER
            || !ascends(&mut last, iter.key(), comparator)
        {
            return Contents::Other;
        }
        iter.next();
    }
    if iter.status().is_ok() && last.is_some() { Contents::Data } else { Contents::Other }
}

/// Whether `key` comes behind `last`, whose place it takes.
fn ascends(
    last: &mut Option<InternalKeyBuf>,
    key: InternalKey<'_>,
    comparator: &Comparator,
) -> bool {
    let before = last.replace(key.to_buf());
    before.is_none_or(|before| {
        let order = comparator.compare(before.as_key().user_key(), key.user_key());
        order.then_with(|| key.packed().cmp(&before.as_key().packed())).is_lt()
    })
}

/// Whether a block has range tombstones in order, and nothing else.
fn are_range_deletions(block: &Block, comparator: &Comparator) -> bool {
    let Ok(mut walk) = BlockWalk::new(block) else { return false };
    let mut last = None;
    loop {
        match walk.next() {
            Ok(Some(_)) => {}
            end => return end.is_ok() && last.is_some(),
        }
        let key = InternalKey::parse(walk.key());
        let tombstone = key.filter(|key| key.value_type() == Some(ValueType::RangeDeletion));
        if !tombstone.is_some_and(|key| ascends(&mut last, key, comparator)) {
            return false;
        }
    }
}

/// Whether nothing but padding lies between the end of a block and where another begins.
fn is_padding(source: &BlockSource, end: u64, start: u64) -> bool {
    match start.checked_sub(end) {
        Some(0) => true,
        Some(between @ ..=PADDING_MAX) => {
            let mut bytes = [0; PADDING_MAX as usize];
            let bytes = &mut bytes[..between as usize];
            let read = read_until_end(&*source.file, end, bytes);
            read.is_ok_and(|read| read == bytes.len()) && bytes.iter().all(|&byte| byte == 0)
        }
        _ => false,
    }
}

/// Whether a block is an index of blocks before it, by any way of storing one: its handles must
/// follow one another, and name only blocks that were found, or places where none was. If none of
/// its blocks is intact, these places must be just as large as what lies between those that are, or
/// in front of the index; or without a gap, as a filter, which is not found, may lie between them
/// and the index: a single one then only if nothing else is found there. Padding is no gap.
fn is_index(
    source: &BlockSource,
    block: &Block,
    own: BlockHandle,
    before: &[BlockHandle],
    comparator: &Comparator,
) -> bool {
    // They are in the order of the file, as many as it has blocks.
    let begun_by = |at: u64| before.partition_point(|other| other.offset < at);
    let in_front_of = |at: u64| &before[..begun_by(at)];
    let joins = |end: u64, start: u64| is_padding(source, end, start);
    let begins =
        |at: u64| at == 0 || in_front_of(at).last().is_some_and(|other| joins(other.end(), at));
    let ends = |at: u64| joins(at, before.get(begun_by(at)).map_or(own.offset, |next| next.offset));
    let flavors = (0..8u8).map(|bits| IndexFlavor {
        user_keys: bits & 1 != 0,
        delta_values: bits & 2 != 0,
        first_keys: bits & 4 != 0,
    });
    flavors.into_iter().any(|flavor| {
        let Ok(index) = IndexBlock::decode(block, flavor, comparator, source.file_size) else {
            return false;
        };
        let handles: Vec<BlockHandle> = (0..index.len()).map(|at| index.handle(at)).collect();
        let last_beside = |handle: &BlockHandle| in_front_of(handle.end()).iter().rev().take(2);
        let names_blocks =
            handles.iter().any(|handle| last_beside(handle).any(|other| other == handle));
        let fills_a_gap = || match (handles.first(), handles.last()) {
            (Some(first), Some(last)) => {
                let is_right_behind = joins(last.end(), own.offset);
                let has_others = before.last().is_some_and(|other| other.end() > first.offset);
                let is_in_front = last.end() <= own.offset && (handles.len() > 1 || !has_others);
                let are_a_row =
                    || handles.windows(2).all(|pair| joins(pair[0].end(), pair[1].offset));
                begins(first.offset) && ends(last.end())
                    || (is_right_behind || is_in_front && begins(first.offset)) && are_a_row()
            }
            _ => false,
        };
        let contradicts = handles.iter().any(|handle| {
            last_beside(handle).any(|other| other != handle && handle.offset < other.end())
        });
        let follow = handles.windows(2).all(|pair| pair[0].end() <= pair[1].offset);
        follow && !contradicts && (names_blocks || fills_a_gap())
    })
}
