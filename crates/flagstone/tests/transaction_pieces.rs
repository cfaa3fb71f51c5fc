//! Large values that transactions write piece by piece: invisible until the commit, and gone
//! without it, with their files.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::{copy_directory, temporary};
use flagstone::{
    Code, Db, MergeOperator, ReadOptions, SubCode, Transaction, TransactionDb,
    TransactionDbOptions, WriteOptions,
};

const MIB: usize = 1 << 20;

/// Either kind of database.
enum Kind {
    Optimistic(Db),
    Locking(TransactionDb),
}

impl Deref for Kind {
    type Target = Db;

    fn deref(&self) -> &Db {
        match self {
            Self::Optimistic(db) => db,
            Self::Locking(db) => db,
        }
    }
}

struct Joined;

impl MergeOperator for Joined {
    fn name(&self) -> &str {
        "joined"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, more: &[&[u8]]) -> Option<Vec<u8>> {
        Some([&[existing.unwrap_or_default()], more].concat().concat())
    }
}

fn open(path: &Path, locks: bool) -> Kind {
    let builder =
        || Db::builder(path).options(|options| options.cf.merge_operator = Some(Arc::new(Joined)));
    if locks {
        Kind::Locking(builder().open_transaction_db(&TransactionDbOptions::default()).unwrap())
    } else {
        Kind::Optimistic(builder().open().unwrap())
    }
}

/// Tells the story with both kinds of databases.
fn with_both(story: impl Fn(&Path, &dyn Fn(&Path) -> Kind)) {
    for locks in [false, true] {
        let directory = temporary();
        story(directory.path(), &|path| open(path, locks));
    }
}

fn film(seed: u8) -> Vec<u8> {
    (0..2 * MIB + 77).map(|at| (at / 1000) as u8 ^ seed).collect()
}

fn put_film(transaction: &mut Transaction, db: &Db, key: &str, seed: u8) {
    let mut writer = transaction.put_in_pieces(db, key).unwrap();
    film(seed).chunks(300_000).for_each(|piece| writer.append(piece).unwrap());
    assert_eq!(writer.size(), film(seed).len() as u64);
    writer.finish().unwrap();
}

fn blob_files(path: &Path) -> usize {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".blob")).count()
}

fn is_film(db: &Db, key: &str, seed: u8) -> bool {
    db.get(key).unwrap().is_some_and(|value| *value == film(seed)[..])
}

#[test]
fn what_is_streamed_is_seen_by_the_transaction_alone_until_it_is_committed() {
    with_both(|path, open| {
        let db = open(path);
        db.put("film", "an old one").unwrap();
        db.put("z", "last").unwrap();
        let mut transaction = db.begin();
        transaction.put(&db, "a", "1").unwrap();
        put_film(&mut transaction, &db, "film", 1);

        assert_eq!(db.get("film").unwrap().unwrap(), "an old one");
        assert_eq!(*transaction.get(&db, "film").unwrap().unwrap(), film(1)[..]);
        let view = transaction.family(&db).unwrap();
        let mut pieces = view.get_in_pieces("film").unwrap().expect("it was put");
        let mut read = Vec::new();
        while let Some(piece) = pieces.next_piece().unwrap() {
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, film(1));
        let mut cursor = view.cursor(&ReadOptions::default()).unwrap();
        cursor.seek("b");
        assert_eq!(cursor.key(), b"film");
        assert_eq!(cursor.value_in_pieces().unwrap().size(), film(1).len() as u64);
        assert_eq!(cursor.value().unwrap(), film(1));
        cursor.next();
        assert_eq!(cursor.key(), b"z");
        assert_eq!(cursor.value().unwrap(), b"last");
        assert_eq!(cursor.value_in_pieces().unwrap().next_piece().unwrap().unwrap(), "last");
        cursor.prev();
        assert_eq!(cursor.value().unwrap(), film(1));
        let many = view.get_many(&["a", "film", "no"]).unwrap();
        assert_eq!(many[1].as_deref(), Some(&film(1)[..]));

        transaction.commit_with(&WriteOptions { sync: true, ..WriteOptions::default() }).unwrap();
        assert!(is_film(&db, "film", 1) && db.get("a").unwrap().unwrap() == "1");

        // So a process leaves it that is killed now; and so it is after a flush.
        let copy = temporary();
        copy_directory(path, copy.path());
        assert!(is_film(&open(copy.path()), "film", 1));
        db.flush().unwrap();
        assert_eq!(blob_files(path), 1, "it was written once");
        db.close().unwrap();
        assert!(is_film(&open(path), "film", 1));
    });
}

