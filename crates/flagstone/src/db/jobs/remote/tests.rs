//! Results that have the right form, and say what cannot be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::base::Result;
use crate::compaction::remote::CompactionResult;
use crate::db::handle::Db;
use crate::db::open_and_compact;
use crate::env::memory::MemoryFileSystem;
use crate::env::{AnyFile, Env, FileSystem, FileSystemAround, IoMode, OpenMode};
use crate::options::{
    CompactRangeOptions, CompactionService, CompactionServiceJobInfo, CompactionServiceJobStatus,
    CompactionServiceOptionsOverride, CompactionServiceScheduleResponse, OpenAndCompactOptions,
    Options,
};

use CompactionServiceJobStatus::{Success, UseLocal};

type Change = fn(&dyn FileSystem, &mut CompactionResult);

/// Does what it is told, and changes the result.
struct Lying {
    fs: Arc<dyn FileSystem>,
    output: &'static str,
    change: Change,
    input: Mutex<Vec<u8>>,
    ended: Mutex<Vec<CompactionServiceJobStatus>>,
}

impl CompactionService for Lying {
    fn name(&self) -> &str {
        "Lying"
    }

    fn schedule(
        &self,
        _: &CompactionServiceJobInfo,
        input: &[u8],
    ) -> CompactionServiceScheduleResponse {
        *self.input.lock() = input.to_vec();
        CompactionServiceScheduleResponse::scheduled("a job")
    }

    fn wait(&self, _: &str, _: &dyn Fn() -> bool) -> (CompactionServiceJobStatus, Vec<u8>) {
        let components = CompactionServiceOptionsOverride {
            env: Env::memory().with_fs(self.fs.clone()),
            ..CompactionServiceOptionsOverride::default()
        };
        let options = OpenAndCompactOptions::default();
        let input = self.input.lock();
        let done = open_and_compact("/db", self.output, &input, &components, &options).unwrap();
        let mut result = CompactionResult::decode(&done).unwrap();
        (self.change)(&*self.fs, &mut result);
        (Success, result.encode())
    }

    fn on_installation(&self, _: &str, status: CompactionServiceJobStatus) {
        self.ended.lock().push(status);
    }
}

/// A database that reaches its files by way of `fs`, with tables in level 0; its service.
fn database(
    memory: &MemoryFileSystem,
    fs: Arc<dyn FileSystem>,
    output: &'static str,
    change: Change,
) -> (Db, Arc<Lying>) {
    let service = Arc::new(Lying {
        fs: Arc::new(memory.clone()),
        output,
        change,
        input: Mutex::default(),
        ended: Mutex::default(),
    });
    let mut options = Options { env: Env::memory().with_fs(fs), ..Options::default() };
    options.create_if_missing = true;
    options.cf.disable_auto_compactions = true;
    options.compaction_service = Some(service.clone());
    let db = Db::open("/db", &options).unwrap();
    for round in 0..3u8 {
        write(&db, round);
    }
    (db, service)
}

fn write(db: &Db, round: u8) {
    for key in 0..50 {
        db.put(format!("{key:03}"), vec![b'a' + round; 1000]).unwrap();
    }
    db.flush_all().unwrap();
}

fn compact(db: &Db) -> Result<()> {
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
}

/// All is there, writes go on, and the database is found as it was.
fn check(db: Db, memory: &MemoryFileSystem) {
    let expected = vec![b'c'; 1000];
    assert_eq!(db.get("049").unwrap().unwrap(), expected);
    db.put("another", "1").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    let env = Env::memory().with_fs(Arc::new(memory.clone()));
    let db = Db::open("/db", &Options { env, ..Options::default() }).unwrap();
    assert_eq!(db.get("000").unwrap().unwrap(), expected);
    let report = db.verify(|_| {});
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    db.close().unwrap();
}

/// Later flushes found no place in history: the database had ended for good.
#[test]
fn a_place_in_history_that_no_input_has_is_refused() {
    let memory = MemoryFileSystem::new();
    let change: Change = |_, result| result.changes.new_files[0].1.epoch_number = 1 << 62;
    let (db, service) = database(&memory, Arc::new(memory.clone()), "/out", change);
    compact(&db).unwrap();
    assert_eq!(*service.ended.lock(), [UseLocal]);
    check(db, &memory);
}

/// Files were moved out of the directory that a result named, whatever it was, and deleted.
#[test]
fn files_of_other_databases_stay_where_they_are() {
    let memory = MemoryFileSystem::new();
    let change: Change = |fs, result| {
        fs.create_directory(Path::new("/other")).unwrap();
        for name in fs.list(&result.directory).unwrap().iter().chain([&"CURRENT".to_string()]) {
            let path = Path::new("/other").join(name);
            fs.create_writable(&path, IoMode::Buffered).unwrap();
        }
        result.directory = PathBuf::from("/other");
    };
    let (db, service) = database(&memory, Arc::new(memory.clone()), "/out", change);
    compact(&db).unwrap();
    assert_eq!(*service.ended.lock(), [UseLocal]);
    assert_eq!(memory.list(Path::new("/other")).unwrap().len(), 2);
    check(db, &memory);
}

#[test]
fn files_of_a_result_that_is_refused_go_back() {
    let changes: [Change; 2] = [
        // The size is wrong.
        |_, result| {
            result.files[0].size += 1;
            result.changes.new_files[0].1.size += 1;
        },
        // The bytes are.
        |_, result| result.files[0].sum ^= 1,
    ];
    for change in changes {
        let memory = MemoryFileSystem::new();
        let (db, service) = database(&memory, Arc::new(memory.clone()), "/out", change);
        compact(&db).unwrap();
        assert_eq!(*service.ended.lock(), [UseLocal]);
        assert_eq!(memory.list(Path::new("/out")).unwrap().len(), 1);
        check(db, &memory);
    }
}

/// Files that belong to another user: they can be read only.
struct Foreign(MemoryFileSystem);

impl FileSystemAround for Foreign {
    fn inner(&self) -> &dyn FileSystem {
        &self.0
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        if matches!(mode, OpenMode::ReopenWritable)
            && path.extension().is_some_and(|extension| extension == "sst")
        {
            let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
            return Err(crate::base::Error::io("open", path, denied));
        }
        mode.open(&self.0, path)
    }
}

/// The database could not sync what it had moved, and did all that workers had done again.
#[test]
fn files_of_another_user_are_copied() {
    let memory = MemoryFileSystem::new();
    let fs = Arc::new(Foreign(memory.clone()));
    let (db, service) = database(&memory, fs, "/out", |_, _| {});
    compact(&db).unwrap();
    assert_eq!(*service.ended.lock(), [Success]);
    assert!(memory.list(Path::new("/out")).unwrap().is_empty());
    check(db, &memory);
}
