//! A database is open for writing once, whatever else its process does with its files, and beside
//! RocksDB.
//!
//! Other processes are this test binary, started again.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test starts processes, and copies files as a user's program does"
)]

mod common;

use std::any::Any;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use flagstone::base::{Code, Error, Result, SubCode};
use flagstone::db::{
    Db, Follower, OfflineManifest, OpenFiles, Secondary, TtlDb, TtlOptions, salvage,
    salvage_with_older_options,
};
use flagstone::env::{Env, IoMode};
use flagstone::options::Options;
use rustix::fs::{FlockOperation, fcntl_lock};

/// Set for the other process: the file that it locks.
const OTHER: &str = "FLAGSTONE_LOCKS_OTHER";

/// A process that locks a file as RocksDB and earlier Flagstones do, by a record lock.
struct Other {
    child: Child,
    has_lock: bool,
    /// It prints until its end, and would fail if nothing read that.
    _lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn locks(file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this test's path"))
            .args(["--exact", "another_process_locks_a_file", "--nocapture"])
            .env(OTHER, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let has_lock = lines.find_map(|line| {
            line.expect("text").split_once("the lock is ").map(|(_, outcome)| outcome == "taken")
        });
        Self { has_lock: has_lock.expect("it says how that went"), child, _lines: lines }
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends");
    }
}

fn can_be_locked_elsewhere(file: &Path) -> bool {
    let other = Other::locks(file);
    let has_lock = other.has_lock;
    other.end();
    has_lock
}

#[test]
fn another_process_locks_a_file() {
    let Some(path) = std::env::var_os(OTHER) else { return };
    let file = OpenOptions::new().read(true).write(true).open(path).expect("the file is there");
    let has_lock = fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    println!("\nthe lock is {}", if has_lock { "taken" } else { "refused" });
    std::io::stdin().read_line(&mut String::new()).expect("the end of the input");
}

type Handle = Box<dyn Any>;
type Open = fn(&Path, &Options) -> Result<Handle>;

/// Every call that gives a handle of a database, or reads one as a whole, and whether it keeps
/// writers out meanwhile.
const HANDLES: [(&str, bool, Open); 15] = [
    ("open", true, |path, options| boxed(Db::open(path, options))),
    ("open_with_families", true, |path, options| boxed(Db::open_with_families(path, options, &[]))),
    ("open_read_only", false, |path, options| boxed(Db::open_read_only(path, options))),
    ("open_read_only_with_families", false, |path, options| {
        boxed(Db::open_read_only_with_families(path, options, &[("default", options.cf.clone())]))
    }),
    ("open", false, |path, options| {
        boxed(Secondary::open(path, path.with_extension("own"), options))
    }),
    ("open_with_families", false, |path, options| {
        let families = [("default", options.cf.clone())];
        boxed(Secondary::open_with_families(path, path.with_extension("own"), options, &families))
    }),
    ("open", false, |path, options| {
        boxed(Follower::open(path.with_extension("links"), path, options))
    }),
    ("open_with_families", false, |path, options| {
        let families = [("default", options.cf.clone())];
        let own = path.with_extension("links");
        boxed(Follower::open_with_families(own, path, options, &families))
    }),
    ("open", true, |path, options| boxed(TtlDb::open(path, options, TtlOptions::default()))),
    ("open_with_families", true, |path, options| {
        boxed(TtlDb::open_with_families(
            path,
            options,
            &[("default", options.cf.clone(), TtlOptions::default())],
        ))
    }),
    ("open_read_only", false, |path, options| {
        boxed(TtlDb::open_read_only(path, options, TtlOptions::default()))
    }),
    ("open_read_only_with_families", false, |path, options| {
        let families = [("default", options.cf.clone(), TtlOptions::default())];
        boxed(TtlDb::open_read_only_with_families(path, options, &families))
    }),
    ("open", true, |path, options| {
        let families = [("default", options.cf.clone())];
        boxed(OfflineManifest::open(path, options, &families))
    }),
    ("salvage", true, |path, options| {
        boxed(salvage(path, &path.with_extension("s"), options, &[], &mut |_| {}))
    }),
    ("salvage_with_older_options", true, |path, options| {
        boxed(salvage_with_older_options(
            path,
            &path.with_extension("s"),
            options,
            &[],
            &mut |_| {},
        ))
    }),
];

fn boxed<T: 'static>(handle: Result<T>) -> Result<Handle> {
    handle.map(|handle| Box::new(handle) as Handle)
}

