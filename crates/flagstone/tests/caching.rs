//! Stories of the block cache beside flushes and compactions.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use common::{create, temporary};
use flagstone::base::{Code, SubCode};
use flagstone::db::{Db, LiveFile};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, IoMode};
use flagstone::options::{
    BottommostLevelCompaction, CompactRangeOptions, Options, ReadOptions, load_latest,
};
use flagstone::sst::{Table, TableReadSettings};
use testkit::{Call, FaultFs, Injection, Plan, Sort, settings, steps};

const KEYS: u32 = 20_000;

fn options(text: &str) -> Options {
    let mut options = create();
    options.set_all("block_cache=64M;compression=kNoCompression;enable_blob_files=false").unwrap();
    options.set_all(text).unwrap();
    options
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// Two tables that both span all keys.
fn fill(db: &Db) {
    for parity in [0, 1] {
        (0..KEYS).filter(|n| n % 2 == parity).for_each(|n| db.put(key(n), [n as u8; 100]).unwrap());
        db.flush_all().unwrap();
    }
}

fn read(db: &Db, keys: Range<u32>) {
    keys.for_each(|n| assert_eq!(db.get(key(n)).unwrap().unwrap(), [n as u8; 100]));
}

/// The percentage of keys that are found without reading a file.
fn cached(db: &Db, keys: Range<u32>) -> u32 {
    let options = ReadOptions { cache_only: true, ..ReadOptions::default() };
    let count = keys.len() as u32;
    let found = keys.filter(|&n| match db.get_with(&options, db.default_column_family(), key(n)) {
        Ok(value) => value.unwrap() == [n as u8; 100],
        Err(error) if error.code() == Code::Incomplete => false,
        Err(error) => panic!("{error}"),
    });
    found.count() as u32 * 100 / count
}

fn compact(db: &Db) {
    let everything = CompactRangeOptions::default();
    db.compact_range(db.default_column_family(), None, None, &everything).unwrap();
}

/// Opens both tables, should nobody have done so yet.
fn open_tables(db: &Db) {
    read(db, 0..2);
}

fn usage(db: &Db) -> u64 {
    db.int_property(db.default_column_family(), "rocksdb.block-cache-usage").unwrap()
}

#[test]
fn what_was_cached_before_a_compaction_is_cached_after_it() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("")).unwrap();
    fill(&db);
    read(&db, 0..KEYS / 2);
    let before = usage(&db);
    compact(&db);
    assert!(cached(&db, 0..KEYS / 2) >= 99);
    assert!(cached(&db, KEYS / 2..KEYS) <= 1);
    let after = usage(&db);
    assert!(after < before * 5 / 4, "{after} bytes, {before} before: those of the inputs are gone");
    read(&db, 0..KEYS);
}

/// Each block is remembered where it was when it was read last, and is elsewhere, or nowhere, the
/// next time: the cache has room for a tenth of them.
#[test]
fn blocks_that_move_in_memory_are_found_all_the_same() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("block_cache=200K")).unwrap();
    fill(&db);
    compact(&db);
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..2 {
        read(&db, 0..KEYS);
        for _ in 0..KEYS / 20 {
            let begin = random.u32(..KEYS - 10);
            read(&db, begin..begin + 2);
            let mut cursor = db.iter(&ReadOptions::default()).unwrap();
            cursor.seek(key(begin));
            let forward = (begin..begin + 10).all(|n| {
                let is_there = cursor.valid() && cursor.key() == key(n);
                cursor.next();
                is_there
            });
            cursor.seek_for_prev(key(begin + 9));
            let back = (begin..begin + 10).rev().all(|n| {
                let is_there = cursor.valid() && cursor.key() == key(n);
                cursor.prev();
                is_there
            });
            assert!(forward && back, "from {begin} on");
        }
    }
}

#[test]
fn a_compaction_of_what_nobody_reads_leaves_the_cache_alone() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("")).unwrap();
    fill(&db);
    compact(&db);
    assert_eq!((cached(&db, 0..KEYS), usage(&db)), (0, 0));
}

#[test]
fn the_cache_need_not_follow() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("cache_follows_compaction=false")).unwrap();
    fill(&db);
    read(&db, 0..KEYS);
    compact(&db);
    assert_eq!(cached(&db, 0..KEYS), 0);
}

#[test]
fn blocks_of_a_flush_are_cached_where_that_is_asked_for() {
    for (text, expected) in [("prepopulate_block_cache=kFlushOnly", 100..=100), ("", 0..=1)] {
        let directory = temporary();
        let db = Db::open(directory.path(), &options(text)).unwrap();
        fill(&db);
        open_tables(&db);
        assert!(expected.contains(&cached(&db, 0..KEYS)), "{text}");
        read(&db, 0..KEYS);
    }
}

#[test]
fn all_blocks_are_cached_where_that_is_asked_for() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("prepopulate_block_cache=kFlushAndCompaction"))
        .unwrap();
    fill(&db);
    compact(&db);
    assert_eq!(cached(&db, 0..KEYS), 100);
}

