use std::sync::Arc;

use crate::cache::MemoryKind;
use crate::db::handle::Db;
use crate::env::Env;
use crate::options::{DbSettings, MemoryBudget, Options, ReadOptions};

pub(in crate::db) fn opened(changes: &[(&str, &str)]) -> Db {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    changes.iter().for_each(|(name, value)| options.set(name, value).unwrap());
    Db::open("/db", &options).unwrap()
}

pub(in crate::db) fn fill(db: &Db, keys: std::ops::Range<u32>) {
    keys.for_each(|key| db.put(key.to_be_bytes(), [key as u8; 100]).unwrap());
}

/// What waits for `Db::flush_wal` was nobody's.
#[test]
fn a_log_that_is_flushed_by_hand_takes_memory() {
    let db = opened(&[("manual_wal_flush", "true")]);
    let before = db.memory_usage().wal_buffers;
    fill(&db, 0..1_000);
    assert!(db.memory_usage().wal_buffers - before > 100_000, "{}", db.memory_usage());
    assert!(db.memory_usage().total() > db.memory_usage().memtables() + 100_000);
}

#[test]
fn every_byte_has_a_holder() {
    let db = opened(&[("filter_policy", "bloomfilter:10")]);
    fill(&db, 0..1_000);
    let usage = db.memory_usage();
    assert!(
        usage.active_memtables > 100_000 && usage.memtables() == usage.active_memtables,
        "{usage}"
    );
    assert_eq!((usage.kept_versions, usage.oldest_snapshot), (0, None));

    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    let (snapshot, line) = (db.snapshot(), line!());
    db.flush_all().unwrap();
    let usage = db.memory_usage();
    assert!(usage.kept_memtables > 100_000 && usage.active_memtables < 10_000, "{usage}");
    assert!(usage.kept_versions > 0 && usage.oldest_kept_version_us.is_some(), "{usage}");
    assert!(usage.open_cursors == 1 && usage.cursors > 0, "{usage}");
    let oldest = usage.oldest_snapshot.unwrap();
    assert_eq!((oldest.sequence, oldest.taken_at.line()), (snapshot.sequence(), line));
    assert!(usage.to_string().contains(file!()), "{usage}");
    drop((iter, snapshot));
    // The flush lets go of what it has written only after it has said that it has.
    db.inner().wait_until_idle().unwrap();
    let usage = db.memory_usage();
    assert_eq!(
        (usage.kept_memtables, usage.kept_versions, usage.open_cursors),
        (0, 0, 0),
        "{usage}"
    );
    assert_eq!((usage.oldest_snapshot, usage.oldest_kept_version_us), (None, None));

    let value = db.get(7u32.to_be_bytes()).unwrap();
    let usage = db.memory_usage();
    assert!(
        usage.open_tables == 1 && usage.table_filters > 1_000 && usage.table_indexes > 0,
        "{usage}"
    );
    assert!(usage.tables > usage.table_filters + usage.table_indexes, "{usage}");
    assert!(usage.cache.data > 4_000 && usage.cache.pinned == usage.cache.data, "{usage}");
    let family = db.default_column_family();
    let property = |name: &str| db.int_property(family, name).unwrap();
    assert_eq!(property("rocksdb.block-cache-usage"), usage.cache.usage());
    assert_eq!(property("rocksdb.block-cache-pinned-usage"), usage.cache.pinned);
    assert_eq!(property("rocksdb.estimate-table-readers-mem"), usage.tables);
    drop(value);
    assert_eq!(db.memory_usage().cache.pinned, 0);
    let figures = usage.figures();
    assert_eq!(figures[0], ("total_bytes", usage.total()));
}

