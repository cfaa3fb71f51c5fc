//! What is read to open tables goes back to the system, as it counts it: what the process has of its own (`RssAnon`).
//!
//! One story a process, as memory belongs to all of it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]
#![allow(clippy::disallowed_methods, reason = "the test asks the operating system")]

mod common;

use flagstone::db::Db;
use flagstone::options::Options;

const TABLES: u32 = 8;
const KEYS: u32 = 30_000;

/// Bytes of the process's own memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a kernel that tells");
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Each with a block, and an entry of the index, for two keys.
fn fill(db: &Db) {
    for table in 0..TABLES {
        for key in table * KEYS..(table + 1) * KEYS {
            db.put(key.to_be_bytes(), [7; 60]).unwrap();
        }
        db.flush_all().unwrap();
    }
}

fn options() -> Options {
    let mut options = common::create();
    for (name, value) in [
        ("compression", "kNoCompression"),
        ("disable_auto_compactions", "true"),
        ("block_based_table_factory", "{block_size=100;no_block_cache=true;filter_policy=nullptr}"),
    ] {
        options.set(name, value).unwrap();
    }
    options
}

#[test]
fn indexes_that_several_threads_decode_leave_nothing_behind() {
    let directory = common::temporary();
    let db = Db::open(directory.path(), &options()).unwrap();
    fill(&db);
    db.close().unwrap();
    let db = Db::open(directory.path(), &options()).unwrap();
    let before = resident();
    std::thread::scope(|scope| {
        for table in 0..TABLES {
            let db = &db;
            scope.spawn(move || assert!(db.get((table * KEYS).to_be_bytes()).unwrap().is_some()));
        }
    });
    let more = resident().saturating_sub(before);
    // The indexes take 24 bytes for each of 120,000 blocks. Where the allocator keeps what they are made of it is 6.3 MiB.
    assert!(more < 5 << 20, "{more} bytes");
    db.close().unwrap();
}
