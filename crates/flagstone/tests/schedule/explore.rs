//! Telling one story in many orders.
//!
//! A batch is a number of schedules that follow from a kind of scheduler and a seed; it is what a failure names and what
//! is repeated. Even seeds choose at random at every step; odd ones change the threads' priorities a few times only (PCT),
//! which finds what needs one thread to be far ahead of another.

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

/// Tells the story in `schedules` orders, or as many as `FLAGSTONE_SCHEDULES` says; only in those of one batch if
/// `FLAGSTONE_SCHEDULE` names its seed.
///
/// # Panics
/// As the story does, and when all its threads wait for each other.
pub fn explore(name: &str, schedules: usize, story: fn()) {
    testkit::laboratory::begin();
    let variable = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let batches = variable("FLAGSTONE_SCHEDULES").unwrap_or(schedules as u64).div_ceil(BATCH as u64);
    let seeds = match variable("FLAGSTONE_SCHEDULE") {
        Some(seed) => seed..seed + 1,
        None => 0..batches,
    };
    for seed in seeds {
        let told = catch_unwind(AssertUnwindSafe(|| tell(seed, story, &seen)));
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

fn tell(seed: u64, story: fn(), seen: &Arc<Mutex<Seen>>) {
    let mut config = Config::new();
    config.stack_size = STACK_SIZE;
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    config.ungraceful_shutdown_config.immediately_return_on_panic = true;
    if seed.is_multiple_of(2) {
        let scheduler = RandomScheduler::new_from_seed(seed, BATCH);
        Runner::new(Watched::new(scheduler, seen), config).run(story);
    } else {
        let changes = 2 + (seed / 2 % 4) as usize;
        let scheduler = PctScheduler::new_from_seed(seed, changes, BATCH);
        Runner::new(Watched::new(scheduler, seen), config).run(story);
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
