//! A service that aborts compactions is asked again after a pause.

use std::sync::Arc;
use std::time::Duration;

use flagstone::Options;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{
    CompactionService, CompactionServiceJobInfo, CompactionServiceJobStatus,
    CompactionServiceScheduleResponse,
};
use parking_lot::{Condvar, Mutex};

use CompactionServiceJobStatus::{Aborted, Failure, UseLocal};

use crate::{check, fill};

/// Aborts until it is let go, and counts how often it is asked.
struct Aborting {
    state: Mutex<(usize, CompactionServiceJobStatus)>,
    asked: Condvar,
}

impl CompactionService for Aborting {
    fn name(&self) -> &str {
        "Aborting"
    }

    fn schedule(
        &self,
        _: &CompactionServiceJobInfo,
        _: &[u8],
    ) -> CompactionServiceScheduleResponse {
        let mut state = self.state.lock();
        state.0 += 1;
        self.asked.notify_all();
        CompactionServiceScheduleResponse::not_scheduled(state.1)
    }

    fn wait(&self, _: &str, _: &dyn Fn() -> bool) -> (CompactionServiceJobStatus, Vec<u8>) {
        (Failure, Vec::new())
    }
}

/// Where no other compaction thread was idle, it was asked thousands of times in a second.
#[test]
fn a_service_that_aborts_is_asked_again_after_a_pause() {
    let service = Arc::new(Aborting { state: Mutex::new((0, Aborted)), asked: Condvar::new() });
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.max_background_jobs = 1;
    options.cf.level0_file_num_compaction_trigger = 2;
    options.compaction_service = Some(service.clone());
    let db = Db::open("/db", &options).unwrap();
    fill(&db);
    let mut state = service.state.lock();
    while state.0 == 0 {
        service.asked.wait(&mut state);
    }
    let longest = Duration::from_millis(300);
    for _ in 0..3 {
        if service.asked.wait_for(&mut state, longest).timed_out() {
            break;
        }
    }
    assert!(state.0 <= 2, "it was asked {} times", state.0);
    state.1 = UseLocal;
    drop(state);
    db.wait_for_compactions().unwrap();
    assert!(db.live_files().iter().all(|file| file.level != Some(0)));
    check(&db);
    db.close().unwrap();
}
