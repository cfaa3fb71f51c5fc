//! The files of one level as one cursor.

use super::KeyBounds;
use crate::base::{InternalIterator, InternalKey, InternalKeyComparator, Result};

/// The files of a level >= 1: sorted, and disjoint in internal-key order.
pub trait SortedFiles: Send {
    /// How many files there are.
    fn len(&self) -> usize;

    /// Whether the level is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The smallest key of the file at `index`, range tombstones included.
    fn smallest(&self, index: usize) -> InternalKey<'_>;

    /// The largest key of the file at `index`, range tombstones included.
    fn largest(&self, index: usize) -> InternalKey<'_>;
}

/// Opens cursors over a level's files.
pub trait FileOpener: SortedFiles {
    /// The cursor over one file.
    type Cursor: InternalIterator;

    /// Opens the file at `index`; the cursor need not be positioned.
    ///
    /// # Errors
    /// What opening the file says.
    fn open(&self, index: usize) -> Result<Self::Cursor>;
}

/// A cursor over all files of one level; a file is opened when the cursor reaches it.
pub struct ConcatIterator<F: FileOpener> {
    comparator: InternalKeyComparator,
    files: F,
    bounds: KeyBounds,
    current: Option<F::Cursor>,
}

impl<F: FileOpener> ConcatIterator<F> {
    /// A cursor, not positioned yet. Files entirely outside `bounds` are never opened.
    pub fn new(comparator: InternalKeyComparator, files: F, bounds: KeyBounds) -> Self {
        Self { comparator, files, bounds, current: None }
    }
}

impl<F: FileOpener> InternalIterator for ConcatIterator<F> {
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
