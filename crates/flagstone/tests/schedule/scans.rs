//! What scans leave behind for each other: cursors that are used again, and ranges in which there
//! is nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flagstone::base::Result;
use flagstone::db::{ColumnFamily, Db};
use flagstone::options::ReadOptions;
use testkit::compare;

use crate::explore::explore;
use crate::world::{close, join, open, put, thread};

/// In the order in which they are set: each ends the range where nothing is for good, as a scan
/// comes to it.
const KEYS: [&str; 3] = ["key 5", "key 3", "key 1"];

/// Scans tell where they walked over nothing but deletions, and later ones leap over that; but a
/// key that was set there is found by all who begin afterwards.
#[test]
fn a_key_that_was_set_is_found_among_the_deleted() {
    let name = "scans::a_key_that_was_set_is_found_among_the_deleted";
    explore(name, 2000, || set_among_the_deleted(KEYS, compare::scan));
}

#[test]
fn a_key_that_was_set_is_found_by_scans_back() {
    let name = "scans::a_key_that_was_set_is_found_by_scans_back";
    explore(name, 2000, || {
        let [last, middle, first] = KEYS;
        set_among_the_deleted([first, middle, last], compare::scan_back);
    });
}

type Scan = fn(&Db, &ColumnFamily, &ReadOptions) -> Result<compare::Entries>;

fn set_among_the_deleted(keys: [&'static str; 3], scan: Scan) {
    let changes =
        [("max_sequential_skip_in_iterations", "0"), ("disable_auto_compactions", "true")];
    let (disk, db) = open(&changes);
    for n in 0..7 {
        put(&db, false, &format!("key {n}"), "gone").expect("a write");
    }
    let stay = ["first", "last"];
    stay.iter().for_each(|key| put(&db, false, key, "stays").expect("a write"));
    (0..7).for_each(|n| db.delete(format!("key {n}")).expect("a deletion"));
    let set = Arc::new(AtomicUsize::new(0));
    let writer = {
        let (db, set) = (db.clone(), set.clone());
        thread(move || {
            for (n, key) in keys.into_iter().enumerate() {
                db.delete("key 0").expect("a deletion");
                put(&db, false, key, "there").expect("a write");
                set.store(n + 1, Ordering::SeqCst);
                if n == 1 {
                    db.flush_all().expect("a flush");
                }
            }
        })
    };
    let readers = (0..2).map(|_| {
        let (db, set) = (db.clone(), set.clone());
        thread(move || {
            for _ in 0..5 {
                let least = set.load(Ordering::SeqCst);
                let found =
                    scan(&db, db.default_column_family(), &ReadOptions::default()).expect("a scan");
                let wanted = keys[..least].iter().chain(&stay);
                let missed: Vec<_> = wanted
                    .filter(|key| !found.iter().any(|(found, _)| found == key.as_bytes()))
                    .collect();
                assert!(missed.is_empty(), "{missed:?} of {least} that were set");
            }
        })
    });
    let threads: Vec<_> = readers.chain([writer]).collect();
    join(threads);
    close(&disk, &db);
}
