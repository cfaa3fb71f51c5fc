use std::path::PathBuf;

use super::*;
use crate::cache::{Cache, CacheKey, CacheSettings, PolicyKind};
use crate::env::read_file;
use crate::trace::{BlockAccess, FileTraceReader, RawRecord, TraceReader};

fn memory() -> Env {
    let env = Env::memory();
    env.fs.create_directory(Path::new("/dir")).unwrap();
    env
}

fn path() -> PathBuf {
    PathBuf::from("/dir/trace")
}

fn key(number: u64) -> CacheKey {
    CacheKey { file: 1, offset: number * 4096 }
}

fn cache(capacity: usize) -> Cache<Arc<u64>> {
    let policy = PolicyKind::Lru;
    let settings =
        CacheSettings { shard_bits: Some(0), policy, ..CacheSettings::with_capacity(capacity) };
    Cache::new(&settings)
}

/// What a reader does: a lookup, and an insertion if that finds nothing.
fn ask(cache: &Cache<Arc<u64>>, number: u64) {
    if cache.lookup(key(number)).is_none() {
        cache.insert(key(number), Arc::new(number), 10);
    }
}

/// Key and size of each request.
fn requests(env: &Env) -> Vec<(u64, u32)> {
    let bytes = read_file(&*env.fs, &path(), 1 << 30).unwrap();
    assert_eq!(bytes.len() % RECORD_SIZE, 0);
    let records = bytes.chunks_exact(RECORD_SIZE).map(|record| {
        assert_eq!(record[16..], [0xff; 8], "nobody knows the next use");
        let key = u64::from_le_bytes(record[4..12].try_into().unwrap());
        (key, u32::from_le_bytes(record[12..16].try_into().unwrap()))
    });
    records.collect()
}

#[test]
fn hits_and_what_misses_bring_in_are_recorded_in_order() {
    let (env, cache) = (memory(), cache(20));
    ask(&cache, 9);
    cache.start_trace(&env, &path(), &TraceOptions::default()).unwrap();
    for number in [1, 2, 1, 3, 2] {
        ask(&cache, number);
    }
    assert!(!cache.insert_made(key(4), 30, || panic!("a larger cache would have it")));
    // Kept nowhere, and so asked of no cache.
    assert!(cache.lookup(key(50)).is_none());
    let summary = cache.end_trace().unwrap().unwrap();
    assert_eq!(summary, TraceSummary { requests: 6, bytes: 144, is_full: false });
    ask(&cache, 4);
    let expected = [(1, 10), (2, 10), (1, 10), (3, 10), (2, 10), (4, 30)];
    let expected = expected.map(|(number, size)| (key(number).hash(), size));
    assert_eq!(requests(&env), expected);
    assert_eq!(cache.end_trace().unwrap(), None);
}

#[test]
fn a_line_a_request() {
    let mut text = HEAD.as_bytes().to_vec();
    append_line(&mut text, 12_000_034, 77, 5_000_000_000);
    assert_eq!(String::from_utf8(text).unwrap(), "time,key,size\n12.000034,77,5000000000\n");
    let mut record = Vec::new();
    append(&mut record, 12_000_034, 77, 5_000_000_000);
    assert_eq!((record[0], record[4], &record[12..16]), (12, 77, &[0xff; 4][..]));
    let mut longest = Vec::new();
    append_line(&mut longest, u64::MAX, u64::MAX, u64::MAX);
    assert!(longest.len() <= LINE_SIZE_MAX);
    longest.clear();
    let farthest = (u64::MAX, u64::MAX);
    put_access(&mut longest, (1, TraceType::DataBlock), farthest, u64::MAX, true);
    assert!(longest.len() <= LINE_SIZE_MAX);
}

