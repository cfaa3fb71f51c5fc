//! Point lookups of many keys at once, in stages: what one key waits for, from memory or from the
//! disk, is under way for all of them before the first is waited for. Each stage is taken for
//! several tables at once.
//!
//! 1. [`plan`] asks the filters, searches the indexes for the blocks of the keys that pass, and
//!    looks these up in the cache: a step at a time, each asking for the memory that the next will
//!    wait for.
//! 2. [`Table::search_planned`] searches them, key by key.
//! 3. [`read_missing`] reads the blocks that the cache does not have; then 2 for their keys.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::base::{InternalKey, Result};
use crate::env::read_together;

use super::block::Block;
use super::cursor::IndexCursor;
use super::fetch::Purpose;
use super::format::BlockHandle;
use super::settings::ReadSettings;
use super::table::{LookupKey, Table, Visit};

/// The keys of a batch that one table may hold.
pub struct Part<'a, 'k> {
    /// What the caller knows the table by.
    pub place: usize,
    /// `None` if anything went wrong with it: each of its keys by itself learns what.
    pub table: Option<&'a Arc<Table>>,
    /// The keys' positions in the batch.
    pub keys: &'k [usize],
    /// What of [`plan`]'s is this table's.
    pub planned: Range<usize>,
}

/// A key that a table may hold, and the block in which its entries begin.
pub struct Planned {
    /// The key's position in the batch.
    pub at: usize,
    /// `None` if the index rules the key out.
    handle: Option<BlockHandle>,
    cursor: IndexCursor,
    /// The next step on the way to the block, until all that can be has been asked for.
    step: Option<u32>,
    block: Option<Block>,
}

impl Planned {
    /// Whether its block has to be read.
    pub fn is_missing(&self) -> bool {
        self.handle.is_some() && self.block.is_none()
    }

    /// Where its block begins in the file.
    pub fn offset(&self) -> u64 {
        self.handle.map_or(0, |handle| handle.offset)
    }

    /// The size of its block in the file, without the trailer.
    pub fn stored_size(&self) -> u64 {
        self.handle.map_or(0, |handle| handle.size)
    }

    /// The size of its block in memory, uncompressed; 0 if it is missing.
    pub fn memory_size(&self) -> u64 {
        self.block.as_ref().map_or(0, |block| block.memory_usage() as u64)
    }

    /// Forgets the block, which the cache may have.
    pub fn let_go(&mut self) {
        self.block = None;
    }
}

/// Which blocks [`Table::plan_range`] may look at, from the first of the range on.
#[derive(Debug, Clone, Copy)]
pub struct RangeLimits {
    /// How many blocks.
    pub blocks_max: usize,
    /// Bytes as stored.
    pub bytes_max: u64,
}

/// What [`Table::plan_range`] has looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct RangeLook {
    /// How many blocks.
    pub blocks: usize,
    /// Their size as stored.
    pub bytes: u64,
    /// How many of them the cache has.
    pub cached: usize,
    /// The range has more blocks, for which `bytes_max` was too small.
    pub is_cut: bool,
}

