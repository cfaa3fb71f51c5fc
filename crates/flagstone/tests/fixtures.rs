//! Every database in `fixtures/`, written by RocksDB 7.8, reads back exactly as RocksDB read it.

mod common;

use common::{copy_directory, dump, entries, entries_backwards, fixtures, open_as_written, temporary};

fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(fixtures())
        .expect("the fixtures")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter(|name| !name.contains('.'))
        .collect();
    names.sort();
    assert!(names.len() >= 30, "fixtures are missing: {names:?}");
    names
}

fn expected(name: &str) -> String {
    std::fs::read_to_string(fixtures().join(format!("{name}.expected"))).expect("the expected contents")
}

#[test]
fn read_only_without_touching_the_directory() {
    for name in names() {
        let db = open_as_written(&fixtures().join(&name), true);
        assert!(dump(&db) == expected(&name), "{name} differs");
        for family in db.column_families() {
            assert!(entries(&db, &family) == entries_backwards(&db, &family), "{name} differs backwards");
        }
    }
}

#[test]
fn every_key_is_found_by_get() {
    for name in names() {
        let db = open_as_written(&fixtures().join(&name), true);
        for family in db.column_families() {
            for (key, value) in entries(&db, &family) {
                let found =
                    db.get_cf(&family, &key).expect("no error").unwrap_or_else(|| panic!("{name}: {key:?}"));
                assert!(found == value, "{name}: {key:?}");
            }
        }
    }
}

#[test]
fn opened_for_writing_compacted_and_reopened() {
    for name in names() {
        // As it was written, it drops what is older than 30 days.
        if name == "fifo" {
            continue;
        }
        let directory = temporary();
        let path = directory.path().join("db");
        copy_directory(&fixtures().join(&name), &path);
        let db = open_as_written(&path, false);
        assert!(dump(&db) == expected(&name), "{name} differs after recovery");
        for family in db.column_families() {
            db.compact_range(&family, None, None, &Default::default()).expect("a compaction");
        }
        assert!(dump(&db) == expected(&name), "{name} differs after compaction");
        let report = db.verify(|_| {});
        assert!(report.faults.is_empty(), "{name}: {:?}", report.faults);
        db.close().expect("a clean close");
        drop(db);
        assert!(dump(&open_as_written(&path, false)) == expected(&name), "{name} differs after reopening");
    }
}
