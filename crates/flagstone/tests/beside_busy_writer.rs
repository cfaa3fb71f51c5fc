//! Read-only openings, secondaries and followers beside a writer that never rests: it flushes,
//! compacts, collects garbage, drops families and begins new WALs and MANIFESTs. Each opening, and
//! each refresh, sees one state that the writer had.
//!
//! `FLAGSTONE_BUSY_ROUNDS=1000` looks more often than by default.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{create, entries, temporary};
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db, Follower, Secondary, Value};
use flagstone::options::{Options, ReadOptions};
use testkit::Referee;

fn rounds() -> u64 {
    let rounds = std::env::var("FLAGSTONE_BUSY_ROUNDS").ok().and_then(|text| text.parse().ok());
    rounds.unwrap_or(40)
}

fn options(settings: &str) -> Options {
    let mut options = create();
    let text = "write_buffer_size=30000;target_file_size_base=30000;max_bytes_for_level_base=100000;atomic_flush=true;\
                follower_refresh_catchup_period_ms=0";
    for setting in text.split(';').chain(settings.split(';')).filter(|text| !text.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap();
        options.set(name, value).unwrap();
    }
    options
}

const KEYS: u64 = 60;

/// What the writer does without end; batch `number` has that number everywhere.
fn write(writer: &Db, options: &Options, done: &AtomicBool, written: &AtomicU64) {
    let blue = writer.create_column_family("blue", &options.cf).unwrap();
    let mut brief: Option<ColumnFamily> = None;
    let mut number = 0_u64;
    while !done.load(Ordering::Relaxed) {
        number += 1;
        let mut batch = WriteBatch::new();
        let value = format!("{number:0300}");
        for key in ["last", &format!("key{}", number % KEYS)] {
            batch.put(key, &value).unwrap();
            batch.put_cf(&blue, key, &value).unwrap();
            if let Some(brief) = &brief {
                batch.put_cf(brief, key, &value).unwrap();
            }
        }
        writer.write(batch).unwrap();
        written.store(number, Ordering::Release);
        match number % 1000 {
            150 | 450 | 750 => writer.flush_all().unwrap(),
            300 => brief = Some(writer.create_column_family("brief", &options.cf).unwrap()),
            800 => writer.drop_column_family(&brief.take().unwrap()).unwrap(),
            900 => writer
                .compact_range(writer.default_column_family(), None, None, &Default::default())
                .unwrap(),
            _ => {}
        }
    }
}

fn number(value: Option<Value>) -> u64 {
    value.map_or(0, |value| std::str::from_utf8(&value).unwrap().parse().unwrap())
}

/// Checks that this is one state of the writer's; returns its last number.
fn check(now: &Db) -> u64 {
    let last = number(now.get("last").unwrap());
    let Some(blue) = now.column_family("blue") else { return 0 };
    assert_eq!(number(now.get_cf(&blue, "last").unwrap()), last);
    for family in [now.default_column_family(), &blue] {
        let found = entries(now, family);
        let expected = last.saturating_sub(KEYS) + 1..=last;
        let mut expected: Vec<_> = expected
            .map(|number| (format!("key{}", number % KEYS).into_bytes(), format!("{number:0300}")))
            .collect();
        if last > 0 {
            expected.push((b"last".to_vec(), format!("{last:0300}")));
        }
        expected.sort();
        let expected: Vec<_> =
            expected.into_iter().map(|(key, value)| (key, value.into_bytes())).collect();
        assert!(found == expected, "{} of {last}", family.name());
        let keys: Vec<_> = expected.iter().map(|(key, _)| key).collect();
        let values = now.multi_get_with(&ReadOptions::default(), family, &keys);
        for ((_, value), found) in expected.iter().zip(values) {
            assert_eq!(found.unwrap().unwrap(), value[..]);
        }
    }
    last
}

/// Looks at the writer again and again. `look` returns what it sees, and whether that has all that
/// was written before.
fn beside(settings: &str, look: impl Fn(&Path, &Options) -> (Db, bool) + Sync) {
    let directory = temporary();
    let path = directory.path().join("db");
    let options = options(settings);
    let writer = Db::open(&path, &options).unwrap();
    let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| write(&writer, &options, &done, &written));
        let looks = || {
            let mut seen = 0;
            for round in 0..rounds() {
                let least = written.load(Ordering::Acquire);
                let (now, has_all) = look(&path, &options);
                let last = check(&now);
                assert!(last >= seen && (!has_all || last >= least), "{round}: {last}, {least}");
                seen = last;
                // It stays what it is while the writer goes on.
                assert_eq!(check(&now), last);
            }
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(looks));
        done.store(true, Ordering::Relaxed);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

