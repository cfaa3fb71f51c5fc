//! What the tree asks of writers, and which blob files are to get holes.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, FileNumber, Mutant, Sometimes};
use crate::cache::MemoryKind;
use crate::compaction::pick::{Room, WriteHeadroom, pick_punch};
use crate::db::budget::memtable_bytes_max;
use crate::db::events::Event;
use crate::db::family::{Family, SuperVersion};
use crate::db::settings::{compacts_by_itself, level0_files, leveled_settings};
use crate::db::statistics::Ticker;
use crate::db::tree::Tree;
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::pressures::{Asked, Filling, Space};
use crate::db::tree::promise::{Promise, Punching};
use crate::db::tree::state::State;
use crate::options::{CompactionStyle, Options, StallCondition, WriteStallInfo};

/// Of so many families a debug build makes sure that none was forgotten.
pub(in crate::db) const CHECKED_MAX: usize = 64;

/// Writers are never held to less, in bytes per second.
pub(in crate::db) const MIN_DELAYED_WRITE_RATE: u64 = 16 << 10;

/// What writers are held to at first if the options do not say, in bytes per second.
pub(in crate::db) const DEFAULT_DELAYED_WRITE_RATE: u64 = 16 << 20;

/// In so large a part of what all WALs may have, before its end, writers brake.
pub(in crate::db) const WAL_BRAKES: u64 = 8;

impl Tree {
    /// Works out what the trees ask of writers; after every change of a memtable or version.
    pub(in crate::db) fn update_stall(&self, state: &mut State) {
        let settings = self.context.settings.load();
        let now = self.context.env.clock.now_us();
        let written = self.context.statistics.get(Ticker::BytesWritten);
        state.pace.note_writes(now, written, self.control.lets_go_freely());
        let speeds = state.pace.speeds();
        let by_memtables = self.memtables_stop_writers(state) | self.databases_stop_writers(state);
        state.memtables.stops += u64::from(by_memtables && !state.memtables.stop_writers);
        state.memtables.stop_writers = by_memtables;
        let stopped = by_memtables | self.wals_stop_writers(state);
        self.note_pressures(state);
        let Asked { is_stopped, severity, slowest, last_room, space, worst } =
            state.agenda.pressures.asked();
        let delayed_write_rate = delayed_write_rate(&settings);
        let waits_for_flush = slowest.and_then(|Filling { room, waiting, .. }| {
            state.pace.rate_while_flushing(room, waiting, delayed_write_rate)
        });
        let mut rate = waits_for_flush.unwrap_or(u64::MAX);
        let pace = &state.pace;
        let last_room = last_room.map(|(left, whole)| Room {
            left: pace.written(left),
            whole: pace.written(whole),
            writing: speeds.writing,
        });
        let in_debt =
            severity.map_or(u64::MAX, |severity| speeds.rate_in_debt(severity, delayed_write_rate));
        let is_hard = speeds.is_hard(in_debt, delayed_write_rate);
        rate = rate.min(in_debt);
        // Which of the two is nearer to its end.
        let space = space.into_iter().chain(self.wal_space(state)).max_by_key(Space::closeness);
        let headroom = space.map(|Space { left, brakes_at }| WriteHeadroom {
            left,
            brakes_at,
            speeds,
            delayed_write_rate,
        });
        let before = self.control.condition();
        match (stopped || is_stopped, rate) {
            (true, _) => self.control.set_stopped(now),
            (false, u64::MAX) if Mutant::NeverLiftStall.is_on() => {}
            (false, u64::MAX) => match headroom {
                Some(headroom) => self.control.set_watched(headroom),
                None => self.control.set_normal(),
            },
            (false, rate) => {
                let rate = rate.max(MIN_DELAYED_WRITE_RATE);
                self.control.set_delayed(rate, last_room, headroom, is_hard);
            }
        }
        self.background.set_holds_writers_up(self.control.condition() != StallCondition::Normal);
        let after = self.control.condition();
        if after != before {
            // Where all families together stop writers, none of them is to be blamed.
            let worst = worst.filter(|_| !stopped);
            self.note_stall(state, worst, before, after);
        }
        if !Mutant::ForgetWakeUp.is_on() {
            self.progress.notify_all();
        }
    }

    /// Tells listeners that writers have to heed something else, because of a family or of all.
    fn note_stall(
        &self,
        state: &mut State,
        worst: Option<ColumnFamilyId>,
        before: StallCondition,
        now: StallCondition,
    ) {
        let told = &mut state.agenda.pressures.told;
        let family_name = if now == StallCondition::Normal {
            told.take()
        } else {
            let family = worst.and_then(|id| state.families.get(&id));
            *told = family.map(|known| known.family.name.to_string());
            told.clone()
        };
        self.context.events.note(|| Event::Stalled(WriteStallInfo { family_name, before, now }));
    }

