//! Background work as steps: worker threads loop over them, and a test may drive them in any order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::base::{Code, Error, Result, Sometimes, SubCode};
use crate::db::context::Context;
use crate::db::handle::Db;
use crate::db::jobs::Jobs;
use crate::db::jobs::io_limit::IoState;
use crate::db::tree::Steps;
pub(in crate::db) use crate::env::Role;
use crate::env::{
    Asleep, BackgroundThreads, GivingWay, JobLimits, Member, MemberId, Next, ReaderPool, Seats,
    is_out_of_descriptors,
};
use crate::options::{DbSettings, Options};

/// How long a worker waits before it retries after a full disk.
const RETRY: Duration = Duration::from_millis(500);

/// After how long a worker looks for work that nobody announced.
const IDLE: Duration = Duration::from_secs(2);

/// Who does the background work of a database, and how fast.
pub(in crate::db) struct Background {
    pub(super) context: Arc<Context>,
    pub(in crate::db) workers: Workers,
    /// How often the workers were told that there may be something to do.
    pub(in crate::db) announced: AtomicU64,
    pub(in crate::db) io: Arc<IoState>,
}

impl Background {
    pub(in crate::db) fn new(context: Arc<Context>) -> Self {
        let io = Arc::new(IoState::new(context.statistics.clone()));
        let workers = Workers::new(&context.settings.load());
        Self { context, workers, announced: AtomicU64::new(0), io }
    }
}

/// The threads that work for a database: its own, or those that it shares with others.
pub(in crate::db) struct Workers {
    threads: Arc<BackgroundThreads>,
    is_shared: bool,
    seats: Seats,
    /// Once they look for work.
    member: Mutex<Option<MemberId>>,
    /// What was announced when a look for flushes found none.
    announced_before: AtomicU64,
}

impl Workers {
    pub(in crate::db) fn new(options: &Options) -> Self {
        let own = || {
            BackgroundThreads::of(own_threads(options), options.background_niceness, &options.env)
        };
        Self {
            threads: options.background_threads.clone().unwrap_or_else(|| Arc::new(own())),
            is_shared: options.background_threads.is_some(),
            seats: Seats::default(),
            member: Mutex::new(None),
            announced_before: AtomicU64::new(u64::MAX),
        }
    }

    /// Has them look for work, or, where they do so already, as many of them as the settings want
    /// now.
    fn join(&self, inner: &Arc<Jobs>) -> Result<()> {
        let mut member = self.member.lock();
        // Once the database is closing nobody would let them go.
        if inner.context.closing.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.is_shared {
            self.threads.start(own_threads(&inner.context.settings.load()))?;
        }
        if member.is_none() {
            *member = Some(self.threads.join(inner.clone())?);
        }
        Ok(())
    }

    pub(in crate::db) fn announce(&self, role: Role) {
        if let Some(member) = *self.member.lock() {
            self.threads.announce(member, role);
        }
    }

    /// Waits for what they do for this database, which was told to close.
    pub(in crate::db) fn leave(&self) {
        let member = self.member.lock().take();
        if let Some(member) = member {
            self.threads.leave(member);
        }
        if !self.is_shared {
            self.threads.end();
        }
    }

    /// How work that takes long is done.
    pub(in crate::db) fn giving_way(&self) -> GivingWay<'_> {
        self.threads.giving_way()
    }

    /// Where a compaction makes room for flushes.
    pub(in crate::db) fn seats(&self) -> &Seats {
        &self.seats
    }

    /// The caller sleeps until they have come further, for as long as it has this: what they do
    /// does not give way meanwhile.
    pub(in crate::db) fn sleep_for_them(&self) -> Asleep<'_> {
        self.threads.sleepers().enter()
    }

    #[cfg(test)]
    pub(in crate::db) fn are_slept_for(&self) -> bool {
        self.threads.sleepers().are_any()
    }

    /// Where reads wait for a disk.
    pub(in crate::db) fn readers(&self) -> &ReaderPool {
        self.threads.readers()
    }
}

/// How many threads a database has that shares none, by role.
fn own_threads(options: &Options) -> [usize; 2] {
    match jobs_apart(options) {
        Some(apart) => apart.by_role,
        None => [1, options.max_background_jobs.max(1) as usize],
    }
}

