//! A world for stories: files in memory, simulated time, threads that the scheduler runs.
//!
//! Every call of a file is a place where another thread may come in between. The locks in here are
//! held for a moment and never across such a place, so that they need not be the scheduler's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use flagstone::base::file_name::FileKind;
use flagstone::base::{Code, Error, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{
    self, AnyFile, Clock, Env, FileAround, FileLock, FileSystem, Join, LowPriority, Metadata,
    OpenMode, Plenty, Random, Spawn, Task,
};
use flagstone::options::{Options, WriteOptions};
use testkit::{compare, settings};

/// Where the stories' databases lie.
pub const PATH: &str = "/db";

/// Lets the scheduler decide who goes on.
pub fn decide() {
    shuttle::thread::sleep(Duration::ZERO);
}

/// Starts a thread of a story.
pub fn thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> shuttle::thread::JoinHandle<T> {
    shuttle::thread::spawn(work)
}

/// Starts so many threads, each with its number, that work on the same database.
pub fn threads<T: Send + 'static>(
    count: usize,
    db: &Db,
    work: impl Fn(&Db, usize) -> T + Clone + Send + 'static,
) -> Vec<shuttle::thread::JoinHandle<T>> {
    let start = |number| {
        let (db, work) = (db.clone(), work.clone());
        thread(move || work(&db, number))
    };
    (0..count).map(start).collect()
}

/// Waits for the end of a story's threads.
pub fn join<T>(threads: Vec<shuttle::thread::JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
}

/// Options for small databases in this world.
pub fn options(disk: &Disk, changes: &[(&str, &str)]) -> Options {
    let chance = Arc::new(World::default());
    let env = Env {
        fs: Arc::new(disk.clone()),
        clock: chance.clone(),
        random: chance.clone(),
        spawner: chance,
        resources: Arc::new(Plenty),
    };
    let mut options = settings::tiny(&env);
    // One thread less for each job; a story of its own has them.
    settings::set(&mut options, &[("background_niceness", "0")]);
    settings::set(&mut options, changes);
    options
}

/// A new database on a new disk.
pub fn open(changes: &[(&str, &str)]) -> (Disk, Db) {
    let disk = Disk::default();
    let db = Db::open(PATH, &options(&disk, changes)).expect("a new database");
    (disk, db)
}

/// Writes all entries as one batch.
///
/// # Errors
/// Those of the write.
pub fn write(db: &Db, sync: bool, entries: &[(&ColumnFamily, &str, &str)]) -> Result<()> {
    let mut batch = WriteBatch::new();
    for (family, key, value) in entries {
        batch.put_cf(*family, key.as_bytes(), value.as_bytes())?;
    }
    db.write_with(&WriteOptions { sync, ..WriteOptions::default() }, batch)
}

/// One entry of the family `default`.
///
/// # Errors
/// Those of the write.
pub fn put(db: &Db, sync: bool, key: &str, value: &str) -> Result<()> {
    write(db, sync, &[(db.default_column_family(), key, value)])
}

/// Closes the database; afterwards its directory is as [`check_directory`] wants it.
pub fn close(disk: &Disk, db: &Db) {
    db.wait_for_compactions().expect("no failure");
    compare::check_files(db);
    db.close().expect("a clean close");
    // Only now: memtables whose values lie in blob files are flushed.
    check_directory(disk, db);
}

/// The directory holds the files of the newest version, and no others.
pub fn check_directory(disk: &Disk, db: &Db) {
    let mut live: Vec<_> = db.live_files().into_iter().map(|file| file.number).collect();
    let names = disk.files.list(Path::new(PATH)).expect("a listing");
    let mut found: Vec<_> = names
        .iter()
        .filter_map(|name| match FileKind::parse(name) {
            Some(FileKind::Table(number) | FileKind::Blob(number)) => Some(number),
            _ => None,
        })
        .collect();
    live.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, live, "files in the directory, and those of the newest version");
}

/// Time, chance and threads.
#[derive(Default)]
struct World {
    now_us: AtomicU64,
    drawn: AtomicU64,
}

impl Clock for World {
    fn now_us(&self) -> u64 {
        self.now_us.fetch_add(1, Ordering::Relaxed)
    }

    fn unix_seconds(&self) -> u64 {
        1_700_000_000
    }

    fn sleep(&self, duration: Duration) {
        self.now_us.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
        shuttle::thread::yield_now();
    }
}

