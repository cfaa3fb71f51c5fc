//! Column families that come and go while others write, and checkpoints while files are removed.

use flagstone::base::Code;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::options::{ColumnFamilyOptions, ReadOptions, WriteOptions};
use testkit::compare;

use crate::explore::explore;
use crate::world::{PATH, close, join, open, options, put, thread, write};

/// A family is created, written to, and dropped under its writers' hands. Writes to others go on; a
/// batch that names it is taken whole or not at all.
#[test]
fn a_family_is_dropped_under_its_writers() {
    explore("families::a_family_is_dropped_under_its_writers", 300, || {
        let (disk, db) = open(&[("write_buffer_size", "2048")]);
        let short = db
            .create_column_family("short", &ColumnFamilyOptions::default())
            .expect("a new family");
        let writers = (0..2).map(|writer| {
            let (db, short) = (db.clone(), short.clone());
            thread(move || {
                let mut taken = 0;
                for n in 1..=3 {
                    let value = n.to_string();
                    let key = format!("writer {writer}");
                    let entries =
                        [(db.default_column_family(), &*key, &*value), (&short, &key, &value)];
                    match write(&db, writer == 0, &entries) {
                        Ok(()) => taken = n,
                        Err(error) => assert_eq!(error.code(), Code::InvalidArgument, "{error}"),
                    }
                }
                taken
            })
        });
        let flusher = {
            let db = db.clone();
            thread(move || {
                db.flush_all().expect("a flush");
                0
            })
        };
        let dropper = {
            let (db, short) = (db.clone(), short.clone());
            thread(move || {
                db.drop_column_family(&short).expect("it may be dropped");
                let again = db.create_column_family("short", &ColumnFamilyOptions::default());
                let again = again.expect("the name is free");
                write(&db, true, &[(&again, "key", "of the second")]).expect("a write");
                0
            })
        };
        let reader = {
            let (db, short) = (db.clone(), short.clone());
            thread(move || {
                for _ in 0..2 {
                    let found = compare::scan(&db, &short, &ReadOptions::default());
                    found.expect("a dropped family is read through its handle");
                }
                0
            })
        };
        let threads: Vec<_> = writers.chain([flusher, dropper, reader]).collect();
        let taken = join(threads);
        drop(short);
        check_families(&db, &taken);
        db.close().expect("a clean close");
        drop(db);
        let restarted = options(&disk, &[]);
        let listed = [("default", restarted.cf.clone()), ("short", restarted.cf.clone())];
        let db = Db::open_with_families(PATH, &restarted, &listed).expect("it opens again");
        check_families(&db, &taken);
    });
}

fn check_families(db: &Db, taken: &[u64]) {
    for (writer, expected) in taken[..2].iter().enumerate() {
        let found = db.get(format!("writer {writer}")).expect("a lookup");
        let found = found.map_or(0, |value| {
            std::str::from_utf8(&value).expect("digits").parse().expect("a number")
        });
        assert_eq!(found, *expected, "writer {writer}");
    }
    let second = db.column_family("short").expect("the second of that name");
    let found = compare::scan(db, &second, &ReadOptions::default()).expect("a scan");
    assert_eq!(found, [(b"key".to_vec(), b"of the second".to_vec())]);
}

/// A checkpoint is made while others write, flush and compact: it holds what was acknowledged
/// before it began, whole batches only, and all its files; the original removes what it held back
/// for its sake.
#[test]
fn a_checkpoint_while_files_are_removed() {
    explore("families::a_checkpoint_while_files_are_removed", 300, || {
        const COPY: &str = "/copy";
        let restless = [("write_buffer_size", "2048"), ("level0_file_num_compaction_trigger", "2")];
        let (disk, db) = open(&restless);
        let default = db.default_column_family().clone();
        write(&db, false, &[(&default, "a", "0"), (&default, "b", "0")]).expect("a write");
        db.flush_all().expect("a flush");
        let writer = {
            let (db, default) = (db.clone(), default.clone());
            thread(move || {
                for n in 1..4 {
                    let value = n.to_string();
                    write(&db, n == 2, &[(&default, "a", &value), (&default, "b", &value)])
                        .expect("a write");
                    db.flush_all().expect("a flush");
                }
                db.compact_range(&default, None, None, &Default::default()).expect("a compaction");
            })
        };
        let copier = {
            let db = db.clone();
            thread(move || {
                put(&db, false, "before", "the copy").expect("a write");
                db.checkpoint(COPY).expect("a checkpoint");
            })
        };
        join(vec![writer, copier]);
        close(&disk, &db);

        let copy = Db::open(COPY, &options(&disk, &[])).expect("the copy opens");
        compare::check_files(&copy);
        assert!(
            copy.get("before").expect("a lookup").is_some(),
            "acknowledged before the copy began"
        );
        let read = |key: &str| copy.get(key).expect("a lookup").expect("it was there").to_vec();
        assert_eq!(read("a"), read("b"), "whole batches");
    });
}

