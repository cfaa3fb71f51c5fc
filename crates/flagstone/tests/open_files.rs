//! How many files a database holds open: `max_open_files`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flagstone::base::Result;
use flagstone::db::Db;
use flagstone::env::{
    AnyFile, Env, FileAround, FileSystem, FileSystemAround, OpenMode, memory::MemoryFileSystem,
};
use testkit::settings;

/// Counts the table and blob files that are open for reading, and how many there were at most; and
/// the blob files that are open in whatever way.
#[derive(Clone)]
struct Disk {
    files: Arc<MemoryFileSystem>,
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    blobs: Arc<AtomicUsize>,
}

struct DiskFile {
    file: AnyFile,
    open: Arc<AtomicUsize>,
}

impl FileAround for DiskFile {
    fn inner(&self) -> &AnyFile {
        &self.file
    }
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl FileSystemAround for Disk {
    fn inner(&self) -> &dyn FileSystem {
        &*self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        let file = mode.open(&*self.files, path)?;
        let is_blob = path.extension().is_some_and(|ending| ending == "blob");
        let file = if is_blob {
            self.blobs.fetch_add(1, Ordering::Relaxed);
            AnyFile::around(DiskFile { file, open: self.blobs.clone() })
        } else {
            file
        };
        let is_counted = is_blob || path.extension().is_some_and(|ending| ending == "sst");
        if !is_counted || !mode.only_reads() {
            return Ok(file);
        }
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(open, Ordering::Relaxed);
        Ok(AnyFile::around(DiskFile { file, open: self.open.clone() }))
    }
}

/// A database of 60 tables and as many blob files.
fn filled(changes: &[(&str, &str)]) -> (Disk, Db) {
    let disk = Disk {
        files: Arc::default(),
        open: Arc::default(),
        most: Arc::default(),
        blobs: Arc::default(),
    };
    let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(disk.clone())));
    let common = [
        ("disable_auto_compactions", "true"),
        ("level0_slowdown_writes_trigger", "1000"),
        ("level0_stop_writes_trigger", "1000"),
        ("block_cache", "0"),
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("blob_write_mode", "flush"),
    ];
    settings::set(&mut options, &common);
    settings::set(&mut options, changes);
    let db = Db::open("/db", &options).unwrap();
    for number in 0..60 {
        db.put(format!("{number:02}"), "small").unwrap();
        db.put(format!("{number:02}+"), [number; 200]).unwrap();
        db.flush_all().unwrap();
    }
    (disk, db)
}

fn read_all(db: &Db) {
    for number in (0..60u8).rev() {
        assert_eq!(db.get(format!("{number:02}")).unwrap().as_deref(), Some(&b"small"[..]));
        assert_eq!(db.get(format!("{number:02}+")).unwrap().as_deref(), Some(&[number; 200][..]));
    }
    let keys: Vec<_> = (0..60).map(|number| format!("{number:02}+")).collect();
    assert!(db.multi_get(&keys).into_iter().all(|value| value.unwrap().unwrap().len() == 200));
    let mut iter = db.iter(&Default::default()).unwrap();
    iter.seek_to_first();
    let mut count = 0;
    while iter.valid() {
        iter.value().unwrap();
        count += 1;
        iter.next();
    }
    assert_eq!(count, 120);
}

#[test]
fn no_more_files_are_open_than_wanted_and_everything_is_read() {
    // The number set, and what RocksDB's table cache would hold.
    for (wanted, open) in [("0", 10), ("20", 10), ("45", 35), ("1000", 120)] {
        let (disk, db) = filled(&[("max_open_files", wanted)]);
        for _ in 0..2 {
            read_all(&db);
            assert_eq!(disk.open.load(Ordering::Relaxed), open, "{wanted}");
        }
        // One that is about to be opened takes the place of another first; one thread reads.
        assert_eq!(disk.most.load(Ordering::Relaxed), open, "{wanted}");
    }
}

