//! Stories of holes that are punched in blob files where dead values lie.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{create, entries, referee, temporary};
use flagstone::base::Result;
use flagstone::db::{Db, SpaceUsage, Ticker};
use flagstone::env::os::OsFileSystem;
use flagstone::env::{AnyFile, Env, FileAround, FileSystem, FileSystemAround, IoMode, OpenMode};
use flagstone::options::{Options, ReadOptions};
use testkit::HandClock;

const VALUE: usize = 64 << 10;
/// A job's thread does what the job leaves to do: none finds the job's version in the way.
const ONE_THREAD: &str = "max_background_jobs=1";

/// Files of 16 values.
fn options(more: &str) -> Options {
    let mut options = create();
    // How long the machine takes for a hole decides nothing.
    options.env.clock = Arc::new(HandClock::at(1_700_000_000));
    let text = "enable_blob_files=true;blob_file_size=1000000;compression=kNoCompression";
    for setting in text.split(';').chain(more.split(';')).filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap();
        options.set(name, value).unwrap();
    }
    options
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn put(db: &Db, contents: &mut Contents, numbers: impl Iterator<Item = u32>, round: u32) {
    for number in numbers {
        let key = format!("key{:05}", number.wrapping_mul(7919) % 100_000).into_bytes();
        let mut value = vec![number as u8 | 1; VALUE];
        value[..4].copy_from_slice(&round.to_le_bytes());
        db.put(&key, &value).unwrap();
        contents.insert(key, value);
    }
}

/// Flushes, and waits for what the engine does of its own accord.
fn rest(db: &Db) -> SpaceUsage {
    db.flush_all().unwrap();
    db.wait_for_compactions().unwrap();
    db.space(db.default_column_family()).unwrap()
}

fn assert_holds(db: &Db, contents: &Contents) {
    let found: Contents = entries(db, db.default_column_family()).into_iter().collect();
    assert!(&found == contents, "{} entries, {} expected", found.len(), contents.len());
    let faults = db.verify(|_| {}).faults;
    assert!(faults.is_empty(), "{faults:?}");
}

/// Bytes that the blob files of a directory take on the disk.
fn disk_usage(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap());
    let blobs =
        files.filter(|file| file.path().extension().is_some_and(|extension| extension == "blob"));
    blobs.map(|file| file.metadata().unwrap().blocks() * 512).sum()
}

/// Whether the file system of temporary directories punches holes.
fn has_holes() -> bool {
    let directory = temporary();
    let file = OsFileSystem.create_writable(&directory.path().join("f"), IoMode::Buffered).unwrap();
    file.write_at(0, &[1; 1 << 16]).unwrap();
    OsFileSystem.open_reclaimable(file.path()).unwrap().punch_hole(0..1 << 15).unwrap()
}

/// Every other value, then others: each file is half dead at first.
fn overwrite(db: &Db, contents: &mut Contents) -> SpaceUsage {
    put(db, contents, 0..100, 0);
    rest(db);
    put(db, contents, (0..100).step_by(2), 1);
    rest(db);
    put(db, contents, (0..100).step_by(3), 2);
    rest(db)
}

/// What is verified stays as it is, whatever goes on meanwhile.
#[test]
fn holes_wait_for_a_verification() {
    if !has_holes() {
        return;
    }
    let directory = temporary();
    let mut contents = Contents::new();
    let db = Db::open(directory.path(), &options("")).unwrap();
    overwrite(&db, &mut contents);
    let punched = || db.statistics().get(Ticker::BlobPunchedBytes);
    let before = punched();
    let mut is_first = true;
    let report = db.verify(|_| {
        if std::mem::take(&mut is_first) {
            for round in 3..6 {
                put(&db, &mut contents, (0..100).step_by(round), round as u32);
                rest(&db);
            }
        }
    });
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    assert_eq!(punched(), before);
    // The next change notices that nobody reads any more.
    put(&db, &mut contents, 0..1, 6);
    rest(&db);
    assert!(punched() > before);
    assert_holds(&db, &contents);
}

