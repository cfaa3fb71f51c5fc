use std::thread;

use super::*;
use crate::base::sync::Mutex;

fn insertions() -> (Arc<SnapshotList>, Insertions) {
    let snapshots = SnapshotList::new();
    (snapshots.clone(), Insertions::new(snapshots))
}

fn published(snapshots: &SnapshotList) -> SequenceNumber {
    snapshots.published.load(Ordering::Acquire)
}

#[test]
fn what_is_inserted_early_is_published_after_what_was_numbered_before() {
    let (snapshots, insertions) = insertions();
    let numbers = &mut TurnNumbers::default();
    let [first, second, third] = [3, 5, 6].map(|last| insertions.begin(numbers, Some(last)));
    let third = third.done();
    assert_eq!(published(&snapshots), 0);
    assert!(!insertions.has_passed(third));
    first.done();
    assert_eq!(published(&snapshots), 3);
    second.done();
    assert_eq!(published(&snapshots), 6);
    insertions.wait_for(third).unwrap();
    insertions.wait_for_all(numbers).unwrap();
}

#[test]
fn what_waits_for_a_sync_is_passed_and_not_published() {
    let (snapshots, insertions) = insertions();
    let numbers = &mut TurnNumbers::default();
    insertions.begin(numbers, Some(1)).done();
    let waits = insertions.begin(numbers, None).done();
    insertions.wait_for(waits).unwrap();
    assert_eq!(published(&snapshots), 1);
    // The sync has come, and published all up to 2.
    snapshots.publish(2);
    insertions.begin(numbers, Some(3)).done();
    assert_eq!(published(&snapshots), 3);
}

/// An operator that merges at once reads what was written before.
#[test]
fn a_turn_may_wait_for_those_before_it() {
    let (_, insertions) = insertions();
    let numbers = &mut TurnNumbers::default();
    let (first, second) = (insertions.begin(numbers, Some(1)), insertions.begin(numbers, Some(2)));
    thread::scope(|threads| {
        let waiter = threads.spawn(|| second.wait_for_earlier().map(|()| second.done()));
        first.done();
        waiter.join().unwrap().unwrap();
    });
}

#[test]
fn behind_a_turn_that_ends_undone_nothing_is_published_and_nobody_waits() {
    let (snapshots, insertions) = insertions();
    let numbers = &mut TurnNumbers::default();
    let [before, panics, behind] = [1, 2, 3].map(|last| insertions.begin(numbers, Some(last)));
    drop(panics);
    let before = before.done();
    insertions.wait_for(before).unwrap();
    let behind = behind.done();
    assert_eq!(insertions.wait_for(behind).unwrap_err().code(), Code::Aborted);
    assert_eq!(insertions.wait_for_all(numbers).unwrap_err().code(), Code::Aborted);
    assert_eq!(published(&snapshots), 1);
    // However many come behind it.
    for later in 0..3 * SLOTS {
        insertions.begin(numbers, Some(later + 4)).done();
    }
    assert_eq!(published(&snapshots), 1);
}

/// More writers at once than there are places, each of which finds its own write published.
#[test]
fn every_thread_finds_its_write_published() {
    const THREADS: u64 = SLOTS + 20;
    const WRITES: u64 = if cfg!(miri) { 2 } else { 200 };
    let (snapshots, insertions) = insertions();
    let commit = Mutex::new((0, TurnNumbers::default()));
    thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                for _ in 0..WRITES {
                    let (last, turn) = {
                        let (last, numbers) = &mut *commit.lock();
                        *last += 1;
                        (*last, insertions.begin(numbers, Some(*last)))
                    };
                    let turn = turn.done();
                    insertions.wait_for(turn).unwrap();
                    assert!(published(&snapshots) >= last);
                }
            });
        }
    });
    assert_eq!(published(&snapshots), THREADS * WRITES);
}
