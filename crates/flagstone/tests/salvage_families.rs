//! Salvages where nothing tells to which family what belongs that is left.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::path::{Path, PathBuf};

use common::*;
use flagstone::db::{Db, SalvageReport, salvage, salvage_with_older_options};
use flagstone::env::{Env, IoMode};
use flagstone::options::{self, ColumnFamilyOptions, FlushOptions};
use flagstone::sst::read_table_properties;

/// Rebuilds `source` in `target`, with its own options as far as there are any.
fn rebuild(source: &Path, target: &Path) -> SalvageReport {
    let loaded = options::load_latest(&Env::os(), source).expect("readable, or none");
    let (options, families) =
        loaded.map(|loaded| (loaded.options, loaded.families)).unwrap_or_default();
    let listed: Vec<(&str, ColumnFamilyOptions)> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    salvage(source, target, &options, &listed, &mut |_| {})
        .unwrap_or_else(|error| panic!("{error}"))
}

fn remove(directory: &Path, unwanted: impl Fn(&str) -> bool) {
    let fs = Env::os().fs;
    for name in fs.list(directory).expect("a directory").into_iter().filter(|name| unwanted(name)) {
        fs.remove(&directory.join(name)).expect("a file");
    }
}

fn tables_in(directory: &Path) -> Vec<PathBuf> {
    let names = Env::os().fs.list(directory).expect("a directory");
    let mut found: Vec<PathBuf> = names
        .iter()
        .filter(|name| name.ends_with(".sst"))
        .map(|name| directory.join(name))
        .collect();
    found.sort();
    found
}

/// Values of the same keys in two families: a table of the second one, one of the default family,
/// and another of the second one, of which the WAL has a record, too. There is neither a MANIFEST
/// nor an OPTIONS file.
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
    remove(directory, |name| {
        ["MANIFEST", "CURRENT", "OPTIONS"].iter().any(|part| name.starts_with(part))
    });
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

/// Nothing was known of other families when the first table was looked at: it was taken for the
/// default family's, whose own values hid all that it held.
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
        loss.error.path() == Some(&tables[0])
            && loss.error.to_string().contains("in family 'salvaged'")
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
    assert_eq!(
        report.notes.iter().filter(|note| note.contains("families of their own")).count(),
        1
    );
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

/// The WAL's family took the name of the one that stands in its place among the options, although
/// another number says that there had been more.
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

/// It was called a loss of a database that had none.
#[test]
fn a_table_that_a_crash_cut_short_is_no_loss_where_there_are_several_families() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let options = create();
    let db = Db::open(&source, &options).expect("a database");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    for key in 0..200u8 {
        db.put_cf(&other, format!("key{key:03}"), vec![key; 100]).expect("a put");
    }
    db.flush(&other, &FlushOptions::default()).expect("a flush");
    db.close().expect("closed");
    let whole = std::fs::read(&tables_in(&source)[0]).expect("a table");
    std::fs::write(source.join("009999.sst"), &whole[..whole.len() / 2]).expect("written");
    let report = rebuild(&source, &target);
    assert!(report.is_complete(), "{report:#?}");
    let told = report
        .notes
        .iter()
        .filter(|note| note.contains("009999.sst") && note.contains("'salvaged'"));
    assert_eq!(told.count(), 1, "{report:#?}");
    assert_eq!(homes(&target, "key199").split(':').next(), Some("other"));
}

/// What had that name vanished: a database that was salvaged before has such families.
#[test]
fn a_family_whose_name_nobody_knows_does_not_take_the_place_of_another() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let options = create();
    let db = Db::open(&source, &options).expect("a database");
    let named = db.create_column_family("salvaged-2", &options.cf).expect("a family");
    let second = db.create_column_family("second", &options.cf).expect("a family");
    db.put_cf(&second, "key", "second").expect("a put");
    db.put_cf(&named, "key", "named").expect("a put");
    db.flush(&named, &FlushOptions::default()).expect("a flush");
    db.close().expect("closed");
    remove(&source, |name| {
        ["MANIFEST", "CURRENT", "OPTIONS"].iter().any(|part| name.starts_with(part))
    });
    let report = rebuild(&source, &target);
    assert_eq!(homes(&target, "key"), "salvaged-2: named; salvaged-2-2: second", "{report:#?}");
    let doubts = report.notes.iter().filter(|note| note.contains("'salvaged-2-2'"));
    assert_eq!(doubts.count(), 1, "{:#?}", report.notes);
}

