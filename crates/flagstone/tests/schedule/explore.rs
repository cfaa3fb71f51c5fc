//! Telling one story in many orders.
//!
//! A batch is a number of schedules that follow from one seed; it is what a failure names and what
//! is repeated. The seeds take turns between three ways to choose who goes on:
//! 1. at random at every step;
//! 2. by priorities that are changed a few times only (PCT);
//! 3. the same thread as before, nearly always: one falls asleep for long in a bad place, and
//!    others get far ahead.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, FailurePersistence, Runner};

/// How many schedules follow from one seed.
const BATCH: usize = 25;

/// Threads that serialise and compress need more room than the scheduler gives by itself.
const STACK_SIZE: usize = 512 << 10;

/// Tells the story in `schedules` orders, or as many as `FLAGSTONE_SCHEDULES` says; only in those
/// of one batch if `FLAGSTONE_SCHEDULE` names its seed.
///
/// # Panics
/// As the story does, and when all its threads wait for each other.
pub fn explore(name: &str, schedules: usize, story: fn()) {
    explore_panics(name, schedules, true, story);
}

/// The same of a story in which somebody panics, and catches it: others go on meanwhile.
pub fn explore_with_panics(name: &str, schedules: usize, story: fn()) {
    explore_panics(name, schedules, false, story);
}

fn explore_panics(name: &str, schedules: usize, panic_ends: bool, story: fn()) {
    testkit::laboratory::begin();
    let variable =
        |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let batches =
        variable("FLAGSTONE_SCHEDULES").unwrap_or(schedules as u64).div_ceil(BATCH as u64);
    let seeds = match variable("FLAGSTONE_SCHEDULE") {
        Some(seed) => seed..seed + 1,
        None => 0..batches,
    };
    for seed in seeds {
        let told = catch_unwind(AssertUnwindSafe(|| tell(seed, panic_ends, story, &seen)));
        if let Err(panic) = told {
            eprintln!(
                "\nrepeat it with\n    FLAGSTONE_SCHEDULE={seed} cargo test --release -p flagstone --features shuttle \
                 --test schedule -- --exact {name}\n"
            );
            resume_unwind(panic);
        }
    }
    let seen = seen.lock().expect("no panic");
    println!(
        "{name}: {} schedules, {} of them distinct, {} decisions each",
        seen.schedules,
        seen.distinct.len(),
        seen.decisions / seen.schedules.max(1)
    );
}

fn tell(seed: u64, panic_ends: bool, story: fn(), seen: &Arc<Mutex<Seen>>) {
    let mut config = Config::new();
    config.stack_size = STACK_SIZE;
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    config.ungraceful_shutdown_config.immediately_return_on_panic = panic_ends;
    let random = RandomScheduler::new_from_seed(seed, BATCH);
    let scheduler: Box<dyn Scheduler + Send> = match seed % 3 {
        0 => Box::new(random),
        1 => Box::new(PctScheduler::new_from_seed(seed, 2 + (seed / 3 % 4) as usize, BATCH)),
        _ => Box::new(Persistent {
            random: fastrand::Rng::with_seed(seed),
            mean_run: 8 << (seed / 3 % 5),
            inner: random,
        }),
    };
    Runner::new(Watched::new(scheduler, seen), config).run(story);
}

/// Stays with a thread for `mean_run` decisions on average.
struct Persistent {
    random: fastrand::Rng,
    mean_run: u32,
    inner: RandomScheduler,
}

impl Scheduler for Persistent {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.inner.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let may_stay = !is_yielding && runnable.iter().any(|task| Some(task.id()) == current);
        if may_stay && self.random.u32(..self.mean_run) > 0 {
            current
        } else {
            self.inner.next_task(runnable, current, is_yielding)
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }
}

/// What has been explored.
#[derive(Default)]
struct Seen {
    schedules: u64,
    /// Hashes of the sequences of decisions.
    distinct: HashSet<u64>,
    decisions: u64,
}

/// A scheduler of which is noted what it decides.
struct Watched<S> {
    inner: S,
    seen: Arc<Mutex<Seen>>,
    decisions: u64,
    hash: DefaultHasher,
}

impl<S> Watched<S> {
    fn new(inner: S, seen: &Arc<Mutex<Seen>>) -> Self {
        Self { inner, seen: seen.clone(), decisions: 0, hash: DefaultHasher::new() }
    }
}

impl<S: Scheduler> Scheduler for Watched<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        if self.decisions > 0 {
            let mut seen = self.seen.lock().expect("no panic");
            seen.schedules += 1;
            seen.decisions += self.decisions;
            seen.distinct.insert(self.hash.finish());
        }
        (self.decisions, self.hash) = (0, DefaultHasher::new());
        self.inner.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let next = self.inner.next_task(runnable, current, is_yielding);
        if runnable.len() > 1 {
            self.decisions += 1;
            next.map(usize::from).hash(&mut self.hash);
        }
        next
    }

    fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }
}
