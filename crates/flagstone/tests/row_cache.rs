//! Lookups through a cache of rows.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use common::create;
use flagstone::base::Snapshot;
use flagstone::cache::CacheSettings;
use flagstone::db::{Db, Ticker};
use flagstone::env::Env;
use flagstone::ingest::{SstFileWriter, SstFileWriterOptions};
use flagstone::options::{BlockCache, IngestExternalFileOptions, Options, ReadOptions};
use flagstone::reports::{PerfContext, PerfLevel, PerfLevelMetric, set_perf_level};

fn options(capacity: usize, more: &str) -> Options {
    let mut options = create();
    options.env = Env::memory();
    options.row_cache = Some(BlockCache::new(&CacheSettings::with_capacity(capacity)));
    let text = "enable_blob_files=true;min_blob_size=500;merge_operator=stringappend;\
                write_buffer_size=65536;level0_file_num_compaction_trigger=4";
    for setting in text.split(';').chain(more.split(';')).filter(|text| !text.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap();
        options.set(name, value).unwrap_or_else(|error| panic!("{setting}: {error}"));
    }
    options
}

fn counts(db: &Db) -> (u64, u64) {
    let count = |ticker| db.statistics().get(ticker);
    (count(Ticker::RowCacheHits), count(Ticker::RowCacheMisses))
}

#[test]
fn a_row_is_read_once_and_found_from_then_on() {
    let db = Db::open("/db", &options(1 << 20, "")).unwrap();
    db.put("small", "stone").unwrap();
    db.put("large", vec![7; 4000]).unwrap();
    db.put("other", "flag").unwrap();
    db.flush_all().unwrap();
    assert_eq!(db.get("small").unwrap().unwrap(), "stone");
    assert_eq!(counts(&db), (0, 1));
    for _ in 0..3 {
        assert_eq!(db.get("small").unwrap().unwrap(), "stone");
    }
    assert_eq!(counts(&db), (3, 1));
    assert_eq!(db.get("large").unwrap().unwrap(), vec![7; 4000]);
    assert_eq!(db.get("large").unwrap().unwrap(), vec![7; 4000]);
    assert_eq!(counts(&db), (4, 2));
    assert!(db.get("missing").unwrap().is_none());
    let found = db.multi_get(&["small", "large", "other"]);
    assert!(found.iter().all(|value| value.as_ref().is_ok_and(Option::is_some)));
    assert_eq!(counts(&db).0, 6);
    // What is newer hides a row; a compaction makes other tables, and so other rows.
    db.put("small", "pebble").unwrap();
    assert_eq!(db.get("small").unwrap().unwrap(), "pebble");
    db.flush_all().unwrap();
    assert_eq!(db.get("small").unwrap().unwrap(), "pebble");
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    assert_eq!(db.get("small").unwrap().unwrap(), "pebble");
    assert_eq!(db.get("large").unwrap().unwrap(), vec![7; 4000]);
}

/// They were counted for tables without rows only.
#[test]
fn keys_found_by_their_rows_are_counted_at_their_level() {
    let db = Db::open("/db", &options(1 << 20, "")).unwrap();
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    set_perf_level(PerfLevel::EnableCount);
    PerfContext::reset();
    PerfContext::enable_per_level();
    for _ in 0..3 {
        assert_eq!(db.get("key").unwrap().unwrap(), "value");
    }
    let context = PerfContext::now();
    PerfContext::clear_per_level();
    set_perf_level(PerfLevel::Disable);
    assert_eq!(counts(&db), (2, 1));
    assert_eq!(context.get_of_level(PerfLevelMetric::UserKeyReturnCount, 0), 3);
    let asked = context.get_of_level(PerfLevelMetric::BloomFilterFullPositive, 0);
    let right = context.get_of_level(PerfLevelMetric::BloomFilterFullTruePositive, 0);
    assert_eq!(asked, right, "a row in the cache asks no filter");
}

#[test]
fn reads_that_do_not_fill_caches_keep_no_row() {
    let db = Db::open("/db", &options(1 << 20, "")).unwrap();
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    let family = db.default_column_family();
    let options = ReadOptions { fill_cache: false, ..Default::default() };
    for _ in 0..2 {
        assert_eq!(db.get_with(&options, family, "key").unwrap().unwrap(), "value");
    }
    assert_eq!(counts(&db), (0, 2));
    let only_cached = ReadOptions { cache_only: true, ..Default::default() };
    db.get("key").unwrap();
    assert_eq!(db.get_with(&only_cached, family, "key").unwrap().unwrap(), "value");
    assert_eq!(counts(&db), (1, 3));
}

