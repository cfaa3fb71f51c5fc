//! Salvages of files that lie where they should not, or twice, of directories that cannot be read,
//! and of MANIFESTs of which nothing can.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::*;
use flagstone::base::{ColumnFamilyId, Error, Result};
use flagstone::db::{Db, SalvageReport, salvage, salvage_with_older_options};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::os::OsFileSystem;
use flagstone::env::{Env, FileSystem, FileSystemAround, IoMode};
use flagstone::manifest::VersionEdit;
use flagstone::options::{CompactRangeOptions, DataPathList, FlushOptions, Options};

fn rebuild(source: &Path, target: &Path, options: &Options) -> SalvageReport {
    salvage(source, target, options, &[], &mut |_| {}).unwrap_or_else(|error| panic!("{error}"))
}

/// The keys of the default family, each with its value.
fn contents(directory: &Path) -> Vec<(String, String)> {
    let db = open_as_written(directory, true);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    entries(&db, db.default_column_family())
        .into_iter()
        .map(|(key, value)| (text(key), text(value)))
        .collect()
}

fn file(directory: &Path, part: &str) -> PathBuf {
    let names = Env::os().fs.list(directory).expect("a directory");
    let mut found: Vec<_> = names.into_iter().filter(|name| name.contains(part)).collect();
    found.sort();
    directory.join(found.first().unwrap_or_else(|| panic!("no {part} in {}", directory.display())))
}

/// A copy of a file in another directory, of which the end is missing.
fn half_copied(from: &Path, to: &Path) {
    let bytes = std::fs::read(from).expect("a file");
    std::fs::create_dir_all(to).expect("a directory");
    std::fs::write(to.join(from.file_name().expect("a name")), &bytes[..bytes.len() / 2])
        .expect("written");
}

/// Options of a database whose tables and blob files lie in these directories, and its WALs in the
/// last one.
fn spread(scratch: &Path, names: [&str; 3]) -> (Options, [PathBuf; 3]) {
    let places = names.map(|name| scratch.join(name));
    let [fast, slow, wals] = places.each_ref().map(|path| path.to_str().expect("ASCII"));
    let mut options = create();
    options.db.db_paths = DataPathList::of(&[(fast, 1 << 30), (slow, 1 << 30)]);
    options.db.wal_dir = wals.to_string();
    for (name, value) in [("enable_blob_files", "true"), ("min_blob_size", "1000")] {
        options.set(name, value).expect("a known option");
    }
    (options, places)
}

/// Two hundred small values and a large one in a table and a blob file, and one more in the WAL.
fn write_some(path: &Path, options: &Options, word: &str) {
    let db = Db::open(path, options).expect("a database");
    (0..200).for_each(|key| db.put(format!("key{key:03}"), word).expect("a put"));
    db.put("large", word.repeat(1000)).expect("a put");
    db.flush_all().expect("a flush");
    db.put("late", word).expect("a put");
    db.put("later", word).expect("a put");
    db.close().expect("closed");
}

/// A move of files to another disk that was broken off: of two files of a number the one was taken
/// that was listed last.
#[test]
fn of_files_that_are_there_twice_the_whole_one_counts() {
    for (nth, order) in [["fast", "slow", "wals"], ["slow", "fast", "wals"]].into_iter().enumerate()
    {
        let scratch = temporary();
        let source = scratch.path().join("source");
        let (options, [own, other, wals]) = spread(scratch.path(), order);
        write_some(&source, &options, "value");
        half_copied(&file(&own, ".sst"), &other);
        half_copied(&file(&own, ".blob"), &other);
        half_copied(&file(&wals, ".log"), &source);
        let target = scratch.path().join("db");
        let report = rebuild(&source, &target, &options);
        assert_eq!(contents(&target).len(), 203, "{nth} {report:#?}");
        assert!(report.is_complete(), "{nth} {report:#?}");
        // Also where those are damaged that were to be moved, and the copies are whole.
        for (from, to, kind) in
            [(&own, &other, ".sst"), (&own, &other, ".blob"), (&wals, &source, ".log")]
        {
            let damaged = file(from, kind);
            std::fs::copy(&damaged, to.join(damaged.file_name().expect("a name"))).expect("copied");
            half_copied(&damaged, from);
        }
        let target = scratch.path().join("again");
        let report = rebuild(&source, &target, &options);
        assert_eq!(contents(&target).len(), 203, "{nth} {report:#?}");
    }
}

