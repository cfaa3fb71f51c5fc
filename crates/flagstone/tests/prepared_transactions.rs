//! Transactions that are prepared through the front door: their locks, names and ends.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flagstone::{
    Code, Db, Env, Error, SubCode, Ticker, TransactionDb, TransactionDbOptions, TransactionOptions,
    TransactionState, WriteOptions,
};
use testkit::HandClock;

/// Nothing waits for a lock.
fn locks() -> TransactionDbOptions {
    TransactionDbOptions {
        default_lock_timeout: Duration::ZERO,
        transaction_lock_timeout: Duration::ZERO,
        ..TransactionDbOptions::default()
    }
}

fn open(path: &std::path::Path) -> TransactionDb {
    Db::builder(path).open_transaction_db(&locks()).unwrap()
}

fn prepared(db: &TransactionDb, name: &str, key: &str) -> flagstone::Transaction {
    let mut transaction = db.begin();
    transaction.set_name(name).unwrap();
    transaction.put(db, key, name).unwrap();
    transaction.prepare().unwrap();
    transaction
}

#[test]
fn a_prepared_transaction_keeps_its_locks_whoever_drops_it() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    drop(prepared(&db, "first", "a"));
    assert!(db.get("a").unwrap().is_none());
    assert_eq!(db.put("a", "other").unwrap_err().subcode(), SubCode::LockTimeout);
    drop(db);

    // Another process locks its keys before anybody else can.
    let db = open(directory.path());
    assert_eq!(db.put("a", "other").unwrap_err().subcode(), SubCode::LockTimeout);
    let mut all = db.prepared_transactions().unwrap();
    assert!(db.prepared_transactions().unwrap().is_empty(), "a handle is handed out once");
    let mut first = all.pop().unwrap();
    assert_eq!(first.state(), TransactionState::Prepared);
    assert_eq!(first.get(&db, "a").unwrap().unwrap(), "first", "it reads what it wrote");
    first.commit().unwrap();
    assert_eq!(first.state(), TransactionState::Committed);
    db.put("a", "other").unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "other");
}

#[test]
fn what_is_prepared_changes_no_more_and_ends_once() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let refused = |outcome: flagstone::Result<()>, said: &str| {
        let error = outcome.unwrap_err();
        assert!(error.code() == Code::InvalidArgument && error.message().contains(said), "{error}");
    };
    let mut unnamed = db.begin();
    unnamed.put(&db, "u", "1").unwrap();
    refused(unnamed.prepare(), "a name");
    unnamed.commit_time_batch().put("x", "1").unwrap();
    refused(unnamed.commit(), "commit_time_batch");
    drop(unnamed);

    let mut first = prepared(&db, "first", "a");
    refused(first.put(&db, "b", "1"), "is prepared");
    refused(first.set_name("again"), "is prepared");
    refused(first.prepare(), "is prepared");
    refused(first.get_for_update(&db, "b").map(drop), "is prepared");
    refused(db.begin().set_name("first"), "first");
    first.commit_time_batch().put("beside", "1").unwrap();
    first.commit().unwrap();
    assert_eq!(db.get("beside").unwrap().unwrap(), "1");
    refused(first.commit(), "already been committed");
    refused(first.rollback(), "already been committed");

    let mut second = prepared(&db, "second", "a");
    second.rollback().unwrap();
    assert_eq!(second.state(), TransactionState::RolledBack);
    refused(second.commit(), "already been rolled back");
    assert_eq!(db.get("a").unwrap().unwrap(), "first");
    // Its name and its key are free again.
    prepared(&db, "second", "a").commit().unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "second");
}

#[test]
fn a_database_without_locks_prepares_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    drop(prepared(&db, "first", "a"));
    drop(db);
    let error = Db::open(directory.path()).unwrap_err();
    assert_eq!(error.code(), Code::NotSupported);
    assert!(error.to_string().contains("'first' is prepared"), "{error}");

    let plain = tempfile::tempdir().unwrap();
    let db = Db::open(plain.path()).unwrap();
    assert_eq!(db.begin().prepare().unwrap_err().code(), Code::NotSupported);
}

