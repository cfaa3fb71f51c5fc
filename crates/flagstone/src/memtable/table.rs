//! One column family's writes since its last switch.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::arena::{Arena, ArenaPool};
use super::btree::{BTree, BTreeIterator, BTreeWriter};
use super::counts::{Addition, Counts};
use super::filter::{FilteredCursor, MemTableFilter, MemTableFilterSettings};
use super::index::{Index, IndexWriter};
use super::prefix_hash::{PrefixCursor, PrefixHash, PrefixHashWriter};
use super::protection::{ProtectedCursor, Protection};
use super::range_deletes::{RangeDeletes, RangeLook};
use super::record::Entry;
use super::skiplist::{ListCursor, SkipList, SkipListWriter};
use super::vector::{Vector, VectorCursor, VectorWriter};
use crate::base::perf::{self, PerfMetric};
use crate::base::{
    FragmentedRangeTombstones, InternalIterator, InternalKey, InternalKeyComparator,
    PrefixExtractor, RangeTombstone, Result, SequenceNumber, ValueType, pack_sequence_and_type,
};

/// Which structure holds the entries.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum MemTableKind {
    /// A B+tree for the plain byte order; families with another order get a skip list instead.
    #[default]
    BTree,
    /// A skip list, for any order.
    SkipList,
    /// Unsorted until somebody reads: insertions are as cheap as can be, reads of what is being
    /// written are not.
    Vector,
    /// Small lists found by a hash of the key's prefix, for lookups and for cursors within a
    /// prefix. A cursor over everything sorts a copy first.
    PrefixHash {
        /// Finds the prefix.
        extractor: PrefixExtractor,
        /// How many lists there can be, rounded up to a power of two.
        bucket_count: usize,
    },
}

/// How a memtable is made.
#[derive(Debug, Clone)]
pub struct MemTableSettings {
    /// The structure.
    pub kind: MemTableKind,
    /// How many bytes to ask of the allocator at a time, once the memtable has grown; it starts
    /// with less. With 2 MiB or a multiple, huge pages are used.
    pub arena_block_size: usize,
    /// Where the memory goes when the memtable is dropped, and comes from; one pool serves all
    /// families.
    pub arena_pool: Option<Arc<ArenaPool>>,
    /// A Bloom filter over the entries, if there is one.
    pub filter: Option<MemTableFilterSettings>,
    /// Bytes of checksum with each entry, at most 8; 0 for none.
    pub protection_bytes: usize,
}

impl Default for MemTableSettings {
    fn default() -> Self {
        Self {
            kind: MemTableKind::default(),
            arena_block_size: 1 << 20,
            arena_pool: None,
            filter: None,
            protection_bytes: 0,
        }
    }
}

/// The writes of one column family since its last switch, sorted.
///
/// Any number of threads write and read side by side. Readers take no locks; writers take none for
/// entries in a B+tree or a skip list, other entries and range deletions are added one at a time. A
/// reader sees every entry whose addition happened before its call, and may see later ones: it
/// filters by sequence number. The counts have what the calls that returned have added.
pub struct MemTable {
    comparator: InternalKeyComparator,
    index: AnyIndex,
    range_deletes: RangeDeletes,
    filter: Option<Arc<MemTableFilter>>,
    protection: Option<Protection>,
}

enum AnyIndex {
    BTree(Arc<BTree>),
    SkipList(Arc<SkipList>),
    Vector(Arc<Vector>),
    PrefixHash(Arc<PrefixHash>),
}

/// The same expression for whichever kind it is, without a virtual call.
macro_rules! each_kind {
    ($any:expr, $type:ident, $inner:ident => $call:expr) => {
        match $any {
            $type::BTree($inner) => $call,
            $type::SkipList($inner) => $call,
            $type::Vector($inner) => $call,
            $type::PrefixHash($inner) => $call,
        }
    };
}

/// The right to add to a memtable. It is cheap, and keeps nobody else from having one.
pub struct MemTableWriter<'a> {
    table: &'a MemTable,
    index: AnyWriter<'a>,
}

