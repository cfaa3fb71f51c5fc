//! Calls of the header for what there is not, where a binding needs the symbol. Where a call has a
//! place for an error, it says so; otherwise the opening of a database does, or nothing has an
//! effect.

use std::ffi::c_char;

use flagstone_rocksdb as rdb;

use crate::abi::{Array, Mut, Ref, Result, Tagged, Text, handles, make};
use crate::api::{c_api, c_settings, destroys};
use crate::cache::{CacheOptions, ClockCacheOptions};
use crate::db::{Db, Family};
use crate::env::Env;
use crate::options::Options;

/// A limit of the space that databases take, and of how fast files are removed.
pub struct SstFileManager {
    delete_rate_bytes_per_second: i64,
    max_trash_db_ratio: f64,
}

/// Where caches would have their memory from.
pub struct MemoryAllocator;

handles! { SstFileManager = "sst_file_manager", MemoryAllocator = "memory_allocator", }

destroys! {
    rocksdb_sst_file_manager_destroy: SstFileManager,
    rocksdb_memory_allocator_destroy: MemoryAllocator,
}

c_settings! { "rocksdb_sst_file_manager", SstFileManager, |o| {
    value i64, delete_rate_bytes_per_second: o.delete_rate_bytes_per_second;
    value f64, max_trash_db_ratio: o.max_trash_db_ratio;
} }

fn none<T>(what: &str) -> Result<T> {
    Err(rdb::Error::not_supported(what))
}

c_api! {
    fn rocksdb_sst_file_manager_create(_env: ?Env) -> *mut Tagged<SstFileManager> {
        make(SstFileManager { delete_rate_bytes_per_second: 0, max_trash_db_ratio: 0.25 })
    }

    fn rocksdb_options_set_sst_file_manager(o: &mut Options, manager: ?SstFileManager) {
        let why = manager.map(|_| rdb::Error::not_supported("SST file managers"));
        o.rdb.refuse("sst_file_manager", why);
    }

    fn rocksdb_sst_file_manager_set_max_allowed_space_usage(
        _manager: &SstFileManager, _bytes: u64
    ) {}

    fn rocksdb_sst_file_manager_set_compaction_buffer_size(
        _manager: &SstFileManager, _bytes: u64
    ) {}

    fn rocksdb_sst_file_manager_is_max_allowed_space_reached(_manager: &SstFileManager) -> bool {
        false
    }

    fn rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(
        _manager: &SstFileManager
    ) -> bool {
        false
    }

    fn rocksdb_sst_file_manager_get_total_size(_manager: &SstFileManager) -> u64 {
        0
    }

    fn rocksdb_sst_file_manager_get_total_trash_size(_manager: &SstFileManager) -> u64 {
        0
    }

    fn rocksdb_jemalloc_nodump_allocator_create(error) -> *mut Tagged<MemoryAllocator> {
        none("memory allocators")?
    }

    fn rocksdb_lru_cache_options_set_memory_allocator(
        _options: &CacheOptions, _allocator: ?MemoryAllocator
    ) {}

    fn rocksdb_hyper_clock_cache_options_set_memory_allocator(
        _options: &ClockCacheOptions, _allocator: ?MemoryAllocator
    ) {}

    fn rocksdb_open_and_trim_history(
        _options: &Options, _path: path, _len: i32, _names: Array<Text>,
        _families: Array<Ref<Options>>, _handles: Array<*mut Tagged<Family>>,
        _timestamp: *mut c_char, _timestamp_len: usize, error
    ) -> *mut Tagged<Db> {
        none("timestamps in keys")?
    }

    fn rocksdb_delete_file(_db: Mut<Db>, name: cstr) {
        // It has no place for an error.
        tracing::warn!(?name, "files are not deleted by name: use delete_file_in_range");
    }
}