/// Expiry and prepare are one change: what is prepared can no longer expire.
#[test]
fn what_is_prepared_does_not_expire() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let options =
        TransactionOptions { expiration: Some(Duration::ZERO), ..TransactionOptions::default() };
    let mut late = db.begin_with(&options);
    late.set_name("late").unwrap();
    assert_eq!(late.prepare().unwrap_err().code(), Code::Expired);
    drop(late);

    let options = TransactionOptions { expiration: Some(Duration::from_secs(60)), ..options };
    let mut timely = db.begin_with(&options);
    timely.set_name("timely").unwrap();
    timely.put(&db, "a", "1").unwrap();
    timely.prepare().unwrap();
    assert_eq!(timely.state(), TransactionState::Prepared);
    timely.commit().unwrap();
}

/// Past its expiration it could be committed, but its reads said that it must be rolled back.
#[test]
fn what_is_prepared_is_read_after_its_expiration() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(HandClock::at(1_000));
    let env = Env { clock: clock.clone(), ..Env::os() };
    let db = Db::builder(directory.path())
        .options(|options| options.env = env)
        .open_transaction_db(&locks())
        .unwrap();
    let expiration = Some(Duration::from_secs(1));
    let mut late = db.begin_with(&TransactionOptions { expiration, ..Default::default() });
    late.set_name("late").unwrap();
    late.put(&db, "a", "1").unwrap();
    late.prepare().unwrap();
    clock.advance(2);
    assert_eq!(late.get(&db, "a").unwrap().unwrap(), "1");
    assert_eq!(late.family(&db).unwrap().get("a").unwrap().unwrap(), "1");
    let [info] = &db.transactions()[..] else { panic!("{:?}", db.transactions()) };
    assert!(!info.has_expired, "nobody takes over its locks");
    assert_eq!(db.put("a", "other").unwrap_err().subcode(), SubCode::LockTimeout);
    late.commit().unwrap();
}

/// The first list failed, and all later ones were without the transaction.
#[test]
fn a_transaction_is_listed_and_rolled_back_without_its_merge_operator() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path())
        .column_family("sums", |family| {
            family.merge_with("concat", |_key, _value, operands| Some(operands.concat()));
        })
        .open_transaction_db(&TransactionDbOptions::default())
        .unwrap();
    let sums = db.column_family("sums").unwrap();
    for name in ["one", "two", "three"] {
        let mut transaction = db.begin();
        transaction.set_name(name).unwrap();
        transaction.put(&db, name, name).unwrap();
        if name == "two" {
            transaction.merge(&sums, "sum", "2").unwrap();
            transaction.put(&sums, "plain", "2").unwrap();
        }
        transaction.prepare().unwrap();
    }
    drop((sums, db));

    let db = open(directory.path());
    let sums = db.column_family("sums").unwrap();
    let mut all = db.prepared_transactions().unwrap();
    let names: Vec<_> = all.iter().map(|one| one.name().unwrap()).collect();
    assert_eq!(names, [&b"one"[..], b"three", b"two"]);
    let two = &mut all[2];
    assert_eq!(two.get(&sums, "plain").unwrap().unwrap(), "2");
    assert_eq!(two.get(&sums, "sum").unwrap_err().code(), Code::InvalidArgument);
    let error = two.commit().unwrap_err();
    assert!(error.message().contains("'two'") && error.message().contains("merge"), "{error}");
    two.rollback().unwrap();
    db.put("two", "other").unwrap();
    drop(all);
    assert_eq!(db.prepared_transactions().unwrap().len(), 2);
}

/// A directory could not be opened again: the second of them found the key locked.
#[test]
fn two_that_prepared_one_key_without_locks_are_both_there_again() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let unlocked = TransactionOptions { skip_concurrency_control: true, ..Default::default() };
    for name in ["one", "two"] {
        let mut transaction = db.begin_with(&unlocked);
        transaction.set_name(name).unwrap();
        transaction.put(&db, "shared", name).unwrap();
        transaction.put(&db, name, name).unwrap();
        transaction.prepare().unwrap();
    }
    drop(db);

    let db = open(directory.path());
    let keys: Vec<_> = db.locked_keys().into_iter().map(|lock| lock.key).collect();
    assert_eq!(keys, [&b"one"[..], b"shared", b"two"]);
    let mut all = db.prepared_transactions().unwrap();
    assert_eq!(all.len(), 2);
    all.iter_mut().for_each(|one| one.commit().unwrap());
    assert_eq!(db.get("shared").unwrap().unwrap(), "two");
    assert_eq!(db.locked_count(), 0);
}

