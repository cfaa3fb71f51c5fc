//! Files of another database in the directory that is salvaged.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::*;
use flagstone::db::{Db, SalvageReport, salvage};
use flagstone::options::DataPathList;

/// A database whose values say its name: several tables, and edits of the MANIFEST that remove
/// others.
fn made(path: &Path, name: &str) {
    let db = Db::open(path, &create()).expect("a database");
    for round in 0..4 {
        for key in 0..20 {
            db.put(format!("key{key:02}"), format!("{name}{round}")).expect("a put");
        }
        db.flush_all().expect("a flush");
        if round == 2 {
            let all = db.default_column_family().clone();
            db.compact_range(&all, None, None, &Default::default()).expect("a compaction");
        }
    }
    db.put("last", name).expect("a put");
    db.close().expect("closed");
}

/// Its MANIFEST knows more numbers then.
fn go_on(path: &Path) {
    for round in 0..3 {
        let db = Db::open(path, &create()).expect("it opens");
        db.put("more", format!("{round}")).expect("a put");
        let all = db.default_column_family().clone();
        db.compact_range(&all, None, None, &Default::default()).expect("a compaction");
        db.close().expect("closed");
    }
}

fn file(path: &Path, part: &str) -> PathBuf {
    let mut files: Vec<_> = std::fs::read_dir(path)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files.into_iter().rfind(|file| file.to_string_lossy().contains(part)).expect("there is one")
}

fn salvaged(source: &Path, target: &Path) -> (SalvageReport, Vec<(String, String)>) {
    let report = salvage(source, target, &create(), &[], &mut |_| {}).expect("salvaged");
    let db = Db::open(target, &create()).expect("it opens");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let found = entries(&db, db.default_column_family());
    (report, found.into_iter().map(|(key, value)| (text(key), text(value))).collect())
}

/// Of two blob files the older has left the tree, which had `size` bytes: the newer, cut off there,
/// is not taken for it.
fn the_one_left_is_not_taken_for_the_other(own: &Path, size: u64, new: &Path) {
    let files =
        std::fs::read_dir(own).expect("a directory").map(|entry| entry.expect("an entry").path());
    let blobs = files.filter(|file| file.to_string_lossy().ends_with(".blob"));
    assert_eq!(blobs.count(), 1, "the other is gone");
    let left = std::fs::OpenOptions::new().write(true).open(file(own, ".blob")).expect("a file");
    assert!(left.metadata().expect("a file").len() > size);
    left.set_len(size).expect("cut off");
    let (report, found) = salvaged(own, new);
    let keys: Vec<_> = found.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["0", "1", "2"], "{report:#?}");
    assert!(!report.notes.iter().any(|note| note.contains("by the size")), "{report:#?}");
}

/// It was taken for that other one, and all that was left in it was lost.
#[test]
fn a_blob_file_that_was_cut_off_at_the_size_of_a_removed_one_keeps_its_number() {
    let scratch = temporary();
    let own = scratch.path().join("own");
    let mut options = create();
    options.cf.enable_blob_files = Some(true);
    options.cf.min_blob_size = Some(100);
    let db = Db::open(&own, &options).expect("a database");
    let put = |key: usize| db.put(key.to_string(), vec![b'v'; 1000]).expect("a put");
    (0..3).for_each(put);
    db.flush_all().expect("a flush");
    let size = std::fs::metadata(file(&own, ".blob")).expect("a file").len();
    (0..5).for_each(put);
    db.flush_all().expect("a flush");
    let all = db.default_column_family().clone();
    db.compact_range(&all, None, None, &Default::default()).expect("a compaction");
    db.close().expect("closed");
    the_one_left_is_not_taken_for_the_other(&own, size, &scratch.path().join("new"));
}

