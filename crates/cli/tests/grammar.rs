//! The grammar of what commands print.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "each binary of tests uses some of it")]
mod common;

use std::path::{Path, PathBuf};

use common::run;
use flagstone::db::Db;
use flagstone::options::Options;

fn file(directory: &Path, kind: &str) -> PathBuf {
    let all = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.to_str().unwrap().contains(kind)).max().unwrap()
}

/// Words behind a 1 that look like a plural.
fn plurals_of_one(text: &str) -> Vec<&str> {
    let pairs =
        text.lines().flat_map(|line| line.split_whitespace().zip(line.split_whitespace().skip(1)));
    let behind_one = pairs.filter(|(number, _)| *number == "1").map(|(_, word)| word);
    let words = behind_one.map(|word| word.trim_end_matches(|end: char| !end.is_alphanumeric()));
    words.filter(|word| word.ends_with('s') && !["is", "was", "has"].contains(word)).collect()
}

/// "1 operations", "1 files": each command put its nouns in the plural, or not, as it liked.
#[test]
fn one_of_a_kind_is_told_in_the_singular() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let mut options = Options::default();
    options
        .set_all("create_if_missing=true;min_blob_size=50;disable_auto_compactions=true")
        .unwrap();
    let db = Db::open(&path, &options).unwrap();
    db.put("key", [b'v'; 100]).unwrap();
    db.flush_all().unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    std::fs::write(path.join("000099.sst"), "nothing names it").unwrap();
    let (db, at) = (path.display(), |name: &str| scratch.path().join(name).display().to_string());
    let pictures = at("pictures");
    std::fs::create_dir(&pictures).unwrap();
    std::fs::write(format!("{pictures}/one"), "1").unwrap();
    let lines = [
        format!("wal {}", file(&path, ".log").display()),
        format!("blob {}", file(&path, ".blob").display()),
        format!("sst {}", path.join("000004.sst").display()),
        format!("sst {db}"),
        format!("manifest --db {db}"),
        format!("check --db {db}"),
        format!("verify --db {db}"),
        format!("doctor --db {db}"),
        format!("space --db {db}"),
        format!("stats --db {db}"),
        format!("list-files --db {db}"),
        format!("list-families --db {db}"),
        format!("export --db {db} {}", at("out")),
        format!("salvage --db {db} --to {}", at("saved")),
        format!("import --db {} {pictures}", at("new")),
        format!("compact --db {} --change-level", at("new")),
        format!("flush --db {}", at("new")),
        format!("checkpoint --db {} {}", at("new"), at("copy")),
        format!("delete-range --db {} x y", at("new")),
    ];
    let mut wrong = Vec::new();
    for line in lines {
        let output = run(&line);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        for word in plurals_of_one(&said) {
            wrong.push(format!("{line}: 1 {word}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
