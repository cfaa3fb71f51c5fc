//! Locks on keys: no update is lost, no waiter is forgotten, and what expires is written or taken
//! over, never both. No time passes for those that wait, so a wake-up that is missing is a
//! deadlock.

use std::sync::Arc;
use std::time::Duration;

use flagstone::base::ColumnFamilyId;
use flagstone::env::Clock;
use flagstone::transactions::locks::{LockManager, LockMode, LockSettings, Patience};
use flagstone::{SubCode, TransactionDb, TransactionDbOptions, TransactionOptions};
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::explore::explore;
use crate::world::{join, open, thread};

fn number(value: Option<flagstone::Value>) -> u64 {
    value.map_or(0, |value| std::str::from_utf8(&value).expect("digits").parse().expect("a number"))
}

/// Threads read a counter, some sharing it first, and write it. Every circle of waiters is found.
#[test]
fn no_update_is_lost() {
    explore("locks::no_update_is_lost", 300, || {
        let (_, db) = open(&[]);
        let db = TransactionDb::around(&db, &TransactionDbOptions::default()).expect("locks");
        let writers = (0..3).map(|writer| {
            let db = db.clone();
            thread(move || {
                for _ in 0..2 {
                    db.transact(|transaction| {
                        let count = if writer == 0 {
                            transaction.get_for_update(&db, "count")?
                        } else {
                            transaction.get_shared(&db, "count")?
                        };
                        transaction.put(&db, "count", (number(count) + 1).to_string())
                    })
                    .expect("attempts suffice");
                }
                db.put("plain", "a write outside of transactions")
                    .expect("nobody holds it for long");
            })
        });
        join(writers.collect());
        assert_eq!(number(db.get("count").expect("a lookup")), 6, "an update is lost");
        assert_eq!((db.locked_count(), db.locked_keys().len()), (0, 0));
        db.close().expect("a clean close");
    });
}

/// Two that take two keys in different orders: at least one of them comes through.
#[test]
fn a_circle_has_one_victim_at_most() {
    explore("locks::a_circle_has_one_victim_at_most", 300, || {
        let (_, db) = open(&[]);
        let db = TransactionDb::around(&db, &TransactionDbOptions::default()).expect("locks");
        let both = [["a", "b"], ["b", "a"]].map(|keys| {
            let db = db.clone();
            thread(move || {
                let options = TransactionOptions { deadlock_detect: true, ..Default::default() };
                let mut transaction = db.begin_with(&options);
                for key in keys {
                    if let Err(error) = transaction.put(&db, key, keys[0]) {
                        assert_eq!(error.subcode(), SubCode::Deadlock, "{error}");
                        return false;
                    }
                }
                transaction.commit().expect("its keys are locked");
                true
            })
        });
        let through = join(both.into_iter().collect());
        assert!(through.contains(&true), "both gave up");
        let values = ["a", "b"].map(|key| db.get(key).expect("a lookup"));
        assert_eq!(values[0].as_deref(), values[1].as_deref(), "both keys are of one transaction");
        assert_eq!(db.deadlocks().len(), through.iter().filter(|through| !**through).count());
        db.close().expect("a clean close");
    });
}

/// A clock that is turned.
#[derive(Default)]
struct Hands(AtomicU64);

impl Clock for Hands {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn unix_seconds(&self) -> u64 {
        0
    }

    fn sleep(&self, _: Duration) {
        unreachable!("locks are waited for with a condition");
    }
}

/// One expires while it commits, and another takes its key.
#[test]
fn what_expires_is_written_or_taken_over() {
    explore("locks::what_expires_is_written_or_taken_over", 300, || {
        const PATIENCE: Patience = Patience { timeout: Duration::MAX, detect_depth: None };
        let clock = Arc::new(Hands::default());
        let settings = LockSettings { stripes: 2, locks_max: None, deadlocks_max: 5 };
        let locks = Arc::new(LockManager::new(settings, clock.clone()));
        let table = locks.family(ColumnFamilyId(0));
        let old = locks.begin(Some(Duration::from_micros(10)));
        let of_old = locks.lock(&table, &old, b"a", LockMode::Exclusive, &PATIENCE);
        of_old.expect("the key is free");
        let is_written = Arc::new(AtomicBool::new(false));
        let commits = {
            let (locks, table, is_written) = (locks.clone(), table.clone(), is_written.clone());
            thread(move || {
                if locks.begin_commit(&old) {
                    is_written.store(true, Ordering::SeqCst);
                }
                table.release(&old, b"a");
                assert!(!(old.was_robbed() && is_written.load(Ordering::SeqCst)));
            })
        };
        clock.0.store(10, Ordering::SeqCst);
        let thief = locks.begin(None);
        let granted = locks.lock(&table, &thief, b"a", LockMode::Exclusive, &PATIENCE);
        let robbed = granted.expect("it waits for ever").robbed;
        let was_written = is_written.load(Ordering::SeqCst);
        assert!(robbed == 0 || !was_written, "it was written, and its key taken over");
        commits.join().expect("no panic");
        assert!(
            robbed == 0 || !is_written.load(Ordering::SeqCst),
            "it was taken over, and written"
        );
        table.release(&thief, b"a");
        assert_eq!(locks.count(), 0);
    });
}
