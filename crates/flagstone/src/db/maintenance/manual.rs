//! Manual compaction of a range.
//!
//! 1. Flush what is in memory.
//! 2. From the level above the deepest that has keys of the range, go down: each level's part is
//!    compacted into the next, piece by piece, each piece a plan of its own, so that automatic
//!    compactions of other families go on.
//! 3. Rewrite the deepest level where it is, if the options say so.
//! 4. With `change_level`, move that level as a whole to another, which rewrites nothing.
//!
//! Automatic compactions of the family go on between the pieces, so that writers are not held up by
//! a level 0 that nobody empties; but while a piece waits for its turn none starts, and with
//! `exclusive_manual_compaction` none at all.

use std::sync::Arc;
use std::time::Duration;

use crate::base::{Error, FileNumber, Result};
use crate::compaction::pick::{
    LevelTargets, PickContext, RangePlan, RangeRequest, plan_full, plan_range, plan_refit,
    sorted_runs,
};
use crate::db::DbInner;
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::settings::{leveled_settings, pick_compaction};
use crate::db::tree::compaction_job::{CompactionJob, Piece};
use crate::db::tree::partitioning::cut_before_moving;
use crate::db::tree::paused_work;
use crate::db::tree::state::State;
use crate::manifest::{TableFile, Version};
use crate::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions, CompactionStyle,
    FlushReason, WaitForCompactOptions,
};

impl Db {
    /// Compacts the keys from `begin` to `end` (both inclusive; `None` is unbounded) of a family
    /// down to the last level that holds some of them, after flushing what is in memory. Returns
    /// when that is done.
    ///
    /// # Errors
    /// `Corruption` or `IoError` of the rewriting; `InvalidArgument` for a level or directory that
    /// is not there; `NotSupported` or `Aborted` if, after all else is done, `change_level` cannot
    /// be; `Aborted` where level 0 is the only one, and has range deletions that do not fit into
    /// fewer tables; `Incomplete` if
    /// [`CompactionControl::cancel`](crate::options::CompactionControl::cancel) was called;
    /// `ColumnFamilyDropped`.
    pub fn compact_range(
        &self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        let inner = self.inner();
        inner.disk.check_changeable()?;
        inner.disk.check_owner(&family.0)?;
        family.0.check_alive()?;
        paused_work::check_not_stopped(&inner.tree, true)?;
        let paths = family.0.paths.directories().len();
        if options.target_path_id as usize >= paths {
            return Err(Error::invalid_argument(format!(
                "target_path_id {} is too large: the column family has {paths} path(s)",
                options.target_path_id
            )));
        }
        if let Some(low) = &options.full_history_ts_low {
            self.increase_full_history_ts_low(family, low)?;
        }
        if !options.allow_write_stall {
            inner.tree.wait_until_a_flush_stalls_nobody(&family.0)?;
        }
        inner.jobs.flush_asked_for(
            std::slice::from_ref(&family.0),
            true,
            FlushReason::ManualCompaction,
        )?;
        let requested = paused_work::begin_requested(&inner.tree)?;
        let first_number = inner.tree.file_numbers.next();
        let (begin, end) =
            (begin.map(|key| family.0.stored_from(key)), end.map(|key| family.0.stored_until(key)));
        let (begin, end) = (begin.as_deref(), end.as_deref());
        let manual = Manual { inner, family: &family.0, begin, end, options, first_number };
        if let Some(control) = &options.control {
            control.begin(manual.estimate());
        }
        // A comparator of the application may panic anywhere in it, also while automatic
        // compactions are held.
        let run = || inner.jobs.guarded("compaction", || manual.run_and_refit());
        let outcome = if options.exclusive_manual_compaction {
            inner.tree.hold_automatic(&family.0, 1);
            let outcome = run();
            inner.tree.hold_automatic(&family.0, -1);
            outcome
        } else {
            run()
        };
        // A listener that is told of the compaction may stop others.
        drop(requested);
        inner.tree.family_changed(family.0.id);
        if let (Some(control), Ok(())) = (&options.control, &outcome) {
            control.end();
        }
        inner.jobs.end_asked_for(outcome)
    }

