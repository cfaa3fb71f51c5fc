//! An open table: what is read at open and kept, and point lookups.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::base::compression::DecompressionDictionary;
use crate::base::perf::{self, PerfMetric};
use crate::base::{
    Code, Comparator, Error, FragmentedRangeTombstones, InternalKey, PrefixExtractor,
    RangeTombstone, Result, SequenceNumber, ValueType,
};
use crate::cache::{Held, Measured, MemoryKind};
use crate::env::RandomAccessFile;

use super::block::{Block, BlockIter, Found, ValueRef};
use super::cursor::{IndexCursor, TableIndex};
use super::fetch::BlockSource;
use super::filter::{Filter, FilterKey};
use super::format::{BlockHandle, Footer, IndexType, meta_name};
use super::index::{IndexBlock, IndexFlavor, PrefixHash};
use super::iter::TableIterator;
use super::open::{pad_tombstones, read_range_tombstones};
use super::properties::TableProperties;
use super::readahead::OwnFile;
use super::rows::TableRows;
use super::settings::{IterSettings, ReadSettings, TableReadSettings};

/// An open table file. Immutable: any number of threads may read it at once.
pub struct Table {
    pub(super) source: BlockSource,
    /// The order of the keys as they are stored.
    pub(super) comparator: Comparator,
    /// The bytes of the least timestamp that readers add to each key.
    pub(super) padding: usize,
    pub(super) properties: TableProperties,
    pub(super) index: TableIndex,
    pub(super) filter: TableFilter,
    pub(super) range_tombstones: Arc<FragmentedRangeTombstones>,
    /// Whether the index has any entry: counts among the properties may be missing.
    pub(super) has_points: bool,
    /// How many range tombstones the file stores, before fragmenting.
    pub(super) num_range_tombstones: u64,
    pub(super) global_sequence: Option<SequenceNumber>,
    pub(super) verify_checksums: bool,
    /// Where lookups look first, if they do.
    pub(super) rows: Option<TableRows>,
    /// What the metaindex lists, by name, the metaindex itself included.
    pub(super) meta_blocks: Vec<(String, BlockHandle)>,
    /// What stands for it in the account of memory.
    pub(super) held: Option<Held>,
}

/// The filter of a table, and what was put into it.
pub(super) struct TableFilter {
    pub kind: FilterKind,
    pub whole_keys: bool,
    /// The rule by which the prefixes in the filter were made, if the current one is the same.
    pub prefixes: Option<PrefixExtractor>,
    /// Whether a partition also has the prefixes of the keys next to its own.
    pub overlaps: bool,
}

pub(super) enum FilterKind {
    None,
    Full(Filter),
    /// The whole filter, here in the file, comes through the cache.
    Cached(BlockHandle),
    /// An index over filter partitions.
    Partitioned(IndexBlock),
}

/// Takes the versions of a key, newest first, and breaks when it has seen enough.
pub trait Visit: FnMut(SequenceNumber, ValueType, ValueRef<'_>) -> Result<ControlFlow<()>> {}

impl<F: FnMut(SequenceNumber, ValueType, ValueRef<'_>) -> Result<ControlFlow<()>>> Visit for F {}

/// A key to look up, hashed once for all tables.
#[derive(Debug, Clone, Copy)]
pub struct LookupKey<'a> {
    pub(super) target: InternalKey<'a>,
    pub(super) key: FilterKey<'a>,
}

impl<'a> LookupKey<'a> {
    /// Hashes the user key of `target`, at which the search is to start.
    pub fn new(target: InternalKey<'a>) -> Self {
        Self { target, key: FilterKey::new(target.user_key()) }
    }

    /// Where the search starts.
    pub fn target(&self) -> InternalKey<'a> {
        self.target
    }
}

/// Where in a table a key may be.
pub struct CandidateBlock {
    cursor: IndexCursor,
    /// The cursor's block, if it was in the cache when somebody looked.
    block: Option<Block>,
}

