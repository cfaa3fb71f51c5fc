//! Universal compaction: sorted runs are merged with older ones of about their size, and never cut
//! apart.
//!
//! A sorted run is a table of level 0, newest first, or all of a deeper level. As many as the
//! trigger and more are merged, for the first of these reasons that holds:
//!
//! 1. A table was not rewritten for a long time: the oldest runs, up to one that is busy, are
//!    merged, all if possible.
//! 2. What lies above the oldest run is, against that, more than `max_size_amplification_percent`:
//!    all is merged, or with `incremental` a part (see `incremental`). What is too much for one
//!    compaction is merged in pieces, which come first once they have begun (see `pieces`): so is
//!    it for any other reason, if the oldest run is among what is merged.
//! 3. Runs that follow one another are of similar size.
//! 4. There are more than `max_read_amp` allows, or than the trigger without that: as many of the
//!    newest as it takes, at least two.
//!
//! So with more runs than allowed, all idle, there is always something to do: writers that wait for
//! fewer do not wait forever. What would leave tables in level 0 that are kept apart there is not
//! done: others are merged around them, and the oldest with what lies below.
//!
//! Runs that free much by their deletions are merged with all that is older (see `deletions`).
//!
//! Blob files that take too much space come last, or first of all if they have passed the limit
//! (see `blob_space`).
//!
//! A table that was marked when it was written takes its run into the next older one, at any number
//! of runs.
//!
//! The output goes to the last level, if nothing older is left, else to the level above the next
//! older run, or stays in level 0 if that is where this run is. So runs only ever sink, and never
//! past each other.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use super::blob_work::BlobWork;
use super::expand::{any_busy, are_disjoint, bounds};
use super::ingest::last_level;
use super::leveled::Picker;
use super::manual::RangePlan;
use super::paths::path_of_run;
use super::pieces::Whole;
use super::plan::{
    CompactionPlan, CompactionReason, InputRange, LevelInput, OutputCompression, OutputForm,
    OutputSizes, RunningCompaction,
};
use super::proximal::{self, ProximalOutput};
use super::score::compensated_sizes;
use super::settings::{LeveledSettings, PickContext};
use super::targets::LevelTargets;
use crate::base::compression::CompressionType;
use crate::manifest::{TableFile, Version};
use crate::options::{CompactionStopStyle, UniversalCompactionOptions};

/// How many sorted runs there are.
pub fn sorted_runs(version: &Version) -> usize {
    let deeper = version.levels.iter().skip(1).filter(|files| !files.is_empty());
    version.levels[0].len() + deeper.count()
}

/// The most urgent compaction that can start now, if any is wanted. Linear in the number of tables.
pub fn pick_universal(
    version: &Version,
    settings: &LeveledSettings,
    universal: &UniversalCompactionOptions,
    context: &PickContext<'_>,
) -> Option<CompactionPlan> {
    let picker = UniversalPicker::new(version, settings, universal, context);
    let work = BlobWork::of(version, settings, context);
    let by_blob_space = |work: &BlobWork| picker.by_blob_space(work, context);
    // Whatever cannot be done leaves the turn to the next.
    let can_be = |plan: Option<CompactionPlan>| plan.filter(|plan| picker.can_be(plan, context));
    let when_urgent = |is_urgent| {
        work.as_ref().filter(|work| work.is_urgent == is_urgent).and_then(by_blob_space)
    };
    can_be(when_urgent(true))
        .or_else(|| can_be(picker.going_on(context)))
        .or_else(|| can_be(picker.periodic(context.now_unix_seconds)))
        .or_else(|| can_be(picker.by_size()))
        .or_else(|| can_be(picker.marked()))
        .or_else(|| can_be(picker.by_deletions(context)))
        .or_else(|| can_be(when_urgent(false)))
}