    /// Works out what the families ask in which something has changed.
    fn note_pressures(&self, state: &mut State) {
        let State { families, damage, agenda, .. } = state;
        let is_crippled =
            |id: &ColumnFamilyId| damage.crippled.contains(id) || damage.apart.contains(id);
        let moved = agenda.take_moved();
        self.context.statistics.add(Ticker::FamiliesLookedAt, moved.len() as u64);
        for id in moved {
            let Some(known) = families.get_mut(&id) else { continue };
            let pressure = known.pressure(is_crippled(&id));
            let compacts_level0 =
                || known.compacting.running.iter().any(|running| running.start_level == 0);
            known.activity.note_stall(pressure.stall, compacts_level0);
            agenda.note_pressure(id, &pressure, known);
        }
        let is_known = |(id, known): (&ColumnFamilyId, &mut FamilyState)| {
            agenda.knows_pressure(*id, &known.pressure(is_crippled(id)))
        };
        debug_assert!(
            families.len() > CHECKED_MAX || families.iter_mut().all(is_known),
            "who changes says so"
        );
    }

    /// Works out again how much the blob files may take that are nearest to their limit, and with
    /// it what is asked of writers.
    #[cold]
    pub(in crate::db) fn measure_space(&self) {
        let mut state = self.state.lock();
        // The threads that look for holes may all be busy for long.
        self.note_readers_who_stay(&mut state);
        if let Some(family) = state.agenda.pressures.shortest_of_space() {
            state.note(family);
        }
        self.update_stall(&mut state);
    }

    /// Whether compactions are behind enough for low-priority writes to give way.
    pub(in crate::db) fn compactions_are_behind(&self) -> bool {
        self.families.read().values().any(|family| {
            let options = family.options.load();
            let left_alone = options.runs_left_alone() as usize;
            compacts_by_itself(&options)
                && !family.is_held()
                && level0_files(&options, &family.current.load().version) > left_alone
        })
    }

    /// Whether writers are to wait for flushes, which are asked for.
    fn memtables_stop_writers(&self, state: &mut State) -> bool {
        let Some(most) = memtable_bytes_max(&self.context.settings.load()) else { return false };
        // Readers' memtables are in it, too: if all together are fewer, no family need be looked
        // at.
        if state.agenda.waiting().next().is_none()
            || (self.tables.account().held(MemoryKind::Memtables) as u64) < most
        {
            return false;
        }
        let is_any_waiting = state.families.values().any(|known| !known.immutable.is_empty());
        if !is_any_waiting || state.memtable_bytes() < most {
            return false;
        }
        Sometimes::MemtablesStoppedWriters.reached();
        self.flush_all_waiting(state);
        true
    }

    /// Tells the manager of several databases what waits for a flush; whether writers are to wait
    /// because the memtables of all have reached their limit.
    fn databases_stop_writers(&self, state: &mut State) -> bool {
        let Some(buffers) = self.limits.write_buffers() else { return false };
        let waiting = state.families.values().flat_map(|known| known.immutable.iter());
        buffers.set_waiting(waiting.map(|waiting| waiting.mem.bytes_in_use()).sum());
        // Without threads nobody else flushes.
        let may_wait = self.has_workers() || state.agenda.waiting().next().is_some();
        if !may_wait || !buffers.stalls_writers() {
            return false;
        }
        Sometimes::WriteBuffersStoppedWriters.reached();
        self.flush_all_waiting(state);
        true
    }

    /// Has memtables flushed that wait, also those that would wait for more to be merged with.
    fn flush_all_waiting(&self, state: &mut State) {
        let waiting = state.families.values_mut().filter(|known| !known.immutable.is_empty());
        waiting.for_each(|known| known.flush_requested = true);
        self.announce_work(state);
    }

    /// Has the memtables flushed that wait; the family with the largest that is written to.
    pub(in crate::db) fn flush_for_others(&self) -> Option<Arc<Family>> {
        let mut state = self.state.lock();
        self.flush_all_waiting(&mut state);
        let filled = state.families.values().filter(|known| !known.mem.is_empty());
        filled.max_by_key(|known| known.mem.bytes_in_use()).map(|known| known.family.clone())
    }

    /// Works out again whether writers have to wait.
    pub(in crate::db) fn look_at_stall(&self) {
        self.update_stall(&mut self.state.lock());
    }

