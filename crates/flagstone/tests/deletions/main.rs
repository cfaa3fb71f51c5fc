//! Stories of deleted data that leaves the disk by itself, and of what is asked of ranges of keys.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

#[path = "../common/mod.rs"]
mod common;
mod ranges;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use common::{create, entries, open_as_written, referee, temporary};
use flagstone::base::Code;
use flagstone::db::{Db, LiveFile, Ticker};
use flagstone::env::Env;
use flagstone::options::{
    BottommostLevelCompaction, CompactRangeOptions, Options, ReadOptions, SizeApproximationOptions,
};
use testkit::steps;

const STYLES: [&str; 3] = [
    "compaction_style=kCompactionStyleLevel",
    "compaction_style=kCompactionStyleLevel;level_compaction_dynamic_level_bytes=false;max_bytes_for_level_base=40000",
    "compaction_style=kCompactionStyleUniversal",
];

const KEYS: u32 = 2000;

/// A database without threads, in which time passes when somebody sleeps.
struct World {
    options: Options,
    db: Db,
}

fn options(text: &str) -> Options {
    let mut options = create();
    options.env = steps::world(Env::os().fs, 1);
    let common = "target_file_size_base=10000;compression=kNoCompression";
    for setting in common.split(';').chain(text.split(';')).filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap();
        options.set(name, value).unwrap();
    }
    options
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn value(number: u32, size: usize) -> Vec<u8> {
    (0..size).map(|at| (number as usize * 31 + at * 7) as u8).collect()
}

impl World {
    /// All keys, in the last level, and nothing else.
    fn full(path: &Path, text: &str, value_size: usize) -> Self {
        let options = options(text);
        let db = Db::open(path, &options).unwrap();
        for number in 0..KEYS {
            db.put(key(number), value(number, value_size)).unwrap();
        }
        db.flush_all().unwrap();
        let whole = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        // The first only moves the table.
        (0..2).for_each(|_| {
            db.compact_range(db.default_column_family(), None, None, &whole).unwrap()
        });
        let world = Self { options, db };
        world.work();
        world
    }

    /// Does what there is to do now; there must be an end to it.
    fn work(&self) {
        let steps = (0..1000).take_while(|_| self.db.background_step().unwrap()).count();
        assert!(steps < 1000, "compactions do not come to an end");
    }

    /// Nobody writes for so long.
    fn rest(&self, seconds: u64) {
        for _ in 0..seconds / 2 {
            self.options.env.clock.sleep(Duration::from_secs(2));
            self.work();
        }
    }

    fn bytes(&self) -> u64 {
        self.db.live_files().iter().map(|file| file.size).sum()
    }

    fn count(&self, ticker: Ticker) -> u64 {
        self.db.statistics().get(ticker)
    }

    fn delete_range(&self, from: u32, to: u32) {
        self.db.delete_range(key(from), key(to)).unwrap();
    }

    /// The numbers of the keys that are there.
    fn keys(&self) -> Vec<Vec<u8>> {
        entries(&self.db, self.db.default_column_family()).into_iter().map(|(key, _)| key).collect()
    }

    /// Whether a scan from `number` on finds the next key without a step over anything that is
    /// deleted.
    fn finds_at_once(&self, number: u32) -> bool {
        let options = ReadOptions { max_skippable_internal_keys: 1, ..ReadOptions::default() };
        let mut iter = self.db.iter(&options).unwrap();
        iter.seek(key(number));
        match iter.status() {
            Ok(()) => true,
            Err(error) if error.code() == Code::Incomplete => false,
            Err(error) => panic!("{error}"),
        }
    }
}

fn check(path: &Path, expected: &[Vec<u8>]) {
    let db = open_as_written(path, true);
    let found: Vec<_> =
        entries(&db, db.default_column_family()).into_iter().map(|(key, _)| key).collect();
    assert_eq!(found, expected);
    let Some(referee) = referee() else { return };
    referee.ldb(path, &["checkconsistency"]);
    assert_eq!(referee.scan(path, "default"), common::dump(&db));
}

