//! Many databases in one process, with threads that they share.

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use common::entries;
use flagstone::base::{Code, CompactionFilter, FilterDecision, FilteredKind, Result};
use flagstone::db::{Db, Ticker};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, Join, LowPriority, Spawn, Task};
use flagstone::options::{
    BackgroundThreads, BackgroundThreadsOptions, BlockCache, CacheSettings, CompactRangeOptions,
    CompactionLimiter, Options, ReadOptions,
};
use parking_lot::Mutex;
use testkit::{Call, FaultFs, Injection, Plan, Sort, compare, settings};

/// Starts threads, and remembers their names and how far work gives way.
struct Counting {
    inner: Arc<dyn Spawn>,
    started: Mutex<Vec<String>>,
    niceness: Mutex<Vec<i32>>,
}

impl Spawn for Counting {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>> {
        self.started.lock().push(name.to_string());
        self.inner.spawn(name, work)
    }

    fn run_all(&self, name: &str, tasks: Vec<Task<'_>>) {
        self.inner.run_all(name, tasks);
    }

    fn run_giving_way(&self, name: &str, priority: LowPriority, task: Task<'_>) {
        self.niceness.lock().push(priority.niceness);
        self.inner.run_giving_way(name, priority, task);
    }
}

/// A world in memory, and options of tiny databases in it that share threads.
fn shared(flush_threads: usize, compaction_threads: usize) -> (Arc<Counting>, Options) {
    let env = Env::memory();
    let counting = Arc::new(Counting {
        inner: env.spawner.clone(),
        started: Mutex::default(),
        niceness: Mutex::default(),
    });
    let env = Env { spawner: counting.clone(), ..env };
    let mut options = settings::tiny(&env);
    let wanted =
        BackgroundThreadsOptions { flush_threads, compaction_threads, niceness: 3, idle_io: false };
    options.background_threads =
        Some(Arc::new(BackgroundThreads::with_env(wanted, &env).expect("good options")));
    (counting, options)
}

fn open(name: usize, options: &Options) -> Db {
    Db::open(format!("/{name}"), options).expect("a new database")
}

/// Enough for some flushes and a compaction.
fn fill(db: &Db, rounds: u32) {
    for round in 0..rounds {
        for key in 0..50u32 {
            db.put(key.to_be_bytes(), [round as u8; 200]).expect("a write");
        }
    }
}

