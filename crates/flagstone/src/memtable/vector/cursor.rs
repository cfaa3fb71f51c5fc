//! The cursor over a view.

use std::sync::Arc;

use super::Vector;
use super::view::View;
use crate::base::{InternalIterator, InternalKey, Result};
use crate::memtable::key_prefix::Target;
use crate::memtable::record::Record;

/// How many entries ahead the memory is fetched: their order is not that of the memory.
const AHEAD: usize = 12;
/// The same of the rest of long values, which take more lines of the cache and less time for each.
const REST_AHEAD: usize = 3;

/// A cursor over all entries that there were when it was made. It keeps them alive.
pub struct VectorCursor {
    vector: Arc<Vector>,
    /// None if there were no entries.
    view: Option<Arc<View>>,
    /// Beyond the last if the cursor is not valid.
    index: usize,
}

impl VectorCursor {
    pub(super) fn new(vector: Arc<Vector>, view: Option<Arc<View>>) -> Self {
        Self { vector, view, index: usize::MAX }
    }

    #[inline]
    fn record_at(&self, index: usize) -> Option<Record<'_>> {
        self.view.as_ref()?.get(&self.vector.log, index)
    }

    #[inline]
    fn record(&self) -> Record<'_> {
        self.record_at(self.index).expect("the cursor is valid")
    }

    fn lower_bound(&self, target: &Target<'_>) -> usize {
        self.view
            .as_ref()
            .map_or(0, |view| view.lower_bound(&self.vector.log, &self.vector.order, target))
    }

    fn go_to(&mut self, index: Option<usize>) {
        self.index = index.unwrap_or(usize::MAX);
        for ahead in 0..AHEAD {
            match self.index.checked_add(ahead).and_then(|index| self.record_at(index)) {
                Some(record) => record.prefetch(),
                None => return,
            }
        }
    }
}

impl InternalIterator for VectorCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.view.as_ref().is_some_and(|view| self.index < view.len())
    }

    fn seek_to_first(&mut self) {
        self.go_to(Some(0));
    }

    fn seek_to_last(&mut self) {
        self.index =
            self.view.as_ref().and_then(|view| view.len().checked_sub(1)).unwrap_or(usize::MAX);
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        self.go_to(Some(self.lower_bound(&Target::of(target))));
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        let at = self.lower_bound(&Target::of(target));
        let is_at = self.record_at(at).is_some_and(|record| {
            Target::of(target).compared_by(&self.vector.order.keys, record.key()).is_eq()
        });
        self.index = if is_at { at } else { at.wrapping_sub(1) };
    }

    #[inline]
    fn next(&mut self) {
        self.index += 1;
        if let Some(record) = self.record_at(self.index + AHEAD) {
            record.prefetch();
        }
        if let Some(record) = self.record_at(self.index + REST_AHEAD) {
            record.prefetch_rest();
        }
    }

    #[inline]
    fn prev(&mut self) {
        self.index = self.index.wrapping_sub(1);
        if let Some(record) =
            self.index.checked_sub(AHEAD).and_then(|before| self.record_at(before))
        {
            record.prefetch();
        }
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
