//! Which compaction runs next, how its output becomes part of the tree, and which files stand in its way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Weak};

use crate::base::file_name::FileKind;
use crate::base::sync::Ordering;
use crate::base::{Code, ColumnFamilyId, Comparator, Error, FileNumber, Result, Sometimes, SubCode};
use crate::compaction::pick::{
    BlobSpace, CompactionPlan, CompactionReason, LevelInput, PickContext, kept_by_damage,
};
use crate::db::events::{Event, job_info};
use crate::db::family::{Family, FamilyState};
use crate::db::jobs::compact::CompactionJob;
use crate::db::jobs::job::JobOutput;
use crate::db::settings::{compacts_by_itself, pick_compaction};
use crate::db::state::State;
use crate::db::statistics::Ticker;
use crate::db::tree::Tree;
use crate::env::{Role, is_out_of_descriptors};
use crate::manifest::{CompactCursor, TableFile, Version, VersionEdit};
use crate::options::{CompactionPri, DamagedFile};

impl Tree {
    /// The first plan of a family that wants one, level 0 first; its inputs are marked. So much was `free` just before.
    pub(in crate::db) fn take_compaction(
        &self,
        state: &mut State,
        free: &FreeSpace,
    ) -> Option<CompactionJob> {
        if state.paused.compactions > 0 {
            return None;
        }
        state.note_time(self.context.env.clock.now_us());
        self.take_back_outnumbered(state);
        let mut job = self.find_compaction(state, free);
        if job.is_none() && !self.has_workers() {
            // Nobody would come again in a while.
            state.note_all();
            job = self.find_compaction(state, free);
        }
        let Some(mut job) = job else {
            self.note_nothing_to_do(state);
            return None;
        };
        self.find_out(state, &mut job);
        self.begin_compaction(state, &job);
        // There may be one for another thread, too.
        self.announce(Role::Compaction);
        Some(job)
    }

    /// The first plan of the families that may want one. Those that do not are not asked again until something changes.
    pub(in crate::db) fn find_compaction(
        &self,
        state: &mut State,
        free: &FreeSpace,
    ) -> Option<CompactionJob> {
        let waits = self.waits_for_space(state);
        let in_work = if waits { Self::bytes_in_work(state) } else { 0 };
        let mut idle = Vec::new();
        let job = state.agenda.to_compact().find_map(|id| {
            let known = state.families.get(&id)?;
            // Who holds it lets it go with a word.
            let job = if known.compacting.manual == 0 { self.compaction_of(state, known) } else { None };
            idle.extend(job.is_none().then_some(id));
            // It is asked again, since nothing of it changes when there is space.
            job.filter(|job| !waits || passes(&job.plan) || self.has_room_beside(job, in_work, free))
        });
        self.context.statistics.add(Ticker::FamiliesLookedAt, idle.len() as u64 + u64::from(job.is_some()));
        idle.into_iter().for_each(|id| state.wants_none(id));
        job
    }

    pub(in crate::db) fn compaction_of(&self, state: &State, known: &FamilyState) -> Option<CompactionJob> {
        let options = known.family.options.load();
        if known.family.is_held() || !compacts_by_itself(&options) {
            return None;
        }
        let version = known.family.current.load().version.clone();
        let context =
            PickContext { makes_room: known.compacting.in_turn > 0, ..self.pick_context(state, known) };
        let mut plan = pick_compaction(&options, &version, &context)?;
        if plan.emptied.is_empty() && options.max_space_amplification > 0.0 {
            // What passes by anyway need not be rewritten for their sake.
            let live =
                known.compacting.collecting.iter().filter(|file| version.blob_files.contains_key(*file));
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
        let cursors =
            state.versions.family(known.family.id).map_or(&[][..], |family| &family.compact_cursors);
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
            hole_speed: self.disk.hole_speed.lately(self.context.env.clock.now_us()),
            ..PickContext::default()
        }
    }

    /// Marks the inputs of a plan as taken.
    pub(in crate::db) fn begin_compaction(&self, state: &mut State, job: &CompactionJob) {
        let running = state.families.get(&job.family.id).map_or(0, |known| known.compacting.running.len());
        // Where none runs, a marked file is set aside.
        let takes_marked = job.plan.drops_oldest() && running == 0;
        for (_, file) in job.plan.files() {
            let was = file.being_compacted.swap(true, Ordering::AcqRel);
            assert!(!was || takes_marked, "a file is an input of one compaction at a time");
        }
        state.running.compactions += 1;
        if let Some(known) = state.families.get_mut(&job.family.id) {
            known.compacting.running.push(job.plan.running());
            known.compacting.in_turn += usize::from(job.plan.takes_turn);
            if !job.plan.emptied.is_empty() {
                known.compacting.collecting.clone_from(&job.plan.emptied);
            }
        }
    }

