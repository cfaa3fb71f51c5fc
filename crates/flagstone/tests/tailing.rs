//! Iterators that show what is written while they are used, and those that skip tables.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::sync::Arc;

use common::create;
use flagstone::base::Code;
use flagstone::db::{Db, Iter};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{CompactRangeOptions, Options, ReadOptions, TableFilter};
use testkit::{Call, FaultFs, Injection, Plan, Sort, steps};

fn open() -> Db {
    let mut options = Options { env: Env::memory(), ..create() };
    options.set("disable_auto_compactions", "true").unwrap();
    Db::open("/db", &options).unwrap()
}

fn tailing() -> ReadOptions {
    ReadOptions { tailing: true, ..ReadOptions::default() }
}

/// The entries from where the iterator stands to the end.
fn rest(iter: &mut Iter) -> Vec<String> {
    std::iter::from_fn(|| iter.next_entry().unwrap())
        .map(|(key, value)| format!("{}={}", key.escape_ascii(), value.escape_ascii()))
        .collect()
}

#[test]
fn a_queue_is_read_while_it_is_written() {
    let db = open();
    let mut iter = db.iter(&tailing()).unwrap();
    let mut seen = Vec::new();
    let mut next = b"".to_vec();
    for round in 0..5 {
        for number in 0..10 {
            db.put(format!("{:03}", round * 10 + number), "job").unwrap();
        }
        match round {
            1 => db.flush_all().unwrap(),
            3 => {
                let all = CompactRangeOptions::default();
                db.compact_range(db.default_column_family(), None, None, &all).unwrap();
            }
            _ => {}
        }
        iter.seek(&next);
        while iter.valid() {
            let key = iter.key().to_vec();
            db.delete(&key).unwrap();
            next = [&key[..], b"\0"].concat();
            seen.push(key);
            iter.next();
        }
        iter.status().unwrap();
    }
    let expected: Vec<_> = (0..50).map(|number| format!("{number:03}").into_bytes()).collect();
    assert_eq!(seen, expected);
    iter.seek_to_first();
    assert!(!iter.valid(), "all are deleted");
}

#[test]
fn each_step_shows_what_is_new() {
    let db = open();
    db.put("a", "1").unwrap();
    db.put("d", "1").unwrap();
    let mut iter = db.iter(&tailing()).unwrap();
    iter.seek_to_first();
    assert_eq!(iter.key(), b"a");
    db.put("b", "2").unwrap();
    db.flush_all().unwrap();
    iter.next();
    assert_eq!(iter.key(), b"b");
    assert_eq!(iter.value().unwrap(), b"2");
    db.put("c", "3").unwrap();
    db.put("d", "3").unwrap();
    assert_eq!(rest(&mut iter), ["b=2", "c=3", "d=3"]);
    assert!(!iter.valid());
    db.put("e", "4").unwrap();
    assert!(!iter.valid(), "at the end only a seek looks again");
    iter.seek("d0");
    assert_eq!(rest(&mut iter), ["e=4"]);
    db.delete_range("a", "e").unwrap();
    iter.seek_to_first();
    assert_eq!(rest(&mut iter), ["e=4"]);
    iter.refresh().unwrap();
    db.put("f", "5").unwrap();
    iter.seek("f");
    assert_eq!(rest(&mut iter), ["f=5"], "it tails on after a refresh");
}

#[test]
fn it_goes_forward_and_has_no_snapshot() {
    let db = open();
    for key in ["a", "b"] {
        db.put(key, "value").unwrap();
    }
    let mut iter = db.iter(&tailing()).unwrap();
    let moves: [fn(&mut Iter); 3] = [
        Iter::seek_to_last,
        |iter| iter.seek_for_prev("b"),
        |iter| {
            iter.seek("b");
            iter.prev();
        },
    ];
    for backwards in moves {
        backwards(&mut iter);
        assert!(!iter.valid());
        assert_eq!(iter.status().unwrap_err().code(), Code::NotSupported);
        iter.seek("b");
        assert_eq!(iter.key(), b"b", "a seek helps");
    }
    let both = ReadOptions { snapshot: Some(db.snapshot()), ..tailing() };
    assert_eq!(db.iter(&both).unwrap_err().code(), Code::InvalidArgument);
}

