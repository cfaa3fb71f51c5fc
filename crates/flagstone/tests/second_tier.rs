//! Stories of the second tier of the block cache, which holds compressed blocks. The first has room
//! for next to nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::ops::Range;

use common::{create, temporary};
use flagstone::base::Code;
use flagstone::db::Db;
use flagstone::options::{CompactRangeOptions, Options, ReadOptions};

const KEYS: u32 = 5_000;

fn options(text: &str) -> Options {
    let mut options = create();
    options
        .set_all(
            "block_cache=20000;compressed_secondary_cache_size=8M;disable_auto_compactions=true",
        )
        .unwrap();
    options.set_all(text).unwrap();
    options
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// Half of it compresses.
fn value(n: u32) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(n.into());
    let mut value = vec![b'.'; 200];
    value[..100].fill_with(|| random.u8(..));
    value
}

/// Two tables that both span all keys.
fn filled(text: &str) -> (tempfile::TempDir, Db) {
    let directory = temporary();
    let db = Db::open(directory.path(), &options(text)).unwrap();
    for parity in [0, 1] {
        (0..KEYS).filter(|n| n % 2 == parity).for_each(|n| db.put(key(n), value(n)).unwrap());
        db.flush_all().unwrap();
    }
    (directory, db)
}

fn read(db: &Db, keys: Range<u32>) {
    keys.for_each(|n| assert_eq!(db.get(key(n)).unwrap().unwrap(), value(n)[..]));
}

/// Brings the blocks of these keys in: they come when they are read for the second time.
fn warm(db: &Db, keys: Range<u32>) {
    (0..2).for_each(|_| read(db, keys.clone()));
}

/// The percentage of keys that are found without reading a file.
fn cached(db: &Db, keys: Range<u32>) -> u32 {
    let options = ReadOptions { cache_only: true, ..ReadOptions::default() };
    let count = keys.len() as u32;
    let found = keys.filter(|&n| match db.get_with(&options, db.default_column_family(), key(n)) {
        Ok(found) => found.unwrap() == value(n)[..],
        Err(error) if error.code() == Code::Incomplete => false,
        Err(error) => panic!("{error}"),
    });
    found.count() as u32 * 100 / count
}

fn figure(db: &Db, name: &str) -> u64 {
    let name = format!("flagstone.compressed-secondary-cache-{name}");
    db.int_property(db.default_column_family(), &name).unwrap()
}

fn compact(db: &Db) {
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
}

fn scan(db: &Db, fill_cache: bool) {
    let options = ReadOptions { fill_cache, ..ReadOptions::default() };
    let mut iter = db.iter(&options).unwrap();
    iter.seek_to_first();
    let mut n = 0;
    while iter.valid() {
        assert_eq!(iter.key(), key(n));
        assert_eq!(iter.value().unwrap(), value(n));
        n += 1;
        iter.next();
    }
    iter.status().unwrap();
    assert_eq!(n, KEYS);
}

#[test]
fn what_the_first_tier_lost_comes_from_memory_however_it_is_stored() {
    for compression in [
        "compression=kSnappyCompression",
        "compression=kLZ4Compression",
        "compression=kZSTD",
        "compression=kZSTD;compression_opts={max_dict_bytes=4096;}",
        "compression=kZlibCompression;format_version=2",
        "compression=kNoCompression",
    ] {
        let (_directory, db) = filled(compression);
        read(&db, 0..KEYS);
        assert!(cached(&db, 0..KEYS) < 10, "{compression}: what was read once is not worth it");
        read(&db, 0..KEYS);
        assert!(cached(&db, 0..KEYS) > 95, "{compression}");
        // A byte in memory holds more than one of the table.
        let (usage, entries) = (figure(&db, "usage"), figure(&db, "entries"));
        assert!(
            entries > 200 && usage < u64::from(KEYS) * 180,
            "{compression}: {entries} in {usage} bytes"
        );
        let memory = db.memory_usage();
        assert_eq!((memory.compressed_cache, memory.compressed_cache_capacity), (usage, 8 << 20));
        assert_eq!(figure(&db, "capacity"), 8 << 20);
    }
}

