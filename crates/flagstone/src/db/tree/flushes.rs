//! Which memtables are flushed next, and how what a flush has written becomes part of the tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, FileNumber, Mutant, Result, Sometimes};
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::statistics::Ticker;
use crate::db::tree::family_state::{FamilyState, Immutable};
use crate::db::tree::output::JobOutput;
use crate::db::tree::state::{LiveWal, State};
use crate::db::tree::waiting_deletions::WaitingDeletions;
use crate::db::tree::{Tree, told};
use crate::env::Role;
use crate::manifest::VersionEdit;
use crate::options::FlushReason;

impl Tree {
    /// Whether all families are flushed together.
    pub(in crate::db) fn flushes_together(&self) -> bool {
        self.context.settings.load().atomic_flush && !Mutant::ForgetAtomicFlush.is_on()
    }

    /// Takes new memtables for those that were written to, which wait for a flush from now on; with
    /// the WAL that ended before, if one did, and the number of the active one. The commit lock is
    /// held.
    pub(in crate::db) fn seal(
        &self,
        ended: Option<LiveWal>,
        wal: FileNumber,
        fresh: Vec<(ColumnFamilyId, Arc<Generation>, FlushReason)>,
    ) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if let Some(ended) = ended {
            state.wals.live.push_back(ended);
            self.note_live_wals(state);
        }
        for family in state.families.values_mut() {
            if family.mem.is_empty() || Mutant::LogNumberTooHigh.is_on() {
                family.mem_wal = wal;
            }
        }
        state.memtables.seals += 1;
        let mut full_bytes = 0;
        for (id, fresh, reason) in fresh {
            let family = state.families.get_mut(&id).expect("who is written to has a state");
            let full = std::mem::replace(&mut family.mem, fresh);
            full_bytes += full.bytes();
            told::note_sealed(self, &family.family, &full, reason);
            let (first_wal, seal) = (family.mem_wal, state.memtables.seals);
            family.immutable.push_back(Immutable {
                mem: full,
                wal: first_wal,
                seal,
                flushing: false,
                reason,
            });
            // One that waited for more of its own would hold up the others.
            family.flush_requested |= self.flushes_together();
            family.mem_wal = wal;
            family.waiting_deletions = WaitingDeletions::default();
            let version = state.versions.family(id).expect("its state exists").current.clone();
            family.install(version, self.context.env.clock.now_us());
            state.note(id);
        }
        if full_bytes > 0 {
            // All at once: what was written since the last switch is in all of them.
            state.pace.note_full(full_bytes, self.context.statistics.get(Ticker::BytesWritten));
        }
        self.update_stall(state);
    }

    /// Keeps an earlier WAL until this memtable is in a table: the memtable has entries that were
    /// logged there.
    pub(in crate::db) fn keep_wal(&self, mem: &Arc<Generation>, wal: FileNumber) {
        self.state.lock().wals.keep(mem, wal);
    }

    /// Keeps a WAL until [`Self::note_decided`] is said for what is prepared there.
    pub(in crate::db) fn keep_prepared(&self, wal: FileNumber) {
        self.state.lock().wals.keep_prepared(wal);
    }

    /// How many WALs are kept for nothing but what is prepared, and their bytes.
    pub(in crate::db) fn kept_for_prepared(&self) -> (u64, u64) {
        let state = self.state.lock();
        let needed = state.oldest_needed_of_memtables();
        let kept = state.wals.prepared_from()..needed;
        let wals = state.wals.live.iter().filter(|wal| kept.contains(&wal.number));
        wals.fold((0, 0), |(wals, bytes), wal| (wals + 1, bytes + wal.bytes))
    }

    /// A transaction that is prepared in this WAL is decided.
    pub(in crate::db) fn note_decided(&self, wal: FileNumber) {
        self.state.lock().wals.note_decided(wal);
    }

    /// Asks those for a flush that keep the oldest WAL, or, where all WALs are beyond their cap,
    /// any.
    pub(in crate::db) fn ask_for_oldest_wal(
        &self,
        active: FileNumber,
        is_beyond: bool,
        memtables: &[WrittenTo],
    ) -> OldestWal {
        let state = &mut *self.state.lock();
        let oldest = state.wals.live.front().map_or(active, |wal| wal.number);
        let until = if is_beyond { active } else { oldest };
        let (mut to_switch, mut is_kept) = (Vec::new(), false);
        for written in memtables {
            let family =
                state.families.get_mut(&written.id).expect("who is written to has a state");
            let switches = family.mem_wal <= until && !written.is_empty;
            if switches {
                to_switch.push(written.id);
            }
            // A family that waits for more memtables to merge keeps the WAL, too.
            let waits = switches || written.is_wanted || !family.immutable.is_empty();
            let keeps = waits && family.oldest_needed_wal() <= until;
            family.flush_requested |= keeps;
            is_kept |= keeps;
        }
        // Whoever kept it was dropped: it goes with the next flush, of whomever.
        let is_asked =
            is_kept || state.paused.deletions > 0 || ask_any(state, memtables, &mut to_switch);
        OldestWal { oldest, to_switch, is_asked }
    }

    /// The newest memtables of these families that wait for a flush, which they are to have at
    /// once.
    pub(in crate::db) fn ask_for_flush(&self, ids: &[ColumnFamilyId]) -> Vec<Wanted> {
        let mut state = self.state.lock();
        let mut wanted = Vec::new();
        for id in ids {
            if let Some(known) = state.families.get_mut(id)
                && let Some(newest) = known.immutable.back()
            {
                wanted.push((*id, newest.mem.clone()));
                known.flush_requested = true;
            }
        }
        self.announce_work(&mut state);
        wanted
    }

    /// Waits until these memtables are in tables, or their families are dropped.
    ///
    /// # Errors
    /// What keeps them from being flushed.
    pub(in crate::db) fn wait_for_flush(&self, mut wanted: Vec<Wanted>) -> Result<()> {
        let _asleep = self.background.sleep_for_them();
        let mut state = self.state.lock();
        // One after the other: what has come into a table stays there.
        while let Some((id, mem)) = wanted.last() {
            if !is_waiting(&state, *id, mem) {
                wanted.pop();
                continue;
            }
            self.disk.check_changeable()?;
            self.wait_for_progress(&mut state, None);
        }
        Ok(())
    }

    /// Waits until one more full memtable of the family, or of any that is flushed with it, would
    /// not stop writers.
    ///
    /// # Errors
    /// What keeps memtables from being flushed.
    pub(in crate::db) fn wait_until_a_flush_stalls_nobody(&self, family: &Family) -> Result<()> {
        let _asleep = self.background.sleep_for_them();
        let together = self.flushes_together();
        let mut state = self.state.lock();
        loop {
            self.disk.check_changeable()?;
            let would_stall = |known: &&mut FamilyState| {
                let most = known.family.options.load().max_write_buffer_number.max(2) as usize;
                !known.mem.is_empty() && known.immutable.len() + 1 >= most
            };
            let concerned: Option<&mut FamilyState> = if together {
                state.families.values_mut().find(would_stall)
            } else {
                state.families.get_mut(&family.id).filter(would_stall)
            };
            let Some(known) = concerned else { return Ok(()) };
            known.flush_requested = true;
            self.announce_work(&mut state);
            self.wait_for_progress(&mut state, None);
        }
    }

    /// The families whose memtables have had deletions for long enough, as `due` says at a second
    /// since 1970; `None` if that was asked in this second.
    pub(in crate::db) fn take_due_deletions<T>(
        &self,
        due: impl Fn(&mut FamilyState, u64) -> Option<T>,
    ) -> Option<Vec<(Arc<Family>, T)>> {
        let mut state = self.state.lock();
        let now = self.context.env.clock.unix_seconds();
        // Without workers nobody would come again.
        let is_looked_at = !state.agenda.is_another_second(now) && self.has_workers();
        if is_looked_at || state.paused.flushes > 0 {
            return None;
        }
        let families = state.families.values_mut();
        Some(
            families
                .filter_map(|known| due(known, now).map(|due| (known.family.clone(), due)))
                .collect(),
        )
    }

    /// Whether a flush runs, or none may begin.
    pub(in crate::db) fn is_flushing_or_paused(&self) -> bool {
        let state = self.state.lock();
        state.running.flushes > 0 || state.paused.flushes > 0
    }

    /// Takes what has waited longest.
    pub(in crate::db) fn take_flush(&self) -> Option<FlushJob> {
        self.take_flush_in(&mut self.state.lock())
    }

    pub(in crate::db) fn take_flush_in(&self, state: &mut State) -> Option<FlushJob> {
        // Whoever closes waits for those that have begun.
        if self.context.closing.load(Ordering::Acquire) || state.paused.flushes > 0 {
            return None;
        }
        let (job, is_more) = if self.flushes_together() {
            self.take_sealed(state)?
        } else {
            self.take_family(state)?
        };
        if job.parts.iter().any(|part| part.memtables.len() > 1) {
            Sometimes::SeveralMemtablesFlushed.reached();
        }
        state.running.flushes += 1;
        if state.running.flushes == 1 {
            state.pace.begin_flushes(self.context.env.clock.now_us());
        }
        if is_more {
            self.announce(Role::Flush);
        }
        Some(job)
    }

    /// A flush has ended; what it has not flushed waits again.
    pub(in crate::db) fn end_flush(&self, unflushed: Option<FlushJob>, is_ok: bool) {
        let mut state = self.state.lock();
        state.running.flushes -= 1;
        told::note_job_ended(self, &state);
        for part in unflushed.iter().flat_map(|job| &job.parts) {
            if let Some(known) = state.families.get_mut(&part.family.id) {
                known.give_back(&part.memtables);
            }
        }
        if !Mutant::ForgetWakeUp.is_on() {
            // What failed is tried again by whoever met that, and in a while.
            if is_ok {
                self.announce_work(&mut state);
            }
            self.progress.notify_all();
        }
    }

    /// The memtables of the family that has waited longest; and whether there is more to flush.
    fn take_family(&self, state: &mut State) -> Option<(FlushJob, bool)> {
        let mut looked_at = 0;
        // In the one thread of a world without workers this one would wait for the flush that it
        // interrupts.
        let is_ready = |known: &FamilyState| {
            known.is_ready_to_flush() && (!known.is_flushing() || self.has_workers())
        };
        let waiting = state.agenda.waiting().inspect(|_| looked_at += 1);
        let mut ready = waiting.filter(|(_, id)| is_ready(&state.families[id])).map(|(_, id)| id);
        let (first, is_another) = (ready.next(), ready.next().is_some());
        drop(ready);
        debug_assert!(
            first.is_some() || !state.families.values().any(is_ready),
            "who waits is listed"
        );
        self.context.statistics.add(Ticker::FamiliesLookedAt, looked_at);
        let known = state.families.get_mut(&first?)?;
        let seal = known.immutable.iter().find(|waiting| !waiting.flushing)?.seal;
        let memtables = known.take_waiting();
        let part = self.part_of(known, memtables);
        // Behind those that another flush has, more may wait, for the sake of which it was asked
        // for.
        known.flush_requested &= known.waiting() > 0;
        let is_more = is_another || known.is_ready_to_flush();
        Some((FlushJob { parts: vec![part], seal }, is_more))
    }

    /// The memtables of all families, from the oldest on that no flush has, up to those that were
    /// sealed with one that another flush has: whatever was sealed together is in one flush. And
    /// whether there is more to flush.
    pub(in crate::db) fn take_sealed(&self, state: &mut State) -> Option<(FlushJob, bool)> {
        if state.running.flushes > 0 && !self.has_workers() {
            return None;
        }
        let ids: Vec<ColumnFamilyId> = state.agenda.waiting().map(|(_, id)| id).collect();
        self.context.statistics.add(Ticker::FamiliesLookedAt, ids.len() as u64);
        let seals = |flushing: bool| {
            let immutable = ids.iter().flat_map(|id| &state.families[id].immutable);
            immutable
                .filter(move |waiting| waiting.flushing == flushing)
                .map(|waiting| waiting.seal)
        };
        let first = seals(false).min()?;
        let end = seals(true).filter(|seal| *seal > first).min().unwrap_or(u64::MAX);
        let mut parts = Vec::new();
        for id in ids {
            let Some(known) = state.families.get_mut(&id) else { continue };
            let memtables = known.take_sealed(first..end);
            known.flush_requested &= known.waiting() > 0;
            if !memtables.is_empty() {
                parts.push(self.part_of(known, memtables));
            }
        }
        if parts.len() > 1 {
            Sometimes::SeveralFamiliesFlushed.reached();
        }
        let is_more = end < u64::MAX && state.families.values().any(|known| known.waiting() > 0);
        Some((FlushJob { parts, seal: first }, is_more))
    }

    /// Whether something older must be in tables first: of the same family; of all, where these are
    /// flushed together, for a crash must not leave what was written later without what was written
    /// before.
    pub(in crate::db) fn before(&self, state: &State, job: &FlushJob) -> Before {
        let is_older = |oldest: &&Immutable| oldest.seal < job.seal;
        let fronts =
            |id: ColumnFamilyId| state.families.get(&id).and_then(|known| known.immutable.front());
        let older = if self.flushes_together() && !Mutant::InstallFlushOutOfTurn.is_on() {
            let fronts = state.agenda.waiting().filter_map(|(_, id)| fronts(id));
            fronts.filter(is_older).min_by_key(|oldest| oldest.seal)
        } else {
            job.parts.iter().find_map(|part| fronts(part.family.id).filter(is_older))
        };
        match older {
            None => Before::Nothing,
            Some(oldest) if oldest.flushing => Before::Taken,
            Some(_) => Before::GivenBack,
        }
    }

    /// Makes what a flush has written part of the tree, if its turn has come. WALs before the
    /// active one may have to be synced first.
    pub(in crate::db) fn install_flush(
        &self,
        job: &FlushJob,
        outputs: Vec<JobOutput>,
        owes_syncs: bool,
    ) -> Installed {
        let mut state = self.state.lock();
        let is_lost = |part: &FlushPart| part.family.is_dropped();
        if job.parts.iter().all(is_lost) {
            return Installed::Lost(outputs);
        }
        let before = self.before(&state, job);
        if !matches!(before, Before::Nothing) {
            return Installed::NotYet(outputs, before);
        }
        // What these families keep must not outlive older writes to others.
        if state.families.len() > 1 && owes_syncs {
            return Installed::OwesSyncs(outputs);
        }
        let memtables = job.parts.iter().flat_map(|part| &part.memtables);
        state
            .pace
            .note_flush(memtables.map(|mem| mem.bytes()).sum(), self.context.env.clock.now_us());
        let (lost, kept): (Vec<_>, Vec<_>) =
            job.parts.iter().zip(outputs).partition(|(part, _)| is_lost(part));
        let to_open = kept
            .iter()
            .map(|(part, output)| (part.family.clone(), output.to_open.clone()))
            .collect();
        let outcome = self.install_parts(&mut state, kept);
        let lost = lost.into_iter().map(|(part, output)| (part.family.clone(), output)).collect();
        Installed::Done { outcome, to_open, lost }
    }

    /// Waits for another flush, which has what is older; whether it is worth going on.
    ///
    /// # Errors
    /// What ends all hope.
    pub(in crate::db) fn wait_for_older(&self, job: &FlushJob) -> Result<bool> {
        let mut state = self.state.lock();
        self.check_hope()?;
        match self.before(&state, job) {
            Before::Nothing => Ok(true),
            Before::Taken => {
                self.progress.wait(&mut state);
                Ok(true)
            }
            Before::GivenBack => Ok(false),
        }
    }

    /// Whether what another flush has may come into the tree yet.
    ///
    /// # Errors
    /// What ends all hope.
    pub(in crate::db) fn check_hope(&self) -> Result<()> {
        self.context.poison.check_fatal().and_then(|()| self.context.check_open())
    }

    /// Makes a flush durable and visible: of several families in one atomic group, so that a crash
    /// leaves all or none.
    fn install_parts(
        &self,
        state: &mut State,
        flushed: Vec<(&FlushPart, JobOutput)>,
    ) -> Result<()> {
        let mut log_numbers = BTreeMap::new();
        for (part, _) in &flushed {
            let known = state
                .families
                .get(&part.family.id)
                .expect("a family that is not dropped has a state");
            let next = known.immutable.get(part.memtables.len());
            log_numbers.insert(part.family.id, next.map_or(known.mem_wal, |next| next.wal));
        }
        let is_flushed = |mem: &Arc<Generation>| {
            flushed.iter().any(|(part, _)| part.memtables.iter().any(|one| Arc::ptr_eq(one, mem)))
        };
        let kept = state.wals.kept_from(is_flushed);
        let needed = state.oldest_needed_wal(&log_numbers).min(kept);
        let edits = flushed.iter().map(|(part, output)| {
            let mut edit = VersionEdit::new(part.family.id);
            output.describe(&mut edit, 0);
            edit.full_history_ts_low = raised_low(&part.family, output);
            edit.log_number = Some(log_numbers[&part.family.id]);
            edit.min_log_number_to_keep = Some(needed);
            edit
        });
        let edits = edits.collect();
        let memtables = flushed.iter().flat_map(|(part, _)| &part.memtables);
        let last = memtables.filter_map(|mem| mem.largest_sequence()).max().unwrap_or(0);
        state
            .versions
            .set_last_sequence(last.max(self.snapshots.published.load(Ordering::Acquire)));
        Mutant::RemoveWalBeforeManifest.breaks(|| self.remove_old_wals(state, needed));
        let outputs: Vec<_> =
            flushed.iter().map(|(part, output)| (&*part.family, output)).collect();
        self.apply_edits(state, edits, &outputs)?;
        for (part, output) in &flushed {
            self.show_flushed(state, part, output);
        }
        self.remove_old_wals(state, needed);
        self.update_stall(state);
        Ok(())
    }

    /// Shows readers the new version of a family in place of the memtables.
    fn show_flushed(&self, state: &mut State, part: &FlushPart, output: &JobOutput) {
        let id = part.family.id;
        output.unreferenced.iter().for_each(|file| file.give_up());
        let version = state.versions.family(id).expect("still there").current.clone();
        let known = state.families.get_mut(&id).expect("still there");
        known.immutable.drain(..part.memtables.len());
        state.wals.note_flushed(&part.memtables);
        known.activity.note_flush(output);
        known.note_deleted(&output.deleted, &version);
        let now_us = self.context.env.clock.now_us();
        if let Some(low) = raised_low(&part.family, output) {
            known.install_history_low(&low, now_us);
        }
        if output.is_filtered {
            known.install_another_past(version, now_us)
        } else {
            known.install(version, now_us)
        }
        known.compacting.forced_gc_below = self.file_numbers.next();
        state.note(id);
        told::note_flushed(self, part, output);
    }

    /// Memtables that a flush has taken.
    fn part_of(&self, known: &FamilyState, memtables: Vec<Arc<Generation>>) -> FlushPart {
        let is_taken = |waiting: &&Immutable| {
            memtables.first().is_some_and(|first| Arc::ptr_eq(first, &waiting.mem))
        };
        let reason =
            known.immutable.iter().find(is_taken).map_or(FlushReason::Manual, |mem| mem.reason);
        let (family, job) = (known.family.clone(), self.context.events.next_job());
        FlushPart { family, memtables, job, reason }
    }
}

