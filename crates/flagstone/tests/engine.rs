//! Stories of a database's life.

mod common;

use std::sync::Arc;

use common::{create, entries, entries_backwards, temporary};
use flagstone::base::{Code, MergeFailureScope, MergeOperator};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Ticker};
use flagstone::env::Env;
use flagstone::options::{Options, ReadOptions, WriteOptions};

#[test]
fn what_is_put_is_there_after_reopening() {
    let directory = temporary();
    let path = directory.path().join("db");
    let db = Db::open(&path, &create()).unwrap();
    db.put("name", "flagstone").unwrap();
    db.put("empty", "").unwrap();
    db.put("", "the empty key").unwrap();
    db.delete("name-not-there").unwrap();
    assert_eq!(db.get("name").unwrap().unwrap(), "flagstone");
    drop(db);

    let db = Db::open(&path, &create()).unwrap();
    assert_eq!(db.get("name").unwrap().unwrap(), "flagstone");
    assert_eq!(db.get("empty").unwrap().unwrap(), "");
    assert_eq!(db.get("").unwrap().unwrap(), "the empty key");
    assert!(db.get("nothing").unwrap().is_none());
    db.delete("name").unwrap();
    assert!(db.get("name").unwrap().is_none());
    db.flush_all().unwrap();
    assert!(db.get("name").unwrap().is_none());
}

#[test]
fn a_missing_a_foreign_and_a_locked_database_are_errors() {
    let directory = temporary();
    let path = directory.path().join("db");
    let error = Db::open(&path, &Options::default()).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("create_if_missing"), "{error}");

    let db = Db::open(&path, &create()).unwrap();
    let error = Db::open(&path, &create()).unwrap_err();
    assert_eq!(error.code(), Code::Busy);
    drop(db);

    let mut strict = create();
    strict.db.error_if_exists = true;
    assert_eq!(Db::open(&path, &strict).unwrap_err().code(), Code::InvalidArgument);

    let mut other = create();
    other.cf.comparator = flagstone::base::Comparator::ReverseBytewise;
    let error = Db::open(&path, &other).unwrap_err();
    assert!(error.to_string().contains("leveldb.BytewiseComparator"), "{error}");
}

#[test]
fn a_batch_over_families_is_atomic_and_checked() {
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    let users = db.create_column_family("users", &Default::default()).unwrap();
    assert_eq!(
        db.create_column_family("users", &Default::default()).unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(
        db.create_column_family("", &Default::default()).unwrap_err().code(),
        Code::InvalidArgument
    );
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1").unwrap();
    batch.put_cf(&users, b"a", b"2").unwrap();
    batch.delete(b"z").unwrap();
    db.write(batch).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "1");
    assert_eq!(db.get_cf(&users, "a").unwrap().unwrap(), "2");

    db.drop_column_family(&users).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"b", b"1").unwrap();
    batch.put_cf(&users, b"b", b"2").unwrap();
    assert!(db.write(batch).is_err());
    assert!(db.get("b").unwrap().is_none(), "nothing of a refused batch is written");
    assert_eq!(db.put_cf(&users, "c", "").unwrap_err().code(), Code::ColumnFamilyDropped);
    assert_eq!(db.get_cf(&users, "a").unwrap().unwrap(), "2", "an old handle still reads");
}

#[test]
fn a_snapshot_does_not_move() {
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    db.put("a", "old").unwrap();
    db.put("b", "old").unwrap();
    let snapshot = db.snapshot();
    db.put("a", "new").unwrap();
    db.delete("b").unwrap();
    db.put("c", "new").unwrap();
    let family = db.default_column_family().clone();
    for _ in 0..3 {
        let then = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
        assert_eq!(db.get_with(&then, &family, "a").unwrap().unwrap(), "old");
        assert_eq!(db.get_with(&then, &family, "b").unwrap().unwrap(), "old");
        assert!(db.get_with(&then, &family, "c").unwrap().is_none());
        let mut iter = db.iter(&then).unwrap();
        iter.seek_to_first();
        assert_eq!(iter.next_entry().unwrap().unwrap(), (b"a".to_vec(), b"old".to_vec()));
        assert_eq!(iter.next_entry().unwrap().unwrap(), (b"b".to_vec(), b"old".to_vec()));
        assert!(iter.next_entry().unwrap().is_none());
        assert!(db.get("b").unwrap().is_none());
        db.compact_range(&family, None, None, &Default::default()).unwrap();
    }
}

