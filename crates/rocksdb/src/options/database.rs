//! Setters of a database: opening, directories, threads, files and limits.

use std::path::Path;
use std::sync::Arc;

use flagstone::options::{DataPathList, RateLimiter, RateLimiterMode, RateLimiterOptions};

use super::{Options, SstFileManager, WriteBufferManager};
use crate::cache::Cache;
use crate::env::Env;
use crate::error::Error;

/// A directory for tables, and the bytes of them that it should hold.
pub struct DBPath {
    path: String,
    target_size: u64,
}

impl DBPath {
    /// The directory `path` for `target_size` bytes.
    ///
    /// # Errors
    /// `Invalid argument` for a path that is no UTF-8.
    pub fn new<P: AsRef<Path>>(path: P, target_size: u64) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = path.to_str().ok_or_else(|| {
            Error::invalid_argument(format!("path '{}' is no UTF-8", path.display()))
        })?;
        Ok(Self { path: text.to_string(), target_size })
    }
}

fn list(paths: &[DBPath]) -> DataPathList {
    let paths: Vec<_> = paths.iter().map(|path| (path.path.as_str(), path.target_size)).collect();
    DataPathList::of(&paths)
}

impl Options {
    /// Makes the database if there is none. Default: false.
    pub fn create_if_missing(&mut self, create_if_missing: bool) {
        self.db.create_if_missing = create_if_missing;
    }

    /// Makes the column families that are named at open and do not exist. Default: false.
    pub fn create_missing_column_families(&mut self, create_missing_cfs: bool) {
        self.db.create_missing_column_families = create_missing_cfs;
    }

    /// Refuses to open a database that exists. Default: false.
    pub fn set_error_if_exists(&mut self, enabled: bool) {
        self.db.error_if_exists = enabled;
    }

    /// Checks at open that all files are there, with the sizes that the MANIFEST says. Default:
    /// true.
    pub fn set_paranoid_checks(&mut self, enabled: bool) {
        self.db.paranoid_checks = enabled;
    }

    /// Up to four directories for tables, the fastest first. Default: that of the database.
    pub fn set_db_paths(&mut self, paths: &[DBPath]) {
        self.db.db_paths = list(paths);
    }

    /// As [`set_db_paths`](Self::set_db_paths), for the column family alone. Default: those of the
    /// database.
    pub fn set_cf_paths(&mut self, paths: &[DBPath]) {
        self.db.cf.cf_paths = list(paths);
    }

    /// The environment of the database. Default: the operating system's.
    pub fn set_env(&mut self, env: &Env) {
        self.db.env = env.engine.clone();
        self.env = Some(env.clone());
    }

    /// Flushes and compactions that run at a time; the same as
    /// [`set_max_background_jobs`](Self::set_max_background_jobs).
    pub fn increase_parallelism(&mut self, parallelism: i32) {
        self.set_max_background_jobs(parallelism);
    }

    /// Flushes and compactions that run at a time, at least one. Default: 2.
    pub fn set_max_background_jobs(&mut self, jobs: i32) {
        self.db.max_background_jobs = jobs;
    }

    /// Compactions that run at a time, at least one; negative leaves it to `max_background_jobs`.
    /// Default: -1.
    #[deprecated(note = "it follows from max_background_jobs")]
    pub fn set_max_background_compactions(&mut self, n: i32) {
        self.db.max_background_compactions = if n < 0 { -1 } else { n.max(1) };
    }

    /// Flushes that run at a time, at least one; negative leaves it to `max_background_jobs`.
    /// Default: -1.
    #[deprecated(note = "it follows from max_background_jobs")]
    pub fn set_max_background_flushes(&mut self, n: i32) {
        self.db.max_background_flushes = if n < 0 { -1 } else { n.max(1) };
    }

    /// Parts that one compaction may be split into, each with a thread of its own. Default: 1.
    pub fn set_max_subcompactions(&mut self, num: u32) {
        self.db.max_subcompactions = num;
    }

    /// Table and blob files that are open at a time, at least 20; -1 for no limit. Default: -1.
    pub fn set_max_open_files(&mut self, nfiles: i32) {
        self.db.max_open_files = nfiles.max(-1);
    }

    /// Has no effect: a table is opened at its first use.
    pub fn set_max_file_opening_threads(&mut self, nthreads: i32) {
        self.note("max_file_opening_threads", nthreads);
    }

    /// Has no effect: a sync makes all durable that is needed to read the bytes. `fsync` would add
    /// times of the file.
    pub fn set_use_fsync(&mut self, useit: bool) {
        self.note("use_fsync", useit);
    }

    /// What [`set_use_fsync`](Self::set_use_fsync) has set. Default: false.
    pub fn get_use_fsync(&self) -> bool {
        self.is_noted("use_fsync")
    }

    /// Bytes of a new table or blob file after which the system is asked to write it to the disk; 0
    /// for never, but 1 MiB for flushes, and for all with a rate limiter. Default: 0.
    pub fn set_bytes_per_sync(&mut self, nbytes: u64) {
        self.db.bytes_per_sync = nbytes;
    }

    /// Bytes that are gathered before they are written to a file. Default: 1 MiB.
    pub fn set_writable_file_max_buffer_size(&mut self, nbytes: u64) {
        self.db.writable_file_max_buffer_size = nbytes;
    }

    /// Reads tables and blob files around the system's cache. Default: false.
    pub fn set_use_direct_reads(&mut self, enabled: bool) {
        self.db.use_direct_reads = enabled;
    }

