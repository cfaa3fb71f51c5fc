//! Tables that are dropped as they are: of what they refer to in blob files only the sums are
//! wanted.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flagstone::base::Result;
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{AnyFile, FileAround, FileSystem, FileSystemAround, IoMode, OpenMode};
use testkit::{settings, steps};

/// Notes which tables are read around the system's cache, which is what compactions do here and
/// nobody else.
#[derive(Clone, Default)]
struct Disk {
    files: Arc<MemoryFileSystem>,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Default)]
struct Notes {
    open: usize,
    most_open: usize,
    read: BTreeSet<PathBuf>,
    /// What comes to pass at the first read.
    meanwhile: Option<Box<dyn FnOnce() + Send>>,
}

struct DiskFile {
    file: AnyFile,
    notes: Arc<Mutex<Notes>>,
}

impl FileAround for DiskFile {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let meanwhile = {
            let mut notes = self.notes.lock().unwrap();
            notes.read.insert(self.file.path().to_path_buf());
            notes.meanwhile.take()
        };
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        self.file.read_at(offset, buffer)
    }
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        self.notes.lock().unwrap().open -= 1;
    }
}

impl FileSystemAround for Disk {
    fn inner(&self) -> &dyn FileSystem {
        &*self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&*self.files, path)?;
        if mode != OpenMode::RandomAccess(IoMode::Direct)
            || path.extension().is_none_or(|ending| ending != "sst")
        {
            return Ok(file);
        }
        let mut notes = self.notes.lock().unwrap();
        notes.open += 1;
        notes.most_open = notes.most_open.max(notes.open);
        Ok(AnyFile::around(DiskFile { file, notes: self.notes.clone() }))
    }
}

/// A family of so many tables, each with so many values in a blob file, that drops the oldest as
/// soon as it may.
fn filled(disk: &Disk, tables: u32, values: u32) -> (Arc<Db>, ColumnFamily) {
    let mut options = settings::tiny(&steps::world(Arc::new(disk.clone()), 1));
    let common = [
        ("use_direct_io_for_flush_and_compaction", "true"),
        ("disable_auto_compactions", "true"),
        ("write_buffer_size", "10000000"),
        ("compaction_style", "kCompactionStyleFIFO"),
        ("enable_blob_files", "true"),
        ("blob_write_mode", "flush"),
        ("min_blob_size", "10"),
    ];
    settings::set(&mut options, &common);
    let db = Db::open("/db", &options).unwrap();
    let family = db.create_column_family("first", &options.cf).unwrap();
    for _ in 0..tables {
        for number in 0..values {
            db.put_cf(&family, number.to_be_bytes(), [7; 20]).unwrap();
        }
        db.flush_all().unwrap();
    }
    assert_eq!(db.live_files().len() as u32, 2 * tables);
    (Arc::new(db), family)
}

fn drop_all(db: &Db, family: &ColumnFamily) {
    let changes = [
        ("compaction_options_fifo", "{max_table_files_size=1;}"),
        ("disable_auto_compactions", "false"),
    ];
    db.set_options(family, &changes).unwrap();
    db.wait_for_compactions().unwrap();
}

/// A cursor was made over each of the tables before one was read, and each read ahead.
#[test]
fn they_are_read_one_after_the_other() {
    let disk = Disk::default();
    let (db, family) = filled(&disk, 40, 10);
    drop_all(&db, &family);
    assert_eq!(db.live_files().len(), 0);
    let notes = disk.notes.lock().unwrap();
    assert_eq!((notes.read.len(), notes.most_open), (40, 1));
}

/// Whoever dropped the family, or closed the database, waited until all of them were read.
#[test]
fn they_are_not_read_once_nobody_wants_them_counted() {
    let disk = Disk::default();
    let (db, family) = filled(&disk, 5, 5000);
    let (other, dropped) = (db.clone(), family.clone());
    disk.notes.lock().unwrap().meanwhile =
        Some(Box::new(move || other.drop_column_family(&dropped).unwrap()));
    drop_all(&db, &family);
    let notes = disk.notes.lock().unwrap();
    assert!(notes.meanwhile.is_none(), "it was dropped");
    assert_eq!(notes.read.len(), 1);
}
