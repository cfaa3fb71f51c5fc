//! How a cursor looks at its entries.

use std::sync::Arc;

use super::AsOf;
use crate::base::{Comparator, MergeOperator, PrefixExtractor, SequenceNumber};
use crate::iter::{DeadRanges, HistoryEpoch};

/// The user keys to which a scan is limited. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct KeyBounds {
    /// The first key that may be shown.
    pub lower: Option<Arc<[u8]>>,
    /// The first key after it that may not.
    pub upper: Option<Arc<[u8]>>,
}

/// How a [`DbIter`](super::DbIter) looks at its entries.
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
    /// `prefix_same_as_start`: show only keys that have the prefix of the key sought. Total order
    /// and automatic prefix mode leave it unset: they differ in which filters the tables ask, not
    /// in what is shown.
    pub same_prefix: Option<PrefixExtractor>,
    /// `auto_prefix_mode`: seeks are confined to a prefix where the bounds admit no other.
    pub auto_prefix: Option<PrefixExtractor>,
    /// After so many hidden versions of a key in a row the cursor seeks past them instead of
    /// stepping.
    pub max_sequential_skips: usize,
    /// Where scans of the family found nothing, if they may leap over that: it counts all keys and
    /// range tombstones.
    pub dead_ranges: Option<Arc<DeadRanges>>,
    /// The past that is read: they know of one.
    pub past: HistoryEpoch,
    /// After so many hidden entries without one to show a step fails with `Incomplete`; 0 for any
    /// number.
    pub max_skippable: u64,
    /// Where keys end in timestamps, which of them are seen. The bounds end in the greatest one.
    pub as_of: Option<AsOf>,
}

impl DbIterSettings {
    /// All keys in that order, as of `snapshot`, without merge operator.
    pub fn new(comparator: Comparator, snapshot: SequenceNumber) -> Self {
        Self {
            comparator,
            snapshot,
            merge_operator: None,
            bounds: KeyBounds::default(),
            same_prefix: None,
            auto_prefix: None,
            max_sequential_skips: 8,
            dead_ranges: None,
            past: HistoryEpoch::default(),
            max_skippable: 0,
            as_of: None,
        }
    }
}
