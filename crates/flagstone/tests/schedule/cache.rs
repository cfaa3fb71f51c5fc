//! The cache of blocks: what it is charged never exceeds its capacity, a lookup finds the value of
//! its key or nothing while the table changes and grows, each value is dropped once, and never
//! under a lock.

use std::sync::{Arc, Weak};

use flagstone::cache::{Cache, CacheKey, CacheSettings, PolicyKind, Priority, SlotHint};
use shuttle::sync::atomic::{AtomicU64, Ordering};

use crate::explore::explore;
use crate::world::{join, thread};

const CAPACITY: usize = 6;
const KEYS: u64 = 8;

/// A value that counts its drop, and looks into the cache from there: under the shard's lock it
/// would wait for itself.
struct Block {
    key: CacheKey,
    ledger: Arc<Ledger>,
}

#[derive(Default)]
struct Ledger {
    made: AtomicU64,
    dropped: AtomicU64,
    cache: std::sync::OnceLock<Weak<Cache<Arc<Block>>>>,
}

impl Drop for Block {
    fn drop(&mut self) {
        self.ledger.dropped.fetch_add(1, Ordering::Relaxed);
        if let Some(cache) = self.ledger.cache.get().and_then(Weak::upgrade) {
            let _ = cache.lookup(self.key);
        }
    }
}

fn story(shard_bits: u32, policy: PolicyKind) {
    let settings = CacheSettings {
        shard_bits: Some(shard_bits),
        policy,
        ..CacheSettings::with_capacity(CAPACITY)
    };
    let cache: Arc<Cache<Arc<Block>>> = Arc::new(Cache::new(&settings));
    let ledger = Arc::new(Ledger::default());
    ledger.cache.set(Arc::downgrade(&cache)).expect("set once");
    let hints: Arc<[SlotHint]> = (0..KEYS).map(|_| SlotHint::default()).collect();
    let threads = (0..3).map(|seed| {
        let (cache, ledger, hints) = (cache.clone(), ledger.clone(), hints.clone());
        thread(move || {
            let mut random = fastrand::Rng::with_seed(seed);
            for _ in 0..12 {
                let key = CacheKey { file: 1, offset: random.u64(..KEYS) };
                match random.u8(..8) {
                    0..3 => {
                        // A block that is in use stays whole when it is evicted.
                        let found = if random.bool() {
                            cache.lookup(key)
                        } else {
                            cache.lookup_near(key, &hints[key.offset as usize])
                        };
                        assert!(cache.usage() <= CAPACITY);
                        assert!(found.is_none_or(|block| block.key == key));
                    }
                    3..6 => {
                        ledger.made.fetch_add(1, Ordering::Relaxed);
                        let block = Arc::new(Block { key, ledger: ledger.clone() });
                        let priority = if random.bool() { Priority::High } else { Priority::Low };
                        cache.insert_with_priority(key, block, random.usize(1..3), priority);
                    }
                    6 => drop(cache.erase(key)),
                    _ => cache.set_capacity(random.usize(2..=CAPACITY)),
                }
                assert!(cache.usage() <= CAPACITY);
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    join(threads);
    drop(Arc::into_inner(cache).expect("the threads are gone"));
    assert_eq!(ledger.made.load(Ordering::Relaxed), ledger.dropped.load(Ordering::Relaxed));
}

#[test]
fn one_shard() {
    explore("cache::one_shard", 1000, || story(0, PolicyKind::Lru));
}

#[test]
fn two_shards() {
    explore("cache::two_shards", 1000, || story(1, PolicyKind::Lru));
}

#[test]
fn sieve() {
    explore("cache::sieve", 500, || story(0, PolicyKind::Sieve));
}

#[test]
fn s3_fifo() {
    explore("cache::s3_fifo", 500, || story(0, PolicyKind::S3Fifo));
}

#[test]
fn w_tiny_lfu() {
    explore("cache::w_tiny_lfu", 500, || story(0, PolicyKind::WTinyLfu));
}
