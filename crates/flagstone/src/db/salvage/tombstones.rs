//! The range tombstones of a family, and how far each reaches.
//!
//! A compaction that writes several tables puts a tombstone whole into each that it overlaps, and readers cut it to the bounds
//! that the MANIFEST gives the table, and that Flagstone notes in a property, too. Beyond them it must not be believed: there
//! it may have done its work already and be gone, and what was written since may have lost its sequence number at the bottom
//! of the tree.
//!
//! Of tables that RocksDB wrote the bounds are not known without the MANIFEST. Then
//!
//! - entries with a sequence number are judged by it
//! - entries without are deleted if their table is older than the tombstone's, if they lie between the entries of the
//!   tombstone's table, or if that was flushed: a flush writes one table
//! - other entries without one are kept. Rarely this brings back a key that was deleted; to lose one would be worse.

use std::sync::Arc;

use super::choose::Version;
use crate::base::range_tombstone::{Keep, RangeTombstoneRef};
use crate::base::{
    Comparator, FileNumber, FragmentedRangeTombstones, InternalKeyBuf, MAX_SEQUENCE_NUMBER, RangeTombstone,
    TruncatedRangeTombstones,
};
use crate::sst::TableRemains;

/// The tombstones of one table.
struct OfTable {
    tombstones: TruncatedRangeTombstones,
    /// How far they are believed, where nothing tells.
    doubt: Option<Doubt>,
}

struct Doubt {
    table: FileNumber,
    /// The first and the last user key of the table's entries.
    entries: Option<(Vec<u8>, Vec<u8>)>,
}

/// The range tombstones of a family.
#[derive(Default)]
pub(super) struct Tombstones {
    of_tables: Vec<OfTable>,
    of_logs: Vec<RangeTombstone>,
}

impl Tombstones {
    /// Adds those of a table; `bounds` as far as they are known.
    pub(super) fn add_table(
        &mut self,
        comparator: &Comparator,
        table: FileNumber,
        remains: &TableRemains,
        bounds: Option<(InternalKeyBuf, InternalKeyBuf)>,
        is_flushed: bool,
    ) {
        if remains.tombstones.is_empty() {
            return;
        }
        let all = newest_of(comparator, &remains.tombstones);
        let is_doubtful = bounds.is_none() && !is_flushed;
        self.of_tables.push(OfTable {
            tombstones: match bounds {
                Some((smallest, largest)) => all.truncated(smallest.as_key(), largest.as_key()),
                None => all.untruncated(),
            },
            doubt: is_doubtful.then(|| Doubt { table, entries: remains.bounds.clone() }),
        });
    }

    /// Adds one of a WAL.
    pub(super) fn add_of_log(&mut self, tombstone: RangeTombstone) {
        self.of_logs.push(tombstone);
    }

    /// Makes those of WALs ready to be asked for.
    pub(super) fn finish(&mut self, comparator: &Comparator) {
        let of_logs = std::mem::take(&mut self.of_logs);
        if !of_logs.is_empty() {
            let all = newest_of(comparator, &of_logs);
            self.of_tables.push(OfTable { tombstones: all.untruncated(), doubt: None });
        }
    }

    /// Whether any of them deletes a version of a key.
    pub(super) fn cover(&self, comparator: &Comparator, user_key: &[u8], version: &Version) -> bool {
        let key = InternalKeyBuf::new(user_key, version.sequence, version.kind);
        self.of_tables.iter().any(|of_table| {
            let newest = of_table.tombstones.covering_sequence(key.as_key(), MAX_SEQUENCE_NUMBER);
            newest > version.sequence
                && of_table.doubt.as_ref().is_none_or(|doubt| doubt.believes(comparator, user_key, version))
        })
    }
}

/// Only the newest over each key is asked for: of ranges that begin where others do, all would be as many in each of as many
/// fragments.
fn newest_of(comparator: &Comparator, tombstones: &[RangeTombstone]) -> Arc<FragmentedRangeTombstones> {
    let tombstones = tombstones.iter().map(RangeTombstoneRef::from);
    Arc::new(FragmentedRangeTombstones::keeping(Keep::Newest, comparator, tombstones))
}

impl Doubt {
    fn believes(&self, comparator: &Comparator, user_key: &[u8], version: &Version) -> bool {
        version.sequence > 0
            || version.origin.table() <= self.table
            || self.entries.as_ref().is_some_and(|(first, last)| {
                comparator.compare(first, user_key).is_le() && comparator.compare(user_key, last).is_le()
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that trims its head. Fifty thousand such ranges in a WAL, 3 MB, took 10 GB.
    #[test]
    fn nested_ranges_of_wals_take_no_more_memory_than_others() {
        const COUNT: u64 = 3000;
        let (order, mut all) = (Comparator::Bytewise, Tombstones::default());
        for sequence in 1..=COUNT {
            let end = format!("q{sequence:06}").into_bytes();
            all.add_of_log(RangeTombstone { start: b"q".to_vec(), end, sequence });
        }
        all.finish(&order);
        let held = &all.of_tables[0].tombstones;
        let bytes = held.tombstones().memory_usage();
        assert!(bytes < 1 << 20, "{bytes}");
        let deleted_by = |key: &[u8]| {
            let key = InternalKeyBuf::new(key, 0, crate::base::ValueType::Value);
            held.covering_sequence(key.as_key(), MAX_SEQUENCE_NUMBER)
        };
        // The last range is the newest, and covers all keys.
        assert_eq!(
            [deleted_by(b"q000017"), deleted_by(b"q002999"), deleted_by(b"q003000")],
            [COUNT, COUNT, 0]
        );
    }
}
