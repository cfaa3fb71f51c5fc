//! Opening, which writes full memtables to tables while it replays what comes next.

use flagstone::db::Db;
use flagstone::options::ReadOptions;
use testkit::compare;

use crate::explore::explore;
use crate::world::{Disk, PATH, close, open, options, put};

const KEYS: usize = 5;
const ROUNDS: usize = 4;

/// Each memtable holds a few values, so that several are full before the end of the WAL.
const SMALL: &[(&str, &str)] =
    &[("write_buffer_size", "2048"), ("disable_auto_compactions", "true")];

fn entry(round: usize, n: usize) -> (String, String) {
    (format!("key {n}"), format!("{round} {}", "v".repeat(300)))
}

/// A database that is closed, and has everything in its WAL.
fn unflushed() -> Disk {
    let (disk, db) = open(&[("write_buffer_size", "1000000")]);
    for (round, n) in (0..ROUNDS).flat_map(|round| (0..KEYS).map(move |n| (round, n))) {
        let (key, value) = entry(round, n);
        put(&db, false, &key, &value).expect("a write");
    }
    db.close().expect("a clean close");
    disk
}

fn check(db: &Db) {
    let found =
        compare::scan(db, db.default_column_family(), &ReadOptions::default()).expect("a scan");
    let expected = (0..KEYS).map(|n| entry(ROUNDS - 1, n));
    assert!(
        found.into_iter().eq(expected.map(|(key, value)| (key.into_bytes(), value.into_bytes())))
    );
}

#[test]
fn tables_are_written_beside_the_replay() {
    explore("recovery::tables_are_written_beside_the_replay", 200, || {
        let disk = unflushed();
        let db = Db::open(PATH, &options(&disk, SMALL)).expect("it opens again");
        assert!(db.live_files().len() > 2, "{:?}", db.live_files());
        check(&db);
        close(&disk, &db);
    });
}

/// Nobody writes to the directory of an opening that has failed: the next one has it for itself.
#[test]
fn a_table_that_cannot_be_written_fails_the_opening() {
    explore("recovery::a_table_that_cannot_be_written_fails_the_opening", 200, || {
        let disk = unflushed();
        disk.fail_sync(2);
        assert!(Db::open(PATH, &options(&disk, SMALL)).is_err());
        let db = Db::open(PATH, &options(&disk, SMALL)).expect("it opens again");
        check(&db);
        close(&disk, &db);
    });
}
