//! What all WALs may have together: `max_total_wal_size`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flagstone::db::{ColumnFamily, Db, Ticker};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{EventListener, JobInfo, Options, StallCondition, WriteStallInfo};
use parking_lot::Mutex;
use testkit::{Call, FaultFs, steps};

const KIB: u64 = 1 << 10;
const CAP: u64 = 200 * KIB;

/// A world in which background work is done only while somebody waits for it.
fn slow_flushes() -> Env {
    steps::world(Arc::new(MemoryFileSystem::new()), 7)
}

fn options(env: Env, more: &str) -> Options {
    let mut options = Options { env, ..Options::default() };
    options.create_if_missing = true;
    options
        .set_all(&format!("write_buffer_size=1048576;max_total_wal_size={CAP};{more}"))
        .expect("options");
    options
}

fn wal_bytes(db: &Db) -> u64 {
    db.wal_files().iter().map(|wal| wal.size).sum()
}

/// Writes in turn to all families, and gives the most that WALs ever had.
fn fill(db: &Db, families: &[ColumnFamily], writes: usize) -> u64 {
    let write = |at: usize| {
        db.put_cf(&families[at % families.len()], format!("{at}"), [7; 1000]).expect("a write");
        wal_bytes(db)
    };
    (0..writes).map(write).max().expect("some writes")
}

fn families(db: &Db, count: usize) -> Vec<ColumnFamily> {
    let options = db.default_column_family().options();
    (0..count)
        .map(|n| db.create_column_family(&format!("family{n}"), &options).expect("a family"))
        .collect()
}

/// Hears whether writers were stopped.
#[derive(Default)]
struct Ear {
    stopped: AtomicBool,
}

impl EventListener for Ear {
    fn on_stall_conditions_changed(&self, stall: &WriteStallInfo) {
        self.stopped.fetch_or(stall.now == StallCondition::Stopped, Ordering::Relaxed);
    }
}

/// A write buffer that is larger than the cap was what limited the WAL of a lone family.
#[test]
fn a_lone_family_keeps_to_it() {
    let db = Db::open("/db", &options(slow_flushes(), "")).unwrap();
    let most = fill(&db, &[db.default_column_family().clone()], 1000);
    assert!((CAP / 2..CAP + 2 * KIB).contains(&most), "{most} bytes of WALs");
    // How many tables are left of them is the compactions' business.
    assert!(db.statistics().get(Ticker::Flushes) > 2);
}

/// What was written while a flush took went beyond it, up to what memtables may have.
#[test]
fn writers_wait_where_flushes_are_too_slow() {
    let ear = Arc::new(Ear::default());
    let mut options = options(slow_flushes(), "max_write_buffer_number=6");
    options.listeners.push(ear.clone());
    let db = Db::open("/db", &options).unwrap();
    let families = families(&db, 8);
    let most = fill(&db, &families, 3000);
    assert!((CAP / 2..CAP + 2 * KIB).contains(&most), "{most} bytes of WALs");
    assert!(ear.stopped.load(Ordering::Relaxed), "flushes were not too slow");
}

#[test]
fn idle_families_are_flushed_for_the_sake_of_busy_ones() {
    let db = Db::open("/db", &options(slow_flushes(), "")).unwrap();
    let families = families(&db, 3);
    db.put_cf(&families[0], "idle", "value").unwrap();
    let most = fill(&db, &families[1..2], 600);
    assert!(most < CAP + 2 * KIB, "{most} bytes of WALs");
    assert!(db.live_files().iter().any(|file| file.column_family == families[0].name()));
}

/// A cap below a single write lets it pass: nothing that waits could make room for it.
#[test]
fn one_write_may_be_larger() {
    let db = Db::open("/db", &options(slow_flushes(), "write_buffer_size=10m")).unwrap();
    for at in 0..5 {
        db.put(format!("{at}"), vec![1; 3 * CAP as usize]).unwrap();
    }
    assert!(wal_bytes(&db) < 7 * CAP);
}

