//! What errors of the library say that helps.

use std::io;
use std::path::Path;

use flagstone::base::{FileNumber, Remedy};
use flagstone::db::{Db, TtlDb, TtlOptions, TwoPhase, salvage};
use flagstone::env::IoMode;
use flagstone::options::{ColumnFamilyOptions, Options, WriteOptions, load_latest};
use flagstone::wal::{Writer, WriterOptions};
use rustix::io::Errno;

use super::findings::{files, logged, options};
use super::{Tried, said};

pub fn restore_manifest() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (options, path, _) = logged(scratch.path());
    let all = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let is_manifest = |path: &std::path::PathBuf| path.to_str().unwrap().contains("MANIFEST");
    let manifest = all.filter(is_manifest).max().unwrap();
    let whole = std::fs::read(&manifest).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    let before = said(Db::open(&path, &options));
    salvage(&path, &scratch.path().join("saved"), &options, &[], &mut |_| {}).unwrap();
    std::fs::write(&manifest, whole).unwrap();
    Tried { before, after: said(Db::open(&path, &options)) }
}

pub fn restore_or_go_without() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (mut options, path, _) = logged(scratch.path());
    Db::open(&path, &options).unwrap().flush_all().unwrap();
    std::fs::remove_file(files(&path, "sst").pop().unwrap()).unwrap();
    let before = said(Db::open(&path, &options));
    options.set("paranoid_checks", "false").unwrap();
    Tried { before, after: said(Db::open(&path, &options)) }
}

/// The newest WAL is gone, and named by the MANIFEST.
pub fn find_wal() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let wals = scratch.path().join("wals");
    let (mut options, path) = (Options::default(), scratch.path().join("db"));
    options.create_if_missing = true;
    options.set("wal_dir", wals.to_str().unwrap()).unwrap();
    let db = Db::open(&path, &options).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    std::fs::remove_file(files(&wals, "log").pop().unwrap()).unwrap();
    let before = said(Db::open(&path, &options));
    options.set("wal_recovery_mode", "kSkipAnyCorruptedRecords").unwrap();
    Tried { before, after: said(Db::open(&path, &options)) }
}

pub fn find_wal_directory() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (wals, elsewhere) = (scratch.path().join("wals"), scratch.path().join("unmounted"));
    let (mut options, path) = (Options::default(), scratch.path().join("db"));
    options.create_if_missing = true;
    options.set("wal_dir", wals.to_str().unwrap()).unwrap();
    let db = Db::open(&path, &options).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    std::fs::rename(&wals, &elsewhere).unwrap();
    let before = said(Db::open(&path, &options));
    std::fs::rename(&elsewhere, &wals).unwrap();
    Tried { before, after: said(Db::open(&path, &options)) }
}

pub fn raise_num_levels() -> Tried {
    let mut options = options("");
    let db = Db::open("/db", &options).unwrap();
    for round in ["1", "2"] {
        db.put("a", round).unwrap();
        db.put("z", round).unwrap();
        db.flush_all().unwrap();
    }
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    drop(db);
    options.cf.num_levels = 2;
    let before = said(Db::open("/db", &options));
    let [Remedy::RaiseNumLevels { to }] = before[..] else { panic!("{before:?}") };
    options.cf.num_levels = i32::try_from(to).unwrap();
    Tried { before, after: said(Db::open("/db", &options)) }
}

/// A database with another family, which has that comparator.
fn with_family(comparator: &str) -> Options {
    let options = options("");
    let db = Db::open("/db", &options).unwrap();
    let mut of_family = options.cf.clone();
    of_family.set("comparator", comparator).unwrap();
    db.create_column_family("other", &of_family).unwrap();
    db.close().unwrap();
    options
}

pub fn name_all_families() -> Tried {
    let options = with_family("leveldb.BytewiseComparator");
    let before = said(Db::open_with_families("/db", &options, &[("default", options.cf.clone())]));
    Tried { before, after: said(Db::open("/db", &options)) }
}

pub fn create_missing_families() -> Tried {
    let mut options = options("");
    Db::open("/db", &options).unwrap().close().unwrap();
    let wanted = [("default", options.cf.clone()), ("missing", options.cf.clone())];
    let before = said(Db::open_with_families("/db", &options, &wanted));
    options.db.create_missing_column_families = true;
    Tried { before, after: said(Db::open_with_families("/db", &options, &wanted)) }
}

pub fn open_with_own_options() -> Tried {
    let options = with_family("rocksdb.ReverseBytewiseComparator");
    let before = said(Db::open("/db", &options));
    let loaded = load_latest(&options.env, Path::new("/db")).unwrap().unwrap();
    let own: Vec<(&str, ColumnFamilyOptions)> =
        loaded.families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    Tried { before, after: said(Db::open_with_families("/db", &options, &own)) }
}

