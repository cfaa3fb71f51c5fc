//! A database whose values expire, and its clock.

use std::sync::Arc;

use flagstone::db::TtlDb;
use flagstone::env::Env;
use flagstone::options::{BottommostLevelCompaction, CompactRangeOptions, ReadOptions};
use testkit::HandClock;

/// When it begins, in seconds since 1970.
pub const NOON: u64 = 1_700_000_000;

/// A file system in memory, and the clock.
pub fn world() -> (Env, Arc<HandClock>) {
    let clock = Arc::new(HandClock::at(NOON));
    (Env { clock: clock.clone(), ..Env::memory() }, clock)
}

/// What is there, forwards and backwards.
pub fn entries(db: &TtlDb) -> Vec<(String, String)> {
    let mut iter =
        db.iter_cf(db.base().default_column_family(), &ReadOptions::default()).expect("a cursor");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut forwards, mut backwards) = (Vec::new(), Vec::new());
    iter.seek_to_first();
    while iter.valid() {
        forwards.push((text(iter.key()), text(iter.value().expect("a value"))));
        iter.next();
    }
    iter.status().expect("no error");
    iter.seek_to_last();
    while iter.valid() {
        backwards.push((text(iter.key()), text(iter.value().expect("a value"))));
        iter.prev();
    }
    iter.status().expect("no error");
    backwards.reverse();
    assert_eq!(forwards, backwards);
    forwards
}

/// All of it, so that what has expired goes.
pub fn compact(db: &TtlDb) {
    let everything = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    let family = db.base().default_column_family();
    db.base().compact_range(family, None, None, &everything).expect("a compaction");
}
