//! Point lookups of many keys at once, in stages: what one key waits for, from memory or from the disk, is under way for
//! all of them before the first is waited for.
//!
//! 1. Ask for each key's line of the filter; then ask the filter.
//! 2. Search the index for the block of each key that passes.
//! 3. Fetch the distinct blocks in the order of the file: from the cache, the rest with one call.
//! 4. Find in each block the entry to begin with, and ask for its lines.
//! 5. Search, key by key: [`Table::search_prepared`].

use std::sync::Arc;

use crate::base::Result;

use super::block::Block;
use super::cursor::IndexCursor;
use super::format::BlockHandle;
use super::settings::ReadSettings;
use super::table::{Sought, Table, Visit};

/// A key of a batch that a table may hold, and the block in which its entries begin.
pub struct Prepared {
    /// The key's position in the batch.
    pub at: usize,
    cursor: IndexCursor,
    block: Arc<Block>,
}

impl Table {
    /// Does for many keys all that has to be waited for: stages 1 to 4. The keys that the table may hold are added to
    /// `prepared`; `batch` says by their positions in `all` which keys are meant.
    ///
    /// # Errors
    /// As [`Table::get`], whichever key it concerns; nothing is added then.
    pub fn prepare(
        &self,
        all: &[Sought<'_>],
        batch: &[usize],
        settings: &ReadSettings,
        prepared: &mut Vec<Prepared>,
    ) -> Result<()> {
        let mut wanted = self.places(all, batch, settings)?;
        // The order of the file: neighbours are read together, and keys of one block share it.
        wanted.sort_unstable_by_key(|(handle, at, _)| (handle.offset, *at));
        let mut handles: Vec<BlockHandle> = Vec::with_capacity(wanted.len());
        for (handle, ..) in &wanted {
            if handles.last() != Some(handle) {
                handles.push(*handle);
            }
        }
        let blocks = self.source.data_blocks(&handles, settings)?;
        let first = prepared.len();
        let mut block = 0;
        for (handle, at, cursor) in wanted {
            block += usize::from(handles[block] != handle);
            prepared.push(Prepared { at, cursor, block: blocks[block].clone() });
        }
        if self.comparator.is_bytewise() {
            for one in &prepared[first..] {
                one.block.prefetch_entry(all[one.at].target.user_key());
            }
        }
        Ok(())
    }

    /// Stages 1 and 2: where the keys that pass the filter may be.
    fn places(
        &self,
        all: &[Sought<'_>],
        batch: &[usize],
        settings: &ReadSettings,
    ) -> Result<Vec<(BlockHandle, usize, IndexCursor)>> {
        if self.filters_keys() {
            batch.iter().for_each(|&at| self.prefetch_filter(all[at].key));
        }
        let mut wanted = Vec::with_capacity(batch.len());
        for &at in batch {
            let Sought { target, key } = all[at];
            if self.filters_keys() && !self.filter_admits(target.user_key(), key, settings)? {
                continue;
            }
            let mut cursor = IndexCursor::default();
            cursor.seek_for_get(self, target, settings)?;
            if let Some(handle) = cursor.handle(self) {
                wanted.push((handle, at, cursor));
            }
        }
        Ok(wanted)
    }

    /// [`Table::get`] for one of the keys for which a batch was prepared.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn search_prepared(
        &self,
        one: Prepared,
        sought: &Sought<'_>,
        settings: &ReadSettings,
        visit: impl Visit,
    ) -> Result<()> {
        let Prepared { mut cursor, block, .. } = one;
        self.search(&mut cursor, Some(block), sought.target, settings, visit)
    }
}
