//! Many cursors as one.

use crate::base::{InternalIterator, InternalKey, InternalKeyComparator, Result};

/// A cursor over the union of its children, in internal-key order.
///
/// Children are given newest source first. Once a child fails the cursor is invalid, since the others alone would show
/// keys that the failed one hides.
pub struct MergingIterator<I> {
    comparator: InternalKeyComparator,
    children: Vec<I>,
}

impl<I: InternalIterator> MergingIterator<I> {
    /// Merges `children`, newest source first; not positioned yet.
    pub fn new(comparator: InternalKeyComparator, children: Vec<I>) -> Self {
        Self { comparator, children }
    }

    /// The children, newest source first.
    pub fn children(&self) -> &[I] {
        &self.children
    }

    /// The child on whose entry the cursor stands; the cursor must be valid.
    pub fn current(&self) -> &I {
        todo!()
    }
}

impl<I: InternalIterator> InternalIterator for MergingIterator<I> {
    fn valid(&self) -> bool {
        todo!()
    }

    fn seek_to_first(&mut self) {
        todo!()
    }

    fn seek_to_last(&mut self) {
        todo!()
    }

    fn seek(&mut self, _target: InternalKey<'_>) {
        todo!()
    }

    fn seek_for_prev(&mut self, _target: InternalKey<'_>) {
        todo!()
    }

    fn next(&mut self) {
        todo!()
    }

    fn prev(&mut self) {
        todo!()
    }

    fn key(&self) -> InternalKey<'_> {
        todo!()
    }

    fn value(&self) -> &[u8] {
        todo!()
    }

    fn status(&self) -> Result<()> {
        todo!()
    }
}
