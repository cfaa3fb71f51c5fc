//! Databases rebuilt from what is left of them.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::*;
use flagstone::base::{Code, Error, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, SalvageReport, salvage};
use flagstone::env::os::OsFileSystem;
use flagstone::env::{Env, File, FileLock, FileSystem, FileSystemAround, OpenMode};
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

/// A copy of a database as a killed process leaves it, whose power failed while it wrote one more
/// edit.
fn with_a_torn_manifest(source: &Path, target: &Path) {
    copy_directory(source, target);
    let fs = Env::os().fs;
    let manifest = read_current(&*fs, target).expect("a MANIFEST");
    let (last, _) = dump_manifest(&*fs, &manifest).expect("readable").last().expect("edits");
    let mut bytes = std::fs::read(&manifest).expect("a file");
    bytes.extend_from_within(last as usize..bytes.len() - 3);
    std::fs::write(&manifest, bytes).expect("written");
}

/// Nothing in a MANIFEST with a torn end was believed, and a blob file whose values no WAL had come
/// to name was a loss.
#[test]
fn a_healthy_database_comes_out_the_same_after_a_power_loss() {
    let scratch = temporary();
    let [source, killed, target] = ["source", "killed", "db"].map(|name| scratch.path().join(name));
    let settings = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("blob_commit_min_size", "100"),
        ("disable_auto_compactions", "true"),
    ];
    let options = made(&source, &settings);
    let db = Db::open(&source, &options).expect("it opens");
    for (key, size) in [("small", 5), ("large", 5000), ("deleted", 300)] {
        db.put(key, vec![b'v'; size]).expect("a put");
    }
    db.flush_all().expect("a flush");
    db.delete("deleted").expect("a deletion");
    db.flush_all().expect("a flush");
    db.put("logged", [b'w'; 300]).expect("a put");
    let mut unlogged = WriteBatch::new();
    unlogged.put(b"unlogged", [b'x'; 300]).expect("a put");
    let without = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    db.write_with(&without, unlogged).expect("a write");
    with_a_torn_manifest(&source, &killed);
    let report = rebuild(&killed, &target);
    assert!(report.is_complete() && report.harmless.is_empty(), "{report:#?}");
    assert!(
        report.notes.iter().any(|note| note.contains("as after a power loss")),
        "{:?}",
        report.notes
    );
    let keys: Vec<_> = entries_of(&target).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [&b"large"[..], b"logged", b"small"]);
    assert_eq!(entries_of(&target), entries_of(&killed));
}

/// With the torn edit others may be gone: what they named counts, and is missed where it is
/// damaged.
#[test]
fn more_than_one_edit_may_be_gone_with_the_end_of_a_manifest() {
    let scratch = temporary();
    let [source, target, other] = ["source", "db", "other"].map(|name| scratch.path().join(name));
    let options = made(&source, &[("disable_auto_compactions", "true")]);
    let db = Db::open(&source, &options).expect("it opens");
    let manifest = || read_current(&*Env::os().fs, &source).expect("a MANIFEST");
    let size = || std::fs::metadata(manifest()).expect("a file").len();
    let mut end = 0;
    for key in ["a", "b", "c"] {
        db.put(key, "v").expect("a put");
        end = if key == "b" { size() + 9 } else { end };
        db.flush_all().expect("a flush");
    }
    db.close().expect("closed");
    let file = std::fs::File::options().write(true).open(manifest()).expect("a file");
    file.set_len(end).expect("shorter");
    let report = rebuild(&source, &target);
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(entries_of(&target).len(), 3);
    flip(files(&source, "sst").last().expect("three tables"), 3);
    let report = rebuild(&source, &other);
    assert!(!report.is_complete(), "{report:#?}");
    assert_eq!(entries_of(&other).len(), 2);
}

#[test]
fn what_a_kept_log_holds_of_an_older_time_does_not_come_back() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let options = made(&source, &[("avoid_flush_during_shutdown", "true")]);
    let db = Db::open(&source, &options).expect("it opens");
    let idle = db.create_column_family("idle", &options.cf).expect("a family");
    db.put_cf(&idle, "it", "keeps the log").expect("a put");
    for key in ["changed", "deleted"] {
        db.put(key, "old").expect("a put");
    }
    let default = db.default_column_family();
    db.flush(default, &FlushOptions::default()).expect("a flush");
    db.put("changed", "new").expect("a put");
    db.delete("deleted").expect("a deletion");
    db.flush(default, &FlushOptions::default()).expect("a flush");
    db.compact_range(default, None, None, &CompactRangeOptions::default()).expect("a compaction");
    db.close().expect("closed");
    remove(&source, |name| name.starts_with("MANIFEST") || name == "CURRENT");
    let report = rebuild(&source, &target);
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(entries_of(&target), [(b"changed".to_vec(), b"new".to_vec())]);
    let db = open_as_written(&target, true);
    let idle = db.column_family("idle").expect("the family");
    assert_eq!(entries(&db, &idle).len(), 1);
}

