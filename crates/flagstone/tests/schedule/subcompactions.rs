//! A compaction in parts beside readers and writers, and when one of its parts fails.

use flagstone::db::Db;
use flagstone::options::{BottommostLevelCompaction, CompactRangeOptions, ReadOptions};
use testkit::compare;

use crate::explore::explore;
use crate::world::{Disk, check_directory, close, join, open, thread, write};

const IN_PARTS: &[(&str, &str)] = &[
    ("max_subcompactions", "3"),
    ("target_file_size_base", "300"),
    ("table.block_size", "100"),
    ("write_buffer_size", "100000"),
    ("disable_auto_compactions", "true"),
    ("enable_blob_files", "true"),
    ("min_blob_size", "30"),
    ("blob_write_mode", "flush"),
];

const KEYS: usize = 24;

/// Two tables that overlap, with a blob file each.
fn two_tables() -> (Disk, Db) {
    let (disk, db) = open(IN_PARTS);
    for round in 0..2 {
        put_all(&db, round);
        db.flush_all().expect("a flush");
    }
    (disk, db)
}

fn put_all(db: &Db, round: usize) {
    let text =
        |n: usize| (format!("key {n:02}"), format!("{round} {}", "v".repeat(5 + n * 7 % 40)));
    let entries: Vec<_> = (0..KEYS).map(text).collect();
    let family = db.default_column_family();
    let listed: Vec<_> =
        entries.iter().map(|(key, value)| (family, &key[..], &value[..])).collect();
    write(db, false, &listed).expect("a write");
}

/// All keys are there, with values of one round.
fn round_seen(db: &Db, options: &ReadOptions) -> u8 {
    let found = compare::scan(db, db.default_column_family(), options).expect("a scan");
    assert_eq!(found.len(), KEYS);
    let round = found[0].1[0];
    assert!(found.iter().all(|(_, value)| value[0] == round), "one batch, and no other");
    round
}

#[test]
fn parts_beside_readers_and_writers() {
    explore("subcompactions::parts_beside_readers_and_writers", 150, || {
        let (disk, db) = two_tables();
        let held = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
        let everything = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        let compactor = {
            let db = db.clone();
            thread(move || {
                let family = db.default_column_family();
                db.compact_range(family, None, None, &everything).expect("a compaction");
            })
        };
        let writer = {
            let db = db.clone();
            thread(move || {
                put_all(&db, 2);
                db.flush_all().expect("a flush");
            })
        };
        let reader = {
            let db = db.clone();
            thread(move || {
                assert_eq!(round_seen(&db, &held), b'1');
                assert!(round_seen(&db, &ReadOptions::default()) >= b'1');
                assert_eq!(round_seen(&db, &held), b'1');
            })
        };
        join(vec![compactor, writer, reader]);
        assert_eq!(round_seen(&db, &ReadOptions::default()), b'2');
        close(&disk, &db);
    });
}

#[test]
fn a_part_that_fails_leaves_nothing_behind() {
    explore("subcompactions::a_part_that_fails_leaves_nothing_behind", 150, || {
        let (disk, db) = two_tables();
        // Of a table of any of the parts.
        disk.fail_sync(2);
        let reader = {
            let db = db.clone();
            thread(move || assert_eq!(round_seen(&db, &ReadOptions::default()), b'1'))
        };
        let family = db.default_column_family();
        db.compact_range(family, None, None, &CompactRangeOptions::default())
            .expect_err("a sync fails");
        db.put("key", "value").expect_err("nothing is written after a failed sync");
        join(vec![reader]);
        assert_eq!(round_seen(&db, &ReadOptions::default()), b'1');
        check_directory(&disk, &db);
    });
}
