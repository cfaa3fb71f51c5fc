//! Several processes work on one database and one tree, in an order that a seed draws: commands,
//! `ldb`, copies by `cp -al`, and a program that keeps the database open for writing.
//!
//! - Whatever was acknowledged is found until the end, and nothing else.
//! - A writer is refused while another has the database open; alone, it is not.
//! - A reader, and a copy of a database that nobody has open, has all that was acknowledged before
//!   it began.
//!
//! `FLAGSTONE_SEEDS=200` tells more stories than the few by default.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use common::printed;
use fastrand::Rng;
use flagstone::base::Code;
use flagstone::db::Db;
use flagstone::options::Options;
use testkit::{Referee, seeds};

const SEEDS_DEFAULT: u64 = 4;
const STEPS: usize = 14;
/// Commands that run at the same time.
const COMMANDS_AT_ONCE: usize = 2;

/// Set for the process that keeps the database open: its directory.
const WRITER: &str = "FLAGSTONE_TWO_PROCESSES_WRITER";

/// Keys of a tree's files that are copies of the database's own have this before them.
const BACKUP: &str = "backup";

type Contents = BTreeMap<String, String>;

/// A line `KEY VALUE` is put, and acknowledged.
#[test]
fn the_writer_s_process() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = match Db::open(&path, &options) {
        Err(error) if error.code() == Code::Busy => return println!("\nrefused: {error}"),
        opened => opened.unwrap(),
    };
    println!("\nopen");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (key, value) = line.split_once(' ').unwrap();
        db.put(key, value).unwrap();
        if key.len().is_multiple_of(2) {
            db.flush_all().unwrap();
        }
        println!("acknowledged");
    }
    db.close().unwrap();
}

/// A process that has the database open.
enum Writer {
    Flagstone(Child, BufReader<ChildStdout>),
    RocksDb(Child, Contents),
}

impl Writer {
    /// `None` if it was refused.
    fn start(db: &Path, is_rocksdb: bool) -> Option<Self> {
        if is_rocksdb { Self::start_rocksdb(db) } else { Self::start_flagstone(db) }
    }

    fn start_flagstone(db: &Path) -> Option<Self> {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_writer_s_process", "--nocapture"])
            .env(WRITER, db)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        if next_of(&mut said, &["open", "refused"]) == "open" {
            return Some(Self::Flagstone(child, said));
        }
        child.wait().unwrap();
        None
    }

    fn start_rocksdb(db: &Path) -> Option<Self> {
        let mut child = Command::new("ldb")
            .args([&format!("--db={}", db.display()), "query"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It does not say when it has opened the database, but the system knows of its lock.
        let holds = format!(" {} ", child.id());
        let has_lock = || {
            let locks = fs::read_to_string("/proc/locks").unwrap();
            locks.lines().any(|line| line.contains("POSIX") && line.contains(&holds))
        };
        while !has_lock() {
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            std::thread::yield_now();
        }
        Some(Self::RocksDb(child, Contents::new()))
    }

    fn put(&mut self, key: String, value: String, model: &mut Model) {
        model.possible.insert(key.clone(), value.clone());
        match self {
            Self::Flagstone(child, said) => {
                writeln!(child.stdin.as_mut().unwrap(), "{key} {value}").unwrap();
                next_of(said, &["acknowledged"]);
                model.certain.insert(key, value);
            }
            Self::RocksDb(child, put) => {
                writeln!(child.stdin.as_mut().unwrap(), "put {key} {value}").unwrap();
                put.insert(key, value);
            }
        }
    }

    fn end(self, model: &mut Model) {
        let (mut child, put) = match self {
            Self::Flagstone(child, _) => (child, Contents::new()),
            Self::RocksDb(mut child, put) => {
                writeln!(child.stdin.as_mut().unwrap(), "quit").unwrap();
                (child, put)
            }
        };
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success(), "the writer has failed");
        model.certain.extend(put);
    }
}

/// The first line to come that begins with one of these; returns which.
fn next_of<'a>(said: &mut impl BufRead, wanted: &[&'a str]) -> &'a str {
    let found = said.lines().find_map(|line| {
        let line = line.unwrap();
        wanted.iter().find(|wanted| line.starts_with(**wanted)).copied()
    });
    found.unwrap_or_else(|| panic!("the writer ended without {wanted:?}"))
}

/// What must be found, and what may be.
#[derive(Default)]
struct Model {
    certain: Contents,
    possible: Contents,
}

