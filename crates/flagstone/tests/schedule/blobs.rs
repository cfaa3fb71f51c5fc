//! Large values that lie in blob files before they are committed, while memtables are switched and
//! flushed under their writers.

use flagstone::db::Db;
use testkit::compare;

use crate::explore::explore;
use crate::world::{PATH, close, join, open, options, put, thread};

/// Each value goes to a blob file, and every third fills it.
const AT_COMMIT: &[(&str, &str)] = &[
    ("enable_blob_files", "true"),
    ("min_blob_size", "20"),
    ("blob_commit_min_size", "20"),
    ("blob_commit_synced_min_size", "20"),
    ("blob_file_size", "200"),
    ("level0_file_num_compaction_trigger", "3"),
];

fn value(writer: usize, n: usize) -> String {
    format!("value {n} of writer {writer}, long enough for a file")
}

/// A value is there from its acknowledgement on, is on the disk if that was asked for, and is found
/// again; whoever flushes waits for those who write to the file.
#[test]
fn values_outlive_every_switch() {
    explore("blobs::values_outlive_every_switch", 300, || {
        let (disk, db) = open(AT_COMMIT);
        let writers = (0..3).map(|writer| {
            let (disk, db) = (disk.clone(), db.clone());
            thread(move || {
                for n in 0..3 {
                    let (key, value) = (format!("{writer} {n}"), value(writer, n));
                    put(&db, writer == 0, &key, &value).expect("a write");
                    assert_eq!(
                        db.get(&key).expect("a lookup").expect("it is there"),
                        value.as_bytes()
                    );
                    assert!(
                        writer > 0 || disk.is_durable(value.as_bytes()),
                        "{value} was acknowledged"
                    );
                }
            })
        });
        let flusher = {
            let db = db.clone();
            thread(move || {
                db.flush_all().expect("a flush");
                db.sync_wal().expect("a sync");
                db.flush_all().expect("a flush");
            })
        };
        join(writers.chain([flusher]).collect::<Vec<_>>());
        close(&disk, &db);
        drop(db);
        let db = Db::open(PATH, &options(&disk, AT_COMMIT)).expect("it opens again");
        for (writer, n) in (0..3).flat_map(|writer| (0..3).map(move |n| (writer, n))) {
            let found = db.get(format!("{writer} {n}")).expect("a lookup").expect("it is there");
            assert_eq!(found, value(writer, n).as_bytes());
        }
        compare::check_files(&db);
        db.close().expect("a clean close");
    });
}
