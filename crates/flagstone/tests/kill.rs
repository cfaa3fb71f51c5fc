//! A process that writes is killed at a random moment; another opens what it left.
//!
//! The child is this test binary, started again: it writes numbered batches to two families and
//! prints each number when its batch was acknowledged. `FLAGSTONE_KILL_ROUNDS=200` kills more often
//! than the 20 times by default.

#![expect(
    clippy::disallowed_methods,
    reason = "the test starts, times and kills processes of the system"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{Options, WriteOptions};
use testkit::{compare, settings};

/// Set for the child: the directory to write to.
const CHILD: &str = "FLAGSTONE_KILL_CHILD";
const ROUNDS_DEFAULT: u64 = 20;

fn options(round: u64) -> Options {
    let mut options = settings::tiny(&Env::os());
    settings::set(
        &mut options,
        &[("write_buffer_size", "16384"), ("compression", "kLZ4Compression")],
    );
    if round.is_multiple_of(2) {
        let blobs = [
            ("enable_blob_files", "true"),
            ("min_blob_size", "1000"),
            ("blob_file_size", "50000"),
            ("enable_blob_garbage_collection", "true"),
            ("blob_garbage_collection_age_cutoff", "0.5"),
            ("blob_write_mode", if round.is_multiple_of(4) { "flush" } else { "commit" }),
        ];
        settings::set(&mut options, &blobs);
    }
    match round % 3 {
        1 => settings::set(&mut options, &[("recycle_log_file_num", "2")]),
        2 => settings::set(&mut options, &[("wal_compression", "kZSTD")]),
        _ => {}
    }
    if round % 4 == 3 {
        let mode = if round % 8 == 3 { "mapped" } else { "plain" };
        settings::set(&mut options, &[("manual_wal_flush", "true"), ("wal_write_mode", mode)]);
    }
    options
}

fn open(path: &Path, round: u64) -> Db {
    let options = options(round);
    let listed = [("default", options.cf.clone()), ("other", options.cf.clone())];
    Db::open_with_families(path, &options, &listed).expect("the database opens")
}

fn key(number: u64) -> String {
    format!("key{:05}", number * 7919 % 2000)
}

/// Numbers whose batch is the last to write `key(number)` differ in length and filling.
fn value(number: u64) -> Vec<u8> {
    let mut value = format!("{number}:").into_bytes();
    value.resize(
        value.len() + if number.is_multiple_of(10) { 5_000 } else { 60 },
        b'a' + (number % 26) as u8,
    );
    value
}

/// What the child does until it is killed.
fn write_for_ever(path: &Path, round: u64) -> ! {
    let db = open(path, round);
    let other = db.column_family("other").expect("it was just opened");
    let mut out = std::io::stdout().lock();
    let mut number = db.get("last").expect("a lookup").map_or(0, |text| parse(&text));
    loop {
        number += 1;
        let mut batch = WriteBatch::new();
        let text = number.to_string();
        for added in [
            batch.put(b"last", text.as_bytes()),
            batch.put_cf(&other, b"last", text.as_bytes()),
            batch.put(key(number).as_bytes(), value(number)),
            batch.put_cf(&other, key(number).as_bytes(), value(number)),
        ] {
            added.expect("a small batch");
        }
        let sync = WriteOptions { sync: number.is_multiple_of(50), ..WriteOptions::default() };
        db.write_with(&sync, batch).expect("a write");
        if options(round).manual_wal_flush && !sync.sync {
            match number % 7 {
                3 => db.flush_wal(false).expect("a flush of the WAL"),
                // Nobody is told of what may be lost.
                _ => continue,
            }
        }
        // A line goes out with one write, so that the parent sees whole numbers.
        writeln!(out, "acknowledged {number}")
            .and_then(|()| out.flush())
            .expect("the parent listens");
    }
}

fn parse(text: &[u8]) -> u64 {
    std::str::from_utf8(text).expect("digits").parse().expect("a number")
}

/// Starts a child, kills it after a while, and returns the last number that it said was
/// acknowledged.
fn one_life(path: &Path, round: u64, milliseconds: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().expect("this test's path"))
        .args(["--exact", "killed_at_any_moment_nothing_acknowledged_is_lost", "--nocapture"])
        .env(CHILD, path)
        .env("FLAGSTONE_KILL_ROUND", round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let listener = std::thread::spawn(move || {
        let numbers = lines.map_while(Result::ok).filter_map(|line| {
            line.split_once("acknowledged ").map(|(_, number)| parse(number.as_bytes()))
        });
        numbers.last().unwrap_or(0)
    });
    std::thread::sleep(Duration::from_millis(milliseconds));
    child.kill().expect("it is running");
    child.wait().expect("it ended");
    listener.join().expect("the listener")
}

/// Compares with what batches up to the last one found must have left.
fn check(path: &Path, round: u64, acknowledged: u64) -> u64 {
    let db = open(path, round);
    let other = db.column_family("other").expect("it was just opened");
    let last = db.get("last").expect("a lookup").map_or(0, |text| parse(&text));
    assert!(
        last >= acknowledged,
        "round {round}: {acknowledged} was acknowledged, {last} is the last"
    );
    let mut expected = testkit::Family::default();
    for number in 1..=last {
        expected.entries.insert(key(number).into_bytes(), value(number));
    }
    if last > 0 {
        expected.entries.insert(b"last".to_vec(), last.to_string().into_bytes());
    }
    for family in [db.default_column_family(), &other] {
        compare::check_scans(&db, family, &expected, &Default::default());
    }
    compare::check_files(&db);
    last
}

#[test]
fn killed_at_any_moment_nothing_acknowledged_is_lost() {
    if let Some(path) = std::env::var_os(CHILD) {
        let round =
            std::env::var("FLAGSTONE_KILL_ROUND").expect("set with it").parse().expect("a number");
        write_for_ever(Path::new(&path), round);
    }
    let rounds = std::env::var("FLAGSTONE_KILL_ROUNDS").ok().and_then(|text| text.parse().ok());
    let mut random = fastrand::Rng::with_seed(7);
    let mut directory = tempfile::tempdir().expect("a directory");
    let mut total = 0;
    for round in 0..rounds.unwrap_or(ROUNDS_DEFAULT) {
        if round.is_multiple_of(10) {
            directory = tempfile::tempdir().expect("a directory");
        }
        let path = directory.path().join("db");
        let acknowledged = one_life(&path, round, random.u64(20..200));
        let last = check(&path, round, acknowledged);
        total += 1;
        println!("round {round}: {acknowledged} acknowledged, {last} found");
    }
    println!("{total} kills");
}