/// What `max_background_flushes` and `max_background_compactions` say, if one of them says
/// anything.
pub(in crate::db) fn jobs_apart(settings: &DbSettings) -> Option<JobLimits> {
    let [flushes, compactions] =
        [settings.max_background_flushes, settings.max_background_compactions];
    let is_said = flushes != -1 || compactions != -1;
    is_said.then(|| JobLimits::apart(flushes.max(1) as usize, compactions.max(1) as usize))
}

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
        self.tree.note_suspects();
        let next = match self.attempt_one(role) {
            Ok(true) => Next::Again,
            Ok(false) => {
                match role {
                    Role::Flush => {
                        self.purge_between_flushes();
                        self.trim_if_resting();
                    }
                    Role::Compaction => self.purge_obsolete_files(),
                }
                // Asked again when the tree changes; the time serves what only time brings about
                // (TTL, dropped iterators).
                Next::After(if self.disk.reserve.is_released() { RETRY } else { IDLE })
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
        self.background.workers.seats()
    }
}

impl Db {
    /// Does one flush or compaction in the calling thread; whether there was one to do. Only where
    /// the environment has no worker threads ([`crate::env::Spawn::choose_step`]); elsewhere the
    /// workers do it and this does nothing.
    ///
    /// # Errors
    /// Those of the flush or compaction, which the database has taken note of as of a worker's.
    pub fn background_step(&self) -> Result<bool> {
        self.inner().jobs.background_step()
    }
}

impl Db {
    /// Tries at once whether there is space again for what suspended writes; the database does so
    /// twice a second by itself.
    ///
    /// # Errors
    /// Why writes are refused still: a full disk, or what only reopening helps against (subcode
    /// `Poisoned`).
    pub fn resume(&self) -> Result<()> {
        let inner = self.inner();
        inner.context.check_open()?;
        let _asleep = inner.background.workers.sleep_for_them();
        while !inner.context.poison.is_fatal() && inner.jobs.attempt_one(Role::Flush)? {}
        inner.context.events.tell();
        inner.context.check_writable()
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
        self.background.workers.join(self)
    }

    /// [`Self::run_one`], whose failures and panics are noted for the writers.
    fn attempt_one(&self, role: Role) -> Result<bool> {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run_one(role))).unwrap_or_else(|_| {
            Err(Error::new(Code::Aborted, format!("a {role:?} worker panicked")))
        });
        outcome.inspect_err(|error| self.background_failed(role, error))
    }

    fn do_background_step(&self) -> Result<bool> {
        let Some(choice) = self.context.env.spawner.choose_step(2) else { return Ok(false) };
        let mut roles = [Role::Flush, Role::Compaction];
        roles.rotate_left(choice);
        let outcome =
            roles.into_iter().try_fold(false, |worked, role| Ok(worked || self.attempt_one(role)?));
        if let Ok(false) = outcome {
            self.purge_obsolete_files();
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
            Role::Flush => self.flush_one()? || self.flush_waiting_deletions()?,
            // The space of what is replaced counts on: it would become more and more.
            Role::Compaction if self.removal_is_behind() => false,
            Role::Compaction => {
                let punched = self.punch_one()?;
                self.compact_one()? || punched || self.punch_at_rest()?
            }
        };
        match role {
            Role::Flush if worked => self.purge_between_flushes(),
            Role::Compaction if worked => self.purge_obsolete_files(),
            _ => {}
        }
        match role {
            // How that ends which goes on is not known yet.
            Role::Flush if !worked && self.tree.is_flushing() => {}
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
            self.tree.fail(&error);
            Err(error)
        })
    }

    /// Nobody writes much now. Enough memory is kept for the next memtable.
    fn trim_if_resting(&self) {
        let now = self.background.announced.load(Ordering::Acquire);
        if self.background.workers.announced_before.swap(now, Ordering::AcqRel) == now {
            self.arenas.trim(self.limits.largest_write_buffer.load(Ordering::Relaxed) as usize);
        }
    }

    /// A full disk, or too many open files, does not stop writes for a compaction's sake: it is
    /// tried again, and only who must wait for it hears of that. A flush that finds no room does:
    /// its memtables cannot go anywhere.
    fn background_failed(&self, role: Role, error: &Error) {
        let given_up = matches!(error.code(), Code::ShutdownInProgress | Code::ColumnFamilyDropped);
        let lacks_something = error.subcode() == SubCode::NoSpace || is_out_of_descriptors(error);
        let starved = role == Role::Compaction && lacks_something;
        if given_up || starved {
            tracing::warn!(%error, ?role, "background work did not finish");
        }
        self.tree.note_starved(role, error);
        if error.subcode() == SubCode::NoSpace {
            // The next attempt may want their space, and where all fail nobody else removes them.
            self.purge_obsolete_files();
        }
        match (given_up, starved) {
            (true, _) => return,
            (_, true) => self.context.poison.record_starved(Some(error)),
            _ => self.context.poison.record(error),
        }
        // Writers that wait for room must see it.
        self.tree.wake_all();
    }
}