/// Damaged blocks were counted alone where others had taken all of the room, and nothing told of
/// the table that they are in.
#[test]
fn a_table_whose_damage_finds_no_room_is_named() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("target"));
    let mut options = create();
    for (name, value) in [("compression", "kNoCompression"), ("disable_auto_compactions", "true")] {
        options.set(name, value).expect("a known option");
    }
    // Of one block each, between two keys that take room.
    let (size, counts) = (1 << 20, [41, 9]);
    let db = Db::open(&source, &options).expect("a database");
    for count in counts {
        for key in 0..count {
            db.put(format!("{}{count:02}{key:02}", "k".repeat(size)), "value").expect("a put");
        }
        db.flush_all().expect("a flush");
    }
    db.close().expect("closed");
    let mut tables: Vec<_> = std::fs::read_dir(&source)
        .expect("a directory")
        .map(|name| name.expect("a name").path())
        .collect();
    tables.retain(|path| path.extension().is_some_and(|extension| extension == "sst"));
    tables.sort();
    for (table, count) in tables.iter().zip(counts) {
        let mut bytes = std::fs::read(table).expect("a table");
        (1..count).step_by(2).for_each(|block| bytes[block * size + size / 2] ^= 1);
        std::fs::write(table, bytes).expect("written");
    }
    let report = rebuild(&source, &target, &options);
    assert_eq!(report.places_lost(), 20 + 4);
    let wholes = &report.losses[..report.whole_losses];
    let named: Vec<_> =
        wholes.iter().map(|loss| (loss.error.path(), loss.error.message())).collect();
    let says = |number: usize| {
        format!("the first of {number} damaged places here that find no room in this report: ")
    };
    let listed = report.losses.len() - report.whole_losses;
    for (nth, unlisted) in [20 - listed, 4].into_iter().enumerate() {
        assert_eq!(named[nth].0, Some(&*tables[nth]));
        assert!(named[nth].1.starts_with(&says(unlisted)), "{listed} {:?}", named[nth].1);
    }
}

/// As after a crash of a file system that had reserved more: there was no footer where it should
/// be, and without checksums nothing else told what is a block.
#[test]
fn zeros_behind_a_table_without_checksums_cost_nothing() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let mut options = create();
    options.set("table.checksum", "kNoChecksum").expect("a known value");
    write_some(&source, &options, "value");
    let table = file(&source, ".sst");
    let mut bytes = std::fs::read(&table).expect("a table");
    bytes.resize(bytes.len() + 5000, 0);
    std::fs::write(&table, bytes).expect("written");
    let target = scratch.path().join("db");
    let report = rebuild(&source, &target, &options);
    assert_eq!(contents(&target).len(), 203, "{report:#?}");
    assert!(report.is_complete(), "{report:#?}");
    assert!(report.harmless.iter().any(|error| error.path() == Some(&table)), "{report:#?}");
}

/// The right table was passed over for one of that number, and all that it held was lost.
#[test]
fn a_stranger_elsewhere_does_not_hide_the_table_of_its_number() {
    let scratch = temporary();
    let (source, stranger) = (scratch.path().join("source"), scratch.path().join("stranger"));
    let (options, [own, other, _]) = spread(scratch.path(), ["fast", "slow", "wals"]);
    write_some(&source, &options, "own");
    write_some(&stranger, &create(), "other");
    let table = file(&own, ".sst");
    std::fs::copy(file(&stranger, ".sst"), other.join(table.file_name().expect("a name")))
        .expect("copied");
    let target = scratch.path().join("db");
    let report = rebuild(&source, &target, &options);
    assert!(report.is_complete(), "{report:#?}");
    let found = contents(&target);
    assert!(
        found.len() == 203 && found.iter().all(|(_, value)| value.starts_with("own")),
        "{found:?}"
    );
}

/// The database's own directory among its `db_paths` under another name: no file is there twice.
#[test]
fn a_directory_with_two_names_is_read_once() {
    let scratch = temporary();
    let (source, link) = (scratch.path().join("source"), scratch.path().join("link"));
    std::fs::create_dir(&source).expect("a directory");
    std::os::unix::fs::symlink(&source, &link).expect("a link");
    let (options, _) = spread(scratch.path(), ["link", "slow", "link"]);
    write_some(&source, &options, "value");
    let target = scratch.path().join("db");
    let report = rebuild(&source, &target, &options);
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(report.files.len(), 3, "{report:#?}");
    assert_eq!(contents(&target).len(), 203);
}

/// A disk that has failed: what is there cannot even be listed.
struct Failed(PathBuf);

