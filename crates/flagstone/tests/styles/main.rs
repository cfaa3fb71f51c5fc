//! Stories of universal and FIFO compaction. What is picked when is told in
//! `compaction/pick/testdata`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod fifo;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{create, entries, open_as_written, referee, temporary};
use flagstone::base::{Code, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Clock, Env, FileSystem, FileSystemAround};
use flagstone::options::{
    BottommostLevelCompaction, CompactRangeOptions, CompactionFilter, EventListener,
    FilterDecision, FilteredKind, JobInfo, Options, WriteOptions,
};

fn options(text: &str) -> Options {
    let mut options = create();
    options.set_all(&format!("enable_blob_files=false;{text}")).unwrap();
    options
}

fn levels(db: &Db) -> BTreeMap<usize, usize> {
    let mut levels = BTreeMap::new();
    db.live_files()
        .iter()
        .filter_map(|file| file.level)
        .for_each(|level| *levels.entry(level).or_insert(0) += 1);
    levels
}

fn compact(db: &Db) {
    let everything = CompactRangeOptions::default();
    db.compact_range(db.default_column_family(), None, None, &everything).unwrap();
}

/// Overwrites and deletes at random, with a flush after each round; what must be there.
fn churn(db: &Db, rounds: u64, contents: &mut BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut random = fastrand::Rng::with_seed(rounds);
    for round in 0..rounds {
        for _ in 0..300 {
            let key = format!("{:04}", random.u32(0..2000)).into_bytes();
            if random.u8(..10) < 8 {
                let value = format!("{round} {}", random.u64(..)).into_bytes();
                db.put(&key, &value).unwrap();
                contents.insert(key, value);
            } else {
                db.delete(&key).unwrap();
                contents.remove(&key);
            }
        }
        db.flush_all().unwrap();
    }
}

fn assert_holds(db: &Db, contents: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let expected: Vec<_> =
        contents.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert!(entries(db, db.default_column_family()) == expected);
}

#[test]
fn universal_compaction_keeps_few_runs_and_all_data() {
    for text in [
        "",
        "num_levels=1",
        "compaction_options_universal={stop_style=kCompactionStopStyleSimilarSize;allow_trivial_move=true;}",
        "enable_blob_files=true;min_blob_size=10;blob_commit_min_size=10;enable_blob_garbage_collection=true",
        "compaction_options_universal={compression_size_percent=50;};max_subcompactions=3;target_file_size_base=8192",
        "compaction_options_universal={incremental=true;max_size_amplification_percent=30;};\
            level0_file_num_compaction_trigger=2;target_file_size_base=2048;max_compaction_bytes=8192",
    ] {
        let directory = temporary();
        let text = format!("compaction_style=kCompactionStyleUniversal;{text}");
        let db = Db::open(directory.path(), &options(&text)).unwrap();
        let mut contents = BTreeMap::new();
        churn(&db, 40, &mut contents);
        db.wait_for_compactions().unwrap();
        let in_use = levels(&db);
        let runs =
            in_use.iter().map(|(level, files)| if *level == 0 { *files } else { 1 }).sum::<usize>();
        assert!(runs <= 5, "{text}: {in_use:?}");
        assert_holds(&db, &contents);

        compact(&db);
        let last = if text.contains("num_levels=1") { 0 } else { 6 };
        assert!(levels(&db).keys().eq([&last]), "{text}: {:?}", levels(&db));
        assert_holds(&db, &contents);
        db.close().unwrap();
        drop(db);
        check(directory.path(), &contents);
    }
}

/// The most bytes that tables had on the disk whenever one of them was removed: all that was
/// written in its place is there then.
#[derive(Clone, Default)]
struct Disk {
    files: MemoryFileSystem,
    most: Arc<Mutex<u64>>,
    /// How long the disk takes to remove a file.
    removal_takes: Duration,
}

impl FileSystemAround for Disk {
    fn inner(&self) -> &dyn FileSystem {
        &self.files
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let now = self.table_bytes();
        let mut most = self.most.lock().unwrap();
        *most = now.max(*most);
        drop(most);
        Env::os().clock.sleep(self.removal_takes);
        self.files.remove(path)
    }
}