/// With atomic_flush: writers fill memtables without the WAL, while all are sealed and flushed, one
/// family is dropped and the database is copied. The copy, in which only what was flushed can be,
/// has each batch in all families that it has, or in none.
#[test]
fn families_are_flushed_together_under_their_writers() {
    explore("families::families_are_flushed_together_under_their_writers", 200, || {
        const COPY: &str = "/copy";
        let changes = [("atomic_flush", "true"), ("write_buffer_size", "2048")];
        let (disk, db) = open(&changes);
        let names = ["one", "other", "short"];
        let made = names.map(|name| db.create_column_family(name, &ColumnFamilyOptions::default()));
        let [one, other, short] = made.map(|made| made.expect("a new family"));
        let writers = (0..2).map(|writer| {
            let (db, one, other, short) = (db.clone(), one.clone(), other.clone(), short.clone());
            thread(move || {
                let options = WriteOptions { disable_wal: true, ..WriteOptions::default() };
                for n in 1..=3 {
                    let mut batch = WriteBatch::new();
                    let (key, value) = (format!("writer {writer}"), n.to_string());
                    for family in [db.default_column_family(), &one, &other] {
                        batch
                            .put_cf(family, key.as_bytes(), value.as_bytes())
                            .expect("a small batch");
                    }
                    if n == 2 {
                        batch.put_cf(&short, key.as_bytes(), b"soon gone").expect("a small batch");
                    }
                    let written = db.write_with(&options, batch);
                    assert!(n == 2 || written.is_ok(), "{written:?}");
                }
            })
        });
        let flusher = {
            let db = db.clone();
            thread(move || (0..2).for_each(|_| db.flush_all().expect("a flush")))
        };
        let dropper = {
            let (db, short) = (db.clone(), short.clone());
            thread(move || db.drop_column_family(&short).expect("it may be dropped"))
        };
        let copier = {
            let db = db.clone();
            thread(move || db.checkpoint(COPY).expect("a checkpoint"))
        };
        join(writers.chain([flusher, dropper, copier]).collect());
        // Its tables stay as long as it is held.
        drop(short);
        close(&disk, &db);

        let options = options(&disk, &changes);
        let names = Db::list_column_families(COPY, &options).expect("a list");
        let listed: Vec<_> = names.iter().map(|name| (name.as_str(), options.cf.clone())).collect();
        let copy = Db::open_with_families(COPY, &options, &listed).expect("the copy opens");
        compare::check_files(&copy);
        let entries = ["default", "one", "other"].map(|name| {
            let family = copy.column_family(name).expect("it was not dropped");
            compare::scan(&copy, &family, &ReadOptions::default()).expect("a scan")
        });
        assert!(entries.iter().all(|found| *found == entries[0]), "{entries:?}");
    });
}

/// A family is made while an option of the database changes that all share: both count in the end.
/// Whoever had read the options first, and worked out last what follows from them, left the new one
/// without effect.
#[test]
fn an_option_changes_while_a_family_is_made() {
    explore("families::an_option_changes_while_a_family_is_made", 1000, || {
        let (disk, db) = open(&[("write_buffer_size", "1000000")]);
        let maker = {
            let db = db.clone();
            thread(move || {
                db.create_column_family("another", &ColumnFamilyOptions::default())
                    .expect("a new family");
            })
        };
        let changer = {
            let db = db.clone();
            thread(move || db.set_db_options(&[("max_total_wal_size", "1000")]).expect("a change"))
        };
        join(vec![maker, changer]);
        let long = "value".repeat(200);
        put(&db, false, "key", &long).expect("a write");
        put(&db, false, "key", &long).expect("a write, for which the log is too large");
        db.wait_for_compactions().expect("no failure");
        assert_eq!(db.live_files().len(), 1, "a flush lets go of the log");
        close(&disk, &db);
    });
}
