//! Background work as steps: worker threads loop over them, and a test may drive them in any order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::base::allocator::ReleasedAtEnd;
use crate::base::sync::Ordering;
use crate::base::{Code, Error, Result, Sometimes};
use crate::db::background::jobs_apart;
use crate::db::jobs::{Jobs, deletions, punch, tracking, write_buffers, write_times};
use crate::db::tree::{Steps, damage};
use crate::env::{JobLimits, Member, Next, Role, Seats, is_out_of_descriptors};
use crate::options::BackgroundErrorReason;

/// How long a worker waits before it retries after a full disk.
const RETRY: Duration = Duration::from_millis(500);

/// After how long a worker looks for work that nobody announced.
const IDLE: Duration = Duration::from_secs(2);

impl Steps for Jobs {
    fn background_step(&self) -> Result<bool> {
        self.do_background_step()
    }
}

impl Member for Jobs {
    fn work(&self, role: Role) -> Next {
        if self.context.closing.load(Ordering::Acquire) {
            return Next::After(IDLE);
        }
        tracking::list_worker(&self.context, role);
        damage::note_suspects(&self.tree);
        self.context.note_history();
        write_times::note(self);
        self.figures.write_if_due(self);
        if role == Role::Flush {
            write_buffers::serve_other_databases(self);
        }
        let next = match self.attempt_one(role) {
            Ok(true) => Next::Again,
            Ok(false) => {
                match role {
                    Role::Flush => {
                        self.purge_between_flushes();
                        self.give_memory_back();
                    }
                    Role::Compaction => self.purge_obsolete_files(),
                }
                // Asked again when the tree changes; the time serves what only time brings about
                // (TTL, dropped iterators), or space.
                let waits_for_space =
                    self.context.poison.check().is_err_and(|e| e.waits_for_space());
                Next::After(if waits_for_space { RETRY } else { IDLE })
            }
            Err(_) => Next::After(RETRY),
        };
        self.context.events.tell();
        next
    }

    fn jobs_at_most(&self) -> JobLimits {
        let settings = self.context.settings.load();
        jobs_apart(&settings)
            .unwrap_or_else(|| JobLimits::together(settings.max_background_jobs.max(1) as usize))
    }

    fn seats(&self) -> &Seats {
        self.background.seats()
    }
}

impl Jobs {
    /// Has threads look for work from now on.
    ///
    /// # Errors
    /// `IoError` if the system has no thread left.
    pub(in crate::db) fn start_workers(self: &Arc<Self>) -> Result<()> {
        if !self.tree.has_workers() {
            let steps: std::sync::Weak<Self> = Arc::downgrade(self);
            self.tree.set_steps(steps);
            return Ok(());
        }
        if let Some(buffers) = self.limits.write_buffers() {
            let background = Arc::downgrade(&self.background);
            buffers.wake_with(move || {
                if let Some(background) = background.upgrade() {
                    background.announce(Role::Flush);
                }
            });
        }
        self.background.join(self.clone())?;
        self.figures.begin(&self.context);
        self.figures.write_if_due(self);
        Ok(())
    }

    /// Other processes are no longer told what the database does.
    pub(in crate::db) fn end_figures(&self) {
        self.figures.end();
    }