enum AnyWriter<'a> {
    BTree(BTreeWriter<'a>),
    SkipList(SkipListWriter<'a>),
    Vector(VectorWriter<'a>),
    PrefixHash(PrefixHashWriter<'a>),
}

impl MemTable {
    /// An empty memtable for keys in that order.
    pub fn new(comparator: InternalKeyComparator, settings: &MemTableSettings) -> Self {
        let arena = Arena::new(settings.arena_block_size, settings.arena_pool.clone());
        let order = comparator.clone();
        let index = match &settings.kind {
            MemTableKind::BTree if order.user.is_bytewise() => {
                AnyIndex::BTree(Arc::new(BTree::new(arena)))
            }
            MemTableKind::BTree | MemTableKind::SkipList => {
                AnyIndex::SkipList(Arc::new(SkipList::new(order, arena)))
            }
            MemTableKind::Vector => AnyIndex::Vector(Arc::new(Vector::new(order, arena))),
            MemTableKind::PrefixHash { extractor, bucket_count } => AnyIndex::PrefixHash(Arc::new(
                PrefixHash::new(order, extractor.clone(), *bucket_count, arena),
            )),
        };
        let filter = settings.filter.clone();
        let filter =
            filter.map(|filter| Arc::new(MemTableFilter::new(filter, settings.arena_pool.clone())));
        let account = settings.arena_pool.as_ref().map(|pool| pool.account().clone());
        let protection = Protection::new(settings.protection_bytes, &comparator.user);
        Self { comparator, index, range_deletes: RangeDeletes::new(account), filter, protection }
    }

    /// The order of the entries.
    pub fn comparator(&self) -> &InternalKeyComparator {
        &self.comparator
    }

    /// The right to write, for any number of threads side by side. It is cheaper than
    /// [`MemTable::add`] for several entries.
    pub fn writer(&self) -> MemTableWriter<'_> {
        let index = match &self.index {
            AnyIndex::BTree(index) => AnyWriter::BTree(index.writer()),
            AnyIndex::SkipList(index) => AnyWriter::SkipList(index.writer()),
            AnyIndex::Vector(index) => AnyWriter::Vector(index.writer()),
            AnyIndex::PrefixHash(index) => AnyWriter::PrefixHash(index.writer()),
        };
        MemTableWriter { table: self, index }
    }

    /// Adds one entry; see [`MemTableWriter::add`].
    pub fn add(
        &self,
        sequence: SequenceNumber,
        value_type: ValueType,
        user_key: &[u8],
        value: &[u8],
    ) {
        self.writer().add(sequence, value_type, user_key, value);
    }

    /// Adds a range deletion; see [`MemTableWriter::add_range_tombstone`].
    pub fn add_range_tombstone(&self, sequence: SequenceNumber, start: &[u8], end: &[u8]) {
        self.writer().add_range_tombstone(sequence, start, end);
    }

    /// Shows the versions of `user_key` that `snapshot` sees, newest first, until `visit` breaks.
    /// Range tombstones are not applied here.
    ///
    /// # Errors
    /// `Corruption` if a version does not match its checksum, where entries have one.
    #[inline]
    pub fn get<'a>(
        &'a self,
        user_key: &[u8],
        snapshot: SequenceNumber,
        visit: impl FnMut(SequenceNumber, ValueType, &'a [u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        perf::count(PerfMetric::GetFromMemtableCount, 1);
        let _time = perf::time(PerfMetric::GetFromMemtableTime);
        if self.filter.as_ref().is_some_and(|filter| filter.rules_out(user_key)) {
            return Ok(());
        }
        if let Some(protection) = self.protection {
            return self.get_protected(protection, user_key, snapshot, visit);
        }
        each_kind!(&self.index, AnyIndex, index => index.get(user_key, snapshot, visit));
        Ok(())
    }

    fn get_protected<'a>(
        &'a self,
        protection: Protection,
        user_key: &[u8],
        snapshot: SequenceNumber,
        mut visit: impl FnMut(SequenceNumber, ValueType, &'a [u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut failed = Ok(());
        let checked = |sequence, kind, stored: &'a [u8]| {
            let packed = pack_sequence_and_type(sequence, kind);
            match protection.check(user_key, packed, stored) {
                Ok(value) => visit(sequence, kind, value),
                Err(error) => {
                    failed = Err(error);
                    ControlFlow::Break(())
                }
            }
        };
        each_kind!(&self.index, AnyIndex, index => index.get(user_key, snapshot, checked));
        failed
    }

    /// A cursor over the point entries; it keeps them alive after the memtable is dropped. It shows
    /// at least what was added before it was made.
    pub fn iter(&self) -> MemTableIterator {
        let entries = self.stored_entries();
        self.protected(entries)
    }

    /// A cursor that checks entries, where they have checksums.
    fn protected(&self, entries: MemTableIterator) -> MemTableIterator {
        match self.protection {
            None => entries,
            Some(protection) => {
                MemTableIterator::Protected(Box::new(ProtectedCursor::new(entries, protection)))
            }
        }
    }

    /// A cursor over the entries as they are stored.
    fn stored_entries(&self) -> MemTableIterator {
        match &self.index {
            AnyIndex::BTree(index) => MemTableIterator::BTree(index.cursor()),
            AnyIndex::SkipList(index) => MemTableIterator::SkipList(index.cursor()),
            AnyIndex::Vector(index) => MemTableIterator::Vector(index.cursor()),
            AnyIndex::PrefixHash(index) => MemTableIterator::Vector(index.cursor()),
        }
    }

    /// The same for who at times only wants keys with the prefix of the key sought
    /// ([`InternalIterator::confine`]).
    pub fn prefix_iter(&self) -> MemTableIterator {
        let entries = match &self.index {
            AnyIndex::PrefixHash(index) => MemTableIterator::PrefixHash(index.prefix_cursor()),
            _ => self.stored_entries(),
        };
        let entries = self.protected(entries);
        match self.filter.as_ref().filter(|filter| filter.has_prefixes()) {
            Some(filter) => MemTableIterator::Filtered(Box::new(FilteredCursor::new(
                entries,
                Arc::clone(filter),
            ))),
            None => entries,
        }
    }

    /// The newest range tombstone over `user_key` that `snapshot` sees: its sequence number, or 0
    /// if there is none.
    #[inline]
    pub fn covering_sequence(&self, user_key: &[u8], snapshot: SequenceNumber) -> SequenceNumber {
        match self.range_deletes.count() {
            0 => 0,
            _ => self.range_deletes.covering_sequence(&self.comparator.user, user_key, snapshot),
        }
    }

    /// Begins with [`MemTable::covering_sequence`], as far as that can be done in two steps.
    #[inline]
    pub fn seek_range_tombstones(&self, user_key: &[u8], snapshot: SequenceNumber) -> RangeLook {
        self.range_deletes.seek(user_key, snapshot)
    }

    /// The range tombstones that `snapshot` sees, as far as they were added before this call, in
    /// parts that may overlap.
    pub fn range_tombstones(
        &self,
        snapshot: SequenceNumber,
    ) -> Vec<Arc<FragmentedRangeTombstones>> {
        self.range_deletes.visible(&self.comparator.user, snapshot)
    }

    /// The range tombstones that the present or one of `snapshots`, ascending, sees first, if there
    /// are any.
    pub fn needed_range_tombstones(
        &self,
        snapshots: &[SequenceNumber],
    ) -> Option<Arc<FragmentedRangeTombstones>> {
        self.range_deletes.needed(&self.comparator.user, snapshots)
    }

    /// Bytes handed out for entries, their index and filter, and range tombstones. Cheap.
    pub fn memory_usage(&self) -> usize {
        each_kind!(&self.index, AnyIndex, index => index.memory_usage()) + self.other_memory()
    }

    /// Bytes asked of the allocator: at least [`MemTable::memory_usage`]. Cheap.
    pub fn memory_reserved(&self) -> usize {
        each_kind!(&self.index, AnyIndex, index => index.memory_reserved()) + self.other_memory()
    }

    /// Makes memory that insertions need next, if it is time and the memtable is to have `up_to`
    /// bytes. To be called where nobody waits for the caller: the system clears the memory, which
    /// takes longer than hundreds of insertions.
    #[inline]
    pub fn fetch_ahead(&self, up_to: usize) {
        each_kind!(&self.index, AnyIndex, index => index.fetch_ahead(up_to));
    }

    fn other_memory(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, |filter| filter.memory_usage());
        filter + self.range_deletes.memory_usage()
    }

    /// The number of point entries, deletions included.
    pub fn num_entries(&self) -> u64 {
        self.sum(Counts::entries)
    }

    /// The number of point entries that are deletions.
    pub fn num_deletes(&self) -> u64 {
        self.sum(Counts::deletes)
    }

    /// The bytes of all internal keys and values.
    pub fn data_size(&self) -> u64 {
        self.sum(Counts::data_size)
    }

    fn sum(&self, count: impl Fn(&Counts) -> u64) -> u64 {
        each_kind!(&self.index, AnyIndex, index => index.counts().map(count).sum())
    }

    /// The number of range deletions.
    pub fn num_range_tombstones(&self) -> usize {
        self.range_deletes.count()
    }

    /// Whether nothing was added, not even a range deletion. Cheap.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let has_entries = each_kind!(&self.index, AnyIndex, index => {
            index.counts().any(|counts| counts.entries() > 0)
        });
        !has_entries && self.num_range_tombstones() == 0
    }

    /// The smallest sequence number, if anything was added.
    pub fn first_sequence(&self) -> Option<SequenceNumber> {
        let firsts = each_kind!(&self.index, AnyIndex, index => {
            index.counts().map(Counts::first_sequence).min()
        });
        firsts.filter(|&sequence| sequence != u64::MAX)
    }

    /// The largest sequence number, if anything was added.
    pub fn largest_sequence(&self) -> Option<SequenceNumber> {
        self.first_sequence()?;
        each_kind!(&self.index, AnyIndex, index => {
            index.counts().map(Counts::largest_sequence).max()
        })
    }

    /// About how many entries have user keys in `[start, end)`.
    pub fn approximate_count(&self, start: &[u8], end: &[u8]) -> u64 {
        each_kind!(&self.index, AnyIndex, index => index.approximate_count(start, end))
    }
}

