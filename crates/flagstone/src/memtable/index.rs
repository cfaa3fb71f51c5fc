//! What a memtable asks of the structure that holds its entries.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::counts::{Addition, Counts};
use super::record::Entry;
use crate::base::{InternalIterator, SequenceNumber, ValueType};

/// A sorted structure with any number of writers, and of readers, who need no lock.
///
/// A reader sees every entry whose insertion ended before its call began, and may see later ones.
/// No writer waits for another as long as that one lives, only while it inserts.
pub(super) trait Index: Sized {
    /// The right to insert, side by side with others.
    type Writer<'a>: IndexWriter
    where
        Self: 'a;

    /// A cursor over all entries, in order. It keeps the structure alive.
    type Cursor: InternalIterator;

    fn writer(&self) -> Self::Writer<'_>;

    fn cursor(self: &Arc<Self>) -> Self::Cursor;

    /// Shows the versions of `user_key` that `snapshot` sees, newest first, until `visit` breaks.
    fn get<'a>(
        &'a self,
        user_key: &[u8],
        snapshot: SequenceNumber,
        visit: impl FnMut(SequenceNumber, ValueType, &'a [u8]) -> ControlFlow<()>,
    );

    /// About how many entries have user keys in `[start, end)`.
    fn approximate_count(&self, start: &[u8], end: &[u8]) -> u64;

    /// The counts of all additions, in parts. The first part is the first that is not empty.
    fn counts(&self) -> impl Iterator<Item = &Counts>;

    /// Bytes in use.
    fn memory_usage(&self) -> usize;

    /// Bytes asked of the allocator; at least those in use.
    fn memory_reserved(&self) -> usize;

    /// Makes memory that comes next, if it is time and there are to be `up_to` bytes; structures
    /// with one writer at a time make none ahead.
    #[inline]
    fn fetch_ahead(&self, _up_to: usize) {}
}

/// See [`Index::Writer`].
pub(super) trait IndexWriter {
    /// Inserts an entry, and then counts it. The pair of user key and packed number must be new.
    ///
    /// # Panics
    /// If key or value is 4 GiB or longer.
    fn insert(&mut self, entry: &Entry<'_>, addition: &Addition);

    /// Counts what was added elsewhere.
    fn count(&mut self, addition: &Addition);
}
