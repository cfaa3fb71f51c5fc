//! Versions: readers pin one and read at their leisure, while flushes and compactions install
//! others and remove files. The disk fails a story that reads a removed file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flagstone::base::Snapshot;
use flagstone::db::{ColumnFamily, Db};
use flagstone::options::ReadOptions;
use testkit::compare;

use crate::explore::explore;
use crate::world::{close, join, open, thread, write};

/// What the accounts of the two families hold together.
const TOTAL: u64 = 100;

/// Small enough that nearly every write switches a memtable and every second flush is followed by a
/// compaction.
const RESTLESS: &[(&str, &str)] = &[
    ("write_buffer_size", "2048"),
    ("level0_file_num_compaction_trigger", "2"),
    ("target_file_size_base", "1024"),
    ("enable_blob_files", "true"),
    ("min_blob_size", "40"),
    ("blob_commit_min_size", "50"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
    ("block_cache", "2000"),
    ("compressed_secondary_cache_size", "9000"),
];

/// A balance; every other one is long enough for a blob file.
fn balance(amount: u64) -> String {
    let width = if amount.is_multiple_of(2) { 60 } else { 4 };
    format!("{amount:0width$}")
}

fn amount(value: &[u8]) -> u64 {
    std::str::from_utf8(value).expect("digits").parse().expect("a number")
}

fn transfer(db: &Db, other: &ColumnFamily, first: u64) {
    let accounts = [(db.default_column_family(), "a", first), (other, "b", TOTAL - first)];
    let entries = accounts.map(|(family, key, amount)| (family, key, balance(amount)));
    let entries = [0, 1].map(|n| (entries[n].0, entries[n].1, &*entries[n].2));
    write(db, first.is_multiple_of(5), &entries).expect("a write");
}

/// The sum of both accounts, by lookups and by scans in both directions.
fn audit(db: &Db, other: &ColumnFamily, snapshot: &Snapshot) -> (u64, u64) {
    let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
    let families = [(db.default_column_family(), "a"), (other, "b")];
    let found = families.map(|(family, key)| {
        let value = db.get_with(&options, family, key).expect("a lookup");
        let forward = compare::scan(db, family, &options).expect("a scan");
        let back = compare::scan_back(db, family, &options).expect("a scan back");
        assert_eq!(forward, back);
        let scanned =
            forward.iter().find(|(found, _)| found == key.as_bytes()).map(|(_, value)| &value[..]);
        assert_eq!(value.as_deref(), scanned, "a lookup and a scan");
        value.map_or(0, |value| amount(&value))
    });
    (found[0], found[1])
}

/// Money is neither made nor lost at any moment, and a snapshot does not move.
#[test]
fn money_is_neither_made_nor_lost() {
    explore("versions::money_is_neither_made_nor_lost", 200, || {
        let (disk, db) = open(RESTLESS);
        let other = db
            .create_column_family("other", &db.default_column_family().options())
            .expect("a family");
        transfer(&db, &other, 50);
        let writer = {
            let (db, other) = (db.clone(), other.clone());
            thread(move || {
                [10, 21, 42, 77].into_iter().for_each(|first| transfer(&db, &other, first))
            })
        };
        let disturber = {
            let (db, other) = (db.clone(), other.clone());
            thread(move || {
                db.flush(&other, &Default::default()).expect("a flush");
                db.compact_range(&other, None, None, &Default::default()).expect("a compaction");
                db.flush_all().expect("a flush");
                db.compact_range(db.default_column_family(), None, None, &Default::default())
                    .expect("a compaction");
            })
        };
        let auditor = {
            let (db, other) = (db.clone(), other.clone());
            thread(move || {
                let kept = db.snapshot();
                let then = audit(&db, &other, &kept);
                for _ in 0..2 {
                    let now = audit(&db, &other, &db.snapshot());
                    assert_eq!(now.0 + now.1, TOTAL, "{now:?}");
                }
                assert_eq!(audit(&db, &other, &kept), then, "a snapshot moved");
            })
        };
        join(vec![writer, disturber, auditor]);
        close(&disk, &db);
    });
}

/// An iterator reads what it pinned, whatever becomes of the files meanwhile.
#[test]
fn an_iterator_reads_what_it_pinned() {
    explore("versions::an_iterator_reads_what_it_pinned", 200, || {
        let (disk, db) = open(RESTLESS);
        let default = db.default_column_family().clone();
        for n in 0..6 {
            write(&db, false, &[(&default, &format!("key {n}"), &balance(n))]).expect("a write");
        }
        let reader = {
            let db = db.clone();
            thread(move || {
                let mut iter = db.iter(&ReadOptions::default()).expect("an iterator");
                let mut rounds = Vec::new();
                for _ in 0..2 {
                    let mut round = Vec::new();
                    iter.seek_to_first();
                    while iter.valid() {
                        round.push((iter.key().to_vec(), iter.value().expect("a value").to_vec()));
                        iter.next();
                    }
                    iter.status().expect("no error");
                    rounds.push(round);
                }
                assert_eq!(rounds[0], rounds[1], "an iterator moved");
                assert_eq!(rounds[0].len(), 6, "all that was there before");
            })
        };
        let writer = {
            let (db, default) = (db.clone(), default.clone());
            thread(move || {
                for n in 0..6 {
                    write(&db, false, &[(&default, &format!("key {n}"), &balance(n + 100))])
                        .expect("a write");
                }
                db.flush_all().expect("a flush");
                db.compact_range(&default, None, None, &Default::default()).expect("a compaction");
            })
        };
        join(vec![reader, writer]);
        close(&disk, &db);
    });
}

/// A snapshot is taken while a flush asks which snapshots there are: what it sees is not dropped as
/// overwritten.
#[test]
fn a_flush_keeps_what_a_new_snapshot_sees() {
    explore("versions::a_flush_keeps_what_a_new_snapshot_sees", 300, || {
        let (_, db) = open(&[("write_buffer_size", "2048")]);
        let default = db.default_column_family().clone();
        write(&db, false, &[(&default, "key", "0")]).expect("a write");
        let writer = {
            let db = db.clone();
            thread(move || {
                for n in 1..5 {
                    let family = db.default_column_family();
                    write(&db, n == 3, &[(family, "key", &n.to_string())]).expect("a write");
                }
            })
        };
        let flusher = {
            let db = db.clone();
            thread(move || (0..2).for_each(|_| db.flush_all().expect("a flush")))
        };
        let readers = (0..2).map(|_| {
            let (db, default) = (db.clone(), default.clone());
            thread(move || {
                let options =
                    ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
                let read = || {
                    db.get_with(&options, &default, "key")
                        .expect("a lookup")
                        .map(|value| value.to_vec())
                };
                let first = read();
                assert!(first.is_some(), "it was there from the beginning");
                for _ in 0..3 {
                    assert_eq!(read(), first, "a snapshot moved");
                }
            })
        });
        let threads: Vec<_> = readers.chain([writer, flusher]).collect();
        join(threads);
        db.close().expect("a clean close");
    });
}

/// The same in as few steps as can be, so that more of all orders are told: each reader takes one
/// snapshot after the other, while a key is overwritten and flushed.
#[test]
fn a_flush_keeps_what_snapshots_beside_it_see() {
    explore("versions::a_flush_keeps_what_snapshots_beside_it_see", 2000, || {
        let (_, db) = open(&[("write_buffer_size", "65536"), ("disable_auto_compactions", "true")]);
        let default = db.default_column_family().clone();
        write(&db, false, &[(&default, "key", "0")]).expect("a write");
        let reader = {
            let (db, default) = (db.clone(), default.clone());
            thread(move || {
                for _ in 0..4 {
                    let options =
                        ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
                    let found = db.get_with(&options, &default, "key").expect("a lookup");
                    assert!(
                        found.is_some(),
                        "a snapshot moved: the key was there from the beginning"
                    );
                }
            })
        };
        for n in 1..3 {
            write(&db, false, &[(&default, "key", &n.to_string())]).expect("a write");
            db.flush_all().expect("a flush");
        }
        join(vec![reader]);
        db.close().expect("a clean close");
    });
}

/// Flushes of several memtables run at once, and what is newer does not come into the tree first: a
/// reader would find what is older in a memtable before it.
#[test]
fn flushes_at_once_do_not_turn_time_back() {
    explore("versions::flushes_at_once_do_not_turn_time_back", 300, || {
        let changes = [
            ("write_buffer_size", "1024"),
            ("max_write_buffer_number", "6"),
            ("max_background_jobs", "4"),
        ];
        let (disk, db) = open(&changes);
        // Two of them fill a memtable.
        let padded = |n: u64| format!("{n:0600}");
        let default = db.default_column_family().clone();
        let written = Arc::new(AtomicU64::new(0));
        write(&db, false, &[(&default, "key", &padded(0))]).expect("a write");
        let writer = {
            let (db, default, written) = (db.clone(), default.clone(), written.clone());
            thread(move || {
                for n in 1..8 {
                    write(&db, false, &[(&default, "key", &padded(n))]).expect("a write");
                    written.store(n, Ordering::SeqCst);
                }
            })
        };
        let reader = {
            let (db, written) = (db.clone(), written.clone());
            thread(move || {
                for _ in 0..12 {
                    let least = written.load(Ordering::SeqCst);
                    let found = amount(&db.get("key").expect("a lookup").expect("it is there"));
                    assert!(found >= least, "{found} was found after {least} had been written");
                }
            })
        };
        join(vec![writer, reader]);
        close(&disk, &db);
    });
}

/// A key that is overwritten again and again is found by every reader, however versions are swapped
/// underneath: a reader that took the sequence number first and the version afterwards would miss
/// it, for a flush keeps the newest only.
fn an_overwritten_key_is_there(look: fn(&Db) -> Option<u64>) {
    let (disk, db) = open(&[("write_buffer_size", "65536"), ("disable_auto_compactions", "true")]);
    let default = db.default_column_family().clone();
    write(&db, false, &[(&default, "key", "0")]).expect("a write");
    let writer = {
        let db = db.clone();
        thread(move || {
            for n in 1..4 {
                write(&db, false, &[(&default, "key", &n.to_string())]).expect("a write");
                db.flush_all().expect("a flush");
                db.compact_range(&default, None, None, &Default::default()).expect("a compaction");
            }
        })
    };
    let readers = (0..2).map(|_| {
        let db = db.clone();
        thread(move || {
            let mut before = 0;
            for _ in 0..6 {
                let now = look(&db).expect("it is always there");
                assert!(now >= before, "time goes on");
                before = now;
            }
        })
    });
    let threads: Vec<_> = readers.chain([writer]).collect();
    join(threads);
    close(&disk, &db);
}

#[test]
fn lookups_find_an_overwritten_key() {
    explore("versions::lookups_find_an_overwritten_key", 3000, || {
        an_overwritten_key_is_there(|db| Some(amount(&db.get("key").expect("a lookup")?)));
    });
}

#[test]
fn joint_lookups_find_an_overwritten_key() {
    explore("versions::joint_lookups_find_an_overwritten_key", 3000, || {
        an_overwritten_key_is_there(|db| {
            Some(amount(db.multi_get(&["key"]).remove(0).expect("a lookup").as_ref()?))
        });
    });
}

#[test]
fn scans_find_an_overwritten_key() {
    explore("versions::scans_find_an_overwritten_key", 3000, || {
        an_overwritten_key_is_there(|db| {
            let family = db.default_column_family();
            let found = compare::scan(db, family, &ReadOptions::default()).expect("a scan");
            Some(amount(&found.first()?.1))
        });
    });
}

/// Two compact the same keys by hand, a third changes options, so that workers come and go, while
/// somebody writes; a value that was read stays as it was, whatever is evicted and removed.
#[test]
fn two_compact_while_options_change() {
    explore("versions::two_compact_while_options_change", 100, || {
        let (disk, db) = open(RESTLESS);
        let default = db.default_column_family().clone();
        for n in 0..3 {
            write(&db, false, &[(&default, "held", &balance(n)), (&default, "other", "1")])
                .expect("a write");
        }
        let compactors = (0..2).map(|_| {
            let (db, default) = (db.clone(), default.clone());
            thread(move || {
                let held = db.get("held").expect("a lookup").expect("it was written");
                let copy = held.to_vec();
                db.compact_range(&default, None, None, &Default::default()).expect("a compaction");
                assert_eq!(*held, copy, "a value that was read");
            })
        });
        let changer = {
            let (db, default) = (db.clone(), default.clone());
            thread(move || {
                db.set_db_options(&[("max_background_jobs", "3")]).expect("a change");
                db.set_options(&default, &[("disable_auto_compactions", "true")])
                    .expect("a change");
                db.set_db_options(&[("max_background_jobs", "2")]).expect("a change");
                db.set_options(&default, &[("disable_auto_compactions", "false")])
                    .expect("a change");
            })
        };
        let writer = {
            let (db, default) = (db.clone(), default.clone());
            thread(move || {
                for n in 3..7 {
                    write(&db, n == 4, &[(&default, "held", &balance(n))]).expect("a write");
                }
            })
        };
        let threads: Vec<_> = compactors.chain([changer, writer]).collect();
        join(threads);
        assert_eq!(amount(&db.get("held").expect("a lookup").expect("it was written")), 6);
        close(&disk, &db);
    });
}