    /// During recovery, the family with the largest memtable, if all together have what they may
    /// have.
    pub(in crate::db) fn largest_beyond_limit(&self) -> Option<ColumnFamilyId> {
        let state = self.state.lock();
        let most = memtable_bytes_max(&self.context.settings.load())?;
        if (self.tables.account().held(MemoryKind::Memtables) as u64) < most {
            return None;
        }
        let active: u64 = state.families.values().map(|known| known.mem.bytes_in_use()).sum();
        let known = state.families.values().filter(|known| active >= most && !known.mem.is_empty());
        known.max_by_key(|known| known.mem.bytes_in_use()).map(|known| known.family.id)
    }

    /// Bytes that WALs may take until writers have to wait, if that is limited, and a flush under
    /// way can change it.
    pub(in crate::db) fn wal_space(&self, state: &State) -> Option<Space> {
        let cap = Some(self.wal_space.cap.load(Ordering::Relaxed)).filter(|cap| *cap < u64::MAX)?;
        // While files must not be deleted, flushes change nothing.
        if state.paused.deletions > 0 || state.agenda.waiting().next().is_none() {
            return None;
        }
        let all = self.wal_space.older_bytes.load(Ordering::Relaxed)
            + self.wal_space.active_bytes.load(Ordering::Relaxed);
        Some(Space { left: cap.saturating_sub(all), brakes_at: cap / WAL_BRAKES })
    }

    /// Whether writers are to wait for flushes to let go of WALs, which are asked for.
    fn wals_stop_writers(&self, state: &mut State) -> bool {
        let Some(newest) = state.wals.live.back().map(|wal| wal.number) else { return false };
        if self.wal_space(state).is_none_or(|space| space.left > 0) {
            return false;
        }
        let waiting = state.agenda.waiting().take_while(|(wal, _)| *wal <= newest);
        let waiting: Vec<_> = waiting.map(|(_, id)| id).collect();
        if waiting.is_empty() {
            return false;
        }
        Sometimes::WalsStoppedWriters.reached();
        for id in waiting {
            // Also those that would wait for more to be merged with.
            state.families.get_mut(&id).expect("it is listed").flush_requested = true;
        }
        self.announce_work(state);
        true
    }

    /// Lets writers go on where readers have kept garbage on the disk for long.
    pub(in crate::db) fn note_readers_who_stay(&self, state: &mut State) {
        let now_us = self.context.env.clock.now_us();
        let State { families, agenda, .. } = state;
        let mut have_stayed = Vec::new();
        for id in agenda.with_garbage() {
            if let Some(known) = families.get_mut(&id)
                && let Punching::Promised(promise) = &mut known.punching
                && promise.note_readers_who_stay(now_us)
            {
                have_stayed.push(id);
            }
        }
        if !have_stayed.is_empty() {
            have_stayed.into_iter().for_each(|id| state.note(id));
            self.update_stall(state);
        }
    }

    /// The smallest hole that a family's blob files can be given now; `None` if they are to have
    /// none.
    pub(in crate::db) fn hole_size_of(&self, state: &State, known: &FamilyState) -> Option<u64> {
        let options = known.family.options.load();
        let is_wanted = options.blob_punch_holes
            && options.max_space_amplification > 0.0
            && options.compaction_style != CompactionStyle::Fifo
            && compacts_by_itself(&options);
        let is_possible = state.paused.deletions == 0
            && state.paused.compactions == 0
            && !known.punching.waits_for_readers();
        let hole_size = self.disk.hole_size();
        (is_wanted && is_possible && hole_size > 0).then_some(hole_size)
    }

    /// Whether holes that were put off are to go on now. Nothing was announced for them: it is
    /// looked at when there is nothing else to do.
    fn goes_on_at_rest(&self, state: &State, known: &FamilyState, promise: &Promise) -> bool {
        let is_at_rest = state.running.compactions == 0
            && state.running.flushes == 0
            && state.agenda.waiting().next().is_none();
        is_at_rest
            && promise.is_put_off()
            && self.disk.has_rested_from_holes()
            && self.disk.has_slow_holes(&known.family)
            && self.hole_size_of(state, known).is_some()
    }

    /// Whether a worker would find something to do.
    pub(in crate::db) fn punch_wanted(&self, state: &State) -> bool {
        families_with_garbage(state).any(|known| match &known.punching {
            Punching::Surveying | Punching::Begun => false,
            Punching::Promised(promise)
                if promise.is_put_off() && self.disk.has_slow_holes(&known.family) =>
            {
                self.goes_on_at_rest(state, known, promise)
            }
            Punching::Promised(promise) => !known.has_readers_before(promise.installed),
            Punching::Idle => !self.files_to_punch(state, known).is_empty(),
        })
    }

    /// Holes that were promised, and may be punched now.
    pub(in crate::db) fn take_promise(&self) -> Option<(Arc<Family>, Promise)> {
        take_promise(&mut self.state.lock(), |_, known, promise| {
            !promise.is_put_off() || !self.disk.has_slow_holes(&known.family)
        })
    }