    /// [`Self::run_one`], whose failures and panics are noted for the writers.
    pub(in crate::db) fn attempt_one(&self, role: Role) -> Result<bool> {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run_one(role))).unwrap_or_else(|_| {
            Err(Error::new(Code::Aborted, format!("a {role:?} worker panicked")))
        });
        outcome.inspect_err(|error| self.background_failed(role, error))
    }

    fn do_background_step(&self) -> Result<bool> {
        let Some(choice) = self.context.env.spawner.choose_step(2) else { return Ok(false) };
        self.context.note_history();
        write_times::note(self);
        write_buffers::serve_other_databases(self);
        let mut roles = [Role::Flush, Role::Compaction];
        roles.rotate_left(choice);
        let outcome =
            roles.into_iter().try_fold(false, |worked, role| Ok(worked || self.attempt_one(role)?));
        if let Ok(false) = outcome {
            self.purge_obsolete_files();
            // What was removed may have been all that writes waited for.
            self.disk.regain_reserve();
            self.give_memory_back();
        }
        self.context.events.tell();
        outcome
    }

    /// Does one piece of work of that role; whether there was any. Where the database is open
    /// read-only there is none.
    ///
    /// # Errors
    /// Those of the flush or compaction.
    pub(in crate::db) fn run_one(&self, role: Role) -> Result<bool> {
        if self.context.read_only || self.context.poison.is_fatal() {
            return Ok(false);
        }
        let worked = match role {
            Role::Flush => self.flush_one()? || deletions::flush_waiting_deletions(self)?,
            // The space of what is replaced counts on: it would become more and more.
            Role::Compaction if self.removal_is_behind() => false,
            Role::Compaction => {
                let punched = punch::punch_one(self)?;
                self.compact_one()? || punched || punch::punch_at_rest(self)?
            }
        };
        match role {
            Role::Flush if worked => self.purge_between_flushes(),
            Role::Compaction if worked => self.purge_obsolete_files(),
            _ => {}
        }
        match role {
            // How that ends which goes on is not known yet.
            Role::Flush if !worked && self.tree.is_flushing_or_paused() => {}
            // Also where nothing was left to flush, as the family that found no room was dropped:
            // nobody else would.
            Role::Flush => {
                self.disk.resume_writes();
                self.options_file.write_due_options_file();
            }
            Role::Compaction => self.disk.regain_reserve(),
        }
        Ok(worked)
    }

    /// Does the work of a job; a panic becomes an error that poisons the database, so that whoever
    /// runs the job can put its own marks back.
    pub(in crate::db) fn guarded<T>(
        &self,
        what: &str,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            Sometimes::JobPanicked.reached();
            let error = Error::new(Code::Aborted, format!("a {what} panicked"));
            let is_flush = what == "flush";
            self.tree.fail(reason_of(is_flush), &error);
            Err(error)
        })
    }

    /// Nothing is to be done: what is not needed goes back to the system. Where little is written,
    /// the memory of one memtable is kept, and none if none was begun or flushed for
    /// `unused_memory_seconds`.
    fn give_memory_back(&self) {
        if self.background.is_resting() {
            self.arenas.trim(self.limits.largest_write_buffer() as usize);
        }
        let unused_us =
            self.context.settings.load().unused_memory_seconds.saturating_mul(1_000_000);
        let freed = self.arenas.trim_unused(self.context.env.clock.now_us(), unused_us);
        ReleasedAtEnd::default().expect(freed);
        self.tables.size_cache();
    }

    /// A full disk, or too many open files, does not stop writes for a compaction's sake: it is
    /// tried again, and only who must wait for it hears of that. A flush that finds no room does:
    /// its memtables cannot go anywhere.
    fn background_failed(&self, role: Role, error: &Error) {
        let given_up = matches!(error.code(), Code::ShutdownInProgress | Code::ColumnFamilyDropped);
        let lacks_something = error.waits_for_space() || is_out_of_descriptors(error);
        let starved = role == Role::Compaction && lacks_something;
        // Of what is tried again and again, once.
        if given_up || starved && self.context.poison.check_starved().is_ok() {
            tracing::warn!(%error, ?role, "background work did not finish");
        }
        self.tree.note_starved(role, error);
        if error.waits_for_space() {
            // The next attempt may want their space, and where all fail nobody else removes them.
            self.purge_obsolete_files();
        }
        match (given_up, starved) {
            (true, _) => return,
            (_, true) => self.context.poison.record_starved(Some(error)),
            _ => self.context.poison.record(reason_of(role == Role::Flush), error),
        }
        // Writers that wait for room must see it.
        self.tree.wake_all();
    }
}

pub(in crate::db::jobs) fn reason_of(is_flush: bool) -> BackgroundErrorReason {
    if is_flush { BackgroundErrorReason::Flush } else { BackgroundErrorReason::Compaction }
}

#[cfg(test)]
mod tests;
