//! The tree: versions, families, and the jobs that run on them. The state lock is taken here.

pub(in crate::db) mod activity;
pub(in crate::db) mod agenda;
pub(in crate::db) mod compaction_job;
pub(super) mod compactions;
pub(super) mod damage;
pub(super) mod directories;
pub(in crate::db) mod directory_owner;
pub(super) mod edits;
pub(in crate::db) mod family_state;
pub(super) mod flushes;
pub(in crate::db) mod following;
pub(in crate::db) mod history;
pub(super) mod ingestion;
pub(in crate::db) mod key_faults;
pub(in crate::db) mod output;
pub(in crate::db) mod partitioning;
pub(super) mod paused_work;
pub(super) mod pressure;
pub(in crate::db) mod pressures;
pub(in crate::db) mod promise;
mod put_off;
pub(in crate::db) mod requested_pauses;
pub(in crate::db) mod state;
pub(in crate::db) mod told;
pub(in crate::db) mod waiting_deletions;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::base::perf::{self, PerfMetric};
use crate::base::sync::{Condvar, Mutex, MutexGuard, Rank, RwLock, ranked};
use crate::base::{
    Code, ColumnFamilyId, Error, FileNumber, MAX_SEQUENCE_NUMBER, Result, SequenceNumber,
    SnapshotList, SubCode,
};
use crate::compaction::pick::{BlobWaste, LevelTargets, compensated_sizes, scores};
use crate::db::background::Background;
use crate::db::context::Context;
use crate::db::disk::Disk;
use crate::db::family::{Family, SuperVersion};
use crate::db::limits::Limits;
use crate::db::memory::{MemoryUsage, add_tables};
use crate::db::settings::{level0_files, leveled_settings};
use crate::db::tables::Tables;
use crate::db::tree::activity::Activity;
use crate::db::tree::compaction_job::CompactionJob;
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::paused_work::{CompactionStops, check_not_paused};
use crate::db::tree::state::State;
use crate::db::wal_space::WalSpace;
use crate::db::write_control::WriteControl;
use crate::env::Role;
use crate::manifest::{FileNumbers, Version, VersionSet};
use crate::options::{BackgroundErrorReason, ColumnFamilyOptions, CompactionStyle};

/// Does background work where there are no threads for it.
pub(super) trait Steps: Send + Sync {
    /// Does one piece of work, if there is any; whether there was.
    ///
    /// # Errors
    /// Those of the work.
    fn background_step(&self) -> Result<bool>;
}

/// What changes as tables come and go.
pub(super) struct Tree {
    context: Arc<Context>,
    disk: Arc<Disk>,
    limits: Arc<Limits>,
    tables: Arc<Tables>,
    snapshots: Arc<SnapshotList>,
    background: Arc<Background>,
    wal_space: Arc<WalSpace>,
    control: Arc<WriteControl>,
    state: Mutex<State>,
    stops: CompactionStops,
    /// By id; what handles and readers go through.
    pub(super) families: RwLock<BTreeMap<ColumnFamilyId, Arc<Family>>>,
    pub(super) file_numbers: Arc<FileNumbers>,
    /// Signalled when a worker changed the tree or failed.
    progress: Condvar,
    steps: OnceLock<Weak<dyn Steps>>,
}

/// The parts that the tree, and what stands on it, stand on.
#[derive(Clone)]
pub(super) struct Below {
    pub(super) context: Arc<Context>,
    pub(super) disk: Arc<Disk>,
    pub(super) limits: Arc<Limits>,
    pub(super) tables: Arc<Tables>,
    pub(super) snapshots: Arc<SnapshotList>,
    pub(super) background: Arc<Background>,
    pub(super) control: Arc<WriteControl>,
    pub(super) wal_space: Arc<WalSpace>,
}

impl Tree {
    pub(super) fn new(
        below: Below,
        versions: VersionSet,
        families: BTreeMap<ColumnFamilyId, FamilyState>,
    ) -> Self {
        let handles = families.iter().map(|(id, known)| (*id, known.family.clone())).collect();
        Self {
            context: below.context,
            disk: below.disk,
            limits: below.limits,
            tables: below.tables,
            snapshots: below.snapshots,
            background: below.background,
            wal_space: below.wal_space,
            control: below.control,
            file_numbers: versions.file_numbers().clone(),
            state: ranked(Rank::State, State::new(versions, families)),
            stops: CompactionStops::default(),
            families: RwLock::new(handles),
            progress: Condvar::new(),
            steps: OnceLock::new(),
        }
    }

    /// The bytes of a timestamp of the family of that number; 0 if it has none, or is gone.
    pub(super) fn stamp_size(&self, id: ColumnFamilyId) -> usize {
        self.families.read().get(&id).map_or(0, |family| family.order.timestamp_size())
    }