impl MemTableWriter<'_> {
    /// Adds one entry; a [`ValueType::RangeDeletion`] becomes a range tombstone from `user_key` to
    /// `value`.
    ///
    /// The pair of key and sequence number must be new, or at least differ in type.
    ///
    /// # Panics
    /// If key or value is 4 GiB or longer; a write batch cannot hold one.
    pub fn add(
        &mut self,
        sequence: SequenceNumber,
        value_type: ValueType,
        user_key: &[u8],
        value: &[u8],
    ) {
        if value_type == ValueType::RangeDeletion {
            return self.add_range_tombstone(sequence, user_key, value);
        }
        if let Some(filter) = &self.table.filter {
            filter.add(user_key);
        }
        let packed = pack_sequence_and_type(sequence, value_type);
        let entry = Entry { user_key, packed, value };
        let stored = self.table.protection.map(|protection| protection.protect(&entry));
        let entry = Entry { value: stored.as_deref().unwrap_or(value), ..entry };
        let is_delete = matches!(
            value_type,
            ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp
        );
        let addition = Addition {
            sequence,
            entries: 1,
            deletes: u64::from(is_delete),
            data_size: (user_key.len() + crate::base::PACKED_SIZE + value.len()) as u64,
        };
        each_kind!(&mut self.index, AnyWriter, index => index.insert(&entry, &addition));
    }

    /// Deletes the keys of `[start, end)` that are older than `sequence`; an empty range counts,
    /// but deletes nothing.
    pub fn add_range_tombstone(&mut self, sequence: SequenceNumber, start: &[u8], end: &[u8]) {
        self.table.range_deletes.add(RangeTombstone {
            start: start.to_vec(),
            end: end.to_vec(),
            sequence,
        });
        let addition = Addition { sequence, entries: 0, deletes: 0, data_size: 0 };
        each_kind!(&mut self.index, AnyWriter, index => index.count(&addition));
    }
}

