//! The nodes of the B+tree.
//!
//! ```text
//! node = version, shared, count, skip, like, next leaf, children, numbers [64], records [64]
//! children = node [65]     of an inner node, elsewhere
//! ```
//!
//! Child `i` holds the entries from record `i - 1` (included: it is the child's first) up to record
//! `i` (excluded). `number` is made of the eight bytes of a key after its first `skip`, which all
//! keys of the node share. `shared` is the first eight of these, and `like` is some record that has
//! all of them: one for many nodes, so that it stays in the cache.
//!
//! **Thread safety.** Everything in a node that changes is atomic, and changes only while the node
//! is locked: while its `version` is odd. A writer locks a node by raising an even version that it
//! has read, in one step and with acquire order, so that it sees all changes before its own. It
//! issues a release fence, changes words with relaxed order, and makes `version` even with release
//! order. A reader, and a writer that descends, loads an even version with acquire order, then
//! words, and believes them only if the version is still the same after an acquire fence, or if it
//! could lock the node at that version. What it reads before it knows may come from different
//! moments, but each word is one that a writer once put there: an index is checked against the
//! array, a pointer leads to a live record or node. Pointers are stored with release and loaded
//! with acquire order, so that what they lead to is seen complete even before the version was
//! checked.
//!
//! A writer never waits while it has locked a node: what it cannot lock at once makes it start
//! again. So there is no deadlock. While a node is locked nothing is allocated, no code of the
//! application is called and nothing can fail: records and new nodes are made before. A new node is
//! not locked; no other thread knows it until it is complete.
//!
//! **Where a record belongs.** Each node is for a range of places between two keys. A child's range
//! shrinks in one case only, when the child is split, and so its version changes: no node is merged
//! with another or removed, and what happens to the nodes above or beside it moves no bound of its
//! range. A descent reads a child's version before it checks that the parent is unchanged. So at
//! that version the child is for the range in which the target lies, and a writer that locks it at
//! that version may put the record there. The root is for all places: a descent reads the version
//! of the node that it took for the root, and then checks that it still is the root. `top` changes
//! only while the root before is locked, and so that node's version would have changed, too.
//!
//! **Invariants**
//! 1. Nodes are never moved or freed before the arena is dropped; nor are records, which never
//!    change.
//! 2. Pointers to records and nodes in a node or in the root come from the tree's own arena.
//! 3. A `&'a Node` or `Record<'a>` is reached only from the root, while the tree is borrowed for
//!    `'a` or kept alive by an `Arc` for as long.
//! 4. The first record of a leaf that is not the leftmost is the one that the parents are divided
//!    by; nothing is ever inserted before it, so it stays the first.
//! 5. A leaf has no `next` only if it is the rightmost. `next` changes when the leaf is split, and
//!    then `rightmost` is set if it must be, both while the leaf is locked.
#![expect(unsafe_code, reason = "nodes in an arena, linked by atomic pointers")]

use std::cmp::Ordering as Order;
use std::hint::select_unpredictable;
use std::ptr::{self, NonNull};

use super::super::arena::{Allocate, Arena};
use super::super::key_prefix::{Target, leading_bytes};
use super::super::record::{Entry, Record, RecordHeader};
use crate::base::perf::{self, PerfMetric};
use crate::base::prefetch;
use crate::base::sync::{self, AtomicPtr, AtomicU32, AtomicU64, Mutex, Ordering, fence};

/// The most keys of a node.
pub(super) const CAPACITY: usize = if cfg!(any(miri, feature = "shuttle")) { 4 } else { 64 };

type Children = [AtomicPtr<Node>; CAPACITY + 1];

/// A leaf or an inner node; see the file's head.
#[repr(C, align(64))]
pub(super) struct Node {
    version: AtomicU64,
    /// The first eight of the bytes that all keys share.
    shared: AtomicU64,
    count: AtomicU32,
    skip: AtomicU32,
    /// A record that begins with the bytes that all keys share; null as long as they share none.
    like: AtomicPtr<RecordHeader>,
    next: AtomicPtr<Node>,
    children: Option<NonNull<Children>>,
    numbers: [AtomicU64; CAPACITY],
    records: [AtomicPtr<RecordHeader>; CAPACITY],
}

