//! A file manager: what databases take, what they may take, and how fast obsolete files are
//! removed.

mod common;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{create, dump, open_as_written, referee, temporary};
use flagstone::base::file_name::FileKind;
use flagstone::base::{Code, Error, SubCode};
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem};
use flagstone::options::{
    BackgroundJobPressure, EventListener, JobInfo, Options, SstFileManager, SstFileManagerOptions,
};
use testkit::fault::{FaultFs, Injection, Plan};
use testkit::steps;
use testkit::{CrashFs, Survival};

/// A day of trash at one byte each second: nothing is removed unless time passes.
const SLOW: SstFileManagerOptions = SstFileManagerOptions {
    delete_rate_bytes_per_second: 1,
    max_trash_db_ratio: 1e9,
    bytes_max_delete_chunk: 0,
};

/// Longer than any of this takes on a busy machine.
const TOO_LONG: Duration = Duration::from_secs(60);

/// A world without threads, in which time passes by being slept through.
fn world(fs: &MemoryFileSystem) -> Env {
    steps::world(Arc::new(fs.clone()), 1)
}

/// Tables and blob files, compacted only on request.
fn options(env: &Env, manager: &Arc<SstFileManager>) -> Options {
    let mut options = Options { env: env.clone(), ..create() };
    options.sst_file_manager = Some(manager.clone());
    options.cf.disable_auto_compactions = true;
    options.cf.enable_blob_files = Some(true);
    options.cf.min_blob_size = Some(300);
    options.cf.write_buffer_size = 64 << 10;
    options.set("recycle_log_file_num", "0").expect("an option");
    options
}

fn fill(db: &Db, round: u8) {
    for key in 0..30 {
        let size = if key % 4 == 0 { 2000 } else { 60 };
        db.put(format!("key{key:03}"), vec![round; size]).expect("a put");
    }
    db.flush_all().expect("a flush");
}

fn compact(db: &Db) -> Result<(), Error> {
    db.compact_range(&db.default_column_family().clone(), None, None, &Default::default())
}

/// Names in a directory that end so.
fn named(fs: &MemoryFileSystem, directory: &str, end: &str) -> Vec<PathBuf> {
    let files = fs.files().into_iter().map(|(path, _)| path);
    let in_it = files.filter(|path| path.parent() == Some(Path::new(directory)));
    in_it.filter(|path| path.to_string_lossy().ends_with(end)).collect()
}

/// Bytes of tables, blob files and trash in a directory.
fn taken(fs: &MemoryFileSystem, directory: &str) -> u64 {
    let is_counted = |path: &Path| {
        let kind = path.file_name().and_then(|name| FileKind::parse(name.to_str()?));
        matches!(kind, Some(FileKind::Table(_) | FileKind::Blob(_) | FileKind::Trash(_)))
            && !path.to_string_lossy().contains(".log")
    };
    let files = fs.files().into_iter().map(|(path, _)| path);
    let counted = files.filter(|path| path.starts_with(directory) && is_counted(path));
    counted.map(|path| fs.metadata(&path).expect("a file").size).sum()
}

#[test]
fn one_manager_counts_the_files_of_several_databases() {
    let fs = MemoryFileSystem::new();
    let env = world(&fs);
    let manager = SstFileManager::with_env(SstFileManagerOptions::default(), &env);
    let one = Db::open("/one", &options(&env, &manager)).expect("a database");
    let two = Db::open("/two", &options(&env, &manager)).expect("a database");
    fill(&one, 1);
    fill(&one, 2);
    fill(&two, 1);
    assert_eq!(manager.total_size(), taken(&fs, "/one") + taken(&fs, "/two"));
    compact(&one).expect("a compaction");
    assert_eq!(manager.total_size(), taken(&fs, "/one") + taken(&fs, "/two"));
    let live = one.live_files().len() + two.live_files().len();
    assert_eq!(manager.tracked_files().len(), live);
    one.close().expect("closed");
    assert_eq!(manager.total_size(), taken(&fs, "/two"));
    drop(one);
    let one = Db::open("/one", &options(&env, &manager)).expect("a database");
    assert_eq!(manager.total_size(), taken(&fs, "/one") + taken(&fs, "/two"));
    drop((one, two));
    assert_eq!(manager.total_size(), 0);
}

