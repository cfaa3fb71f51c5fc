//! A cache of rows (`row_cache`), for lookups of keys that are read often and lie apart.
//!
//! A row is what one table has of one user key: all its versions, newest first, whatever snapshot
//! asks. So a row serves every snapshot, and range deletions, which the table keeps apart, hide of
//! it what they hide of the table. Of large values it has the addresses.
//!
//! ```text
//! row = a data block with the versions of one key, found by the table's number in the cache and XXH3 of the key
//! ```
//!
//! **Algorithm.**
//! 1. A lookup that finds the row is answered from it, without a look at filter, index or block.
//! 2. Otherwise the table is asked for all versions of the key, and what it has becomes the row. A
//!    row of more than [`VERSIONS_MAX`] versions or [`BYTES_MAX`] bytes is not kept. A table that
//!    has nothing of the key is asked again the next time: its filter answers faster.
//!
//! Two keys with one hash take the place of one another: a row that is found is another's if its
//! key is not the one sought.

use std::ops::ControlFlow;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::block::{Block, BlockBuilder, BlockIter};
use super::cached::{BlockCache, CachedBlock, Slim};
use super::settings::ReadSettings;
use super::table::{LookupKey, Table, Visit};
use crate::base::{Comparator, Error, InternalKey, InternalKeyBuf, MAX_SEQUENCE_NUMBER, Result};
use crate::cache::CacheKey;

/// A key with more versions is read from the table.
const VERSIONS_MAX: usize = 16;

/// A row with more bytes of keys and values is read from the table.
const BYTES_MAX: usize = 64 << 10;

/// A table's part of the cache of rows.
#[derive(Clone)]
pub struct TableRows {
    cache: Arc<BlockCache>,
    /// The table's number in the cache.
    id: u64,
}

/// What the cache of rows says of a key in a table.
pub enum FoundRow {
    /// The table has nothing of it.
    Absent,
    /// All that the table has of it, and whether it was in the cache.
    Row(Row, bool),
    /// Too much to be kept as a row: the table itself is to be asked.
    TooLarge,
}

/// The versions of one key in one table.
pub struct Row(Block);

impl TableRows {
    /// The part of a table that has this number in the cache, from
    /// [`CacheOwner::next_file`](crate::cache::CacheOwner::next_file).
    pub fn new(cache: Arc<BlockCache>, id: u64) -> Self {
        Self { cache, id }
    }

    fn place_of(&self, user_key: &[u8]) -> CacheKey {
        CacheKey { file: self.id, offset: xxh3_64(user_key) }
    }

    fn lookup(&self, user_key: &[u8]) -> Option<Row> {
        let CachedBlock::Slim(Slim::Data(block)) = self.cache.lookup(self.place_of(user_key))?
        else {
            return None;
        };
        let row = Row(block);
        row.is_of(user_key).then_some(row)
    }

    fn keep(&self, user_key: &[u8], row: &Row) {
        let block = CachedBlock::Slim(Slim::Data(row.0.clone()));
        self.cache.insert(self.place_of(user_key), block, row.0.memory_usage());
    }
}

impl Row {
    fn is_of(&self, user_key: &[u8]) -> bool {
        let mut versions = self.versions();
        versions.seek_to_first();
        versions.valid() && versions.key().user_key() == user_key
    }

    fn versions(&self) -> BlockIter {
        // One user key: only the numbers are compared.
        BlockIter::new(self.0.clone(), Comparator::Bytewise, None)
    }

    /// Shows `visit` the versions from the target on, newest first, until it breaks.
    ///
    /// # Errors
    /// What `visit` returned.
    pub fn visit(&self, target: InternalKey<'_>, mut visit: impl Visit) -> Result<()> {
        let mut versions = self.versions();
        versions.seek(target);
        while versions.valid() {
            let key = versions.key();
            let kind =
                key.value_type().ok_or_else(|| Error::corruption("a row of unknown type"))?;
            if visit(key.sequence(), kind, versions.value_ref())?.is_break() {
                break;
            }
            versions.next();
        }
        versions.status()
    }
}

impl Table {
    /// The row of a key, if lookups of this table go through a cache of rows.
    ///
    /// # Errors
    /// As [`Table::admit`] and [`Table::get_admitted`].
    pub fn row(&self, sought: &LookupKey<'_>, settings: &ReadSettings) -> Result<Option<FoundRow>> {
        let Some(rows) = &self.rows else { return Ok(None) };
        let user_key = sought.target().user_key();
        if let Some(row) = rows.lookup(user_key) {
            return Ok(Some(FoundRow::Row(row, true)));
        }
        let found = self.read_row(sought, settings)?;
        if let FoundRow::Row(row, _) = &found
            && settings.fill_cache
        {
            rows.keep(user_key, row);
        }
        Ok(Some(found))
    }

    /// Whether lookups go through a cache of rows.
    #[inline]
    pub fn has_rows(&self) -> bool {
        self.rows.is_some()
    }

    fn read_row(&self, sought: &LookupKey<'_>, settings: &ReadSettings) -> Result<FoundRow> {
        let user_key = sought.target().user_key();
        let newest = InternalKeyBuf::for_seek(user_key, MAX_SEQUENCE_NUMBER);
        let all = LookupKey { target: newest.as_key(), ..*sought };
        if !self.has_points {
            return Ok(FoundRow::Absent);
        }
        let Some(admitted) = self.admit(&all, settings, false)? else {
            return Ok(FoundRow::Absent);
        };
        let mut builder = BlockBuilder::new(VERSIONS_MAX, None);
        let (mut versions, mut bytes) = (0, 0);
        self.get_admitted(admitted, &all, settings, |sequence, kind, value| {
            let key = InternalKeyBuf::new(user_key, sequence, kind);
            (versions, bytes) = (versions + 1, bytes + user_key.len() + value.bytes().len());
            if versions > VERSIONS_MAX || bytes > BYTES_MAX {
                return Ok(ControlFlow::Break(()));
            }
            builder.add(key.as_key().as_bytes(), value.bytes());
            Ok(ControlFlow::Continue(()))
        })?;
        match versions {
            0 => Ok(FoundRow::Absent),
            _ if versions > VERSIONS_MAX || bytes > BYTES_MAX => Ok(FoundRow::TooLarge),
            _ => Ok(FoundRow::Row(Row(Block::small(builder.finish())?), false)),
        }
    }
}

#[cfg(test)]
mod tests;
