//! Entries in the order of their arrival, sorted when somebody reads them: for bulk loads.
//!
//! 1. An insertion copies the entry into the arena and notes where (`log`). Nothing is searched or
//!    moved.
//! 2. A cursor walks over a view: all entries, sorted (`sort`, `view`). The newest view is kept;
//!    the next one sorts what came since and merges the two. A flush comes when no more entries do,
//!    and so it sorts once.
//! 3. A lookup uses the kept view, and looks through what came since one by one; when that has
//!    become much, it makes a new view first.

mod cursor;
mod log;
mod sort;
mod view;

use std::ops::ControlFlow;
use std::ptr::NonNull;
use std::sync::Arc;

pub(super) use cursor::VectorCursor;
use log::{Log, Position};
use sort::SortOrder;
use view::View;

use super::arena::Arena;
use super::counts::{Addition, Counts};
use super::index::{Index, IndexWriter};
use super::key_prefix::Target;
use super::record::{Entry, Record, RecordHeader};
use crate::base::sync::{ArcSwapOption, AtomicUsize, Mutex, Ordering};
use crate::base::{
    InternalKeyComparator, MAX_SEQUENCE_NUMBER, SequenceNumber, ValueType, pack_sequence_and_type,
};
use crate::cache::MemoryAccount;

/// How many entries a lookup looks through in any case.
const UNSORTED_FEW: usize = if cfg!(any(miri, feature = "shuttle")) { 4 } else { 64 };

/// How many times more may be sorted than a lookup looks through: more make lookups faster and new
/// views more frequent.
const SORTED_PER_UNSORTED: usize = 16;

/// The entries of one memtable.
pub struct Vector {
    order: SortOrder,
    log: Log,
    view: ArcSwapOption<View>,
    /// Held while a view is made.
    sorting: Mutex<()>,
    /// Hears of the views.
    account: Option<Arc<MemoryAccount>>,
    used: AtomicUsize,
    reserved: AtomicUsize,
    /// Changed with the writer's state locked.
    counts: Counts,
    /// Locked for each insertion.
    writer: Mutex<WriterState>,
}

struct WriterState {
    /// Where everything lies.
    arena: Arena,
    end: Position,
}

impl Vector {
    /// An empty vector that lies in `arena`.
    pub(super) fn new(order: InternalKeyComparator, mut arena: Arena) -> Self {
        let log = Log::new(&mut arena);
        let (used, reserved) = (AtomicUsize::new(arena.used()), AtomicUsize::new(arena.reserved()));
        let account = arena.account();
        let writer = Mutex::new(WriterState { arena, end: log.first() });
        let (view, sorting) = (ArcSwapOption::default(), Mutex::new(()));
        let (order, counts) = (SortOrder::new(order), Counts::default());
        Self { order, log, view, sorting, account, used, reserved, counts, writer }
    }

    /// A view of all but at most so many of the newest entries.
    fn sorted(&self, unsorted_max: impl Fn(usize) -> usize) -> Option<Arc<View>> {
        let count = self.log.count();
        let is_enough = |view: &Option<Arc<View>>| {
            let sorted = view.as_ref().map_or(0, |view| view.len());
            // Another reader may have sorted more than there was.
            count.saturating_sub(sorted) <= unsorted_max(sorted)
        };
        let kept = self.view.load_full();
        if is_enough(&kept) {
            return kept;
        }
        let _one_at_a_time = self.sorting.lock();
        let kept = self.view.load_full();
        if is_enough(&kept) {
            return kept;
        }
        let mut view = View::new(&self.order, &self.log, kept.as_deref(), count);
        view.count_in(self.account.as_ref());
        let view = Some(Arc::new(view));
        self.view.store(view.clone());
        view
    }

    /// The versions of a key that came after the view was made, newest first.
    fn unsorted<'a>(&'a self, view: Option<&View>, target: &Target<'_>) -> Vec<Record<'a>> {
        let from = view.map_or(self.log.first(), |view| view.end);
        let count = self.log.count();
        let equals = |key: &[u8]| self.order.keys.user.compare(key, target.user_key).is_eq();
        let mut found: Vec<_> = self
            .log
            .read(from, count.max(from.before))
            .filter(|record| equals(record.user_key()) && record.key().packed() <= target.packed)
            .collect();
        found.sort_unstable_by_key(|record| !record.key().packed());
        found
    }
}

