//! Which compaction runs next, how its output becomes part of the tree, and which files stand in
//! its way.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::base::sync::{MutexGuard, Ordering};
use crate::base::{Code, ColumnFamilyId, FileNumber, Mutant, Result, Sometimes};
use crate::compaction::pick::{
    BlobSpace, CompactionPlan, CompactionReason, LevelInput, PickContext, RangePlan, last_level,
};
use crate::db::family::Family;
use crate::db::settings::{compacts_by_itself, leveled_settings, pick_compaction};
use crate::db::statistics::Ticker;
use crate::db::tree::compaction_job::{
    CompactionJob, Found, FreeSpace, Installation, Piece, bytes_of_blobs, check_not_canceled,
    passes, round_robin_cursor,
};
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::output::JobOutput;
use crate::db::tree::partitioning::cut_before_moving;
use crate::db::tree::state::State;
use crate::db::tree::{Tree, damage, paused_work, put_off, told};
use crate::env::Role;
use crate::manifest::{TableFile, VersionEdit};
use crate::options::CompactionControl;

/// Who waits for another compaction looks so often whether he was canceled.
const LOOKS_WHETHER_CANCELED: Duration = Duration::from_millis(50);

impl Tree {
    /// The first plan of a family that wants one, level 0 first; its inputs are marked. So much was
    /// `free` just before.
    pub(in crate::db) fn take_compaction(&self, free: &FreeSpace) -> Option<CompactionJob> {
        self.take_compaction_in(&mut self.state.lock(), free)
    }

    pub(in crate::db) fn take_compaction_in(
        &self,
        state: &mut State,
        free: &FreeSpace,
    ) -> Option<CompactionJob> {
        if state.paused.compactions > 0 {
            return None;
        }
        state.note_time(self.context.env.clock.now_us());
        damage::take_back_outnumbered(self, state);
        let mut found = self.find_compaction(state, free);
        if !matches!(found, Found::Job(_)) && !self.has_workers() {
            // Nobody would come again in a while.
            state.note_all();
            found = self.find_compaction(state, free);
        }
        let mut job = match found {
            Found::Job(job) => *job,
            Found::AtLimit => return None,
            Found::Nothing => {
                self.note_nothing_to_do(state);
                return None;
            }
        };
        self.find_out(state, &mut job);
        self.begin_compaction(state, &job);
        // There may be one for another thread, too.
        self.announce(Role::Compaction);
        Some(job)
    }

    /// The first plan of the families that may want one. Those that do not are not asked again
    /// until something changes.
    fn find_compaction(&self, state: &mut State, free: &FreeSpace) -> Found {
        let waits = self.waits_for_space(state);
        let in_work = if waits { Self::bytes_in_work(state) } else { 0 };
        let (mut idle, mut refused, mut is_at_limit) = (Vec::new(), Vec::new(), false);
        let job = state.agenda.to_compact().find_map(|id| {
            let known = state.families.get(&id)?;
            // What it wants needs a permit, and is not picked anew each time.
            if known.compacting.wants_permit && known.is_limiter_full() {
                is_at_limit = true;
                return None;
            }
            // Who holds it lets it go with a word.
            let job =
                if known.compacting.manual == 0 { self.compaction_of(state, known) } else { None };
            idle.extend(job.is_none().then_some(id));
            // It is asked again, since nothing of it changes when there is space, or a permit.
            let has_room = |job: &CompactionJob| {
                !waits || passes(&job.plan) || self.has_room_beside(job, in_work, free)
            };
            let job = job.filter(has_room)?;
            if !job.begin_within_limit() {
                refused.push(id);
                return None;
            }
            Some(job)
        });
        self.context
            .statistics
            .add(Ticker::FamiliesLookedAt, idle.len() as u64 + u64::from(job.is_some()));
        idle.into_iter().for_each(|id| state.wants_none(id));
        is_at_limit |= !refused.is_empty();
        refused.into_iter().for_each(|id| state.wants_permit(id));
        Found::of(job, is_at_limit)
    }

    fn compaction_of(&self, state: &State, known: &FamilyState) -> Option<CompactionJob> {
        let options = known.family.options.load();
        if known.family.is_held()
            || !compacts_by_itself(&options)
            || put_off::is_put_off(self, known)
        {
            return None;
        }
        let version = known.family.current.load().version.clone();
        let context = PickContext {
            makes_room: known.compacting.in_turn > 0,
            ..self.pick_context(state, known)
        };
        let mut plan = pick_compaction(&options, &version, &context)?;
        cut_before_moving(&options, &version, &mut plan, false);
        if plan.emptied.is_empty() && options.max_space_amplification > 0.0 {
            // What passes by anyway need not be rewritten for their sake.
            let collecting = known.compacting.collecting.iter();
            let live = collecting.filter(|file| version.blob_files.contains_key(*file));
            plan.emptied = live.copied().collect();
        }
        Some(CompactionJob::new(known.family.clone(), version, plan))
    }

