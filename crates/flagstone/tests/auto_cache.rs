//! A block cache that nobody gave a size, beside a clock and a memory that the stories set: it
//! grows while misses cost much, and gives back what is not used or what others need. So does the
//! memory of former memtables.
//!
//! No threads: `Db::background_step` does what they do when they find nothing else to do. Each
//! block that is read takes two milliseconds, so a hundred of them are a fiftieth of ten seconds.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flagstone::db::{AutoCacheMemory, Db, MemoryUsage, Severity};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Clock, Env, MemoryState, Resources};
use flagstone::options::{Options, ReadOptions};
use parking_lot::Mutex;
use testkit::steps;

const MIB: u64 = 1 << 20;
/// 100 MiB in all, each value in a block of its own.
const KEYS: u32 = 3_400;
const VALUE: usize = 30_000;

/// Time that passes by two milliseconds each time that it is looked at.
#[derive(Default)]
struct Slow(AtomicU64);

impl Slow {
    fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for Slow {
    fn now_us(&self) -> u64 {
        self.0.fetch_add(2000, Ordering::Relaxed)
    }

    fn coarse_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn unix_seconds(&self) -> u64 {
        1_700_000_000 + self.0.load(Ordering::Relaxed) / 1_000_000
    }

    fn sleep(&self, duration: Duration) {
        self.0.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
    }
}

/// A machine of which the story says what is left.
#[derive(Default)]
struct Machine(Mutex<MemoryState>);

impl Machine {
    fn set(&self, state: MemoryState) {
        *self.0.lock() = state;
    }
}

impl Resources for Machine {
    fn processor_us(&self) -> u64 {
        0
    }

    fn memory(&self) -> MemoryState {
        *self.0.lock()
    }
}

struct Story {
    clock: Arc<Slow>,
    machine: Arc<Machine>,
    db: Db,
}

impl Story {
    fn begin(changes: &str) -> Self {
        let (clock, machine) = (Arc::new(Slow::default()), Arc::new(Machine::default()));
        let env = Env {
            clock: clock.clone(),
            resources: machine.clone(),
            ..steps::world(Arc::new(MemoryFileSystem::new()), 1)
        };
        let mut options = Options { env, ..Options::default() };
        options.create_if_missing = true;
        options
            .set_all("enable_blob_files=false;block_size=32k;compression=kNoCompression")
            .unwrap();
        options.set_all(changes).unwrap();
        let db = Db::open("/db", &options).unwrap();
        (0..KEYS).for_each(|key| db.put(key.to_be_bytes(), [7; VALUE]).unwrap());
        db.flush_all().unwrap();
        db.wait_for_compactions().unwrap();
        Self { clock, machine, db }
    }

    fn read(&self, keys: Range<u32>) {
        for key in keys {
            assert_eq!(self.db.get(key.to_be_bytes()).unwrap().unwrap().len(), VALUE);
        }
    }

    /// Whether all of these are in the cache.
    fn has_cached(&self, mut keys: Range<u32>) -> bool {
        let options = ReadOptions { cache_only: true, ..ReadOptions::default() };
        let family = self.db.default_column_family();
        keys.all(|key| self.db.get_with(&options, family, key.to_be_bytes()).is_ok())
    }

    /// Seconds pass in which nobody asks for anything; then the background looks around.
    fn rest(&self, seconds: u64) {
        self.clock.pass(seconds);
        while self.db.background_step().unwrap() {}
    }

    fn memory(&self) -> MemoryUsage {
        self.db.memory_usage()
    }

    fn capacity(&self) -> u64 {
        self.memory().cache.capacity / MIB
    }

    fn auto(&self) -> AutoCacheMemory {
        self.memory().auto_cache.expect("nobody gave it a size")
    }