#[test]
fn large_values_that_are_overwritten_leave_the_disk_and_nothing_is_moved() {
    if !has_holes() {
        return;
    }
    let directory = temporary();
    let mut contents = Contents::new();
    let db = Db::open(directory.path(), &options(ONE_THREAD)).unwrap();
    let usage = overwrite(&db, &mut contents);
    assert_eq!(db.statistics().get(Ticker::BlobGcRelocatedKeys), 0);
    assert!(db.statistics().get(Ticker::BlobPunchedBytes) > 0);
    assert!(usage.blob_bytes as f64 <= 1.3 * usage.live_bytes as f64, "{usage:?}");
    assert!(usage.punched_bytes > usage.live_bytes / 4, "{usage:?}");
    let on_disk = disk_usage(directory.path());
    assert!(on_disk as f64 <= 1.3 * usage.live_bytes as f64 + 4096.0 * 20.0, "{on_disk} {usage:?}");
    assert_holds(&db, &contents);
    db.close().unwrap();
    drop(db);

    // Whoever opens it next knows what is not on the disk.
    let db = Db::open(directory.path(), &options("")).unwrap();
    let reopened = rest(&db);
    assert!(
        reopened.punched_bytes.abs_diff(usage.punched_bytes) <= 4096 * 20,
        "{reopened:?} {usage:?}"
    );
    assert_eq!(db.statistics().get(Ticker::BlobGcRelocatedKeys), 0);
    assert_holds(&db, &contents);
    db.close().unwrap();
    drop(db);
    if let Some(referee) = referee() {
        referee.ldb(directory.path(), &["checkconsistency"]);
        assert_eq!(referee.scan(directory.path(), "default").lines().count(), contents.len());
        referee.ldb(directory.path(), &["compact", "--try_load_options"]);
        let db = Db::open(directory.path(), &options("")).unwrap();
        assert_holds(&db, &contents);
        put(&db, &mut contents, (0..100).step_by(4), 3);
        rest(&db);
        assert_holds(&db, &contents);
    }
}

#[test]
fn iterators_and_snapshots_keep_what_they_see() {
    if !has_holes() {
        return;
    }
    let directory = temporary();
    let mut contents = Contents::new();
    let db = Db::open(directory.path(), &options("")).unwrap();
    put(&db, &mut contents, 0..100, 0);
    rest(&db);
    let mut before = db.iter(&ReadOptions::default()).unwrap();
    before.seek_to_first();
    let seen = contents.clone();
    put(&db, &mut contents, (0..100).step_by(2), 1);
    rest(&db);
    assert_eq!(db.statistics().get(Ticker::BlobPunchedBytes), 0, "an iterator is at it");
    let mut found = Contents::new();
    while before.valid() {
        found.insert(before.key().to_vec(), before.value().unwrap().to_vec());
        before.next();
    }
    assert!(found == seen);
    drop(before);
    rest(&db);
    assert!(db.statistics().get(Ticker::BlobPunchedBytes) > 0, "nobody is at it");

    let snapshot = db.snapshot();
    let seen = contents.clone();
    put(&db, &mut contents, (0..100).step_by(3), 2);
    rest(&db);
    let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
    for (key, value) in &seen {
        assert!(
            db.get_with(&options, db.default_column_family(), key).unwrap().as_deref()
                == Some(&value[..])
        );
    }
    assert_holds(&db, &contents);
}

/// Holes that waited for an iterator kept the files that they were to be punched in, be these
/// younger than what it reads and no part of the database any longer.
#[test]
fn what_waits_for_an_iterator_keeps_no_files() {
    if !has_holes() {
        return;
    }
    let directory = temporary();
    let mut contents = Contents::new();
    let db = Db::open(directory.path(), &options("min_blob_size=1000")).unwrap();
    db.put("small", "value").unwrap();
    rest(&db);
    let before = db.iter(&ReadOptions::default()).unwrap();
    db.put("small", "another").unwrap();
    rest(&db);
    overwrite(&db, &mut contents);
    assert_eq!(db.statistics().get(Ticker::BlobPunchedBytes), 0, "an iterator is at it");
    db.delete_range("key", "kez").unwrap();
    // Whoever wrote a table lets go of the tree before it only after it has said that it is done.
    let is_gone = |_| {
        db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
        rest(&db);
        disk_usage(directory.path()) == 0
    };
    assert!((0..1000).any(is_gone), "{:?}", rest(&db));
    drop(before);
}

#[test]
fn a_checkpoint_keeps_its_values() {
    if !has_holes() {
        return;
    }
    let (directory, other) = (temporary(), temporary());
    let mut contents = Contents::new();
    let db = Db::open(directory.path(), &options("")).unwrap();
    put(&db, &mut contents, 0..100, 0);
    rest(&db);
    let copy = other.path().join("copy");
    db.checkpoint(&copy).unwrap();
    let seen = contents.clone();
    overwrite(&db, &mut contents);
    assert_holds(&db, &contents);
    let copied = Db::open(&copy, &options("")).unwrap();
    assert_holds(&copied, &seen);
    // Its files are its own when the original is gone.
    drop(db);
    drop(directory);
    let mut seen = seen;
    overwrite(&copied, &mut seen);
    assert_holds(&copied, &seen);
}

