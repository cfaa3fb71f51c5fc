//! What single operations count in their thread: every counter that is not always 0 is raised by
//! some operation here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use common::{create, temporary};
use flagstone::base::merge::StringAppendOperator;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::options::{Options, ReadOptions, WriteOptions};
use flagstone::reports::{
    IoMetric, IoStatsContext, PerfContext, PerfLevel, PerfLevelMetric, PerfMetric, set_perf_level,
};
use flagstone::{SstFileWriter, SstFileWriterOptions};

/// What an operation counts.
fn counted<T>(work: impl FnOnce() -> T) -> PerfContext {
    set_perf_level(PerfLevel::EnableTime);
    PerfContext::reset();
    work();
    let context = PerfContext::now();
    set_perf_level(PerfLevel::Disable);
    context
}

fn options(text: &str) -> Options {
    let mut options = create();
    options.set_all("disable_auto_compactions=true;enable_blob_files=false").unwrap();
    options.set_all(text).unwrap();
    options.cf.merge_operator = Some(Arc::new(StringAppendOperator::new(",")));
    options
}

fn key(n: u32) -> String {
    format!("key{n:06}")
}

fn fill(db: &Db, count: u32) {
    (0..count).for_each(|n| db.put(key(n), vec![b'v'; 100]).unwrap());
}

fn has(context: &PerfContext, metrics: &[PerfMetric]) {
    for metric in metrics {
        assert!(context.get(*metric) > 0, "{} in {}", metric.name(), context.to_text(true));
    }
}

use PerfMetric as M;

#[test]
fn nothing_is_counted_until_a_thread_asks() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("")).unwrap();
    fill(&db, 100);
    db.flush_all().unwrap();
    db.get(key(7)).unwrap().unwrap();
    assert_eq!(PerfContext::now(), PerfContext::default());
    assert_eq!(IoStatsContext::now(), IoStatsContext::default());
}

#[test]
fn lookups_count_memtables_filters_blocks_and_bytes() {
    let directory = temporary();
    let db = Db::open(
        directory.path(),
        &options("memtable_prefix_bloom_size_ratio=0.1;memtable_whole_key_filtering=true"),
    )
    .unwrap();
    fill(&db, 1000);
    let hit = counted(|| db.get(key(7)).unwrap().unwrap());
    has(&hit, &[M::GetFromMemtableCount, M::GetFromMemtableTime, M::GetSnapshotTime]);
    has(&hit, &[M::BloomMemtableHitCount, M::GetPostProcessTime, M::GetCpuNanos]);
    assert_eq!(hit.get(M::GetReadBytes), 100);
    assert_eq!(counted(|| db.get("absent").unwrap()).get(M::BloomMemtableMissCount), 1);
    db.flush_all().unwrap();

    let cold = counted(|| db.get(key(7)).unwrap().unwrap());
    has(&cold, &[M::BlockReadCount, M::BlockReadByte, M::BlockReadTime, M::BlockReadCpuTime]);
    has(&cold, &[M::BlockChecksumTime, M::BlockDecompressTime, M::BlockDecompressCount]);
    has(&cold, &[M::DataBlockReadByte, M::BloomSstHitCount, M::GetFromOutputFilesTime]);
    has(&cold, &[M::UserKeyComparisonCount, M::NewTableBlockIterNanos, M::BlockSeekNanos]);
    assert_eq!(cold.get(M::BlockCacheHitCount), 0);
    let warm = counted(|| db.get(key(7)).unwrap().unwrap());
    assert_eq!((warm.get(M::BlockCacheHitCount), warm.get(M::BlockReadCount)), (1, 0));
    has(&warm, &[M::BlockCacheReadByte]);
    assert_eq!(counted(|| db.get(format!("{}x", key(7))).unwrap()).get(M::BloomSstMissCount), 1);
    let many = counted(|| {
        let keys = [key(1), key(900), "absent".to_string()];
        db.multi_get(&keys.each_ref().map(String::as_bytes));
    });
    assert_eq!(many.get(M::MultigetReadBytes), 200);
    assert_eq!(many.get(M::GetReadBytes), 0);
    has(&many, &[M::GetCpuNanos, M::BlockReadCount]);
    let at_once = |metric| many.get(metric);
    assert_eq!(at_once(M::BlockReadByte), at_once(M::DataBlockReadByte));
}