    /// About how many bytes of tables [`Db::compact_range`] would read now, and write again but for
    /// what turns out to be garbage. Reads nothing itself. What is in memory, and would be flushed
    /// first, does not count, nor does what may be moved as it is where nothing lies below.
    ///
    /// # Errors
    /// `ColumnFamilyDropped`.
    pub fn estimate_compact_range(
        &self,
        family: &ColumnFamily,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<u64> {
        let inner = self.inner();
        inner.disk.check_owner(&family.0)?;
        family.0.check_alive()?;
        let first_number = FileNumber(u64::MAX);
        let (begin, end) =
            (begin.map(|key| family.0.stored_from(key)), end.map(|key| family.0.stored_until(key)));
        let (begin, end) = (begin.as_deref(), end.as_deref());
        Ok(Manual { inner, family: &family.0, begin, end, options, first_number }.estimate())
    }

    /// Waits until neither flush nor compaction has anything left to do. Of holes that are slow,
    /// and punched at rest, no more than a fifth of a second's are waited for.
    ///
    /// # Errors
    /// What had poisoned the database.
    pub fn wait_for_compactions(&self) -> Result<()> {
        let options =
            WaitForCompactOptions { wait_for_purge: true, ..WaitForCompactOptions::default() };
        self.wait_for_compact(&options)
    }

    /// As [`Db::wait_for_compactions`], for a limited time; longer by up to a tenth of a second.
    ///
    /// # Errors
    /// As [`Db::wait_for_compactions`]; `TimedOut`.
    pub fn wait_for_compactions_within(&self, limit: Duration) -> Result<()> {
        let (timeout, wait_for_purge) = (Some(limit), true);
        self.wait_for_compact(&WaitForCompactOptions { timeout, wait_for_purge, ..<_>::default() })
    }
}

struct Manual<'a> {
    inner: &'a DbInner,
    family: &'a Arc<Family>,
    begin: Option<&'a [u8]>,
    end: Option<&'a [u8]>,
    options: &'a CompactRangeOptions,
    /// What is written from now on has this number, or a later one.
    first_number: FileNumber,
}

