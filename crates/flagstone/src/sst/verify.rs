//! Reads all of a table and holds every part against the others.
//!
//! 1. Each block of the metaindex is read and its checksum checked (also of those whose meaning is
//!    unknown).
//! 2. The index is walked; each data block is read from the file, not from the cache. Its entries
//!    must ascend, lie above the key of the index entry before and not above their own, and be in
//!    the filter.
//! 3. Values beside the blocks are read, and overlap neither blocks nor each other.
//! 4. What was counted must agree with the properties.

use std::sync::Arc;

use crate::base::{
    Error, InternalIterator, InternalKey, InternalKeyBuf, InternalKeyComparator, PACKED_SIZE,
    Result, ValueType, timestamp,
};

use super::block::{Block, BlockIter};
use super::cursor::IndexCursor;
use super::embedded::{EmbeddedStats, records_of};
use super::filter::{Filter, FilterKey};
use super::format::{BlockHandle, meta_name};
use super::iter::TableIterator;
use super::settings::{IterSettings, ReadSettings};
use super::table::{FilterKind, Table};

/// So many bytes are read at a time.
const READAHEAD: usize = 256 << 10;

/// Something wrong in a table, found by [`Table::verify`].
#[derive(Debug, Clone)]
pub struct BlockFault {
    /// What, with file and offset.
    pub error: Error,
    /// The user keys that the damaged block may hold: from the first (exclusive; empty: from the
    /// start) to the second.
    pub key_range: Option<(Vec<u8>, Vec<u8>)>,
}

#[derive(Debug, Default)]
struct Counts {
    blocks: u64,
    entries: u64,
    deletions: u64,
    merges: u64,
    key_bytes: u64,
    value_bytes: u64,
}

struct Check<'a> {
    table: &'a Table,
    on_fault: &'a mut dyn FnMut(BlockFault),
    clean: bool,
    counts: Counts,
    /// The last entry seen, and the key of the index entry before the current one.
    last: Option<InternalKeyBuf>,
    on_entry: &'a mut dyn FnMut(InternalKey<'_>, &[u8]),
    lower: Option<Vec<u8>>,
    /// Where the data blocks lie and the values beside them, if there are any: the latter are
    /// marked.
    places: Vec<(BlockHandle, bool)>,
    /// The filter, where it does not lie with the table: it is read once, not for each key.
    filter: Option<Arc<Filter>>,
}

impl Table {
    /// Reads everything and reports each fault; `true` if there was none.
    pub fn verify(&self, on_fault: &mut dyn FnMut(BlockFault)) -> bool {
        self.verify_showing(on_fault, &mut |_, _| {})
    }

    /// [`Table::verify`], and shows each entry that is in order.
    pub fn verify_showing(
        &self,
        on_fault: &mut dyn FnMut(BlockFault),
        on_entry: &mut dyn FnMut(InternalKey<'_>, &[u8]),
    ) -> bool {
        let mut check = Check {
            table: self,
            on_fault,
            on_entry,
            clean: true,
            counts: Counts::default(),
            last: None,
            lower: None,
            places: Vec::new(),
            filter: None,
        };
        check.meta_blocks();
        let whole = check.data_blocks();
        check.places();
        if whole && check.clean {
            check.properties();
        }
        check.clean
    }
}

/// Of an entry that follows `last` and does not sort after it.
#[cold]
pub(super) fn out_of_order(last: InternalKey<'_>, key: InternalKey<'_>) -> Error {
    Error::corruption(format!("entries are out of order: {key:?} comes after {last:?}"))
}

impl Table {
    /// Looks only for what readers do not: whether entries ascend. Every 1,024 of them it asks
    /// whether it is to go on.
    ///
    /// # Errors
    /// `Corruption` or `IoError`, naming file and offset; what `goes_on` returns.
    pub fn check_entries(self: &Arc<Self>, goes_on: &dyn Fn() -> Result<()>) -> Result<()> {
        let order = InternalKeyComparator::new(self.comparator.clone());
        let mut iter = self.iter_all();
        let mut last: Option<InternalKeyBuf> = None;
        let mut count = 0u64;
        iter.seek_to_first();
        while iter.valid() {
            if count.is_multiple_of(1024) {
                goes_on()?;
            }
            count += 1;
            let key = iter.key();
            if let Some(last) =
                last.as_ref().filter(|last| order.compare(last.as_key(), key).is_ge())
            {
                return Err(iter.locate(out_of_order(last.as_key(), key)));
            }
            match &mut last {
                Some(last) => last.set_from(key),
                last => *last = Some(key.to_buf()),
            }
            iter.next();
        }
        iter.status()
    }

    /// The offset of the block with this very entry, if the table has it.
    ///
    /// # Errors
    /// `Corruption` or `IoError`, naming file and offset.
    pub fn offset_of_entry(self: &Arc<Self>, key: InternalKey<'_>) -> Result<Option<u64>> {
        let order = InternalKeyComparator::new(self.comparator.clone());
        let mut iter = self.iter_all();
        iter.seek(key);
        iter.status()?;
        let is_there = iter.valid() && order.compare(iter.key(), key).is_eq();
        Ok(iter.block_offset().filter(|_| is_there))
    }

