//! Files that go around the system's cache: threads of their own write what a flush or compaction
//! has filled. And batches with values that are written to blob files as they are committed.

use flagstone::db::Db;
use flagstone::options::ReadOptions;
use testkit::compare;

use crate::explore::explore;
use crate::world::{close, join, open, put, threads, write};

const DIRECT: &[(&str, &str)] = &[
    ("write_buffer_size", "16384"),
    ("level0_file_num_compaction_trigger", "2"),
    ("target_file_size_base", "16384"),
    ("use_direct_reads", "true"),
    ("use_direct_io_for_flush_and_compaction", "true"),
    ("writable_file_max_buffer_size", "4096"),
    ("enable_blob_files", "true"),
    ("min_blob_size", "3000"),
    ("blob_commit_min_size", "3000"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
    ("block_cache", "5000"),
];

/// Every third is long enough for a blob file.
fn value(n: usize) -> String {
    let width = if n.is_multiple_of(3) { 3500 } else { 1500 };
    format!("{n:0width$}")
}

fn check(db: &Db, keys: impl Iterator<Item = usize>, rounds: usize) {
    let newest = 10 * (rounds - 1);
    let found =
        compare::scan(db, db.default_column_family(), &ReadOptions::default()).expect("a scan");
    let expected: Vec<_> =
        keys.map(|n| (format!("key {n}").into_bytes(), value(newest + n).into_bytes())).collect();
    assert!(found == expected, "{} of {} keys, or others' values", found.len(), expected.len());
}

#[test]
fn files_are_written_behind_those_who_fill_them() {
    explore("direct::files_are_written_behind_those_who_fill_them", 100, || {
        let (disk, db) = open(DIRECT);
        join(threads(2, &db, |db, writer| {
            for round in 0..2 {
                for n in (writer..8).step_by(2) {
                    let key = format!("key {n}");
                    put(db, n == 3, &key, &value(10 * round + n)).expect("a write");
                    let found = db.get(&key).expect("a lookup").expect("it was written");
                    assert!(*found == *value(10 * round + n).as_bytes(), "{key}");
                }
                db.flush_all().expect("a flush");
            }
        }));
        check(&db, 0..8, 2);
        db.compact_range(db.default_column_family(), None, None, &Default::default())
            .expect("a compaction");
        check(&db, 0..8, 2);
        close(&disk, &db);
    });
}

/// Memtables are switched as soon as their blob files hold a few values: a batch that is committed
/// after such a switch is written again, and may fill the next memtable.
#[test]
fn batches_of_large_values_are_whole_after_every_switch() {
    const SMALL_FILES: &[(&str, &str)] = &[
        ("blob_commit_min_size", "500"),
        ("min_blob_size", "500"),
        ("blob_file_size", "3000"),
        ("max_space_amplification", "0"),
        ("enable_blob_files", "true"),
        ("level0_file_num_compaction_trigger", "20"),
    ];
    explore("direct::batches_of_large_values_are_whole_after_every_switch", 400, || {
        let (disk, db) = open(SMALL_FILES);
        join(threads(3, &db, |db, writer| {
            for round in 0..if writer == 0 { 8 } else { 3 } {
                let (short, long) =
                    (format!("{writer}{round:0600}"), format!("{writer}{round:01600}"));
                let default = db.default_column_family();
                let names = [format!("short {writer}"), format!("long {writer}")];
                let both = [(default, &*names[0], &*short), (default, &*names[1], &*long)];
                // One writer fills memtables with short values alone.
                let entries = if writer == 0 { &both[..1] } else { &both[..] };
                write(db, false, entries).expect("a write");
                for (_, name, value) in entries {
                    let found = db.get(name).expect("a lookup").expect("it was written");
                    assert!(*found == *value.as_bytes(), "{name}");
                }
            }
        }));
        db.wait_for_compactions().expect("no failure");
        let found = compare::scan(&db, db.default_column_family(), &ReadOptions::default())
            .expect("a scan");
        assert_eq!(found.len(), 5);
        close(&disk, &db);
    });
}