#[test]
fn tables_that_open_count_their_blocks_by_kind() {
    let directory = temporary();
    let text = "cache_index_and_filter_blocks=true;compression=kZSTD;\
                compression_opts={max_dict_bytes=131072;};partition_filters=true;\
                index_type=kTwoLevelIndexSearch;metadata_block_size=200";
    let random = |n: u32| {
        let mut random = fastrand::Rng::with_seed(n.into());
        (0..400).map(|_| random.alphanumeric() as u8).collect::<Vec<u8>>()
    };
    {
        let db = Db::open(directory.path(), &options(text)).unwrap();
        (0..5000).for_each(|n| db.put(key(n), random(n)).unwrap());
        db.flush_all().unwrap();
    }
    let db = Db::open(directory.path(), &options(text)).unwrap();
    let cold = counted(|| db.get(key(7)).unwrap().unwrap());
    has(&cold, &[M::FindTableNanos, M::IndexBlockReadCount, M::IndexBlockReadByte]);
    has(&cold, &[M::FilterBlockReadCount, M::FilterBlockReadByte, M::ReadIndexBlockNanos]);
    has(&cold, &[M::ReadFilterBlockNanos, M::CompressionDictBlockReadCount]);
    has(&cold, &[M::CompressionDictBlockReadByte]);
    let kinds = [
        M::DataBlockReadByte,
        M::IndexBlockReadByte,
        M::FilterBlockReadByte,
        M::CompressionDictBlockReadByte,
        M::MetadataBlockReadByte,
    ];
    let sum: u64 = kinds.iter().map(|kind| cold.get(*kind)).sum();
    assert_eq!(sum, cold.get(M::BlockReadByte));
    let warm = counted(|| db.get(key(7)).unwrap().unwrap());
    has(&warm, &[M::BlockCacheIndexHitCount, M::BlockCacheFilterHitCount]);
    has(&warm, &[M::BlockCacheIndexReadByte, M::BlockCacheFilterReadByte]);
    let verified = counted(|| assert!(db.verify(|_| {}).faults.is_empty()));
    has(&verified, &[M::MetadataBlockReadByte]);
}

#[test]
fn the_second_tier_counts_what_goes_in_and_comes_back() {
    let directory = temporary();
    let text = "block_cache=20000;compressed_secondary_cache_size=8M";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    fill(&db, 20_000);
    db.flush_all().unwrap();
    let read = || (0..20_000).step_by(20).for_each(|n| drop(db.get(key(n)).unwrap().unwrap()));
    has(&counted(read), &[M::CompressedSecCacheInsertDummyCount]);
    let again = counted(read);
    has(&again, &[M::CompressedSecCacheInsertRealCount, M::CompressedSecCacheCompressedBytes]);
    has(&counted(read), &[M::SecondaryCacheHitCount, M::BlockCacheRealHandleCount]);
}

