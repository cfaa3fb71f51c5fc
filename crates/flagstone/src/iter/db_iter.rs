//! The keys and values that a snapshot sees.

use std::sync::Arc;

use super::{MergingIterator, TombstoneView, ValueResolver};
use crate::base::{Comparator, InternalIterator, MergeOperator, PrefixExtractor, Result, SequenceNumber};

/// The user keys to which a scan is limited. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct KeyBounds {
    /// The first key that may be shown.
    pub lower: Option<Arc<[u8]>>,
    /// The first key after it that may not.
    pub upper: Option<Arc<[u8]>>,
}

/// How a [`DbIter`] looks at its entries.
#[derive(Clone)]
pub struct DbIterSettings {
    /// The order of the user keys.
    pub comparator: Comparator,
    /// The newest sequence number that is seen.
    pub snapshot: SequenceNumber,
    /// Combines merge operands.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// The keys to show.
    pub bounds: KeyBounds,
    /// `prefix_same_as_start`: show only keys that have the prefix of the key sought. Total order and automatic prefix
    /// mode leave it unset: they differ in which filters the tables ask, not in what is shown.
    pub same_prefix: Option<PrefixExtractor>,
    /// After so many hidden entries in a row the cursor seeks instead of stepping.
    pub max_sequential_skips: usize,
}

/// A cursor over the keys and values that one snapshot sees.
///
/// Cheap when nothing hides anything: a step forward allocates nothing, and the value stays where the child holds it.
/// Blobs are fetched and operands merged when the value is asked for, so a scan of keys never does either.
pub struct DbIter<I, R> {
    settings: DbIterSettings,
    inner: MergingIterator<I>,
    tombstones: TombstoneView,
    resolver: R,
}

impl<I: InternalIterator, R: ValueResolver> DbIter<I, R> {
    /// A cursor, not positioned yet.
    pub fn new(
        settings: DbIterSettings,
        inner: MergingIterator<I>,
        tombstones: TombstoneView,
        resolver: R,
    ) -> Self {
        Self { settings, inner, tombstones, resolver }
    }

    /// Whether the cursor stands on a key. If not, [`DbIter::status`] tells the end from an error.
    pub fn valid(&self) -> bool {
        todo!()
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        todo!()
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        todo!()
    }

    /// Moves to the first key at or after `target`.
    pub fn seek(&mut self, _target: &[u8]) {
        todo!()
    }

    /// Moves to the last key at or before `target`.
    pub fn seek_for_prev(&mut self, _target: &[u8]) {
        todo!()
    }

    /// Moves on; the cursor must be valid.
    pub fn next(&mut self) {
        todo!()
    }

    /// Moves back; the cursor must be valid.
    pub fn prev(&mut self) {
        todo!()
    }

    /// The key; the cursor must be valid.
    pub fn key(&self) -> &[u8] {
        todo!()
    }

    /// The value, fetched or merged now if need be; the cursor must be valid, and stays so after an error. An entity
    /// shows its default column.
    ///
    /// # Errors
    /// `Corruption`, a refused merge, or what the blob file says.
    pub fn value(&mut self) -> Result<&[u8]> {
        todo!()
    }

    /// The error that ended the iteration, if one did.
    ///
    /// # Errors
    /// That of the child that failed.
    pub fn status(&self) -> Result<()> {
        todo!()
    }
}
