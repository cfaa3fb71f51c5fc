//! Operations are recorded in one database and repeated in another.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the tests stand outside the engine")]

mod common;

use std::path::Path;
use std::sync::Mutex;

use common::{create, entries, temporary};
use flagstone::base::{Code, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{Options, ReadOptions, WriteOptions};
use flagstone::replay::{ReplayOptions, ReplayOutcome, ReplaySummary, Replayer};
use flagstone::trace::{
    FileTraceReader, FileTraceWriter, OperationTraceOptions, TraceFilter, TraceRecord,
};

const AT_ONCE: ReplayOptions = ReplayOptions { num_threads: 1, fast_forward: f64::INFINITY };

fn options() -> Options {
    let mut options = create();
    options.set_all("enable_blob_files=true;min_blob_size=1000").unwrap();
    options
}

fn start(db: &Db, path: &Path, options: &OperationTraceOptions) {
    let writer = FileTraceWriter::create(&Env::os(), path).unwrap();
    db.start_trace(options, Box::new(writer)).unwrap();
}

fn replayer(db: &Db, path: &Path) -> Replayer {
    let reader = FileTraceReader::open(&Env::os(), path).unwrap();
    let mut replayer = Replayer::new(db, Box::new(reader));
    replayer.prepare().unwrap();
    replayer
}

fn all(db: &Db) -> Vec<(Vec<u8>, Vec<u8>)> {
    entries(db, db.default_column_family())
}

/// Everything that is recorded.
fn live(db: &Db) {
    let family = db.create_column_family("other", &Default::default()).unwrap();
    db.put("a", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("b", "2").unwrap();
    batch.put_cf(&family, "c", "3").unwrap();
    batch.delete("a").unwrap();
    batch.delete_range("x", "z").unwrap();
    db.write(batch).unwrap();
    // Values that go to blob files at commit, in a batch and alone.
    db.put("large", vec![b'l'; 200_000]).unwrap();
    let mut batch = WriteBatch::new();
    batch.put("large too", vec![b'L'; 100_000]).unwrap();
    db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch).unwrap();
    db.write_with(&WriteOptions { disable_wal: true, ..WriteOptions::default() }, {
        let mut batch = WriteBatch::new();
        batch.put("unlogged", "4").unwrap();
        batch
    })
    .unwrap();
    assert_eq!(db.get("b").unwrap().unwrap(), "2");
    assert!(db.get("absent").unwrap().is_none());
    db.multi_get(&["a", "b", "large"]);
    let bounds = ReadOptions {
        iterate_lower_bound: Some(b"b".to_vec()),
        iterate_upper_bound: Some(b"m".to_vec()),
        ..ReadOptions::default()
    };
    let mut iter = db.iter(&bounds).unwrap();
    iter.seek("c");
    iter.seek_for_prev("c");
    let mut iter = db.iter_cf(&family, &ReadOptions::default()).unwrap();
    iter.seek("d");
}

fn with_families(path: &Path) -> Db {
    let db = Db::open(path, &options()).unwrap();
    db.create_column_family("other", &Default::default()).unwrap();
    db
}

type Outcomes = Vec<std::result::Result<ReplayOutcome, String>>;

fn replay(replayer: &mut Replayer, options: &ReplayOptions) -> (Result<ReplaySummary>, Outcomes) {
    let outcomes = Mutex::new(Vec::new());
    let summary = replayer.replay(options, |_, outcome| {
        outcomes.lock().unwrap().push(outcome.clone().map_err(|error| error.to_string()))
    });
    (summary, outcomes.into_inner().unwrap())
}

#[test]
fn what_one_database_did_another_repeats() {
    let directory = temporary();
    let path = |name: &str| directory.path().join(name);
    let db = Db::open(path("first"), &options()).unwrap();
    start(&db, &path("trace"), &OperationTraceOptions::default());
    live(&db);
    let summary = db.end_trace().unwrap().unwrap();
    assert_eq!((summary.operations, summary.is_full), (11, false));
    db.put("behind", "the end").unwrap();
    assert_eq!(db.end_trace().unwrap(), None);

    let second = with_families(&path("second"));
    let mut replayer = replayer(&second, &path("trace"));
    assert!(replayer.header_timestamp() > 1_000_000_000_000_000);
    let (summary, outcomes) = replay(&mut replayer, &AT_ONCE);
    assert_eq!(summary.unwrap(), ReplaySummary { executed: 11, unsupported: 0 });
    assert!(outcomes[..5].iter().all(|outcome| *outcome == Ok(ReplayOutcome::Written)));
    assert_eq!(outcomes[5], Ok(ReplayOutcome::Value(Some(b"2".to_vec()))));
    assert_eq!(outcomes[6], Ok(ReplayOutcome::Value(None)));
    let Ok(ReplayOutcome::Values(many)) = &outcomes[7] else { panic!("{:?}", outcomes[7]) };
    assert_eq!(many[..2], [None, Some(b"2".to_vec())]);
    assert_eq!(many[2].as_ref().map(Vec::len), Some(200_000));
    let Ok(ReplayOutcome::Entry(Some((key, _)))) = &outcomes[8] else { panic!() };
    assert_eq!(key, b"large");
    assert_eq!(outcomes[9], Ok(ReplayOutcome::Entry(Some((b"b".to_vec(), b"2".to_vec())))));
    assert_eq!(outcomes[10], Ok(ReplayOutcome::Entry(None)));
    db.delete("behind").unwrap();
    assert_eq!(all(&second), all(&db));
    let other =
        |db: &Db| db.get_with(&ReadOptions::default(), &db.column_family("other").unwrap(), "c");
    assert_eq!(other(&second).unwrap().unwrap(), "3");

    let (again, _) = replay(&mut replayer, &AT_ONCE);
    assert_eq!(again.unwrap_err().code(), Code::Incomplete);
    replayer.prepare().unwrap();
    assert_eq!(replayer.next().unwrap().unwrap().1, {
        let mut batch = WriteBatch::new();
        batch.put("a", "1").unwrap();
        TraceRecord::Write { batch: batch.data().to_vec() }
    });
    let (rest, _) = replay(&mut replayer, &ReplayOptions { num_threads: 4, ..AT_ONCE });
    assert_eq!(rest.unwrap().executed, 10);
    assert!(replayer.next().unwrap().is_none());
}

#[test]
fn writes_of_many_threads_are_repeated_in_their_order() {
    let directory = temporary();
    let path = |name: &str| directory.path().join(name);
    let db = Db::open(path("first"), &options()).unwrap();
    start(&db, &path("trace"), &OperationTraceOptions::default());
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..300u32 {
                    db.put(format!("key{}", n % 7), format!("{thread} {n}")).unwrap();
                }
            });
        }
    });
    // The end of a database ends its trace.
    let before = all(&db);
    db.close().unwrap();
    let second = Db::open(path("second"), &options()).unwrap();
    let (summary, _) = replay(&mut replayer(&second, &path("trace")), &AT_ONCE);
    assert_eq!(summary.unwrap().executed, 1200);
    assert_eq!(all(&second), before);
}

