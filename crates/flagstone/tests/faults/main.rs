//! A disk that fails: every call of the file system, in every position of several lives of a
//! database.
//!
//! The lives are `testkit::faults`; here some of the ways to fail are tried, one in
//! `FLAGSTONE_FAULT_STRIDE` (1 for all). `cargo run --release -p testkit --bin laboratory --
//! faults` tries them all for many seeds. Below stand the stories of what was found.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod follower;
mod wals;

use std::path::Path;
use std::sync::Arc;

use flagstone::base::SubCode;
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Ticker};
use flagstone::env::{Env, FileSystem, IoMode, read_file};
use flagstone::options::{ColumnFamilyOptions, Options, WriteOptions};
use testkit::{
    Call, CrashFs, FaultFs, Injection, Plan, Sort, Survival, compare, faults, settings, steps,
};

#[test]
fn every_call_of_writing_may_fail() {
    faults::writing();
}

#[test]
fn every_call_may_fail_while_a_log_waits_in_memory() {
    faults::by_hand();
}

#[test]
fn every_call_of_compactions_may_fail() {
    faults::compacting();
}

#[test]
fn every_call_around_the_tree_may_fail() {
    faults::administering();
}

#[test]
fn every_call_of_recovery_may_fail() {
    faults::recovering();
}

/// A disk, the file system that fails above it, and options for a world without threads.
struct World {
    disk: CrashFs,
    fs: FaultFs,
    options: Options,
}

impl World {
    fn new(changes: &[(&str, &str)]) -> Self {
        let disk = CrashFs::new();
        let fs = FaultFs::above(&disk);
        let mut options = settings::tiny(&steps::world(Arc::new(fs.clone()), 0));
        settings::set(&mut options, changes);
        Self { disk, fs, options }
    }

    fn open(&self) -> flagstone::base::Result<Db> {
        Db::open("/db", &self.options)
    }

    fn fail_next(&self, call: Call, sort: Sort, injection: Injection) {
        self.fs.plan(Plan::Next { call, sort, injection });
    }

    /// The process dies, and another begins.
    fn die(&mut self, db: Db) {
        self.fs.kill();
        drop(db);
        self.fs = self.fs.new_process();
        self.options.env.fs = Arc::new(self.fs.clone());
    }

    /// Opens what a power loss leaves now.
    fn open_after_power_loss(&self, survival: Survival) -> flagstone::base::Result<Db> {
        let disk = self.disk.after_crash(self.disk.changes(), survival);
        Db::open("/db", &Options { env: steps::world(Arc::new(disk), 0), ..self.options.clone() })
    }

    fn files(&self, extension: &str) -> usize {
        let names = self.disk.list(Path::new("/db")).unwrap();
        names.iter().filter(|name| name.ends_with(extension)).count()
    }
}

fn put_synced(db: &Db, key: &str) -> flagstone::base::Result<()> {
    let mut batch = WriteBatch::new();
    batch.put(key.as_bytes(), b"value").unwrap();
    db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch)
}

/// A link may be made and yet be reported as failed (a network file system that repeats a request
/// does it). The checkpoint then copied the table over its second name, that is, it emptied the
/// database's own table.
#[test]
fn a_link_that_was_made_all_the_same_does_not_empty_the_table() {
    let world = World::new(&[]);
    let db = world.open().unwrap();
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    world.fail_next(Call::Link, Sort::Table, Injection::Late);
    db.checkpoint("/copy").unwrap();
    assert_eq!(world.fs.failed().len(), 1);
    compare::check_files(&db);
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
    let copy = Db::open("/copy", &world.options).unwrap();
    assert_eq!(copy.get("key").unwrap().unwrap(), "value");
}

/// A database of which it could not be learnt whether it exists was taken for none: "there is a
/// WAL, but no database".
#[test]
fn not_to_know_whether_there_is_a_database_is_an_error() {
    let mut world = World::new(&[]);
    let db = world.open().unwrap();
    db.put("key", "value").unwrap();
    world.die(db);
    world.fail_next(Call::Metadata, Sort::Current, Injection::Io);
    let error = world.open().unwrap_err();
    assert!(error.to_string().contains("injected"), "{error}");
    let db = world.open().unwrap();
    world.fail_next(Call::Metadata, Sort::Directory, Injection::Io);
    assert!(db.checkpoint("/copy").unwrap_err().to_string().contains("injected"));
}

