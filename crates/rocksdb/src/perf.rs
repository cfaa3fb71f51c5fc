//! What single operations of a thread cost, and what databases and caches hold in memory.

use crate::cache::Cache;
use crate::db::{DB, DBCommon, DBInner, ThreadMode};
use crate::error::Error;
use crate::store::Store;
use crate::transactions::TransactionDB;

pub use crate::perf_context::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};

/// What databases and caches hold in memory, in bytes.
pub struct MemoryUsageStats {
    /// Memtables, with those that only iterators keep.
    pub mem_table_total: u64,
    /// Memtables that are not flushed yet.
    pub mem_table_unflushed: u64,
    /// Indexes and filters of open tables, outside the cache.
    pub mem_table_readers_total: u64,
    /// Caches.
    pub cache_total: u64,
}

/// What databases and caches held in memory at one moment.
pub struct MemoryUsage {
    stats: MemoryUsageStats,
}

impl MemoryUsage {
    /// Bytes of memtables, with those that only iterators keep.
    pub fn approximate_mem_table_total(&self) -> u64 {
        self.stats.mem_table_total
    }

    /// Bytes of memtables that are not flushed yet.
    pub fn approximate_mem_table_unflushed(&self) -> u64 {
        self.stats.mem_table_unflushed
    }

    /// Bytes of indexes and filters of open tables, outside the cache.
    pub fn approximate_mem_table_readers_total(&self) -> u64 {
        self.stats.mem_table_readers_total
    }

    /// Bytes of caches.
    pub fn approximate_cache_total(&self) -> u64 {
        self.stats.cache_total
    }
}

/// The databases and caches that a [`MemoryUsage`] is about.
pub struct MemoryUsageBuilder<'a> {
    stores: Vec<&'a Store>,
    caches: Vec<&'a Cache>,
}

impl<'a> MemoryUsageBuilder<'a> {
    /// None yet.
    ///
    /// # Errors
    /// None.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { stores: Vec::new(), caches: Vec::new() })
    }

    /// Adds a database.
    pub fn add_db<T: ThreadMode, D: DBInner>(&mut self, db: &'a DBCommon<T, D>) {
        self.stores.push(db.inner.inner());
    }

    /// Adds a database whose transactions lock their keys.
    pub fn add_tx_db<T: ThreadMode>(&mut self, db: &'a TransactionDB<T>) {
        self.add_db(db);
    }

    /// Adds a cache.
    pub fn add_cache(&mut self, cache: &'a Cache) {
        self.caches.push(cache);
    }

    /// What they hold now.
    ///
    /// # Errors
    /// None.
    pub fn build(&self) -> Result<MemoryUsage, Error> {
        let sum = |property: &str| -> u64 {
            let of = |store: &&Store| store.db().aggregated_int_property(property).unwrap_or(0);
            self.stores.iter().map(of).sum()
        };
        let stats = MemoryUsageStats {
            mem_table_total: sum("rocksdb.size-all-mem-tables"),
            mem_table_unflushed: sum("rocksdb.cur-size-all-mem-tables"),
            mem_table_readers_total: sum("rocksdb.estimate-table-readers-mem"),
            cache_total: self.caches.iter().map(|cache| cache.get_usage() as u64).sum(),
        };
        Ok(MemoryUsage { stats })
    }
}

/// What databases and caches hold in memory now.
///
/// # Errors
/// None.
pub fn get_memory_usage_stats(
    dbs: Option<&[&DB]>,
    caches: Option<&[&Cache]>,
) -> Result<MemoryUsageStats, Error> {
    let mut builder = MemoryUsageBuilder::new()?;
    dbs.into_iter().flatten().for_each(|db| builder.add_db(db));
    caches.into_iter().flatten().for_each(|cache| builder.add_cache(cache));
    Ok(builder.build()?.stats)
}
