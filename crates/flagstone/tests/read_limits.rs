//! Reads that end in time, wait for the rate limiter, and use prefix filters where they may.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::create;
use flagstone::base::{Code, Error, Result};
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{
    AnyFile, Clock, Env, FileAround, FileSystem, FileSystemAround, IoPriority, OpenMode,
    RateLimiter, RateLimiterMode, RateLimiterOptions,
};
use flagstone::options::{Options, ReadOptions};
use testkit::HandClock;

/// Files in memory whose reads take time, and are counted.
struct Slow {
    fs: MemoryFileSystem,
    clock: Arc<HandClock>,
    read_us: Arc<AtomicU64>,
    reads: Arc<AtomicU64>,
}

struct SlowFile {
    file: AnyFile,
    clock: Arc<HandClock>,
    read_us: Arc<AtomicU64>,
    reads: Arc<AtomicU64>,
}

impl FileAround for SlowFile {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.clock.sleep(Duration::from_micros(self.read_us.load(Ordering::Relaxed)));
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.file.read_at(offset, buffer)
    }
}

impl FileSystemAround for Slow {
    fn inner(&self) -> &dyn FileSystem {
        &self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&self.fs, path)?;
        let (clock, read_us, reads) =
            (self.clock.clone(), self.read_us.clone(), self.reads.clone());
        Ok(AnyFile::around(SlowFile { file, clock, read_us, reads }))
    }
}

/// A database on a slow disk, in tables and blob files, without a cache.
struct World {
    db: Db,
    clock: Arc<HandClock>,
    read_us: Arc<AtomicU64>,
    reads: Arc<AtomicU64>,
    limiter: Arc<RateLimiter>,
}

const KEYS: usize = 300;

fn key(number: usize) -> String {
    format!("{:02}-{number:04}", number % 20)
}

impl World {
    fn new(more: &str) -> Self {
        let clock = Arc::new(HandClock::at(1_000));
        let (read_us, reads) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let fs = Slow {
            fs: MemoryFileSystem::new(),
            clock: clock.clone(),
            read_us: read_us.clone(),
            reads: reads.clone(),
        };
        let limits = RateLimiterOptions {
            mode: RateLimiterMode::ReadsOnly,
            ..RateLimiterOptions::new(1 << 30)
        };
        let limiter = Arc::new(RateLimiter::with_clock(limits, clock.clone()).unwrap());
        let env = Env { clock: clock.clone(), ..Env::memory().with_fs(Arc::new(fs)) };
        let mut options = Options { env, rate_limiter: Some(limiter.clone()), ..create() };
        let text = "enable_blob_files=true;min_blob_size=1000;block_cache=0;cache_blobs=false;\
                    table.block_size=512;disable_auto_compactions=true";
        for setting in text.split(';').chain(more.split(';')).filter(|text| !text.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap();
            options.set(name, value).unwrap_or_else(|error| panic!("{setting}: {error}"));
        }
        let db = Db::open("/db", &options).unwrap();
        for part in 0..3 {
            for number in (part..KEYS).step_by(3) {
                let size = if number % 2 == 0 { 2000 } else { 50 };
                db.put(key(number), vec![number as u8; size]).unwrap();
            }
            db.flush_all().unwrap();
        }
        // Every file is open, and its index read.
        for number in 0..KEYS {
            assert!(db.get(key(number)).unwrap().is_some());
        }
        reads.store(0, Ordering::Relaxed);
        Self { db, clock, read_us, reads, limiter }
    }

    fn now(&self) -> u64 {
        self.clock.unix_micros()
    }

    fn take(&self, read_us: u64) {
        self.read_us.store(read_us, Ordering::Relaxed);
    }

    fn reads(&self) -> u64 {
        self.reads.swap(0, Ordering::Relaxed)
    }

    /// The outcome of each kind of read.
    fn read_all(&self, options: &ReadOptions) -> Vec<(&'static str, Result<()>)> {
        let (db, family) = (&self.db, self.db.default_column_family());
        let keys: Vec<_> = (0..40).map(key).collect();
        let mut many = db.multi_get_with(options, family, &keys).into_iter();
        let seek = |options: &ReadOptions| -> Result<()> {
            let mut iter = db.iter(options)?;
            iter.seek(key(7));
            iter.status()
        };
        let step = || -> Result<()> {
            let mut iter = db.iter(options)?;
            iter.seek_to_first();
            for _ in 0..100 {
                iter.status()?;
                iter.value()?;
                iter.next();
            }
            iter.status()
        };
        let back = || -> Result<()> {
            let mut iter = db.iter(options)?;
            iter.seek_to_last();
            for _ in 0..100 {
                iter.status()?;
                iter.prev();
            }
            iter.status()
        };
        vec![
            ("get", db.get_with(options, family, key(1)).map(drop)),
            ("get of a blob", db.get_with(options, family, key(2)).map(drop)),
            ("multi_get", many.try_for_each(|found| found.map(drop))),
            ("entity", db.get_entity(options, family, key(3)).map(drop)),
            ("part", db.get_range(options, family, key(2), 100..200).map(drop)),
            ("seek", seek(options)),
            ("steps", step()),
            ("steps back", back()),
        ]
    }
}