#[test]
fn iterators_keep_to_their_bounds_in_both_directions() {
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    for number in 0..100 {
        db.put(format!("{number:03}"), "x").unwrap();
        if number == 50 {
            db.flush_all().unwrap();
        }
    }
    db.delete_range("030", "040").unwrap();
    let bounded = ReadOptions {
        iterate_lower_bound: Some(b"020".to_vec()),
        iterate_upper_bound: Some(b"060".to_vec()),
        ..ReadOptions::default()
    };
    let mut iter = db.iter(&bounded).unwrap();
    iter.seek_to_first();
    assert_eq!(iter.key(), b"020");
    iter.seek("035");
    assert_eq!(iter.key(), b"040");
    iter.prev();
    assert_eq!(iter.key(), b"029");
    iter.next();
    assert_eq!(iter.key(), b"040");
    iter.seek_for_prev("999");
    assert_eq!(iter.key(), b"059");
    iter.next();
    assert!(!iter.valid());
    iter.seek_for_prev("001");
    assert!(!iter.valid());
    let family = db.default_column_family().clone();
    assert_eq!(entries(&db, &family).len(), 90);
    assert_eq!(entries(&db, &family), entries_backwards(&db, &family));
}

#[test]
fn large_values_go_to_blob_files_and_come_back() {
    let directory = temporary();
    let path = directory.path().join("db");
    let mut options = create();
    options.set("enable_blob_files", "true").unwrap();
    options.set("min_blob_size", "1000").unwrap();
    let db = Db::open(&path, &options).unwrap();
    let large = vec![7u8; 100_000];
    db.put("large", &large).unwrap();
    db.put("small", "s").unwrap();
    db.flush_all().unwrap();
    let blobs = std::fs::read_dir(&path).unwrap().filter(|entry| {
        entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "blob")
    });
    assert_eq!(blobs.count(), 1);
    assert_eq!(db.get("large").unwrap().unwrap(), large);
    let cached_only = ReadOptions { cache_only: true, ..ReadOptions::default() };
    let family = db.default_column_family().clone();
    assert_eq!(db.get_with(&cached_only, &family, "large").unwrap_err().code(), Code::Incomplete);
    drop(db);
    let db = Db::open(&path, &options).unwrap();
    assert_eq!(db.get("large").unwrap().unwrap(), large);
}

#[test]
fn values_from_blob_files_stay_in_the_cache_where_that_is_asked_for() {
    let directory = temporary();
    let mut options = create();
    options
        .set_all("enable_blob_files=true;min_blob_size=1000;cache_blobs=true;block_cache=8M")
        .unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    let large = |n: u8| vec![n; 50_000];
    for n in 0..10 {
        db.put([n], large(n)).unwrap();
    }
    db.flush_all().unwrap();
    let family = db.default_column_family().clone();
    let cached = |n: u8| {
        let options = ReadOptions { cache_only: true, ..ReadOptions::default() };
        db.get_with(&options, &family, [n]).ok().flatten().map(|value| value.to_vec())
    };
    let passing_by = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    // The table's own block comes first, whether values are cached or not.
    assert!(db.get_with(&passing_by, &family, [0]).unwrap().unwrap() == large(0));
    assert!(db.get([1]).unwrap().unwrap() == large(1));
    assert!(cached(0).is_none() && cached(1) == Some(large(1)));

    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    iter.seek_to_first();
    for n in 0..10 {
        assert!(iter.value().unwrap() == large(n));
        iter.next();
    }
    assert!(cached(7) == Some(large(7)));
    db.put([7], large(77)).unwrap();
    db.compact_range(&family, None, None, &flagstone::options::CompactRangeOptions::default())
        .unwrap();
    assert!(db.get([7]).unwrap().unwrap() == large(77), "never an older one's");
    assert!(cached(2) == Some(large(2)), "where it lies has not changed");
}

#[test]
fn writes_without_the_wal_survive_a_close() {
    let directory = temporary();
    let path = directory.path().join("db");
    let db = Db::open(&path, &create()).unwrap();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    let mut batch = WriteBatch::new();
    batch.put(b"k", b"v").unwrap();
    db.write_with(&unlogged, batch).unwrap();
    db.close().unwrap();
    assert_eq!(db.put("k", "v").unwrap_err().code(), Code::ShutdownInProgress);
    drop(db);
    assert_eq!(Db::open(&path, &create()).unwrap().get("k").unwrap().unwrap(), "v");
}

