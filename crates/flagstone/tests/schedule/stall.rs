//! Writers that are held up: progress lets them go, a failure does, closing does.

use flagstone::base::Code;

use crate::explore::explore;
use crate::world::{join, open, put, thread};

/// Every write fills a memtable, and one that waits for its flush stops the writers.
const CRAMPED: &[(&str, &str)] = &[
    ("write_buffer_size", "1024"),
    ("max_write_buffer_number", "2"),
    ("level0_file_num_compaction_trigger", "1"),
    ("level0_slowdown_writes_trigger", "1"),
    ("level0_stop_writes_trigger", "2"),
];

/// Waiting for compactions once looked for work before it took the lock under which it waits: it could miss the end of the
/// last one, and slept on until its time was out.
#[test]
fn progress_lets_writers_go_on() {
    explore("stall::progress_lets_writers_go_on", 300, || {
        let (_, db) = open(CRAMPED);
        let writers = (0..3).map(|writer| {
            let db = db.clone();
            thread(move || {
                for n in 0..3 {
                    put(&db, writer == 0, &format!("{n} of {writer}"), "value").expect("a write");
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        join(writers);
        db.wait_for_compactions().expect("no failure");
        db.close().expect("a clean close");
    });
}

#[test]
fn a_failure_lets_writers_go() {
    explore("stall::a_failure_lets_writers_go", 300, || {
        let (disk, db) = open(CRAMPED);
        disk.fail_sync(4);
        let writers = (0..2).map(|writer| {
            let db = db.clone();
            thread(move || {
                let outcomes = (0..6).map(|n| put(&db, false, &format!("{n} of {writer}"), "value"));
                let outcomes: Vec<_> = outcomes.collect();
                let failed = outcomes.iter().position(|outcome| outcome.is_err()).unwrap_or(outcomes.len());
                assert!(
                    outcomes[failed..].iter().all(|outcome| outcome.is_err()),
                    "poison stays: {outcomes:?}"
                );
            })
        });
        let flusher = {
            let db = db.clone();
            thread(move || {
                let _ = db.flush_all();
                let _ = db.wait_for_compactions();
            })
        };
        let threads: Vec<_> = writers.chain([flusher]).collect();
        join(threads);
        let _ = db.close();
    });
}

#[test]
fn closing_lets_writers_go() {
    explore("stall::closing_lets_writers_go", 300, || {
        let (_, db) = open(CRAMPED);
        let writers = (0..2).map(|writer| {
            let db = db.clone();
            thread(move || {
                for n in 0..4 {
                    if let Err(error) = put(&db, false, &format!("{n} of {writer}"), "value") {
                        assert_eq!(error.code(), Code::ShutdownInProgress, "{error}");
                    }
                }
            })
        });
        let closer = {
            let db = db.clone();
            thread(move || db.close().expect("a clean close"))
        };
        let threads: Vec<_> = writers.chain([closer]).collect();
        join(threads);
    });
}
