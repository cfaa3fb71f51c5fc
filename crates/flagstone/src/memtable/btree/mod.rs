//! A B+tree in an arena, for the plain byte order: optimistic readers, writers that lock single
//! nodes.
//!
//! Nodes hold up to 64 keys, each by a pointer to its record and by eight bytes of it as a number:
//! those that follow what all keys of the node share. A search in a node compares numbers, and
//! touches a record only on a tie.
//!
//! 1. A reader descends from the root. In each node it reads the version (waiting while it is odd),
//!    searches, reads the child's version, and then checks that the node's own version has not
//!    changed: otherwise it starts again.
//! 2. A writer makes its record, descends as a reader does, and locks the leaf: it makes the leaf's
//!    version odd if that is still the one that it read, and otherwise starts again. It puts the
//!    record in and makes the version even, larger than before.
//! 3. A full node that a writer meets on its way is split: the right half moves to a new node, the
//!    left half stays. The writer makes the new node, then locks the parent and the full node, both
//!    at the versions that it read. The parent has room, or it would have been split before. After
//!    the split of an inner node the writer starts again. A node that is appended to at the right
//!    edge of the tree is left full instead, and so writes in order fill their nodes.
//! 4. A cursor copies the record pointers of one leaf, and goes on to the next leaf by its link, or
//!    back by a search.
//!
//! `node` holds the nodes and all proofs; `write` the writers; `cursor` the cursor.

mod cursor;
mod node;
mod write;

use std::ops::ControlFlow;
use std::sync::Arc;

pub(super) use cursor::BTreeIterator;
use node::{Node, Root};
pub(super) use write::BTreeWriter;

use super::arena::Arena;
use super::counts::Counts;
use super::index::Index;
use super::key_prefix::Target;
use super::shared_arena::SharedArena;
use crate::base::sync;
use crate::base::{MAX_SEQUENCE_NUMBER, SequenceNumber, ValueType, pack_sequence_and_type};

/// The sorted entries of one memtable, in byte order.
pub struct BTree {
    root: Root,
    /// Where everything lies.
    arena: SharedArena<()>,
}

/// A position that was read in a leaf and holds as long as the leaf has that version.
struct Place<'a> {
    leaf: &'a Node,
    version: u64,
    index: usize,
}

impl BTree {
    /// An empty tree that lies in `arena`.
    pub(super) fn new(mut arena: Arena) -> Self {
        let root = Root::new(&mut arena);
        Self { root, arena: SharedArena::new(arena) }
    }

    /// Walks down to a leaf; `choose` says where to go on in each node, or that what it read made
    /// no sense.
    fn descend<'a>(&'a self, choose: impl Fn(&'a Node) -> Option<usize>) -> Place<'a> {
        loop {
            if let Some(place) = self.try_descend(&choose) {
                return place;
            }
            sync::spin_loop();
        }
    }

    fn try_descend<'a>(&'a self, choose: &impl Fn(&'a Node) -> Option<usize>) -> Option<Place<'a>> {
        let mut node = self.root.load();
        let mut version = node.stable_version();
        // A root that was split meanwhile covers only a part.
        if !std::ptr::eq(self.root.load(), node) {
            return None;
        }
        loop {
            let index = choose(node)?;
            if node.is_leaf() {
                return node.is_still(version).then_some(Place { leaf: node, version, index });
            }
            let child = node.child(index)?;
            child.prefetch();
            let child_version = child.stable_version();
            if !node.is_still(version) {
                return None;
            }
            (node, version) = (child, child_version);
        }
    }

    /// The place of the first entry at or after `target`; it may be past the leaf's last entry.
    #[inline]
    fn find(&self, target: &Target<'_>) -> Place<'_> {
        self.descend(|node| node.lower_bound(target))
    }
}

impl Index for BTree {
    type Writer<'a> = BTreeWriter<'a>;
    type Cursor = BTreeIterator;

    fn writer(&self) -> BTreeWriter<'_> {
        BTreeWriter::new(self)
    }

    fn cursor(self: &Arc<Self>) -> BTreeIterator {
        BTreeIterator::new(Arc::clone(self))
    }

    fn get<'a>(
        &'a self,
        user_key: &[u8],
        snapshot: SequenceNumber,
        mut visit: impl FnMut(SequenceNumber, ValueType, &'a [u8]) -> ControlFlow<()>,
    ) {
        let packed = pack_sequence_and_type(snapshot.min(MAX_SEQUENCE_NUMBER), ValueType::FOR_SEEK);
        let mut target = Target { user_key, packed };
        'search: loop {
            let Place { leaf, version, mut index } = self.find(&target);
            loop {
                let within = index < leaf.count();
                let record = if within {
                    // Most keys that are not here are told by their numbers, without fetching a
                    // record.
                    leaf.may_hold(index, user_key).then(|| leaf.record(index)).flatten()
                } else {
                    // The first entry of a leaf that is not the leftmost never changes.
                    leaf.next().and_then(|next| next.record(0))
                };
                if !leaf.is_still(version) {
                    continue 'search;
                }
                let Some(record) = record else { return };
                let key = record.key();
                if key.user_key() != user_key {
                    return;
                }
                let value_type = key.value_type().expect("only known types are inserted");
                if visit(key.sequence(), value_type, record.value()).is_break() {
                    return;
                }
                let Some(older) = key.packed().checked_sub(1) else { return };
                target.packed = older;
                if !within {
                    continue 'search;
                }
                index += 1;
            }
        }
    }

    /// Counts whole leaves between the two ends; exact when nothing is written meanwhile.
    fn approximate_count(&self, start: &[u8], end: &[u8]) -> u64 {
        if start >= end {
            return 0;
        }
        let first = self.find(&Target { user_key: start, packed: u64::MAX });
        let last = self.find(&Target { user_key: end, packed: u64::MAX });
        let (mut leaf, mut count) = (first.leaf, 0u64);
        while !std::ptr::eq(leaf, last.leaf) {
            count += leaf.count() as u64;
            match leaf.next() {
                Some(next) => leaf = next,
                None => break,
            }
        }
        (count + last.index as u64).saturating_sub(first.index as u64)
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