impl Index for Vector {
    type Writer<'a> = VectorWriter<'a>;
    type Cursor = VectorCursor;

    fn writer(&self) -> VectorWriter<'_> {
        VectorWriter { vector: self }
    }

    fn cursor(self: &Arc<Self>) -> VectorCursor {
        VectorCursor::new(Arc::clone(self), self.sorted(|_| 0))
    }

    fn get<'a>(
        &'a self,
        user_key: &[u8],
        snapshot: SequenceNumber,
        mut visit: impl FnMut(SequenceNumber, ValueType, &'a [u8]) -> ControlFlow<()>,
    ) {
        let packed = pack_sequence_and_type(snapshot.min(MAX_SEQUENCE_NUMBER), ValueType::FOR_SEEK);
        let target = Target { user_key, packed };
        let view = self.sorted(|sorted| UNSORTED_FEW + sorted / SORTED_PER_UNSORTED);
        let mut newer = self.unsorted(view.as_deref(), &target).into_iter().peekable();
        let mut index =
            view.as_ref().map_or(0, |view| view.lower_bound(&self.log, &self.order, &target));
        let equals =
            |record: &Record<'_>| self.order.keys.user.compare(record.user_key(), user_key).is_eq();
        loop {
            let sorted = view.as_ref().and_then(|view| view.get(&self.log, index)).filter(equals);
            let is_next = |record: &Record<'_>| {
                sorted.is_none_or(|sorted| record.key().packed() > sorted.key().packed())
            };
            let record = match newer.next_if(is_next) {
                Some(record) => record,
                None => {
                    let Some(record) = sorted else { return };
                    index += 1;
                    record
                }
            };
            let value_type = record.key().value_type().expect("only known types are inserted");
            if visit(record.key().sequence(), value_type, record.value()).is_break() {
                return;
            }
        }
    }

    /// Counts in a sample.
    fn approximate_count(&self, start: &[u8], end: &[u8]) -> u64 {
        const SAMPLE: usize = 1 << 12;
        let count = self.log.count();
        let step = count.div_ceil(SAMPLE).max(1);
        let order = &self.order.keys.user;
        let within = |record: &Record<'_>| {
            let key = record.user_key();
            order.compare(start, key).is_le() && order.compare(key, end).is_lt()
        };
        let found = self.log.read(self.log.first(), count).step_by(step).filter(within).count();
        (found * step).min(count) as u64
    }

    fn counts(&self) -> impl Iterator<Item = &Counts> {
        std::iter::once(&self.counts)
    }

    fn memory_usage(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_reserved(&self) -> usize {
        let view = self.view.load().as_ref().map_or(0, |view| view.memory_usage());
        self.reserved.load(Ordering::Relaxed) + view
    }
}

/// The right to insert.
pub(super) struct VectorWriter<'a> {
    vector: &'a Vector,
}

impl VectorWriter<'_> {
    /// Adds a record that `make` puts into the vector's arena; it also learns how many there are.
    /// Other writers wait meanwhile.
    #[inline]
    pub(super) fn insert_made(
        &mut self,
        addition: &Addition,
        make: impl FnOnce(&mut Arena, usize) -> NonNull<RecordHeader>,
    ) {
        let vector = self.vector;
        let WriterState { arena, end } = &mut *vector.writer.lock();
        let record = make(arena, end.before);
        vector.log.push(arena, end, record);
        vector.used.store(arena.used(), Ordering::Relaxed);
        vector.reserved.store(arena.reserved(), Ordering::Relaxed);
        vector.counts.add_alone(addition);
    }
}

impl IndexWriter for VectorWriter<'_> {
    #[inline]
    fn insert(&mut self, entry: &Entry<'_>, addition: &Addition) {
        self.insert_made(addition, |arena, _| Record::create(arena, entry));
    }

    fn count(&mut self, addition: &Addition) {
        let _one_at_a_time = self.vector.writer.lock();
        self.vector.counts.add_alone(addition);
    }
}
