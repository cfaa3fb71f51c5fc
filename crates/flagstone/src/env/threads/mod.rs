//! Threads for the background work of one database, or of several that share them.
//!
//! 1. A database joins as a [`Member`], and from then on announces that there may be work of a
//!    [`Role`].
//! 2. An announcement puts it into the line of the role. A thread takes the first member in the
//!    line and asks it to look: the member does one piece of work, or finds that there is none
//!    ([`Next`]).
//! 3. A member that did something goes to the end of the line. A member that did nothing is asked
//!    again when it announces something, or after a while.
//! 4. Threads for flushes do nothing else. Threads for compactions first take entries from the line
//!    of flushes, if it has more than there are idle threads for flushes. A flush never waits for a
//!    compaction: if a member has all its jobs, one that compacts pauses.
//! 5. A database leaves: it is removed from the lines, and its running work is waited for.
//!
//! **Thread safety.** One lock guards the lines. It is held for one look, and no member works under
//! it. It may be taken under any of the engine's locks.
//!
//! **Invariants.** A member has at most one entry per role in a line, but several threads may work
//! for it, up to [`Member::jobs_at_most`]. Work announced during a look is looked for again. For
//! every entry in a line a thread is awake, or all are busy.
//!
//! - `line`: who is next
//! - `seats`: compactions pause for flushes
//! - `turns`: long work yields to other threads until a writer sleeps for it
//! - `readers`: separate threads for reads that must not block their caller

mod line;
mod readers;
mod seats;
#[cfg(test)]
mod tests;
mod turns;
#[cfg(test)]
mod turns_tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Clock, Env, Join, LowPriority, Spawn};
use crate::base::sync::{Condvar, Mutex, MutexGuard};
use crate::base::{Error, Result};
use line::Line;

pub(crate) use line::MemberId;
pub(crate) use readers::ReaderPool;
pub(crate) use seats::Seats;
use turns::Sleepers;
pub(crate) use turns::{Asleep, GivingWay, Turn};

/// Purpose of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Role {
    /// Flushes.
    Flush,
    /// Compactions; also helps with flushes.
    Compaction,
}

impl Role {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Flush, Self::Compaction];
}

/// What comes of a look for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// There was some, and may be more.
    Again,
    /// There was none, or it failed: to be looked for when it is announced, or after so long.
    After(Duration),
}

/// Whoever has work for background threads.
pub trait Member: Send + Sync {
    /// Looks for work and does one piece of it.
    fn work(&self, role: Role) -> Next;

    /// How many threads may work for this one at a time. Asked under a lock.
    fn jobs_at_most(&self) -> JobLimits;

    /// Where its compactions make room for its flushes.
    fn seats(&self) -> &Seats;
}

/// How many threads may work for one member at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobLimits {
    /// By role, at least one each.
    pub by_role: [usize; 2],
    /// For both.
    pub together: usize,
}

impl JobLimits {
    /// A limit on the jobs of both kinds together. A flush that comes while compactions use all of
    /// them begins at once, and one of the compactions pauses for it ([`Seats`]). If the limit is
    /// 1, the one compaction runs beside a flush.
    pub fn together(jobs: usize) -> Self {
        let together = jobs.max(2);
        Self { by_role: [together, jobs.max(1)], together }
    }

    /// Separate limits on flushes and compactions.
    pub fn apart(flushes: usize, compactions: usize) -> Self {
        Self { by_role: [flushes, compactions], together: flushes + compactions }
    }
}

/// Settings of [`BackgroundThreads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundThreadsOptions {
    /// Threads that only flush (RocksDB's pool `HIGH`); at least one.
    pub flush_threads: usize,
    /// Threads for compactions (RocksDB's pool `LOW`), which also help with flushes; at least one.
    pub compaction_threads: usize,
    /// Niceness added to long work as long as no writer is waiting for it, from 0 to 19. Replaces
    /// the databases' `background_niceness`.
    pub niceness: i32,
    /// Whether such work also has the I/O class idle. Replaces the databases' `background_idle_io`.
    pub idle_io: bool,
}

impl Default for BackgroundThreadsOptions {
    fn default() -> Self {
        Self {
            flush_threads: 1,
            compaction_threads: 1,
            niceness: if cfg!(target_os = "linux") { 10 } else { 0 },
            idle_io: false,
        }
    }
}