/// One damaged block, and all that a kept WAL had of the family was done once more: operands
/// counted twice, and an old range deletion took keys that were written since without the WAL.
#[test]
fn damage_elsewhere_does_not_replay_what_was_flushed() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let settings = [
        ("avoid_flush_during_shutdown", "true"),
        ("merge_operator", "uint64add"),
        ("compression", "kNoCompression"),
        ("table.block_size", "512"),
    ];
    let options = made(&source, &settings);
    let db = Db::open(&source, &options).expect("it opens");
    let default = db.default_column_family();
    db.put("k", 1u64.to_le_bytes()).expect("a put");
    for key in 0..2000u32 {
        db.put(format!("z{key:05}"), b"filler..").expect("a put");
    }
    db.flush(default, &FlushOptions::default()).expect("a flush");
    let idle = db.create_column_family("idle", &options.cf).expect("a family");
    db.put_cf(&idle, "it", "keeps the log").expect("a put");
    db.merge("k", 1u64.to_le_bytes()).expect("an operand");
    db.delete_range("a", "c").expect("a deletion");
    let mut batch = WriteBatch::new();
    batch.put(b"b", 5u64.to_le_bytes()).expect("a put");
    db.write_with(&WriteOptions { disable_wal: true, ..WriteOptions::default() }, batch)
        .expect("a write");
    db.put("z01000", b"rewritten").expect("a put");
    db.flush(default, &FlushOptions::default()).expect("a flush");
    db.compact_range(default, None, None, &CompactRangeOptions::default()).expect("a compaction");
    db.close().expect("closed");
    let size = |path: &PathBuf| std::fs::metadata(path).expect("a file").len();
    let table = files(&source, "sst").into_iter().max_by_key(size).expect("a table");
    let bytes = std::fs::read(&table).expect("a file");
    let at = bytes.windows(9).position(|bytes| bytes == b"rewritten").expect("the value");
    flip(&table, at as u64);
    let report = rebuild(&source, &target);
    assert_eq!(report.losses.len(), 1, "{report:#?}");
    let found = entries_of(&target);
    let value = |key: &[u8]| {
        found.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_slice())
    };
    assert_eq!(value(b"k"), Some(&2u64.to_le_bytes()[..]), "the operand was counted twice");
    assert_eq!(
        value(b"b"),
        Some(&5u64.to_le_bytes()[..]),
        "an old range deletion deleted an intact key"
    );
    assert_eq!(value(b"z01000"), Some(&b"rewritten"[..]), "the log still has what the block lost");
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

/// A crash between a flush's table and its edit: the table was taken beside the WAL that it was
/// flushed from, and what it had merged counted twice.
#[test]
fn what_a_flush_left_behind_is_not_counted_again() {
    let scratch = temporary();
    let (source, crashed) = (scratch.path().join("source"), scratch.path().join("crashed"));
    let options = made(&source, &[("merge_operator", "uint64add")]);
    let db = Db::open(&source, &options).expect("it opens");
    db.merge("k", 3u64.to_le_bytes()).expect("an operand");
    db.merge("k", 4u64.to_le_bytes()).expect("an operand");
    db.sync_wal().expect("a sync");
    copy_directory(&source, &crashed);
    db.flush_all().expect("a flush");
    let tables = files(&source, "sst");
    for table in &tables {
        std::fs::copy(table, crashed.join(table.file_name().expect("a name"))).expect("a copy");
    }
    db.close().expect("closed");
    let report = rebuild(&crashed, &scratch.path().join("db"));
    assert!(report.is_complete(), "{report:#?}");
    assert!(
        report.files.iter().filter(|file| file.records > 0).count() > tables.len(),
        "the table counted, too"
    );
    assert_eq!(
        entries_of(&scratch.path().join("db")),
        [(b"k".to_vec(), 7u64.to_le_bytes().to_vec())]
    );
}

/// A crash between a compaction's tables and its edit: values at the bottom have no sequence
/// number, so that operands which are in them counted again, also where the operands were all there
/// was.
#[test]
fn what_a_compaction_left_behind_is_not_counted_again() {
    let scratch = temporary();
    let (source, crashed) = (scratch.path().join("source"), scratch.path().join("crashed"));
    let settings = [("merge_operator", "uint64add"), ("disable_auto_compactions", "true")];
    let options = made(&source, &settings);
    let db = Db::open(&source, &options).expect("it opens");
    for count in [7u64, 1] {
        db.put("based", count.to_le_bytes()).expect("a put");
        db.flush_all().expect("a flush");
    }
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
    for key in ["based", "bare"] {
        db.merge(key, 1u64.to_le_bytes()).expect("an operand");
    }
    db.flush_all().expect("a flush");
    copy_directory(&source, &crashed);
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
    for table in files(&source, "sst") {
        std::fs::copy(&table, crashed.join(table.file_name().expect("a name"))).expect("a copy");
    }
    db.close().expect("closed");
    let count = |key: &str, count: u64| (key.as_bytes().to_vec(), count.to_le_bytes().to_vec());
    let expected = [count("bare", 1), count("based", 2)];
    let report = rebuild(&crashed, &scratch.path().join("db"));
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(entries_of(&scratch.path().join("db")), expected);
    // Without the MANIFEST nothing tells whether there was an operand before the compaction or
    // since.
    remove(&crashed, |name| name.starts_with("MANIFEST"));
    let report = rebuild(&crashed, &scratch.path().join("guessed"));
    assert!(!report.is_complete(), "{report:#?}");
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

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        if mode.only_reads() {
            OsFileSystem.open(path, mode)
        } else {
            self.refuse(path, || OsFileSystem.open(path, mode))
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
    assert!(
        report.notes.iter().any(|note| note.contains("without holding its lock")),
        "{report:#?}"
    );
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