    /// The state itself.
    #[cfg(test)]
    pub(in crate::db) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Whether somebody holds the state.
    #[cfg(test)]
    pub(in crate::db) fn is_locked(&self) -> bool {
        self.state.try_lock().is_none()
    }

    /// Who does the work where no threads do.
    pub(super) fn set_steps(&self, steps: Weak<dyn Steps>) {
        self.steps.get_or_init(|| steps);
    }

    fn background_step(&self) -> Result<bool> {
        let steps = self.steps.get().and_then(Weak::upgrade);
        steps.map_or(Ok(false), |steps| steps.background_step())
    }
}

impl Tree {
    /// Announces that there may be something to flush or compact; the state lock is held.
    pub(in crate::db) fn announce_work(&self, _state: &mut State) {
        self.background.announce_all();
    }

    /// The same, of one kind: the thread that took some found that there may be more.
    pub(in crate::db) fn announce(&self, role: Role) {
        self.background.announce(role);
    }

    /// Whether threads do the work, and not steps.
    pub(in crate::db) fn has_workers(&self) -> bool {
        self.context.env.spawner.choose_step(1).is_none()
    }

    /// Waits until a worker changed the tree or failed, at most for `timeout`; without workers,
    /// does their work.
    ///
    /// # Panics
    /// In a world without threads, if there is nothing that would ever end the waiting.
    pub(in crate::db) fn wait_for_progress(
        &self,
        state: &mut MutexGuard<'_, State>,
        timeout: Option<Duration>,
    ) {
        if self.has_workers() {
            match timeout {
                Some(timeout) => {
                    self.progress.wait_for(state, timeout);
                }
                None => self.progress.wait(state),
            }
            return;
        }
        let worked = MutexGuard::unlocked(state, || self.background_step());
        assert!(!matches!(worked, Ok(false)), "somebody waits for work that nobody has");
    }

    /// Poisons the database and wakes those who wait for its progress; they look at the poison
    /// under the same lock.
    pub(in crate::db) fn fail(&self, reason: BackgroundErrorReason, error: &Error) {
        self.fail_in(&mut self.state.lock(), reason, error);
    }

    fn fail_in(&self, _state: &mut State, reason: BackgroundErrorReason, error: &Error) {
        self.context.poison.record_fatal(reason, error);
        self.progress.notify_all();
    }

    /// A write of the WAL that a full disk refused can be tried again.
    pub(in crate::db) fn fail_unless_full(&self, error: &Error) {
        if error.subcode() != SubCode::NoSpace {
            self.fail(BackgroundErrorReason::Write, error);
        }
    }

    /// Has those look again who wait for a worker to change the tree or fail.
    pub(in crate::db) fn wake_all(&self) {
        let _state = self.state.lock();
        self.progress.notify_all();
    }

    /// Announces that there may be something to flush or compact.
    pub(in crate::db) fn call(&self) {
        self.announce_work(&mut self.state.lock());
    }

    /// Announces that there may be something to do, and has those look again who wait.
    pub(in crate::db) fn call_all(&self) {
        self.announce_work(&mut self.state.lock());
        self.progress.notify_all();
    }

    /// Waits until no flush and no compaction is running or wanted.
    ///
    /// # Errors
    /// `ShutdownInProgress`, or what has poisoned the database; `TimedOut` after `limit`; `Aborted`
    /// while work is paused, if `ends_on_pause`.
    pub(in crate::db) fn wait_until_idle(
        &self,
        limit: Option<Duration>,
        ends_on_pause: bool,
    ) -> Result<()> {
        let clock = &self.context.env.clock;
        let began_us = clock.now_us();
        // Looked at under one lock with the waiting: what changes in between would be waited for in
        // vain.
        let mut state = self.state.lock();
        loop {
            self.context.poison.check()?;
            self.context.check_open()?;
            if ends_on_pause {
                check_not_paused(self, &state)?;
            }
            damage::take_back_outnumbered(self, &mut state);
            if !state.flushes_go_on() && state.running.compactions == 0 {
                let wanted = self.compactions_wanted(&state);
                if wanted.is_empty() && !self.punch_wanted(&state) {
                    return Ok(());
                }
                // What it is may have come without a word.
                wanted.into_iter().for_each(|family| state.note(family));
            }
            if limit.is_some_and(|limit| clock.now_us() - began_us >= limit.as_micros() as u64) {
                let message = "flushes and compactions have not ended within the time given";
                return Err(Error::new(Code::TimedOut, message));
            }
            self.announce_work(&mut state);
            self.wait_for_progress(&mut state, Some(Duration::from_millis(100)));
            self.context.poison.check_starved()?;
        }
    }

