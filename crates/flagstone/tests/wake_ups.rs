//! Background work that nobody is told of is not done: each of these has one thing changed in one
//! family of several, under a clock that stands still, so that nothing is found because somebody
//! looks now and then.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use common::create;
use flagstone::base::SubCode;
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{
    ColumnFamilyOptions, CompactRangeOptions, EventListener, FlushOptions, JobInfo,
};
use parking_lot::Mutex;
use testkit::{Call, FaultFs, HandClock, Injection, Plan, Sort};

/// Longer than any of this takes on a busy machine.
const TOO_LONG: Duration = Duration::from_secs(60);

/// Tells what was done, and for which family.
struct Ear(Mutex<Sender<(&'static str, String)>>);

impl EventListener for Ear {
    fn on_flush_completed(&self, job: &JobInfo) {
        let _ = self.0.lock().send(("flush", job.family_name.clone()));
    }

    fn on_compaction_completed(&self, job: &JobInfo) {
        let _ = self.0.lock().send(("compaction", job.family_name.clone()));
    }
}

/// A database of the families `default`, `one`, `two` and `three`.
struct World {
    db: Db,
    fs: FaultFs,
    hands: Arc<HandClock>,
    heard: Receiver<(&'static str, String)>,
}

impl World {
    fn new(settings: &str) -> Self {
        let (sender, heard) = channel();
        let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
        let hands = Arc::new(HandClock::at(1_700_000_000));
        let mut options = create();
        options.env = Env { fs: Arc::new(fs.clone()), clock: hands.clone(), ..Env::memory() };
        options
            .set_all("level0_file_num_compaction_trigger=100;level0_slowdown_writes_trigger=200")
            .unwrap();
        options.set_all("level0_stop_writes_trigger=300").unwrap();
        options.set_all(settings).unwrap();
        options.listeners = vec![Arc::new(Ear(Mutex::new(sender)))];
        let db = Db::open("/db", &options).unwrap();
        let made = ["one", "two", "three"].map(|name| (name, options.cf.clone()));
        db.create_column_families(&made).unwrap();
        Self { db, fs, hands, heard }
    }

    fn family(&self, name: &str) -> ColumnFamily {
        self.db.column_family(name).unwrap()
    }

    /// Writes so many bytes, more or less, in values of a kilobyte.
    fn write(&self, name: &str, bytes: usize) {
        let family = self.family(name);
        for key in 0..bytes.div_ceil(1000) as u64 {
            self.db.put_cf(&family, key.to_be_bytes(), [7; 1000]).unwrap();
        }
    }

    /// Makes so many tables of level 0, with the same keys in each.
    fn make_tables(&self, name: &str, count: usize) {
        for _ in 0..count {
            self.write(name, 2000);
            self.db.flush(&self.family(name), &FlushOptions::default()).unwrap();
            self.expect("flush", name);
        }
    }

    /// Waits until this was done, and forgets what was done before.
    fn expect(&self, what: &'static str, name: &str) {
        loop {
            let told = self.heard.recv_timeout(TOO_LONG);
            let (kind, family) = told.unwrap_or_else(|_| panic!("no {what} of {name} in a minute"));
            if (kind, family.as_str()) == (what, name) {
                return;
            }
        }
    }

    fn set(&self, name: &str, option: &str, value: &str) {
        self.db.set_options(&self.family(name), &[(option, value)]).unwrap();
    }
}

#[test]
fn tables_that_come_are_compacted() {
    let world = World::new("level0_file_num_compaction_trigger=3");
    world.make_tables("two", 3);
    world.expect("compaction", "two");
}

#[test]
fn options_that_change_bring_compactions_about() {
    let world = World::new("");
    world.make_tables("one", 4);
    world.make_tables("two", 4);
    world.set("two", "level0_file_num_compaction_trigger", "4");
    world.expect("compaction", "two");
    world.set("one", "disable_auto_compactions", "true");
    world.set("one", "level0_file_num_compaction_trigger", "4");
    world.set("one", "disable_auto_compactions", "false");
    world.expect("compaction", "one");
}

#[test]
fn what_is_suggested_is_compacted() {
    let world = World::new("");
    // Something below, that it is compacted into.
    world.make_tables("one", 1);
    world
        .db
        .compact_range(&world.family("one"), None, None, &CompactRangeOptions::default())
        .unwrap();
    world.expect("compaction", "one");
    world.make_tables("one", 1);
    // Of families with one table each, `one` is looked at before `three`: it wants nothing.
    world.set("three", "level0_file_num_compaction_trigger", "1");
    world.make_tables("three", 1);
    world.expect("compaction", "three");
    world.db.suggest_compact_range(&world.family("one"), None, None).unwrap();
    world.expect("compaction", "one");
}

/// While a manual compaction has a family to itself, what it wants is looked at in vain.
#[test]
fn a_manual_compaction_leaves_the_family_to_others() {
    let world = World::new("num_levels=4");
    let family = world.family("one");
    let exclusive = CompactRangeOptions { exclusive_manual_compaction: true, ..Default::default() };
    for _ in 0..3 {
        world.make_tables("one", 2);
        world.db.compact_range(&family, None, None, &exclusive).unwrap();
        world.expect("compaction", "one");
        world.make_tables("one", 3);
        world.set("one", "level0_file_num_compaction_trigger", "3");
        world.expect("compaction", "one");
        world.set("one", "level0_file_num_compaction_trigger", "100");
    }
}

/// A memtable that waits for others to be merged with, and one that is not full, keep a log that is
/// to go.
#[test]
fn logs_that_are_too_large_have_families_flushed() {
    let merging = "min_write_buffer_number_to_merge=2;max_write_buffer_number=4";
    let world =
        World::new(&format!("{merging};write_buffer_size=100000;max_total_wal_size=1000000"));
    world.write("two", 1000);
    world.write("one", 150_000);
    world.set("three", "write_buffer_size", "10000000");
    world.write("three", 1_200_000);
    let mut missing = vec!["one", "two"];
    while !missing.is_empty() {
        let (kind, name) = world.heard.recv_timeout(TOO_LONG).expect("both are flushed");
        missing.retain(|wanted| kind != "flush" || name != *wanted);
    }
}

#[test]
fn memtables_that_are_too_large_together_are_flushed() {
    let world = World::new("db_write_buffer_size=1m");
    world.write("one", 400_000);
    world.write("two", 10_000);
    world.write("three", 200_000);
    world.expect("flush", "one");
    world.write("three", 3_000_000);
    world.expect("flush", "three");
}

/// A flush that found no room gives its memtables back.
#[test]
fn what_could_not_be_flushed_is_flushed_in_the_end() {
    let world = World::new("level0_file_num_compaction_trigger=2");
    world.make_tables("two", 1);
    world.write("two", 2000);
    world.fs.plan(Plan::Next {
        call: Call::Create,
        sort: Sort::Table,
        injection: Injection::NoSpace,
    });
    // Another thread may have tried again before this one hears of it.
    if let Err(error) = world.db.flush(&world.family("two"), &FlushOptions::default()) {
        assert_eq!(error.subcode(), SubCode::NoSpace);
        // Refused as long as that thread is at it.
        if let Err(error) = world.db.resume() {
            assert_eq!(error.subcode(), SubCode::NoSpace);
        }
    }
    world.expect("flush", "two");
    world.expect("compaction", "two");
}

/// A family that is gone leaves nothing behind that others would wait for, and one of its name
/// begins anew.
#[test]
fn families_come_and_go() {
    let world =
        World::new("level0_file_num_compaction_trigger=3;min_write_buffer_number_to_merge=2");
    for _ in 0..3 {
        world.make_tables("one", 2);
        world.write("one", 1000);
        let later = FlushOptions { wait: false, ..FlushOptions::default() };
        world.db.flush(&world.family("one"), &later).unwrap();
        world.db.drop_column_family(&world.family("one")).unwrap();
        world.make_tables("two", 1);
        let mut options = ColumnFamilyOptions::default();
        options.set("level0_file_num_compaction_trigger", "3").unwrap();
        world.db.create_column_family("one", &options).unwrap();
        world.make_tables("one", 3);
        world.expect("compaction", "one");
    }
}

/// What snapshots keep is known again when they are gone: nobody says so, but every few seconds all
/// families are looked at.
#[test]
fn what_came_without_a_word_is_found_in_time() {
    let world = World::new("num_levels=3");
    let everything = CompactRangeOptions::default();
    world.make_tables("one", 1);
    let snapshot = world.db.snapshot();
    world.db.delete_cf(&world.family("one"), 0u64.to_be_bytes()).unwrap();
    world.db.compact_range(&world.family("one"), None, None, &everything).unwrap();
    world.db.compact_range(&world.family("one"), None, None, &everything).unwrap();
    world.make_tables("two", 1);
    while world.heard.try_recv().is_ok() {}
    drop(snapshot);
    world.db.put_cf(&world.family("one"), "later", "value").unwrap();
    world.hands.advance(3);
    // Whoever looks first may find it, before this is flushed.
    world.write("two", 2000);
    world.db.flush(&world.family("two"), &FlushOptions::default()).unwrap();
    world.expect("compaction", "one");
}