/// A file system without holes.
struct Solid(OsFileSystem);

struct SolidFile(AnyFile);

impl FileAround for SolidFile {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn punch_hole(&self, _range: Range<u64>) -> Result<bool> {
        Ok(false)
    }
}

impl FileSystemAround for Solid {
    fn inner(&self) -> &dyn FileSystem {
        &self.0
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        Ok(AnyFile::around(SolidFile(mode.open(&self.0, path)?)))
    }
}

#[test]
fn without_holes_values_are_moved() {
    for (text, env) in [
        ("max_space_amplification=1.3", Env::os().with_fs(Arc::new(Solid(OsFileSystem)))),
        ("max_space_amplification=1.3;blob_punch_holes=false", Env::os()),
    ] {
        let directory = temporary();
        let mut contents = Contents::new();
        let mut options = options(text);
        options.env = env;
        let db = Db::open(directory.path(), &options).unwrap();
        let usage = overwrite(&db, &mut contents);
        assert_eq!((db.statistics().get(Ticker::BlobPunchedBytes), usage.punched_bytes), (0, 0));
        assert!(db.statistics().get(Ticker::BlobGcRelocatedKeys) > 0);
        assert!(usage.blob_bytes as f64 <= 1.31 * usage.live_bytes as f64, "{usage:?}");
        assert_holds(&db, &contents);
    }
}

/// A file system on which a hole takes a second.
struct Slow {
    hands: Arc<HandClock>,
    /// Holes that were punched.
    holes: AtomicU64,
    /// Each so-manieth gives nothing back; 0: none does so.
    in_vain: u64,
}

struct SlowFile(AnyFile, Arc<Slow>);

impl FileAround for SlowFile {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn punch_hole(&self, range: Range<u64>) -> Result<bool> {
        let Slow { hands, holes, in_vain } = &*self.1;
        hands.advance(1);
        // A hole gives back what is allocated, and a file system may put that off.
        OsFileSystem.reopen_writable(self.0.path())?.sync()?;
        let count = holes.fetch_add(1, Ordering::Relaxed) + 1;
        if *in_vain > 0 && count.is_multiple_of(*in_vain) {
            Ok(true)
        } else {
            self.0.punch_hole(range)
        }
    }
}

struct SlowSystem(Arc<Slow>);

impl FileSystemAround for SlowSystem {
    fn inner(&self) -> &dyn FileSystem {
        &OsFileSystem
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        Ok(AnyFile::around(SlowFile(mode.open(&OsFileSystem, path)?, self.0.clone())))
    }
}

/// Options for such a file system. There are no threads: nothing else that the machine does decides
/// what happens.
fn slow_options(in_vain: u64) -> (Arc<Slow>, Options) {
    let hands = Arc::new(HandClock::at(1_700_000_000));
    let slow = Arc::new(Slow { hands: hands.clone(), holes: AtomicU64::new(0), in_vain });
    let mut options = options("max_space_amplification=1.3");
    options.env = testkit::steps::world(Arc::new(SlowSystem(slow.clone())), 1);
    options.env.clock = hands;
    (slow, options)
}

/// How many holes are punched in each of some rests, which follow one another before it is
/// forgotten that holes are slow.
fn holes_in_rests(slow: &Slow, rest: impl Fn()) -> Vec<u64> {
    let rests = (0..30).map(|_| {
        let before = slow.holes.load(Ordering::Relaxed);
        slow.hands.advance(9);
        rest();
        slow.holes.load(Ordering::Relaxed) - before
    });
    rests.collect()
}

/// Several come at once only where there were none for so long that nobody knew that they are slow.
/// How many are left for later depends on when the file system allocates blocks.
fn assert_one_by_one(holes: &[u64]) {
    assert!(holes.windows(2).all(|pair| pair[0] == 0 || pair[1] <= 1), "{holes:?}");
    assert!(holes.iter().filter(|count| **count == 1).count() > 1, "{holes:?}");
}

