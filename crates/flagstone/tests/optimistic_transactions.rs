//! Optimistic transactions: what they see, what they write, and when they are refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;
use flagstone::{Code, Db, Result, TransactOptions, Transaction, Value, WriteOptions};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn code<T: std::fmt::Debug>(outcome: Result<T>) -> Code {
    outcome.expect_err("it is refused").code()
}

fn number(value: Option<Value>) -> u64 {
    value.map_or(0, |value| String::from_utf8_lossy(&value).parse().expect("a number"))
}

#[test]
fn a_transaction_sees_its_changes_and_nobody_else_does() {
    let directory = temporary();
    let db = Db::builder(directory.path()).column_family("users", |_| {}).open().unwrap();
    let users = db.column_family("users").unwrap();
    for key in ["a", "c", "e"] {
        users.put(key, "old").unwrap();
    }
    let mut transaction = db.begin();
    transaction.put(&users, "b", "new").unwrap();
    transaction.put(&users, "c", vec![7; 10_000]).unwrap();
    transaction.delete(&users, "e").unwrap();
    let view = transaction.family(&users).unwrap();
    let keys = |view: &flagstone::View| -> Vec<String> {
        let keys = view.iter().keys().map(|key| String::from_utf8(key.unwrap()).unwrap());
        keys.collect()
    };
    assert_eq!(keys(&view), ["a", "b", "c"]);
    assert_eq!(keys(&users), ["a", "c", "e"]);
    let back: Vec<_> = view.range("a"..="b").rev().map(|entry| entry.unwrap().1).collect();
    assert_eq!(back, [b"new", b"old"]);
    let part = view.get_part("c", 9_990..20_000).unwrap().unwrap();
    assert_eq!((part.bytes.len(), part.value_size), (10, 10_000));
    let many = view.get_many(&["a", "b", "e", "f"]).unwrap();
    let many: Vec<Option<&[u8]>> = many.iter().map(|value| value.as_deref()).collect();
    assert_eq!(many, [Some(&b"old"[..]), Some(b"new"), None, None]);
    testkit::history::block_on(async {
        assert_eq!(view.get_async("b").await.unwrap().unwrap(), "new");
        assert_eq!(view.get_async("a").await.unwrap().unwrap(), "old");
        let many = view.get_many_async(&["e", "a"]).await.unwrap();
        assert!(many[0].is_none() && many[1].is_some());
    });
    // The view stays as it is.
    transaction.delete(&users, "a").unwrap();
    assert_eq!(keys(&view), ["a", "b", "c"]);
    assert!(transaction.get(&users, "a").unwrap().is_none());
    transaction.commit().unwrap();
    assert_eq!(keys(&users), ["b", "c"]);
}

#[test]
fn what_another_wrote_meanwhile_is_a_conflict() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    db.put("a", "1").unwrap();
    let conflict = |change: &dyn Fn(&mut Transaction)| {
        let mut transaction = db.begin();
        change(&mut transaction);
        db.put("a", "2").unwrap();
        transaction.commit()
    };
    let read = conflict(&|transaction| drop(transaction.get_for_update(&db, "a").unwrap()));
    assert_eq!(code(read), Code::Busy);
    let written = conflict(&|transaction| transaction.put(&db, "a", "3").unwrap());
    assert_eq!(code(written), Code::Busy);
    assert_eq!(db.get("a").unwrap().unwrap(), "2");
    // Plain reads, other keys and untracked changes are none.
    conflict(&|transaction| drop(transaction.get(&db, "a").unwrap())).unwrap();
    conflict(&|transaction| transaction.put(&db, "b", "3").unwrap()).unwrap();
    conflict(&|transaction| transaction.put_untracked(&db, "a", "4").unwrap()).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "4");
    conflict(&|transaction| {
        transaction.get_for_update(&db, "a").unwrap();
        transaction.undo_get_for_update(&db, "a").unwrap();
    })
    .unwrap();
    let kept = conflict(&|transaction| {
        transaction.put(&db, "a", "5").unwrap();
        transaction.undo_get_for_update(&db, "a").unwrap();
    });
    assert_eq!(code(kept), Code::Busy, "it is changed, not only read");
}

/// A compaction gives old entries the sequence number 0 and drops deletions.
#[test]
fn a_compaction_hides_no_conflict() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    for key in ["a", "b", "c"] {
        db.put(key, "1").unwrap();
    }
    let compact = || {
        db.flush().unwrap();
        db.compact().unwrap();
    };
    compact();
    let begun = ["a", "b", "c", "d"].map(|key| {
        let mut transaction = db.begin();
        transaction.get_for_update(&db, key).unwrap();
        transaction.put(&db, "written", key).unwrap();
        transaction
    });
    db.put("a", "2").unwrap();
    db.delete("b").unwrap();
    db.delete_range("c".."d").unwrap();
    compact();
    let outcomes = begun.map(|mut transaction| transaction.commit().map_err(|error| error.code()));
    let busy = Err(Code::Busy);
    assert_eq!(outcomes, [busy, busy, busy, Ok(())]);
    assert_eq!(db.get("written").unwrap().unwrap(), "d");
}

