//! Databases whose files are encrypted: nothing of them is to be seen on the disk, a wrong key is
//! refused, and everything that works with other files works with these.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{create, entries, temporary};
use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
use flagstone::base::{Code, Error, SubCode};
use flagstone::db::{Db, Follower, Secondary, destroy, salvage};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{AesCipher, BlockCipher, Env, FileSystem};
use flagstone::ingest::{SstFileWriter, SstFileWriterOptions};
use flagstone::options::{InfoLog, IngestExternalFileOptions, Options};
use testkit::Referee;
use testkit::encrypted::Rot13;

const DB: &str = "/db";
const BLOBS: &str = "enable_blob_files=true;min_blob_size=500;blob_commit_min_size=2000;\
                     compression=kNoCompression;blob_compression_type=kNoCompression;\
                     write_buffer_size=65536;recycle_log_file_num=3";

fn aes(key: u8) -> Arc<dyn BlockCipher> {
    Arc::new(AesCipher::new(&[key; 32]).unwrap())
}

fn set(options: &mut Options, text: &str) {
    for setting in text.split(';').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap();
        options.set(name, value).unwrap_or_else(|error| panic!("{setting}: {error}"));
    }
}

/// Options for encrypted files over `fs`.
fn options(fs: &MemoryFileSystem, key: u8, more: &str) -> Options {
    let mut options = create();
    options.env = Env::memory().with_fs(Arc::new(fs.clone())).encrypted(aes(key)).unwrap();
    set(&mut options, BLOBS);
    set(&mut options, more);
    options
}

/// A value of which every piece is to be recognised.
fn value(number: u32, size: usize) -> Vec<u8> {
    format!("plaintext-{number:06}-").into_bytes().into_iter().cycle().take(size).collect()
}

/// Writes tables, blob files and a WAL; values lie in each.
fn fill(db: &Db) {
    for round in 0..3 {
        for number in 0..60 {
            let size = [20, 700, 5000][number as usize % 3];
            db.put(format!("key-{number:04}"), value(number + round, size)).unwrap();
        }
        if round < 2 {
            db.flush_all().unwrap();
        }
    }
    db.delete("key-0007").unwrap();
    db.delete_range("key-0020", "key-0025").unwrap();
    db.wait_for_compactions().unwrap();
}

fn contents(db: &Db) -> Vec<(Vec<u8>, Vec<u8>)> {
    entries(db, db.default_column_family())
}

fn assert_sound(db: &Db) {
    let faults = db.verify(|_| {}).faults;
    assert!(faults.is_empty(), "{faults:?}");
}

fn is_wrong_key(error: &Error) -> bool {
    error.code() == Code::InvalidArgument && error.subcode() == SubCode::WrongKey
}

#[test]
fn nothing_of_a_database_is_to_be_seen_on_the_disk() {
    let fs = MemoryFileSystem::new();
    let mut options = options(&fs, 1, "");
    options.info_log = InfoLog::File;
    let db = Db::open(DB, &options).unwrap();
    db.create_column_family("secret family", &options.cf).unwrap();
    fill(&db);
    let told = [
        "plaintext-",
        "key-00",
        "secret family",
        "MANIFEST-0",
        "rocksdb.",
        "leveldb.",
        "flagstone",
        "Flagstone",
        "min_blob_size",
        "write_buffer",
    ];
    let files = fs.files();
    for kind in [".sst", ".blob", ".log", "MANIFEST", "OPTIONS", "IDENTITY", "CURRENT", "/LOG"] {
        let is_there = |path: &PathBuf| path.to_str().unwrap().contains(kind);
        assert!(files.iter().any(|(path, bytes)| is_there(path) && bytes.len() > 4096), "{kind}");
    }
    for (path, bytes) in &files {
        for text in told {
            let mut windows = bytes.windows(text.len());
            assert!(
                !windows.any(|window| window == text.as_bytes()),
                "{text} in {}",
                path.display()
            );
        }
    }
    let before = contents(&db);
    db.close().unwrap();
    drop(db);
    let db = Db::open(DB, &options).unwrap();
    assert!(contents(&db) == before);
    assert_sound(&db);
}

#[test]
fn a_wrong_key_is_refused_and_changes_nothing() {
    let fs = MemoryFileSystem::new();
    let right = options(&fs, 1, "");
    let db = Db::open(DB, &right).unwrap();
    fill(&db);
    let before = contents(&db);
    db.close().unwrap();
    drop(db);
    let wrong = options(&fs, 2, "");
    let mut plain = create();
    plain.env = Env::memory().with_fs(Arc::new(fs.clone()));
    let files = |fs: &MemoryFileSystem| {
        let mut files = fs.files();
        files.retain(|(path, _)| !path.ends_with("LOCK"));
        files
    };
    let left = files(&fs);

    let refusals = [
        Db::open(DB, &wrong).err(),
        Db::open_read_only(DB, &wrong).err(),
        Secondary::open(DB, "/own", &wrong).err(),
        Db::list_column_families(DB, &wrong).err(),
        salvage(Path::new(DB), Path::new("/new"), &wrong, &[], &mut |_| {}).err(),
    ];
    for (index, refused) in refusals.into_iter().enumerate() {
        let refused = refused.unwrap_or_else(|| panic!("call {index} takes a wrong key"));
        assert!(is_wrong_key(&refused), "call {index}: {refused}");
        assert!(refused.to_string().contains("the key does not fit"), "{refused}");
    }
    let refused = Db::open(DB, &plain).expect_err("files that are encrypted");
    assert!(refused.is_corruption(), "{refused}");
    assert_eq!(files(&fs), left);
    let db = Db::open(DB, &right).unwrap();
    assert!(contents(&db) == before);
}

