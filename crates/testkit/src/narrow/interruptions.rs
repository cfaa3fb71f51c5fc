//! Work in the middle of other work, in one thread: a flush or a compaction that writes a file is
//! interrupted by writes, other flushes and compactions, snapshots, and the dropping of its family.
//! So what otherwise takes threads follows from a seed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flagstone::base::{Code, Result, Snapshot};
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{CompactRangeOptions, FlushOptions, Options, ReadOptions, WriteOptions};
use parking_lot::Mutex;

use super::check_books;
use crate::{Call, Family, FaultFs, Generator, Model, compare, for_each_seed, settings, steps};

const STEPS: usize = 120;
const SNAPSHOTS_MAX: usize = 3;
const EXTRA: &str = "extra";

/// What the steps and the interruptions share; nothing is held locked while the database works.
struct Shared {
    db: Mutex<Option<Db>>,
    options: Options,
    model: Mutex<Model>,
    generator: Mutex<Generator>,
    snapshots: Mutex<Vec<(Snapshot, Model)>>,
    interrupted: AtomicBool,
}

/// Interrupts jobs by everything that does not wait for them.
///
/// # Panics
/// When an answer is wrong then or later, or the books are.
pub fn interruptions() {
    for_each_seed(5, |seed| {
        let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
        let world = steps::world(Arc::new(fs.clone()), seed);
        let mut options = settings::tiny(&world);
        let changes = [
            ("write_buffer_size", "3000"),
            ("max_write_buffer_number", "4"),
            ("target_file_size_base", "2000"),
            ("max_bytes_for_level_base", "8000"),
            ("level_compaction_dynamic_level_bytes", if seed % 2 == 0 { "true" } else { "false" }),
            ("enable_blob_files", "true"),
            ("min_blob_size", "150"),
            // A writer makes its blob file under a lock.
            ("blob_write_mode", "flush"),
            ("enable_blob_garbage_collection", "true"),
            ("max_total_wal_size", if seed % 4 < 2 { "0" } else { "4000" }),
        ];
        settings::set(&mut options, &changes);
        let shared = Arc::new(Shared {
            db: Mutex::new(Some(Db::open("/db", &options).expect("a new database"))),
            options,
            model: Mutex::new(Model::with_families(&["default"])),
            generator: Mutex::new(Generator::new(seed)),
            snapshots: Mutex::default(),
            interrupted: AtomicBool::new(false),
        });
        let interrupted = shared.clone();
        fs.before_each(move |call, path| interrupted.interrupt(call, path));
        for step in 0..STEPS {
            shared.step(step);
        }
        shared.close(&world);
    });
}

impl Shared {
    fn db(&self) -> Option<Db> {
        self.db.lock().clone()
    }

    fn draw(&self, below: u32) -> u32 {
        self.generator.lock().random.u32(..below)
    }

    /// Called within a job that is about to write a table, a blob file or a copy; no lock is held
    /// there.
    fn interrupt(&self, call: Call, path: &Path) {
        let is_file = path.extension().is_some_and(|kind| kind == "sst" || kind == "blob");
        let is_copy = path.starts_with("/copies");
        if !(is_file || is_copy) || !matches!(call, Call::Create | Call::Write | Call::Sync) {
            return;
        }
        let Some(db) = self.db() else { return };
        if self.draw(5) > 0 || self.interrupted.swap(true, Ordering::Relaxed) {
            return;
        }
        for _ in 0..=self.draw(8) {
            match self.draw(10) {
                0..6 => self.write(&db),
                6 => drop(db.flush(
                    &self.any_family(&db),
                    &FlushOptions { wait: false, allow_write_stall: true },
                )),
                7 => self.hurry(&db),
                8 => self.look(&db),
                _ => self.change_families(&db),
            }
        }
        self.interrupted.store(false, Ordering::Relaxed);
    }

