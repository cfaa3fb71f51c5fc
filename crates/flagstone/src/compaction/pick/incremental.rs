//! Universal compaction in parts (`incremental`): of the second oldest run, some tables at a time
//! are merged with what they overlap of the oldest, so that there need not be room for a second
//! copy of everything.
//!
//! 1. A window is some tables of the second oldest run that follow one another, with half of
//!    `max_compaction_bytes` together; one begins at each table. With it go the tables of the
//!    oldest run that it overlaps: what is read and written again for each byte of the window is
//!    its cost.
//! 2. The cheapest window is merged, if that costs less than [`COST_MAX`] times as much as merging
//!    all runs would.
//! 3. Otherwise, and where the second oldest run is a table of level 0, which cannot be cut, all
//!    runs are merged.
//!
//! What is newer than both runs stays where it is, so that versions do not overtake each other.
//! Each window makes the second oldest run smaller, until it is gone and the next newer one takes
//! its place.

use std::ops::Range;

use super::expand::{bounds, clean_cut, overlapping, total_bytes};
use super::plan::{CompactionPlan, CompactionReason, LevelInput};
use super::universal::{Output, Run, UniversalPicker};
use crate::base::Sometimes;

/// How much dearer a part may be than the whole.
const COST_MAX: f64 = 1.8;

/// Tables of the second oldest run, and those of the oldest that they overlap.
struct Window {
    second: Range<usize>,
    oldest: Range<usize>,
    cost: f64,
}

impl UniversalPicker<'_> {
    /// A part of the oldest two of these runs, all idle, in place of the merging of all.
    pub(super) fn in_part(&self, runs: Range<usize>) -> Option<CompactionPlan> {
        let [above @ .., oldest] = &self.runs[runs] else { return None };
        let second = above.last().filter(|second| second.level > 0)?;
        let newer = above.iter().map(|run| total_bytes(run.files)).fold(0, u64::saturating_add);
        let limit = COST_MAX * total_bytes(oldest.files) as f64 / newer as f64;
        let windows = self.windows(second, oldest).into_iter().filter(|window| window.cost < limit);
        let window = windows.min_by(|a, b| a.cost.total_cmp(&b.cost))?;
        Sometimes::RunsMergedInPart.reached();
        let input = |run: &Run<'_>, range: Range<usize>| LevelInput {
            level: run.level,
            files: run.files[range].to_vec(),
        };
        let mut inputs = vec![input(second, window.second)];
        if !window.oldest.is_empty() {
            inputs.push(input(oldest, window.oldest));
        }
        let path_id = self.path_of(total_bytes(oldest.files));
        let output = Output { level: oldest.level, path_id, is_oldest: true, compressed: true };
        let plan = self.planned(CompactionReason::SizeAmplification, inputs, output);
        Some(CompactionPlan { takes_turn: true, ..plan })
    }

    fn windows(&self, second: &Run<'_>, oldest: &Run<'_>) -> Vec<Window> {
        let wanted = u128::from(self.settings.effective_max_compaction_bytes() / 2);
        let mut windows = Vec::new();
        let (mut end, mut bytes) = (0, 0);
        for start in 0..second.files.len() {
            while end < second.files.len() && (bytes < wanted || end == start) {
                bytes += u128::from(second.files[end].meta.size);
                end += 1;
            }
            windows.push(self.window(second, oldest, start..end));
            if end == second.files.len() {
                // Those that begin later are parts of this one.
                break;
            }
            bytes -= u128::from(second.files[start].meta.size);
        }
        windows
    }

    fn window(&self, second: &Run<'_>, oldest: &Run<'_>, range: Range<usize>) -> Window {
        let version = self.version;
        let range = clean_cut(version, second.level, range);
        let files = &second.files[range.clone()];
        let below =
            overlapping(version, oldest.level, bounds(version.comparator.keys(), files.iter()));
        let cost = total_bytes(&oldest.files[below.clone()]) as f64 / total_bytes(files) as f64;
        Window { second: range, oldest: below, cost }
    }
}
