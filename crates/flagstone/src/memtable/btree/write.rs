//! Insertion: down to the leaf, and up again as far as nodes are full.

use super::BTree;
use super::node::{CAPACITY, Node, shared_length};
use crate::base::sync::{MutexGuard, Ordering};
use crate::memtable::arena::Arena;
use crate::memtable::index::IndexWriter;
use crate::memtable::key_prefix::Target;
use crate::memtable::record::{Entry, Record};

/// More levels than any memory can fill.
const MAX_LEVELS: usize = 16;

/// The right to insert.
pub(in crate::memtable) struct BTreeWriter<'a> {
    tree: &'a BTree,
    arena: MutexGuard<'a, Arena>,
}

/// The nodes from the root down to a leaf, and where the new entry goes in each.
struct Path<'a> {
    steps: [(&'a Node, usize); MAX_LEVELS],
    levels: usize,
}

/// What a split hands to the level above: a new node, and the record from which on it holds the
/// entries.
struct Split<'a> {
    separator: Record<'a>,
    right: &'a Node,
}

impl BTree {
    fn path(&self, target: &Target<'_>) -> Path<'_> {
        let mut node = self.root.load();
        let mut path = Path { steps: [(node, 0); MAX_LEVELS], levels: 0 };
        loop {
            let index = node.lower_bound(target).expect("the writer sees whole nodes");
            path.steps[path.levels] = (node, index);
            path.levels += 1;
            if node.is_leaf() {
                return path;
            }
            node = node.child(index).expect("the writer sees whole nodes");
            node.prefetch();
        }
    }
}

impl IndexWriter for BTreeWriter<'_> {
    fn insert(&mut self, entry: &Entry<'_>) {
        let tree = self.tree;
        let target = Target { user_key: entry.user_key, packed: entry.packed };
        let rightmost = tree.root.rightmost();
        if !rightmost.is_full() && rightmost.all_before(&target) {
            // Written in order: there is nothing to search for.
            let record = tree.root.new_record(&mut self.arena, entry);
            insert_into(rightmost, rightmost.count(), record);
        } else {
            let path = tree.path(&target);
            let record = tree.root.new_record(&mut self.arena, entry);
            match path.steps[path.levels - 1] {
                (leaf, _) if leaf.is_full() => self.insert_splitting(&path, record),
                (leaf, index) => insert_into(leaf, index, record),
            }
        }
        tree.used.store(self.arena.used(), Ordering::Relaxed);
        tree.reserved.store(self.arena.reserved(), Ordering::Relaxed);
    }
}

impl<'a> BTreeWriter<'a> {
    pub(super) fn new(tree: &'a BTree) -> Self {
        Self { tree, arena: tree.arena.lock() }
    }

    /// All nodes that change do so in one step for the readers: from the lowest that has room down
    /// to the leaf.
    fn insert_splitting(&mut self, path: &Path<'a>, record: Record<'a>) {
        let steps = &path.steps[..path.levels];
        let top = steps.iter().rposition(|(node, _)| !node.is_full()).unwrap_or(0);
        for (node, _) in &steps[top..] {
            node.begin_change();
        }
        let (leaf, index) = steps[steps.len() - 1];
        let mut pending = Some(self.split_leaf(leaf, index, record));
        for &(node, index) in steps[top..steps.len() - 1].iter().rev() {
            let Some(split) = pending.take() else { break };
            if node.is_full() {
                pending = Some(self.split_inner(node, index, &split));
            } else {
                insert_split(node, index, &split);
            }
        }
        if let Some(split) = pending {
            let root = self.tree.root.new_node(&mut self.arena, false);
            root.set_child(0, steps[0].0);
            root.set_child(1, split.right);
            root.start_with(split.separator, 0, steps[0].0);
            self.tree.root.store(root);
        }
        for (node, _) in steps[top..].iter().rev() {
            node.end_change();
        }
    }

    fn split_leaf(&mut self, leaf: &'a Node, index: usize, record: Record<'a>) -> Split<'a> {
        let right = self.tree.root.new_node(&mut self.arena, true);
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
        if leaf.next().is_none() {
            self.tree.root.set_rightmost(right);
        }
        leaf.set_next(Some(right));
        Split { separator: right.record(0).expect("it has just been filled"), right }
    }

    /// The middle record goes up; what follows it, and the children from the one after it on, go to
    /// the right.
    fn split_inner(&mut self, node: &'a Node, index: usize, split: &Split<'a>) -> Split<'a> {
        let middle = if index == CAPACITY { CAPACITY - 2 } else { CAPACITY / 2 };
        let right = self.tree.root.new_node(&mut self.arena, false);
        let separator = node.record(middle).expect("the node is full");
        for at in middle + 1..=CAPACITY {
            right.set_child(at - middle - 1, node.child(at).expect("the node is full"));
        }
        right.take_records(node, middle + 1);
        node.truncate(middle);
        if index <= middle {
            insert_split(node, index, split);
        } else {
            insert_split(right, index - middle - 1, split);
        }
        Split { separator, right }
    }
}

/// Changes one leaf that has room.
#[inline]
fn insert_into(leaf: &Node, index: usize, record: Record<'_>) {
    leaf.begin_change();
    leaf.insert_record(index, record);
    leaf.end_change();
}

/// Takes in a child that was split off the one at `index`.
fn insert_split(node: &Node, index: usize, split: &Split<'_>) {
    node.insert_child(index + 1, split.right);
    node.insert_record(index, split.separator);
}
