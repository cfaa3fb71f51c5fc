//! A memtable, and the blob files that hold its large values.

use std::ops::Deref;

use crate::base::InternalKeyComparator;
use crate::db::family::direct_blobs::GenerationBlobs;
use crate::memtable::{MemTable, MemTableSettings};

/// What is written to one family between two switches. Whoever may read the memtable keeps the
/// files, too.
pub(crate) struct Generation {
    table: MemTable,
    pub(in crate::db) blobs: GenerationBlobs,
}

impl Generation {
    pub(in crate::db) fn new(
        comparator: InternalKeyComparator,
        settings: &MemTableSettings,
    ) -> Self {
        Self { table: MemTable::new(comparator, settings), blobs: GenerationBlobs::default() }
    }

    /// Bytes of memory that it keeps others from using; none while it is empty, however much it has
    /// asked for.
    #[inline]
    pub(in crate::db) fn bytes_in_use(&self) -> u64 {
        if self.table.is_empty() { 0 } else { self.table.memory_reserved() as u64 }
    }

    /// What a flush of it has to bring to the disk: its memory, and its values in blob files.
    pub(in crate::db) fn bytes(&self) -> u64 {
        self.table.memory_usage() as u64 + self.blobs.bytes()
    }

    /// Whether most of that lies in blob files.
    pub(in crate::db) fn is_mostly_blobs(&self) -> bool {
        self.blobs.bytes() > self.table.memory_usage() as u64
    }

    /// Bytes of an entry on average, what finds it included.
    pub(in crate::db) fn mean_entry(&self) -> u64 {
        (self.table.memory_usage() as u64).checked_div(self.table.num_entries()).unwrap_or(0)
    }
}

impl Deref for Generation {
    type Target = MemTable;

    #[inline]
    fn deref(&self) -> &MemTable {
        &self.table
    }
}
