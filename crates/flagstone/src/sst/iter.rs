//! The cursor over a table.

use crate::base::{InternalIterator, InternalKey, Result};

use super::block::BlockSlice;

/// A cursor over all point entries of a table.
#[derive(Debug)]
pub struct TableIterator {
    _private: (),
}

impl TableIterator {
    /// The entry's value, pinned: it stays valid when the cursor moves on.
    pub fn value_slice(&self) -> BlockSlice {
        todo!()
    }
}

impl InternalIterator for TableIterator {
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