#[test]
fn a_replay_keeps_the_pace_and_ends_at_the_first_error() {
    let directory = temporary();
    let path = |name: &str| directory.path().join(name);
    let db = Db::open(path("first"), &options()).unwrap();
    let family = db.create_column_family("other", &Default::default()).unwrap();
    let filter = TraceFilter { gets: true, ..TraceFilter::default() };
    start(&db, &path("trace"), &OperationTraceOptions { filter, ..Default::default() });
    db.put("a", "1").unwrap();
    db.get("a").unwrap();
    std::thread::park_timeout(std::time::Duration::from_millis(300));
    db.get_with(&ReadOptions::default(), &family, "a").unwrap();
    db.multi_get_with(&ReadOptions::default(), &family, &["a"]);
    db.put("b", "2").unwrap();
    assert_eq!(db.end_trace().unwrap().unwrap().operations, 3);

    let second = Db::open(path("second"), &options()).unwrap();
    let mut replayer = replayer(&second, &path("trace"));
    let clock = Env::os().clock;
    let begun = clock.now_us();
    let (summary, outcomes) = replay(&mut replayer, &ReplayOptions::default());
    // The pause was kept.
    assert!(clock.now_us() - begun >= 290_000);
    let error = summary.unwrap_err();
    assert!(error.to_string().contains("column family 1, which is not replayed"), "{error}");
    assert_eq!(outcomes.len(), 2);
    assert!(second.get("a").unwrap().is_some() && second.get("b").unwrap().is_none());
    replayer.prepare().unwrap();
    let begun = clock.now_us();
    let fast = ReplayOptions { fast_forward: 100.0, num_threads: 3 };
    assert!(replay(&mut replayer, &fast).0.is_err());
    assert!(clock.now_us() - begun < 200_000);
    for fast_forward in [0.0, -1.0, f64::NAN] {
        let wrong = ReplayOptions { fast_forward, ..AT_ONCE };
        let error = replayer.replay(&wrong, |_, _| {}).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
    let reader = FileTraceReader::open(&Env::os(), path("trace")).unwrap();
    let mut unprepared = Replayer::new(&second, Box::new(reader));
    assert_eq!(replay(&mut unprepared, &AT_ONCE).0.unwrap_err().code(), Code::Incomplete);
    assert_eq!(unprepared.next().unwrap_err().code(), Code::Incomplete);
}

#[test]
fn bad_traces_are_refused_and_records_of_other_kinds_passed() {
    let directory = temporary();
    let path = directory.path().join("trace");
    let db = Db::open(directory.path().join("db"), &options()).unwrap();
    start(&db, &path, &OperationTraceOptions::default());
    db.put("a", "1").unwrap();
    db.get("a").unwrap();
    db.end_trace().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let with = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let reader = FileTraceReader::open(&Env::os(), &path).unwrap();
        let mut replayer = Replayer::new(&db, Box::new(reader));
        replayer.prepare()?;
        replay(&mut replayer, &AT_ONCE).0
    };
    // A record of I/O, and one of a later version.
    let record = |kind: u8| [&[0; 8][..], &[kind, 1, 0, 0, 0, b'x']].concat();
    let end = whole.len() - 13;
    let mixed = [&whole[..end], &record(12), &record(77), &whole[end..]].concat();
    assert_eq!(with(&mixed).unwrap(), ReplaySummary { executed: 2, unsupported: 2 });
    // Without its end, as when the process died.
    assert_eq!(with(&whole[..end]).unwrap(), ReplaySummary { executed: 2, unsupported: 0 });
    for cut in [end - 1, end - 20, 40, 12, 1] {
        assert_eq!(with(&whole[..cut]).unwrap_err().code(), Code::Corruption, "{cut}");
    }
    assert!(with(b"").unwrap_err().to_string().contains("the trace is empty"));
    // A batch that is none.
    let bad = [&whole[..end], &[0; 8], &[3, 9, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(with(&bad).unwrap_err().code(), Code::Corruption);
    let missing = FileTraceReader::open(&Env::os(), directory.path().join("none")).err().unwrap();
    assert!(missing.is_not_found());
}
