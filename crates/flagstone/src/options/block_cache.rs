//! A block cache that several databases share.

use std::fmt;
use std::sync::Arc;

use crate::cache::{CacheSettings, CacheStatistics};
use crate::sst;

/// Blocks of tables and values of blob files, of all databases whose options hold it: RocksDB's
/// `block_cache`, and its `blob_cache`.
///
/// Each database has entries of its own, even of a file that another has, too (a checkpoint's
/// tables are links). They leave the cache when the database is closed and no iterator or value is
/// left.
#[derive(Clone)]
pub struct BlockCache(Arc<sst::BlockCache>);

impl BlockCache {
    /// An empty cache.
    pub fn new(settings: &CacheSettings) -> Self {
        Self(Arc::new(sst::BlockCache::new(settings)))
    }

    /// The most that it holds, in bytes.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Changes that; what is too much leaves at once.
    pub fn set_capacity(&self, bytes: usize) {
        self.0.set_capacity(bytes);
    }

    /// What it holds, in bytes, with its overhead.
    pub fn usage(&self) -> usize {
        self.0.usage()
    }

    /// What it takes to find all that and to know which goes first, in bytes. It stays when the
    /// entries go.
    pub fn overhead(&self) -> usize {
        self.0.overhead()
    }

    /// The part of all entries that values and iterators hold now.
    pub fn pinned_usage(&self) -> usize {
        self.0.pinned_usage()
    }

    /// What it has done.
    pub fn statistics(&self) -> CacheStatistics {
        self.0.statistics()
    }

    pub(crate) fn shared(&self) -> &Arc<sst::BlockCache> {
        &self.0
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
