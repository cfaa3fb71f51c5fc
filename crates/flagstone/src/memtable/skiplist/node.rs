//! The nodes of skip lists.
//!
//! ```text
//! node = number u64, height u64, next [AtomicPtr; height], record
//! ```
//!
//! **Thread safety.** Any number of writers link nodes with [`Node::replace_next`], which changes a
//! link only if it is what the writer read, and any number of readers follow links. A list with a
//! [`Head`] has one writer at a time, by the lock of the structure that holds the list; it stores
//! links. A node is complete before it is linked, and its link on a level is set before it is
//! linked there; both ways to link it have release order. Readers and writers follow links with
//! acquire order, so what they reach they see complete. A node is linked on the lower levels first:
//! whoever meets it on one level may go on from it on all levels below.
//!
//! **Invariants**
//! 1. A node is never unlinked, moved or freed before its arena is dropped; only its `next` links
//!    change after it is linked, and these are atomic.
//! 2. Level 0 of a list holds all nodes in order; every level is a subsequence of the one below.
//! 3. A `Node<'a>` is made only from a pointer that the structure's arena handed out, while the
//!    structure is borrowed for `'a` or kept alive by an `Arc` for as long.
//! 4. A [`Head`] is inserted into with one and the same arena, which lives as long.
#![expect(unsafe_code, reason = "nodes of varying size in an arena, linked by atomic pointers")]

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use super::MAX_HEIGHT;
use super::list::{List, ListOrder};
use crate::base::InternalKey;
use crate::base::sync::{AtomicPtr, Ordering};
use crate::memtable::arena::{ALIGNMENT, Allocate, Arena};
use crate::memtable::key_prefix::Target;
use crate::memtable::record::{Entry, Record, RecordHeader};

/// What stands before a node's links.
#[repr(C)]
pub(in crate::memtable) struct Header {
    number: u64,
    height: u64,
}

const _: () = {
    assert!(
        align_of::<Header>() <= ALIGNMENT && size_of::<Header>().is_multiple_of(align_of::<Link>())
    );
    assert!(align_of::<RecordHeader>() <= align_of::<Link>());
};

type Link = AtomicPtr<Header>;

/// A linked node; see invariant 3.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    at: NonNull<Header>,
    list: PhantomData<&'a Link>,
}

impl<'a> Node<'a> {
    /// # Safety
    /// Invariant 3.
    #[inline]
    pub(super) unsafe fn new(at: NonNull<Header>) -> Self {
        Self { at, list: PhantomData }
    }

    /// A complete node, not linked yet, whose links are `next`.
    ///
    /// # Panics
    /// If key or value is 4 GiB or longer.
    pub(super) fn create(
        arena: &mut impl Allocate,
        number: u64,
        next: &[*mut Header],
        entry: &Entry<'_>,
    ) -> NonNull<Header> {
        let links_size = next.len() * size_of::<Link>();
        let at =
            arena.allocate(size_of::<Header>() + links_size + entry.record_size()).cast::<Header>();
        // SAFETY: the piece has that many bytes, aligned for header, links and record, and nobody
        // else knows it yet.
        unsafe {
            at.write(Header { number, height: next.len() as u64 });
            let links = at.add(1).cast::<Link>();
            for (level, &next) in next.iter().enumerate() {
                links.add(level).write(Link::new(next));
            }
            Record::write_to(links.add(next.len()).cast(), entry);
        }
        at
    }

    /// The beginning of a list: a node that is never compared.
    pub(super) fn create_head(arena: &mut impl Allocate, height: usize) -> NonNull<Header> {
        let nothing = Entry { user_key: &[], packed: 0, value: &[] };
        Self::create(arena, 0, &[ptr::null_mut(); MAX_HEIGHT][..height], &nothing)
    }

    #[inline]
    pub(super) fn pointer(self) -> NonNull<Header> {
        self.at
    }