/// The same, where its garbage was not counted: it left the tree since it was older than all that
/// tables referred to.
#[test]
fn a_blob_file_that_is_older_than_those_in_use_is_not_missed() {
    let scratch = temporary();
    let own = scratch.path().join("own");
    let mut options = create();
    let settings = "enable_blob_files=true;min_blob_size=100;compaction_style=kCompactionStyleFIFO;\
        compaction_options_fifo={max_table_files_size=1000000;}";
    options.set_all(settings).expect("options");
    let db = Db::open(&own, &options).expect("a database");
    let put = |key: usize| db.put(key.to_string(), vec![b'v'; 1000]).expect("a put");
    (0..3).for_each(put);
    db.flush_all().expect("a flush");
    let size = std::fs::metadata(file(&own, ".blob")).expect("a file").len();
    // What it refers to cannot be counted.
    let table = std::fs::OpenOptions::new().write(true).open(file(&own, ".sst")).expect("a file");
    table.write_at(&[0xff; 8], 0).expect("damaged");
    (0..5).for_each(put);
    db.flush_all().expect("a flush");
    let newest = std::fs::metadata(file(&own, ".sst")).expect("a file").len();
    let limit = format!("{{max_table_files_size={};}}", newest + 1);
    db.set_options(db.default_column_family(), &[("compaction_options_fifo", &limit)])
        .expect("an option");
    db.wait_for_compactions().expect("the oldest is dropped");
    db.close().expect("closed");
    the_one_left_is_not_taken_for_the_other(&own, size, &scratch.path().join("new"));
}

/// Its edits were believed: tables that have the numbers of those that it had removed were left
/// out.
#[test]
fn the_manifest_of_another_database_is_recognised() {
    let scratch = temporary();
    let (own, other) = (scratch.path().join("own"), scratch.path().join("other"));
    made(&own, "own");
    let sound = salvaged(&own, &scratch.path().join("sound")).1;
    made(&other, "other");
    go_on(&other);
    std::fs::remove_file(own.join("CURRENT")).expect("removed");
    std::fs::remove_file(file(&own, "MANIFEST")).expect("removed");
    let manifest = file(&other, "MANIFEST");
    std::fs::copy(&manifest, own.join(manifest.file_name().expect("a name"))).expect("copied");
    let (report, found) = salvaged(&own, &scratch.path().join("new"));
    assert_eq!(found, sound, "{report:#?}");
    assert!(report.notes.iter().any(|note| note.contains("another database")), "{report:#?}");
}

/// Its own MANIFEST is taken then, and not that which CURRENT names.
#[test]
fn the_manifest_of_its_own_is_preferred_to_that_which_current_names() {
    let scratch = temporary();
    let (own, other) = (scratch.path().join("own"), scratch.path().join("other"));
    made(&own, "own");
    let sound = salvaged(&own, &scratch.path().join("sound")).1;
    made(&other, "other");
    go_on(&other);
    std::fs::copy(file(&other, "MANIFEST"), own.join("MANIFEST-009999")).expect("copied");
    std::fs::write(own.join("CURRENT"), "MANIFEST-009999\n").expect("written");
    let (report, found) = salvaged(&own, &scratch.path().join("new"));
    assert_eq!(found, sound, "{report:#?}");
    assert!(report.losses.is_empty(), "{report:#?}");
}

/// Its entries came out as the database's own.
#[test]
fn a_table_of_another_database_under_a_number_of_this_one_is_not_mixed_in() {
    let scratch = temporary();
    let (own, other) = (scratch.path().join("own"), scratch.path().join("other"));
    made(&own, "own");
    made(&other, "other");
    let table = file(&own, ".sst");
    std::fs::copy(file(&other, ".sst"), &table).expect("copied");
    let (report, found) = salvaged(&own, &scratch.path().join("new"));
    assert!(
        !found.is_empty() && found.iter().all(|(_, value)| value.starts_with("own")),
        "{found:?}"
    );
    let loss = &report.losses[0];
    assert!(loss.error.path() == Some(&table) && loss.key_range.is_some(), "{report:#?}");
}