#[test]
fn what_is_not_committed_leaves_no_file() {
    with_both(|path, open| {
        let db = open(path);
        let mut transaction = db.begin();
        put_film(&mut transaction, &db, "kept", 1);
        transaction.set_save_point();
        put_film(&mut transaction, &db, "film", 2);
        assert_eq!(blob_files(path), 2);
        transaction.rollback_to_save_point().unwrap();
        assert_eq!(blob_files(path), 1);
        assert!(transaction.get(&db, "film").unwrap().is_none());
        assert!(transaction.get(&db, "kept").unwrap().is_some());
        transaction.rollback().unwrap();
        assert_eq!(blob_files(path), 0);

        put_film(&mut transaction, &db, "film", 3);
        drop(transaction);
        assert_eq!(blob_files(path), 0);

        let mut transaction = db.begin();
        let mut writer = transaction.put_in_pieces(&db, "film").unwrap();
        writer.append(&film(4)).unwrap();
        drop(writer);
        assert_eq!(blob_files(path), 0);
        transaction.put(&db, "other", "1").unwrap();
        transaction.commit().unwrap();
        assert!(db.get("film").unwrap().is_none() && db.get("other").unwrap().is_some());

        // The process is killed between the last piece and the commit.
        let mut transaction = db.begin();
        put_film(&mut transaction, &db, "film", 5);
        let copy = temporary();
        copy_directory(path, copy.path());
        assert_eq!(blob_files(copy.path()), 1);
        let again = open(copy.path());
        assert!(again.get("film").unwrap().is_none());
        assert_eq!(blob_files(copy.path()), 0, "the next opening removes it");
    });
}

#[test]
fn later_changes_of_the_transaction_lie_over_it() {
    with_both(|path, open| {
        let db = open(path);
        let mut transaction = db.begin();
        for (key, seed) in [("deleted", 1), ("merged", 2), ("replaced", 3), ("twice", 4)] {
            put_film(&mut transaction, &db, key, seed);
        }
        transaction.delete(&db, "deleted").unwrap();
        transaction.merge(&db, "merged", "and more").unwrap();
        transaction.put(&db, "replaced", "short").unwrap();
        put_film(&mut transaction, &db, "twice", 5);
        let check = |get: &dyn Fn(&str) -> Option<Vec<u8>>| {
            assert_eq!(get("deleted"), None);
            assert_eq!(get("merged"), Some([&film(2)[..], b"and more"].concat()));
            assert_eq!(get("replaced"), Some(b"short".to_vec()));
            assert_eq!(get("twice"), Some(film(5)));
        };
        check(&|key| transaction.get(&db, key).unwrap().map(|value| value.to_vec()));
        let view = transaction.family(&db).unwrap();
        let size = |key| view.get_in_pieces(key).unwrap().map(|reader| reader.size());
        assert_eq!(size("merged"), Some(film(2).len() as u64 + 8));
        assert_eq!(size("replaced"), Some(5));
        assert_eq!(size("deleted"), None);
        let entries: Vec<_> = view.iter().map(|entry| entry.unwrap()).collect();
        assert_eq!(entries.len(), 3);
        transaction.commit().unwrap();
        let seen = |key: &str| db.get(key).unwrap().map(|value| value.to_vec());
        check(&seen);
        drop(view);
        db.flush().unwrap();
        check(&seen);
    });
}

#[test]
fn after_a_conflict_it_is_there_still_and_goes_with_the_transaction() {
    let directory = temporary();
    let db = open(directory.path(), false);
    let mut transaction = db.begin();
    put_film(&mut transaction, &db, "film", 1);
    db.put("film", "faster").unwrap();
    assert_eq!(transaction.commit().unwrap_err().code(), Code::Busy);
    assert_eq!(*transaction.get(&db, "film").unwrap().unwrap(), film(1)[..]);
    assert_eq!(blob_files(directory.path()), 1);
    drop(transaction);
    assert_eq!(blob_files(directory.path()), 0);
    assert_eq!(db.get("film").unwrap().unwrap(), "faster");

    let locking = temporary();
    let db = open(locking.path(), true);
    let mut first = db.begin();
    let writer = first.put_in_pieces(&db, "film").unwrap();
    let impatient =
        flagstone::TransactionOptions { lock_timeout: Some(Duration::ZERO), ..Default::default() };
    let refused = db.begin_with(&impatient).put_in_pieces(&db, "film").map(drop).unwrap_err();
    assert_eq!(
        refused.subcode(),
        SubCode::LockTimeout,
        "the key is locked from the first piece on"
    );
    drop(writer);
}

/// The address of a large value means nothing to the next process.
#[test]
fn a_large_one_cannot_be_prepared_and_a_small_one_can() {
    let directory = temporary();
    let Kind::Locking(db) = open(directory.path(), true) else { panic!("it has locks") };
    let mut transaction = db.begin();
    transaction.set_name("large").unwrap();
    put_film(&mut transaction, &db, "film", 1);
    assert_eq!(transaction.prepare().unwrap_err().code(), Code::NotSupported);
    transaction.commit().unwrap();
    assert!(is_film(&db, "film", 1));

    let mut transaction = db.begin();
    transaction.set_name("small").unwrap();
    let mut writer = transaction.put_in_pieces(&db, "clip").unwrap();
    writer.append(b"clip").unwrap();
    writer.finish().unwrap();
    transaction.prepare().unwrap();
    drop(transaction);
    db.close().unwrap();
    let Kind::Locking(db) = open(directory.path(), true) else { panic!("it has locks") };
    db.prepared_transactions().unwrap()[0].commit().unwrap();
    assert_eq!(db.get("clip").unwrap().unwrap(), "clip");
}