/// With a dictionary, blocks are held back and written all at once.
#[test]
fn blocks_that_waited_for_a_dictionary_are_cached_all_the_same() {
    let directory = temporary();
    let text = "prepopulate_block_cache=kFlushOnly;compression=kZSTD;compression_opts={max_dict_bytes=4096;}";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    fill(&db);
    open_tables(&db);
    assert_eq!(cached(&db, 0..KEYS), 100);
}

/// Those of `keys` of which a lookup knows without a file that they are not there.
fn ruled_out(db: &Db, keys: impl Iterator<Item = u32>) -> usize {
    let options = ReadOptions { cache_only: true, ..ReadOptions::default() };
    let known = keys.filter(|&n| match db.get_with(&options, db.default_column_family(), key(n)) {
        Ok(value) => value.is_none(),
        Err(error) if error.code() == Code::Incomplete => false,
        Err(error) => panic!("{error}"),
    });
    known.count()
}

/// Level 0 is where lookups suffer from tables without filters: each may hold the key. Who writes
/// and looks up gets filters in memory, which cost no byte on the disk; who only writes pays
/// nothing.
#[test]
fn keys_that_are_looked_up_get_filters_in_memory_though_no_file_has_one() {
    let directory = temporary();
    let options = options("disable_auto_compactions=true;filter_policy=nullptr");
    let db = Db::open(directory.path(), &options).unwrap();
    let evens = || (0..2_000).step_by(2);
    let odds = || (1..1_998).step_by(2);
    let fill = |db: &Db| {
        evens().for_each(|n| db.put(key(n), [n as u8; 100]).unwrap());
        db.delete_range(key(1_000), key(1_100)).unwrap();
        db.flush_all().unwrap();
        // Opens the table, should the flush not have come to that yet.
        assert!(db.get(key(0)).unwrap().is_some());
    };
    let check = |db: &Db| {
        let deleted = |n| (1_000..1_100).contains(&n);
        evens().for_each(|n| assert_eq!(db.get(key(n)).unwrap().is_none(), deleted(n), "{n}"));
        odds().for_each(|n| assert_eq!(db.get(key(n)).unwrap(), None, "{n}"));
    };
    fill(&db);
    assert_eq!(db.memory_usage().table_filters, 0, "nobody looked anything up");
    assert!(ruled_out(&db, odds()) < 100, "by the block that was read");
    check(&db);
    fill(&db);
    let filters = db.memory_usage().table_filters;
    assert!((1_000..3_000).contains(&filters), "ten bits a key: {filters}");
    let largest = |db: &Db| db.live_files().iter().map(|file| file.size).max().unwrap();
    let size = largest(&db);
    check(&db);
    // Of both tables; the older one has none, and its blocks are cached by now.
    assert!(ruled_out(&db, odds()) > 950);
    assert_eq!(db.memory_usage().table_filters, filters);
    drop(db);

    let db = Db::open(directory.path(), &options).unwrap();
    check(&db);
    assert_eq!(db.memory_usage().table_filters, 0, "filters are not in the files");
    db.set_options(db.default_column_family(), &[("filter_policy", "bloomfilter:10")]).unwrap();
    fill(&db);
    check(&db);
    assert!((1_000..3_000).contains(&db.memory_usage().table_filters), "and one that is");
    assert!(largest(&db) > size + 1_000);
}

#[test]
fn the_oldest_data_have_no_filter_where_lookups_mostly_hit() {
    for (optimized, filtered) in [("false", [true, true]), ("true", [true, false])] {
        let mut options = settings::tiny(&Env::memory());
        settings::set(
            &mut options,
            &[
                ("filter_policy", "bloomfilter:10"),
                ("optimize_filters_for_hits", optimized),
                ("disable_auto_compactions", "true"),
            ],
        );
        let db = Db::open("/db", &options).unwrap();
        let put_and_flush = |value: &str| {
            (0..100).for_each(|key| db.put(format!("key{key:03}"), value).unwrap());
            db.flush_all().unwrap();
        };
        put_and_flush("old");
        let force = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        db.compact_range(db.default_column_family(), None, None, &force).unwrap();
        assert_eq!(has_filters(&db, &options), [filtered[1]], "optimized: {optimized}");
        put_and_flush("new");
        assert_eq!(has_filters(&db, &options), filtered, "optimized: {optimized}");
        assert_eq!(db.get("key007").unwrap().unwrap(), "new");
        assert!(db.get("key100").unwrap().is_none());
        let written = load_latest(&options.env, Path::new("/db")).unwrap().unwrap().options;
        assert_eq!(written.cf.optimize_filters_for_hits.to_string(), optimized);
    }
}

/// Which tables have a filter, by level.
fn has_filters(db: &Db, options: &Options) -> Vec<bool> {
    let has_filter = |file: &LiveFile| {
        let opened = options.env.fs.open_random_access(&file.path, IoMode::Buffered).unwrap();
        Table::open(opened, file.size, TableReadSettings::default())
            .unwrap()
            .properties()
            .filter_size
            > 0
    };
    db.live_files().iter().map(has_filter).collect()
}