/// Both were left out as strangers, although all of their bytes were there.
#[test]
fn tables_that_bear_the_names_of_others_are_known_by_what_they_say_of_themselves() {
    let scratch = temporary();
    let own = scratch.path().join("own");
    made(&own, "own");
    let sound = salvaged(&own, &scratch.path().join("sound")).1;
    let files = || {
        std::fs::read_dir(&own).expect("a directory").map(|entry| entry.expect("an entry").path())
    };
    let mut tables: Vec<_> =
        files().filter(|file| file.to_string_lossy().ends_with(".sst")).collect();
    tables.sort();
    let (one, other) = (tables[0].clone(), tables[1].clone());
    let kept = std::fs::read(&one).expect("a table");
    std::fs::rename(&other, &one).expect("renamed");
    std::fs::write(&other, &kept).expect("written");
    let (report, found) = salvaged(&own, &scratch.path().join("swapped"));
    assert_eq!(found, sound, "{report:#?}");
    assert!(report.is_complete(), "{report:#?}");
    let told =
        |path: &PathBuf| report.notes.iter().any(|note| note.starts_with(&*path.to_string_lossy()));
    assert!(told(&one) && told(&other), "{:#?}", report.notes);
    // With zeros behind them, too, as after a crash of a file system that had reserved more.
    let whole = [&one, &other].map(|table| std::fs::read(table).expect("a table"));
    for (table, bytes) in [&one, &other].into_iter().zip(&whole) {
        std::fs::write(table, [&bytes[..], &[0; 5000]].concat()).expect("written");
    }
    let (report, found) = salvaged(&own, &scratch.path().join("longer"));
    assert_eq!(found, sound, "{report:#?}");
    assert!(report.is_complete(), "{report:#?}");
    for (table, bytes) in [&one, &other].into_iter().zip(whole) {
        std::fs::write(table, bytes).expect("written");
    }
    // One lies under the number of a table that was replaced long ago, the other under its own one.
    std::fs::rename(&one, &other).expect("renamed");
    std::fs::write(own.join("000001.sst"), kept).expect("written");
    let (report, found) = salvaged(&own, &scratch.path().join("renamed"));
    assert_eq!(found, sound, "{report:#?}");
    assert!(report.is_complete(), "{report:#?}");
    // A second one does not count beside it.
    std::fs::copy(own.join("000001.sst"), &one).expect("copied");
    let (report, found) = salvaged(&own, &scratch.path().join("twice"));
    assert_eq!(found, sound, "{report:#?}");
    assert!(report.is_complete(), "{report:#?}");
}

/// All of their values were lost, though every byte of them was there.
#[test]
fn blob_files_that_bear_each_other_s_names_are_known_by_their_sizes() {
    let scratch = temporary();
    let own = scratch.path().join("own");
    let mut options = create();
    options.cf.enable_blob_files = Some(true);
    options.cf.min_blob_size = Some(100);
    let db = Db::open(&own, &options).expect("a database");
    for round in 1..4 {
        // Each has the same keys, at the same places.
        (0..5).for_each(|key| {
            db.put(format!("{round}{key}"), vec![b'v'; 1000 + round]).expect("a put")
        });
        db.flush_all().expect("a flush");
    }
    db.close().expect("closed");
    let sound = salvaged(&own, &scratch.path().join("sound")).1;
    let files =
        std::fs::read_dir(&own).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut blobs: Vec<_> =
        files.filter(|file| file.to_string_lossy().ends_with(".blob")).collect();
    blobs.sort();
    assert_eq!(blobs.len(), 3, "{blobs:?}");
    let aside = scratch.path().join("aside");
    for (source, target) in
        [(&blobs[0], &aside), (&blobs[1], &blobs[0]), (&blobs[2], &blobs[1]), (&aside, &blobs[2])]
    {
        std::fs::rename(source, target).expect("renamed");
    }
    let (report, found) = salvaged(&own, &scratch.path().join("new"));
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(found, sound);
    assert_eq!(
        report.notes.iter().filter(|note| note.contains("by the size")).count(),
        3,
        "{report:#?}"
    );
}

/// Of a database all of whose tables another one had made, a flipped bit in IDENTITY had the
/// MANIFEST left out.
#[test]
fn a_damaged_identity_does_not_cost_the_manifest() {
    let scratch = temporary();
    let own = scratch.path().join("own");
    copy_directory(&fixtures().join("basic"), &own);
    // As after the restoring of a backup, which has none.
    std::fs::remove_file(own.join("IDENTITY")).expect("removed");
    let mut options = create();
    options.cf.disable_auto_compactions = true;
    let db = Db::open(&own, &options).expect("it opens");
    let expected = dump(&db);
    db.close().expect("closed");
    let mut identity = std::fs::read(own.join("IDENTITY")).expect("it was made anew");
    identity[5] ^= 1;
    std::fs::write(own.join("IDENTITY"), identity).expect("written");
    let target = scratch.path().join("new");
    let report = salvage(&own, &target, &create(), &[], &mut |_| {}).expect("salvaged");
    assert!(report.is_complete() && report.notes.is_empty(), "{report:#?}");
    assert_eq!(dump(&open_as_written(&target, false)), expected);
}

