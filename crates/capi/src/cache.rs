//! Caches, and one limit for the memtables of several databases.

use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::{engine_cache, engine_manager};

use crate::abi::{Tagged, handles, make};
use crate::api::{c_api, creates, destroys};
use crate::options::Options;

/// A cache that databases share.
#[derive(Clone)]
pub struct Cache(pub rdb::Cache);

/// How a cache is made.
#[derive(Default)]
pub struct CacheOptions {
    capacity: usize,
    options: rdb::LruCacheOptions,
}

/// The same for what is a clock cache in RocksDB.
pub struct ClockCacheOptions {
    capacity: usize,
    num_shard_bits: i32,
}

/// A limit of memtables.
pub struct Manager(rdb::WriteBufferManager);

handles! {
    Cache = "cache",
    CacheOptions = "lru_cache_options",
    ClockCacheOptions = "hyper_clock_cache_options",
    Manager = "write_buffer_manager",
}

creates! { rocksdb_lru_cache_options_create: CacheOptions, }

destroys! {
    rocksdb_cache_destroy: Cache,
    rocksdb_lru_cache_options_destroy: CacheOptions,
    rocksdb_hyper_clock_cache_options_destroy: ClockCacheOptions,
    rocksdb_write_buffer_manager_destroy: Manager,
}

fn lru(capacity: usize) -> *mut Tagged<Cache> {
    make(Cache(rdb::Cache::new_lru_cache(capacity)))
}

c_api! {
    fn rocksdb_cache_create_lru(capacity: usize) -> *mut Tagged<Cache> {
        lru(capacity)
    }

    fn rocksdb_cache_create_lru_with_strict_capacity_limit(capacity: usize) -> *mut Tagged<Cache> {
        // All caches keep to their capacity.
        lru(capacity)
    }

    fn rocksdb_cache_create_lru_opts(options: &CacheOptions) -> *mut Tagged<Cache> {
        make(Cache(rdb::Cache::new_lru_cache_opts(&options.options)))
    }

    fn rocksdb_lru_cache_options_set_capacity(options: &mut CacheOptions, capacity: usize) {
        options.capacity = capacity;
        options.options.set_capacity(capacity);
    }

    fn rocksdb_lru_cache_options_set_num_shard_bits(options: &mut CacheOptions, bits: i32) {
        options.options.set_num_shard_bits(bits);
    }

    fn rocksdb_cache_create_hyper_clock(capacity: usize, _charge: usize) -> *mut Tagged<Cache> {
        lru(capacity)
    }

    fn rocksdb_cache_create_hyper_clock_opts(options: &ClockCacheOptions) -> *mut Tagged<Cache> {
        let mut lru = rdb::LruCacheOptions::default();
        lru.set_capacity(options.capacity);
        lru.set_num_shard_bits(options.num_shard_bits);
        make(Cache(rdb::Cache::new_lru_cache_opts(&lru)))
    }

    fn rocksdb_hyper_clock_cache_options_create(
        capacity: usize, _charge: usize
    ) -> *mut Tagged<ClockCacheOptions> {
        make(ClockCacheOptions { capacity, num_shard_bits: -1 })
    }

    fn rocksdb_hyper_clock_cache_options_set_capacity(
        options: &mut ClockCacheOptions, capacity: usize
    ) {
        options.capacity = capacity;
    }

    fn rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(
        _options: &mut ClockCacheOptions, _charge: usize
    ) {}

    fn rocksdb_hyper_clock_cache_options_set_num_shard_bits(
        options: &mut ClockCacheOptions, bits: i32
    ) {
        options.num_shard_bits = bits;
    }

    fn rocksdb_cache_set_capacity(cache: &Cache, capacity: usize) {
        cache.0.clone().set_capacity(capacity);
    }

    fn rocksdb_cache_get_capacity(cache: &Cache) -> usize {
        engine_cache(&cache.0).capacity()
    }

    fn rocksdb_cache_get_usage(cache: &Cache) -> usize {
        cache.0.get_usage()
    }

    fn rocksdb_cache_get_pinned_usage(cache: &Cache) -> usize {
        cache.0.get_pinned_usage()
    }

    fn rocksdb_cache_get_occupancy_count(cache: &Cache) -> usize {
        engine_cache(&cache.0).entries()
    }

    fn rocksdb_cache_get_table_address_count(cache: &Cache) -> usize {
        engine_cache(&cache.0).entries()
    }

    fn rocksdb_cache_disown_data(_cache: &Cache) {}

    fn rocksdb_write_buffer_manager_create(size: usize, allow_stall: bool) -> *mut Tagged<Manager> {
        make(Manager(rdb::WriteBufferManager::new_write_buffer_manager(size, allow_stall)))
    }

    fn rocksdb_write_buffer_manager_create_with_cache(
        size: usize, cache: &Cache, allow_stall: bool
    ) -> *mut Tagged<Manager> {
        make(Manager(rdb::WriteBufferManager::new_write_buffer_manager_with_cache(
            size, allow_stall, cache.0.clone())))
    }

    fn rocksdb_write_buffer_manager_enabled(manager: &Manager) -> bool {
        manager.0.enabled()
    }

    fn rocksdb_write_buffer_manager_cost_to_cache(manager: &Manager) -> bool {
        engine_manager(&manager.0).cost_to_cache()
    }

    fn rocksdb_write_buffer_manager_memory_usage(manager: &Manager) -> usize {
        manager.0.get_usage()
    }

    fn rocksdb_write_buffer_manager_mutable_memtable_memory_usage(manager: &Manager) -> usize {
        engine_manager(&manager.0).mutable_memtable_memory_usage() as usize
    }

    fn rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(manager: &Manager) -> usize {
        engine_manager(&manager.0).charged_to_cache() as usize
    }

    fn rocksdb_write_buffer_manager_buffer_size(manager: &Manager) -> usize {
        manager.0.get_buffer_size()
    }

    fn rocksdb_write_buffer_manager_set_buffer_size(manager: &Manager, size: usize) {
        manager.0.set_buffer_size(size);
    }

    fn rocksdb_write_buffer_manager_set_allow_stall(manager: &Manager, allow_stall: bool) {
        manager.0.set_allow_stall(allow_stall);
    }

    fn rocksdb_options_set_write_buffer_manager(o: &mut Options, manager: &Manager) {
        o.rdb.set_write_buffer_manager(&manager.0);
    }
}
