//! The threads that work for a database, and the rates that they keep to.

pub(in crate::db) mod io_limit;

use std::sync::Arc;

use crate::base::Result;
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::db::background::io_limit::IoState;
use crate::db::context::Context;
use crate::env::{
    Asleep, BackgroundThreads, GivingWay, JobLimits, Member, MemberId, ReaderPool, Seats,
};
use crate::options::{DbSettings, Options};

pub(in crate::db) use crate::env::Role;

/// Who does the background work of a database, and how fast.
pub(in crate::db) struct Background {
    context: Arc<Context>,
    workers: Workers,
    /// How often the workers were told that there may be something to do.
    announced: AtomicU64,
    io: Arc<IoState>,
}

impl Background {
    pub(in crate::db) fn new(context: Arc<Context>) -> Self {
        let io = Arc::new(IoState::new(context.statistics.clone()));
        let workers = Workers::new(&context.settings.load());
        Self { context, workers, announced: AtomicU64::new(0), io }
    }

    /// Has the threads look for work, or, where they do so already, as many of them as the settings
    /// want now.
    ///
    /// # Errors
    /// `IoError` if the system has no thread left.
    pub(in crate::db) fn join(&self, work: Arc<dyn Member>) -> Result<()> {
        self.workers.join(&self.context, work)
    }

    /// Whether nothing was announced since this was asked last.
    pub(in crate::db) fn is_resting(&self) -> bool {
        let now = self.announcements();
        self.workers.announced_before.swap(now, Ordering::AcqRel) == now
    }

    /// Tells the threads that there may be something to do for the database.
    pub(in crate::db) fn announce_all(&self) {
        self.announced.fetch_add(1, Ordering::AcqRel);
        Role::ALL.iter().for_each(|role| self.announce(*role));
    }

    /// Tells them that there may be more to do of one kind; this is not counted.
    pub(in crate::db) fn announce(&self, role: Role) {
        self.workers.announce(role);
    }

    /// How often threads were told that there may be something to do.
    pub(in crate::db) fn announcements(&self) -> u64 {
        self.announced.load(Ordering::Acquire)
    }

    /// Waits for the threads' work for this database, which was told to close.
    pub(in crate::db) fn leave(&self) {
        self.workers.leave();
    }

    /// How work that takes long is done.
    pub(in crate::db) fn giving_way(&self) -> GivingWay<'_> {
        self.workers.threads.giving_way()
    }

    /// Where a compaction makes room for flushes.
    pub(in crate::db) fn seats(&self) -> &Seats {
        &self.workers.seats
    }

    /// The caller sleeps until the threads have come further, for as long as it has this: their
    /// work does not give way meanwhile.
    pub(in crate::db) fn sleep_for_them(&self) -> Asleep<'_> {
        self.workers.threads.sleepers().enter()
    }

    #[cfg(test)]
    pub(in crate::db) fn are_slept_for(&self) -> bool {
        self.workers.threads.sleepers().are_any()
    }

    /// Where reads wait for a disk.
    pub(in crate::db) fn readers(&self) -> &ReaderPool {
        self.workers.threads.readers()
    }

    /// The database is being closed: its jobs no longer wait for a rate limit.
    pub(in crate::db) fn set_closing(&self) {
        self.io.set_closing();
    }

    /// Writers are held up, or no longer: jobs pass their rate limit with the writers' priority.
    pub(in crate::db) fn set_holds_writers_up(&self, holds: bool) {
        self.io.set_holds_writers_up(holds);
    }
}

/// The threads that work for a database: its own, or those that it shares with others.
struct Workers {
    threads: Arc<BackgroundThreads>,
    is_shared: bool,
    seats: Seats,
    /// Once they look for work.
    member: Mutex<Option<MemberId>>,
    /// What was announced when a look for flushes found none.
    announced_before: AtomicU64,
}

impl Workers {
    fn new(options: &Options) -> Self {
        let own =
            || BackgroundThreads::of(own_threads(options), options.low_priority(), &options.env);
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
    fn join(&self, context: &Context, work: Arc<dyn Member>) -> Result<()> {
        let mut member = self.member.lock();
        // Once the database is closing nobody would let them go.
        if context.closing.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.is_shared {
            self.threads.start(own_threads(&context.settings.load()))?;
        }
        if member.is_none() {
            *member = Some(self.threads.join(work)?);
        }
        Ok(())
    }

    fn announce(&self, role: Role) {
        if let Some(member) = *self.member.lock() {
            self.threads.announce(member, role);
        }
    }

    /// Waits for what they do for this database, which was told to close.
    fn leave(&self) {
        let member = self.member.lock().take();
        if let Some(member) = member {
            self.threads.leave(member);
        }
        if !self.is_shared {
            self.threads.end();
        }
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
