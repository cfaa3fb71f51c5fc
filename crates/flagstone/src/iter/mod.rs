//! Merges the contents of memtables and tables into what a user sees.
//!
//! - `merging`: [`MergingIterator`], many cursors as one
//! - `level`: [`ConcatIterator`], the files of one level as one cursor; a file is opened when the
//!   cursor reaches it
//! - `tombstones`: [`TombstoneView`], the range tombstones of all sources, queried along a scan
//! - `dead_ranges`: [`DeadRanges`], ranges in which scans found only deletions
//! - `db_iter`: [`DbIter`], the keys and values that a snapshot sees
//! - `lookup`: [`Lookup`], the result of the versions of one key

mod db_iter;
mod dead_ranges;
mod level;
pub(crate) mod lookup;
mod merging;
#[cfg(test)]
pub(crate) mod testing;
mod tombstones;

pub use db_iter::{AsOf, DbIter, DbIterSettings, KeyBounds, newest_timestamp};
pub use dead_ranges::{DeadRanges, HistoryEpoch};
pub use level::{ConcatIterator, FileOpener, SortedFiles};
pub use lookup::{Lookup, LookupValue, Outcome, Upcoming, ValueResolver};
pub use merging::MergingIterator;
pub use tombstones::{LevelTombstones, TombstoneSource, TombstoneView};
