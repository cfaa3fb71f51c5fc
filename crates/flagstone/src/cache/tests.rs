mod model;

use std::sync::Arc;

use super::*;

/// Plain values, which nobody can pin.
macro_rules! never_pinned {
    ($($value:ty),*) => {
        $(impl CacheValue for $value {
            fn is_pinned(&self) -> bool {
                false
            }
        })*
    };
}

never_pinned!(u64, (), CacheKey);

fn key(offset: u64) -> CacheKey {
    CacheKey { file: 1, offset }
}

/// One shard, so that the order of eviction can be told.
fn single(capacity: usize, high_priority_ratio: f64) -> Cache<u64> {
    let settings = CacheSettings::with_capacity(capacity);
    Cache::new(&CacheSettings { shard_bits: Some(0), high_priority_ratio, ..settings })
}

/// The keys up to 20 that are there, in order, without disturbing them.
fn present<V: CacheValue>(cache: &Cache<V>) -> Vec<u64> {
    let held = cache.shards[0].0.keys();
    (0..20).filter(|&offset| held.contains(&key(offset))).collect()
}

#[test]
fn a_value_is_found_until_it_is_erased() {
    let cache = single(100, 0.0);
    assert!(cache.insert(key(7), 70, 10));
    assert_eq!((cache.lookup(key(7)), cache.lookup(key(8))), (Some(70), None));
    assert!(cache.insert(key(7), 71, 20));
    assert_eq!((cache.lookup(key(7)), cache.usage(), cache.len()), (Some(71), 20, 1));
    assert_eq!((cache.erase(key(7)), cache.erase(key(7)), cache.usage()), (Some(71), None, 0));
    let expected = CacheStatistics { hits: 2, misses: 1, inserts: 2, evictions: 0 };
    assert_eq!(cache.statistics(), expected);
}

#[test]
fn a_value_that_no_shard_has_room_for_is_not_made() {
    let cache = single(10, 0.0);
    assert!(!cache.insert_made(key(1), 11, || panic!("made in vain")));
    assert!(cache.insert_made(key(1), 9, || (10, 10)));
    assert!(!cache.insert_made(key(2), 9, || (20, 11)), "more than it seemed");
    assert_eq!((cache.lookup(key(1)), cache.len()), (Some(10), 1));
}

#[test]
fn a_hint_leads_to_its_entry_or_to_none() {
    let cache = single(2, 0.0);
    let hint = SlotHint::default();
    assert_eq!(cache.lookup_near(key(1), &hint), None);
    assert!(cache.insert(key(1), 10, 1));
    assert_eq!((cache.lookup_near(key(1), &hint), hint.get()), (Some(10), Some(0)));
    assert_eq!(cache.lookup_near(key(1), &hint), Some(10));
    // Its slot is another's now, and then it has one again, elsewhere.
    assert_eq!(cache.erase(key(1)), Some(10));
    assert!(cache.insert(key(2), 20, 1));
    assert_eq!((cache.lookup_near(key(1), &hint), cache.lookup(key(2))), (None, Some(20)));
    assert!(cache.insert(key(1), 11, 1));
    assert_eq!((cache.lookup_near(key(1), &hint), hint.get()), (Some(11), Some(1)));
    let (mut shown, elsewhere) = (None, SlotHint::default());
    elsewhere.set(1_000_000);
    cache.show_near(key(2), &elsewhere, |&value| shown = Some(value));
    assert_eq!((shown, elsewhere.get()), (Some(20), Some(0)), "no slot has that number");
    let CacheStatistics { hits, misses, .. } = cache.statistics();
    assert_eq!((hits, misses), (4, 2), "what is only shown is not counted");
}

#[test]
fn a_peek_is_no_use() {
    let cache = single(2, 0.0);
    assert!(cache.insert(key(1), 10, 1) && cache.prepopulate(key(2), 20, 1));
    assert_eq!((cache.peek(key(1)), cache.peek(key(3))), (Some(10), None));
    cache.insert(key(3), 30, 1);
    assert_eq!(present(&cache), [2, 3]);
    assert_eq!(
        cache.statistics(),
        CacheStatistics { inserts: 3, evictions: 1, ..CacheStatistics::default() }
    );
}

