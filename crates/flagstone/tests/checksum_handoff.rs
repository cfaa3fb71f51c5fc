//! Writes that are handed to the environment with their checksums.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{create, entries};
use flagstone::base::checksum::crc32c;
use flagstone::base::{Code, Error, Result};
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{AnyFile, Env, FileAround, FileSystem, FileSystemAround, OpenMode};
use flagstone::options::{ChecksumHandoff, Options};
use parking_lot::Mutex;
use testkit::encrypted::encrypted;

/// What a file system that compares checksums remembers.
#[derive(Default)]
struct Books {
    handed: Mutex<BTreeSet<String>>,
    plain: Mutex<BTreeSet<String>>,
    /// A bit of what is written next to a WAL changes on its way.
    flips_wal: AtomicBool,
}

/// Files in memory that compare what they are handed.
#[derive(Clone)]
struct Comparing {
    fs: MemoryFileSystem,
    books: Arc<Books>,
}

struct ComparedFile {
    file: AnyFile,
    books: Arc<Books>,
}

/// What kind of file it is, by its name.
fn kind(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    name.trim_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-').to_string()
}

impl FileAround for ComparedFile {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.books.plain.lock().insert(kind(self.file.path()));
        self.file.write_at(offset, data)
    }

    fn write_handed(&self, offset: u64, data: &[u8], sum: u32) -> Result<()> {
        let kind = kind(self.file.path());
        let mut data = data.to_vec();
        if kind == "log" && self.books.flips_wal.swap(false, Ordering::Relaxed) {
            data[0] ^= 1;
        }
        self.books.handed.lock().insert(kind);
        if crc32c(&data) != sum {
            return Err(Error::corruption("the bytes changed on their way").at(self.file.path()));
        }
        self.file.write_at(offset, &data)
    }
}

impl FileSystemAround for Comparing {
    fn inner(&self) -> &dyn FileSystem {
        &self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&self.fs, path)?;
        Ok(AnyFile::around(ComparedFile { file, books: self.books.clone() }))
    }
}

fn world() -> (Comparing, Options) {
    let fs = Comparing { fs: MemoryFileSystem::new(), books: Arc::default() };
    let mut options = create();
    options.env = Env::memory().with_fs(Arc::new(fs.clone()));
    for (name, value) in
        [("enable_blob_files", "true"), ("min_blob_size", "500"), ("blob_commit_min_size", "2000")]
    {
        options.set(name, value).unwrap();
    }
    (fs, options)
}

fn fill(db: &Db) {
    for round in 0..2 {
        for number in 0..50u32 {
            let size = [20, 700, 5000][number as usize % 3];
            db.put(format!("{number:03}"), vec![round; size]).unwrap();
        }
        db.flush_all().unwrap();
    }
    db.put("last", "in the WAL").unwrap();
    db.wait_for_compactions().unwrap();
}

fn names(kinds: &[&str]) -> BTreeSet<String> {
    kinds.iter().map(|kind| (*kind).to_string()).collect()
}

#[test]
fn the_chosen_kinds_hand_all_their_writes_over() {
    let all = ChecksumHandoff::ALL;
    let cases: [(ChecksumHandoff, &[&str]); 4] = [
        (ChecksumHandoff::NONE, &[]),
        (ChecksumHandoff { wals: true, ..ChecksumHandoff::NONE }, &["log"]),
        (ChecksumHandoff { wals: false, ..all }, &["MANIFEST", "blob", "sst"]),
        (all, &["MANIFEST", "blob", "log", "sst"]),
    ];
    for (kinds, expected) in cases {
        let (fs, mut options) = world();
        options.checksum_handoff = kinds;
        let db = Db::open("/db", &options).unwrap();
        fill(&db);
        let before = entries(&db, db.default_column_family());
        db.close().unwrap();
        drop(db);
        let (handed, plain) = (fs.books.handed.lock().clone(), fs.books.plain.lock().clone());
        assert_eq!(handed, names(expected));
        assert!(handed.is_disjoint(&plain), "{handed:?}, and without: {plain:?}");
        let db = Db::open("/db", &options).unwrap();
        assert_eq!(entries(&db, db.default_column_family()), before);
        assert!(db.verify(|_| {}).faults.is_empty());
    }
}

#[test]
fn bytes_that_change_on_their_way_are_an_error_and_nothing_is_acknowledged() {
    let (fs, mut options) = world();
    options.checksum_handoff = ChecksumHandoff::ALL;
    let db = Db::open("/db", &options).unwrap();
    db.put("before", "1").unwrap();
    fs.books.flips_wal.store(true, Ordering::Relaxed);
    let refused = db.put("lost", "2").unwrap_err();
    assert_eq!(refused.code(), Code::Corruption, "{refused}");
    assert!(refused.to_string().contains("changed on their way"), "{refused}");
    drop(db);
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.get("before").unwrap().unwrap(), "1");
    assert!(db.get("lost").unwrap().is_none());
    db.put("after", "3").unwrap();
}

#[test]
fn an_encrypted_file_compares_the_plain_bytes_and_hands_on_the_others() {
    let (fs, mut options) = world();
    options.env = encrypted(options.env);
    options.checksum_handoff = ChecksumHandoff::ALL;
    let db = Db::open("/db", &options).unwrap();
    fill(&db);
    assert_eq!(*fs.books.handed.lock(), names(&["MANIFEST", "blob", "log", "sst"]));
    let path = PathBuf::from("/db/000999.sst");
    let file = options.env.fs.create_writable(&path, flagstone::env::IoMode::Buffered).unwrap();
    let refused = file.write_handed(0, b"bytes", crc32c(b"other bytes")).unwrap_err();
    assert_eq!((refused.code(), refused.path()), (Code::Corruption, Some(&*path)));
    assert_eq!(file.size().unwrap(), 0);
}
