//! What goes on while a flush or compaction stands still, and what waits for it.

#![expect(clippy::disallowed_methods, reason = "the tests stand outside the engine")]

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{create, entries};
use flagstone::base::{
    Code, CompactionFilterContext, CompactionFilterFactory, FilteredKind, Result, SubCode,
    TableFileCreationReason,
};
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, FileSystemAround};
use flagstone::options::{
    BottommostLevelCompaction, CompactRangeOptions, CompactionFilter, FilterDecision, FlushOptions,
    ReadOptions,
};
use testkit::{Call, FaultFs, Injection, Plan, Sort};

/// Longer than any of this takes on a busy machine.
const TOO_LONG: Duration = Duration::from_secs(60);

/// Once it is shut, a flush or compaction that comes to a key of this name says so, and waits for a
/// word to go on.
struct Gate {
    key: &'static str,
    is_shut: AtomicBool,
    is_there: SyncSender<()>,
    may_go_on: Mutex<Receiver<()>>,
}

impl Gate {
    /// With what tells that somebody is there, and what lets them go on when it is dropped.
    fn at(key: &'static str) -> (Arc<Self>, Receiver<()>, SyncSender<()>) {
        let ((is_there, came), (go_on, may_go_on)) = (sync_channel(1), sync_channel(1));
        let may_go_on = Mutex::new(may_go_on);
        (Arc::new(Self { key, is_shut: false.into(), is_there, may_go_on }), came, go_on)
    }
}

impl CompactionFilter for Gate {
    fn name(&self) -> &str {
        "gate"
    }
    fn filter(
        &self,
        _level: u32,
        key: &[u8],
        _kind: FilteredKind,
        _value: &[u8],
    ) -> FilterDecision {
        if key == self.key.as_bytes() && self.is_shut.load(Ordering::Acquire) {
            // Only the first is listened to.
            let _ = self.is_there.try_send(());
            let told = self.may_go_on.lock().expect("nobody panicked").recv_timeout(TOO_LONG);
            assert!(told != Err(RecvTimeoutError::Timeout), "whoever shut the gate was held up");
        }
        FilterDecision::Keep
    }
}

/// Gates that stand in the way of flushes.
struct InFlushes(Arc<Gate>);