/// Memtables taken for one flush: of one family, or, with `atomic_flush`, of all.
pub(in crate::db) struct FlushJob {
    pub(in crate::db) parts: Vec<FlushPart>,
    /// The oldest seal among them.
    pub(in crate::db) seal: u64,
}

/// Those of one family.
pub(in crate::db) struct FlushPart {
    pub(in crate::db) family: Arc<Family>,
    /// Oldest first.
    pub(in crate::db) memtables: Vec<Arc<Generation>>,
    /// The id of its flush.
    pub(in crate::db) job: u64,
    /// Why they are flushed.
    pub(in crate::db) reason: FlushReason,
}

/// What a flush waits for.
pub(in crate::db) enum Before {
    Nothing,
    /// Another flush has what is older.
    Taken,
    /// Nobody has: its flush failed.
    GivenBack,
}

/// What became of a flush that has not failed.
#[derive(PartialEq, Eq)]
pub(in crate::db) enum Flushed {
    /// It is in the tree, or its family is gone.
    Done,
    /// What is older was not flushed: its memtables are to be taken together with that.
    GivenBack,
}

/// A memtable that somebody wants flushed.
pub(in crate::db) type Wanted = (ColumnFamilyId, Arc<Generation>);

/// What became of a flush whose output was to be part of the tree.
pub(in crate::db) enum Installed {
    /// All its families are dropped.
    Lost(Vec<JobOutput>),
    /// What is older must be in tables first.
    NotYet(Vec<JobOutput>, Before),
    /// The WALs before the active one must be synced first.
    OwesSyncs(Vec<JobOutput>),
    /// It is part of the tree, unless the MANIFEST refused it; but for what was written for
    /// families that are dropped.
    Done {
        outcome: Result<()>,
        to_open: Vec<(Arc<Family>, Vec<FileNumber>)>,
        lost: Vec<(Arc<Family>, JobOutput)>,
    },
}