impl Disk {
    fn table_bytes(&self) -> u64 {
        let names = self.files.list(Path::new("/db")).unwrap();
        let tables = names.iter().filter(|name| name.ends_with(".sst"));
        tables.map(|name| self.files.metadata(&Path::new("/db").join(name)).unwrap().size).sum()
    }

    /// What `work` needs beyond what there is before it.
    fn scratch(&self, work: impl FnOnce()) -> u64 {
        let before = self.table_bytes();
        *self.most.lock().unwrap() = before;
        work();
        *self.most.lock().unwrap() - before
    }
}

/// Went wrong: to merge all runs took a second copy of everything, and a database that filled half
/// of its disk never could.
#[test]
fn merging_all_runs_takes_no_more_scratch_than_it_may() {
    let merge_all = |bound: u64, asked: bool, rewrites: bool| {
        // Went wrong: the next piece did not wait while another thread was about to remove what had
        // become free.
        let disk = Disk {
            removal_takes: Duration::from_millis(if asked { 0 } else { 10 }),
            ..Disk::default()
        };
        let mut options = options(
            "compaction_style=kCompactionStyleUniversal;compression=kNoCompression;target_file_size_base=16384;\
             compaction_options_universal={max_size_amplification_percent=5;};level0_file_num_compaction_trigger=2;\
             disable_auto_compactions=true",
        );
        options.set("max_compaction_bytes", &bound.to_string()).unwrap();
        options.env = Env::os().with_fs(Arc::new(disk.clone()));
        let db = Db::open("/db", &options).unwrap();
        let mut contents = BTreeMap::new();
        let mut random = fastrand::Rng::with_seed(7);
        let mut put = |number: u32, round: u8| {
            let (key, value) = (number.to_be_bytes().to_vec(), vec![round; 100]);
            db.put(&key, &value).unwrap();
            contents.insert(key, value);
        };
        (0..10_000).for_each(|number| put(number, 0));
        db.flush_all().unwrap();
        compact(&db);
        for round in 1..3 {
            (0..500).for_each(|_| put(random.u32(0..10_000), round));
            db.flush_all().unwrap();
        }
        let all = disk.table_bytes();
        let promised = db.space(db.default_column_family()).unwrap().scratch_bytes;
        let scratch = disk.scratch(|| {
            if asked {
                let bottommost_level_compaction = if rewrites {
                    BottommostLevelCompaction::Force
                } else {
                    BottommostLevelCompaction::IfHaveCompactionFilter
                };
                let how = CompactRangeOptions { bottommost_level_compaction, ..Default::default() };
                db.compact_range(db.default_column_family(), None, None, &how).unwrap();
            } else {
                let on = [("disable_auto_compactions", "false")];
                db.set_options(db.default_column_family(), &on).unwrap();
                db.wait_for_compactions().unwrap();
            }
        });
        assert!(levels(&db).keys().eq([&6]), "{:?}", levels(&db));
        assert_holds(&db, &contents);
        assert!(db.verify(|_| {}).faults.is_empty());
        println!(
            "at most {bound} bytes, asked={asked}: {scratch} of scratch for {all}, {promised} said"
        );
        assert!(scratch <= promised + promised / 20, "{scratch} bytes, and {promised} were said");
        (scratch, all)
    };
    for (asked, rewrites) in [(false, false), (true, false), (true, true)] {
        let (scratch, _) = merge_all(150_000, asked, rewrites);
        // Level 0 becomes seven tables, each of which overlaps a seventh of everything: the least
        // that a piece can be.
        assert!(scratch < 220_000, "asked={asked}: {scratch} bytes");
        // Unasked, its inputs may be removed when nobody looks any longer.
        if asked {
            let (scratch, all) = merge_all(u64::MAX, asked, rewrites);
            assert!(scratch > all / 10 * 8, "{scratch} of {all} bytes");
        }
    }
    let (by_default, _) = merge_all(0, true, false);
    assert!(by_default < 25 * 16_384 + 30_000, "{by_default} bytes");
}

