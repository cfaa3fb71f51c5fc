//! What survives a flush or a compaction.

use std::sync::Arc;

use super::filter::CompactionFilter;
use super::stream_tombstones::StreamTombstones;
use crate::base::{
    Comparator, InternalIterator, InternalKey, MergeOperator, Result, SequenceNumber, ValueType,
};
use crate::iter::ValueResolver;

/// Decides where the values of a compaction's output lie: moves large ones into blob files, and rewrites or inlines
/// those whose blob file is to go.
pub trait ValueSeparator {
    /// Asked once for each output entry of type `Value` or `BlobIndex`. To store something else, writes it to `out`
    /// (which comes empty) and returns its type.
    ///
    /// # Errors
    /// What reading or writing blob files says; the compaction fails with it.
    fn place(&mut self, key: InternalKey<'_>, value: &[u8], out: &mut Vec<u8>) -> Result<Option<ValueType>>;
}

/// Leaves every value where it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeepInPlace;

impl ValueSeparator for KeepInPlace {
    fn place(
        &mut self,
        _key: InternalKey<'_>,
        _value: &[u8],
        _out: &mut Vec<u8>,
    ) -> Result<Option<ValueType>> {
        Ok(None)
    }
}

/// What a [`CompactionStream`] needs to know besides its input.
pub struct StreamSettings {
    /// The order of the user keys.
    pub comparator: Comparator,
    /// The live snapshots, ascending.
    pub snapshots: Vec<SequenceNumber>,
    /// The oldest snapshot that a transaction checks its conflicts against; `MAX_SEQUENCE_NUMBER` without transactions.
    pub write_conflict_snapshot: SequenceNumber,
    /// Whether nothing older lies below the output.
    pub bottommost: bool,
    /// Whether older data may be put underneath later, so that nothing that hides it may go.
    pub ingest_behind: bool,
    /// Whether a single deletion right over a deletion is reported as the corruption that it is.
    pub enforce_single_del_contracts: bool,
    /// The level being written to, for the filter.
    pub level: u32,
    /// Combines merge operands.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
}

/// What a stream saw and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounts {
    /// Entries read.
    pub input_entries: u64,
    /// Entries dropped because a newer one of their key hides them from every snapshot.
    pub dropped_hidden: u64,
    /// Entries dropped because a range tombstone covers them.
    pub dropped_range_deleted: u64,
    /// Deletions and single deletions dropped because there is nothing left to delete.
    pub dropped_obsolete: u64,
    /// Entries that the filter dropped or turned into deletions.
    pub dropped_by_filter: u64,
}

/// The output of a flush or compaction, entry by entry.
pub struct CompactionStream<'a, I, R, S> {
    settings: StreamSettings,
    input: I,
    tombstones: &'a StreamTombstones,
    key_not_below: Box<dyn FnMut(&[u8]) -> bool + 'a>,
    filter: Option<&'a mut dyn CompactionFilter>,
    resolver: R,
    separator: S,
}

impl<'a, I: InternalIterator, R: ValueResolver, S: ValueSeparator> CompactionStream<'a, I, R, S> {
    /// A stream over `input`, which must stand where the compaction begins (usually on its first entry).
    /// `key_not_below` says whether a user key surely has no entry in a level deeper than the output; it is asked with
    /// ascending keys.
    pub fn new(
        settings: StreamSettings,
        input: I,
        tombstones: &'a StreamTombstones,
        key_not_below: impl FnMut(&[u8]) -> bool + 'a,
        filter: Option<&'a mut dyn CompactionFilter>,
        resolver: R,
        separator: S,
    ) -> Self {
        let key_not_below = Box::new(key_not_below);
        Self { settings, input, tombstones, key_not_below, filter, resolver, separator }
    }

    /// Whether the stream stands on an entry. If not, [`CompactionStream::status`] tells the end from an error.
    pub fn valid(&self) -> bool {
        todo!()
    }

    /// Moves on; the stream must be valid.
    pub fn next(&mut self) {
        todo!()
    }

    /// The entry's key; the stream must be valid.
    pub fn key(&self) -> InternalKey<'_> {
        todo!()
    }

    /// The entry's value; the stream must be valid.
    pub fn value(&self) -> &[u8] {
        todo!()
    }

    /// The error that ended the stream, if one did.
    ///
    /// # Errors
    /// The input's; `Corruption` for keys of no known type and broken single-deletion contracts; refused merges;
    /// `InvalidArgument` for operands without an operator.
    pub fn status(&self) -> Result<()> {
        todo!()
    }

    /// What was seen and dropped so far.
    pub fn counts(&self) -> StreamCounts {
        todo!()
    }

    /// The separator, for what it has written.
    pub fn into_separator(self) -> S {
        self.separator
    }
}
