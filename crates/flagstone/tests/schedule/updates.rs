//! Updates: a reader of the WALs gets every write once and in order, while others write and WALs
//! are switched.

use flagstone::base::SequenceNumber;
use flagstone::db::{Db, Update, Updates};

use crate::explore::explore;
use crate::world::{join, open, put, thread};

const WRITES: u64 = 60;

/// The WALs stay in the archive, each with some of the writes.
const KEPT: &[(&str, &str)] = &[("write_buffer_size", "8192"), ("WAL_ttl_seconds", "1000000")];

/// Reads beside a writer until all writes have come; `next` looks for the next one, given its
/// sequence number.
fn follow(mut next: impl FnMut(&Db, SequenceNumber) -> Option<Update>) {
    let (_, db) = open(KEPT);
    let writer = {
        let db = db.clone();
        thread(move || {
            (1..=WRITES).for_each(|n| put(&db, n == 3, &n.to_string(), "value").expect("a write"))
        })
    };
    let mut wanted = 1;
    while wanted <= WRITES {
        match next(&db, wanted) {
            Some(update) => {
                assert_eq!(update.sequence, wanted, "a write is missing, or comes twice");
                wanted = update.next_sequence;
            }
            None => shuttle::thread::yield_now(),
        }
    }
    join(vec![writer]);
    db.close().expect("a clean close");
}

fn since(db: &Db, wanted: SequenceNumber) -> Updates {
    db.get_updates_since(wanted).expect("the WALs have every write")
}

/// The reader reads the published sequence number, then lists the WALs. In the other order a write
/// between the two is published and in no listed WAL: the reader reports it as missing.
#[test]
fn a_reader_that_goes_on_misses_no_write() {
    explore("updates::a_reader_that_goes_on_misses_no_write", 450, || {
        let mut updates = None;
        follow(|db, wanted| {
            let updates = updates.get_or_insert_with(|| since(db, wanted));
            updates.next_update().expect("the WALs have every write")
        });
    });
}

/// The search for the first WAL keeps to that order, too.
#[test]
fn a_reader_that_begins_anew_misses_no_write() {
    explore("updates::a_reader_that_begins_anew_misses_no_write", 300, || {
        follow(|db, wanted| since(db, wanted).next_update().expect("the WALs have every write"));
    });
}