/// Runs of similar size, the oldest among them, were merged at once, whatever
/// `max_compaction_bytes` and `space` said.
#[test]
fn merging_similar_runs_takes_no_more_scratch_than_it_may() {
    let disk = Disk::default();
    let mut options = options(
        "compaction_style=kCompactionStyleUniversal;compression=kNoCompression;target_file_size_base=65536;\
         level0_file_num_compaction_trigger=3;max_compaction_bytes=150000;write_buffer_size=4m;\
         disable_auto_compactions=true;compaction_options_universal={max_size_amplification_percent=400;}",
    );
    options.env = Env::os().with_fs(Arc::new(disk.clone()));
    let db = Db::open("/db", &options).unwrap();
    let mut contents = BTreeMap::new();
    let mut put = |number: u32, round: u8| {
        let (key, value) = (number.to_be_bytes().to_vec(), vec![round; 100]);
        db.put(&key, &value).unwrap();
        contents.insert(key, value);
    };
    (0..12_000).step_by(3).for_each(|number| put(number, 0));
    db.flush_all().unwrap();
    compact(&db);
    for round in 1..3 {
        (0..12_000).step_by(3).for_each(|number| put(number + u32::from(round), round));
        db.flush_all().unwrap();
    }
    let (all, space) = (disk.table_bytes(), db.space(db.default_column_family()).unwrap());
    let scratch = disk.scratch(|| {
        let on = [("disable_auto_compactions", "false")];
        db.set_options(db.default_column_family(), &on).unwrap();
        db.wait_for_compactions().unwrap();
    });
    assert!(levels(&db).keys().eq([&6]), "{:?}", levels(&db));
    assert_holds(&db, &contents);
    let promised = space.scratch_bytes;
    assert!(
        scratch <= promised + promised / 20,
        "{scratch} bytes for {all}, and {promised} were said"
    );
    assert!(scratch < all / 4 * 3, "{scratch} bytes for {all}");
}

/// The bytes that each compaction wrote.
#[derive(Default)]
struct Written(Mutex<Vec<u64>>);

impl EventListener for Written {
    fn on_compaction_completed(&self, job: &JobInfo) {
        self.0.lock().unwrap().push(job.tables.iter().map(|table| table.size).sum());
    }
}

/// Somebody merged all runs while that was being done in pieces, and it was taken up again for the
/// next few tables: most of the last level was rewritten for nothing.
#[test]
fn a_merge_in_pieces_ends_when_somebody_else_has_done_it() {
    let written = Arc::new(Written::default());
    let mut options = options(
        "compaction_style=kCompactionStyleUniversal;compression=kNoCompression;target_file_size_base=16384;\
         compaction_options_universal={max_size_amplification_percent=5;};level0_file_num_compaction_trigger=2;\
         max_compaction_bytes=150000",
    );
    options.env = testkit::steps::world(Env::memory().fs, 1);
    options.listeners = vec![written.clone()];
    let db = Db::open("/db", &options).unwrap();
    let mut contents = BTreeMap::new();
    let mut write = |step: usize, round: u8| {
        for number in (0..10_000_u32).step_by(step) {
            let (key, value) = (number.to_be_bytes().to_vec(), vec![round; 100]);
            db.put(&key, &value).unwrap();
            contents.insert(key, value);
        }
        db.flush_all().unwrap();
    };
    let work = |most: usize| (0..most).take_while(|_| db.background_step().unwrap()).count();
    write(1, 0);
    compact(&db);
    write(20, 1);
    write(20, 2);
    assert_eq!(work(2), 2, "out of level 0, and one of the pieces that follow");
    assert_eq!(levels(&db).len(), 2, "there are more: {:?}", levels(&db));
    compact(&db);
    assert!(levels(&db).keys().eq([&6]), "{:?}", levels(&db));
    written.0.lock().unwrap().clear();

    write(5_000, 3);
    write(5_000, 4);
    assert!(work(100) < 100);
    let written: u64 = written.0.lock().unwrap().iter().sum();
    assert!(written < 10_000, "{written} bytes for four entries");
    assert_holds(&db, &contents);
}

