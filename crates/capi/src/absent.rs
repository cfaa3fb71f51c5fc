//! Calls of the header for what there is not, where a binding needs the symbol. Where a call has a
//! place for an error, it says so; otherwise the opening of a database does, or nothing has an
//! effect.

use flagstone_rocksdb as rdb;

use crate::abi::{Mut, Result, Tagged, handles};
use crate::api::{c_api, destroys};
use crate::cache::{CacheOptions, ClockCacheOptions};
use crate::db::Db;

/// Where caches would have their memory from.
pub struct MemoryAllocator;

handles! { MemoryAllocator = "memory_allocator", }

destroys! {
    rocksdb_memory_allocator_destroy: MemoryAllocator,
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

    fn rocksdb_delete_file(_db: Mut<Db>, name: cstr) {
        // It has no place for an error.
        tracing::warn!(?name, "files are not deleted by name: use delete_file_in_range");
    }
}
