//! What the MANIFEST may not name: a table whose name a power loss takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::options::{ColumnFamilyOptions, Options, WriteOptions};

use crate::fault::sort_of;
use crate::{Call, CrashFs, FaultFs, Injection, Plan, Sort, Survival, settings, steps};

/// A flush has made its table when somebody else cannot sync the directory, whose names are lost
/// then: the flush's own sync finds nothing left to do, and must not be believed.
///
/// # Panics
/// If the database does not open after a power loss, or has lost what was synced.
pub fn lost_names() {
    let disk = CrashFs::new();
    let fs = FaultFs::above(&disk);
    let options = settings::tiny(&steps::world(Arc::new(fs.clone()), 1));
    let db = Db::open("/db", &options).expect("a new database");
    let mut batch = WriteBatch::new();
    batch.put(b"key", b"value").expect("a small batch");
    db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch).expect("a write");

    let (failing, other, is_done) = (fs.clone(), db.clone(), AtomicBool::new(false));
    fs.before_each(move |call, path| {
        if call == Call::Sync
            && sort_of(path) == Sort::Table
            && !is_done.swap(true, Ordering::Relaxed)
        {
            let (call, sort) = (Call::SyncDirectory, Sort::Directory);
            failing.plan(Plan::Next { call, sort, injection: Injection::Io });
            let created = other.create_column_family("other", &ColumnFamilyOptions::default());
            created.expect("a family, whose OPTIONS file is due");
        }
    });
    let flushed = db.flush_all();
    let left = Arc::new(disk.after_crash(disk.changes(), Survival::Lost));
    let left =
        Db::open("/db", &Options { env: steps::world(left, 1), ..options }).expect("an opening");
    assert_eq!(left.get("key").expect("a read").as_deref(), Some(&b"value"[..]));
    let error = flushed.expect_err("the table's name is lost");
    assert!(error.to_string().contains("may not last"), "{error}");
}