/// The ways into the tree.
pub(super) struct Root {
    top: AtomicPtr<Node>,
    /// The leaf that has no next; for writers.
    rightmost: AtomicPtr<Node>,
    /// Empty nodes of this tree that no other thread knows: made for splits that others did.
    spare: Mutex<Vec<AtomicPtr<Node>>>,
}

impl Root {
    /// An empty tree.
    pub(super) fn new(arena: &mut Arena) -> Self {
        let leaf = Node::create(arena, true).as_ptr();
        Self { top: AtomicPtr::new(leaf), rightmost: AtomicPtr::new(leaf), spare: Mutex::default() }
    }

    #[inline]
    pub(super) fn load(&self) -> &Node {
        // SAFETY: invariants 1 to 3; the root is never null.
        unsafe { &*self.top.load(Ordering::Acquire) }
    }

    pub(super) fn store(&self, node: &Node) {
        self.top.store(ptr::from_ref(node).cast_mut(), Ordering::Release);
    }

    #[inline]
    pub(super) fn rightmost(&self) -> &Node {
        // SAFETY: as above.
        unsafe { &*self.rightmost.load(Ordering::Acquire) }
    }

    pub(super) fn set_rightmost(&self, leaf: &Node) {
        self.rightmost.store(ptr::from_ref(leaf).cast_mut(), Ordering::Release);
    }

    /// An empty node of this tree that no other thread knows.
    pub(super) fn new_node(&self, arena: &mut impl Allocate, is_leaf: bool) -> &Node {
        // SAFETY: invariants 1 to 3: the node was made for this tree, in its arena, which is inside
        // the tree.
        let node = |at: NonNull<Node>| unsafe { at.as_ref() };
        let mut spare = self.spare.lock();
        let is_wanted = |at: &mut AtomicPtr<Node>| {
            NonNull::new(*at.get_mut()).is_some_and(|at| node(at).is_leaf() == is_leaf)
        };
        let kept = spare.iter_mut().position(is_wanted).map(|index| spare.swap_remove(index));
        drop(spare);
        let kept = kept.and_then(|at| NonNull::new(at.into_inner()));
        node(kept.unwrap_or_else(|| Node::create(arena, is_leaf)))
    }

    /// Keeps an empty node that no other thread knows for the next split.
    pub(super) fn keep_node(&self, node: &Node) {
        self.spare.lock().push(AtomicPtr::new(ptr::from_ref(node).cast_mut()));
    }

    /// A new record of this tree.
    #[inline]
    pub(super) fn new_record(&self, arena: &mut impl Allocate, entry: &Entry<'_>) -> Record<'_> {
        // SAFETY: as above.
        unsafe { Record::new(Record::create(arena, entry)) }
    }
}

/// The bytes of which `shared` tells.
#[inline]
fn shared_mask(skip: usize) -> u64 {
    match skip {
        0 => 0,
        8.. => u64::MAX,
        bytes => u64::MAX << (64 - 8 * bytes),
    }
}

/// The length of what two keys share, in steps of four: small changes then leave a node's numbers
/// alone, and the numbers still tell apart at least four bytes.
pub(super) fn shared_length(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count() & !3
}

impl Node {
    fn create(arena: &mut impl Allocate, is_leaf: bool) -> NonNull<Self> {
        let children = (!is_leaf).then(|| {
            let children = arena
                .allocate_aligned(size_of::<Children>(), align_of::<Self>())
                .cast::<Children>();
            // SAFETY: the piece is that large and aligned, and unknown to others.
            unsafe { children.write([const { AtomicPtr::new(ptr::null_mut()) }; CAPACITY + 1]) };
            children
        });
        let node = arena.allocate_aligned(size_of::<Self>(), align_of::<Self>()).cast::<Self>();
        let empty = Self {
            version: AtomicU64::new(0),
            shared: AtomicU64::new(0),
            count: AtomicU32::new(0),
            skip: AtomicU32::new(0),
            like: AtomicPtr::new(ptr::null_mut()),
            next: AtomicPtr::new(ptr::null_mut()),
            children,
            numbers: [const { AtomicU64::new(0) }; CAPACITY],
            records: [const { AtomicPtr::new(ptr::null_mut()) }; CAPACITY],
        };
        // SAFETY: as above.
        unsafe { node.write(empty) };
        node
    }

