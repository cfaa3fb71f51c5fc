//! An open table.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::base::{Error, InternalKey, Result};
use crate::env::File;

use super::block::{Block, BlockSlice};
use super::iter::TableIterator;
use super::properties::TableProperties;
use super::settings::{IterSettings, ReadSettings, TableReadSettings};

/// An open table file.
#[derive(Debug)]
pub struct Table {
    _private: (),
}

/// A value found by [`Table::get`]: borrowed, to be copied or pinned.
#[derive(Debug, Clone, Copy)]
pub struct ValueRef<'a> {
    #[expect(dead_code, reason = "filled in when the reader is written")]
    block: &'a Arc<Block>,
    bytes: &'a [u8],
}

impl<'a> ValueRef<'a> {
    /// The value.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The value, kept alive with its block instead of copied.
    pub fn pin(&self) -> BlockSlice {
        todo!()
    }
}

/// What a point lookup did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// The filter ruled the key out; no block was read.
    RuledOut,
    /// The blocks were searched (the visitor has seen what they hold).
    Searched {
        /// Whether a filter let the key pass.
        filtered: bool,
    },
}

/// Something wrong in a table, found by [`Table::verify`].
#[derive(Debug, Clone)]
pub struct BlockFault {
    /// What, with file and offset.
    pub error: Error,
    /// The user keys that the damaged block may hold: after the first and up to the second, where known.
    pub key_range: Option<(Vec<u8>, Vec<u8>)>,
}

/// A place in a table: about `size` bytes lie before it since the last anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableAnchor {
    /// A user key: all keys before the place are at most this.
    pub user_key: Vec<u8>,
    /// Bytes of data blocks up to here since the last anchor.
    pub size: u64,
}

impl Table {
    /// Opens a file of `size` bytes: reads footer, properties, index, filter and range tombstones.
    ///
    /// # Errors
    /// `Corruption`, `NotSupported` or `IoError`, naming the file.
    pub fn open(_file: Arc<dyn File>, _size: u64, _settings: TableReadSettings) -> Result<Arc<Self>> {
        todo!()
    }

    /// Calls `visit` for every point entry of the target's user key from `target` on, newest first, until it breaks.
    ///
    /// # Errors
    /// `Corruption` or `IoError` naming the file, `Incomplete`, or what `visit` returned.
    pub fn get(
        &self,
        _target: InternalKey<'_>,
        _settings: &ReadSettings,
        _visit: impl FnMut(InternalKey<'_>, ValueRef<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<Lookup> {
        todo!()
    }

    /// Whether the filter admits the key; `true` without a filter.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of a filter partition, `Incomplete`.
    pub fn may_contain(&self, _user_key: &[u8], _settings: &ReadSettings) -> Result<bool> {
        todo!()
    }

    /// A cursor over all point entries.
    pub fn iter(self: &Arc<Self>, _settings: IterSettings) -> TableIterator {
        todo!()
    }

    /// What the table says about itself.
    pub fn properties(&self) -> &TableProperties {
        todo!()
    }

    /// Where in the file an entry of that key would lie, in bytes.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of an index partition.
    pub fn approximate_offset_of(&self, _key: InternalKey<'_>) -> Result<u64> {
        todo!()
    }

    /// About `count` places that divide the table into parts of similar size.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of an index partition.
    pub fn anchors(&self, _count: usize) -> Result<Vec<TableAnchor>> {
        todo!()
    }

    /// Reads everything and reports each fault; `true` if there was none.
    pub fn verify(&self, _on_fault: &mut dyn FnMut(BlockFault)) -> bool {
        todo!()
    }

    /// Bytes that the open table holds in memory outside the cache.
    pub fn memory_usage(&self) -> usize {
        todo!()
    }
}
