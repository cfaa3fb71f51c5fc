//! Databases of many tables: an opening reads the MANIFEST and none of the tables.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flagstone::base::Result;
use flagstone::db::Db;
use flagstone::env::{AnyFile, Env, FileSystem, FileSystemAround, OpenMode};
use testkit::settings;

/// Counts how often a table is opened for reading.
#[derive(Clone)]
struct Disk {
    files: Arc<dyn FileSystem>,
    opened: Arc<AtomicUsize>,
}

impl FileSystemAround for Disk {
    fn inner(&self) -> &dyn FileSystem {
        &*self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        if path.extension().is_some_and(|ending| ending == "sst") && mode.only_reads() {
            self.opened.fetch_add(1, Ordering::Relaxed);
        }
        mode.open(&*self.files, path)
    }
}

fn key(number: usize) -> String {
    format!("{number:08}")
}

/// RocksDB opens all tables as it opens a database, if `max_open_files` sets no limit.
#[test]
fn an_opening_opens_no_table() {
    const TABLES: usize = 100;
    let opened = Arc::new(AtomicUsize::new(0));
    let disk = Disk { files: Env::memory().fs, opened: opened.clone() };
    let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(disk)));
    settings::set(&mut options, &[("disable_auto_compactions", "true")]);
    settings::set(&mut options, &[("level0_slowdown_writes_trigger", "1000")]);
    settings::set(&mut options, &[("level0_stop_writes_trigger", "1000")]);
    let db = Db::open("/db", &options).unwrap();
    for number in 0..TABLES {
        db.put(key(number), "value").unwrap();
        db.flush_all().unwrap();
    }
    db.close().unwrap();
    drop(db);
    for limit in ["-1", "50"] {
        settings::set(&mut options, &[("max_open_files", limit)]);
        opened.store(0, Ordering::Relaxed);
        let db = Db::open("/db", &options).unwrap();
        assert_eq!(db.live_files().len(), TABLES);
        assert_eq!(opened.load(Ordering::Relaxed), 0, "max_open_files={limit}");
        assert!(db.get(key(7)).unwrap().is_some());
        assert_eq!(opened.load(Ordering::Relaxed), 1, "the one whose keys it may be among");
        db.close().unwrap();
    }
    opened.store(0, Ordering::Relaxed);
    let db = Db::open_read_only("/db", &options).unwrap();
    assert_eq!(opened.swap(0, Ordering::Relaxed), TABLES, "a writer may remove any of them");
    assert!(db.get(key(70)).unwrap().is_some());
    assert_eq!(opened.load(Ordering::Relaxed), 0, "it was held from the start");
}