/// A cursor over a memtable's point entries.
pub enum MemTableIterator {
    #[doc(hidden)]
    BTree(BTreeIterator),
    #[doc(hidden)]
    SkipList(ListCursor<SkipList>),
    #[doc(hidden)]
    Vector(VectorCursor),
    #[doc(hidden)]
    PrefixHash(PrefixCursor),
    #[doc(hidden)]
    Filtered(Box<FilteredCursor<MemTableIterator>>),
    #[doc(hidden)]
    Protected(Box<ProtectedCursor<MemTableIterator>>),
}

/// The same expression for whichever cursor it is.
macro_rules! each_cursor {
    ($any:expr, $cursor:ident => $call:expr) => {
        match $any {
            Self::BTree($cursor) => $call,
            Self::SkipList($cursor) => $call,
            Self::Vector($cursor) => $call,
            Self::PrefixHash($cursor) => $call,
            Self::Filtered($cursor) => $call,
            Self::Protected($cursor) => $call,
        }
    };
}

impl InternalIterator for MemTableIterator {
    #[inline]
    fn valid(&self) -> bool {
        each_cursor!(self, cursor => cursor.valid())
    }

    fn seek_to_first(&mut self) {
        each_cursor!(self, cursor => cursor.seek_to_first());
    }

    fn seek_to_last(&mut self) {
        each_cursor!(self, cursor => cursor.seek_to_last());
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        each_cursor!(self, cursor => cursor.seek(target));
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        each_cursor!(self, cursor => cursor.seek_for_prev(target));
    }

    fn confine(&mut self, to_prefix: bool) {
        each_cursor!(self, cursor => cursor.confine(to_prefix));
    }

    #[inline]
    fn next(&mut self) {
        each_cursor!(self, cursor => cursor.next());
    }

    fn prev(&mut self) {
        each_cursor!(self, cursor => cursor.prev());
    }

    #[inline]
    fn key(&self) -> InternalKey<'_> {
        each_cursor!(self, cursor => cursor.key())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        each_cursor!(self, cursor => cursor.value())
    }

    fn status(&self) -> Result<()> {
        match self {
            Self::Filtered(cursor) => cursor.status(),
            Self::Protected(cursor) => cursor.status(),
            _ => Ok(()),
        }
    }
}