/// RocksDB's words for it were refused.
#[test]
fn the_cache_is_divided_as_was_asked() {
    let open = |directory: &Path, shape: &str| {
        let db = Db::open(directory, &options(&format!("block_cache={{capacity=512K;{shape}}}")))
            .unwrap();
        fill(&db);
        db
    };
    let scan = |db: &Db, keys: Range<u32>| {
        let mut iter = db.iter(&ReadOptions::default()).unwrap();
        iter.seek(key(keys.start));
        keys.for_each(|_| iter.next());
        iter.status().unwrap();
    };
    for (shape, kept) in
        [("num_shard_bits=0;high_pri_pool_ratio=0.9", 100), ("high_pri_pool_ratio=0", 0)]
    {
        let directory = temporary();
        let db = open(directory.path(), shape);
        // Used twice, and then a flood of what is used once.
        scan(&db, 0..1000);
        scan(&db, 0..1000);
        scan(&db, 2000..KEYS - 1);
        assert_eq!(cached(&db, 0..1000), kept, "{shape}");
    }
    for (shape, fits) in [("num_shard_bits=0", true), ("num_shard_bits=3", false)] {
        let directory = temporary();
        let db = open(directory.path(), shape);
        db.put("large", vec![1; 100_000]).unwrap();
        db.flush_all().unwrap();
        let get = |cache_only| {
            let options = ReadOptions { cache_only, ..ReadOptions::default() };
            db.get_with(&options, db.default_column_family(), "large")
                .map(|value| value.unwrap().len())
        };
        assert_eq!(get(false).unwrap(), 100_000);
        assert_eq!(get(true).is_ok(), fits, "{shape}");
    }
}

/// Small values are put there by the flush, large ones (`blob_commit_min_size`) as they are
/// committed.
#[test]
fn what_is_written_to_blob_files_can_be_in_the_cache_before_anybody_reads_it() {
    let usual = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("prepopulate_block_cache", "kFlushOnly"),
        ("blob_compression_type", "kLZ4Compression"),
    ];
    let in_cache = |changes: &[(&str, &str)]| {
        let mut options = Options { env: Env::memory(), ..create() };
        for (name, value) in usual.iter().chain(changes) {
            options.set(name, value).unwrap();
        }
        let db = Db::open("/db", &options).unwrap();
        let sizes = [200, 3_000, 5_000, 90_000];
        sizes
            .iter()
            .enumerate()
            .for_each(|(key, size)| db.put([key as u8], vec![b'v'; *size]).unwrap());
        db.flush_all().unwrap();
        // The table is opened.
        assert!(db.get([1, 1]).unwrap().is_none());
        let options = ReadOptions { cache_only: true, ..ReadOptions::default() };
        let read = |key| db.get_with(&options, db.default_column_family(), [key]);
        let found = sizes.iter().enumerate().filter(|(key, size)| match read(*key as u8) {
            Ok(value) => value.unwrap() == vec![b'v'; **size],
            Err(error) => error.code() != Code::Incomplete,
        });
        found.count()
    };
    for cache in [("blob_cache", "4m"), ("cache_blobs", "true")] {
        for mode in [("blob_write_mode", "flush"), ("blob_write_mode", "commit")] {
            let fills = ("prepopulate_blob_cache", "kFlushOnly");
            assert_eq!(in_cache(&[cache, mode, fills]), 4, "{cache:?} {mode:?}");
            assert_eq!(in_cache(&[cache, mode]), 0, "{cache:?} {mode:?}");
        }
    }
    assert_eq!(in_cache(&[("prepopulate_blob_cache", "kFlushOnly")]), 0);
}

/// They stayed there, under the number of a file that never was, until others drove them out.
#[test]
fn values_of_a_flush_that_failed_are_not_in_the_cache() {
    for (call, sort) in [(Call::Sync, Sort::Table), (Call::Write, Sort::Manifest)] {
        let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
        let mut options = Options { env: steps::world(Arc::new(fs.clone()), 1), ..create() };
        let text = "enable_blob_files=true;blob_write_mode=flush;blob_cache=4m;prepopulate_blob_cache=kFlushOnly";
        options.set_all(text).unwrap();
        let db = Db::open("/db", &options).unwrap();
        let used =
            || db.int_property(db.default_column_family(), "rocksdb.blob-cache-usage").unwrap();
        db.put("key", vec![b'v'; 100_000]).unwrap();
        fs.plan(Plan::Next { call, sort, injection: Injection::NoSpace });
        assert_eq!(db.flush_all().unwrap_err().subcode(), SubCode::NoSpace);
        if sort == Sort::Table {
            assert_eq!(used(), 0);
        }
        db.resume().unwrap();
        db.flush_all().unwrap();
        assert!((100_000..200_000).contains(&used()), "{sort:?}: {}", used());
    }
}