    fn iter_all(self: &Arc<Self>) -> TableIterator {
        let read = ReadSettings { verify_checksums: true, fill_cache: false, cache_only: false };
        self.iter(IterSettings {
            read,
            readahead_size: READAHEAD,
            maps_readahead: true,
            ..IterSettings::default()
        })
    }
}

impl Check<'_> {
    fn fault(&mut self, error: Error, key_range: Option<(Vec<u8>, Vec<u8>)>) {
        self.clean = false;
        let error = error.at(self.table.source.path());
        (self.on_fault)(BlockFault { error, key_range });
    }

    fn meta_blocks(&mut self) {
        for (name, handle) in self.table.meta_blocks() {
            let read = if name == meta_name::PROPERTIES || name == meta_name::OLD_PROPERTIES {
                super::open::read_properties(&self.table.source, *handle, true).map(drop)
            } else {
                self.table.source.read_stored(*handle, true).map(drop)
            };
            if let Err(error) = read {
                self.fault(error.context(format_args!("meta block '{name}'")), None);
            }
        }
        if let FilterKind::Partitioned(top) = &self.table.filter.kind {
            for at in 0..top.len() {
                if let Err(error) = self.table.source.read_stored(top.handle(at), true) {
                    self.fault(error.context("filter partition"), None);
                }
            }
        }
        if let Some(handle) = self.table.source.footer.index
            && let Err(error) = self.table.source.read_stored(handle, true)
        {
            self.fault(error.context("index block"), None);
        }
    }

    /// Walks the index; `false` if a part of it could not be read.
    fn data_blocks(&mut self) -> bool {
        let mut settings = self.table.quiet();
        settings.verify_checksums = true;
        let mut cursor = IndexCursor::default();
        let mut step = cursor.seek_to_first(self.table, &settings);
        loop {
            if let Err(error) = step {
                self.fault(
                    error.context("index partition; the blocks after it were not checked"),
                    None,
                );
                return false;
            }
            let (Some(handle), Some(upper)) = (cursor.handle(self.table), cursor.key(self.table))
            else {
                return true;
            };
            if let Err(error) = self.data_block(handle, &upper) {
                let range = (self.user_part(self.lower.as_deref()), self.user_part(Some(&upper)));
                self.fault(
                    error.at(self.table.source.path()).at_offset(handle.offset),
                    Some(range),
                );
                self.last = None;
            }
            self.counts.blocks += 1;
            self.lower = Some(upper);
            step = cursor.next(self.table, &settings);
        }
    }

    fn user_part(&self, index_key: Option<&[u8]>) -> Vec<u8> {
        let key = index_key.unwrap_or_default();
        let cut = if self.table.index_flavor().user_keys { 0 } else { PACKED_SIZE };
        key[..key.len().saturating_sub(cut)].to_vec()
    }

    fn data_block(&mut self, handle: BlockHandle, upper: &[u8]) -> Result<()> {
        let table = self.table;
        let block: Block = table.source.read_block(handle, true, true)?;
        if table.source.records_end.is_some() {
            self.places.push((handle, false));
        }
        let mut iter = BlockIter::new(block, table.comparator.clone(), table.global_sequence);
        iter.seek_to_first();
        if !iter.valid() && iter.status().is_ok() {
            return Err(Error::corruption("data block without entries"));
        }
        while iter.valid() {
            let key = iter.key();
            self.entry(key, iter.value(), upper)?;
            self.show(key, iter.value(), handle);
            match &mut self.last {
                Some(last) => last.set_from(key),
                last => *last = Some(key.to_buf()),
            }
            iter.next();
        }
        iter.status()
    }

    /// Shows an entry that is in order, with its value.
    fn show(&mut self, key: InternalKey<'_>, stored: &[u8], block: BlockHandle) {
        let (table, kind) = (self.table, key.value_type());
        let Some(kind) = kind.filter(|_| table.source.records_end.is_some()) else {
            return (self.on_entry)(key, stored);
        };
        let settings = ReadSettings { verify_checksums: true, ..table.quiet() };
        match table.source.whole_value(kind, stored, &settings) {
            Ok(None) => (self.on_entry)(key, stored),
            Ok(Some(whole)) => {
                let shown = InternalKeyBuf::new(key.user_key(), key.sequence(), whole.kind);
                (self.on_entry)(shown.as_key(), whole.bytes());
                // They were read.
                let records = records_of(kind, stored).unwrap_or_default();
                let handles = records.iter().map(|index| (index.offset, index.size));
                self.places
                    .extend(handles.map(|(offset, size)| (BlockHandle { offset, size }, true)));
            }
            // The others of the block are in order.
            Err(error) => {
                let before = self.last.as_ref().map_or(Vec::new(), |last| last.user_key().to_vec());
                let range = Some((before, key.user_key().to_vec()));
                self.fault(error.at_offset(block.offset), range);
            }
        }
    }

