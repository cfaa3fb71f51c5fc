//! What a merge took of memory goes back to the system, as it counts it.
//!
//! One story a process, as memory belongs to all of it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]

mod common;

use common::resident;
use flagstone::db::Db;
use flagstone::options::CompactRangeOptions;

const TABLES: u32 = 12;
const VALUES: u32 = 1024;
const VALUE: [u8; 1000] = [7; 1000];

/// Tables over so many keys, merged into one. The memtables are of a megabyte, and the tables are
/// of the last value of each key.
fn fill_and_merge(db: &Db, keys: u32) {
    for _ in 0..TABLES {
        for value in 0..VALUES {
            db.put((value % keys).to_be_bytes(), VALUE).unwrap();
        }
        db.flush_all().unwrap();
    }
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
}

#[test]
fn buffers_of_merges_go_back_to_the_system() {
    if !common::pages_are_small() {
        return;
    }
    let directory = common::temporary();
    let mut options = common::create();
    options.set("compression", "kNoCompression").unwrap();
    options.set("enable_blob_files", "false").unwrap();
    options.set("disable_auto_compactions", "true").unwrap();
    options.set("write_buffer_size", "4194304").unwrap();
    options.set("level0_slowdown_writes_trigger", "10000").unwrap();
    options.set("level0_stop_writes_trigger", "10000").unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    // What small buffers take, and what threads and memtables do in any case.
    fill_and_merge(&db, 1);
    let before = resident();
    (0..4).for_each(|_| fill_and_merge(&db, VALUES));
    let more = resident().saturating_sub(before);
    println!("{more} bytes");
    assert!(more < 3 << 19, "{more} bytes");
    db.close().unwrap();
}