/// A value and its single deletion take each other away, and the flush writes no table; its WAL
/// goes all the same.
#[test]
fn a_flush_of_nothing_is_a_flush() {
    let directory = temporary();
    let mut options = create();
    options.recycle_log_file_num = 0;
    let db = Db::open(directory.path(), &options).unwrap();
    db.put("key", "value").unwrap();
    db.single_delete("key").unwrap();
    db.flush_all().unwrap();
    assert_eq!(db.live_files(), []);
    let wals = |db: &Db| {
        let names = std::fs::read_dir(db.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".log")).count()
    };
    assert_eq!(wals(&db), 1);
    db.put("other", "value").unwrap();
    db.close().unwrap();
    let db = Db::open(directory.path(), &create()).unwrap();
    assert!(db.get("key").unwrap().is_none() && db.get("other").unwrap().is_some());
}

#[test]
fn many_writers_lose_nothing() {
    let directory = temporary();
    let path = directory.path().join("db");
    let mut options = create();
    options.set("write_buffer_size", "65536").unwrap();
    let db = Db::open(&path, &options).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = db.clone();
            scope.spawn(move || {
                for number in 0..2_000 {
                    let mut batch = WriteBatch::new();
                    batch
                        .put(format!("{thread}/{number:05}").as_bytes(), [thread as u8; 50])
                        .unwrap();
                    let options =
                        WriteOptions { sync: number % 500 == 0, ..WriteOptions::default() };
                    db.write_with(&options, batch).unwrap();
                }
            });
        }
    });
    let family = db.default_column_family().clone();
    assert_eq!(entries(&db, &family).len(), 8_000);
    drop(db);
    let db = Db::open(&path, &options).unwrap();
    assert_eq!(entries(&db, db.default_column_family()).len(), 8_000);
}

/// A lookup asked only the first table of a level that may hold the key; a compaction may have put
/// the key's older versions, which snapshots protect, into the tables behind it.
#[test]
fn versions_of_a_key_that_straddle_tables_are_all_found() {
    let directory = temporary();
    let mut options = create();
    options.set("merge_operator", "stringappend").unwrap();
    options.set("target_file_size_base", "4096").unwrap();
    options.set("compression", "kNoCompression").unwrap();
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    let family = db.default_column_family().clone();
    let mut snapshots = Vec::new();
    let mut expected = String::new();
    for round in 0..40 {
        let operand = format!("{round:02}").repeat(200);
        db.merge("key", &operand).unwrap();
        expected = if expected.is_empty() { operand } else { format!("{expected},{operand}") };
        snapshots.push((db.snapshot(), expected.clone()));
        if round == 20 {
            db.flush_all().unwrap();
        }
    }
    db.compact_range(&family, None, None, &Default::default()).unwrap();
    let tables = db.live_files().iter().filter(|file| file.level > Some(0)).count();
    assert!(tables > 1, "the key's versions were meant to straddle tables");
    for (snapshot, expected) in &snapshots {
        let then = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
        assert!(db.get_with(&then, &family, "key").unwrap().unwrap() == *expected);
        let mut iter = db.iter(&then).unwrap();
        iter.seek_to_first();
        assert!(iter.value().unwrap() == expected.as_bytes());
    }
}

/// A fully loaded database without an overwrite relocated a quarter of its blobs: old files were
/// emptied even if all they held was live.
#[test]
fn blob_files_without_garbage_stay() {
    let directory = temporary();
    let mut options = create();
    for (name, value) in [
        ("enable_blob_files", "true"),
        ("enable_blob_garbage_collection", "true"),
        ("blob_garbage_collection_age_cutoff", "1.0"),
        ("write_buffer_size", "65536"),
        ("level0_file_num_compaction_trigger", "2"),
    ] {
        options.set(name, value).unwrap();
    }
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    for number in 0..500 {
        db.put(format!("{:03}", number * 7 % 500), vec![7; 1_000]).unwrap();
    }
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    assert_eq!(db.statistics().get(flagstone::db::Ticker::BlobGcRelocatedKeys), 0);
    for number in 0..500 {
        db.put(format!("{number:03}"), vec![8; 1_000]).unwrap();
    }
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    let garbage =
        db.int_property(db.default_column_family(), "rocksdb.live-blob-file-garbage-size").unwrap();
    assert_eq!(garbage, 0, "what is entirely garbage is gone, and nothing else is");
}