    /// The version, unless the node is locked.
    #[inline]
    pub(super) fn free_version(&self) -> Option<u64> {
        Some(self.version.load(Ordering::Acquire)).filter(|version| version & 1 == 0)
    }

    /// The version, once the node is not locked.
    #[inline]
    pub(super) fn stable_version(&self) -> u64 {
        let mut spins = 0u32;
        loop {
            if let Some(version) = self.free_version() {
                return version;
            }
            spins += 1;
            if spins.is_multiple_of(64) {
                // The writer may have lost its core in the middle of a change.
                sync::yield_now();
            }
            sync::spin_loop();
        }
    }

    /// Whether all that was read since the version was taken belongs together.
    #[inline]
    pub(super) fn is_still(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == version
    }

    /// Locks the node, if it still has that version and nobody has locked it.
    #[inline]
    pub(super) fn try_lock(&self, version: u64) -> bool {
        let next = version + 1;
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        let is_locked = self.version.compare_exchange(version, next, success, failure).is_ok();
        fence(Ordering::Release);
        is_locked
    }

    /// Unlocks the node, which the caller has locked and changed.
    #[inline]
    pub(super) fn unlock(&self) {
        let version = self.version.load(Ordering::Relaxed);
        debug_assert!(version & 1 == 1);
        self.version.store(version + 1, Ordering::Release);
    }

    /// Unlocks the node, which the caller has locked and not changed.
    pub(super) fn unlock_unchanged(&self) {
        let version = self.version.load(Ordering::Relaxed);
        debug_assert!(version & 1 == 1);
        self.version.store(version - 1, Ordering::Release);
    }

    #[inline]
    pub(super) fn is_leaf(&self) -> bool {
        self.children.is_none()
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        (self.count.load(Ordering::Relaxed) as usize).min(CAPACITY)
    }

    pub(super) fn is_full(&self) -> bool {
        self.count() == CAPACITY
    }

    /// The record at `index`; `None` only for what was not read consistently.
    #[inline]
    pub(super) fn record(&self, index: usize) -> Option<Record<'_>> {
        let at = NonNull::new(self.records.get(index)?.load(Ordering::Acquire))?;
        // SAFETY: invariants 1 to 3.
        Some(unsafe { Record::new(at) })
    }