#[test]
fn a_database_that_is_not_encrypted_is_refused_and_stays_as_it_is() {
    let fs = MemoryFileSystem::new();
    let mut plain = create();
    plain.env = Env::memory().with_fs(Arc::new(fs.clone()));
    let db = Db::open(DB, &plain).unwrap();
    fill(&db);
    let before = contents(&db);
    db.close().unwrap();
    drop(db);
    let refused = Db::open(DB, &options(&fs, 1, "")).expect_err("there is no key");
    assert!(refused.is_corruption() && refused.to_string().contains("not encrypted"), "{refused}");
    let db = Db::open(DB, &plain).unwrap();
    assert!(contents(&db) == before);
}

#[test]
fn one_file_of_another_key_is_named_and_the_rest_is_readable() {
    let (fs, other) = (MemoryFileSystem::new(), MemoryFileSystem::new());
    for (fs, key) in [(&fs, 1), (&other, 2)] {
        let db = Db::open(DB, &options(fs, key, "enable_blob_files=false")).unwrap();
        fill(&db);
        db.flush_all().unwrap();
        db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
        db.close().unwrap();
    }
    let table = |fs: &MemoryFileSystem| {
        let is_table =
            |(path, _): &(PathBuf, _)| path.extension().is_some_and(|kind| kind == "sst");
        fs.files().into_iter().find(is_table).unwrap()
    };
    let ((path, bytes), (_, foreign)) = (table(&fs), table(&other));
    let mut mixed = foreign.to_vec();
    mixed.resize(bytes.len(), 0);
    fs.put(&path, Arc::new(mixed));
    let mut options = options(&fs, 1, "enable_blob_files=false");
    options.cf.disable_auto_compactions = true;
    let refused = Db::open_read_only(DB, &options).expect_err("it opens all tables");
    assert!(is_wrong_key(&refused), "{refused}");
    let db = Db::open(DB, &options).unwrap();
    let refused = db.get("key-0000").expect_err("a table of another key");
    assert!(is_wrong_key(&refused), "{refused}");
    assert_eq!(refused.path(), Some(&*path));
    assert_eq!(db.damaged_files().len(), 1);
    db.put("after", "1").unwrap();
    db.flush_all().unwrap();
    assert_eq!(db.get("after").unwrap().unwrap(), "1");
}

#[test]
fn no_log_is_recycled_or_reserved_as_zeros() {
    let fs = MemoryFileSystem::new();
    let options = options(&fs, 1, "");
    let db = Db::open(DB, &options).unwrap();
    for round in 0..4 {
        fill(&db);
        db.flush_all().unwrap();
        let names = fs.list(Path::new(DB)).unwrap();
        let logs = names.iter().filter(|name| name.ends_with(".log")).count();
        assert_eq!(logs, 1, "round {round}: {names:?}");
    }
    for log in db.wal_files() {
        let raw = fs.metadata(&log.path).unwrap().size;
        assert_eq!(options.env.fs.metadata(&log.path).unwrap().size, raw - 4096);
    }
}

#[test]
fn checkpoints_backups_and_other_readers_work() {
    let fs = MemoryFileSystem::new();
    let options = options(&fs, 1, "");
    let db = Db::open(DB, &options).unwrap();
    fill(&db);
    let before = contents(&db);

    db.checkpoint("/copy").unwrap();
    let copy = Db::open_read_only("/copy", &options).unwrap();
    assert_eq!(contents(&copy), before);

    let mut of_backups = BackupEngineOptions::new(PathBuf::from("/backups"));
    of_backups.backup_env = Some(options.env.clone());
    let engine = BackupEngine::open(of_backups).unwrap();
    let newest = engine.create_new_backup(&db, &CreateBackupOptions::default()).unwrap();
    engine.verify_backup(newest, true).unwrap();
    engine.restore_latest("/restored").unwrap();
    let restored = Db::open("/restored", &options).unwrap();
    assert_eq!(contents(&restored), before);

    let secondary = Secondary::open(DB, "/own", &options).unwrap();
    assert_eq!(contents(&secondary.now()), before);
    let follower = Follower::open("/following", DB, &options).unwrap();
    assert!(follower.now().get("key-0001").unwrap().is_some());

    let of_writer =
        SstFileWriterOptions { env: options.env.clone(), ..SstFileWriterOptions::new(&options.cf) };
    let mut writer = SstFileWriter::create("/extern.sst", &of_writer).unwrap();
    writer.put("zz", "from outside").unwrap();
    writer.finish().unwrap();
    let ingestion = IngestExternalFileOptions::default();
    db.ingest_external_files(db.default_column_family(), &["/extern.sst"], &ingestion).unwrap();
    assert_eq!(db.get("zz").unwrap().unwrap(), "from outside");
    assert_sound(&db);
    drop((copy, restored, secondary, follower));

    db.close().unwrap();
    drop(db);
    let report = salvage(Path::new(DB), Path::new("/salvaged"), &options, &[], &mut |_| {});
    report.unwrap();
    let salvaged = Db::open("/salvaged", &options).unwrap();
    assert_eq!(salvaged.get("zz").unwrap().unwrap(), "from outside");
    assert_eq!(contents(&salvaged).len(), before.len() + 1);
    destroy("/copy", &options, &[]).unwrap();
}