    #[inline]
    fn header(self) -> &'a Header {
        // SAFETY: invariants 1 and 3; the header does not change after the node is linked.
        unsafe { self.at.as_ref() }
    }

    #[inline]
    pub(super) fn number(self) -> u64 {
        self.header().number
    }

    #[inline]
    pub(super) fn height(self) -> usize {
        self.header().height as usize
    }

    #[inline]
    fn link(self, level: usize) -> &'a Link {
        debug_assert!(level < self.height());
        // SAFETY: `height` links follow the header, and no caller asks for a level that the node
        // was not found on.
        unsafe { self.at.add(1).cast::<Link>().add(level).as_ref() }
    }

    #[inline]
    pub(super) fn next(self, level: usize) -> Option<Node<'a>> {
        // SAFETY: links hold pointers to linked nodes of the same arena.
        NonNull::new(self.link(level).load(Ordering::Acquire)).map(|at| unsafe { Node::new(at) })
    }

    /// Sets the link of a node that is not linked on this level yet.
    #[inline]
    pub(super) fn prepare_link(self, level: usize, next: *mut Header) {
        self.link(level).store(next, Ordering::Relaxed);
    }

    /// Links a complete node behind this one, if `next` follows it now; whether it did.
    #[inline]
    pub(super) fn replace_next(self, level: usize, next: *mut Header, node: Node<'_>) -> bool {
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        self.link(level).compare_exchange(next, node.at.as_ptr(), success, failure).is_ok()
    }

    /// Links a complete node; the caller is the one writer.
    #[inline]
    pub(super) fn set_next(self, level: usize, next: NonNull<Header>) {
        self.link(level).store(next.as_ptr(), Ordering::Release);
    }

    #[inline]
    pub(in crate::memtable) fn record(self) -> Record<'a> {
        // SAFETY: the record begins right after the links, and was made with the node.
        unsafe { Record::new(self.at.add(1).cast::<Link>().add(self.height()).cast()) }
    }

    #[inline]
    pub(in crate::memtable) fn key(self) -> InternalKey<'a> {
        self.record().key()
    }
}

impl PartialEq for Node<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

/// The first links of a list that has as many levels as its highest node; nothing as long as it is
/// empty.
///
/// A higher node gets a new head, which takes over the links of the old one. A reader that still
/// has the old one misses only nodes that were inserted after it came.
#[derive(Default)]
pub(in crate::memtable) struct Head(Link);

impl Head {
    /// The list, unless it is empty.
    #[inline]
    pub(in crate::memtable) fn list(&self) -> Option<List<'_>> {
        // SAFETY: invariants 3 and 4.
        let head =
            NonNull::new(self.0.load(Ordering::Acquire)).map(|at| unsafe { Node::new(at) })?;
        Some(List { head, height: head.height() })
    }

    /// Inserts an entry by a node of that height; the caller is the one writer, and the arena
    /// always the same.
    ///
    /// # Panics
    /// If key or value is 4 GiB or longer.
    pub(in crate::memtable) fn insert(
        &self,
        order: &ListOrder,
        arena: &mut Arena,
        height: usize,
        entry: &Entry<'_>,
    ) -> Record<'_> {
        let list = match self.list() {
            Some(list) if list.height >= height => list,
            lower => self.raise(lower, arena, height),
        };
        let target = Target { user_key: entry.user_key, packed: entry.packed };
        let number = order.number(entry.user_key);
        let (mut previous, mut next) = ([list.head; MAX_HEIGHT], [ptr::null_mut(); MAX_HEIGHT]);
        order.place(list, number, &target, |level, before, after| {
            previous[level] = before;
            next[level] = after.map_or(ptr::null_mut(), |after| after.at.as_ptr());
        });
        let at = Node::create(arena, number, &next[..height], entry);
        for (level, before) in previous[..height].iter().enumerate() {
            before.set_next(level, at);
        }
        // SAFETY: invariant 4.
        unsafe { Node::new(at) }.record()
    }

    #[cold]
    fn raise(&self, lower: Option<List<'_>>, arena: &mut Arena, height: usize) -> List<'_> {
        let at = Node::create_head(arena, height);
        // SAFETY: invariant 4.
        let head = unsafe { Node::new(at) };
        for level in 0..lower.map_or(0, |list| list.height) {
            if let Some(first) = lower.and_then(|list| list.head.next(level)) {
                head.set_next(level, first.at);
            }
        }
        self.0.store(at.as_ptr(), Ordering::Release);
        List { head, height }
    }
}