/// With `incremental` no compaction needs room for a second copy of everything.
#[test]
fn a_merge_in_parts_needs_less_room_at_a_time() {
    let percent_of_largest = |incremental: bool| {
        let written = Arc::new(Written::default());
        let mut options = options(
            "compaction_style=kCompactionStyleUniversal;level0_file_num_compaction_trigger=2;compression=kNoCompression;\
             target_file_size_base=16384;max_background_jobs=2",
        );
        // Otherwise all would be merged in pieces.
        let most = if incremental { 65_536 } else { u64::MAX };
        options.set("max_compaction_bytes", &most.to_string()).unwrap();
        let universal = format!("{{incremental={incremental};max_size_amplification_percent=50;}}");
        options.set("compaction_options_universal", &universal).unwrap();
        options.listeners = vec![written.clone()];
        let directory = temporary();
        let db = Db::open(directory.path(), &options).unwrap();
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..25 {
            (0..1_000).for_each(|_| db.put(random.u32(0..10_000).to_be_bytes(), [7; 100]).unwrap());
            db.flush_all().unwrap();
            db.wait_for_compactions().unwrap();
        }
        let all: u64 = db.live_files().iter().map(|file| file.size).sum();
        let written = written.0.lock().unwrap();
        let (largest, sum) = (*written.iter().max().unwrap(), written.iter().sum::<u64>());
        println!(
            "incremental={incremental}: {} compactions wrote {sum} bytes, at most {largest}, for {all}",
            written.len()
        );
        largest * 100 / all
    };
    let (in_parts, at_once) = (percent_of_largest(true), percent_of_largest(false));
    assert!(
        in_parts < 60 && at_once > 70,
        "{in_parts} and {at_once} percent of the data in one compaction"
    );
}

#[test]
fn as_many_runs_may_stay_as_max_read_amp_says() {
    let directory = temporary();
    let text = "compaction_style=kCompactionStyleUniversal;compression=kNoCompression;level0_file_num_compaction_trigger=2;\
        compaction_options_universal={max_read_amp=5;}";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    let flushed = |size: usize| {
        db.put("key", vec![1; size]).unwrap();
        db.flush_all().unwrap();
        db.wait_for_compactions().unwrap();
        levels(&db)[&0]
    };
    let counts = [160_000, 80_000, 40_000, 20_000, 10_000, 5_000].map(flushed);
    assert_eq!(counts, [1, 2, 3, 4, 5, 5], "of different sizes");
    assert_eq!([5_000, 2_000].map(flushed), [5, 5], "of which two are similar");
    db.close().unwrap();
    drop(db);
    let db = open_as_written(directory.path(), false);
    assert_eq!(db.default_column_family().options().compaction_options_universal.max_read_amp, 5);
    assert_eq!(db.get("key").unwrap().unwrap().len(), 2_000);
    db.set_options(
        db.default_column_family(),
        &[("compaction_options_universal", "{max_read_amp=-1;}")],
    )
    .unwrap();
    db.wait_for_compactions().unwrap();
    assert!(levels(&db).values().sum::<usize>() <= 2, "{:?}", levels(&db));
    db.close().unwrap();
    drop(db);
    if let Some(referee) = referee() {
        referee.ldb(directory.path(), &["checkconsistency"]);
        referee.ldb(directory.path(), &["get", "--try_load_options", "key"]);
    }
}

/// As many runs as the trigger, of sizes that nobody would merge: they stay, and writers do not
/// wait for them.
#[test]
fn writers_do_not_wait_for_runs_that_are_left_alone() {
    let directory = temporary();
    let text = "compaction_style=kCompactionStyleUniversal;compression=kNoCompression;\
        level0_file_num_compaction_trigger=4;level0_slowdown_writes_trigger=2;level0_stop_writes_trigger=4";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    for size in [100_000, 60_000, 20_000, 5_000] {
        db.put("key", vec![1; size]).unwrap();
        db.flush_all().unwrap();
        db.wait_for_compactions().unwrap();
    }
    assert_eq!(levels(&db), BTreeMap::from([(0, 4)]));
    let mut batch = WriteBatch::new();
    batch.put(b"key", b"value").unwrap();
    db.write_with(&WriteOptions { no_slowdown: true, ..WriteOptions::default() }, batch).unwrap();
}