pub(in crate::db) fn is_waiting(state: &State, id: ColumnFamilyId, mem: &Arc<Generation>) -> bool {
    state
        .families
        .get(&id)
        .is_some_and(|known| known.immutable.iter().any(|waiting| Arc::ptr_eq(&waiting.mem, mem)))
}

/// A memtable that writers write to.
pub(in crate::db) struct WrittenTo {
    pub(in crate::db) id: ColumnFamilyId,
    pub(in crate::db) is_empty: bool,
    /// Whether it is to be switched already.
    pub(in crate::db) is_wanted: bool,
}

/// What is done to let the oldest WAL go.
pub(in crate::db) struct OldestWal {
    pub(in crate::db) oldest: FileNumber,
    /// The families whose memtables are to be switched.
    pub(in crate::db) to_switch: Vec<ColumnFamilyId>,
    /// Whether a flush that lets it go was asked for, or cannot.
    pub(in crate::db) is_asked: bool,
}

/// Whether some family has something to flush, which is then wanted.
fn ask_any(
    state: &mut State,
    memtables: &[WrittenTo],
    to_switch: &mut Vec<ColumnFamilyId>,
) -> bool {
    let mut first = state.agenda.waiting().map(|(_, id)| id).next();
    if first.is_none()
        && let Some(written) = memtables.iter().find(|written| !written.is_empty)
    {
        to_switch.push(written.id);
        first = Some(written.id);
    }
    let known = first.and_then(|id| state.families.get_mut(&id));
    known.is_some_and(|known| {
        known.flush_requested = true;
        true
    })
}
/// The oldest timestamp as of which the family can be read with what was flushed, if that is
/// another than before.
fn raised_low(family: &Family, output: &JobOutput) -> Option<Vec<u8>> {
    let low = output.history_low.as_ref()?;
    let current = family.current.load();
    let is_higher = |known: &Arc<[u8]>| family.comparator().compare_timestamps(low, known).is_gt();
    current.history_low.as_ref().is_none_or(is_higher).then(|| low.clone())
}
