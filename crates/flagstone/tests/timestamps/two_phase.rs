//! Transactions that are prepared, and committed as of a timestamp later.

use std::path::{Path, PathBuf};

use flagstone::base::ColumnFamilyId;
use flagstone::base::timestamp::from_u64;
use flagstone::batch::{WriteBatch, commit_stamps};
use flagstone::db::TwoPhase;
use flagstone::options::WriteOptions;
use flagstone::{Code, Comparator, Db, ReadOptions, TransactionDb, TransactionDbOptions};

fn open(path: &Path) -> TransactionDb {
    open_with(path, |_| {})
}

fn open_with(path: &Path, more: impl FnOnce(&mut flagstone::ColumnFamilyOptions)) -> TransactionDb {
    let builder = Db::builder(path).column_family("stamped", |family| {
        family.comparator = Comparator::BytewiseU64Ts;
        family.set("merge_operator", "stringappend").unwrap();
        more(family);
    });
    builder.open_transaction_db(&TransactionDbOptions::default()).unwrap()
}

/// The entries of the history of the stamped family: keys, timestamps and values.
fn history(db: &Db) -> Vec<String> {
    let stamped = db.column_family("stamped").unwrap();
    let options = ReadOptions {
        timestamp: Some(from_u64(u64::MAX).into()),
        iter_start_ts: Some(from_u64(0).into()),
        ..ReadOptions::default()
    };
    let mut cursor = stamped.cursor(&options).unwrap();
    let mut shown = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        let stamp = u64::from_le_bytes(cursor.timestamp().try_into().unwrap());
        let value = if cursor.is_deletion() {
            b"deleted".to_vec()
        } else {
            cursor.value().unwrap().to_vec()
        };
        let (key, value) = (cursor.key().escape_ascii(), value.escape_ascii());
        shown.push(format!("{key}@{stamp}={value}"));
        cursor.next();
    }
    cursor.status().unwrap();
    shown
}

/// The directory as a process leaves it that is killed.
fn killed(path: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_files(path, copy.path());
    copy
}

fn copy_files(from: &Path, to: &Path) {
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// Such a transaction could not be prepared.
#[test]
fn a_prepared_transaction_is_committed_as_of_a_timestamp_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let stamped = db.column_family("stamped").unwrap();
    stamped.put_with_timestamp("a", from_u64(10), "old").unwrap();
    let mut transaction = db.begin();
    transaction.set_name("first").unwrap();
    transaction.put(&stamped, "a", "new").unwrap();
    transaction.delete(&stamped, "b").unwrap();
    transaction.merge(&stamped, "c", "operand").unwrap();
    transaction.put(&db, "plain", "value").unwrap();
    transaction.prepare().unwrap();
    assert_eq!(history(&db), ["a@10=old"]);

    let crashed = killed(directory.path());
    let db = open(crashed.path());
    let stamped = db.column_family("stamped").unwrap();
    assert_eq!(history(&db), ["a@10=old"]);
    let mut prepared = db.prepared_transactions().unwrap();
    let transaction = &mut prepared[0];
    assert_eq!(transaction.name().unwrap(), b"first");
    transaction.set_read_timestamp(from_u64(20));
    assert_eq!(transaction.get(&stamped, "a").unwrap().unwrap(), "new");
    // The key is locked, whatever its timestamp.
    let locked = stamped.put_with_timestamp("b", from_u64(20), "locked out").unwrap_err();
    assert_eq!(locked.code(), Code::TimedOut, "{locked}");
    let refused = transaction.commit().unwrap_err();
    assert!(refused.message().contains("set_commit_timestamp"), "{refused}");
    transaction.set_commit_timestamp(b"four");
    let refused = transaction.commit().unwrap_err();
    assert!(refused.message().contains("have 8"), "{refused}");
    transaction.set_commit_timestamp(from_u64(30));
    transaction.commit_time_batch().put_with_timestamp(&stamped, "d", from_u64(29), "d").unwrap();
    transaction.commit().unwrap();
    let expected = ["a@30=new", "a@10=old", "b@30=deleted", "c@30=operand", "d@29=d"];
    assert_eq!(history(&db), expected);
    assert_eq!(db.get("plain").unwrap().unwrap(), "value");

    // The next replay finds the section and its commit.
    let crashed = killed(crashed.path());
    let db = open(crashed.path());
    assert_eq!(history(&db), expected);
    assert!(db.prepared_transactions().unwrap().is_empty());
    db.column_family("stamped").unwrap().compact().unwrap();
    assert_eq!(history(&db), expected);
}

#[test]
fn what_is_rolled_back_is_written_as_of_no_timestamp() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let stamped = db.column_family("stamped").unwrap();
    let mut transaction = db.begin();
    transaction.set_name("first").unwrap();
    transaction.put(&stamped, "a", "never").unwrap();
    transaction.set_commit_timestamp(from_u64(30));
    transaction.prepare().unwrap();
    transaction.rollback().unwrap();
    stamped.put_with_timestamp("a", from_u64(5), "free").unwrap();
    let crashed = killed(directory.path());
    assert_eq!(history(&open(crashed.path())), ["a@5=free"]);
}

