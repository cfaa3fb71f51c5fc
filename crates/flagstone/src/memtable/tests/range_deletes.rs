use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::*;
use crate::base::UserComparator;

fn key(number: usize) -> Vec<u8> {
    format!("{number:08}").into_bytes()
}

fn delete(deletes: &RangeDeletes, sequence: SequenceNumber, keys: std::ops::Range<usize>) {
    deletes.add(RangeTombstone { start: key(keys.start), end: key(keys.end), sequence });
}

fn covering(deletes: &RangeDeletes, number: usize, snapshot: SequenceNumber) -> SequenceNumber {
    deletes.covering_sequence(&Comparator::Bytewise, &key(number), snapshot)
}

/// Fragments that the runs hold.
fn sizes(deletes: &RangeDeletes) -> Vec<usize> {
    deletes.runs().load().now.runs.iter().map(|run| run.newest.len()).collect()
}

/// Sorting everything again at each read made it quadratic.
#[test]
fn reads_and_deletions_that_take_turns_leave_few_runs() {
    let deletes = RangeDeletes::new(None);
    for sequence in 1..=1000 {
        let first = (sequence as usize * 7919) % 1000;
        delete(&deletes, sequence, 2 * first..2 * first + 1);
        assert_eq!(covering(&deletes, 2 * first, sequence), sequence);
        assert_eq!(covering(&deletes, 2 * first + 1, sequence), 0);
    }
    assert!(sizes(&deletes).len() <= 10, "{:?}", sizes(&deletes));
    assert_eq!(sizes(&deletes).iter().sum::<usize>(), 1000);
}

/// A reader took what stands in the list before the first deletion too new for it, and missed those
/// that a slower writer had put behind that one.
#[test]
fn deletions_that_writers_add_out_of_order_are_all_seen() {
    let deletes = RangeDeletes::new(None);
    let mut random = fastrand::Rng::with_seed(5);
    let mut covers = [const { Vec::<SequenceNumber>::new() }; 8];
    for round in 0..300 {
        // The writers of a group are not in order, and are over before it is read.
        let mut group: Vec<SequenceNumber> = (6 * round + 1..=6 * round + 6).collect();
        random.shuffle(&mut group);
        for sequence in group {
            let number = random.usize(..8);
            delete(&deletes, sequence, number..number + 1);
            covers[number].push(sequence);
        }
        for (number, covers) in covers.iter().enumerate() {
            let snapshot = random.u64(1.max(6 * round).saturating_sub(12)..=6 * round + 6);
            let seen = covers.iter().filter(|&&sequence| sequence <= snapshot).max();
            let expected = seen.copied().unwrap_or(0);
            assert_eq!(covering(&deletes, number, snapshot), expected, "{number}@{snapshot}");
        }
    }
}

#[test]
fn runs_that_are_asked_often_are_merged() {
    let deletes = RangeDeletes::new(None);
    for sequence in 1..=7 {
        delete(&deletes, sequence, 2 * sequence as usize..2 * sequence as usize + 1);
        covering(&deletes, 0, sequence);
    }
    assert!(sizes(&deletes).len() > 1);
    (0..100).for_each(|_| assert_eq!(covering(&deletes, 6, 7), 3));
    assert_eq!(sizes(&deletes), [7]);
    assert_eq!(covering(&deletes, 6, 2), 0, "a snapshot is served as before");
}

/// Keys that bits said nothing covers did not count: where readers asked for no others, each asked
/// all runs for ever.
#[test]
fn runs_that_are_asked_often_in_vain_are_merged() {
    let deletes = RangeDeletes::new(None);
    for sequence in 1..=7 {
        delete(&deletes, sequence, 2 * sequence as usize..2 * sequence as usize + 1);
        covering(&deletes, 0, sequence);
    }
    assert!(sizes(&deletes).len() > 1);
    for _ in 0..100 {
        if let RangeLook::Unknown = deletes.seek(&key(0), 7) {
            covering(&deletes, 0, 7);
        }
    }
    assert_eq!(sizes(&deletes), [7]);
    assert!(matches!(deletes.seek(&key(0), 7), RangeLook::Uncovered));
}

