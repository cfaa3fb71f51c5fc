//! Transactions that lock their keys: who waits, who is refused, and what is written.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flagstone::reports::LockMode;
use flagstone::{
    Code, Db, Env, Result, SubCode, Ticker, Transaction, TransactionDb, TransactionDbOptions,
    TransactionOptions, TransactionState, Value, WriteBatch, WriteOptions,
};
use testkit::HandClock;

const SECOND: Duration = Duration::from_secs(1);

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn opened(directory: &tempfile::TempDir) -> TransactionDb {
    TransactionDb::open(directory.path()).expect("the database opens")
}

/// With two families, and time that stands until it is turned.
fn with_clock(
    directory: &tempfile::TempDir,
    options: &TransactionDbOptions,
) -> (TransactionDb, Arc<HandClock>) {
    let clock = Arc::new(HandClock::at(1_000));
    let env = Env { clock: clock.clone(), ..Env::os() };
    let db = Db::builder(directory.path())
        .options(|options| options.env = env)
        .column_family("users", |_| {})
        .open_transaction_db(options)
        .expect("the database opens");
    (db, clock)
}

/// One that does not wait.
fn hasty(db: &TransactionDb) -> Transaction {
    let options = TransactionOptions { lock_timeout: Some(Duration::ZERO), ..Default::default() };
    db.begin_with(&options)
}

fn kind<T: std::fmt::Debug>(outcome: Result<T>) -> (Code, SubCode) {
    let error = outcome.expect_err("it is refused");
    (error.code(), error.subcode())
}

const TIMED_OUT: (Code, SubCode) = (Code::TimedOut, SubCode::LockTimeout);
const CONFLICT: (Code, SubCode) = (Code::Busy, SubCode::None);

fn number(value: Option<Value>) -> u64 {
    value.map_or(0, |value| String::from_utf8_lossy(&value).parse().expect("a number"))
}

/// Returns when transaction `id` waits for a lock.
fn wait_until_waiting(db: &TransactionDb, id: u64) {
    let waits = |db: &TransactionDb| {
        db.transactions().iter().any(|info| info.id == id && info.waits_for.is_some())
    };
    while !waits(db) {
        thread::yield_now();
    }
}

#[test]
fn a_key_that_is_changed_or_read_for_update_is_locked() {
    let directory = temporary();
    let db = opened(&directory);
    db.put("a", "1").unwrap();
    let mut first = db.begin();
    first.put(&db, "a", "2").unwrap();
    first.get_for_update(&db, "b").unwrap();
    let mut second = hasty(&db);
    assert_eq!(kind(second.put(&db, "a", "3")), TIMED_OUT);
    assert_eq!(kind(second.get_for_update(&db, "b")), TIMED_OUT);
    assert_eq!(kind(second.get_shared(&db, "b")), TIMED_OUT);
    assert_eq!(kind(second.delete(&db, "a")), TIMED_OUT);
    assert_eq!(kind(second.put_untracked(&db, "a", "3")), TIMED_OUT);
    let error = second.put(&db, "a", "3").unwrap_err().to_string();
    let words =
        format!("key a of column family 'default' was locked by transaction {}", first.id());
    assert!(error.contains(&words), "{error}");
    // Plain reads are not kept waiting, and see what was committed.
    assert_eq!(second.get(&db, "a").unwrap().unwrap(), "1");
    assert_eq!(first.get(&db, "a").unwrap().unwrap(), "2");
    first.commit().unwrap();
    assert_eq!(second.get_for_update(&db, "a").unwrap().unwrap(), "2");
    second.put(&db, "a", "3").unwrap();
    second.commit().unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "3");
    assert_eq!(db.locked_count(), 0);
}

