//! Options that are several numbers, or objects, or set others.

use std::ffi::c_char;
use std::sync::Arc;

use flagstone::options::{
    ChecksumHandoff, CompressionType, DataPathList, FifoCompactionOptions, MemTableFactory,
    RateLimiter, RateLimiterMode, RateLimiterOptions, UniversalCompactionOptions,
};
use flagstone_rocksdb as rdb;

use crate::abi::{self, Array, Mut, Ref, Tagged, handles, make};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::cache::Cache;
use crate::convert::Choice;
use crate::options::Options;
use crate::refused::{Refused, Refuses, refuses};

/// A directory, and the bytes of tables that it should hold.
pub struct DbPath {
    path: String,
    target_size: u64,
}

/// How universal compaction merges.
#[derive(Default)]
pub struct Universal {
    engine: UniversalCompactionOptions,
    reduce_file_locking: bool,
    refused: Refused,
}

/// How FIFO compaction drops.
pub struct Fifo {
    engine: FifoCompactionOptions,
    allow_trivial_copy_when_change_temperature: bool,
    trivial_copy_buffer_size: u64,
}

impl Default for Fifo {
    fn default() -> Self {
        Self {
            engine: FifoCompactionOptions::default(),
            allow_trivial_copy_when_change_temperature: false,
            trivial_copy_buffer_size: 4096,
        }
    }
}

/// A limit of what is written, or why there is none.
pub struct Limiter(pub abi::Result<Arc<RateLimiter>>);

handles! {
    DbPath = "dbpath",
    Universal = "universal_compaction_options",
    Fifo = "fifo_compaction_options",
    Limiter = "ratelimiter",
}

refuses! { Universal: refused, }

/// RocksDB's numbers of kinds of files.
const WAL_FILE: i32 = 0;
const TABLE_FILE: i32 = 2;
const DESCRIPTOR_FILE: i32 = 3;
const BLOB_FILE: i32 = 10;
const KINDS_OF_FILES: i32 = 12;

/// The bit of a kind of files; none of one that there is not.
fn bit_of(file_type: i32) -> u32 {
    if (0..KINDS_OF_FILES).contains(&file_type) { 1 << file_type } else { 0 }
}

/// Changes the kinds of files whose writes have checksums. As in RocksDB, some have no effect.
fn hand_over(o: &mut Options, change: impl FnOnce(u32) -> u32) {
    let files = change(o.aside.handed_files);
    o.aside.handed_files = files;
    let has = |file_type| files & bit_of(file_type) != 0;
    o.rdb.db.checksum_handoff = ChecksumHandoff {
        wals: has(WAL_FILE),
        tables: has(TABLE_FILE),
        manifests: has(DESCRIPTOR_FILE),
        blobs: has(BLOB_FILE),
    };
}

creates! {
    rocksdb_universal_compaction_options_create: Universal,
    rocksdb_fifo_compaction_options_create: Fifo,
}

destroys! {
    rocksdb_dbpath_destroy: DbPath,
    rocksdb_universal_compaction_options_destroy: Universal,
    rocksdb_fifo_compaction_options_destroy: Fifo,
    rocksdb_ratelimiter_destroy: Limiter,
}

c_settings! { "rocksdb_universal_compaction_options", Universal, |o| {
    value i32, size_ratio: o.engine.size_ratio;
    value i32, min_merge_width: o.engine.min_merge_width;
    value i32, max_merge_width: o.engine.max_merge_width;
    value i32, max_size_amplification_percent: o.engine.max_size_amplification_percent;
    value i32, compression_size_percent: o.engine.compression_size_percent;
    choice i32, stop_style: o.engine.stop_style;
    value i32, max_read_amp: o.engine.max_read_amp;
    value u8, allow_trivial_move: o.engine.allow_trivial_move;
    value u8, incremental: o.engine.incremental;
    value u8, reduce_file_locking: o.reduce_file_locking;
} }

c_settings! { "rocksdb_fifo_compaction_options", Fifo, |o| {
    value u8, allow_compaction: o.engine.allow_compaction;
    value u64, max_table_files_size: o.engine.max_table_files_size;
    value u64, max_data_files_size: o.engine.max_data_files_size;
    value u8, use_kv_ratio_compaction: o.engine.use_kv_ratio_compaction;
    value u64, age_for_warm: o.engine.age_for_warm;
    value u8, allow_trivial_copy_when_change_temperature:
        o.allow_trivial_copy_when_change_temperature;
    value u64, trivial_copy_buffer_size: o.trivial_copy_buffer_size;
} }

/// A path for a list of directories.
fn paths(list: Array<Ref<DbPath>>, len: usize) -> abi::Result<DataPathList> {
    let paths: Vec<&DbPath> =
        list.slice(len)?.iter().map(|path| path.get()).collect::<abi::Result<_>>()?;
    let paths: Vec<_> = paths.iter().map(|path| (path.path.as_str(), path.target_size)).collect();
    Ok(DataPathList::of(&paths))
}