/// Threads that flush and compact for all databases whose options hold them: RocksDB's
/// `Env::SetBackgroundThreads`.
///
/// Databases are served in turn: no database gets a second job while another waits for its first.
/// Flushes do not wait for compactions. The threads start when the first database is opened. They
/// end when the last database with these options, and the options, are gone.
pub struct BackgroundThreads {
    shared: Arc<Shared>,
    spawner: Arc<dyn Spawn>,
    started: Mutex<Started>,
    readers: ReaderPool,
}

#[derive(Default)]
struct Started {
    /// By role.
    wanted: [usize; 2],
    running: [usize; 2],
    handles: Vec<Box<dyn Join>>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    priority: LowPriority,
    /// Who waits for what any of the threads does: one that is busy may be the one that another
    /// member waits for.
    sleepers: Sleepers,
    state: Mutex<State>,
    /// By role: there is something in the line.
    work: [Condvar; 2],
    /// A member's last job has ended.
    left: Condvar,
}

struct State {
    line: Line,
    /// Threads that wait, or begin, by role.
    idle: [usize; 2],
    has_ended: bool,
}

impl BackgroundThreads {
    /// Threads of the operating system.
    ///
    /// # Errors
    /// `InvalidArgument` for no threads or more than 1024 of a kind, or a niceness outside 0 to 19.
    pub fn new(options: BackgroundThreadsOptions) -> Result<Self> {
        Self::with_env(options, &Env::default())
    }

    /// Threads of the world `env`.
    ///
    /// # Errors
    /// As [`BackgroundThreads::new`].
    pub fn with_env(options: BackgroundThreadsOptions, env: &Env) -> Result<Self> {
        let BackgroundThreadsOptions { flush_threads, compaction_threads, niceness, idle_io } =
            options;
        if ![flush_threads, compaction_threads].iter().all(|count| (1..=1024).contains(count))
            || !(0..=19).contains(&niceness)
        {
            return Err(Error::invalid_argument(format!(
                "{options:?}: give 1 to 1024 threads of each kind, and a niceness of 0 to 19"
            )));
        }
        let priority = LowPriority { niceness, idle_io };
        Ok(Self::of([flush_threads, compaction_threads], priority, env))
    }

    /// Those of one database; `counts` are by role.
    pub(crate) fn of(counts: [usize; 2], priority: LowPriority, env: &Env) -> Self {
        let state = State { line: Line::default(), idle: [0, 0], has_ended: false };
        Self {
            shared: Arc::new(Shared {
                clock: env.clock.clone(),
                priority,
                sleepers: Sleepers::default(),
                state: Mutex::new(state),
                work: [Condvar::new(), Condvar::new()],
                left: Condvar::new(),
            }),
            spawner: env.spawner.clone(),
            started: Mutex::new(Started { wanted: counts, ..Started::default() }),
            readers: ReaderPool::default(),
        }
    }

    /// A new member, whose work is looked for from now on; the threads that are missing are
    /// started.
    ///
    /// # Errors
    /// `IoError` if the system has no thread left; it is no member then.
    pub(crate) fn join(&self, member: Arc<dyn Member>) -> Result<MemberId> {
        self.start([0, 0])?;
        let id = self.shared.state.lock().line.enter(member);
        Role::ALL.iter().for_each(|role| self.announce(id, *role));
        Ok(id)
    }

    /// Starts what is missing of so many threads, or of more that are wanted already.
    ///
    /// # Errors
    /// `IoError` if the system has none left.
    pub(crate) fn start(&self, counts: [usize; 2]) -> Result<()> {
        let mut started = self.started.lock();
        // Once they have ended nobody would wait for new ones.
        if self.shared.state.lock().has_ended {
            return Ok(());
        }
        for role in Role::ALL {
            started.wanted[role as usize] =
                started.wanted[role as usize].max(counts[role as usize]);
            while started.running[role as usize] < started.wanted[role as usize] {
                let number = started.running.iter().sum::<usize>();
                let name = format!(
                    "flagstone-{}{number}",
                    if role == Role::Flush { "flush" } else { "compact" }
                );
                let shared = self.shared.clone();
                let work = Box::new(move || shared.work_until_ended(role));
                // Until it has looked for work it is as good as idle.
                self.shared.state.lock().idle[role as usize] += 1;
                let handle = self.spawner.spawn(&name, work).inspect_err(|_| {
                    self.shared.state.lock().idle[role as usize] -= 1;
                })?;
                started.handles.push(handle);
                started.running[role as usize] += 1;
            }
        }
        Ok(())
    }

