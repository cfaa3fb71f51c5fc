//! Many small lists, found by a hash of the key's prefix: for keys of many prefixes, a few entries
//! each.
//!
//! 1. A key with a prefix is in the list of the prefix's hash, any other in that of its own; a list
//!    may serve several prefixes. Lookups and insertions touch one list.
//! 2. All entries are also noted in a vector: cursors that need the whole order walk over its
//!    sorted views.
//! 3. A cursor that is confined to one prefix ([`PrefixCursor`]) walks over a list instead, and
//!    needs nothing sorted.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_64;

use super::arena::Arena;
use super::counts::{Addition, Counts};
use super::index::{Index, IndexWriter};
use super::record::{Entry, Record};
use super::skiplist::{Head, List, ListCursor, ListOrder, Lists, height_from};
use super::vector::{Vector, VectorCursor, VectorWriter};
use crate::base::{
    InternalIterator, InternalKey, InternalKeyComparator, PrefixExtractor, Result, SequenceNumber,
    ValueType,
};
use crate::cache::{Held, MemoryAccount, MemoryKind};

/// The entries of one memtable.
pub struct PrefixHash {
    order: ListOrder,
    extractor: PrefixExtractor,
    bucket_count: usize,
    /// Made with the first entry: many memtables never get one.
    buckets: OnceLock<Buckets>,
    account: Option<Arc<MemoryAccount>>,
    /// Holds the arena that the lists lie in, too.
    all: Arc<Vector>,
}

struct Buckets {
    /// As many as a power of two.
    heads: Box<[Head]>,
    _held: Option<Held>,
}

impl Buckets {
    fn new(count: usize, account: Option<&Arc<MemoryAccount>>) -> Self {
        let heads: Box<[Head]> = (0..count).map(|_| Head::default()).collect();
        let held = account.map(|account| account.hold(MemoryKind::Memtables, size_of_val(&*heads)));
        Self { heads, _held: held }
    }
}

impl PrefixHash {
    /// An empty table that lies in `arena`, with so many buckets, rounded up to a power of two.
    pub(super) fn new(
        order: InternalKeyComparator,
        extractor: PrefixExtractor,
        bucket_count: usize,
        arena: Arena,
    ) -> Self {
        let bucket_count = bucket_count.clamp(1, 1 << 30).next_power_of_two();
        Self {
            order: ListOrder::new(order.clone()),
            extractor,
            bucket_count,
            buckets: OnceLock::new(),
            account: arena.account(),
            all: Arc::new(Vector::new(order, arena)),
        }
    }

    #[inline]
    fn bucket<'a>(&self, buckets: &'a Buckets, user_key: &[u8]) -> &'a Head {
        let hash = xxh3_64(self.extractor.prefix(user_key).unwrap_or(user_key));
        &buckets.heads[hash as usize & (buckets.heads.len() - 1)]
    }

    fn bucket_bytes(&self) -> usize {
        self.buckets.get().map_or(0, |buckets| size_of_val(&*buckets.heads))
    }

    /// A cursor that, while it is confined, need be right only among keys of the prefix that it is
    /// sent to.
    pub(super) fn prefix_cursor(self: &Arc<Self>) -> PrefixCursor {
        let list = ListCursor::new(Arc::clone(self));
        PrefixCursor { table: Arc::clone(self), list, whole: None, confined: false }
    }
}

impl Lists for PrefixHash {
    fn order(&self) -> &ListOrder {
        &self.order
    }

    #[inline]
    fn list_of(&self, user_key: &[u8]) -> Option<List<'_>> {
        self.bucket(self.buckets.get()?, user_key).list()
    }
}

impl Index for PrefixHash {
    type Writer<'a> = PrefixHashWriter<'a>;
    type Cursor = VectorCursor;