impl Table {
    /// Opens a file of `size` bytes: reads footer, properties, index, filter and range tombstones.
    ///
    /// # Errors
    /// `Corruption`, `NotSupported` or `IoError`, naming the file.
    pub fn open(
        file: Arc<dyn RandomAccessFile>,
        size: u64,
        settings: TableReadSettings,
    ) -> Result<Arc<Self>> {
        let path = file.path().to_path_buf();
        let account = settings.account.clone();
        let mut table = super::open::open(file, size, settings).map_err(|error| error.at(path))?;
        table.held = account.map(|account| account.hold(MemoryKind::Tables, table.memory_usage()));
        Ok(Arc::new(table))
    }

    /// Takes its data blocks out of the cache: nobody will ask for them again. Those of index
    /// partitions that are not cached stay until others take their room.
    pub fn uncache(&self) {
        if self.source.cache.is_none() {
            return;
        }
        let settings = ReadSettings { cache_only: true, ..ReadSettings::default() };
        let mut cursor = IndexCursor::default();
        let mut moved = cursor.seek_to_first(self, &settings);
        while let (Ok(()), Some(handle)) = (moved, cursor.handle(self)) {
            self.source.uncache(handle);
            moved = cursor.next(self, &settings);
        }
    }

    /// Where to search for a key that was hashed once for all tables, `None` if the filter rules it
    /// out. With `filter_first` the index is touched only for what the filter admits:
    /// [`Table::prefetch_for`] was called before.
    ///
    /// # Errors
    /// `Corruption` or `IoError` naming the file, or `Incomplete`.
    #[inline]
    pub fn admit(
        &self,
        sought: &LookupKey<'_>,
        settings: &ReadSettings,
        filter_first: bool,
    ) -> Result<Option<CandidateBlock>> {
        let LookupKey { target, key } = *sought;
        let filtered = self.filters_keys();
        if filtered && !filter_first {
            self.prefetch_filter(key);
        }
        let mut cursor = IndexCursor::default();
        // An index in memory is searched while the filter's line is on its way.
        let is_at_hand = !self.index.partitioned() && (!filter_first || !filtered);
        if is_at_hand {
            cursor.seek_for_get(self, target, settings)?;
        }
        if filtered && !self.filter_admits(target.user_key(), key, settings)? {
            return Ok(None);
        }
        if !is_at_hand {
            cursor.seek_for_get(self, target, settings)?;
        }
        Ok(Some(CandidateBlock { cursor, block: None }))
    }

    /// Looks for the block to be searched in the cache; whether it is there.
    #[inline]
    pub fn find_block(&self, admitted: &mut CandidateBlock) -> bool {
        admitted.block =
            admitted.cursor.place(self).and_then(|place| self.source.cached_data_block(place));
        admitted.block.is_some()
    }

    /// Calls `visit` for every point entry of the sought user key from the target on, newest first,
    /// until it breaks.
    ///
    /// # Errors
    /// As [`Table::admit`], or what `visit` returned.
    #[inline]
    pub fn get_admitted(
        &self,
        mut admitted: CandidateBlock,
        sought: &LookupKey<'_>,
        settings: &ReadSettings,
        visit: impl Visit,
    ) -> Result<()> {
        self.search(&mut admitted.cursor, admitted.block, sought.target, settings, visit)
    }

