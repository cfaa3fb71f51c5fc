//! Stories of directories that cannot be synced: the system tells of that only once.
//!
//! On the laboratory's disk the names that such a sync should have made durable never are, though a
//! later sync succeeds. (Another story is the narrow experiment `lost_names`.)

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flagstone::base::{Result, SubCode};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Ticker};
use flagstone::env::Env;
use flagstone::options::{ColumnFamilyOptions, FlushOptions, Options, WriteOptions};
use testkit::{Call, CrashFs, FaultFs, Injection, Plan, Sort, Survival, settings, steps};

/// A disk, and the file system above it whose syncs of directories fail.
struct World {
    disk: CrashFs,
    fs: FaultFs,
    options: Options,
}

impl World {
    fn new(changes: &[(&str, &str)]) -> (Self, Db) {
        let disk = CrashFs::new();
        let fs = FaultFs::above(&disk);
        let mut options = settings::tiny(&steps::world(Arc::new(fs.clone()), 0));
        settings::set(&mut options, changes);
        let db = Db::open("/db", &options).unwrap();
        (Self { disk, fs, options }, db)
    }

    /// What a power loss leaves now.
    fn after_power_loss(&self) -> Db {
        let disk = self.disk.after_crash(self.disk.changes(), Survival::Lost);
        Db::open("/db", &Options { env: steps::world(Arc::new(disk), 0), ..self.options.clone() })
            .unwrap()
    }

    /// What the next process finds when this one dies.
    fn after_the_process(&self, db: Db) -> Db {
        self.fs.kill();
        drop(db);
        let env = steps::world(Arc::new(self.disk.clone()), 0);
        Db::open("/db", &Options { env, ..self.options.clone() }).unwrap()
    }

    /// Does this before the first such call.
    fn before_the_first(
        &self,
        is_moment: impl Fn(Call, &Path) -> bool + Send + Sync + 'static,
        other: impl Fn() + Send + Sync + 'static,
    ) {
        let is_done = AtomicBool::new(false);
        self.fs.before_each(move |call, path| {
            if is_moment(call, path) && !is_done.swap(true, Ordering::Relaxed) {
                other();
            }
        });
    }

    /// Somebody who makes a name in the directory of the database, and cannot sync that.
    fn in_vain(&self, db: &Db, injection: Injection) -> impl Fn() + Send + Sync + Clone + 'static {
        let (fs, db) = (self.fs.clone(), db.clone());
        move || {
            fs.plan(Plan::Next { call: Call::SyncDirectory, sort: Sort::Directory, injection });
            // Its OPTIONS file's name.
            let _ = db.create_column_family("other", &ColumnFamilyOptions::default());
        }
    }
}

fn synced() -> WriteOptions {
    WriteOptions { sync: true, ..WriteOptions::default() }
}

fn put(db: &Db, key: &str, options: &WriteOptions) -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.put(key.as_bytes(), b"value").unwrap();
    db.write_with(options, batch)
}