#[test]
fn a_snapshot_is_one_moment_and_widens_what_conflicts() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    db.put("a", "1").unwrap();
    let mut transaction = db.begin();
    transaction.set_snapshot();
    db.put("a", "2").unwrap();
    assert_eq!(transaction.get(&db, "a").unwrap().unwrap(), "1");
    assert_eq!(transaction.family(&db).unwrap().get("a").unwrap().unwrap(), "1");
    transaction.clear_snapshot();
    assert_eq!(transaction.get(&db, "a").unwrap().unwrap(), "2");
    transaction.put(&db, "a", "3").unwrap();
    transaction.commit().unwrap();
    let mut transaction = db.begin();
    transaction.set_snapshot();
    db.put("a", "4").unwrap();
    transaction.put(&db, "a", "5").unwrap();
    assert_eq!(code(transaction.commit()), Code::Busy, "it was written behind the snapshot");
}

#[test]
fn save_points_take_back_changes_and_what_is_tracked() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    let mut transaction = db.begin();
    assert_eq!(code(transaction.rollback_to_save_point()), Code::NotFound);
    assert_eq!(code(transaction.pop_save_point()), Code::NotFound);
    transaction.put(&db, "a", "1").unwrap();
    transaction.set_save_point();
    transaction.put(&db, "b", "1").unwrap();
    transaction.set_save_point();
    transaction.put(&db, "c", "1").unwrap();
    transaction.pop_save_point().unwrap();
    transaction.rollback_to_save_point().unwrap();
    assert_eq!(transaction.count(), 1);
    for key in ["b", "c"] {
        assert!(transaction.get(&db, key).unwrap().is_none());
        db.put(key, "of another").unwrap();
    }
    transaction.commit().unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "1");
    let mut transaction = db.begin();
    transaction.put(&db, "a", "2").unwrap();
    transaction.rollback().unwrap();
    db.put("a", "3").unwrap();
    transaction.commit().unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "3");
}

#[test]
fn what_a_transaction_cannot_do_is_said() {
    let directory = temporary();
    let day = std::time::Duration::from_secs(86_400);
    let db = Db::builder(directory.path())
        .expiring_family("sessions", day, |_| {})
        .column_family("users", |_| {})
        .open()
        .unwrap();
    let other_directory = temporary();
    let other = Db::open(other_directory.path()).unwrap();
    let mut transaction = db.begin();
    assert_eq!(code(transaction.put(&other, "a", "1")), Code::InvalidArgument);
    assert_eq!(code(transaction.get(&other, "a")), Code::InvalidArgument);
    let sessions = db.column_family("sessions").unwrap();
    assert_eq!(code(transaction.put(&sessions, "a", "1")), Code::NotSupported);
    assert_eq!(code(transaction.merge(&db, "a", "1")), Code::InvalidArgument);
    let users = db.column_family("users").unwrap();
    transaction.put(&users, "a", "1").unwrap();
    db.drop_column_family(&users).unwrap();
    assert_eq!(code(transaction.commit()), Code::ColumnFamilyDropped);
    let mut transaction = db.begin();
    transaction.put(&db, "a", "1").unwrap();
    db.close().unwrap();
    assert_eq!(code(transaction.commit()), Code::ShutdownInProgress);
}

#[test]
fn the_last_conflict_is_told_when_attempts_run_out() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    let mut attempts = 0;
    let options =
        TransactOptions { retries: 2, write: WriteOptions::synced(), ..Default::default() };
    let outcome = db.transact_with(&options, |transaction| {
        attempts += 1;
        transaction.put(&db, "a", "mine")?;
        db.put("a", "of another")
    });
    let error = outcome.unwrap_err();
    assert_eq!((error.code(), attempts), (Code::Busy, 3));
    assert!(error.to_string().contains("attempt 3 of a transaction"), "{error}");
    let refused: Result<()> = db.transact(|_| Err(flagstone::Error::not_found("no such user")));
    assert_eq!(code(refused), Code::NotFound, "no conflict, so it is not tried again");
}

/// An application's own error, as `thiserror` would make it.
#[derive(Debug)]
enum Refusal {
    Poor,
    Storage(flagstone::Error),
}

impl From<flagstone::Error> for Refusal {
    fn from(error: flagstone::Error) -> Self {
        Self::Storage(error)
    }
}

