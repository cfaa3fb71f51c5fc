//! A secondary follows a process that is killed again and again: each state that it shows is one
//! that the process had, none is older than the one before, and what was acknowledged is there.
//!
//! The child is this test binary, started again: it writes numbered batches to two families and
//! prints each number when its batch was acknowledged. `FLAGSTONE_KILL_ROUNDS=200` kills more often
//! than by default.

#![expect(clippy::disallowed_methods, reason = "the test starts and kills processes of the system")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Secondary};
use flagstone::env::Env;
use flagstone::options::{Options, WriteOptions};
use testkit::{compare, settings};

/// Set for the child: the directory to write to.
const CHILD: &str = "FLAGSTONE_FOLLOWED_CHILD";
const ROUNDS_DEFAULT: u64 = 8;

/// How often the secondary catches up with one child.
const LOOKS: usize = 6;

fn options(round: u64) -> Options {
    let mut options = settings::tiny(&Env::os());
    let sizes = [("write_buffer_size", "16384"), ("max_manifest_file_size", "3000")];
    settings::set(&mut options, &sizes);
    if round.is_multiple_of(2) {
        let mode = if round.is_multiple_of(4) { "flush" } else { "commit" };
        let blobs = [
            ("enable_blob_files", "true"),
            ("min_blob_size", "1000"),
            ("blob_commit_min_size", "1000"),
            ("blob_file_size", "50000"),
            ("enable_blob_garbage_collection", "true"),
            ("blob_garbage_collection_age_cutoff", "0.5"),
            ("blob_write_mode", mode),
        ];
        settings::set(&mut options, &blobs);
    }
    match round % 3 {
        0 => settings::set(&mut options, &[("avoid_flush_during_recovery", "true")]),
        1 => settings::set(&mut options, &[("recycle_log_file_num", "2")]),
        _ => settings::set(&mut options, &[("wal_compression", "kZSTD")]),
    }
    options
}

fn key(number: u64) -> String {
    format!("key{:05}", number * 7919 % 2000)
}

fn value(number: u64) -> Vec<u8> {
    let mut value = format!("{number}:").into_bytes();
    let size = value.len() + if number.is_multiple_of(10) { 5_000 } else { 60 };
    value.resize(size, b'a' + (number % 26) as u8);
    value
}

fn parse(text: &[u8]) -> u64 {
    std::str::from_utf8(text).expect("digits").parse().expect("a number")
}

/// What the child does until it is killed.
fn write_for_ever(path: &Path, round: u64) -> ! {
    let options = options(round);
    let listed = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_with_families(path, &options, &listed).expect("the database opens");
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
        // A line goes out with one write, so that the parent sees whole numbers.
        writeln!(out, "acknowledged {number}")
            .and_then(|()| out.flush())
            .expect("the parent listens");
    }
}

/// Checks a state, and returns its last number.
fn check(now: &Db) -> u64 {
    let last = now.get("last").expect("a lookup").map_or(0, |text| parse(&text));
    let mut expected = testkit::Family::default();
    for number in last.saturating_sub(2000).max(1)..=last {
        expected.entries.insert(key(number).into_bytes(), value(number));
    }
    for number in 1..last.saturating_sub(2000).max(1) {
        expected.entries.entry(key(number).into_bytes()).or_insert_with(|| value(number));
    }
    if last > 0 {
        expected.entries.insert(b"last".to_vec(), last.to_string().into_bytes());
    }
    for family in now.column_families() {
        compare::check_scans(now, &family, &expected, &Default::default());
    }
    last
}

#[test]
fn it_follows_a_process_that_is_killed_at_any_moment() {
    if let Some(path) = std::env::var_os(CHILD) {
        let round =
            std::env::var("FLAGSTONE_KILL_ROUND").expect("set with it").parse().expect("a number");
        write_for_ever(Path::new(&path), round);
    }
    let rounds = std::env::var("FLAGSTONE_KILL_ROUNDS").ok().and_then(|text| text.parse().ok());
    let directory = tempfile::tempdir().expect("a directory");
    let (path, own) = (directory.path().join("db"), directory.path().join("own"));
    let (mut secondary, mut seen) = (None, 0);
    for round in 0..rounds.unwrap_or(ROUNDS_DEFAULT) {
        let mut child = Command::new(std::env::current_exe().expect("this test's path"))
            .args(["--exact", "it_follows_a_process_that_is_killed_at_any_moment", "--nocapture"])
            .env(CHILD, &path)
            .env("FLAGSTONE_KILL_ROUND", round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let acknowledged = Arc::new(AtomicU64::new(0));
        let (told, lines) = (acknowledged.clone(), child.stdout.take().expect("it is piped"));
        let (begun, has_begun) = std::sync::mpsc::channel();
        let listener = std::thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                if let Some((_, number)) = line.split_once("acknowledged ") {
                    told.store(parse(number.as_bytes()), Ordering::Release);
                    let _ = begun.send(());
                }
            }
        });
        // It has begun, and there is something to follow.
        has_begun.recv().expect("the child writes");
        let follow = secondary.get_or_insert_with(|| {
            Secondary::open(&path, &own, &options(round)).expect("the secondary opens")
        });
        for _ in 0..LOOKS {
            let least = acknowledged.load(Ordering::Acquire);
            follow.catch_up().expect("it catches up");
            let last = check(&follow.now());
            assert!(last >= least.max(seen), "round {round}: {last} after {least} and {seen}");
            seen = last;
        }
        child.kill().expect("it is running");
        child.wait().expect("it ended");
        listener.join().expect("the listener");
        let last = acknowledged.load(Ordering::Acquire);
        follow.catch_up().expect("it catches up");
        seen = check(&follow.now());
        assert!(seen >= last, "round {round}: {last} was acknowledged, {seen} is seen");
        // Every fourth life has a secondary of its own.
        if round % 4 == 3 {
            secondary = None;
        }
    }
}