fn assert_timed_out((what, outcome): &(&str, Result<()>)) {
    let error = outcome.as_ref().expect_err(what);
    assert_eq!(error.code(), Code::TimedOut, "{what}: {error}");
}

fn assert_sound(world: &World) {
    for (what, outcome) in world.read_all(&ReadOptions::default()) {
        outcome.unwrap_or_else(|error: Error| panic!("{what}: {error}"));
    }
    assert!(world.db.verify(|_| {}).faults.is_empty());
}

#[test]
fn a_deadline_ends_every_kind_of_read() {
    for more in ["", "max_open_files=20", "use_direct_reads=true"] {
        let world = World::new(more);
        let soon = || ReadOptions { deadline_us: Some(world.now() + 50), ..Default::default() };
        // In time.
        for (what, outcome) in world.read_all(&soon()) {
            outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        // Too late before it begins.
        let past = ReadOptions { deadline_us: Some(world.now()), ..Default::default() };
        world.reads();
        world.read_all(&past).iter().for_each(assert_timed_out);
        assert_eq!(world.reads(), 0, "nothing is read for a call that is too late");
        // Each read takes longer than there is time.
        world.take(60);
        let family = world.db.default_column_family();
        let late = world.db.get_with(&soon(), family, key(1)).unwrap_err();
        assert_eq!(late.code(), Code::TimedOut);
        assert!(late.path().is_some(), "{late}");
        let keys: Vec<_> = (0..40).map(key).collect();
        let many = world.db.multi_get_with(&soon(), family, &keys);
        assert!(many.iter().all(Result::is_err));
        let mut iter = world.db.iter(&soon()).unwrap();
        iter.seek("");
        assert_eq!(iter.status().unwrap_err().code(), Code::TimedOut);
        assert!(!iter.valid());
        world.take(0);
        drop(iter);
        assert_sound(&world);
    }
}

#[test]
fn an_iterator_that_timed_out_goes_on_after_a_seek() {
    let world = World::new("table.max_auto_readahead_size=0");
    let options =
        ReadOptions { io_timeout: Some(Duration::from_micros(100)), ..Default::default() };
    let mut iter = world.db.iter(&options).unwrap();
    iter.seek_to_first();
    let mut seen = 0;
    while iter.valid() {
        if seen == KEYS / 2 {
            world.take(101);
        }
        seen += 1;
        iter.next();
    }
    assert!((KEYS / 2..KEYS).contains(&seen), "{seen}");
    assert_eq!(iter.status().unwrap_err().code(), Code::TimedOut);
    world.take(100);
    iter.seek_to_first();
    let mut seen = 0;
    while iter.valid() {
        iter.value().unwrap();
        seen += 1;
        iter.next();
    }
    iter.status().unwrap();
    assert_eq!(seen, KEYS);
    // The value alone is late: the iterator stays where it is.
    iter.seek(key(2));
    world.take(101);
    assert_eq!(iter.value().unwrap_err().code(), Code::TimedOut);
    assert!(iter.valid());
    world.take(0);
    assert_eq!(iter.value().unwrap(), vec![2; 2000]);
}

#[test]
fn io_timeout_is_of_each_read() {
    let world = World::new("");
    world.take(70);
    let options = |micros| ReadOptions {
        io_timeout: Some(Duration::from_micros(micros)),
        ..Default::default()
    };
    for (what, outcome) in world.read_all(&options(70)) {
        outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    world.read_all(&options(69)).iter().for_each(assert_timed_out);
    world.take(0);
    assert_sound(&world);
}

#[test]
fn what_is_in_memory_is_read_in_no_time() {
    let world = World::new("block_cache=8388608");
    world.take(1000);
    let options = ReadOptions { io_timeout: Some(Duration::from_micros(1)), ..Default::default() };
    let family = world.db.default_column_family();
    world.db.get_with(&options, family, key(1)).unwrap().unwrap();
    world.db.put("fresh", "memtable").unwrap();
    world.db.get_with(&options, family, "fresh").unwrap().unwrap();
}

#[test]
fn a_priority_makes_reads_pass_the_rate_limiter() {
    let world = World::new("");
    let through = |priority| world.limiter.bytes_through(priority);
    let before = through(IoPriority::Mid);
    assert_sound(&world);
    assert_eq!(through(IoPriority::Mid), before);
    let options =
        ReadOptions { rate_limiter_priority: Some(IoPriority::Mid), ..Default::default() };
    for (what, outcome) in world.read_all(&options) {
        outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    assert!(through(IoPriority::Mid) > before + 2000 * 10);
}

/// Keys from `seek` on and before `upper`, and then back from the second of them.
fn walk(db: &Db, auto_prefix_mode: bool, seek: &str, upper: &str) -> Vec<Vec<u8>> {
    let options = ReadOptions {
        auto_prefix_mode,
        iterate_upper_bound: Some(upper.into()),
        ..Default::default()
    };
    let mut iter = db.iter(&options).unwrap();
    let mut seen = Vec::new();
    iter.seek(seek);
    while iter.valid() {
        seen.push(iter.key().to_vec());
        iter.next();
    }
    iter.seek(seek);
    if iter.valid() {
        iter.next();
    }
    for _ in 0..40 {
        if iter.valid() {
            seen.push(iter.key().to_vec());
            iter.prev();
        }
    }
    if iter.valid() {
        iter.next();
        seen.push(iter.key().to_vec());
    }
    iter.seek_for_prev(seek);
    seen.extend(iter.valid().then(|| iter.key().to_vec()));
    iter.seek_to_last();
    seen.extend(iter.valid().then(|| iter.key().to_vec()));
    iter.status().unwrap();
    seen
}

#[test]
fn automatic_prefixes_change_nothing_but_the_reads() {
    let world = World::new("prefix_extractor=fixed:3;table.block_size=128");
    // A fourth table without most prefixes, and one with keys that are too short for one.
    for number in 0..5 {
        world.db.put(format!("05-9{number}"), "late").unwrap();
    }
    world.db.flush_all().unwrap();
    for key in ["0", "05", "1", "19", "2"] {
        world.db.put(key, "short").unwrap();
    }
    world.db.delete_range("07-", "08-").unwrap();
    world.db.flush_all().unwrap();
    let bounds = ["", "0", "05", "05-", "05-0100", "05.", "06-", "07-", "08-", "18-9", "20-", "3"];
    for seek in bounds {
        for upper in bounds {
            let (with, without) =
                (walk(&world.db, true, seek, upper), walk(&world.db, false, seek, upper));
            assert_eq!(with, without, "from {seek} to {upper}");
        }
    }
    let reads = |auto_prefix_mode| {
        let options = ReadOptions {
            auto_prefix_mode,
            iterate_upper_bound: Some(b"04.".to_vec()),
            ..Default::default()
        };
        let mut iter = world.db.iter(&options).unwrap();
        world.reads();
        iter.seek("04-");
        assert!(iter.valid());
        world.reads()
    };
    let (with, without) = (reads(true), reads(false));
    assert!(with < without, "{with} reads, {without} without");
}

#[test]
fn the_limits_hold_for_each_piece_of_a_value() {
    let world = World::new("blob_compression_type=kNoCompression");
    let (db, family) = (&world.db, world.db.default_column_family());
    db.put("zz", vec![7; 3 << 20]).unwrap();
    db.flush_all().unwrap();
    for is_deadline in [false, true] {
        let options = ReadOptions {
            io_timeout: (!is_deadline).then(|| Duration::from_micros(50)),
            deadline_us: is_deadline.then(|| world.now() + 50),
            ..Default::default()
        };
        let by_get = db.get_in_pieces(&options, family, "zz").unwrap().unwrap();
        let mut iter = db.iter(&options).unwrap();
        iter.seek("zz");
        let by_iter = iter.value_in_pieces().unwrap().expect("a value in a blob file");
        world.take(60);
        for mut reader in [by_get, by_iter] {
            assert_eq!(reader.next_piece().unwrap_err().code(), Code::TimedOut);
        }
        let outcome = iter.value_in_pieces().and_then(|reader| reader.unwrap().next_piece());
        assert_eq!(outcome.unwrap_err().code(), Code::TimedOut);
        world.take(0);
    }
    assert_sound(&world);
}
