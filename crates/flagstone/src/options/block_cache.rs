//! A block cache that several databases share.

use std::fmt;
use std::sync::Arc;

use crate::cache::{CacheSettings, CacheStatistics, WriteBufferManager};
use crate::sst;

/// A cache for table blocks and blob values, shared by all databases whose options hold it:
/// RocksDB's `block_cache` and `blob_cache`.
///
/// Each database has its own entries, even for files that it shares with another, such as the
/// linked tables of a checkpoint. The entries leave the cache when the database is closed and no
/// iterator or value is left.
#[derive(Clone)]
pub struct BlockCache(Arc<sst::BlockCache>);

impl BlockCache {
    /// An empty cache.
    pub fn new(settings: &CacheSettings) -> Self {
        Self(Arc::new(sst::BlockCache::new(settings)))
    }

    /// Capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Changes the capacity; entries beyond it are evicted at once.
    pub fn set_capacity(&self, bytes: usize) {
        self.0.set_capacity(bytes);
    }

    /// Bytes in use, including overhead.
    pub fn usage(&self) -> usize {
        self.0.usage()
    }

    /// Bytes used for the hash tables and the eviction order. They stay when the entries go.
    pub fn overhead(&self) -> usize {
        self.0.overhead()
    }

    /// How many entries it has.
    pub fn entries(&self) -> usize {
        self.0.len()
    }

    /// Bytes of entries that values and iterators hold now.
    pub fn pinned_usage(&self) -> usize {
        self.0.pinned_usage()
    }

    /// Counters since the cache was created.
    pub fn statistics(&self) -> CacheStatistics {
        self.0.statistics()
    }

    pub(crate) fn shared(&self) -> &Arc<sst::BlockCache> {
        &self.0
    }
}

impl WriteBufferManager {
    /// As [`WriteBufferManager::new`]; memtables take their memory from what `cache` has for its
    /// entries.
    pub fn with_cache(buffer_size: u64, allow_stall: bool, cache: &BlockCache) -> Arc<Self> {
        let cache = cache.0.clone();
        Self::charging(buffer_size, allow_stall, move |bytes| {
            cache.reserve(usize::try_from(bytes).unwrap_or(usize::MAX));
        })
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
