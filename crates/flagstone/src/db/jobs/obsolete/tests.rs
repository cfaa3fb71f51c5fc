use super::*;
use crate::base::DataPaths;
use crate::db::DbInner;
use crate::db::handle::Db;
use crate::env::Env;
use crate::options::Options;

/// A thread looked for files to remove, and found that a checkpoint kept them. Another, which came
/// at that moment, took it for busy, and left a compaction for which writers waited to the next
/// look, two seconds later: nobody told it.
#[test]
fn who_may_not_remove_files_keeps_no_compaction_waiting() {
    let db = open();
    let inner = db.inner();
    inner.disk.removal(|| {
        leave(inner, UNREMOVED_MAX + 2);
        assert!(!inner.jobs.removal_is_behind(), "nobody removes any");
        let taken = inner.disk.take_obsolete(1);
        assert!(inner.jobs.removal_is_behind());
        inner.disk.end_removal(1, taken);
    });
}

/// While a thread removed the tables of a family that was dropped, none compacted, and writers were
/// stopped for that long.
#[test]
fn the_removal_of_a_dropped_family_does_not_keep_compactions_waiting() {
    let db = open();
    let inner = db.inner();
    inner.disk.removal(|| {
        leave(inner, 10_000);
        let taken = inner.disk.take_obsolete(usize::MAX);
        leave(inner, 5_000);
        assert!(!inner.jobs.removal_is_behind(), "there is time");
        leave(inner, 1);
        assert!(inner.jobs.removal_is_behind(), "but they do not become ever more");
        inner.disk.end_removal(taken.len(), Vec::new());
    });
}

/// Where no file could be removed nobody was told that this was over: a compaction for which
/// writers waited began two seconds later.
#[test]
fn who_waits_for_removals_is_told_also_when_they_have_failed() {
    let db = open();
    let inner = db.inner();
    let mut told = 0;
    inner.disk.removal(|| {
        leave(inner, UNREMOVED_MAX + 2);
        let taken = inner.disk.take_obsolete(1);
        assert!(inner.jobs.removal_is_behind());
        told = inner.background.announcements();
        inner.disk.end_removal(1, taken);
    });
    inner.jobs.end_purge();
    assert!(inner.background.announcements() > told);
    assert!(!inner.jobs.removal_is_behind(), "nobody is at it");
}

/// While a checkpoint kept the files, each look that met another had all threads wake up.
#[test]
fn who_does_not_wait_for_removals_is_not_told_of_them() {
    let db = open();
    let inner = db.inner();
    inner.disk.removal(|| {
        leave(inner, UNREMOVED_MAX + 2);
        assert!(!inner.jobs.removal_is_behind(), "nobody removes any");
        assert!(!inner.disk.is_removal_awaited());
    });
}

fn open() -> Db {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    Db::open("/db", &options).unwrap()
}

fn leave(inner: &DbInner, files: usize) {
    for _ in 0..files {
        let number = inner.tree.file_numbers.allocate();
        inner.disk.add_obsolete(ObsoleteFile::table(&DataPaths::default(), number, 0));
    }
}
