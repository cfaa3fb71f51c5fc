//! Transactions that lock their keys, run by threads: nothing is lost, nothing is made, and what is
//! read for update is serializable. And a random history beside a model.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use flagstone::{
    Code, Db, Family, Result, SubCode, TransactOptions, Transaction, TransactionDb,
    TransactionDbOptions, TransactionOptions, Value,
};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn number(value: Option<Value>) -> u64 {
    value.map_or(0, |value| String::from_utf8_lossy(&value).parse().expect("a number"))
}

/// With memtables that are full soon.
fn small(directory: &tempfile::TempDir) -> TransactionDb {
    Db::builder(directory.path())
        .options(|options| options.cf.write_buffer_size = 64 << 10)
        .column_family("users", |family| family.write_buffer_size = 64 << 10)
        .open_transaction_db(&TransactionDbOptions::default())
        .expect("the database opens")
}

/// Accounts between which threads move amounts, in any order of keys.
fn bank(options: &TransactOptions) {
    const ACCOUNTS: u64 = 6;
    let directory = temporary();
    let db = small(&directory);
    for account in 0..ACCOUNTS {
        db.put(account.to_string(), "100").expect("nobody has locked it");
    }
    let moved = AtomicU64::new(0);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (db, moved) = (&db, &moved);
            scope.spawn(move || {
                let mut rng = Rng::with_seed(seed);
                for _ in 0..200 {
                    let (from, to) = (rng.u64(0..ACCOUNTS), rng.u64(0..ACCOUNTS));
                    let amount = rng.u64(1..30);
                    if transfer(db, options, from, to, amount).expect("attempts suffice") {
                        moved.fetch_add(1, Ordering::Relaxed);
                    }
                    if rng.u8(0..20) == 0 {
                        db.flush().expect("there is room");
                    }
                    let view = db.snapshot();
                    let entries = view.iter().map(|entry| entry.expect("it is read").1);
                    let sum: u64 = entries.map(|value| number(Some(value.into()))).sum();
                    assert_eq!(sum, ACCOUNTS * 100, "a snapshot has whole transfers");
                }
            });
        }
    });
    assert!(moved.into_inner() > 100);
    assert_eq!(db.locked_count(), 0);
    assert!(db.transactions().is_empty());
}

/// Whether there was enough.
fn transfer(
    db: &TransactionDb,
    options: &TransactOptions,
    from: u64,
    to: u64,
    amount: u64,
) -> Result<bool> {
    let (from, to) = (from.to_string(), to.to_string());
    db.transact_with(options, |transaction| {
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

#[test]
fn transfers_with_a_search_for_deadlocks_lose_nothing() {
    bank(&TransactOptions::default());
}

#[test]
fn transfers_that_end_deadlocks_by_time_out_lose_nothing() {
    let lock_timeout = Some(Duration::from_millis(1));
    let transaction = TransactionOptions { lock_timeout, ..Default::default() };
    bank(&TransactOptions { retries: 100_000, transaction, ..Default::default() });
}

#[test]
fn no_update_is_lost() {
    let directory = temporary();
    let db = small(&directory);
    let users = db.column_family("users").unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let count = |transaction: &mut Transaction, family: &Family| {
                        // First shared, then alone: two that do so at once are a deadlock.
                        let before = number(transaction.get_shared(family, "count")?);
                        transaction.put(family, "count", (before + 1).to_string())
                    };
                    let both = |transaction: &mut Transaction| {
                        count(transaction, &users)?;
                        count(transaction, &db)
                    };
                    db.transact(both).expect("attempts suffice");
                }
            });
        }
    });
    assert_eq!(number(users.get("count").unwrap()), 400);
    assert_eq!(number(db.get("count").unwrap()), 400);
}

