//! Memory that changes by itself: operations of batches and entries of memtables that have
//! checksums.

use crate::base::{Code, SubCode};
use crate::batch::WriteBatch;
use crate::batch::protection::flips::find_after;
use crate::db::handle::Db;
use crate::env::Env;
use crate::memtable::protection::flips::flip_next;
use crate::options::{MemTableFactory, Options, ProtectionBytes, ReadOptions, WriteOptions};

fn open(factory: MemTableFactory, protection: ProtectionBytes) -> Db {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.cf.memtable_factory = factory;
    options.cf.memtable_protection_bytes_per_key = protection;
    Db::open("/db", &options).expect("a database")
}

const FACTORIES: [MemTableFactory; 3] =
    [MemTableFactory::BTree, MemTableFactory::SkipList, MemTableFactory::Vector];

#[test]
fn a_changed_entry_is_corruption_to_reads_and_to_the_flush() {
    for factory in FACTORIES {
        let db = open(factory, ProtectionBytes::Eight);
        db.put("good", "1").expect("a put");
        flip_next();
        db.put("bad", "2").expect("nobody has looked yet");
        assert_eq!(db.get("good").expect("a read").expect("a value"), "1");
        let error = db.get("bad").expect_err("memory has changed");
        assert_eq!(error.code(), Code::Corruption);
        assert!(error.to_string().contains("memtable_protection_bytes_per_key"), "{error}");
        let found = db.multi_get(&["bad", "good"]);
        assert!(found[0].is_err() && found[1].is_ok());
        let mut iter = db.iter(&ReadOptions::default()).expect("an iterator");
        iter.seek_to_first();
        assert!(!iter.valid() && iter.status().is_err());
        let error = db.flush_all().expect_err("what is flushed is looked at");
        assert_eq!(error.code(), Code::Corruption);
        assert!(db.put("more", "3").is_err(), "the entry is in the WAL alone");
    }
}

#[test]
fn what_has_not_changed_is_flushed_without_its_checksums() {
    for bytes in [ProtectionBytes::One, ProtectionBytes::Two, ProtectionBytes::Four] {
        let db = open(MemTableFactory::BTree, bytes);
        db.put("a", "1").expect("a put");
        db.delete("b").expect("a deletion");
        db.delete_range("c", "d").expect("a deletion");
        db.flush_all().expect("a flush");
        assert_eq!(db.get("a").expect("a read").expect("a value"), "1");
        assert!(db.verify(|_| {}).faults.is_empty());
    }
}

const PROTECTED: WriteOptions = WriteOptions { protection_bytes_per_key: 8, ..WriteOptions::new() };

fn batch() -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put("a", "1").expect("an operation");
    batch.delete("b").expect("an operation");
    batch
}

#[test]
fn a_batch_that_changes_before_it_is_logged_is_refused() {
    let db = open(MemTableFactory::BTree, ProtectionBytes::None);
    find_after(0);
    let error = db.write_with(&PROTECTED, batch()).expect_err("memory has changed");
    assert_eq!(error.code(), Code::Corruption);
    assert!(db.get("a").expect("a read").is_none());
    db.write_with(&PROTECTED, batch()).expect("the next is sound");
    assert_eq!(db.get("a").expect("a read").expect("a value"), "1");
    let odd = WriteOptions { protection_bytes_per_key: 4, ..WriteOptions::new() };
    let error = db.write_with(&odd, batch()).expect_err("0 or 8");
    assert_eq!(error.code(), Code::InvalidArgument);
}

/// What is logged comes back with the next opening.
#[test]
fn a_batch_that_changes_behind_the_log_poisons() {
    let env = Env::memory();
    let options = |env: &Env| {
        let mut options = Options { env: env.clone(), ..Options::default() };
        options.create_if_missing = true;
        options
    };
    let db = Db::open("/db", &options(&env)).expect("a database");
    find_after(1);
    let error = db.write_with(&PROTECTED, batch()).expect_err("memory has changed");
    assert_eq!(error.code(), Code::Corruption);
    let error = db.put("more", "1").expect_err("a memtable lacks what the log has");
    assert_eq!(error.subcode(), SubCode::Poisoned);
    drop(db);
    let db = Db::open("/db", &options(&env)).expect("a database");
    assert_eq!(db.get("a").expect("a read").expect("a value"), "1");
}

/// Large values are replaced by their addresses on the way.
#[test]
fn batches_with_large_values_are_protected() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.set("enable_blob_files", "true").expect("an option");
    options.set("blob_write_mode", "commit").expect("an option");
    let db = Db::open("/db", &options).expect("a database");
    let large = vec![b'x'; 1 << 20];
    let mut batch = batch();
    batch.protect();
    batch.put("large", &large).expect("an operation");
    db.write_with(&WriteOptions::new(), batch.clone()).expect("a write");
    assert_eq!(db.get("large").expect("a read").expect("a value"), large);
    // Before its values are separated, before it is logged, and before it is inserted.
    for verification in 0..4 {
        let db = open(MemTableFactory::BTree, ProtectionBytes::None);
        find_after(verification);
        let outcome = db.write_with(&PROTECTED, batch.clone());
        assert_eq!(outcome.is_err(), verification < 3, "{verification}");
        find_after(usize::MAX);
    }
}
