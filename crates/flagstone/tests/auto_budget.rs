//! The memory of a process, which its databases have together (`memory_budget=auto`). One test:
//! others would have a part.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{BlockCache, CacheSettings, Options};

fn options(changes: &[(&str, &str)]) -> Options {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    changes.iter().for_each(|(name, value)| options.set(name, value).unwrap());
    options
}

#[test]
fn databases_of_a_process_have_its_memory_together() {
    let all = flagstone::env::memory_limit().unwrap() / 2;
    let first = Db::open("/first", &options(&[("block_cache", "1t")])).unwrap();
    let usage = first.memory_usage();
    assert_eq!(usage.budget, all);
    assert!(usage.cache.capacity > all / 3, "the rest is for others: {usage}");

    let second = Db::open("/second", &options(&[])).unwrap();
    let cache = BlockCache::new(&CacheSettings::with_capacity(3 << 20));
    let third = Db::open("/third", &Options { block_cache: Some(cache), ..options(&[]) }).unwrap();
    let [usage, of_second, of_third] = [&first, &second, &third].map(Db::memory_usage);
    assert_eq!([&usage, &of_second, &of_third].map(|usage| usage.budget), [all / 3; 3]);
    assert!((all / 9..all / 3).contains(&usage.cache.capacity), "it gave of its own: {usage}");
    assert_eq!(of_second.cache.capacity, 32 << 20, "no more than usual, if nobody asks");
    assert_eq!(of_third.cache.capacity, 3 << 20, "what others have, too");

    let fourth = Db::open("/fourth", &options(&[("block_cache", "1t")])).unwrap();
    let usage = fourth.memory_usage();
    assert!(usage.cache.capacity < all / 4 / 2, "a part from the beginning: {usage}");
    drop(fourth);

    let apart = Db::open("/apart", &options(&[("memory_budget", "64m")])).unwrap();
    let without = Db::open("/without", &options(&[("memory_budget", "0")])).unwrap();
    assert_eq!((apart.memory_usage().budget, without.memory_usage().budget), (64 << 20, 0));
    assert_eq!(without.memory_usage().cache.capacity, 32 << 20);
    assert_eq!(first.memory_usage().budget, all / 3, "they have nothing of it");

    second.close().unwrap();
    assert_eq!(first.memory_usage().budget, all / 2, "a closed one has none");
    drop(third);
    let usage = first.memory_usage();
    assert!(usage.budget == all && usage.cache.capacity > all / 3, "it has all again: {usage}");
}