/// What one moment shows of a key, by a lookup with rows and by an iterator, which has none.
fn assert_same(db: &Db, snapshot: Option<&Snapshot>, key: &str) {
    let options = ReadOptions { snapshot: snapshot.cloned(), ..Default::default() };
    let family = db.default_column_family();
    let mut iter = db.iter(&options).unwrap();
    iter.seek(key);
    let expected =
        (iter.valid() && iter.key() == key.as_bytes()).then(|| iter.value().unwrap().to_vec());
    for _ in 0..2 {
        let found = db.get_with(&options, family, key).unwrap();
        assert_eq!(found.map(|value| value.to_vec()), expected, "{key}");
    }
    let together = db.multi_get_with(&options, family, &[key, "00"]).swap_remove(0).unwrap();
    assert_eq!(together.map(|value| value.to_vec()), expected, "{key}");
}

#[test]
fn rows_show_what_iterators_show_whatever_happens() {
    for (capacity, more) in
        [(1 << 20, ""), (3000, ""), (1 << 20, "compaction_style=kCompactionStyleUniversal")]
    {
        let options = options(capacity, more);
        let db = Db::open("/db", &options).unwrap();
        let mut random = fastrand::Rng::with_seed(capacity as u64);
        let mut snapshots = Vec::new();
        let key = |random: &mut fastrand::Rng| format!("{:02}", random.u8(1..40));
        for step in 0..1500 {
            let one = key(&mut random);
            match random.u8(..12) {
                0..=3 => db.put(one, format!("{step}")).unwrap(),
                4 => db.put(one, vec![step as u8; 700]).unwrap(),
                5 | 6 => db.merge(one, format!("{step}")).unwrap(),
                7 => db.delete(one).unwrap(),
                8 => {
                    let end = key(&mut random);
                    if one < end {
                        db.delete_range(one, end).unwrap();
                    }
                }
                9 if random.u8(..6) == 0 => db.flush_all().unwrap(),
                10 if random.u8(..6) == 0 => snapshots.push(db.snapshot()),
                11 if snapshots.len() > 3 => drop(snapshots.remove(0)),
                _ => {
                    let at = random.usize(..=snapshots.len());
                    assert_same(&db, snapshots.get(at), &one);
                }
            }
        }
        let writer = SstFileWriterOptions {
            env: options.env.clone(),
            ..SstFileWriterOptions::new(&options.cf)
        };
        let mut writer = SstFileWriter::create("/extern.sst", &writer).unwrap();
        writer.put("05", "from outside").unwrap();
        writer.merge("07", "from outside").unwrap();
        writer.finish().unwrap();
        let ingestion = IngestExternalFileOptions::default();
        db.ingest_external_files(db.default_column_family(), &["/extern.sst"], &ingestion).unwrap();
        assert_eq!(db.get("05").unwrap().unwrap(), "from outside");
        for snapshot in snapshots.iter().map(Some).chain([None]) {
            (1..40).for_each(|number| assert_same(&db, snapshot, &format!("{number:02}")));
        }
        let (hits, misses) = counts(&db);
        assert!(hits > 200 && misses > 200, "{hits} hits, {misses} misses");
        let rows = options.row_cache.as_ref().unwrap();
        assert!(rows.usage() <= capacity + rows.overhead(), "{}", rows.usage());
        drop(snapshots);
        db.close().unwrap();
        drop(db);
        assert_eq!(rows.usage(), rows.overhead(), "the rows leave with the database");
    }
}

#[test]
fn a_row_is_not_taken_for_that_of_another_database() {
    let options = options(1 << 20, "");
    let first = Db::open("/first", &options).unwrap();
    let second = Db::open("/second", &options).unwrap();
    for (db, value) in [(&first, "1"), (&second, "2")] {
        db.put("key", value).unwrap();
        db.flush_all().unwrap();
        assert_eq!(db.get("key").unwrap().unwrap(), value);
    }
    assert_eq!(first.get("key").unwrap().unwrap(), "1");
    assert_eq!(second.get("key").unwrap().unwrap(), "2");
    assert_eq!((counts(&first).0, counts(&second).0), (1, 1));
}
