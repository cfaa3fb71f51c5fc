//! Commit: what a writer was told is there, what readers see is whole, and what somebody wanted
//! synced is not seen before.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use flagstone::base::{Code, Comparator, SubCode, UserComparator};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::options::{Options, ReadOptions, WriteOptions};
use testkit::compare::scan;

use crate::explore::{explore, explore_with_panics};
use crate::world::{Disk, PATH, close, join, open, options, put, thread, threads, write};

/// The number in a value; 0 for none.
fn number(value: Option<flagstone::db::Value>) -> u64 {
    value.map_or(0, |value| {
        std::str::from_utf8(&value).expect("digits").trim().parse().expect("a number")
    })
}

fn get(db: &Db, key: &str) -> u64 {
    number(db.get(key).expect("a lookup"))
}

/// A write that was acknowledged is seen by every later read, of any thread, and never goes away
/// again.
#[test]
fn an_acknowledged_write_is_seen() {
    explore("commit::an_acknowledged_write_is_seen", 300, || {
        const WRITES: u64 = 4;
        let (_, db) = open(&[]);
        let writers = ["plain", "synced"].map(|key| {
            let db = db.clone();
            thread(move || {
                for n in 1..=WRITES {
                    put(&db, key == "synced", key, &n.to_string()).expect("a write");
                    assert_eq!(get(&db, key), n, "{key}");
                }
            })
        });
        let reader = {
            let db = db.clone();
            thread(move || {
                let (mut plain, mut synced) = (0, 0);
                while (plain, synced) != (WRITES, WRITES) {
                    let now = (get(&db, "plain"), get(&db, "synced"));
                    assert!(now.0 >= plain && now.1 >= synced, "{plain} {synced}, then {now:?}");
                    (plain, synced) = now;
                    shuttle::thread::yield_now();
                }
            })
        };
        join(writers.into_iter().chain([reader]).collect());
        db.close().expect("a clean close");
    });
}

/// A reader sees all of a batch or nothing of it, over families and in every kind of read.
#[test]
fn batches_are_whole() {
    explore("commit::batches_are_whole", 300, || {
        let (_, db) = open(&[]);
        let other = db.create_column_family("other", &Default::default()).expect("a new family");
        let writers = (0..2).map(|writer| {
            let (db, other) = (db.clone(), other.clone());
            thread(move || {
                for n in 1..=3 {
                    let value = (10 * n + writer).to_string();
                    let default = db.default_column_family();
                    let entries =
                        [(default, "a", &*value), (&other, "b", &value), (default, "c", &value)];
                    write(&db, writer == 0, &entries).expect("a write");
                }
            })
        });
        let reader = {
            let (db, other) = (db.clone(), other.clone());
            thread(move || {
                for _ in 0..4 {
                    let options =
                        ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
                    let default = db.default_column_family();
                    let a = number(db.get_with(&options, default, "a").expect("a lookup"));
                    let b = number(db.get_with(&options, &other, "b").expect("a lookup"));
                    let c = number(db.get_with(&options, default, "c").expect("a lookup"));
                    assert!(a == b && b == c, "{a} {b} {c}");
                    let joint = db.multi_get(&["a", "c"]);
                    let joint: Vec<u64> =
                        joint.into_iter().map(|found| number(found.expect("a lookup"))).collect();
                    assert_eq!(joint[0], joint[1]);
                    let all = scan(&db, default, &ReadOptions::default()).expect("a scan");
                    assert!(all.is_empty() || all.len() == 2 && all[0].1 == all[1].1, "{all:?}");
                }
            })
        };
        let threads: Vec<_> = writers.chain([reader]).collect();
        join(threads);
        db.close().expect("a clean close");
    });
}

/// Of increments that are written if nothing has changed since they were read, none is lost, though
/// writes are still being inserted or synced, and memtables become tables.
#[test]
fn no_increment_is_lost() {
    explore("commit::no_increment_is_lost", 300, || {
        let (disk, db) = open(&[("disable_auto_compactions", "true")]);
        let mut all = threads(3, &db, |db, writer| {
            let family = db.default_column_family();
            for _ in 0..2 {
                loop {
                    let before = db.snapshot();
                    let options =
                        ReadOptions { snapshot: Some(before.clone()), ..ReadOptions::default() };
                    let sum = number(db.get_with(&options, family, "sum").expect("a lookup"));
                    let mut batch = WriteBatch::new();
                    batch.put("sum", (sum + 1).to_string()).expect("a short entry");
                    let how = WriteOptions { sync: writer == 0, ..WriteOptions::default() };
                    match db.write_if_unchanged(&how, batch, &before, &[(family, b"sum")]) {
                        Ok(()) => break,
                        Err(error) => assert_eq!(error.code(), Code::Busy, "{error}"),
                    }
                    shuttle::thread::yield_now();
                }
            }
        });
        all.extend(threads(1, &db, |db, _| {
            (0..2).for_each(|_| db.flush_all().expect("a flush"));
        }));
        join(all);
        assert_eq!(get(&db, "sum"), 6);
        close(&disk, &db);
    });
}