/// What a scan reads ahead of tables was nobody's.
#[test]
fn what_is_read_ahead_of_tables_is_the_cursors() {
    let db = opened(&[("no_block_cache", "true"), ("compression", "kNoCompression")]);
    fill(&db, 0..20_000);
    db.flush_all().unwrap();
    let cursors = || db.memory_usage().cursors;
    let in_order = ReadOptions::default();
    let at_once = ReadOptions { readahead_size: 1 << 20, ..ReadOptions::default() };
    for (options, steps, window) in [(at_once, 0, 1 << 20), (in_order, 10_000, 128 << 10)] {
        let mut iter = db.iter(&options).unwrap();
        iter.seek_to_first();
        (0..steps).for_each(|_| iter.next());
        assert!(
            iter.valid() && (window..2 * window + 5000).contains(&cursors()),
            "{}",
            db.memory_usage()
        );
        drop(iter);
        assert!(
            cursors() < 5000,
            "also one that is kept for the next iterator: {}",
            db.memory_usage()
        );
    }
}

fn fetch_all(db: &Db, expected: usize) {
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    let mut entries = 0;
    while iter.valid() {
        entries += 1;
        iter.next();
    }
    iter.status().unwrap();
    assert_eq!(entries, expected);
}

/// Data of several times the budget, by every way that memory goes: what is counted stays
/// within it.
#[test]
fn everything_keeps_to_the_budget() {
    const BUDGET: u64 = 16 << 20;
    let db = opened(&[
        ("memory_budget", "16m"),
        ("filter_policy", "bloomfilter:10"),
        ("target_file_size_base", "1m"),
        ("compression", "kNoCompression"),
    ]);
    let capacity = db.memory_usage().cache.capacity;
    assert_eq!(capacity, BUDGET - BUDGET / 6 - BUDGET / 4 - BUDGET / 3);
    let check = |db: &Db| {
        let usage = db.memory_usage();
        // The buffers of jobs do not shrink below what one block and one file need.
        assert!(usage.total() - usage.jobs < BUDGET, "{usage}");
    };
    for key in 0..30_000u32 {
        db.put(key.wrapping_mul(0x9e37_79b9).to_be_bytes(), [key as u8; 1_000]).unwrap();
        if key % 500 == 0 {
            check(&db);
        }
    }
    db.flush_all().unwrap();
    fetch_all(&db, 30_000);
    check(&db);
    // What others hold the cache gives back.
    db.inner().wait_until_idle().unwrap();
    fetch_all(&db, 30_000);
    let cache = db.inner().tables.caches().blocks();
    let before = (cache.capacity(), cache.usage());
    let held = db.inner().tables.account().hold(MemoryKind::Tables, 3 << 20);
    assert!(before.1 > 1 << 20 && cache.capacity() < before.0 - (2 << 20), "{before:?}");
    assert!(cache.usage() <= cache.capacity());
    // From here on tables leave their index to the cache.
    let tables = db.memory_usage().table_filters;
    (0..2_000u32).for_each(|key| db.put(key.to_be_bytes(), "new").unwrap());
    db.flush_all().unwrap();
    // A compaction would take these from the cache together with its inputs.
    db.inner().wait_until_idle().unwrap();
    for key in 0..2_000u32 {
        assert_eq!(db.get(key.to_be_bytes()).unwrap().unwrap(), b"new"[..]);
    }
    let usage = db.memory_usage();
    assert!(
        usage.table_filters <= tables && usage.cache.filter > 0 && usage.cache.index > 0,
        "{usage}"
    );
    drop(held);
    assert!(db.memory_usage().cache.capacity > before.0 as u64 - (1 << 20));

    let options = Options { env: Env::memory(), ..Options::default() };
    let too_small = Options {
        db: DbSettings { memory_budget: MemoryBudget::Bytes(1), ..options.db.clone() },
        ..options
    };
    let error = Db::open("/other", &too_small).unwrap_err();
    assert!(error.to_string().contains("memory_budget=1 is too small"), "{error}");
}

