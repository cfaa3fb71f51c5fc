//! Stories of a disk that takes long to remove a file.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flagstone::base::Result;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, FileSystemAround};
use flagstone::options::{Options, ReadOptions};
use testkit::settings;

/// Longer than any of this takes on a busy machine.
const TOO_LONG: Duration = Duration::from_secs(60);

/// Whoever removes a table first tells that it has begun, and waits until it may go on.
struct SlowDisk {
    files: MemoryFileSystem,
    begun: Mutex<Option<Sender<PathBuf>>>,
    may_go_on: Mutex<Receiver<()>>,
}

impl FileSystemAround for SlowDisk {
    fn inner(&self) -> &dyn FileSystem {
        &self.files
    }

    fn remove(&self, path: &Path) -> Result<()> {
        if path.extension().is_some_and(|extension| extension == "sst")
            && let Some(begun) = self.begun.lock().unwrap().take()
        {
            begun.send(path.to_path_buf()).unwrap();
            self.may_go_on.lock().unwrap().recv_timeout(TOO_LONG).expect("a word to go on");
        }
        FileSystem::remove(&self.files, path)
    }
}

impl SlowDisk {
    /// How many tables it has.
    fn tables(&self) -> usize {
        let names = FileSystem::list(self, Path::new("/db")).unwrap();
        names.iter().filter(|name| name.ends_with(".sst")).count()
    }
}

/// The disk, that it has begun to remove a table, and what lets it go on.
fn slow_disk() -> (Arc<SlowDisk>, Receiver<PathBuf>, Sender<()>) {
    let ((tell, begun), (go_on, may_go_on)) = (channel(), channel());
    let (begun_first, may_go_on) = (Mutex::new(Some(tell)), Mutex::new(may_go_on));
    let disk = SlowDisk { files: MemoryFileSystem::new(), begun: begun_first, may_go_on };
    (Arc::new(disk), begun, go_on)
}

fn options(disk: &Arc<SlowDisk>, changes: &[(&str, &str)]) -> Options {
    let mut options = settings::tiny(&Env::memory().with_fs(disk.clone()));
    settings::set(&mut options, changes);
    options
}

fn live(db: &Db) -> usize {
    db.live_files().iter().filter(|file| file.level.is_some()).count()
}

/// While a thread was removing files, the others went on to replace tables, whose removal nobody
/// waited for.
#[test]
fn what_is_to_be_removed_does_not_become_ever_more() {
    let (disk, begun, go_on) = slow_disk();
    let db = Db::open("/db", &options(&disk, &[("max_background_jobs", "4")])).unwrap();
    let clock = Env::os().clock;
    let start = clock.now_us();
    let most = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..400 {
                for key in 0..20 {
                    db.put(format!("{key:03}"), format!("{round} {}", "x".repeat(50))).unwrap();
                }
                db.flush_all().unwrap();
            }
        });
        begun.recv_timeout(TOO_LONG).expect("a compaction that removes its inputs");
        let family = db.default_column_family();
        let is_stopped = || db.property(family, "rocksdb.is-write-stopped").unwrap() == "1";
        while !writer.is_finished() && !is_stopped() {
            assert!(clock.now_us() - start < TOO_LONG.as_micros() as u64);
            std::thread::yield_now();
        }
        let most = disk.tables().saturating_sub(live(&db));
        go_on.send(()).unwrap();
        most
    });
    assert!(most < 150, "{most} tables were to be removed");
    db.wait_for_compactions().unwrap();
    // A thread removes what its job has replaced after it has said that the job is done.
    while disk.tables() != live(&db) {
        assert!(clock.now_us() - start < TOO_LONG.as_micros() as u64);
        std::thread::yield_now();
    }
}

/// It left to the next opening what had become free while a caller's thread was removing files.
#[test]
fn a_closed_database_has_nothing_to_remove() {
    let (disk, begun, go_on) = slow_disk();
    let options = options(&disk, &[("disable_auto_compactions", "true")]);
    let db = Db::open("/db", &options).unwrap();
    let families = ["one", "two"].map(|name| db.create_column_family(name, &options.cf).unwrap());
    for family in &families {
        db.put_cf(family, "key", "value").unwrap();
    }
    db.flush_all().unwrap();
    let [one, two] = families;
    let (closed, is_closed) = channel();
    std::thread::scope(|scope| {
        // The iterator keeps the table until the workers have looked in vain.
        let reader = db.iter_cf(&one, &ReadOptions::default()).unwrap();
        db.drop_column_family(&one).unwrap();
        drop(one);
        scope.spawn(|| {
            drop(reader);
            _ = db.wait_for_compactions();
        });
        begun.recv_timeout(TOO_LONG).expect("somebody removes the table of the first");
        db.drop_column_family(&two).unwrap();
        drop(two);
        scope.spawn(|| {
            // Its own: should it panic, nobody waits for what it would have sent.
            let closed = closed;
            db.close().unwrap();
            closed.send(disk.tables()).unwrap();
        });
        let too_early = is_closed.recv_timeout(Duration::from_millis(200));
        go_on.send(()).unwrap();
        assert!(too_early.is_err(), "files are still being removed");
        assert_eq!(is_closed.recv_timeout(TOO_LONG).expect("it closes"), 0);
    });
}
