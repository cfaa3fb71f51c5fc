//! Databases rebuilt from what is left of them.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[path = "../common/mod.rs"]
mod common;
mod history;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::*;
use flagstone::base::{Code, Error, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, SalvageReport, salvage};
use flagstone::env::os::OsFileSystem;
use flagstone::env::{AnyFile, Env, FileLock, FileSystem, FileSystemAround, OpenMode};
use flagstone::manifest::{dump as dump_manifest, read_current};
use flagstone::options::{
    self, ColumnFamilyOptions, CompactRangeOptions, FlushOptions, Options, WriteOptions,
};

/// Rebuilds `source` in `target`, with its own options as far as they can be read.
fn rebuild(source: &Path, target: &Path) -> SalvageReport {
    let env = Env::os();
    let loaded = options::load_latest(&env, source).ok().flatten();
    let families = loaded.as_ref().map(|loaded| loaded.families.clone()).unwrap_or_default();
    let options = loaded.map(|loaded| loaded.options).unwrap_or_default();
    rebuild_with(source, target, &options, &families)
}

fn rebuild_with(
    source: &Path,
    target: &Path,
    options: &Options,
    families: &[(String, ColumnFamilyOptions)],
) -> SalvageReport {
    let listed: Vec<(&str, ColumnFamilyOptions)> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    salvage(source, target, options, &listed, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"))
}

fn remove(directory: &Path, unwanted: impl Fn(&str) -> bool) {
    let fs = Env::os().fs;
    for name in fs.list(directory).expect("a directory").into_iter().filter(|name| unwanted(name)) {
        fs.remove(&directory.join(name)).expect("a file");
    }
}

fn fixture_names() -> Vec<String> {
    let names = Env::os().fs.list(&fixtures()).expect("the fixtures");
    names.iter().filter_map(|name| name.strip_suffix(".expected")).map(str::to_string).collect()
}

/// Whoever killed a salvage found in the new directory a database that was whole, and empty: what
/// there was of its files went when it was opened.
#[test]
fn before_all_is_there_the_new_directory_is_no_database() {
    let mut options = Options { env: Env::memory(), ..create() };
    let db = Db::open("/db", &options).unwrap();
    let other = db.create_column_family("other", &options.cf).unwrap();
    for key in 0..12_000 {
        db.put_cf(&other, format!("{key}"), "value").unwrap();
    }
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    db.put("key", "newer").unwrap();
    db.close().unwrap();
    drop((other, db));
    let target = Path::new("/rescued");
    // So small that each change of the MANIFEST begins another.
    options.set("max_manifest_file_size", "1").unwrap();
    let families = [("other", options.cf.clone())];
    let (mut looks, mut with_tables) = (0, 0);
    let mut look = |_| {
        let names = options.env.fs.list(target).unwrap_or_default();
        looks += usize::from(names.iter().any(|name| name.starts_with("MANIFEST")));
        with_tables += usize::from(names.iter().any(|name| name.ends_with(".sst")));
        assert!(!names.iter().any(|name| name == "CURRENT"), "{names:?}");
        assert!(Db::open_read_only(target, &options).is_err());
    };
    let report = salvage(Path::new("/db"), target, &options, &families, &mut look).unwrap();
    assert!(report.is_complete() && looks > 2 && with_tables > 1, "{looks} {with_tables}");
    let db = Db::open(target, &options).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "newer");
    assert_eq!(db.get_cf(&db.column_family("other").unwrap(), "11999").unwrap().unwrap(), "value");
}

#[test]
fn a_healthy_database_comes_out_the_same() {
    for name in fixture_names() {
        let scratch = temporary();
        let source = fixtures().join(&name);
        let target = scratch.path().join("db");
        let report = rebuild(&source, &target);
        assert!(report.is_complete(), "{name}: {:?} {:?}", report.losses, report.lost_values);
        assert!(report.harmless.is_empty(), "{name}: {:?}", report.harmless);
        let (old, new) = (open_as_written(&source, true), open_as_written(&target, false));
        assert_eq!(dump(&old), dump(&new), "{name}");
        assert!(new.verify(|_| {}).faults.is_empty(), "{name}");
    }
}

#[test]
fn without_manifest_current_and_options_all_records_come_out() {
    for name in fixture_names() {
        let scratch = temporary();
        let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
        copy_directory(&fixtures().join(&name), &source);
        let loaded = options::load_latest(&Env::os(), &source).expect("a readable file");
        let needs_options = loaded.is_some_and(|loaded| {
            loaded.families.iter().any(|(_, family)| family.merge_operator.is_some())
        });
        remove(&source, |file| {
            file.starts_with("MANIFEST")
                || file == "CURRENT"
                || (file.starts_with("OPTIONS") && !needs_options)
        });
        let report = rebuild(&source, &target);
        // One fixture has a table that was never begun; the MANIFEST alone could tell.
        let is_empty = |path: Option<&Path>| {
            path.is_some_and(|path| std::fs::metadata(path).is_ok_and(|file| file.len() == 0))
        };
        let losses: Vec<_> =
            report.losses.iter().filter(|loss| !is_empty(loss.error.path())).collect();
        assert!(
            losses.is_empty() && report.lost_values.is_empty(),
            "{name}: {losses:?} {:?}",
            report.lost_values
        );
        let old = open_as_written(&fixtures().join(&name), true);
        let new = open_as_written(&target, false);
        // Of a family that has nothing, the MANIFEST alone knew; and the order of creation.
        let lines = |text: String| {
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(dump(&old)), lines(dump(&new)), "{name}");
    }
}