/// Writers waited for holes that took longer than it takes to move what lives beside them.
#[test]
fn holes_that_take_too_long_are_given_up() {
    if !has_holes() {
        return;
    }
    let directory = temporary();
    let mut contents = Contents::new();
    let (_, options) = slow_options(0);
    let db = Db::open(directory.path(), &options).unwrap();
    let usage = overwrite(&db, &mut contents);
    assert!(db.statistics().get(Ticker::BlobPunchedBytes) > 0, "they were tried");
    assert!(db.statistics().get(Ticker::BlobGcRelocatedKeys) > 0);
    assert!(usage.blob_bytes as f64 <= 1.31 * usage.live_bytes as f64, "{usage:?}");
    assert_holds(&db, &contents);
}

/// What was given up once stayed on the disk, as far as the limit allows it, for as long as nothing
/// more was overwritten. And a hole that gave nothing back had it forgotten that they are slow:
/// then all came at once.
#[test]
fn slow_holes_are_punched_at_rest() {
    if !has_holes() {
        return;
    }
    for in_vain in [0, 2] {
        let directory = temporary();
        let mut contents = Contents::new();
        let (slow, options) = slow_options(in_vain);
        let db = Db::open(directory.path(), &options).unwrap();
        let before = overwrite(&db, &mut contents);
        let moved = db.statistics().get(Ticker::BlobGcRelocatedKeys);
        let holes = holes_in_rests(&slow, || {
            rest(&db);
        });
        assert_one_by_one(&holes);
        let after = rest(&db);
        assert!(after.blob_bytes < before.blob_bytes, "{before:?} {after:?}");
        assert_eq!(db.statistics().get(Ticker::BlobGcRelocatedKeys), moved);
        assert_holds(&db, &contents);
    }
}

/// The list of what was put off stayed in memory for as long as anybody had a handle.
#[test]
fn a_database_that_is_closed_forgets_the_holes_that_it_put_off() {
    if !has_holes() {
        return;
    }
    let directory = temporary();
    let mut contents = Contents::new();
    let (_, options) = slow_options(0);
    let db = Db::open(directory.path(), &options).unwrap();
    overwrite(&db, &mut contents);
    assert!(db.memory_usage().jobs > 0, "holes are left for later");
    db.close().unwrap();
    assert_eq!(db.memory_usage().jobs, 0);
}

/// Each family's were, for a tenth of the time each: with ten of them the disk never had a rest,
/// and whoever waited for compactions waited for all.
#[test]
fn between_slow_holes_of_several_families_the_disk_has_its_rest() {
    if !has_holes() {
        return;
    }
    let directory = temporary();
    let (slow, options) = slow_options(0);
    let db = Db::open(directory.path(), &options).unwrap();
    let families = ["a", "b", "c"].map(|name| db.create_column_family(name, &options.cf).unwrap());
    let wait = || {
        db.flush_all().unwrap();
        db.wait_for_compactions().unwrap();
    };
    for (round, step) in [1, 2, 3].into_iter().enumerate() {
        for family in &families {
            for number in (0..100u32).step_by(step) {
                db.put_cf(family, number.to_be_bytes(), [round as u8; VALUE]).unwrap();
            }
        }
        wait();
    }
    assert_one_by_one(&holes_in_rests(&slow, wait));
}

/// A file that a checkpoint had shared was not looked at again when that was gone.
#[test]
fn what_was_a_checkpoints_gets_its_holes_later() {
    if !has_holes() {
        return;
    }
    let (directory, other) = (temporary(), temporary());
    let hands = Arc::new(HandClock::at(1_700_000_000));
    let mut contents = Contents::new();
    let mut options = options("max_space_amplification=1.3");
    options.env.clock = hands.clone();
    let db = Db::open(directory.path(), &options).unwrap();
    put(&db, &mut contents, 0..100, 0);
    rest(&db);
    let copy = other.path().join("copy");
    db.checkpoint(&copy).unwrap();
    let seen = contents.clone();
    put(&db, &mut contents, (0..100).step_by(8), 1);
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    let usage = rest(&db);
    assert!(usage.garbage_bytes > 0 && usage.punched_bytes == 0, "{usage:?}");
    assert_holds(&Db::open(&copy, &self::options("")).unwrap(), &seen);
    std::fs::remove_dir_all(&copy).unwrap();
    hands.advance(61);
    let usage = rest(&db);
    assert!(usage.punched_bytes > usage.live_bytes / 10, "{usage:?}");
    assert_eq!(db.statistics().get(Ticker::BlobGcRelocatedKeys), 0);
    assert_holds(&db, &contents);
}
