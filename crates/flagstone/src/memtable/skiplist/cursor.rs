//! The cursor over skip lists.
#![expect(unsafe_code, reason = "a pointer to a node of lists that the cursor keeps alive")]

use std::ptr::NonNull;
use std::sync::Arc;

use super::SkipList;
use super::list::{List, ListOrder};
use super::node::{Header, Node};
use crate::base::{InternalIterator, InternalKey, Result};
use crate::memtable::key_prefix::Target;
use crate::memtable::record::Record;

/// One or more lists, each with all versions of the keys that are in it. They live as long as the
/// structure.
pub trait Lists: Send + Sync {
    fn order(&self) -> &ListOrder;

    /// The list that holds the key if any does; nothing if that is empty.
    fn list_of(&self, user_key: &[u8]) -> Option<List<'_>>;
}

/// A cursor that keeps its lists alive, and stays in the list of the key last sought.
pub struct ListCursor<L> {
    lists: Arc<L>,
    at: Option<NonNull<Header>>,
}

// SAFETY: the pointer is into lists that the cursor shares, which may be read from any thread.
unsafe impl<L: Lists> Send for ListCursor<L> {}

impl<L: Lists> ListCursor<L> {
    pub(in crate::memtable) fn new(lists: Arc<L>) -> Self {
        Self { lists, at: None }
    }

    #[inline]
    fn node(&self) -> Node<'_> {
        // SAFETY: the pointer came from the lists, which `self` keeps alive.
        unsafe { Node::new(self.at.expect("the cursor is valid")) }
    }

    #[inline]
    pub(in crate::memtable) fn record(&self) -> Record<'_> {
        self.node().record()
    }

    #[inline]
    pub(in crate::memtable) fn valid(&self) -> bool {
        self.at.is_some()
    }

    pub(in crate::memtable) fn seek(&mut self, target: InternalKey<'_>) {
        let list = self.lists.list_of(target.user_key());
        let found = list.and_then(|list| self.lists.order().find(list, &Target::of(target)).1);
        self.at = found.map(Node::pointer);
    }

    pub(in crate::memtable) fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        let (order, target) = (self.lists.order(), Target::of(target));
        let found = self.lists.list_of(target.user_key).and_then(|list| {
            let (before, after) = order.find(list, &target);
            after
                .filter(|node| target.compared_by(&order.keys, node.key()).is_eq())
                .or(list.unless_head(before))
        });
        self.at = found.map(Node::pointer);
    }

    #[inline]
    pub(in crate::memtable) fn next(&mut self) {
        self.at = self.node().next(0).map(Node::pointer);
    }

    pub(in crate::memtable) fn prev(&mut self) {
        let target = Target::of(self.node().key());
        let list = self.lists.list_of(target.user_key);
        let found =
            list.and_then(|list| list.unless_head(self.lists.order().find(list, &target).0));
        self.at = found.map(Node::pointer);
    }
}

impl InternalIterator for ListCursor<SkipList> {
    #[inline]
    fn valid(&self) -> bool {
        Self::valid(self)
    }

    fn seek_to_first(&mut self) {
        self.at = self.lists.list().first().map(Node::pointer);
    }

    fn seek_to_last(&mut self) {
        self.at = self.lists.list().last().map(Node::pointer);
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        Self::seek(self, target);
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        Self::seek_for_prev(self, target);
    }

    #[inline]
    fn next(&mut self) {
        Self::next(self);
    }

    fn prev(&mut self) {
        Self::prev(self);
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