/// A database in a directory of its own, with `settings`.
fn made(directory: &Path, settings: &[(&str, &str)]) -> Options {
    let mut options = create();
    for (name, value) in settings {
        options.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    }
    drop(Db::open(directory, &options).expect("a database"));
    options
}

fn flip(path: &Path, at: u64) {
    let mut bytes = std::fs::read(path).expect("a file");
    bytes[at as usize] ^= 0x10;
    std::fs::write(path, bytes).expect("written");
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    found.sort();
    found
}

#[test]
fn an_open_database_and_a_full_directory_are_refused() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let options = made(&source, &[]);
    let refused = |source: &Path, target: &Path| {
        salvage(source, target, &options, &[], &mut |_| {}).expect_err("refused").code()
    };
    let db = Db::open(&source, &options).expect("it opens");
    assert_eq!(refused(&source, &target), Code::Busy);
    db.close().expect("closed");
    assert_eq!(refused(&source, &source), Code::InvalidArgument);
    std::fs::create_dir(scratch.path().join("nothing")).expect("a directory");
    assert_eq!(refused(&scratch.path().join("nothing"), &target), Code::InvalidArgument);
    assert!(!target.exists());
}

#[test]
fn rocksdb_reads_what_was_salvaged() {
    let Some(referee) = referee() else { return };
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let settings = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "500"),
        ("compression", "kLZ4Compression"),
    ];
    let options = made(&source, &settings);
    let db = Db::open(&source, &options).expect("it opens");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    for key in 0..2000u32 {
        let size = if key % 10 == 0 { 900 } else { 30 };
        let value = vec![b'a' + (key % 26) as u8; size];
        db.put(format!("key{key:06}"), &value).expect("a put");
        db.put_cf(&other, format!("other{key:06}"), b"value").expect("a put");
    }
    db.delete("key000100").expect("a deletion");
    db.delete_range("key000200", "key000300").expect("a deletion");
    db.flush_all().expect("a flush");
    for key in 2000..2100u32 {
        db.put(format!("key{key:06}"), b"in the log").expect("a put");
    }
    db.close().expect("closed");
    let tables = files(&source, "sst");
    flip(&tables[0], 5000);
    flip(&files(&source, "blob")[0], 3000);
    remove(&source, |name| name == "CURRENT" || name.starts_with("OPTIONS"));
    let report = rebuild(&source, &target);
    assert_eq!((report.losses.len(), report.lost_values.len()), (1, 1), "{report:#?}");
    assert!(report.losses[0].error.offset().is_some() && report.losses[0].key_range.is_some());

    assert!(referee.verify_tables(&target) >= 2);
    let db = open_as_written(&target, false);
    for family in db.column_families() {
        let text = dump_family(&db, &family);
        assert!(text.lines().count() > 1500);
        assert_eq!(referee.scan(&target, family.name()), text);
    }
}

#[test]
fn a_damaged_log_record_costs_itself_alone() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let options = made(&source, &[("avoid_flush_during_shutdown", "true")]);
    let db = Db::open(&source, &options).expect("it opens");
    for key in 0..100u32 {
        db.put(format!("key{key:03}"), vec![b'v'; 50]).expect("a put");
    }
    db.close().expect("closed");
    let log = files(&source, "log").pop().expect("a log");
    flip(&log, 2000);
    let report = rebuild(&source, &target);
    assert_eq!(report.losses.len(), 1, "{report:#?}");
    assert_eq!(entries_of(&target).len(), 99);
}

fn entries_of(directory: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let db = open_as_written(directory, true);
    entries(&db, db.default_column_family())
}

#[test]
fn a_lost_large_value_is_named_and_an_older_version_comes_back() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let settings = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("disable_auto_compactions", "true"),
    ];
    let options = made(&source, &settings);
    let db = Db::open(&source, &options).expect("it opens");
    db.put("k", "old").expect("a put");
    db.put("other", "small").expect("a put");
    db.flush_all().expect("a flush");
    db.put("k", vec![b'x'; 200]).expect("a put");
    db.put("alone", vec![b'y'; 200]).expect("a put");
    db.flush_all().expect("a flush");
    db.close().expect("closed");
    remove(&source, |name| name.ends_with(".blob"));
    let report = rebuild(&source, &target);
    let lost: Vec<_> = report
        .lost_values
        .iter()
        .map(|lost| (lost.key.as_slice(), lost.has_other_version))
        .collect();
    assert_eq!(lost, [(&b"alone"[..], false), (b"k", true)]);
    let expected = [("k", "old"), ("other", "small")];
    assert_eq!(entries_of(&target), expected.map(|(key, value)| (key.into(), value.into())));
}