#[test]
fn iterators_count_their_steps_and_what_they_pass() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("")).unwrap();
    fill(&db, 100);
    db.flush_all().unwrap();
    db.delete(key(1)).unwrap();
    db.put(key(2), "new").unwrap();
    db.merge(key(3), "operand").unwrap();
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    db.put(key(6), "newer than the iterator").unwrap();
    let seek = counted(|| iter.seek(key(0)));
    assert_eq!((seek.get(M::IterSeekCount), seek.get(M::SeekOnMemtableCount)), (1, 1));
    has(&seek, &[M::SeekOnMemtableTime, M::SeekChildSeekCount, M::SeekChildSeekTime]);
    has(&seek, &[M::SeekMinHeapTime, M::SeekInternalSeekTime, M::FindNextUserEntryTime]);
    has(&seek, &[M::IterSeekCpuNanos]);
    assert_eq!(seek.get(M::IterReadBytes), 109);
    let next = counted(|| iter.next());
    assert_eq!(iter.key(), key(2).as_bytes());
    assert_eq!((next.get(M::IterNextCount), next.get(M::InternalDeleteSkippedCount)), (1, 1));
    // The key it stood on, and what the deletion hides.
    assert_eq!(next.get(M::InternalKeySkippedCount), 2);
    has(&next, &[M::NextOnMemtableCount, M::IterNextCpuNanos]);
    let merged = counted(|| {
        iter.next();
        assert_eq!(iter.value().unwrap().len(), 108);
    });
    has(&merged, &[M::InternalMergeCount, M::MergeOperatorTimeNanos]);
    iter.seek(key(5));
    has(&counted(|| iter.next()), &[M::InternalRecentSkippedCount]);
    assert_eq!(iter.value().unwrap().len(), 100, "as it was");
    let back = counted(|| {
        (0..4).for_each(|_| iter.prev());
    });
    assert_eq!((back.get(M::IterPrevCount), iter.key()), (4, key(2).as_bytes()));
    has(&back, &[M::PrevOnMemtableCount, M::IterPrevCpuNanos, M::SeekMaxHeapTime]);
    let merged = counted(|| db.get(key(3)).unwrap().unwrap());
    assert_eq!(merged.get(M::InternalMergePointLookupCount), 1);
    assert_eq!(counted(|| db.iter(&ReadOptions::default()).unwrap()).get(M::IterSeekCount), 0);
}

#[test]
fn scans_count_cursors_over_tables_and_leaps_over_deleted_ranges() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("")).unwrap();
    fill(&db, 2000);
    db.flush_all().unwrap();
    db.delete_range(key(10), key(1900)).unwrap();
    db.flush_all().unwrap();
    let scan = counted(|| {
        let mut iter = db.iter(&ReadOptions::default()).unwrap();
        iter.seek_to_first();
        let mut count = 0;
        while iter.valid() {
            count += 1;
            iter.next();
        }
        assert_eq!(count, 110);
    });
    has(&scan, &[M::NewTableIteratorNanos, M::InternalRangeDelReseekCount]);
}

#[test]
fn a_prefix_filter_of_a_memtable_is_counted() {
    let directory = temporary();
    let text = "memtable_prefix_bloom_size_ratio=0.1;prefix_extractor=fixed:3";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    fill(&db, 10);
    let read = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
    let mut iter = db.iter(&read).unwrap();
    assert_eq!(counted(|| iter.seek("abc")).get(M::BloomMemtableMissCount), 1);
    has(&counted(|| iter.seek("key")), &[M::BloomMemtableHitCount]);
}

#[test]
fn values_of_blob_files_are_counted() {
    let directory = temporary();
    let text = "enable_blob_files=true;min_blob_size=50;blob_compression_type=kLZ4Compression;\
                cache_blobs=true";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    fill(&db, 100);
    db.flush_all().unwrap();
    let cold = counted(|| db.get(key(7)).unwrap().unwrap());
    assert_eq!((cold.get(M::BlobReadCount), cold.get(M::GetReadBytes)), (1, 100));
    has(&cold, &[M::BlobReadByte, M::BlobReadTime, M::BlobChecksumTime, M::BlobDecompressTime]);
    let warm = counted(|| db.get(key(7)).unwrap().unwrap());
    assert_eq!((warm.get(M::BlobReadCount), warm.get(M::BlobCacheHitCount)), (0, 1));
    assert_eq!(warm.get(M::BlobCacheReadByte), 100);
    let many = counted(|| {
        let keys = [key(20), key(30)];
        db.multi_get(&keys.each_ref().map(String::as_bytes));
    });
    assert_eq!((many.get(M::BlobReadCount), many.get(M::MultigetReadBytes)), (2, 200));
    let scan = counted(|| {
        let mut iter = db.iter(&ReadOptions::default()).unwrap();
        iter.seek(key(40));
        assert_eq!(iter.value().unwrap().len(), 100);
    });
    assert_eq!((scan.get(M::BlobReadCount), scan.get(M::IterReadBytes)), (1, 109));
}

