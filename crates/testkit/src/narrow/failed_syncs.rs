//! What no reader may see: a write whose sync failed.

use std::sync::Arc;

use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{ReadOptions, WriteOptions};

use crate::{Call, FaultFs, Injection, Plan, Sort, settings, steps};

/// A write asks for a sync, which fails: the caller hears of it, and no reader ever sees what a
/// power loss may take back.
///
/// # Panics
/// If one does.
pub fn failed_syncs() {
    let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let db = Db::open("/db", &settings::tiny(&steps::world(Arc::new(fs.clone()), 1)))
        .expect("a new database");
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    let put = |value: &str| {
        let mut batch = WriteBatch::new();
        batch.put(b"key", value.as_bytes()).expect("a small batch");
        db.write_with(&synced, batch)
    };
    put("synced").expect("a write");
    let before = db.snapshot();
    fs.plan(Plan::Next { call: Call::Sync, sort: Sort::Wal, injection: Injection::Io });
    put("lost").expect_err("its sync fails");
    let then = ReadOptions { snapshot: Some(before), ..ReadOptions::default() };
    for options in [ReadOptions::default(), then] {
        let seen = db.get_with(&options, db.default_column_family(), "key").expect("a read");
        assert_eq!(
            seen.as_deref(),
            Some(&b"synced"[..]),
            "a reader sees a write whose sync failed"
        );
    }
    assert!(put("later").is_err(), "a write after a failed sync is acknowledged");
}