    /// What the picker needs to know of the moment.
    pub(in crate::db) fn pick_context<'a>(
        &self,
        state: &'a State,
        known: &'a FamilyState,
    ) -> PickContext<'a> {
        let cursors = state
            .versions
            .family(known.family.id)
            .map_or(&[][..], |family| &family.compact_cursors);
        PickContext {
            running: &known.compacting.running,
            bottommost_threshold: self.snapshots.released(),
            now_unix_seconds: self.context.env.clock.unix_seconds(),
            cursors,
            forced_gc_below: known.compacting.forced_gc_below,
            merging: known.compacting.merging.as_ref(),
            collecting: &known.compacting.collecting,
            oldest_snapshot: self.oldest_snapshot(),
            deleted: &known.deleted,
            unflushed_blob_bytes: known.unflushed_blob_bytes(),
            hole_size: self.hole_size_of(state, known),
            hole_speed: self.disk.recent_hole_speed(),
            ..PickContext::default()
        }
    }

    /// Marks the inputs of a plan as taken.
    pub(in crate::db) fn begin_compaction(&self, state: &mut State, job: &CompactionJob) {
        let running =
            state.families.get(&job.family.id).map_or(0, |known| known.compacting.running.len());
        // Where none runs, a marked file is set aside.
        let takes_marked = job.plan.drops_oldest() && running == 0;
        for (_, file) in job.plan.files() {
            let was = file.being_compacted.swap(true, Ordering::AcqRel);
            assert!(!was || takes_marked, "a file is an input of one compaction at a time");
        }
        state.running.compactions += 1;
        job.begin_anyway();
        if let Some(known) = state.families.get_mut(&job.family.id) {
            known.compacting.running.push(job.plan.running());
            known.compacting.in_turn += usize::from(job.plan.takes_turn);
            if !job.plan.emptied.is_empty() {
                known.compacting.collecting.clone_from(&job.plan.emptied);
            }
        }
    }

    pub(in crate::db) fn end_compaction(&self) {
        told::end_compaction(self, &mut self.state.lock());
        if !Mutant::ForgetEndOfCompaction.is_on() {
            self.progress.notify_all();
        }
    }

    fn install_compaction(
        &self,
        state: &mut State,
        job: &CompactionJob,
        output: &JobOutput,
    ) -> Result<()> {
        let mut edit = VersionEdit::new(job.family.id);
        for LevelInput { level, files } in &job.plan.inputs {
            for file in files {
                edit.delete_file(*level, file.number());
                if job.plan.trivial_move {
                    edit.add_file(job.plan.output_level, file.meta.clone());
                }
            }
        }
        output.describe(&mut edit, job.plan.output_level);
        if let Some(cursor) = round_robin_cursor(job) {
            edit.compact_cursors.push(cursor);
        }
        if job.plan.trivial_move {
            self.context.statistics.add(Ticker::TrivialMoves, 1);
        }
        let before = job.family.current.load().version.clone();
        if !output.is_remote {
            told::note_written(self, job, output);
        }
        self.apply_edits(state, vec![edit], &[(&job.family, output)])?;
        if output.is_remote {
            // If it had not fitted, the compaction would be done here.
            told::note_written(self, job, output);
        }
        let version = state.versions.family(job.family.id).expect("open").current.clone();
        let outputs = version.levels[job.plan.output_level].iter();
        outputs
            .filter(|file| output.settled.contains(&file.number()))
            .for_each(|file| file.settled.store(true, Ordering::Relaxed));
        if let Some(known) = state.families.get_mut(&job.family.id) {
            known.activity.note_compaction(&job.plan, output);
            known.note_deleted(&output.deleted, &version);
            let next = self.file_numbers.next();
            let settings = leveled_settings(&job.family.options.load(), &version.paths);
            let after = (&*version, last_level(&version, &settings));
            let merging = known.compacting.merging.take();
            known.compacting.merging = job.plan.merging_after(merging, after, next);
            let is_limited = job.family.options.load().max_space_amplification > 0.0;
            if is_limited && job.plan.bottommost && !before.blob_files.is_empty() {
                let space = |version| BlobSpace::of(version, settings.holds_young());
                known.overwriting.note_merge(&space(&before), &space(&version));
            }
            let now_us = self.context.env.clock.now_us();
            if job.plan.drops_keys() || output.is_filtered {
                known.install_another_past(version, now_us)
            } else {
                known.install(version, now_us)
            }
            if job.plan.reason != CompactionReason::BlobGarbage {
                known.compacting.forced_gc_below = self.file_numbers.next();
            }
        }
        state.note(job.family.id);
        told::note_compacted(self, job, output);
        Ok(())
    }

    /// Makes what a compaction has written part of the tree, and lets its inputs go, but for those
    /// that are set aside.
    pub(in crate::db) fn install_or_let_go(
        &self,
        job: &CompactionJob,
        outcome: Result<JobOutput>,
    ) -> Installation {
        let is_remote = outcome.as_ref().is_ok_and(|output| output.is_remote);
        let mut lost = None;
        let mut state = self.state.lock();
        let outcome = outcome.and_then(|output| {
            if job.family.is_dropped() {
                Sometimes::DroppedWhileCompacting.reached();
                lost = Some(output);
                return Ok(Vec::new());
            }
            self.install_compaction(&mut state, job, &output)?;
            Ok(output.tables.iter().map(|table| table.number).collect())
        });
        match outcome {
            Err(error) if is_remote && error.code() == Code::Corruption => {
                Installation::Refused(error)
            }
            outcome => self.let_go_after(job, state, outcome, lost),
        }
    }

    /// Ends a compaction that is part of the tree, or never will be.
    fn let_go_after(
        &self,
        job: &CompactionJob,
        mut state: MutexGuard<'_, State>,
        outcome: Result<Vec<FileNumber>>,
        lost: Option<JobOutput>,
    ) -> Installation {
        if outcome.is_err() || lost.is_some() {
            told::note_not_compacted(self, job, &outcome);
        }
        if outcome.is_ok() && job.plan.rewrites() {
            self.found_space(&mut state);
        }
        let aside = outcome
            .as_ref()
            .err()
            .map_or(Vec::new(), |error| damage::set_aside(self, &mut state, job, error));
        damage::note_apart(self, &mut state, job);
        job.release(&mut state, &aside);
        put_off::note_put_off(self, &mut state, job);
        self.update_stall(&mut state);
        // What failed is tried again by the thread that met that, and in a while: unless it was
        // another's.
        if outcome.is_ok()
            || job.is_manual
            || !aside.is_empty()
            || job.is_in_vain.load(Ordering::Relaxed)
        {
            self.announce_work(&mut state);
        }
        // Writers that wait for it need not wait for the opening of its tables as well.
        self.progress.notify_all();
        Installation::Ended { outcome, lost: lost.map(Box::new) }
    }

    /// Begins a compaction that a caller has planned from what there is at this moment, if there is
    /// one.
    ///
    /// # Errors
    /// Those of the planning.
    pub(in crate::db) fn begin_planned<T>(
        &self,
        plan: impl FnOnce(&State) -> Result<Option<(CompactionJob, T)>>,
    ) -> Result<Option<(CompactionJob, T)>> {
        let mut state = self.state.lock();
        damage::take_back_outnumbered(self, &mut state);
        let planned = plan(&state)?;
        if let Some((job, _)) = &planned {
            self.begin_compaction(&mut state, job);
        }
        Ok(planned)
    }

    /// The same for a compaction that waits until no other is in the way. Automatic ones are held
    /// back meanwhile.
    ///
    /// # Errors
    /// Those of the planning; `Incomplete`: canceled; what lies in the way for good.
    pub(in crate::db) fn begin_when_free(
        &self,
        family: &Family,
        control: Option<&CompactionControl>,
        plan: impl Fn(&State) -> Result<RangePlan>,
        job: impl FnOnce(CompactionPlan) -> CompactionJob,
    ) -> Result<Option<Piece>> {
        let mut state = self.state.lock();
        let Some((plan, rest)) = self.wait_for_plan(&mut state, family, control, plan)? else {
            return Ok(None);
        };
        let job = job(plan);
        self.begin_compaction(&mut state, &job);
        Ok(Some((job, rest)))
    }

    /// Waits for such a plan, which rewrites nothing, and makes it part of the tree at once: from
    /// the look at the tree to the change of it nobody writes to a level on the way.
    ///
    /// # Errors
    /// As [`Self::begin_when_free`]; those of the MANIFEST.
    pub(in crate::db) fn move_when_free(
        &self,
        family: &Family,
        control: Option<&CompactionControl>,
        plan: impl Fn(&State) -> Result<RangePlan>,
        job: impl FnOnce(CompactionPlan) -> CompactionJob,
    ) -> Result<()> {
        let mut state = self.state.lock();
        let Some((plan, _)) = self.wait_for_plan(&mut state, family, control, plan)? else {
            return Ok(());
        };
        let job = job(plan);
        told::note_begun(self, &job, |_| None);
        self.install_compaction(&mut state, &job, &JobOutput::default())?;
        self.update_stall(&mut state);
        self.announce_work(&mut state);
        self.progress.notify_all();
        Ok(())
    }

    /// What there is to do, as soon as nothing is in the way.
    fn wait_for_plan(
        &self,
        state: &mut MutexGuard<'_, State>,
        family: &Family,
        control: Option<&CompactionControl>,
        plan: impl Fn(&State) -> Result<RangePlan>,
    ) -> Result<Option<(CompactionPlan, Option<Vec<u8>>)>> {
        let mut waiting = None;
        loop {
            let stopped = paused_work::check_not_stopped(self, true)
                .and_then(|()| check_not_canceled(control));
            if let Err(canceled) = stopped {
                if waiting.is_some() {
                    self.hold_automatic_in(state, family, -1);
                }
                return Err(canceled);
            }
            damage::take_back_outnumbered(self, state);
            // Under the lock that a failing worker takes before it wakes us: what blocks us may
            // never end.
            let plan = self.disk.check_changeable().and_then(|()| plan(state));
            let plan = match plan {
                Ok(RangePlan::Blocked) => {
                    damage::blocked_by_damage(state, family).map(|()| RangePlan::Blocked)
                }
                plan => plan,
            };
            if let Ok(RangePlan::Blocked) = plan {
                if waiting.is_none() {
                    waiting = Some(self.background.sleep_for_them());
                    self.hold_automatic_in(state, family, 1);
                    Sometimes::ManualCompactionWaited.reached();
                }
                self.wait_for_progress(state, control.map(|_| LOOKS_WHETHER_CANCELED));
                continue;
            }
            if waiting.is_some() {
                self.hold_automatic_in(state, family, -1);
            }
            return Ok(match plan? {
                RangePlan::Ready { plan, rest } => Some((*plan, rest)),
                _ => None,
            });
        }
    }

    /// Holds automatic compactions of a family back for one more manual one, or for one less.
    pub(in crate::db) fn hold_automatic(&self, family: &Family, change: isize) {
        self.hold_automatic_in(&mut self.state.lock(), family, change);
    }

    fn hold_automatic_in(&self, state: &mut State, family: &Family, change: isize) {
        if let Some(known) = state.families.get_mut(&family.id) {
            known.compacting.manual = known.compacting.manual.saturating_add_signed(change);
        }
        state.note(family.id);
    }

    /// Asks for tables with keys from `begin` to `end` to be compacted soon.
    pub(in crate::db) fn suggest(&self, family: &Family, begin: Option<&[u8]>, end: Option<&[u8]>) {
        let mut state = self.state.lock();
        let version = family.current.load().version.clone();
        for level in 0..version.last_level_with_files().unwrap_or(0) {
            for file in version.files_overlapping(level, begin, end) {
                file.suggested.store(true, Ordering::Relaxed);
            }
        }
        state.note(family.id);
        self.announce_work(&mut state);
    }

    /// Notes which part of the values that are written overwrites others.
    pub(in crate::db) fn note_share_of_overwrites(&self, family: &Family, share: f64) {
        let mut state = self.state.lock();
        if let Some(known) = state.families.get_mut(&family.id) {
            known.overwriting.note_share(share);
        }
        state.note(family.id);
    }

    /// Begins no more compactions of a family by itself.
    pub(in crate::db) fn hold_compactions(&self, family: &Family) {
        let mut state = self.state.lock();
        family.hold(true);
        state.note(family.id);
        self.update_stall(&mut state);
        // Who takes work tells listeners of it that writers go on.
        self.announce_work(&mut state);
    }

    /// What [`Self::hold_compactions`] began has ended.
    pub(in crate::db) fn let_compactions_go(&self, family: &Family) {
        let mut state = self.state.lock();
        family.hold(false);
        self.changed_in(&mut state, family.id);
    }

    /// Whether all runs are merged in pieces, or blob files emptied by way of a few tables at a
    /// time, for the sake of scratch.
    pub(in crate::db) fn goes_on_in_pieces(&self, family: ColumnFamilyId) -> bool {
        let state = self.state.lock();
        let known = state.families.get(&family);
        known.is_some_and(|known| {
            known.compacting.merging.is_some() || !known.compacting.collecting.is_empty()
        })
    }

    /// The families that want a compaction.
    pub(in crate::db) fn compactions_wanted(&self, state: &State) -> Vec<ColumnFamilyId> {
        let wants = |known: &FamilyState| {
            let family = &known.family;
            !family.is_held()
                && compacts_by_itself(&family.options.load())
                && self.has_plan(state, known)
        };
        state.families.values().filter(|known| wants(known)).map(|known| known.family.id).collect()
    }

    fn has_plan(&self, state: &State, known: &FamilyState) -> bool {
        let version = known.family.current.load().version.clone();
        pick_compaction(&known.family.options.load(), &version, &self.pick_context(state, known))
            .is_some()
    }

    /// Whether any plan is waiting for a family.
    pub(in crate::db) fn compaction_pending(&self, family: &Family) -> bool {
        let state = self.state.lock();
        state.families.get(&family.id).is_some_and(|known| self.has_plan(&state, known))
    }

    /// Whether a compaction finds out whether there is room again, for which those that want some
    /// wait.
    fn waits_for_space(&self, state: &State) -> bool {
        state.running.finds_out.strong_count() > 0 && self.context.poison.check_starved().is_err()
    }

    /// About the most that the compactions that run may write still.
    pub(in crate::db) fn bytes_in_work(state: &State) -> u64 {
        let of_family = |known: &FamilyState| {
            let version = known.family.current.load().version.clone();
            // What is set aside bears the mark as well.
            let is_merged = |file: &TableFile| file.is_being_compacted() && !file.is_set_aside();
            let files = version.files().filter(|(_, file)| is_merged(file));
            let tables = files.map(|(_, file)| file.meta.size).fold(0, u64::saturating_add);
            tables.saturating_add(bytes_of_blobs(&version, &known.compacting.collecting))
        };
        state.families.values().map(of_family).fold(0, u64::saturating_add)
    }

    /// Whether there is room for a compaction beside those that may write so much, and for what is
    /// to stay free: where its tables go, and where its blob files would.
    pub(in crate::db) fn has_room_beside(
        &self,
        job: &CompactionJob,
        in_work: u64,
        free: &FreeSpace,
    ) -> bool {
        let plan = &job.plan;
        let tables = plan.input_bytes();
        let blobs = bytes_of_blobs(&job.version, &plan.emptied);
        let wanted = [tables, blobs, self.disk.wanted_space()]
            .into_iter()
            .fold(in_work, u64::saturating_add);
        let has_room = |directory: &Path| free.0.get(directory).is_some_and(|free| *free >= wanted);
        let (of_tables, of_blobs) =
            (job.family.paths.directory(plan.path_id), job.family.paths.of_blobs());
        let writes_blobs =
            job.family.options.load().separates_values() || !job.version.blob_files.is_empty();
        has_room(of_tables) && (of_tables == of_blobs || !writes_blobs || has_room(of_blobs))
    }

    /// One that is about to begin finds out whether there is room again, where that is the
    /// question: unless another does so, beside which there was room for it.
    fn find_out(&self, state: &mut State, job: &mut CompactionJob) {
        let is_asked = self.context.poison.check_starved().is_err()
            && state.running.finds_out.strong_count() == 0;
        if is_asked && job.plan.rewrites() {
            let found_out = job.holds.finds_out.insert(Arc::new(()));
            state.running.finds_out = Arc::downgrade(found_out);
        }
    }

    /// There is room: those that run now were begun while there was some, if it is gone again.
    fn found_space(&self, state: &mut State) {
        self.context.poison.record_starved(None);
        state.running.finds_out = Weak::new();
    }

    /// A look found no compaction that could begin: nobody wants room any longer, unless it passed
    /// over a family.
    fn note_nothing_to_do(&self, state: &mut State) {
        if self.context.poison.check_starved().is_ok() || state.running.finds_out.strong_count() > 0
        {
            return;
        }
        // One whose automatic compactions are held wants none until it is let go, of which somebody
        // tells.
        let is_passed_over = |known: &FamilyState| {
            known.compacting.manual > 0
                || known.compacting.in_turn > 0
                || !known.compacting.running.is_empty()
        };
        if !state.families.values().any(is_passed_over) {
            self.found_space(state);
        }
    }

    /// The next may have its turn. Whoever looks for work does so at once if this one says so.
    pub(in crate::db) fn end_turn(&self, family: ColumnFamilyId, at_once: bool) {
        let mut state = self.state.lock();
        let Some(known) = state.families.get_mut(&family) else { return };
        known.compacting.in_turn -= 1;
        state.note(family);
        if at_once {
            self.announce_work(&mut state);
        }
        // Somebody may have asked for one.
        self.progress.notify_all();
    }
}
