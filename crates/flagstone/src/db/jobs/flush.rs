//! Flushing: immutable memtables of a family become one table in level 0, large values go to blob files.
//!
//! 1. Under the state lock: take all waiting memtables of a family, oldest first; with `atomic_flush`, those of all families.
//! 2. Without it: merge them through the drop rules into a table (and blob files) a family, several at the same time; sync them,
//!    sync the directory.
//! 3. When what is older is in tables, under it again: one version edit adds the files and says which WALs the family
//!    still needs; readers get the new version in place of the memtables; WALs that no family needs go. Where the flush of what
//!    is older has failed, the memtables are given back, to be taken together.

use std::sync::Arc;

use crate::base::{ColumnFamilyId, Result, Sometimes};
use crate::db::Db;
use crate::db::family::{ColumnFamily, Family};
use crate::db::jobs::Jobs;
use crate::db::statistics::Ticker;
use crate::db::tree::flushes::Installed;
use crate::db::tree::flushes::{Before, FlushJob, Flushed};
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
            self.inner().tree.wait_until_a_flush_stalls_nobody(&family.0)?;
        }
        self.inner().jobs.flush_asked_for(std::slice::from_ref(&family.0), options.wait)
    }

    /// As [`Db::flush`], for all families, at once and waiting, whatever that means for writers.
    ///
    /// # Errors
    /// As [`Db::flush`].
    pub fn flush_all(&self) -> Result<()> {
        let families: Vec<_> = self.inner().tree.families.read().values().cloned().collect();
        self.inner().jobs.flush_asked_for(&families, true)
    }
}

impl Jobs {
    /// [`DbInner::flush_families`], with no lock held.
    pub(in crate::db) fn flush_asked_for(&self, families: &[Arc<Family>], wait: bool) -> Result<()> {
        let outcome =
            self.flush_families(families, wait).inspect_err(|error| self.tree.note_full_disk(error));
        self.context.events.tell();
        outcome
    }

    /// Switches the memtables of these families (with `atomic_flush`, of all) and, if asked, waits until they are in tables. A
    /// family that is dropped has nothing to flush.
    pub(in crate::db) fn flush_families(&self, families: &[Arc<Family>], wait: bool) -> Result<()> {
        self.disk.check_changeable()?;
        let mut commit = self.pipeline.commit.lock();
        self.disk.check_changeable()?;
        let ids: Vec<ColumnFamilyId> = if self.tree.flushes_together() {
            self.tree.families.read().keys().copied().collect()
        } else {
            families.iter().map(|family| family.id).collect()
        };
        self.pipeline.switch_memtables(&mut commit, &ids)?;
        // Before anybody writes to the new ones.
        let wanted = self.tree.ask_for_flush(&ids);
        drop(commit);
        if wait { self.tree.wait_for_flush(wanted) } else { Ok(()) }
    }

    /// Flushes one family if any waits for it; whether one did.
    pub(in crate::db) fn flush_one(&self) -> Result<bool> {
        loop {
            let Some(job) = self.tree.take_flush() else { return Ok(false) };
            if self.flush(job)? == Flushed::Done {
                return Ok(true);
            }
        }
    }

    pub(in crate::db) fn flush(&self, job: FlushJob) -> Result<Flushed> {
        let outcome = self.guarded("flush", || self.run_flush(&job));
        // Memory that is free is free before anybody hears of it.
        let unflushed = (!matches!(outcome, Ok(Flushed::Done))).then_some(job);
        self.tree.end_flush(unflushed, outcome.is_ok());
        outcome
    }

    fn run_flush(&self, job: &FlushJob) -> Result<Flushed> {
        let mut seat = Some(self.background.workers.seats().flush());
        let mut outputs = self.write_parts(job)?;
        self.context.statistics.add(Ticker::Flushes, 1);
        loop {
            // WALs that end later have nothing older than what is flushed here.
            let owes_syncs = !self.pipeline.commit.lock().debt.logs.is_empty();
            match self.tree.install_flush(job, outputs, owes_syncs) {
                Installed::Lost(lost) => {
                    Sometimes::DroppedWhileFlushing.reached();
                    self.discard_all(job, &lost);
                    return Ok(Flushed::Done);
                }
                Installed::NotYet(kept, before) => {
                    outputs = kept;
                    // Another flush has what is older, and readers would look there first. If that failed, this one gives its own
                    // back: whoever takes up the older memtables takes all.
                    Sometimes::FlushWaitedForOlder.reached();
                    drop(seat.take());
                    let goes_on = match before {
                        Before::Taken => self.tree.wait_for_older(job),
                        _ => self.tree.check_hope().map(|()| false),
                    };
                    if !matches!(goes_on, Ok(true)) {
                        self.discard_all(job, &outputs);
                        return goes_on.map(|_| Flushed::GivenBack);
                    }
                    seat = Some(self.background.workers.seats().flush());
                }
                Installed::OwesSyncs(kept) => {
                    outputs = kept;
                    Sometimes::OlderWalsSynced.reached();
                    self.pipeline.sync_older_wals()?;
                }
                Installed::Done { outcome, to_open, lost } => {
                    drop(seat);
                    for (family, output) in lost {
                        Sometimes::DroppedWhileFlushing.reached();
                        self.discard(&family, &output);
                    }
                    to_open.iter().for_each(|(family, tables)| self.open_tables(family, tables));
                    return outcome.map(|()| Flushed::Done);
                }
            }
        }
    }
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
        let mut state = inner.tree.lock();
        let known = state.families.get_mut(&id).unwrap();
        known.immutable.extend([false, true, false].map(|flushing| {
            let mem = inner.pipeline.new_memtable(&known.family);
            mem.add(1, ValueType::Value, b"key", b"value");
            Immutable { mem, wal: known.mem_wal, seal: 0, flushing }
        }));
        known.flush_requested = true;
        state.note(id);
        let first = inner.tree.take_flush_in(&mut state).unwrap();
        assert_eq!(first.parts[0].memtables.len(), 1, "not past what another flush has");
        let second = inner.tree.take_flush_in(&mut state).unwrap();
        assert_eq!(second.parts[0].memtables.len(), 1);
        assert!(inner.tree.take_flush_in(&mut state).is_none());
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
            let mut state = inner.tree.lock();
            let known = state.families.get_mut(&id).unwrap();
            known.immutable.extend([1, 2].map(|sequence| {
                let mem = inner.pipeline.new_memtable(&known.family);
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
            let _ = ended.send(flushing.jobs.flush_one().and_then(|_| flushing.wait_until_idle()));
        };
        inner.context.env.spawner.spawn("flush", Box::new(work)).unwrap();
        let mut state = inner.tree.lock();
        while state.running.flushes < 2 {
            MutexGuard::unlocked(&mut state, yield_now);
        }
        // As a flush does that failed; but nobody looks after it.
        let known = state.families.get_mut(&id).unwrap();
        known.give_back(&[older]);
        known.flush_requested = false;
        state.running.flushes -= 1;
        state.note(id);
        drop(state);
        inner.tree.wake_all();
        heard.recv_timeout(Duration::from_secs(60)).expect("it does not wait for ever").unwrap();
        assert_eq!((inner.tree.lock().families[&id].immutable.len(), db.live_files().len()), (0, 1));
    }
}