#[test]
fn a_limit_is_set_and_lifted_while_the_database_is_open() {
    let (disk, db) = filled(&[]);
    read_all(&db);
    assert_eq!(disk.open.load(Ordering::Relaxed), 120, "all, if nothing is said");
    drop(db);
    let (disk, db) = filled(&[("max_open_files", "50")]);
    read_all(&db);
    assert_eq!(disk.open.load(Ordering::Relaxed), 40);
    db.set_db_options(&[("max_open_files", "30")]).unwrap();
    assert_eq!(disk.open.load(Ordering::Relaxed), 20, "at once");
    db.set_db_options(&[("max_open_files", "-1")]).unwrap();
    read_all(&db);
    assert_eq!(disk.open.load(Ordering::Relaxed), 120);
}

/// Tables that are gone are no longer among those that are open.
#[test]
fn compactions_close_what_they_replace() {
    let (disk, db) = filled(&[("max_open_files", "30")]);
    read_all(&db);
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    let files = db.live_files().len();
    read_all(&db);
    assert!(disk.open.load(Ordering::Relaxed) <= files.min(20));
    assert!(disk.most.load(Ordering::Relaxed) <= 20);
}

/// Whoever had written a blob file kept it open for as long as it was there.
#[test]
fn blob_files_that_were_filled_at_commit_do_not_stay_open() {
    let at_commit = [("blob_write_mode", "commit"), ("blob_commit_min_size", "100")];
    for (wanted, most) in [("20", 12), ("-1", 62)] {
        let (disk, db) = filled(&[&[("max_open_files", wanted)], &at_commit[..]].concat());
        let files = db.live_files().iter().filter(|file| file.level.is_none()).count();
        assert_eq!(files, 60);
        read_all(&db);
        // Those of the pool, and the active memtable's.
        let open = disk.blobs.load(Ordering::Relaxed);
        assert!(open <= most, "{wanted}: {open}");
    }
}

/// Went wrong: blob files that had been read stayed open after their removal, and the disk did not
/// get their space back.
#[test]
fn blob_files_that_are_removed_are_closed() {
    let (disk, db) = filled(&[("enable_blob_garbage_collection", "true")]);
    read_all(&db);
    assert_eq!(disk.blobs.load(Ordering::Relaxed), 60);
    (0..60).for_each(|number| db.delete(format!("{number:02}+")).unwrap());
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    db.wait_for_compactions().unwrap();
    assert!(db.live_files().iter().all(|file| file.level.is_some()));
    assert_eq!(disk.blobs.load(Ordering::Relaxed), 0);
}

const READERS: usize = 8;

/// Counts how often tables are opened, and takes its time over it: until all readers have begun,
/// and could have come as far.
#[derive(Clone, Default)]
struct Slow {
    files: Arc<MemoryFileSystem>,
    begun: Arc<AtomicUsize>,
    opened: Arc<AtomicUsize>,
}

impl FileSystemAround for Slow {
    fn inner(&self) -> &dyn FileSystem {
        &*self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        if mode.only_reads() && path.extension().is_some_and(|ending| ending == "sst") {
            self.opened.fetch_add(1, Ordering::Relaxed);
            while self.begun.load(Ordering::Relaxed) < READERS {
                thread::yield_now();
            }
            (0..1000).for_each(|_| thread::yield_now());
        }
        mode.open(&*self.files, path)
    }
}

/// Each of them read footer, index and filter, and all but one threw them away: so many times the
/// memory, and none was sooner done.
#[test]
fn a_table_that_many_ask_for_at_once_is_opened_once() {
    let disk = Slow::default();
    let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(disk.clone())));
    settings::set(&mut options, &[("disable_auto_compactions", "true")]);
    disk.begun.store(READERS, Ordering::Relaxed);
    let db = Db::open("/db", &options).unwrap();
    for number in 0..100 {
        db.put(format!("{number:02}"), "value").unwrap();
    }
    db.flush_all().unwrap();
    db.close().unwrap();
    let db = Db::open("/db", &options).unwrap();
    let (tables, before) = (db.live_files().len(), disk.opened.load(Ordering::Relaxed));
    disk.begun.store(0, Ordering::Relaxed);
    thread::scope(|scope| {
        for number in 0..READERS {
            let (db, begun) = (&db, &disk.begun);
            scope.spawn(move || {
                begun.fetch_add(1, Ordering::Relaxed);
                assert_eq!(db.get(format!("{number:02}")).unwrap().as_deref(), Some(&b"value"[..]));
            });
        }
    });
    assert_eq!((tables, disk.opened.load(Ordering::Relaxed) - before), (1, 1));
}
