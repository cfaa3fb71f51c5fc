//! The range tombstones of a family, and how far each reaches.
//!
//! A compaction that writes several tables puts a tombstone whole into each that it overlaps, and
//! readers cut it to the bounds that the MANIFEST gives the table, and that Flagstone notes in a
//! property, too; RocksDB does not. Beyond them it must not be believed: there it may have done its
//! work already and be gone, and what was written since may have lost its sequence number at the
//! bottom of the tree.
//!
//! Nor must it be within them if a compaction has replaced its table, which is still there since a
//! cursor held it, or its removal was cut off. What counts only a whole MANIFEST tells. Where that
//! does not name the table, or there is none,
//!
//! - entries with a sequence number are judged by it
//! - entries without are deleted if their table is older than the tombstone's
//! - other entries without one are kept, and it is said of how many keys. This may bring back some
//!   that were deleted, as a tombstone that counts may lie above what was compacted since; to lose
//!   one would be worse.
//!
//! Those of a WAL that was flushed stand in tables, too, if these are whole. So they count only for
//! keys that damage may have cost something, and of entries without a sequence number only for
//! those in tables that are older than the WAL.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::choose::Version;
use crate::base::range_tombstone::{Keep, RangeTombstoneRef};
use crate::base::{
    Comparator, FileNumber, FragmentedRangeTombstones, InternalKeyBuf, MAX_SEQUENCE_NUMBER,
    RangeTombstone, TruncatedRangeTombstones,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    let tombstones = tombstones.iter().map(RangeTombstoneRef::from);
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