/// Wakes a thread.
struct Parked(std::thread::Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Parked(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn forty_databases_live_on_three_threads() {
    let (counting, options) = shared(1, 2);
    let databases: Vec<Db> = (0..40).map(|name| open(name, &options)).collect();
    databases.iter().for_each(|db| fill(db, 4));
    // Some go while others have work waiting.
    databases[..20].iter().for_each(|db| db.close().expect("a clean close"));
    for db in &databases[20..] {
        db.wait_for_compactions().expect("no failure");
        let statistics = db.statistics();
        assert!(
            statistics.get(Ticker::Flushes) > 0 && statistics.get(Ticker::CompactWriteBytes) > 0
        );
        compare::check_files(db);
    }
    drop(databases);
    let started = counting.started.lock().clone();
    assert_eq!(started, ["flagstone-flush0", "flagstone-compact1", "flagstone-compact2"]);

    // Opened again, they have the same threads.
    for name in 0..40 {
        let db = open(name, &options);
        let found = entries(&db, db.default_column_family());
        assert!(
            found.len() == 50 && found.iter().all(|(_, value)| value[..] == [3; 200]),
            "{name}"
        );
    }
    let replays = ["flagstone-wal", "flagstone-replay"];
    let started = counting.started.lock().clone();
    let stay = started.iter().filter(|name| !replays.contains(&name.as_str())).count();
    assert_eq!(stay, 3, "those that replay a log end with the opening");
    assert!(counting.niceness.lock().iter().all(|niceness| *niceness == 3));
}

/// Readers for asynchronous reads are shared, too: each database had up to sixteen.
#[test]
fn asynchronous_reads_share_their_threads() {
    let (counting, options) = shared(1, 1);
    let databases: Vec<Db> = (0..50).map(|name| open(name, &options)).collect();
    for db in &databases {
        fill(db, 1);
        db.flush_all().expect("a flush");
        let key = 7u32.to_be_bytes();
        let read = db.get_async(&ReadOptions::default(), db.default_column_family(), &key);
        assert_eq!(block_on(read).expect("a read").expect("it is there"), [0; 200][..]);
    }
    let started = counting.started.lock();
    assert!(started.iter().filter(|name| name.contains("read")).count() <= 16, "{started:?}");
}

/// One whose disk fails and one whose filter panics: the threads go on for the others, and both can
/// be closed.
#[test]
fn what_befalls_one_database_does_not_stop_the_others() {
    struct Panics;
    impl CompactionFilter for Panics {
        fn name(&self) -> &str {
            "Panics"
        }
        fn filter(&self, _: u32, _: &[u8], _: FilteredKind, _: &[u8]) -> FilterDecision {
            panic!("as it was told to")
        }
    }
    let (counting, options) = shared(1, 1);
    let disk = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let mut on_bad_disk = options.clone();
    on_bad_disk.env.fs = Arc::new(disk.clone());
    let unlucky = Db::open("/unlucky", &on_bad_disk).expect("a new database");
    let mut with_filter = options.clone();
    with_filter.cf.compaction_filter = Some(Arc::new(Panics));
    let panicking = Db::open("/panicking", &with_filter).expect("a new database");
    let healthy = open(1, &options);

    disk.plan(Plan::Next { call: Call::Sync, sort: Sort::Table, injection: Injection::Io });
    unlucky.put("key", "value").expect("a write");
    unlucky.flush_all().expect_err("no table can be synced");
    for round in 0..3u8 {
        // The compaction may come before the next write.
        if panicking.put("key", [round]).and_then(|()| panicking.flush_all()).is_err() {
            break;
        }
    }
    panicking.wait_for_compactions().expect_err("its filter panics");

    fill(&healthy, 4);
    healthy.flush_all().expect("a flush");
    healthy.wait_for_compactions().expect("a healthy database");
    assert!(healthy.statistics().get(Ticker::CompactWriteBytes) > 0);
    drop((unlucky, panicking));
    fill(&healthy, 4);
    healthy.flush_all().expect("a flush");
    assert_eq!(counting.started.lock().len(), 2);
}

/// A database that shares threads has no more of them at a time than its `max_background_jobs`,
/// which may change.
#[test]
fn options_of_databases_stay_their_own() {
    let (counting, options) = shared(1, 4);
    let db = open(1, &options);
    db.set_db_options(&[("max_background_jobs", "16")]).expect("it may change");
    fill(&db, 4);
    db.close().expect("a clean close");
    assert_eq!(counting.started.lock().len(), 5, "no threads of its own");
    let own = Options { background_threads: None, ..options };
    let db = open(2, &own);
    db.set_db_options(&[("max_background_jobs", "4")]).expect("it may change");
    assert_eq!(counting.started.lock().len(), 5 + 5, "one is for flushes");
}

/// What a thousand take, of threads, memory and time.
#[test]
#[ignore = "it measures; for a release build"]
#[expect(clippy::disallowed_methods, reason = "it stands outside the engine, and measures")]
fn a_thousand_databases() {
    let directory = common::temporary();
    let mut options = common::create();
    // A log takes as much of the disk as a memtable may grow to, from its beginning.
    settings::set(&mut options, &[("write_buffer_size", "65536")]);
    let threads = BackgroundThreadsOptions {
        flush_threads: 1,
        compaction_threads: 3,
        niceness: 0,
        idle_io: false,
    };
    options.background_threads =
        Some(Arc::new(BackgroundThreads::new(threads).expect("good options")));
    options.block_cache = Some(BlockCache::new(&CacheSettings::with_capacity(32 << 20)));
    let tell = |step: &str| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let of =
            |name: &str| status.lines().find(|line| line.starts_with(name)).map(str::to_string);
        let ticks: Vec<&str> = stat.split(' ').skip(13).take(2).collect();
        println!("{step}: {:?}, {:?}, {ticks:?} ticks of CPU time", of("Threads"), of("VmRSS"));
    };
    tell("none");
    let databases: Vec<Db> = (0..1000)
        .map(|n| Db::open(directory.path().join(n.to_string()), &options).expect("new"))
        .collect();
    tell("opened");
    databases.iter().for_each(|db| fill(db, 2));
    databases.iter().for_each(|db| db.flush_all().expect("a flush"));
    tell("written to and flushed");
    std::thread::sleep(std::time::Duration::from_secs(10));
    tell("ten seconds later");
    drop(databases);
    tell("closed");
}

#[test]
fn flushes_and_compactions_have_threads_as_their_own_limits_say() {
    let (counting, mut options) = shared(1, 1);
    options.background_threads = None;
    settings::set(&mut options, &[("max_background_jobs", "8"), ("max_background_flushes", "2")]);
    let db = open(0, &options);
    let started =
        |kind: &str| counting.started.lock().iter().filter(|name| name.contains(kind)).count();
    assert_eq!([started("flush"), started("compact")], [2, 1], "one that is not said is 1");
    db.set_db_options(&[("max_background_compactions", "3")]).expect("it may change");
    assert_eq!([started("flush"), started("compact")], [2, 3]);
    let refused =
        db.set_db_options(&[("max_background_compactions", "-2")]).expect_err("out of range");
    assert_eq!(refused.code(), Code::InvalidArgument);
    fill(&db, 20);
    db.wait_for_compactions().expect("they come to an end");
    db.close().expect("a clean close");
    let written = flagstone::options::load_latest(&options.env, std::path::Path::new("/0"));
    let written = written.expect("it is readable").expect("it is there").options;
    assert_eq!((written.max_background_flushes, written.max_background_compactions), (2, 3));
}

/// Looks, during a compaction of one database, at what another does meanwhile.
struct Meanwhile {
    look: Box<dyn Fn() + Send + Sync>,
    has_looked: AtomicBool,
}

impl CompactionFilter for Meanwhile {
    fn name(&self) -> &str {
        "meanwhile"
    }

    fn filter(&self, _: u32, _: &[u8], _: FilteredKind, _: &[u8]) -> FilterDecision {
        if !self.has_looked.swap(true, Ordering::Relaxed) {
            (self.look)();
        }
        FilterDecision::Keep
    }
}

/// Five tables in level 0.
fn five_tables(db: &Db) {
    for round in 0..5_u8 {
        for key in 0..20_u8 {
            db.put([key], [round]).expect("a write");
        }
        db.flush_all().expect("a flush");
    }
    assert_eq!(level0(db), 5);
}

fn level0(db: &Db) -> usize {
    db.live_files().iter().filter(|file| file.level == Some(0)).count()
}

fn steps(db: &Db) -> usize {
    std::iter::repeat_with(|| db.background_step().expect("a step")).take_while(|did| *did).count()
}

#[test]
fn databases_share_a_limit_on_compactions() {
    let limiter = Arc::new(CompactionLimiter::new(Some(0)));
    let mut options = Options { env: testkit::steps::world(Env::memory().fs, 1), ..<_>::default() };
    options.create_if_missing = true;
    options.set("level0_file_num_compaction_trigger", "2").unwrap();
    options.cf.compaction_limiter = Some(limiter.clone());
    let other = Db::open("/other", &options).unwrap();
    five_tables(&other);
    assert_eq!((steps(&other), level0(&other)), (0, 5), "none is allowed");

    let look = {
        let (other, limiter) = (other.clone(), limiter.clone());
        move || {
            assert_eq!(limiter.running(), 1);
            assert_eq!((steps(&other), level0(&other)), (0, 5), "one runs");
            limiter.set_limit(Some(2));
            assert!(steps(&other) > 0);
            assert_eq!((limiter.running(), level0(&other)), (1, 0));
            limiter.set_limit(Some(1));
            five_tables(&other);
            // One that a caller asks for does not wait.
            let whole = CompactRangeOptions::default();
            other.compact_range(other.default_column_family(), None, None, &whole).unwrap();
            assert_eq!(level0(&other), 0);
        }
    };
    let has_looked = AtomicBool::new(false);
    options.cf.compaction_filter = Some(Arc::new(Meanwhile { look: Box::new(look), has_looked }));
    let db = Db::open("/db", &options).unwrap();
    five_tables(&db);
    assert_eq!(steps(&db), 0);
    limiter.set_limit(Some(1));
    assert!(steps(&db) > 0);
    assert_eq!((limiter.running(), level0(&db)), (0, 0));
    limiter.set_limit(Some(0));
    five_tables(&other);
    limiter.set_limit(None);
    assert!(steps(&other) > 0);
    assert_eq!(level0(&other), 0);
}
