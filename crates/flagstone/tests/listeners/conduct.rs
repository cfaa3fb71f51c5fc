//! What a listener may do, and what it may not harm.

use std::sync::Arc;

use flagstone::db::{ColumnFamily, Db};
use flagstone::env::Env;
use flagstone::options::{
    BackgroundJobPressure, EventListener, FileCreationInfo, FileOperationInfo, JobInfo,
    MemtableInfo, Options, SubcompactionInfo, WriteStallInfo,
};
use parking_lot::Mutex;

use super::{World, compact};

/// Drops a family when the flush of it begins.
#[derive(Default)]
struct Dropper(Mutex<Option<(Db, ColumnFamily)>>);

impl EventListener for Dropper {
    fn on_flush_begin(&self, job: &JobInfo) {
        let doomed = self.0.lock().take_if(|(_, family)| family.id() == job.family);
        if let Some((db, family)) = doomed {
            db.drop_column_family(&family).unwrap();
        }
    }
}

#[test]
fn a_table_that_nobody_needs_any_longer_is_created_and_deleted() {
    let mut world = World::new("");
    let dropper = Arc::new(Dropper::default());
    world.options.listeners.push(dropper.clone());
    let db = world.open();
    let family = db.create_column_family("doomed", &world.options.cf).unwrap();
    *dropper.0.lock() = Some((db.clone(), family.clone()));
    db.put_cf(&family, "key", "value").unwrap();
    db.flush_all().unwrap();
    let told = world.diary.read_about("table");
    let [begun, created, deleted] = &told[..] else { panic!("{told:?}") };
    let table = created.strip_prefix("table created: ").unwrap();
    assert_eq!(begun, &format!("table begun: {table}"));
    assert!(table.starts_with(deleted.strip_prefix("table deleted: ").unwrap()), "{told:?}");
}

/// Panics whenever it is told something.
struct Clumsy;

impl EventListener for Clumsy {
    fn on_flush_begin(&self, _job: &JobInfo) {
        panic!("clumsy");
    }

    fn on_compaction_begin(&self, _job: &JobInfo) {
        panic!("clumsy");
    }

    fn on_compaction_pre_commit(&self, _job: &JobInfo) {
        panic!("clumsy");
    }

    fn on_compaction_completed(&self, _job: &JobInfo) {
        panic!("clumsy");
    }

    fn on_subcompaction_begin(&self, _part: &SubcompactionInfo) {
        panic!("clumsy");
    }

    fn on_memtable_sealed(&self, _memtable: &MemtableInfo) {
        panic!("clumsy");
    }

    fn on_stall_conditions_changed(&self, _stall: &WriteStallInfo) {
        panic!("clumsy");
    }

    fn on_table_file_created(&self, _file: &FileCreationInfo) {
        panic!("clumsy");
    }

    fn should_be_notified_on_file_io(&self) -> bool {
        true
    }

    fn on_file_read_finish(&self, _operation: &FileOperationInfo) {
        panic!("clumsy");
    }

    fn on_file_write_finish(&self, _operation: &FileOperationInfo) {
        panic!("clumsy");
    }

    fn on_file_sync_finish(&self, _operation: &FileOperationInfo) {
        panic!("clumsy");
    }

    fn on_file_close_finish(&self, _operation: &FileOperationInfo) {
        panic!("clumsy");
    }

    fn on_shutdown_begin(&self) {
        panic!("clumsy");
    }
}

#[test]
fn a_listener_that_panics_harms_neither_the_database_nor_other_listeners() {
    let mut world = World::new("");
    world.options.listeners.insert(0, Arc::new(Clumsy));
    let db = world.open();
    for value in ["1", "2"] {
        db.put("key", value).unwrap();
        db.flush_all().unwrap();
    }
    compact(&db).unwrap();
    assert!(
        world.diary.read().contains(&"compaction 4 completed: 0 blobs are garbage".to_string())
    );
    db.close().unwrap();
    assert_eq!(world.open().get("key").unwrap().unwrap().as_ref(), b"2");
}

/// Writes and reads in each callback that a job makes, and waits for the sync.
#[derive(Default)]
struct Busy {
    db: Mutex<Option<Db>>,
    writes: Mutex<u32>,
}

impl Busy {
    fn write(&self) {
        let Some(db) = self.db.lock().clone() else { return };
        let mut writes = self.writes.lock();
        *writes += 1;
        db.put("from the listener", writes.to_string()).unwrap();
        assert_eq!(
            db.get("from the listener").unwrap().unwrap().as_ref(),
            writes.to_string().as_bytes()
        );
    }
}

impl EventListener for Busy {
    fn on_flush_begin(&self, _job: &JobInfo) {
        self.write();
    }

    fn on_compaction_begin(&self, _job: &JobInfo) {
        self.write();
    }

    fn on_subcompaction_begin(&self, _part: &SubcompactionInfo) {
        self.write();
    }

    fn on_compaction_pre_commit(&self, _job: &JobInfo) {
        self.write();
    }

    fn on_background_job_pressure_changed(&self, _pressure: &BackgroundJobPressure) {
        self.write();
    }
}

#[test]
fn listeners_read_and_write_while_jobs_run_in_threads() {
    let busy = Arc::new(Busy::default());
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.set_all("create_if_missing=true;level0_file_num_compaction_trigger=2").unwrap();
    options.listeners = vec![busy.clone()];
    let db = Db::open("/db", &options).unwrap();
    *busy.db.lock() = Some(db.clone());
    for value in 0..6 {
        db.put("key", value.to_string()).unwrap();
        db.flush_all().unwrap();
    }
    db.wait_for_compactions().unwrap();
    *busy.db.lock() = None;
    assert!(*busy.writes.lock() >= 12);
    assert_eq!(db.get("key").unwrap().unwrap().as_ref(), b"5");
    db.close().unwrap();
}
