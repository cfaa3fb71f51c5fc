//! Deletions in memtables that nobody writes to any longer, and what range deletions free.
//!
//! What a table's deletions free is left to compactions (`compaction/pick/deletions.rs`). For these to see them, a memtable that
//! was not written to for `deletion_compaction_delay` is flushed, if it deletes as much as would be worth its while: a tenth of
//! the family's data, or as much as a full memtable holds.

use super::DbInner;
use super::family::{Family, FamilyState};
use super::generation::Generation;
use super::settings::compacts_by_itself;
use super::statistics::Ticker;
use crate::base::{RangeTombstone, Result};
use crate::compaction::pick::table_stats;
use crate::manifest::{TableFile, Version};
use crate::options::CompactionStyle;

/// A memtable is flushed if it deletes one part in so many of the family's data.
const WORTHWHILE: u64 = 10;

impl DbInner {
    /// Flushes memtables with deletions that are worth it and have rested long enough; whether there were any.
    pub(super) fn flush_resting_deletions(&self) -> Result<bool> {
        if self.check_writable().is_err() {
            return Ok(false);
        }
        let resting: Vec<_> = {
            let mut state = self.state.lock();
            let now = self.env.clock.unix_seconds();
            // Without workers nobody would come again.
            if !state.agenda.is_another_second(now) && self.has_workers() {
                return Ok(false);
            }
            let families = state.families.values_mut();
            families.filter_map(|known| has_rested(known, now).then(|| known.family.clone())).collect()
        };
        let mut flushed = false;
        for family in resting {
            let current = family.current.load_full();
            if self.frees_much(&family, &current.version, &current.mem) {
                self.flush_families(std::slice::from_ref(&family), false)?;
                flushed = true;
            }
        }
        Ok(flushed)
    }

    fn frees_much(&self, family: &Family, version: &Version, mem: &Generation) -> bool {
        // What tables say of values in blob files is as much as the tables are.
        let bytes = version.table_bytes();
        let known = version.files().filter_map(|(_, file)| table_stats(file));
        let entries = known.fold(0u64, |sum, stats| sum.saturating_add(stats.entries));
        let each = bytes / entries.max(1);
        let deletions = mem.num_deletes().saturating_add(mem.num_range_tombstones() as u64);
        let ranges = mem.needed_range_tombstones(&[]).map_or(Vec::new(), |found| found.for_writing(&[]));
        let covered = self.bytes_below(family, version, 0, &ranges);
        let freed = deletions.saturating_mul(each).saturating_add(covered);
        bytes > 0 && freed >= (bytes / WORTHWHILE).min(family.options.load().write_buffer_size)
    }
}

/// Whether the family's memtable has deletions and was not written to for the delay. Says so once.
fn has_rested(known: &mut FamilyState, now: u64) -> bool {
    let options = known.family.options.load();
    let delay = options.deletion_compaction_delay;
    let deletes = known.mem.num_deletes() > 0 || known.mem.num_range_tombstones() > 0;
    let compacts = compacts_by_itself(&options) && options.compaction_style != CompactionStyle::Fifo;
    if !deletes || !compacts || delay == 0 {
        return false;
    }
    let last = known.mem.largest_sequence().unwrap_or(0);
    if known.resting.0 != last {
        known.resting = (last, now);
        return false;
    }
    let has_rested = known.resting.1.saturating_add(delay) <= now;
    if has_rested {
        known.resting.1 = u64::MAX;
    }
    has_rested
}

impl DbInner {
    /// About how many bytes of the tables below `level` these tombstones cover, ascending and disjoint but for older ones of the
    /// same range; in level 0, of all tables. Opens those that are covered in part.
    pub(super) fn bytes_below(
        &self,
        family: &Family,
        version: &Version,
        level: usize,
        tombstones: &[RangeTombstone],
    ) -> u64 {
        let (Some(first), Some(last)) = (tombstones.first(), tombstones.last()) else { return 0 };
        let levels = if level == 0 { 0 } else { level + 1 }..version.levels.len();
        let overlapping = |level| version.files_overlapping(level, Some(&first.start), Some(&last.end));
        let files = levels.flat_map(overlapping);
        let covered = files.map(|file| {
            self.covered_bytes(family, &file, tombstones).unwrap_or_else(|error| {
                // An estimate: whoever needs the table will meet the error.
                tracing::warn!(%error, "what range deletions cover of a table is not known");
                self.statistics.add(Ticker::TablesNotOpened, 1);
                0
            })
        });
        covered.fold(0, u64::saturating_add)
    }

    fn covered_bytes(&self, family: &Family, file: &TableFile, tombstones: &[RangeTombstone]) -> Result<u64> {
        let user = family.comparator();
        let (smallest, largest) = (file.meta.smallest.user_key(), file.meta.largest.user_key());
        let first = tombstones.partition_point(|one| user.compare(&one.end, smallest).is_le());
        let over = tombstones[first..].partition_point(|one| user.compare(&one.start, largest).is_le());
        let mut covered = 0u64;
        // Where the pieces counted so far end.
        let mut reached: Option<&[u8]> = None;
        for RangeTombstone { start, end, .. } in &tombstones[first..first + over] {
            if reached.is_some_and(|reached| user.compare(end, reached).is_le()) {
                continue;
            }
            reached = Some(end);
            covered = covered.saturating_add(self.bytes_of_table_between(family, file, start, end)?);
        }
        Ok(covered.min(file.meta.size))
    }
}