fn put_synced(db: &Db, key: &str) -> Result<()> {
    put(db, key, &synced())
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

fn is_sync_of_table(call: Call, path: &Path) -> bool {
    call == Call::Sync && has_extension(path, "sst")
}

/// A table was made when another thread found no room to sync the directory, and the flush's own
/// sync found nothing left to do. A full disk is survived: the table is made again.
#[test]
fn a_table_whose_name_another_found_no_room_for_is_made_again() {
    let (world, db) = World::new(&[]);
    put_synced(&db, "key").unwrap();
    world.before_the_first(is_sync_of_table, world.in_vain(&db, Injection::NoSpace));
    assert_eq!(db.flush_all().unwrap_err().subcode(), SubCode::NoSpace);
    while db.background_step().unwrap() {}
    put_synced(&db, "later").unwrap();
    let left = world.after_power_loss();
    assert_eq!(left.get("key").unwrap().unwrap(), "value");
    assert_eq!(left.get("later").unwrap().unwrap(), "value");
}

/// A file of a value in pieces was made, another thread's sync of the directory failed, and its own
/// found nothing left to do: a power loss took the value, and all that was written after it.
#[test]
fn a_value_in_pieces_whose_file_another_has_lost_is_not_acknowledged() {
    let (world, db) = World::new(&[("enable_blob_files", "true")]);
    let in_vain = world.in_vain(&db, Injection::Io);
    world.before_the_first(
        |call, _| call == Call::SyncDirectory,
        move || {
            let (done, is_done) = std::sync::mpsc::channel();
            let in_vain = in_vain.clone();
            let other = Box::new(move || {
                in_vain();
                let _ = done.send(());
            });
            let other = Env::os().spawner.spawn("other", other).unwrap();
            // As long as it would take it; who syncs the same directory must wait.
            let _ = is_done.recv_timeout(Duration::from_millis(200));
            drop(other);
        },
    );
    let write = || {
        let mut writer =
            db.put_stream(db.default_column_family(), "large", &synced())?.with_buffer(10);
        writer.append(&[7; 500])?;
        writer.commit()
    };
    let is_acknowledged = write().is_ok();
    assert!(!is_acknowledged || world.after_power_loss().get("large").unwrap().is_some());
}

/// A WAL that could be neither begun nor removed again stayed, with zeros or what it held in an
/// earlier life. To recovery history ended there, and where a write without the log had left a gap
/// between sequence numbers, it did not go on in the WALs behind it: synced writes were lost, or
/// the database was refused.
#[test]
fn a_wal_that_could_not_be_begun_or_removed_hides_none_behind_it() {
    let unwaited = FlushOptions { wait: false, ..FlushOptions::default() };
    // Where a WAL was recycled, the engine looks first whether it has its new name.
    for (recycled, gap) in [("0", 1), ("2", 2)] {
        let mut left = 0;
        for at in 0..20 {
            let (world, db) = World::new(&[("recycle_log_file_num", recycled)]);
            for _ in 0..2 {
                put_synced(&db, "early").unwrap();
                db.flush_all().unwrap();
            }
            put_synced(&db, "before").unwrap();
            put(&db, "unlogged", &WriteOptions { disable_wal: true, ..WriteOptions::default() })
                .unwrap();
            world.fs.plan(Plan::Twice { at, injection: Injection::Io, gap });
            let _ = db.flush(db.default_column_family(), &unwaited);
            world.fs.heal();
            let failed: Vec<_> = world.fs.failed().iter().map(|failure| failure.call).collect();
            left += usize::from(failed == [Call::SyncDirectory, Call::Remove]);
            // The memtable waits for somebody to flush it, and keeps its WAL.
            if db.flush(db.default_column_family(), &unwaited).is_err()
                || put_synced(&db, "after").is_err()
            {
                continue;
            }
            let found = world.after_the_process(db);
            for key in ["early", "before", "after"] {
                assert!(
                    found.get(key).unwrap().is_some(),
                    "{key} is lost, as {failed:?} failed at {at}"
                );
            }
        }
        assert_eq!(left, 1, "a WAL whose name is not durable stays");
    }
}

/// Deletions had waited long enough in a memtable, and the WAL that was begun to flush it could not
/// be: that poisoned the database, though nobody needed the flush, and writers survive the same.
#[test]
fn a_flush_for_the_sake_of_deletions_that_cannot_begin_is_put_off() {
    for injection in [Injection::Io, Injection::NoSpace] {
        let (world, db) = World::new(&[]);
        let key = |number: usize| format!("{number:03}");
        let work = || while db.background_step().unwrap() {};
        (0..200).for_each(|number| db.put(key(number), [7; 100]).unwrap());
        db.flush_all().unwrap();
        work();
        let deletions = |numbers: Range<usize>| {
            numbers.for_each(|number| db.delete(key(number)).unwrap());
            work();
            world.options.env.clock.sleep(Duration::from_secs(25));
        };
        deletions(0..50);
        let flushes = db.statistics().get(Ticker::Flushes);
        world.fs.record();
        world.fs.plan(Plan::Next { call: Call::SyncDirectory, sort: Sort::Directory, injection });
        db.background_step().unwrap();
        let calls = world.fs.recorded();
        let failed = calls.iter().position(|(call, _)| *call == Call::SyncDirectory).unwrap();
        assert!(has_extension(&calls[failed - 1].1, "log"), "that is no new WAL's name: {calls:?}");
        put_synced(&db, "later").unwrap();
        assert_eq!(db.statistics().get(Ticker::FlushesPutOff), 1);
        assert_eq!(db.statistics().get(Ticker::Flushes), flushes);
        deletions(50..51);
        work();
        assert_eq!(
            db.statistics().get(Ticker::Flushes),
            flushes + 1,
            "the next deletion brings it up again"
        );
        assert!(db.get(key(0)).unwrap().is_none() && db.get("later").unwrap().is_some());
    }
}
