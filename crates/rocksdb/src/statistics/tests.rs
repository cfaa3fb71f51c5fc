use std::sync::Arc;

use flagstone::Env;
use flagstone::db::Db;
use flagstone::options::Options;

use super::distribution::Distribution;
use super::{Histogram, Statistics, StatsLevel, Ticker};

fn database() -> Db {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    Db::open("/db", &options).unwrap()
}

#[test]
fn names_are_found_again() {
    assert_eq!((Ticker::iter().count(), Histogram::iter().count()), (263, 62));
    assert_eq!("rocksdb.async.read.bytes", Histogram::AsyncReadBytes.name());
    assert_eq!("rocksdb.block.cache.index.miss", Ticker::BlockCacheIndexMiss.to_string());
    for ticker in Ticker::iter() {
        assert_eq!(ticker.name().parse::<Ticker>().unwrap(), *ticker);
    }
    assert!("rocksdb.nothing".parse::<Histogram>().is_err());
}

#[test]
fn counters_of_closed_databases_stay() {
    let statistics = Arc::new(Statistics::new());
    let (first, second) = (database(), database());
    let counted = [statistics.count(&first), statistics.count(&second)];
    first.put("key", "value").unwrap();
    second.put("key", "value").unwrap();
    assert_eq!(statistics.ticker(Ticker::NumberKeysWritten), 2);
    drop(counted);
    second.put("key", "value").unwrap();
    assert_eq!(statistics.ticker(Ticker::NumberKeysWritten), 2);
    assert!(statistics.text().contains("rocksdb.number.keys.written COUNT : 2\n"));
}

#[test]
fn a_call_is_measured_unless_the_level_says_otherwise() {
    let statistics = Statistics::new();
    assert_eq!(statistics.measure(Histogram::DbGet, || 7), 7);
    statistics.set_level(StatsLevel::ExceptTimers);
    statistics.measure(Histogram::DbGet, || ());
    let data = statistics.histogram(Histogram::DbGet);
    assert_eq!(data.count(), 1);
    assert!(data.max() >= 1.0);
}

/// A database whose statistics were disabled was counted all the same.
#[test]
fn what_is_done_while_nothing_is_counted_is_left_out() {
    let statistics = Arc::new(Statistics::new());
    let db = database();
    let counted = statistics.count(&db);
    let written = || statistics.ticker(Ticker::NumberKeysWritten);
    db.put("key", "1").unwrap();
    statistics.set_level(StatsLevel::DisableAll);
    db.put("key", "2").unwrap();
    statistics.count_multi_get(3, 30);
    assert_eq!(written(), 1);
    statistics.set_level(StatsLevel::ExceptTimers);
    db.put("key", "3").unwrap();
    statistics.count_multi_get(2, 20);
    statistics.set_level(StatsLevel::DisableAll);
    db.put("key", "4").unwrap();
    drop(counted);
    assert_eq!(written(), 2);
    assert_eq!(statistics.ticker(Ticker::NumberMultigetCalls), 1);
    assert_eq!(statistics.ticker(Ticker::NumberMultigetKeysRead), 2);
    assert_eq!(statistics.ticker(Ticker::NumberMultigetBytesRead), 20);
}

#[test]
fn bytes_are_recorded_where_times_are_not() {
    let statistics = Statistics::new();
    for (level, count) in [
        (StatsLevel::DisableAll, 0),
        (StatsLevel::ExceptHistogramOrTimers, 0),
        (StatsLevel::ExceptTimers, 1),
        (StatsLevel::All, 2),
    ] {
        statistics.set_level(level);
        statistics.record(Histogram::BytesPerWrite, 7);
        assert_eq!(statistics.histogram(Histogram::BytesPerWrite).count(), count, "{level:?}");
    }
}

#[test]
fn percentiles_are_off_by_a_fifth_at_most() {
    let mut distribution = Distribution::default();
    assert_eq!(distribution.data().max(), 0.0);
    (1..=10_000).for_each(|value| distribution.add(value));
    distribution.add(u64::MAX);
    let data = distribution.data();
    let is_near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.2;
    assert!(is_near(data.median(), 5000.0), "{data:?}");
    assert!(is_near(data.p95(), 9500.0), "{data:?}");
    assert!(is_near(data.p99(), 9900.0), "{data:?}");
    assert_eq!((data.min(), data.count()), (1.0, 10_001));
}