/// When a new database's directory could not be synced, the next attempt wrote into the files of
/// the first, whose names no later sync need make durable: after a power loss there was a CURRENT
/// without its MANIFEST. And if CURRENT was lost, an empty WAL was taken for somebody's data.
#[test]
fn a_creation_that_failed_leaves_nothing_that_the_next_relies_on() {
    for at in 0.. {
        let world = World::new(&[]);
        world.fs.plan(Plan::Once { at, injection: Injection::Io });
        let first = world.open().map(drop);
        if world.fs.failed().is_empty() {
            assert!(at > 20, "{at} calls are suspiciously few");
            return;
        }
        let db = first.err().map(|_| world.open().unwrap());
        world.open_after_power_loss(Survival::Lost).unwrap();
        let Some(db) = db else { continue };
        put_synced(&db, "key").unwrap();
        let db = world.open_after_power_loss(Survival::Lost).unwrap();
        assert_eq!(db.get("key").unwrap().unwrap(), "value", "after call {at} failed");
    }
}

/// The parent of a new database's directory could not be synced; the next attempt found the
/// directory, and took its name for durable.
#[test]
fn a_directory_whose_name_is_not_durable_is_made_again() {
    let world = World::new(&[]);
    world.fail_next(Call::SyncDirectory, Sort::Directory, Injection::Io);
    world.open().unwrap_err();
    assert!(world.disk.metadata(Path::new("/db")).unwrap_err().is_not_found());
    world.open().unwrap();
}

/// Nor could it be removed at once; the next attempt found it and took its name for durable, and a
/// power loss took what was acknowledged since.
#[test]
fn a_directory_whose_name_is_not_durable_is_removed_even_if_that_fails_once() {
    let is_the_sync = |at: &u64| {
        let world = World::new(&[]);
        world.fs.plan(Plan::Once { at: *at, injection: Injection::Io });
        let _ = world.open();
        let failed = world.fs.failed();
        failed
            .iter()
            .any(|failure| failure.call == Call::SyncDirectory && failure.path == Path::new("/"))
    };
    let at = (0..50).find(is_the_sync).unwrap();
    let world = World::new(&[]);
    world.fs.plan(Plan::Twice { at, injection: Injection::Io, gap: 1 });
    world.open().unwrap_err();
    assert_eq!(world.fs.failed().len(), 2);
    let db = world.open().unwrap();
    put_synced(&db, "key").unwrap();
    let db = world.open_after_power_loss(Survival::Lost).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), "value");

    // Where the disk fails on, at least the user hears of it.
    let world = World::new(&[]);
    world.fs.plan(Plan::ReadOnly { at });
    assert!(world.open().unwrap_err().to_string().contains("/db may not outlive a power loss"));
}

/// A failed sync poisons, whoever asked for the work: after a manual compaction whose table could
/// not be synced writes went on.
#[test]
fn a_failed_sync_in_a_manual_compaction_poisons() {
    let world = World::new(&[("disable_auto_compactions", "true")]);
    let db = world.open().unwrap();
    for _ in 0..2 {
        db.put("key", "value").unwrap();
        db.flush_all().unwrap();
    }
    world.fail_next(Call::Sync, Sort::Table, Injection::Io);
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap_err();
    let error = db.put("key", "later").unwrap_err();
    assert_eq!(error.subcode(), SubCode::Poisoned);
    assert_eq!(error.path(), Some(&*world.fs.failed()[0].path));
    assert_eq!(db.get("key").unwrap().unwrap(), "value", "reads go on");
}

/// A table is opened ahead for its readers, where its blocks are cached already; that this failed,
/// nobody heard.
#[test]
fn a_table_that_could_not_be_opened_ahead_is_counted() {
    let world = World::new(&[(
        "block_based_table_factory",
        "{prepopulate_block_cache=kFlushOnly;no_block_cache=false;}",
    )]);
    let db = world.open().unwrap();
    db.put("key", "value").unwrap();
    world.fail_next(Call::Open, Sort::Table, Injection::Io);
    db.flush_all().unwrap();
    assert_eq!(world.fs.failed().len(), 1);
    assert_eq!(db.statistics().get(Ticker::TablesNotOpened), 1);
    assert_eq!(db.get("key").unwrap().unwrap(), "value", "the reader opens it");
}

/// A flush of values for blob files asks older tables how much it overwrites; that one could not
/// answer, nobody heard.
#[test]
fn a_table_that_could_not_be_asked_what_is_overwritten_is_counted() {
    let world = World::new(&[("enable_blob_files", "true"), ("min_blob_size", "100")]);
    let value = [7; 1000];
    let db = world.open().unwrap();
    db.put("key", value).unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    let db = world.open().unwrap();
    db.put("key", value).unwrap();
    world.fail_next(Call::Open, Sort::Table, Injection::Io);
    db.flush_all().unwrap();
    assert_eq!(world.fs.failed().len(), 1);
    assert_eq!(db.statistics().get(Ticker::TablesNotOpened), 1);
    assert_eq!(db.get("key").unwrap().unwrap(), value, "the reader opens it");
}

