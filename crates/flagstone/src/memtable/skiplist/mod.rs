//! Skip lists whose nodes, keys and values lie in an arena: for any comparator.
//!
//! `node` holds the nodes and the proofs about them; `list` the searches; `cursor` the cursor; here
//! is the memtable that is one list, with any number of writers:
//!
//! 1. A writer finds, on each level, the last node before the new one and the first behind it: the
//!    splice.
//! 2. It links the new node level by level, from the lowest up. On each it sets the new node's link
//!    to the node behind, and then the link of the node before, in one step and only if that still
//!    leads to the node behind. Otherwise another writer was there: it finds the splice again, from
//!    that level up.
//! 3. A writer's lane keeps the splice. If the next key fits between the same two nodes of level 0,
//!    and nothing was linked there, no search is needed: writing in order costs constant time.
//!
//! **Invariant** (besides those of `node`): in a splice the brackets of higher levels enclose those
//! of lower ones, and levels that no node reached when it was last filled in have the head and
//! nothing. So a key that fits the bracket of level 0 fits all.
//!
//! No lock is held while the comparator, the application's code, is called.
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
use super::counts::{Addition, Counts};
use super::index::{Index, IndexWriter};
use super::key_prefix::Target;
use super::record::Entry;
use super::shared_arena::{ArenaWriter, SharedArena};
use crate::base::sync::{AtomicU64, AtomicUsize, Ordering};
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
    /// Seeds of random numbers that were given out.
    seeds: AtomicU64,
    arena: SharedArena<Option<Splice>>,
}

// SAFETY: see "Thread safety" in `node`; `head` points into the arena.
unsafe impl Send for SkipList {}
// SAFETY: the same.
unsafe impl Sync for SkipList {}

/// Where a writer's last insertion took place, and its random numbers.
#[derive(Clone, Copy)]
struct Splice {
    random: u64,
    previous: [NonNull<Header>; MAX_HEIGHT],
    next: [*mut Header; MAX_HEIGHT],
}

// SAFETY: it is used with its list only, whose nodes may be read from any thread.
unsafe impl Send for Splice {}

impl SkipList {
    /// An empty list that lies in `arena`.
    pub(super) fn new(order: InternalKeyComparator, mut arena: Arena) -> Self {
        let head = Node::create_head(&mut arena, MAX_HEIGHT);
        Self {
            order: ListOrder::new(order),
            head,
            height: AtomicUsize::new(1),
            seeds: AtomicU64::new(0),
            arena: SharedArena::new(arena),
        }
    }

    fn new_splice(&self) -> Splice {
        let seed = self.seeds.fetch_add(1, Ordering::Relaxed);
        Splice {
            random: seed.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ 0x9e37_79b9_7f4a_7c15,
            previous: [self.head; MAX_HEIGHT],
            next: [ptr::null_mut(); MAX_HEIGHT],
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
        SkipListWriter { list: self, arena: self.arena.writer() }
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

    #[inline]
    fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.arena.counts()
    }

    fn memory_usage(&self) -> usize {
        self.arena.used()
    }

    fn memory_reserved(&self) -> usize {
        self.arena.reserved()
    }

    #[inline]
    fn fetch_ahead(&self, up_to: usize) {
        self.arena.fetch_ahead(up_to);
    }
}

/// The right to insert.
pub(super) struct SkipListWriter<'a> {
    list: &'a SkipList,
    arena: ArenaWriter<'a, Option<Splice>>,
}

impl IndexWriter for SkipListWriter<'_> {
    fn insert(&mut self, entry: &Entry<'_>, addition: &Addition) {
        let list = self.list;
        let height = match self.arena.kept() {
            Some(kept) => kept.get_or_insert_with(|| list.new_splice()).random_height(),
            None => list.new_splice().random_height(),
        };
        let number = list.order.number(entry.user_key);
        let no_links = &[ptr::null_mut(); MAX_HEIGHT][..height];
        // SAFETY: the node lies in the list's arena, and is complete but for its links.
        let node = unsafe { Node::new(Node::create(&mut self.arena, number, no_links, entry)) };
        let target = Target { user_key: entry.user_key, packed: entry.packed };
        match self.arena.kept() {
            Some(kept) => {
                kept.get_or_insert_with(|| list.new_splice()).insert(list, node, &target);
            }
            None => list.new_splice().insert(list, node, &target),
        }
        self.arena.count(addition);
    }

    fn count(&mut self, addition: &Addition) {
        self.arena.count(addition);
    }
}

impl Splice {
    /// Links a node, which is `target`'s, on all its levels.
    fn insert(&mut self, list: &SkipList, node: Node<'_>, target: &Target<'_>) {
        let (number, height) = (node.number(), node.height());
        if !self.fits(list, number, target) {
            self.find(list, 0, number, target);
        }
        // A reader that still sees the old height only misses a shortcut.
        if height > list.height.load(Ordering::Relaxed) {
            list.height.fetch_max(height, Ordering::Relaxed);
        }
        for level in 0..height {
            while !self.link(level, node) {
                self.find(list, level, number, target);
            }
        }
        self.previous[..height].fill(node.pointer());
    }

    /// Whether `target` belongs between the two nodes of level 0, which are neighbours.
    fn fits(&self, list: &SkipList, number: u64, target: &Target<'_>) -> bool {
        // SAFETY: the splice holds the list's head, linked nodes and null pointers.
        let (previous, next) = unsafe {
            let next = NonNull::new(self.next[0]).map(|at| Node::new(at));
            (Node::new(self.previous[0]), next)
        };
        previous.pointer() != list.head
            && previous.next(0) == next
            && list.order.is_before(previous, number, target)
            && next.is_none_or(|next| !list.order.is_before(next, number, target))
    }

    /// Makes the levels from `lowest` up bracket `target`. Before it ends, nothing fits: the
    /// comparator may panic.
    fn find(&mut self, list: &SkipList, lowest: usize, number: u64, target: &Target<'_>) {
        self.previous[0] = list.head;
        list.order.place(list.list(), number, target, |level, before, after| {
            if level >= lowest {
                self.previous[level] = before.pointer();
                self.next[level] = after.map_or(ptr::null_mut(), |after| after.pointer().as_ptr());
            }
        });
    }

    /// Links a complete node on one level; `false` if the two nodes there are not neighbours now.
    #[inline]
    fn link(&self, level: usize, node: Node<'_>) -> bool {
        node.prepare_link(level, self.next[level]);
        // SAFETY: the splice holds the head and linked nodes that reach this level.
        let previous = unsafe { Node::new(self.previous[level]) };
        previous.replace_next(level, self.next[level], node)
    }

    fn random_height(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        height_from(self.random)
    }
}
