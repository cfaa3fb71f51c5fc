//! Background work that a program pauses, compactions that it ends, and waiting for both.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use flagstone::base::{Code, CompactionFilter, FilterDecision, FilteredKind, Result, SubCode};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{
    CompactFilesOptions, CompactRangeOptions, Options, WaitForCompactOptions, WriteOptions,
};
use testkit::{FaultFs, settings, steps};

fn at_once() -> WaitForCompactOptions {
    WaitForCompactOptions { timeout: Some(Duration::ZERO), ..WaitForCompactOptions::default() }
}

fn code<T: std::fmt::Debug>(outcome: Result<T>) -> Code {
    outcome.expect_err("a refusal").code()
}

fn tables(db: &Db) -> usize {
    db.live_files().iter().filter(|file| file.level.is_some()).count()
}

fn level0_tables(db: &Db) -> usize {
    db.live_files().iter().filter(|file| file.level == Some(0)).count()
}

/// In a world without threads: each step does what there is to do.
fn stepping(changes: &[(&str, &str)]) -> Options {
    let mut options = settings::tiny(&steps::world(Arc::new(MemoryFileSystem::new()), 1));
    settings::set(&mut options, changes);
    options
}

#[test]
fn nothing_begins_until_all_who_paused_go_on() {
    let db = Db::open("/db", &stepping(&[("level0_file_num_compaction_trigger", "2")])).unwrap();
    for value in ["one", "two"] {
        db.put("key", value).unwrap();
        db.flush_all().unwrap();
    }
    db.pause_background_work().unwrap();
    db.pause_background_work().unwrap();
    let asked = flagstone::options::FlushOptions { wait: false, ..Default::default() };
    db.put("key", "three").unwrap();
    db.flush(db.default_column_family(), &asked).unwrap();
    let before = tables(&db);
    assert!(!db.background_step().unwrap(), "neither a flush nor a compaction");
    assert_eq!(code(db.wait_for_compact(&at_once())), Code::TimedOut);
    let hurried = WaitForCompactOptions { abort_on_pause: true, ..Default::default() };
    assert_eq!(code(db.wait_for_compact(&hurried)), Code::Aborted);
    let flushing = WaitForCompactOptions { flush: true, ..hurried };
    assert_eq!(code(db.wait_for_compact(&flushing)), Code::Aborted, "its flush would wait");

    db.continue_background_work().unwrap();
    assert!(!db.background_step().unwrap(), "one still pauses it");
    assert_eq!(tables(&db), before);
    db.continue_background_work().unwrap();
    db.wait_for_compact(&hurried).unwrap();
    assert!(level0_tables(&db) < 2);
    assert_eq!(db.get("key").unwrap().unwrap(), "three");
    assert_eq!(code(db.continue_background_work()), Code::InvalidArgument);
}

/// A requested compaction that finds nothing to flush is no background work.
#[test]
fn a_requested_compaction_runs_while_work_is_paused() {
    let db = Db::open("/db", &stepping(&[("disable_auto_compactions", "true")])).unwrap();
    for value in ["one", "two"] {
        db.put("key", value).unwrap();
        db.flush_all().unwrap();
    }
    db.pause_background_work().unwrap();
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    assert_eq!(tables(&db), 1);
}

/// Closing flushes what is in no WAL: it would wait for ever.
#[test]
fn closing_ends_a_pause() {
    let options = stepping(&[]);
    let db = Db::open("/db", &options).unwrap();
    db.pause_background_work().unwrap();
    let mut batch = WriteBatch::new();
    batch.put("key", "value").unwrap();
    db.write_with(&WriteOptions::unlogged(), batch).unwrap();
    db.close().unwrap();
    assert_eq!(code(db.continue_background_work()), Code::ShutdownInProgress);
    drop(db);
    assert_eq!(Db::open("/db", &options).unwrap().get("key").unwrap().unwrap(), "value");
}

/// What began between the end of all pauses and the last flush had closing wait for ever.
#[test]
fn a_database_that_is_being_closed_is_not_paused() {
    let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let options = settings::tiny(&steps::world(Arc::new(fs.clone()), 1));
    let db = Db::open("/db", &options).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"key", b"value").unwrap();
    db.write_with(&WriteOptions::unlogged(), batch).unwrap();
    let (answers, own) = (Arc::new(Mutex::new(Vec::new())), db.clone());
    let noted = answers.clone();
    fs.before_each(move |_, path| {
        if path.extension().is_some_and(|extension| extension == "sst") {
            noted.lock().unwrap().push(own.pause_background_work());
        }
    });
    db.close().unwrap();
    fs.before_each(|_, _| {});
    let answers = std::mem::take(&mut *answers.lock().unwrap());
    assert!(!answers.is_empty(), "a table was written");
    answers.into_iter().for_each(|answer| assert_eq!(code(answer), Code::ShutdownInProgress));
}

