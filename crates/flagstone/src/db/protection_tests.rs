//! Memory that changes by itself: operations of batches, entries of memtables and blocks of tables
//! that have checksums.

use crate::base::{Code, SubCode};
use crate::batch::WriteBatch;
use crate::batch::protection::flips::find_after;
use crate::db::handle::Db;
use crate::env::Env;
use crate::memtable::protection::flips::flip_next;
use crate::options::{
    CompactRangeOptions, MemTableFactory, Options, ProtectionBytes, ReadOptions, WriteOptions,
};
use crate::sst::protection::flips::flip_next as flip_next_block;

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

/// A database of two tables whose blocks are in memory.
fn open_with_blocks(protection: ProtectionBytes) -> Db {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.cf.block_protection_bytes_per_key = protection;
    options.cf.disable_auto_compactions = true;
    options.cf.table.block_size = 256;
    let db = Db::open("/db", &options).expect("a database");
    for round in 0..2 {
        for number in 0..100 {
            db.put(format!("{number:03}"), format!("{round}")).expect("a put");
        }
        db.flush_all().expect("a flush");
    }
    read_all(&db);
    db
}

fn read_all(db: &Db) {
    let mut iter = db.iter(&ReadOptions::default()).expect("an iterator");
    iter.seek_to_first();
    let mut seen = 0;
    while iter.valid() {
        assert_eq!(iter.value().expect("a value"), b"1");
        seen += 1;
        iter.next();
    }
    iter.status().expect("nothing has changed");
    assert_eq!(seen, 100);
}

fn assert_changed(error: &crate::base::Error) {
    assert_eq!((error.code(), error.subcode()), (Code::Corruption, SubCode::MemoryChanged));
    assert!(error.to_string().contains("block_protection_bytes_per_key"), "{error}");
    assert!(error.path().is_some() && error.offset().is_some(), "{error}");
}

#[test]
fn a_changed_block_is_corruption_once_and_then_read_again() {
    for protection in [ProtectionBytes::One, ProtectionBytes::Four, ProtectionBytes::Eight] {
        let db = open_with_blocks(protection);
        flip_next_block();
        assert_changed(&db.get("007").expect_err("memory has changed"));
        assert_eq!(db.get("007").expect("the file is sound").expect("a value"), "1");
        flip_next_block();
        let found = db.multi_get(&["001", "050"]);
        let failed: Vec<_> = found.iter().filter_map(|value| value.as_ref().err()).collect();
        assert_eq!(failed.len(), 1, "one block has changed");
        assert_changed(failed[0]);
        assert!(db.multi_get(&["001", "050"]).iter().all(Result::is_ok));
        let mut iter = db.iter(&ReadOptions::default()).expect("an iterator");
        flip_next_block();
        iter.seek("020");
        assert!(!iter.valid());
        assert_changed(&iter.status().expect_err("memory has changed"));
        drop(iter);
        flip_next_block();
        let compacted = db.compact_range(
            db.default_column_family(),
            None,
            None,
            &CompactRangeOptions::default(),
        );
        assert_changed(&compacted.expect_err("a compaction reads blocks in memory, too"));
        // Nothing is wrong with the files.
        assert!(db.damaged_files().is_empty());
        read_all(&db);
        db.compact_range(db.default_column_family(), None, None, &Default::default())
            .expect("nothing has changed");
        read_all(&db);
        assert!(db.verify(|_| {}).faults.is_empty());
    }
}

#[test]
fn blocks_are_protected_in_tables_that_are_opened_after_the_option_was_set() {
    let db = open_with_blocks(ProtectionBytes::None);
    flip_next_block();
    read_all(&db);
    let set = [("block_protection_bytes_per_key", "8")];
    db.set_options(db.default_column_family(), &set).expect("the option is live");
    db.put("000", "1").expect("a put");
    db.flush_all().expect("a flush");
    db.compact_range(db.default_column_family(), None, None, &Default::default())
        .expect("a compaction");
    read_all(&db);
    flip_next_block();
    assert_changed(&db.get("007").expect_err("memory has changed"));
}