impl CompactionFilterFactory for InFlushes {
    fn name(&self) -> &str {
        "gates in flushes"
    }
    fn should_filter_table_file_creation(&self, reason: TableFileCreationReason) -> bool {
        reason == TableFileCreationReason::Flush
    }
    fn create_compaction_filter(
        &self,
        _context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>> {
        Some(Box::new(AtGate(self.0.clone())))
    }
}

struct AtGate(Arc<Gate>);

impl CompactionFilter for AtGate {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn filter(&self, level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision {
        self.0.filter(level, key, kind, value)
    }
}

/// Has one thread do some work that comes to the gate, and, when it is there and something else was
/// done, another close the database, which must wait for it; what came of the work, and of closing.
fn close_during(
    db: &Db,
    (came, go_on): (Receiver<()>, SyncSender<()>),
    work: fn(&Db) -> Result<()>,
    meanwhile: impl FnOnce(),
) -> (Result<()>, Result<()>) {
    std::thread::scope(|scope| {
        let working = scope.spawn(|| work(db));
        came.recv_timeout(TOO_LONG).expect("somebody at the gate");
        meanwhile();
        let (closed, heard) = channel();
        scope.spawn(move || closed.send(db.close()));
        let is_closing = || {
            let enabled = db.enable_file_deletions(false);
            enabled.is_err_and(|error| error.code() == Code::ShutdownInProgress)
        };
        while !is_closing() {
            std::thread::yield_now();
        }
        // Where closing does not wait this is enough for it; where it does, no time is.
        let closed = heard.recv_timeout(Duration::from_millis(200));
        assert_eq!(closed.map(drop), Err(RecvTimeoutError::Timeout), "it did not wait");
        drop(go_on);
        let worked = working.join().expect("a worker that does not panic");
        (worked, heard.recv_timeout(TOO_LONG).expect("closing ends"))
    })
}

fn compact_all(db: &Db) -> Result<()> {
    compact(db, None, None)
}

/// Compacts also what lies in the last level already.
fn compact(db: &Db, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
    let force = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    db.compact_range(db.default_column_family(), begin, end, &force)
}

/// `close` let go of the directory while a compaction in its caller's thread could still write to
/// the MANIFEST.
#[test]
fn close_waits_for_manual_compactions() {
    let mut options = create();
    options.env = Env::memory();
    let (gate, came, go_on) = Gate::at("000100");
    options.cf.compaction_filter = Some(gate.clone());
    let db = Db::open("/db", &options).unwrap();
    for at in 0..4000 {
        db.put(format!("{at:06}"), "value").unwrap();
    }
    gate.is_shut.store(true, Ordering::Release);
    let (compacted, closed) = close_during(&db, (came, go_on), compact_all, || ());
    assert_eq!(compacted.unwrap_err().code(), Code::ShutdownInProgress);
    closed.unwrap();
    assert_eq!(
        db.int_property(db.default_column_family(), "rocksdb.num-running-compactions"),
        Some(0)
    );
    options.cf.compaction_filter = None;
    let again = Db::open("/db", &options).unwrap();
    assert_eq!(entries(&again, again.default_column_family()).len(), 4000);
    again.iter(&ReadOptions::default()).unwrap();
}

/// The same, once a sync had failed: what the compaction then did it did to whoever had opened the
/// directory next.
#[test]
fn close_waits_for_manual_compactions_of_a_poisoned_database() {
    let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let mut options = create();
    options.env = Env::memory().with_fs(Arc::new(fs.clone()));
    let (gate, came, go_on) = Gate::at("000100");
    options.cf.compaction_filter = Some(gate.clone());
    let db = Db::open("/db", &options).unwrap();
    for at in 0..4000 {
        db.put(format!("{at:06}"), "value").unwrap();
    }
    db.flush_all().unwrap();
    gate.is_shut.store(true, Ordering::Release);
    let (compacted, closed) = close_during(&db, (came, go_on), compact_all, || {
        fs.plan(Plan::Next { call: Call::Sync, sort: Sort::Wal, injection: Injection::Io });
        db.put("another", "value").unwrap();
        db.sync_wal().unwrap_err();
    });
    assert_eq!(compacted.unwrap_err().code(), Code::ShutdownInProgress);
    assert_eq!(closed.unwrap_err().subcode(), SubCode::Poisoned);
    options.cf.compaction_filter = None;
    let again = Db::open("/db", &options).unwrap();
    assert!(entries(&again, again.default_column_family()).len() >= 4000);
}

/// The same of a flush that whoever resumes a suspended database does in his thread.
#[test]
fn close_waits_for_flushes_of_those_who_resume() {
    let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let mut options = create();
    options.env = Env::memory().with_fs(Arc::new(fs.clone()));
    let (gate, came, go_on) = Gate::at("000100");
    options.cf.compaction_filter_factory = Some(Arc::new(InFlushes(gate.clone())));
    let db = Db::open("/db", &options).unwrap();
    for at in 0..4000 {
        db.put(format!("{at:06}"), "value").unwrap();
    }
    fs.plan(Plan::Next { call: Call::Create, sort: Sort::Table, injection: Injection::NoSpace });
    gate.is_shut.store(true, Ordering::Release);
    db.flush(db.default_column_family(), &FlushOptions { wait: false, ..FlushOptions::default() })
        .unwrap();
    while db.int_property(db.default_column_family(), "rocksdb.background-errors") == Some(0) {
        std::thread::yield_now();
    }
    // A worker, who tries again in a while, may have come before.
    let (resumed, closed) = close_during(&db, (came, go_on), Db::resume, || ());
    resumed.unwrap_err();
    closed.unwrap();
    assert_eq!(db.int_property(db.default_column_family(), "rocksdb.num-running-flushes"), Some(0));
    options.cf.compaction_filter_factory = None;
    let again = Db::open("/db", &options).unwrap();
    assert_eq!(entries(&again, again.default_column_family()).len(), 4000);
}

/// Holds up whoever links a file.
struct HeldLinks {
    fs: MemoryFileSystem,
    is_there: SyncSender<()>,
    may_go_on: Mutex<Receiver<()>>,
}

impl FileSystemAround for HeldLinks {
    fn inner(&self) -> &dyn FileSystem {
        &self.fs
    }
    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        let _ = self.is_there.try_send(());
        let told = self.may_go_on.lock().expect("nobody panicked").recv_timeout(TOO_LONG);
        assert!(told != Err(RecvTimeoutError::Timeout), "the checkpoint was held up");
        self.fs.link(source, target)
    }
}

/// The same of checkpoints: whoever opened the directory next removed what was to be linked.
#[test]
fn close_waits_for_checkpoints() {
    let ((is_there, came), (go_on, may_go_on)) = (sync_channel(1), sync_channel(1));
    let may_go_on = Mutex::new(may_go_on);
    let mut options = create();
    let fs = HeldLinks { fs: MemoryFileSystem::new(), is_there, may_go_on };
    options.env = Env::memory().with_fs(Arc::new(fs));
    let db = Db::open("/db", &options).unwrap();
    db.put("key", "value").unwrap();
    let (copied, closed) = close_during(&db, (came, go_on), |db| db.checkpoint("/copy"), || ());
    copied.unwrap();
    closed.unwrap();
    assert_eq!(db.checkpoint("/late").unwrap_err().code(), Code::ShutdownInProgress);
    let copy = Db::open("/copy", &options).unwrap();
    assert_eq!(copy.get("key").unwrap().unwrap(), "value");
}

/// A manual compaction kept automatic ones from level 0 until it was done; writers stopped for as
/// long.
#[test]
fn writers_go_on_during_a_long_manual_compaction() {
    let mut options = create();
    options.env = Env::memory();
    let (gate, came, go_on) = Gate::at("slow000100");
    options.cf.compaction_filter = Some(gate.clone());
    options.cf.settings.level0_file_num_compaction_trigger = 2;
    options.cf.settings.level0_slowdown_writes_trigger = 4;
    options.cf.settings.level0_stop_writes_trigger = 4;
    let db = Db::open("/db", &options).unwrap();
    for at in 0..400 {
        db.put(format!("slow{at:06}"), "value").unwrap();
    }
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    gate.is_shut.store(true, Ordering::Release);
    let compacting = {
        let db = db.clone();
        std::thread::spawn(move || compact(&db, Some(b"slow"), Some(b"slow~")))
    };
    // The last level is rewritten, and nothing that is written now overlaps it.
    came.recv_timeout(TOO_LONG).expect("a compaction");
    for round in 0..10 {
        db.put(format!("a{round}"), "value").unwrap();
        db.flush_all().unwrap();
    }
    assert!(!compacting.is_finished(), "the writers were not held up");
    drop(go_on);
    compacting.join().unwrap().unwrap();
    assert_eq!(entries(&db, db.default_column_family()).len(), 410);
}