/// A lock that is not had in time is a conflict, whatever the application makes of its error. One
/// that the closure passes over is none.
#[test]
fn a_time_out_is_tried_again_behind_an_error_of_the_application() {
    let directory = temporary();
    let db = small(&directory);
    let lock_timeout = Some(Duration::ZERO);
    let transaction = TransactionOptions { lock_timeout, ..Default::default() };
    let options = TransactOptions { retries: 5, transaction, ..Default::default() };
    let mut other = Some(db.begin());
    other.as_mut().unwrap().put(&db, "count", "9").unwrap();
    let mut attempts = 0;
    let outcome = db.try_transact_with(&options, |transaction| -> Result<(), Box<dyn Error>> {
        attempts += 1;
        if attempts == 3 {
            other.take();
        }
        Ok(transaction.put(&db, "count", "1").map_err(|error| format!("sorry: {error}"))?)
    });
    outcome.unwrap();
    assert_eq!((attempts, number(db.get("count").unwrap())), (3, 1));

    let mut other = db.begin();
    other.put(&db, "count", "9").unwrap();
    attempts = 0;
    let outcome = db.try_transact_with(&options, |transaction| -> Result<(), Box<dyn Error>> {
        attempts += 1;
        assert!(transaction.put(&db, "count", "1").is_err());
        transaction.put(&db, "other", "1")?;
        Err("given up".into())
    });
    assert_eq!((outcome.unwrap_err().to_string().as_str(), attempts), ("given up", 1));
}

/// Two doctors are on call, and one of them must stay.
#[test]
fn reads_for_update_have_no_write_skew() {
    let directory = temporary();
    let db = small(&directory);
    for round in 0..100 {
        db.put("ada", "1").unwrap();
        db.put("alan", "1").unwrap();
        let leave = |own: &str, other: &str| {
            db.transact(|transaction| {
                if number(transaction.get_shared(&db, other)?) == 1 {
                    transaction.put(&db, own, "0")?;
                }
                Ok(())
            })
            .expect("attempts suffice");
        };
        thread::scope(|scope| {
            scope.spawn(|| leave("ada", "alan"));
            leave("alan", "ada");
        });
        let on_call = number(db.get("ada").unwrap()) + number(db.get("alan").unwrap());
        assert_eq!(on_call, 1, "round {round}");
    }
}

/// A key, and whether it is one of the users.
type Name = (bool, u8);

/// What the transactions of a random history do, beside two maps: what is committed, and what each
/// transaction would make of it.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Model(BTreeMap<Name, Vec<u8>>);

struct Running {
    transaction: Transaction,
    changes: Vec<(Name, Option<Vec<u8>>)>,
    save_points: Vec<usize>,
    locked: BTreeSet<Name>,
}

#[test]
fn a_random_history_agrees_with_its_model() {
    for seed in 0..8 {
        let directory = temporary();
        let mut rng = Rng::with_seed(seed);
        let mut committed = Model::default();
        for _ in 0..4 {
            let db = small(&directory);
            let users = db.column_family("users").unwrap();
            let families: [&Family; 2] = [&db, &users];
            let mut running: Vec<Running> = Vec::new();
            for _ in 0..300 {
                step(&db, families, &mut running, &mut committed, &mut rng);
            }
            for (of_users, family) in [(false, families[0]), (true, families[1])] {
                let found: Vec<_> = family.iter().map(|entry| entry.unwrap()).collect();
                let keys = committed.0.iter().filter(|((of, _), _)| *of == of_users);
                let expected: Vec<_> =
                    keys.map(|((_, key), value)| (vec![*key], value.clone())).collect();
                assert_eq!(found, expected, "seed {seed}");
            }
            let locked: usize = running.iter().map(|run| run.transaction.claimed()).sum();
            assert_eq!(locked as u64, db.locked_count(), "no key is shared here");
            // Half of the time the database is closed under the transactions.
            if rng.bool() {
                db.close().unwrap();
            }
            drop(running);
            assert_eq!(db.locked_count(), 0);
        }
    }
}