impl FileSystemAround for Failed {
    fn inner(&self) -> &dyn FileSystem {
        &OsFileSystem
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        if directory.starts_with(&self.0) {
            Err(Error::io("list", directory, std::io::ErrorKind::PermissionDenied.into()))
        } else {
            OsFileSystem.list(directory)
        }
    }
}

/// Nothing of the other disks was saved.
#[test]
fn a_directory_that_cannot_be_listed_costs_what_is_in_it_alone() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let (mut options, [fast, slow, wals]) = spread(scratch.path(), ["fast", "slow", "wals"]);
    write_some(&source, &options, "value");
    for (failed, keys, is_complete) in [(&wals, 201, false), (&slow, 203, false), (&fast, 2, false)]
    {
        options.env = Env::os().with_fs(Arc::new(Failed(failed.clone())));
        let target = scratch
            .path()
            .join(format!("without {}", failed.file_name().expect("a name").display()));
        let report = rebuild(&source, &target, &options);
        assert_eq!(contents(&target).len(), keys, "{report:#?}");
        assert_eq!(report.is_complete(), is_complete, "{report:#?}");
        let told = report.losses.iter().filter(|loss| loss.error.path() == Some(failed));
        assert_eq!(told.count(), 1, "{report:#?}");
    }
}

/// Without a MANIFEST nothing told which tables it had: that was a note, and what WALs have of them
/// was not taken.
#[test]
fn a_directory_that_is_gone_is_a_loss_where_the_manifest_does_not_name_its_files() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let (mut options, [fast, slow, wals]) = spread(scratch.path(), ["fast", "slow", "wals"]);
    options.set("avoid_flush_during_shutdown", "true").expect("a known option");
    let db = Db::open(&source, &options).expect("a database");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    db.put_cf(&other, "needs", "the WALs").expect("a put");
    for key in ["first", "second"] {
        db.put(key, "value").expect("a put");
        db.flush(db.default_column_family(), &FlushOptions::default()).expect("a flush");
    }
    db.close().expect("closed");
    drop((other, db));
    let tables = Env::os().fs.list(&fast).expect("a directory");
    let second = tables.iter().filter(|name| name.ends_with(".sst")).max().expect("two tables");
    std::fs::rename(fast.join(second), slow.join(second)).expect("moved");
    std::fs::remove_dir_all(&fast).expect("removed");
    std::fs::remove_file(file(&source, "MANIFEST")).expect("removed");
    let report = rebuild(&source, &scratch.path().join("db"), &options);
    assert!(report.losses.iter().any(|loss| loss.error.path() == Some(&fast)), "{report:#?}");
    let keys: Vec<_> =
        contents(&scratch.path().join("db")).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["first", "second"], "{report:#?}");
    // Whether there were WALs nothing tells.
    std::fs::remove_dir_all(&wals).expect("removed");
    let report = rebuild(&source, &scratch.path().join("without WALs"), &options);
    let words = format!("{} is missing", wals.display());
    assert!(report.notes.iter().any(|note| note.starts_with(&words)), "{report:#?}");
}

/// It was a loss where older options alone name it, which may name families that were dropped
/// since, and their directories.
#[test]
fn a_directory_that_is_gone_is_no_loss_where_older_options_alone_tell_of_its_family() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let own = scratch.path().join("own");
    let options = create();
    let db = Db::open(&source, &options).expect("a database");
    let mut of_other = options.cf.clone();
    of_other.cf_paths = DataPathList::of(&[(own.to_str().expect("ASCII"), 0)]);
    let other = db.create_column_family("other", &of_other).expect("a family");
    db.put("key", "default").expect("a put");
    db.put_cf(&other, "key", "other").expect("a put");
    db.flush_all().expect("a flush");
    db.close().expect("closed");
    drop((other, db));
    let table = file(&own, ".sst");
    let kept = source.join(table.file_name().expect("a name"));
    std::fs::copy(table, &kept).expect("copied");
    std::fs::remove_dir_all(&own).expect("removed");
    std::fs::remove_file(file(&source, "MANIFEST")).expect("removed");
    let families = [("default", options.cf.clone()), ("other", of_other)];
    let is_lost = |target: &str| {
        let target = scratch.path().join(target);
        let report = salvage_with_older_options(&source, &target, &options, &families, &mut |_| {})
            .expect("salvaged");
        let words = format!("{} is missing", own.display());
        let notes = report.notes.iter().filter(|note| note.starts_with(&words)).count();
        let losses = report.losses.iter().filter(|loss| loss.error.path() == Some(&own)).count();
        assert_eq!(notes + losses, 1, "{report:#?}");
        losses == 1
    };
    assert!(is_lost("with"), "its own table says that there is such a family");
    std::fs::remove_file(kept).expect("removed");
    for log in Env::os()
        .fs
        .list(&source)
        .expect("a directory")
        .iter()
        .filter(|name| name.ends_with(".log"))
    {
        std::fs::remove_file(source.join(log)).expect("removed");
    }
    assert!(!is_lost("without"), "it may have been dropped");
}

