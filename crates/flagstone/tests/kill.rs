//! A writer is killed at random moments: nothing acknowledged is lost, and no half batch shows.

#![expect(clippy::disallowed_methods, reason = "the tests stand outside the engine")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{create, temporary};
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db};
use flagstone::options::{Options, WriteOptions};

/// Where the child finds the database; unset in a normal run of the tests.
const DATABASE: &str = "FLAGSTONE_KILL_DATABASE";

/// Keys that a batch puts into the first family.
const KEYS_PER_BATCH: u64 = 4;

fn options() -> Options {
    let mut options = create();
    for (name, value) in [
        ("create_missing_column_families", "true"),
        ("write_buffer_size", "32768"),
        ("target_file_size_base", "65536"),
        ("max_bytes_for_level_base", "262144"),
        ("enable_blob_files", "true"),
        ("min_blob_size", "1000"),
        ("blob_file_size", "131072"),
        ("enable_blob_garbage_collection", "true"),
        ("blob_garbage_collection_age_cutoff", "0.5"),
        ("blob_garbage_collection_force_threshold", "0.5"),
    ] {
        options.set(name, value).expect("a known option");
    }
    options
}

fn open(path: &Path) -> (Db, ColumnFamily) {
    let options = options();
    let db = Db::open_with_families(
        path,
        &options,
        &[("default", options.cf.clone()), ("second", options.cf.clone())],
    )
    .expect("the database opens after a kill");
    let second = db.column_family("second").expect("the second family");
    (db, second)
}

fn key(batch: u64, part: u64) -> Vec<u8> {
    // Scattered, so that compactions have something to merge.
    format!("{:08x}/{batch:08}/{part}", (batch as u32).wrapping_mul(0x9e37_79b9)).into_bytes()
}

fn value(batch: u64, part: u64) -> Vec<u8> {
    let size = if (batch + part).is_multiple_of(5) { 3_000 } else { 60 };
    vec![(batch * 7 + part) as u8; size]
}

fn write_batch(db: &Db, second: &ColumnFamily, number: u64) {
    let mut batch = WriteBatch::new();
    for part in 0..KEYS_PER_BATCH {
        batch.put(&key(number, part), &value(number, part)).expect("a put");
    }
    batch.put_cf(second, &key(number, 0), &value(number, 0)).expect("a put");
    // Overwritten each time, also as a large value: garbage for the blob files.
    let mut last = number.to_le_bytes().to_vec();
    last.resize(2_000, number as u8);
    batch.put(b"last", &last).expect("a put");
    batch.put_cf(second, b"last", &last).expect("a put");
    if number.is_multiple_of(3) && number > 30 {
        batch.delete(&key(number - 30, 3)).expect("a delete");
    }
    let options = WriteOptions { sync: number.is_multiple_of(50), ..WriteOptions::default() };
    db.write_with(&options, batch).expect("a write");
}

fn last(db: &Db, family: &ColumnFamily) -> u64 {
    db.get_cf(family, "last").expect("a read").map_or(0, |value| {
        let number = u64::from_le_bytes(value[..8].try_into().expect("eight bytes"));
        assert!(value[8..].iter().all(|byte| *byte == number as u8), "a torn value");
        number
    })
}

/// All batches up to the last are there, whole, and nothing of any other.
fn check(path: &Path, acknowledged: u64) -> u64 {
    let (db, second) = open(path);
    let found = last(&db, db.default_column_family());
    assert!(found >= acknowledged, "batch {acknowledged} was acknowledged, the last found is {found}");
    assert_eq!(last(&db, &second), found, "half a batch");
    for number in 1..=found + 1 {
        let expected = number <= found;
        for part in 0..KEYS_PER_BATCH {
            let deleted = part == 3 && number.is_multiple_of(3) && number + 30 <= found;
            let got = db.get(key(number, part)).expect("a read");
            assert_eq!(got.is_some(), expected && !deleted, "batch {number} part {part} of {found}");
            assert!(got.is_none_or(|got| got == value(number, part)), "batch {number} part {part}");
        }
        assert_eq!(db.get_cf(&second, key(number, 0)).expect("a read").is_some(), expected);
    }
    let report = db.verify(|_| {});
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    found
}

#[test]
fn nothing_acknowledged_is_lost_by_a_kill() {
    let rounds: u64 =
        std::env::var("FLAGSTONE_KILL_ROUNDS").map_or(12, |text| text.parse().expect("a number"));
    let directory = temporary();
    let path = directory.path().join("db");
    let mut random = fastrand::Rng::with_seed(7);
    let (mut total, mut base) = (0, 0);
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "the_writer_that_is_killed", "--nocapture", "--ignored"])
            .env(DATABASE, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a child");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let reader = std::thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines.filter_map(|line| line.strip_prefix("ack ")?.parse::<u64>().ok()).last()
        });
        std::thread::sleep(Duration::from_millis(random.u64(20..250)));
        child.kill().expect("SIGKILL");
        child.wait().expect("its end");
        let acknowledged = reader.join().expect("the reader").unwrap_or(base);
        let found = check(&path, acknowledged);
        total += found - base;
        base = found;
        // A long history makes checking slow; a fresh one also tests creation.
        if base > 6_000 {
            std::fs::remove_dir_all(&path).expect("removed");
            base = 0;
        }
        println!("round {round}: {acknowledged} acknowledged, {found} found");
    }
    println!("{rounds} kills, {total} batches survived");
    assert!(total > 0, "the writer never got to write");
}

#[test]
#[ignore = "the child of the test above"]
fn the_writer_that_is_killed() {
    let Some(path) = std::env::var_os(DATABASE) else { return };
    let (db, second) = open(Path::new(&path));
    let mut number = last(&db, db.default_column_family());
    let mut output = std::io::stdout().lock();
    loop {
        number += 1;
        write_batch(&db, &second, number);
        writeln!(output, "ack {number}").expect("the parent listens");
        output.flush().expect("the parent listens");
    }
}
