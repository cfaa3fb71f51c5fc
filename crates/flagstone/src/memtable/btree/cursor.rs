//! The cursor over a B+tree: a copy of one leaf's record pointers, and the way to the next.
//!
//! Entries that were there when a leaf was copied are all met: a leaf that is split later keeps its
//! left part and its place, the copy has both parts, and the leaf to the right begins where the
//! copy ends.
#![expect(unsafe_code, reason = "pointers into the tree that the cursor keeps alive")]

use std::ptr::NonNull;
use std::sync::Arc;

use super::node::{CAPACITY, Node};
use super::{BTree, Place};
use crate::base::{InternalIterator, InternalKey, Result};
use crate::memtable::key_prefix::Target;
use crate::memtable::record::{Record, RecordHeader};

/// How many entries ahead the memory is fetched.
const AHEAD: usize = 8;
/// The same of the rest of long values, which take more lines of the cache and less time for each.
const REST_AHEAD: usize = 3;

/// A cursor that keeps its tree alive.
pub struct BTreeIterator {
    tree: Arc<BTree>,
    /// The entries of one leaf.
    records: Vec<NonNull<RecordHeader>>,
    index: usize,
    next_leaf: Option<NonNull<Node>>,
}

// SAFETY: the pointers are into the tree that the cursor shares, which may be read from any thread.
unsafe impl Send for BTreeIterator {}

impl BTreeIterator {
    pub(in crate::memtable) fn new(tree: Arc<BTree>) -> Self {
        Self { tree, records: Vec::with_capacity(CAPACITY), index: 0, next_leaf: None }
    }

    #[inline]
    fn record_at(&self, index: usize) -> Option<Record<'_>> {
        // SAFETY: the pointers came from the tree, which `self` keeps alive.
        self.records.get(index).map(|&at| unsafe { Record::new(at) })
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.record_at(self.index).expect("the cursor is valid")
    }

    /// Copies the leaf to which `find` leads; the index is the one that was found.
    fn load(&mut self, find: impl Fn(&BTree) -> Place<'_>) {
        loop {
            let Place { leaf, version, index } = find(&self.tree);
            leaf.copy_records(&mut self.records);
            let next_leaf = leaf.next().map(NonNull::from);
            if leaf.is_still(version) {
                (self.index, self.next_leaf) = (index, next_leaf);
                return;
            }
        }
    }

    /// Goes on to the right if the copied leaf is exhausted.
    fn skip_to_entry(&mut self) {
        if self.index < self.records.len() {
            return self.prefetch_from(self.index);
        }
        let Some(next_leaf) = self.next_leaf else { return };
        loop {
            // SAFETY: the pointer came from the tree, which `self` keeps alive.
            let leaf = unsafe { next_leaf.as_ref() };
            let version = leaf.stable_version();
            leaf.copy_records(&mut self.records);
            let after = leaf.next().map(NonNull::from);
            if leaf.is_still(version) {
                (self.index, self.next_leaf) = (0, after);
                return self.prefetch_from(0);
            }
        }
    }

    fn prefetch_from(&self, index: usize) {
        for ahead in 0..AHEAD {
            if let Some(record) = self.record_at(index + ahead) {
                record.prefetch();
            }
        }
    }

    fn invalidate(&mut self) {
        self.records.clear();
        (self.index, self.next_leaf) = (0, None);
    }

    /// Stands on the entry before the one found, which is in the same leaf if there is one at all.
    fn step_back(&mut self) {
        match self.index.checked_sub(1) {
            Some(index) => self.index = index,
            None => self.invalidate(),
        }
    }
}

impl InternalIterator for BTreeIterator {
    #[inline]
    fn valid(&self) -> bool {
        self.index < self.records.len()
    }

    fn seek_to_first(&mut self) {
        self.load(|tree| tree.descend(|_| Some(0)));
        self.skip_to_entry();
    }

    fn seek_to_last(&mut self) {
        self.load(|tree| tree.descend(|node| Some(node.count())));
        self.step_back();
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        let target = Target::of(target);
        self.load(|tree| tree.find(&target));
        self.skip_to_entry();
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        let Target { user_key, packed } = Target::of(target);
        // The entry at the target counts as well: look for what follows it immediately.
        if let Some(packed) = packed.checked_sub(1) {
            self.load(|tree| tree.find(&Target { user_key, packed }));
        } else {
            let user_key = [user_key, &[0]].concat();
            self.load(|tree| tree.find(&Target { user_key: &user_key, packed: u64::MAX }));
        }
        self.step_back();
    }

    #[inline]
    fn next(&mut self) {
        debug_assert!(self.valid());
        self.index += 1;
        match self.record_at(self.index + AHEAD) {
            Some(record) => record.prefetch(),
            None if self.index == self.records.len() => self.skip_to_entry(),
            None => {}
        }
        if let Some(record) = self.record_at(self.index + REST_AHEAD) {
            record.prefetch_rest();
        }
    }

    fn prev(&mut self) {
        if self.index > 0 {
            self.index -= 1;
            return;
        }
        let at = self.record().pointer();
        self.load(|tree| {
            // SAFETY: the pointer came from the tree, which `self` keeps alive.
            let record = unsafe { Record::new(at) };
            tree.find(&Target::of(record.key()))
        });
        self.step_back();
    }

    #[inline]
    fn key(&self) -> InternalKey<'_> {
        self.record().key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.record().value()
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }
}