#[test]
fn holes_are_punched_and_direct_io_is_used_on_a_real_disk() {
    for more in ["", "use_direct_reads=true;use_direct_io_for_flush_and_compaction=true"] {
        let directory = temporary();
        let path = directory.path().join("db");
        let mut options = create();
        options.env = Env::os().encrypted(aes(1)).unwrap();
        set(&mut options, BLOBS);
        set(
            &mut options,
            "blob_file_size=1000000;max_space_amplification=1.1;burst_space_amplification=0",
        );
        set(&mut options, more);
        let db = match Db::open(&path, &options) {
            Ok(db) => db,
            Err(error) if !more.is_empty() => {
                println!("SKIPPED: {error}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        for round in 0..2 {
            for number in (0..64).filter(|number| round == 0 || number % 4 != 0) {
                db.put(format!("key-{number:04}"), value(number + round, 40_000)).unwrap();
            }
            db.flush_all().unwrap();
        }
        db.wait_for_compactions().unwrap();
        let before = contents(&db);
        assert_sound(&db);
        db.close().unwrap();
        drop(db);
        let db = Db::open(&path, &options).unwrap();
        assert!(contents(&db) == before);
        assert_sound(&db);
    }
}

const LDB: &str = "--fs_uri=provider=CTR://test;id=EncryptedFileSystem";

fn referee() -> Option<Referee> {
    let found = Referee::find();
    if found.is_none() {
        println!("SKIPPED: ldb and sst_dump are not installed");
    }
    found
}

fn with_rot13(text: &str) -> Options {
    let mut options = create();
    options.env = Env::os().encrypted(Arc::new(Rot13)).unwrap();
    set(&mut options, text);
    options
}

fn scanned(text: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let entries =
        text.lines().filter_map(|line| line.split_once(" ==> ").or_else(|| line.split_once(" : ")));
    entries.map(|(key, value)| (key.into(), value.into())).collect()
}

#[test]
fn rocksdb_reads_what_is_encrypted_here() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let db = Db::open(&path, &with_rot13(BLOBS)).unwrap();
    fill(&db);
    let before = contents(&db);
    db.close().unwrap();
    drop(db);
    let found = referee.ldb(&path, &[LDB, "scan", "--try_load_options"]).unwrap();
    assert!(scanned(&found) == before, "{} of {} entries", scanned(&found).len(), before.len());
    referee.ldb(&path, &[LDB, "checkconsistency"]).unwrap();
    referee.ldb(&path, &[LDB, "put", "zz", "rocksdb"]).unwrap();
    // RocksDB wrote over it; both go on.
    let db = Db::open(&path, &with_rot13(BLOBS)).unwrap();
    assert_eq!(db.get("zz").unwrap().unwrap(), "rocksdb");
    assert_eq!(contents(&db).len(), before.len() + 1);
    assert_sound(&db);
}

#[test]
fn what_rocksdb_encrypts_is_read_here() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let mut expected = Vec::new();
    for number in 0..30 {
        let (key, value) =
            (format!("key-{number:04}"), String::from_utf8(value(number, 600)).unwrap());
        let flags = ["--create_if_missing", "--enable_blob_files", "--min_blob_size=500"];
        let arguments = [&[LDB][..], &flags, &["put", &key, &value]].concat();
        referee.ldb(&path, &arguments).unwrap();
        expected.push((key.into_bytes(), value.into_bytes()));
    }
    let db = Db::open(&path, &with_rot13("")).unwrap();
    assert!(contents(&db) == expected);
    assert_sound(&db);
    db.close().unwrap();
    drop(db);
    // A key that does not fit is told by CURRENT, though RocksDB has no mark of its own.
    let mut other = create();
    other.env = Env::os().encrypted(aes(1)).unwrap();
    let wrong = Db::open(&path, &other).expect_err("another cipher");
    assert!(wrong.to_string().contains("CURRENT"), "{wrong}");
}
