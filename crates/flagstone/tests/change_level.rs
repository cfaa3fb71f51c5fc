//! Stories of manual compactions that move their result to another level. What may move where is
//! told in `compaction/pick/testdata/refit.txt`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;

use common::{create, entries, open_as_written, referee, temporary};
use flagstone::base::Code;
use flagstone::db::{Db, Ticker};
use flagstone::options::{CompactFilesOptions, CompactRangeOptions, Options};

fn options() -> Options {
    let mut options = create();
    options
        .set_all(
            "disable_auto_compactions=true;num_levels=5;level_compaction_dynamic_level_bytes=false;\
             target_file_size_base=4096",
        )
        .unwrap();
    options
}

fn to(target_level: i32) -> CompactRangeOptions {
    CompactRangeOptions { change_level: true, target_level, ..CompactRangeOptions::default() }
}

fn compact(db: &Db, options: &CompactRangeOptions) -> flagstone::base::Result<()> {
    db.compact_range(db.default_column_family(), None, None, options)
}

fn write(db: &Db, round: u32) {
    for key in 0..300 {
        db.put(format!("{key:04}"), format!("{round} {}", "v".repeat(60))).unwrap();
    }
    db.flush_all().unwrap();
}

fn levels(db: &Db) -> BTreeSet<usize> {
    db.live_files().iter().filter_map(|file| file.level).collect()
}

#[test]
fn a_level_moves_without_being_rewritten() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options()).unwrap();
    write(&db, 1);
    write(&db, 2);
    compact(&db, &CompactRangeOptions::default()).unwrap();
    assert_eq!(levels(&db), [1].into());
    let (files, written) = (db.live_files(), db.statistics().get(Ticker::CompactWriteBytes));
    assert!(files.len() > 1);
    for (target, found) in [(4, 4), (2, 2), (3, 3), (-1, 1), (1, 1)] {
        compact(&db, &to(target)).unwrap();
        assert_eq!(levels(&db), [found].into(), "to {target}");
    }
    let numbers = |files: &[flagstone::db::LiveFile]| {
        files.iter().map(|file| file.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&db.live_files()), numbers(&files), "the same tables");
    assert_eq!(db.statistics().get(Ticker::CompactWriteBytes), written);

    // What is written later lies above.
    compact(&db, &to(3)).unwrap();
    write(&db, 3);
    assert_eq!(levels(&db), [0, 3].into());
    let held = entries(&db, db.default_column_family());
    assert!(held.len() == 300 && held.iter().all(|(_, value)| value.starts_with(b"3 ")));
    db.close().unwrap();
    drop(db);
    let db = open_as_written(directory.path(), false);
    assert_eq!(levels(&db), [0, 3].into());
    assert!(entries(&db, db.default_column_family()) == held);
    db.close().unwrap();
    let Some(referee) = referee() else { return };
    assert_eq!(referee.ldb(directory.path(), &["scan"]).lines().count(), 300);
}

#[test]
fn what_cannot_move_is_said_after_the_compaction() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options()).unwrap();
    compact(&db, &to(2)).unwrap();
    // Of one table alone nothing would be rewritten: it would stay one.
    write(&db, 1);
    write(&db, 2);
    compact(&db, &to(3)).unwrap();
    let refusal = |target| compact(&db, &to(target)).unwrap_err().code();
    assert_eq!(refusal(5), Code::InvalidArgument);
    assert_eq!(refusal(0), Code::Aborted);
    assert_eq!(levels(&db), [3].into());
    // Of a range that ends at another level, only that one moves.
    db.put("zebra", "1").unwrap();
    db.flush_all().unwrap();
    let apart =
        db.compact_range(db.default_column_family(), Some(b"zebra"), Some(b"zebra"), &to(2));
    assert!(apart.is_ok() && levels(&db) == [2, 3].into(), "{apart:?} {:?}", levels(&db));
    let past = db.compact_range(db.default_column_family(), Some(b"zebra"), Some(b"zebra"), &to(4));
    assert_eq!(past.unwrap_err().code(), Code::NotSupported);
    assert_eq!(db.get("zebra").unwrap().unwrap(), "1");
}

#[test]
fn one_table_comes_to_level_0_and_is_older_than_what_follows() {
    let directory = temporary();
    let mut options = options();
    options.set("target_file_size_base", "1m").unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    write(&db, 1);
    compact(&db, &CompactRangeOptions::default()).unwrap();
    compact(&db, &to(0)).unwrap();
    assert_eq!(levels(&db), [0].into());
    write(&db, 2);
    assert!(db.get("0007").unwrap().unwrap().starts_with(b"2 "));
    db.close().unwrap();
    drop(db);
    let db = Db::open(directory.path(), &options).unwrap();
    assert!(
        entries(&db, db.default_column_family()).iter().all(|(_, value)| value.starts_with(b"2 "))
    );
}

