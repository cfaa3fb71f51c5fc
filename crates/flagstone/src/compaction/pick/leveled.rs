//! Leveled compaction: which files go next.
//!
//! 1. The level with the highest score of at least 1 from which a compaction can start. Level 0
//!    goes to the base level, or is merged within itself (see `level0`); a deeper level gives one
//!    file (in the order of the priority) to the next, with all that must go along, and a few more
//!    that cost nothing. While level 0 waits for the base level, nothing starts from there: it
//!    would only lengthen the wait.
//! 2. Otherwise the first table that can go for a reason of its own: marked, bottommost, expired,
//!    periodic, or with references to a blob file full of garbage. Marked and expired tables go
//!    down a level; the others are rewritten where they are, except that level 0 always goes down.
//!
//! 3. Otherwise a table that frees much by its deletions (see `deletions`).
//! 4. Otherwise what blob files want that take too much space (see `blob_space`); first of all, if
//!    they have passed the limit.
//!
//! Nothing is picked that a running compaction reads, or whose output would mix with what one
//! writes.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::blob_work::{BlobWork, kept_by_damage, refers_to};
use super::expand::{
    Bounds, any_busy, are_disjoint, bounds, clean_cut, is_being_written, join, level0_closure,
    overlapping, total_bytes,
};
use super::paths::path_of_level;
use super::plan::{
    CompactionPlan, CompactionReason, InputRange, LevelInput, OutputCompression, OutputForm,
    OutputSizes,
};
use super::proximal::{self, ProximalOutput};
use super::score::{compensated_sizes, scores};
use super::settings::{LeveledSettings, PickContext};
use super::targets::LevelTargets;
use crate::base::Comparator;
use crate::base::sync::Ordering;
use crate::blob::{BlobFileUsage, forced_gc};
use crate::manifest::{TableFile, Version};
use crate::options::CompactionPri;

/// The most urgent compaction that can start now, if any is wanted.
///
/// Linear in the number of tables of the levels that want one.
pub fn pick(
    version: &Version,
    settings: &LeveledSettings,
    context: &PickContext<'_>,
) -> Option<CompactionPlan> {
    let targets = LevelTargets::new(version, settings);
    let mut sizes = compensated_sizes(version, context);
    proximal::leave_out_young(version, settings, context.now_unix_seconds, &mut sizes);
    let picker = Picker { version, settings, context, targets, sizes };
    let work = BlobWork::of(version, settings, context);
    let by_blob_space = |work: &BlobWork| picker.by_blob_space(work);
    let urgent = work.as_ref().filter(|work| work.is_urgent).and_then(by_blob_space);
    urgent
        .or_else(|| picker.by_score())
        .or_else(|| picker.by_file())
        .or_else(|| picker.by_deletions())
        .or_else(|| work.as_ref().filter(|work| !work.is_urgent).and_then(by_blob_space))
}

pub(super) struct Picker<'a> {
    pub(super) version: &'a Version,
    pub(super) settings: &'a LeveledSettings,
    pub(super) context: &'a PickContext<'a>,
    pub(super) targets: LevelTargets,
    pub(super) sizes: Vec<Vec<u64>>,
}

/// The inputs of a compaction that nothing speaks against.
pub(super) struct Draft {
    pub(super) start_level: usize,
    pub(super) start: Vec<Arc<TableFile>>,
    pub(super) output_level: usize,
    pub(super) output: Vec<Arc<TableFile>>,
}

/// Where a table goes that is compacted for its own sake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Destination {
    /// Down a level.
    Next,
    /// Rewritten in its level.
    Same,
}

