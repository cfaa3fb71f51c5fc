//! How long the deletions in a family's memtable have waited.

use crate::base::SequenceNumber;
use crate::db::settings::compacts_by_itself;
use crate::db::tree::family_state::FamilyState;
use crate::options::{ColumnFamilyOptions, CompactionStyle};

/// Which deletions of a memtable have waited long enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::db) enum Due {
    /// Those of ranges, of which there are many more than when they were last looked at: they may
    /// leave nothing of whole tables.
    Ranges,
    All,
}

/// What is known of the deletions that wait in a family's memtable; forgotten with the memtable.
#[derive(Default)]
pub(in crate::db) struct WaitingDeletions {
    /// The memtable's last entry when it was last seen, and since when that is the last.
    last: SequenceNumber,
    written_at: u64,
    /// Since when there are deletions, or since they were last thought worth a look.
    since: Option<u64>,
    /// The last entry when they were.
    looked_at: SequenceNumber,
    /// How many range deletions there were when they were last looked at.
    ranges: usize,
}

impl WaitingDeletions {
    /// What has waited long enough in a memtable that ends with `last` and has so many range
    /// deletions. Says so once for each state of the memtable.
    fn due(&mut self, last: SequenceNumber, ranges: usize, now: u64, delay: u64) -> Option<Due> {
        if self.last != last {
            (self.last, self.written_at) = (last, now);
        }
        let since = *self.since.get_or_insert(now);
        let rested = self.written_at.saturating_add(delay) <= now;
        // A memtable to which somebody writes now and then never rests.
        let waited = since.saturating_add(delay.saturating_mul(PATIENCE)) <= now;
        if self.looked_at != last && (rested || waited) {
            (self.looked_at, self.since, self.ranges) = (last, None, ranges);
            return Some(Due::All);
        }
        // To look costs as much as there are of them.
        let many_more = ranges > 0 && ranges >= self.ranges.saturating_mul(2);
        many_more.then(|| {
            self.ranges = ranges;
            Due::Ranges
        })
    }
}

/// What has waited long enough of the deletions in the family's memtable.
pub(in crate::db) fn due(known: &mut FamilyState, now: u64) -> Option<Due> {
    let options = known.family.options.load();
    let delay = options.deletion_compaction_delay;
    let ranges = known.mem.num_range_tombstones();
    let deletes = known.mem.num_deletes() > 0 || ranges > 0;
    let overwrites = || {
        let has_blobs = !known.family.current.load().version.blob_files.is_empty();
        bounds_blob_space(&options) && has_blobs && known.mem.num_entries() > 0
    };
    let compacts =
        compacts_by_itself(&options) && options.compaction_style != CompactionStyle::Fifo;
    if !compacts || delay == 0 || !(deletes || overwrites()) {
        known.waiting_deletions = WaitingDeletions::default();
        return None;
    }
    let last = known.mem.largest_sequence().unwrap_or(0);
    known.waiting_deletions.due(last, ranges, now, delay)
}

/// Whether blob files are to keep within bounds.
pub(in crate::db) fn bounds_blob_space(options: &ColumnFamilyOptions) -> bool {
    options.max_space_amplification > 0.0
}

/// Deletions in a memtable that is still written to wait for so many times the delay.
const PATIENCE: u64 = 3;