    pub(in crate::db) fn end_compaction(&self) {
        self.state.lock().running.compactions -= 1;
        self.progress.notify_all();
    }

    pub(in crate::db) fn install_compaction(
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
        self.apply_edits(state, vec![edit], &[(&job.family, output)])?;
        self.context.events.note(|| {
            let inputs = job.plan.files().map(|(_, file)| file.number()).collect();
            Event::Compacted(job_info(&job.family, inputs, job.plan.output_level, output))
        });
        let version = state.versions.family(job.family.id).expect("open").current.clone();
        let outputs = version.levels[job.plan.output_level].iter();
        outputs
            .filter(|file| output.settled.contains(&file.number()))
            .for_each(|file| file.settled.store(true, Ordering::Relaxed));
        if let Some(known) = state.families.get_mut(&job.family.id) {
            known.activity.note_compaction(&job.plan, output);
            known.note_deleted(&output.deleted, &version);
            let next = self.file_numbers.next();
            known.compacting.merging =
                job.plan.merging_after(known.compacting.merging.take(), &version, next);
            let is_limited = job.family.options.load().max_space_amplification > 0.0;
            if is_limited && job.plan.bottommost && !before.blob_files.is_empty() {
                known.overwriting.note_merge(&BlobSpace::of(&before), &BlobSpace::of(&version));
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
        Ok(())
    }

    /// If a compaction was in vain, its inputs, tables of level 0, are not merged with one another again before the oldest
    /// snapshot is another than when it began. Writers do not wait for that, but do again once there are no such tables.
    pub(in crate::db) fn note_apart(&self, state: &mut State, job: &CompactionJob) {
        let oldest = self.oldest_snapshot();
        let (id, family) = (job.family.id, &job.family.name);
        if job.is_in_vain.load(Ordering::Relaxed) {
            Sometimes::Level0KeptApart.reached();
            state.damage.apart.insert(id);
            tracing::warn!(
                family,
                "range deletions of level 0 do not fit into fewer tables, which stay as they are"
            );
        } else if state.damage.apart.contains(&id) {
            let version = &job.family.current.load().version;
            if !version.levels[0].iter().any(|file| file.is_kept_apart(oldest)) {
                state.damage.apart.remove(&id);
            }
        }
    }

    /// Whether all runs are merged in pieces, or blob files emptied by way of a few tables at a time, for the sake of scratch.
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
            !family.is_held() && compacts_by_itself(&family.options.load()) && self.has_plan(state, known)
        };
        state.families.values().filter(|known| wants(known)).map(|known| known.family.id).collect()
    }

    pub(in crate::db) fn has_plan(&self, state: &State, known: &FamilyState) -> bool {
        let version = known.family.current.load().version.clone();
        pick_compaction(&known.family.options.load(), &version, &self.pick_context(state, known)).is_some()
    }

    /// Whether any plan is waiting for a family.
    pub(in crate::db) fn compaction_pending(&self, family: &Family) -> bool {
        let state = self.state.lock();
        state.families.get(&family.id).is_some_and(|known| self.has_plan(&state, known))
    }