/// A handle read what an earlier transaction of its name had written.
#[test]
fn a_handle_reads_what_it_commits() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let is_over = AtomicBool::new(false);
    let decide_all = || {
        while !is_over.load(Ordering::Relaxed) {
            for mut one in db.prepared_transactions().unwrap() {
                let read = one.get(&db, "a").unwrap().unwrap();
                one.commit_time_batch().put("read", &read[..]).unwrap();
                one.commit().unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        (0..3).for_each(|_| drop(scope.spawn(decide_all)));
        for round in 0..500_u32 {
            let mut transaction = db.begin();
            while transaction.set_name("name").is_err() {
                std::thread::yield_now();
            }
            transaction.put(&db, "a", round.to_le_bytes()).unwrap();
            transaction.prepare().unwrap();
            drop(transaction);
            while db.get("a").unwrap().is_none_or(|now| now != round.to_le_bytes()) {
                std::thread::yield_now();
            }
            let (read, written) = (db.get("read").unwrap(), db.get("a").unwrap());
            if read != written {
                is_over.store(true, Ordering::Relaxed);
                panic!("round {round}: it read {read:?}, and wrote {written:?}");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// What a closure had prepared stayed prepared, with its locks, when the closure failed.
#[test]
fn a_closure_that_fails_leaves_nothing_prepared() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let mut attempts = 0;
    db.transact(|transaction| {
        attempts += 1;
        transaction.set_name("again")?;
        transaction.put(&db, "a", "1")?;
        transaction.prepare()?;
        if attempts == 1 { Err(Error::new(Code::Busy, "once")) } else { Ok(()) }
    })
    .unwrap();
    assert_eq!(attempts, 2);
    assert_eq!(db.get("a").unwrap().unwrap(), "1");

    let failed = db.transact(|transaction| -> flagstone::Result<()> {
        transaction.set_name("again")?;
        transaction.put(&db, "b", "1")?;
        transaction.prepare()?;
        Err(Error::new(Code::Aborted, "mine"))
    });
    assert_eq!(failed.unwrap_err().code(), Code::Aborted);
    assert!(db.prepared_transactions().unwrap().is_empty());
    assert_eq!(db.locked_count(), 0);
    assert!(db.get("b").unwrap().is_none());
}

/// No rollback was synced: one that was acknowledged could come back as prepared.
#[test]
fn a_rollback_is_synced_if_it_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let syncs = || db.statistics().get(Ticker::WalSyncs);
    let mut one = prepared(&db, "one", "a");
    let mut two = prepared(&db, "two", "b");
    let before = syncs();
    one.rollback().unwrap();
    assert_eq!(syncs(), before);
    two.rollback_with(&WriteOptions::synced()).unwrap();
    assert_eq!((two.state(), syncs()), (TransactionState::RolledBack, before + 1));

    let mut unprepared = db.begin();
    unprepared.put(&db, "a", "1").unwrap();
    unprepared.rollback_with(&WriteOptions::synced()).unwrap();
    assert_eq!((db.locked_count(), syncs()), (0, before + 1));
}

/// Errors named a transaction by its number, though it had a name, or not at all.
#[test]
fn errors_say_which_transaction_is_in_the_way() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let one = prepared(&db, "one", "a");
    let said = db.put("a", "other").unwrap_err().to_string();
    let holder = format!("transaction {} ('one', prepared), and is not waited for", one.id());
    assert!(said.contains(&holder), "{said}");
    let said = db.begin().set_name("one").unwrap_err().to_string();
    assert!(said.contains("is named 'one' already"), "{said}");

    let (mut first, mut second, mut third) = (db.begin(), db.begin(), db.begin());
    first.get_shared(&db, "b").unwrap();
    second.get_shared(&db, "b").unwrap();
    let said = third.put(&db, "b", "1").unwrap_err().to_string();
    assert!(said.contains(&format!("transaction {} and 1 other,", first.id())), "{said}");

    let expiration = Some(Duration::ZERO);
    let mut late = db.begin_with(&TransactionOptions { expiration, ..Default::default() });
    late.set_name("late").unwrap();
    let said = late.put(&db, "c", "1").unwrap_err().to_string();
    assert!(said.contains(&format!("transaction {} ('late') took longer", late.id())), "{said}");
}

/// A save point could be set where none could be gone back to.
#[test]
fn save_points_end_with_prepare() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let mut one = prepared(&db, "one", "a");
    one.set_save_point();
    assert_eq!(one.rollback_to_save_point().unwrap_err().code(), Code::InvalidArgument);
    one.commit().unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "one");
}