/// Nothing tells a damaged identity of a table without checksums from another table's: the whole
/// table was left out.
#[test]
fn a_flipped_bit_in_the_identity_of_a_table_without_checksums_costs_nothing() {
    let scratch = temporary();
    let own = scratch.path().join("own");
    let mut options = create();
    for (name, value) in [("table.checksum", "kNoChecksum"), ("compression", "kNoCompression")] {
        options.set(name, value).expect("a known value");
    }
    let db = Db::open(&own, &options).expect("a database");
    (0..100u32).for_each(|key| db.put(format!("key{key}"), b"value").expect("a put"));
    db.flush_all().expect("a flush");
    db.close().expect("closed");
    let table = file(&own, ".sst");
    let mut bytes = std::fs::read(&table).expect("a file");
    let name = b"session.identity";
    let at = bytes.windows(name.len()).position(|window| window == name).expect("a property");
    bytes[at + name.len() + 2] ^= 1;
    std::fs::write(&table, bytes).expect("written");
    let (report, found) = salvaged(&own, &scratch.path().join("new"));
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(found.len(), 100);
}

/// Its tables and WALs came out as this one's, without a word.
#[test]
fn directories_that_belong_to_another_database_are_named() {
    let scratch = temporary();
    let (own, other) = (scratch.path().join("own"), scratch.path().join("other"));
    let options_with = |tables: &Path, wals: &Path| {
        let mut options = create();
        options.db.db_paths = DataPathList::of(&[(tables.to_str().expect("ASCII"), 0)]);
        options.db.wal_dir = wals.to_str().expect("ASCII").to_string();
        options
    };
    let (tables, wals) = (scratch.path().join("tables"), scratch.path().join("wals"));
    let options = options_with(&tables, &wals);
    let db = Db::open(&other, &options).expect("a database");
    db.put("other", "1").expect("a put");
    db.close().expect("closed");
    made(&own, "own");
    let notes_of = |source: &Path, target: &str| {
        let target = scratch.path().join(target);
        salvage(source, &target, &options, &[], &mut |_| {}).expect("salvaged").notes
    };
    let notes = notes_of(&own, "new");
    for directory in [&tables, &wals] {
        let what =
            format!("{} belongs to another database, {}", directory.display(), other.display());
        assert!(notes.iter().any(|note| note.starts_with(&what)), "{notes:?}");
    }
    assert_eq!(notes_of(&other, "newer"), [""; 0]);
    // Nor is a directory salvaged by itself without a word of whose it is.
    assert!(
        notes_of(&wals, "newest").iter().any(|note| note.contains("belongs to another database"))
    );
}

/// It notes which writes tables of its own database have. That was believed of this one's, and what
/// only the WAL had was passed over.
#[test]
fn a_table_of_another_database_does_not_say_which_writes_tables_of_this_one_have() {
    let scratch = temporary();
    let (own, other) = (scratch.path().join("own"), scratch.path().join("other"));
    made(&own, "own");
    made(&other, "other");
    go_on(&other);
    std::fs::copy(file(&other, ".sst"), own.join("009999.sst")).expect("copied");
    let manifest = file(&own, "MANIFEST");
    let last = |target: &str| {
        let (report, found) = salvaged(&own, &scratch.path().join(target));
        let last = found.into_iter().find(|(key, _)| key == "last");
        assert_eq!(last.map(|(_, value)| value), Some("own".to_string()), "{target}: {report:#?}");
    };
    // Whose the others are, says the MANIFEST as far as it is intact, else IDENTITY.
    let mut bytes = std::fs::read(&manifest).expect("a file");
    *bytes.last_mut().expect("it is not empty") ^= 1;
    std::fs::write(&manifest, bytes).expect("written");
    let identity = std::fs::read(own.join("IDENTITY")).expect("a file");
    std::fs::remove_file(own.join("IDENTITY")).expect("removed");
    last("without IDENTITY");
    std::fs::remove_file(&manifest).expect("removed");
    std::fs::write(own.join("IDENTITY"), identity).expect("written");
    last("without a MANIFEST");
}