/// On a full disk a flush is tried again and again. Each attempt whose change of the MANIFEST
/// failed left its table, and others a MANIFEST or a temporary file: what little space came back
/// was used up by them.
#[test]
fn attempts_on_a_full_disk_leave_no_files_behind() {
    for (call, sort) in [
        (Call::Write, Sort::Manifest),
        (Call::Sync, Sort::Manifest),
        (Call::Write, Sort::Temporary),
        (Call::Create, Sort::Manifest),
        (Call::SyncDirectory, Sort::Directory),
    ] {
        let world = World::new(&[]);
        let db = world.open().unwrap();
        db.put("key", "value").unwrap();
        world.fail_next(Call::Write, Sort::Manifest, Injection::NoSpace);
        db.flush_all().unwrap_err();
        for _ in 0..20 {
            world.fail_next(call, sort, Injection::NoSpace);
            db.background_step().unwrap_err();
        }
        world.fs.heal();
        while db.background_step().unwrap() {}
        db.put("later", "value").unwrap();
        assert_eq!(
            (world.files(".sst"), world.files(".dbtmp")),
            (1, 0),
            "after {call:?} of {sort:?}"
        );
        let manifests = world.disk.list(Path::new("/db")).unwrap();
        let manifests = manifests.iter().filter(|name| name.starts_with("MANIFEST")).count();
        assert!(manifests <= 2, "{manifests} MANIFESTs after {call:?} of {sort:?}");
    }
}

/// A file that could not be removed stayed until the database was opened again.
#[test]
fn an_obsolete_file_that_could_not_be_removed_is_removed_later() {
    let world = World::new(&[("disable_auto_compactions", "true")]);
    let db = world.open().unwrap();
    let compact =
        || db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    for round in 0..2 {
        db.put("key", format!("{round}")).unwrap();
        db.flush_all().unwrap();
    }
    world.fail_next(Call::Remove, Sort::Table, Injection::Io);
    compact();
    assert_eq!(world.files(".sst"), 2, "one of the two inputs stays");
    db.put("key", "2").unwrap();
    db.flush_all().unwrap();
    compact();
    assert_eq!(world.files(".sst"), 1);
}

#[test]
fn a_directory_that_another_could_not_sync_still_has_the_large_values() {
    let world = World::new(&[
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("blob_commit_min_size", "100"),
        ("blob_commit_synced_min_size", "100"),
    ]);
    let db = world.open().unwrap();
    db.put("large", [7; 500]).unwrap();
    world.fail_next(Call::SyncDirectory, Sort::Directory, Injection::Io);
    // Of the OPTIONS file's name.
    db.create_column_family("other", &ColumnFamilyOptions::default()).unwrap();
    put_synced(&db, "a").unwrap();
    world.fs.kill();
    drop(db);
    let left = world.disk.after_crash(world.disk.changes(), Survival::Lost);
    let options = settings::tiny(&steps::world(Arc::new(left), 0));
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.get("large").unwrap().as_deref(), Some(&[7; 500][..]));
}

#[test]
fn a_file_that_reads_short_for_ever_is_an_error() {
    let world = World::new(&[]);
    let (directory, path) = (Path::new("/d"), Path::new("/d/f"));
    world.fs.create_directory(directory).unwrap();
    world.fs.create_writable(path, IoMode::Buffered).unwrap().write_at(0, b"abcdef").unwrap();
    assert_eq!(read_file(&world.fs, path, 10).unwrap(), b"abcdef");
    world.fs.plan(Plan::Lasting { at: 2, injection: Injection::Short });
    let error = read_file(&world.fs, path, 10).unwrap_err();
    assert_eq!((error.path(), error.offset()), (Some(path), Some(5)));
}

/// A flush found the disk full while its family was dropped: writes were suspended, and no flush
/// was left whose success would have resumed them.
#[test]
fn a_dropped_family_that_found_no_room_suspends_nobody() {
    let world = World::new(&[]);
    let db = world.open().unwrap();
    let family = db.create_column_family("passing", &world.options.cf).unwrap();
    db.put_cf(&family, "key", "value").unwrap();
    let mine = db.clone();
    world.fs.when_one_fails(move || mine.drop_column_family(&family).unwrap());
    world.fail_next(Call::Create, Sort::Table, Injection::NoSpace);
    let _ = db.flush_all();
    assert_eq!(db.column_families().len(), 1, "it was dropped in the middle");
    while db.background_step().unwrap() {}
    db.put("key", "value").unwrap();
}