impl<'a> Picker<'a> {
    pub(super) fn user(&self) -> &'a Comparator {
        self.version.comparator.keys()
    }

    fn by_score(&self) -> Option<CompactionPlan> {
        let mut level0_waits = false;
        for wanted in scores(self.version, self.settings, &self.targets, &self.sizes) {
            if wanted.score < 1.0 {
                break;
            }
            let level = wanted.level;
            if level == 0 {
                if let Some(plan) = self.relieve_level0() {
                    return Some(plan);
                }
                level0_waits = true;
            } else if !(level0_waits && level == self.targets.base_level) {
                let candidates = self.in_order(level).into_iter();
                let mut candidates =
                    candidates.filter(|at| !self.is_young(level, &self.version.levels[level][*at]));
                let draft = candidates.find_map(|at| self.draft_down(level, at));
                if let Some(draft) = draft {
                    return Some(self.complete(CompactionReason::LevelSize, draft));
                }
            }
        }
        None
    }

    /// The positions of `level` (1 or deeper) in the order in which its tables should go.
    fn in_order(&self, level: usize) -> Vec<usize> {
        let (files, sizes) = (&self.version.levels[level], &self.sizes[level]);
        let mut order: Vec<usize> = (0..files.len()).collect();
        match self.settings.priority {
            CompactionPri::ByCompensatedSize => {
                order.sort_by_key(|&at| std::cmp::Reverse(sizes[at]))
            }
            CompactionPri::OldestLargestSeqFirst => {
                order.sort_by_key(|&at| files[at].meta.largest_seqno)
            }
            CompactionPri::OldestSmallestSeqFirst => {
                order.sort_by_key(|&at| files[at].meta.smallest_seqno)
            }
            CompactionPri::MinOverlappingRatio => {
                let overlaps = self.overlapping_bytes(level);
                let ratio = |at: usize| overlaps[at] as f64 / sizes[at].max(1) as f64;
                order.sort_by(|&a, &b| ratio(a).total_cmp(&ratio(b)));
            }
            CompactionPri::RoundRobin => {
                let cursor = self.context.cursors.iter().find(|cursor| cursor.level == level);
                let after = cursor.map_or(0, |cursor| {
                    let key = cursor.key.as_key();
                    files.partition_point(|file| {
                        self.version.comparator.compare(file.meta.smallest.as_key(), key).is_lt()
                    })
                });
                order.rotate_left(if after < files.len() { after } else { 0 });
            }
        }
        order
    }

    /// For each table of `level`, the bytes of the tables that it overlaps in the next.
    fn overlapping_bytes(&self, level: usize) -> Vec<u64> {
        let below = &self.version.levels[level + 1];
        let mut first = 0;
        let overlaps = self.version.levels[level].iter().map(|file| {
            let (smallest, largest) = (file.meta.smallest.user_key(), file.meta.largest.user_key());
            let ends_before = |other: &TableFile| {
                self.user().compare(other.meta.largest.user_key(), smallest).is_lt()
            };
            while first < below.len() && ends_before(&below[first]) {
                first += 1;
            }
            let starts_within = |other: &&Arc<TableFile>| {
                self.user().compare(other.meta.smallest.user_key(), largest).is_le()
            };
            total_bytes(below[first..].iter().take_while(starts_within))
        });
        overlaps.collect()
    }

    /// The table at position `at` of `level` goes to the next level below, level 0 to the base
    /// level.
    pub(super) fn draft_down(&self, level: usize, at: usize) -> Option<Draft> {
        let output_level = if level == 0 { self.targets.base_level } else { level + 1 };
        if output_level == level || output_level >= self.version.levels.len() {
            return None;
        }
        if level == 0 {
            let files = &self.version.levels[0];
            let start = level0_closure(self.version, &[at])
                .into_iter()
                .map(|at| files[at].clone())
                .collect();
            return self.draft_from_level0(start, output_level);
        }
        let start = clean_cut(self.version, level, at..at + 1);
        self.draft_range(level, start, output_level)
    }

    /// All of `start` goes to `output_level`: a set that no other table of level 0 overlaps, or, if
    /// it stays in level 0, one with no other table of level 0 in between.
    pub(super) fn draft_from_level0(
        &self,
        start: Vec<Arc<TableFile>>,
        output_level: usize,
    ) -> Option<Draft> {
        if any_busy(&start) {
            return None;
        }
        if output_level == 0 {
            return Some(Draft { start_level: 0, start, output_level, output: Vec::new() });
        }
        if self.level0_is_coming_down() {
            return None;
        }
        let (output, _) =
            self.output_files((0, output_level), bounds(self.user(), start.iter()))?;
        Some(Draft {
            start_level: 0,
            start,
            output_level,
            output: self.files(output_level, output),
        })
    }

    /// Whether a compaction takes tables out of level 0: a second one at the same time might
    /// overtake it.
    pub(super) fn level0_is_coming_down(&self) -> bool {
        let mut running = self.context.running.iter();
        running.any(|compaction| compaction.start_level == 0 && compaction.output_level > 0)
    }

    /// The tables at `start` of `level`, a clean cut, go to `output_level`, with more of their
    /// level if these overlap no further table there.
    pub(super) fn draft_range(
        &self,
        level: usize,
        start: Range<usize>,
        output_level: usize,
    ) -> Option<Draft> {
        let files = &self.version.levels[level];
        if any_busy(&files[start.clone()]) {
            return None;
        }
        let start_bounds = bounds(self.user(), files[start.clone()].iter());
        if output_level == level {
            let written = is_being_written(self.user(), self.context.running, level, start_bounds);
            let draft = || Draft {
                start_level: level,
                start: self.files(level, start),
                output_level,
                output: Vec::new(),
            };
            return (!written).then(draft);
        }
        let (output, hull) = self.output_files((level, output_level), start_bounds)?;
        let start = self.grown(level, start, output_level, &output, hull);
        let (start, output) = (self.files(level, start), self.files(output_level, output));
        Some(Draft { start_level: level, start, output_level, output })
    }

    /// The tables of `level` that an output within `bounds` must be merged with, and the bounds of
    /// all; `None` if they are not free.
    fn output_files<'b>(
        &self,
        (start_level, level): (usize, usize),
        start: Bounds<'b>,
    ) -> Option<(Range<usize>, Bounds<'b>)>
    where
        'a: 'b,
    {
        let files: &'a [Arc<TableFile>] = &self.version.levels[level];
        let range = overlapping(self.version, level, start);
        let hull = match &files[range.clone()] {
            [] => start,
            overlapped => join(self.user(), start, bounds(self.user(), overlapped.iter())),
        };
        let running = self.context.running;
        let free = !any_busy(&files[range.clone()])
            && !is_being_written(self.user(), running, level, hull)
            && proximal::is_free(self.version, self.settings, running, (start_level, level), hull);
        free.then_some((range, hull))
    }

    /// More tables of the start level that lie within what is rewritten anyway.
    fn grown(
        &self,
        level: usize,
        start: Range<usize>,
        output_level: usize,
        output: &Range<usize>,
        hull: Bounds<'_>,
    ) -> Range<usize> {
        if output.is_empty() {
            return start;
        }
        let files = &self.version.levels[level];
        let more = overlapping(self.version, level, hull);
        let bytes = total_bytes(&files[more.clone()])
            .saturating_add(total_bytes(&self.version.levels[output_level][output.clone()]));
        if more.len() <= start.len()
            || any_busy(&files[more.clone()])
            || bytes > self.settings.effective_max_compaction_bytes()
        {
            return start;
        }
        let all = bounds(self.user(), files[more.clone()].iter());
        match self.output_files((level, output_level), all) {
            Some((same, _)) if same == *output => more,
            _ => start,
        }
    }

    fn files(&self, level: usize, range: Range<usize>) -> Vec<Arc<TableFile>> {
        self.version.levels[level][range].to_vec()
    }

    fn by_file(&self) -> Option<CompactionPlan> {
        let last_used = self.version.last_level_with_files()?;
        let last = self.version.levels.len() - 1;
        let now = self.context.now_unix_seconds;
        let expired =
            |time: u64, limit: u64| limit > 0 && time > 0 && time.saturating_add(limit) < now;
        let (ttl, period) = (self.settings.ttl_seconds, self.settings.periodic_compaction_seconds);

        use CompactionReason::{BlobGarbage, Bottommost, Marked, Periodic, Ttl};
        use Destination::{Next, Same};
        // What lies in level 0 goes down even if nothing lies below.
        self.first_of(Marked, Next, 0..last_used.max(1), |_, file| file.is_marked())
            .or_else(|| {
                self.first_of(Bottommost, Same, 1..last + 1, |level, file| {
                    self.is_stale(level, file)
                })
            })
            .or_else(|| {
                self.first_of(Ttl, Next, 0..last, |level, file| {
                    expired(file.meta.oldest_ancestor_time, ttl) && !self.is_young(level, file)
                })
            })
            .or_else(|| {
                self.first_of(Periodic, Same, 0..last + 1, |_, file| {
                    expired(file.meta.file_creation_time, period)
                })
            })
            .or_else(|| {
                let oldest = forced_gc(&self.settings.blob_gc, &blob_usage(self.version))
                    .filter(|oldest| *oldest < self.context.forced_gc_below)?;
                let oldest = BTreeSet::from([oldest]);
                self.first_of(BlobGarbage, Same, 0..last + 1, |_, file| refers_to(file, &oldest))
            })
    }

    /// Whether a compaction down from `level` would leave most of the table there.
    pub(super) fn is_young(&self, level: usize, file: &TableFile) -> bool {
        let now = self.context.now_unix_seconds;
        proximal::is_young(self.version, self.settings, now, level, file)
    }

    /// Whether a table at the bottom has sequence numbers and perhaps deletions that nobody needs
    /// any longer.
    fn is_stale(&self, level: usize, file: &TableFile) -> bool {
        let newest = file.meta.largest_seqno;
        let range = (file.meta.smallest.user_key(), file.meta.largest.user_key());
        // With timestamps they stay until these are before the history that is kept.
        let is_old = self.version.comparator.timestamp_size() == 0
            && newest > 0
            && newest < self.context.bottommost_threshold;
        // Its entries keep their sequence numbers for so long: it would be rewritten in vain.
        let age = self.context.now_unix_seconds.saturating_sub(file.meta.file_creation_time);
        let is_preserved = age < self.settings.preserved_seconds;
        is_old
            && !is_preserved
            && !file.settled.load(Ordering::Relaxed)
            && self.is_bottommost(level, range)
    }

    /// The first table of `levels` that is wanted and can go.
    fn first_of(
        &self,
        reason: CompactionReason,
        destination: Destination,
        mut levels: Range<usize>,
        wanted: impl Fn(usize, &TableFile) -> bool,
    ) -> Option<CompactionPlan> {
        levels.find_map(|level| {
            let files = self.version.levels[level].iter().enumerate();
            let drafts = files
                .filter(|(_, file)| !file.is_being_compacted() && wanted(level, file))
                .filter_map(|(at, _)| {
                    if destination == Destination::Next || level == 0 {
                        return self.draft_down(level, at);
                    }
                    self.draft_range(level, clean_cut(self.version, level, at..at + 1), level)
                });
            // With its neighbours a table at the bottom may be one no longer; rewriting it would
            // then change nothing, and it would be picked again and again.
            let mut plans = drafts.map(|draft| self.complete(reason, draft));
            plans.find(|plan| reason != CompactionReason::Bottommost || plan.bottommost)
        })
    }

    /// Whether no level below `level` has a table within `bounds`.
    pub(super) fn is_bottommost(&self, level: usize, bounds: Bounds<'_>) -> bool {
        let mut deeper = level + 1..self.version.levels.len();
        !self.settings.ingest_behind
            && deeper.all(|level| overlapping(self.version, level, bounds).is_empty())
    }

    /// Everything that follows from the inputs.
    pub(super) fn complete(&self, reason: CompactionReason, draft: Draft) -> CompactionPlan {
        let path_id = path_of_level(self.settings, draft.output_level);
        self.complete_in(path_id, reason, draft)
    }

    /// The same, with the outputs in the directory with that path id.
    pub(super) fn complete_in(
        &self,
        path_id: u32,
        reason: CompactionReason,
        draft: Draft,
    ) -> CompactionPlan {
        let lies_there = |file: &Arc<TableFile>| self.settings.path_of(file) == path_id;
        let trivial_move = self.is_trivial_move(&draft) && draft.start.iter().all(lies_there);
        let Draft { start_level, start, output_level, output } = draft;
        let inputs = [(start_level, start), (output_level, output)];
        let inputs = inputs.into_iter().filter(|(_, files)| !files.is_empty());
        let inputs = inputs.map(|(level, files)| LevelInput { level, files }).collect();
        CompactionPlan {
            trivial_move,
            ..self.complete_inputs(path_id, reason, inputs, output_level)
        }
    }

    /// The same for inputs of any levels, which are rewritten.
    pub(super) fn complete_inputs(
        &self,
        path_id: u32,
        reason: CompactionReason,
        inputs: Vec<LevelInput>,
        output_level: usize,
    ) -> CompactionPlan {
        let num_levels = self.version.levels.len();
        let files = || inputs.iter().flat_map(|input| &input.files);
        let range = bounds(self.user(), files());
        // What is merged into level 0 leaves the older tables of level 0 below it.
        let takes_oldest = output_level > 0
            || self.version.levels[0]
                .last()
                .is_some_and(|oldest| files().any(|file| Arc::ptr_eq(file, oldest)));
        let bottommost = takes_oldest && self.is_bottommost(output_level, range);
        let grandparents = (output_level.max(1) + 1..num_levels)
            .map(|level| {
                (level, self.version.overlapping_range(level, Some(range.0), Some(range.1)))
            })
            .find(|(_, overlapped)| output_level > 0 && !overlapped.is_empty())
            .map_or(Vec::new(), |(level, overlapped)| self.files(level, overlapped));
        let target = self.settings.target_file_size(output_level, self.targets.base_level);
        let max = if grandparents.is_empty() { target } else { target.saturating_mul(2) };
        let range = InputRange::of(range);
        let deepest = self.is_deepest(output_level);
        let base_level = self.targets.base_level;
        let proximal = ProximalOutput::of(
            self.version,
            self.settings,
            &inputs,
            output_level,
            base_level,
            |level| self.settings.compression_of(level, base_level, false),
        );
        CompactionPlan {
            reason,
            inputs,
            output_level,
            proximal,
            path_id,
            trivial_move: false,
            drops_inputs: false,
            bottommost,
            emptied: BTreeSet::new(),
            grandparents,
            sizes: OutputSizes {
                target,
                max,
                max_with_grandparents: self.settings.effective_max_compaction_bytes(),
            },
            form: OutputForm {
                compression: OutputCompression {
                    codec: self.settings.compression_of(output_level, base_level, deepest),
                    is_bottommost: deepest,
                },
                temperature: self.settings.temperatures.of(output_level, num_levels),
            },
            range,
            rest: None,
            takes_turn: false,
        }
    }

    /// Whether the tables may change their level as they are.
    pub(super) fn is_trivial_move(&self, draft: &Draft) -> bool {
        let (from, to) = (draft.start_level, draft.output_level);
        let base_level = self.targets.base_level;
        let compression =
            |level| self.settings.compression_of(level, base_level, self.is_deepest(level));
        from != to
            && proximal::proximal_level(self.version, self.settings, from, to).is_none()
            && draft.output.is_empty()
            && compression(from) == compression(to)
            && (from > 0 || are_disjoint(self.user(), &draft.start))
            && draft.start.iter().all(|file| self.may_lie_in(to, file))
    }

    /// Whether a compaction of `file` out of `level`, together with what it overlaps below, stays
    /// within bounds.
    fn may_lie_in(&self, level: usize, file: &TableFile) -> bool {
        let Some(below) = self.version.levels.get(level + 1) else { return true };
        let (smallest, largest) = (file.meta.smallest.user_key(), file.meta.largest.user_key());
        let overlapped = self.version.overlapping_range(level + 1, Some(smallest), Some(largest));
        let bytes = total_bytes(&below[overlapped]).saturating_add(file.meta.size);
        bytes <= self.settings.effective_max_compaction_bytes()
    }

    /// Whether no level below `level` has any table.
    fn is_deepest(&self, level: usize) -> bool {
        self.version.last_level_with_files().is_none_or(|last| level >= last)
    }
}

/// What the rules of blob collection look at, ascending: the files that can be emptied.
pub fn blob_usage(version: &Version) -> Vec<BlobFileUsage> {
    let kept = kept_by_damage(version);
    let blob_files = version.blob_files.values();
    blob_files
        .filter(|blob| !kept.contains(&blob.file.number()))
        .map(|blob| BlobFileUsage {
            number: blob.file.number(),
            total_bytes: blob.file.meta.total_bytes,
            garbage_bytes: blob.garbage_bytes,
        })
        .collect()
}