#[test]
fn half_of_the_keys_deleted_give_back_their_space() {
    for style in STYLES {
        for ranges in [false, true] {
            let directory = temporary();
            let world = World::full(directory.path(), style, 100);
            let before = world.bytes();
            let expected: Vec<_> = if ranges {
                world.delete_range(0, KEYS / 2);
                (KEYS / 2..KEYS).map(key).collect()
            } else {
                (0..KEYS).step_by(2).for_each(|number| world.db.delete(key(number)).unwrap());
                (1..KEYS).step_by(2).map(key).collect()
            };
            world.rest(10);
            assert!(ranges || world.bytes() >= before, "{style}: not before the delay");
            world.rest(50);
            assert!(
                world.bytes() < before * 60 / 100,
                "{style} {ranges}: {} of {before}",
                world.bytes()
            );
            assert_eq!(world.keys(), expected, "{style} {ranges}");
            assert!(
                (0..KEYS).step_by(50).all(|number| world.finds_at_once(number)),
                "{style} {ranges}"
            );
            let compactions = world.count(Ticker::Compactions);
            world.rest(200);
            assert_eq!(
                world.count(Ticker::Compactions),
                compactions,
                "{style} {ranges}: it is done"
            );
            world.db.close().unwrap();
            check(directory.path(), &expected);
        }
    }
}

#[test]
fn what_a_range_deletion_covers_is_dropped_without_being_read() {
    for style in STYLES {
        let directory = temporary();
        let world = World::full(directory.path(), style, 100);
        let (before, read) = (world.bytes(), world.count(Ticker::CompactReadBytes));
        let snapshot = world.db.snapshot();
        world.delete_range(0, KEYS);
        world.rest(60);
        assert!(world.bytes() >= before, "{style}: a snapshot sees it");
        let seen = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
        let family = world.db.default_column_family();
        assert!(world.db.get_with(&seen, family, key(7)).unwrap().is_some());
        drop((seen, snapshot));
        world.rest(60);
        let left: Vec<_> =
            world.db.live_files().iter().map(|f| (f.level, f.number.0, f.size)).collect();
        assert_eq!(left, [], "{style}");
        let read = world.count(Ticker::CompactReadBytes) - read;
        // Small levels made it compact what the snapshot kept.
        assert!(read < 5000 || style == STYLES[1], "{style}: {read} bytes read of {before}");
        world.db.close().unwrap();
        check(directory.path(), &[]);
    }
}

/// Range deletions that touch: a snapshot between them sees the keys that only the later one
/// deletes, and lost them.
#[test]
fn a_snapshot_between_two_range_deletions_keeps_its_keys() {
    for style in STYLES {
        let directory = temporary();
        let world = World::full(directory.path(), style, 100);
        world.delete_range(0, 1);
        let snapshot = world.db.snapshot();
        world.delete_range(1, KEYS);
        world.db.flush_all().unwrap();
        world.rest(60);
        let seen = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
        let family = world.db.default_column_family();
        for number in 1..KEYS {
            assert!(
                world.db.get_with(&seen, family, key(number)).unwrap().is_some(),
                "{style}: {number}"
            );
        }
    }
}

#[test]
fn values_in_blob_files_go_with_their_keys() {
    for (style, text) in STYLES.iter().zip(["", "max_space_amplification=1.2", ""]) {
        let directory = temporary();
        let text =
            format!("{style};enable_blob_files=true;min_blob_size=100;blob_file_size=20000;{text}");
        let world = World::full(directory.path(), &text, 1000);
        let before = world.bytes();
        world.delete_range(0, KEYS / 2);
        world.rest(60);
        assert!(world.bytes() < before * 65 / 100, "{style}: {} of {before}", world.bytes());
        assert_eq!(world.keys(), (KEYS / 2..KEYS).map(key).collect::<Vec<_>>());
    }
}

/// Half of the values made way for a mark of a few bytes. The memtable with the marks was far from
/// full, so nobody learned that there was garbage, and for as long as nobody wrote the blob files
/// had twice what they were to have at most.
#[test]
fn large_values_leave_the_disk_when_small_ones_take_their_place() {
    const SIZE: usize = 2000;
    for style in STYLES {
        for writes_on in [false, true] {
            let directory = temporary();
            let blobs = "enable_blob_files=true;min_blob_size=1000;blob_write_mode=flush";
            let world = World::full(directory.path(), &format!("{style};{blobs}"), SIZE);
            let before = world.bytes();
            (0..KEYS).step_by(2).for_each(|number| world.db.put(key(number), "gone").unwrap());
            for round in 0..15 {
                world.rest(8);
                if writes_on {
                    world.db.put(key(KEYS + 2), format!("{round}")).unwrap();
                }
            }
            let after = world.bytes();
            assert!(after < before * 13 / 20, "{style}, {writes_on}: {before} bytes, then {after}");
            assert_eq!(world.keys().len() as u32, KEYS + u32::from(writes_on));
        }
    }
}

/// What is overwritten by values as large brings as much to the disk as it frees.
#[test]
fn values_that_others_as_large_replace_wait_for_a_full_memtable() {
    let directory = temporary();
    let blobs = "enable_blob_files=true;min_blob_size=1000;blob_write_mode=flush";
    let world = World::full(directory.path(), &format!("{};{blobs}", STYLES[0]), 2000);
    let before = world.count(Ticker::Flushes);
    (0..KEYS / 2).for_each(|number| world.db.put(key(number), value(number + 1, 2000)).unwrap());
    world.rest(100);
    assert_eq!(world.count(Ticker::Flushes), before);
}

