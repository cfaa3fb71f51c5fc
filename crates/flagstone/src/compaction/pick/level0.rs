//! Compactions that start from level 0, in this order:
//!
//! 1. The oldest tables, going newer while each overlaps neither the others nor anything in a base
//!    level with tables, are moved there as they are.
//! 2. If the base level is much larger than level 0, merging into it would rewrite it for little:
//!    the newest idle tables are merged among themselves.
//! 3. One table, with all that overlap it directly or through others, is merged into the base
//!    level.
//! 4. If that is blocked by what is running, and level 0 grows beyond its trigger: a run of the
//!    newest tables is merged among themselves, as long as each further one lowers the bytes
//!    written for each table that goes.

use std::sync::Arc;

use super::expand::{bounds, is_being_written, level0_closure, overlap};
use super::leveled::{Draft, Picker};
use super::plan::{CompactionPlan, CompactionReason};
use crate::manifest::TableFile;

/// The fewest tables that are worth a merge within level 0 when the way down is blocked.
const MIN_FILES_FOR_INTRA_LEVEL0: usize = 4;

impl Picker<'_> {
    /// The compaction that relieves level 0, if one can start.
    pub(super) fn relieve_level0(&self) -> Option<CompactionPlan> {
        use CompactionReason::{IntraLevel0, Level0Files};
        if self.version.levels.len() == 1 {
            return self.within_level0_if_blocked().map(|draft| self.complete(IntraLevel0, draft));
        }
        if let Some(draft) = self.moved_from_level0() {
            return Some(self.complete(Level0Files, draft));
        }
        if let Some(draft) = self.within_level0_if_base_is_large() {
            return Some(self.complete(IntraLevel0, draft));
        }
        if let Some(draft) = self.merged_from_level0() {
            return Some(self.complete(Level0Files, draft));
        }
        self.within_level0_if_blocked().map(|draft| self.complete(IntraLevel0, draft))
    }

    /// The oldest table that can go, with all that overlap it directly or through others.
    fn merged_from_level0(&self) -> Option<Draft> {
        if self.level0_is_coming_down() {
            return None;
        }
        let files = &self.version.levels[0];
        let mut tried = vec![false; files.len()];
        (0..files.len()).rev().find_map(|at| {
            if tried[at] {
                return None;
            }
            let group = level0_closure(self.version, &[at]);
            group.iter().for_each(|&member| tried[member] = true);
            let start = group.into_iter().map(|member| files[member].clone()).collect();
            self.draft_from_level0(start, self.targets.base_level)
        })
    }

    fn moved_from_level0(&self) -> Option<Draft> {
        let output_level = self.targets.base_level;
        let running = self.context.running;
        if self.version.levels[output_level].is_empty() || self.level0_is_coming_down() {
            return None;
        }
        let mut start: Vec<Arc<TableFile>> = Vec::new();
        for file in self.version.levels[0].iter().rev() {
            let range = bounds(self.user(), std::iter::once(file));
            let overlaps_chosen = || {
                start.iter().any(|other| {
                    overlap(self.user(), range, bounds(self.user(), std::iter::once(other)))
                })
            };
            let below = self.version.overlapping_range(output_level, Some(range.0), Some(range.1));
            if file.is_being_compacted()
                || !below.is_empty()
                || overlaps_chosen()
                || is_being_written(self.user(), running, output_level, range)
            {
                break;
            }
            start.insert(0, file.clone());
        }
        let draft = Draft { start_level: 0, start, output_level, output: Vec::new() };
        let one_path = self.settings.path_sizes.len() <= 1;
        (one_path && !draft.start.is_empty() && self.is_trivial_move(&draft)).then_some(draft)
    }

    /// Whether the table may be merged with others within level 0.
    fn may_stay_merged(&self, file: &TableFile) -> bool {
        !file.is_being_compacted() && !file.is_kept_apart(self.context.oldest_snapshot)
    }

    fn within_level0_if_base_is_large(&self) -> Option<Draft> {
        let files = &self.version.levels[0];
        let trigger = self.settings.level0_file_num_compaction_trigger;
        let factor = self.settings.max_bytes_for_level_multiplier.max(10.0) * 2.0;
        let base_bytes = self.version.level_bytes(self.targets.base_level);
        if files.len() < trigger.max(2)
            || base_bytes as f64 <= self.version.level_bytes(0) as f64 * factor
        {
            return None;
        }
        let start: Vec<_> =
            files.iter().take_while(|file| self.may_stay_merged(file)).cloned().collect();
        if start.len() > 1 { self.draft_from_level0(start, 0) } else { None }
    }

    fn within_level0_if_blocked(&self) -> Option<Draft> {
        let files = &self.version.levels[0];
        let trigger = self.settings.level0_file_num_compaction_trigger;
        if files.len() < trigger + 2 || !self.may_stay_merged(&files[0]) {
            return None;
        }
        let max_bytes = self.settings.effective_max_compaction_bytes();
        let (mut bytes, mut bytes_per_file_gone, mut count) = (files[0].meta.size, u64::MAX, 1);
        for file in &files[1..] {
            bytes = bytes.saturating_add(file.meta.size);
            // Of `count + 1` tables one remains.
            let next = bytes / count as u64;
            if !self.may_stay_merged(file) || next > bytes_per_file_gone || bytes > max_bytes {
                break;
            }
            bytes_per_file_gone = next;
            count += 1;
        }
        if count < MIN_FILES_FOR_INTRA_LEVEL0 {
            return None;
        }
        self.draft_from_level0(files[..count].to_vec(), 0)
    }
}
