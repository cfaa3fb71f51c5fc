//! Flushing: immutable memtables of a family become one table in level 0, large values go to blob files.
//!
//! 1. Under the state lock: take all waiting memtables of a family, oldest first; with `atomic_flush`, those of all families.
//! 2. Without it: merge them through the drop rules into a table (and blob files) a family, several at the same time; sync them,
//!    sync the directory.
//! 3. When what is older is in tables, under it again: one version edit adds the files and says which WALs the family
//!    still needs; readers get the new version in place of the memtables; WALs that no family needs go. Where the flush of what
//!    is older has failed, the memtables are given back, to be taken together.

use std::sync::Arc;

use crate::base::{ColumnFamilyId, Mutant, Result, Sometimes};
use crate::db::DbInner;
use crate::db::family::{ColumnFamily, Family};
use crate::db::generation::Generation;
use crate::db::state::State;
use crate::db::statistics::Ticker;
use crate::db::tree::flushes::{Before, FlushJob, FlushPart, Flushed};
use crate::db::{Db, family::FamilyState};
use crate::options::FlushOptions;

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
        let ids: Vec<ColumnFamilyId> = if self.tree.flushes_together() {
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
        self.tree.announce_work(&mut state);
        let _asleep = wait.then(|| self.background.workers.sleep_for_them());
        // One after the other: what has come into a table stays there.
        while wait && let Some((id, mem)) = targets.last() {
            if !is_waiting(&state, *id, mem) {
                targets.pop();
                continue;
            }
            self.disk.check_changeable()?;
            self.tree.wait_for_progress(&mut state, None);
        }
        Ok(())
    }

    /// Waits until one more full memtable of the family, or of any that is flushed with it, would not stop writers.
    pub(in crate::db) fn wait_until_a_flush_stalls_nobody(&self, family: &Family) -> Result<()> {
        let _asleep = self.background.workers.sleep_for_them();
        let together = self.tree.flushes_together();
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
            self.tree.announce_work(&mut state);
            self.tree.wait_for_progress(&mut state, None);
        }
    }

    /// Flushes one family if any waits for it; whether one did.
    pub(in crate::db) fn flush_one(&self) -> Result<bool> {
        loop {
            let Some(job) = self.tree.take_flush(&mut self.tree.state.lock()) else { return Ok(false) };
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
                self.tree.announce_work(&mut state);
            }
            self.tree.progress.notify_all();
        }
        outcome
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
            let before = self.tree.before(&state, job);
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
            let installed = self.tree.install_flush(&mut state, kept);
            drop((state, seat));
            for (part, output) in lost {
                Sometimes::DroppedWhileFlushing.reached();
                self.discard(&part.family, &output);
            }
            to_open.iter().for_each(|(family, tables)| self.open_tables(family, tables));
            return installed.map(|()| Flushed::Done);
        }
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
    use crate::db::family::Immutable;
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
        let first = inner.tree.take_flush(&mut state).unwrap();
        assert_eq!(first.parts[0].memtables.len(), 1, "not past what another flush has");
        let second = inner.tree.take_flush(&mut state).unwrap();
        assert_eq!(second.parts[0].memtables.len(), 1);
        assert!(inner.tree.take_flush(&mut state).is_none());
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