#[test]
fn the_least_recently_used_goes_first() {
    let cache = single(4, 0.0);
    (1..=4).for_each(|i| assert!(cache.insert(key(i), i, 1)));
    cache.lookup(key(1));
    cache.insert(key(5), 5, 1);
    assert_eq!(present(&cache), [1, 3, 4, 5]);
    cache.insert(key(6), 6, 2);
    assert_eq!(present(&cache), [1, 5, 6]);
    assert_eq!(cache.statistics().evictions, 3);
}

#[test]
fn a_scan_does_not_flush_what_was_used_twice() {
    let cache = single(8, 0.5);
    cache.insert_with_priority(key(0), 0, 1, Priority::High);
    (1..=3).for_each(|i| {
        cache.insert(key(i), i, 1);
        cache.lookup(key(i));
    });
    (100..200).for_each(|i| assert!(cache.insert(key(i), i, 1)));
    assert_eq!(present(&cache), [0, 1, 2, 3]);
    // One more in the high pool moves its oldest into the low pool, where the next scan finds it.
    cache.insert_with_priority(key(4), 4, 1, Priority::High);
    (100..200).for_each(|i| assert!(cache.insert(key(i), i, 1)));
    assert_eq!(present(&cache), [1, 2, 3, 4]);
}

#[test]
fn a_value_beyond_the_capacity_is_refused_and_the_old_one_gone() {
    let cache = single(10, 0.5);
    assert!(cache.insert(key(1), 1, 10));
    assert!(!cache.insert(key(1), 2, 11));
    assert_eq!((cache.lookup(key(1)), cache.usage()), (None, 0));
    assert!(cache.insert(key(1), 3, 0));
    assert_eq!(cache.lookup(key(1)), Some(3));
}

#[test]
fn the_capacity_can_change() {
    let cache = single(10, 0.5);
    (0..10).for_each(|i| assert!(cache.insert(key(i), i, 1)));
    cache.set_capacity(3);
    assert_eq!((cache.capacity(), cache.usage(), present(&cache)), (3, 3, vec![7, 8, 9]));
    cache.set_capacity(20);
    (0..7).for_each(|i| assert!(cache.insert(key(i), i, 1)));
    assert_eq!(cache.usage(), 10);
    cache.set_capacity(0);
    assert!(cache.is_empty());
}

#[test]
fn a_few_shards_may_be_small_and_many_are_large() {
    // In mebibytes, and the shards with indexes among the entries.
    for (capacity, shards, with_indexes) in [
        (0, 1, 1),
        (1, 2, 1),
        (2, 4, 1),
        (4, 8, 1),
        (8, 8, 2),
        (31, 8, 4),
        (32, 8, 8),
        (256, 8, 8),
        (512, 16, 16),
        (1024, 32, 32),
        (2048, 64, 64),
        (1 << 20, 64, 64),
    ] {
        let plain = CacheSettings::with_capacity(capacity << 20);
        assert_eq!(1 << default_shard_bits(&plain), shards, "{capacity} MiB");
        let with = CacheSettings { holds_indexes: true, ..plain };
        assert_eq!(1 << default_shard_bits(&with), with_indexes, "{capacity} MiB with indexes");
    }
}

#[test]
fn keys_spread_over_shards_and_buckets() {
    let cache =
        Cache::new(&CacheSettings { shard_bits: Some(6), ..CacheSettings::with_capacity(1 << 30) });
    for file in 0..64 {
        for block in 0..256 {
            cache.insert(CacheKey { file, offset: block * 4096 }, (), 1);
        }
    }
    assert_eq!(cache.len(), 64 * 256);
    for shard in &cache.shards {
        let length = shard.0.len();
        assert!((150..400).contains(&length), "{length} entries in one of 64 shards");
    }
}

#[test]
fn file_ids_are_unique() {
    let cache = single(1, 0.0);
    assert_ne!(cache.new_owner().next_file(), cache.new_owner().next_file());
}

