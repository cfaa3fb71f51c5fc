//! The range tombstones of all sources, asked along a scan.

use super::SortedFiles;
use crate::base::{Comparator, Result, SequenceNumber, TruncatedRangeTombstones};

/// The range tombstones of a level's files, read when a scan comes to them.
pub trait LevelTombstones: SortedFiles {
    /// Those of the file at `index`, truncated to the file's bounds; `None` if it has none.
    ///
    /// # Errors
    /// What opening the file says.
    fn tombstones(&self, index: usize) -> Result<Option<TruncatedRangeTombstones>>;
}

/// Where range tombstones come from.
pub enum TombstoneSource {
    /// A memtable's (untruncated) or an L0 file's (truncated to its bounds).
    One(TruncatedRangeTombstones),
    /// A level's.
    Level(Box<dyn LevelTombstones>),
}

/// What range deletions hide from one snapshot.
pub struct TombstoneView {
    comparator: Comparator,
    snapshot: SequenceNumber,
    sources: Vec<(usize, TombstoneSource)>,
}

impl TombstoneView {
    /// A view of `sources`, each with the index of the merging iterator's child whose tombstones they are. Sources
    /// without tombstones are best left out.
    pub fn new(
        comparator: Comparator,
        snapshot: SequenceNumber,
        sources: Vec<(usize, TombstoneSource)>,
    ) -> Self {
        Self { comparator, snapshot, sources }
    }
}