/// The archive was asked for before anything was known of a family of which WALs alone tell: what
/// had been flushed of it, and is in the archive, was passed over without a word.
#[test]
fn of_a_family_that_only_wals_know_the_archive_is_read_too() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let mut options = create();
    options.set("WAL_ttl_seconds", "1000000").expect("a known option");
    options.set("avoid_flush_during_shutdown", "true").expect("a known option");
    let db = Db::open(&source, &options).expect("a database");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    db.put_cf(&other, "flushed", "other").expect("a put");
    db.flush_all().expect("a flush");
    db.put_cf(&other, "late", "other").expect("a put");
    db.close().expect("closed");
    remove(&source, |name| ["MANIFEST", "CURRENT", ".sst"].iter().any(|part| name.contains(part)));
    let report = rebuild(&source, &target);
    for key in ["flushed", "late"] {
        assert_eq!(homes(&target, key), "other: other", "{report:#?}");
    }
    let told = report
        .losses
        .iter()
        .filter(|loss| loss.error.to_string().contains("family 'other' has no table"));
    assert_eq!(told.count(), 1, "{report:#?}");
}

/// An older OPTIONS file names no other family, but one may have been made since: its table became
/// the default family's.
#[test]
fn older_options_do_not_tell_that_there_is_but_the_default_family() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let tables = two_families_without_manifest(&source);
    remove(&source, |name| name.ends_with(".log") || tables[2].ends_with(name));
    take_properties(&tables[0]);
    let options = create();
    let older = [("default", options.cf.clone())];
    let report = salvage_with_older_options(&source, &target, &options, &older, &mut |_| {})
        .expect("salvaged");
    assert_eq!(homes(&target, "key007"), "default: default; salvaged: other", "{report:#?}");
}

/// The one hid the values of the other.
#[test]
fn a_table_of_no_known_family_does_not_come_into_one_that_has_its_name() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let options = create();
    let db = Db::open(&source, &options).expect("a database");
    db.put("key", "default").expect("a put");
    db.flush_all().expect("a flush");
    let stray = tables_in(&source).remove(0);
    let name = format!("salvaged-table-{}", stray.file_stem().expect("a name").to_string_lossy());
    for name in ["salvaged", &name] {
        let family = db.create_column_family(name, &options.cf).expect("a family");
        db.put_cf(&family, "key", "named").expect("a put");
        db.flush(&family, &FlushOptions::default()).expect("a flush");
    }
    db.close().expect("closed");
    remove(&source, |name| {
        ["MANIFEST", "CURRENT", "OPTIONS"].iter().any(|part| name.starts_with(part))
    });
    take_properties(&stray);
    let report = rebuild(&source, &target);
    let expected = format!("salvaged: named; {name}: named; {name}-2: default");
    assert_eq!(homes(&target, "key"), expected, "{report:#?}");
}

/// Its records stood in a WAL as well, which was passed over: the family's other table had later
/// ones.
#[test]
fn what_a_table_of_no_known_family_held_is_taken_from_a_wal_that_has_it() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let options = create();
    let db = Db::open(&source, &options).expect("a database");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    db.put_cf(&other, "keeps the WAL", "other").expect("a put");
    let default = db.default_column_family();
    let key = |number: u32| format!("key{number:03}");
    for number in 0..200 {
        db.put(key(number), vec![b'v'; 100]).expect("a put");
    }
    db.flush(default, &FlushOptions::default()).expect("a flush");
    db.put("later", "default").expect("a put");
    db.flush(default, &FlushOptions::default()).expect("a flush");
    db.close().expect("closed");
    remove(&source, |name| {
        ["MANIFEST", "CURRENT", "OPTIONS"].iter().any(|part| name.starts_with(part))
    });
    let lost = &tables_in(&source)[0];
    take_properties(lost);
    let mut bytes = std::fs::read(lost).expect("a table");
    bytes[3] ^= 0x10;
    std::fs::write(lost, bytes).expect("written");
    let is_whole = |target: &Path, report: &SalvageReport| {
        let db = open_as_written(target, true);
        for number in 0..200 {
            let value = db.get(key(number)).expect("it can be read");
            assert_eq!(value.as_deref(), Some(&[b'v'; 100][..]), "{} {report:#?}", key(number));
        }
        assert_eq!(db.get("later").expect("it can be read").as_deref(), Some(&b"default"[..]));
    };
    let report = rebuild(&source, &target);
    is_whole(&target, &report);
    // Nor is one of which nothing can be read.
    std::fs::remove_file(lost).expect("a table");
    std::fs::create_dir(lost).expect("no file");
    let target = scratch.path().join("again");
    let report = rebuild(&source, &target);
    is_whole(&target, &report);
    // Not even whether it is one.
    std::fs::remove_dir(lost).expect("no file");
    std::os::unix::fs::symlink("nowhere", lost).expect("a link");
    let target = scratch.path().join("once more");
    let report = rebuild(&source, &target);
    is_whole(&target, &report);
}

