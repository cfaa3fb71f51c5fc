//! One limit for the memtables of several databases.

#![expect(clippy::disallowed_methods, reason = "a test's thread may be left behind")]

mod common;

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::create;
use flagstone::base::{Code, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{AnyFile, Env, FileSystem, FileSystemAround, OpenMode};
use flagstone::options::{
    BlockCache, CacheSettings, EventListener, JobInfo, Options, WriteBufferManager, WriteOptions,
};

/// Longer than any of this takes on a busy machine.
const TOO_LONG: Duration = Duration::from_secs(60);

const LIMIT: u64 = 4 << 20;

fn options(env: &Env, manager: &Arc<WriteBufferManager>) -> Options {
    let mut options = Options { env: env.clone(), ..create() };
    options.write_buffer_manager = Some(manager.clone());
    options.cf.disable_auto_compactions = true;
    options.cf.arena_block_size = 64 << 10;
    options.set("max_background_jobs", "1").expect("an option");
    options
}

/// Writes values of 1 KiB.
fn fill(db: &Db, kib: u32) {
    for key in 0..kib {
        db.put(format!("key{key:06}"), vec![b'x'; 1000]).expect("a put");
    }
}

fn tables(db: &Db) -> usize {
    db.live_files().len()
}

/// Tells of flushes.
struct Flushes(Mutex<Sender<()>>);

impl EventListener for Flushes {
    fn on_flush_completed(&self, _job: &JobInfo) {
        // The test may have ended.
        let _ = self.0.lock().expect("no panic").send(());
    }
}

fn told_of_flushes(mut options: Options) -> (Options, Receiver<()>) {
    let (tell, told) = channel();
    options.listeners.push(Arc::new(Flushes(Mutex::new(tell))));
    (options, told)
}

#[test]
fn what_databases_take_counts_together_until_they_are_closed() {
    let manager = WriteBufferManager::new(0, false);
    let env = Env::memory();
    let one = Db::open("/one", &options(&env, &manager)).expect("a database");
    let two = Db::open("/two", &options(&env, &manager)).expect("a database");
    fill(&one, 300);
    let of_one = manager.memory_usage();
    assert!(of_one >= 300_000, "{of_one}");
    fill(&two, 300);
    assert!(manager.memory_usage() >= of_one + 300_000);
    one.flush_all().expect("a flush");
    assert!(manager.memory_usage() < of_one + 300_000, "one has none");
    two.close().expect("closed");
    assert_eq!(manager.memory_usage(), 0);
    drop(two);
    let read_only = Db::open_read_only("/two", &options(&env, &manager)).expect("a database");
    assert_eq!(manager.memory_usage(), 0, "what is only read takes no part");
    drop((one, read_only));
}

#[test]
fn the_database_with_the_largest_memtable_is_flushed() {
    let manager = WriteBufferManager::new(LIMIT, false);
    let env = Env::memory();
    let (idle_options, flushed) = told_of_flushes(options(&env, &manager));
    let idle = Db::open("/idle", &idle_options).expect("a database");
    let busy = Db::open("/busy", &options(&env, &manager)).expect("a database");
    fill(&idle, 3000);
    assert_eq!(tables(&idle), 0);
    fill(&busy, 1000);
    flushed.recv_timeout(TOO_LONG).expect("a flush of what nobody writes to");
    assert_eq!((tables(&idle), tables(&busy)), (1, 0));
    fill(&busy, 4000);
    busy.wait_for_compactions().expect("idle");
    assert!(tables(&busy) > 0, "now it is the largest");
}

/// Holds up the creation of tables in `/held`.
struct Gate {
    files: MemoryFileSystem,
    has_come: Mutex<Sender<()>>,
    may_go_on: Mutex<Receiver<()>>,
}

impl FileSystemAround for Gate {
    fn inner(&self) -> &dyn FileSystem {
        &self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let is_table = path.extension().is_some_and(|extension| extension == "sst");
        if is_table && path.starts_with("/held") && mode.creates() {
            self.has_come.lock().expect("no panic").send(()).expect("the test waits");
            self.may_go_on.lock().expect("no panic").recv_timeout(TOO_LONG).expect("a word");
        }
        mode.open(&self.files, path)
    }
}

#[test]
fn writers_of_one_database_wait_for_the_memory_of_another() {
    let manager = WriteBufferManager::new(LIMIT, true);
    let ((tell, come), (go_on, may_go_on)) = (channel(), channel());
    let gate = Gate {
        files: MemoryFileSystem::new(),
        has_come: Mutex::new(tell),
        may_go_on: Mutex::new(may_go_on),
    };
    let env = Env::memory().with_fs(Arc::new(gate));
    let held = Db::open("/held", &options(&env, &manager)).expect("a database");
    let other = Db::open("/other", &options(&env, &manager)).expect("a database");
    fill(&held, 3700);
    come.recv_timeout(TOO_LONG).expect("its flush has begun");
    // Now it alone has more than all may have.
    manager.set_buffer_size(3 << 20);
    let mut hurry = WriteOptions::default();
    hurry.no_slowdown = true;
    let mut batch = WriteBatch::new();
    batch.put("key", vec![b'x'; 1000]).expect("an operation");
    // The thread that has been told may be late.
    let refused = (0..1_000_000).find_map(|_| other.write_with(&hurry, batch.clone()).err());
    let refused = refused.expect("writers wait at the limit");
    assert_eq!(refused.code(), Code::Incomplete);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| other.put("waited", "1"));
        // Its own flush may come to the gate as well.
        (0..20).for_each(|_| go_on.send(()).expect("the gate waits"));
        writer.join().expect("no panic").expect("there is memory again");
    });
    assert_eq!(other.get("waited").expect("a read").expect("a value"), "1");
    assert!(tables(&held) > 0);
    manager.set_allow_stall(false);
    other.write_with(&hurry, batch).expect("nobody waits");
}

