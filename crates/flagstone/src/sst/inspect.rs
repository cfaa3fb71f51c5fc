//! Where things lie in a table, for size estimates, for cutting work into parts, and for tools that
//! show it to people.

use crate::base::{Error, InternalKey, InternalKeyBuf, Result, timestamp};

use super::block::BlockIter;
use super::cursor::IndexCursor;
use super::format::BlockHandle;
use super::settings::ReadSettings;
use super::shown::stored_place;
use super::table::Table;

/// A place in a table, after a data block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableAnchor {
    /// A user key: all keys before the place are at most this.
    pub user_key: Vec<u8>,
    /// Bytes of data up to here since the last anchor: of blocks, and of values beside them.
    pub size: u64,
}

/// A data block, as the index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedBlock {
    /// Where it lies.
    pub handle: BlockHandle,
    /// The user part of its key in the index: at least its last key.
    pub user_key: Vec<u8>,
}

impl Table {
    /// Where in the file an entry of that key would lie, in bytes.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of an index partition.
    pub fn approximate_offset_of(&self, key: InternalKey<'_>) -> Result<u64> {
        let settings = self.quiet();
        let mut cursor = IndexCursor::default();
        let stored = (self.padding > 0).then(|| stored_place(self.padding, key));
        let key = stored.as_ref().map_or(key, InternalKeyBuf::as_key);
        cursor.seek(self, key, &settings)?;
        Ok(cursor.handle(self).map_or_else(|| self.data_end(), |handle| handle.offset))
    }

    /// At most `count` places that divide the table into parts of similar size; the last one is its
    /// end.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of an index partition.
    pub fn anchors(&self, count: usize) -> Result<Vec<TableAnchor>> {
        let settings = self.quiet();
        let part = self.data_end().div_ceil(count.max(1) as u64).max(1);
        let mut anchors: Vec<TableAnchor> = Vec::new();
        let (mut size, mut end, mut last) = (0, 0, Vec::new());
        let has_records = self.source.records_end.is_some();
        let mut cursor = IndexCursor::default();
        cursor.seek_to_first(self, &settings)?;
        while let (Some(handle), Some(user_key)) = (cursor.handle(self), cursor.user_key(self)) {
            let start = if has_records { end.min(handle.offset) } else { handle.offset };
            size += handle.end() - start;
            end = handle.end();
            last = timestamp::last_of(&user_key, self.padding);
            if size >= part {
                anchors.push(TableAnchor { user_key: last.clone(), size });
                size = 0;
            }
            cursor.next(self, &settings)?;
        }
        if size > 0 {
            anchors.push(TableAnchor { user_key: last, size });
        }
        Ok(anchors)
    }

    /// Where the data blocks lie, in their order. Costs memory for a copy of the index.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of an index partition.
    pub fn indexed_blocks(&self) -> Result<Vec<IndexedBlock>> {
        let settings = self.quiet();
        let mut blocks = Vec::new();
        let mut cursor = IndexCursor::default();
        cursor.seek_to_first(self, &settings)?;
        while let (Some(handle), Some(user_key)) = (cursor.handle(self), cursor.user_key(self)) {
            blocks.push(IndexedBlock { handle, user_key });
            cursor.next(self, &settings)?;
        }
        Ok(blocks)
    }

    /// Reads a data block from the file, shows its entries as they are stored (a value that lies
    /// beside the blocks as its address), and returns the byte that tells how it is compressed.
    ///
    /// # Errors
    /// `Corruption` or `IoError`, naming file and offset; what `show` returns.
    pub fn show_block<E: From<Error>>(
        &self,
        handle: BlockHandle,
        mut show: impl FnMut(InternalKey<'_>, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<u8, E> {
        let source = &self.source;
        let (_, compression) = source.read_stored(handle, true)?;
        let block = source.read_block(handle, true, true)?;
        let mut iter = BlockIter::new(block, self.comparator.clone(), self.global_sequence);
        iter.seek_to_first();
        while iter.valid() {
            show(iter.key(), iter.value())?;
            iter.next();
        }
        iter.status().map_err(|error| source.locate(error, handle))?;
        Ok(compression)
    }

    /// Settings for reads that should leave no trace in the cache.
    pub(super) fn quiet(&self) -> ReadSettings {
        ReadSettings {
            verify_checksums: self.verify_checksums,
            fill_cache: false,
            cache_only: false,
        }
    }
}
