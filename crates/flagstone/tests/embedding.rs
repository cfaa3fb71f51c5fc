//! What a program expects of the interface that embeds the engine, coming from RocksDB or from
//! Rust's own types.

use std::error::Error as _;
use std::fmt::Debug;
use std::io::Write;

use bytes::Bytes;
use flagstone::base::{Code, Error};
use flagstone::batch::WriteBatch;
use flagstone::db::{
    AsyncIter, ColumnFamily, Db, Iter, TtlAsyncIter, TtlDb, TtlIter, TtlOptions, Value, ValuePart,
    ValueWriter,
};
use flagstone::env::{BackgroundThreads, Env, RateLimiter};
use flagstone::options::{
    BlockCache, CompactRangeOptions, CompactionControl, FlushOptions, Options, ReadOptions,
    WriteOptions,
};

fn options() -> Options {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options
}

/// Some had no `Debug`: a `Result` of one could not be unwrapped.
#[test]
fn handles_go_to_other_threads_and_into_messages() {
    fn is_handy<T: Debug + Send + 'static>() {}
    fn is_shared<T: Debug + Send + Sync + 'static>() {}
    is_handy::<AsyncIter>();
    is_handy::<ValueWriter>();
    is_handy::<Iter>();
    is_handy::<TtlAsyncIter>();
    is_handy::<TtlIter>();
    is_shared::<BackgroundThreads>();
    is_shared::<BlockCache>();
    is_shared::<ColumnFamily>();
    is_shared::<CompactionControl>();
    is_shared::<Db>();
    is_shared::<Error>();
    is_shared::<Options>();
    is_shared::<RateLimiter>();
    is_shared::<ReadOptions>();
    is_shared::<TtlDb>();
    is_shared::<Value>();
    is_shared::<ValuePart>();
    is_shared::<WriteBatch>();

    let db = Db::open("/db", &options()).unwrap();
    db.put("stone", "flag").unwrap();
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    assert_eq!(format!("{iter:?}"), "Iter(on no key)");
    iter.seek_to_first();
    assert_eq!(format!("{iter:?}"), "Iter(at stone)");
    let mut writer =
        db.put_stream(db.default_column_family(), "photo", &WriteOptions::default()).unwrap();
    writer.write_all(b"pixels").unwrap();
    assert_eq!(format!("{writer:?}"), "ValueWriter(photo, 6 bytes)");
}

/// Each took `&[u8]` alone, where the same call of a database takes all that is bytes.
#[test]
fn a_batch_takes_what_a_database_takes() {
    let db = Db::open("/db", &options()).unwrap();
    let family = db.create_column_family("cats", &db.options().cf).unwrap();
    let mut batch = WriteBatch::new();
    batch.put("stone", "flag").unwrap();
    batch.put_cf(&family, 7u64.to_be_bytes(), vec![1, 2, 3]).unwrap();
    batch.delete_cf(&family, String::from("kit")).unwrap();
    batch.delete_range("a", "b").unwrap();
    batch.put_log_data("told to whoever reads the WAL").unwrap();
    db.write(batch).unwrap();
    assert_eq!(db.get("stone").unwrap().unwrap(), "flag");
    assert_eq!(db.get_cf(&family, 7u64.to_be_bytes()).unwrap().unwrap(), [1, 2, 3]);
}

#[test]
fn a_value_becomes_what_the_program_sends_on() {
    let mut options = options();
    options.cf.enable_blob_files = Some(true);
    options.cf.min_blob_size = Some(4096);
    let db = Db::open("/db", &options).unwrap();
    let (small, large) = (vec![1; 100], vec![2; 100_000]);
    for (key, value) in [("small", &small), ("large", &large)] {
        db.put(key, value).unwrap();
        let in_memory = db.get(key).unwrap().unwrap();
        db.flush_all().unwrap();
        let in_file = db.get(key).unwrap().unwrap();
        assert_eq!(in_memory, in_file);
        let place = in_file.as_ptr();
        let sent = Bytes::from(in_file);
        assert_eq!(sent, value);
        assert_eq!(sent.as_ptr(), place, "{key} was copied");
        assert_eq!(&Vec::from(in_memory), value);
    }
}

#[test]
fn behind_an_error_of_a_writer_of_pieces_stands_the_engine_s() {
    let db = Db::open("/db", &options()).unwrap();
    let family = db.default_column_family();
    let mut writer =
        db.put_stream(family, vec![7; 100], &WriteOptions::default()).unwrap().with_buffer(0);
    db.close().unwrap();
    let error = writer.write_all(b"pixels").unwrap_err();
    let engine =
        error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).expect("the engine's own");
    assert_eq!(engine.code(), Code::ShutdownInProgress);
    assert!(engine.source().is_none());
}