/// What readers see of synced writes is on the disk.
fn check_durability(disk: &Disk, db: &Db) {
    for (_, value) in scan(db, db.default_column_family(), &ReadOptions::default()).expect("a scan")
    {
        let wants_sync = value.starts_with(b"synced");
        assert!(
            !wants_sync || disk.is_durable(&value),
            "{} is seen too early",
            value.escape_ascii()
        );
    }
}

/// A synced write is published after its sync, also when others write without, memtables are
/// switched meanwhile and somebody syncs the WAL for all.
#[test]
fn nothing_is_published_before_its_sync() {
    explore("commit::nothing_is_published_before_its_sync", 300, || {
        let (disk, db) = open(&[("write_buffer_size", "4096")]);
        let writers = ["synced 1", "synced 2", "plain"].map(|name| {
            let (disk, db) = (disk.clone(), db.clone());
            thread(move || {
                let sync = name != "plain";
                for n in 0..3 {
                    let value = format!("{name} number {n}");
                    put(&db, sync, &format!("{n} {name}"), &value).expect("a write");
                    assert!(!sync || disk.is_durable(value.as_bytes()), "{value} was acknowledged");
                }
            })
        });
        let syncer = {
            let db = db.clone();
            thread(move || {
                db.sync_wal().expect("a sync");
                db.flush_all().expect("a flush");
            })
        };
        let reader = {
            let (disk, db) = (disk.clone(), db.clone());
            thread(move || (0..4).for_each(|_| check_durability(&disk, &db)))
        };
        join(writers.into_iter().chain([syncer, reader]).collect());
        check_durability(&disk, &db);
        db.close().expect("a clean close");
    });
}

/// A sync fails: nobody who waits for it is left waiting, nobody is told that all is well
/// afterwards, and what was acknowledged with a sync is on the disk.
#[test]
fn a_failed_sync_reaches_everybody() {
    explore("commit::a_failed_sync_reaches_everybody", 300, || {
        let (disk, db) = open(&[]);
        disk.fail_sync(3);
        let writers = (0..3).map(|writer| {
            let (disk, db) = (disk.clone(), db.clone());
            thread(move || {
                let sync = writer < 2;
                let mut refused = 0;
                for n in 0..4 {
                    let value = format!("value {n} of {writer}");
                    match put(&db, sync, &value, &value) {
                        Ok(()) => {
                            assert_eq!(refused, 0, "a poisoned database takes nothing");
                            assert!(!sync || disk.is_durable(value.as_bytes()), "{value}");
                        }
                        Err(_) => refused += 1,
                    }
                }
                refused
            })
        });
        let flusher = {
            let db = db.clone();
            thread(move || u64::from(db.flush_all().is_err()))
        };
        let threads: Vec<_> = writers.chain([flusher]).collect();
        let refused: u64 = join(threads).into_iter().sum();
        assert!(refused > 0, "the failure was noticed");
        let error = db.put("key", "value").expect_err("the database is poisoned");
        assert_eq!(error.subcode(), SubCode::Poisoned, "{error}");
        let found = scan(&db, db.default_column_family(), &ReadOptions::default()).expect("a scan");
        assert!(found.iter().all(|(key, value)| key == value));
        let _ = db.close();
        drop(db);
        let reopened = Db::open(PATH, &options(&disk, &[])).expect("it opens again");
        reopened.put("key", "value").expect("a write");
    });
}

/// Many writers wait for one sync: it wakes all of them, and none goes to sleep after it.
#[test]
fn no_wake_up_is_lost() {
    explore("commit::no_wake_up_is_lost", 300, || {
        let (_, db) = open(&[]);
        join(threads(4, &db, |db, writer| {
            for n in 0..2 {
                put(db, true, &writer.to_string(), &n.to_string()).expect("a write");
            }
        }));
        db.close().expect("a clean close");
    });
}

/// The order of bytes, in which one key has no place, unless it `is_mended`.
#[derive(Default)]
struct Fragile {
    is_mended: bool,
}

impl UserComparator for Fragile {
    fn name(&self) -> &str {
        "Fragile"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if !self.is_mended && [a, b].contains(&&b"fragile"[..]) {
            // The scheduler takes any other panic for the end of the story.
            resume_unwind(Box::new(()));
        }
        a.cmp(b)
    }
}

fn fragile(disk: &Disk, is_mended: bool) -> Options {
    let mut options = options(disk, &[]);
    options.cf.comparator = Comparator::Custom(Arc::new(Fragile { is_mended }));
    options
}

/// Writes a batch of which only one half has a place.
fn write_halves(db: &Db) {
    let default = db.default_column_family();
    let halves = [(default, "a", "a"), (default, "fragile", "b")];
    let written = catch_unwind(AssertUnwindSafe(|| write(db, false, &halves)));
    assert!(written.is_err(), "the comparator panics");
}