    /// A compaction that was chosen does not begin, of which nobody is told: its inputs may be
    /// taken again.
    pub(in crate::db) fn let_go(&self, job: &CompactionJob) {
        let mut state = self.state.lock();
        job.release(&mut state, &[]);
        state.running.compactions -= 1;
        self.update_stall(&mut state);
        // The thread that chose it tries again in a while, unless it was another's.
        if job.is_manual {
            self.announce_work(&mut state);
        }
        self.progress.notify_all();
    }

    /// Waits until no caller flushes, compacts, ingests tables or makes a checkpoint.
    pub(in crate::db) fn wait_for_callers(&self) {
        let mut state = self.state.lock();
        while state.running.is_any() {
            self.wait_for_progress(&mut state, None);
        }
    }

    /// Waits for what lets writers go on that have been stopped, at most for a second.
    ///
    /// # Errors
    /// What keeps them from being written at all.
    pub(in crate::db) fn wait_while_stopped(&self) -> Result<()> {
        let mut state = self.state.lock();
        self.context.check_writable()?;
        if self.control.is_stopped() {
            let time = perf::time(PerfMetric::DbConditionWaitNanos);
            self.wait_for_progress(&mut state, Some(Duration::from_secs(1)));
            drop(time);
            if self.limits.write_buffers().is_some() {
                // Another database may have freed memory.
                self.update_stall(&mut state);
            }
        }
        // Who waits for a flush, of this database or of another, need not hear of a compaction that
        // found no room.
        let waits_for_memory =
            state.memtables.stop_writers && !state.agenda.pressures.asked().is_stopped;
        if self.control.is_stopped() && !waits_for_memory && !state.flushes_go_on() {
            self.context.poison.check_starved()?;
        }
        Ok(())
    }

    /// Looks again at what is to be done in a family, after an option of it changed, or when a call
    /// has ended that held its compactions back.
    pub(in crate::db) fn family_changed(&self, id: ColumnFamilyId) {
        self.changed_in(&mut self.state.lock(), id);
    }

    fn changed_in(&self, state: &mut State, id: ColumnFamilyId) {
        if let Some(known) = state.families.get_mut(&id) {
            known.compacting.forced_gc_below = self.file_numbers.next();
        }
        state.note(id);
        self.update_stall(state);
        self.announce_work(state);
    }

    /// Changes something of which there is one for all families, while nobody else does.
    ///
    /// # Errors
    /// Those of the change.
    pub(in crate::db) fn one_at_a_time<T>(&self, change: impl FnOnce() -> Result<T>) -> Result<T> {
        let _state = self.state.lock();
        change()
    }

    /// Changes the options of a family, while nobody else does, and looks again at what is to be
    /// done in it.
    ///
    /// # Errors
    /// Those of the change, which has not happened then.
    pub(in crate::db) fn change_family(
        &self,
        id: ColumnFamilyId,
        change: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        change()?;
        if let Some(known) = state.families.get_mut(&id) {
            known.remembered_pressure = None;
        }
        self.changed_in(&mut state, id);
        Ok(())
    }

    /// The same in all families, after an option of the database changed.
    pub(in crate::db) fn tree_changed(&self) {
        let mut state = self.state.lock();
        state
            .families
            .values_mut()
            .for_each(|known| known.compacting.forced_gc_below = self.file_numbers.next());
        state.note_all();
        self.update_stall(&mut state);
        self.announce_work(&mut state);
    }

    /// The number and the bytes of the MANIFEST that has all changes up to now, if there is one.
    pub(in crate::db) fn manifest_on_disk(&self) -> Option<(FileNumber, u64)> {
        self.state.lock().versions.manifest_on_disk()
    }

    /// What the oldest snapshot sees; all there is, if there is none.
    pub(in crate::db) fn oldest_snapshot(&self) -> SequenceNumber {
        self.snapshots.oldest().map_or(MAX_SEQUENCE_NUMBER, |oldest| oldest.sequence)
    }
}

/// What is told of the tree.
impl Tree {
    /// What a family had before, and readers keep.
    pub(in crate::db) fn replaced(&self, family: &Family) -> Vec<Arc<SuperVersion>> {
        self.state.lock().families.get(&family.id).map_or(Vec::new(), |known| known.replaced())
    }

    /// Adds what memtables, tables and readers hold.
    pub(in crate::db) fn add_memory(&self, usage: &mut MemoryUsage, now: u64) {
        let state = self.state.lock();
        for known in state.families.values() {
            usage.active_memtables += known.mem.memory_reserved() as u64;
            usage.immutable_memtables += known
                .immutable
                .iter()
                .map(|waiting| waiting.mem.memory_reserved() as u64)
                .sum::<u64>();
            add_tables(usage, &known.family.current.load().version);
            let (count, since) = known.kept_by_readers();
            usage.kept_versions += count as u64;
            let age = since.map(|since| now.saturating_sub(since));
            usage.oldest_kept_version_us = usage.oldest_kept_version_us.max(age);
        }
    }