#[derive(Debug, Clone)]
enum Work {
    Put(String, String),
    ReferencePut(String, String),
    Import,
    Checkpoint(PathBuf),
    Backup(PathBuf),
    Scan,
}

impl Work {
    fn is_exclusive(&self) -> bool {
        !matches!(self, Self::Backup(_) | Self::Scan)
    }
}

struct Running {
    work: Work,
    child: Child,
    /// What was acknowledged before it began.
    certain: Contents,
    /// No writer was there at any time since it began.
    is_alone: bool,
    /// A writer was there all the time.
    is_kept_out: bool,
}

struct Story {
    scratch: tempfile::TempDir,
    rng: Rng,
    has_referee: bool,
    files: Contents,
    model: Model,
    writer: Option<Writer>,
    running: Vec<Running>,
    backups: Vec<(PathBuf, Contents)>,
    drawn: usize,
}

impl Story {
    fn new(seed: u64, has_referee: bool) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let mut files = Contents::new();
        for (name, size) in [("a", 10), ("deep/b", 5000), ("deep/er/c", 40_000), ("d", 0)] {
            let path = scratch.path().join("tree").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let value = "x".repeat(size);
            fs::write(path, &value).unwrap();
            files.insert(name.to_string(), value);
        }
        let rng = Rng::with_seed(seed);
        let story = Self {
            scratch,
            rng,
            has_referee,
            files,
            model: Model::default(),
            writer: None,
            running: Vec::new(),
            backups: Vec::new(),
            drawn: 0,
        };
        printed(&format!(
            "import --db {} {}",
            story.at("db").display(),
            story.at("tree").display()
        ));
        story
    }

    fn at(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn tell(mut self) {
        self.model.certain = self.files.clone();
        self.model.possible = self.files.clone();
        for _ in 0..STEPS {
            match self.rng.u32(0..10) {
                0..5 if self.running.len() < COMMANDS_AT_ONCE => self.start(),
                5..7 if self.writer.is_some() => self.write(),
                7..9 => self.begin_or_end_writing(),
                _ => self.wait_for_one(),
            }
        }
        while !self.running.is_empty() {
            self.wait_for_one();
        }
        if let Some(writer) = self.writer.take() {
            writer.end(&mut self.model);
        }
        let db = self.at("db");
        check(
            &scanned(&printed(&format!("scan --db {}", db.display()))),
            &self.model.certain,
            &self.model,
        );
        printed(&format!("verify --db {}", db.display()));
        for (backup, contents) in &self.backups {
            let found = scanned(&printed(&format!("scan --db {}", backup.display())));
            assert_eq!(&found, contents, "{}", backup.display());
        }
    }

    fn number(&mut self) -> usize {
        self.drawn += 1;
        self.drawn
    }

    fn start(&mut self) {
        let number = self.number();
        let value = format!("value{number}-{}", "v".repeat(self.rng.usize(0..3000)));
        let work = match self.rng.u32(0..6) {
            0 if self.has_referee => Work::ReferencePut(format!("r{number}"), value),
            1 => Work::Import,
            2 => Work::Checkpoint(self.at(&format!("checkpoint{number}"))),
            3 => Work::Backup(self.at(&format!("tree/{BACKUP}{number}"))),
            4 => Work::Scan,
            _ => Work::Put(format!("p{number}"), value),
        };
        if let Work::Put(key, value) | Work::ReferencePut(key, value) = &work {
            self.model.possible.insert(key.clone(), value.clone());
        }
        let other_writes = self.running.iter().any(|other| other.work.is_exclusive());
        if work.is_exclusive() {
            self.running.iter_mut().for_each(|other| other.is_alone = false);
        }
        let mut command = self.command(&work);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.running.push(Running {
            child: command.spawn().unwrap(),
            certain: self.model.certain.clone(),
            is_alone: self.writer.is_none() && !other_writes,
            is_kept_out: self.writer.is_some() && work.is_exclusive(),
            work,
        });
    }

    fn command(&self, work: &Work) -> Command {
        let db = self.at("db").display().to_string();
        let mut command = Command::new(match work {
            Work::ReferencePut(..) => "ldb",
            Work::Backup(_) => "cp",
            _ => env!("CARGO_BIN_EXE_flagstone"),
        });
        match work {
            Work::Put(key, value) => command.args(["put", "--db", &db, key, value]),
            Work::ReferencePut(key, value) => {
                command.args([&format!("--db={db}"), "put", key, value])
            }
            Work::Import => command.args(["import", "--db", &db]).arg(self.at("tree")),
            Work::Checkpoint(target) => command.args(["checkpoint", "--db", &db]).arg(target),
            Work::Backup(target) => command.args(["-al", &db]).arg(target),
            Work::Scan => command.args(["scan", "--db", &db]),
        };
        command
    }

    fn write(&mut self) {
        let number = self.number();
        let value = format!("value{number}-{}", "w".repeat(self.rng.usize(0..3000)));
        let writer = self.writer.as_mut().unwrap();
        writer.put(format!("w{number}"), value, &mut self.model);
    }

    fn begin_or_end_writing(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.end(&mut self.model);
            self.running.iter_mut().for_each(|running| running.is_kept_out = false);
            return;
        }
        let is_alone = !self.running.iter().any(|running| running.work.is_exclusive());
        let is_rocksdb = self.has_referee && self.rng.bool();
        self.running.iter_mut().for_each(|running| running.is_alone = false);
        self.writer = Writer::start(&self.at("db"), is_rocksdb);
        assert!(self.writer.is_some() || !is_alone, "the writer was alone, and was refused");
    }

    fn wait_for_one(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let Running { work, child, certain, is_alone, is_kept_out } =
            self.running.swap_remove(self.rng.usize(0..self.running.len()));
        let output = child.wait_with_output().unwrap();
        let said = format!("{work:?}: {}", String::from_utf8_lossy(&output.stderr));
        let is_done = output.status.success()
            || matches!(work, Work::Import) && left_out_links_alone(&output);
        if work.is_exclusive() {
            let is_refused = said.contains("in use by") || said.contains("lock file");
            assert!(is_done || is_refused, "{said}");
            assert!(is_done || !is_alone, "it was alone: {said}");
            assert!(!is_done || !is_kept_out, "it ran beside another writer: {said}");
        }
        match work {
            Work::Scan => {
                assert!(is_done, "{said}");
                check(&scanned(&String::from_utf8(output.stdout).unwrap()), &certain, &self.model);
            }
            Work::Backup(target) if is_done && is_alone => self.backups.push((target, certain)),
            Work::Backup(_) => assert!(is_done || !is_alone, "{said}"),
            Work::Checkpoint(target) if is_done => {
                check(
                    &scanned(&printed(&format!("scan --db {}", target.display()))),
                    &certain,
                    &self.model,
                );
            }
            Work::Put(key, value) | Work::ReferencePut(key, value) if is_done => {
                self.model.certain.insert(key, value);
            }
            Work::Import if is_done => self.model.certain.extend(self.files.clone()),
            Work::Put(key, _) | Work::ReferencePut(key, _) => {
                drop(self.model.possible.remove(&key))
            }
            Work::Checkpoint(_) | Work::Import => {}
        }
    }
}