/// One that is added later belongs into the table.
#[test]
fn the_table_has_all_handles() {
    fn collect(directory: &Path, names: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, names);
                continue;
            }
            for line in fs::read_to_string(&path).unwrap().lines() {
                let Some(rest) = line.trim().strip_prefix("pub fn ") else { continue };
                let name = rest.split(['(', '<']).next().unwrap();
                // A worker reads beside the writer that has the lock.
                if name == "open_and_compact" {
                    continue;
                }
                if name.starts_with("open") || name.starts_with("salvage") {
                    names.push(name.to_string());
                }
            }
        }
    }
    let mut found = Vec::new();
    for place in ["db", "salvage", "ttl"] {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(place), &mut found);
    }
    let mut known = HANDLES.map(|(name, ..)| name);
    found.sort();
    known.sort();
    assert_eq!(found, known);
}

fn made(path: &Path) -> Options {
    let mut options = Options { env: Env::os(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open(path, &options).unwrap();
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    options
}

fn assert_held(error: &Error) {
    assert_eq!((error.code(), error.subcode()), (Code::Busy, SubCode::LockHeld), "{error}");
}

#[test]
fn every_handle_is_kept_out_by_another_process() {
    let scratch = tempfile::tempdir().unwrap();
    for (index, (name, locks, open)) in HANDLES.into_iter().enumerate() {
        let path = scratch.path().join(format!("db{index}"));
        let options = made(&path);
        let other = Other::locks(&path.join("LOCK"));
        assert!(other.has_lock);
        for _ in 0..2 {
            match (open(&path, &options), locks) {
                (Err(error), true) => {
                    assert_held(&error);
                    assert!(
                        error.to_string().contains(&format!(", process {}", other.child.id())),
                        "{error}"
                    );
                }
                (outcome, locks) => assert!(outcome.is_ok() && !locks, "{name} {index}"),
            }
        }
        other.end();
        open(&path, &options).unwrap();
    }
}

/// As a program does that makes a backup of its own database, or stores the files of a tree in
/// which it lies.
fn read_all(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::read(path).unwrap();
        }
    }
}

/// The lock was gone as soon as the process had closed any descriptor of the file, by any name.
#[test]
fn every_handle_keeps_its_lock_whatever_the_process_reads() {
    let scratch = tempfile::tempdir().unwrap();
    for (index, (name, locks, open)) in HANDLES.into_iter().enumerate() {
        let path = scratch.path().join(format!("db{index}"));
        let options = made(&path);
        let lock = path.join("LOCK");
        let handle = open(&path, &options).unwrap();
        // It was held while the call went on.
        let locks = locks && !name.starts_with("salvage");
        let [hard, soft] =
            ["hard", "soft"].map(|name| scratch.path().join(format!("{name}{index}")));
        fs::hard_link(&lock, &hard).unwrap();
        symlink(&path, &soft).unwrap();
        fs::read(&hard).unwrap();
        read_all(&soft);
        Env::os().fs.open_random_access(&hard, IoMode::Buffered).unwrap();
        drop(Db::open_read_only(&path, &options).unwrap());
        if locks {
            assert_held(&Db::open(&path, &options).unwrap_err());
            assert_held(
                &salvage(&path, &path.with_extension("t"), &options, &[], &mut |_| {}).unwrap_err(),
            );
        }
        assert_eq!(can_be_locked_elsewhere(&lock), !locks, "{name} {index}");
        assert_eq!(can_be_locked_elsewhere(&hard), !locks, "{name} {index}");
        drop(handle);
        assert!(can_be_locked_elsewhere(&lock), "{name} {index}");
    }
}