    /// Shows `visit` the target's entries from the cursor's block on, which is `first` if it was
    /// fetched already.
    #[inline]
    pub(super) fn search(
        &self,
        cursor: &mut IndexCursor,
        mut first: Option<Block>,
        target: InternalKey<'_>,
        settings: &ReadSettings,
        mut visit: impl Visit,
    ) -> Result<()> {
        while let Some((handle, seen)) = cursor.place(self) {
            let block = match first.take() {
                Some(block) => block,
                None => {
                    let _time = perf::time(PerfMetric::NewTableBlockIterNanos);
                    self.source.data_block((handle, seen), settings, None)?
                }
            };
            let shown = |sequence, kind, value: ValueRef<'_>| {
                self.show_whole(settings, (sequence, kind, value), &mut visit)
            };
            if self.search_block(block, handle, target, shown)?.is_break() {
                break;
            }
            cursor.next(self, settings)?;
        }
        Ok(())
    }

    /// Shows `visit` an entry with its value, which may lie apart from the block.
    #[inline]
    fn show_whole(
        &self,
        settings: &ReadSettings,
        (sequence, kind, value): (SequenceNumber, ValueType, ValueRef<'_>),
        visit: &mut impl Visit,
    ) -> Result<ControlFlow<()>> {
        if self.source.records_end.is_some()
            && let Some(whole) = self.source.whole_value(kind, value.bytes(), settings)?
        {
            return visit(sequence, whole.kind, whole.value_ref());
        }
        visit(sequence, kind, value)
    }

    /// Shows `visit` the target's entries in one block; continues if the next block may have more
    /// of them.
    #[inline]
    fn search_block(
        &self,
        block: Block,
        handle: BlockHandle,
        target: InternalKey<'_>,
        mut visit: impl Visit,
    ) -> Result<ControlFlow<()>> {
        let time = perf::time(PerfMetric::BlockSeekNanos);
        let found = (self.comparator.is_bytewise() && self.global_sequence.is_none())
            .then(|| block.find(target))
            .flatten();
        drop(time);
        let mut passed = None;
        match found {
            Some(Found::Absent) => return Ok(ControlFlow::Break(())),
            Some(Found::Beyond) => return Ok(ControlFlow::Continue(())),
            Some(Found::Entry { sequence, value_type, value, offset, shared }) => {
                let taken = visit(sequence, value_type, value);
                if taken.map_err(|error| self.source.locate(error, handle))?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                passed = Some((offset, shared));
            }
            None => {}
        }
        self.walk_block(block, passed, handle, target, &mut visit)
    }

    /// Goes through the target's entries in one block key by key, after the one at this offset if
    /// it was passed already.
    fn walk_block(
        &self,
        block: Block,
        passed: Option<(usize, usize)>,
        handle: BlockHandle,
        target: InternalKey<'_>,
        visit: &mut impl Visit,
    ) -> Result<ControlFlow<()>> {
        let mut data = BlockIter::new(block, self.comparator.clone(), self.global_sequence);
        match passed {
            None => {
                let _time = perf::time(PerfMetric::BlockSeekNanos);
                data.seek_for_get(target);
            }
            Some((offset, shared)) => {
                data.move_to(offset, shared, target);
                if data.valid() {
                    data.next();
                }
            }
        }
        while data.valid() {
            let key = data.key();
            let kind =
                key.value_type().ok_or_else(|| Error::corruption("an entry of unknown type"))?;
            if self.comparator.compare(key.user_key(), target.user_key()).is_ne() {
                return Ok(ControlFlow::Break(()));
            }
            let taken = visit(key.sequence(), kind, data.value_ref());
            if taken.map_err(|error| self.source.locate(error, handle))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            data.next();
        }
        data.status().map_err(|error| self.source.locate(error, handle))?;
        Ok(ControlFlow::Continue(()))
    }

    /// Whether a filter over whole keys exists, so that [`Table::may_contain`] can rule keys out.
    #[inline]
    pub fn filters_keys(&self) -> bool {
        self.filter.whole_keys && !matches!(self.filter.kind, FilterKind::None)
    }

    /// Whether the filter admits the key; `true` without a filter over whole keys.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of a filter partition, `Incomplete`.
    pub fn may_contain(&self, user_key: &[u8], settings: &ReadSettings) -> Result<bool> {
        if !self.filter.whole_keys {
            return Ok(true);
        }
        self.filter_admits(user_key, FilterKey::new(user_key), settings)
    }

    /// Whether the filter admits a key of which versions with timestamps are stored; `first` is the
    /// place before all of them.
    ///
    /// # Errors
    /// As [`Table::may_contain`].
    pub fn may_have_versions(
        &self,
        first: &[u8],
        key: &[u8],
        settings: &ReadSettings,
    ) -> Result<bool> {
        if !self.filter.whole_keys {
            return Ok(true);
        }
        let place = if self.padding == 0 { first } else { key };
        self.filter_admits(place, FilterKey::new(key), settings)
    }

    /// Whether the filter admits the prefix of `user_key`; `true` if the filter cannot tell.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of a filter partition, `Incomplete`.
    pub fn may_contain_prefix(&self, user_key: &[u8], settings: &ReadSettings) -> Result<bool> {
        let prefix = self.filter.prefixes.as_ref().and_then(|extractor| extractor.prefix(user_key));
        let Some(prefix) = prefix.map(FilterKey::new) else { return Ok(true) };
        let admits = self.filter_admits(user_key, prefix, settings)?;
        match &self.filter.kind {
            FilterKind::Partitioned(top) if !admits && !self.filter.overlaps => {
                self.neighbours_admit(top, user_key, prefix, settings)
            }
            _ => Ok(admits),
        }
    }

    /// Asks the filter partitions beside that for `user_key`: the next key may be the first of the
    /// one behind, the last key up to here the last of the one before.
    fn neighbours_admit(
        &self,
        top: &IndexBlock,
        user_key: &[u8],
        prefix: FilterKey<'_>,
        settings: &ReadSettings,
    ) -> Result<bool> {
        let Some(partition) = filter_partition(top, user_key) else { return Ok(true) };
        let before = partition.checked_sub(1);
        let behind = Some(partition + 1).filter(|&behind| behind < top.len());
        for neighbour in [before, behind].into_iter().flatten() {
            if self.ask_cached_filter(top.handle(neighbour), prefix, settings)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Asks the filter (of the partition for `user_key`) for `element`: a whole key or a prefix.
    pub(super) fn filter_admits(
        &self,
        user_key: &[u8],
        element: FilterKey<'_>,
        settings: &ReadSettings,
    ) -> Result<bool> {
        match &self.filter.kind {
            FilterKind::None => Ok(true),
            FilterKind::Full(filter) => Ok(ask(filter, element)),
            FilterKind::Cached(handle) => self.ask_cached_filter(*handle, element, settings),
            FilterKind::Partitioned(top) => {
                let Some(partition) = filter_partition(top, user_key) else { return Ok(true) };
                self.ask_cached_filter(top.handle(partition), element, settings)
            }
        }
    }

    fn ask_cached_filter(
        &self,
        handle: BlockHandle,
        element: FilterKey<'_>,
        settings: &ReadSettings,
    ) -> Result<bool> {
        match self.source.filter_partition(handle, settings) {
            Ok(filter) => Ok(ask(&filter, element)),
            // The filter is an optimisation: the data blocks may be in the cache.
            Err(error) if error.code() == Code::Incomplete => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Whether index and filter lie in memory as a whole, so that to be told where a key may be
    /// takes no file.
    #[inline]
    pub fn admits_from_memory(&self) -> bool {
        !self.index.partitioned()
            && matches!(self.filter.kind, FilterKind::None | FilterKind::Full(_))
    }

    /// Asks for what a lookup begins with.
    #[inline]
    pub fn prefetch_for(&self, sought: &LookupKey<'_>) {
        if self.filters_keys() {
            self.prefetch_filter(sought.key);
        }
    }

    /// Asks for the part of the filter that [`Table::filter_admits`] looks at, if that is known
    /// without looking.
    #[inline]
    pub(super) fn prefetch_filter(&self, element: FilterKey<'_>) {
        if let FilterKind::Full(filter) = &self.filter.kind {
            filter.prefetch(element);
        }
    }

    /// A cursor over all point entries.
    pub fn iter(self: &Arc<Self>, settings: IterSettings) -> TableIterator {
        let _time = perf::time(PerfMetric::NewTableIteratorNanos);
        TableIterator::new(self.clone(), settings, None)
    }

    /// The same, reading ahead through `file`, which is this table opened in another way.
    pub fn iter_through(self: &Arc<Self>, own: OwnFile, settings: IterSettings) -> TableIterator {
        TableIterator::new(self.clone(), settings, Some(own))
    }

    /// What a cursor over the table notes its memory with, where the table's is noted.
    pub(super) fn cursor_memory(&self) -> Option<Measured> {
        self.held.as_ref().map(|held| held.account().measured(MemoryKind::Cursors))
    }

    /// The range tombstones, fragmented; not restricted to the file's bounds in the MANIFEST.
    pub fn range_tombstones(&self) -> &Arc<FragmentedRangeTombstones> {
        &self.range_tombstones
    }

    /// The range deletions as they were written, in the order of the file;
    /// [`Table::range_tombstones`] has what they come to.
    ///
    /// # Errors
    /// `Corruption`; `IoError`.
    pub fn stored_range_deletions(&self) -> Result<Vec<RangeTombstone>> {
        let block = self.meta_blocks.iter().find(|(name, _)| name == meta_name::RANGE_DELETIONS);
        block.map_or(Ok(Vec::new()), |&(_, handle)| {
            let verify = self.verify_checksums;
            let stored = read_range_tombstones(&self.source, handle, self.global_sequence, verify);
            stored.map(|mut stored| {
                pad_tombstones(&mut stored, self.padding);
                stored
            })
        })
    }

    /// Whether it has anything but range tombstones.
    #[inline]
    pub fn has_points(&self) -> bool {
        self.has_points
    }

    /// The file's number in the cache.
    pub fn cache_id(&self) -> u64 {
        self.source.cache_id
    }

    /// What the table says about itself.
    pub fn properties(&self) -> &TableProperties {
        &self.properties
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// The end of the file as it was read.
    pub fn footer(&self) -> &Footer {
        &self.source.footer
    }

    /// The blocks that are not data: name (in the metaindex, which is itself among them) and place.
    pub fn meta_blocks(&self) -> &[(String, BlockHandle)] {
        &self.meta_blocks
    }

    /// How data blocks are found.
    pub fn index_type(&self) -> IndexType {
        self.index.index_type
    }

    /// Whether the filter is one of partitions.
    pub fn has_filter_partitions(&self) -> bool {
        matches!(self.filter.kind, FilterKind::Partitioned(_))
    }

    /// Bytes that the open table holds in memory outside the cache.
    pub fn memory_usage(&self) -> usize {
        let properties: usize =
            self.properties.raw.iter().map(|(name, value)| name.len() + value.len() + 64).sum();
        size_of::<Self>()
            + self.index_memory_usage()
            + self.filter_memory_usage()
            + self.range_tombstones.memory_usage()
            + self.source.dictionary.as_ref().map_or(0, DecompressionDictionary::memory_usage)
            + properties
    }

    /// The part of [`Table::memory_usage`] that is index.
    pub fn index_memory_usage(&self) -> usize {
        self.index.top.memory_usage() + self.index.hash.as_ref().map_or(0, PrefixHash::memory_usage)
    }

    /// The part of [`Table::memory_usage`] that is filter.
    pub fn filter_memory_usage(&self) -> usize {
        match &self.filter.kind {
            FilterKind::None | FilterKind::Cached(_) => 0,
            FilterKind::Full(filter) => filter.bytes().len(),
            FilterKind::Partitioned(top) => top.memory_usage(),
        }
    }

    pub(super) fn index_flavor(&self) -> IndexFlavor {
        self.index.flavor
    }

    /// Where data blocks end, as far as is known: as the properties say, or else where the first
    /// other block lies.
    pub(super) fn data_end(&self) -> u64 {
        let TableProperties { tail_start_offset, data_size, .. } = self.properties;
        let end =
            [tail_start_offset, data_size].into_iter().find(|&end| end > 0).unwrap_or_else(|| {
                let listed = self.meta_blocks.iter().map(|&(_, handle)| handle);
                listed
                    .chain(self.source.footer.index)
                    .map(|handle| handle.offset)
                    .min()
                    .unwrap_or(0)
            });
        end.min(self.source.file_size)
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", self.source.path().display())
    }
}

/// Whether a filter admits a key or prefix.
#[inline]
fn ask(filter: &Filter, element: FilterKey<'_>) -> bool {
    let admits = filter.may_contain(element);
    perf::asked_filter(admits);
    admits
}

/// The filter partition that is asked for a user key, if there is any.
fn filter_partition(top: &IndexBlock, user_key: &[u8]) -> Option<usize> {
    let last = top.len().checked_sub(1)?;
    Some(top.seek_user_key(user_key).min(last))
}
