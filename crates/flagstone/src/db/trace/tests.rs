use std::path::Path;

use crate::base::Code;
use crate::cache::TraceOptions;
use crate::db::handle::Db;
use crate::env::{Env, IoMode, read_file};
use crate::options::{Options, ReadOptions};
use crate::trace::{
    FileTraceReader, FileTraceWriter, IoCall, IoTraceFilter, IoTraceHeader, IoTraceOptions,
    RawRecord, TraceReader,
};

/// Closing writes the rest, so that a program that forgets to end the recording has one all the
/// same.
#[test]
fn reads_are_recorded_until_the_database_is_closed() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    (0..1000).for_each(|i| db.put(format!("key{i:04}"), [7; 100]).unwrap());
    db.flush_all().unwrap();
    db.start_block_cache_trace("/db/trace", &TraceOptions::default()).unwrap();
    let before = db.inner().tables.caches().blocks().statistics();
    (0..1000).for_each(|i| assert!(db.get(format!("key{i:04}")).unwrap().is_some()));
    // These find nothing, or have nothing kept.
    let unkept = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    assert!(db.get("yes").unwrap().is_none());
    let mut iter = db.iter(&unkept).unwrap();
    iter.seek_to_first();
    assert!(iter.valid());
    drop(iter);
    let after = db.inner().tables.caches().blocks().statistics();
    let asked = after.hits - before.hits + after.inserts - before.inserts;
    db.close().unwrap();
    let size = options.env.fs.metadata("/db/trace".as_ref()).unwrap().size;
    assert_eq!(size, asked * 24);
    assert!(asked >= 1000, "{asked}");
    assert!(db.start_block_cache_trace("/db/other", &TraceOptions::default()).is_err());
}

fn creating(env: &Env) -> Options {
    let mut options = Options { env: env.clone(), ..Options::default() };
    options.create_if_missing = true;
    options
}

/// The calls of a trace.
fn calls(env: &Env, path: &str) -> Vec<IoCall> {
    let mut reader = FileTraceReader::open(env, path).unwrap();
    let first = reader.read().unwrap().unwrap();
    IoTraceHeader::decode(&RawRecord::parse(&first).unwrap()).unwrap();
    let rest = std::iter::from_fn(|| reader.read().unwrap());
    rest.map(|record| IoCall::decode(&RawRecord::parse(&record).unwrap()).unwrap()).collect()
}

#[test]
fn calls_of_files_are_recorded_until_the_database_is_closed() {
    let env = Env::memory();
    let options = creating(&env);
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.end_io_trace().unwrap(), None);
    let start = |path: &str, options: &IoTraceOptions| {
        db.start_io_trace(options, Box::new(FileTraceWriter::create(&env, path).unwrap()))
    };
    start("/db/first", &IoTraceOptions::default()).unwrap();
    assert_eq!(start("/db/other", &IoTraceOptions::default()).unwrap_err().code(), Code::Busy);
    db.put("key", "value").unwrap();
    db.sync_wal().unwrap();
    db.flush_all().unwrap();
    let summary = db.end_io_trace().unwrap().unwrap();
    assert!(db.get("key").unwrap().is_some());
    let first = calls(&env, "/db/first");
    assert_eq!(summary.calls, first.len() as u64);
    assert_eq!(summary.bytes, env.fs.metadata(Path::new("/db/first")).unwrap().size);
    let position = |end: &str, operation: &str| {
        first.iter().position(|call| call.file_name.ends_with(end) && call.operation == operation)
    };
    // The WAL was open already. A table is synced before the directory that names it.
    let wal = position(".log", "Sync").unwrap();
    let table = position(".sst", "NewWritableFile").unwrap();
    let synced = position(".sst", "Sync").unwrap();
    let named = first.iter().rposition(|call| call.operation == "Fsync").unwrap();
    assert!(wal < table && table < synced && synced < named, "{first:?}");
    let written = |call: &&IoCall| call.file_name.ends_with(".sst") && call.offset == Some(0);
    assert!(first.iter().filter(written).any(|call| call.length.unwrap() > 100));

    let filter = IoTraceFilter { writes: true, syncs: true, others: true, reads: false };
    start("/db/second", &IoTraceOptions { filter, ..IoTraceOptions::default() }).unwrap();
    assert!(db.get("other").unwrap().is_none() && db.get("key").unwrap().is_some());
    let mut iter = db.iter(&ReadOptions { fill_cache: false, ..ReadOptions::default() }).unwrap();
    iter.seek_to_first();
    drop(iter);
    db.close().unwrap();
    let second = calls(&env, "/db/second");
    assert!(second.iter().all(|call| call.operation.contains("Read")), "{second:?}");
    assert!(start("/db/third", &IoTraceOptions::default()).is_err());
}

/// The trace lay in the file system that it was about: each record that was written made another
/// one, under the lock of the first.
#[test]
fn a_trace_in_the_files_of_the_database_does_not_record_itself() {
    let options = creating(&Env::memory());
    let db = Db::open("/db", &options).unwrap();
    let own = db.options().env.clone();
    let writer = Box::new(FileTraceWriter::create(&own, "/db/trace").unwrap());
    db.start_io_trace(&IoTraceOptions::default(), writer).unwrap();
    // More than its buffer takes.
    (0..2000).for_each(|_| assert!(own.fs.metadata(Path::new("/db/CURRENT")).is_ok()));
    let summary = db.end_io_trace().unwrap().unwrap();
    assert!(summary.calls >= 2000);
    let recorded = calls(&options.env, "/db/trace");
    assert!(recorded.iter().all(|call| call.file_name != "trace"));
}

#[test]
fn a_call_that_fails_is_recorded_with_its_status() {
    let options = creating(&Env::memory());
    let db = Db::open("/db", &options).unwrap();
    let writer = Box::new(FileTraceWriter::create(&options.env, "/db/trace").unwrap());
    db.start_io_trace(&IoTraceOptions::default(), writer).unwrap();
    let fs = db.options().env.fs.clone();
    let error = fs.open_random_access(Path::new("/db/none"), IoMode::Buffered).err().unwrap();
    read_file(&*fs, Path::new("/db/CURRENT"), 100).unwrap();
    db.end_io_trace().unwrap();
    let recorded = calls(&options.env, "/db/trace");
    let failed: Vec<&IoCall> = recorded.iter().filter(|call| !call.is_ok()).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].status, error.to_string());
    assert_eq!((&*failed[0].operation, &*failed[0].file_name), ("NewRandomAccessFile", "none"));
}