    #[inline]
    fn like(&self) -> Option<Record<'_>> {
        // SAFETY: invariants 1 to 3.
        NonNull::new(self.like.load(Ordering::Acquire)).map(|at| unsafe { Record::new(at) })
    }

    /// The child at `index`; `None` only for what was not read consistently.
    #[inline]
    pub(super) fn child(&self, index: usize) -> Option<&Node> {
        // SAFETY: the array was made with the node and is not changed but by atomic stores.
        let children = unsafe { self.children?.as_ref() };
        // SAFETY: invariants 1 to 3.
        unsafe { children.get(index)?.load(Ordering::Acquire).as_ref() }
    }

    /// The leaf to the right.
    #[inline]
    pub(super) fn next(&self) -> Option<&Node> {
        // SAFETY: invariants 1 to 3.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    pub(super) fn set_next(&self, next: Option<&Node>) {
        self.next.store(
            next.map_or(ptr::null_mut(), |next| ptr::from_ref(next).cast_mut()),
            Ordering::Release,
        );
    }

    pub(super) fn set_child(&self, index: usize, child: &Node) {
        // SAFETY: as in `child`.
        let children = unsafe { self.children.expect("an inner node").as_ref() };
        children[index].store(ptr::from_ref(child).cast_mut(), Ordering::Release);
    }

    #[inline]
    pub(super) fn skip(&self) -> usize {
        self.skip.load(Ordering::Relaxed) as usize
    }

    /// Asks the processor to fetch all of this node: its parts then come together, not one after
    /// the other.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(ptr::from_ref(self), size_of::<Self>().div_ceil(64));
    }

    /// How `key` stands to the bytes that all keys of this node share; `None` as for
    /// [`Node::record`].
    #[inline]
    fn compare_shared(&self, key: &[u8], skip: usize) -> Option<Order> {
        let order =
            (leading_bytes(key) & shared_mask(skip)).cmp(&self.shared.load(Ordering::Relaxed));
        if order.is_ne() {
            return Some(order);
        }
        if skip <= 8 {
            // Equal numbers but too few bytes: the shared bytes end in zeros that `key` does not
            // have.
            return Some(if key.len() < skip { Order::Less } else { Order::Equal });
        }
        let shared = self.like()?.user_key().get(..skip)?;
        Some(key[..key.len().min(skip)].cmp(shared))
    }

    /// How many records stand before `target`; `None` as for [`Node::record`].
    #[inline]
    pub(super) fn lower_bound(&self, target: &Target<'_>) -> Option<usize> {
        let (count, skip) = (self.count(), self.skip());
        if skip > 0 {
            match self.compare_shared(target.user_key, skip)? {
                Order::Less => return Some(0),
                Order::Greater => return Some(count),
                Order::Equal => {}
            }
        }
        let number = leading_bytes(target.user_key.get(skip..)?);
        let start = self.partition(0, count, |at| self.number(at) < number);
        if start == count || self.number(start) != number {
            return Some(start);
        }
        let end = self.partition(start, count, |at| self.number(at) == number);
        let (mut low, mut high) = (start, end);
        while low < high {
            let middle = low.midpoint(high);
            let record = self.record(middle)?;
            record.prefetch();
            let key = record.key();
            perf::count(PerfMetric::UserKeyComparisonCount, 1);
            let order =
                key.user_key().cmp(target.user_key).then_with(|| target.packed.cmp(&key.packed()));
            if order.is_lt() { low = middle + 1 } else { high = middle }
        }
        Some(low)
    }

    /// Whether `target` stands after all records of this node, of which there are some. `false`
    /// also for what was not read consistently, and where a search must tell.
    #[inline]
    pub(super) fn all_before(&self, target: &Target<'_>) -> bool {
        let Some(last) = self.count().checked_sub(1) else { return false };
        let (key, skip) = (target.user_key, self.skip());
        if skip > 0 && self.compare_shared(key, skip) != Some(Order::Equal) {
            return false;
        }
        let Some(rest) = key.get(skip..) else { return false };
        match leading_bytes(rest).cmp(&self.number(last)) {
            Order::Less => false,
            Order::Greater => true,
            Order::Equal => self.record(last).is_some_and(|last| {
                let last = last.key();
                perf::count(PerfMetric::UserKeyComparisonCount, 1);
                last.user_key().cmp(key).then_with(|| target.packed.cmp(&last.packed())).is_lt()
            }),
        }
    }

    /// Whether the record at `index` can have that user key, as far as its number tells.
    #[inline]
    pub(super) fn may_hold(&self, index: usize, user_key: &[u8]) -> bool {
        user_key.get(self.skip()..).is_some_and(|rest| leading_bytes(rest) == self.number(index))
    }

    #[inline]
    fn number(&self, index: usize) -> u64 {
        const { assert!(CAPACITY.is_power_of_two()) };
        self.numbers[index & (CAPACITY - 1)].load(Ordering::Relaxed)
    }

    /// The first index of `from..to` for which `holds` is false.
    #[inline]
    fn partition(&self, from: usize, to: usize, holds: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut size) = (from, to - from);
        if size == 0 {
            return low;
        }
        // Without jumps: which way it goes is random, and how many steps there are is not.
        while size > 1 {
            let half = size / 2;
            low = select_unpredictable(holds(low + half - 1), low + half, low);
            size -= half;
        }
        low + usize::from(holds(low))
    }

    /// Copies the record pointers; they belong together only if the version stays.
    pub(super) fn copy_records(&self, out: &mut Vec<NonNull<RecordHeader>>) {
        out.clear();
        out.extend((0..self.count()).map_while(|index| self.record(index)).map(Record::pointer));
    }

    fn put(&self, index: usize, number: u64, record: Record<'_>) {
        self.numbers[index].store(number, Ordering::Relaxed);
        self.records[index].store(record.pointer().as_ptr(), Ordering::Release);
    }

    /// Sets how many leading bytes the keys share, and computes the numbers anew.
    fn renumber(&self, skip: usize) {
        let first = self.record(0).expect("a node that is renumbered is not empty");
        if self.like().is_none_or(|like| !like.user_key().starts_with(&first.user_key()[..skip])) {
            self.like.store(first.pointer().as_ptr(), Ordering::Release);
        }
        self.shared.store(leading_bytes(first.user_key()) & shared_mask(skip), Ordering::Relaxed);
        self.skip.store(skip as u32, Ordering::Relaxed);
        for index in 0..self.count() {
            let record = self.record(index).expect("a locked node is whole");
            self.numbers[index].store(leading_bytes(&record.user_key()[skip..]), Ordering::Relaxed);
        }
    }

    /// Makes room at `index` and puts the record there; the caller has locked the node, which is
    /// not full.
    pub(super) fn insert_record(&self, index: usize, record: Record<'_>) {
        let key = record.user_key();
        let count = self.count();
        if self.skip() > 0 && self.compare_shared(key, self.skip()) != Some(Order::Equal) {
            let first = self.record(0).expect("a node that shares bytes is not empty");
            let skip = shared_length(first.user_key(), key).min(self.skip());
            self.renumber(skip);
        }
        for at in (index..count).rev() {
            self.numbers[at + 1].store(self.number(at), Ordering::Relaxed);
            self.records[at + 1].store(self.records[at].load(Ordering::Relaxed), Ordering::Release);
        }
        self.put(index, leading_bytes(&key[self.skip()..]), record);
        self.count.store(count as u32 + 1, Ordering::Relaxed);
    }

    /// Makes room at `index` among the children; goes before the record is inserted, since it asks
    /// for the count.
    pub(super) fn insert_child(&self, index: usize, child: &Node) {
        for at in (index..=self.count()).rev() {
            let moved = self.child(at).expect("a locked node is whole");
            self.set_child(at + 1, moved);
        }
        self.set_child(index, child);
    }

    /// Fills an empty node that readers cannot see yet with the records `from..` of `source`, and
    /// the new one's share.
    pub(super) fn take_records(&self, source: &Node, from: usize) {
        let count = source.count() - from;
        self.skip.store(source.skip.load(Ordering::Relaxed), Ordering::Relaxed);
        self.shared.store(source.shared.load(Ordering::Relaxed), Ordering::Relaxed);
        self.like.store(source.like.load(Ordering::Relaxed), Ordering::Release);
        for index in 0..count {
            let record = source.record(from + index).expect("a locked node is whole");
            self.put(index, source.number(from + index), record);
        }
        self.count.store(count as u32, Ordering::Relaxed);
        self.share_more();
    }

    /// Forgets the records `count..`.
    pub(super) fn truncate(&self, count: usize) {
        self.count.store(count as u32, Ordering::Relaxed);
        self.share_more();
    }

    /// Puts the first record into an empty node, whose keys are expected to share `skip` bytes, as
    /// `like`'s do.
    pub(super) fn start_with(&self, record: Record<'_>, skip: usize, like: &Node) {
        self.like.store(like.like.load(Ordering::Relaxed), Ordering::Release);
        self.put(0, 0, record);
        self.count.store(1, Ordering::Relaxed);
        self.renumber(skip);
    }

    /// Skips more bytes if the keys that are left share more.
    fn share_more(&self) {
        if let (Some(first), Some(last)) =
            (self.record(0), self.count().checked_sub(1).and_then(|at| self.record(at)))
        {
            let skip = shared_length(first.user_key(), last.user_key());
            if skip > self.skip() {
                self.renumber(skip);
            }
        }
    }
}
