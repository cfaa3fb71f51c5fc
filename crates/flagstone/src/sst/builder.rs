//! Writes one table.

use std::sync::Arc;

use crate::base::{InternalKey, InternalKeyBuf, Result, SequenceNumber};
use crate::env::File;

use super::properties::TableProperties;
use super::settings::TableBuilderSettings;

/// Writes one table from entries in order.
#[derive(Debug)]
pub struct TableBuilder {
    _private: (),
}

/// What [`TableBuilder::finish`] wrote.
#[derive(Debug, Clone)]
pub struct TableSummary {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes after the last data block.
    pub tail_size: u64,
    /// The properties as written.
    pub properties: TableProperties,
    /// For the MANIFEST, if the identities were given.
    pub unique_id: Option<[u64; 2]>,
    /// The smallest key, range tombstones' starts included; `None` for an empty table.
    pub smallest: Option<InternalKeyBuf>,
    /// The largest key, range tombstones' (exclusive) ends included.
    pub largest: Option<InternalKeyBuf>,
    /// The smallest sequence number.
    pub smallest_sequence: SequenceNumber,
    /// The largest sequence number.
    pub largest_sequence: SequenceNumber,
}

impl TableBuilder {
    /// Starts an empty table in an empty file.
    ///
    /// # Errors
    /// `InvalidArgument` if the settings contradict each other.
    pub fn new(_file: Arc<dyn File>, _settings: TableBuilderSettings) -> Result<Self> {
        todo!()
    }

    /// Adds an entry; it must sort after the last one.
    ///
    /// # Errors
    /// `IoError` naming the file.
    ///
    /// # Panics
    /// If the entry does not sort after the last one.
    pub fn add(&mut self, _key: InternalKey<'_>, _value: &[u8]) -> Result<()> {
        todo!()
    }

    /// Adds a range tombstone, in any order: keys from `start` to before `end`, older than `sequence`, are deleted.
    pub fn add_range_tombstone(&mut self, _start: &[u8], _end: &[u8], _sequence: SequenceNumber) {
        todo!()
    }

    /// About how large the file would become if it were finished now, in bytes.
    pub fn estimated_size(&self) -> u64 {
        todo!()
    }

    /// Entries so far, range tombstones included.
    pub fn num_entries(&self) -> u64 {
        todo!()
    }

    /// Writes what follows the data and hands everything to the file; the caller syncs it.
    ///
    /// # Errors
    /// `IoError` naming the file.
    pub fn finish(self) -> Result<TableSummary> {
        todo!()
    }
}
