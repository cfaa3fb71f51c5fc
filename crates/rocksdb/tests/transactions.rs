//! Transactions by the rocksdb crate's names: what its own tests leave out.

use flagstone_rocksdb::{
    ErrorKind, IteratorMode, OptimisticTransactionDB, Options, Transaction, TransactionDB,
    TransactionDBOptions, TransactionOptions, WriteBatchWithTransaction, WriteOptions,
};

fn opened(directory: &tempfile::TempDir) -> TransactionDB {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    let mut of_locks = TransactionDBOptions::new();
    of_locks.set_default_lock_timeout(0);
    of_locks.set_txn_lock_timeout(0);
    TransactionDB::open_cf(&options, &of_locks, directory.path(), ["users"]).expect("it opens")
}

#[test]
fn a_key_that_is_locked_is_refused_in_rocksdb_s_words() {
    let directory = tempfile::tempdir().unwrap();
    let db = opened(&directory);
    let (first, second) = (db.transaction(), db.transaction());
    first.put("a", "1").unwrap();
    let error = second.put("a", "2").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let words = "Operation timed out: Timeout waiting to lock key: ";
    assert!(error.to_string().starts_with(words), "{error}");
    assert_eq!(db.put("a", "2").unwrap_err().kind(), ErrorKind::TimedOut);
    let mut batch = WriteBatchWithTransaction::<true>::default();
    batch.put("a", "2");
    assert_eq!(db.write(batch).unwrap_err().kind(), ErrorKind::TimedOut);
    // Shared locks go together.
    let users = db.cf_handle("users").unwrap();
    first.get_for_update_cf(&users, "a", false).unwrap();
    second.get_for_update_cf(&users, "a", false).unwrap();
    assert!(second.get_pinned_for_update_cf(&users, "a", true).is_err());
    first.rollback().unwrap();
    second.put("a", "2").unwrap();
    second.commit().unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), b"2");
}

#[test]
fn a_transaction_that_took_too_long_has_expired() {
    let directory = tempfile::tempdir().unwrap();
    let db = opened(&directory);
    let mut options = TransactionOptions::new();
    options.set_expiration(0);
    let late = db.transaction_opt(&WriteOptions::default(), &options);
    assert_eq!(late.put("a", "1").unwrap_err().kind(), ErrorKind::Expired);
    assert_eq!(late.commit().unwrap_err().kind(), ErrorKind::Expired);
    let mut options = TransactionOptions::new();
    options.set_max_write_batch_size(20);
    let small = db.transaction_opt(&WriteOptions::default(), &options);
    let error = small.put("a", [7; 100]).unwrap_err();
    assert!(error.to_string().starts_with("Operation aborted: Memory limit reached: "), "{error}");
}

#[test]
fn a_batch_of_a_transaction_is_done_again_by_another() {
    let directory = tempfile::tempdir().unwrap();
    let db = opened(&directory);
    let users = db.cf_handle("users").unwrap();
    let first = db.transaction();
    first.set_name(b"one").unwrap();
    assert_eq!(first.get_name().unwrap(), b"one");
    assert!(db.transaction().set_name(b"one").is_err());
    first.put("a", "1").unwrap();
    first.set_savepoint();
    first.put("b", "1").unwrap();
    first.rollback_to_savepoint().unwrap();
    assert!(first.rollback_to_savepoint().is_err());
    first.put_cf(&users, "c", "1").unwrap();
    first.delete("d").unwrap();
    let batch = first.get_writebatch();
    assert_eq!(batch.len(), 3);
    drop(first);
    let second = db.transaction();
    second.rebuild_from_writebatch(&batch).unwrap();
    assert!(db.put("d", "2").is_err(), "its keys are locked");
    let keys: Vec<_> = second.iterator(IteratorMode::Start).map(|item| item.unwrap().0).collect();
    assert_eq!(keys, [b"a".to_vec().into_boxed_slice()]);
    second.commit().unwrap();
    assert_eq!(db.get_cf(&users, "c").unwrap().unwrap(), b"1");
}

/// The same calls serve both kinds.
fn counted<DB>(transaction: Transaction<'_, DB>) -> usize {
    transaction.put("a", "1").expect("nobody has it");
    let count = transaction.iterator(IteratorMode::Start).count();
    transaction.commit().expect("nobody wrote it");
    count
}

#[test]
fn an_optimistic_commit_fails_after_a_conflict() {
    let directory = tempfile::tempdir().unwrap();
    let db: OptimisticTransactionDB =
        OptimisticTransactionDB::open_default(directory.path()).unwrap();
    let transaction = db.transaction();
    transaction.get_for_update("a", true).unwrap();
    transaction.put("b", "1").unwrap();
    db.put("a", "2").unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Busy);
    assert!(db.get("b").unwrap().is_none());
    assert_eq!(counted(db.transaction()), 1);
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(counted(opened(&directory).transaction()), 1);
}