#[test]
fn one_that_waits_goes_on_when_the_other_ends() {
    let directory = temporary();
    let (db, clock) = with_clock(&directory, &TransactionDbOptions::default());
    let mut first = db.begin();
    first.put(&db, "a", "first").unwrap();
    thread::scope(|scope| {
        let mut second = db.begin();
        let id = second.id();
        let db = &db;
        let waiting = scope.spawn(move || {
            second.put(db, "a", "second")?;
            second.commit()
        });
        wait_until_waiting(db, id);
        first.commit().unwrap();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(db.get("a").unwrap().unwrap(), "second");
    let mut first = db.begin();
    first.put(&db, "a", "third").unwrap();
    thread::scope(|scope| {
        let mut second = db.begin();
        let id = second.id();
        let db = &db;
        let waiting = scope.spawn(move || second.put(db, "a", "fourth"));
        wait_until_waiting(db, id);
        clock.advance(1);
        assert_eq!(kind(waiting.join().unwrap()), TIMED_OUT);
    });
    let statistics = db.statistics();
    assert_eq!(statistics.get(Ticker::LockWaits), 1);
    assert_eq!(statistics.get(Ticker::LockTimeouts), 1);
}

#[test]
fn readers_share_and_one_of_them_becomes_a_writer() {
    let directory = temporary();
    let db = opened(&directory);
    db.put("a", "1").unwrap();
    let (mut first, mut second) = (hasty(&db), hasty(&db));
    assert_eq!(first.get_shared(&db, "a").unwrap().unwrap(), "1");
    assert_eq!(second.get_shared(&db, "a").unwrap().unwrap(), "1");
    let locked = db.locked_keys();
    assert_eq!(
        (locked[0].mode, &locked[0].holders[..]),
        (LockMode::Shared, &[first.id(), second.id()][..])
    );
    assert_eq!(kind(first.put(&db, "a", "2")), TIMED_OUT);
    second.rollback().unwrap();
    first.put(&db, "a", "2").unwrap();
    assert_eq!(kind(second.get_shared(&db, "a")), TIMED_OUT);
    first.commit().unwrap();
    assert_eq!(second.get_shared(&db, "a").unwrap().unwrap(), "2");
}

#[test]
fn two_readers_that_want_to_write_are_a_deadlock() {
    let directory = temporary();
    let (db, _clock) = with_clock(&directory, &TransactionDbOptions::default());
    let users = db.column_family("users").unwrap();
    let options = TransactionOptions { deadlock_detect: true, ..Default::default() };
    // Only the second one looks: if both did, either might find the circle.
    let (mut first, mut second) = (db.begin(), db.begin_with(&options));
    first.get_shared(&users, "ada").unwrap();
    second.get_shared(&users, "ada").unwrap();
    let (id, other) = (first.id(), second.id());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            first.put(&users, "ada", "1")?;
            first.commit()
        });
        wait_until_waiting(&db, id);
        let error = second.put(&users, "ada", "2").unwrap_err();
        assert_eq!((error.code(), error.subcode()), (Code::Busy, SubCode::Deadlock));
        let words = format!(
            "(transaction {other} for key ada of column family 'users' of transaction {id}, \
             transaction {id} for key ada of column family 'users' of transaction {other})"
        );
        assert!(error.to_string().contains(&words), "{error}");
        second.rollback().unwrap();
        waiting.join().unwrap().unwrap();
    });
    let deadlocks = db.deadlocks();
    let steps: Vec<u64> = deadlocks[0].path.iter().map(|step| step.transaction).collect();
    assert_eq!((steps, deadlocks[0].unix_seconds), (vec![other, id], 1_000));
    assert_eq!(deadlocks[0].path[0].family, "users");
    assert_eq!(db.statistics().get(Ticker::LockDeadlocks), 1);
    assert_eq!(users.get("ada").unwrap().unwrap(), "1");
}

#[test]
fn a_key_written_after_the_snapshot_is_refused_when_it_is_locked() {
    let directory = temporary();
    let db = opened(&directory);
    for key in ["a", "b", "c", "d"] {
        db.put(key, "1").unwrap();
    }
    let mut transaction = db.begin();
    transaction.set_snapshot();
    db.put("a", "2").unwrap();
    db.delete("b").unwrap();
    db.flush().unwrap();
    db.put("c", "2").unwrap();
    for key in ["a", "b", "c"] {
        assert_eq!(kind(transaction.get_for_update(&db, key)), CONFLICT);
        assert_eq!(kind(transaction.put(&db, key, "3")), CONFLICT);
    }
    assert_eq!(db.locked_count(), 0, "what was refused is not locked");
    assert_eq!(db.statistics().get(Ticker::TransactionConflicts), 6);
    // Of itself it does not care who wrote before.
    transaction.put_untracked(&db, "c", "3").unwrap();
    transaction.put(&db, "d", "3").unwrap();
    assert_eq!(transaction.get(&db, "a").unwrap().unwrap(), "1", "it reads as of its snapshot");
    transaction.clear_snapshot();
    transaction.put(&db, "a", "3").unwrap();
    transaction.commit().unwrap();
    for key in ["a", "c", "d"] {
        assert_eq!(db.get(key).unwrap().unwrap(), "3");
    }
    // A later snapshot needs no second look at a key; an earlier one does.
    let mut transaction = db.begin();
    let reads = db.statistics().get(Ticker::TransactionConflicts);
    transaction.put(&db, "a", "4").unwrap();
    transaction.set_snapshot();
    transaction.put(&db, "a", "5").unwrap();
    assert_eq!(db.statistics().get(Ticker::TransactionConflicts), reads);
}