    /// Flushes and compactions write, and compactions read, around the system's cache. Default:
    /// false.
    pub fn set_use_direct_io_for_flush_and_compaction(&mut self, enabled: bool) {
        self.db.use_direct_io_for_flush_and_compaction = enabled;
    }

    /// Whether files go through the system's cache.
    #[deprecated(note = "see set_use_direct_reads and set_use_direct_io_for_flush_and_compaction")]
    pub fn set_allow_os_buffer(&mut self, is_allow: bool) {
        self.set_use_direct_reads(!is_allow);
        self.set_use_direct_io_for_flush_and_compaction(!is_allow);
    }

    /// Reads tables and blob files through memory mappings. Default: false.
    pub fn set_allow_mmap_reads(&mut self, is_enabled: bool) {
        self.db.allow_mmap_reads = is_enabled;
    }

    /// Has no effect: tables are not mapped to be written. The WAL is, where the file system can.
    pub fn set_allow_mmap_writes(&mut self, is_enabled: bool) {
        self.note("allow_mmap_writes", is_enabled);
    }

    /// Has no effect: files are always closed on `exec`.
    pub fn set_is_fd_close_on_exec(&mut self, enabled: bool) {
        self.note("is_fd_close_on_exec", enabled);
    }

    /// Has no effect: the system is told how each file is read.
    pub fn set_advise_random_on_open(&mut self, advise: bool) {
        self.note("advise_random_on_open", advise);
    }

    /// Bytes of each table that a compaction reads at once; 0 leaves it to the engine. Default: 2
    /// MiB.
    pub fn set_compaction_readahead_size(&mut self, compaction_readahead_size: usize) {
        self.db.compaction_readahead_size = compaction_readahead_size as u64;
    }

    /// Has no effect: a file is removed when its last reader is gone.
    pub fn set_delete_obsolete_files_period_micros(&mut self, micros: u64) {
        self.note("delete_obsolete_files_period_micros", micros);
    }

    /// Has no effect: obsolete files are removed by threads in the background anyway.
    pub fn set_avoid_unnecessary_blocking_io(&mut self, val: bool) {
        self.note("avoid_unnecessary_blocking_io", val);
    }

    /// Has no effect: open files are found without a lock.
    pub fn set_table_cache_num_shard_bits(&mut self, nbits: i32) {
        self.note("table_cache_numshardbits", nbits);
    }

    /// Has no effect: locks spin for a while before they sleep.
    pub fn set_use_adaptive_mutex(&mut self, enabled: bool) {
        self.note("use_adaptive_mutex", enabled);
    }

    /// Has no effect: what compactions go by stands in the MANIFEST.
    pub fn set_skip_stats_update_on_db_open(&mut self, skip: bool) {
        self.note("skip_stats_update_on_db_open", skip);
    }

    /// Bytes of the memtables of all families together, at half of which the largest are flushed,
    /// and at all of which writers wait; 0 for no common limit. Default: 0.
    pub fn set_db_write_buffer_size(&mut self, size: usize) {
        self.db.db_write_buffer_size = size as u64;
    }

    /// Limits the memtables of all databases that have this manager. Default: none.
    pub fn set_write_buffer_manager(&mut self, write_buffer_manager: &WriteBufferManager) {
        self.write_buffer_manager = Some(write_buffer_manager.clone());
    }

    /// Limits the space of all databases that have this manager, and the rate at which their
    /// obsolete files are removed. Default: none.
    pub fn set_sst_file_manager(&mut self, sst_file_manager: &SstFileManager) {
        self.sst_file_manager = Some(sst_file_manager.clone());
    }

    /// Bytes a second that flushes and compactions may write. `refill_period_us` is how often, in
    /// microseconds, bytes are given out; in one of `fairness` periods lower priorities come first.
    /// Default: no limit.
    ///
    /// A rate or period that is not positive, or a period above an hour, fails the opening.
    pub fn set_ratelimiter(
        &mut self,
        rate_bytes_per_sec: i64,
        refill_period_us: i64,
        fairness: i32,
    ) {
        self.limit_rate(rate_bytes_per_sec, refill_period_us, fairness, false);
    }

    /// As [`set_ratelimiter`](Self::set_ratelimiter); the rate falls while there is less to do, to
    /// a twentieth at least.
    pub fn set_auto_tuned_ratelimiter(
        &mut self,
        rate_bytes_per_sec: i64,
        refill_period_us: i64,
        fairness: i32,
    ) {
        self.limit_rate(rate_bytes_per_sec, refill_period_us, fairness, true);
    }

    fn limit_rate(&mut self, rate: i64, refill_period_us: i64, fairness: i32, auto_tuned: bool) {
        let limiter = RateLimiter::new(RateLimiterOptions {
            bytes_per_second: rate.try_into().unwrap_or(0),
            refill_period_us: refill_period_us.try_into().unwrap_or(0),
            fairness: fairness.max(1) as u64,
            mode: RateLimiterMode::WritesOnly,
            auto_tuned,
        });
        match limiter {
            Ok(limiter) => {
                self.db.rate_limiter = Some(Arc::new(limiter));
                self.refuse("rate_limiter", None);
            }
            Err(error) => self.refuse("rate_limiter", Some(error.into())),
        }
    }

    /// A cache of rows, for lookups of keys that are read often and lie far apart. Default: none.
    pub fn set_row_cache(&mut self, cache: &Cache) {
        self.db.row_cache = Some(cache.engine.clone());
    }

    /// Keeps the last level for tables that are ingested below all others. Default: false.
    pub fn set_allow_ingest_behind(&mut self, val: bool) {
        self.db.allow_ingest_behind = val;
    }
}
