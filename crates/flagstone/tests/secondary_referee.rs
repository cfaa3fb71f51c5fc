//! The secondary of each engine beside a primary of the other.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use common::{create, temporary};
use flagstone::db::{Db, Secondary};
use flagstone::options::{Options, ReadOptions};
use testkit::Referee;

fn referee() -> Option<Referee> {
    let found = Referee::find();
    if found.is_none() {
        println!("SKIPPED: ldb and sst_dump are not installed");
    }
    found
}

fn contents(db: &Db) -> BTreeMap<String, String> {
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    let mut found = BTreeMap::new();
    iter.seek_to_first();
    while iter.valid() {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        found.insert(text(iter.key()), text(iter.value().unwrap()));
        iter.next();
    }
    iter.status().unwrap();
    found
}

fn scanned(text: &str) -> BTreeMap<String, String> {
    let entries =
        text.lines().filter_map(|line| line.split_once(" ==> ").or_else(|| line.split_once(" : ")));
    entries.map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// Lets a secondary of RocksDB look at a primary after each of some rounds of writes.
fn beside_rocksdb(more: &[(&str, &str)], look: impl Fn(&Path, &str, &BTreeMap<String, String>)) {
    let directory = temporary();
    let (path, own) = (directory.path().join("db"), directory.path().join("own"));
    let mut options = create();
    let settings = [("readable_by_rocksdb_secondaries", "true"), ("write_buffer_size", "65536")];
    for (name, value) in settings.iter().chain(more) {
        options.set(name, value).unwrap();
    }
    let primary = Db::open(&path, &options).unwrap();
    for round in 0..5 {
        for number in 0..60 {
            let size = if number % 3 == 0 { 3000 } else { 30 };
            primary.put(format!("key{number:03}"), vec![b'a' + round; size]).unwrap();
        }
        if round % 3 == 1 {
            primary.flush_all().unwrap();
        }
        // RocksDB's secondary misses what a flush takes from a WAL to a table after it has read the
        // MANIFEST.
        primary.wait_for_compactions().unwrap();
        look(&path, &format!("--secondary_path={}", own.display()), &contents(&primary));
    }
}

#[test]
fn a_secondary_of_rocksdb_follows_a_primary_that_it_can_read() {
    let Some(referee) = referee() else { return };
    beside_rocksdb(&[], |path, flag, expected| {
        let found = referee.ldb(path, &[flag, "scan"]).unwrap();
        assert_eq!(&scanned(&found), expected);
    });
}

/// It is asked for keys: scans of `ldb` 7.8.3 as a secondary crash where values lie in several blob
/// files.
#[test]
fn a_secondary_of_rocksdb_finds_large_values() {
    let Some(referee) = referee() else { return };
    let blobs = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "1000"),
        ("blob_commit_min_size", "1000"),
        ("blob_write_mode", "commit"),
    ];
    beside_rocksdb(&blobs, |path, flag, expected| {
        for key in ["key000", "key001", "key057"] {
            let found = referee.ldb(path, &[flag, "get", key]).unwrap();
            assert_eq!(found.trim(), expected[key]);
        }
    });
}

#[test]
fn a_value_in_pieces_is_refused_where_rocksdb_reads_along() {
    let directory = temporary();
    let mut options = create();
    options.set("readable_by_rocksdb_secondaries", "true").unwrap();
    let db = Db::open(directory.path().join("db"), &options).unwrap();
    let refused = db.put_stream(db.default_column_family(), "film", &Default::default());
    let Err(error) = refused else { panic!("no secondary of RocksDB would find it") };
    assert!(error.to_string().contains("readable_by_rocksdb_secondaries"), "{error}");
}

/// A database that RocksDB has open for writing: `ldb query`, which reads its orders.
struct Primary {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Primary {
    fn open(path: &Path, arguments: &[&str]) -> Self {
        // It answers line by line.
        let mut process = Command::new("stdbuf")
            .args(["-oL", "ldb"])
            .arg(format!("--db={}", path.display()))
            .args(arguments)
            .arg("query")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, answers) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut primary = Self { process, orders, answers: BufReader::new(answers) };
        // What it says at its beginning ends before this is answered.
        primary.put("begun", "yes");
        primary
    }

    /// It is written when this returns.
    fn put(&mut self, key: &str, value: &str) {
        writeln!(self.orders, "put {key} {value}").unwrap();
        self.orders.flush().unwrap();
        let mut line = String::new();
        let answer = format!("Successfully put {key} ");
        while !line.contains(&answer) {
            line.clear();
            assert!(self.answers.read_line(&mut line).unwrap() > 0, "ldb has ended");
        }
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_secondary_follows_a_primary_that_is_rocksdb() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let (path, own) = (directory.path().join("db"), directory.path().join("own"));
    referee.ldb(&path, &["--create_if_missing", "put", "made", "first"]).unwrap();
    // A memtable for about two rounds.
    let settings = ["--write_buffer_size=1048576"];
    let mut primary = Primary::open(&path, &settings);
    let options = Options::default();
    let secondary = Secondary::open(&path, &own, &options).unwrap();
    let mut expected = BTreeMap::from(
        [("begun", "yes"), ("made", "first")].map(|(key, value)| (key.to_string(), value.into())),
    );
    let mut kept = Vec::new();
    for round in 0..8 {
        for number in 0..120 {
            let (key, value) = (format!("key{number:03}"), format!("{round}-{}", "x".repeat(4000)));
            primary.put(&key, &value);
            expected.insert(key, value);
        }
        secondary.catch_up().unwrap();
        let now = secondary.now();
        assert_eq!(contents(&now), expected, "round {round}");
        kept.push((now, expected.clone()));
        if round % 3 == 2 {
            primary.kill();
            primary = Primary::open(&path, &settings);
        }
    }
    for (state, expected) in kept {
        assert_eq!(contents(&state), expected);
    }
    primary.kill();
}