#[test]
fn bytes_of_scans_are_counted_in_both_directions_and_once() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("")).unwrap();
    fill(&db, 100);
    let mut batch = WriteBatch::new();
    batch.put_entity(key(50), [("", "default")]).unwrap();
    db.write(batch).unwrap();
    for (place, bytes) in [(40, 109), (50, 16)] {
        for is_backward in [false, true] {
            let scan = counted(|| {
                let mut iter = db.iter(&ReadOptions::default()).unwrap();
                if is_backward {
                    iter.seek_for_prev(key(place))
                } else {
                    iter.seek(key(place))
                }
                iter.value().unwrap();
                iter.value().unwrap();
            });
            assert_eq!(scan.get(M::IterReadBytes), bytes, "{place} {is_backward}");
        }
    }
}

#[test]
fn writes_count_their_steps() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("write_buffer_size=65536")).unwrap();
    let put = counted(|| db.put(key(1), "value").unwrap());
    has(&put, &[M::WriteWalTime, M::WriteMemtableTime, M::WritePreAndPostProcessTime]);
    has(&put, &[M::DbMutexLockNanos]);
    assert_eq!(put.get(M::WriteSchedulingFlushesCompactionsTime), 0);
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    let sync = counted(|| {
        let mut batch = flagstone::batch::WriteBatch::new();
        batch.put(key(2), "value").unwrap();
        db.write_with(&synced, batch).unwrap();
    });
    has(&sync, &[M::WriteWalTime]);
    has(&counted(|| fill(&db, 2000)), &[M::WriteSchedulingFlushesCompactionsTime]);
}

#[test]
fn writers_count_what_they_wait_for() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("")).unwrap();
    // Several threads that sync: some of them wait for another's sync.
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    let waited: u64 = std::thread::scope(|scope| {
        let write = |thread: u32| {
            let (db, synced) = (&db, &synced);
            scope.spawn(move || {
                let context = counted(|| {
                    for n in 0..200 {
                        let mut batch = flagstone::batch::WriteBatch::new();
                        batch.put(key(thread * 1000 + n), "value").unwrap();
                        db.write_with(synced, batch).unwrap();
                    }
                });
                context.get(M::WriteThreadWaitNanos)
            })
        };
        let threads: Vec<_> = (0..4).map(write).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(waited > 0);
}

#[test]
fn a_stopped_writer_counts_its_wait() {
    let directory = temporary();
    let text = "write_buffer_size=65536;max_write_buffer_number=2";
    let db = Db::open(directory.path(), &options(text)).unwrap();
    db.pause_background_work().unwrap();
    let stopped = std::thread::scope(|scope| {
        let writer = scope.spawn(|| counted(|| fill(&db, 3000)));
        let is_stopped =
            || db.int_property(db.default_column_family(), "rocksdb.is-write-stopped") == Some(1);
        while !is_stopped() {
            assert!(!writer.is_finished(), "the memtables have no room for it");
            std::thread::yield_now();
        }
        std::thread::park_timeout(std::time::Duration::from_millis(50));
        db.continue_background_work().unwrap();
        writer.join().unwrap()
    });
    has(&stopped, &[M::DbConditionWaitNanos, M::WriteDelayTime]);
}

#[test]
fn ingestions_and_waits_for_locks_are_counted() {
    let directory = temporary();
    let db = flagstone::Db::open(directory.path().join("db")).unwrap();
    let path = directory.path().join("table.sst");
    let mut writer = SstFileWriter::create(&path, &SstFileWriterOptions::default()).unwrap();
    writer.put("ingested", "value").unwrap();
    writer.finish().unwrap();
    let family = db.column_family("default").unwrap();
    let ingested = counted(|| family.ingest_external_files(&[&path], &Default::default()).unwrap());
    has(&ingested, &[M::FileIngestionNanos, M::FileIngestionBlockingLiveWritesNanos]);
    drop((family, db));

    let options = flagstone::TransactionDbOptions::default();
    let db = flagstone::Db::builder(directory.path().join("locked"))
        .open_transaction_db(&options)
        .unwrap();
    let mut first = db.begin();
    first.put(&db, "key", "first").unwrap();
    let waited = std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            counted(|| {
                let mut second = db.begin();
                second.put(&db, "key", "second").unwrap();
                second.commit().unwrap();
            })
        });
        std::thread::park_timeout(std::time::Duration::from_millis(100));
        first.commit().unwrap();
        waits.join().unwrap()
    });
    has(&waited, &[M::KeyLockWaitCount, M::KeyLockWaitTime]);
}