#[test]
fn every_way_of_reading_finds_it() {
    let (_directory, db) = filled("");
    warm(&db, 0..KEYS / 2);
    scan(&db, true);
    let keys: Vec<_> = (0..KEYS).step_by(7).map(key).collect();
    for found in [db.multi_get(&keys), db.multi_get(&keys)] {
        for (n, found) in (0..KEYS).step_by(7).zip(found) {
            assert_eq!(found.unwrap().unwrap(), value(n)[..]);
        }
    }
    let in_memory = ReadOptions { cache_only: true, ..ReadOptions::default() };
    let found = db.multi_get_with(&in_memory, db.default_column_family(), &keys[..300]);
    assert!(
        found
            .into_iter()
            .zip((0..KEYS).step_by(7))
            .all(|(found, n)| *found.unwrap().unwrap() == value(n)[..])
    );
    let stats = db.property(db.default_column_family(), "rocksdb.stats").unwrap();
    let hits = stats
        .lines()
        .find_map(|line| line.strip_prefix("rocksdb.compressed.secondary.cache.hits COUNT : "));
    assert!(hits.unwrap().parse::<u64>().unwrap() > 300, "{stats}");
}

#[test]
fn scans_leave_it_alone() {
    let (_directory, db) = filled("compressed_secondary_cache_size=300000");
    warm(&db, 0..500);
    let before = (figure(&db, "entries"), figure(&db, "usage"));
    assert!(before.0 > 10);
    (0..3).for_each(|_| scan(&db, false));
    scan(&db, true);
    assert_eq!((figure(&db, "entries"), figure(&db, "usage")), before);
    assert_eq!(cached(&db, 0..500), 100);
}

#[test]
fn what_does_not_compress_stays_out() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("compression=kNoCompression")).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for n in 0..KEYS {
        let noise: Vec<u8> = (0..200).map(|_| random.u8(..)).collect();
        db.put(key(n), noise).unwrap();
    }
    db.flush_all().unwrap();
    for _ in 0..3 {
        (0..KEYS).for_each(|n| assert!(db.get(key(n)).unwrap().is_some()));
    }
    assert_eq!(figure(&db, "entries"), 0);
}

#[test]
fn it_keeps_to_its_capacity() {
    for capacity in [1, 3_000, 100_000] {
        let (_directory, db) = filled(&format!("compressed_secondary_cache_size={capacity}"));
        let mut random = fastrand::Rng::with_seed(capacity);
        for _ in 0..10_000 {
            let n = random.u32(..KEYS);
            assert_eq!(db.get(key(n)).unwrap().unwrap(), value(n)[..]);
            // What was read lately is remembered in eight bytes at least.
            assert!(figure(&db, "usage") <= capacity.max(8));
        }
        assert_eq!(figure(&db, "entries") > 10, capacity == 100_000);
    }
}

#[test]
fn it_follows_compactions() {
    let (_directory, db) = filled("");
    warm(&db, 0..KEYS / 2);
    let before = figure(&db, "entries");
    compact(&db);
    let after = figure(&db, "entries");
    assert!(cached(&db, 50..KEYS / 2) > 95);
    assert!(cached(&db, KEYS / 2 + 50..KEYS) < 5);
    assert!(
        after < before * 11 / 10,
        "{after} blocks, {before} before: those of the inputs are gone"
    );
    read(&db, 0..KEYS);
}

#[test]
fn blocks_of_removed_tables_leave_it() {
    let (_directory, db) = filled("cache_follows_compaction=false");
    warm(&db, 0..KEYS);
    assert!(figure(&db, "entries") > 200);
    compact(&db);
    assert_eq!(figure(&db, "entries"), 0);
    read(&db, 0..KEYS);
}

#[test]
fn a_memory_budget_is_for_both_tiers() {
    const BUDGET: u64 = 16 << 20;
    let (_directory, db) =
        filled("block_cache=auto;memory_budget=16M;compressed_secondary_cache_size=2M");
    let memory = db.memory_usage();
    assert_eq!(memory.compressed_cache_capacity, 2 << 20);
    let both = memory.cache.capacity + memory.compressed_cache_capacity;
    assert!(both + memory.tables <= BUDGET - BUDGET / 6 - BUDGET / 4 - BUDGET / 3, "{memory}");
    let (_directory, db) =
        filled("block_cache=auto;memory_budget=16M;compressed_secondary_cache_size=1G");
    let memory = db.memory_usage();
    let ratio = memory.compressed_cache_capacity as f64 / memory.cache.capacity as f64;
    assert!((2.9..3.1).contains(&ratio), "{memory}");
    warm(&db, 0..KEYS);
    assert!(db.memory_usage().total() < BUDGET);
}

#[test]
fn options_written_and_read_again_have_it() {
    let (directory, db) = filled("");
    db.close().unwrap();
    drop(db);
    let db = common::open_as_written(directory.path(), true);
    assert_eq!(figure(&db, "capacity"), 8 << 20);
    let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let newest = names.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
    let text = std::fs::read_to_string(newest).unwrap();
    assert!(text.contains("# flagstone:compressed_secondary_cache_size=8388608"), "{text}");
}