/// Whether an import did all but for links to files of the database, which it names with exit code
/// 1.
fn left_out_links_alone(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    let is_link = |line: &str| {
        line.contains("is a hard link to a file of this database")
            || line.contains("left out; --json")
    };
    output.status.code() == Some(1) && !said.is_empty() && said.lines().all(is_link)
}

/// The lines of a scan, without what was imported of copies of the database itself.
fn scanned(text: &str) -> Contents {
    let entries = text.lines().map(|line| line.split_once('\t').unwrap());
    let entries = entries.filter(|(key, _)| !key.starts_with(BACKUP));
    entries.map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn check(found: &Contents, certain: &Contents, model: &Model) {
    for (key, value) in certain {
        assert_eq!(found.get(key), Some(value), "{key} was acknowledged");
    }
    for (key, value) in found {
        assert_eq!(model.possible.get(key), Some(value), "{key} was not written");
    }
}

#[test]
fn processes_exclude_each_other_and_lose_nothing() {
    let has_referee = Referee::find().is_some();
    if !has_referee {
        assert!(std::env::var_os("FLAGSTONE_REQUIRE_REFEREE").is_none(), "install rocksdb-tools");
        let word = b"SKIPPED in part: ldb is not installed (Debian package rocksdb-tools)\n";
        std::io::stderr().write_all(word).unwrap();
    }
    seeds::for_each_seed(SEEDS_DEFAULT, |seed| Story::new(seed, has_referee).tell());
}
