//! What a block cache has, listed, and read into another one.

#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]

use std::path::Path;

use flagstone::Options;
use flagstone::db::{CachedBlocks, Db};
use flagstone::reports::{PerfContext, PerfLevel, PerfMetric, set_perf_level};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn key(number: usize) -> String {
    format!("key{number:04}")
}

fn opened(directory: &Path, cache: u64) -> Db {
    opened_with(directory, cache, "kNoCompression")
}

fn opened_with(directory: &Path, cache: u64, compression: &str) -> Db {
    let mut options = Options { block_cache_size: Some(cache), ..Options::default() };
    options.create_if_missing = true;
    for (name, value) in
        [("compression", compression), ("block_size", "1024"), ("disable_auto_compactions", "true")]
    {
        options.set(name, value).unwrap();
    }
    Db::open(directory, &options).unwrap()
}

/// Two tables of 200 keys each.
fn filled(directory: &Path) {
    fill(&opened(directory, 1 << 20));
}

fn fill(db: &Db) {
    for table in 0..2 {
        (0..200).for_each(|at| db.put(key(200 * table + at), [7; 100]).unwrap());
        db.flush_all().unwrap();
    }
    db.close().unwrap();
}

#[test]
fn another_cache_has_what_one_had() {
    let directory = temporary();
    filled(directory.path());
    let db = opened(directory.path(), 1 << 20);
    let keys = [3, 50, 51, 199, 200, 390];
    keys.iter().for_each(|at| assert!(db.get(key(*at)).unwrap().is_some()));
    let text = db.cached_blocks().to_string();
    assert_eq!(text.lines().count(), 2, "{text}");
    db.close().unwrap();
    drop(db);

    let db = opened(directory.path(), 1 << 20);
    assert_eq!(db.cached_blocks().count(), 0);
    let listed: CachedBlocks = text.parse().unwrap();
    assert!(listed.count() > 2);
    assert_eq!(db.warm_block_cache(&listed).unwrap(), listed.count());
    assert_eq!(db.cached_blocks(), listed);
    assert_eq!(db.warm_block_cache(&listed).unwrap(), 0, "they are there");
    set_perf_level(PerfLevel::EnableCount);
    let reads = || PerfContext::now().get(PerfMetric::BlockReadCount);
    let before = reads();
    keys.iter().for_each(|at| assert!(db.get(key(*at)).unwrap().is_some()));
    assert_eq!(reads(), before);
    db.get(key(120)).unwrap();
    assert_eq!(reads(), before + 1, "one that nobody had asked for");
    set_perf_level(PerfLevel::Disable);
}

#[test]
fn a_small_cache_takes_no_more_than_fits() {
    let directory = temporary();
    filled(directory.path());
    let db = opened(directory.path(), 1 << 20);
    (0..400).for_each(|at| assert!(db.get(key(at)).unwrap().is_some()));
    let all = db.cached_blocks();
    db.close().unwrap();
    drop(db);
    let db = opened(directory.path(), 16 << 10);
    let read = db.warm_block_cache(&all).unwrap();
    assert!((5..=12).contains(&read), "{read} of {}", all.count());
}

/// Blocks counted as they are stored, and pushed each other out of the cache.
#[test]
fn compressed_blocks_count_with_what_they_take_in_memory() {
    let directory = temporary();
    let opened = |cache| opened_with(directory.path(), cache, "kZSTD");
    let db = opened(1 << 20);
    fill(&db);
    (0..400).for_each(|at| assert!(db.get(key(at)).unwrap().is_some()));
    let all = db.cached_blocks();
    assert!(all.count() > 30, "{}", all.count());
    let stored: u64 = db.live_files().iter().map(|file| file.size).sum();
    assert!(stored < 12 << 10, "all would fit as they are stored: {stored}");
    drop(db);
    let read = opened(16 << 10).warm_block_cache(&all).unwrap();
    assert!((5..=12).contains(&read), "{read} of {}", all.count());
}

#[test]
fn what_is_not_there_is_passed_over() {
    let directory = temporary();
    filled(directory.path());
    let db = opened(directory.path(), 1 << 20);
    let numbers: Vec<u64> = db.live_files().iter().map(|file| file.number.0).collect();
    let strange = format!("{} 1 17 99999999\n4000000000 0\n\n{} 0", numbers[0], numbers[1]);
    assert_eq!(db.warm_block_cache(&strange.parse().unwrap()).unwrap(), 1);
    let error = "7 0\n8 x".parse::<CachedBlocks>().unwrap_err();
    assert_eq!(error.code(), flagstone::Code::InvalidArgument);
    assert!(error.to_string().contains("line 2"), "{error}");
}
