//! The range tombstones of a family, and how far each reaches.
//!
//! A compaction that writes several tables puts each tombstone whole into every table that it
//! overlaps. Readers cut it to the table's bounds, which the MANIFEST records and Flagstone (but
//! not RocksDB) also notes in a property. Beyond these bounds a tombstone must not be used: there
//! it may have done its work and been dropped, and later writes may have lost their sequence
//! numbers at the bottom of the tree.
//!
//! A tombstone must not be used within the bounds either if a compaction has replaced its table,
//! and the table still exists because a cursor held it or its removal was interrupted. Only a
//! complete MANIFEST shows which tables are live. If it does not list the table, or there is no
//! MANIFEST:
//!
//! - entries with a sequence number are judged by it
//! - entries without one are deleted if their table is older than the tombstone's
//! - other entries without one are kept, and their number of keys is reported. This may bring back
//!   some deleted entries, because a valid tombstone may be above tables compacted since; losing an
//!   entry would be worse.
//!
//! Tombstones of a flushed WAL are also in tables, if these are complete. So they are used only for
//! keys that damage may have affected, and for entries without a sequence number only if these are
//! in tables older than the WAL.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::choose::Version;
use crate::base::range_tombstone::{Keep, RangeTombstoneRef};
use crate::base::{
    Comparator, FileNumber, FragmentedRangeTombstones, InternalKey, InternalKeyBuf,
    MAX_SEQUENCE_NUMBER, RangeTombstone, SequenceNumber, TruncatedRangeTombstones,
};
use crate::sst::TableRemains;

/// The tombstones of one table, or of WALs.
struct OfTable {
    tombstones: TruncatedRangeTombstones,
    /// The table, or the WAL, if nothing tells whether they still count.
    doubtful: Option<FileNumber>,
    /// Whether they count only for keys that damage may have cost something.
    only_for_lost: bool,
}

/// What range tombstones do to a version of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cover {
    /// None lies over it that is newer.
    None,
    /// One does, and nothing tells whether it is newer.
    Unsure,
    /// One deletes it.
    Deleted,
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
    /// Adds those of a table; `bounds` as far as they are known. `is_certain` says that the table
    /// counts.
    pub(super) fn add_table(
        &mut self,
        comparator: &Comparator,
        table: FileNumber,
        remains: &TableRemains,
        bounds: Option<(InternalKeyBuf, InternalKeyBuf)>,
        is_certain: bool,
    ) {
        if remains.tombstones.is_empty() {
            return;
        }
        let all = newest_of(comparator, &remains.tombstones);
        self.of_tables.push(OfTable {
            tombstones: match bounds {
                Some((smallest, largest)) => all.truncated(smallest.as_key(), largest.as_key()),
                None => all.untruncated(),
            },
            doubtful: (!is_certain).then_some(table),
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
                    doubtful: flushed,
                    only_for_lost: flushed.is_some(),
                });
            }
        }
    }

    /// Shows the sequence numbers and timestamps of those that lie over the place of a key, for
    /// each table and WAL; and whether a version's lies below, and whether they count only for keys
    /// that damage may have cost something.
    pub(super) fn over(
        &self,
        place: InternalKey<'_>,
        mut show: impl FnMut(&[SequenceNumber], &[u8], &dyn Fn(&Version) -> bool, bool),
    ) {
        for of_table in &self.of_tables {
            if let Some(over) = of_table.tombstones.covering(place) {
                let is_believed = |version: &Version| of_table.is_believed(version);
                show(over.sequences, over.timestamps, &is_believed, of_table.only_for_lost);
            }
        }
    }

    /// What they do to a version of a key, of which damage `may_have_cost` something.
    pub(super) fn cover(
        &self,
        user_key: &[u8],
        version: &Version,
        may_have_cost: impl Fn() -> bool,
    ) -> Cover {
        let key = InternalKeyBuf::new(user_key, version.sequence, version.kind);
        let mut cover = Cover::None;
        for of_table in &self.of_tables {
            let newest = of_table.tombstones.covering_sequence(key.as_key(), MAX_SEQUENCE_NUMBER);
            if newest <= version.sequence || of_table.only_for_lost && !may_have_cost() {
                continue;
            }
            if of_table.is_believed(version) {
                return Cover::Deleted;
            }
            cover = Cover::Unsure;
        }
        cover
    }
}

/// Only the newest over each key is asked for: of ranges that begin where others do, all would be
/// as many in each of as many fragments.
fn newest_of(
    comparator: &Comparator,
    tombstones: &[RangeTombstone],
) -> Arc<FragmentedRangeTombstones> {
    let tombstones = tombstones.iter().map(|one| RangeTombstoneRef::stored(one, comparator));
    Arc::new(FragmentedRangeTombstones::keeping(Keep::Newest, comparator, tombstones))
}

impl OfTable {
    /// Whether they are newer than a version with a smaller sequence number.
    fn is_believed(&self, version: &Version) -> bool {
        version.sequence > 0 || self.doubtful.is_none_or(|file| version.origin.table() <= file)
    }
}

#[cfg(test)]
mod tests;