    fn writer(&self) -> PrefixHashWriter<'_> {
        PrefixHashWriter { table: self, all: self.all.writer() }
    }

    fn cursor(self: &Arc<Self>) -> VectorCursor {
        self.all.cursor()
    }

    fn get<'a>(
        &'a self,
        user_key: &[u8],
        snapshot: SequenceNumber,
        visit: impl FnMut(SequenceNumber, ValueType, &'a [u8]) -> ControlFlow<()>,
    ) {
        if let Some(list) = self.list_of(user_key) {
            self.order.get(list, user_key, snapshot, visit);
        }
    }

    fn approximate_count(&self, start: &[u8], end: &[u8]) -> u64 {
        self.all.approximate_count(start, end)
    }

    fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.all.counts()
    }

    fn memory_usage(&self) -> usize {
        self.bucket_bytes() + self.all.memory_usage()
    }

    fn memory_reserved(&self) -> usize {
        self.bucket_bytes() + self.all.memory_reserved()
    }
}

/// The right to insert.
pub(super) struct PrefixHashWriter<'a> {
    table: &'a PrefixHash,
    all: VectorWriter<'a>,
}

impl IndexWriter for PrefixHashWriter<'_> {
    fn insert(&mut self, entry: &Entry<'_>, addition: &Addition) {
        let PrefixHash { order, bucket_count, buckets, account, .. } = self.table;
        self.all.insert_made(addition, |arena, count| {
            let buckets = buckets.get_or_init(|| Buckets::new(*bucket_count, account.as_ref()));
            let head = self.table.bucket(buckets, entry.user_key);
            let height = height_from(xxh3_64(&count.to_le_bytes()));
            head.insert(order, arena, height, entry).pointer()
        });
    }

    fn count(&mut self, addition: &Addition) {
        self.all.count(addition);
    }
}

/// A cursor that, while it is confined, shows of the keys with the prefix of the last target all
/// and in order, of others some. It goes over to the whole order where a list does not suffice. It
/// keeps its table alive.
pub struct PrefixCursor {
    table: Arc<PrefixHash>,
    list: ListCursor<PrefixHash>,
    /// In use instead of the list.
    whole: Option<VectorCursor>,
    confined: bool,
}

impl PrefixCursor {
    /// Whether the target's list has all that is wanted.
    fn list_suffices(&self, target: InternalKey<'_>) -> bool {
        self.confined && self.table.extractor.prefix(target.user_key()).is_some()
    }

    /// What came in since the whole order was last needed is too new for a cursor.
    fn go_over(&mut self, position: impl FnOnce(&mut VectorCursor)) {
        position(self.whole.get_or_insert_with(|| self.table.cursor()));
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.list.record()
    }
}

impl InternalIterator for PrefixCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.whole.as_ref().map_or_else(|| self.list.valid(), InternalIterator::valid)
    }

    fn seek_to_first(&mut self) {
        self.go_over(InternalIterator::seek_to_first);
    }

    fn seek_to_last(&mut self) {
        self.go_over(InternalIterator::seek_to_last);
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        if !self.list_suffices(target) {
            return self.go_over(|whole| whole.seek(target));
        }
        self.whole = None;
        self.list.seek(target);
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        if !self.list_suffices(target) {
            return self.go_over(|whole| whole.seek_for_prev(target));
        }
        self.whole = None;
        self.list.seek_for_prev(target);
    }

    fn confine(&mut self, to_prefix: bool) {
        self.confined = to_prefix;
    }

    #[inline]
    fn next(&mut self) {
        match &mut self.whole {
            Some(whole) => whole.next(),
            None => self.list.next(),
        }
    }

    fn prev(&mut self) {
        match &mut self.whole {
            Some(whole) => whole.prev(),
            None => self.list.prev(),
        }
    }

    #[inline]
    fn key(&self) -> InternalKey<'_> {
        self.whole.as_ref().map_or_else(|| self.record().key(), InternalIterator::key)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.whole.as_ref().map_or_else(|| self.record().value(), InternalIterator::value)
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }
}