/// A compaction gives old entries the sequence number 0 and drops deletions.
#[test]
fn a_compaction_hides_no_conflict_from_a_snapshot() {
    let directory = temporary();
    let db = opened(&directory);
    for key in ["a", "b"] {
        db.put(key, "1").unwrap();
    }
    let mut transaction = db.begin();
    transaction.set_snapshot();
    db.put("a", "2").unwrap();
    db.delete("b").unwrap();
    db.flush().unwrap();
    db.compact().unwrap();
    assert_eq!(kind(transaction.put(&db, "a", "3")), CONFLICT);
    assert_eq!(kind(transaction.get_shared(&db, "b")), CONFLICT);
}

#[test]
fn a_snapshot_of_the_next_operation_is_taken_behind_the_wait() {
    let directory = temporary();
    let db = opened(&directory);
    let mut first = db.begin();
    first.put(&db, "a", "first").unwrap();
    let mut second = db.begin();
    second.set_snapshot_on_next_operation();
    let id = second.id();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| second.get_for_update(&db, "a"));
        wait_until_waiting(&db, id);
        first.commit().unwrap();
        assert_eq!(waiting.join().unwrap().unwrap().unwrap(), "first");
    });
    db.put("b", "later").unwrap();
    assert!(second.get(&db, "b").unwrap().is_none(), "it has a snapshot now");
    assert_eq!(kind(second.put(&db, "b", "2")), CONFLICT);
}

#[test]
fn save_points_release_the_locks_taken_since() {
    let directory = temporary();
    let db = opened(&directory);
    let mut transaction = db.begin();
    transaction.put(&db, "a", "1").unwrap();
    transaction.get_for_update(&db, "b").unwrap();
    transaction.set_save_point();
    transaction.put(&db, "b", "1").unwrap();
    transaction.put(&db, "c", "1").unwrap();
    transaction.set_save_point();
    transaction.put(&db, "d", "1").unwrap();
    transaction.pop_save_point().unwrap();
    assert_eq!(db.locked_count(), 4);
    transaction.rollback_to_save_point().unwrap();
    let mut other = hasty(&db);
    other.put(&db, "c", "2").unwrap();
    other.put(&db, "d", "2").unwrap();
    assert_eq!(kind(other.put(&db, "b", "2")), TIMED_OUT, "it was locked before");
    other.commit().unwrap();
    transaction.commit().unwrap();
    assert!(db.get("b").unwrap().is_none());
    assert_eq!(kind(transaction.rollback_to_save_point()), (Code::InvalidArgument, SubCode::None));
}

#[test]
fn a_read_for_update_is_taken_back_as_often_as_it_was_made() {
    let directory = temporary();
    let db = opened(&directory);
    let mut transaction = db.begin();
    transaction.get_for_update(&db, "a").unwrap();
    transaction.get_for_update(&db, "a").unwrap();
    transaction.undo_get_for_update(&db, "a").unwrap();
    assert_eq!(transaction.claimed(), 1);
    transaction.set_save_point();
    transaction.undo_get_for_update(&db, "a").unwrap();
    assert_eq!(transaction.claimed(), 1, "it was read before the save point");
    transaction.pop_save_point().unwrap();
    transaction.undo_get_for_update(&db, "a").unwrap();
    assert_eq!((transaction.claimed(), db.locked_count()), (0, 0));
    transaction.put(&db, "a", "1").unwrap();
    transaction.get_for_update(&db, "a").unwrap();
    transaction.undo_get_for_update(&db, "a").unwrap();
    transaction.undo_get_for_update(&db, "a").unwrap();
    assert_eq!(db.locked_count(), 1, "it is changed, not only read");
}

