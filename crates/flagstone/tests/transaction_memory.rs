//! What locked keys take in memory, as the system counts it. One story a process, as memory belongs
//! to all of it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]

mod common;

use common::{pages_are_small, resident};
use flagstone::TransactionDb;
use flagstone::reports::LockMode;

/// As many as fill the tables least: each has just grown to twice its size.
const KEYS: u64 = 125_000;

/// Bytes that RocksDB takes for a lock of a key of 16 bytes: two nodes of hash tables, one with the
/// holders and one with the transaction's counts (176 and 80 bytes), their slots, and the key
/// twice.
const OF_ROCKSDB: u64 = 176 + 80 + 2 * 8 + 2 * 32;

#[test]
fn a_held_lock_takes_less_than_in_rocksdb() {
    if !pages_are_small() {
        return;
    }
    let directory = common::temporary();
    let db = TransactionDb::open(directory.path()).unwrap();
    let mut transaction = db.begin();
    transaction.claim_read(&db, b"first", LockMode::Exclusive).unwrap();
    let before = resident();
    for key in 0..KEYS {
        let key = format!("{key:016}");
        transaction.claim_read(&db, key.as_bytes(), LockMode::Exclusive).unwrap();
    }
    assert_eq!(db.locked_count(), KEYS + 1);
    let of_each = (resident() - before) as u64 / KEYS;
    println!("{of_each} bytes a lock");
    assert!(of_each < OF_ROCKSDB * 3 / 4, "{of_each} bytes a lock");
    transaction.rollback().unwrap();
    assert_eq!((db.locked_count(), db.transactions().len()), (0, 0));
}