/// The compaction of all runs into one, for somebody who asked; of a single one in the last level
/// only if it is to be rewritten. The output goes to the directory with that path id. What would be
/// too large for one compaction is done in pieces: `begin` says where the next one begins, and is
/// `None` for the first.
pub fn plan_full(
    version: &Version,
    settings: &LeveledSettings,
    universal: &UniversalCompactionOptions,
    context: &PickContext<'_>,
    (path_id, rewrite): (u32, bool),
    begin: Option<&[u8]>,
) -> RangePlan {
    let picker = UniversalPicker::new(version, settings, universal, context);
    let whole = Whole {
        path_id: Some(path_id),
        rewrites_last: rewrite,
        ..Whole::for_reason(CompactionReason::Manual)
    };
    if let Some(begin) = begin {
        return picker.in_turn(picker.next_piece(whole, begin));
    }
    match &picker.runs[..] {
        [] => RangePlan::Nothing,
        [only] if only.level == last_level(version, settings) && !rewrite => RangePlan::Nothing,
        // Those that are kept apart are not waited for: nothing has to end before they can be tried
        // again.
        runs if runs.iter().any(|run| run.busy && !run.is_apart) => RangePlan::Blocked,
        runs => {
            let all = 0..runs.len();
            let plan = match picker.first_piece(whole, all.clone()) {
                RangePlan::Nothing => {
                    let plan = picker.merged_in(path_id, CompactionReason::Manual, all, true);
                    let plan = Box::new(CompactionPlan { takes_turn: true, ..plan });
                    RangePlan::Ready { plan, rest: None }
                }
                first => first,
            };
            match plan {
                RangePlan::Ready { plan, .. } if picker.is_in_the_way(&plan) => RangePlan::Blocked,
                plan => picker.in_turn(plan),
            }
        }
    }
}

pub(super) struct Run<'a> {
    pub(super) level: usize,
    pub(super) files: &'a [Arc<TableFile>],
    size: u64,
    /// Some of its tables are being merged, or something into it, which need not concern any of
    /// them.
    pub(super) busy: bool,
    /// Its table, which is not being merged, is kept apart: it does not stay in level 0 with
    /// others. Where there is no other level that makes it busy.
    is_apart: bool,
}

/// All runs, newest first.
fn runs<'a>(
    version: &'a Version,
    settings: &LeveledSettings,
    context: &PickContext<'_>,
) -> Vec<Run<'a>> {
    let mut sizes = compensated_sizes(version, context).into_iter();
    let level0 = version.levels[0].chunks(1).zip(sizes.next().unwrap_or_default());
    let mut runs: Vec<_> = level0.map(|(files, size)| (0, files, size)).collect();
    // A last level that is kept for tables below all others takes part in no compaction.
    let deeper = version
        .levels
        .iter()
        .enumerate()
        .take(last_level(version, settings) + 1)
        .skip(1)
        .zip(sizes);
    runs.extend(deeper.filter(|((_, files), _)| !files.is_empty()).map(
        |((level, files), sizes)| {
            (level, files.as_slice(), sizes.into_iter().fold(0, u64::saturating_add))
        },
    ));
    let runs = runs.into_iter();
    let is_written =
        |level| level > 0 && context.running.iter().any(|other| other.writes_to(level));
    let is_apart = |files: &[Arc<TableFile>]| {
        files.iter().any(|file| file.is_kept_apart(context.oldest_snapshot))
    };
    let run = |(level, files, size)| {
        let is_merged = any_busy(files) || is_written(level);
        let is_apart = level == 0 && !is_merged && is_apart(files);
        // Where there is no other level, others are merged around them.
        Run {
            level,
            files,
            size,
            busy: is_merged || is_apart && version.levels.len() == 1,
            is_apart,
        }
    };
    runs.map(run).collect()
}

/// What comes of a compaction.
pub(super) struct Output {
    pub(super) level: usize,
    pub(super) path_id: u32,
    /// The oldest run is in it, in the range of keys of the inputs.
    pub(super) is_oldest: bool,
    pub(super) compressed: bool,
}

pub(super) struct UniversalPicker<'a> {
    pub(super) version: &'a Version,
    pub(super) settings: &'a LeveledSettings,
    universal: &'a UniversalCompactionOptions,
    pub(super) runs: Vec<Run<'a>>,
    pub(super) running: &'a [RunningCompaction],
    /// As [`PickContext::makes_room`].
    makes_room: bool,
}

impl<'a> UniversalPicker<'a> {
    pub(super) fn new(
        version: &'a Version,
        settings: &'a LeveledSettings,
        universal: &'a UniversalCompactionOptions,
        context: &PickContext<'a>,
    ) -> Self {
        let PickContext { running, makes_room, .. } = *context;
        Self {
            version,
            settings,
            universal,
            runs: runs(version, settings, context),
            running,
            makes_room,
        }
    }

    /// Whether a compaction is neither in vain nor in the way of one that runs.
    fn can_be(&self, plan: &CompactionPlan, context: &PickContext<'_>) -> bool {
        let is_apart = |file: &TableFile| file.is_kept_apart(context.oldest_snapshot);
        let in_vain = plan.output_level == 0
            && !plan.drops_inputs
            && plan.files().any(|(_, file)| is_apart(file));
        !in_vain
            && !proximal::leaves_both_runs(self.version, self.settings, context, plan)
            && !self.is_in_the_way(plan)
    }

