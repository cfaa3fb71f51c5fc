//! Environments: the operating system's, and files in memory.
//!
//! Each database has threads of its own, so that the sizes of pools are only kept to be asked for.

use std::sync::atomic::{AtomicI32, Ordering};

use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::engine_env;

use crate::abi::{Tagged, handles, make};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::options::Options;
use crate::options_groups::Limiter;

/// An environment.
pub struct Env {
    pub(crate) rdb: rdb::Env,
    /// Sizes of pools, by [`Pool`].
    pools: [AtomicI32; 3],
}

#[derive(Clone, Copy)]
enum Pool {
    Low,
    High,
    Bottom,
}

/// Options of the files of a table that is written outside of a database; none has an effect.
pub struct EnvOptions {
    flags: [bool; 8],
    bytes_per_sync: u64,
    compaction_readahead_size: usize,
    writable_file_max_buffer_size: usize,
}

impl Default for EnvOptions {
    fn default() -> Self {
        Self {
            flags: [false, true, false, false, true, true, false, true],
            bytes_per_sync: 0,
            compaction_readahead_size: 0,
            writable_file_max_buffer_size: 1 << 20,
        }
    }
}

handles! { Env = "env", EnvOptions = "envoptions", }
creates! { rocksdb_envoptions_create: EnvOptions, }
destroys! { rocksdb_env_destroy: Env, rocksdb_envoptions_destroy: EnvOptions, }

c_settings! { "rocksdb_envoptions", EnvOptions, |o| {
    value u8, use_mmap_reads: o.flags[0];
    value u8, use_mmap_writes: o.flags[1];
    value u8, use_direct_reads: o.flags[2];
    value u8, use_direct_writes: o.flags[3];
    value u8, allow_fallocate: o.flags[4];
    value u8, fd_cloexec: o.flags[5];
    value u8, strict_bytes_per_sync: o.flags[6];
    value u8, fallocate_with_keep_size: o.flags[7];
    value u64, bytes_per_sync: o.bytes_per_sync;
    value usize, compaction_readahead_size: o.compaction_readahead_size;
    value usize, writable_file_max_buffer_size: o.writable_file_max_buffer_size;
} }

impl Env {
    fn of(rdb: rdb::Env) -> Self {
        Self { rdb, pools: [1, 1, 0].map(AtomicI32::new) }
    }

    fn set(&self, pool: Pool, threads: i32) {
        self.pools[pool as usize].store(threads, Ordering::Relaxed);
    }

    fn size(&self, pool: Pool) -> i32 {
        self.pools[pool as usize].load(Ordering::Relaxed)
    }
}

/// Environments are made without anything that can fail.
fn made(env: Result<rdb::Env, rdb::Error>) -> *mut Tagged<Env> {
    env.map_or(std::ptr::null_mut(), |env| make(Env::of(env)))
}

c_api! {
    fn rocksdb_create_default_env() -> *mut Tagged<Env> {
        made(rdb::Env::new())
    }

    fn rocksdb_create_mem_env() -> *mut Tagged<Env> {
        made(rdb::Env::mem_env())
    }

    fn rocksdb_options_set_env(o: &mut Options, env: ?Env) {
        if let Some(env) = env {
            o.rdb.set_env(&env.rdb);
        }
    }

    fn rocksdb_env_set_background_threads(env: &Env, threads: i32) {
        env.set(Pool::Low, threads);
    }

    fn rocksdb_env_get_background_threads(env: &Env) -> i32 {
        env.size(Pool::Low)
    }

    fn rocksdb_env_set_low_priority_background_threads(env: &Env, threads: i32) {
        env.set(Pool::Low, threads);
    }

    fn rocksdb_env_get_low_priority_background_threads(env: &Env) -> i32 {
        env.size(Pool::Low)
    }

    fn rocksdb_env_set_high_priority_background_threads(env: &Env, threads: i32) {
        env.set(Pool::High, threads);
    }

    fn rocksdb_env_get_high_priority_background_threads(env: &Env) -> i32 {
        env.size(Pool::High)
    }

    fn rocksdb_env_set_bottom_priority_background_threads(env: &Env, threads: i32) {
        env.set(Pool::Bottom, threads);
    }

    fn rocksdb_env_get_bottom_priority_background_threads(env: &Env) -> i32 {
        env.size(Pool::Bottom)
    }

    fn rocksdb_create_dir_if_missing(env: &Env, path: path, error) {
        engine_env(&env.rdb).fs.create_directory(path)?
    }

    fn rocksdb_envoptions_set_rate_limiter(_o: &mut EnvOptions, _limiter: ?Limiter) {}

    fn rocksdb_env_join_all_threads(_env: &Env) {}

    fn rocksdb_env_lower_thread_pool_io_priority(env: &Env) {
        env.rdb.clone().lower_thread_pool_io_priority();
    }

    fn rocksdb_env_lower_high_priority_thread_pool_io_priority(env: &Env) {
        env.rdb.clone().lower_high_priority_thread_pool_io_priority();
    }

    fn rocksdb_env_lower_thread_pool_cpu_priority(env: &Env) {
        env.rdb.clone().lower_thread_pool_cpu_priority();
    }

    fn rocksdb_env_lower_high_priority_thread_pool_cpu_priority(env: &Env) {
        env.rdb.clone().lower_high_priority_thread_pool_cpu_priority();
    }
}
