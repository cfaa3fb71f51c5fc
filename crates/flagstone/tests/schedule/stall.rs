//! Writers that are held up: progress lets them go, a failure does, closing does.

use flagstone::base::Code;
use flagstone::base::sometimes::counts;

use crate::explore::explore;
use crate::world::{check_directory, join, open, put, thread, threads};

/// Every write fills a memtable, and one that waits for its flush stops the writers.
const CRAMPED: &[(&str, &str)] = &[
    ("write_buffer_size", "1024"),
    ("max_write_buffer_number", "2"),
    ("level0_file_num_compaction_trigger", "1"),
    ("level0_slowdown_writes_trigger", "1"),
    ("level0_stop_writes_trigger", "2"),
];

/// Together two memtables have more than all may have.
const SHARED: &[(&str, &str)] = &[
    ("write_buffer_size", "1000000"),
    ("db_write_buffer_size", "16384"),
    ("level0_file_num_compaction_trigger", "4"),
];

/// Runs of unlike sizes: those that are left alone stop nobody.
const IN_RUNS: &[(&str, &str)] = &[
    ("write_buffer_size", "1024"),
    ("max_write_buffer_number", "2"),
    ("compaction_style", "kCompactionStyleUniversal"),
    (
        "compaction_options_universal",
        "{size_ratio=0;min_merge_width=3;max_size_amplification_percent=1000;}",
    ),
    ("level0_file_num_compaction_trigger", "2"),
    ("level0_slowdown_writes_trigger", "1"),
    ("level0_stop_writes_trigger", "1"),
];

/// Waiting for compactions once looked for work before it took the lock under which it waits: it
/// could miss the end of the last one, and slept on until its time was out.
#[test]
fn progress_lets_writers_go_on() {
    explore("stall::progress_lets_writers_go_on", 300, || writers_go_on(CRAMPED, 5));
}

#[test]
fn writers_who_share_a_limit_go_on() {
    explore("stall::writers_who_share_a_limit_go_on", 300, || writers_go_on(SHARED, 4000));
    let stopped = counts().into_iter().find(|(name, ..)| *name == "MemtablesStoppedWriters");
    assert!(stopped.expect("a marker").2 > 0, "nobody was stopped");
}

#[test]
fn writers_beside_universal_compactions_go_on() {
    explore("stall::writers_beside_universal_compactions_go_on", 300, || {
        writers_go_on(IN_RUNS, 300)
    });
}

/// A flush that comes when all jobs are taken has a compaction pause, at any entry.
#[test]
fn writers_whose_flushes_have_compactions_pause_go_on() {
    explore("stall::writers_whose_flushes_have_compactions_pause_go_on", 300, || {
        writers_go_on(&[CRAMPED, &[("max_background_jobs", "1")]].concat(), 5);
    });
    let paused = counts().into_iter().find(|(name, ..)| *name == "CompactionPaused");
    assert!(paused.expect("a marker").2 > 0, "none did");
}

/// What a thread that gives way does goes over to another one while writers sleep for it, at any
/// entry.
#[test]
fn writers_who_hurry_what_gives_way_go_on() {
    explore("stall::writers_who_hurry_what_gives_way_go_on", 300, || {
        let (_, db) = open(&[CRAMPED, &[("background_niceness", "1")]].concat());
        join(threads(3, &db, |db, writer| {
            for n in 0..3 {
                put(db, writer == 0, &format!("{n} of {writer}"), &"v".repeat(5)).expect("a write");
            }
        }));
        db.wait_for_compactions().expect("no failure");
        for writer in 0..3 {
            (0..3).for_each(|n| {
                assert!(db.get(format!("{n} of {writer}")).expect("a lookup").is_some())
            });
        }
        db.close().expect("a clean close");
    });
    let hurried = counts().into_iter().find(|(name, ..)| *name == "WorkHurried");
    assert!(hurried.expect("a marker").2 > 0, "nothing was");
}

