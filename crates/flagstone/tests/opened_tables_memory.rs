//! What is read to open tables goes back to the system, as it counts it.
//!
//! One story a process, as memory belongs to all of it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]

mod common;

use std::sync::{Barrier, Mutex};

use common::resident;
use flagstone::db::Db;

const TABLES: u32 = 12;

/// The keys of a table: the index has each of them, of 100 bytes that compress well, and each
/// stands in a block of its own.
const KEYS: u32 = 2_000;

fn key_of(table: u32, key: u32) -> Vec<u8> {
    [&[b'k'; 92][..], &table.to_be_bytes(), &key.to_be_bytes()].concat()
}

/// A database whose tables have so many keys, none of them open.
fn closed_tables(compression: &str, keys: u32) -> (tempfile::TempDir, Db) {
    let directory = common::temporary();
    let mut options = common::create();
    for (name, value) in [
        ("compression", compression),
        ("disable_auto_compactions", "true"),
        ("block_based_table_factory", "{block_size=100;no_block_cache=true;filter_policy=nullptr}"),
    ] {
        options.set(name, value).unwrap();
    }
    let db = Db::open(directory.path(), &options).unwrap();
    for table in 0..TABLES {
        (0..keys).for_each(|key| db.put(key_of(table, key), [7; 60]).unwrap());
        db.flush_all().unwrap();
    }
    db.close().unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    (directory, db)
}

/// Opens each table in a thread of its own. All of these are there at once, on any machine: each
/// has memory that the allocator keeps for it.
fn open_all(db: &Db) {
    let (all, turn) = (Barrier::new(TABLES as usize), Mutex::new(()));
    std::thread::scope(|scope| {
        for table in 0..TABLES {
            let (all, turn) = (&all, &turn);
            scope.spawn(move || {
                all.wait();
                let found = {
                    let _turn = turn.lock();
                    db.get(key_of(table, 0)).unwrap().is_some()
                };
                all.wait();
                assert!(found);
            });
        }
    });
    assert_eq!(db.memory_usage().open_tables, u64::from(TABLES));
}

#[test]
fn indexes_that_several_threads_decode_leave_nothing_behind() {
    if !common::pages_are_small() {
        return;
    }
    // What the threads take in any case.
    let (_directory, small) = closed_tables("kNoCompression", 1);
    open_all(&small);
    // Nothing is closed before the end: what that freed would have room for what is looked for.
    let mut opened = Vec::new();
    for compression in ["kNoCompression", "kSnappyCompression"] {
        let (directory, db) = closed_tables(compression, KEYS);
        let before = resident();
        open_all(&db);
        let more = resident().saturating_sub(before);
        let indexes = db.memory_usage().tables as usize;
        println!("{compression}: {more} bytes, {indexes} of them tables");
        assert!(
            more < indexes + (1 << 20),
            "{compression}: {more} bytes, {indexes} of them tables"
        );
        opened.push((directory, db));
    }
    opened.into_iter().for_each(|(_directory, db)| db.close().unwrap());
    small.close().unwrap();
}
