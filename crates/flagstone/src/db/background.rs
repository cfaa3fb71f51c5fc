//! Background work as steps: worker threads loop over them, and a test may drive them in any order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::family::FamilyState;
use super::state::State;
use super::{Db, DbInner};
use crate::base::sync::{MutexGuard, Ordering};
use crate::base::{Code, Error, Result, Sometimes, SubCode};

/// How long a worker waits before it retries after a full disk.
const RETRY: Duration = Duration::from_millis(500);

/// How long an idle worker sleeps at most.
const IDLE: Duration = Duration::from_secs(2);

/// What a worker thread is for. Those for compactions help with flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Flush,
    Compaction,
}

impl Db {
    /// Does one flush or compaction in the calling thread; whether there was one to do. Only where the environment has
    /// no worker threads ([`crate::env::Spawn::choose_step`]); elsewhere the workers do it and this does nothing.
    ///
    /// # Errors
    /// Those of the flush or compaction, which the database has taken note of as of a worker's.
    pub fn background_step(&self) -> Result<bool> {
        self.inner().background_step()
    }
}

impl Db {
    /// Tries at once whether there is space again for what suspended writes; the database does so twice a second by itself.
    ///
    /// # Errors
    /// Why writes are refused still: a full disk, or what only reopening helps against (subcode `Poisoned`).
    pub fn resume(&self) -> Result<()> {
        let inner = self.inner();
        inner.check_open()?;
        while !inner.poison.is_fatal() && inner.attempt_one(Role::Flush)? {}
        inner.events.tell();
        inner.check_writable()
    }
}

impl DbInner {
    /// Starts the worker threads that are still missing: one for flushes, the others for compactions.
    pub(super) fn start_workers(self: &Arc<Self>) -> Result<()> {
        if !self.has_workers() {
            return Ok(());
        }
        let mut threads = self.threads.lock();
        for index in threads.len()..self.workers_wanted() {
            // Once the database is closing nobody would wait for them.
            if self.closing.load(Ordering::Acquire) {
                return Ok(());
            }
            let role = if index == 0 { Role::Flush } else { Role::Compaction };
            let inner = self.clone();
            let name = format!("flagstone-{}{index}", if role == Role::Flush { "flush" } else { "compact" });
            let work = Box::new(move || inner.work_until_closed(role, index));
            threads.push(self.env.spawner.spawn(&name, work)?);
        }
        Ok(())
    }

    /// Whether threads do the work, and not steps.
    pub(super) fn has_workers(&self) -> bool {
        self.env.spawner.choose_step(1).is_none()
    }

    fn workers_wanted(&self) -> usize {
        self.settings.load().max_background_jobs.max(2) as usize
    }

    fn work_until_closed(self: Arc<Self>, role: Role, index: usize) {
        let niceness = self.settings.load().background_niceness;
        if niceness > 0
            && let Err(error) = self.env.spawner.give_way(niceness)
        {
            tracing::warn!(%error, ?role, "background work does not give way");
        }
        while !self.closing.load(Ordering::Acquire) {
            // Taken before looking for work, so that work announced in between is not slept through.
            let seen = self.work_epoch.load(Ordering::Acquire);
            if index >= self.workers_wanted() {
                self.wait_for_work(seen);
                continue;
            }
            let helped = if self.flushes_need_help(role) { self.attempt_one(Role::Flush) } else { Ok(false) };
            match helped.and_then(|helped| Ok(helped || self.attempt_one(role)?)) {
                Ok(true) => {}
                Ok(false) => self.wait_for_work(seen),
                Err(_) => {
                    self.events.tell();
                    let mut state = self.state.lock();
                    if !self.closing.load(Ordering::Acquire) {
                        self.work.wait_for(&mut state, RETRY);
                    }
                }
            }
            self.events.tell();
        }
    }

    /// Whether memtables wait while flushes are running: writers will wait for these sooner than for a compaction.
    fn flushes_need_help(&self, role: Role) -> bool {
        let state = self.state.lock();
        role == Role::Compaction
            && state.running_flushes > 0
            && state.families.values().any(FamilyState::is_ready_to_flush)
    }