    /// Whether a compaction finds out whether there is room again, for which those that want some wait.
    pub(in crate::db) fn waits_for_space(&self, state: &State) -> bool {
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

    /// Whether there is room for a compaction beside those that may write so much, and for what is to stay free: where its tables
    /// go, and where its blob files would.
    pub(in crate::db) fn has_room_beside(&self, job: &CompactionJob, in_work: u64, free: &FreeSpace) -> bool {
        let plan = &job.plan;
        let tables = plan.files().map(|(_, file)| file.meta.size).fold(0, u64::saturating_add);
        let blobs = bytes_of_blobs(&job.version, &plan.emptied);
        let wanted = [tables, blobs, self.disk.wanted_space()].into_iter().fold(in_work, u64::saturating_add);
        let has_room = |directory: &Path| free.0.get(directory).is_some_and(|free| *free >= wanted);
        let (of_tables, of_blobs) = (job.family.paths.directory(plan.path_id), job.family.paths.of_blobs());
        let writes_blobs = job.family.options.load().separates_values() || !job.version.blob_files.is_empty();
        has_room(of_tables) && (of_tables == of_blobs || !writes_blobs || has_room(of_blobs))
    }

    /// One that is about to begin finds out whether there is room again, where that is the question: unless another does so,
    /// beside which there was room for it.
    pub(in crate::db) fn find_out(&self, state: &mut State, job: &mut CompactionJob) {
        let is_asked =
            self.context.poison.check_starved().is_err() && state.running.finds_out.strong_count() == 0;
        if is_asked && job.plan.rewrites() {
            let found_out = job.finds_out.insert(Arc::new(()));
            state.running.finds_out = Arc::downgrade(found_out);
        }
    }

    /// There is room: those that run now were begun while there was some, if it is gone again.
    pub(in crate::db) fn found_space(&self, state: &mut State) {
        self.context.poison.record_starved(None);
        state.running.finds_out = Weak::new();
    }

    /// A look found no compaction that could begin: nobody wants room any longer, unless it passed over a family.
    pub(in crate::db) fn note_nothing_to_do(&self, state: &mut State) {
        if self.context.poison.check_starved().is_ok() || state.running.finds_out.strong_count() > 0 {
            return;
        }
        // One whose automatic compactions are held wants none until it is let go, of which somebody tells.
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

    /// A compaction has failed: sets those of its inputs aside that could not be read, with the lock held under which their
    /// marks would be taken off; which they are.
    pub(in crate::db) fn set_aside(
        &self,
        state: &mut State,
        job: &CompactionJob,
        error: &Error,
    ) -> Vec<FileNumber> {
        if !may_be_damage(error) {
            return Vec::new();
        }
        let inputs = || job.plan.files().map(|(_, file)| file);
        let aside: Vec<FileNumber> = match file_of(error) {
            Some(FileKind::Table(number)) => {
                inputs().map(|file| file.number()).filter(|n| *n == number).collect()
            }
            Some(FileKind::Blob(number)) if job.version.blob_files.contains_key(&number) => {
                inputs().filter(|file| refers_to(file, number)).map(|file| file.number()).collect()
            }
            _ => Vec::new(),
        };
        if !aside.is_empty() {
            Sometimes::TableSetAside.reached();
            self.note_in(state, &job.family, &job.version, error);
            state.damage.crippled.insert(job.family.id);
            if job.is_outnumbered.load(Ordering::Relaxed) {
                let until = (job.family.id, job.oldest_snapshot.load(Ordering::Relaxed));
                state.damage.outnumbered.extend(aside.iter().map(|number| (*number, until)));
            }
            let inputs = inputs().filter(|file| aside.contains(&file.number()));
            inputs.for_each(|file| file.set_aside.store(true, Ordering::Relaxed));
            if let Some(known) = state.families.get_mut(&job.family.id) {
                let kept = kept_by_damage(&known.family.current.load().version);
                known.compacting.collecting.retain(|file| !kept.contains(file));
            }
        }
        aside
    }

    /// Takes back tables that were set aside for the sake of snapshots which are gone.
    pub(in crate::db) fn take_back_outnumbered(&self, state: &mut State) {
        if state.damage.outnumbered.is_empty() {
            return;
        }
        let oldest = self.oldest_snapshot();
        let mut ready = BTreeMap::new();
        state.damage.outnumbered.retain(|number, (family, under)| {
            let stays = oldest <= *under;
            if !stays {
                ready.insert(*number, *family);
            }
            stays
        });
        for (number, id) in &ready {
            let Some(known) = state.families.get(id) else { continue };
            let version = known.family.current.load().version.clone();
            if let Some((_, file)) = version.files().find(|(_, file)| file.number() == *number) {
                Sometimes::TableTakenBack.reached();
                file.set_aside.store(false, Ordering::Relaxed);
                file.being_compacted.store(false, Ordering::Release);
            }
            // What is wrong with it besides stays known.
            if state.damage.files.get(number).is_some_and(DamagedFile::waits_for_snapshots) {
                state.damage.files.remove(number);
            }
            if !version.files().any(|(_, file)| file.is_set_aside()) {
                state.damage.crippled.remove(id);
            }
            state.note(*id);
        }
        if !ready.is_empty() {
            self.update_stall(state);
        }
    }

    /// Whether a compaction failed because an input is damaged, which is then set aside.
    pub(in crate::db) fn is_set_aside(&self, error: &Error) -> bool {
        let number = file_of(error).and_then(FileKind::number);
        may_be_damage(error)
            && number.is_some_and(|number| self.state.lock().damage.files.contains_key(&number))
    }

    /// What a manual compaction of the family would wait for in vain.
    pub(in crate::db) fn blocked_by_damage(&self, state: &State, family: &Family) -> Result<()> {
        let goes_on =
            |known: &FamilyState| !known.compacting.running.is_empty() || known.compacting.in_turn > 0;
        let is_running = state.families.get(&family.id).is_some_and(goes_on);
        let damaged = state.damage.files.values().find(|file| file.family == family.id && !is_running);
        match damaged {
            None => Ok(()),
            Some(file) => Err(file.error.clone().context("a damaged file is in the way of the compaction")),
        }
    }

    pub(in crate::db) fn note_in(
        &self,
        state: &mut State,
        family: &Family,
        version: &Version,
        error: &Error,
    ) {
        let Some(number) = file_of(error).and_then(FileKind::number) else { return };
        let Some(range) = range_of(family.comparator(), version, number) else { return };
        if state.damage.files.contains_key(&number) {
            return;
        }
        let file = DamagedFile {
            family: family.id,
            family_name: family.name.clone(),
            number,
            path: error.path().map(Path::to_path_buf).unwrap_or_default(),
            key_range: range,
            error: error.clone(),
        };
        if file.waits_for_snapshots() {
            tracing::warn!(%error, "a table is set aside")
        } else {
            tracing::error!(%error, "a file is damaged")
        }
        self.context.events.note(|| Event::Damaged(file.clone()));
        state.damage.files.insert(number, file);
    }
}

/// Where the next compaction of the start level begins, if its tables take turns.
pub(in crate::db) fn round_robin_cursor(job: &CompactionJob) -> Option<CompactCursor> {
    let level = job.plan.start_level();
    if level == 0 || job.family.options.load().compaction_pri != CompactionPri::RoundRobin {
        return None;
    }
    let last = job.plan.inputs[0].files.last()?;
    Some(CompactCursor { level, key: last.meta.largest.clone() })
}

pub(in crate::db) fn file_of(error: &Error) -> Option<FileKind> {
    FileKind::parse(error.path()?.file_name()?.to_str()?)
}

/// The smallest and the largest key that depend on a file; `None` if the version does not have it.
pub(in crate::db) fn range_of(
    user: &Comparator,
    version: &Version,
    number: FileNumber,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let is_blob = version.blob_files.contains_key(&number);
    let concerned = version
        .files()
        .map(|(_, file)| file)
        .filter(|file| file.number() == number || is_blob && refers_to(file, number));
    concerned.fold(None, |range: Option<(Vec<u8>, Vec<u8>)>, file| {
        let (smallest, largest) = (file.meta.smallest.user_key(), file.meta.largest.user_key());
        Some(match range {
            None => (smallest.to_vec(), largest.to_vec()),
            Some((low, high)) => (
                if user.compare(smallest, &low).is_lt() { smallest.to_vec() } else { low },
                if user.compare(largest, &high).is_gt() { largest.to_vec() } else { high },
            ),
        })
    })
}

pub(in crate::db) fn refers_to(table: &TableFile, blob_file: FileNumber) -> bool {
    match (&table.meta.blob_references, table.meta.oldest_blob_file) {
        (Some(references), _) => references.bytes_in(blob_file) > 0,
        (None, oldest) => oldest.is_some_and(|oldest| oldest <= blob_file),
    }
}

/// Whether an error says that a file is not what was written, or cannot be read, be it only by this engine.
pub(in crate::db) fn may_be_damage(error: &Error) -> bool {
    matches!(error.code(), Code::Corruption | Code::IoError | Code::NotSupported)
        && error.subcode() != SubCode::NoSpace
        && !is_out_of_descriptors(error)
}

pub(in crate::db) fn bytes_of_blobs(version: &Version, files: &BTreeSet<FileNumber>) -> u64 {
    let known = files.iter().filter_map(|number| version.blob_files.get(number));
    known.map(|blob| blob.file.meta.total_bytes).fold(0, u64::saturating_add)
}

/// Whether a compaction needs no room, so that it may begin where others wait for some.
pub(in crate::db) fn passes(plan: &CompactionPlan) -> bool {
    if plan.rewrites() {
        Sometimes::CompactionAloneOnFullDisk.reached();
    }
    !plan.rewrites()
}

/// Bytes that are free in the directories of tables and blob files, as far as their file systems tell.
#[derive(Debug, Default)]
pub(in crate::db) struct FreeSpace(pub(in crate::db) BTreeMap<Arc<Path>, u64>);
