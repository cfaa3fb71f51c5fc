//! A skip list whose nodes, keys and values lie in one arena: for any comparator.
//!
//! ```text
//! node = prefix u64, key size u32, value size u32, height u64, next [AtomicPtr; height], internal key, value
//! ```
//!
//! **Thread safety.** One writer at a time, by the lock inside; any number of readers, without it. A node is complete
//! before it is linked, and linked by a store with release order at each level; readers follow links with acquire
//! order, so what they reach they see complete.
//!
//! **Invariants**
//! 1. A node is never unlinked, moved or freed before the list is dropped; only its `next` links change after it is
//!    linked, and these are atomic.
//! 2. Level 0 holds all nodes in order; every level is a subsequence of the one below.
//! 3. A `Node<'a>` is made only from a pointer that the list's arena handed out, while the list is borrowed for `'a`
//!    or kept alive by an `Arc` for as long.
//! 4. The splice brackets the last insertion at every level: `previous[level]` links directly to `next[level]`, and
//!    the brackets of higher levels enclose those of lower ones. So an insertion that fits the bracket of level 0 fits
//!    all, and needs no search: writing in order costs constant time.
#![expect(unsafe_code, reason = "nodes of varying size in an arena, linked by atomic pointers")]

use std::cmp::Ordering as Order;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use super::arena::{ALIGNMENT, Arena};
use super::key_prefix::{PrefixOrder, Target};
use crate::base::sync::{AtomicPtr, AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::base::{
    InternalKey, InternalKeyComparator, MAX_SEQUENCE_NUMBER, PACKED_SIZE, SequenceNumber, ValueType,
    pack_sequence_and_type,
};

const MAX_HEIGHT: usize = 12;

/// One node in four reaches the next level.
const BRANCHING: u32 = 4;

#[repr(C)]
struct Header {
    prefix: u64,
    key_size: u32,
    value_size: u32,
    height: u64,
}

const _: () =
    assert!(align_of::<Header>() <= ALIGNMENT && size_of::<Header>().is_multiple_of(align_of::<Link>()));

type Link = AtomicPtr<Header>;

/// A linked node; see invariant 3.
#[derive(Clone, Copy)]
struct Node<'a> {
    at: NonNull<Header>,
    list: PhantomData<&'a SkipList>,
}

impl<'a> Node<'a> {
    /// # Safety
    /// Invariant 3.
    unsafe fn new(at: NonNull<Header>) -> Self {
        Self { at, list: PhantomData }
    }

    #[inline]
    fn header(self) -> &'a Header {
        // SAFETY: invariants 1 and 3; the header does not change after the node is linked.
        unsafe { self.at.as_ref() }
    }

    #[inline]
    fn link(self, level: usize) -> &'a Link {
        debug_assert!((level as u64) < self.header().height);
        // SAFETY: `height` links follow the header, and no caller asks for a level that the node was not found on.
        unsafe { self.at.add(1).cast::<Link>().add(level).as_ref() }
    }

    #[inline]
    fn next(self, level: usize) -> Option<Node<'a>> {
        // SAFETY: links hold pointers to linked nodes of the same arena.
        NonNull::new(self.link(level).load(Ordering::Acquire)).map(|at| unsafe { Node::new(at) })
    }

    #[inline]
    fn bytes(self) -> (NonNull<u8>, &'a Header) {
        let header = self.header();
        // SAFETY: the key begins right after the links, within the node's piece of the arena.
        (unsafe { self.at.add(1).cast::<Link>().add(header.height as usize).cast() }, header)
    }

    #[inline]
    fn key(self) -> InternalKey<'a> {
        let (key, header) = self.bytes();
        // SAFETY: `key_size` bytes were written there before the node was linked, and do not change.
        InternalKey::from_checked(unsafe { slice::from_raw_parts(key.as_ptr(), header.key_size as usize) })
    }

    #[inline]
    fn value(self) -> &'a [u8] {
        let (key, header) = self.bytes();
        // SAFETY: `value_size` bytes follow the key, as above.
        unsafe {
            slice::from_raw_parts(key.as_ptr().add(header.key_size as usize), header.value_size as usize)
        }
    }
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