#[test]
fn replicas_get_what_was_prepared_with_the_timestamp_of_its_commit() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory.path().join("primary"));
    let replica = open(&directory.path().join("replica"));
    let stamped = db.column_family("stamped").unwrap();
    let mut operations = WriteBatch::new();
    operations.put_with_timestamp(&stamped, "a", from_u64(0), "1").unwrap();
    operations.delete_range_with_timestamp(&stamped, "b", "c", from_u64(0)).unwrap();
    let options = WriteOptions::default();
    let two_phase = TwoPhase::of(db.engine());
    two_phase.prepare(&options, "first", operations).unwrap();
    let refused = two_phase.commit(&options, "first", &WriteBatch::new()).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    let stamp = from_u64(7);
    two_phase.commit_as_of(&options, "first", &WriteBatch::new(), Some(&stamp)).unwrap();
    let mut updates = db.updates_since(1).unwrap();
    while let Some(update) = updates.next_update().unwrap() {
        replica.write_without_locks(update.batch, &options).unwrap();
    }
    assert_eq!(history(&replica), ["a@7=1"]);
    assert_eq!(history(&replica), history(&db));
    assert_eq!(replica.latest_sequence_number(), db.latest_sequence_number());
}

/// The section is in a WAL that is kept for it alone, whose keys have no timestamps.
#[test]
fn what_was_prepared_before_a_family_had_timestamps_is_committed_with_the_least() {
    let directory = tempfile::tempdir().unwrap();
    let open = |comparator: Comparator| {
        let builder = Db::builder(directory.path()).column_family("f", move |family| {
            family.comparator = comparator;
            family.settings.persist_user_defined_timestamps = false;
        });
        builder.open_transaction_db(&TransactionDbOptions::default()).unwrap()
    };
    let db = open(Comparator::Bytewise);
    let family = db.column_family("f").unwrap();
    let mut transaction = db.begin();
    transaction.set_name("first").unwrap();
    transaction.put(&family, "a longer key", "value").unwrap();
    transaction.prepare().unwrap();
    drop(transaction);
    family.put("b", "flushed").unwrap();
    family.flush().unwrap();
    drop((family, db));
    let db = open(Comparator::BytewiseU64Ts);
    let family = db.column_family("f").unwrap();
    let mut prepared = db.prepared_transactions().unwrap();
    prepared[0].set_commit_timestamp(from_u64(40));
    prepared[0].commit().unwrap();
    let view = family.as_of(from_u64(40));
    assert_eq!(view.get("a longer key").unwrap().unwrap(), "value");
    assert_eq!(view.get("b").unwrap().unwrap(), "flushed");
    assert!(family.as_of(from_u64(39)).get("a longer key").unwrap().is_none());
}

/// RocksDB 11.8.1 prepared `txn-0` to `txn-2`, each with a put and a deletion in the family
/// `stamped` and a put in `default`, committed the first as of 100, rolled the second back, and was
/// killed.
#[test]
fn transactions_that_rocksdb_left_prepared_are_committed_as_of_a_timestamp() {
    let fixture =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/timestamps/two-phase");
    let directory = tempfile::tempdir().unwrap();
    copy_files(&fixture, directory.path());
    let db = open(directory.path());
    assert_eq!(history(&db), ["gone@100=deleted", "key0@100=stamped"]);
    assert_eq!(db.get("key0").unwrap().unwrap(), "plain");
    assert_eq!(db.get("key1").unwrap(), None);
    let mut prepared = db.prepared_transactions().unwrap();
    assert_eq!(prepared.len(), 1);
    assert_eq!(prepared[0].name().unwrap(), b"txn-2");
    prepared[0].set_commit_timestamp(from_u64(200));
    prepared[0].commit().unwrap();
    let expected = ["gone@200=deleted", "gone@100=deleted", "key0@100=stamped", "key2@200=stamped"];
    assert_eq!(history(&db), expected);
    assert_eq!(db.get("key2").unwrap().unwrap(), "plain");
}

/// A log may say anything.
#[test]
fn the_timestamp_of_a_commit_must_fit_the_keys() {
    let (stamped, plain) = (ColumnFamilyId(1), ColumnFamilyId(2));
    let size_of = |id| if id == stamped { 8 } else { 0 };
    let mut batch = WriteBatch::new();
    batch.put_with_timestamp(stamped, "key", from_u64(0), "value").unwrap();
    batch.delete_range_with_timestamp(stamped, "a", "b", from_u64(0)).unwrap();
    batch.put_cf(plain, "plain", "value").unwrap();
    batch.set_sequence(7);
    let mut expected = WriteBatch::new();
    expected.put_with_timestamp(stamped, "key", from_u64(9), "value").unwrap();
    expected.delete_range_with_timestamp(stamped, "a", "b", from_u64(9)).unwrap();
    expected.put_cf(plain, "plain", "value").unwrap();
    expected.set_sequence(7);
    let committed = commit_stamps(batch.as_view(), &from_u64(9), size_of).unwrap().unwrap();
    assert_eq!(committed, expected.into_bytes());
    assert_eq!(commit_stamps(batch.as_view(), &from_u64(9), |_| 0).unwrap(), None);
    let refused = commit_stamps(batch.as_view(), b"four", size_of).unwrap_err();
    assert_eq!(refused.code(), Code::Corruption, "{refused}");
    let mut short = WriteBatch::new();
    short.put_cf(stamped, "short", "value").unwrap();
    let refused = commit_stamps(short.as_view(), &from_u64(9), size_of).unwrap_err();
    assert_eq!(refused.code(), Code::Corruption, "{refused}");
}
