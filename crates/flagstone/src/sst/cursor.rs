//! A walk over the index of a table: from data block to data block, through partitions where there
//! are some.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::base::{InternalKey, Result};

use super::cached::{IndexPartition, Whereabouts};
use super::format::{BlockHandle, IndexType};
use super::index::{IndexBlock, IndexFlavor, PrefixHash};
use super::settings::ReadSettings;
use super::table::Table;

/// The index of an open table: all of it, or the level above the partitions.
pub(super) struct TableIndex {
    pub index_type: IndexType,
    /// Whether `top` points to parts of the index, and not to data: partitions of the file, or all
    /// of it in the cache.
    pub in_partitions: bool,
    pub flavor: IndexFlavor,
    pub top: IndexBlock,
    /// With a hash index whose prefixes are those of the current rule.
    pub hash: Option<PrefixHash>,
}

impl TableIndex {
    #[inline]
    pub fn partitioned(&self) -> bool {
        self.in_partitions
    }
}

/// A place in a table's index.
#[derive(Debug, Clone, Default)]
pub(super) struct IndexCursor {
    /// The entry in the top level; as many as there are entries stands for the end.
    top: usize,
    /// With partitions: the one that `top` stands on, and the entry in it.
    partition: Option<Arc<IndexPartition>>,
    inner: usize,
    valid: bool,
}

impl IndexCursor {
    /// The block that the current entry points to, if there is a current entry.
    #[inline]
    pub fn handle(&self, table: &Table) -> Option<BlockHandle> {
        self.entry(table).map(|(block, at)| block.handle(at))
    }