/// Compressions from an array of numbers.
fn compressions(numbers: &[i32]) -> Result<Vec<CompressionType>, i32> {
    numbers.iter().map(|number| CompressionType::from_number(*number).ok_or(*number)).collect()
}

fn limiter(rate: i64, period_us: i64, fairness: i32, mode: i32, auto_tuned: bool) -> Limiter {
    let number = |value: i64| u64::try_from(value).unwrap_or_default();
    let options = RateLimiterOptions {
        bytes_per_second: number(rate),
        refill_period_us: number(period_us),
        fairness: fairness.max(1) as u64,
        mode: RateLimiterMode::from_number(mode).unwrap_or_default(),
        auto_tuned,
    };
    Limiter(RateLimiter::new(options).map(Arc::new).map_err(rdb::Error::from))
}

/// The mode of limiters that limit what is written.
const WRITES_ONLY: i32 = 1;

c_api! {
    fn rocksdb_options_create_copy(o: &Options) -> *mut Tagged<Options> {
        make(o.clone())
    }

    fn rocksdb_get_options_from_string(
        base: &Options, text: str, new: Mut<Options>, error
    ) {
        let mut rdb = base.rdb.clone();
        let read = rdb.get_options_from_string(text)?;
        let new = new.get()?;
        *new = Options { rdb: read, aside: base.aside.clone() };
    }

    fn rocksdb_options_increase_parallelism(o: &mut Options, threads: i32) {
        o.rdb.increase_parallelism(threads);
    }

    fn rocksdb_options_optimize_for_point_lookup(o: &mut Options, block_cache_mb: u64) {
        o.rdb.optimize_for_point_lookup(block_cache_mb);
    }

    fn rocksdb_options_optimize_level_style_compaction(o: &mut Options, budget: u64) {
        o.rdb.optimize_level_style_compaction(budget as usize);
    }

    fn rocksdb_options_optimize_universal_style_compaction(o: &mut Options, budget: u64) {
        o.rdb.optimize_universal_style_compaction(budget as usize);
    }

    fn rocksdb_options_prepare_for_bulk_load(o: &mut Options) {
        o.rdb.prepare_for_bulk_load();
    }

    fn rocksdb_options_set_compression_options(
        o: &mut Options, window_bits: i32, level: i32, strategy: i32, max_dict_bytes: i32
    ) {
        o.rdb.set_compression_options(window_bits, level, strategy, max_dict_bytes);
    }

    fn rocksdb_options_set_bottommost_compression_options(
        o: &mut Options, window_bits: i32, level: i32, strategy: i32, max_dict_bytes: i32,
        enabled: flag
    ) {
        o.rdb.set_bottommost_compression_options(
            window_bits, level, strategy, max_dict_bytes, enabled);
    }

    fn rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(
        o: &mut Options, bytes: i32, enabled: flag
    ) {
        o.rdb.set_bottommost_zstd_max_train_bytes(bytes, enabled);
    }

    fn rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(
        o: &mut Options, value: flag, enabled: flag
    ) {
        let parameters = &mut o.rdb.db.cf.settings.bottommost_compression_opts;
        parameters.use_zstd_dict_trainer = value;
        parameters.enabled = enabled;
    }

    fn rocksdb_options_get_bottommost_compression_options_use_zstd_dict_trainer(
        o: &Options
    ) -> u8 {
        o.rdb.db.cf.settings.bottommost_compression_opts.use_zstd_dict_trainer.into()
    }

    fn rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(
        o: &mut Options, bytes: u64, enabled: flag
    ) {
        let parameters = &mut o.rdb.db.cf.settings.bottommost_compression_opts;
        parameters.max_dict_buffer_bytes = bytes;
        parameters.enabled = enabled;
    }

    fn rocksdb_options_set_compression_per_level(
        o: &mut Options, levels: Array<i32>, len: usize
    ) {
        match levels.slice(len).map(compressions) {
            Ok(Ok(types)) => {
                o.rdb.db.cf.settings.compression_per_level = types;
                o.accept("compression_per_level");
            }
            Ok(Err(number)) => o.refuse_number("compression_per_level", number),
            Err(error) => o.rdb.refuse("compression_per_level", Some(error)),
        }
    }

    fn rocksdb_options_set_min_level_to_compress(o: &mut Options, level: i32) {
        o.rdb.set_min_level_to_compress(level);
    }

    fn rocksdb_options_set_max_bytes_for_level_multiplier_additional(
        o: &mut Options, levels: Array<i32>, len: usize
    ) {
        match levels.slice(len) {
            Ok(levels) => o.rdb.set_max_bytes_for_level_multiplier_additional(levels),
            Err(error) => o.rdb.refuse("max_bytes_for_level_multiplier_additional", Some(error)),
        }
    }

    fn rocksdb_options_set_universal_compaction_options(o: &mut Options, universal: &Universal) {
        o.rdb.db.cf.settings.compaction_options_universal = universal.engine.clone();
        match universal.refused.first() {
            Some((name, number)) => o.refuse_number(name, number),
            None => o.accept("stop_style"),
        }
    }

    fn rocksdb_options_set_fifo_compaction_options(o: &mut Options, fifo: &Fifo) {
        o.rdb.db.cf.settings.compaction_options_fifo = fifo.engine.clone();
    }

    fn rocksdb_options_set_memtable_vector_rep(o: &mut Options) {
        o.rdb.db.cf.settings.memtable_factory = MemTableFactory::Vector;
    }

    fn rocksdb_options_set_hash_skip_list_rep(
        o: &mut Options, bucket_count: usize, _height: i32, _branching_factor: i32
    ) {
        o.rdb.set_memtable_factory(rdb::MemtableFactory::HashLinkList { bucket_count });
    }

    fn rocksdb_options_set_hash_link_list_rep(o: &mut Options, bucket_count: usize) {
        o.rdb.set_memtable_factory(rdb::MemtableFactory::HashLinkList { bucket_count });
    }

    fn rocksdb_options_add_compact_on_deletion_collector_factory(
        o: &mut Options, window_size: usize, trigger: usize
    ) {
        o.rdb.add_compact_on_deletion_collector_factory(window_size, trigger, 0.0);
    }

    fn rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(
        o: &mut Options, window_size: usize, trigger: usize, ratio: f64
    ) {
        o.rdb.add_compact_on_deletion_collector_factory(window_size, trigger, ratio);
    }

    fn rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(
        o: &mut Options, window_size: usize, trigger: usize, ratio: f64, min_file_size: u64
    ) {
        o.rdb.add_compact_on_deletion(window_size, trigger, ratio, min_file_size);
    }

    fn rocksdb_dbpath_create(path: cstr, target_size: u64) -> *mut Tagged<DbPath> {
        make(DbPath { path: path.to_string_lossy().into_owned(), target_size })
    }

    fn rocksdb_options_set_db_paths(o: &mut Options, list: Array<Ref<DbPath>>, len: usize) {
        match paths(list, len) {
            Ok(paths) => o.rdb.db.db.db_paths = paths,
            Err(error) => o.rdb.refuse("db_paths", Some(error)),
        }
    }

    fn rocksdb_options_set_cf_paths(o: &mut Options, list: Array<Ref<DbPath>>, len: usize) {
        match paths(list, len) {
            Ok(paths) => o.rdb.db.cf.settings.cf_paths = paths,
            Err(error) => o.rdb.refuse("cf_paths", Some(error)),
        }
    }

    fn rocksdb_ratelimiter_create(
        rate: i64, period_us: i64, fairness: i32
    ) -> *mut Tagged<Limiter> {
        make(limiter(rate, period_us, fairness, WRITES_ONLY, false))
    }

    fn rocksdb_ratelimiter_create_auto_tuned(
        rate: i64, period_us: i64, fairness: i32
    ) -> *mut Tagged<Limiter> {
        make(limiter(rate, period_us, fairness, WRITES_ONLY, true))
    }

    fn rocksdb_ratelimiter_create_with_mode(
        rate: i64, period_us: i64, fairness: i32, mode: i32, auto_tuned: bool
    ) -> *mut Tagged<Limiter> {
        make(limiter(rate, period_us, fairness, mode, auto_tuned))
    }

    fn rocksdb_options_set_ratelimiter(o: &mut Options, limiter: ?Limiter) {
        let shared = limiter.map(|limiter| limiter.0.clone()).transpose();
        o.rdb.refuse("rate_limiter", shared.as_ref().err().cloned());
        o.rdb.db.rate_limiter = shared.unwrap_or_default();
    }

    fn rocksdb_options_checksum_handoff_file_types_clear(o: &mut Options) {
        hand_over(o, |_| 0);
    }

    fn rocksdb_options_checksum_handoff_file_types_add(o: &mut Options, file_type: i32) {
        hand_over(o, |before| before | bit_of(file_type));
    }

    fn rocksdb_options_checksum_handoff_file_types_remove(o: &mut Options, file_type: i32) {
        hand_over(o, |before| before & !bit_of(file_type));
    }

    fn rocksdb_options_checksum_handoff_file_types_contains(
        o: &mut Options, file_type: i32
    ) -> u8 {
        (o.aside.handed_files & bit_of(file_type) != 0).into()
    }

    fn rocksdb_options_checksum_handoff_file_types_count(o: &mut Options) -> usize {
        o.aside.handed_files.count_ones() as usize
    }

    fn rocksdb_options_set_row_cache(o: &mut Options, cache: &Cache) {
        o.rdb.set_row_cache(&cache.0);
    }

    fn rocksdb_options_set_blob_cache(o: &mut Options, cache: &Cache) {
        o.rdb.set_blob_cache(&cache.0);
    }

    fn rocksdb_options_enable_statistics(o: &mut Options) {
        o.rdb.enable_statistics();
    }

    fn rocksdb_options_statistics_get_string(o: &Options) -> *mut c_char {
        o.rdb.get_statistics().map_or(std::ptr::null_mut(), abi::copied_text)
    }
}