#[test]
fn plain_writes_wait_for_locks_and_take_them() {
    let directory = temporary();
    let options =
        TransactionDbOptions { default_lock_timeout: Duration::ZERO, ..Default::default() };
    let (db, _clock) = with_clock(&directory, &options);
    let users = db.column_family("users").unwrap();
    let mut transaction = db.begin();
    transaction.put(&users, "ada", "1").unwrap();
    assert_eq!(kind(users.put("ada", "2")), TIMED_OUT);
    assert_eq!(kind(users.put_with("ada", "2", &WriteOptions::synced())), TIMED_OUT);
    assert_eq!(kind(users.delete("ada")), TIMED_OUT);
    assert_eq!(kind(users.single_delete("ada")), TIMED_OUT);
    assert_eq!(kind(users.put_in_pieces("ada", &WriteOptions::new())), TIMED_OUT);
    let mut batch = WriteBatch::new();
    batch.put("ada", "of default").unwrap();
    batch.put_cf(&users, "ada", "2").unwrap();
    assert_eq!(kind(db.write(batch.clone())), TIMED_OUT);
    assert!(db.get("ada").unwrap().is_none(), "all of it or nothing");
    let before = db.snapshot();
    assert_eq!(kind(db.write_if_unchanged(batch.clone(), &before, &[(&users, "alan")])), TIMED_OUT);
    // Other keys, and the same key of another family, are free.
    users.put("alan", "2").unwrap();
    db.put("ada", "2").unwrap();
    // A range cannot be locked.
    let refused = (Code::NotSupported, SubCode::None);
    assert_eq!(kind(users.delete_range("a".."b")), refused);
    let mut range = WriteBatch::new();
    range.delete_range_cf(&users, "alan", "alao").unwrap();
    assert_eq!(kind(db.write(range.clone())), refused);
    db.write_without_locks(range, &WriteOptions::new()).unwrap();
    assert!(users.get("alan").unwrap().is_none());
    transaction.commit().unwrap();
    db.write(batch).unwrap();
    assert_eq!(users.get("ada").unwrap().unwrap(), "2");
    // A value in pieces holds its key from the beginning.
    let mut writer = users.put_in_pieces("film", &WriteOptions::new()).unwrap();
    writer.append(&[7; 100]).unwrap();
    assert_eq!(kind(hasty(&db).put(&users, "film", "3")), TIMED_OUT);
    writer.commit().unwrap();
    hasty(&db).get_for_update(&users, "film").unwrap().expect("it is written");
    assert_eq!(db.locked_count(), 0);
}

#[test]
fn an_expired_transaction_is_never_written() {
    let directory = temporary();
    let (db, clock) = with_clock(&directory, &TransactionDbOptions::default());
    let brief = TransactionOptions { expiration: Some(SECOND), ..Default::default() };
    let mut robbed = db.begin_with(&brief);
    robbed.put(&db, "a", "robbed").unwrap();
    let mut late = db.begin_with(&brief);
    late.put(&db, "b", "late").unwrap();
    let mut other = hasty(&db);
    assert_eq!(kind(other.put(&db, "a", "other")), TIMED_OUT);
    clock.advance(1);
    assert_eq!(robbed.state(), TransactionState::Expired);
    assert!(db.transactions().iter().all(|info| info.has_expired));
    other.put(&db, "a", "other").unwrap();
    assert_eq!(db.statistics().get(Ticker::LocksTakenOver), 1);
    let expired = (Code::Expired, SubCode::None);
    assert_eq!(kind(robbed.commit()), expired);
    assert_eq!(kind(robbed.put(&db, "c", "1")), expired);
    assert_eq!(kind(robbed.get(&db, "a")), expired);
    assert_eq!(kind(late.commit()), expired, "though nobody wanted its locks");
    robbed.rollback().unwrap();
    assert_eq!(kind(robbed.commit()), expired);
    other.commit().unwrap();
    drop(late);
    assert_eq!(db.get("a").unwrap().unwrap(), "other");
    assert!(db.get("b").unwrap().is_none());
    assert_eq!(db.locked_count(), 0);
}

#[test]
fn a_limit_of_locks_is_per_family() {
    let directory = temporary();
    let options = TransactionDbOptions { max_num_locks: 2, ..Default::default() };
    let (db, _clock) = with_clock(&directory, &options);
    let users = db.column_family("users").unwrap();
    let mut transaction = db.begin();
    transaction.put(&db, "a", "1").unwrap();
    transaction.put(&db, "b", "1").unwrap();
    assert_eq!(kind(transaction.put(&db, "c", "1")), (Code::Busy, SubCode::LockLimit));
    assert_eq!(kind(db.put("c", "1")), (Code::Busy, SubCode::LockLimit));
    transaction.put(&db, "a", "2").unwrap();
    transaction.put(&users, "c", "1").unwrap();
    assert_eq!(transaction.count(), 4);
    transaction.commit().unwrap();
    db.put("c", "1").unwrap();
    assert_eq!(db.statistics().get(Ticker::LockLimits), 2);
}

