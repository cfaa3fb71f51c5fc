use std::path::Path;
use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::read_file;
use flagstone::options as engine;

use crate::cache::Cache;
use crate::env::Env;
use crate::error::ErrorKind;
use crate::options::{
    BlockBasedIndexType, BlockBasedOptions, MemtableFactory, Opened, Opening, Options,
    SstFileManager, WriteBufferManager,
};
use crate::statistics::{Histogram, Ticker};

/// Options of a new database in memory.
fn in_memory() -> (Options, Env) {
    let env = Env::mem_env().unwrap();
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_env(&env);
    (options, env)
}

fn open(options: &Options, path: &str) -> (Opened, Db) {
    let opening = Opening::new(options, Path::new(path), &[("default", options)]).unwrap();
    let families: Vec<_> =
        opening.families().iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    let db = Db::open_with_families(path, opening.options(), &families).unwrap();
    (opening.opened(&db), db)
}

fn refusal(options: &Options) -> crate::error::Error {
    match Opening::new(options, Path::new("/db"), &[("default", options)]) {
        Ok(_) => panic!("it was taken"),
        Err(error) => error,
    }
}

#[test]
fn what_cannot_be_had_fails_the_opening_until_it_is_taken_back() {
    let (mut options, _) = in_memory();
    options.set_ratelimiter(0, 1000, 1);
    assert_eq!(refusal(&options).kind(), ErrorKind::InvalidArgument);
    options.set_auto_tuned_ratelimiter(1_024_000, 1000, 1);
    let (opened, db) = open(&options, "/db");
    assert!(db.options().rate_limiter.is_some());
    drop((opened, db));
}

#[test]
fn settings_that_do_not_fit_together_are_mended_as_in_rocksdb() {
    let (mut options, _) = in_memory();
    options.set_memtable_factory(MemtableFactory::HashSkipList {
        bucket_count: 9,
        height: 4,
        branching_factor: 4,
    });
    let mut tables = BlockBasedOptions::default();
    tables.set_partition_filters(true);
    options.set_block_based_table_factory(&tables);
    options.set_max_write_buffer_number(0);
    options.set_write_buffer_size(1);
    options.set_wal_dir("/db/");
    let opening = Opening::new(&options, Path::new("/db"), &[("default", &options)]).unwrap();
    let engine = opening.options();
    assert_eq!(engine.cf.memtable_factory, engine::MemTableFactory::BTree);
    assert!(!engine.cf.table.partition_filters);
    assert_eq!(engine.cf.max_write_buffer_number, 1);
    assert_eq!(engine.cf.write_buffer_size, 64 << 10);
    assert_eq!(engine.wal_dir, "");
    assert_eq!(opening.families()[0].1.table, engine.cf.table);

    tables.set_index_type(BlockBasedIndexType::HashSearch);
    tables.set_index_block_restart_interval(9);
    options.set_block_based_table_factory(&tables);
    let family = options.engine_family().unwrap();
    assert_eq!(family.table.index_block_restart_interval, 1);
}

#[test]
fn the_block_cache_is_that_of_the_default_family_or_of_another() {
    let (options, _) = in_memory();
    let with_cache = |bytes| {
        let mut tables = BlockBasedOptions::default();
        tables.set_block_cache(&Cache::new_lru_cache(bytes));
        let mut options = Options::default();
        options.set_block_based_table_factory(&tables);
        options
    };
    let (one, two) = (with_cache(1 << 20), with_cache(2 << 20));
    let capacity = |families: &[(&str, &Options)]| {
        let opening = Opening::new(&options, Path::new("/db"), families).unwrap();
        opening.options().block_cache.as_ref().map(engine::BlockCache::capacity)
    };
    assert_eq!(capacity(&[("words", &one), ("default", &two)]), Some(2 << 20));
    assert_eq!(capacity(&[("words", &one), ("default", &options)]), Some(1 << 20));
    assert_eq!(capacity(&[("default", &options)]), None);
}

#[test]
fn threads_give_way_in_an_environment_that_says_so() {
    let (mut options, mut env) = in_memory();
    env.lower_thread_pool_cpu_priority();
    options.set_env(&env);
    let niceness = options.engine().unwrap().background_niceness;
    assert_eq!(niceness, if cfg!(target_os = "linux") { 19 } else { 0 });
    assert!(!options.engine().unwrap().background_idle_io);
    env.lower_thread_pool_io_priority();
    assert_eq!(options.engine().unwrap().background_idle_io, cfg!(target_os = "linux"));
}