/// Each range began where the one before did: every fragment held the numbers of all that followed.
#[test]
fn nested_ranges_take_no_more_memory_than_others() {
    let deletes = RangeDeletes::new(None);
    const COUNT: u64 = 3000;
    for sequence in 1..=COUNT {
        delete(&deletes, sequence, 0..sequence as usize);
    }
    assert_eq!(covering(&deletes, 17, COUNT), COUNT);
    assert_eq!(sizes(&deletes), [1]);
    assert_eq!((covering(&deletes, 17, 20), covering(&deletes, 17, 17)), (20, 0));
    let needed = deletes.needed(&Comparator::Bytewise, &[20]).unwrap();
    assert_eq!((needed.len(), needed.tombstones().count()), (2, 3));
}

#[test]
fn what_nobody_sees_yet_is_not_read() {
    let deletes = RangeDeletes::new(None);
    delete(&deletes, 1, 0..2);
    delete(&deletes, 5, 0..9);
    assert_eq!((covering(&deletes, 1, 3), covering(&deletes, 5, 3)), (1, 0));
    assert_eq!(deletes.runs().load().now.last, 1);
    assert_eq!(covering(&deletes, 1, 5), 5);
    // Who is a little behind asks the runs of before.
    assert_eq!(covering(&deletes, 1, 4), 1);
    assert!(deletes.runs().load().now.runs.iter().all(|run| run.parts.lock().is_empty()));
}

#[test]
fn snapshots_see_a_part_of_a_run() {
    let deletes = RangeDeletes::new(None);
    (1..=50).for_each(|sequence| delete(&deletes, sequence, 0..sequence as usize));
    assert_eq!(covering(&deletes, 30, 50), 50);
    for snapshot in (1..=50).rev().chain(1..=50) {
        assert_eq!(covering(&deletes, 30, snapshot), if snapshot > 30 { snapshot } else { 0 });
    }
    let runs = &deletes.runs().load().now.runs;
    assert!(runs.iter().all(|run| run.parts.lock().len() <= PARTS_MAX));
}

/// Each comparison waits until another thread has deleted something.
struct Interrupted {
    ask: Mutex<Sender<bool>>,
    added: Mutex<Receiver<()>>,
}

impl UserComparator for Interrupted {
    fn name(&self) -> &str {
        "interrupted"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        self.ask.lock().send(true).unwrap();
        self.added
            .lock()
            .recv_timeout(Duration::from_secs(60))
            .expect("an addition that waits for nobody");
        a.cmp(b)
    }
}

/// With many deletions it waited until all had been sorted, for hundreds of milliseconds.
#[test]
fn a_writer_does_not_wait_for_a_reader_that_sorts() {
    let deletes = RangeDeletes::new(None);
    (1..=20).for_each(|sequence| delete(&deletes, sequence, 0..sequence as usize));
    let ((ask, asked), (tell, added)) = (channel(), channel());
    std::thread::scope(|scope| {
        let (deletes, end) = (&deletes, ask.clone());
        scope.spawn(move || {
            for sequence in 100.. {
                if !asked.recv().unwrap_or(false) {
                    return;
                }
                delete(deletes, sequence, 0..5);
                // Who has given up waiting asks for no more.
                _ = tell.send(());
            }
        });
        let comparator = Comparator::Custom(Arc::new(Interrupted {
            ask: Mutex::new(ask),
            added: Mutex::new(added),
        }));
        // A new run, a part of it, and two runs that are merged.
        for (snapshot, expected) in [(20, 20), (10, 10), (30, 20)] {
            assert_eq!(deletes.covering_sequence(&comparator, &key(3), snapshot), expected);
        }
        assert!(deletes.covering_sequence(&comparator, &key(3), 110) >= 100);
        deletes.merge_all(&comparator);
        end.send(false).unwrap();
    });
}