const SETTINGS: [&str; 4] = [
    "recycle_log_file_num=2;max_manifest_file_size=3000",
    "recycle_log_file_num=0;wal_write_mode=plain;wal_compression=kZSTD",
    "enable_blob_files=true;min_blob_size=100;blob_write_mode=commit;blob_commit_min_size=100;\
     enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=1.0",
    "enable_blob_files=true;min_blob_size=100;blob_write_mode=flush;blob_file_size=20000;\
     enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=1.0;max_manifest_file_size=3000",
];

#[test]
fn each_read_only_opening_sees_one_state() {
    for settings in SETTINGS {
        beside(settings, |path, options| (Db::open_read_only(path, options).unwrap(), true));
    }
}

#[test]
fn each_new_secondary_sees_one_state() {
    for settings in SETTINGS {
        beside(settings, |path, options| {
            let secondary = Secondary::open(path, path.with_extension("own"), options).unwrap();
            (secondary.now(), true)
        });
    }
}

#[test]
fn each_new_follower_sees_one_state() {
    for settings in SETTINGS {
        beside(settings, |path, options| {
            let follower = Follower::open(path.with_extension("own"), path, options).unwrap();
            (follower.now(), false)
        });
    }
}

/// What the first `count` lines that are given to `ldb load` leave.
fn key(number: u64) -> String {
    format!("key{:05}", number * 7919 % 3001)
}

/// The number of lines that `db` has.
fn check_loaded(db: &Db) -> u64 {
    let found: BTreeMap<_, _> = entries(db, db.default_column_family()).into_iter().collect();
    let number = |value: &Vec<u8>| {
        let text = std::str::from_utf8(value).unwrap();
        text.trim_end_matches('x').parse::<u64>().unwrap()
    };
    let count = found.values().map(number).max().map_or(0, |last| last + 1);
    let mut expected = BTreeMap::new();
    for number in 0..count {
        expected.insert(key(number).into_bytes(), number);
    }
    let found: BTreeMap<_, _> =
        found.iter().map(|(key, value)| (key.clone(), number(value))).collect();
    assert!(found == expected, "the first {count} lines");
    count
}

/// A process of RocksDB that writes lines while others read: its tables, WALs and blob files come
/// and go meanwhile.
fn beside_rocksdb(flags: &[&str]) {
    if Referee::find().is_none() {
        println!("SKIPPED: ldb and sst_dump are not installed");
        return;
    }
    let directory = temporary();
    let path = directory.path().join("db");
    let mut process = Command::new("ldb")
        .arg(format!("--db={}", path.display()))
        .args(["--create_if_missing", "--write_buffer_size=65536", "--file_size=65536"])
        .args(flags)
        .arg("load")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufWriter::new(process.stdin.take().unwrap());
    let options = options("");
    let (mut secondary, mut follower) = (None, None);
    let (mut given, mut seen) = (0, [0; 3]);
    let all = rounds() * 300;
    while given < all || seen[0] < all {
        for _ in 0..300.min(all - given) {
            writeln!(lines, "{} ==> {given}{}", key(given), "x".repeat(200)).unwrap();
            given += 1;
        }
        lines.flush().unwrap();
        if !path.join("CURRENT").exists() {
            continue;
        }
        let now = Db::open_read_only(&path, &options).unwrap();
        let follows = secondary.get_or_insert_with(|| {
            Secondary::open(&path, path.with_extension("own"), &options).unwrap()
        });
        follows.catch_up().unwrap();
        let follows = follows.now();
        let links = follower.get_or_insert_with(|| {
            Follower::open(path.with_extension("links"), &path, &options).unwrap()
        });
        links.catch_up().unwrap();
        let found = [now, follows, links.now()].map(|db| check_loaded(&db));
        for (found, seen) in found.iter().zip(&seen) {
            assert!(found >= seen, "{found} after {seen}");
        }
        seen = found;
    }
    assert!(seen[2] > 0, "something was flushed");
    drop(lines);
    assert!(process.wait().unwrap().success());
}

#[test]
fn beside_rocksdb_each_state_is_one_that_it_had() {
    beside_rocksdb(&[]);
    beside_rocksdb(&[
        "--enable_blob_files",
        "--min_blob_size=100",
        "--blob_file_size=65536",
        "--enable_blob_garbage_collection",
        "--blob_garbage_collection_age_cutoff=1",
    ]);
}
