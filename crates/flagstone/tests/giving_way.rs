//! Flushes and compactions give way to others that want the processor, but not while writers sleep
//! for them.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flagstone::base::sometimes::counts;
use flagstone::base::{
    CompactionFilter, CompactionFilterContext, CompactionFilterFactory, FilterDecision,
    FilteredKind, Result, TableFileCreationReason,
};
use flagstone::db::{Db, Ticker};
use flagstone::env::{Env, Join, LowPriority, Spawn, Task};
use flagstone::options::{BackgroundThreads, BackgroundThreadsOptions, FlushOptions, Options};
use testkit::settings;

thread_local! {
    /// Whether the thread does what has given way.
    static GAVE_WAY: Cell<bool> = const { Cell::new(false) };
}

/// Knows which threads have given way, and by how much.
struct Knowing {
    inner: Arc<dyn Spawn>,
    niceness: AtomicU64,
}

impl Spawn for Knowing {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>> {
        self.inner.spawn(name, work)
    }

    fn run_all(&self, name: &str, tasks: Vec<Task<'_>>) {
        self.inner.run_all(name, tasks);
    }

    fn run_giving_way(&self, name: &str, priority: LowPriority, task: Task<'_>) {
        self.niceness.store(priority.niceness as u64, Ordering::SeqCst);
        let task = || {
            GAVE_WAY.set(true);
            task();
            GAVE_WAY.set(false);
        };
        self.inner.run_giving_way(name, priority, Box::new(task));
    }
}

/// Counts the entries of flushes, or of compactions, by whether they gave way. Those who do get no
/// processor until something has happened.
#[derive(Default)]
struct Starved {
    gentle: AtomicU64,
    prompt: AtomicU64,
    waits_for: Option<&'static str>,
    of_compactions: bool,
}

fn has_happened(what: &str) -> bool {
    counts().into_iter().any(|(name, _, count)| name == what && count > 0)
}

struct Entries(Arc<Starved>);

impl CompactionFilter for Entries {
    fn name(&self) -> &str {
        "Entries"
    }

    fn filter(&self, _: u32, _: &[u8], _: FilteredKind, _: &[u8]) -> FilterDecision {
        if !GAVE_WAY.get() {
            self.0.prompt.fetch_add(1, Ordering::SeqCst);
            return FilterDecision::Keep;
        }
        self.0.gentle.fetch_add(1, Ordering::SeqCst);
        while self.0.waits_for.is_some_and(|what| !has_happened(what)) {
            std::thread::yield_now();
        }
        FilterDecision::Keep
    }
}

struct OfJobs(Arc<Starved>);

impl CompactionFilterFactory for OfJobs {
    fn name(&self) -> &str {
        "OfJobs"
    }

    fn should_filter_table_file_creation(&self, reason: TableFileCreationReason) -> bool {
        let counted = if self.0.of_compactions {
            TableFileCreationReason::Compaction
        } else {
            TableFileCreationReason::Flush
        };
        reason == counted
    }