/// Without `abort_on_pause` it would wait for as long as they are aborted.
#[test]
fn waiting_ends_where_compactions_are_aborted() {
    let db = Db::open("/db", &stepping(&[("level0_file_num_compaction_trigger", "2")])).unwrap();
    for value in ["one", "two"] {
        db.put("key", value).unwrap();
        db.flush_all().unwrap();
    }
    db.abort_all_compactions().unwrap();
    let hurried = WaitForCompactOptions { abort_on_pause: true, ..Default::default() };
    assert_eq!(code(db.wait_for_compact(&hurried)), Code::Aborted);
    assert_eq!(code(db.wait_for_compact(&at_once())), Code::TimedOut);
    db.resume_all_compactions().unwrap();
    db.wait_for_compact(&hurried).unwrap();
}

/// A filter that says when a compaction has begun, and keeps it until it is told to go on.
struct Gate {
    begun: SyncSender<()>,
    goes_on: Mutex<Receiver<()>>,
    is_open: AtomicBool,
    seen: AtomicU64,
}

impl Gate {
    fn new() -> (Arc<Self>, Receiver<()>, SyncSender<()>) {
        let (begun, has_begun) = sync_channel(1);
        let (open, goes_on) = sync_channel(1);
        let (is_open, seen) = (AtomicBool::new(false), AtomicU64::new(0));
        let gate = Arc::new(Self { begun, goes_on: Mutex::new(goes_on), is_open, seen });
        (gate, has_begun, open)
    }
}

impl CompactionFilter for Gate {
    fn name(&self) -> &str {
        "flagstone.tests.Gate"
    }

    fn filter(&self, _: u32, _: &[u8], _: FilteredKind, _: &[u8]) -> FilterDecision {
        self.seen.fetch_add(1, Ordering::Relaxed);
        if !self.is_open.swap(true, Ordering::Relaxed) {
            self.begun.send(()).unwrap();
            self.goes_on.lock().unwrap().recv().unwrap();
        }
        FilterDecision::Keep
    }
}

const KEYS: u64 = 20_000;

/// A database with two tables of 20,000 keys in level 0.
fn gated(changes: &[(&str, &str)]) -> (Db, Arc<Gate>, Receiver<()>, SyncSender<()>) {
    let (gate, has_begun, open) = Gate::new();
    let mut options = settings::tiny(&Env::memory());
    let large = [("write_buffer_size", "100000000"), ("target_file_size_base", "100000000")];
    settings::set(&mut options, &large);
    settings::set(&mut options, &[("disable_auto_compactions", "true")]);
    settings::set(&mut options, changes);
    options.cf.compaction_filter = Some(gate.clone());
    let db = Db::open("/db", &options).unwrap();
    for value in ["old", "new"] {
        (0..KEYS).for_each(|key| db.put(format!("{key:06}"), value).unwrap());
        db.flush_all().unwrap();
    }
    (db, gate, has_begun, open)
}

fn compact(db: &Db) -> Result<()> {
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
}

fn number(db: &Db, property: &str) -> u64 {
    db.int_property(db.default_column_family(), property).unwrap()
}

#[test]
fn a_pause_waits_for_what_runs() {
    let (db, _gate, has_begun, open) = gated(&[]);
    thread::scope(|scope| {
        let compaction = scope.spawn(|| compact(&db));
        has_begun.recv().unwrap();
        let pause = scope.spawn(|| {
            db.pause_background_work().unwrap();
            number(&db, "rocksdb.num-running-compactions")
        });
        open.send(()).unwrap();
        assert_eq!(pause.join().unwrap(), 0);
        compaction.join().unwrap().unwrap();
    });
    assert_eq!(tables(&db), 1);
}