/// A closure with an error type of its own could not run in a transaction that is tried again.
#[test]
fn a_closure_may_have_errors_of_its_own_and_conflicts_are_tried_again() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    let mut attempts = 0;
    let outcome = db.try_transact(|transaction| -> Result<usize, Refusal> {
        attempts += 1;
        transaction.get_for_update(&db, "a")?;
        transaction.put(&db, "a", "mine")?;
        if attempts < 3 {
            db.put("a", "of another")?;
        }
        Ok(7)
    });
    assert_eq!((outcome.unwrap(), attempts), (7, 3));
    assert_eq!(db.get("a").unwrap().unwrap(), "mine");

    attempts = 0;
    let outcome = db.try_transact(|transaction| -> Result<(), Refusal> {
        attempts += 1;
        transaction.put(&db, "a", "not written")?;
        Err(Refusal::Poor)
    });
    assert!(matches!(outcome, Err(Refusal::Poor)) && attempts == 1);
    assert_eq!(db.get("a").unwrap().unwrap(), "mine");

    attempts = 0;
    let options = TransactOptions { retries: 2, ..Default::default() };
    let outcome = db.try_transact_with(&options, |transaction| -> Result<(), Refusal> {
        attempts += 1;
        transaction.put(&db, "a", "mine")?;
        Ok(db.put("a", "of another")?)
    });
    let Err(Refusal::Storage(error)) = outcome else { panic!("{outcome:?}") };
    assert_eq!((error.code(), attempts), (Code::Busy, 3));
}

/// Accounts between which threads move amounts, some by keys that others read for update.
#[test]
fn threads_lose_nothing_and_make_nothing() {
    const ACCOUNTS: u64 = 6;
    let directory = temporary();
    let db = Db::builder(directory.path())
        .options(|options| options.cf.write_buffer_size = 64 << 10)
        .open()
        .unwrap();
    for account in 0..ACCOUNTS {
        db.put(account.to_string(), "100").unwrap();
    }
    let moved = AtomicU64::new(0);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (db, moved) = (&db, &moved);
            scope.spawn(move || {
                let mut rng = Rng::with_seed(seed);
                for _ in 0..200 {
                    let (from, to) = (rng.u64(0..ACCOUNTS), rng.u64(0..ACCOUNTS));
                    if transfer(db, from, to, rng.u64(1..30)).expect("attempts suffice") {
                        moved.fetch_add(1, Ordering::Relaxed);
                    }
                    if rng.u8(0..20) == 0 {
                        db.flush().expect("there is room");
                    }
                    let sum = sum_of(&db.snapshot());
                    assert_eq!(sum, ACCOUNTS * 100, "whoever reads sees whole transfers");
                }
            });
        }
    });
    assert!(moved.into_inner() > 100);
}

fn sum_of(view: &flagstone::View) -> u64 {
    view.iter().map(|entry| number(entry.ok().map(|(_, value)| value.into()))).sum()
}

/// Whether there was enough.
fn transfer(db: &Db, from: u64, to: u64, amount: u64) -> Result<bool> {
    let (from, to) = (from.to_string(), to.to_string());
    db.transact(|transaction| {
        let left = number(transaction.get_for_update(db, &from)?);
        if left < amount || from == to {
            return Ok(false);
        }
        let there = number(transaction.get_for_update(db, &to)?);
        transaction.put(db, &from, (left - amount).to_string())?;
        transaction.put(db, &to, (there + amount).to_string())?;
        Ok(true)
    })
}

/// Two who read what the other writes cannot both commit, if they read for update.
#[test]
fn reads_for_update_have_no_write_skew() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    let mut rng = Rng::with_seed(5);
    for round in 0..200 {
        let mut model: BTreeMap<&str, u64> = BTreeMap::from([("x", 0), ("y", 0)]);
        for key in model.keys() {
            db.put(key, "0").unwrap();
        }
        // Each sets its own to 1 if the other's is 0, by turns in any order.
        let mut steps = vec![0, 0, 0, 1, 1, 1];
        rng.shuffle(&mut steps);
        let mut begun: [Option<Transaction>; 2] = [None, None];
        let mut progress = [0; 2];
        for who in steps {
            let (own, others) = if who == 0 { ("x", "y") } else { ("y", "x") };
            progress[who] += 1;
            match progress[who] {
                1 => begun[who] = Some(db.begin()),
                2 => {
                    let transaction = begun[who].as_mut().unwrap();
                    if number(transaction.get_for_update(&db, others).unwrap()) == 0 {
                        transaction.put(&db, own, "1").unwrap();
                    }
                }
                _ => {
                    let mut transaction = begun[who].take().unwrap();
                    let writes = transaction.count() > 0;
                    if transaction.commit().is_ok() && writes {
                        model.insert(own, 1);
                    }
                }
            }
        }
        assert_eq!(number(db.get("x").unwrap()), model["x"]);
        assert_eq!(number(db.get("y").unwrap()), model["y"]);
        assert_eq!(model["x"] + model["y"], 1, "round {round}: one of them, never both");
    }
}