fn step(
    db: &TransactionDb,
    families: [&Family; 2],
    running: &mut Vec<Running>,
    committed: &mut Model,
    rng: &mut Rng,
) {
    if running.len() < 3 && rng.u8(0..6) == 0 {
        let lock_timeout = Some(Duration::ZERO);
        let options = TransactionOptions { lock_timeout, ..Default::default() };
        let transaction = db.begin_with(&options);
        let (changes, save_points) = (Vec::new(), Vec::new());
        running.push(Running { transaction, changes, save_points, locked: BTreeSet::new() });
    }
    let name = (rng.bool(), rng.u8(0..12));
    let family = families[usize::from(name.0)];
    let value = vec![rng.u8(..); if rng.u8(0..10) == 0 { 8_000 } else { 20 }];
    if running.is_empty() || rng.u8(0..10) == 0 {
        let is_locked = running.iter().any(|run| run.locked.contains(&name));
        if is_locked {
            return;
        }
        family.put([name.1], &value).expect("nobody has locked it");
        committed.0.insert(name, value);
        return;
    }
    let at = rng.usize(0..running.len());
    let is_locked =
        running.iter().enumerate().any(|(of, run)| of != at && run.locked.contains(&name));
    match rng.u8(0..12) {
        kind @ 0..=6 => running[at].change(committed, family, name, value, (kind, is_locked)),
        7 => running[at].set_save_point(),
        8 => running[at].rollback_to_save_point(db),
        9 => {
            let found = running[at].transaction.get(family, [name.1]).expect("it is read");
            assert_eq!(found.as_deref(), running[at].sees(committed, name), "{name:?}");
        }
        10 => running.swap_remove(at).commit(committed),
        _ => drop(running.swap_remove(at)),
    }
}

impl Running {
    /// Puts, deletes or reads for update.
    fn change(
        &mut self,
        committed: &Model,
        family: &Family,
        name: Name,
        value: Vec<u8>,
        (kind, is_locked): (u8, bool),
    ) {
        let outcome = match kind {
            0..=3 => self.transaction.put(family, [name.1], &value).map(|()| Some(Some(value))),
            4 => self.transaction.delete(family, [name.1]).map(|()| Some(None)),
            _ => self.transaction.get_for_update(family, [name.1]).map(|found| {
                assert_eq!(found.as_deref(), self.sees(committed, name), "{name:?}");
                None
            }),
        };
        match outcome {
            Ok(change) => {
                assert!(!is_locked, "{name:?} is locked by another");
                self.locked.insert(name);
                self.changes.extend(change.map(|value| (name, value)));
            }
            Err(error) => {
                assert_eq!((error.code(), error.subcode()), (Code::TimedOut, SubCode::LockTimeout));
                assert!(is_locked, "{name:?} is free");
            }
        }
    }

    fn set_save_point(&mut self) {
        self.transaction.set_save_point();
        self.save_points.push(self.changes.len());
    }

    fn rollback_to_save_point(&mut self, db: &TransactionDb) {
        if let Some(length) = self.save_points.pop() {
            self.transaction.rollback_to_save_point().expect("there is one");
            self.changes.truncate(length);
            self.forget_released(db);
        }
    }

    fn commit(mut self, committed: &mut Model) {
        self.transaction.commit().expect("its keys are locked");
        for (name, value) in self.changes {
            match value {
                Some(value) => committed.0.insert(name, value),
                None => committed.0.remove(&name),
            };
        }
    }

    /// The value of a key with its own changes.
    fn sees<'a>(&'a self, committed: &'a Model, name: Name) -> Option<&'a [u8]> {
        match self.changes.iter().rev().find(|(changed, _)| *changed == name) {
            Some((_, value)) => value.as_deref(),
            None => committed.0.get(&name).map(Vec::as_slice),
        }
    }

    /// After a rollback: the keys that it holds still, as the database lists them.
    fn forget_released(&mut self, db: &TransactionDb) {
        let id = self.transaction.id();
        let held: Vec<_> = db
            .locked_keys()
            .into_iter()
            .filter(|lock| lock.holders == [id])
            .map(|lock| (lock.family == "users", lock.key[0]))
            .collect();
        self.locked.retain(|name| held.contains(name));
        assert_eq!(held.len(), self.locked.len());
        // What is changed stays locked.
        assert!(self.changes.iter().all(|(name, _)| self.locked.contains(name)));
    }
}