/// A compaction writes a range deletion whole into each of its tables, of which the first ended at
/// the key of the next: in level 0 its bounds were taken for inclusive, and the deletion hid that
/// key from lookups.
#[test]
fn a_table_that_moves_to_level_0_deletes_nothing_behind_its_end() {
    let directory = temporary();
    let mut options = options();
    options
        .set_all("enable_blob_files=false;compression=kNoCompression;merge_operator=stringappend;max_successive_merges=1")
        .unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    let family = db.default_column_family();
    let flushed = || {
        db.flush_all().unwrap();
        let tables = db.live_files().into_iter().filter(|file| file.level == Some(0));
        tables.map(|file| file.number).collect::<Vec<_>>()
    };
    let whole = CompactFilesOptions::default();
    let small = CompactFilesOptions { output_file_size_limit: 1000, ..whole.clone() };

    // Below, so that the deletion has to be kept.
    db.put("n", "deleted").unwrap();
    db.compact_files(family, &flushed(), 2, &whole).unwrap();
    db.delete_range("a", "p").unwrap();
    db.put("a", vec![b'v'; 10_000]).unwrap();
    db.put("m", "there").unwrap();
    let written = db.compact_files(family, &flushed(), 1, &small).unwrap();
    assert_eq!(written.len(), 2, "one ends at the key of the other");
    db.compact_files(family, &written[1..], 2, &whole).unwrap();
    db.compact_range(family, Some(b"a"), Some(b"a2"), &to(0)).unwrap();
    assert_eq!(levels(&db), [0, 2].into());

    let keys: Vec<_> = entries(&db, family).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [b"a", b"m"]);
    assert_eq!(db.get("m").unwrap().unwrap(), "there");
    assert_eq!(db.multi_get(&["n", "m"]).remove(1).unwrap().unwrap(), "there");
    // Operands are merged at once onto what a lookup finds.
    db.merge("m", "still").unwrap();
    db.merge("m", "is").unwrap();
    assert_eq!(db.get("m").unwrap().unwrap(), "there,still,is");
}

/// With levels that grow from the last, what was moved up was on its way down again before anybody
/// could look.
#[test]
fn what_was_moved_up_stays_there_while_automatic_compactions_are_held() {
    let directory = temporary();
    let db = Db::open(directory.path(), &create()).unwrap();
    let family = db.default_column_family();
    write(&db, 1);
    compact(&db, &CompactRangeOptions::default()).unwrap();
    assert_eq!(levels(&db), [6].into());
    let held = db.hold_automatic_compactions(family).unwrap();
    let other = db.hold_automatic_compactions(family).unwrap();
    compact(&db, &to(-1)).unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(levels(&db), [1].into());
    drop(other);
    db.wait_for_compactions().unwrap();
    assert_eq!(levels(&db), [1].into(), "one holds them still");
    drop(held);
    db.wait_for_compactions().unwrap();
    assert_eq!(levels(&db), [6].into());
    assert_eq!(entries(&db, family).len(), 300);

    // One that is held may be dropped, and one that was dropped is not held.
    let brief = db.create_column_family("brief", &Options::default().cf).unwrap();
    let held = db.hold_automatic_compactions(&brief).unwrap();
    db.drop_column_family(&brief).unwrap();
    let refused = db.hold_automatic_compactions(&brief).err().unwrap();
    assert_eq!(refused.code(), Code::ColumnFamilyDropped);
    drop(held);
    db.close().unwrap();
}

#[test]
fn levels_move_while_others_write_and_compact() {
    let directory = temporary();
    let mut options = options();
    options
        .set_all(
            "disable_auto_compactions=false;write_buffer_size=8192;level0_file_num_compaction_trigger=2;\
             max_bytes_for_level_base=20000",
        )
        .unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..20 {
                for key in 0..200 {
                    db.put(format!("{key:04}"), format!("{round:04}{}", "v".repeat(40))).unwrap();
                }
            }
        });
        for target in 0..2 {
            let db = &db;
            scope.spawn(move || {
                for _ in 0..10 {
                    let refused = match compact(db, &to(3 - target)) {
                        Ok(()) => continue,
                        Err(refused) => refused,
                    };
                    assert!(
                        matches!(refused.code(), Code::NotSupported | Code::Aborted),
                        "{refused}"
                    );
                }
            });
        }
    });
    db.wait_for_compactions().unwrap();
    let held = entries(&db, db.default_column_family());
    assert!(held.len() == 200 && held.iter().all(|(_, value)| value.starts_with(b"0019")));
    assert!(db.verify(|_| {}).faults.is_empty());
}

/// As `PromoteL0` of RocksDB, which says that this call replaces it.
#[test]
fn disjoint_tables_of_level_0_move_down_as_they_are() {
    let directory = temporary();
    let db = Db::open(directory.path(), &options()).unwrap();
    for first in 0..3 {
        (0..10).for_each(|key| db.put(format!("{first}{key}"), "value").unwrap());
        db.flush_all().unwrap();
    }
    let tables = |db: &Db| -> BTreeSet<_> {
        db.live_files().into_iter().map(|file| (file.number, file.level)).collect()
    };
    let numbers: BTreeSet<_> = tables(&db).into_iter().map(|(number, _)| number).collect();
    let skip = flagstone::options::BottommostLevelCompaction::Skip;
    for level in [1, 3] {
        let options = CompactRangeOptions { bottommost_level_compaction: skip, ..to(level) };
        compact(&db, &options).unwrap();
        let expected = numbers.iter().map(|number| (*number, Some(level as usize))).collect();
        assert_eq!(tables(&db), expected);
    }
}