/// Of what stands in the archive alone nothing came back, without a word of it; or there were "no
/// files of a database".
#[test]
fn without_tables_and_manifest_the_archive_is_read() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let mut options = create();
    options.set("WAL_ttl_seconds", "1000000").expect("a known option");
    let db = Db::open(&source, &options).expect("a database");
    db.put("stays", "value").expect("a put");
    db.put("gone", "value").expect("a put");
    db.delete("gone").expect("a deletion");
    db.flush_all().expect("a flush");
    db.put("late", "value").expect("a put");
    db.flush_all().expect("a flush");
    db.close().expect("closed");
    let is_lost: [fn(&str) -> bool; 2] = [
        |name| ["sst", "MANIFEST"].iter().any(|part| name.contains(part)),
        |name| name != "archive",
    ];
    for (nth, is_lost) in is_lost.into_iter().enumerate() {
        let names = Env::os().fs.list(&source).expect("a directory");
        for name in names.iter().filter(|name| is_lost(name)) {
            std::fs::remove_file(source.join(name)).expect("removed");
        }
        let target = scratch.path().join(format!("db{nth}"));
        let report = rebuild(&source, &target, &options);
        let keys: Vec<_> = contents(&target).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["late", "stays"], "{nth} {report:#?}");
        assert!(
            !report.is_complete(),
            "the tables had more, if older WALs were removed: {report:#?}"
        );
    }
}

/// Nothing was said of it.
#[test]
fn an_archive_that_cannot_be_read_is_told() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let mut options = create();
    options.set("WAL_ttl_seconds", "1000000").expect("a known option");
    let db = Db::open(&source, &options).expect("a database");
    db.put("key", "value").expect("a put");
    db.flush_all().expect("a flush");
    db.close().expect("closed");
    let archive = source.join("archive");
    let link = archive.join("000777.log");
    std::os::unix::fs::symlink("/nowhere/at/all", &link).expect("a link");
    let told = |options: &Options, name: &str| {
        let report = rebuild(&source, &scratch.path().join(name), options);
        assert!(report.is_complete(), "tables have all of it: {report:#?}");
        let paths = report.harmless.iter().filter_map(|error| error.path());
        paths.map(Path::to_path_buf).collect::<Vec<_>>()
    };
    assert_eq!(told(&options, "db"), [link]);
    options.env = Env::os().with_fs(Arc::new(Failed(archive.clone())));
    assert_eq!(told(&options, "again"), [archive]);
}

/// A crash between a new MANIFEST and the removal of the one before: nothing could be read of the
/// new one, and nothing was of the other, so that a table came back which it says was replaced.
#[test]
fn where_nothing_is_left_of_the_newest_manifest_the_one_before_counts() {
    for bytes in [&b""[..], &[0; 3000]] {
        let scratch = temporary();
        let (source, kept) = (scratch.path().join("source"), scratch.path().join("kept"));
        let options = create();
        let db = Db::open(&source, &options).expect("a database");
        db.put("deleted", "value").expect("a put");
        db.put("stays", "value").expect("a put");
        db.flush_all().expect("a flush");
        copy_directory(&source, &kept);
        db.delete("deleted").expect("a deletion");
        db.flush_all().expect("a flush");
        let all = db.default_column_family().clone();
        db.compact_range(&all, None, None, &CompactRangeOptions::default()).expect("a compaction");
        db.close().expect("closed");
        let older = file(&source, "MANIFEST");
        std::fs::copy(&older, kept.join("older")).expect("copied");
        Db::open(&source, &options).expect("it opens").close().expect("closed");
        // What a crash kept from being removed.
        let replaced = file(&kept, ".sst");
        std::fs::copy(&replaced, source.join(replaced.file_name().expect("a name")))
            .expect("copied");
        std::fs::write(file(&source, "MANIFEST"), bytes).expect("written");
        std::fs::copy(kept.join("older"), &older).expect("copied");
        let report = rebuild(&source, &scratch.path().join("db"), &options);
        let found = contents(&scratch.path().join("db"));
        assert_eq!(found, [("stays".to_string(), "value".to_string())], "{report:#?}");
    }
}