#[test]
fn merge_operands_need_no_operator() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    copy_directory(&fixtures().join("merge-append"), &source);
    remove(&source, |name| name.starts_with("OPTIONS"));
    let report = rebuild(&source, &target);
    assert!(report.is_complete(), "{report:#?}");
    let mut options = options::load_latest(&Env::os(), &fixtures().join("merge-append"))
        .expect("a readable file")
        .expect("it is there");
    let open = |path: &Path, options: &Options| {
        dump(&Db::open_read_only(path, options).expect("it opens"))
    };
    options.options.db.create_if_missing = false;
    assert_eq!(open(&target, &options.options), open(&source, &options.options));
}

/// Beside a table that nothing names, as a crash during a compaction leaves it, one that is missing
/// was a note, and nothing was lost.
#[test]
fn a_missing_table_is_a_loss_also_beside_a_stranger() {
    let scratch = temporary();
    let source = scratch.path().join("source");
    let options = made(&source, &[("disable_auto_compactions", "true")]);
    let db = Db::open(&source, &options).expect("it opens");
    for key in ["a", "b"] {
        db.put(key, "value").expect("a put");
        db.flush_all().expect("a flush");
    }
    db.close().expect("closed");
    let tables = files(&source, "sst");
    std::fs::copy(&tables[1], source.join("999999.sst")).expect("a copy");
    std::fs::remove_file(&tables[0]).expect("removed");
    let report = rebuild(&source, &scratch.path().join("db"));
    assert_eq!(report.losses.len(), 1, "{report:#?}");
    assert_eq!(report.losses[0].key_range, Some((b"a".to_vec(), b"a".to_vec())));
    remove(&source, |name| name.ends_with(".log"));
    let report = rebuild(&source, &scratch.path().join("without"));
    assert_eq!(report.losses.len(), 2, "the log is missing, too: {report:#?}");
}

/// A disk on which a directory cannot be written to, and in which files cannot even be locked.
struct ReadOnly(PathBuf);

impl ReadOnly {
    fn refuse<T>(&self, path: &Path, otherwise: impl FnOnce() -> Result<T>) -> Result<T> {
        if path.starts_with(&self.0) {
            Err(Error::io("write to", path, std::io::ErrorKind::ReadOnlyFilesystem.into()))
        } else {
            otherwise()
        }
    }
}

impl FileSystemAround for ReadOnly {
    fn inner(&self) -> &dyn FileSystem {
        &OsFileSystem
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        if mode.only_reads() {
            mode.open(&OsFileSystem, path)
        } else {
            self.refuse(path, || mode.open(&OsFileSystem, path))
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.refuse(path, || OsFileSystem.remove(path))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.refuse(path, || OsFileSystem.lock(path))
    }

    fn lock_for_reading(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        FileSystemAround::lock(self, path)
    }
}

/// The lock's file could not be opened, so nothing was saved from a disk that must not be written
/// to.
#[test]
fn where_no_lock_can_be_held_it_is_said_that_none_was() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let mut options = made(&source, &[]);
    let db = Db::open(&source, &options).expect("it opens");
    db.put("key", "value").expect("a put");
    db.close().expect("closed");
    drop(db);
    options.env = Env::os().with_fs(Arc::new(ReadOnly(source.clone())));
    let report = rebuild_with(&source, &target, &options, &[]);
    assert!(report.is_complete(), "{report:#?}");
    assert!(report.notes.iter().any(|note| note.contains("without its lock")), "{report:#?}");
    assert_eq!(entries_of(&target).len(), 1);
}

#[test]
fn a_checkpoint_is_whole() {
    let scratch = temporary();
    let (source, copy) = (scratch.path().join("source"), scratch.path().join("copy"));
    let options = made(&source, &[]);
    let db = Db::open(&source, &options).expect("it opens");
    for key in 0..100u32 {
        db.put(format!("key{key}"), b"value").expect("a put");
    }
    db.checkpoint(&copy).expect("a checkpoint");
    let report = rebuild(&copy, &scratch.path().join("db"));
    assert!(report.is_complete() && report.harmless.is_empty(), "{report:#?}");
    assert_eq!(entries_of(&scratch.path().join("db")).len(), 100);
    // What was salvaged can be salvaged.
    let again = rebuild(&scratch.path().join("db"), &scratch.path().join("again"));
    assert!(again.is_complete(), "{again:#?}");
    assert_eq!(entries_of(&scratch.path().join("again")).len(), 100);
}
