//! Databases that share a block cache.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::cell::RefCell;

use common::{create, temporary};
use flagstone::base::Code;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{BlockCache, CacheSettings, Options, ReadOptions};

/// Options of databases with such a cache, whose values of some hundred bytes lie in blob files and
/// are cached.
fn shared(bytes: usize) -> (BlockCache, Options) {
    let cache = BlockCache::new(&CacheSettings::with_capacity(bytes));
    let mut options = create();
    options
        .set_all(
            "compression=kNoCompression;enable_blob_files=true;min_blob_size=200;cache_blobs=true",
        )
        .unwrap();
    options.block_cache = Some(cache.clone());
    (cache, options)
}

/// What all entries take. To find so many takes memory, too, also when they are gone.
fn charged(cache: &BlockCache) -> u64 {
    (cache.usage() - cache.overhead()) as u64
}

/// The same keys in all databases; the values of one are all of its own byte, small and large in
/// turn.
fn fill(db: &Db, byte: u8) {
    for key in 0..500u32 {
        let size = if key % 2 == 0 { 100 } else { 300 };
        db.put(key.to_be_bytes(), vec![byte; size]).unwrap();
    }
    db.flush_all().unwrap();
}

/// How many values are there as they should be; with `cache_only`, of those that are cached.
fn count(db: &Db, byte: u8, cache_only: bool) -> usize {
    let options = ReadOptions { cache_only, ..ReadOptions::default() };
    let found = (0..500u32).filter(|key| {
        match db.get_with(&options, db.default_column_family(), key.to_be_bytes()) {
            Ok(value) => {
                assert!(value.unwrap().iter().all(|found| *found == byte), "another's value");
                true
            }
            Err(error) => {
                assert_eq!(error.code(), Code::Incomplete, "{error}");
                false
            }
        }
    });
    found.count()
}

/// Their files have the same numbers, and those of the copy are the same files. Nobody finds what
/// another has put there.
#[test]
fn nobody_reads_what_is_anothers() {
    let directory = temporary();
    let (cache, options) = shared(16 << 20);
    let at = |name: &str| directory.path().join(name);
    let first = Db::open(at("first"), &options).unwrap();
    let second = Db::open(at("second"), &options).unwrap();
    fill(&first, 1);
    fill(&second, 2);
    first.checkpoint(at("copy")).unwrap();
    let copy = Db::open(at("copy"), &options).unwrap();
    fill(&copy, 3);
    copy.compact_range(copy.default_column_family(), None, None, &Default::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(
            [(&first, 1), (&second, 2), (&copy, 3)].map(|(db, byte)| count(db, byte, false)),
            [500; 3]
        );
    }
    // Opened once more while it is open, only to be read.
    let again = Db::open_read_only(at("first"), &options).unwrap();
    assert_eq!(
        (count(&again, 1, true), count(&again, 1, false), count(&again, 1, true)),
        (0, 500, 500)
    );
    let parts = [&first, &second, &copy, &again].map(|db| db.memory_usage().cache);
    assert_eq!(parts.iter().map(|part| part.usage()).sum::<u64>(), charged(&cache));
    assert!(
        parts.iter().all(|part| part.data > 0 && part.blob > 0 && part.capacity == 16 << 20),
        "{parts:?}"
    );
}

/// What a closed database had there makes room for others, and theirs stays. What reads on keeps
/// its part until it is gone.
#[test]
fn who_leaves_takes_its_blocks_along() {
    let directory = temporary();
    let (cache, options) = shared(16 << 20);
    let first = Db::open(directory.path().join("first"), &options).unwrap();
    let second = Db::open(directory.path().join("second"), &options).unwrap();
    fill(&first, 1);
    fill(&second, 2);
    assert_eq!((count(&first, 1, false), count(&second, 2, false)), (500, 500));
    let of_second = second.memory_usage().cache.usage();
    assert!(charged(&cache) >= 2 * of_second);
    let mut iter = first.iter(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    first.close().unwrap();
    drop(first);
    while iter.valid() {
        assert!(iter.value().unwrap().iter().all(|found| *found == 1));
        iter.next();
    }
    iter.status().unwrap();
    drop(iter);
    assert_eq!((charged(&cache), count(&second, 2, true)), (of_second, 500));
    drop(second);
    assert_eq!(charged(&cache), 0);
    // A database that finds it full drives out what others have.
    cache.set_capacity(64 << 10);
    let third = Db::open(directory.path().join("second"), &options).unwrap();
    let fourth = Db::open(directory.path().join("first"), &options).unwrap();
    assert_eq!((count(&third, 2, false), count(&fourth, 1, false)), (500, 500));
    assert!(charged(&cache) <= 64 << 10 && cache.statistics().evictions > 0);
}

/// Reads from the database, and closes it, when it goes.
struct Last(Db);

impl Drop for Last {
    fn drop(&mut self) {
        assert_eq!(count(&self.0, 1, false), 500);
    }
}

/// What reads keep for the thread's next ones was gone before a database that the thread kept: the
/// process was ended.
#[test]
fn a_thread_may_keep_its_database_until_its_end() {
    thread_local!(static KEPT: RefCell<Option<Last>> = const { RefCell::new(None) });
    for compression in ["kNoCompression", "kLZ4Compression"] {
        let directory = temporary();
        let (cache, mut options) = shared(16 << 10);
        options.set_all("enable_blob_files=false;use_direct_reads=true").unwrap();
        options.set("compressed_secondary_cache_size", "1m").unwrap();
        options.set("compression", compression).unwrap();
        let keep = move || {
            // What is used first goes last.
            KEPT.with_borrow(|kept| assert!(kept.is_none()));
            let db = Db::open(directory.path().join("db"), &options).unwrap();
            fill(&db, 1);
            assert_eq!(count(&db, 1, false), 500);
            KEPT.set(Some(Last(db)));
        };
        assert!(!Env::os().spawner.spawn("kept", Box::new(keep)).unwrap().join());
        assert!(cache.statistics().evictions > 0 && cache.usage() == 0);
    }
}

/// Blocks follow a compaction within a shared cache, and those of tables that are gone leave it.
#[test]
fn blocks_follow_compactions() {
    let directory = temporary();
    let (cache, mut options) = shared(16 << 20);
    options.set_all("enable_blob_files=false;disable_auto_compactions=true").unwrap();
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    let other = Db::open(directory.path().join("other"), &options).unwrap();
    fill(&other, 2);
    fill(&db, 1);
    fill(&db, 1);
    assert_eq!((count(&db, 1, false), count(&other, 2, false)), (500, 500));
    let before = cache.usage();
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    assert_eq!((count(&db, 1, true), count(&other, 2, true)), (500, 500));
    db.wait_for_compactions().unwrap();
    assert!(cache.usage() <= before + before / 4, "{} of {before}", cache.usage());
}

#[test]
fn options_that_contradict_it_are_refused_and_one_by_name_replaces_it() {
    let directory = temporary();
    let (_, mut options) = shared(5 << 20);
    assert_eq!(options.get("block_cache").unwrap(), (5 << 20).to_string());
    options.set("memory_budget", "64m").unwrap();
    let error = Db::open(directory.path().join("db"), &options).unwrap_err();
    assert!(
        error.code() == Code::InvalidArgument && error.message().contains("memory_budget"),
        "{error}"
    );
    options.set("block_cache", "1m").unwrap();
    assert!(options.block_cache.is_none() && options.block_cache_size == Some(1 << 20));
    Db::open(directory.path().join("db"), &options).unwrap();
}