/// One that went on with what it had would miss writes without a word.
#[test]
fn one_that_cannot_look_again_fails() {
    let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let options = Options { env: steps::world(Arc::new(fs.clone()), 1), ..create() };
    let db = Db::open("/db", &options).unwrap();
    for key in ["a", "b"] {
        db.put(key, "1").unwrap();
    }
    let mut iter = db.iter(&tailing()).unwrap();
    iter.seek_to_first();
    let cannot_open = Plan::Next { call: Call::Open, sort: Sort::Table, injection: Injection::Io };
    // The flush opens its table ahead of readers, which need not succeed.
    fs.plan(cannot_open);
    db.flush_all().unwrap();
    fs.plan(cannot_open);
    iter.next();
    assert!(!iter.valid());
    assert_eq!(iter.status().unwrap_err().code(), Code::IoError);
    iter.seek("b");
    assert_eq!(rest(&mut iter), ["b=1"], "the next seek tries again");
}

/// Three tables: keys with values 0, 1 and 2, in levels 1, 0 and 0.
fn three_tables() -> Db {
    let db = open();
    for round in 0..3 {
        for key in [format!("own{round}"), "shared".to_string()] {
            db.put(key, round.to_string()).unwrap();
        }
        db.flush_all().unwrap();
        if round == 0 {
            let all = CompactRangeOptions::default();
            db.compact_range(db.default_column_family(), None, None, &all).unwrap();
        }
    }
    db
}

#[test]
fn a_filter_skips_tables() {
    let db = three_tables();
    let all = db.properties_of_tables_by_level(db.default_column_family()).unwrap();
    let deep = all.iter().rposition(|level| !level.is_empty()).unwrap();
    let number = all[deep].values().next().unwrap().original_file_number;
    let shown = |filter: TableFilter, db: &Db| {
        let options = ReadOptions { table_filter: Some(filter), ..ReadOptions::default() };
        let mut iter = db.iter(&options).unwrap();
        iter.seek_to_first();
        let forward = rest(&mut iter);
        let mut back = Vec::new();
        iter.seek_to_last();
        while iter.valid() {
            let (key, value) = (iter.key().to_vec(), iter.value().unwrap().to_vec());
            back.insert(0, format!("{}={}", key.escape_ascii(), value.escape_ascii()));
            iter.prev();
        }
        assert_eq!(forward, back);
        forward
    };
    let everything = ["own0=0", "own1=1", "own2=2", "shared=2"];
    assert_eq!(shown(TableFilter::new(|_| true), &db), everything);
    let none = [""; 0];
    assert_eq!(shown(TableFilter::new(|_| false), &db), none);
    let deepest = move |number| TableFilter::new(move |table| table.original_file_number == number);
    assert_eq!(shown(deepest(number), &db), ["own0=0", "shared=0"], "an older value shows");
    let others = TableFilter::new(move |table| table.original_file_number != number);
    assert_eq!(shown(others, &db), ["own1=1", "own2=2", "shared=2"]);

    // Memtables are always read, and range deletions of skipped tables count.
    db.put("memory", "3").unwrap();
    assert_eq!(shown(TableFilter::new(|_| false), &db), ["memory=3"]);
    db.delete_range("own0", "own1").unwrap();
    db.flush_all().unwrap();
    assert_eq!(shown(deepest(number), &db), ["shared=0"]);
    // A get asks all tables.
    let options =
        ReadOptions { table_filter: Some(TableFilter::new(|_| false)), ..ReadOptions::default() };
    assert_eq!(db.get_with(&options, db.default_column_family(), "own1").unwrap().unwrap(), "1");
}
