use crate::base::{TableFileCreationReason, file_name};
use crate::db::handle::Db;
use crate::db::jobs::flush_parts;
use crate::db::jobs::output;
use crate::env::Env;
use crate::options::Options;

/// Two tables of one size with the same key: only their unique ids tell them apart.
#[test]
fn a_table_in_the_place_of_another_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = Db::open(directory.path(), &options).unwrap();
    for value in ["older", "newer"] {
        db.put("key", value).unwrap();
        db.flush_all().unwrap();
    }
    let paths: Vec<_> = db
        .live_files()
        .iter()
        .map(|file| file_name::table(directory.path(), file.number))
        .collect();
    db.close().unwrap();
    drop(db);
    let [first, second] = &paths[..] else { panic!("two tables, not {paths:?}") };
    let aside = directory.path().join("aside");
    std::fs::rename(first, &aside).unwrap();
    std::fs::rename(second, first).unwrap();
    std::fs::rename(&aside, second).unwrap();

    let db = Db::open(directory.path(), &options).unwrap();
    let error = db.get("key").unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains("unique id"), "{error}");
    drop(db);
    options.verify_sst_unique_id_in_manifest = false;
    let db = Db::open(directory.path(), &options).unwrap();
    assert!(db.get("key").unwrap().is_some());
}

/// It stayed until the database was closed, for each flush of a family that was dropped meanwhile.
#[test]
fn what_is_discarded_leaves_no_filter_in_memory() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.set("filter_policy", "nullptr").unwrap();
    let db = Db::open("/db", &options).unwrap();
    db.put("key", "value").unwrap();
    // So that a flush makes a filter.
    (0..100).for_each(|_| assert!(db.get("key").unwrap().is_some()));
    let (inner, family) = (db.inner(), &db.default_column_family().0);
    let memtable = family.current.load().mem.clone();
    let output = flush_parts::write_level0(
        &inner.jobs,
        family,
        &[memtable],
        (TableFileCreationReason::Flush, 0),
    )
    .unwrap();
    assert_eq!(inner.tables.key_filters.lock().len(), 1);
    output::discard(&inner.jobs, family, &output);
    assert!(inner.tables.key_filters.lock().is_empty());
}