#[test]
fn levels_of_the_tree_are_told_apart() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options("num_levels=4")).unwrap();
    fill(&db, 1000);
    db.flush_all().unwrap();
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    db.put(key(3), "upper").unwrap();
    db.put(key(999), "upper").unwrap();
    db.flush_all().unwrap();
    set_perf_level(PerfLevel::EnableTime);
    PerfContext::reset();
    PerfContext::enable_per_level();
    for n in [3, 7, 7] {
        db.get(key(n)).unwrap().unwrap();
    }
    let keys = [key(8), key(3)];
    db.multi_get(&keys.each_ref().map(String::as_bytes));
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    iter.seek(key(7));
    let context = PerfContext::now();
    PerfContext::clear_per_level();
    set_perf_level(PerfLevel::Disable);
    let of = |metric, level| context.get_of_level(metric, level);
    let levels: Vec<u32> = context.levels().collect();
    let bottom = *levels.last().unwrap();
    assert_eq!(levels.len(), 2, "{levels:?}");
    assert_eq!(of(PerfLevelMetric::UserKeyReturnCount, 0), 2);
    assert_eq!(of(PerfLevelMetric::UserKeyReturnCount, bottom), 3);
    assert_eq!(of(PerfLevelMetric::BloomFilterFullTruePositive, 0), 2);
    assert!(of(PerfLevelMetric::BloomFilterFullPositive, 0) >= 2);
    assert!(of(PerfLevelMetric::BloomFilterUseful, 0) >= 1, "most keys are not there");
    assert!(of(PerfLevelMetric::GetFromTableNanos, bottom) > 0);
    assert!(of(PerfLevelMetric::BlockCacheMissCount, bottom) >= 1);
    assert!(of(PerfLevelMetric::BlockCacheHitCount, bottom) >= 2, "a lookup and the scan");
}

#[test]
fn files_count_bytes_and_times() {
    let directory = temporary();
    set_perf_level(PerfLevel::EnableTime);
    IoStatsContext::reset();
    {
        let db = Db::open(directory.path(), &options("bytes_per_sync=4096")).unwrap();
        fill(&db, 1000);
        db.flush_wal(true).unwrap();
        let keys: Vec<String> = (0..1000).map(key).collect();
        drop(keys);
        db.flush_all().unwrap();
        assert_eq!(db.get(key(1)).unwrap().unwrap().len(), 100);
        db.close().unwrap();
    }
    // A table written in this thread.
    let path = directory.path().join("outside.sst");
    let mut writer = SstFileWriter::create(&path, &SstFileWriterOptions::default()).unwrap();
    (0..10_000).for_each(|n| writer.put(key(n), vec![b'v'; 500]).unwrap());
    writer.finish().unwrap();
    let context = IoStatsContext::now();
    set_perf_level(PerfLevel::Disable);
    for metric in IoMetric::ALL {
        // Only workers ask for those: see below. Tables have no temperature here.
        let of_temperature = metric.name().starts_with("file_io_stats_by_temperature");
        let left_out = of_temperature || *metric == IoMetric::RangeSyncNanos;
        if !metric.is_always_zero() && !left_out {
            assert!(context.get(*metric) > 0, "{} in {}", metric.name(), context.to_text(true));
        } else {
            assert_eq!(context.get(*metric), 0, "{}", metric.name());
        }
    }
    assert!(context.get(IoMetric::BytesWritten) > 100_000);
    assert_eq!(context.get_by_name("bytes_read"), Some(context.get(IoMetric::BytesRead)));
}