#[test]
fn memtables_take_their_memory_from_the_cache() {
    let cache = BlockCache::new(&CacheSettings::with_capacity(8 << 20));
    let manager = WriteBufferManager::with_cache(0, false, &cache);
    let mut options = options(&Env::memory(), &manager);
    options.block_cache = Some(cache.clone());
    let db = Db::open("/db", &options).expect("a database");
    fill(&db, 5000);
    db.flush_all().expect("a flush");
    let read_all = || {
        for key in 0..5000 {
            db.get(format!("key{key:06}")).expect("a read").expect("a value");
        }
    };
    read_all();
    let blocks = cache.usage();
    assert!(blocks > 4 << 20, "{blocks}");
    fill(&db, 6000);
    assert!(manager.charged_to_cache() >= 6 << 20 && manager.cost_to_cache());
    read_all();
    let usage = cache.usage();
    assert!(usage <= (8 << 20) + (256 << 10), "{usage}: blocks have made room");
    db.close().expect("closed");
    assert_eq!(manager.charged_to_cache(), 0);
}

/// Fills a database in a thread: whether that ends.
fn goes_on(db: &Arc<Db>) -> bool {
    let (tell, told) = channel();
    let db = db.clone();
    std::thread::spawn(move || {
        fill(&db, 6000);
        // The test may have ended.
        let _ = tell.send(());
    });
    told.recv_timeout(TOO_LONG).is_ok()
}

/// Others waited, until it was closed, for the memory of a database that flushes nothing more.
#[test]
fn nobody_waits_for_a_database_whose_work_is_canceled() {
    let manager = WriteBufferManager::new(LIMIT, true);
    let env = Env::memory();
    let canceled = Db::open("/canceled", &options(&env, &manager)).expect("a database");
    let other = Arc::new(Db::open("/other", &options(&env, &manager)).expect("a database"));
    fill(&canceled, 3000);
    canceled.cancel_all_background_work(false).expect("nothing to flush");
    assert!(goes_on(&other));
    assert_eq!(canceled.get("key000001").expect("a read").expect("a value"), vec![b'x'; 1000]);
    assert_eq!(tables(&canceled), 0);
}

#[test]
fn nobody_waits_for_a_database_whose_work_is_paused() {
    let manager = WriteBufferManager::new(LIMIT, true);
    let env = Env::memory();
    let (paused_options, flushed) = told_of_flushes(options(&env, &manager));
    let paused = Db::open("/paused", &paused_options).expect("a database");
    let other = Arc::new(Db::open("/other", &options(&env, &manager)).expect("a database"));
    fill(&paused, 3000);
    paused.pause_background_work().expect("nothing runs");
    assert!(goes_on(&other));
    assert_eq!(tables(&paused), 0);
    paused.continue_background_work().expect("it is paused");
    assert!(goes_on(&other));
    flushed.recv_timeout(TOO_LONG).expect("it is asked again");
}

/// Keeps what is told of the end of a database.
#[derive(Default)]
struct Ends(Mutex<usize>);

impl EventListener for Ends {
    fn on_shutdown_begin(&self) {
        *self.0.lock().expect("no panic") += 1;
    }
}

#[test]
fn who_listens_is_told_at_once_that_work_is_canceled() {
    let ends = Arc::new(Ends::default());
    let mut options = options(&Env::memory(), &WriteBufferManager::new(0, false));
    options.listeners.push(ends.clone());
    let db = Db::open("/db", &options).expect("a database");
    db.cancel_all_background_work(false).expect("nothing to flush");
    assert_eq!(*ends.0.lock().expect("no panic"), 1);
}