    /// There may be work of that role.
    pub(crate) fn announce(&self, id: MemberId, role: Role) {
        let mut state = self.shared.state.lock();
        if state.line.announce(id, role) {
            self.shared.wake(&state, role);
        }
    }

    /// Nothing more is done for this member when the call returns. It must hold no lock that its
    /// work needs, and not be called by that work.
    pub(crate) fn leave(&self, id: MemberId) {
        let _asleep = self.shared.sleepers.enter();
        let mut state = self.shared.state.lock();
        state.line.forbid(id);
        while state.line.is_served(id) {
            self.shared.left.wait(&mut state);
        }
        let member = state.line.remove(id);
        drop(state);
        // Perhaps the last that knows of it.
        drop(member);
    }

    /// Lets the threads end, and waits for that.
    pub(crate) fn end(&self) {
        self.shared.state.lock().has_ended = true;
        for work in &self.shared.work {
            work.notify_all();
        }
        let handles = std::mem::take(&mut self.started.lock().handles);
        for handle in handles {
            // What panics in there is a member's work, and caught.
            let _ = handle.join();
        }
    }

    /// How work for members that takes long is done.
    pub(crate) fn giving_way(&self) -> GivingWay<'_> {
        let Shared { clock, priority, sleepers, .. } = &*self.shared;
        GivingWay { spawner: &*self.spawner, clock: &**clock, priority: *priority, sleepers }
    }

    /// Who waits for what the threads do.
    pub(crate) fn sleepers(&self) -> &Sleepers {
        &self.shared.sleepers
    }

    /// Where reads wait for a disk.
    pub(crate) fn readers(&self) -> &ReaderPool {
        &self.readers
    }
}

impl Drop for BackgroundThreads {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for BackgroundThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [flush, compaction] = self.started.lock().wanted;
        write!(f, "BackgroundThreads({flush} for flushes, {compaction} for compactions)")
    }
}

impl Shared {
    fn work_until_ended(&self, role: Role) {
        let kind = role as usize;
        // As late as it is at least: by the clock, or by what was waited for.
        let mut now = 0;
        let mut state = self.state.lock();
        state.idle[kind] -= 1;
        while !state.has_ended {
            now = now.max(self.clock.now_us());
            if state.line.ring(role, now) > 1 {
                self.work[kind].notify_all();
            }
            let idle_for_flushes = state.idle[Role::Flush as usize];
            let Some(job) = state.line.take(role, idle_for_flushes) else {
                now = self.wait(&mut state, role);
                continue;
            };
            let is_more = state.line.len(role) > 0 || state.line.next_ring(role).is_some();
            if state.idle[kind] > 0 && is_more {
                // Somebody else takes that, and keeps the time meanwhile.
                self.work[kind].notify_one();
            }
            let (id, done) = (job.id, job.role);
            let next = MutexGuard::unlocked(&mut state, || job.run());
            let put = state.line.put_back(id, done, next, now.max(self.clock.now_us()));
            // What is in the line of flushes is perhaps not for a thread that helped with one.
            put.into_iter().flatten().for_each(|role| self.wake(&state, role));
            if !state.line.is_served(id) {
                self.left.notify_all();
            }
        }
    }

    /// Waits for work or for the time to look; how late it is then at least, in the clock's
    /// microseconds. The clock of a simulated world may stand still: what was waited for is due all
    /// the same.
    fn wait(&self, state: &mut MutexGuard<'_, State>, role: Role) -> u64 {
        let kind = role as usize;
        let ring = state.line.next_ring(role);
        state.idle[kind] += 1;
        let late = match ring {
            None => {
                self.work[kind].wait(state);
                0
            }
            Some(due) => {
                let longest = Duration::from_micros(due.saturating_sub(self.clock.now_us()));
                let waited = self.work[kind].wait_for(state, longest);
                if waited.timed_out() { due } else { 0 }
            }
        };
        state.idle[kind] -= 1;
        late
    }

    /// Something was put into the line of that role.
    fn wake(&self, state: &State, role: Role) {
        self.work[role as usize].notify_one();
        if role == Role::Flush && state.line.len(role) > state.idle[role as usize] {
            self.work[Role::Compaction as usize].notify_one();
        }
    }
}
