use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::base::sometimes::counts;
use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::base::{Code, Error, SubCode};
use crate::batch::WriteBatch;
use crate::db::DbInner;
use crate::db::handle::Db;
use crate::db::writing::admission::DELAY_STEP;
use crate::env::{Clock, Env};
use crate::options::{Options, WriteOptions};

/// A clock that goes on only where somebody sleeps. From the second step of a writer who does,
/// debts hold writers up hard.
#[derive(Default)]
struct Hardening {
    now_us: AtomicU64,
    db: OnceLock<Weak<DbInner>>,
    /// Whether anybody slept for flushes in each step.
    steps: Mutex<Vec<bool>>,
}

impl Clock for Hardening {
    fn now_us(&self) -> u64 {
        self.now_us.load(Ordering::SeqCst)
    }

    fn unix_seconds(&self) -> u64 {
        self.now_us() / 1_000_000
    }

    fn sleep(&self, duration: Duration) {
        self.now_us.fetch_add(duration.as_micros() as u64, Ordering::SeqCst);
        let Some(db) = self.db.get().and_then(Weak::upgrade) else { return };
        let mut steps = self.steps.lock();
        steps.push(db.background.are_slept_for());
        if steps.len() == 2 {
            db.pipeline.control().set_delayed(1_000_000, None, None, true);
        }
    }
}

/// Who had fallen asleep before writers were held up hard slept on for a flush that gave way.
#[test]
fn a_writer_who_sleeps_hurries_flushes_once_they_are_hard() {
    let clock = Arc::new(Hardening::default());
    let env = Env { clock: clock.clone(), ..Env::memory() };
    let mut options = Options { env, ..Options::default() };
    options.set_all("create_if_missing=true;disable_auto_compactions=true").unwrap();
    let db = Db::open("/db", &options).unwrap();
    db.inner().pipeline.control().set_delayed(1_000_000, None, None, false);
    // What the first is charged for is waited for by the next that is not paid for in advance.
    db.put("first", [7; 40_000]).unwrap();
    clock.db.set(Arc::downgrade(db.inner())).unwrap();
    db.put("second", [7; 5000]).unwrap();
    let steps = std::mem::take(&mut *clock.steps.lock());
    assert!(
        steps.len() > 4 && steps.len() as u32 * DELAY_STEP >= Duration::from_millis(40),
        "{steps:?}"
    );
    let (before, after) = steps.split_at(2);
    assert!(
        before.iter().all(|hurried| !hurried) && after.iter().all(|hurried| *hurried),
        "{steps:?}"
    );
}

/// Writers who waited for no more than a flush were refused, as a compaction had found the disk
/// full.
#[test]
fn who_waits_for_a_flush_is_not_refused_for_a_compaction() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    let cramped = "write_buffer_size=1000000;max_total_wal_size=20000";
    options
        .set_all(&format!("create_if_missing=true;disable_auto_compactions=true;{cramped}"))
        .unwrap();
    let db = Db::open("/db", &options).unwrap();
    let full = Error::new(Code::IoError, "no space left").with_subcode(SubCode::NoSpace);
    let stops = || counts().into_iter().find(|(name, ..)| *name == "WriteStopped").unwrap().2;
    let before = stops();
    while stops() < before + 20 {
        // As of an attempt that is repeated in half a second.
        db.inner().context.poison.record_starved(Some(&full));
        db.put("key", [7; 1000]).expect("a write");
    }
}

/// A write of low priority that was paid for in advance was charged once more, as it gives way to
/// compactions besides.
#[test]
fn a_write_of_low_priority_is_charged_once() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    let control = db.inner().pipeline.control();
    control.set_delayed(1_000_000_000, None, None, false);
    db.put("key", "value").unwrap();
    let charged = control.charged();
    assert!(charged > 0.0);
    let low = WriteOptions { low_pri: true, ..WriteOptions::default() };
    let mut batch = WriteBatch::new();
    batch.put(b"key", b"value").unwrap();
    db.write_with(&low, batch).unwrap();
    assert_eq!(control.charged(), charged);
}
