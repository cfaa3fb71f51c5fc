//! Insertion: down to the leaf, splitting what is full on the way.

use super::BTree;
use super::node::{CAPACITY, Node, shared_length};
use crate::base::sync;
use crate::memtable::counts::Addition;
use crate::memtable::index::IndexWriter;
use crate::memtable::key_prefix::Target;
use crate::memtable::record::{Entry, Record};
use crate::memtable::shared_arena::ArenaWriter;

/// After how many attempts a writer lets other threads have its core.
const ATTEMPTS_MAX: u32 = 16;

/// The right to insert.
pub(in crate::memtable) struct BTreeWriter<'a> {
    tree: &'a BTree,
    arena: ArenaWriter<'a, ()>,
}

/// A node as it was read, and where the new entry goes in it.
#[derive(Clone, Copy)]
struct Step<'a> {
    node: &'a Node,
    version: u64,
    index: usize,
}

/// What a split hands to the level above: a new node, and the record from which on it holds the
/// entries.
struct Split<'a> {
    separator: Record<'a>,
    right: &'a Node,
}

/// Empty nodes for the splits of one insertion, made before anything is locked.
#[derive(Default)]
struct NewNodes<'a> {
    leaf: Option<&'a Node>,
    inner: Option<&'a Node>,
    root: Option<&'a Node>,
}

impl IndexWriter for BTreeWriter<'_> {
    fn insert(&mut self, entry: &Entry<'_>, addition: &Addition) {
        let tree = self.tree;
        let target = Target { user_key: entry.user_key, packed: entry.packed };
        let record = tree.root.new_record(&mut self.arena, entry);
        if !append(tree, &target, record) {
            let mut new_nodes = NewNodes::default();
            let mut attempts = 0u32;
            while !self.try_insert(&target, record, &mut new_nodes) {
                attempts += 1;
                if attempts.is_multiple_of(ATTEMPTS_MAX) {
                    sync::yield_now();
                }
                sync::spin_loop();
            }
            // Another writer was the first to split.
            let NewNodes { leaf, inner, root } = new_nodes;
            [leaf, inner, root].into_iter().flatten().for_each(|node| tree.root.keep_node(node));
        }
        self.arena.count(addition);
    }

    fn count(&mut self, addition: &Addition) {
        self.arena.count(addition);
    }
}

/// Puts a record written in order at the end of the rightmost leaf; there is nothing to search for.
/// `false` if it does not go there, or not at once.
#[inline]
fn append(tree: &BTree, target: &Target<'_>, record: Record<'_>) -> bool {
    let leaf = tree.root.rightmost();
    let Some(version) = leaf.free_version() else { return false };
    // It may have been split since it was the rightmost.
    let may_append = !leaf.is_full() && leaf.next().is_none() && leaf.all_before(target);
    if !may_append || !leaf.try_lock(version) {
        return false;
    }
    leaf.insert_record(leaf.count(), record);
    leaf.unlock();
    true
}

impl<'a> BTreeWriter<'a> {
    pub(super) fn new(tree: &'a BTree) -> Self {
        Self { tree, arena: tree.arena.writer() }
    }

    /// Walks down to the leaf and inserts the record. `false` if it must start again: a node was
    /// changed or split meanwhile, by others or here.
    fn try_insert(
        &mut self,
        target: &Target<'_>,
        record: Record<'a>,
        new_nodes: &mut NewNodes<'a>,
    ) -> bool {
        let tree = self.tree;
        let mut node = tree.root.load();
        let mut version = node.stable_version();
        // A root that was split meanwhile covers only a part.
        if !std::ptr::eq(tree.root.load(), node) {
            return false;
        }
        let mut parent = None;
        loop {
            let Some(index) = node.lower_bound(target) else { return false };
            let step = Step { node, version, index };
            if node.is_full() {
                return self.split(parent, step, record, new_nodes);
            }
            if node.is_leaf() {
                if !node.try_lock(version) {
                    return false;
                }
                node.insert_record(index, record);
                node.unlock();
                return true;
            }
            let Some(child) = node.child(index) else { return false };
            child.prefetch();
            let child_version = child.stable_version();
            if !node.is_still(version) {
                return false;
            }
            parent = Some(step);
            (node, version) = (child, child_version);
        }
    }

    /// Splits a full node below `parent`, or the root if there is none. The record goes into a half
    /// of a leaf; whether it did.
    #[cold]
    fn split(
        &mut self,
        parent: Option<Step<'a>>,
        full: Step<'a>,
        record: Record<'a>,
        new_nodes: &mut NewNodes<'a>,
    ) -> bool {
        let (root, is_leaf) = (&self.tree.root, full.node.is_leaf());
        let right = if is_leaf { &mut new_nodes.leaf } else { &mut new_nodes.inner };
        let new_right = *right.get_or_insert_with(|| root.new_node(&mut self.arena, is_leaf));
        let new_root = || root.new_node(&mut self.arena, false);
        let new_top = parent.is_none().then(|| *new_nodes.root.get_or_insert_with(new_root));

        if parent.is_some_and(|parent| !parent.node.try_lock(parent.version)) {
            return false;
        }
        if !full.node.try_lock(full.version) {
            if let Some(parent) = parent {
                parent.node.unlock_unchanged();
            }
            return false;
        }
        let split = if is_leaf {
            self.split_leaf(full, record, new_right)
        } else {
            split_inner(full, new_right)
        };
        if let Some(parent) = parent {
            parent.node.insert_child(parent.index + 1, split.right);
            parent.node.insert_record(parent.index, split.separator);
        } else if let Some(top) = new_top {
            top.set_child(0, full.node);
            top.set_child(1, split.right);
            top.start_with(split.separator, 0, full.node);
            root.store(top);
        }
        full.node.unlock();
        if let Some(parent) = parent {
            parent.node.unlock();
        }
        *right = None;
        if new_top.is_some() {
            new_nodes.root = None;
        }
        is_leaf
    }

    fn split_leaf(&self, full: Step<'a>, record: Record<'a>, right: &'a Node) -> Split<'a> {
        let Step { node: leaf, index, .. } = full;
        right.set_next(leaf.next());
        if index == CAPACITY && leaf.next().is_none() {
            // Written in order: leave the full leaf full.
            let last = leaf.record(CAPACITY - 1).expect("the leaf is full");
            right.start_with(record, shared_length(last.user_key(), record.user_key()), leaf);
        } else {
            let middle = CAPACITY / 2;
            right.take_records(leaf, middle);
            leaf.truncate(middle);
            // At the middle the entry goes to the left: the right leaf must begin with what divides
            // the two.
            if index <= middle {
                leaf.insert_record(index, record);
            } else {
                right.insert_record(index - middle, record);
            }
        }
        let separator = right.record(0).expect("it has just been filled");
        if leaf.next().is_none() {
            self.tree.root.set_rightmost(right);
        }
        leaf.set_next(Some(right));
        Split { separator, right }
    }
}

/// The middle record goes up; what follows it, and the children from the one after it on, go to the
/// right.
fn split_inner<'a>(full: Step<'a>, right: &'a Node) -> Split<'a> {
    let Step { node, index, .. } = full;
    // At the right end of the node little is moved, as after writes in order.
    let middle = if index == CAPACITY { CAPACITY - 2 } else { CAPACITY / 2 };
    let separator = node.record(middle).expect("the node is full");
    for at in middle + 1..=CAPACITY {
        right.set_child(at - middle - 1, node.child(at).expect("the node is full"));
    }
    right.take_records(node, middle + 1);
    node.truncate(middle);
    Split { separator, right }
}
