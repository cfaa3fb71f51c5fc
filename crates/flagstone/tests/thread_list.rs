//! What the threads of a database are listed to do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{
    CompactRangeOptions, CompactionFilter, FilterDecision, FilteredKind, Options,
};
use flagstone::reports::{ThreadOperation, ThreadStage, ThreadStatus, ThreadType};
use flagstone::thread_list;
use parking_lot::Mutex;

/// Looks at the list while a compaction asks it.
#[derive(Default)]
struct Looking(Mutex<Vec<ThreadStatus>>);

impl CompactionFilter for Looking {
    fn name(&self) -> &str {
        "Looking"
    }

    fn filter(&self, _: u32, _: &[u8], _: FilteredKind, _: &[u8]) -> FilterDecision {
        *self.0.lock() = thread_list();
        FilterDecision::Keep
    }
}

fn options(is_tracked: bool) -> (Options, Arc<Looking>) {
    let looking = Arc::new(Looking::default());
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.db.enable_thread_tracking = is_tracked;
    options.cf.disable_auto_compactions = true;
    options.cf.compaction_filter = Some(looking.clone());
    (options, looking)
}

fn compact(path: &str, options: &Options) -> Db {
    let db = Db::open(path, options).unwrap();
    for value in ["1", "2"] {
        db.put("key", value).unwrap();
        db.flush_all().unwrap();
    }
    let options = CompactRangeOptions::default();
    db.compact_range(db.default_column_family(), None, None, &options).unwrap();
    db
}

fn of(list: &[ThreadStatus], path: &str) -> Vec<ThreadStatus> {
    list.iter().filter(|status| status.db_path == Path::new(path)).cloned().collect()
}

#[test]
fn a_compaction_is_listed_with_its_stage() {
    let (options, looking) = options(true);
    let db = compact("/tracked", &options);
    let mut seen = of(&looking.0.lock(), "/tracked");
    // The flush before may not have ended yet.
    seen.retain(|status| status.operation == ThreadOperation::Compaction);
    assert_eq!(seen.len(), 1, "{seen:?}");
    let status = &seen[0];
    assert_eq!((status.operation, status.kind), (ThreadOperation::Compaction, ThreadType::User));
    assert_eq!(status.stage, ThreadStage::CompactionProcess);
    assert_eq!(status.family_name, "default");
    let detail = |wanted: &str| {
        status.properties.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
    };
    assert_eq!((detail("IsManual"), detail("BaseInputLevel")), (Some(1), Some(0)));
    assert!(detail("TotalInputBytes") > Some(0) && detail("JobID") > Some(0));
    let compacts = |status: &ThreadStatus| status.operation == ThreadOperation::Compaction;
    assert!(!of(&thread_list(), "/tracked").iter().any(compacts), "it is over");
    // Threads of its own are listed as long as they are there.
    let is_idle = |status: &ThreadStatus| status.operation == ThreadOperation::Idle;
    let workers = thread_list().into_iter().filter(is_idle).count();
    assert!(workers > 0, "{:?}", thread_list());
    db.close().unwrap();
}

#[test]
fn a_database_that_does_not_ask_for_it_is_not_listed() {
    let (options, looking) = options(false);
    let db = compact("/untracked", &options);
    assert!(of(&looking.0.lock(), "/untracked").is_empty());
    db.close().unwrap();
}
