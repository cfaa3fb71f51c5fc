//! Point lookups of many keys at once, in stages: what one key waits for, from memory or from the disk, is under way for
//! all of them before the first is waited for. A caller with several tables takes each stage for all of them.
//!
//! 1. [`Table::plan`] asks for each key's line of the filter, then asks the filter; searches the index for the block of each
//!    key that passes; and looks the blocks up in the cache.
//! 2. [`Table::prefetch_entries`] asks for the lines of the entries at which the searches in these blocks begin.
//! 3. [`Table::search_planned`] searches them, key by key.
//! 4. [`read_missing`] reads the blocks that the cache does not have, of all tables together; then 3 for their keys.

use std::sync::Arc;

use crate::base::Result;
use crate::env::read_together;

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

/// Reads the missing blocks of planned keys together, those of one block next to each other. What cannot be read stays missing:
/// the search reads it by itself, and learns why. Returns how many reads there were, and how many of them the kernel had in
/// hand together.
pub fn read_missing(missing: &mut [(&Table, &mut Planned)], settings: &ReadSettings) -> (usize, usize) {
    let mut places = Vec::with_capacity(missing.len());
    let mut wanted: Vec<(&Table, BlockHandle)> = Vec::with_capacity(missing.len());
    let mut found_at = Vec::with_capacity(missing.len());
    for (table, one) in missing.iter() {
        let is_same = |last: &(&Table, BlockHandle)| std::ptr::eq(last.0, *table) && last.1 == one.handle;
        if !wanted.last().is_some_and(is_same) {
            let Ok(place) = table.source.place_of(one.handle, settings) else {
                found_at.push(None);
                continue;
            };
            places.push(place);
            wanted.push((table, one.handle));
        }
        found_at.push(Some(wanted.len() - 1));
    }
    let mut blocks: Vec<Option<Arc<Block>>> = vec![None; wanted.len()];
    let together = read_together(&places, &mut |at, stored: Result<&[u8]>| {
        let (table, handle) = wanted[at];
        blocks[at] = stored.and_then(|stored| table.source.data_block_of(stored, handle, settings)).ok();
    });
    for ((_, one), at) in missing.iter_mut().zip(found_at) {
        one.block = at.and_then(|at| blocks[at].clone());
    }
    (places.len(), together)
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
            // What the second tier cannot decompress stays missing, too.
            let second = || self.source.in_second_tier(one.handle, settings).ok().flatten();
            one.block = self.source.cached_data_block(one.handle).or_else(second);
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

    /// Asks for the lines of the entries at which the searches begin, as far as their blocks are there.
    pub fn prefetch_entries(&self, all: &[Sought<'_>], planned: &[Planned]) {
        if !self.comparator.is_bytewise() {
            return;
        }
        for one in planned {
            if let Some(block) = &one.block {
                block.prefetch_entry(all[one.at].target.user_key());
            }
        }
    }

    /// [`Table::get`] for a key that was planned; reads its block if that is still missing.
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