    /// [`Self::run_one`], whose failures and panics are noted for the writers.
    fn attempt_one(&self, role: Role) -> Result<bool> {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run_one(role)))
            .unwrap_or_else(|_| Err(Error::new(Code::Aborted, format!("a {role:?} worker panicked"))));
        outcome.inspect_err(|error| self.background_failed(role, error))
    }

    fn background_step(&self) -> Result<bool> {
        let Some(choice) = self.env.spawner.choose_step(2) else { return Ok(false) };
        let mut roles = [Role::Flush, Role::Compaction];
        roles.rotate_left(choice);
        let outcome = roles.into_iter().try_fold(false, |worked, role| Ok(worked || self.attempt_one(role)?));
        if let Ok(false) = outcome {
            self.purge_obsolete_files();
        }
        self.events.tell();
        outcome
    }

    /// Waits until a worker changed the tree or failed, at most for `timeout`; without workers, does their work.
    ///
    /// # Panics
    /// In a world without threads, if there is nothing that would ever end the waiting.
    pub(super) fn wait_for_progress(&self, state: &mut MutexGuard<'_, State>, timeout: Option<Duration>) {
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

    /// Does one piece of work of that role; whether there was any.
    ///
    /// # Errors
    /// Those of the flush or compaction.
    pub(super) fn run_one(&self, role: Role) -> Result<bool> {
        if self.poison.is_fatal() {
            return Ok(false);
        }
        let worked = match role {
            Role::Flush => self.flush_one()? || self.flush_resting_deletions()?,
            Role::Compaction => {
                let punched = self.punch_one()?;
                self.compact_one()? || punched
            }
        };
        if worked {
            self.purge_obsolete_files();
        }
        match role {
            // Also where nothing was left to flush, as the family that found no room was dropped: nobody else would.
            Role::Flush => self.resume_writes(),
            Role::Compaction => {
                self.poison.record_starved(None);
                self.regain_reserve();
            }
        }
        Ok(worked)
    }

    /// Does the work of a job; a panic becomes an error that poisons the database, so that whoever runs the job can put
    /// its own marks back.
    pub(super) fn guarded<T>(&self, what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            Sometimes::JobPanicked.reached();
            let error = Error::new(Code::Aborted, format!("a {what} panicked"));
            self.fail(&mut self.state.lock(), &error);
            Err(error)
        })
    }

    fn wait_for_work(&self, seen: u64) {
        self.purge_obsolete_files();
        self.events.tell();
        let mut state = self.state.lock();
        if self.work_epoch.load(Ordering::Acquire) == seen && !self.closing.load(Ordering::Acquire) {
            // Woken when the tree changes; the timeout serves what only time brings about (TTL, dropped iterators).
            let timeout = if self.reserve.is_released() { RETRY } else { IDLE };
            self.work.wait_for(&mut state, timeout);
            if self.work_epoch.load(Ordering::Acquire) == seen {
                // Nobody writes much now. Enough is kept for the next memtable.
                self.arenas.trim(self.largest_write_buffer.load(Ordering::Relaxed) as usize);
            }
        }
    }

    /// Announces that there may be something to flush or compact; the state lock is held.
    pub(super) fn announce_work(&self, _state: &mut State) {
        self.work_epoch.fetch_add(1, Ordering::AcqRel);
        self.work.notify_all();
    }

    /// A full disk does not stop writes for a compaction's sake: it is tried again, and only who must wait for it hears of
    /// that. A flush that finds no room does: its memtables cannot go anywhere.
    fn background_failed(&self, role: Role, error: &Error) {
        let given_up = matches!(error.code(), Code::ShutdownInProgress | Code::ColumnFamilyDropped);
        let starved = role == Role::Compaction && error.subcode() == SubCode::NoSpace;
        if given_up || starved {
            tracing::warn!(%error, ?role, "background work did not finish");
        }
        self.note_starved(role, error);
        match (given_up, starved) {
            (true, _) => return,
            (_, true) => self.poison.record_starved(Some(error)),
            _ => self.poison.record(error),
        }
        // Writers that wait for room must see it.
        let _state = self.state.lock();
        self.progress.notify_all();
    }
}