/// A database with the families `gone`, which was dropped, and `stays`, of whose MANIFEST all from
/// the drop on is `byte`.
fn overwrite_the_drop(source: &Path, byte: u8, makes_another: bool) {
    let options = create();
    let db = Db::open(source, &options).expect("a database");
    let family = |name| db.create_column_family(name, &options.cf).expect("a family");
    let (gone, stays) = (family("gone"), family("stays"));
    db.put_cf(&gone, "key", "gone").expect("a put");
    db.put_cf(&stays, "key", "stays").expect("a put");
    let manifest = source.join("MANIFEST-000001");
    let before = std::fs::metadata(&manifest).expect("a MANIFEST").len();
    db.drop_column_family(&gone).expect("dropped");
    if makes_another {
        family("third");
    }
    db.close().expect("closed");
    let mut bytes = std::fs::read(&manifest).expect("a MANIFEST");
    bytes[before as usize..].fill(byte);
    std::fs::write(&manifest, bytes).expect("written");
}

/// It came back without a word, since a part of the MANIFEST named it.
#[test]
fn a_family_that_may_have_been_dropped_is_said_to() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    overwrite_the_drop(&source, 0x55, false);
    let report = rebuild(&source, &target);
    assert_eq!(homes(&target, "key"), "gone: gone; stays: stays", "{report:#?}");
    let doubts: Vec<_> = report.notes.iter().filter(|note| note.contains("been dropped")).collect();
    assert!(
        doubts.len() == 1 && doubts[0].starts_with("Family 'gone' is named"),
        "{:#?}",
        report.notes
    );
    // Without options nothing tells which of them stays.
    remove(&source, |name| name.starts_with("OPTIONS"));
    let report = rebuild(&source, &scratch.path().join("again"));
    let doubts: Vec<_> = report.notes.iter().filter(|note| note.contains("been dropped")).collect();
    let of =
        |name| doubts.iter().any(|doubt| doubt.starts_with(&format!("Family '{name}' is named")));
    assert!(doubts.len() == 2 && of("gone") && of("stays"), "{:#?}", report.notes);
}

/// The names of the families that the report says may be dropped ones, of those that the MANIFEST
/// names.
fn doubted(report: &SalvageReport) -> Vec<&str> {
    let doubts = report.notes.iter().filter(|note| note.contains("is named in an intact part"));
    doubts.map(|doubt| doubt.split('\'').nth(1).expect("a name")).collect()
}

/// Zeros behind its first edits passed for what a power loss leaves, and so the MANIFEST for one
/// that says all there is to say: a dropped family came back without a word.
#[test]
fn a_family_is_said_to_be_perhaps_a_dropped_one_where_the_options_know_more_than_the_manifest() {
    for makes_another in [true, false] {
        let scratch = temporary();
        let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
        overwrite_the_drop(&source, 0, makes_another);
        let report = rebuild(&source, &target);
        assert_eq!(homes(&target, "key"), "gone: gone; stays: stays", "{report:#?}");
        assert_eq!(doubted(&report), ["gone"], "{report:#?}");
    }
}

/// A crash comes between the edit that makes or drops a family and the options that say so; and who
/// calls may list some alone.
#[test]
fn options_that_are_older_than_the_manifest_raise_no_doubts() {
    let scratch = temporary();
    let (source, older) = (scratch.path().join("source"), scratch.path().join("older"));
    let options = create();
    let db = Db::open(&source, &options).expect("a database");
    let family = |name| db.create_column_family(name, &options.cf).expect("a family");
    let gone = family("gone");
    let stays = family("stays");
    db.put_cf(&stays, "key", "stays").expect("a put");
    let is_options = |name: &str| name.starts_with("OPTIONS");
    copy_directory(&source, &older);
    remove(&older, |name| !is_options(name));
    db.drop_column_family(&gone).expect("dropped");
    family("newer");
    db.close().expect("closed");
    remove(&source, is_options);
    copy_directory(&older, &source);
    let report = rebuild(&source, &scratch.path().join("db"));
    assert!(doubted(&report).is_empty() && report.is_complete(), "{report:#?}");
    assert_eq!(homes(&scratch.path().join("db"), "key"), "stays: stays");
    let some = [("newer", options.cf.clone())];
    let target = scratch.path().join("again");
    let report = salvage(&source, &target, &options, &some, &mut |_| {}).expect("a salvage");
    assert!(doubted(&report).is_empty() && report.is_complete(), "{report:#?}");
}