/// Writers were stopped at two full memtables while the flush waited for four.
#[test]
fn more_memtables_to_merge_than_may_be_full_are_flushed_anyway() {
    let directory = temporary();
    let mut options = create();
    for (name, value) in [
        ("write_buffer_size", "65536"),
        ("max_write_buffer_number", "2"),
        ("min_write_buffer_number_to_merge", "4"),
    ] {
        options.set(name, value).unwrap();
    }
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    for number in 0..500 {
        db.put(format!("{number:03}"), vec![7; 1_000]).unwrap();
    }
    assert_eq!(entries(&db, db.default_column_family()).len(), 500);
}

#[test]
fn without_a_compaction_style_nothing_is_compacted() {
    let directory = temporary();
    let mut options = create();
    options.set("compaction_style", "kCompactionStyleNone").unwrap();
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    for number in 0..8 {
        db.put("key", number.to_string()).unwrap();
        // Left to itself a flush that comes late takes several memtables at once.
        db.flush_all().unwrap();
    }
    db.wait_for_compactions().unwrap();
    let files = db.property(db.default_column_family(), "rocksdb.num-files-at-level0").unwrap();
    assert_eq!(files, "8");
}

#[test]
fn an_option_changed_while_open_is_checked() {
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    assert_eq!(
        db.set_db_options(&[("delayed_write_rate", "fast")]).unwrap_err().code(),
        Code::InvalidArgument
    );
    db.set_db_options(&[("delayed_write_rate", "1048576")]).unwrap();
}

/// A checkpoint kept the original's `wal_dir` in its OPTIONS file: opened as that says, it replayed
/// and then removed the original's WALs.
#[test]
fn a_checkpoint_stands_on_its_own() {
    let directory = temporary();
    let (path, wals, copy) =
        (directory.path().join("db"), directory.path().join("wals"), directory.path().join("copy"));
    std::fs::create_dir(&wals).unwrap();
    let mut options = create();
    options.db.wal_dir = wals.display().to_string();
    let db = Db::open(&path, &options).unwrap();
    db.put("a", "1").unwrap();
    db.checkpoint(&copy).unwrap();
    db.put("b", "2").unwrap();
    assert_eq!(db.checkpoint(&copy).unwrap_err().code(), Code::InvalidArgument);

    let opened = common::open_as_written(&copy, false);
    assert_eq!(opened.get("a").unwrap().unwrap(), "1");
    assert!(opened.get("b").unwrap().is_none());
    opened.put("c", "3").unwrap();
    drop(opened);
    drop(db);
    let db = Db::open(&path, &options).unwrap();
    assert_eq!(db.get("b").unwrap().unwrap(), "2");
    assert!(db.get("c").unwrap().is_none());
}