#[test]
fn a_batch_has_a_largest_size() {
    let directory = temporary();
    let db = opened(&directory);
    let options =
        TransactionOptions { max_write_batch_size: 12 + 2 * (3 + 11), ..Default::default() };
    let mut transaction = db.begin_with(&options);
    transaction.put(&db, "a", "0123456789").unwrap();
    assert_eq!(
        kind(transaction.put(&db, "b", "01234567890")),
        (Code::Aborted, SubCode::MemoryLimit)
    );
    assert_eq!(db.locked_count(), 1, "nothing was done");
    transaction.put(&db, "b", "0123456789").unwrap();
    transaction.commit().unwrap();
}

#[test]
fn names_are_of_one_transaction_each() {
    let directory = temporary();
    let db = opened(&directory);
    let refused = (Code::InvalidArgument, SubCode::None);
    let (mut first, mut second) = (db.begin(), db.begin());
    assert_ne!(first.id(), second.id());
    let name = [0xff, 0, b'x'];
    first.set_name(name).unwrap();
    assert_eq!(kind(second.set_name(name)), refused);
    assert_eq!(kind(first.set_name("another")), refused);
    assert_eq!(kind(second.set_name("")), refused);
    assert_eq!(kind(second.set_name([7; 513])), refused);
    second.set_name([7; 512]).unwrap();
    assert_eq!(first.name().unwrap(), name);
    first.put(&db, "a", "1").unwrap();
    let listed = db.transactions();
    assert_eq!(listed.len(), 2);
    assert_eq!((listed[0].id, listed[0].locks), (first.id(), 1));
    assert_eq!((listed[1].id, listed[1].name.as_deref()), (second.id(), Some(&[7; 512][..])));
    first.commit().unwrap();
    drop(second);
    assert!(db.transactions().is_empty());
    let mut third = db.begin();
    third.set_name(name).unwrap();
    let plain_directory = temporary();
    let plain = Db::open(plain_directory.path()).unwrap();
    let mut nameless = plain.begin();
    assert_eq!(kind(nameless.set_name("x")), (Code::NotSupported, SubCode::None));
}

#[test]
fn what_has_ended_does_nothing_more() {
    let directory = temporary();
    let db = opened(&directory);
    let refused = (Code::InvalidArgument, SubCode::None);
    let mut transaction = db.begin();
    transaction.put(&db, "a", "1").unwrap();
    transaction.commit().unwrap();
    assert_eq!(transaction.state(), TransactionState::Committed);
    assert_eq!(kind(transaction.commit()), refused);
    assert_eq!(kind(transaction.rollback()), refused);
    assert_eq!(kind(transaction.put(&db, "a", "2")), refused);
    assert_eq!(kind(transaction.get_for_update(&db, "a")), refused);
    assert_eq!(kind(transaction.family(&db)), refused);
    // After a rollback it begins anew.
    let mut transaction = db.begin();
    transaction.put(&db, "a", "2").unwrap();
    transaction.rollback().unwrap();
    assert_eq!(db.locked_count(), 0);
    transaction.put(&db, "b", "2").unwrap();
    transaction.commit().unwrap();
    assert_eq!((number(db.get("a").unwrap()), number(db.get("b").unwrap())), (1, 2));
    // Neither a drop nor a close lets anything in.
    let mut dropped = db.begin();
    dropped.put(&db, "a", "3").unwrap();
    drop(dropped);
    assert_eq!(db.locked_count(), 0);
    let mut closed = db.begin();
    closed.put(&db, "a", "3").unwrap();
    db.close().unwrap();
    assert_eq!(kind(closed.commit()), (Code::ShutdownInProgress, SubCode::None));
    assert_eq!(closed.state(), TransactionState::Started, "it may still be rolled back");
    closed.rollback().unwrap();
    drop((db, transaction, closed));
    assert_eq!(number(opened(&directory).get("a").unwrap()), 1);
}

