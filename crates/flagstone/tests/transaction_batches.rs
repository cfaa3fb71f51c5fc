//! Transactions and the batches that they write: made from one, shown as one, without an index.

use std::sync::Arc;
use std::time::Duration;

use flagstone::base::merge::StringAppendOperator;
use flagstone::{
    Code, Db, Operation, Result, SubCode, Transaction, TransactionDb, TransactionOptions,
    WriteBatch,
};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Its default family appends what is merged, with commas.
fn appending(directory: &tempfile::TempDir) -> TransactionDb {
    Db::builder(directory.path())
        .options(|options| {
            options.cf.merge_operator = Some(Arc::new(StringAppendOperator::new(",")))
        })
        .column_family("users", |_| {})
        .open_transaction_db(&Default::default())
        .expect("the database opens")
}

fn waits_not(db: &TransactionDb) -> Transaction {
    let options = TransactionOptions { lock_timeout: Some(Duration::ZERO), ..Default::default() };
    db.begin_with(&options)
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T>) -> (Code, SubCode) {
    let error = outcome.expect_err("it is refused");
    (error.code(), error.subcode())
}

#[test]
fn a_batch_becomes_changes_that_are_locked() {
    let directory = temporary();
    let db = appending(&directory);
    let users = db.column_family("users").unwrap();
    db.put("gone", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("a", "1").unwrap();
    batch.merge("a", "2").unwrap();
    batch.delete("gone").unwrap();
    batch.put_log_data("for the log").unwrap();
    batch.put_cf(&users, "ada", "1815").unwrap();
    batch.put_entity("wide", [("", "x"), ("more", "y")]).unwrap();

    let mut transaction = db.begin();
    transaction.put(&db, "before", "0").unwrap();
    transaction.rebuild_from(&batch).unwrap();
    assert_eq!(transaction.get(&db, "a").unwrap().unwrap(), "1,2");
    assert_eq!(transaction.count(), 6);
    let mut other = waits_not(&db);
    assert_eq!(refusal(other.put(&db, "a", "3")), (Code::TimedOut, SubCode::LockTimeout));
    assert_eq!(refusal(other.put(&users, "ada", "3")), (Code::TimedOut, SubCode::LockTimeout));
    transaction.commit().unwrap();

    assert_eq!(db.get("before").unwrap().unwrap(), "0");
    assert_eq!(db.get("a").unwrap().unwrap(), "1,2");
    assert!(db.get("gone").unwrap().is_none());
    assert_eq!(users.get("ada").unwrap().unwrap(), "1815");
    assert_eq!(db.get_entity("wide").unwrap().unwrap().get("more"), Some(&b"y"[..]));
}

#[test]
fn what_a_transaction_cannot_do_is_refused_where_it_stands() {
    let directory = temporary();
    let db = appending(&directory);
    let users = db.column_family("users").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("a", "1").unwrap();
    batch.delete_range("b", "c").unwrap();
    batch.put("d", "1").unwrap();
    let mut transaction = db.begin();
    assert_eq!(refusal(transaction.rebuild_from(&batch)).0, Code::NotSupported);
    assert_eq!(transaction.count(), 1, "what is before it is done");

    let mut batch = WriteBatch::new();
    batch.put_cf(&users, "ada", "1815").unwrap();
    db.drop_column_family(&users).unwrap();
    assert_eq!(refusal(transaction.rebuild_from(&batch)).0, Code::InvalidArgument);
}

#[test]
fn the_batch_shows_the_changes_so_far() {
    let directory = temporary();
    let db = appending(&directory);
    let mut transaction = db.begin();
    transaction.put(&db, "a", "1").unwrap();
    transaction.set_save_point();
    transaction.delete(&db, "b").unwrap();
    let keys = |transaction: &Transaction| -> Vec<Vec<u8>> {
        let key = |operation: Result<Operation<'_>>| match operation.unwrap() {
            Operation::Put { key, .. } | Operation::Delete { key, .. } => key.to_vec(),
            other => panic!("it has {other:?}"),
        };
        transaction.batch().iter().map(key).collect()
    };
    assert_eq!(keys(&transaction), [b"a", b"b"]);
    transaction.rollback_to_save_point().unwrap();
    assert_eq!(keys(&transaction), [b"a"]);
}