/// Nobody counted them: iterators that stood on many more blocks than the cache could hold took
/// more than the budget.
#[test]
fn blocks_that_the_cache_let_go_of_are_counted_while_somebody_keeps_them() {
    let db = opened(&[("memory_budget", "24m"), ("compression", "kNoCompression")]);
    for key in 0..4_000u32 {
        db.put(key.to_be_bytes(), [key as u8; 1_000]).unwrap();
    }
    db.flush_all().unwrap();
    db.inner().wait_until_idle().unwrap();
    let mut iters: Vec<_> = (0..500).map(|_| db.iter(&ReadOptions::default()).unwrap()).collect();
    for (iter, key) in iters.iter_mut().zip((0u32..).step_by(8)) {
        iter.seek(key.to_be_bytes());
    }
    let usage = db.memory_usage();
    let (pinned, capacity) = (usage.cache.pinned, usage.cache.capacity);
    assert!(pinned > 500 * 4_000 && usage.kept_blocks == 0, "{usage}");
    // Others want all the memory there is.
    let account = db.inner().tables.account().clone();
    let others = account.hold(MemoryKind::Tables, 24 << 20);
    let usage = db.memory_usage();
    assert!(usage.kept_blocks > 500 * 2_000, "{usage}");
    assert_eq!(usage.cache.pinned + usage.kept_blocks, pinned, "{usage}");
    drop(others);
    // What is kept is not the cache's, which hears of it in steps.
    let step = (24 << 20) / 128;
    let left = capacity - usage.kept_blocks;
    assert!(
        (left - 2 * step..left + 2 * step).contains(&db.memory_usage().cache.capacity),
        "{capacity}, {usage}"
    );
    assert!(usage.total() > usage.kept_blocks && iters.iter().all(|iter| iter.valid()));
    drop(iters);
    let usage = db.memory_usage();
    assert!(
        usage.kept_blocks == 0 && usage.cache.capacity > capacity - 2 * step,
        "{capacity}, {usage}"
    );
}

/// Of indexes nobody heard: those that a cursor stands in may be megabytes.
#[test]
fn an_index_that_the_cache_let_go_of_is_counted_while_a_cursor_stands_in_it() {
    let db = opened(&[
        ("memory_budget", "64m"),
        ("cache_index_and_filter_blocks", "true"),
        ("compression", "kNoCompression"),
    ]);
    fill(&db, 0..20_000);
    db.flush_all().unwrap();
    db.inner().wait_until_idle().unwrap();
    let mut iters = [(); 3].map(|()| db.iter(&ReadOptions::default()).unwrap());
    iters.iter_mut().for_each(|iter| iter.seek_to_first());
    let (index, pinned) = (db.memory_usage().cache.index, db.memory_usage().cache.pinned);
    assert!(index > 10_000 && pinned > index);
    db.inner().tables.caches().blocks().set_capacity(0);
    assert_eq!(db.memory_usage().kept_blocks, pinned);
    drop(iters);
    assert_eq!(db.memory_usage().kept_blocks, 0);
}

/// It kept the caches of a closed database, with all that they held, by way of the account that
/// its block is counted in.
#[test]
fn a_value_keeps_its_block_and_not_the_caches() {
    let db = opened(&[("memory_budget", "24m"), ("compression", "kNoCompression")]);
    fill(&db, 0..4_000);
    db.flush_all().unwrap();
    db.inner().wait_until_idle().unwrap();
    let value = db.get(7u32.to_be_bytes()).unwrap().unwrap();
    let cache = Arc::downgrade(db.inner().tables.caches().blocks());
    db.inner().tables.caches().blocks().set_capacity(0);
    let usage = db.memory_usage();
    assert!(usage.kept_blocks > 0, "{usage}");
    drop(db);
    assert!(cache.upgrade().is_none());
    assert_eq!(value, [7; 100][..]);
}

/// They were in no account, and neither a budget nor `stats` knew of them.
#[test]
fn dictionaries_of_open_tables_are_counted() {
    let tables_of = |dictionary: &str| {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        options.set("compression", "kZSTD").unwrap();
        options.set("compression_opts", &format!("{{max_dict_bytes={dictionary}}}")).unwrap();
        let db = Db::open("/db", &options).unwrap();
        (0..20_000u32)
            .for_each(|key| db.put(key.to_be_bytes(), format!("value {}", key * 7919)).unwrap());
        db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
        db.flush_all().unwrap();
        assert!(db.get(7u32.to_be_bytes()).unwrap().is_some());
        db.memory_usage().tables
    };
    let (without, with) = (tables_of("0"), tables_of("16384"));
    // Its bytes, and what zstd makes of them.
    assert!(with > without + 2 * 15_000, "{without}, {with}");
}