#[test]
fn writes_stop_at_the_allowed_space_and_go_on_below_it() {
    let fs = MemoryFileSystem::new();
    let env = world(&fs);
    let manager = SstFileManager::with_env(SstFileManagerOptions::default(), &env);
    let db = Db::open("/db", &options(&env, &manager)).expect("a database");
    fill(&db, 1);
    assert!(!manager.is_max_allowed_space_reached());
    manager.set_max_allowed_space_usage(manager.total_size() + 1000);
    db.put("before", "1").expect("a put");
    fill(&db, 2);
    assert!(manager.is_max_allowed_space_reached());
    let error = db.put("after", "1").expect_err("too much space is taken");
    assert_eq!((error.code(), error.subcode()), (Code::IoError, SubCode::SpaceLimit));
    assert!(error.to_string().contains("max_allowed_space_usage"), "{error}");
    assert_eq!(db.get("before").expect("a read").expect("a value"), "1");
    let error = db.resume().expect_err("nothing has changed");
    assert_eq!(error.subcode(), SubCode::SpaceLimit);
    manager.set_max_allowed_space_usage(manager.total_size() + 1);
    db.resume().expect("the limit is higher");
    db.put("after", "1").expect("a put");
    // What a compaction removes makes room, too, if there is room for it.
    fill(&db, 3);
    let error = db.put("later", "1").expect_err("too much space is taken");
    assert_eq!(error.subcode(), SubCode::SpaceLimit);
    let error = compact(&db).expect_err("there is no room for it");
    assert_eq!(error.subcode(), SubCode::SpaceLimit);
    assert!(error.to_string().contains("reserved for compactions"), "{error}");
    manager.set_max_allowed_space_usage(0);
    compact(&db).expect("there is no limit");
    manager.set_max_allowed_space_usage(manager.total_size() + 1);
    db.resume().expect("there is room");
    db.put("later", "1").expect("a put");
    // A database opens where too much is taken, and is read.
    manager.set_max_allowed_space_usage(1);
    drop(db);
    let db = Db::open("/db", &options(&env, &manager)).expect("a database");
    assert_eq!(db.get("later").expect("a read").expect("a value"), "1");
    let error = db.put("more", "1").expect_err("too much space is taken");
    assert_eq!(error.subcode(), SubCode::SpaceLimit);
    manager.set_max_allowed_space_usage(0);
    db.resume().expect("there is no limit");
    db.put("more", "1").expect("a put");
}

#[test]
fn a_compaction_needs_room_for_its_inputs_and_the_buffer() {
    let fs = MemoryFileSystem::new();
    let env = world(&fs);
    let manager = SstFileManager::with_env(SstFileManagerOptions::default(), &env);
    let db = Db::open("/db", &options(&env, &manager)).expect("a database");
    fill(&db, 1);
    fill(&db, 2);
    let tables = db.live_files().into_iter().filter(|file| file.level.is_some());
    let inputs: u64 = tables.map(|table| table.size).sum();
    manager.set_compaction_buffer_size(10_000);
    manager.set_max_allowed_space_usage(manager.total_size() + inputs + 9_999);
    let error = compact(&db).expect_err("one byte is missing");
    assert_eq!(error.subcode(), SubCode::SpaceLimit);
    manager.set_compaction_buffer_size(9_999);
    compact(&db).expect("there is room");
    db.put("later", "1").expect("writes go on");
    assert!(!manager.is_max_allowed_space_reached_including_compactions());
}

/// Tells that writes go on.
struct Recoveries(Mutex<Sender<()>>);

impl EventListener for Recoveries {
    fn on_error_recovery_completed(&self, _earlier: &Error) {
        // The test may have ended.
        let _ = self.0.lock().expect("no panic").send(());
    }
}

type MakesRoom = fn(&Db, &SstFileManager);

