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
//!
//! Those of a WAL that was flushed stand in tables, too, if these are whole. So they count only for keys that damage may have
//! cost something, and of entries without a sequence number only for those in tables that are older than the WAL.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::choose::Version;
use crate::base::range_tombstone::{Keep, RangeTombstoneRef};
use crate::base::{
    Comparator, FileNumber, FragmentedRangeTombstones, InternalKeyBuf, MAX_SEQUENCE_NUMBER, RangeTombstone,
    TruncatedRangeTombstones,
};
use crate::sst::TableRemains;

/// The tombstones of one table, or of WALs.
struct OfTable {
    tombstones: TruncatedRangeTombstones,
    /// How far they are believed, where nothing tells.
    doubt: Option<Doubt>,
    /// Whether they count only for keys that damage may have cost something.
    only_for_lost: bool,
}

struct Doubt {
    /// The table, or the WAL.
    file: FileNumber,
    /// The first and the last user key of the table's entries.
    entries: Option<(Vec<u8>, Vec<u8>)>,
}

/// The range tombstones of a family.
#[derive(Default)]
pub(super) struct Tombstones {
    of_tables: Vec<OfTable>,
    of_logs: Vec<RangeTombstone>,
    /// By WAL.
    of_flushed_logs: BTreeMap<FileNumber, Vec<RangeTombstone>>,
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
            doubt: is_doubtful.then(|| Doubt { file: table, entries: remains.bounds.clone() }),
            only_for_lost: false,
        });
    }

    /// Adds one of a WAL; `flushed` is which, if tables had it.
    pub(super) fn add_of_log(&mut self, tombstone: RangeTombstone, flushed: Option<FileNumber>) {
        match flushed {
            None => self.of_logs.push(tombstone),
            Some(wal) => self.of_flushed_logs.entry(wal).or_default().push(tombstone),
        }
    }

    /// Makes those of WALs ready to be asked for.
    pub(super) fn finish(&mut self, comparator: &Comparator) {
        let of_logs = std::mem::take(&mut self.of_logs);
        let flushed = std::mem::take(&mut self.of_flushed_logs).into_iter();
        let flushed = flushed.map(|(wal, tombstones)| (Some(wal), tombstones));
        for (flushed, tombstones) in flushed.chain([(None, of_logs)]) {
            if !tombstones.is_empty() {
                let all = newest_of(comparator, &tombstones);
                self.of_tables.push(OfTable {
                    tombstones: all.untruncated(),
                    doubt: flushed.map(|file| Doubt { file, entries: None }),
                    only_for_lost: flushed.is_some(),
                });
            }
        }
    }

    /// Whether any of them deletes a version of a key, of which damage `may_have_cost` something.
    pub(super) fn cover(
        &self,
        comparator: &Comparator,
        user_key: &[u8],
        version: &Version,
        may_have_cost: impl Fn() -> bool,
    ) -> bool {
        let key = InternalKeyBuf::new(user_key, version.sequence, version.kind);
        self.of_tables.iter().any(|of_table| {
            let newest = of_table.tombstones.covering_sequence(key.as_key(), MAX_SEQUENCE_NUMBER);
            newest > version.sequence
                && of_table.doubt.as_ref().is_none_or(|doubt| doubt.believes(comparator, user_key, version))
                && (!of_table.only_for_lost || may_have_cost())
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
            || version.origin.table() <= self.file
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
            all.add_of_log(RangeTombstone { start: b"q".to_vec(), end, sequence }, None);
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