impl Manual<'_> {
    fn run_and_refit(&self) -> Result<()> {
        self.run()?;
        if self.options.change_level { self.refit() } else { Ok(()) }
    }

    /// About how many bytes will be read: what comes from above, with what it meets in each level.
    fn estimate(&self) -> u64 {
        let version = self.version();
        let bytes = |files: &[Arc<TableFile>]| {
            files.iter().map(|file| file.meta.size).fold(0, u64::saturating_add)
        };
        match self.family.options.load().compaction_style {
            CompactionStyle::Fifo => 0,
            CompactionStyle::Universal => {
                let is_one_run = sorted_runs(&version) < 2 && version.levels[0].is_empty();
                let all =
                    version.levels.iter().map(|files| bytes(files)).fold(0, u64::saturating_add);
                if is_one_run && !self.rewrites_last() { 0 } else { all }
            }
            CompactionStyle::Level | CompactionStyle::None => {
                let (mut carried, mut read) = (0u64, 0u64);
                for level in 0..version.levels.len() {
                    let found = version.files_overlapping(level, self.begin, self.end);
                    let here = bytes(&found);
                    let is_merged = here > 0 && (carried > 0 || level == 0 && found.len() > 1);
                    carried = carried.saturating_add(here);
                    read = read.saturating_add(if is_merged { carried } else { 0 });
                }
                let rewritten = match self.options.bottommost_level_compaction {
                    _ if !self.rewrites_last() => 0,
                    // What has come down is not read once more, for which level 0 alone is not
                    // either.
                    BottommostLevelCompaction::ForceOptimized => carried - read.min(carried),
                    _ if self.deepest_level() == Some(0) => carried - read.min(carried),
                    _ => carried,
                };
                read.saturating_add(rewritten)
            }
        }
    }

    /// Moves the level that the result lies in.
    fn refit(&self) -> Result<()> {
        self.family.check_alive()?;
        let control = self.options.control.as_deref();
        let job = |plan| CompactionJob::new(self.family.clone(), self.version(), plan);
        self.inner.tree.move_when_free(self.family, control, |state| self.plan_refit(state), job)
    }

    fn plan_refit(&self, state: &State) -> Result<RangePlan> {
        let known = state.families.get(&self.family.id);
        let (Some(known), Some(level)) = (known, self.deepest_level()) else {
            return Ok(RangePlan::Nothing);
        };
        if !known.compacting.running.is_empty() {
            return Ok(RangePlan::Blocked);
        }
        let version = self.version();
        let settings = leveled_settings(&self.family.options.load(), &version.paths);
        plan_refit(&version, &settings, level, usize::try_from(self.options.target_level).ok())
    }

    fn run(&self) -> Result<()> {
        let Some(deepest) = self.deepest_level() else { return Ok(()) };
        match self.family.options.load().compaction_style {
            CompactionStyle::Level | CompactionStyle::None => self.run_by_level(deepest),
            CompactionStyle::Universal => {
                self.run_pieces(None, |state, begin| self.plan_all(state, begin))
            }
            CompactionStyle::Fifo => {
                while let Some((job, _)) = self.take_piece(|state| self.plan_fifo(state))? {
                    self.inner.jobs.run_compaction(&job)?;
                }
                Ok(())
            }
        }
    }

    fn run_by_level(&self, deepest: usize) -> Result<()> {
        let base = {
            let version = self.version();
            let settings = leveled_settings(&self.family.options.load(), &version.paths);
            LevelTargets::new(&version, &settings).base_level
        };
        if deepest == 0 {
            // Nothing below: what is moved there would not be rewritten.
            return self.compact_level(0, base, !self.rewrites_last());
        }
        self.compact_level(0, base.min(deepest), true)?;
        // Nothing lies between level 0 and the base, but for what this has put there.
        for level in base.max(1)..deepest {
            self.compact_level(level, level + 1, true)?;
        }
        let mut deepest = deepest;
        if self.holds_what_may_go_down(deepest) {
            self.compact_level(deepest, deepest + 1, true)?;
            deepest += 1;
        }
        if self.rewrites_last() { self.compact_level(deepest, deepest, true) } else { Ok(()) }
    }

    /// Whether entries of the level wait there until they are old enough for the last.
    fn holds_what_may_go_down(&self, level: usize) -> bool {
        self.family.options.load().preclude_last_level_data_seconds > 0
            && level + 2 == self.version().levels.len()
    }

    /// Tables that this call has written itself are not rewritten once more, with `ForceOptimized`.
    fn spared_from(&self) -> Option<FileNumber> {
        let is_optimized =
            self.options.bottommost_level_compaction == BottommostLevelCompaction::ForceOptimized;
        is_optimized.then_some(self.first_number)
    }

    /// Whether what lies in the last level already is rewritten, too.
    fn rewrites_last(&self) -> bool {
        match self.options.bottommost_level_compaction {
            BottommostLevelCompaction::Skip => false,
            BottommostLevelCompaction::IfHaveCompactionFilter => {
                self.family.options.load().filters_compactions()
            }
            BottommostLevelCompaction::Force | BottommostLevelCompaction::ForceOptimized => true,
        }
    }

    fn version(&self) -> Arc<Version> {
        self.family.current.load().version.clone()
    }

    /// The deepest level with keys of the range.
    fn deepest_level(&self) -> Option<usize> {
        let version = self.version();
        (0..version.levels.len())
            .rev()
            .find(|level| !version.files_overlapping(*level, self.begin, self.end).is_empty())
    }

    /// Compacts the range's part of `level` into `output_level`, piece by piece. Tables may be
    /// moved there as they are, if `moves` says so.
    fn compact_level(&self, level: usize, output_level: usize, moves: bool) -> Result<()> {
        self.run_pieces(self.begin, |state, begin| {
            self.plan_piece(state, (level, output_level), begin, moves)
        })
    }

    /// Compacts piece by piece; `plan` is told where a piece begins.
    fn run_pieces(
        &self,
        begin: Option<&[u8]>,
        plan: impl Fn(&State, Option<&[u8]>) -> RangePlan,
    ) -> Result<()> {
        let mut begin = begin.map(<[u8]>::to_vec);
        loop {
            self.family.check_alive()?;
            let Some((job, rest)) = self.take_piece(|state| plan(state, begin.as_deref()))? else {
                return Ok(());
            };
            let takes_turn = job.plan.takes_turn;
            let outcome = self.inner.jobs.run_compaction(&job);
            // What a piece has replaced makes room for the next, once nobody holds its inputs.
            drop(job);
            if outcome.is_ok() && (takes_turn || rest.is_some()) {
                self.inner.jobs.purge_all_obsolete_files();
            }
            if takes_turn {
                self.inner.tree.end_turn(self.family.id, true);
            }
            outcome?;
            let Some(next) = rest else { return Ok(()) };
            begin = Some(next);
        }
    }

    /// The next piece, its inputs marked; waits while a running compaction is in the way.
    fn take_piece(&self, plan: impl Fn(&State) -> RangePlan) -> Result<Option<Piece>> {
        let control = self.options.control.as_deref();
        let job = |plan| {
            let mut job = CompactionJob::new(self.family.clone(), self.version(), plan);
            self.override_settings(&mut job);
            job
        };
        self.inner.tree.begin_when_free(self.family, control, |state| Ok(plan(state)), job)
    }

    fn plan_piece(
        &self,
        state: &State,
        (level, output_level): (usize, usize),
        begin: Option<&[u8]>,
        moves: bool,
    ) -> RangePlan {
        let Some(known) = state.families.get(&self.family.id) else { return RangePlan::Nothing };
        let options = self.family.options.load();
        let version = self.version();
        // Other compactions may have filled a level that was empty when this one was asked for.
        let filled = (level + 1..output_level).find(|&between| !version.levels[between].is_empty());
        let request = RangeRequest {
            level,
            output_level: filled.unwrap_or(output_level),
            spared_from: self.spared_from(),
            begin,
            end: self.end,
            path_id: self.options.target_path_id,
            allow_trivial_move: moves && !options.filters_compactions(),
        };
        let settings = leveled_settings(&options, &version.paths);
        let context = self.inner.tree.pick_context(state, known);
        let mut planned = plan_range(&version, &settings, &context, &request);
        if let RangePlan::Ready { plan, .. } = &mut planned {
            cut_before_moving(&options, &version, plan, true);
        }
        planned
    }

    /// For universal compaction: all runs into one, whatever the range; in pieces, if that is too
    /// much for one compaction.
    fn plan_all(&self, state: &State, begin: Option<&[u8]>) -> RangePlan {
        let Some(known) = state.families.get(&self.family.id) else { return RangePlan::Nothing };
        let options = self.family.options.load();
        let universal = &options.compaction_options_universal;
        let context = PickContext {
            makes_room: known.compacting.in_turn > 0,
            ..self.inner.tree.pick_context(state, known)
        };
        let version = self.version();
        let common = leveled_settings(&options, &version.paths);
        let output = (self.options.target_path_id, self.rewrites_last());
        let mut planned = plan_full(&version, &common, universal, &context, output, begin);
        if let RangePlan::Ready { plan, .. } = &mut planned {
            plan.trivial_move &= !options.filters_compactions();
            cut_before_moving(&options, &version, plan, true);
        }
        planned
    }

    /// For FIFO compaction: what it would do unasked.
    fn plan_fifo(&self, state: &State) -> RangePlan {
        let Some(known) = state.families.get(&self.family.id) else { return RangePlan::Nothing };
        if !known.compacting.running.is_empty() {
            return RangePlan::Blocked;
        }
        let version = self.version();
        let context = self.inner.tree.pick_context(state, known);
        let plan = pick_compaction(&self.family.options.load(), &version, &context);
        plan.map_or(RangePlan::Nothing, |plan| RangePlan::Ready {
            plan: Box::new(plan),
            rest: None,
        })
    }

    fn override_settings(&self, job: &mut CompactionJob) {
        job.is_manual = true;
        job.trim.clone_from(&self.options.trim);
        job.control.clone_from(&self.options.control);
        job.max_subcompactions = Some(self.options.max_subcompactions).filter(|most| *most > 0);
        job.blob_gc.enabled = match self.options.blob_garbage_collection_policy {
            BlobGarbageCollectionPolicy::Force => Some(true),
            BlobGarbageCollectionPolicy::Disable => Some(false),
            BlobGarbageCollectionPolicy::UseDefault => None,
        };
        let age_cutoff = self.options.blob_garbage_collection_age_cutoff;
        job.blob_gc.age_cutoff = (0.0..=1.0).contains(&age_cutoff).then_some(age_cutoff);
    }
}

#[cfg(test)]
mod tests;