impl Random for World {
    fn next_u64(&self) -> u64 {
        self.drawn.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
    }
}

impl Spawn for World {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>> {
        let started = shuttle::thread::Builder::new().name(name.to_string()).spawn(work);
        Ok(Box::new(Thread(started.map_err(|source| Error::io("start", Path::new(name), source))?)))
    }

    fn run_all(&self, _name: &str, tasks: Vec<Task<'_>>) {
        shuttle::thread::scope(|scope| {
            for task in tasks {
                scope.spawn(task);
            }
        });
    }

    fn run_giving_way(&self, _name: &str, _priority: LowPriority, task: Task<'_>) {
        shuttle::thread::scope(|scope| {
            scope.spawn(task);
        });
    }
}

struct Thread(shuttle::thread::JoinHandle<()>);

impl Join for Thread {
    fn join(self: Box<Self>) -> bool {
        self.0.join().is_err()
    }
}

/// Files in memory that know what of them is synced and whether they are removed. A read of a
/// removed file fails the story, although systems allow it.
#[derive(Clone, Default)]
pub struct Disk {
    files: MemoryFileSystem,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    by_name: BTreeMap<PathBuf, Arc<Facts>>,
    /// Syncs until one fails; none does at 0.
    syncs_left: u64,
}

/// What is known of one file.
#[derive(Default)]
struct Facts {
    removed: AtomicBool,
    synced: Mutex<Vec<u8>>,
}

impl Disk {
    /// The nth sync from now on fails, once.
    pub fn fail_sync(&self, nth: u64) {
        self.state().syncs_left = nth;
    }

    /// Whether the synced part of any file holds these bytes.
    pub fn is_durable(&self, bytes: &[u8]) -> bool {
        let holds = |facts: &Arc<Facts>| {
            let synced = facts.synced.lock().expect("no panic");
            synced.windows(bytes.len()).any(|window| window == bytes)
        };
        self.state().by_name.values().any(holds)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    fn sync_fails(&self) -> bool {
        let mut state = self.state();
        let fails = state.syncs_left == 1;
        state.syncs_left = state.syncs_left.saturating_sub(1);
        fails
    }
}

struct ScheduledFile {
    inner: AnyFile,
    facts: Arc<Facts>,
    disk: Disk,
}

impl ScheduledFile {
    fn contents(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.inner.size()? as usize];
        let read = self.inner.read_at(0, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}

impl FileAround for ScheduledFile {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        decide();
        let removed = self.facts.removed.load(Ordering::Relaxed);
        assert!(!removed, "{} is read after its removal", self.inner.path().display());
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        decide();
        self.inner.write_at(offset, data)
    }

    fn sync(&self) -> Result<()> {
        decide();
        if self.disk.sync_fails() {
            return Err(Error::new(Code::IoError, "the disk does not sync").at(self.inner.path()));
        }
        // What is written while it runs is not in it.
        let contents = self.contents()?;
        decide();
        *self.facts.synced.lock().expect("no panic") = contents;
        Ok(())
    }

    fn truncate(&self, length: u64) -> Result<()> {
        decide();
        self.inner.truncate(length)
    }
}

impl env::FileSystemAround for Disk {
    fn inner(&self) -> &dyn FileSystem {
        &self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        decide();
        let inner = mode.open(&self.files, path)?;
        let facts = self.state().by_name.entry(path.to_path_buf()).or_default().clone();
        Ok(AnyFile::around(ScheduledFile { inner, facts, disk: self.clone() }))
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        decide();
        self.files.rename(source, target)?;
        let mut state = self.state();
        let facts = state.by_name.remove(source).expect("it was opened once");
        state.by_name.insert(target.to_path_buf(), facts);
        Ok(())
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        decide();
        self.files.link(source, target)?;
        let mut state = self.state();
        let synced = state.by_name[source].synced.lock().expect("no panic").clone();
        let facts = Facts { synced: Mutex::new(synced), ..Facts::default() };
        state.by_name.insert(target.to_path_buf(), Arc::new(facts));
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        decide();
        self.files.remove(path)?;
        let facts = self.state().by_name.remove(path).expect("it was opened once");
        facts.removed.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        decide();
        self.files.list(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        decide();
        self.files.sync_directory(directory)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        decide();
        self.files.metadata(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let lock = self.files.lock(path)?;
        self.state().by_name.entry(path.to_path_buf()).or_default();
        Ok(lock)
    }
}