#[test]
fn without_an_index_changes_are_written_and_not_seen_before() {
    let directory = temporary();
    let db = appending(&directory);
    let mut transaction = db.begin();
    transaction.put(&db, "seen", "1").unwrap();
    transaction.disable_indexing();
    transaction.put(&db, "unseen", "2").unwrap();
    transaction.set_save_point();
    transaction.put(&db, "taken back", "3").unwrap();
    transaction.rollback_to_save_point().unwrap();
    transaction.enable_indexing();
    transaction.put(&db, "seen, too", "4").unwrap();

    assert!(transaction.get(&db, "unseen").unwrap().is_none());
    assert_eq!(transaction.get(&db, "seen").unwrap().unwrap(), "1");
    assert_eq!(transaction.get(&db, "seen, too").unwrap().unwrap(), "4");
    let mut other = waits_not(&db);
    assert_eq!(refusal(other.put(&db, "unseen", "0")), (Code::TimedOut, SubCode::LockTimeout));
    transaction.commit().unwrap();
    assert_eq!(db.get("unseen").unwrap().unwrap(), "2");
    assert!(db.get("taken back").unwrap().is_none());
}

#[test]
fn operands_collapse_to_what_they_come_to() {
    let directory = temporary();
    let db = appending(&directory);
    for operand in ["1", "2", "3"] {
        db.merge("list", operand).unwrap();
    }
    db.put_entity("wide", [("", "x"), ("more", "y")]).unwrap();
    let mut transaction = db.begin();
    assert!(transaction.collapse_key(&db, "list").unwrap());
    assert!(transaction.collapse_key(&db, "wide").unwrap());
    assert!(!transaction.collapse_key(&db, "nothing").unwrap());
    assert_eq!(refusal(waits_not(&db).merge(&db, "list", "4")).0, Code::TimedOut);
    transaction.commit().unwrap();

    assert_eq!(db.get("list").unwrap().unwrap(), "1,2,3");
    let operands = db.get_merge_operands("list", 10).unwrap();
    assert_eq!(operands.len(), 1, "nothing is left to merge");
    let wide = db.get_entity("wide").unwrap().unwrap();
    assert_eq!((wide.get(""), wide.get("more")), (Some(&b"x"[..]), Some(&b"y"[..])));
    assert!(db.get("nothing").unwrap().is_none());
}

#[test]
fn the_time_to_wait_may_change_in_between() {
    let directory = temporary();
    let db = appending(&directory);
    let mut holder = db.begin();
    holder.put(&db, "a", "1").unwrap();
    let patient = TransactionOptions { lock_timeout: Some(Duration::MAX), ..Default::default() };
    let mut other = db.begin_with(&patient);
    other.set_lock_timeout(Duration::ZERO);
    assert_eq!(refusal(other.put(&db, "a", "2")), (Code::TimedOut, SubCode::LockTimeout));
}

#[test]
fn a_prepared_transaction_is_asked_for_by_its_name() {
    let directory = temporary();
    let db = appending(&directory);
    for name in ["one", "two"] {
        let mut transaction = db.begin();
        transaction.set_name(name).unwrap();
        transaction.put(&db, name, "prepared").unwrap();
        transaction.prepare().unwrap();
    }
    assert!(db.prepared_transaction("three").unwrap().is_none());
    let mut one = db.prepared_transaction("one").unwrap().expect("it is prepared");
    assert!(db.prepared_transaction("one").unwrap().is_none(), "a handle is handed out once");
    assert_eq!(one.get(&db, "one").unwrap().unwrap(), "prepared");
    one.commit().unwrap();
    assert_eq!(db.get("one").unwrap().unwrap(), "prepared");
    let rest = db.prepared_transactions().unwrap();
    assert_eq!(rest.iter().map(Transaction::name).collect::<Vec<_>>(), [Some(b"two".to_vec())]);
}
