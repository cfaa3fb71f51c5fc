//! Salvages where nothing tells to which family what belongs that is left.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::path::{Path, PathBuf};

use common::*;
use flagstone::db::{Db, SalvageReport, salvage};
use flagstone::env::Env;
use flagstone::options::{self, ColumnFamilyOptions, FlushOptions};

/// Rebuilds `source` in `target`, with its own options as far as there are any.
fn rebuild(source: &Path, target: &Path) -> SalvageReport {
    let loaded = options::load_latest(&Env::os(), source).expect("readable, or none");
    let (options, families) = loaded.map(|loaded| (loaded.options, loaded.families)).unwrap_or_default();
    let listed: Vec<(&str, ColumnFamilyOptions)> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    salvage(source, target, &options, &listed, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"))
}

fn remove(directory: &Path, unwanted: impl Fn(&str) -> bool) {
    let fs = Env::os().fs;
    for name in fs.list(directory).expect("a directory").into_iter().filter(|name| unwanted(name)) {
        fs.remove(&directory.join(name)).expect("a file");
    }
}

fn tables_in(directory: &Path) -> Vec<PathBuf> {
    let names = Env::os().fs.list(directory).expect("a directory");
    let mut found: Vec<PathBuf> =
        names.iter().filter(|name| name.ends_with(".sst")).map(|name| directory.join(name)).collect();
    found.sort();
    found
}

/// Values of the same keys in two families: a table of the second one, one of the default family, and another of the second one,
/// of which the WAL has a record, too. There is neither a MANIFEST nor an OPTIONS file.
fn two_families_without_manifest(directory: &Path) -> Vec<PathBuf> {
    let options = create();
    let db = Db::open(directory, &options).expect("a database");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    let default = db.default_column_family();
    for (family, keys, value) in
        [(&other, 0..50, "other"), (default, 0..100, "default"), (&other, 50..100, "other")]
    {
        keys.for_each(|key| db.put_cf(family, format!("key{key:03}"), value).expect("a put"));
        db.flush(family, &FlushOptions::default()).expect("a flush");
    }
    db.put_cf(&other, "late", "other").expect("a put");
    db.close().expect("closed");
    remove(directory, |name| ["MANIFEST", "CURRENT", "OPTIONS"].iter().any(|part| name.starts_with(part)));
    tables_in(directory)
}

/// Damages the properties of a table.
fn take_properties(table: &Path) {
    let mut bytes = std::fs::read(table).expect("a table");
    let name = b"column.family";
    let at = bytes.windows(name.len()).position(|window| window == name).expect("it is in it");
    bytes[at] ^= 0x10;
    std::fs::write(table, bytes).expect("written");
}

/// The families that have a key, each with its value.
fn homes(directory: &Path, key: &str) -> String {
    let db = open_as_written(directory, true);
    let home = |family: &flagstone::db::ColumnFamily| {
        let value = db.get_cf(family, key).expect("it can be read")?;
        Some(format!("{}: {}", family.name(), String::from_utf8_lossy(&value)))
    };
    db.column_families().iter().filter_map(home).collect::<Vec<_>>().join("; ")
}

/// Nothing was known of other families when the first table was looked at: it was taken for the default family's, whose own
/// values hid all that it held.
#[test]
fn a_table_of_no_known_family_waits_until_the_others_are_known() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let tables = two_families_without_manifest(&source);
    assert_eq!(tables.len(), 3);
    take_properties(&tables[0]);
    let report = rebuild(&source, &target);
    assert_eq!(homes(&target, "key007"), "default: default; salvaged: other", "{report:#?}");
    assert_eq!(homes(&target, "key077"), "default: default; other: other", "{report:#?}");
    let told = report.losses.iter().any(|loss| {
        loss.error.path() == Some(&tables[0]) && loss.error.to_string().contains("in family 'salvaged'")
    });
    assert!(told, "{report:#?}");
}

/// They came into one family, and what one of them held was gone without a word.
#[test]
fn tables_of_no_known_family_hide_nothing_in_each_other() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let tables = two_families_without_manifest(&source);
    tables.iter().for_each(|table| take_properties(table));
    let report = rebuild(&source, &target);
    let name = tables[1].file_stem().expect("a name").to_string_lossy();
    // The last one lies behind the first, and has room beside it.
    for key in ["key007", "key077"] {
        let expected = format!("salvaged: other; salvaged-table-{name}: default");
        assert_eq!(homes(&target, key), expected, "{report:#?}");
    }
    assert_eq!(report.notes.iter().filter(|note| note.contains("families of their own")).count(), 1);
    assert_eq!(homes(&target, "late"), "salvaged-1: other");
}

/// Nothing says that there were others, and mostly there were none.
#[test]
fn tables_of_no_known_family_are_the_default_ones_where_there_is_no_other() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let tables = two_families_without_manifest(&source);
    remove(&source, |name| name.ends_with(".log") || tables[2].ends_with(name));
    take_properties(&tables[0]);
    let report = rebuild(&source, &target);
    assert_eq!(homes(&target, "key007"), "default: default", "{report:#?}");
}

/// The WAL's family took the name of the one that stands in its place among the options, although another number says that
/// there had been more.
#[test]
fn who_is_in_its_place_among_the_options_is_not_known_where_there_were_more() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let options = create();
    let db = Db::open(&source, &options).expect("a database");
    let family = |name| db.create_column_family(name, &options.cf).expect("a family");
    let (gone, stays) = (family("gone"), family("stays"));
    db.put_cf(&gone, "key", "gone").expect("a put");
    db.put_cf(&stays, "key", "stays").expect("a put");
    db.drop_column_family(&gone).expect("dropped");
    db.close().expect("closed");
    remove(&source, |name| name.starts_with("MANIFEST") || name == "CURRENT");
    let report = rebuild(&source, &target);
    assert_eq!(homes(&target, "key"), "salvaged-1: gone; salvaged-2: stays", "{report:#?}");
    assert_eq!(
        report.notes.iter().filter(|note| note.contains("'salvaged-")).count(),
        2,
        "{:#?}",
        report.notes
    );
}