#[test]
fn values_leave_the_cache_when_evicted() {
    let cache =
        Cache::new(&CacheSettings { shard_bits: Some(0), ..CacheSettings::with_capacity(2) });
    let values: Vec<_> = (0..10).map(|_| Arc::new(())).collect();
    let weak: Vec<_> = values.iter().map(Arc::downgrade).collect();
    values.into_iter().zip(0..).for_each(|(value, i)| assert!(cache.insert(key(i), value, 1)));
    let alive = || weak.iter().map(|value| value.strong_count()).collect::<Vec<_>>();
    assert_eq!(alive(), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    drop(cache.erase(key(9)));
    assert_eq!(alive(), [0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
}

/// What is in use is memory in any case: while it is in the cache it is at least counted.
#[test]
fn what_is_in_use_stays_and_is_counted() {
    for (_, policy) in PolicyKind::NAMES {
        let settings = CacheSettings {
            shard_bits: Some(0),
            policy: *policy,
            ..CacheSettings::with_capacity(40)
        };
        let cache: Cache<Arc<u64>> = Cache::new(&settings);
        let held: Vec<_> = (0..5).map(Arc::new).collect();
        held.iter().zip(0..).for_each(|(value, i)| assert!(cache.insert(key(i), value.clone(), 1)));
        assert_eq!((cache.usage(), cache.pinned_usage()), (5, 5));
        (100..300).for_each(|i| assert!(cache.insert(key(i), Arc::new(i), 1), "{policy:?}"));
        assert_eq!((present(&cache), cache.pinned_usage()), (vec![0, 1, 2, 3, 4], 5), "{policy:?}");
        drop(held);
        (100..300).for_each(|i| assert!(cache.insert(key(1000 + i), Arc::new(i), 1)));
        assert_eq!(cache.pinned_usage(), 0);
    }
}

#[test]
fn nothing_comes_in_where_all_is_in_use() {
    let cache =
        Cache::new(&CacheSettings { shard_bits: Some(0), ..CacheSettings::with_capacity(20) });
    let held: Vec<Arc<u64>> = (0..20).map(Arc::new).collect();
    held.iter().zip(0..).for_each(|(value, i)| assert!(cache.insert(key(i), value.clone(), 1)));
    (20..40).for_each(|i| assert!(!cache.insert(key(i), Arc::new(i), 1)));
    assert_eq!((cache.usage(), cache.pinned_usage(), cache.statistics().evictions), (20, 20, 0));
    cache.set_capacity(10);
    assert_eq!((cache.usage(), cache.pinned_usage()), (10, 10));
}

/// What was in use came back to the policy at once and was its next choice again, as often as it is
/// asked: nothing came in while one entry was in use and all others were popular.
#[test]
fn what_is_in_use_keeps_no_other_out() {
    let ratios = [(PolicyKind::Lru, 1.0)];
    for (policy, ratio) in PolicyKind::NAMES.iter().map(|(_, policy)| (*policy, 0.5)).chain(ratios)
    {
        let settings = CacheSettings::with_capacity(40);
        let settings =
            CacheSettings { shard_bits: Some(0), policy, high_priority_ratio: ratio, ..settings };
        let cache: Cache<Arc<u64>> = Cache::new(&settings);
        for i in 1..40 {
            assert!(cache.insert(key(i), Arc::new(i), 1));
            cache.lookup(key(i));
        }
        // Tells the policy of the last hit.
        cache.set_capacity(40);
        let held = Arc::new(0);
        assert!(cache.insert(key(0), held.clone(), 1));
        for i in 100..200 {
            assert!(cache.insert(key(i), Arc::new(i), 1), "{policy:?}, {ratio}: {i}");
        }
        assert!(
            cache.peek(key(0)).is_some() && cache.usage() - cache.overhead() <= 40,
            "{policy:?}"
        );
    }
}

/// It was nobody's, and with small entries as much as they. RocksDB charges it, too
/// (`kFullChargeCacheMetadata`).
#[test]
fn what_it_takes_to_find_entries_is_within_the_capacity() {
    const CAPACITY: usize = 1 << 20;
    for (name, policy) in PolicyKind::NAMES.iter().copied() {
        let settings = CacheSettings::with_capacity(CAPACITY);
        let cache: Cache<u64> =
            Cache::new(&CacheSettings { shard_bits: Some(0), policy, ..settings });
        (0..50_000).for_each(|i| assert!(cache.insert(key(i), i, 400)));
        // What became too much with the last entry leaves before the next.
        cache.set_capacity(CAPACITY);
        let (usage, overhead, entry) =
            (cache.usage(), cache.overhead(), slots::slot_size::<u64>() + 4 * 4);
        assert!(overhead > cache.len() * entry, "{name}: {overhead} of {}", cache.len());
        assert_eq!(usage, overhead + cache.len() * 400);
        // What was never hit has a quarter of an `s4lru`.
        let least = if policy == PolicyKind::S4Lru { CAPACITY / 4 } else { CAPACITY * 9 / 10 };
        assert!((least..=CAPACITY).contains(&usage), "{name}: {usage}, {overhead}");
        // Room for entries stays, whatever their places take.
        cache.set_capacity(CAPACITY / 64);
        let charged = cache.usage() - cache.overhead();
        assert!(
            cache.overhead() > CAPACITY / 64 && charged <= CAPACITY / 128 && charged > 0,
            "{name}: {charged}"
        );
        assert!(cache.insert(key(0), 0, 400));
    }
}

/// All of it doubled at once: for as many entries it was twice as much behind a power of two as
/// before.
#[test]
fn what_it_takes_to_find_entries_grows_as_they_do() {
    let cache: Cache<u64> =
        Cache::new(&CacheSettings { shard_bits: Some(0), ..CacheSettings::with_capacity(1 << 30) });
    let (mut least, mut most) = (f64::MAX, f64::MIN);
    for i in 0..40_000 {
        assert!(cache.insert(key(i), i, 400));
        if i >= 2_000 {
            let each = cache.overhead() as f64 / i as f64;
            (least, most) = (least.min(each), most.max(each));
        }
    }
    assert!(most < 1.5 * least, "from {least} to {most} bytes an entry");
}

/// It was told as it had been before entries were taken out, until the next one came.
#[test]
fn what_it_takes_to_find_entries_is_told_as_it_is_when_they_are_taken_out() {
    for (name, policy) in PolicyKind::NAMES.iter().copied() {
        let settings = CacheSettings::with_capacity(1 << 24);
        let told = |take_out: &dyn Fn(&Cache<u64>)| {
            let cache: Cache<u64> =
                Cache::new(&CacheSettings { shard_bits: Some(0), policy, ..settings });
            (0..20_000).for_each(|i| assert!(cache.insert(key(i), i, 400)));
            take_out(&cache);
            let told = cache.overhead();
            cache.set_capacity(1 << 24);
            (told, cache.overhead())
        };
        let (after_each, known) = told(&|cache| (0..20_000).for_each(|i| _ = cache.erase(key(i))));
        assert_eq!(after_each, known, "{name}");
        let (after_all, known) = told(&|cache| cache.erase_files(&[key(0).file]));
        assert_eq!(after_all, known, "{name}");
    }
}

/// It was beyond the capacity, and that of W-TinyLFU kept its size when the cache shrank.
#[test]
fn what_a_policy_remembers_goes_as_the_capacity_does() {
    const CAPACITY: usize = 1 << 20;
    let remembered = |policy| {
        let settings = CacheSettings::with_capacity(CAPACITY);
        let cache: Cache<u64> =
            Cache::new(&CacheSettings { shard_bits: Some(0), policy, ..settings });
        (0..50_000).for_each(|i| assert!(cache.insert(key(i), i, 400)));
        let full = cache.overhead();
        cache.set_capacity(CAPACITY / 64);
        full - cache.overhead()
    };
    assert_eq!(remembered(PolicyKind::Lru), 0, "no place goes");
    for policy in [PolicyKind::S3Fifo, PolicyKind::WTinyLfu] {
        assert!(remembered(policy) > CAPACITY / 100, "{policy:?}: {}", remembered(policy));
    }
}

/// The table grows by another array, which must have all that the old one had.
#[test]
fn a_table_that_grows_keeps_its_entries() {
    const COUNT: u64 = if cfg!(miri) { 40 } else { 5_000 };
    let cache = single(1_000_000, 0.5);
    for count in 0..COUNT {
        assert!(cache.insert(key(count), count, 1));
        assert_eq!(cache.lookup(key(count / 2)), Some(count / 2));
    }
    assert!((0..COUNT).all(|i| cache.lookup(key(i)) == Some(i)));
    assert!((0..COUNT).step_by(2).all(|i| cache.erase(key(i)) == Some(i)));
    assert!((0..COUNT).all(|i| cache.lookup(key(i)) == Some(i).filter(|i| i % 2 == 1)));
}

#[test]
fn hits_are_told_once_between_changes_and_only_so_many() {
    let log = hits::HitLog::new();
    let seen: Vec<_> = (0..100).map(|_| crate::base::sync::AtomicU32::new(0)).collect();
    let told = || {
        let mut told = Vec::new();
        log.read(|slot| told.push(slot));
        told
    };
    for slot in [3, 1, 3, 3, 2, 1] {
        log.record(slot, &seen[slot as usize]);
    }
    assert_eq!(told(), [3, 1, 2]);
    assert_eq!(told(), [0; 0]);
    (0..100).for_each(|slot| log.record(slot, &seen[slot as usize]));
    assert_eq!(told(), (0..hits::LENGTH as u32).collect::<Vec<_>>());
    log.record(99, &seen[99]);
    assert_eq!(told(), [99]);
}

/// Whatever the hit log has room for: that it is full hides no use.
#[test]
fn what_was_used_in_a_period_is_known() {
    let cache = single(1000, 0.5);
    (0..200).for_each(|count| assert!(cache.insert(key(count), count, 1)));
    assert_eq!(cache.used(), 200, "what came in was used");
    cache.begin_period();
    assert_eq!(cache.used(), 0);
    (0..100).for_each(|count| assert_eq!(cache.lookup(key(count)), Some(count)));
    assert!(cache.peek(key(150)).is_some(), "no use");
    assert!(cache.insert(key(200), 200, 1));
    assert_eq!(cache.used(), 101);
    cache.erase_unused();
    assert_eq!((cache.len(), cache.used()), (101, 101));
    assert!((0..100).chain([200]).all(|count| cache.peek(key(count)).is_some()));
    cache.begin_period();
    cache.erase_unused();
    assert!(cache.is_empty());
}

/// So short that Miri can try many interleavings and orders of memory (`scripts/miri.sh`): the
/// table grows from two buckets while it is searched, entries are evicted and erased under those
/// who read them.
#[test]
fn short_races() {
    const CAPACITY: usize = 5;
    let settings = CacheSettings { shard_bits: Some(0), ..CacheSettings::with_capacity(CAPACITY) };
    let cache: Cache<Arc<CacheKey>> = Cache::new(&settings);
    let check =
        |offset| assert!(cache.lookup(key(offset)).is_none_or(|found| *found == key(offset)));
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let check = &check;
            scope.spawn(move || (0..8).for_each(|step| check((step * (reader + 1)) % 7)));
        }
        scope.spawn(|| {
            for offset in 0..4 {
                cache.insert(key(offset), Arc::new(key(offset)), 1);
                check(offset + 3);
            }
        });
        for offset in (0..7).rev() {
            cache.insert(key(offset), Arc::new(key(offset)), 1 + offset as usize % 2);
            if offset % 3 == 0 {
                cache.erase(key(offset + 1));
            }
        }
    });
    assert!(cache.usage() <= CAPACITY);
}

