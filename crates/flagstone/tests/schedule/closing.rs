//! Closing while others still work: every call returns, nothing panics, nothing acknowledged is
//! lost.

use std::path::Path;
use std::sync::Arc;

use flagstone::base::Code;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::FileSystem;
use flagstone::options::{ReadOptions, WriteOptions, load_latest};
use testkit::{QuotaFs, compare};

use crate::explore::explore;
use crate::world::{Disk, PATH, decide, join, open, options, put, thread, threads};

const RESTLESS: &[(&str, &str)] =
    &[("write_buffer_size", "2048"), ("level0_file_num_compaction_trigger", "2")];

#[test]
fn closing_while_others_work() {
    explore("closing::closing_while_others_work", 300, || {
        let (disk, db) = open(RESTLESS);
        put(&db, false, "first", "first").expect("a write");
        let writers = threads(2, &db, |db, writer| {
            let write = |n: usize| {
                let key = format!("{n} of {writer}");
                let written = put(db, n % 2 == writer, &key, &key);
                if let Err(error) = &written {
                    assert_eq!(error.code(), Code::ShutdownInProgress, "{error}");
                }
                (key, written.is_ok())
            };
            (0..4).map(write).collect::<Vec<_>>()
        });
        let disturber = {
            let db = db.clone();
            thread(move || {
                let flushed = db.flush_all();
                let family = db.default_column_family();
                let compacted = db.compact_range(family, None, None, &Default::default());
                for outcome in [flushed, compacted, db.sync_wal(), db.wait_for_compactions()] {
                    if let Err(error) = outcome {
                        assert_eq!(error.code(), Code::ShutdownInProgress, "{error}");
                    }
                }
                Vec::new()
            })
        };
        let reader = {
            let db = db.clone();
            thread(move || {
                let mut iter = db.iter(&ReadOptions::default()).expect("reads go on after closing");
                iter.seek_to_first();
                while iter.valid() {
                    let value = iter.value().expect("a value").to_vec();
                    assert_eq!(iter.key(), value);
                    iter.next();
                }
                iter.status().expect("no error");
                Vec::new()
            })
        };
        let closer = {
            let db = db.clone();
            thread(move || {
                db.close().expect("a clean close");
                Vec::new()
            })
        };
        let threads: Vec<_> = writers.into_iter().chain([disturber, reader, closer]).collect();
        let answered: Vec<(String, bool)> = join(threads).into_iter().flatten().collect();
        drop(db);

        let db = Db::open(PATH, &options(&disk, RESTLESS)).expect("it opens again");
        for (key, is_acknowledged) in answered {
            let is_there = db.get(&key).expect("a lookup").is_some();
            assert_eq!(is_there, is_acknowledged, "{key}: acknowledged, or refused");
        }
        compare::check_files(&db);
    });
}

/// What is written without the log while somebody closes is refused or flushed. Closing flushed
/// once, and what came after that and before its end was acknowledged and lost; or, as a large
/// value with its address in the log alone, was not readable by RocksDB.
#[test]
fn what_is_unlogged_is_refused_or_flushed() {
    explore("closing::what_is_unlogged_is_refused_or_flushed", 300, || {
        let (disk, db) = open(RESTLESS);
        let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
        let write = |db: &Db, key: &str| {
            let mut batch = WriteBatch::new();
            batch.put(key.as_bytes(), key.as_bytes()).expect("it is small");
            db.write_with(&unlogged, batch)
        };
        write(&db, "first").expect("a write");
        let closer = {
            let db = db.clone();
            thread(move || db.close().expect("a clean close"))
        };
        let mut acknowledged = Vec::new();
        for n in 0..6 {
            let key = format!("key {n}");
            match write(&db, &key) {
                Ok(()) => acknowledged.push(key),
                Err(error) => assert_eq!(error.code(), Code::ShutdownInProgress, "{error}"),
            }
        }
        join(vec![closer]);
        drop(db);
        let db = Db::open(PATH, &options(&disk, RESTLESS)).expect("it opens again");
        for key in acknowledged {
            assert!(db.get(&key).expect("a lookup").is_some(), "{key} was acknowledged");
        }
    });
}

/// Two close at once, and the handle is dropped by a third.
#[test]
fn closing_twice() {
    explore("closing::closing_twice", 300, || {
        let (disk, db) = open(RESTLESS);
        put(&db, false, "key", "value").expect("a write");
        let closers = threads(2, &db, |db, _| db.close().expect("a clean close"));
        drop(db);
        join(closers);
        let db = Db::open(PATH, &options(&disk, RESTLESS)).expect("it opens again");
        assert!(db.get("key").expect("a lookup").is_some());
    });
}