/// What the lock file says of its holder is nothing to RocksDB.
#[test]
fn rocksdb_and_flagstone_exclude_each_other() {
    let Some(referee) = common::referee() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let options = made(&path);
    let db = Db::open(&path, &options).unwrap();
    read_all(&path);
    let attempt = || {
        Command::new("ldb").arg(format!("--db={}", path.display())).args(["put", "a", "1"]).output()
    };
    let refused = attempt().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).to_lowercase();
    assert!(!refused.status.success() && said.contains("lock"), "{said}");
    assert!(db.get("a").unwrap().is_none());
    db.close().unwrap();
    drop(db);

    // A text that a killed process has left.
    fs::write(path.join("LOCK"), "flagstone, process 1\n").unwrap();
    referee.ldb(&path, &["put", "a", "1"]);
    let opened = || {
        let mut rocksdb = Command::new("ldb")
            .args([&format!("--db={}", path.display()), "query"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Who looks has the lock for a moment, and may be in RocksDB's way.
        while can_be_locked_elsewhere(&path.join("LOCK")) {
            if rocksdb.try_wait().unwrap().is_some() {
                return None;
            }
        }
        Some(rocksdb)
    };
    let mut rocksdb = (0..100).find_map(|_| opened()).expect("it opens the database");
    let error = Db::open(&path, &options).unwrap_err();
    assert_held(&error);
    assert!(error.to_string().contains(&format!("ldb, process {}", rocksdb.id())), "{error}");
    rocksdb.stdin.take().unwrap().write_all(b"put b 2\nquit\n").unwrap();
    rocksdb.wait().unwrap();
    let db = Db::open(&path, &options).unwrap();
    assert_eq!(db.get("b").unwrap().unwrap(), "2");
}

/// Wherever options put the files, and by whatever name they are reached.
#[test]
fn the_files_of_open_databases_are_known() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let fs = Env::os().fs;
    let is_open = |path: PathBuf| OpenFiles::of_this_process().unwrap().contains(&*fs, &path);
    let mut options = Options { env: Env::os(), ..Options::default() };
    options.create_if_missing = true;
    for (name, value) in [
        ("wal_dir", at("wals").display().to_string()),
        ("db_paths", at("tables").display().to_string()),
        ("WAL_ttl_seconds", "1000".to_string()),
        ("disable_auto_compactions", "true".to_string()),
    ] {
        options.set(name, &value).unwrap();
    }
    let db = Db::open(at("db"), &options).unwrap();
    let mut family = options.cf.clone();
    family.set("cf_paths", &at("others").display().to_string()).unwrap();
    let other = db.create_column_family("other", &family).unwrap();
    for cf in [db.default_column_family(), &other] {
        db.put_cf(cf, "key", "value").unwrap();
        db.flush_all().unwrap();
    }
    db.put("key", "logged").unwrap();
    let families = [("default", options.cf.clone()), ("other", family)];
    let second = Db::open_read_only_with_families(at("db"), &options, &families).unwrap();

    let directories = ["db", "wals", "wals/archive", "tables", "others"];
    let files_of = |directory: &str| {
        let entries = fs::read_dir(at(directory)).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_file()).collect::<Vec<_>>()
    };
    fs::create_dir(at("links")).unwrap();
    let mut links = 0;
    for directory in directories {
        let files = files_of(directory);
        assert!(!files.is_empty(), "{directory}");
        for file in files {
            let names = [at(&format!("links/hard{links}")), at(&format!("links/soft{links}"))];
            fs::hard_link(&file, &names[0]).unwrap();
            symlink(&file, &names[1]).unwrap();
            for name in names.into_iter().chain([file]) {
                assert!(is_open(name.clone()), "{}", name.display());
            }
            links += 1;
        }
    }
    // A file that it makes later, one beside its own, and one of the same name elsewhere.
    let known = OpenFiles::of_this_process().unwrap();
    fs::write(at("tables/999999.sst"), "x").unwrap();
    fs::write(at("tables/photo.jpg"), "x").unwrap();
    fs::write(at("links/LOCK"), "x").unwrap();
    assert!(known.contains(&*fs, &at("tables/999999.sst")));
    assert!(!known.contains(&*fs, &at("tables/photo.jpg")));
    assert!(!known.contains(&*fs, &at("links/LOCK")));
    assert!(!known.contains(&*fs, &at("nowhere")));

    db.close().unwrap();
    assert!(is_open(at("db/CURRENT")), "the second handle reads it");
    drop((db, other, second));
    assert!(!is_open(at("db/CURRENT")));
}

/// Others who list the open databases, or share the memory of the process with them, kept the lock
/// of a directory beyond the end of an opening that had failed.
#[test]
fn an_opening_that_fails_lets_go_of_the_directory() {
    let env = Env::memory();
    let mut options = Options { env: env.clone(), ..Options::default() };
    options.create_if_missing = true;
    let mut merging = options.clone();
    merging.set("merge_operator", "stringappend").unwrap();
    Db::open("/db", &merging).unwrap().merge("key", "value").unwrap();

    let ended = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                OpenFiles::of_this_process().unwrap();
            }
        });
        threads.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                drop(Db::open("/other", &options).unwrap());
            }
        });
        let outcomes: Vec<_> = (0..200).map(|_| Db::open("/db", &options).map(drop)).collect();
        ended.store(true, Ordering::Relaxed);
        for outcome in outcomes {
            // Not that it is open elsewhere.
            assert_eq!(outcome.unwrap_err().code(), Code::InvalidArgument);
        }
    });
    assert_eq!(Db::open("/db", &merging).unwrap().get("key").unwrap().unwrap(), "value");
}
