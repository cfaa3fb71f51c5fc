//! A database is closed while threads wait for a service.

use std::sync::Arc;
use std::time::Duration;

use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{
    CompactionService, CompactionServiceJobInfo, CompactionServiceJobStatus,
    CompactionServiceScheduleResponse, WriteOptions,
};
use flagstone::{Options, WriteBatch};
use parking_lot::{Condvar, Mutex};

use CompactionServiceJobStatus::Aborted;

use crate::{check, fill};

/// After this time a wait has failed.
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    waits: bool,
    cancels: usize,
    was_left: bool,
}

/// Waits until it is canceled so often while it waits, and does not ask whether it is wanted.
struct Deaf {
    state: Mutex<State>,
    changed: Condvar,
    cancels: usize,
    panics: bool,
}

impl Deaf {
    fn until(&self, is_it: impl Fn(&State) -> bool) -> bool {
        let mut state = self.state.lock();
        while !is_it(&state) {
            if self.changed.wait_for(&mut state, LONGEST).timed_out() {
                return false;
            }
        }
        true
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }
}

impl CompactionService for Deaf {
    fn name(&self) -> &str {
        "Deaf"
    }

    fn schedule(
        &self,
        _: &CompactionServiceJobInfo,
        _: &[u8],
    ) -> CompactionServiceScheduleResponse {
        CompactionServiceScheduleResponse::scheduled("a job")
    }

    fn wait(&self, _: &str, _: &dyn Fn() -> bool) -> (CompactionServiceJobStatus, Vec<u8>) {
        self.change(|state| (state.waits, state.cancels) = (true, 0));
        if !self.until(|state| state.cancels >= self.cancels) {
            self.change(|state| state.was_left = true);
        }
        (Aborted, Vec::new())
    }

    fn cancel_awaiting_jobs(&self) {
        self.change(|state| state.cancels += 1);
        assert!(!self.panics, "a service that panics");
    }
}

fn world(cancels: usize, panics: bool) -> (Arc<Deaf>, Options) {
    let deaf = Deaf { state: Mutex::default(), changed: Condvar::new(), cancels, panics };
    let deaf = Arc::new(deaf);
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.cf.level0_file_num_compaction_trigger = 2;
    options.compaction_service = Some(deaf.clone());
    (deaf, options)
}

fn check_reopened(options: &Options) {
    let options = Options { compaction_service: None, ..options.clone() };
    let db = Db::open("/db", &options).unwrap();
    check(&db);
    db.close().unwrap();
}

/// A service that was told once, too early, was waited for without end.
#[test]
fn a_service_is_told_until_no_thread_waits() {
    for cancels in [1, 3] {
        let (deaf, options) = world(cancels, false);
        let db = Db::open("/db", &options).unwrap();
        fill(&db);
        assert!(deaf.until(|state| state.waits));
        db.close().unwrap();
        assert!(!deaf.state.lock().was_left, "{cancels}");
        check_reopened(&options);
    }
}

/// What the last flush made compactions do was waited for after the only word to the service.
#[test]
fn a_compaction_that_closing_makes_due_is_canceled() {
    let (deaf, options) = world(1, false);
    let idle = Options { compaction_service: None, ..options.clone() };
    let db = Db::open("/db", &idle).unwrap();
    fill(&db);
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    for _ in 0..10 {
        let db = Db::open("/db", &options).unwrap();
        let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
        let mut batch = WriteBatch::new();
        batch.put("another", "1").unwrap();
        db.write_with(&unlogged, batch).unwrap();
        db.close().unwrap();
        assert!(!deaf.state.lock().was_left);
    }
    check_reopened(&options);
}

/// A panic in `cancel_awaiting_jobs` made every later close panic, too.
#[test]
fn a_service_that_panics_does_not_keep_the_database_open() {
    let (deaf, options) = world(1, true);
    let db = Db::open("/db", &options).unwrap();
    fill(&db);
    assert!(deaf.until(|state| state.waits));
    db.close().unwrap();
    check_reopened(&options);
}
