//! Range tombstones in a flush or compaction: what they cover, which survive, which output file holds them.

use crate::base::range_tombstone::RangeTombstone;
use crate::base::{Comparator, InternalKey, InternalKeyBuf, SequenceNumber, TruncatedRangeTombstones};

/// The range tombstones of all inputs of a compaction.
pub struct StreamTombstones {
    _private: (),
}

impl StreamTombstones {
    /// Gathers the inputs' tombstones: memtables' untruncated, files' truncated to their bounds.
    pub fn new(_comparator: &Comparator, _inputs: &[TruncatedRangeTombstones]) -> Self {
        todo!()
    }

    /// No tombstones.
    pub fn none(_comparator: &Comparator) -> Self {
        todo!()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        todo!()
    }

    /// The tombstones that the output must hold, in the order in which tables store them: by start key, newest first.
    ///
    /// One that every snapshot sees may go if nothing older lies under it: if the output is `bottommost`, or if
    /// `nothing_below(start, end)` says that no deeper file overlaps its keys (`end` is exclusive).
    pub fn surviving(
        &self,
        _snapshots: &[SequenceNumber],
        _bottommost: bool,
        _nothing_below: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Vec<RangeTombstone> {
        todo!()
    }
}

/// What an output file is, as far as its point entries and its neighbours decide.
#[derive(Debug, Clone, Copy)]
pub struct OutputFile<'a> {
    /// The first and the last point entry, if there are any.
    pub points: Option<(InternalKey<'a>, InternalKey<'a>)>,
    /// Whether the compaction (or subcompaction) wrote a file before this one.
    pub has_previous: bool,
    /// Where the subcompaction begins (inclusive user key).
    pub begin: Option<&'a [u8]>,
    /// The user key of the first entry of the next file; for the last file, where the subcompaction ends (exclusive).
    pub next: Option<&'a [u8]>,
}

/// The tombstones of an output file, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputBounds {
    /// Which of the tombstones go into the file.
    pub tombstones: Vec<RangeTombstone>,
    /// The smallest key, tombstones included; `None` for a file without any content, which is not to be written.
    pub smallest: Option<InternalKeyBuf>,
    /// The largest key, tombstones included.
    pub largest: Option<InternalKeyBuf>,
}

/// Which of `tombstones` (in [`StreamTombstones::surviving`]'s order) go into an output file, and the file's bounds.
pub fn bounds_of_output(
    _comparator: &Comparator,
    _tombstones: &[RangeTombstone],
    _file: OutputFile<'_>,
) -> OutputBounds {
    todo!()
}
