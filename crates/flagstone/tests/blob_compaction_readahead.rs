//! Reading blobs ahead for compactions that move them: `blob_compaction_readahead_size`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flagstone::base::Result;
use flagstone::db::Db;
use flagstone::env::{
    AnyFile, Env, FileAround, FileSystem, FileSystemAround, OpenMode, memory::MemoryFileSystem,
};
use flagstone::options::{BottommostLevelCompaction, CompactRangeOptions};
use testkit::settings;

/// Counts reads of blob files, and their bytes.
#[derive(Clone, Default)]
struct Disk {
    files: Arc<MemoryFileSystem>,
    reads: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
}

struct DiskFile {
    file: AnyFile,
    disk: Disk,
}

impl FileAround for DiskFile {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.disk.reads.fetch_add(1, Ordering::Relaxed);
        self.disk.bytes.fetch_add(buffer.len(), Ordering::Relaxed);
        self.file.read_at(offset, buffer)
    }
}

impl FileSystemAround for Disk {
    fn inner(&self) -> &dyn FileSystem {
        &*self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&*self.files, path)?;
        if path.extension().is_some_and(|ending| ending == "blob") {
            Ok(AnyFile::around(DiskFile { file, disk: self.clone() }))
        } else {
            Ok(file)
        }
    }
}

fn compact(db: &Db) {
    let everything = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    db.compact_range(db.default_column_family(), None, None, &everything).unwrap();
}

/// Reads of blob files, and bytes, of a compaction that moves 400 values of 2000 bytes.
fn moved(readahead: &str) -> (usize, usize) {
    let disk = Disk::default();
    let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(disk.clone())));
    let wanted = [
        ("write_buffer_size", "10000000"),
        ("disable_auto_compactions", "true"),
        ("enable_blob_files", "true"),
        ("blob_write_mode", "flush"),
        ("enable_blob_garbage_collection", "true"),
        ("blob_garbage_collection_age_cutoff", "1"),
        ("blob_compaction_readahead_size", "0"),
    ];
    settings::set(&mut options, &wanted);
    let db = Db::open("/db", &options).unwrap();
    for round in 0..2u8 {
        // The second round makes garbage of a fifth of the first.
        for number in (0..500u32).step_by(if round == 0 { 1 } else { 5 }) {
            db.put(format!("{number:03}"), [number as u8 ^ round; 2000]).unwrap();
        }
        db.flush_all().unwrap();
    }
    // What is garbage is known once; then the values are moved that are none.
    compact(&db);
    db.set_options(db.default_column_family(), &[("blob_compaction_readahead_size", readahead)])
        .unwrap();
    disk.reads.store(0, Ordering::Relaxed);
    disk.bytes.store(0, Ordering::Relaxed);
    compact(&db);
    let found = (disk.reads.load(Ordering::Relaxed), disk.bytes.load(Ordering::Relaxed));
    for number in 0..500u32 {
        let expected = [number as u8 ^ u8::from(number % 5 == 0); 2000];
        assert_eq!(db.get(format!("{number:03}")).unwrap().as_deref(), Some(&expected[..]));
    }
    assert!(db.verify(|_| {}).faults.is_empty());
    found
}

#[test]
fn what_lies_in_order_is_read_in_few_large_pieces() {
    let (reads, bytes) = moved("0");
    assert!(reads >= 400, "{reads}");
    let (few, more) = moved("65536");
    assert!(few * 5 < reads && more < bytes * 2, "{few} reads of {more} bytes; {reads} of {bytes}");
    // Less than a value: nothing is read ahead, and nothing breaks.
    assert!(moved("100").0 >= 400);
}