#[test]
fn families_keep_their_locks_apart_and_one_may_be_dropped() {
    let directory = temporary();
    let (db, _clock) = with_clock(&directory, &TransactionDbOptions::default());
    let users = db.column_family("users").unwrap();
    let mut transaction = db.begin();
    transaction.put(&users, "a", vec![7; 100_000]).unwrap();
    hasty(&db).put(&db, "a", "1").unwrap();
    let many = transaction.get_many_for_update(&users, &["a", "b"]).unwrap();
    assert_eq!((many[0].as_ref().unwrap().len(), many[1].is_none()), (100_000, true));
    assert_eq!(kind(hasty(&db).get_for_update(&users, "b")), TIMED_OUT);
    let keys: Vec<_> = db.locked_keys().into_iter().map(|lock| (lock.family, lock.key)).collect();
    assert_eq!(keys, [("users".into(), b"a".to_vec()), ("users".into(), b"b".to_vec())]);
    db.drop_column_family(&users).unwrap();
    let dropped = (Code::ColumnFamilyDropped, SubCode::None);
    assert_eq!(kind(transaction.commit()), dropped);
    transaction.rollback().unwrap();
    assert_eq!(kind(transaction.put(&users, "a", "1")), dropped);
    assert_eq!(kind(users.put("a", "1")), dropped);
    assert_eq!(db.locked_count(), 0);
}

#[test]
fn nothing_is_locked_if_that_is_skipped() {
    let directory = temporary();
    let db = opened(&directory);
    let mut first = db.begin();
    first.put(&db, "a", "1").unwrap();
    let skips = TransactionOptions { skip_concurrency_control: true, ..Default::default() };
    let mut second = db.begin_with(&skips);
    second.put(&db, "a", "2").unwrap();
    second.commit().unwrap();
    drop((first, second, db));
    let options = TransactionDbOptions { skip_concurrency_control: true, ..Default::default() };
    let db = Db::builder(directory.path()).open_transaction_db(&options).unwrap();
    let (mut first, mut second) = (db.begin(), db.begin());
    first.put(&db, "a", "3").unwrap();
    second.put(&db, "a", "4").unwrap();
    db.delete_range("a".."b").unwrap();
    assert_eq!(db.locked_count(), 0);
    second.commit().unwrap();
    first.commit().unwrap();
    assert_eq!(number(db.get("a").unwrap()), 3);
}

/// Opened as any program does that has no use for locks at first.
#[test]
fn an_open_database_gets_locks() {
    let directory = temporary();
    let plain = Db::open(directory.path()).unwrap();
    let error = TransactionDb::over(&plain, &TransactionDbOptions::default()).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    plain.close().unwrap();
    drop(plain);

    let with_two_phases = |options: &mut flagstone::Options| options.allow_2pc = true;
    let plain = Db::builder(directory.path()).options(with_two_phases).open().unwrap();
    let wrap = || TransactionDb::over(&plain, &TransactionDbOptions::default());
    let db = wrap().unwrap();
    let mut first = db.begin();
    first.put(&db, "a", "1").unwrap();
    assert_eq!(kind(hasty(&db).put(&db, "a", "2")), TIMED_OUT);
    first.set_name("kept").unwrap();
    first.prepare().unwrap();
    // Two sets of locks would not know of each other.
    assert_eq!(kind(wrap()), CONFLICT);
    drop(first);
    drop(db);

    // What is prepared is locked anew.
    let db = wrap().unwrap();
    assert_eq!(kind(hasty(&db).put(&db, "a", "2")), TIMED_OUT);
    let mut kept = db.prepared_transaction("kept").unwrap().unwrap();
    kept.commit().unwrap();
    assert_eq!(plain.get("a").unwrap().unwrap(), "1");
    assert_eq!(db.locked_count(), 0);
}

/// Each handle of one engine made locks of its own, which knew nothing of each other.
#[test]
fn two_handles_of_one_engine_have_one_set_of_locks() {
    let directory = temporary();
    let plain = Db::builder(directory.path()).options(|options| options.allow_2pc = true);
    let plain = plain.open().unwrap();
    let options = TransactionDbOptions::default();
    let handle = || Db::around(plain.engine()).unwrap();
    let db = TransactionDb::over(&handle(), &options).unwrap();
    assert_eq!(kind(TransactionDb::over(&handle(), &options)), CONFLICT);
    assert_eq!(kind(TransactionDb::around(plain.engine(), &options)), CONFLICT);
    drop(db);
    TransactionDb::over(&handle(), &options).unwrap();
}

/// The wrapping went well, and each write failed.
#[test]
fn a_database_open_for_reading_gets_no_locks() {
    let directory = temporary();
    let with_two_phases = |options: &mut flagstone::Options| options.allow_2pc = true;
    drop(Db::builder(directory.path()).options(with_two_phases).open().unwrap());
    let db = Db::builder(directory.path()).options(with_two_phases).open_read_only().unwrap();
    let refused = TransactionDb::over(&db, &TransactionDbOptions::default());
    assert_eq!(kind(refused), (Code::NotSupported, SubCode::None));
}