#[test]
fn threads_see_only_what_was_inserted() {
    const STEPS: usize = if cfg!(miri) { 50 } else { 20_000 };
    let cache =
        Cache::new(&CacheSettings { shard_bits: Some(2), ..CacheSettings::with_capacity(400) });
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..STEPS {
                    let key = CacheKey { file: random.u64(..4), offset: random.u64(..200) };
                    match random.u8(..10) {
                        0..6 => assert!(cache.lookup(key).is_none_or(|found| found == key)),
                        6..9 => assert!(cache.insert(key, key, random.usize(..5))),
                        _ => _ = cache.erase(key),
                    }
                }
            });
        }
    });
    assert!(cache.usage() - cache.overhead() <= 400);
}

/// A measurement, not a test: `cargo test --release -p flagstone --lib cache:: -- --ignored
/// --nocapture`.
#[test]
#[ignore = "measures; run it in release"]
fn how_long_a_hit_takes() {
    const LOOKUPS: u64 = 2_000_000;
    let clock = crate::env::Env::os().clock;
    for (blocks, threads) in
        [1_000u64, 100_000, 1_000_000].into_iter().flat_map(|b| [(b, 1), (b, 4)])
    {
        let cache = Cache::new(&CacheSettings::with_capacity(usize::MAX >> 1));
        (0..blocks).for_each(|i| assert!(cache.insert(key(i * 4096), Arc::new([i; 4]), 4096)));
        let start = clock.now_us();
        std::thread::scope(|scope| {
            for seed in 0..threads {
                let cache = &cache;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    for _ in 0..LOOKUPS {
                        assert!(cache.lookup(key(random.u64(..blocks) * 4096)).is_some());
                    }
                });
            }
        });
        let ns = (clock.now_us() - start) as f64 * 1000.0 / (LOOKUPS * threads) as f64;
        eprintln!("{blocks} blocks, {threads} threads: {ns:.1} ns per hit");
    }
}
