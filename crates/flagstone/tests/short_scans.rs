//! What short scans cost that read far ahead: page faults, as the system counts them for each
//! thread.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]

mod common;

use flagstone::db::Db;
use flagstone::options::ReadOptions;

const KEYS: u32 = 4_000;
const SCANS: u32 = 50;

/// How often this thread touched a page of memory that was not there yet.
fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // The program's name stands in brackets; the first field behind it is the third.
    let (_name, fields) = stat.rsplit_once(") ").expect("a name");
    fields.split(' ').nth(7).and_then(|field| field.parse().ok()).expect("a number")
}

fn scan(db: &Db, key: u32) {
    let mut iter =
        db.iter(&ReadOptions { readahead_size: 2 << 20, ..ReadOptions::default() }).unwrap();
    iter.seek(key.to_be_bytes());
    assert!(iter.valid() && iter.key() == key.to_be_bytes());
}

/// Each took its window from the system, and gave it back.
#[test]
fn a_window_is_memory_that_the_scan_before_had() {
    let directory = common::temporary();
    let mut options = common::create();
    options.set("compression", "kNoCompression").unwrap();
    options.set("no_block_cache", "true").unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    (0..KEYS).for_each(|key| db.put(key.to_be_bytes(), [7; 1_000]).unwrap());
    db.flush_all().unwrap();
    (0..4).for_each(|key| scan(&db, key));
    let before = faults();
    (0..SCANS).for_each(|key| scan(&db, key));
    // Each window has 512 pages.
    let each = (faults() - before) / u64::from(SCANS);
    println!("{each} faults for each scan");
    assert!(each < 50, "{each} faults for each scan");
    db.close().unwrap();
}
