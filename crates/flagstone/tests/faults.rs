//! A disk that fails: every call of the file system, in every position of several lives of a database.
//!
//! The lives are `testkit::faults`; here some of the ways to fail are tried, one in `FLAGSTONE_FAULT_STRIDE` (1 for all).
//! `cargo run --release -p testkit --bin laboratory -- faults` tries them all for many seeds. Below stand the stories of
//! what was found.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use flagstone::base::SubCode;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::{FileSystem, OpenMode, read_file};
use flagstone::options::{Options, WriteOptions};
use testkit::{Call, CrashFs, FaultFs, Injection, Plan, Sort, Survival, compare, faults, settings, steps};

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