/// The error advises nothing that is refused at the limit.
#[test]
fn what_the_refusal_advises_makes_room() {
    let make_room: [(&str, MakesRoom); 3] = [
        ("drop column families", |db, _| {
            let dropped = db.column_family("dropped").expect("a family");
            db.drop_column_family(&dropped).expect("it is dropped");
        }),
        ("delete_files_in_ranges", |db, _| {
            let family = db.default_column_family().clone();
            db.delete_files_in_ranges(&family, &[(None, None)], false).expect("files go");
        }),
        ("raise max_allowed_space_usage", |db, manager| {
            manager.set_max_allowed_space_usage(manager.total_size() * 10);
            // Also while a flush is tried again.
            db.resume().expect("there is room");
        }),
    ];
    for (advice, make_room) in make_room {
        let env = Env::memory();
        let manager = SstFileManager::with_env(SstFileManagerOptions::default(), &env);
        let (tell, told) = channel();
        let mut options = options(&env, &manager);
        options.listeners.push(Arc::new(Recoveries(Mutex::new(tell))));
        let db = Db::open("/db", &options).expect("a database");
        let dropped = db.create_column_family("dropped", &options.cf).expect("a family");
        db.put_cf(&dropped, "key", vec![1; 40_000]).expect("a put");
        fill(&db, 1);
        // No files are removed of the first level.
        compact(&db).expect("a compaction");
        drop(dropped);
        manager.set_max_allowed_space_usage(manager.total_size() + 1000);
        fill(&db, 2);
        let error = db.put("later", "1").expect_err("too much space is taken");
        assert!(error.to_string().contains(advice), "{error}");
        for refused in [db.delete("key001"), compact(&db)] {
            let error = refused.expect_err("it takes space");
            assert_eq!(error.subcode(), SubCode::SpaceLimit);
            assert!(!error.to_string().contains("delete data"), "{error}");
        }
        make_room(&db, &manager);
        told.recv_timeout(TOO_LONG).unwrap_or_else(|_| panic!("{advice}: writes are refused"));
        db.put("later", "1").unwrap_or_else(|error| panic!("{advice}: {error}"));
    }
}