/// When a close returns, each checkpoint beside it is complete or gone: another process may open
/// the directory then. A checkpoint checks that the database is open and is counted under one lock;
/// otherwise a close between the two does not wait for it.
#[test]
fn a_close_waits_for_the_checkpoint_beside_it() {
    const COPIERS: usize = 4;
    explore("closing::a_close_waits_for_the_checkpoint_beside_it", 900, || {
        let (disk, db) = open(RESTLESS);
        put(&db, false, "key", "value").expect("a write");
        db.close().expect("a clean close");
        // One that is open for reading only flushes nothing: the calls begin closely together.
        let db = Db::open_read_only(PATH, &options(&disk, RESTLESS)).expect("it opens again");
        let copy = |copier| format!("/copy {copier}");
        let copiers = threads(COPIERS, &db, move |db, copier| db.checkpoint(copy(copier)));
        db.close().expect("a clean close");
        let files =
            || (0..COPIERS).map(|copier| disk.list(Path::new(&copy(copier))).unwrap_or_default());
        let left: Vec<_> = files().collect();
        let outcomes = join(copiers);
        assert!(
            files().eq(left.iter().cloned()),
            "files of checkpoints came or went after the close"
        );
        for (outcome, left) in outcomes.into_iter().zip(left) {
            match outcome {
                Ok(()) => assert!(left.contains(&"CURRENT".to_string()), "{left:?}"),
                Err(error) => assert_eq!(error.code(), Code::ShutdownInProgress, "{error}"),
            }
        }
    });
}

/// What was read lives on after the database is closed: an iterator, a snapshot and a value are let
/// go while others still close, and in any order.
#[test]
fn what_was_read_outlives_the_database() {
    explore("closing::what_was_read_outlives_the_database", 300, || {
        let (disk, db) = open(RESTLESS);
        for n in 0..4 {
            put(&db, false, &format!("key {n}"), "value").expect("a write");
        }
        let mut iter = db.iter(&ReadOptions::default()).expect("an iterator");
        let snapshot = db.snapshot();
        let value = db.get("key 0").expect("a lookup").expect("it was written");
        let reader = thread(move || {
            iter.seek_to_first();
            let mut met = 0;
            while iter.valid() {
                met += 1;
                iter.next();
            }
            iter.status().expect("no error");
            assert_eq!((met, &*value), (4, &b"value"[..]));
            drop(snapshot);
        });
        let compactor = {
            let db = db.clone();
            thread(move || {
                let _ =
                    db.compact_range(db.default_column_family(), None, None, &Default::default());
            })
        };
        let closer = {
            let db = db.clone();
            thread(move || db.close().expect("a clean close"))
        };
        drop(db);
        join(vec![reader, compactor, closer]);
        let db = Db::open(PATH, &options(&disk, RESTLESS)).expect("it opens again");
        assert!(db.get("key 3").expect("a lookup").is_some());
    });
}

/// A family is made while a full disk has no room for the OPTIONS file, and there is room when
/// somebody closes: the file is written then. It was noted as due when the attempt was over, and
/// who closed between the two had not heard of it.
#[test]
fn families_made_on_a_full_disk_are_in_the_options_file() {
    explore("closing::families_made_on_a_full_disk_are_in_the_options_file", 300, || {
        let disk = Disk::default();
        let fs = QuotaFs::new(Arc::new(disk.clone()), Path::new(PATH), u64::MAX)
            .expect("an empty directory");
        let mut options = options(&disk, &[("reserved_disk_space", "0")]);
        options.env = options.env.with_fs(Arc::new(fs.clone()));
        let db = Db::open(PATH, &options).expect("a new database");
        // For the MANIFEST's record there is room.
        fs.set_limit(fs.used() + 1000);
        let maker = {
            let (db, family) = (db.clone(), options.cf.clone());
            thread(move || match db.create_column_family("made", &family) {
                Ok(_) => true,
                Err(error) => {
                    assert_eq!(error.code(), Code::ShutdownInProgress, "{error}");
                    false
                }
            })
        };
        // The maker comes as far as to its OPTIONS file, or not.
        (0..30).for_each(|_| decide());
        fs.set_limit(u64::MAX);
        db.close().expect("a clean close");
        let is_made = join(vec![maker]).contains(&true);
        let loaded =
            load_latest(&options.env, Path::new(PATH)).expect("it reads").expect("there is one");
        let is_named = loaded.families.iter().any(|(name, _)| name == "made");
        assert!(is_named || !is_made, "a family that was made has its options recorded");
    });
}