/// Nobody set a cap: families share four times all write buffers, and nobody waits.
#[test]
fn without_a_cap_nobody_waits() {
    let ear = Arc::new(Ear::default());
    let mut options = options(slow_flushes(), "max_total_wal_size=0;write_buffer_size=20000");
    options.listeners.push(ear.clone());
    let db = Db::open("/db", &options).unwrap();
    let families = families(&db, 2);
    db.put_cf(&families[0], "idle", "value").unwrap();
    let most = fill(&db, &families[1..], 1000);
    // Three families with two memtables each, and what flushes take.
    assert!((CAP..900 * KIB).contains(&most), "{most} bytes of WALs");
}

/// What a process that died has left counts, too.
#[test]
fn wals_that_recovery_kept_count() {
    let env = slow_flushes();
    let more = "avoid_flush_during_recovery=true;max_total_wal_size=0;write_buffer_size=10m";
    let db = Db::open("/db", &options(env.clone(), more)).unwrap();
    fill(&db, &[db.default_column_family().clone()], 300);
    db.close().unwrap();
    drop(db);
    let db =
        Db::open("/db", &options(env, "avoid_flush_during_recovery=true;write_buffer_size=10m"))
            .unwrap();
    assert!(wal_bytes(&db) > CAP);
    for at in 0..50 {
        db.put(format!("{at}"), [8; 1000]).unwrap();
    }
    assert!(wal_bytes(&db) < CAP, "{} bytes of WALs", wal_bytes(&db));
}

/// The WALs that a checkpoint had kept stayed until a memtable was full: their families had been
/// asked to let go of them, which nobody does twice for the same.
#[test]
fn what_a_checkpoint_kept_goes_after_it() {
    let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let env = steps::world(Arc::new(fs.clone()), 7);
    let db = Db::open("/db", &options(env, "write_buffer_size=10m")).unwrap();
    let families = families(&db, 2);
    fill(&db, &families, 50);
    let (writer, is_done) =
        (Mutex::new(Some((db.clone(), families.clone()))), AtomicBool::new(false));
    fs.before_each(move |call, path| {
        if call == Call::Create
            && path.starts_with("/copy")
            && !is_done.swap(true, Ordering::Relaxed)
        {
            let (db, families) = writer.lock().take().expect("once");
            assert!(fill(&db, &families, 500) > 2 * CAP, "nobody waits meanwhile");
            // What could be flushed is.
            db.flush_all().expect("a flush");
        }
    });
    db.checkpoint("/copy").unwrap();
    assert!(wal_bytes(&db) < CAP, "{} bytes of WALs", wal_bytes(&db));
    assert!(fill(&db, &families, 1000) < CAP + 2 * KIB);
}

/// Drops a family as soon as another was flushed because the WALs had all that they may.
#[derive(Default)]
struct Dropper(Mutex<Option<(Db, ColumnFamily)>>);

impl EventListener for Dropper {
    fn on_flush_completed(&self, _job: &JobInfo) {
        let mut doomed = self.0.lock();
        if let Some((db, family)) = doomed.take_if(|(db, _)| wal_bytes(db) >= CAP) {
            db.drop_column_family(&family).expect("a drop");
        }
    }
}

/// The same where a family that kept them was dropped before it was flushed.
#[test]
fn what_a_dropped_family_kept_goes_after_it() {
    let dropper = Arc::new(Dropper::default());
    let mut options = options(slow_flushes(), "write_buffer_size=10m");
    options.listeners.push(dropper.clone());
    let db = Db::open("/db", &options).unwrap();
    let mut families = families(&db, 2);
    let doomed = families.pop().expect("which is flushed after the other");
    db.put_cf(&doomed, "key", "value").unwrap();
    *dropper.0.lock() = Some((db.clone(), doomed));
    let most = fill(&db, &families, 3000);
    assert!(dropper.0.lock().is_none(), "it was not dropped");
    assert!(most < CAP + 4 * KIB, "{most} bytes of WALs");
}