/// What is said of an OPTIONS file that was edited, and of it as it was.
fn edited(edit: fn(&str) -> String) -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (options, path, _) = logged(scratch.path());
    let all = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let file = all.filter(|path| path.to_str().unwrap().contains("OPTIONS")).max().unwrap();
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, edit(&whole)).unwrap();
    let before = said(load_latest(&options.env, &path));
    std::fs::write(&file, whole).unwrap();
    Tried { before, after: said(load_latest(&options.env, &path)) }
}

pub fn end_options_file() -> Tried {
    edited(|whole| whole[..whole.trim_end().rfind('\n').unwrap()].to_string())
}

pub fn correct_line() -> Tried {
    edited(|whole| whole.replace("max_open_files=", "max_open_file="))
}

pub fn decide_prepared() -> Tried {
    let options = options("");
    Db::open("/db", &options).unwrap().close().unwrap();
    let file =
        options.env.fs.create_writable(Path::new("/db/000077.log"), IoMode::Buffered).unwrap();
    let mut writer = Writer::new(file, FileNumber(77), WriterOptions::default()).unwrap();
    let header = [&100u64.to_le_bytes()[..], &1u32.to_le_bytes()].concat();
    writer.add_record_parts(&[&header, b"\x09", b"\x01\x01a\x04in-x", b"\x0a\x02x1"]).unwrap();
    let before = said(Db::open("/db", &options));
    let mut deciding = options.clone();
    deciding.set("allow_2pc", "true").unwrap();
    let db = Db::open("/db", &deciding).unwrap();
    TwoPhase::of(&db).rollback(&WriteOptions::default(), "x1").unwrap();
    db.close().unwrap();
    Tried { before, after: said(Db::open("/db", &options)) }
}

pub fn read_unstamped() -> Tried {
    let options = options("");
    Db::open("/db", &options).unwrap().put("key", "v").unwrap();
    let before = said(TtlDb::open("/db", &options, TtlOptions::default()).unwrap().get("key"));
    Tried { before, after: said(Db::open("/db", &options).unwrap().get("key")) }
}

pub fn name_empty_target() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (options, path, _) = logged(scratch.path());
    let (taken, empty) = (scratch.path().join("taken"), scratch.path().join("empty"));
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("file"), "").unwrap();
    let saved = |target: &Path| said(salvage(&path, target, &options, &[], &mut |_| {}));
    Tried { before: saved(&taken), after: saved(&empty) }
}

/// Below a file nothing can be looked for, so that it is not known whether the owner is still
/// there.
pub fn remove_owner() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (disk, wals) = (scratch.path().join("disk"), scratch.path().join("wals"));
    std::fs::create_dir(&disk).unwrap();
    let mut options = Options::default();
    options.create_if_missing = true;
    options.set("wal_dir", wals.to_str().unwrap()).unwrap();
    Db::open(disk.join("db"), &options).unwrap().close().unwrap();
    std::fs::rename(&disk, scratch.path().join("unplugged")).unwrap();
    std::fs::write(&disk, "").unwrap();
    let open = || said(Db::open(scratch.path().join("other"), &options));
    let before = open();
    for file in files(&wals, "") {
        std::fs::remove_file(file).unwrap();
    }
    Tried { before, after: open() }
}

/// A database whose first write is in the WALs no longer.
fn forgetful() -> Db {
    let db = Db::open("/db", &options("")).unwrap();
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    db.put("key", "newer").unwrap();
    db.flush_all().unwrap();
    db
}

pub fn make_new_copy() -> Tried {
    let db = forgetful();
    let before = said(db.get_updates_since(1));
    // A copy that was made now goes on from here.
    Tried { before, after: said(db.get_updates_since(db.latest_sequence_number() + 1)) }
}

pub fn keep_wals() -> Tried {
    let before = said(forgetful().get_updates_since(1));
    let keeping = options("WAL_ttl_seconds=3600;WAL_size_limit_MB=100");
    let db = Db::open("/db", &keeping).unwrap();
    for value in ["value", "newer"] {
        db.put("key", value).unwrap();
        db.flush_all().unwrap();
    }
    Tried { before, after: said(db.get_updates_since(1)) }
}

/// What is said where the system refuses, and where it does no longer: no test can fill a quota, or
/// break a device.
fn refused(error: Errno) -> Tried {
    let error = io::Error::from_raw_os_error(error.raw_os_error());
    Tried { before: Remedy::of_system(&error).into_iter().collect(), after: Vec::new() }
}

pub fn be_owner() -> Tried {
    refused(Errno::ACCESS)
}

pub fn mount_writable() -> Tried {
    refused(Errno::ROFS)
}

pub fn raise_quota() -> Tried {
    refused(Errno::DQUOT)
}

pub fn permit_more_memory() -> Tried {
    refused(Errno::NOMEM)
}

pub fn copy_from_device() -> Tried {
    refused(Errno::IO)
}