/// An edit that no engine writes: the salvage of what is beside it ended in a panic.
#[test]
fn edits_that_drop_or_rename_the_default_family_are_passed_over() {
    let edits: [fn(&mut VersionEdit); 2] =
        [|edit| edit.family_dropped = true, |edit| edit.family_added = Some("other".to_string())];
    for change in edits {
        let env = Env::os().with_fs(Arc::new(MemoryFileSystem::new()));
        let mut options = create();
        options.env = env.clone();
        let db = Db::open("/db", &options).expect("a database");
        db.put("key", "value").expect("a put");
        db.flush_all().expect("a flush");
        db.close().expect("closed");
        let mut edit = VersionEdit::new(ColumnFamilyId::DEFAULT);
        change(&mut edit);
        add_to_manifest(&env, &edit);
        rebuild(Path::new("/db"), Path::new("/new"), &options);
        let db = Db::open("/new", &options).expect("it opens");
        assert_eq!(db.get("key").expect("it can be read").as_deref(), Some(&b"value"[..]));
    }
}

/// What a damaged table held stood in WALs that are kept for others, and nobody looked there.
#[test]
fn what_a_damaged_table_held_is_taken_from_the_archive() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let mut options = create();
    options.set("WAL_ttl_seconds", "1000000").expect("a known option");
    let db = Db::open(&source, &options).expect("a database");
    let family = |name| db.create_column_family(name, &options.cf).expect("a family");
    let (other, gone) = (family("other"), family("gone"));
    db.put("old", "deleted long ago").expect("a put");
    db.put_cf(&gone, "key", "gone").expect("a put");
    db.flush_all().expect("a flush");
    db.delete("old").expect("a deletion");
    db.drop_column_family(&gone).expect("dropped");
    drop(gone);
    for key in ["a", "b", "c"] {
        db.put_cf(&other, key, "value").expect("a put");
    }
    db.flush_all().expect("a flush");
    let all = db.default_column_family().clone();
    db.compact_range(&all, None, None, &CompactRangeOptions::default()).expect("a compaction");
    db.put_cf(&other, "d", "value").expect("a put");
    db.close().expect("closed");
    assert!(source.join("archive").is_dir());
    let tables = Env::os().fs.list(&source).expect("a directory");
    let table =
        tables.iter().find(|name| name.ends_with(".sst")).expect("that of the other family");
    let mut bytes = std::fs::read(source.join(table)).expect("a table");
    bytes[5] ^= 1;
    std::fs::write(source.join(table), bytes).expect("written");
    let homes = |directory: &Path| {
        let db = open_as_written(directory, true);
        db.column_families().iter().map(|family| dump_family(&db, family)).collect::<String>()
    };
    let with_manifest = scratch.path().join("with");
    let report = rebuild(&source, &with_manifest, &options);
    let found = homes(&with_manifest);
    assert_eq!(
        found.lines().filter(|line| line.starts_with("other ")).count(),
        4,
        "{found} {report:#?}"
    );
    assert_eq!(found.lines().count(), 4, "{found} {report:#?}");
    assert!(!report.is_complete(), "the damage is told all the same");
    std::fs::remove_file(file(&source, "MANIFEST")).expect("removed");
    let without_manifest = scratch.path().join("without");
    let report = rebuild(&source, &without_manifest, &options);
    assert_eq!(homes(&without_manifest), found, "{report:#?}");
}

/// Its zeros were read without end.
#[test]
fn a_device_in_the_place_of_a_wal_is_not_read() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let db = Db::open(&source, &create()).expect("a database");
    db.put("key", "value").expect("a put");
    db.close().expect("closed");
    let device = source.join("000999.log");
    std::os::unix::fs::symlink("/dev/zero", &device).expect("a link");
    let error =
        Env::os().fs.open_random_access(&device, IoMode::Buffered).err().expect("it is no file");
    assert!(error.to_string().contains("it is a device, not a file"), "{error}");
    let target = scratch.path().join("target");
    let report = rebuild(&source, &target, &create());
    assert!(
        report.losses.len() == 1 && report.losses[0].error.path() == Some(&*device),
        "{report:#?}"
    );
    assert_eq!(contents(&target), [("key".to_string(), "value".to_string())]);
}