/// The sorted entries of one memtable.
pub struct SkipList {
    order: InternalKeyComparator,
    prefix_order: PrefixOrder,
    head: NonNull<Header>,
    height: AtomicUsize,
    used: AtomicUsize,
    reserved: AtomicUsize,
    writer: Mutex<WriterState>,
}

// SAFETY: see "Thread safety" above; `head` points into the arena that `writer` owns.
unsafe impl Send for SkipList {}
// SAFETY: the same.
unsafe impl Sync for SkipList {}

struct WriterState {
    arena: Arena,
    random: u32,
    /// Where the last insertion took place; see invariant 4.
    previous: [NonNull<Header>; MAX_HEIGHT],
    next: [*mut Header; MAX_HEIGHT],
}

impl SkipList {
    /// An empty list that lies in `arena`.
    pub(super) fn new(order: InternalKeyComparator, mut arena: Arena) -> Self {
        let entry = Entry { prefix: 0, user_key: &[], packed: 0, value: &[] };
        let head = entry.write_to(&mut arena, MAX_HEIGHT, &[ptr::null_mut(); MAX_HEIGHT]);
        Self {
            prefix_order: PrefixOrder::of(&order.user),
            order,
            head,
            height: AtomicUsize::new(1),
            used: AtomicUsize::new(arena.used()),
            reserved: AtomicUsize::new(arena.reserved()),
            writer: Mutex::new(WriterState {
                arena,
                random: 0x9e37_79b9,
                previous: [head; MAX_HEIGHT],
                next: [ptr::null_mut(); MAX_HEIGHT],
            }),
        }
    }

    pub(super) fn writer(&self) -> SkipListWriter<'_> {
        SkipListWriter { list: self, state: self.writer.lock() }
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn memory_reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    fn head(&self) -> Node<'_> {
        // SAFETY: the head was made with the list; it is never compared.
        unsafe { Node::new(self.head) }
    }

    /// Whether `node` stands before `target`, whose number is `prefix`.
    #[inline]
    fn is_before(&self, node: Node<'_>, prefix: u64, target: &Target<'_>) -> bool {
        match node.header().prefix.cmp(&prefix) {
            Order::Less => true,
            Order::Greater => false,
            Order::Equal => target.compared_by(&self.order, node.key()).is_lt(),
        }
    }

    /// The last node before `target` and the first at or after it.
    fn find(&self, target: &Target<'_>) -> (Node<'_>, Option<Node<'_>>) {
        let prefix = self.prefix_order.number(target.user_key);
        let mut level = self.height.load(Ordering::Relaxed) - 1;
        let (mut node, mut known_after) = (self.head(), None);
        loop {
            let next = node.next(level);
            match next {
                Some(next) if Some(next) != known_after && self.is_before(next, prefix, target) => {
                    node = next
                }
                _ if level == 0 => return (node, next),
                _ => {
                    // The same node on the level below need not be compared again.
                    known_after = next;
                    level -= 1;
                }
            }
        }
    }

    fn last(&self) -> Option<Node<'_>> {
        let mut node = self.head();
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            while let Some(next) = node.next(level) {
                node = next;
            }
        }
        self.unless_head(node)
    }

    fn unless_head<'a>(&'a self, node: Node<'a>) -> Option<Node<'a>> {
        (node.at != self.head).then_some(node)
    }

    pub(super) fn get<'a>(
        &'a self,
        user_key: &[u8],
        snapshot: SequenceNumber,
        mut visit: impl FnMut(SequenceNumber, ValueType, &'a [u8]) -> ControlFlow<()>,
    ) {
        let packed = pack_sequence_and_type(snapshot.min(MAX_SEQUENCE_NUMBER), ValueType::FOR_SEEK);
        let mut found = self.find(&Target { user_key, packed }).1;
        while let Some(node) = found {
            let key = node.key();
            if self.order.user.compare(key.user_key(), user_key).is_ne() {
                return;
            }
            let value_type = key.value_type().expect("only known types are inserted");
            if visit(key.sequence(), value_type, node.value()).is_break() {
                return;
            }
            found = node.next(0);
        }
    }

    /// Counts on the highest level that has some nodes in the range, and multiplies.
    pub(super) fn approximate_count(&self, start: &[u8], end: &[u8]) -> u64 {
        const ENOUGH: u64 = 16;
        let (first, last) =
            (Target { user_key: start, packed: u64::MAX }, Target { user_key: end, packed: u64::MAX });
        let (first_prefix, last_prefix) = (self.prefix_order.number(start), self.prefix_order.number(end));
        let mut node = self.head();
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            while let Some(next) = node.next(level).filter(|&next| self.is_before(next, first_prefix, &first))
            {
                node = next;
            }
            let mut count = 0;
            let mut within = node.next(level);
            while let Some(next) = within.filter(|&next| self.is_before(next, last_prefix, &last)) {
                count += 1;
                within = next.next(level);
            }
            if count >= ENOUGH || level == 0 {
                return count * u64::from(BRANCHING).pow(level as u32);
            }
        }
        0
    }
}