    /// What the jobs of a family did, and what held writers up.
    pub(in crate::db) fn activity(&self, family: &Family) -> Option<Activity> {
        self.state.lock().families.get(&family.id).map(|known| known.activity.clone())
    }

    /// The same, and how much each level of a version wants to be compacted.
    pub(in crate::db) fn activity_and_scores(
        &self,
        family: &Family,
        version: &Version,
    ) -> (Activity, Vec<f64>) {
        let state = self.state.lock();
        let Some(known) = state.families.get(&family.id) else { return Default::default() };
        (known.activity.clone(), self.level_scores(&state, family, version))
    }

    /// How badly each level wants to be compacted, by level; other styles than leveled look at
    /// their runs alone.
    fn level_scores(&self, state: &State, family: &Family, version: &Version) -> Vec<f64> {
        let options = family.options.load();
        let settings = leveled_settings(&options, &version.paths);
        let mut by_level = vec![0.0; version.levels.len()];
        match (options.compaction_style, state.families.get(&family.id)) {
            (CompactionStyle::Level, Some(known)) => {
                let sizes = compensated_sizes(version, &self.pick_context(state, known));
                let targets = LevelTargets::new(version, &settings);
                for wanted in scores(version, &settings, &targets, &sizes) {
                    by_level[wanted.level] = wanted.score;
                }
            }
            (CompactionStyle::Fifo, _) => {
                let most = options.compaction_options_fifo.max_table_files_size.max(1);
                by_level[0] = version.table_bytes() as f64 / most as f64;
            }
            _ => {
                let runs = level0_files(&options, version);
                by_level[0] =
                    runs as f64 / settings.level0_file_num_compaction_trigger.max(1) as f64;
            }
        }
        by_level
    }

    /// What a family's blob files waste; `None` if it is dropped.
    pub(in crate::db) fn blob_waste(
        &self,
        family: &Family,
        options: &ColumnFamilyOptions,
        version: &Version,
    ) -> Option<BlobWaste> {
        self.state.lock().families.get(&family.id).map(|known| known.blob_waste(options, version))
    }

    /// Counts anew what jobs do, and what holds writers up.
    pub(in crate::db) fn reset_activity(&self) {
        let state = &mut *self.state.lock();
        state.families.values_mut().for_each(|known| known.activity.reset());
        state.memtables.stops = 0;
    }

    /// How often all memtables together stopped writers.
    pub(in crate::db) fn memtable_stops(&self) -> u64 {
        self.state.lock().memtables.stops
    }

    /// Bytes of the memtables that no flush has written.
    pub(in crate::db) fn memtable_bytes(&self) -> u64 {
        self.state.lock().memtable_bytes()
    }

    /// Whether no flush may begin.
    pub(in crate::db) fn are_flushes_paused(&self) -> bool {
        self.state.lock().paused.flushes > 0
    }

    /// Whether no file may be removed.
    pub(in crate::db) fn are_deletions_paused(&self) -> bool {
        self.state.lock().paused.deletions > 0
    }

    /// How many flushes and compactions run.
    pub(in crate::db) fn running(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.running.flushes, state.running.compactions)
    }

    /// How many sorted runs the running compactions merge.
    pub(in crate::db) fn running_sorted_runs(&self) -> u64 {
        let state = self.state.lock();
        let running = state.families.values().flat_map(|known| &known.compacting.running);
        running.map(|compaction| compaction.sorted_runs as u64).sum()
    }

    /// The number of a family's newest super version, from 1 on; 0 if it is dropped.
    pub(in crate::db) fn super_version_number(&self, family: &Family) -> u64 {
        self.state.lock().families.get(&family.id).map_or(0, |known| known.installed() + 1)
    }

    /// The oldest WAL that two-phase commits or families need, as the MANIFEST says.
    pub(in crate::db) fn min_log_number_to_keep(&self) -> FileNumber {
        self.state.lock().versions.min_log_number_to_keep()
    }

    /// The oldest WAL that any family needs.
    pub(in crate::db) fn oldest_log_number(&self) -> FileNumber {
        self.state.lock().versions.oldest_log_number()
    }

    /// The newest WAL that the MANIFEST knows of; 0 for none.
    pub(in crate::db) fn newest_recorded_wal(&self) -> FileNumber {
        self.state.lock().versions.newest_wal().map(|known| *known.start()).unwrap_or_default()
    }

    /// The MANIFEST's number.
    pub(in crate::db) fn manifest_number(&self) -> FileNumber {
        self.state.lock().versions.manifest_number()
    }
}
