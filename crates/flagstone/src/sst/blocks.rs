//! A table block by block, as it is stored: for tools that show it to people.

use crate::base::{InternalKey, PACKED_SIZE, Result};

use super::block::BlockIter;
use super::cursor::IndexCursor;
use super::format::BlockHandle;
use super::settings::ReadSettings;
use super::table::Table;

/// A data block, as the index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedBlock {
    /// Where it lies.
    pub handle: BlockHandle,
    /// The user part of its key in the index: at least its last key.
    pub user_key: Vec<u8>,
    /// The whole key in the index: an internal key, or a user key where no user key spans two
    /// blocks.
    pub index_key: Vec<u8>,
}

impl Table {
    /// Where the data blocks lie, in their order. Costs memory for a copy of the index.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of an index partition.
    pub fn indexed_blocks(&self) -> Result<Vec<IndexedBlock>> {
        let settings = self.quiet();
        let mut blocks = Vec::new();
        let mut cursor = IndexCursor::default();
        cursor.seek_to_first(self, &settings)?;
        while let (Some(handle), Some(index_key)) = (cursor.handle(self), cursor.key(self)) {
            let cut = if self.index_flavor().user_keys { 0 } else { PACKED_SIZE };
            let user_key = index_key[..index_key.len().saturating_sub(cut)].to_vec();
            blocks.push(IndexedBlock { handle, user_key, index_key });
            cursor.next(self, &settings)?;
        }
        Ok(blocks)
    }

    /// Reads a data block from the file, shows its entries as they are stored (a value that lies
    /// beside the blocks as its address), and returns the byte that tells how it is compressed.
    ///
    /// # Errors
    /// `Corruption` or `IoError`, naming file and offset; what `show` returns.
    pub fn show_block<E: From<crate::base::Error>>(
        &self,
        handle: BlockHandle,
        mut show: impl FnMut(InternalKey<'_>, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<u8, E> {
        let source = &self.source;
        let settings = ReadSettings { verify_checksums: true, ..self.quiet() };
        let (_, compression) = source.read_stored(handle, settings.verify_checksums)?;
        let block = source.read_block(handle, settings.verify_checksums, true)?;
        let mut iter = BlockIter::new(block, self.comparator.clone(), self.global_sequence);
        iter.seek_to_first();
        while iter.valid() {
            show(iter.key(), iter.value())?;
            iter.next();
        }
        iter.status().map_err(|error| source.locate(error, handle))?;
        Ok(compression)
    }
}