/// What becomes a node.
struct Entry<'a> {
    prefix: u64,
    user_key: &'a [u8],
    packed: u64,
    value: &'a [u8],
}

impl Entry<'_> {
    /// A complete node, not linked yet, whose links are `next`.
    fn write_to(&self, arena: &mut Arena, height: usize, next: &[*mut Header]) -> NonNull<Header> {
        let key_size = self.user_key.len() + PACKED_SIZE;
        let links_size = height * size_of::<Link>();
        let size = size_of::<Header>() + links_size + key_size + self.value.len();
        let header = Header {
            prefix: self.prefix,
            key_size: u32::try_from(key_size).expect("a key is shorter than 4 GiB"),
            value_size: u32::try_from(self.value.len()).expect("a value is shorter than 4 GiB"),
            height: height as u64,
        };
        let at = arena.allocate(size).cast::<Header>();
        // SAFETY: the piece has `size` bytes, aligned for the header and the links, and nobody else knows it yet.
        unsafe {
            at.write(header);
            let links = at.add(1).cast::<Link>();
            for (level, &next) in next[..height].iter().enumerate() {
                links.add(level).write(Link::new(next));
            }
            let key = links.add(height).cast::<u8>().as_ptr();
            ptr::copy_nonoverlapping(self.user_key.as_ptr(), key, self.user_key.len());
            let packed = key.add(self.user_key.len());
            ptr::copy_nonoverlapping(self.packed.to_le_bytes().as_ptr(), packed, PACKED_SIZE);
            ptr::copy_nonoverlapping(self.value.as_ptr(), packed.add(PACKED_SIZE), self.value.len());
        }
        at
    }
}

/// The right to insert.
pub(super) struct SkipListWriter<'a> {
    list: &'a SkipList,
    state: MutexGuard<'a, WriterState>,
}