#[test]
fn statistics_count_and_measure_while_a_database_is_open_and_after() {
    let (mut options, _) = in_memory();
    assert_eq!(options.get_statistics(), None);
    options.enable_statistics();
    let (opened, db) = open(&options, "/db");
    opened.measure(Histogram::DbWrite, || db.put("key", "value")).unwrap();
    assert!(options.get_ticker_count(Ticker::BytesWritten) > 0);
    assert!(options.get_histogram_data(Histogram::DbWrite).max().is_normal());
    drop((opened, db));
    assert!(options.clone().get_ticker_count(Ticker::BytesWritten) > 0);
}

#[test]
fn databases_share_the_limit_of_a_write_buffer_manager() {
    let (mut options, _) = in_memory();
    let manager = WriteBufferManager::new_write_buffer_manager(8 << 20, true);
    options.set_write_buffer_manager(&manager);
    let (first_opened, first) = open(&options, "/one");
    let (second_opened, second) = open(&options, "/two");
    first.put("key", "value").unwrap();
    let of_first = manager.get_usage();
    assert!(of_first > 0 && manager.enabled());
    second.put("key", "value").unwrap();
    assert!(manager.get_usage() > of_first);
    drop((second_opened, second));
    assert_eq!(manager.get_usage(), of_first);
    manager.set_allow_stall(false);
    manager.set_buffer_size(of_first);
    assert_eq!(manager.get_buffer_size(), of_first);
    // Memtables that are full are switched by the next write, and flushed.
    for _ in 0..2 {
        first.put("key", vec![0; of_first]).unwrap();
    }
    first.wait_for_compactions().unwrap();
    assert!(!first.live_files().is_empty());
    drop((first_opened, first));
    assert_eq!(manager.get_usage(), 0);
}

#[test]
fn databases_share_the_limit_of_a_file_manager() {
    let (mut options, env) = in_memory();
    let manager = SstFileManager::new(&env);
    options.set_sst_file_manager(&manager);
    manager.set_delete_rate_bytes_per_second(-1);
    assert_eq!(manager.get_delete_rate_bytes_per_second(), 0);
    manager.set_max_trash_db_ratio(0.5);
    assert!((manager.get_max_trash_db_ratio() - 0.5).abs() < 1e-9);
    let (first_opened, first) = open(&options, "/one");
    let (second_opened, second) = open(&options, "/two");
    first.put("key", "value").unwrap();
    first.flush_all().unwrap();
    let size = manager.get_total_size();
    assert!(size > 0 && !manager.is_max_allowed_space_reached());
    manager.set_max_allowed_space_usage(size + 1);
    second.put("key", "value").unwrap();
    second.flush_all().unwrap();
    assert!(manager.is_max_allowed_space_reached());
    let error = crate::Error::from(second.put("key", "value").unwrap_err());
    assert!(error.to_string().starts_with("IO error: Space limit reached: "), "{error}");
    drop((first_opened, first, second_opened, second));
    assert_eq!((manager.get_total_size(), manager.get_total_trash_size()), (0, 0));
}

#[test]
fn a_log_has_the_options_and_what_was_done() {
    let (mut options, env) = in_memory();
    options.set_ttl(86_400);
    options.set_experimental_mempurge_threshold(1.0);
    options.add_compact_on_deletion_collector_factory(5, 10, 0.5);
    let (opened, db) = open(&options, "/db");
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    drop((opened, db));
    let text = read_file(env.engine.fs.as_ref(), Path::new("/db/LOG"), 1 << 20).unwrap();
    let text = String::from_utf8(text).unwrap();
    for wanted in [
        "Options.ttl: 86400\n",
        "Options.experimental_mempurge_threshold: 1.000000\n",
        "Options.use_fsync: 0\n",
        "format_version: 7\n",
        "cache_index_and_filter_blocks_with_high_priority: 1\n",
        "data_block_index_type: 0\n",
        "CompactOnDeletionCollector (Sliding window size = 5 Deletion trigger = 10 Deletion ratio = 0.5)",
        "[default] [JOB 2] flush (Manual) ended: 1 tables",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn options_go_to_other_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let (options, env) = in_memory();
    shared(&options);
    shared(&env);
    shared(&BlockBasedOptions::default());
    shared(&Arc::new(WriteBufferManager::new_write_buffer_manager(0, false)));
}
