//! What the doctor says of databases of every kind: lives in, findings out, both as text (`healthy`
//! and `sick`).
//!
//! A life is a line a step; `ask` writes down what the doctor says of the database as it runs, and
//! `look`, which closes it first and opens it for reading, what it says of one at rest. Lives are
//! parted by empty lines, and what is expected of one stands below `----`: the findings in order,
//! of each its beginning and what else must be in it, parted by ` .. `; `healthy` if there are
//! none.
//!
//! The thresholds that take gigabytes are tested on facts alone, next to the rules
//! (`doctor/testdata/cases`).

#[path = "../common/mod.rs"]
mod common;
mod life;

use common::{copy_directory, create, fixtures, open_as_written, temporary};
use flagstone::db::{DatabaseFacts, Db, Facts, Severity};
use flagstone::options::ReadOptions;
use life::Life;

/// Lives each case and compares.
fn check(cases: &str) {
    let mut wrong = String::new();
    for case in cases.split("\n\n") {
        let (steps, expected) = case.split_once("----\n").expect("a life, then findings");
        let mut life = Life::default();
        for step in steps.lines().filter(|line| !line.starts_with('#')) {
            life.step(step);
        }
        let is_as = |(said, expected): (&String, &str)| {
            let mut parts = expected.split(" .. ");
            said.starts_with(parts.next().expect("its beginning"))
                && parts.all(|part| said.contains(part))
        };
        let expected: Vec<&str> = expected.lines().collect();
        let is_right =
            life.said.len() == expected.len() && life.said.iter().zip(expected).all(is_as);
        if !is_right {
            wrong.push_str(&format!("{case}\nThe doctor says\n{}\n\n", life.said.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn of_healthy_databases_it_finds_nothing() {
    check(include_str!("healthy"));
}

#[test]
fn of_sick_ones_it_says_what_ails_them() {
    check(include_str!("sick"));
}

/// The size of the file and its opening were two findings.
#[test]
fn a_table_that_is_cut_off_is_named_once() {
    let scratch = temporary();
    let path = scratch.path().join("db");
    let db = Db::open(&path, &create()).expect("a database");
    db.put("key", "value").expect("a put");
    db.flush_all().expect("a flush");
    db.close().expect("closed");
    drop(db);
    let files =
        std::fs::read_dir(&path).expect("files").map(|entry| entry.expect("an entry").path());
    let table = files.into_iter().find(|file| file.extension().is_some_and(|name| name == "sst"));
    let table = std::fs::File::options().write(true).open(table.expect("a table")).expect("a file");
    table.set_len(table.metadata().expect("a size").len() - 10).expect("shorter");
    let mut options = create();
    options.set("paranoid_checks", "false").expect("a setting");
    let found = Db::open_read_only(&path, &options).expect("it opens").doctor().expect("it looks");
    let broken: Vec<_> =
        found.iter().filter(|finding| finding.severity == Severity::Broken).collect();
    assert!(broken.len() == 1 && broken[0].what.contains("keys 'key' to 'key'"), "{found:#?}");
}

/// Another process looks at the files, and has what the first one wrote to its log.
#[test]
fn what_a_running_database_has_told_is_taken_over() {
    let scratch = temporary();
    let path = scratch.path().join("db");
    let mut options = create();
    options.set("level0_stop_writes_trigger", "2").expect("a setting");
    options.set("disable_auto_compactions", "true").expect("a setting");
    let db = Db::open(&path, &options).expect("a database");
    let snapshot = db.snapshot();
    for round in 0..3 {
        db.put(format!("key{round}"), vec![b'v'; 1000]).expect("a put");
        db.flush_all().expect("a flush");
    }
    db.sync_wal().expect("a sync");
    let all = ReadOptions::default();
    let _iterator = db.iter(&all).expect("a cursor");
    db.put("key", "value").expect("a put");
    db.flush_all().expect("a flush");
    db.get("key0").expect("a lookup");

    let log = format!(
        "started at noon\n{}\nstopping\n",
        db.property(db.default_column_family(), "rocksdb.stats").expect("text")
    );
    let running = db.facts().expect("facts");
    let looked = Db::open_read_only(&path, &options).expect("it opens");
    let mut told = looked.facts().expect("facts");
    assert_eq!((told.database.keys_written, told.database.snapshot_writes), (0, 0));
    told.add_statistics(&log).expect("it is understood");
    let figures = |facts: &Facts| {
        let DatabaseFacts {
            keys_written, wal_syncs, cache_bytes, cache_hits, cache_misses, ..
        } = facts.database;
        let DatabaseFacts { snapshot_writes, snapshot_write_bytes, iterator_kept_bytes, .. } =
            facts.database;
        let DatabaseFacts { state, writers, snapshot_taken_at, iterator_made_at, .. } =
            facts.database.clone();
        let numbers = [keys_written, wal_syncs, cache_bytes, cache_hits, cache_misses];
        let kept = [snapshot_writes, snapshot_write_bytes, iterator_kept_bytes];
        (numbers, kept, [state, writers, snapshot_taken_at, iterator_made_at])
    };
    assert_eq!(figures(&told), figures(&running));
    assert!(
        told.database.snapshot_writes == 4 && told.database.iterator_kept_bytes > 0,
        "{:?}",
        told.database
    );
    let by_level0 = |facts: &Facts| facts.families[0].held_up_by_level0;
    assert_eq!(by_level0(&told), by_level0(&running));
    drop(snapshot);
}

#[test]
fn of_those_that_rocksdb_wrote_it_finds_nothing() {
    let mut databases = 0;
    for entry in std::fs::read_dir(fixtures()).expect("fixtures") {
        let entry = entry.expect("an entry");
        if !entry.file_type().expect("a type").is_dir() {
            continue;
        }
        let scratch = temporary();
        let path = scratch.path().join("db");
        copy_directory(&entry.path(), &path);
        for read_only in [true, false, true] {
            let db = open_as_written(&path, read_only);
            let found = db.doctor().expect("it looks");
            let is_alarm = found.iter().any(|finding| finding.severity != Severity::Note);
            assert!(!is_alarm, "{} {read_only}: {found:#?}", entry.path().display());
            db.close().expect("closed");
        }
        databases += 1;
    }
    assert!(databases > 30, "{databases}");
}