/// RocksDB's form tells hits from what misses bring in.
#[test]
fn a_trace_for_rocksdb_has_an_access_a_request() {
    let (env, cache) = (memory(), cache(20));
    let options = TraceOptions { format: TraceFormat::RocksDb, ..TraceOptions::default() };
    cache.start_trace(&env, &path(), &options).unwrap();
    for number in [1, 2, 1] {
        ask(&cache, number);
    }
    assert_eq!(cache.end_trace().unwrap().unwrap().requests, 3);
    let mut reader = FileTraceReader::open(&env, path()).unwrap();
    let mut next = || reader.read().unwrap().map(|record| RawRecord::parse(&record).unwrap());
    BlockAccess::check_header(&next().unwrap()).unwrap();
    let mut accesses = Vec::new();
    while let Some(record) = next() {
        let BlockAccess { block_key, size, is_hit, .. } = BlockAccess::decode(&record).unwrap();
        accesses.push((block_key, size, is_hit));
    }
    // File 1, offsets 4096 and 8192.
    let (first, second) = (vec![1, 0x80, 32], vec![1, 0x80, 64]);
    assert_eq!(accesses, [(first.clone(), 10, false), (second, 10, false), (first, 10, true)]);
}

/// The replay's hits are those of the cache that was recorded, if it starts as empty and is as
/// large.
#[test]
fn a_recorded_trace_replays_to_the_same_hits() {
    let (env, live) = (memory(), cache(300));
    live.start_trace(&env, &path(), &TraceOptions::default()).unwrap();
    let mut state = 1u64;
    for _ in 0..20_000 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ask(&live, (state >> 33) % 100 * ((state >> 50) % 3));
    }
    let summary = live.end_trace().unwrap().unwrap();
    let (again, mut hits) = (cache(300), 0);
    for (recorded, size) in requests(&env) {
        let key = CacheKey { file: recorded, offset: 0 };
        match again.lookup(key) {
            Some(_) => hits += 1,
            None => drop(again.insert(key, Arc::new(0), size as usize)),
        }
    }
    assert_eq!((summary.requests, live.statistics().hits), (20_000, hits));
    assert!(hits > 1000 && hits < 19_000, "{hits} hits tell little");
}

#[test]
fn a_sampled_key_is_recorded_each_time_and_another_never() {
    let (env, cache) = (memory(), cache(1 << 20));
    let options = TraceOptions { sampling_frequency: 10, ..TraceOptions::default() };
    cache.start_trace(&env, &path(), &options).unwrap();
    (0..30_000).for_each(|at| ask(&cache, at % 10_000));
    cache.end_trace().unwrap();
    let mut counts = std::collections::BTreeMap::new();
    requests(&env).into_iter().for_each(|(key, _)| *counts.entry(key).or_insert(0) += 1);
    assert!(counts.values().all(|count| *count == 3));
    assert!((900..1100).contains(&counts.len()), "{} of 10,000 keys", counts.len());
}

#[test]
fn the_file_never_exceeds_its_limit() {
    for format in [TraceFormat::OracleGeneral, TraceFormat::Csv] {
        let (env, cache) = (memory(), cache(1 << 20));
        let options =
            TraceOptions { max_trace_file_size: 100_000, format, ..TraceOptions::default() };
        cache.start_trace(&env, &path(), &options).unwrap();
        (0..20_000).for_each(|at| ask(&cache, at % 100));
        let summary = cache.end_trace().unwrap().unwrap();
        let size = env.fs.metadata(&path()).unwrap().size;
        assert!(
            summary.is_full && summary.bytes == size && (99_900..=100_000).contains(&size),
            "{size}"
        );
    }
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let (env, cache) = (memory(), cache(100));
    let none = TraceOptions { sampling_frequency: 0, ..TraceOptions::default() };
    let error = cache.start_trace(&env, &path(), &none).unwrap_err();
    assert!(
        error.code() == Code::InvalidArgument && error.to_string().contains("frequency"),
        "{error}"
    );
    let options = TraceOptions::default();
    cache.start_trace(&env, &path(), &options).unwrap();
    let again = cache.start_trace(&env, Path::new("/dir/other"), &options).unwrap_err();
    assert_eq!(again.code(), Code::Busy);
    cache.end_trace().unwrap();
    let error = cache.start_trace(&env, &path(), &options).unwrap_err();
    assert!(
        error.code() == Code::InvalidArgument && error.to_string().contains("already exists"),
        "{error}"
    );
}
