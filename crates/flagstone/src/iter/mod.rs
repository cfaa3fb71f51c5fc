//! Merging what the structures hold into what a user sees.
//!
//! - `merging`: [`MergingIterator`], many cursors as one
//! - `level`: [`ConcatIterator`], the files of one level as one cursor, opened when reached
//! - `tombstones`: [`TombstoneView`], the range tombstones of all sources, asked along a scan
//! - `dead_ranges`: [`DeadRanges`], where scans found nothing but deletions
//! - `db_iter`: [`DbIter`], the keys and values that a snapshot sees
//! - `lookup`: [`Lookup`], what the versions of one key amount to
//! - `entity`: the encoding of wide-column entities

mod db_iter;
mod dead_ranges;
pub mod entity;
mod level;
pub(crate) mod lookup;
mod merging;
#[cfg(test)]
pub(crate) mod testing;
mod tombstones;

pub use db_iter::{DbIter, DbIterSettings, KeyBounds};
pub use dead_ranges::{DeadRanges, HistoryEpoch};
pub use level::{ConcatIterator, FileOpener, SortedFiles};
pub use lookup::{Lookup, LookupValue, Outcome, Upcoming, ValueResolver};
pub use merging::MergingIterator;
pub use tombstones::{LevelTombstones, TombstoneSource, TombstoneView};
