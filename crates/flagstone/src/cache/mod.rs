//! Caches of blocks and blobs, bounded by a charge.

mod key;

use std::sync::atomic::{AtomicU64, Ordering};

pub use key::CacheKey;

/// How a cache is made.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheSettings {
    /// The most that the entries may be charged together, in bytes.
    pub capacity: usize,
    /// The logarithm of the number of shards; `None` gives every shard at least 512 KiB and makes at most 64.
    pub shard_bits: Option<u32>,
    /// The part of the capacity in which entries of high priority, and those hit before, are safe from a flood of
    /// others; between 0 and 1.
    pub high_priority_ratio: f64,
}

impl CacheSettings {
    /// The defaults, for this capacity in bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { capacity, shard_bits: None, high_priority_ratio: 0.5 }
    }
}

/// How long an entry is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// Data.
    #[default]
    Low,
    /// Index and filter blocks.
    High,
}

/// What a cache has done since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStatistics {
    /// Lookups that found their key.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Entries inserted.
    pub inserts: u64,
    /// Entries dropped to make room.
    pub evictions: u64,
}

/// A cache of values (handles such as `Arc`s: a lookup clones) that is shared by threads.
pub struct Cache<V> {
    next_file_id: AtomicU64,
    _value: std::marker::PhantomData<V>,
}

impl<V: Clone> Cache<V> {
    /// An empty cache.
    pub fn new(_settings: &CacheSettings) -> Self {
        Self { next_file_id: AtomicU64::new(1), _value: std::marker::PhantomData }
    }

    /// A number for [`CacheKey::file`] that this cache has not given before.
    pub fn next_file_id(&self) -> u64 {
        self.next_file_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The value of a key, which counts as used now.
    #[inline]
    pub fn lookup(&self, _key: CacheKey) -> Option<V> {
        todo!()
    }

    /// Puts a value in, at low priority, in place of any that the key has. `charge` is all the memory it stands for,
    /// in bytes. Returns `false` if it does not fit even into an empty shard; the old value is gone all the same.
    pub fn insert(&self, key: CacheKey, value: V, charge: usize) -> bool {
        self.insert_with_priority(key, value, charge, Priority::Low)
    }

    /// [`Cache::insert`] with a priority.
    pub fn insert_with_priority(
        &self,
        _key: CacheKey,
        _value: V,
        _charge: usize,
        _priority: Priority,
    ) -> bool {
        todo!()
    }

    /// Takes a key out.
    pub fn erase(&self, _key: CacheKey) -> Option<V> {
        todo!()
    }

    /// The charge of all entries, in bytes.
    pub fn usage(&self) -> usize {
        todo!()
    }

    /// The most that the entries may be charged together, in bytes.
    pub fn capacity(&self) -> usize {
        todo!()
    }

    /// Changes the capacity; entries are dropped at once if it shrinks.
    pub fn set_capacity(&self, _capacity: usize) {
        todo!()
    }

    /// What the cache has done so far.
    pub fn statistics(&self) -> CacheStatistics {
        todo!()
    }
}