#[test]
fn options_are_set_where_they_belong() {
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    let family = db.default_column_family().clone();
    db.set_options(&family, &[("write_buffer_size", "1048576"), ("enable_blob_files", "true")])
        .unwrap();
    assert_eq!(family.options().write_buffer_size, 1 << 20);
    let error = db.set_db_options(&[("write_buffer_size", "1048576")]).unwrap_err();
    assert!(error.to_string().contains("set_options"), "{error}");
    assert_eq!(
        db.set_options(&family, &[("num_levels", "3")]).unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(
        db.set_options(&family, &[("nonsense", "3")]).unwrap_err().code(),
        Code::InvalidArgument
    );
    db.set_db_options(&[("delayed_write_rate", "1000000")]).unwrap();
    for (name, value, says) in [
        ("max_background_jobs", "4", "set_db_options"),
        ("prefix_extractor", "fixed:4", "while the database is open"),
    ] {
        let error = db.set_options(&family, &[(name, value)]).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// Nobody reads the options of a family that is gone: it was told that they had changed.
#[test]
fn the_options_of_a_dropped_family_do_not_change() {
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &create()).unwrap();
    let users = db.create_column_family("users", &Default::default()).unwrap();
    db.drop_column_family(&users).unwrap();
    let changed = db.set_options(&users, &[("disable_auto_compactions", "true")]);
    assert_eq!(changed.unwrap_err().code(), Code::ColumnFamilyDropped);
}

/// The number of a family means another one in another database: the write went there.
#[test]
fn a_handle_of_another_database_is_refused() {
    let directory = temporary();
    let one = Db::open(directory.path().join("one"), &create()).unwrap();
    let other = Db::open(directory.path().join("other"), &create()).unwrap();
    let foreign = other.default_column_family();
    assert_eq!(one.put_cf(foreign, "k", "v").unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(one.get_cf(foreign, "k").unwrap_err().code(), Code::InvalidArgument);
    assert!(one.iter_cf(foreign, &ReadOptions::default()).is_err());
    assert!(one.flush(foreign, &Default::default()).is_err());
    let changed = one.set_options(foreign, &[("disable_auto_compactions", "true")]);
    assert_eq!(changed.unwrap_err().code(), Code::InvalidArgument);
    assert!(!foreign.options().disable_auto_compactions, "the other's options are as they were");
    assert!(one.space(foreign).is_err());
    // They told of the one's memory and threads, and of the other's tables.
    assert_eq!(one.property(foreign, "rocksdb.stats"), None);
    assert_eq!(one.property(foreign, "rocksdb.num-files-at-level0"), None);
    assert_eq!(one.int_property(foreign, "rocksdb.num-snapshots"), None);
    let snapshot = other.snapshot();
    let then = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    assert_eq!(
        one.get_with(&then, one.default_column_family(), "k").unwrap_err().code(),
        Code::InvalidArgument
    );
}

struct Panicking;

impl flagstone::options::CompactionFilter for Panicking {
    fn name(&self) -> &str {
        "Panicking"
    }

    fn filter(
        &self,
        _level: u32,
        _key: &[u8],
        _kind: flagstone::options::FilteredKind,
        _value: &[u8],
    ) -> flagstone::options::FilterDecision {
        panic!("the application's filter panics")
    }
}

/// A filter that panicked in a compaction asked for left its inputs marked: closing waited for
/// ever.
#[test]
fn a_filter_that_panics_poisons_and_does_not_hang() {
    let directory = temporary();
    let mut options = create();
    options.cf.compaction_filter = Some(std::sync::Arc::new(Panicking));
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    for round in 0..2 {
        db.put("k", format!("{round}")).unwrap();
        db.flush_all().unwrap();
    }
    let family = db.default_column_family().clone();
    assert_eq!(
        db.compact_range(&family, None, None, &Default::default()).unwrap_err().code(),
        Code::Aborted
    );
    assert!(db.put("k", "after").is_err());
    assert_eq!(db.get("k").unwrap().unwrap(), "1");
    drop(db);
}

/// These were accepted and had no effect.
#[test]
fn what_would_have_no_effect_is_refused() {
    let mut options = create();
    for (name, value) in [
        ("compression_opts.strategy", "1"),
        ("bottommost_compression_opts.use_zstd_dict_trainer", "false"),
    ] {
        assert_eq!(options.set(name, value).unwrap_err().code(), Code::NotSupported, "{name}");
    }
    let mut set_directly = create();
    set_directly.cf.compression_opts.strategy = 1;
    assert_eq!(set_directly.validate().unwrap_err().code(), Code::NotSupported);
    options.set("compression_opts.level", "3").unwrap();
}

/// Takes no operands, and has compactions leave them.
struct Refusing;

impl MergeOperator for Refusing {
    fn name(&self) -> &str {
        "Refusing"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        _existing: Option<&[u8]>,
        _operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        None
    }

    fn failure_scope(&self) -> MergeFailureScope {
        MergeFailureScope::MustMerge
    }
}

/// Operands keep their sequence numbers. Once a snapshot was released that was newer, a table at
/// the bottom with one that could not be merged was rewritten for the sake of these numbers, again
/// and again.
#[test]
fn operands_that_cannot_be_merged_are_not_rewritten_without_an_end() {
    let mut options = create();
    options.env = testkit::steps::world(Env::memory().fs, 1);
    options.cf.merge_operator = Some(Arc::new(Refusing));
    let db = Db::open("/db", &options).unwrap();
    db.merge("k", "1").unwrap();
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    for round in 0..2 {
        db.put("z", "later").unwrap();
        drop(db.snapshot());
        db.flush_all().unwrap();
        let steps = (0..100).take_while(|_| db.background_step().unwrap()).count();
        assert!(steps < 10, "the same table {steps} times in round {round}");
    }
    assert_eq!(db.statistics().get(Ticker::Compactions), 1, "one was worth trying");
}
