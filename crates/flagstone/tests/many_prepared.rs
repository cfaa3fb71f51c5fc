//! Very many prepared transactions, and large ones, survive their process, and recover within the
//! memory budget. One story a process, as memory belongs to all of it.
//!
//! The figure: `FLAGSTONE_PREPARED=100000 cargo test --release -p flagstone --test
//! many_prepared -- --nocapture`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]

mod common;

use common::{pages_are_small, resident, temporary};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, TwoPhase};
use flagstone::options::{Options, WriteOptions};
use flagstone::{TransactionDb, TransactionDbOptions};

/// Transactions, unless `FLAGSTONE_PREPARED` says otherwise.
const COUNT: usize = 2_000;

/// The longest name.
const NAME_MAX: usize = 512;

const BUDGET: usize = 256 << 20;
const WRITE_BUFFER: usize = 1 << 20;
/// Bytes of the largest transaction, of which there is one.
const LARGE: usize = 5 * WRITE_BUFFER;

fn options() -> Options {
    let mut options = common::create();
    let set = format!("allow_2pc=true;write_buffer_size={WRITE_BUFFER};memory_budget={BUDGET}");
    options.set_all(&set).unwrap();
    options
}

/// Any bytes, and now and then as many as there may be.
fn name(number: usize) -> Vec<u8> {
    let mut name = number.to_be_bytes()[4..].to_vec();
    name.extend(b"\0\xff\n'");
    if number.is_multiple_of(100) {
        name.extend((name.len()..NAME_MAX).map(|at| (at * number) as u8));
    }
    name
}

fn key(number: usize) -> String {
    format!("key{number:08}")
}

fn prepare(db: &Db, name: &[u8], key: &str, value: &[u8]) {
    let mut batch = WriteBatch::new();
    batch.put(key, value).unwrap();
    TwoPhase::of(db).prepare(&WriteOptions::default(), name, batch).unwrap();
}

/// How many transactions there are, and where the database is.
struct Story {
    count: usize,
    directory: tempfile::TempDir,
}

impl Story {
    fn open(&self) -> Db {
        Db::open(self.directory.path(), &options()).unwrap()
    }

    fn prepare_all(&self) {
        let db = self.open();
        for number in 0..self.count {
            prepare(&db, &name(number), &key(number), &[b'v'; 100]);
            if number == self.count / 2 {
                db.put("between", "1").unwrap();
                db.flush_all().unwrap();
            }
        }
        let large = vec![b'l'; LARGE];
        prepare(&db, b"large", "large", &large);
        let too_long = TwoPhase::of(&db).prepare(
            &WriteOptions::default(),
            vec![b'x'; NAME_MAX + 1],
            WriteBatch::new(),
        );
        assert!(too_long.is_err());
    }

    /// All are there as they were prepared; memory is counted, and within the budget.
    fn check(&self) {
        let before = resident();
        let db = self.open();
        let prepared = TwoPhase::of(&db).prepared();
        assert_eq!(prepared.len(), self.count + 1);
        for (number, one) in prepared.iter().take(self.count).enumerate() {
            let mut expected = WriteBatch::new();
            expected.put(key(number), [b'v'; 100]).unwrap();
            assert_eq!((one.name(), one.operations().body()), (&name(number)[..], expected.body()));
        }
        let took = resident().saturating_sub(before);
        println!(
            "{} prepared: {} KiB resident, {} KiB counted, of a budget of {} KiB",
            prepared.len(),
            took >> 10,
            db.memory_usage().total() >> 10,
            BUDGET >> 10
        );
        if pages_are_small() {
            assert!(took < BUDGET, "{took} bytes resident");
        }
        assert!(db.memory_usage().total() as usize >= LARGE, "what is prepared is counted");
    }

    /// Their keys are locked, and every handle decides.
    fn decide(&self) {
        let before = resident();
        let locks = TransactionDbOptions::default();
        let db = flagstone::Db::builder(self.directory.path())
            .options(|of| of.set_all(&format!("memory_budget={BUDGET}")).unwrap())
            .open_transaction_db(&locks)
            .unwrap();
        assert_eq!(db.locked_count(), self.count as u64 + 1);
        let mut all = db.prepared_transactions().unwrap();
        println!("as handles: {} KiB resident", resident().saturating_sub(before) >> 10);
        assert_eq!(all.len(), self.count + 1);
        for (at, transaction) in all.iter_mut().enumerate() {
            if at.is_multiple_of(2) {
                transaction.commit().unwrap();
            } else {
                transaction.rollback().unwrap();
            }
        }
        assert_eq!((db.locked_count(), db.transactions().len()), (0, 0));
        self.check_decided(&db);
        drop((all, db));
        self.check_decided(&TransactionDb::open(self.directory.path()).unwrap());
    }

    fn check_decided(&self, db: &TransactionDb) {
        assert!(db.prepared_transactions().unwrap().is_empty());
        for number in 0..self.count {
            assert_eq!(db.get(key(number)).unwrap().is_some(), number.is_multiple_of(2));
        }
        let large = db.get("large").unwrap();
        assert_eq!(large.is_some(), self.count.is_multiple_of(2));
        assert!(large.is_none_or(|value| value.len() == LARGE));
    }
}

#[test]
fn very_many_prepared_transactions_recover() {
    let count = std::env::var("FLAGSTONE_PREPARED").map_or(COUNT, |count| count.parse().unwrap());
    let story = Story { count, directory: temporary() };
    story.prepare_all();
    story.check();
    story.decide();
}