/// Somebody who writes a little all the time does not keep what others deleted on the disk.
#[test]
fn deletions_do_not_wait_for_a_trickle_of_writes_to_end() {
    for ranges in [false, true] {
        let directory = temporary();
        let world = World::full(directory.path(), STYLES[0], 100);
        let before = world.bytes();
        if ranges {
            world.delete_range(0, KEYS / 2)
        } else {
            (0..KEYS / 2).for_each(|number| world.db.delete(key(number)).unwrap())
        }
        for _ in 0..60 {
            world.db.put("a", "now").unwrap();
            world.rest(2);
        }
        assert!(world.bytes() < before * 60 / 100, "{ranges}: {} of {before}", world.bytes());
    }
}

#[test]
fn whole_tables_of_a_deleted_range_are_dropped_within_a_second() {
    for style in STYLES {
        let directory = temporary();
        let world = World::full(directory.path(), &format!("{style};write_buffer_size=65536"), 100);
        let before = world.bytes();
        world.delete_range(100, KEYS);
        world.rest(2);
        assert!(world.bytes() < before / 5, "{style}: {} of {before}", world.bytes());
        assert_eq!(world.keys(), (0..100).map(key).collect::<Vec<_>>(), "{style}");
    }
}

/// Each range would leave nothing of a tenth of what is left; a flush for every few kilobytes would
/// cost more than it frees.
#[test]
fn small_ranges_wait_for_more() {
    let directory = temporary();
    let world = World::full(directory.path(), STYLES[0], 100);
    let flushes = world.count(Ticker::Flushes);
    for from in (0..KEYS).step_by(200) {
        world.delete_range(from, from + 100);
        world.rest(2);
    }
    assert_eq!(world.count(Ticker::Flushes), flushes);
}

#[test]
fn few_deletions_wait_for_more() {
    let directory = temporary();
    let world = World::full(directory.path(), STYLES[0], 100);
    let (flushes, compactions) = (world.count(Ticker::Flushes), world.count(Ticker::Compactions));
    (0..KEYS / 50).for_each(|number| world.db.delete(key(number * 50)).unwrap());
    world.rest(100);
    world.db.flush_all().unwrap();
    world.rest(100);
    assert_eq!(world.count(Ticker::Flushes), flushes + 1);
    assert_eq!(world.count(Ticker::Compactions), compactions);
}

#[test]
fn with_a_delay_of_0_nothing_happens() {
    let directory = temporary();
    let world = World::full(directory.path(), "deletion_compaction_delay=0", 100);
    let flushes = world.count(Ticker::Flushes);
    (0..KEYS).for_each(|number| world.db.delete(key(number)).unwrap());
    world.rest(100);
    assert_eq!(world.count(Ticker::Flushes), flushes);
}

/// Who opens a database knows from the MANIFEST which tables are full of deletions, and opens none
/// to find out.
#[test]
fn deletions_are_remembered_over_a_reopening() {
    let directory = temporary();
    let world = World::full(directory.path(), STYLES[0], 100);
    let before = world.bytes();
    (0..KEYS / 2).for_each(|number| world.db.delete(key(number)).unwrap());
    world.db.flush_all().unwrap();
    world.db.close().unwrap();
    let options = options(STYLES[0]);
    let world = World { db: Db::open(directory.path(), &options).unwrap(), options };
    world.rest(60);
    assert!(world.bytes() < before * 60 / 100, "{} of {before}", world.bytes());
}