    /// The same, and where it was in memory when somebody last looked.
    #[inline]
    pub fn place<'a>(&'a self, table: &'a Table) -> Option<(BlockHandle, &'a Whereabouts)> {
        self.entry(table).map(|(block, at)| (block.handle(at), block.seen(at)))
    }

    /// The block that follows the current one, or comes before it, if that is known without looking
    /// into another partition.
    pub fn neighbour<'a>(
        &'a self,
        table: &'a Table,
        before: bool,
    ) -> Option<(BlockHandle, &'a Whereabouts)> {
        let (block, at) = self.entry(table)?;
        let at = if before { at.checked_sub(1)? } else { at + 1 };
        (at < block.len()).then(|| (block.handle(at), block.seen(at)))
    }

    /// The user key of the current entry: no key of its block is greater.
    pub fn user_key(&self, table: &Table) -> Option<Vec<u8>> {
        self.entry(table).map(|(block, at)| block.user_key(at))
    }

    /// How it stands to another.
    pub fn compare_user_key(&self, table: &Table, user_key: &[u8]) -> Option<Ordering> {
        self.entry(table).map(|(block, at)| block.compare_user_key(at, user_key))
    }

    /// The key of the current entry as stored.
    pub fn key(&self, table: &Table) -> Option<Vec<u8>> {
        self.entry(table).map(|(block, at)| block.key(at))
    }

    #[inline]
    fn entry<'a>(&'a self, table: &'a Table) -> Option<(&'a IndexBlock, usize)> {
        if !self.valid {
            return None;
        }
        match &self.partition {
            Some(partition) => Some((&partition.index, self.inner)),
            None => Some((&table.index.top, self.top)),
        }
    }

    /// Asks for the memory of the current entry's handle.
    #[inline]
    pub fn prefetch_handle(&self, table: &Table) {
        if let Some((block, at)) = self.entry(table) {
            block.prefetch_handle(at);
        }
    }

    /// Moves to the first entry whose key is at least `target`.
    ///
    /// # Errors
    /// Those of reading a partition; there is then no current entry.
    #[inline]
    pub fn seek(
        &mut self,
        table: &Table,
        target: InternalKey<'_>,
        settings: &ReadSettings,
    ) -> Result<()> {
        self.valid = false;
        self.top = table.index.top.seek(target);
        if !table.index.partitioned() {
            self.valid = self.top < table.index.top.len();
            return Ok(());
        }
        if self.load(table, settings)? {
            self.inner =
                self.partition.as_ref().map_or(0, |partition| partition.index.seek(target));
            self.skip_empty(table, settings)?;
        }
        Ok(())
    }

    /// Moves to the first entry whose block may hold `target` or older entries of its user key,
    /// through the hash index if there is one; there may be no current entry if there is no such
    /// block.
    ///
    /// # Errors
    /// Those of reading a partition; there is then no current entry.
    #[inline]
    pub fn seek_for_get(
        &mut self,
        table: &Table,
        target: InternalKey<'_>,
        settings: &ReadSettings,
    ) -> Result<()> {
        let Some(hash) = &table.index.hash else { return self.seek(table, target, settings) };
        let Some((first, end)) = hash.blocks_of(target.user_key()) else {
            return self.seek(table, target, settings);
        };
        self.top = table.index.top.seek_within(first, end, target);
        self.valid = self.top < end;
        Ok(())
    }

    /// Moves to the first entry.
    ///
    /// # Errors
    /// Those of reading a partition; there is then no current entry.
    pub fn seek_to_first(&mut self, table: &Table, settings: &ReadSettings) -> Result<()> {
        self.valid = false;
        self.top = 0;
        if !table.index.partitioned() {
            self.valid = table.index.top.len() > 0;
            return Ok(());
        }
        if self.load(table, settings)? {
            self.inner = 0;
            self.skip_empty(table, settings)?;
        }
        Ok(())
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// Those of reading a partition; there is then no current entry.
    pub fn seek_to_last(&mut self, table: &Table, settings: &ReadSettings) -> Result<()> {
        self.valid = false;
        self.top = table.index.top.len();
        self.inner = 0;
        self.prev_from(table, settings)
    }

    /// Moves on; nothing happens at the end.
    ///
    /// # Errors
    /// Those of reading a partition; there is then no current entry.
    #[inline]
    pub fn next(&mut self, table: &Table, settings: &ReadSettings) -> Result<()> {
        if !self.valid {
            return Ok(());
        }
        if self.partition.is_none() {
            self.top += 1;
            self.valid = self.top < table.index.top.len();
            return Ok(());
        }
        self.valid = false;
        self.inner += 1;
        self.skip_empty(table, settings)
    }

    /// Moves back; there is no current entry before the first.
    ///
    /// # Errors
    /// Those of reading a partition; there is then no current entry.
    pub fn prev(&mut self, table: &Table, settings: &ReadSettings) -> Result<()> {
        if !self.valid {
            return Ok(());
        }
        self.valid = false;
        self.prev_from(table, settings)
    }

    fn prev_from(&mut self, table: &Table, settings: &ReadSettings) -> Result<()> {
        if !table.index.partitioned() {
            if self.top > 0 {
                self.top -= 1;
                self.valid = true;
            }
            return Ok(());
        }
        while self.inner == 0 {
            let Some(before) = self.top.checked_sub(1) else { return Ok(()) };
            self.top = before;
            if !self.load(table, settings)? {
                return Ok(());
            }
            self.inner = self.partition.as_ref().map_or(0, |partition| partition.index.len());
        }
        self.inner -= 1;
        self.valid = true;
        Ok(())
    }

    /// Stands on `inner` of the current partition, or on the first entry of a later one.
    fn skip_empty(&mut self, table: &Table, settings: &ReadSettings) -> Result<()> {
        while self.partition.as_ref().is_some_and(|partition| self.inner >= partition.index.len()) {
            self.top += 1;
            self.inner = 0;
            if !self.load(table, settings)? {
                return Ok(());
            }
        }
        self.valid = self.partition.is_some();
        Ok(())
    }

    /// Fetches the partition at `top`; `false` if there is none.
    fn load(&mut self, table: &Table, settings: &ReadSettings) -> Result<bool> {
        self.partition = None;
        if self.top >= table.index.top.len() {
            return Ok(false);
        }
        let handle = table.index.top.handle(self.top);
        let flavor = table.index_flavor();
        let partition =
            table.source.index_partition(handle, flavor, &table.comparator, settings)?;
        self.partition = Some(partition);
        Ok(true)
    }
}
