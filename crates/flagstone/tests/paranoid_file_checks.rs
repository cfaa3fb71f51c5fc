//! Tables are read back before they count: `paranoid_file_checks`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flagstone::base::{Result, SubCode};
use flagstone::db::Db;
use flagstone::env::{AnyFile, Env, FileAround, FileSystem, FileSystemAround, OpenMode};
use flagstone::options::{BottommostLevelCompaction, CompactRangeOptions, Options};
use testkit::{CrashFs, settings};

/// What is garbled on its way to the disk.
const MARK: &[u8] = b"garbled on its way";

/// A disk that garbles one byte in tables while it is told to, and says nothing.
#[derive(Clone)]
struct Disk {
    files: CrashFs,
    garbles: Arc<AtomicBool>,
}

struct DiskFile {
    file: AnyFile,
    garbles: Arc<AtomicBool>,
}

impl FileAround for DiskFile {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut data = data.to_vec();
        let found = data.windows(MARK.len()).position(|bytes| bytes == MARK);
        let is_table = self.file.path().extension().is_some_and(|ending| ending == "sst");
        if let Some(at) = found.filter(|_| is_table && self.garbles.load(Ordering::Relaxed)) {
            data[at] ^= 1;
        }
        self.file.write_at(offset, &data)
    }
}

impl FileSystemAround for Disk {
    fn inner(&self) -> &dyn FileSystem {
        &self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&self.files, path)?;
        Ok(AnyFile::around(DiskFile { file, garbles: self.garbles.clone() }))
    }
}

/// A disk, and options of a database on it whose tables have checksums of this kind.
fn world(checksum: &str) -> (Disk, Options) {
    let disk = Disk { files: CrashFs::new(), garbles: Arc::default() };
    let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(disk.clone())));
    settings::set(&mut options, &[("checksum", checksum), ("disable_auto_compactions", "true")]);
    (disk, options)
}

fn set(db: &Db, value: &str) {
    db.set_options(db.default_column_family(), &[("paranoid_file_checks", value)]).unwrap();
}

fn compact(db: &Db) -> Result<()> {
    let everything = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    db.compact_range(db.default_column_family(), None, None, &everything)
}

/// Without checksums, too: then it is the entries that differ from those that were written.
#[test]
fn a_table_that_is_not_what_was_written_is_not_installed() {
    for checksum in ["kXXH3", "kNoChecksum"] {
        for compacts in [false, true] {
            let (disk, options) = world(checksum);
            let db = Db::open("/db", &options).unwrap();
            db.put("a", "before").unwrap();
            db.put("c", "before").unwrap();
            set(&db, "true");
            if compacts {
                // Two tables that overlap: one alone would be moved.
                db.flush_all().unwrap();
            }
            db.put("b", MARK).unwrap();
            if compacts {
                db.flush_all().unwrap();
            }
            let before = db.live_files();
            disk.garbles.store(true, Ordering::Relaxed);
            let failed = if compacts { compact(&db) } else { db.flush_all() };
            let error = failed.unwrap_err();
            assert!(error.is_corruption() && error.to_string().contains("new table"), "{error}");
            assert_eq!(db.live_files(), before);
            match db.put("d", "after") {
                // Who asked for the compaction was told.
                Ok(()) => assert!(compacts),
                Err(refusal) => {
                    assert!(!compacts && refusal.subcode() == SubCode::Poisoned, "{refusal}")
                }
            }
            disk.garbles.store(false, Ordering::Relaxed);
            drop(db);
            let db = Db::open("/db", &options).unwrap();
            assert_eq!(db.get("b").unwrap().as_deref(), Some(MARK), "{checksum}");
            assert!(db.verify(|_| {}).faults.is_empty() && db.check().unwrap().strays.is_empty());
        }
    }
}

#[test]
fn without_it_nobody_looks() {
    let (disk, options) = world("kNoChecksum");
    let db = Db::open("/db", &options).unwrap();
    set(&db, "true");
    set(&db, "false");
    db.put("b", MARK).unwrap();
    disk.garbles.store(true, Ordering::Relaxed);
    db.flush_all().unwrap();
    assert_ne!(db.get("b").unwrap().as_deref(), Some(MARK));
}

/// Whatever a sound table holds passes: merges, deletions, ranges, blobs, filters, dictionaries.
#[test]
fn sound_tables_pass() {
    let (_, mut options) = world("kCRC32c");
    settings::set(
        &mut options,
        &[
            ("paranoid_file_checks", "true"),
            ("verify_compression", "true"),
            ("compression", "kZSTD"),
            ("compression_opts", "{max_dict_bytes=1000;}"),
            ("filter_policy", "bloomfilter:10"),
            ("index_type", "kTwoLevelIndexSearch"),
            ("partition_filters", "true"),
            ("enable_blob_files", "true"),
            ("min_blob_size", "500"),
        ],
    );
    let db = Db::open("/db", &options).unwrap();
    for round in 0..4 {
        for number in 0..300 {
            let key = format!("{:05}", number * 7 % 300);
            match number % 5 {
                0 => db.merge(&key, "operand"),
                1 => db.delete(&key),
                2 => db.put(&key, [round; 600]),
                _ => db.put(&key, format!("value {number}")),
            }
            .unwrap();
        }
        db.delete_range("00100", "00120").unwrap();
        db.flush_all().unwrap();
    }
    compact(&db).unwrap();
    assert!(db.verify(|_| {}).faults.is_empty());
}