    /// What somebody has asked for waits for its room.
    fn in_turn(&self, plan: RangePlan) -> RangePlan {
        match plan {
            RangePlan::Ready { .. } if self.makes_room => RangePlan::Blocked,
            plan => plan,
        }
    }

    /// Which level the merged runs go to, up to but not including this one.
    fn output_level(&self, end: usize) -> usize {
        let last = last_level(self.version, self.settings);
        self.runs.get(end).map_or(last, |older| older.level.saturating_sub(1))
    }

    /// Those of the runs that can be merged, from the first on: all, or those in front of what
    /// would stay in level 0.
    fn without_apart(&self, runs: Range<usize>) -> Range<usize> {
        let apart = self.runs[runs.clone()].iter().position(|run| run.is_apart);
        let apart = apart.filter(|_| self.output_level(runs.end) == 0);
        apart.map_or(runs.clone(), |at| runs.start..runs.start + at)
    }

    /// Whether a running compaction writes where this one would.
    fn is_in_the_way(&self, plan: &CompactionPlan) -> bool {
        proximal::is_in_the_way(self.version.comparator.keys(), self.running, plan)
    }

    /// The next piece of a merging of all runs that has begun.
    fn going_on(&self, context: &PickContext<'_>) -> Option<CompactionPlan> {
        let merging = context.merging.filter(|_| !self.makes_room)?;
        self.next_piece(Whole::begun(merging), &merging.begin).into_plan()
    }

    /// All of these runs, the oldest of which is the oldest of all, are merged: as many as are too
    /// large for one compaction in pieces, of which this is the first.
    pub(super) fn all_of(
        &self,
        reason: CompactionReason,
        runs: Range<usize>,
    ) -> Option<CompactionPlan> {
        if self.makes_room {
            return None;
        }
        match self.first_piece(Whole::for_reason(reason), runs.clone()) {
            RangePlan::Nothing => {
                Some(CompactionPlan { takes_turn: true, ..self.merged(reason, runs, true) })
            }
            first => first.into_plan(),
        }
    }

    fn by_size(&self) -> Option<CompactionPlan> {
        let trigger = self.settings.level0_file_num_compaction_trigger;
        if self.runs.len() < trigger {
            return None;
        }
        let idle = self.runs.iter().filter(|run| !run.busy).count();
        let too_many = || {
            let allowed = self.runs_allowed();
            let most = (idle > allowed).then(|| idle - allowed + 1)?;
            // Fewer than `min_merge_width` too: RocksDB has nothing to do then, not even where
            // writers wait.
            Some((CompactionReason::SortedRuns, self.similar(None, 2..=most)?))
        };
        let of_similar_size = || {
            let ratio = f64::from(self.universal.size_ratio);
            let widths = self.universal.min_merge_width as usize..=usize::MAX;
            Some((CompactionReason::SizeRatio, self.similar(Some(ratio), widths)?))
        };
        // Newer runs are merged also while all of them have to wait.
        if let Some(range) = self.amplifying().filter(|_| !self.makes_room) {
            let in_parts = self.universal.incremental && range.end == self.runs.len();
            let part = in_parts.then(|| self.in_part(range.clone())).flatten();
            return part.or_else(|| self.some_of(CompactionReason::SizeAmplification, range));
        }
        let (reason, range) = of_similar_size().or_else(too_many)?;
        self.some_of(reason, range)
    }

    /// These runs are merged: as [`UniversalPicker::all_of`] where the oldest of all is among them,
    /// else at once.
    fn some_of(&self, reason: CompactionReason, runs: Range<usize>) -> Option<CompactionPlan> {
        if runs.end == self.runs.len() {
            return self.all_of(reason, runs);
        }
        let compressed = self.is_compressed(&runs);
        Some(self.merged(reason, runs, compressed))
    }

    /// How many runs may stay whatever their sizes.
    fn runs_allowed(&self) -> usize {
        let trigger = self.settings.level0_file_num_compaction_trigger;
        match self.universal.max_read_amp {
            ..0 => trigger,
            0 => self.runs_of_ratio().min(self.settings.runs_without_delay).max(trigger),
            most => (most as usize).max(trigger),
        }
    }

    /// How many runs there are if each is as large as all newer ones and the ratio together, and
    /// the newest one memtable.
    fn runs_of_ratio(&self) -> usize {
        if self.universal.stop_style == CompactionStopStyle::SimilarSize {
            return 0;
        }
        let largest = self.runs.iter().map(|run| run.size).max().unwrap_or(0) as f64;
        let factor = 1.0 + f64::from(self.universal.size_ratio) / 100.0;
        let (mut runs, mut newer, mut size) =
            (0, 0.0, self.settings.write_buffer_size.max(1) as f64);
        while size < largest {
            newer += size;
            size = newer * factor;
            runs += 1;
        }
        runs
    }

