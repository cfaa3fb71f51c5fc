//! Counters and distributions, and what databases and caches hold in memory.

use std::sync::Arc;

use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::Store;

use crate::abi::{Tagged, handles, make};
use crate::api::{c_api, creates, destroys};
use crate::cache::Cache;
use crate::db::Db;
use crate::options::Options;

/// What a distribution says.
#[derive(Default)]
pub struct Histogram(rdb::statistics::HistogramData);

/// Databases and caches to be summed up.
#[derive(Default)]
pub struct Consumers {
    stores: Vec<Arc<Store>>,
    caches: Vec<Cache>,
}

/// Bytes in memory.
pub struct MemoryUsage {
    total: u64,
    unflushed: u64,
    readers: u64,
    caches: u64,
}

handles! {
    Histogram = "statistics_histogram_data",
    Consumers = "memory_consumers",
    MemoryUsage = "memory_usage",
}

creates! {
    rocksdb_statistics_histogram_data_create: Histogram,
    rocksdb_memory_consumers_create: Consumers,
}

destroys! {
    rocksdb_statistics_histogram_data_destroy: Histogram,
    rocksdb_memory_consumers_destroy: Consumers,
    rocksdb_approximate_memory_usage_destroy: MemoryUsage,
}

fn usage(consumers: &Consumers) -> MemoryUsage {
    let sum = |property: &str| -> u64 {
        let of = |store: &Arc<Store>| store.db().aggregated_int_property(property).unwrap_or(0);
        consumers.stores.iter().map(of).sum()
    };
    MemoryUsage {
        total: sum("rocksdb.size-all-mem-tables"),
        unflushed: sum("rocksdb.cur-size-all-mem-tables"),
        readers: sum("rocksdb.estimate-table-readers-mem"),
        caches: consumers.caches.iter().map(|cache| cache.0.get_usage() as u64).sum(),
    }
}

c_api! {
    fn rocksdb_options_statistics_get_ticker_count(o: &Options, number: u32) -> u64 {
        let ticker = rdb::statistics::Ticker::iter().nth(number as usize);
        ticker.map_or(0, |ticker| o.rdb.get_ticker_count(*ticker))
    }

    fn rocksdb_options_statistics_get_histogram_data(
        o: &Options, number: u32, data: &mut Histogram
    ) {
        if let Some(histogram) = rdb::statistics::Histogram::iter().nth(number as usize) {
            data.0 = o.rdb.get_histogram_data(*histogram);
        }
    }

    fn rocksdb_statistics_histogram_data_get_median(data: &Histogram) -> f64 {
        data.0.median()
    }

    fn rocksdb_statistics_histogram_data_get_p95(data: &Histogram) -> f64 {
        data.0.p95()
    }

    fn rocksdb_statistics_histogram_data_get_p99(data: &Histogram) -> f64 {
        data.0.p99()
    }

    fn rocksdb_statistics_histogram_data_get_average(data: &Histogram) -> f64 {
        data.0.average()
    }

    fn rocksdb_statistics_histogram_data_get_std_dev(data: &Histogram) -> f64 {
        data.0.std_dev()
    }

    fn rocksdb_statistics_histogram_data_get_max(data: &Histogram) -> f64 {
        data.0.max()
    }

    fn rocksdb_statistics_histogram_data_get_min(data: &Histogram) -> f64 {
        data.0.min()
    }

    fn rocksdb_statistics_histogram_data_get_count(data: &Histogram) -> u64 {
        data.0.count()
    }

    fn rocksdb_statistics_histogram_data_get_sum(data: &Histogram) -> u64 {
        data.0.sum()
    }

    fn rocksdb_memory_consumers_add_db(consumers: &mut Consumers, db: &Db) {
        consumers.stores.push(Arc::clone(&db.store));
    }

    fn rocksdb_memory_consumers_add_cache(consumers: &mut Consumers, cache: &Cache) {
        consumers.caches.push(cache.clone());
    }

    fn rocksdb_approximate_memory_usage_create(
        consumers: &Consumers, error
    ) -> *mut Tagged<MemoryUsage> {
        make(usage(consumers))
    }

    fn rocksdb_approximate_memory_usage_get_mem_table_total(usage: &MemoryUsage) -> u64 {
        usage.total
    }

    fn rocksdb_approximate_memory_usage_get_mem_table_unflushed(usage: &MemoryUsage) -> u64 {
        usage.unflushed
    }

    fn rocksdb_approximate_memory_usage_get_mem_table_readers_total(usage: &MemoryUsage) -> u64 {
        usage.readers
    }

    fn rocksdb_approximate_memory_usage_get_cache_total(usage: &MemoryUsage) -> u64 {
        usage.caches
    }
}
