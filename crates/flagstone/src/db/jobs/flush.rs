//! Flushing: immutable memtables of a family become one table in level 0, large values go to blob files.
//!
//! 1. Under the state lock: take all waiting memtables of a family, oldest first; with `atomic_flush`, those of all families.
//! 2. Without it: merge them through the drop rules into a table (and blob files) a family, several at the same time; sync them,
//!    sync the directory.
//! 3. When what is older is in tables, under it again: one version edit adds the files and says which WALs the family
//!    still needs; readers get the new version in place of the memtables; WALs that no family needs go. Where the flush of what
//!    is older has failed, the memtables are given back, to be taken together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::background::Role;
use super::job::JobOutput;
use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, Mutant, Result, Sometimes, SubCode};
use crate::db::DbInner;
use crate::db::events::Event;
use crate::db::family::{ColumnFamily, Family, Immutable};
use crate::db::generation::Generation;
use crate::db::state::State;
use crate::db::statistics::Ticker;
use crate::db::{Db, family::FamilyState};
use crate::manifest::VersionEdit;
use crate::options::FlushOptions;

/// Memtables taken for one flush: of one family, or, with `atomic_flush`, of all.
pub(super) struct FlushJob {
    pub(super) parts: Vec<FlushPart>,
    /// The oldest seal among them.
    seal: u64,
}

/// Those of one family.
pub(super) struct FlushPart {
    pub(super) family: Arc<Family>,
    /// Oldest first.
    pub(super) memtables: Vec<Arc<Generation>>,
}

/// What became of a flush that has not failed.
#[derive(PartialEq, Eq)]
enum Flushed {
    /// It is in the tree, or its family is gone.
    Done,
    /// What is older was not flushed: its memtables are to be taken together with that.
    GivenBack,
}

/// What a flush waits for.
enum Before {
    Nothing,
    /// Another flush has what is older.
    Taken,
    /// Nobody has: its flush failed.
    GivenBack,
}

impl Db {
    /// Writes what a family has in memory to a table; with `atomic_flush`, what all families have.
    ///
    /// # Errors
    /// `IoError`, or what had poisoned the database; `ColumnFamilyDropped`.
    pub fn flush(&self, family: &ColumnFamily, options: &FlushOptions) -> Result<()> {
        family.0.check_owner(&self.inner().disk.obsolete)?;
        family.0.check_alive()?;
        if !options.allow_write_stall {
            self.inner().wait_until_a_flush_stalls_nobody(&family.0)?;
        }
        self.inner().flush_asked_for(std::slice::from_ref(&family.0), options.wait)
    }

    /// As [`Db::flush`], for all families, at once and waiting, whatever that means for writers.
    ///
    /// # Errors
    /// As [`Db::flush`].
    pub fn flush_all(&self) -> Result<()> {
        let families: Vec<_> = self.inner().tree.families.read().values().cloned().collect();
        self.inner().flush_asked_for(&families, true)
    }
}

impl DbInner {
    /// [`DbInner::flush_families`], with no lock held.
    pub(in crate::db) fn flush_asked_for(&self, families: &[Arc<Family>], wait: bool) -> Result<()> {
        let outcome = self.flush_families(families, wait).inspect_err(|error| self.note_full_disk(error));
        self.context.events.tell();
        outcome
    }

    /// Switches the memtables of these families (with `atomic_flush`, of all) and, if asked, waits until they are in tables. A
    /// family that is dropped has nothing to flush.
    pub(in crate::db) fn flush_families(&self, families: &[Arc<Family>], wait: bool) -> Result<()> {
        self.disk.check_changeable()?;
        let mut commit = self.pipeline.commit.lock();
        let mut state = self.tree.state.lock();
        self.disk.check_changeable()?;
        let ids: Vec<ColumnFamilyId> = if self.flushes_together() {
            state.families.keys().copied().collect()
        } else {
            families.iter().map(|family| family.id).collect()
        };
        self.switch_memtables(&mut commit, &mut state, &ids)?;
        drop(commit);
        // The newest memtable of each that must be gone.
        let mut targets: Vec<(ColumnFamilyId, Arc<Generation>)> = Vec::new();
        for id in ids {
            if let Some(known) = state.families.get_mut(&id)
                && let Some(newest) = known.immutable.back()
            {
                targets.push((id, newest.mem.clone()));
                known.flush_requested = true;
            }
        }
        self.announce_work(&mut state);
        let _asleep = wait.then(|| self.background.workers.sleep_for_them());
        // One after the other: what has come into a table stays there.
        while wait && let Some((id, mem)) = targets.last() {
            if !is_waiting(&state, *id, mem) {
                targets.pop();
                continue;
            }
            self.disk.check_changeable()?;
            self.wait_for_progress(&mut state, None);
        }
        Ok(())
    }