/// Three of them write values of so many bytes.
fn writers_go_on(changes: &[(&str, &str)], bytes: usize) {
    let (_, db) = open(changes);
    join(threads(3, &db, move |db, writer| {
        for n in 0..3 {
            put(db, writer == 0, &format!("{n} of {writer}"), &"v".repeat(bytes)).expect("a write");
        }
    }));
    db.wait_for_compactions().expect("no failure");
    db.close().expect("a clean close");
}

#[test]
fn a_failure_lets_writers_go() {
    explore("stall::a_failure_lets_writers_go", 300, || {
        let (disk, db) = open(CRAMPED);
        disk.fail_sync(4);
        let mut all = threads(2, &db, |db, writer| {
            let outcomes = (0..6).map(|n| put(db, false, &format!("{n} of {writer}"), "value"));
            let outcomes: Vec<_> = outcomes.collect();
            let failed =
                outcomes.iter().position(|outcome| outcome.is_err()).unwrap_or(outcomes.len());
            assert!(
                outcomes[failed..].iter().all(|outcome| outcome.is_err()),
                "poison stays: {outcomes:?}"
            );
        });
        all.extend(threads(1, &db, |db, _| {
            let _ = db.flush_all();
            let _ = db.wait_for_compactions();
        }));
        join(all);
        let _ = db.close();
    });
}

#[test]
fn closing_lets_writers_go() {
    explore("stall::closing_lets_writers_go", 300, || {
        let (_, db) = open(CRAMPED);
        let mut all = threads(2, &db, |db, writer| {
            for n in 0..4 {
                if let Err(error) = put(db, false, &format!("{n} of {writer}"), "value") {
                    assert_eq!(error.code(), Code::ShutdownInProgress, "{error}");
                }
            }
        });
        all.extend(threads(1, &db, |db, _| db.close().expect("a clean close")));
        join(all);
    });
}

/// Waiting for compactions, and closing, sleep until no compaction counts as running. The count
/// falls after the outputs were installed and waiters were woken for them: without another wake-up
/// they sleep on.
#[test]
fn the_end_of_a_compaction_wakes_waiters() {
    explore("stall::the_end_of_a_compaction_wakes_waiters", 300, || {
        for closes in [false, true] {
            let (_, db) = open(&[("disable_auto_compactions", "true")]);
            for n in 0..2 {
                put(&db, false, &n.to_string(), "value").expect("a write");
                db.flush_all().expect("a flush");
            }
            let compactor = {
                let db = db.clone();
                let tables: Vec<_> = db.live_files().into_iter().map(|file| file.number).collect();
                let family = db.default_column_family().clone();
                thread(move || db.compact_files(&family, &tables, 1, &Default::default()).map(drop))
            };
            if closes {
                db.close().expect("a clean close");
            } else {
                db.wait_for_compactions().expect("no failure");
            }
            for compacted in join(vec![compactor]) {
                let refused =
                    compacted.as_ref().is_err_and(|error| error.code() == Code::ShutdownInProgress);
                assert!(compacted.is_ok() || closes && refused, "{compacted:?}");
            }
            db.close().expect("a clean close");
        }
    });
}

/// After waiting for compactions their input files are removed. A compaction held its version, and
/// with it these files, after it no longer counted as running: the waiting thread could not remove
/// them, and they stayed until the next removal.
#[test]
fn waiters_find_the_inputs_of_compactions_removed() {
    explore("stall::waiters_find_the_inputs_of_compactions_removed", 300, || {
        let (disk, db) =
            open(&[("level0_file_num_compaction_trigger", "2"), ("enable_blob_files", "true")]);
        for n in 0..2 {
            put(&db, false, "key", &n.to_string()).expect("a write");
            db.flush_all().expect("a flush");
        }
        db.wait_for_compactions().expect("no failure");
        check_directory(&disk, &db);
        db.close().expect("a clean close");
    });
}
