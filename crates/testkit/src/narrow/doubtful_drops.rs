//! What becomes of a family whose drop found the disk full.

use std::sync::Arc;

use flagstone::base::SubCode;
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{Options, WriteOptions};

use crate::{Call, FaultFs, Injection, Plan, Sort, settings, steps};

/// The drop is in the MANIFEST when the disk is found full at its sync, and is refused. What is
/// written to the family from then on is refused, too, or there when the process has died; other
/// families do not mind.
///
/// # Panics
/// If it is acknowledged and lost.
pub fn doubtful_drops() {
    let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let options = settings::tiny(&steps::world(Arc::new(fs.clone()), 1));
    let db = Db::open("/db", &options).expect("a new database");
    let family = db.create_column_family("passing", &options.cf).expect("a family");
    let put = |family: &ColumnFamily, key: &str| {
        let mut batch = WriteBatch::new();
        batch.put_cf(family, key.as_bytes(), b"value").expect("a small batch");
        db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch)
    };
    let find_full =
        |call| fs.plan(Plan::Next { call, sort: Sort::Manifest, injection: Injection::NoSpace });
    find_full(Call::Sync);
    db.drop_column_family(&family).expect_err("there is no space");
    find_full(Call::Create);
    put(db.default_column_family(), "elsewhere").expect("a write to another family");
    let refused = put(&family, "refused");
    put(&family, "key").expect("a write where there is space");

    fs.heal();
    fs.kill();
    drop(db);
    let options = Options { env: steps::world(Arc::new(fs.new_process()), 1), ..options };
    let db = Db::open("/db", &options).expect("an opening");
    let family = db.column_family("passing").expect("a family with an acknowledged write is gone");
    assert_eq!(db.get_cf(&family, "key").expect("a read").as_deref(), Some(&b"value"[..]));
    let error = refused.expect_err("it could not be kept by then");
    assert_eq!(error.subcode(), SubCode::NoSpace, "{error}");
    assert!(db.get_cf(&family, "refused").expect("a read").is_none());
}
