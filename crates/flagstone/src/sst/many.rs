//! Point lookups of many keys at once, in stages: what one key waits for, from memory or from the disk, is under way for
//! all of them before the first is waited for. A caller with several tables takes each stage for all of them.
//!
//! 1. [`Table::plan`] asks for each key's line of the filter, then asks the filter; searches the index for the block of each
//!    key that passes; and looks the blocks up in the cache.
//! 2. [`Table::will_need`] tells the system which blocks are going to be read.
//! 3. [`Table::fetch`] reads them, and asks for the lines of the entries at which the searches begin.
//! 4. [`Table::search_planned`] searches, key by key.

use std::sync::Arc;

use crate::base::Result;

use super::block::Block;
use super::cursor::IndexCursor;
use super::format::BlockHandle;
use super::settings::ReadSettings;
use super::table::{Sought, Table, Visit};

/// A key that a table may hold, and the block in which its entries begin.
pub struct Planned {
    /// The key's position in the batch.
    pub at: usize,
    handle: BlockHandle,
    cursor: IndexCursor,
    block: Option<Arc<Block>>,
}

impl Planned {
    /// Whether its block has to be read.
    pub fn is_missing(&self) -> bool {
        self.block.is_none()
    }
}

impl Table {
    /// Adds to `planned` the keys that the table may hold, in the order of the file; `batch` says by their positions in
    /// `all` which keys are meant.
    ///
    /// # Errors
    /// As [`Table::get`], whichever key it concerns; nothing is added then.
    pub fn plan(
        &self,
        all: &[Sought<'_>],
        batch: &[usize],
        settings: &ReadSettings,
        planned: &mut Vec<Planned>,
    ) -> Result<()> {
        if self.filters_keys() {
            batch.iter().for_each(|&at| self.prefetch_filter(all[at].key));
        }
        let first = planned.len();
        for &at in batch {
            match self.place(&all[at], settings) {
                Ok(Some((handle, cursor))) => planned.push(Planned { at, handle, cursor, block: None }),
                Ok(None) => {}
                Err(error) => {
                    planned.truncate(first);
                    return Err(error);
                }
            }
        }
        let planned = &mut planned[first..];
        planned.sort_unstable_by_key(|one| (one.handle.offset, one.at));
        for one in planned {
            one.block = self.source.cached_data_block(one.handle);
        }
        Ok(())
    }

    /// Where a key's entries begin; `None` if the table does not have it.
    fn place(
        &self,
        sought: &Sought<'_>,
        settings: &ReadSettings,
    ) -> Result<Option<(BlockHandle, IndexCursor)>> {
        let Sought { target, key } = *sought;
        if self.filters_keys() && !self.filter_admits(target.user_key(), key, settings)? {
            return Ok(None);
        }
        let mut cursor = IndexCursor::default();
        cursor.seek_for_get(self, target, settings)?;
        Ok(cursor.handle(self).map(|handle| (handle, cursor)))
    }

    /// Tells the system that a missing block is going to be read, so that the device works on many at once.
    pub fn will_need(&self, one: &Planned) {
        if one.is_missing() {
            self.source.will_need(one.handle);
        }
    }

    /// Reads the missing blocks of keys that were planned together.
    ///
    /// # Errors
    /// As [`Table::get`], whichever key it concerns.
    pub fn fetch(&self, all: &[Sought<'_>], planned: &mut [Planned], settings: &ReadSettings) -> Result<()> {
        let missing: Vec<BlockHandle> =
            planned.iter().filter(|one| one.is_missing()).map(|one| one.handle).collect();
        if !missing.is_empty() {
            let mut handles = missing;
            handles.dedup();
            let blocks = self.source.data_blocks(&handles, settings)?;
            let mut at = 0;
            for one in planned.iter_mut().filter(|one| one.is_missing()) {
                at += usize::from(handles[at] != one.handle);
                one.block = Some(blocks[at].clone());
            }
        }
        if self.comparator.is_bytewise() {
            for one in planned {
                if let Some(block) = &one.block {
                    block.prefetch_entry(all[one.at].target.user_key());
                }
            }
        }
        Ok(())
    }

    /// [`Table::get`] for a key that was planned, and its block fetched.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn search_planned(
        &self,
        one: Planned,
        sought: &Sought<'_>,
        settings: &ReadSettings,
        visit: impl Visit,
    ) -> Result<()> {
        let Planned { mut cursor, block, .. } = one;
        self.search(&mut cursor, block, sought.target, settings, visit)
    }
}
