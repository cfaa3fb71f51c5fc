//! Caches of blocks and values that databases share.

use flagstone::options::{BlockCache, CacheSettings};

/// A cache of blocks, or of values in blob files. Clones are the same cache.
///
/// A database has one block cache for all of its column families: that of `default`, or else the
/// first that a family has.
#[derive(Clone)]
pub struct Cache {
    pub(crate) engine: BlockCache,
}

impl Cache {
    /// A cache of so many bytes whose least recently used entry leaves first.
    pub fn new_lru_cache(capacity: usize) -> Self {
        Self { engine: BlockCache::new(&CacheSettings::with_capacity(capacity)) }
    }

    /// A cache as `opts` say.
    pub fn new_lru_cache_opts(opts: &LruCacheOptions) -> Self {
        let settings = CacheSettings {
            // More shards than there may be are as many as there may be.
            shard_bits: u32::try_from(opts.num_shard_bits).ok(),
            ..CacheSettings::with_capacity(opts.capacity)
        };
        Self { engine: BlockCache::new(&settings) }
    }

    /// The same as [`new_lru_cache`](Self::new_lru_cache): lookups take no lock anyway, and the
    /// size of entries need not be known.
    pub fn new_hyper_clock_cache(capacity: usize, _estimated_entry_charge: usize) -> Self {
        Self::new_lru_cache(capacity)
    }

    /// Bytes in the cache, with what it takes to find them.
    pub fn get_usage(&self) -> usize {
        self.engine.usage()
    }

    /// Bytes in the cache that values and iterators hold.
    pub fn get_pinned_usage(&self) -> usize {
        self.engine.pinned_usage()
    }

    /// Changes the capacity. What exceeds it leaves at once.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.engine.set_capacity(capacity);
    }
}

/// How an LRU cache is made.
pub struct LruCacheOptions {
    capacity: usize,
    num_shard_bits: i32,
}

impl Default for LruCacheOptions {
    fn default() -> Self {
        Self { capacity: 0, num_shard_bits: -1 }
    }
}

impl LruCacheOptions {
    /// The capacity in bytes. Default: 0.
    pub fn set_capacity(&mut self, cap: usize) {
        self.capacity = cap;
    }

    /// The logarithm of the number of shards, at most 16; negative for as many as suit the
    /// capacity. Default: -1.
    pub fn set_num_shard_bits(&mut self, val: i32) {
        self.num_shard_bits = val;
    }
}

#[cfg(test)]
mod tests;
