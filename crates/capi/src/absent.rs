//! Calls of the header for what there is not, where a binding needs the symbol. Where a call has a
//! place for an error, it says so; otherwise the opening of a database does, or nothing has an
//! effect.

use flagstone_rocksdb as rdb;

use crate::abi::{Mut, Result, Tagged, handles};
use crate::api::{c_api, destroys};
use crate::cache::{CacheOptions, ClockCacheOptions};
use crate::compaction_service::Override;
use crate::db::Db;
use crate::options::Options;

/// Where caches would have their memory from.
pub struct MemoryAllocator;

/// What would give tables properties of a program's. The header has no function that makes one.
pub struct CollectorFactory;

handles! {
    MemoryAllocator = "memory_allocator",
    CollectorFactory = "table_properties_collector_factory",
}

destroys! {
    rocksdb_memory_allocator_destroy: MemoryAllocator,
    rocksdb_table_properties_collector_factory_destroy: CollectorFactory,
}

fn none<T>(what: &str) -> Result<T> {
    Err(rdb::Error::not_supported(what))
}

c_api! {
    fn rocksdb_jemalloc_nodump_allocator_create(error) -> *mut Tagged<MemoryAllocator> {
        none("memory allocators")?
    }

    fn rocksdb_lru_cache_options_set_memory_allocator(
        _options: &CacheOptions, _allocator: ?MemoryAllocator
    ) {}

    fn rocksdb_hyper_clock_cache_options_set_memory_allocator(
        _options: &ClockCacheOptions, _allocator: ?MemoryAllocator
    ) {}

    fn rocksdb_options_add_table_properties_collector_factory(
        _o: &mut Options, _factory: ?CollectorFactory
    ) {}

    fn rocksdb_compaction_service_options_override_add_table_properties_collector_factory(
        _o: &mut Override, _factory: ?CollectorFactory
    ) {}

    fn rocksdb_delete_file(_db: Mut<Db>, name: cstr) {
        // It has no place for an error.
        tracing::warn!(?name, "files are not deleted by name: use delete_file_in_range");
    }
}