/// The closure had written, and its caller got `InvalidArgument`.
#[test]
fn a_closure_may_end_its_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    db.transact(|transaction| {
        transaction.put(&db, "a", "1")?;
        transaction.commit()
    })
    .unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "1");
    db.transact(|transaction| {
        transaction.set_name("given up")?;
        transaction.put(&db, "b", "1")?;
        transaction.prepare()?;
        transaction.rollback()
    })
    .unwrap();
    assert!(db.get("b").unwrap().is_none());

    // What is written is not tried again.
    let mut attempts = 0;
    let failed = db.transact(|transaction| -> flagstone::Result<()> {
        attempts += 1;
        transaction.put(&db, "c", "1")?;
        transaction.commit()?;
        Err(Error::new(Code::Busy, "too late"))
    });
    assert_eq!((failed.unwrap_err().code(), attempts), (Code::Busy, 1));
}

/// Nothing said which transaction could not be committed, or what helps.
#[test]
fn a_dropped_family_leaves_two_ways_out() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let dropped = db.create_column_family("dropped", |_| {}).unwrap();
    let mut all: Vec<_> = ["one", "two"]
        .into_iter()
        .map(|name| {
            let mut transaction = db.begin();
            transaction.set_name(name).unwrap();
            transaction.put(&db, name, "1").unwrap();
            transaction.put(&dropped, name, "1").unwrap();
            transaction.prepare().unwrap();
            transaction
        })
        .collect();
    db.drop_column_family(&dropped).unwrap();
    let error = all[0].commit().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    for said in ["transaction 'one'", "ignore_missing_column_families", "roll it back"] {
        assert!(error.to_string().contains(said), "{error}");
    }
    assert_eq!(all[0].state(), TransactionState::Prepared);
    let ignoring = WriteOptions { ignore_missing_column_families: true, ..WriteOptions::default() };
    all[0].commit_with(&ignoring).unwrap();
    assert_eq!(db.get("one").unwrap().unwrap(), "1");
    all[1].rollback().unwrap();
    assert_eq!(db.locked_count(), 0);
}

/// A transaction was forgotten, and nothing said why the WALs were kept.
#[test]
fn the_doctor_names_the_transaction_that_keeps_wals() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        Db::builder(directory.path())
            .options(|options| options.set("max_total_wal_size", "1m").unwrap())
            .open_transaction_db(&TransactionDbOptions::default())
            .unwrap()
    };
    let db = open();
    drop(prepared(&db, "forgotten", "a"));
    drop(prepared(&db, "later", "b"));
    assert!(db.doctor().unwrap().is_empty(), "it was prepared a moment ago");
    // Small values: large ones are in blob files.
    (0..600).for_each(|at| db.put(format!("key{at}"), [b'v'; 1000]).unwrap());
    db.flush().unwrap();
    let told = |db: &TransactionDb| {
        let [finding] = &db.doctor().unwrap()[..] else { panic!("{:?}", db.doctor()) };
        finding.to_string()
    };
    let said = told(&db);
    assert!(said.contains("forgotten, the oldest of 2, is prepared in"), "{said}");
    assert!(said.contains("1 WAL of ") && said.contains("commit forgotten"), "{said}");
    drop(db);

    let db = open();
    assert!(told(&db).contains("forgotten, the oldest of 2,"));
    db.prepared_transactions().unwrap().iter_mut().for_each(|one| one.commit().unwrap());
    assert!(db.doctor().unwrap().is_empty());
}