#[test]
fn aborted_compactions_end_soon_and_begin_when_resumed() {
    let (db, gate, has_begun, open) = gated(&[]);
    let family = db.default_column_family();
    db.set_options(family, &[("level0_file_num_compaction_trigger", "2")]).unwrap();
    db.set_options(family, &[("disable_auto_compactions", "false")]).unwrap();
    has_begun.recv().unwrap();
    thread::scope(|scope| {
        let abort = scope.spawn(|| db.abort_all_compactions());
        while number(&db, "rocksdb.compaction-abort-count") == 0 {
            thread::yield_now();
        }
        open.send(()).unwrap();
        abort.join().unwrap().unwrap();
    });
    assert!(gate.seen.load(Ordering::Relaxed) < 3000, "it reads no further");
    assert_eq!((tables(&db), number(&db, "rocksdb.num-running-compactions")), (2, 0));
    assert!(db.check().unwrap().strays.is_empty(), "what it had written is gone");
    assert_eq!(number(&db, "rocksdb.background-errors"), 0);

    let refused = |outcome: Result<()>| {
        let error = outcome.unwrap_err();
        (error.code(), error.subcode())
    };
    let aborted = (Code::Incomplete, SubCode::CompactionAborted);
    assert_eq!(refused(compact(&db)), aborted);
    let numbers: Vec<_> = db.live_files().iter().map(|file| file.number).collect();
    let files = db.compact_files(family, &numbers, 1, &CompactFilesOptions::default());
    assert_eq!(refused(files.map(|_| ())), aborted);
    db.abort_all_compactions().unwrap();
    db.resume_all_compactions().unwrap();
    assert_eq!(refused(compact(&db)), aborted, "another call still stops it");
    db.put("flushes", "go on").unwrap();
    db.flush_all().unwrap();

    db.resume_all_compactions().unwrap();
    db.wait_for_compactions().unwrap();
    assert!(level0_tables(&db) < 2);
    assert_eq!(db.get("000000").unwrap().unwrap(), "new");
    assert_eq!(code(db.resume_all_compactions()), Code::InvalidArgument);
}

#[test]
fn requested_compactions_are_disabled_and_enabled() {
    let (db, gate, has_begun, open) = gated(&[]);
    thread::scope(|scope| {
        let compaction = scope.spawn(|| compact(&db));
        has_begun.recv().unwrap();
        let disabled = scope.spawn(|| db.disable_manual_compaction());
        // Until it is refused, another call waits for the first.
        let other = compact(&db).unwrap_err();
        assert_eq!(other.subcode(), SubCode::ManualCompactionPaused);
        open.send(()).unwrap();
        disabled.join().unwrap().unwrap();
        let error = compaction.join().unwrap().unwrap_err();
        assert_eq!(
            (error.code(), error.subcode()),
            (Code::Incomplete, SubCode::ManualCompactionPaused)
        );
    });
    assert!(gate.seen.load(Ordering::Relaxed) < 3000);
    assert_eq!(code(compact(&db)), Code::Incomplete);
    // Automatic ones go on.
    let family = db.default_column_family();
    db.set_options(family, &[("level0_file_num_compaction_trigger", "2")]).unwrap();
    db.set_options(family, &[("disable_auto_compactions", "false")]).unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(tables(&db), 1);
    db.enable_manual_compaction().unwrap();
    compact(&db).unwrap();
    assert_eq!(code(db.enable_manual_compaction()), Code::InvalidArgument);
}

#[test]
fn work_that_is_canceled_leaves_a_database_that_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = Db::open(directory.path(), &options).unwrap();
    let mut batch = WriteBatch::new();
    batch.put("key", "in no log").unwrap();
    db.write_with(&WriteOptions::unlogged(), batch).unwrap();
    db.cancel_all_background_work(false).unwrap();
    assert_eq!(tables(&db), 1, "that was flushed");
    assert_eq!(code(db.put("key", "other")), Code::ShutdownInProgress);
    assert_eq!(db.get("key").unwrap().unwrap(), "in no log");
    assert!(Db::open(directory.path(), &options).is_err(), "it keeps the directory");
    // Dropping it lets the directory go, as closing does.
    drop(db);
    let db = Db::open(directory.path(), &options).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "in no log");
    db.cancel_all_background_work(true).unwrap();
    db.close().unwrap();
    Db::open(directory.path(), &options).unwrap();
}

#[test]
fn waiting_can_flush_first_and_close_at_the_end() {
    let options = stepping(&[("level0_file_num_compaction_trigger", "2")]);
    let db = Db::open("/db", &options).unwrap();
    db.put("key", "value").unwrap();
    let flush = WaitForCompactOptions { flush: true, ..WaitForCompactOptions::default() };
    db.wait_for_compact(&flush).unwrap();
    assert_eq!(tables(&db), 1);
    let close_db = WaitForCompactOptions { close_db: true, ..flush };
    db.wait_for_compact(&close_db).unwrap();
    assert_eq!(code(db.put("key", "other")), Code::ShutdownInProgress);
    assert_eq!(code(db.wait_for_compact(&close_db)), Code::ShutdownInProgress);

    let db = Db::open_read_only("/db", &options).unwrap();
    assert_eq!(code(db.pause_background_work()), Code::NotSupported);
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
}