/// Two threads closed; the second was told that all is on the disk while the first had yet to write
/// what waited in memory.
#[test]
fn whoever_closes_second_waits_for_the_first() {
    let world = World::new(&[("manual_wal_flush", "true"), ("write_buffer_size", "1000000")]);
    let db = world.open().unwrap();
    db.put("key", "value").unwrap();
    let other = db.clone();
    let told = beside_the_first(&world, is_write_of_log, move || other.close());
    world.fail_next(Call::Write, Sort::Wal, Injection::Io);
    let error = db.close().unwrap_err();
    let (in_between, in_the_end) = told();
    assert!(in_between.is_none(), "the second was done before the log was written");
    assert_eq!(in_the_end.unwrap_err().message(), error.message());
    assert_eq!(db.close().unwrap_err().message(), error.message());
}

/// Of two checkpoints into one directory both went on; had one failed, it would have removed what
/// the other had made.
#[test]
fn of_two_checkpoints_into_one_directory_the_second_is_refused() {
    let world = World::new(&[]);
    let db = world.open().unwrap();
    db.put("key", "value").unwrap();
    let other = db.clone();
    let is_begin = |call, _: &Path| call == Call::CreateDirectory;
    let told = beside_the_first(&world, is_begin, move || other.checkpoint("/copy"));
    db.checkpoint("/copy").unwrap();
    let (in_between, in_the_end) = told();
    assert!(in_between.is_none(), "the second went on beside the first");
    assert!(in_the_end.unwrap_err().message().contains("exists"));
    let copy = Db::open("/copy", &world.options).unwrap();
    assert_eq!(copy.get("key").unwrap().unwrap(), "value");
}

fn is_write_of_log(call: Call, path: &Path) -> bool {
    call == Call::Write && path.extension().is_some_and(|extension| extension == "log")
}

/// Does something in another thread when the first such call is made. The function that it returns
/// says what had come of it after as long as it would take, and in the end.
fn beside_the_first<T: Clone + Send + 'static>(
    world: &World,
    is_moment: impl Fn(Call, &Path) -> bool + Send + Sync + 'static,
    other: impl FnOnce() -> T + Send + 'static,
) -> impl FnOnce() -> (Option<T>, T) {
    let (tell, told) = std::sync::mpsc::channel();
    let other = std::sync::Mutex::new(Some(other));
    world.fs.before_each(move |call, path| {
        if !is_moment(call, path) {
            return;
        }
        let Some(other) = other.lock().unwrap().take() else { return };
        let (done, outcome) = std::sync::mpsc::channel();
        let thread = Env::os()
            .spawner
            .spawn("other", Box::new(move || done.send(other()).unwrap()))
            .unwrap();
        let in_between = outcome.recv_timeout(std::time::Duration::from_millis(200)).ok();
        tell.send((in_between, outcome, thread)).unwrap();
    });
    move || {
        // Longer than any of this takes on a busy machine.
        let too_long = std::time::Duration::from_secs(60);
        let (in_between, outcome, thread) = told.recv_timeout(too_long).expect("such a call");
        let in_the_end =
            in_between.clone().unwrap_or_else(|| outcome.recv_timeout(too_long).expect("an end"));
        assert!(!thread.join());
        (in_between, in_the_end)
    }
}

/// A writer that was stopped until compactions catch up waited without end when those found the
/// disk full. Now it hears of that, as does whoever waits for compactions.
#[test]
fn a_writer_does_not_wait_for_compactions_that_find_no_room() {
    let world = World::new(&[
        ("disable_auto_compactions", "true"),
        ("level0_slowdown_writes_trigger", "2"),
        ("level0_stop_writes_trigger", "2"),
    ]);
    let db = world.open().unwrap();
    for round in 0..2 {
        db.put("key", format!("{round}")).unwrap();
        db.flush_all().unwrap();
    }
    db.set_options(db.default_column_family(), &[("disable_auto_compactions", "false")]).unwrap();
    world.fs.plan(Plan::Full { at: 0 });
    world.fs.limit_calls(1000);
    assert_eq!(db.wait_for_compactions().unwrap_err().subcode(), SubCode::NoSpace);
    let error = db.put("key", "2").unwrap_err();
    assert!(
        error.subcode() == SubCode::NoSpace && error.message().contains("compactions"),
        "{error}"
    );
    world.fs.heal();
    db.put("key", "2").unwrap();
    db.wait_for_compactions().unwrap();
}

/// Closing a poisoned database synced nothing and returned without an error: whoever took that for
/// the sync that a clean close makes lost what had been acknowledged before the failure.
#[test]
fn closing_a_poisoned_database_says_so() {
    let world = World::new(&[("wal_write_mode", "plain")]);
    let db = world.open().unwrap();
    db.put("key", "value").unwrap();
    world.fail_next(Call::Write, Sort::Wal, Injection::Io);
    db.put("later", "value").unwrap_err();
    let error = db.close().unwrap_err();
    assert_eq!(error.subcode(), SubCode::Poisoned);
    assert_eq!(error.path(), Some(&*world.fs.failed()[0].path));
}
