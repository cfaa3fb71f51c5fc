//! What a database tells of itself: events, and the state after an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use flagstone::base::{Error, SubCode};
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem};
use flagstone::options::{
    BackgroundErrorReason, CompactRangeOptions, EventListener, FileCreationInfo, FileInfo, JobInfo,
    Options, WriteStallInfo,
};
use parking_lot::Mutex;
use testkit::{Call, FaultFs, Injection, Plan, Sort, steps};

/// Writes down what it is told.
#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl Diary {
    fn note(&self, line: String) {
        self.0.lock().push(line);
    }

    fn read(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl EventListener for Diary {
    fn on_flush_completed(&self, job: &JobInfo) {
        self.note(format!("{}: flushed to {} tables", job.family_name, job.tables.len()));
    }

    fn on_compaction_completed(&self, job: &JobInfo) {
        let (inputs, tables) = (job.inputs.len(), job.tables.len());
        self.note(format!(
            "{}: compacted {inputs} tables to {tables} of level {}",
            job.family_name, job.output_level
        ));
    }

    fn on_background_error(&self, _reason: BackgroundErrorReason, error: &Error, is_fatal: bool) {
        self.note(format!(
            "failed, {}: {:?}",
            if is_fatal { "for good" } else { "for now" },
            error.subcode()
        ));
    }

    fn on_error_recovery_completed(&self, earlier: &Error) {
        self.note(format!("recovered from {:?}", earlier.subcode()));
    }

    fn on_stall_conditions_changed(&self, stall: &WriteStallInfo) {
        let WriteStallInfo { family_name, before, now, .. } = stall;
        let name = family_name.as_deref().unwrap_or("all families");
        self.note(format!("{before:?} to {now:?}: {name}"));
    }

    fn on_table_file_created(&self, file: &FileCreationInfo) {
        self.note(format!(
            "created {} of {} bytes",
            file.path.display(),
            if file.size > 0 { "some" } else { "no" }
        ));
    }

    fn on_table_file_deleted(&self, file: &FileInfo) {
        self.note(format!("deleted {}", file.path.display()));
    }
}

/// Panics whenever it is told something.
struct Clumsy;

impl EventListener for Clumsy {
    fn on_flush_completed(&self, _job: &JobInfo) {
        panic!("a listener that does not know better");
    }
}

fn options(fs: Arc<dyn FileSystem>, diary: &Arc<Diary>) -> Options {
    let mut options = Options { env: steps::world(fs, 1), ..Options::default() };
    options
        .set_all("create_if_missing=true;write_buffer_size=20000;level0_file_num_compaction_trigger=2;max_write_buffer_number=6")
        .expect("options");
    options.listeners = vec![Arc::new(Clumsy), diary.clone()];
    options
}

#[test]
fn listeners_are_told_in_order_whatever_others_do() {
    let diary = Arc::new(Diary::default());
    let db =
        Db::open("/db", &options(Arc::new(MemoryFileSystem::new()), &diary)).expect("a database");
    for round in ["1", "2"] {
        db.put("key", round).expect("a write");
        db.flush_all().expect("a flush");
    }
    db.wait_for_compactions().expect("compactions");
    db.close().expect("a clean close");
    let table = |number: u64| format!("/db/{number:06}.sst");
    let expected = [
        format!("created {} of some bytes", table(5)),
        "default: flushed to 1 tables".to_string(),
        format!("created {} of some bytes", table(7)),
        "default: flushed to 1 tables".to_string(),
        format!("created {} of some bytes", table(8)),
        "default: compacted 2 tables to 1 of level 6".to_string(),
    ];
    let told = diary.read();
    assert_eq!(told[..6], expected, "{told:?}");
    let mut deleted = told[6..].to_vec();
    deleted.sort();
    assert_eq!(deleted, [format!("deleted {}", table(5)), format!("deleted {}", table(7))]);
}

#[test]
fn errors_are_told_of_and_so_is_their_end() {
    let (fs, diary) = (FaultFs::new(Arc::new(MemoryFileSystem::new())), Arc::new(Diary::default()));
    let db = Db::open("/db", &options(Arc::new(fs.clone()), &diary)).expect("a database");
    let family = db.default_column_family();
    let state = |name: &str| db.property(family, name).expect("a property");
    assert_eq!(state("flagstone.background-error"), "healthy");
    assert_eq!(state("rocksdb.background-errors"), "0");

    db.put("key", "value").expect("a write");
    fs.plan(Plan::Next { call: Call::Create, sort: Sort::Table, injection: Injection::NoSpace });
    assert_eq!(db.flush_all().expect_err("no table can be made").subcode(), SubCode::NoSpace);
    assert_eq!(
        db.put("key", "newer").expect_err("until there is space").subcode(),
        SubCode::NoSpace
    );
    assert!(
        state("flagstone.background-error").starts_with("suspended: "),
        "{}",
        state("flagstone.background-error")
    );
    db.resume().expect("there is space");
    assert_eq!(state("flagstone.background-error"), "healthy");
    db.put("key", "newer").expect("a write");

    fs.plan(Plan::Next { call: Call::Sync, sort: Sort::Table, injection: Injection::Io });
    db.flush_all().expect_err("no table can be synced");
    assert!(
        state("flagstone.background-error").starts_with("poisoned: "),
        "{}",
        state("flagstone.background-error")
    );
    assert_eq!(db.resume().expect_err("only reopening helps").subcode(), SubCode::Poisoned);
    assert!(state("rocksdb.background-errors").parse::<u64>().expect("a number") >= 2);
    let told = diary.read();
    let of_errors: Vec<_> =
        told.iter().filter(|line| !line.contains("create") && !line.contains("flushed")).collect();
    assert_eq!(
        of_errors,
        ["failed, for now: NoSpace", "recovered from NoSpace", "failed, for good: None"]
    );
}

#[test]
fn held_up_writers_are_told_of() {
    let diary = Arc::new(Diary::default());
    let mut options = options(Arc::new(MemoryFileSystem::new()), &diary);
    options
        .set_all("level0_stop_writes_trigger=2;level0_slowdown_writes_trigger=2")
        .expect("options");
    let db = Db::open("/db", &options).expect("a database");
    for round in ["1", "2"] {
        db.put("key", round).expect("a write");
        db.flush_all().expect("a flush");
    }
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
    let told = diary.read();
    let stalls: Vec<_> =
        told.iter().filter(|line| line.contains(" to ") && line.contains("Normal")).collect();
    assert_eq!(stalls, ["Normal to Stopped: default", "Stopped to Normal: default"], "{told:?}");
}

/// Writes more than memtables have room for, when the thread for flushes tells it of one; once.
#[derive(Default)]
struct Writer {
    db: Mutex<Option<Db>>,
    has_written: AtomicBool,
}

impl EventListener for Writer {
    fn on_flush_completed(&self, _job: &JobInfo) {
        let flushes =
            std::thread::current().name().is_some_and(|name| name.starts_with("flagstone-flush"));
        let db = self.db.lock().take_if(|_| flushes);
        if let Some(db) = db {
            for n in 0..10 {
                db.put(format!("from the listener {n}"), vec![1; 20_000]).expect("a write");
            }
            self.has_written.store(true, Ordering::Release);
        }
    }
}

/// The thread that told it of the flush was the one that was to do the next, for which the
/// listener's write waited for ever, and all others behind it.
#[test]
fn what_a_listener_writes_waits_for_no_flush() {
    let writer = Arc::new(Writer::default());
    let mut options = Options { env: Env::memory(), ..Options::default() };
    let cramped = "write_buffer_size=20000;max_write_buffer_number=2";
    let apart = "max_background_flushes=1;max_background_compactions=1";
    options.set_all(&format!("create_if_missing=true;{cramped};{apart}")).expect("options");
    options.listeners = vec![writer.clone()];
    let db = Db::open("/db", &options).expect("a database");
    *writer.db.lock() = Some(db.clone());
    let (done, heard) = channel();
    let (beside, listener) = (db.clone(), writer.clone());
    let write = move || {
        for n in 0u64.. {
            beside.put(format!("{n}"), vec![1; 20_000]).expect("a write");
            if listener.has_written.load(Ordering::Acquire) {
                break;
            }
        }
        let _ = done.send(());
    };
    let thread = Env::os().spawner.spawn("writer", Box::new(write)).expect("a thread");
    heard.recv_timeout(Duration::from_secs(60)).expect("writers go on");
    thread.join();
    db.close().expect("a clean close");
}

/// Takes its time over the first table that it hears of.
struct Slow {
    has_begun: Sender<()>,
    goes_on: Mutex<Receiver<()>>,
    is_closed: AtomicBool,
    told_when_closed: Mutex<Vec<bool>>,
}

impl EventListener for Slow {
    fn on_table_file_created(&self, _file: &FileCreationInfo) {
        let _ = self.has_begun.send(());
        let _ = self.goes_on.lock().recv_timeout(Duration::from_secs(60));
    }

    fn on_flush_completed(&self, _job: &JobInfo) {
        self.told_when_closed.lock().push(self.is_closed.load(Ordering::Acquire));
    }
}

/// Closing did not wait for a caller's thread that was telling: the listener heard of more after
/// that, and may have been gone.
#[test]
fn closing_waits_for_what_a_listener_is_being_told() {
    let (has_begun, begun) = channel();
    let (go_on, goes_on) = channel();
    let slow = Arc::new(Slow {
        has_begun,
        goes_on: Mutex::new(goes_on),
        is_closed: AtomicBool::new(false),
        told_when_closed: Mutex::default(),
    });
    let mut options =
        Options { env: steps::world(Arc::new(MemoryFileSystem::new()), 1), ..Options::default() };
    options.set_all("create_if_missing=true").expect("options");
    options.listeners = vec![slow.clone()];
    let db = Db::open("/db", &options).expect("a database");
    db.put("key", "value").expect("a write");
    std::thread::scope(|scope| {
        scope.spawn(|| db.flush_all());
        begun.recv_timeout(Duration::from_secs(60)).expect("the caller tells of its flush");
        let (closed, heard) = channel();
        let (db, slow) = (&db, &slow);
        scope.spawn(move || {
            db.close().expect("a clean close");
            slow.is_closed.store(true, Ordering::Release);
            let _ = closed.send(());
        });
        // Where closing does not wait this is enough for it; where it does, no time is.
        let _ = heard.recv_timeout(Duration::from_millis(200));
        go_on.send(()).expect("the listener waits");
    });
    assert_eq!(*slow.told_when_closed.lock(), [false]);
}