    /// That values beside the blocks have places of their own, and are as many as the table says.
    fn places(&mut self) {
        if self.table.source.records_end.is_none() {
            return;
        }
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable_by_key(|(handle, _)| (handle.offset, handle.size));
        for pair in places.windows(2) {
            let [(first, of_value), (second, of_other)] = [pair[0], pair[1]];
            if (of_value || of_other) && first.end() > second.offset {
                let error = Error::corruption(format!(
                    "an embedded value overlaps what lies at {}",
                    first.offset
                ));
                self.fault(error.at_offset(second.offset), None);
            }
        }
        let mut counted = EmbeddedStats::default();
        let values = places.iter().filter(|(_, of_value)| *of_value);
        values.for_each(|(handle, _)| counted.add(handle.size));
        match EmbeddedStats::of(&self.table.properties) {
            Ok(Some(stored)) if self.clean && stored != counted => {
                let message = format!(
                    "the table says that {} embedded values have {} bytes, but {} with {} were counted",
                    stored.count, stored.bytes, counted.count, counted.bytes
                );
                self.fault(Error::corruption(message), None);
            }
            Ok(_) => {}
            Err(error) => self.fault(error, None),
        }
    }

    fn entry(&mut self, key: InternalKey<'_>, value: &[u8], upper: &[u8]) -> Result<()> {
        let table = self.table;
        if table.comparator.is_unknown() {
            return self.content(key, value);
        }
        let order = |a: InternalKey<'_>, b: InternalKey<'_>| {
            table
                .comparator
                .compare(a.user_key(), b.user_key())
                .then_with(|| b.packed().cmp(&a.packed()))
        };
        if let Some(last) = self.last.as_ref().filter(|last| order(last.as_key(), key).is_ge()) {
            return Err(out_of_order(last.as_key(), key));
        }
        let against = |index_key: &[u8]| {
            if table.index_flavor().user_keys {
                table.comparator.compare(key.user_key(), index_key)
            } else {
                order(key, InternalKey::from_checked(index_key))
            }
        };
        if against(upper).is_gt()
            || self.lower.as_deref().is_some_and(|lower| against(lower).is_le())
        {
            return Err(Error::corruption(format!("the index does not lead to {key:?}")));
        }
        self.content(key, value)
    }

    /// What is to be said of an entry in whatever order.
    fn content(&mut self, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        let table = self.table;
        if table.filters_keys() && !self.may_contain(key.user_key())? {
            return Err(Error::corruption(format!("the filter does not know {key:?}")));
        }
        let counts = &mut self.counts;
        counts.entries += 1;
        counts.key_bytes += key.as_bytes().len() as u64;
        counts.value_bytes += value.len() as u64;
        match key.value_type() {
            Some(
                ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp,
            ) => {
                counts.deletions += 1;
            }
            Some(ValueType::Merge) => counts.merges += 1,
            _ => {}
        }
        Ok(())
    }

    fn may_contain(&mut self, user_key: &[u8]) -> Result<bool> {
        // Filters go by keys without timestamps.
        let bare = timestamp::strip(user_key, self.table.comparator.timestamp_size());
        let FilterKind::Cached(handle) = &self.table.filter.kind else {
            return self.table.may_have_versions(user_key, bare, &self.table.quiet());
        };
        let filter = match &self.filter {
            Some(filter) => filter,
            None => self
                .filter
                .insert(self.table.source.filter_partition(*handle, &self.table.quiet())?),
        };
        Ok(filter.may_contain(FilterKey::new(bare)))
    }

    fn properties(&mut self) {
        let properties = &self.table.properties;
        let tombstones = self.table.num_range_tombstones;
        let counts = &self.counts;
        // RocksDB 11.8 does not count the blocks that it holds back for a dictionary.
        let blocks = if properties.had_dictionary() {
            properties.num_data_blocks.min(counts.blocks)
        } else {
            counts.blocks
        };
        // RocksDB before 6.0 leaves range deletions out of one of these counts or both.
        let with_tombstones =
            |stored: u64, others: u64| if stored == others { others } else { others + tombstones };
        let entries = with_tombstones(properties.num_entries, counts.entries);
        let deletions = with_tombstones(properties.num_deletions, counts.deletions);
        let pairs = [
            ("num.data.blocks", properties.num_data_blocks, blocks),
            ("num.entries", properties.num_entries, entries),
            ("num.range-deletions", properties.num_range_deletions, tombstones),
            ("deleted.keys", properties.num_deletions, deletions),
            ("merge.operands", properties.num_merge_operands, counts.merges),
        ];
        let wrong: Vec<String> = pairs
            .iter()
            .filter(|(name, stored, counted)| {
                stored != counted
                    && properties.raw.contains_key(format!("rocksdb.{name}").as_bytes())
            })
            .map(|(name, stored, counted)| {
                format!("property {name} is {stored}, but {counted} were counted")
            })
            .collect();
        for message in wrong {
            self.fault(Error::corruption(message), None);
        }
    }
}
