//! Skip lists whose nodes, keys and values lie in an arena: for any comparator.
//!
//! `node` holds the nodes and the proofs about them; `list` the searches; `cursor` the cursor; here
//! is the memtable that is one list. **Invariant** (besides those of `node`): the splice brackets
//! the last insertion at every level: `previous[level]` links directly to `next[level]`, and the
//! brackets of higher levels enclose those of lower ones. So an insertion that fits the bracket of
//! level 0 fits all, and needs no search: writing in order costs constant time.
#![expect(unsafe_code, reason = "pointers to nodes that are kept from one insertion to the next")]

mod cursor;
mod list;
mod node;

use std::ops::ControlFlow;
use std::ptr::{self, NonNull};
use std::sync::Arc;

pub(super) use cursor::{ListCursor, Lists};
pub(super) use list::{List, ListOrder};
pub(super) use node::Head;
use node::{Header, Node};

use super::arena::Arena;
use super::index::{Index, IndexWriter};
use super::key_prefix::Target;
use super::record::Entry;
use crate::base::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::base::{InternalKeyComparator, SequenceNumber, ValueType};

const MAX_HEIGHT: usize = 12;

/// One node in four reaches the next level.
const BRANCHING: u32 = 4;

/// The height of a node that random bits choose: two bits a level, one node in four goes on.
pub(super) fn height_from(bits: u64) -> usize {
    (1 + bits.trailing_zeros() as usize / BRANCHING.trailing_zeros() as usize).min(MAX_HEIGHT)
}

/// The sorted entries of one memtable.
pub struct SkipList {
    order: ListOrder,
    head: NonNull<Header>,
    height: AtomicUsize,
    used: AtomicUsize,
    reserved: AtomicUsize,
    writer: Mutex<WriterState>,
}

// SAFETY: see "Thread safety" in `node`; `head` points into the arena that `writer` owns.
unsafe impl Send for SkipList {}
// SAFETY: the same.
unsafe impl Sync for SkipList {}

struct WriterState {
    arena: Arena,
    random: u64,
    /// Where the last insertion took place.
    previous: [NonNull<Header>; MAX_HEIGHT],
    next: [*mut Header; MAX_HEIGHT],
}

impl SkipList {
    /// An empty list that lies in `arena`.
    pub(super) fn new(order: InternalKeyComparator, mut arena: Arena) -> Self {
        let head = Node::create_head(&mut arena, MAX_HEIGHT);
        Self {
            order: ListOrder::new(order),
            head,
            height: AtomicUsize::new(1),
            used: AtomicUsize::new(arena.used()),
            reserved: AtomicUsize::new(arena.reserved()),
            writer: Mutex::new(WriterState {
                arena,
                random: 0x9e37_79b9_7f4a_7c15,
                previous: [head; MAX_HEIGHT],
                next: [ptr::null_mut(); MAX_HEIGHT],
            }),
        }
    }

    #[inline]
    fn list(&self) -> List<'_> {
        // SAFETY: the head was made with the list.
        List { head: unsafe { Node::new(self.head) }, height: self.height.load(Ordering::Relaxed) }
    }
}

impl Lists for SkipList {
    fn order(&self) -> &ListOrder {
        &self.order
    }

    #[inline]
    fn list_of(&self, _user_key: &[u8]) -> Option<List<'_>> {
        Some(self.list())
    }
}

impl Index for SkipList {
    type Writer<'a> = SkipListWriter<'a>;
    type Cursor = ListCursor<Self>;

    fn writer(&self) -> SkipListWriter<'_> {
        SkipListWriter { list: self, state: self.writer.lock() }
    }

    fn cursor(self: &Arc<Self>) -> ListCursor<Self> {
        ListCursor::new(Arc::clone(self))
    }

    fn get<'a>(
        &'a self,
        user_key: &[u8],
        snapshot: SequenceNumber,
        visit: impl FnMut(SequenceNumber, ValueType, &'a [u8]) -> ControlFlow<()>,
    ) {
        self.order.get(self.list(), user_key, snapshot, visit);
    }

    fn approximate_count(&self, start: &[u8], end: &[u8]) -> u64 {
        self.order.approximate_count(self.list(), start, end)
    }

    fn memory_usage(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }
}

/// The right to insert.
pub(super) struct SkipListWriter<'a> {
    list: &'a SkipList,
    state: MutexGuard<'a, WriterState>,
}

impl IndexWriter for SkipListWriter<'_> {
    fn insert(&mut self, entry: &Entry<'_>) {
        let number = self.list.order.number(entry.user_key);
        self.find_place(number, &Target { user_key: entry.user_key, packed: entry.packed });
        let state = &mut *self.state;
        let random = &mut state.random;
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        let height = height_from(*random);
        let at = Node::create(&mut state.arena, number, &state.next[..height], entry);
        for (level, previous) in state.previous[..height].iter_mut().enumerate() {
            // SAFETY: the splice holds the head and linked nodes that reach this level.
            unsafe { Node::new(*previous) }.set_next(level, at);
            *previous = at;
        }
        // A reader that still sees the old height only misses a shortcut.
        if height > self.list.height.load(Ordering::Relaxed) {
            self.list.height.store(height, Ordering::Relaxed);
        }
        self.list.used.store(state.arena.used(), Ordering::Relaxed);
        self.list.reserved.store(state.arena.reserved(), Ordering::Relaxed);
    }
}

impl SkipListWriter<'_> {
    /// Makes the splice bracket `target`.
    fn find_place(&mut self, number: u64, target: &Target<'_>) {
        if self.fits_splice(number, target) {
            return;
        }
        let state = &mut *self.state;
        // Levels that no node has reached yet keep the head and nothing, as they were made.
        self.list.order.place(self.list.list(), number, target, |level, before, after| {
            state.previous[level] = before.pointer();
            state.next[level] = after.map_or(ptr::null_mut(), |after| after.pointer().as_ptr());
        });
    }

    fn fits_splice(&self, number: u64, target: &Target<'_>) -> bool {
        // SAFETY: the splice holds the head, linked nodes and null pointers.
        let (previous, next) = unsafe {
            let next = NonNull::new(self.state.next[0]).map(|at| Node::new(at));
            (Node::new(self.state.previous[0]), next)
        };
        let order = &self.list.order;
        previous.pointer() != self.list.head
            && order.is_before(previous, number, target)
            && next.is_none_or(|next| !order.is_before(next, number, target))
    }
}
