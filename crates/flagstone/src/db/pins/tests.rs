use super::*;
use crate::env::Env;
use crate::options::{CompactRangeOptions, Options, ReadOptions};

fn opened() -> Db {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    Db::open("/db", &options).unwrap()
}

fn fill(db: &Db, value: u8) {
    (0..100u32).for_each(|key| db.put(key.to_be_bytes(), [value; 100]).unwrap());
}

#[test]
fn whoever_reads_a_former_state_is_named_with_what_stays_for_it() {
    let db = opened();
    fill(&db, 1);
    let (of_memtable, first) = (db.iter(&ReadOptions::default()).unwrap(), line!());
    let up_to_date = db.pins(10);
    assert!(up_to_date.iterators[0].is_current && up_to_date.iterators[0].kept == Kept::default());
    db.flush_all().unwrap();
    let (of_table, second) = (db.iter(&ReadOptions::default()).unwrap(), line!());
    let with_it = db.iter(&ReadOptions::default()).unwrap();
    fill(&db, 2);
    let options = CompactRangeOptions::default();
    db.compact_range(db.default_column_family(), None, None, &options).unwrap();
    let pins = db.pins(10);
    assert_eq!((pins.num_iterators, pins.num_snapshots), (3, 0));
    let lines: Vec<_> = pins.iterators.iter().map(|iterator| iterator.made_at.line()).collect();
    assert_eq!(lines, [first, second, second + 1], "the oldest first");
    assert!(pins.iterators.iter().all(|iterator| iterator.made_at.file() == file!()));
    let [of_former, of_table_kept, same] = &pins.iterators[..] else { panic!("{pins}") };
    assert_eq!((of_former.kept.files, of_former.readers), (0, 1), "{pins}");
    assert!(
        of_former.kept.memtable_bytes > 10_000 && of_former.kept == of_former.kept_alone,
        "{pins}"
    );
    assert_eq!((of_table_kept.kept_alone.files, of_table_kept.readers), (1, 2), "{pins}");
    assert!(of_table_kept.kept.file_bytes > 0 && same.kept == of_table_kept.kept, "{pins}");
    let text = db.property(db.default_column_family(), "flagstone.pins").unwrap();
    assert!(text.contains(&format!("{}:{first}:", file!())), "{text}");
    drop((of_memtable, of_table));
    assert_eq!(db.pins(10).iterators.len(), 1);
    drop(with_it);
    assert_eq!(db.pins(10), Pins::default());
}

#[test]
fn a_cursor_that_changes_hands_is_said_to_be_made_where_its_present_iterator_was() {
    let db = opened();
    fill(&db, 1);
    drop(db.iter(&ReadOptions::default()).unwrap());
    let (mut iter, line) = (db.iter(&ReadOptions::default()).unwrap(), line!());
    assert_eq!(db.pins(1).iterators[0].made_at.line(), line);
    let refreshed = line!() + 1;
    iter.refresh().unwrap();
    assert_eq!(db.pins(1).iterators[0].made_at.line(), refreshed);
    drop(iter);
    assert_eq!(db.pins(1).num_iterators, 0, "a cursor that is kept for the next one is nobody's");
}

#[test]
fn one_that_refreshes_itself_is_as_old_as_it_was() {
    let db = opened();
    fill(&db, 1);
    let (snapshot, taken) = (Some(db.snapshot()), line!());
    let options = ReadOptions {
        snapshot,
        auto_refresh_iterator_with_snapshot: true,
        ..ReadOptions::default()
    };
    let (mut iter, line) = (db.iter(&options).unwrap(), line!());
    iter.seek_to_first();
    let before = db.pins(1).iterators[0].clone();
    db.flush_all().unwrap();
    assert!(!db.pins(1).iterators[0].is_current);
    iter.seek_to_first();
    let after = db.pins(1).iterators[0].clone();
    assert!(after.is_current && after.made_at.line() == line && after.age_us >= before.age_us);
    assert_eq!(db.pins(1).snapshots[0].taken_at.line(), taken);
}

#[test]
fn the_oldest_snapshots_are_named_each_with_its_own_origin() {
    let db = opened();
    fill(&db, 1);
    let (first, line) = (db.snapshot(), line!());
    let second = db.snapshot();
    fill(&db, 2);
    let third = db.snapshot();
    let found = |most: usize| -> Vec<_> {
        let pins = db.pins(most);
        pins.snapshots.iter().map(|one| (one.taken_at.line() - line, one.writes_since)).collect()
    };
    assert_eq!(found(10), [(0, 100), (1, 100), (3, 0)]);
    drop(first);
    assert_eq!(found(1), [(1, 100)], "the first of that sequence number is gone, with its origin");
    drop((second, third));
    assert_eq!(found(10), []);
}