    fn create_compaction_filter(
        &self,
        context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>> {
        (!context.is_manual_compaction).then(|| Box::new(Entries(self.0.clone())) as _)
    }
}

fn world(starved: &Arc<Starved>) -> (Arc<Knowing>, Options) {
    let env = Env::memory();
    let knowing = Arc::new(Knowing { inner: env.spawner.clone(), niceness: AtomicU64::new(0) });
    let mut options = settings::tiny(&Env { spawner: knowing.clone(), ..env });
    settings::set(&mut options, &[("background_niceness", "4"), ("max_write_buffer_number", "2")]);
    options.cf.compaction_filter_factory = Some(Arc::new(OfJobs(starved.clone())));
    (knowing, options)
}

fn load(starved: &Starved) -> [u64; 2] {
    [&starved.gentle, &starved.prompt].map(|count| count.load(Ordering::SeqCst))
}

/// Flushes kept their low priority while writers were stopped until they were done, on a machine
/// that was busy with other work.
#[test]
fn a_flush_that_writers_are_stopped_for_gives_way_no_longer() {
    let starved = Arc::new(Starved { waits_for: Some("WriteStopped"), ..Starved::default() });
    let (_, options) = world(&starved);
    let db = Db::open("/stopped", &options).unwrap();
    write_some(&db);
    flush_later(&db);
    while load(&starved)[0] == 0 {
        std::thread::yield_now();
    }
    // One memtable has room beside those that wait for that flush.
    (0..120u32).for_each(|key| db.put(key.to_be_bytes(), [7; 200]).unwrap());
    assert!(has_happened("WriteStopped"));
    db.wait_for_compactions().unwrap();
    let [gentle, prompt] = load(&starved);
    assert!(gentle >= 1 && prompt >= 18, "all but one of the first flush: {gentle}, {prompt}");
    assert!(db.statistics().get(Ticker::PromptTurns) > 0);
    db.close().unwrap();
    let db = Db::open("/stopped", &options).unwrap();
    (0..120u32).for_each(|key| assert!(db.get(key.to_be_bytes()).unwrap().is_some(), "{key}"));
}

/// Who called for a compaction of everything waited for an automatic one that got no processor
/// beside others' work.
#[test]
fn a_compaction_that_a_manual_one_waits_for_gives_way_no_longer() {
    let waits_for = Some("ManualCompactionWaited");
    let starved = Arc::new(Starved { waits_for, of_compactions: true, ..Starved::default() });
    let (_, options) = world(&starved);
    let db = Db::open("/blocked", &options).unwrap();
    write_some(&db);
    db.flush_all().unwrap();
    write_some(&db);
    // The compaction that it leads to begins while nobody sleeps for anything.
    flush_later(&db);
    while load(&starved)[0] == 0 {
        std::thread::yield_now();
    }
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    let [gentle, prompt] = load(&starved);
    assert!(gentle >= 1 && prompt >= 10, "all but some of the automatic one: {gentle}, {prompt}");
}

fn flush_later(db: &Db) {
    let options = FlushOptions { wait: false, ..FlushOptions::default() };
    db.flush(db.default_column_family(), &options).unwrap();
}

fn write_some(db: &Db) {
    (0..20u32).for_each(|key| db.put(key.to_be_bytes(), [7; 200]).unwrap());
}

#[test]
fn a_flush_gives_way_unless_its_caller_waits_for_it() {
    let starved = Arc::new(Starved::default());
    let (knowing, options) = world(&starved);
    let db = Db::open("/idle", &options).unwrap();
    write_some(&db);
    flush_later(&db);
    db.wait_for_compactions().unwrap();
    // The first entry is looked at before it is known that there is anything to do.
    assert_eq!((load(&starved), knowing.niceness.load(Ordering::SeqCst)), ([19, 1], 4));
    assert_eq!(db.statistics().get(Ticker::PromptTurns), 0);
    write_some(&db);
    db.flush_all().unwrap();
    let [gentle, prompt] = load(&starved);
    assert!(
        gentle < 40 && gentle + prompt == 40,
        "not from when it was waited for: {gentle}, {prompt}"
    );
}

#[test]
fn threads_that_are_shared_have_a_niceness_of_their_own() {
    let starved = Arc::new(Starved::default());
    let (knowing, mut options) = world(&starved);
    let threads = BackgroundThreadsOptions {
        flush_threads: 1,
        compaction_threads: 1,
        niceness: 9,
        idle_io: false,
    };
    options.background_threads =
        Some(Arc::new(BackgroundThreads::with_env(threads, &options.env).unwrap()));
    let db = Db::open("/shared", &options).unwrap();
    write_some(&db);
    flush_later(&db);
    db.wait_for_compactions().unwrap();
    assert_eq!((load(&starved), knowing.niceness.load(Ordering::SeqCst)), ([19, 1], 9));
}