/// A comparator panics in a write: nobody sees half of it, nothing more is acknowledged, and nobody
/// waits for a flush that will not come. Who had looked at the state of the database and not yet
/// fallen asleep missed the signal.
#[test]
fn a_write_that_panics_leaves_nobody_waiting() {
    explore_with_panics("commit::a_write_that_panics_leaves_nobody_waiting", 2100, || {
        let disk = Disk::default();
        let db = Db::open(PATH, &fragile(&disk, false)).expect("a new database");
        put(&db, false, "first", "first").expect("a write");
        let flusher = {
            let db = db.clone();
            thread(move || _ = db.flush_all())
        };
        write_halves(&db);
        join(vec![flusher]);
        let error = db.put("key", "value").expect_err("the database is poisoned");
        assert_eq!(error.subcode(), SubCode::Poisoned, "{error}");
        assert!(db.get("a").expect("a lookup").is_none());
        let _ = db.close();
    });
}

/// Writers who insert side by side: each is acknowledged when all before it are in, and reads what
/// it wrote.
#[test]
fn writers_write_side_by_side() {
    explore("commit::writers_write_side_by_side", 600, || {
        let (_, db) = open(&[]);
        let writers = threads(4, &db, |db, writer| {
            let key = writer.to_string();
            for n in 1..=3 {
                put(db, (n + writer) % 4 == 0, &key, &n.to_string()).expect("a write");
                assert_eq!(get(db, &key), n as u64);
            }
        });
        join(writers);
        assert_eq!(db.latest_sequence_number(), 12);
        db.close().expect("a clean close");
    });
}

/// A reader whose snapshot had seen a later write would find an earlier one appear.
#[test]
fn what_a_snapshot_sees_does_not_change() {
    explore("commit::what_a_snapshot_sees_does_not_change", 600, || {
        let (_, db) = open(&[]);
        let writers = threads(2, &db, |db, writer| {
            for n in 1..=3 {
                put(db, false, &writer.to_string(), &n.to_string()).expect("a write");
            }
        });
        let reader = {
            let db = db.clone();
            thread(move || {
                for _ in 0..4 {
                    let options =
                        ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
                    let default = db.default_column_family();
                    let seen = ["0", "1", "0", "1"]
                        .map(|key| number(db.get_with(&options, default, key).expect("a lookup")));
                    assert_eq!(seen[..2], seen[2..]);
                }
            })
        };
        join(writers.into_iter().chain([reader]).collect());
        db.close().expect("a clean close");
    });
}

/// Memtables are switched and flushed while others write: what is still being inserted is in the
/// table.
#[test]
fn a_switch_waits_for_who_is_inserting() {
    explore("commit::a_switch_waits_for_who_is_inserting", 600, || {
        let (_, db) = open(&[]);
        let flusher = {
            let db = db.clone();
            thread(move || (0..3).for_each(|_| db.flush_all().expect("a flush")))
        };
        let writers = threads(3, &db, |db, writer| {
            for n in 0..3 {
                let key = format!("{writer} {n}");
                write(db, false, &[(db.default_column_family(), &key, "1")]).expect("a write");
            }
        });
        join(writers.into_iter().chain([flusher]).collect());
        db.flush_all().expect("a flush");
        let found = scan(&db, db.default_column_family(), &ReadOptions::default()).expect("a scan");
        assert_eq!(found.len(), 9, "a write is lost: {found:?}");
        db.close().expect("a clean close");
    });
}

/// A writer's comparator panics: those who come behind it are not acknowledged, and do not wait for
/// ever. What was acknowledged is found, also after the comparator was mended.
#[test]
fn behind_a_write_that_panics_nothing_is_acknowledged() {
    explore_with_panics("commit::behind_a_write_that_panics_nothing_is_acknowledged", 900, || {
        let disk = Disk::default();
        let db = Db::open(PATH, &fragile(&disk, false)).expect("a new database");
        put(&db, false, "first", "first").expect("a write");
        let writers = threads(4, &db, |db, writer| {
            if writer == 0 {
                write_halves(db);
                return Vec::new();
            }
            let mut acknowledged = Vec::new();
            for n in 0..3 {
                let value = format!("{n} of {writer}");
                match put(db, writer == 1, &value, &value) {
                    Ok(()) => {
                        assert_eq!(acknowledged.len(), n, "a poisoned database takes nothing");
                        acknowledged.push(value);
                    }
                    Err(error) => assert_eq!(error.subcode(), SubCode::Poisoned, "{error}"),
                }
            }
            acknowledged
        });
        let acknowledged = join(writers).concat();
        let error = db.put("key", "value").expect_err("the database is poisoned");
        assert_eq!(error.subcode(), SubCode::Poisoned, "{error}");
        let found = |db: &Db, key: &str| db.get(key).expect("a lookup").is_some();
        assert!(acknowledged.iter().all(|key| found(&db, key)), "{acknowledged:?}");
        assert!(!found(&db, "a"), "half of a batch is seen");
        let _ = db.close();
        drop(db);
        let db = Db::open(PATH, &fragile(&disk, true)).expect("it opens again");
        assert!(acknowledged.iter().all(|key| found(&db, key)), "{acknowledged:?}");
        assert_eq!(found(&db, "a"), found(&db, "fragile"), "half of a batch is found");
    });
}