/// They could be had for one family at a time by long names only.
#[test]
fn a_ttl_database_has_the_short_calls_too() {
    let mut options = options();
    options.set("merge_operator", "stringappend").unwrap();
    let db = TtlDb::open("/db", &options, TtlOptions::strict(3600)).unwrap();
    let mut batch = WriteBatch::new();
    batch.put("session/1", "alice").unwrap();
    batch.put("session/2", "bob").unwrap();
    db.write(&batch).unwrap();
    db.merge("session/2", "carol").unwrap();
    db.put("session/3", "dave").unwrap();
    db.delete("session/3").unwrap();
    let family = db.base().default_column_family();
    assert_eq!(db.get_cf(family, "session/2").unwrap().unwrap(), "bob,carol");
    let found = db.multi_get(&["session/1", "session/3"]);
    assert_eq!(
        found.into_iter().map(|value| value.unwrap().is_some()).collect::<Vec<_>>(),
        [true, false]
    );
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    assert!(iter.next_entry().unwrap().is_none(), "nobody has sent it anywhere");
    iter.seek_to_first();
    let entries: Vec<_> =
        std::iter::from_fn(|| iter.next_entry().transpose()).map(Result::unwrap).collect();
    assert_eq!(entries[1], (b"session/2".to_vec(), b"bob,carol".to_vec()));
    assert_eq!(entries.len(), 2);
}

/// That it was not opened was all that was said, though `Db::open` gives all families the options
/// of one.
#[test]
fn a_database_that_wants_other_options_says_which() {
    let options = options();
    let db = Db::open("/db", &options).unwrap();
    let mut newest = options.cf.clone();
    newest.set("comparator", "rocksdb.ReverseBytewiseComparator").unwrap();
    let family = db.create_column_family("newest", &newest).unwrap();
    db.put_cf(&family, "stone", "flag").unwrap();
    db.compact_range(&family, None, None, &CompactRangeOptions::default()).unwrap();
    db.close().unwrap();

    let refused = Db::open("/db", &options).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(
        refused.remedy().is_some_and(|remedy| remedy.contains("Db::open_with_families")),
        "{refused}"
    );
    newest.num_levels = 3;
    let refused =
        Db::open_with_families("/db", &options, &[("newest", newest.clone())]).unwrap_err();
    assert!(
        refused.remedy().is_some_and(|remedy| remedy.starts_with("set it to 7 or more")),
        "{refused}"
    );
    newest.num_levels = 7;
    let db = Db::open_with_families("/db", &options, &[("newest", newest)]).unwrap();
    assert_eq!(db.get_cf(&db.column_family("newest").unwrap(), "stone").unwrap().unwrap(), "flag");
}

/// Those that metrics of stream processors ask for were not known: what waits for compactions, and
/// for flushes.
#[test]
fn properties_tell_what_waits() {
    let mut options = options();
    options.set_all("disable_auto_compactions=true;max_bytes_for_level_base=1000;level0_file_num_compaction_trigger=2").unwrap();
    let db = Db::open("/db", &options).unwrap();
    let property = |name: &str| db.int_property(db.default_column_family(), name);
    assert_eq!(property("rocksdb.estimate-pending-compaction-bytes"), Some(0));
    for round in 0..4u64 {
        for key in 0..100u64 {
            db.put(key.to_be_bytes(), [round as u8; 100]).unwrap();
        }
        db.flush(db.default_column_family(), &FlushOptions::default()).unwrap();
    }
    assert!(
        property("rocksdb.estimate-pending-compaction-bytes").is_some_and(|bytes| bytes > 1000)
    );
    assert_eq!(property("rocksdb.num-entries-imm-mem-tables"), Some(0));
    assert_eq!(property("rocksdb.num-deletes-imm-mem-tables"), Some(0));
}

#[test]
fn the_options_in_force_and_the_identity_can_be_asked_for() {
    let options = options();
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.options().max_background_jobs, options.max_background_jobs);
    db.set_db_options(&[("max_background_jobs", "7")]).unwrap();
    assert_eq!(db.options().max_background_jobs, 7);
    assert!(!db.identity().is_empty());
    db.checkpoint("/copy").unwrap();
    assert_eq!(Db::open("/copy", &options).unwrap().identity(), db.identity());
}