/// Keeps what is told of compactions.
#[derive(Default)]
struct Compactions(Mutex<Vec<&'static str>>);

impl Compactions {
    fn told(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }

    fn note(&self, what: &'static str) {
        self.0.lock().expect("no panic").push(what);
    }
}

impl EventListener for Compactions {
    fn on_compaction_begin(&self, _job: &JobInfo) {
        self.note("begun");
    }

    fn on_compaction_completed(&self, _job: &JobInfo) {
        self.note("completed");
    }

    fn on_background_job_pressure_changed(&self, _pressure: &BackgroundJobPressure) {
        self.note("a job has ended");
    }
}

/// One that has no room was begun, told and failed again and again.
#[test]
fn nobody_is_told_of_a_compaction_without_room() {
    let fs = MemoryFileSystem::new();
    let env = world(&fs);
    let manager = SstFileManager::with_env(SstFileManagerOptions::default(), &env);
    let told = Arc::new(Compactions::default());
    let mut options = options(&env, &manager);
    options.listeners.push(told.clone());
    let db = Db::open("/db", &options).expect("a database");
    fill(&db, 1);
    fill(&db, 2);
    told.told();
    manager.set_max_allowed_space_usage(manager.total_size() + 1000);
    compact(&db).expect_err("there is no room");
    let family = db.default_column_family().clone();
    let by_itself =
        [("disable_auto_compactions", "false"), ("level0_file_num_compaction_trigger", "2")];
    db.set_options(&family, &by_itself).expect("options");
    for _ in 0..3 {
        let error = db.wait_for_compactions().expect_err("there is no room");
        assert_eq!(error.subcode(), SubCode::SpaceLimit);
    }
    assert_eq!(told.told(), [""; 0]);
    manager.set_max_allowed_space_usage(0);
    db.wait_for_compactions().expect("there is room");
    assert_eq!(told.told(), ["begun", "completed", "a job has ended"]);
    db.wait_for_compactions().expect("nothing is left to do");
    let tables = db.live_files().into_iter().filter(|file| file.level.is_some());
    assert_eq!(tables.count(), 1);
}

#[test]
fn obsolete_files_become_trash_that_goes_at_the_rate() {
    let fs = MemoryFileSystem::new();
    let env = world(&fs);
    let manager = SstFileManager::with_env(SLOW, &env);
    let db = Db::open("/db", &options(&env, &manager)).expect("a database");
    fill(&db, 1);
    fill(&db, 2);
    compact(&db).expect("a compaction");
    // The first was removed at once, as nothing had used the rate.
    let trash = named(&fs, "/db", ".trash");
    assert!(trash.len() > 1, "{trash:?}");
    assert!(trash.iter().any(|path| path.to_string_lossy().contains(".log")), "{trash:?}");
    assert!(trash.iter().any(|path| path.to_string_lossy().contains(".sst")), "{trash:?}");
    let bytes = trash.iter().map(|path| fs.metadata(path).expect("a file").size).sum::<u64>();
    assert_eq!(manager.total_trash_size(), bytes);
    assert_eq!(db.trash_size().expect("a listing"), bytes);
    assert!(db.check().expect("a look").faults.is_empty());
    env.clock.sleep(Duration::from_secs(bytes + (1 << 20)));
    fill(&db, 3);
    assert!(named(&fs, "/db", ".trash").len() <= trash.len());
    manager.wait_for_empty_trash();
    assert!(named(&fs, "/db", ".trash").is_empty());
    assert_eq!(manager.total_trash_size(), 0);
    assert_eq!(manager.total_size(), taken(&fs, "/db"));
}

#[test]
fn with_too_much_trash_files_are_removed_at_once() {
    let fs = MemoryFileSystem::new();
    let env = world(&fs);
    let manager = SstFileManager::with_env(SLOW, &env);
    manager.set_max_trash_db_ratio(-1.0);
    let db = Db::open("/db", &options(&env, &manager)).expect("a database");
    fill(&db, 1);
    fill(&db, 2);
    compact(&db).expect("a compaction");
    assert!(named(&fs, "/db", ".trash").is_empty());
    assert_eq!(manager.total_size(), taken(&fs, "/db"));
}

#[test]
fn the_next_opening_removes_trash() {
    for again in [false, true] {
        let fs = MemoryFileSystem::new();
        let env = world(&fs);
        let manager = SstFileManager::with_env(SLOW, &env);
        let mut with = options(&env, &manager);
        with.set("WAL_size_limit_MB", "1").expect("an option");
        let db = Db::open("/db", &with).expect("a database");
        for round in 0..4 {
            fill(&db, round);
        }
        compact(&db).expect("a compaction");
        drop(db);
        assert!(!named(&fs, "/db", ".trash").is_empty());
        drop(manager);
        let manager = SstFileManager::with_env(SLOW, &env);
        let mut options = options(&env, &manager);
        if !again {
            options.sst_file_manager = None;
        }
        let db = Db::open("/db", &options).expect("a database");
        if again {
            manager.wait_for_empty_trash();
        }
        assert!(named(&fs, "/db", ".trash").is_empty());
        assert_eq!(db.get("key001").expect("a read").expect("a value"), vec![3; 60]);
        db.close().expect("closed");
        let left = db.check().expect("a look").strays;
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The end of a file that waits is given back by itself, but not where a checkpoint has the file.
#[test]
fn large_trash_goes_in_pieces_unless_a_checkpoint_has_it() {
    let fs = MemoryFileSystem::new();
    let env = world(&fs);
    let pieces = SstFileManagerOptions { bytes_max_delete_chunk: 512, ..SLOW };
    let manager = SstFileManager::with_env(pieces, &env);
    let db = Db::open("/db", &options(&env, &manager)).expect("a database");
    fill(&db, 1);
    fill(&db, 2);
    db.checkpoint("/copy").expect("a checkpoint");
    let before = dump(&db);
    fill(&db, 3);
    fill(&db, 4);
    compact(&db).expect("a compaction");
    manager.wait_for_empty_trash();
    assert!(named(&fs, "/db", ".trash").is_empty());
    assert_eq!(manager.total_size(), taken(&fs, "/db"));
    let plain = Options { env: env.clone(), ..Options::default() };
    let copy = Db::open("/copy", &plain).expect("the checkpoint");
    assert!(dump(&copy) == before);
    assert!(copy.verify(|_| {}).faults.is_empty());
}

#[test]
fn a_thread_removes_trash_of_real_files() {
    let directory = temporary();
    let fast = SstFileManagerOptions { delete_rate_bytes_per_second: 1 << 30, ..SLOW };
    let manager = SstFileManager::new(fast);
    let path = directory.path().join("db");
    let db = Db::open(&path, &options(&Env::default(), &manager)).expect("a database");
    for round in 0..4 {
        fill(&db, round);
        compact(&db).expect("a compaction");
    }
    manager.wait_for_empty_trash();
    let listed = Env::default().fs.list(&path).expect("a listing");
    assert!(listed.iter().all(|name| !name.ends_with(".trash")), "{listed:?}");
    manager.set_delete_rate_bytes_per_second(1);
    fill(&db, 5);
    compact(&db).expect("a compaction");
    db.close().expect("closed");
    let Some(referee) = referee() else { return };
    referee.ldb(&path, &["checkconsistency"]);
    let expected = dump(&open_as_written(&path, true));
    assert!(referee.scan(&path, "default") == expected);
}

fn survival(at: usize) -> Survival {
    match at % 3 {
        0 => Survival::Lost,
        1 => Survival::Kept,
        _ => Survival::Random(at as u64),
    }
}

/// What is open has no file that nothing needs, once it is opened again.
fn assert_tidy(db: &Db, fs: &MemoryFileSystem, what: &str) {
    let live: Vec<_> = db.live_files().into_iter().map(|file| file.number).collect();
    for (file, _) in fs.files() {
        let kind = file.file_name().and_then(|name| FileKind::parse(name.to_str()?));
        match kind {
            Some(FileKind::Table(number) | FileKind::Blob(number)) => {
                assert!(live.contains(&number), "{what}: {} is left", file.display());
            }
            Some(FileKind::Trash(_)) => panic!("{what}: {} is left", file.display()),
            _ => {}
        }
    }
}

#[test]
fn a_power_loss_while_files_become_trash_loses_nothing() {
    let fs = CrashFs::new();
    let env = steps::world(Arc::new(fs.clone()), 1);
    let rate = SstFileManagerOptions {
        delete_rate_bytes_per_second: 3000,
        bytes_max_delete_chunk: 700,
        ..SLOW
    };
    let manager = SstFileManager::with_env(rate, &env);
    let db = Db::open("/db", &options(&env, &manager)).expect("a database");
    fill(&db, 1);
    db.sync_wal().expect("a sync");
    let begun = fs.changes();
    let mut rounds = Vec::new();
    for round in 2..5 {
        fill(&db, round);
        compact(&db).expect("a compaction");
        env.clock.sleep(Duration::from_secs(1));
        rounds.push((fs.changes(), round));
    }
    manager.wait_for_empty_trash();
    let mut trash = 0;
    for at in begun..=fs.changes() {
        let survival = survival(at);
        let what = format!("{survival:?} after {}", fs.describe(at));
        let disk = fs.after_crash(at, survival);
        trash += named(&disk, "/db", ".trash").len();
        let mut options = options(&steps::world(Arc::new(disk.clone()), 2), &manager);
        options.sst_file_manager = None;
        let db = Db::open("/db", &options).unwrap_or_else(|error| panic!("{what}: {error}"));
        let flushed =
            rounds.iter().rev().find(|(end, _)| *end <= at).map_or(1, |(_, round)| *round);
        for key in 0..30 {
            let value = db.get(format!("key{key:03}")).expect("a read").expect("a value");
            assert!(value[0] >= flushed, "{what}: key {key} is of round {}", value[0]);
        }
        let faults = db.verify(|_| {}).faults;
        assert!(faults.is_empty(), "{what}: {faults:?}");
        assert_tidy(&db, &disk, &what);
    }
    assert!(trash > 100, "{trash}");
}

#[test]
fn a_call_that_fails_while_files_become_trash_loses_nothing() {
    for injection in [Injection::Io, Injection::Late] {
        for at in 0.. {
            let memory = MemoryFileSystem::new();
            let faults = FaultFs::new(Arc::new(memory.clone()));
            let env = steps::world(Arc::new(faults.clone()), 1);
            let rate = SstFileManagerOptions { bytes_max_delete_chunk: 700, ..SLOW };
            let manager = SstFileManager::with_env(rate, &env);
            let db = Db::open("/db", &options(&env, &manager)).expect("a database");
            fill(&db, 1);
            fill(&db, 2);
            faults.plan(Plan::Once { at, injection });
            let compacted = compact(&db);
            manager.wait_for_empty_trash();
            let calls = faults.calls();
            faults.heal();
            let what = format!("{injection:?} of call {at}");
            let was_poisoned = db.put("later", "1").is_err();
            assert!(compacted.is_err() || !was_poisoned, "{what}");
            drop(db);
            let mut options = options(&world(&memory), &manager);
            options.sst_file_manager = None;
            let db = Db::open("/db", &options).unwrap_or_else(|error| panic!("{what}: {error}"));
            for key in 0..30 {
                let value = db.get(format!("key{key:03}")).expect("a read").expect("a value");
                assert_eq!(value[0], 2, "{what}");
            }
            assert_eq!(db.get("later").expect("a read").is_some(), !was_poisoned, "{what}");
            assert!(db.verify(|_| {}).faults.is_empty(), "{what}");
            assert_tidy(&db, &memory, &what);
            if at >= calls {
                break;
            }
        }
    }
}
