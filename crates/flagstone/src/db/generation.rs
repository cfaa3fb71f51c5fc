//! A memtable, and the blob files that hold its large values.

use std::ops::Deref;

use super::direct_blob::GenerationBlobs;
use crate::base::InternalKeyComparator;
use crate::memtable::{MemTable, MemTableSettings};

/// What is written to one family between two switches. Whoever may read the memtable keeps the files, too.
pub(crate) struct Generation {
    table: MemTable,
    pub(super) blobs: GenerationBlobs,
}

impl Generation {
    pub(super) fn new(comparator: InternalKeyComparator, settings: &MemTableSettings) -> Self {
        Self { table: MemTable::new(comparator, settings), blobs: GenerationBlobs::default() }
    }
}

impl Deref for Generation {
    type Target = MemTable;

    #[inline]
    fn deref(&self) -> &MemTable {
        &self.table
    }
}
