use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{
    Activity, Doing, ThreadOperation, ThreadStage, ThreadStatus, ThreadType, enter_stage,
    list_thread, thread_list,
};
use crate::env::Env;

fn activity(operation: ThreadOperation) -> Activity {
    Activity {
        db_path: Arc::from(Path::new("/db")),
        family_name: "photos".to_string(),
        operation,
        stage: ThreadStage::Unknown,
        properties: vec![("JobID", 7)],
        clock: Env::memory().clock,
    }
}

fn status_of(thread: u64) -> Option<ThreadStatus> {
    thread_list().into_iter().find(|status| status.thread == thread)
}

#[test]
fn a_thread_is_listed_while_it_does_something() {
    const THREAD: u64 = 1 << 40;
    enter_stage(ThreadStage::FlushRun);
    assert!(status_of(THREAD).is_none());
    {
        let _flush = Doing::begin(THREAD, ThreadType::User, activity(ThreadOperation::Flush));
        enter_stage(ThreadStage::FlushWriteLevel0);
        let status = status_of(THREAD).unwrap();
        assert_eq!((status.kind, status.operation), (ThreadType::User, ThreadOperation::Flush));
        assert_eq!(status.stage.to_string(), "FlushJob::WriteLevel0Table");
        assert_eq!((status.db_path, status.properties), (PathBuf::from("/db"), vec![("JobID", 7)]));
        {
            let _inner =
                Doing::begin(THREAD, ThreadType::User, activity(ThreadOperation::Compaction));
            assert_eq!(status_of(THREAD).unwrap().operation, ThreadOperation::Compaction);
        }
        assert_eq!(status_of(THREAD).unwrap().stage, ThreadStage::FlushWriteLevel0);
    }
    assert!(status_of(THREAD).is_none());
}

#[test]
fn a_worker_is_listed_until_it_ends() {
    const THREAD: u64 = 1 << 41;
    #[expect(clippy::disallowed_methods, reason = "a thread of the test's own")]
    let worker = std::thread::spawn(|| {
        // A thread that had flushed before it compacted was listed as one of flushes for good.
        list_thread(THREAD, ThreadType::HighPriority);
        list_thread(THREAD, ThreadType::LowPriority);
        drop(Doing::begin(THREAD, ThreadType::LowPriority, activity(ThreadOperation::Compaction)));
        let idle = status_of(THREAD).unwrap();
        assert_eq!((idle.operation, idle.kind), (ThreadOperation::Idle, ThreadType::LowPriority));
        assert!(idle.family_name.is_empty() && idle.properties.is_empty());
    });
    worker.join().unwrap();
    assert!(status_of(THREAD).is_none());
}