/// That one cannot be dropped, and callers need not name it: `options.cf` is its.
#[test]
fn the_default_family_is_not_said_to_be_perhaps_a_dropped_one() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let options = create();
    let db = Db::open(&source, &options).expect("a database");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    db.put("key", "default").expect("a put");
    db.put_cf(&other, "key", "other").expect("a put");
    db.close().expect("closed");
    remove(&source, |name| ["MANIFEST", "CURRENT"].iter().any(|part| name.starts_with(part)));
    let families = [("other", options.cf.clone())];
    let report = salvage(&source, &target, &options, &families, &mut |_| {}).expect("a salvage");
    assert!(!report.notes.iter().any(|note| note.contains("'default'")), "{:#?}", report.notes);
}

/// It was said that the MANIFEST names it, which names the other one.
#[test]
fn a_family_that_made_way_for_a_newer_one_of_its_name_is_said_to() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let options = create();
    let db = Db::open(&source, &options).expect("a database");
    let manifest = source.join("MANIFEST-000001");
    let size = || std::fs::metadata(&manifest).expect("a MANIFEST").len() as usize;
    let family = || db.create_column_family("twice", &options.cf).expect("a family");
    let older = family();
    db.put("keeps the WAL", "default").expect("a put");
    db.put_cf(&older, "key", "older").expect("a put");
    let before = size();
    db.drop_column_family(&older).expect("dropped");
    let newer = family();
    db.put_cf(&newer, "key", "newer").expect("a put");
    db.flush(&newer, &FlushOptions::default()).expect("a flush");
    db.close().expect("closed");
    let mut bytes = std::fs::read(&manifest).expect("a MANIFEST");
    bytes[before..].fill(0x55);
    std::fs::write(&manifest, bytes).expect("written");
    let report = rebuild(&source, &target);
    assert_eq!(homes(&target, "key"), "salvaged-1: older; twice: newer", "{report:#?}");
    let doubts: Vec<_> = report.notes.iter().filter(|note| note.contains("'salvaged-1'")).collect();
    assert!(
        doubts.len() == 1 && doubts[0].contains("belongs to a newer family"),
        "{:#?}",
        report.notes
    );
}

/// Some of what a family's options say of tables was not asked: they had filters that a compaction
/// to the bottom leaves out.
#[test]
fn the_tables_of_a_salvage_are_as_the_familys_options_say() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let mut options = create();
    options
        .set_all("filter_policy=bloomfilter:10;optimize_filters_for_hits=true")
        .expect("known options");
    let db = Db::open(&source, &options).expect("a database");
    db.put("key", "value").expect("a put");
    db.close().expect("closed");
    rebuild(&source, &target);
    assert_eq!(homes(&target, "key"), "default: value");
    let filters: Vec<u64> = tables_in(&target).iter().map(|table| filter_bytes(table)).collect();
    assert_eq!(filters, [0]);
}

/// With `optimize_filters_for_hits` they had none, and no compaction of FIFO would have made one.
#[test]
fn the_tables_of_a_salvaged_queue_have_their_filters() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let mut options = create();
    let settings = "compaction_style=kCompactionStyleFIFO;filter_policy=bloomfilter:10;optimize_filters_for_hits=true";
    options.set_all(settings).expect("known options");
    let db = Db::open(&source, &options).expect("a database");
    db.put("key", "value").expect("a put");
    db.close().expect("closed");
    rebuild(&source, &target);
    assert_eq!(homes(&target, "key"), "default: value");
    assert!(tables_in(&target).iter().all(|table| filter_bytes(table) > 0));
}

fn filter_bytes(table: &Path) -> u64 {
    let file = Env::os().fs.open_random_access(table, IoMode::Buffered).expect("a table");
    let size = file.size().expect("a size");
    read_table_properties(file, size).expect("properties").filter_size
}
