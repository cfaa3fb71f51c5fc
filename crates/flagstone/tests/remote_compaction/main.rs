//! Compactions that workers of a compaction service do: what comes of them is what the database
//! itself would have made, and whatever a worker does, nothing is lost.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod aborting;
mod closing;
mod contents;
mod faults;
mod killed;
mod refused;

use std::path::Path;
use std::sync::Arc;

use flagstone::base::file_name;
use flagstone::db::{Db, Ticker};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem};
use flagstone::options::{CompactRangeOptions, CompactionServiceOptionsOverride, InfoLog, Options};
use testkit::{Workers, settings, steps};

/// A database in one thread, whose compactions workers do.
pub(crate) struct World {
    pub(crate) fs: Arc<MemoryFileSystem>,
    pub(crate) options: Options,
    pub(crate) workers: Arc<Workers>,
}

impl World {
    /// With these options, whose components the workers have, too.
    pub(crate) fn new(set: impl FnOnce(&mut Options)) -> Self {
        let fs = Arc::new(MemoryFileSystem::new());
        let env = steps::world(fs.clone(), 1);
        Self::within(fs, env, set)
    }

    /// The same, where the database reaches its files by way of `env`, and workers do not.
    pub(crate) fn within(
        fs: Arc<MemoryFileSystem>,
        env: Env,
        set: impl FnOnce(&mut Options),
    ) -> Self {
        let mut options = settings::tiny(&env);
        options.info_log = InfoLog::Off;
        options.cf.disable_auto_compactions = true;
        set(&mut options);
        let components = CompactionServiceOptionsOverride {
            env: steps::world(fs.clone(), 2),
            ..CompactionServiceOptionsOverride::of(&options)
        };
        let workers = Workers::new(move |_| components.clone());
        options.compaction_service = Some(workers.clone());
        Self { fs, options, workers }
    }

    pub(crate) fn open(&self) -> Db {
        Db::open("/db", &self.options).unwrap()
    }

    /// What workers and the database have left beside its own files.
    pub(crate) fn outputs(&self) -> Vec<String> {
        let directory = file_name::remote_compactions(Path::new("/db"));
        self.fs.list(&directory).unwrap_or_default()
    }
}

pub(crate) fn compact(db: &Db) -> flagstone::Result<()> {
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
}

/// How many compactions workers have done, and how many the database did in their place.
pub(crate) fn remote_and_failed(db: &Db) -> (bool, u64) {
    let statistics = db.statistics();
    let is_remote = statistics.get(Ticker::RemoteCompactWriteBytes) > 0;
    (is_remote, statistics.get(Ticker::RemoteCompactionsFailed))
}

/// A few entries in two tables.
pub(crate) fn fill(db: &Db) {
    for round in 0..2 {
        for number in 0..50 {
            db.put(format!("small {number:03}"), format!("{round}")).unwrap();
            db.put(format!("large {number:03}"), vec![b'a' + round; 2000]).unwrap();
        }
        db.delete(format!("small {:03}", 7 + round)).unwrap();
        db.flush_all().unwrap();
    }
}

/// What [`fill`] has left.
pub(crate) fn check(db: &Db) {
    for number in 0..50 {
        let small = db.get(format!("small {number:03}")).unwrap();
        let expected = (number != 8).then(|| b"1".to_vec());
        assert_eq!(small.map(|value| value.to_vec()), expected, "{number}");
        let large = db.get(format!("large {number:03}")).unwrap().unwrap();
        assert_eq!(large, vec![b'b'; 2000], "{number}");
    }
    let report = db.verify(|_| {});
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}