impl SkipListWriter<'_> {
    /// # Panics
    /// If key or value is 4 GiB or longer.
    pub(super) fn insert(
        &mut self,
        user_key: &[u8],
        sequence: SequenceNumber,
        value_type: ValueType,
        value: &[u8],
    ) {
        let packed = pack_sequence_and_type(sequence, value_type);
        let prefix = self.list.prefix_order.number(user_key);
        self.find_place(prefix, &Target { user_key, packed });
        let height = self.random_height();
        let state = &mut *self.state;
        let entry = Entry { prefix, user_key, packed, value };
        let at = entry.write_to(&mut state.arena, height, &state.next);
        for level in 0..height {
            // SAFETY: the splice holds the head and linked nodes that reach this level (invariants 3 and 4).
            let previous = unsafe { Node::new(state.previous[level]) };
            previous.link(level).store(at.as_ptr(), Ordering::Release);
            state.previous[level] = at;
        }
        // A reader that still sees the old height only misses a shortcut.
        if height > self.list.height.load(Ordering::Relaxed) {
            self.list.height.store(height, Ordering::Relaxed);
        }
        self.list.used.store(state.arena.used(), Ordering::Relaxed);
        self.list.reserved.store(state.arena.reserved(), Ordering::Relaxed);
    }

    /// Makes the splice bracket `target`.
    fn find_place(&mut self, prefix: u64, target: &Target<'_>) {
        if self.fits_splice(prefix, target) {
            return;
        }
        let mut level = self.list.height.load(Ordering::Relaxed);
        let (mut node, mut known_after) = (self.list.head(), None);
        // Levels that no node has reached yet keep the head and nothing, as they were made.
        while level > 0 {
            level -= 1;
            let next = loop {
                match node.next(level) {
                    Some(next) if Some(next) != known_after && self.list.is_before(next, prefix, target) => {
                        node = next;
                    }
                    next => break next,
                }
            };
            known_after = next;
            self.state.previous[level] = node.at;
            self.state.next[level] = next.map_or(ptr::null_mut(), |next| next.at.as_ptr());
        }
    }

    fn fits_splice(&self, prefix: u64, target: &Target<'_>) -> bool {
        // SAFETY: the splice holds the head, linked nodes and null pointers (invariant 3).
        let (previous, next) = unsafe {
            let next = NonNull::new(self.state.next[0]).map(|at| Node::new(at));
            (Node::new(self.state.previous[0]), next)
        };
        previous.at != self.list.head
            && self.list.is_before(previous, prefix, target)
            && next.is_none_or(|next| !self.list.is_before(next, prefix, target))
    }

    fn random_height(&mut self) -> usize {
        let random = &mut self.state.random;
        *random ^= *random << 13;
        *random ^= *random >> 17;
        *random ^= *random << 5;
        // Two bits a level: one in four goes on.
        (1 + random.trailing_zeros() as usize / BRANCHING.trailing_zeros() as usize).min(MAX_HEIGHT)
    }
}

/// A cursor that keeps its list alive.
pub struct SkipListIterator {
    list: Arc<SkipList>,
    at: Option<NonNull<Header>>,
}

// SAFETY: the pointer is into the list that the cursor shares, which may be read from any thread.
unsafe impl Send for SkipListIterator {}

impl SkipListIterator {
    pub(super) fn new(list: Arc<SkipList>) -> Self {
        Self { list, at: None }
    }

    #[inline]
    fn node(&self) -> Node<'_> {
        // SAFETY: the pointer came from the list, which `self` keeps alive (invariant 3).
        unsafe { Node::new(self.at.expect("the cursor is valid")) }
    }

    #[inline]
    pub(super) fn valid(&self) -> bool {
        self.at.is_some()
    }

    pub(super) fn seek_to_first(&mut self) {
        self.at = self.list.head().next(0).map(|node| node.at);
    }

    pub(super) fn seek_to_last(&mut self) {
        self.at = self.list.last().map(|node| node.at);
    }

    pub(super) fn seek(&mut self, target: InternalKey<'_>) {
        self.at = self.list.find(&Target::of(target)).1.map(|node| node.at);
    }

    pub(super) fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        let target = Target::of(target);
        let (before, after) = self.list.find(&target);
        let exact = after.filter(|node| target.compared_by(&self.list.order, node.key()).is_eq());
        self.at = exact.or(self.list.unless_head(before)).map(|node| node.at);
    }

    #[inline]
    pub(super) fn next(&mut self) {
        self.at = self.node().next(0).map(|node| node.at);
    }

    pub(super) fn prev(&mut self) {
        let before = self.list.find(&Target::of(self.node().key())).0;
        self.at = self.list.unless_head(before).map(|node| node.at);
    }

    #[inline]
    pub(super) fn key(&self) -> InternalKey<'_> {
        self.node().key()
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        self.node().value()
    }
}