    /// So many flushes that level 0, which a compaction empties, is merged within itself meanwhile.
    fn hurry(&self, db: &Db) {
        for _ in 0..6 {
            self.write(db);
            gone_is_fine(db.flush(
                &self.any_family(db),
                &FlushOptions { wait: false, allow_write_stall: true },
            ));
            db.background_step().expect("a step in the middle of another");
        }
    }

    fn step(&self, step: usize) {
        let db = self.db().expect("it is open");
        for _ in 0..4 {
            self.write(&db);
        }
        let family = self.any_family(&db);
        match self.draw(20) {
            0 => gone_is_fine(db.flush(&family, &FlushOptions::default())),
            1 => {
                gone_is_fine(db.compact_range(&family, None, None, &CompactRangeOptions::default()))
            }
            2 => self.change_families(&db),
            3 => self.copy(&db, step),
            4 => self.look(&db),
            5 => drop(self.snapshots.lock().pop()),
            _ => drop(db.background_step().expect("a step")),
        }
    }

    fn any_family(&self, db: &Db) -> ColumnFamily {
        let families = db.column_families();
        families[self.draw(families.len() as u32) as usize].clone()
    }

    /// A batch, unless the writer would have to wait for a job that is being interrupted.
    fn write(&self, db: &Db) {
        let before = self.model.lock().clone();
        let mut after = before;
        let batch = self.generator.lock().batch(&mut after);
        let options = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
        match db.write_with(&options, compare::to_batch(db, &batch)) {
            Ok(()) => *self.model.lock() = after,
            Err(error) => assert_eq!(error.code(), Code::Incomplete, "{error}"),
        }
    }

    /// Compares everything, as of now and as of every snapshot, and takes one more.
    fn look(&self, db: &Db) {
        let model = self.model.lock().clone();
        compare::check_database(db, &model);
        for (snapshot, then) in self.snapshots.lock().clone() {
            let options = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
            for family in db.column_families() {
                let Some(expected) = then.families.get(family.name()) else { continue };
                compare::check_scans(db, &family, expected, &options);
            }
        }
        let mut snapshots = self.snapshots.lock();
        if snapshots.len() == SNAPSHOTS_MAX {
            snapshots.remove(0);
        }
        snapshots.push((db.snapshot(), model));
    }

    fn change_families(&self, db: &Db) {
        match db.column_family(EXTRA) {
            None => {
                db.create_column_family(EXTRA, &self.options.cf).expect("a new family");
                self.model.lock().families.insert(EXTRA.to_string(), Family::default());
            }
            Some(family) => {
                db.drop_column_family(&family).expect("it may be dropped");
                self.model.lock().families.remove(EXTRA);
                // A later family of the name is another.
                for (_, then) in self.snapshots.lock().iter_mut() {
                    then.families.remove(EXTRA);
                }
            }
        }
    }

    /// The copy has what was written before the call, and perhaps what interrupted it: it is whole,
    /// at least.
    fn copy(&self, db: &Db, step: usize) {
        let path = format!("/copies/{step}");
        self.options.env.fs.create_directory(Path::new("/copies")).expect("a directory in memory");
        db.checkpoint(&path).expect("a checkpoint");
        let copy = Db::open_read_only(&path, &self.options).expect("a sound copy");
        compare::check_files(&copy);
        for family in copy.column_families() {
            compare::scan(&copy, &family, &ReadOptions::default()).expect("a scan");
        }
    }

    fn close(&self, world: &Env) {
        self.snapshots.lock().clear();
        let db = self.db.lock().take().expect("it is open");
        let model = self.model.lock().clone();
        compare::check_database(&db, &model);
        compare::check_files(&db);
        db.close().expect("a clean close");
        drop(db);
        check_books(world, Path::new("/db"));
        let db = Db::open("/db", &self.options).expect("a sound database");
        compare::check_database(&db, &model);
    }
}

/// The family may have been dropped meanwhile.
fn gone_is_fine(outcome: Result<()>) {
    if let Err(error) = outcome {
        assert_eq!(error.code(), Code::ColumnFamilyDropped, "{error}");
    }
}
