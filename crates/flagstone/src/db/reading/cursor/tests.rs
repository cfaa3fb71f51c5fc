use std::cell::Cell;

use super::*;
use crate::db::handle::Db;
use crate::env::Env;
use crate::options::Options;

/// A reader pinned what there was, and then a memtable was switched, a key was set, and another
/// scan told what it had found before. As of the number that the reader had then it told of the
/// key's place that nothing was there, and no scan saw the key any more.
#[test]
fn a_scan_tells_only_of_what_it_could_see() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    let reported_at_once = "max_sequential_skip_in_iterations=0;disable_auto_compactions=true";
    options.set_all(&format!("create_if_missing=true;{reported_at_once}")).unwrap();
    let db = Db::open("/db", &options).unwrap();
    for n in 0..7 {
        db.put(format!("key {n}"), "gone").unwrap();
        db.delete(format!("key {n}")).unwrap();
    }
    let (inner, family) = (db.inner(), &db.default_column_family().0);
    let is_first = Cell::new(true);
    let (current, sequence) = family.pinned(|| {
        if is_first.replace(false) {
            db.flush_all().unwrap();
            let mut before = db.iter(&ReadOptions::default()).unwrap();
            db.put("key 5", "there").unwrap();
            before.seek_to_first();
            assert!(!before.valid());
            db.delete("key 0").unwrap();
        }
        db.latest_sequence_number()
    });
    let (tables, snapshots) = (&inner.tables, &inner.snapshots);
    let origin = Origin { since_us: 0, made_at: Location::caller() };
    let options = ReadOptions::default();
    let mut cursor =
        make_cursor(tables, snapshots, family, current, sequence, &options, origin).unwrap();
    cursor.entries.seek_to_first();
    drop(cursor);
    let mut iter = db.iter(&options).unwrap();
    iter.seek_to_first();
    assert!(iter.valid(), "{:?}", db.get("key 5").unwrap());
    assert_eq!(iter.key(), b"key 5");
}