    /// Reads everything, so that it grows.
    fn grow(&self) {
        for _ in 0..3 {
            self.read(0..KEYS);
        }
        assert_eq!(self.capacity(), 128, "100 MiB have room in it: {:?}", self.auto());
    }
}

#[test]
fn it_grows_while_misses_cost_much() {
    let story = Story::begin("");
    assert_eq!((story.capacity(), story.auto().why.as_str()), (32, "as it began"));
    assert!(story.auto().capacity_max > 128 * MIB, "the machine is too small for this test");
    story.read(0..800);
    assert_eq!(story.capacity(), 32, "what was read has room");
    story.grow();
    assert!(story.has_cached(0..KEYS));
    assert_eq!(story.auto().why, "it grew because misses cost more than 2% of the process's time");
    story.grow();
    assert!(!story.auto().is_too_little, "{:?}", story.auto());
    assert_eq!(story.db.doctor().unwrap(), []);
}

#[test]
fn reads_of_many_keys_and_cursors_make_it_grow() {
    let story = Story::begin("");
    let keys: Vec<_> = (0..KEYS).map(u32::to_be_bytes).collect();
    for _ in 0..30 {
        for some in keys.chunks(64) {
            assert!(story.db.multi_get(some).iter().all(|found| found.is_ok()));
        }
    }
    assert_eq!(story.capacity(), 128);
    let story = Story::begin("");
    let mut iter =
        story.db.iter_cf(story.db.default_column_family(), &ReadOptions::default()).unwrap();
    for _ in 0..3 {
        iter.seek_to_first();
        while iter.valid() {
            iter.next();
        }
        iter.status().unwrap();
    }
    assert_eq!(story.capacity(), 128);
}

#[test]
fn it_stays_where_misses_are_said_to_be_worth_less() {
    let story = Story::begin("block_cache_miss_percent=1000");
    (0..3).for_each(|_| story.read(0..KEYS));
    assert_eq!(story.capacity(), 32);
    story.db.set_db_options(&[("block_cache_miss_percent", "2")]).unwrap();
    story.grow();
}

/// Reads that leave no block in the cache would not be faster with a larger one.
#[test]
fn reads_that_do_not_fill_it_do_not_make_it_grow() {
    let story = Story::begin("");
    story.read(0..1200);
    let before = story.capacity();
    let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    for _ in 0..3 {
        for key in 1200..KEYS {
            let family = story.db.default_column_family();
            assert!(story.db.get_with(&options, family, key.to_be_bytes()).unwrap().is_some());
        }
    }
    assert_eq!(story.capacity(), before);
}

#[test]
fn a_size_that_was_given_is_kept() {
    let story = Story::begin("block_cache=8m");
    (0..2).for_each(|_| story.read(0..KEYS));
    story.machine.set(MemoryState { limit_bytes: 512 * MIB, free_bytes: 0, stalled_percent: 99.0 });
    story.rest(120);
    assert_eq!((story.capacity(), story.memory().auto_cache), (8, None));
    let looks = || story.clock.coarse_us() / 2000;
    let before = looks();
    story.read(0..1000);
    assert!(looks() - before < 100, "the time of its misses is not looked at");
}

#[test]
fn what_was_not_used_for_a_minute_goes_back() {
    let story = Story::begin("");
    story.grow();
    story.rest(61);
    for _ in 0..13 {
        story.rest(5);
        story.read(0..600);
    }
    story.rest(1);
    assert_eq!(story.capacity(), 32, "{:?}", story.auto());
    assert_eq!(story.auto().why, "it shrank because the rest was unused for 60 s");
    assert!(story.has_cached(0..600), "what was used has stayed");
    assert!(story.memory().cache.usage() <= 32 * MIB);
}

#[test]
fn what_is_used_stays() {
    let story = Story::begin("");
    story.grow();
    for _ in 0..10 {
        story.rest(20);
        story.read(0..KEYS);
    }
    assert_eq!(story.capacity(), 128);
    story.db.set_db_options(&[("unused_memory_seconds", "5")]).unwrap();
    story.rest(20);
    story.rest(20);
    assert_eq!(story.capacity(), 32);
}

#[test]
fn it_gives_memory_back_where_others_need_it() {
    let story = Story::begin("");
    story.grow();
    let limit_bytes = 512 * MIB;
    story.machine.set(MemoryState { limit_bytes, free_bytes: 20 * MIB, ..MemoryState::default() });
    story.rest(1);
    assert!((45..=60).contains(&story.capacity()), "half of 100 MiB: {:?}", story.auto());
    assert!(story.memory().cache.usage() <= 60 * MIB);
    let why = "it shrank because only 20 MiB of 512 MiB of memory were free";
    assert_eq!(story.auto().why, why);
    let findings = story.db.doctor().unwrap();
    assert!(findings.iter().any(|one| one.severity == Severity::Note && one.what.ends_with(why)));
    (0..5).for_each(|_| story.rest(3));
    assert_eq!(story.capacity(), 4);
    story.machine.set(MemoryState { stalled_percent: 50.0, ..MemoryState::default() });
    story.rest(3);
    let told = story.db.property(story.db.default_column_family(), "rocksdb.stats").unwrap();
    assert!(told.contains("threads waited for memory for 50% of the time"), "{told}");
    story.machine.set(MemoryState::default());
    story.clock.pass(10);
    (0..3).for_each(|_| story.read(0..KEYS));
    assert_eq!(story.capacity(), 128, "there is enough again: {:?}", story.auto());
}

#[test]
fn memory_of_former_memtables_goes_back_where_none_is_begun() {
    let story = Story::begin("write_buffer_size=4m");
    let recycled = || story.memory().recycled_arenas;
    (0..50_000u32).for_each(|key| story.db.put(key.to_be_bytes(), [7; 100]).unwrap());
    story.db.flush_all().unwrap();
    story.rest(0);
    story.rest(0);
    assert!((2 * MIB..9 * MIB).contains(&recycled()), "one memtable's: {}", recycled());
    story.rest(50);
    assert!(recycled() > 0, "it is kept for the next");
    story.rest(11);
    assert_eq!(recycled(), 0);
}
