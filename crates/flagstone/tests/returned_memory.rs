//! What a merge took of memory goes back to the system, as it counts it: what the process has of its own (`RssAnon`).
//!
//! One story a process, as memory belongs to all of it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]
#![allow(clippy::disallowed_methods, reason = "the test asks the operating system")]

mod common;

use flagstone::db::Db;
use flagstone::options::CompactRangeOptions;

const TABLES: u32 = 12;
const VALUES: u32 = 1024;
const VALUE: [u8; 1000] = [7; 1000];

/// Bytes of the process's own memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a kernel that tells");
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Tables of a megabyte, each over all keys, merged into one.
fn fill_and_merge(db: &Db) {
    for _ in 0..TABLES {
        for key in 0..VALUES {
            db.put(key.to_be_bytes(), VALUE).unwrap();
        }
        db.flush_all().unwrap();
    }
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default()).unwrap();
}

#[test]
fn buffers_of_merges_go_back_to_the_system() {
    let directory = common::temporary();
    let mut options = common::create();
    options.set("compression", "kNoCompression").unwrap();
    options.set("disable_auto_compactions", "true").unwrap();
    options.set("write_buffer_size", "4194304").unwrap();
    options.set("level0_slowdown_writes_trigger", "10000").unwrap();
    options.set("level0_stop_writes_trigger", "10000").unwrap();
    let db = Db::open(directory.path(), &options).unwrap();
    let before = resident();
    (0..4).for_each(|_| fill_and_merge(&db));
    // Where the allocator keeps the buffers it is 6 MiB, and more with each merge; the memtable's arena is one of 2.
    let more = resident().saturating_sub(before);
    assert!(more < 4 << 20, "{more} bytes");
    db.close().unwrap();
}