/// Adds to `planned` the keys of the batch `all` that the tables may hold, for each table in the
/// order of its file.
pub fn plan(
    all: &[LookupKey<'_>],
    parts: &mut [Part<'_, '_>],
    settings: &ReadSettings,
    planned: &mut Vec<Planned>,
) {
    for part in parts.iter() {
        if let Some(table) = part.table {
            table.prefetch_filters(all, part.keys);
        }
    }
    for part in parts.iter_mut() {
        let first = planned.len();
        if let Some(table) = part.table
            && table.admit_keys(all, part.keys, settings, planned).is_err()
        {
            part.table = None;
        }
        part.planned = first..planned.len();
    }
    each(parts, planned, |table, one| {
        one.cursor.seek_for_get(table, all[one.at].target, settings)?;
        one.cursor.prefetch_handle(table);
        Ok(())
    });
    each(parts, planned, |table, one| {
        one.handle = one.cursor.handle(table);
        Ok(())
    });
    for step in 0..3 {
        each(parts, planned, |table, one| {
            if one.step == Some(step) {
                one.step = one
                    .cursor
                    .place(table)
                    .and_then(|at| table.source.approach(at, step, Purpose::Search));
            }
            Ok(())
        });
    }
    each(parts, planned, |table, one| {
        one.block = table.block_in_memory(&one.cursor, settings);
        Ok(())
    });
    each(parts, planned, |table, one| {
        if let Some(block) = one.block.as_ref().filter(|_| table.comparator.is_bytewise()) {
            block.prefetch_entry(all[one.at].target.user_key());
        }
        Ok(())
    });
    for part in parts {
        planned[part.planned.clone()]
            .sort_unstable_by_key(|one| (one.handle.map(|at| at.offset), one.at));
    }
}

/// Takes a step for all that is planned of tables that nothing went wrong with yet.
fn each(
    parts: &mut [Part<'_, '_>],
    planned: &mut [Planned],
    mut step: impl FnMut(&Table, &mut Planned) -> Result<()>,
) {
    for part in parts {
        if let Some(table) = part.table
            && planned[part.planned.clone()]
                .iter_mut()
                .try_for_each(|one| step(table, one))
                .is_err()
        {
            part.table = None;
        }
    }
}

/// Reads the missing blocks of planned keys together, those of one block next to each other. What
/// cannot be read stays missing: the search reads it by itself, and learns why. Returns how many
/// reads there were, and how many of them the kernel had in hand together.
pub fn read_missing(
    missing: &mut [(&Table, &mut Planned)],
    settings: &ReadSettings,
) -> (usize, usize) {
    let mut places = Vec::with_capacity(missing.len());
    let mut wanted: Vec<(&Table, BlockHandle)> = Vec::with_capacity(missing.len());
    let mut found_at = Vec::with_capacity(missing.len());
    for (table, one) in missing.iter() {
        // Blocks with checksums may be in memory: a search looks there, and can fail.
        let source = Some(&table.source).filter(|source| source.sums.is_none());
        let place = |handle| Some((handle, source?.place_of(handle, settings).ok()?));
        let Some((handle, place)) = one.handle.and_then(place) else {
            found_at.push(None);
            continue;
        };
        if !wanted.last().is_some_and(|last| std::ptr::eq(last.0, *table) && last.1 == handle) {
            places.push(place);
            wanted.push((table, handle));
        }
        found_at.push(Some(wanted.len() - 1));
    }
    let mut blocks: Vec<Option<Block>> = vec![None; wanted.len()];
    // One miss of them all: they wait together.
    let _miss = wanted.first().and_then(|(table, _)| table.source.begin_miss(settings));
    let together = read_together(&places, &mut |at, stored: Result<&[u8]>| {
        let (table, handle) = wanted[at];
        blocks[at] =
            stored.and_then(|stored| table.source.data_block_of(stored, handle, settings)).ok();
    });
    for ((_, one), at) in missing.iter_mut().zip(found_at) {
        one.block = at.and_then(|at| blocks[at].clone());
    }
    (places.len(), together)
}

impl Table {
    /// Looks at the data blocks for the keys from `first` on and before `end`, within the limits.
    /// Adds those to `planned` that no tier of the cache has. A table whose blocks no cache keeps,
    /// or only with checksums, has none.
    ///
    /// # Errors
    /// Those of reading the index.
    pub fn plan_range(
        &self,
        first: InternalKey<'_>,
        end: Option<&[u8]>,
        limits: RangeLimits,
        settings: &ReadSettings,
        planned: &mut Vec<Planned>,
    ) -> Result<RangeLook> {
        let mut look = RangeLook::default();
        if self.source.cache.is_none() || self.source.sums.is_some() {
            return Ok(look);
        }
        let mut cursor = IndexCursor::default();
        cursor.seek(self, first, settings)?;
        while look.blocks < limits.blocks_max {
            let Some(handle) = cursor.handle(self) else { break };
            // Cached blocks count, too: otherwise a long range would be looked at in whole.
            let bytes = look.bytes.saturating_add(handle.size);
            if bytes > limits.bytes_max {
                look.is_cut = true;
                break;
            }
            look.bytes = bytes;
            look.blocks += 1;
            if self.block_in_memory(&cursor, settings).is_some() {
                look.cached += 1;
            } else {
                let (handle, cursor) = (Some(handle), cursor.clone());
                planned.push(Planned { at: 0, handle, cursor, step: None, block: None });
            }
            let behind = |end| cursor.compare_user_key(self, end).is_none_or(Ordering::is_ge);
            if end.is_some_and(behind) {
                break;
            }
            cursor.next(self, settings)?;
        }
        Ok(look)
    }

    /// Adds to `planned` the data blocks at the offsets for which `is_wanted` holds, unless a tier
    /// of the cache has them.
    ///
    /// # Errors
    /// Those of reading the index.
    pub fn plan_offsets(
        &self,
        is_wanted: impl Fn(u64) -> bool,
        settings: &ReadSettings,
        planned: &mut Vec<Planned>,
    ) -> Result<()> {
        if self.source.cache.is_none() || self.source.sums.is_some() {
            return Ok(());
        }
        let mut cursor = IndexCursor::default();
        cursor.seek_to_first(self, settings)?;
        while let Some(handle) = cursor.handle(self) {
            if is_wanted(handle.offset) && self.block_in_memory(&cursor, settings).is_none() {
                let (handle, cursor) = (Some(handle), cursor.clone());
                planned.push(Planned { at: 0, handle, cursor, step: None, block: None });
            }
            cursor.next(self, settings)?;
        }
        Ok(())
    }

    fn prefetch_filters(&self, all: &[LookupKey<'_>], keys: &[usize]) {
        if self.filters_keys() {
            keys.iter().for_each(|&at| self.prefetch_filter(all[at].key));
        }
    }

    /// Adds the keys that the filter lets pass.
    fn admit_keys(
        &self,
        all: &[LookupKey<'_>],
        keys: &[usize],
        settings: &ReadSettings,
        planned: &mut Vec<Planned>,
    ) -> Result<()> {
        for &at in keys {
            let LookupKey { target, key } = all[at];
            if !self.filters_keys() || self.filter_admits(target.user_key(), key, settings)? {
                self.index.top.prefetch(target.user_key());
                let cursor = IndexCursor::default();
                planned.push(Planned { at, handle: None, cursor, step: Some(0), block: None });
            }
        }
        Ok(())
    }

    /// The cursor's data block, if any tier of the cache has it; what cannot be decompressed counts
    /// as missing.
    fn block_in_memory(&self, cursor: &IndexCursor, settings: &ReadSettings) -> Option<Block> {
        // Blocks with checksums are left to a search that can fail.
        let place = cursor.place(self).filter(|_| self.source.sums.is_none())?;
        let second = || self.source.in_second_tier(place.0, settings).ok().flatten();
        self.source.cached_data_block(place).or_else(second)
    }

    /// [`Table::get_admitted`] for a key that was planned; reads its block if that is still
    /// missing.
    ///
    /// # Errors
    /// As [`Table::get_admitted`].
    pub fn search_planned(
        &self,
        one: Planned,
        sought: &LookupKey<'_>,
        settings: &ReadSettings,
        visit: impl Visit,
    ) -> Result<()> {
        let Planned { handle, mut cursor, block, .. } = one;
        if handle.is_none() {
            return Ok(());
        }
        self.search(&mut cursor, block, sought.target, settings, visit)
    }
}
