//! What listeners are told of single reads and writes of files.

use std::path::Path;
use std::sync::Arc;

use flagstone::env::FileSystem;
use flagstone::options::{EventListener, FileOperationInfo};
use parking_lot::Mutex;
use testkit::{Call, Injection, Plan, Sort};

use super::World;
use super::diary::name;

/// Counts the operations on files, by kind and by the end of the name.
#[derive(Default)]
struct Ledger(Mutex<Vec<(String, String, bool)>>);

impl Ledger {
    fn note(&self, what: &str, info: &FileOperationInfo) {
        self.0.lock().push((what.to_string(), name(&info.path), info.error.is_some()));
    }

    fn has(&self, what: &str, end: &str) -> bool {
        self.0.lock().iter().any(|(call, name, _)| call == what && name.ends_with(end))
    }
}

impl EventListener for Ledger {
    fn should_be_notified_on_file_io(&self) -> bool {
        true
    }

    fn on_file_read_finish(&self, operation: &FileOperationInfo) {
        self.note("read", operation);
    }

    fn on_file_write_finish(&self, operation: &FileOperationInfo) {
        self.note("write", operation);
    }

    fn on_file_sync_finish(&self, operation: &FileOperationInfo) {
        self.note("sync", operation);
    }

    fn on_file_truncate_finish(&self, operation: &FileOperationInfo) {
        self.note("truncate", operation);
    }

    fn on_file_close_finish(&self, operation: &FileOperationInfo) {
        self.note("close", operation);
    }

    fn on_io_error(&self, operation: &FileOperationInfo) {
        self.note("error", operation);
    }
}

#[test]
fn operations_on_files_are_told_to_those_who_want_that() {
    let ledger = Arc::new(Ledger::default());
    let mut world = World::new("");
    world.options.listeners.push(ledger.clone());
    let db = world.open();
    db.put("key", "value").unwrap();
    db.sync_wal().unwrap();
    db.flush_all().unwrap();
    assert!(db.get("key").unwrap().is_some());
    for (what, end) in
        [("write", ".log"), ("sync", ".log"), ("write", ".sst"), ("sync", ".sst"), ("read", ".sst")]
    {
        assert!(ledger.has(what, end), "{what} of {end}: {:?}", ledger.0.lock());
    }
    assert!(!ledger.has("error", ""));
    db.put("key", "newer").unwrap();
    world.fs.plan(Plan::Next { call: Call::Sync, sort: Sort::Table, injection: Injection::Io });
    db.flush_all().unwrap_err();
    assert!(ledger.has("error", ".sst"));
    drop(db);
    assert!(ledger.has("close", ".sst") && ledger.has("truncate", ".log"));
}

/// A listener that does not want it leaves the files as they are.
#[test]
fn nobody_hears_of_operations_who_does_not_ask() {
    #[derive(Default)]
    struct Deaf(Ledger);
    impl EventListener for Deaf {
        fn on_file_write_finish(&self, operation: &FileOperationInfo) {
            self.0.note("write", operation);
        }
    }
    let (deaf, mut world) = (Arc::new(Deaf::default()), World::new(""));
    world.options.listeners.push(deaf.clone());
    let db = world.open();
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    assert!(deaf.0.0.lock().is_empty());
    let fs: &dyn FileSystem = &world.fs;
    assert!(fs.metadata(Path::new("/db/CURRENT")).is_ok());
}
