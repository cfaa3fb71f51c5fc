//! Reads of tasks that must not wait: the engine's own threads do them, wake the tasks, and end
//! with the database.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use flagstone::db::Db;
use flagstone::options::ReadOptions;
use shuttle::future::block_on;

use crate::explore::explore;
use crate::world::{Disk, close, join, open, put, threads};

const KEYS: usize = 6;

fn key(n: usize) -> String {
    format!("key {n}")
}

/// A database of which nothing is in memory.
fn cold() -> (Disk, Db) {
    let (disk, db) = open(&[("block_cache", "0"), ("disable_auto_compactions", "true")]);
    for n in 0..KEYS {
        put(&db, false, &key(n), &n.to_string()).expect("a write");
    }
    db.flush_all().expect("a flush");
    (disk, db)
}

#[test]
fn every_task_is_woken() {
    explore("async_reads::every_task_is_woken", 300, || {
        let (disk, db) = cold();
        join(threads(3, &db, |db, task| {
            let (options, family) = (ReadOptions::default(), db.default_column_family());
            for n in (task..KEYS).step_by(3) {
                let found =
                    block_on(db.get_async(&options, family, key(n).as_bytes())).expect("a lookup");
                assert_eq!(found.expect("it is there"), n.to_string().as_bytes());
            }
            let mut entries = db.iter_async(family, &options);
            let found = block_on(entries.next_batch(KEYS)).expect("a batch");
            assert_eq!(found.len(), KEYS);
        }));
        close(&disk, &db);
    });
}

/// Some futures are dropped before their read is begun, some while it goes on; then the database
/// goes.
#[test]
fn futures_that_are_given_up_keep_nothing() {
    explore("async_reads::futures_that_are_given_up_keep_nothing", 300, || {
        let (disk, db) = cold();
        join(threads(2, &db, |db, task| {
            let (options, family) = (ReadOptions::default(), db.default_column_family());
            for n in 0..3 {
                let mut read = pin!(db.get_async(&options, family, key(n).as_bytes()));
                match read.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(found) => assert!(found.expect("a lookup").is_some()),
                    // Another task than that of the first poll waits for it.
                    Poll::Pending if n == task => {
                        assert!(block_on(read).expect("a lookup").is_some())
                    }
                    Poll::Pending => {}
                }
            }
        }));
        close(&disk, &db);
    });
}