/// Writes of low priority, but not in vain or where they must not wait: those were held up for
/// good, these slept, too.
#[test]
fn writes_of_low_priority_give_way_to_compactions_that_somebody_does() {
    for (text, gives_way) in [
        ("compaction_style=kCompactionStyleFIFO", false),
        ("compaction_style=kCompactionStyleNone", false),
        ("disable_auto_compactions=true", false),
        ("", true),
    ] {
        let mut options = options(&format!("level0_file_num_compaction_trigger=2;{text}"));
        let (clock, filter) = (Arc::new(Slept::default()), Arc::new(Held::default()));
        options.env = Env { clock: clock.clone(), ..Env::memory() };
        options.cf.compaction_filter = Some(filter.clone());
        let db = Db::open("/db", &options).unwrap();
        let held = filter.0.lock().unwrap();
        for _ in 0..5 {
            db.put("key", "value").unwrap();
            db.flush_all().unwrap();
        }
        let mut batch = WriteBatch::new();
        batch.put(b"key", b"value").unwrap();
        let low = WriteOptions { low_pri: true, ..WriteOptions::default() };
        let refused =
            db.write_with(&WriteOptions { no_slowdown: true, ..low }, batch.clone()).err();
        assert_eq!(
            refused.map(|error| error.code()),
            gives_way.then_some(Code::Incomplete),
            "{text}"
        );
        assert_eq!(clock.0.load(Ordering::Relaxed), 0, "{text}");
        db.write_with(&low, batch).unwrap();
        assert_eq!(clock.0.load(Ordering::Relaxed) > 0, gives_way, "{text}");
        drop(held);
    }
}

/// Compactions wait for it.
#[derive(Default)]
struct Held(Mutex<()>);

impl CompactionFilter for Held {
    fn name(&self) -> &str {
        "Held"
    }

    fn filter(
        &self,
        _level: u32,
        _key: &[u8],
        _kind: FilteredKind,
        _value: &[u8],
    ) -> FilterDecision {
        drop(self.0.lock());
        FilterDecision::Keep
    }
}

/// How often somebody slept.
#[derive(Default)]
struct Slept(AtomicUsize);

impl Clock for Slept {
    fn now_us(&self) -> u64 {
        0
    }

    fn unix_seconds(&self) -> u64 {
        1_700_000_000
    }

    fn sleep(&self, _duration: Duration) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// RocksDB reads the database, and goes on in the same style.
fn check(path: &Path, contents: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let Some(referee) = referee() else { return };
    referee.ldb(path, &["checkconsistency"]);
    referee.ldb(path, &["put", "--try_load_options", "from", "rocksdb"]);
    referee.ldb(path, &["compact", "--try_load_options"]);
    let db = open_as_written(path, false);
    let mut contents = contents.clone();
    contents.insert(b"from".to_vec(), b"rocksdb".to_vec());
    assert_holds(&db, &contents);
}

/// Deletions in the only level go when nothing older is left below them.
#[test]
fn the_oldest_run_holds_no_deletions() {
    let directory = temporary();
    let text =
        "compaction_style=kCompactionStyleUniversal;num_levels=1;disable_auto_compactions=true";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    for number in 0..100u32 {
        db.put(number.to_be_bytes(), "value").unwrap();
    }
    db.flush_all().unwrap();
    for number in 0..100u32 {
        db.delete(number.to_be_bytes()).unwrap();
    }
    compact(&db);
    assert!(db.live_files().is_empty(), "{:?}", db.live_files());
}

#[test]
fn a_database_changes_its_style_and_keeps_its_data() {
    let directory = temporary();
    let mut contents = BTreeMap::new();
    let small = "write_buffer_size=16384;target_file_size_base=8192;max_bytes_for_level_base=32768";
    for style in ["Level", "Universal", "Level", "Universal", "None", "Universal"] {
        let text = format!("compaction_style=kCompactionStyle{style};{small}");
        let db = Db::open(directory.path(), &options(&text)).unwrap();
        assert_holds(&db, &contents);
        churn(&db, 12, &mut contents);
        db.wait_for_compactions().unwrap();
        assert_holds(&db, &contents);
    }
}