/// Puts, deletions of keys and ranges, and rests, at random: nothing comes back, and there is
/// always an end.
#[test]
fn random_deletions_settle() {
    for (seed, style) in (0..9).zip(STYLES.iter().cycle()) {
        let directory = temporary();
        let options = options(&format!("{style};write_buffer_size=20000"));
        let world = World { db: Db::open(directory.path(), &options).unwrap(), options };
        let mut random = fastrand::Rng::with_seed(seed);
        let mut model = BTreeMap::new();
        let mut snapshots = Vec::new();
        for _ in 0..40 {
            for _ in 0..random.u32(..120) {
                let number = random.u32(..400);
                if random.u8(..3) == 0 {
                    let end = number + random.u32(..40);
                    world.delete_range(number, end);
                    model.retain(|key: &u32, _| !(number..end).contains(key));
                } else if random.bool() {
                    world.db.delete(key(number)).unwrap();
                    model.remove(&number);
                } else {
                    let bytes = value(random.u32(..), 200);
                    world.db.put(key(number), &bytes).unwrap();
                    model.insert(number, bytes);
                }
            }
            match random.u8(..5) {
                0 => snapshots.push((world.db.snapshot(), model.clone())),
                1 => drop(snapshots.pop()),
                2 => world.db.flush_all().unwrap(),
                _ => world.rest(random.u64(..60)),
            }
            let family = world.db.default_column_family();
            for number in (0..440).step_by(7) {
                let found = world.db.get(key(number)).unwrap().map(|found| found.to_vec());
                assert_eq!(found, model.get(&number).cloned(), "seed {seed}: {number}");
                for (snapshot, then) in &snapshots {
                    let seen =
                        ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
                    let found = world.db.get_with(&seen, family, key(number)).unwrap();
                    assert_eq!(
                        found.map(|found| found.to_vec()),
                        then.get(&number).cloned(),
                        "seed {seed}"
                    );
                }
            }
        }
        drop(snapshots);
        world.rest(100);
        let expected: Vec<_> =
            model.into_iter().map(|(number, value)| (key(number), value)).collect();
        assert_eq!(entries(&world.db, world.db.default_column_family()), expected, "seed {seed}");
    }
}

/// Nothing is read from a table for a key that is known to be deleted, and what was set later is
/// found.
#[test]
fn what_a_range_deletion_covers_is_not_read_by_lookups() {
    let directory = temporary();
    let world =
        World::full(directory.path(), "no_block_cache=true;disable_auto_compactions=true", 20);
    // Opens all tables.
    assert_eq!(world.keys().len(), KEYS as usize);
    let get = |number| {
        let options = ReadOptions { cache_only: true, ..ReadOptions::default() };
        let found = world.db.get_with(&options, world.db.default_column_family(), key(number));
        found.map(|value| value.map(|value| value.to_vec())).map_err(|error| error.code())
    };
    let nothing_read = [Err(Code::Incomplete), Ok(None), Err(Code::Incomplete)];
    world.delete_range(500, 600);
    assert_eq!([400, 549, 600].map(get), nothing_read);
    // A table with entries is searched whatever its own range deletions cover: this one gets none.
    world.db.flush_all().unwrap();
    world.db.put(key(550), "newer").unwrap();
    let newer = Some(b"newer".to_vec());
    // Other memtables and tables with range deletions pass by before.
    for number in 0..6 {
        world.db.flush_all().unwrap();
        world.delete_range(700 + 10 * number, 705 + 10 * number);
        // Opens the new table, too.
        let found = [400, 549, 550, 701].map(|number| world.db.get(key(number)).unwrap());
        let found = found.map(|value| value.map(|value| value.to_vec()));
        assert_eq!(found, [Some(value(400, 20)), None, newer.clone(), None]);
        assert_eq!([400, 549, 600].map(get), nothing_read);
        assert_eq!(get(701), Ok(None));
    }
}

/// Tables of level 0 that have only range deletions, and many, are passed in another way than those
/// with entries.
#[test]
fn many_range_deletions_in_tables_of_their_own_delete_what_they_cover() {
    let directory = temporary();
    let world = World::full(directory.path(), "disable_auto_compactions=true", 20);
    let before = world.db.snapshot();
    let snapshot = ReadOptions { snapshot: Some(before.clone()), ..ReadOptions::default() };
    let ignoring = ReadOptions { ignore_range_deletions: true, ..ReadOptions::default() };
    let get = |options: &ReadOptions, number| {
        let found =
            world.db.get_with(options, world.db.default_column_family(), key(number)).unwrap();
        found.map(|value| value.to_vec())
    };
    let mut expected: Vec<_> = (0..KEYS).map(|number| Some(value(number, 20))).collect();
    // Tables that overlap, and one that does not, with more of them than are asked together.
    for (round, first) in [100, 103, 800, 101, 300, 150].into_iter().enumerate() {
        for start in (first..).step_by(5).take(70) {
            world.delete_range(start, start + 2);
            (start..start + 2).for_each(|number| expected[number as usize] = None);
        }
        world.db.flush_all().unwrap();
        let set = first + 5 * round as u32;
        world.db.put(key(set), "newer").unwrap();
        expected[set as usize] = Some(b"newer".to_vec());
        if round % 2 == 0 {
            world.db.flush_all().unwrap();
        }
        for number in 0..KEYS {
            assert_eq!(
                get(&ReadOptions::default(), number),
                expected[number as usize],
                "{number}, {round}"
            );
            assert_eq!(get(&snapshot, number), Some(value(number, 20)), "{number}, {round}");
            assert!(get(&ignoring, number).is_some(), "{number}, {round}");
        }
    }
    world.db.close().unwrap();
    drop(before);
}