    /// Holes that were put off, if there is nothing else to do; and how often work had been
    /// announced by then.
    pub(in crate::db) fn take_promise_at_rest(&self) -> Option<(Arc<Family>, Promise, u64)> {
        let state = &mut *self.state.lock();
        let may_go_on = |state: &State, known: &FamilyState, promise: &Promise| {
            self.goes_on_at_rest(state, known, promise)
        };
        let (family, promise) = take_promise(state, may_go_on)?;
        Some((family, promise, self.background.announcements()))
    }

    /// What comes after a survey, or after some holes were punched.
    pub(in crate::db) fn end_punch(&self, family: &Family, next: Punching, is_at_rest: bool) {
        let mut state = self.state.lock();
        state.running.compactions -= 1;
        if let Some(known) = state.families.get_mut(&family.id) {
            if let Punching::Promised(promise) = &next
                && known.has_readers_before(promise.installed)
            {
                Sometimes::HoleWaitedForReaders.reached();
            }
            known.punching = next;
        }
        state.note(family.id);
        self.update_stall(&mut state);
        if !is_at_rest {
            self.announce_work(&mut state);
        }
        self.progress.notify_all();
    }

    /// Forgets the holes that were promised, and frees the memory for them. Called when all workers
    /// have ended, so that the holes would never be punched.
    pub(in crate::db) fn forget_promises(&self) {
        let families = &mut self.state.lock().families;
        families.values_mut().for_each(|known| known.punching = Punching::Idle);
    }

    pub(in crate::db) fn files_to_punch(
        &self,
        state: &State,
        known: &FamilyState,
    ) -> BTreeSet<FileNumber> {
        let context = self.pick_context(state, known);
        if context.hole_size.is_none() {
            return BTreeSet::new();
        }
        let version = known.family.current.load().version.clone();
        let settings = leveled_settings(&known.family.options.load(), &version.paths);
        let mut files = pick_punch(&version, &settings, &context);
        files.retain(|number| !known.generations().any(|memtable| memtable.blobs.names(*number)));
        files
    }

    /// The blob files of a family that may get holes, if there are any.
    pub(in crate::db) fn take_survey(&self) -> Option<Survey> {
        let state = &mut *self.state.lock();
        self.note_readers_who_stay(state);
        let (id, files) = families_with_garbage(state).find_map(|known| {
            let is_idle = matches!(known.punching, Punching::Idle);
            let files = is_idle.then(|| self.files_to_punch(state, known))?;
            (!files.is_empty()).then_some((known.family.id, files))
        })?;
        state.running.compactions += 1;
        let known = state.families.get_mut(&id)?;
        known.punching = Punching::Surveying;
        let (family, current) = (known.family.clone(), known.family.current.load_full());
        let block_size = self.disk.hole_size();
        Some(Survey { family, current, installed: known.installed(), files, block_size })
    }
}

/// Bytes a second at which delays of writers begin if these are slower of their own accord.
pub(in crate::db) fn delayed_write_rate(settings: &Options) -> u64 {
    match settings.delayed_write_rate {
        0 => {
            let limited = settings.rate_limiter.as_ref().map(|limiter| limiter.bytes_per_second());
            limited.unwrap_or(DEFAULT_DELAYED_WRITE_RATE)
        }
        rate => rate,
    }
}

fn families_with_garbage(state: &State) -> impl Iterator<Item = &FamilyState> {
    state.agenda.with_garbage().filter_map(|id| state.families.get(&id))
}

/// What is to be done, taken under the state lock.
pub(in crate::db) struct Survey {
    pub(in crate::db) family: Arc<Family>,
    pub(in crate::db) current: Arc<SuperVersion>,
    pub(in crate::db) installed: u64,
    pub(in crate::db) files: BTreeSet<FileNumber>,
    pub(in crate::db) block_size: u64,
}

/// A promise that nobody stands in the way of any longer, and that may go on.
fn take_promise(
    state: &mut State,
    may_go_on: impl Fn(&State, &FamilyState, &Promise) -> bool,
) -> Option<(Arc<Family>, Promise)> {
    if state.paused.compactions > 0 {
        return None;
    }
    let id = families_with_garbage(state).find_map(|known| match &known.punching {
        Punching::Promised(promise)
            if !known.has_readers_before(promise.installed) && may_go_on(state, known, promise) =>
        {
            Some(known.family.id)
        }
        _ => None,
    })?;
    let known = state.families.get_mut(&id)?;
    let Punching::Promised(mut promise) = std::mem::replace(&mut known.punching, Punching::Begun)
    else {
        unreachable!("just seen")
    };
    promise.begin();
    let family = known.family.clone();
    state.running.compactions += 1;
    Some((family, promise))
}
