//! Each byte of each file of a small database is damaged: every read gives the right answer or an error.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flagstone::base::Error;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, OpenMode, read_file};
use flagstone::options::{self, Options, ReadOptions};

const DATABASE: &str = "/db";

/// The files of a database, by name.
type Files = Vec<(String, Vec<u8>)>;

fn options(env: Env) -> Options {
    let mut options = common::create();
    for (name, value) in [
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("compression", "kNoCompression"),
        ("filter_policy", "bloomfilter:10:false"),
        ("disable_auto_compactions", "true"),
    ] {
        options.set(name, value).expect("a known option");
    }
    options.env = env;
    options
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:02}").into_bytes()
}

fn value(number: usize) -> Vec<u8> {
    let size = if number.is_multiple_of(6) { 120 } else { 10 };
    format!("value{number}-").into_bytes().into_iter().cycle().take(size).collect()
}

/// Keys 0..20 in a table of the last level, 20..30 in level 0, 30..40 in the WAL; every sixth value in a blob file.
const KEYS: usize = 40;
const FIRST_IN_WAL: usize = 30;

fn build() -> Files {
    let env = Env::memory();
    env.fs.create_directory(Path::new(DATABASE)).expect("a directory");
    let db = Db::open(DATABASE, &options(env.clone())).expect("a database");
    for number in 0..KEYS {
        db.put(key(number), value(number)).expect("a put");
        if number == 19 {
            db.compact_range(db.default_column_family(), None, None, &Default::default())
                .expect("a compaction");
        }
        if number == FIRST_IN_WAL - 1 {
            db.flush_all().expect("a flush");
        }
    }
    db.close().expect("a clean close");
    drop(db);
    let names = env.fs.list(Path::new(DATABASE)).expect("a directory");
    let read = |name: &String| read_file(&*env.fs, &Path::new(DATABASE).join(name), 1 << 20).expect("a file");
    let mut files: Files = names.iter().map(|name| (name.clone(), read(name))).collect();
    files.sort();
    files
}

/// A file system with these files.
fn lay_out(files: &Files) -> Env {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new(DATABASE)).expect("a directory");
    for (name, bytes) in files {
        let file = fs.open(&Path::new(DATABASE).join(name), OpenMode::Create).expect("a file");
        file.write_at(0, bytes).expect("a write");
    }
    Env::memory().with_fs(Arc::new(fs))
}

/// What may be missing: nothing, or the end of the history that only the WAL holds.
#[derive(Clone, Copy, PartialEq)]
enum MayLose {
    Nothing,
    TailOfWal,
}

/// Opens the files and reads everything in every way. `Err` is fine, a wrong answer fails the test.
fn read_all(files: &Files, read_only: bool, may_lose: MayLose, what: &str) -> Result<(), Error> {
    let env = lay_out(files);
    let opened = match read_only {
        true => Db::open_read_only(DATABASE, &options(env)),
        false => Db::open(DATABASE, &options(env)),
    };
    let db = opened?;
    let mut missing = None;
    for number in 0..KEYS {
        match db.get(key(number)) {
            Ok(Some(found)) => {
                assert!(found == value(number), "{what}: key {number} has a wrong value");
                assert!(missing.is_none(), "{what}: key {number} is there, {missing:?} is not");
            }
            Ok(None) => {
                assert!(
                    may_lose == MayLose::TailOfWal && number >= FIRST_IN_WAL,
                    "{what}: key {number} is gone"
                );
                missing.get_or_insert(number);
            }
            Err(_) => {}
        }
    }
    assert!(matches!(db.get("nothing"), Ok(None) | Err(_)), "{what}: a key out of nowhere");
    let mut iter = db.iter(&ReadOptions::default())?;
    let mut number = 0;
    iter.seek_to_first();
    while iter.valid() {
        assert_eq!(iter.key(), key(number), "{what}: the scan left the track");
        if let Ok(found) = iter.value() {
            assert!(found == value(number), "{what}: the scan shows a wrong value of key {number}");
        }
        number += 1;
        iter.next();
    }
    if iter.status().is_ok() {
        assert_eq!(number, missing.unwrap_or(KEYS), "{what}: the scan ended early without an error");
    }
    db.verify(|_| {});
    db.close()
}

fn may_lose(name: &str) -> MayLose {
    if name.ends_with(".log") { MayLose::TailOfWal } else { MayLose::Nothing }
}

/// Files that opening and reading do not look into.
fn is_looked_into(name: &str) -> bool {
    !name.starts_with("OPTIONS") && name != "LOCK" && name != "IDENTITY"
}

#[test]
fn every_flipped_byte_gives_the_right_answer_or_an_error() {
    let files = build();
    read_all(&files, true, MayLose::Nothing, "undamaged").expect("an undamaged database");
    read_all(&files, false, MayLose::Nothing, "undamaged").expect("an undamaged database");
    let kinds = ["sst", "blob", "log", "MANIFEST", "CURRENT"];
    assert!(
        kinds.iter().all(|kind| files.iter().any(|(name, _)| name.contains(kind))),
        "a kind of file is missing"
    );
    let (mut errors, mut flips) = (0, 0);
    for index in (0..files.len()).filter(|&index| is_looked_into(&files[index].0)) {
        for offset in 0..files[index].1.len() {
            let mut damaged = files.clone();
            let (name, bytes) = &mut damaged[index];
            bytes[offset] ^= 1 << (offset % 8);
            let what = format!("{name} byte {offset}");
            let may_lose = may_lose(name);
            flips += 1;
            errors += usize::from(read_all(&damaged, true, may_lose, &what).is_err());
            if offset % 16 == 0 {
                let _ = read_all(&damaged, false, may_lose, &what);
            }
        }
    }
    println!("{flips} flipped bytes, {errors} of them kept the database from opening");
}

#[test]
fn every_truncation_gives_the_right_answer_or_an_error() {
    let files = build();
    for index in (0..files.len()).filter(|&index| is_looked_into(&files[index].0)) {
        // A MANIFEST cut off between two edits is one of an earlier moment; nothing tells them apart.
        if files[index].0.starts_with("MANIFEST") {
            continue;
        }
        for length in (0..files[index].1.len()).step_by(3) {
            let mut damaged = files.clone();
            damaged[index].1.truncate(length);
            let what = format!("{} cut to {length}", damaged[index].0);
            let _ = read_all(&damaged, length % 2 == 0, may_lose(&damaged[index].0), &what);
        }
    }
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let files = build();
    for index in (0..files.len()).filter(|&index| files[index].0.ends_with("sst")) {
        let mut damaged = files.clone();
        let (name, _) = damaged.remove(index);
        let error = read_all(&damaged, true, MayLose::Nothing, &name).expect_err("a table is missing");
        assert!(error.to_string().contains(&name), "{error}");
    }
}

#[test]
fn a_damaged_options_file_is_read_or_refused_without_a_panic() {
    let files = build();
    let path = |name: &str| PathBuf::from(DATABASE).join(name);
    let (name, bytes) =
        files.iter().rev().find(|(name, _)| name.starts_with("OPTIONS")).expect("an OPTIONS file");
    for (offset, byte) in bytes.iter().enumerate() {
        let env = lay_out(&files);
        let file = env.fs.open(&path(name), OpenMode::Update).expect("a file");
        file.write_at(offset as u64, &[byte ^ (1 << (offset % 8))]).expect("a write");
        let _ = options::load_latest(&env, Path::new(DATABASE));
    }
}