    /// All idle runs, if those above the oldest are too much against it. The last level does not
    /// count if it is kept free of young entries: what lies above is a tree of its own.
    fn amplifying(&self) -> Option<Range<usize>> {
        let levels = self.version.levels.len();
        let is_apart = |run: &&Run<'_>| {
            let divides = self.settings.holds_young() && levels > 2;
            divides && run.level + 1 == levels && self.runs.len() > 1
        };
        let end = self.runs.len() - usize::from(self.runs.last().filter(is_apart).is_some());
        let (oldest, above) = self.runs[..end].split_last()?;
        let start = above.iter().position(|run| !run.busy)?;
        if oldest.busy || above[start..].iter().any(|run| run.busy) {
            return None;
        }
        let bytes = u128::from(total(&above[start..]));
        let limit =
            u128::from(self.universal.max_size_amplification_percent) * u128::from(oldest.size);
        (bytes * 100 >= limit).then_some(start..end)
    }

    /// The newest runs that follow one another, as many as `widths` says, each of which is at most
    /// so many percent larger than those before it; of any size without a ratio.
    fn similar(&self, ratio: Option<f64>, widths: RangeInclusive<usize>) -> Option<Range<usize>> {
        let least = (*widths.start()).max(2);
        let most = (*widths.end()).min(self.universal.max_merge_width.max(2) as usize);
        let mut starts = (0..self.runs.len()).filter(|&start| !self.runs[start].busy);
        starts.find_map(|start| {
            let mut taken = self.runs[start].size;
            let followers = self.runs[start + 1..].iter().take(most - 1);
            let fits = followers.take_while(|run| {
                let fits =
                    !run.busy && ratio.is_none_or(|ratio| self.is_similar(taken, run.size, ratio));
                taken = match self.universal.stop_style {
                    CompactionStopStyle::TotalSize => taken.saturating_add(run.size),
                    CompactionStopStyle::SimilarSize => run.size,
                };
                fits
            });
            let runs = self.without_apart(start..start + fits.count() + 1);
            (runs.len() >= least).then_some(runs)
        })
    }

    fn is_similar(&self, taken: u64, next: u64, ratio: f64) -> bool {
        let more = |size: u64| size as f64 * (100.0 + ratio) / 100.0;
        let similar_only = self.universal.stop_style == CompactionStopStyle::SimilarSize;
        more(taken) >= next as f64 && !(similar_only && more(next) < taken as f64)
    }

    /// Whether the output is compressed: the newest part of the data need not be, if
    /// `compression_size_percent` is set.
    pub(super) fn is_compressed(&self, range: &Range<usize>) -> bool {
        let Ok(percent) = u128::try_from(self.universal.compression_size_percent) else {
            return true;
        };
        u128::from(total(&self.runs[range.end..])) * 100 < u128::from(total(&self.runs)) * percent
    }

    fn periodic(&self, now: u64) -> Option<CompactionPlan> {
        // A table expires by being rewritten, which drops what is deleted.
        let limits = [self.settings.ttl_seconds, self.settings.periodic_compaction_seconds];
        let limit = limits.into_iter().filter(|limit| *limit > 0).min()?;
        let busy = self.runs.iter().rposition(|run| run.busy);
        let range = busy.map_or(0, |at| at + 1)..self.runs.len();
        let is_old = |file: &Arc<TableFile>| {
            let made = file.meta.file_creation_time;
            made > 0 && made.saturating_add(limit) < now
        };
        let wanted = self.runs[range.clone()].iter().any(|run| run.files.iter().any(is_old));
        if wanted { self.all_of(CompactionReason::Periodic, range) } else { None }
    }

    fn marked(&self) -> Option<CompactionPlan> {
        let is_marked = |run: &Run<'_>| run.files.iter().any(|file| file.is_marked());
        let marked = (0..self.runs.len()).filter(|&at| is_marked(&self.runs[at]));
        let wholes = marked.map(|at| at..(at + 2).min(self.runs.len()));
        let mut ranges = wholes.filter(|range| self.without_apart(range.clone()) == *range);
        let range = ranges.find(|range| !self.runs[range.clone()].iter().any(|run| run.busy))?;
        self.some_of(CompactionReason::Marked, range)
    }

    /// To uncover garbage, all runs are merged. To empty files, the tables of a deeper run are
    /// rewritten where they are, a few at a time; those of level 0 with all others.
    fn by_blob_space(&self, work: &BlobWork, context: &PickContext<'_>) -> Option<CompactionPlan> {
        let all = 0..self.runs.len();
        let idle = !self.makes_room && !self.runs.iter().any(|run| run.busy);
        let at_once = || {
            let plan = self.merged(CompactionReason::BlobGarbage, all, true);
            CompactionPlan { takes_turn: true, ..plan }
        };
        if work.uncovers && self.runs.len() > 1 {
            return idle.then(at_once);
        }
        let targets = LevelTargets::new(self.version, self.settings);
        let tables = Picker {
            version: self.version,
            settings: self.settings,
            context,
            targets,
            sizes: Vec::new(),
        };
        let where_it_is = tables.empty(1, &work.emptied).map(|plan| {
            let path_id = self.path_of(self.version.level_bytes(plan.output_level));
            CompactionPlan { path_id, ..plan }
        });
        where_it_is.or_else(|| {
            let of_level0 = idle && tables.empties(0, &work.emptied);
            let plan = of_level0.then(at_once)?;
            Some(CompactionPlan { emptied: work.emptied.clone(), trivial_move: false, ..plan })
        })
    }

    /// Where a run of so many bytes goes.
    pub(super) fn path_of(&self, bytes: u64) -> u32 {
        path_of_run(&self.settings.path_sizes, self.universal.size_ratio, bytes)
    }

    pub(super) fn merged(
        &self,
        reason: CompactionReason,
        range: Range<usize>,
        compressed: bool,
    ) -> CompactionPlan {
        // RocksDB counts what is newer, too, where it makes runs fewer.
        let bytes = match reason {
            CompactionReason::SizeRatio | CompactionReason::SortedRuns => {
                total(&self.runs[..range.end])
            }
            _ => total(&self.runs[range.clone()]),
        };
        self.merged_in(self.path_of(bytes), reason, range, compressed)
    }

    pub(super) fn merged_in(
        &self,
        path_id: u32,
        reason: CompactionReason,
        range: Range<usize>,
        compressed: bool,
    ) -> CompactionPlan {
        let runs = &self.runs[range.clone()];
        let output_level = self.output_level(range.end);
        let mut inputs: Vec<LevelInput> = Vec::new();
        for run in runs {
            match inputs.last_mut() {
                Some(input) if input.level == run.level => input.files.extend_from_slice(run.files),
                _ => inputs.push(LevelInput { level: run.level, files: run.files.to_vec() }),
            }
        }
        let is_oldest = range.end == self.runs.len();
        self.planned(reason, inputs, Output { level: output_level, path_id, is_oldest, compressed })
    }

    /// The compaction of these inputs.
    pub(super) fn planned(
        &self,
        reason: CompactionReason,
        inputs: Vec<LevelInput>,
        output: Output,
    ) -> CompactionPlan {
        let Output { level: output_level, path_id, is_oldest, compressed } = output;
        let user = self.version.comparator.keys();
        let files: Vec<_> = inputs.iter().flat_map(|input| &input.files).cloned().collect();
        let range = InputRange::of(bounds(user, files.iter()));
        let bottommost = is_oldest && !self.settings.ingest_behind;
        let target = self.settings.target_file_size(output_level, 1);
        let compression = |level| {
            if compressed {
                self.settings.compression_of(level, 1, bottommost)
            } else {
                CompressionType::None
            }
        };
        let proximal =
            ProximalOutput::of(self.version, self.settings, &inputs, output_level, 1, compression);
        let moves = self.universal.allow_trivial_move
            && proximal.is_none()
            && output_level > 0
            && inputs.iter().all(|input| {
                input.level < output_level && compression(input.level) == compression(output_level)
            })
            && files.iter().all(|file| self.settings.path_of(file) == path_id)
            && are_disjoint(user, &files);
        CompactionPlan {
            reason,
            output_level,
            proximal,
            path_id,
            trivial_move: moves,
            drops_inputs: false,
            bottommost,
            emptied: BTreeSet::new(),
            grandparents: Vec::new(),
            sizes: OutputSizes { target, max: target, ..OutputSizes::UNLIMITED },
            form: OutputForm {
                compression: OutputCompression {
                    codec: compression(output_level),
                    is_bottommost: bottommost,
                },
                temperature: self.settings.temperatures.of(output_level, self.version.levels.len()),
            },
            range,
            rest: None,
            takes_turn: false,
            inputs,
        }
    }
}

fn total(runs: &[Run<'_>]) -> u64 {
    runs.iter().fold(0, |sum, run| sum.saturating_add(run.size))
}