    /// Waits until one more full memtable of the family, or of any that is flushed with it, would not stop writers.
    pub(in crate::db) fn wait_until_a_flush_stalls_nobody(&self, family: &Family) -> Result<()> {
        let _asleep = self.background.workers.sleep_for_them();
        let together = self.flushes_together();
        let mut state = self.tree.state.lock();
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

    /// Flushes one family if any waits for it; whether one did.
    pub(in crate::db) fn flush_one(&self) -> Result<bool> {
        loop {
            let Some(job) = self.take_flush(&mut self.tree.state.lock()) else { return Ok(false) };
            if self.flush(job)? == Flushed::Done {
                return Ok(true);
            }
        }
    }

    fn flush(&self, job: FlushJob) -> Result<Flushed> {
        let outcome = self.guarded("flush", || self.run_flush(&job));
        // Memory that is free is free before anybody hears of it.
        let unflushed = (!matches!(outcome, Ok(Flushed::Done))).then_some(job);
        let mut state = self.tree.state.lock();
        state.running.flushes -= 1;
        if let Some(job) = unflushed {
            for part in &job.parts {
                if let Some(known) = state.families.get_mut(&part.family.id) {
                    known.give_back(&part.memtables);
                }
            }
        }
        if !Mutant::ForgetWakeUp.is_on() {
            // What failed is tried again by whoever met that, and in a while.
            if outcome.is_ok() {
                self.announce_work(&mut state);
            }
            self.tree.progress.notify_all();
        }
        outcome
    }

    /// Whether all families are flushed together.
    pub(in crate::db) fn flushes_together(&self) -> bool {
        self.context.settings.load().atomic_flush && !Mutant::ForgetAtomicFlush.is_on()
    }

    /// Takes what has waited longest.
    fn take_flush(&self, state: &mut State) -> Option<FlushJob> {
        // Whoever closes waits for those that have begun.
        if self.context.closing.load(Ordering::Acquire) {
            return None;
        }
        let (job, is_more) =
            if self.flushes_together() { self.take_sealed(state)? } else { self.take_family(state)? };
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

    /// The memtables of the family that has waited longest; and whether there is more to flush.
    fn take_family(&self, state: &mut State) -> Option<(FlushJob, bool)> {
        let mut looked_at = 0;
        // In the one thread of a world without workers this one would wait for the flush that it interrupts.
        let is_ready =
            |known: &FamilyState| known.is_ready_to_flush() && (!known.is_flushing() || self.has_workers());
        let waiting = state.agenda.waiting().inspect(|_| looked_at += 1);
        let mut ready = waiting.filter(|(_, id)| is_ready(&state.families[id])).map(|(_, id)| id);
        let (first, is_another) = (ready.next(), ready.next().is_some());
        drop(ready);
        debug_assert!(first.is_some() || !state.families.values().any(is_ready), "who waits is listed");
        self.context.statistics.add(Ticker::FamiliesLookedAt, looked_at);
        let known = state.families.get_mut(&first?)?;
        let seal = known.immutable.iter().find(|waiting| !waiting.flushing)?.seal;
        let part = FlushPart { family: known.family.clone(), memtables: known.take_waiting() };
        // Behind those that another flush has, more may wait, for the sake of which it was asked for.
        known.flush_requested &= known.waiting() > 0;
        let is_more = is_another || known.is_ready_to_flush();
        Some((FlushJob { parts: vec![part], seal }, is_more))
    }

    /// The memtables of all families, from the oldest on that no flush has, up to those that were sealed with one that another
    /// flush has: whatever was sealed together is in one flush. And whether there is more to flush.
    fn take_sealed(&self, state: &mut State) -> Option<(FlushJob, bool)> {
        if state.running.flushes > 0 && !self.has_workers() {
            return None;
        }
        let ids: Vec<ColumnFamilyId> = state.agenda.waiting().map(|(_, id)| id).collect();
        self.context.statistics.add(Ticker::FamiliesLookedAt, ids.len() as u64);
        let seals = |flushing: bool| {
            let immutable = ids.iter().flat_map(|id| &state.families[id].immutable);
            immutable.filter(move |waiting| waiting.flushing == flushing).map(|waiting| waiting.seal)
        };
        let first = seals(false).min()?;
        let end = seals(true).filter(|seal| *seal > first).min().unwrap_or(u64::MAX);
        let mut parts = Vec::new();
        for id in ids {
            let Some(known) = state.families.get_mut(&id) else { continue };
            let memtables = known.take_sealed(first..end);
            known.flush_requested &= known.waiting() > 0;
            if !memtables.is_empty() {
                parts.push(FlushPart { family: known.family.clone(), memtables });
            }
        }
        if parts.len() > 1 {
            Sometimes::SeveralFamiliesFlushed.reached();
        }
        let is_more = end < u64::MAX && state.families.values().any(|known| known.waiting() > 0);
        Some((FlushJob { parts, seal: first }, is_more))
    }

    fn run_flush(&self, job: &FlushJob) -> Result<Flushed> {
        let mut seat = Some(self.background.workers.seats().flush());
        let outputs = self.write_parts(job)?;
        self.context.statistics.add(Ticker::Flushes, 1);
        loop {
            let commit = self.pipeline.commit.lock();
            let mut state = self.tree.state.lock();
            let is_lost = |part: &FlushPart| part.family.is_dropped() && !Mutant::FlushDroppedFamily.is_on();
            if job.parts.iter().all(is_lost) {
                Sometimes::DroppedWhileFlushing.reached();
                drop((state, commit));
                self.discard_all(job, &outputs);
                return Ok(Flushed::Done);
            }
            let before = self.before(&state, job);
            if !matches!(before, Before::Nothing) {
                // Another flush has what is older, and readers would look there first. If that failed, this one gives its own
                // back: whoever takes up the older memtables takes all.
                Sometimes::FlushWaitedForOlder.reached();
                drop(commit);
                let hope = self.context.poison.check_fatal().and_then(|()| self.context.check_open());
                if matches!(before, Before::Taken) && hope.is_ok() {
                    drop(seat.take());
                    self.tree.progress.wait(&mut state);
                    seat = Some(self.background.workers.seats().flush());
                    continue;
                }
                drop(state);
                self.discard_all(job, &outputs);
                return hope.map(|()| Flushed::GivenBack);
            }
            // What these families keep must not outlive older writes to others.
            let others_may_lose = state.families.len() > 1
                && !commit.debt.logs.is_empty()
                && !Mutant::SkipSyncOfOlderWals.is_on();
            drop(commit);
            if others_may_lose {
                drop(state);
                Sometimes::OlderWalsSynced.reached();
                self.sync_older_wals()?;
                continue;
            }
            let memtables = job.parts.iter().flat_map(|part| &part.memtables);
            state.pace.note_flush(memtables.map(|mem| mem.bytes()).sum(), self.context.env.clock.now_us());
            let (lost, kept): (Vec<_>, Vec<_>) =
                job.parts.iter().zip(outputs).partition(|(part, _)| is_lost(part));
            let to_open: Vec<_> =
                kept.iter().map(|(part, output)| (&part.family, output.to_open.clone())).collect();
            let installed = self.install_flush(&mut state, kept);
            drop((state, seat));
            for (part, output) in lost {
                Sometimes::DroppedWhileFlushing.reached();
                self.discard(&part.family, &output);
            }
            to_open.iter().for_each(|(family, tables)| self.open_tables(family, tables));
            return installed.map(|()| Flushed::Done);
        }
    }

    /// Whether something older must be in tables first: of the same family; of all, where these are flushed together, for a
    /// crash must not leave what was written later without what was written before.
    fn before(&self, state: &State, job: &FlushJob) -> Before {
        let is_older = |oldest: &&Immutable| oldest.seal < job.seal;
        let fronts = |id: ColumnFamilyId| state.families.get(&id).and_then(|known| known.immutable.front());
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

    /// Makes the edits of a job durable and visible, all or none: one of each family, with what was written for it. After a
    /// failure nothing has changed, but what the MANIFEST holds is unknown: where the disk was only full the next change begins
    /// a new one, else the database is poisoned.
    pub(in crate::db) fn apply_edits(
        &self,
        state: &mut State,
        edits: Vec<VersionEdit>,
        outputs: &[(&Family, &JobOutput)],
    ) -> Result<()> {
        let removed = state.damage.key_faults.tables_removed(&edits);
        let outcome = state.versions.log_and_apply_atomically(edits);
        self.after_manifest_change(state, outcome).inspect_err(|_| {
            let files = outputs.iter().flat_map(|(family, output)| output.files(&family.paths));
            state.leftovers.unsettled.extend(files);
        })?;
        self.note_key_faults(state, &removed, outputs);
        Ok(())
    }

    pub(in crate::db) fn after_manifest_change<T>(&self, state: &mut State, outcome: Result<T>) -> Result<T> {
        match &outcome {
            // After a failure this was a new MANIFEST: what others may name no longer matters.
            Ok(_) => {
                state.leftovers.unsettled.drain(..).for_each(|file| self.disk.obsolete.push(file));
                self.remove_replaced_manifests(state);
            }
            Err(_) if state.versions.poison().is_none() => {}
            Err(error) if error.subcode() == SubCode::NoSpace => state.versions.resume(),
            Err(error) => self.fail(state, error),
        }
        outcome
    }

    /// Makes a flush durable and visible: of several families in one atomic group, so that a crash leaves all or none.
    fn install_flush(&self, state: &mut State, flushed: Vec<(&FlushPart, JobOutput)>) -> Result<()> {
        let mut log_numbers = BTreeMap::new();
        for (part, _) in &flushed {
            let known =
                state.families.get(&part.family.id).expect("a family that is not dropped has a state");
            let next = known.immutable.get(part.memtables.len());
            log_numbers.insert(part.family.id, next.map_or(known.mem_wal, |next| next.wal));
        }
        let needed = state.oldest_needed_wal(&log_numbers);
        let edits = flushed.iter().map(|(part, output)| {
            let mut edit = VersionEdit::new(part.family.id);
            output.describe(&mut edit, 0);
            edit.log_number = Some(log_numbers[&part.family.id]);
            edit.min_log_number_to_keep = Some(needed);
            edit
        });
        let edits = edits.collect();
        let memtables = flushed.iter().flat_map(|(part, _)| &part.memtables);
        let last = memtables.filter_map(|mem| mem.largest_sequence()).max().unwrap_or(0);
        state.versions.set_last_sequence(last.max(self.snapshots.published.load(Ordering::Acquire)));
        if Mutant::RemoveWalBeforeManifest.is_on() {
            self.remove_old_wals(state, needed);
        }
        let outputs: Vec<_> = flushed.iter().map(|(part, output)| (&*part.family, output)).collect();
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
        self.context.events.note(|| Event::Flushed(self.job_info(&part.family, Vec::new(), 0, output)));
        output.unreferenced.iter().for_each(|file| file.give_up());
        let version = state.versions.family(id).expect("still there").current.clone();
        let known = state.families.get_mut(&id).expect("still there");
        known.immutable.drain(..part.memtables.len());
        known.activity.note_flush(output);
        known.note_deleted(&output.deleted, &version);
        let now_us = self.context.env.clock.now_us();
        if output.is_filtered {
            known.install_another_past(version, now_us)
        } else {
            known.install(version, now_us)
        }
        known.compacting.forced_gc_below = self.tree.file_numbers.next();
        state.note(id);
    }
}

fn is_waiting(state: &State, id: ColumnFamilyId, mem: &Arc<Generation>) -> bool {
    state
        .families
        .get(&id)
        .is_some_and(|known| known.immutable.iter().any(|waiting| Arc::ptr_eq(&waiting.mem, mem)))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::base::ValueType;
    use crate::base::sync::{MutexGuard, yield_now};
    use crate::env::Env;
    use crate::options::Options;

    /// A flush that failed gave its memtables back, in front of those of another; whoever took them up took the request for those
    /// behind along, and left these. Who had asked for that flush, and waited for it, waited on.
    #[test]
    fn a_flush_that_was_asked_for_stays_so_until_all_are_taken() {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        options.set_all("min_write_buffer_number_to_merge=2;max_write_buffer_number=6").unwrap();
        let db = Db::open("/db", &options).unwrap();
        let (inner, id) = (db.inner(), ColumnFamilyId::DEFAULT);
        // Held to the end, so that no worker takes part.
        let mut state = inner.tree.state.lock();
        let known = state.families.get_mut(&id).unwrap();
        known.immutable.extend([false, true, false].map(|flushing| {
            let mem = inner.new_memtable(&known.family);
            mem.add(1, ValueType::Value, b"key", b"value");
            Immutable { mem, wal: known.mem_wal, seal: 0, flushing }
        }));
        known.flush_requested = true;
        state.note(id);
        let first = inner.take_flush(&mut state).unwrap();
        assert_eq!(first.parts[0].memtables.len(), 1, "not past what another flush has");
        let second = inner.take_flush(&mut state).unwrap();
        assert_eq!(second.parts[0].memtables.len(), 1);
        assert!(inner.take_flush(&mut state).is_none());
        let known = state.families.get_mut(&id).unwrap();
        assert!(!known.flush_requested);
        known.immutable.clear();
        state.note(id);
        state.running.flushes = 0;
    }

    /// A flush waited for that of what is older also after this had failed and nobody was at it any more: where another thread
    /// had resumed writes meanwhile, and this one was the only one that would have tried again, both waited on.
    #[test]
    fn what_waits_for_an_older_flush_that_failed_goes_with_it() {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        options.set_all("min_write_buffer_number_to_merge=2;max_write_buffer_number=6").unwrap();
        let db = Db::open("/db", &options).unwrap();
        let (inner, id) = (db.inner().clone(), ColumnFamilyId::DEFAULT);
        let older = {
            let mut state = inner.tree.state.lock();
            let known = state.families.get_mut(&id).unwrap();
            known.immutable.extend([1, 2].map(|sequence| {
                let mem = inner.new_memtable(&known.family);
                mem.add(sequence, ValueType::Value, b"key", b"value");
                Immutable { mem, wal: known.mem_wal, seal: sequence, flushing: sequence == 1 }
            }));
            known.flush_requested = true;
            let older = known.immutable[0].mem.clone();
            state.running.flushes += 1;
            state.note(id);
            older
        };
        let (ended, heard) = channel();
        let flushing = inner.clone();
        let work = move || {
            let _ = ended.send(flushing.flush_one().and_then(|_| flushing.wait_until_idle()));
        };
        inner.context.env.spawner.spawn("flush", Box::new(work)).unwrap();
        let mut state = inner.tree.state.lock();
        while state.running.flushes < 2 {
            MutexGuard::unlocked(&mut state, yield_now);
        }
        // As a flush does that failed; but nobody looks after it.
        let known = state.families.get_mut(&id).unwrap();
        known.give_back(&[older]);
        known.flush_requested = false;
        state.running.flushes -= 1;
        state.note(id);
        inner.tree.progress.notify_all();
        drop(state);
        heard.recv_timeout(Duration::from_secs(60)).expect("it does not wait for ever").unwrap();
        assert_eq!((inner.tree.state.lock().families[&id].immutable.len(), db.live_files().len()), (0, 1));
    }
}
