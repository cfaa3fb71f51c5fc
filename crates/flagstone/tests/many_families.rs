//! Databases of very many column families.
//!
//! ```text
//! cargo test --release -p flagstone --test many_families -- --ignored --nocapture
//! ```
//!
//! tells what ten thousand cost.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "it stands outside the engine, and measures")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{create, dump_family, temporary};
use flagstone::base::Code;
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Ticker};
use flagstone::env::{Clock, Env};
use flagstone::options::{
    ColumnFamilyOptions, CompactRangeOptions, FlushOptions, Options, WriteOptions,
};

/// Times the steps, and tells of the process after each.
struct Diary {
    began: Instant,
    path: std::path::PathBuf,
}

impl Diary {
    fn tell(&mut self, step: &str) {
        let took = self.began.elapsed();
        let resident = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmRSS"))?.to_string();
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        });
        let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
        let files = std::fs::read_dir(&self.path).map_or(0, Iterator::count);
        println!(
            "{step}: {took:.3?}; {} KiB resident, {threads} threads, {files} files",
            resident.unwrap_or(0)
        );
        self.began = Instant::now();
    }
}

fn key(n: usize) -> [u8; 8] {
    (n as u64).to_be_bytes()
}

/// The time of one write in nanoseconds, the median of many. (By itself, so that instructions can
/// be counted.)
#[inline(never)]
fn write_ns(db: &Db) -> u128 {
    let mut times: Vec<u128> = (0..20_001)
        .map(|n| {
            let began = Instant::now();
            db.put(key(n % 1000), [7; 100]).unwrap();
            began.elapsed().as_nanos()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn open(path: &Path, options: &Options) -> Db {
    Db::open(path, options).unwrap()
}

/// Families are made, written to, flushed, opened again and read.
fn live(count: usize) {
    let directory = temporary();
    let path = directory.path().join("db");
    let mut options = create();
    // On a machine with other work it is else that work that is measured.
    options.set_all("compression=kNoCompression;background_niceness=0").unwrap();
    let mut diary = Diary { began: Instant::now(), path: path.clone() };
    let db = open(&path, &options);
    diary.tell("one family");
    println!("a write beside none: {} ns", write_ns(&db));
    db.flush_all().unwrap();
    diary.tell("written to");
    let names: Vec<String> = (0..count).map(|n| format!("family {n}")).collect();
    let (together, singly) = names.split_at(count - 10);
    let together: Vec<_> =
        together.iter().map(|name| (name.as_str(), ColumnFamilyOptions::default())).collect();
    db.create_column_families(&together).unwrap();
    diary.tell("made together");
    for name in singly {
        db.create_column_family(name, &ColumnFamilyOptions::default()).unwrap();
    }
    diary.tell("ten made one by one");
    println!("a write beside all: {} ns", write_ns(&db));
    diary.tell("written to");
    let families = db.column_families();
    for (n, family) in families.iter().enumerate() {
        db.put_cf(family, key(n), [n as u8; 100]).unwrap();
    }
    diary.tell("each written to");
    let mut batch = WriteBatch::new();
    families.iter().for_each(|family| batch.put_cf(family, b"key", b"value").unwrap());
    db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch).unwrap();
    diary.tell("one batch of all");
    db.flush_all().unwrap();
    diary.tell("flushed");
    db.wait_for_compactions().unwrap();
    diary.tell("at rest");
    db.close().unwrap();
    drop((db, families));
    diary.tell("closed");
    let db = open(&path, &options);
    diary.tell("opened");
    for (n, family) in db.column_families().iter().enumerate() {
        assert_eq!(db.get_cf(family, key(n)).unwrap().unwrap(), [n as u8; 100][..]);
        assert!(db.get_cf(family, "key").unwrap().is_some());
    }
    diary.tell("read");
    for (n, family) in db.column_families().iter().enumerate() {
        db.put_cf(family, key(n), "newer").unwrap();
    }
    diary.tell("each written to");
    drop(db);
    diary.tell("closed");
    let db = open(&path, &options);
    diary.tell("opened, with a log");
    assert_eq!(db.column_families().len(), count + 1);
    drop(db);
    diary.tell("closed");
}

#[test]
fn a_hundred_families() {
    live(100);
}

#[test]
#[ignore = "minutes of flushes; for a release build"]
fn ten_thousand_families() {
    live(std::env::var("FLAGSTONE_FAMILIES").map_or(10_000, |count| count.parse().unwrap()));
}

/// Families that are made together are there together, or not at all.
#[test]
fn families_are_made_together_or_not_at_all() {
    let directory = temporary();
    let path = directory.path().join("db");
    let db = open(&path, &create());
    let named = |names: &[&'static str]| {
        names.iter().map(|name| (*name, ColumnFamilyOptions::default())).collect::<Vec<_>>()
    };
    assert!(db.create_column_families(&[]).unwrap().is_empty());
    let made = db.create_column_families(&named(&["one", "two", "three"])).unwrap();
    assert_eq!(
        made.iter().map(|family| family.name()).collect::<Vec<_>>(),
        ["one", "two", "three"]
    );
    for (names, taken) in
        [(&["four", "two"][..], "two"), (&["five", "five"], "five"), (&["six", ""], "")]
    {
        let error = db.create_column_families(&named(names)).unwrap_err();
        assert!(
            error.code() == Code::InvalidArgument && error.message().contains(taken),
            "{error}"
        );
    }
    let mut odd = named(&["seven", "eight"]);
    odd[1].1.settings.num_levels = 0;
    db.create_column_families(&odd).unwrap_err();
    for family in &made {
        db.put_cf(family, "key", family.name()).unwrap();
    }
    let last = db.create_column_family("last", &ColumnFamilyOptions::default()).unwrap();
    assert_eq!(last.id().0, 4, "nothing is used up by what was refused");
    db.close().unwrap();
    drop((db, made, last));
    if let Some(referee) = common::referee() {
        let listed = referee.ldb(&path, &["list_column_families"]);
        assert!(listed.contains("{default, one, two, three, last}"), "{listed}");
        let read = referee.scan(&path, "three");
        let db = Db::open_read_only(&path, &create()).unwrap();
        assert_eq!(read, dump_family(&db, &db.column_family("three").unwrap()));
    }
    let db = open(&path, &create());
    let names: Vec<_> =
        db.column_families().iter().map(|family| family.name().to_string()).collect();
    assert_eq!(names, ["default", "one", "two", "three", "last"]);
    for family in &db.column_families()[1..4] {
        assert_eq!(db.get_cf(family, "key").unwrap().unwrap(), family.name().as_bytes());
    }
}

/// Time that stands still: nothing is looked at for its sake.
struct Still;

impl Clock for Still {
    fn now_us(&self) -> u64 {
        1
    }

    fn unix_seconds(&self) -> u64 {
        1_700_000_000
    }

    fn sleep(&self, _duration: Duration) {}
}

/// Each flush looked at all families: for who waits for a flush or a compaction, what they ask of
/// writers, and which logs they need.
#[test]
fn a_flush_looks_at_few_families() {
    const FAMILIES: u64 = 300;
    const FLUSHES: u64 = 40;
    let mut options = create();
    options.env = Env { clock: Arc::new(Still), ..Env::memory() };
    let db = Db::open("/db", &options).unwrap();
    let names: Vec<_> = (0..FAMILIES).map(|n| format!("family {n}")).collect();
    let wanted: Vec<_> =
        names.iter().map(|name| (&name[..], ColumnFamilyOptions::default())).collect();
    let families = db.create_column_families(&wanted).unwrap();
    families.iter().for_each(|family| db.put_cf(family, "idle", "value").unwrap());
    db.wait_for_compactions().unwrap();
    let looked_at = || db.statistics().get(Ticker::FamiliesLookedAt);
    let before = looked_at();
    for n in 0..FLUSHES {
        db.put_cf(&families[0], n.to_be_bytes(), "value").unwrap();
        db.flush(&families[0], &FlushOptions::default()).unwrap();
        db.wait_for_compactions().unwrap();
    }
    let each = (looked_at() - before) / FLUSHES;
    assert!(db.statistics().get(Ticker::Compactions) > 0);
    assert!(each < 30, "{each} families for each flush");
    // Compactions come to all of them, and each flush of many looks at few as well.
    let before = (looked_at(), db.statistics().get(Ticker::Flushes));
    for round in 0..6 {
        families.iter().for_each(|family| db.put_cf(family, "key", [round; 10]).unwrap());
        db.flush_all().unwrap();
    }
    let flushes = db.statistics().get(Ticker::Flushes) - before.1;
    let each = (looked_at() - before.0) / flushes;
    assert!(each < 100, "{each} families for each of {flushes} flushes");
    db.wait_for_compactions().unwrap();
    let level0 = |name: &str| {
        let files = db.live_files();
        files.iter().filter(|file| file.column_family == name && file.level == Some(0)).count()
    };
    assert!(names.iter().step_by(50).all(|name| level0(name) < 4));
    for family in &families {
        assert_eq!(db.get_cf(family, "idle").unwrap().unwrap(), "value");
    }
}

/// To compact one family, or to change its options, had all the others looked at.
#[test]
fn a_call_about_one_family_looks_at_few() {
    const FAMILIES: u64 = 300;
    const CALLS: u64 = 20;
    let mut options = create();
    options.env = Env { clock: Arc::new(Still), ..Env::memory() };
    let db = Db::open("/db", &options).unwrap();
    let names: Vec<_> = (0..FAMILIES).map(|n| format!("family {n}")).collect();
    let wanted: Vec<_> =
        names.iter().map(|name| (&name[..], ColumnFamilyOptions::default())).collect();
    let families = db.create_column_families(&wanted).unwrap();
    families.iter().for_each(|family| db.put_cf(family, "idle", "value").unwrap());
    db.wait_for_compactions().unwrap();
    let calls: [(&str, &dyn Fn(u64)); 2] = [
        ("compact_range", &|n| {
            db.put_cf(&families[0], n.to_be_bytes(), "value").unwrap();
            db.compact_range(&families[0], None, None, &CompactRangeOptions::default()).unwrap();
        }),
        ("set_options", &|n| {
            db.set_options(&families[0], &[("write_buffer_size", &format!("{}", 1_000_000 + n))])
                .unwrap();
        }),
    ];
    for (name, call) in calls {
        let looked_at = |n| {
            let before = db.statistics().get(Ticker::FamiliesLookedAt);
            call(n);
            db.wait_for_compactions().unwrap();
            db.statistics().get(Ticker::FamiliesLookedAt) - before
        };
        // Not the sum: at first, new families are looked at.
        let mut each: Vec<_> = (0..CALLS).map(looked_at).collect();
        each.sort_unstable();
        assert!(each[each.len() / 2] < 30, "families for each {name}: {each:?}");
    }
}
