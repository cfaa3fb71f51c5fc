//! Stories of tables that say when their entries were written (`preserve_internal_time_seconds`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/aging.rs"]
mod aging;
mod common;

use aging::{BEGIN, World};
use common::{dump, referee};
use flagstone::db::{Db, LiveFile, Ticker};
use flagstone::options::{BottommostLevelCompaction, CompactRangeOptions};

const PRESERVE: &str = "preserve_internal_time_seconds=1000;disable_auto_compactions=true";

/// Writes `a` (sequence number 1), and `b` (2) a hundred seconds later.
fn two_writes(world: &World, db: &Db) {
    write(db, "a");
    world.time.advance(100);
    write(db, "b");
}

fn write(db: &Db, key: &str) {
    db.put(key, "value").unwrap();
    db.flush_all().unwrap();
}

fn compact(db: &Db) {
    let all = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    db.compact_range(db.default_column_family(), None, None, &all).unwrap();
}

fn only_table(db: &Db) -> LiveFile {
    let mut files = db.live_files();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

/// What each table says, as `sequence+seconds since the beginning`; the oldest table first.
fn times(db: &Db) -> String {
    let mut files = db.live_files();
    files.sort_by_key(|file| file.number);
    let properties = db.properties_of_all_tables(db.default_column_family()).unwrap();
    let of_table = |file: &LiveFile| {
        let (_, properties) = properties.iter().find(|(path, _)| **path == file.path).unwrap();
        let known = properties.write_times().unwrap();
        let words =
            known.samples().iter().map(|one| format!("{}+{}", one.sequence, one.time - BEGIN));
        words.collect::<Vec<_>>().join(" ")
    };
    files.iter().map(of_table).collect::<Vec<_>>().join(", ")
}

#[test]
fn tables_say_when_their_entries_were_written() {
    let world = World::new();
    let db = world.open(PRESERVE);
    two_writes(&world, &db);
    assert_eq!(times(&db), "1+0, 1+0 2+100");
    compact(&db);
    assert_eq!(times(&db), "1+0 2+100");
    assert_eq!(only_table(&db).sequences, (1, 2), "they tell the time");
    // It is known after a reopening, also of what is then compacted.
    drop(db);
    world.time.advance(100);
    let db = world.open(PRESERVE);
    write(&db, "c");
    compact(&db);
    assert_eq!(times(&db), "1+0 2+100 3+200");
    assert_eq!(dump(&db).lines().count(), 3);
}

#[test]
fn entries_that_are_old_enough_lose_their_sequence_numbers() {
    let world = World::new();
    let db = world.open(PRESERVE);
    two_writes(&world, &db);
    world.time.advance(950);
    compact(&db);
    assert_eq!(only_table(&db).sequences, (0, 2), "the first is older than 1000 seconds");
    world.time.advance(100);
    compact(&db);
    assert_eq!(only_table(&db).sequences, (0, 0));
    assert_eq!(dump(&db).lines().count(), 2);
}

#[test]
fn the_option_changes_while_the_database_is_open() {
    let world = World::new();
    let db = world.open("disable_auto_compactions=true");
    let set = |seconds: &str| {
        let changes = [("preserve_internal_time_seconds", seconds)];
        db.set_options(db.default_column_family(), &changes).unwrap();
    };
    write(&db, "a");
    compact(&db);
    assert_eq!((times(&db), only_table(&db).sequences), (String::new(), (0, 0)));
    set("1000");
    write(&db, "b");
    compact(&db);
    assert_eq!((times(&db), only_table(&db).sequences), ("2+0".to_string(), (0, 2)));
    set("0");
    compact(&db);
    assert_eq!((times(&db), only_table(&db).sequences), (String::new(), (0, 0)));
}

/// RocksDB 11.8 compacts such tables without end.
#[test]
fn a_table_that_keeps_its_sequence_numbers_is_not_compacted_again_and_again() {
    let world = World::new();
    let db = world.open("preserve_internal_time_seconds=1000");
    let snapshot = db.snapshot();
    two_writes(&world, &db);
    compact(&db);
    drop(snapshot);
    write(&db, "c");
    drop(db.snapshot());
    db.wait_for_compactions().unwrap();
    let done = db.statistics().get(Ticker::Compactions);
    for _ in 0..20 {
        world.time.advance(10);
        drop(db.snapshot());
        db.wait_for_compactions().unwrap();
    }
    assert_eq!(db.statistics().get(Ticker::Compactions), done);
}

/// The family that keeps times shortest decides how often samples are taken.
#[test]
fn a_table_has_at_most_a_hundred_samples() {
    let world = World::new();
    let db = world.open(PRESERVE);
    let shorter = world.options("preserve_internal_time_seconds=50");
    db.create_column_family("shorter", &shorter.cf).unwrap();
    for n in 0..150 {
        write(&db, &format!("key{n}"));
        world.time.advance(1);
    }
    compact(&db);
    assert_eq!(times(&db).split(' ').count(), 100);
    assert!(times(&db).starts_with("1+0 ") && times(&db).ends_with(" 150+149"), "{}", times(&db));
}

/// RocksDB 7.8 knows the option and the property.
#[test]
fn rocksdb_reads_and_keeps_the_times() {
    let Some(referee) = referee() else { return };
    let world = World::new();
    // For RocksDB it is as late as it is.
    let text = PRESERVE.replace("=1000", "=1600000000");
    let db = world.open(&text);
    write(&db, "a");
    world.time.advance(100_000_000);
    write(&db, "b");
    db.close().unwrap();
    drop(db);
    let path = world.path();
    referee.verify_tables(&path);
    referee.ldb(&path, &["compact", "--try_load_options"]);
    let db = world.open(&text);
    let file = only_table(&db);
    assert_eq!(file.sequences, (1, 2), "they were preserved");
    assert_eq!(times(&db), "1+0 2+100000000");
    assert_eq!(dump(&db).lines().count(), 2);
}
