//! `flagstone import`, and `flagstone export`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;

use common::{contents, failed, printed};
use flagstone::env::{Env, OpenMode};

fn write(path: &Path, bytes: &[u8]) {
    let fs = Env::os().fs;
    fs.create_directory(path.parent().unwrap()).unwrap();
    fs.open(path, OpenMode::Create).unwrap().write_at(0, bytes).unwrap();
}

#[test]
fn files_are_imported_and_exported() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("target"));
    let db = format!("--db {}", scratch.path().join("db").display());
    for (name, size) in [("a", 0), ("deep/er/b", 33 << 20), ("deep/c", 10)] {
        write(&source.join(name), &vec![7; size]);
    }
    let said = printed(&format!(
        "import {db} {} --set enable_blob_files=true --set min_blob_size=1000",
        source.display()
    ));
    assert!(said.starts_with("3 files"), "{said}");
    assert_eq!(printed(&format!("scan {db} --keys-only")), "a\ndeep/c\ndeep/er/b\n");
    printed(&format!("export {db} {}", target.display()));
    assert_eq!(contents(&target), contents(&source));
    assert_eq!(contents(&target.join("deep/er")), contents(&source.join("deep/er")));

    printed(&format!("put {db} ../outside x"));
    let again = scratch.path().join("again");
    let (code, message) = failed(&format!("export {db} {}", again.display()));
    assert!(code == 1 && message.contains("'../outside'"), "{message}");
    assert!(!scratch.path().join("outside").exists());
    assert!(failed(&format!("export {db} {}", target.display())).1.contains("not empty"));

    // It ended there, and left out all keys to come.
    let long = format!("l/{}", "o".repeat(300));
    for (key, value) in [("a/b", "x"), (&long, "x"), ("z", "1")] {
        printed(&format!("put {db} {key} {value}"));
    }
    let third = scratch.path().join("third");
    let (code, message) = failed(&format!("export {db} {}", third.display()));
    assert!(code == 1 && message.contains("'a/b'") && message.contains(&long), "{message}");
    assert_eq!(contents(&third)["z"], b"1");
}

/// The second import took the database's own files, which it removes as it opens.
#[test]
fn a_database_is_not_imported_into_itself() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, db) = (scratch.path().join("photos"), scratch.path().join("photos/.db"));
    write(&source.join("a"), b"1");
    for _ in 0..2 {
        let said = printed(&format!("import --db {} {}", db.display(), source.display()));
        assert!(said.starts_with("1 file, "), "{said}");
    }
    assert_eq!(printed(&format!("scan --db {} --keys-only", db.display())), "a\n");
}

/// They were taken where they were named, or a link to the database was; and who had read LOCK held it no longer.
#[test]
fn the_database_s_own_files_are_not_imported_by_name() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let import = |paths: &[&str]| {
        let paths: Vec<_> = paths.iter().map(|name| at(name)).collect();
        printed(&format!("import --db {} {}", at("db"), paths.join(" ")))
    };
    write(Path::new(&at("photos/a")), b"1");
    assert!(import(&["photos"]).starts_with("1 file, "));
    write(Path::new(&at("db/beside.jpg")), b"2");
    write(Path::new(&at("LOCK")), b"3");
    for (link, target) in [("album", "photos"), ("again", "db"), ("current", "db/CURRENT")] {
        symlink(at(target), at(link)).unwrap();
    }
    let none = import(&["db/LOCK", "db/CURRENT", "db/../db/IDENTITY", "again", "current", "db"]);
    assert!(none.starts_with("0 files, ") && !none.contains("left out"), "{none}");
    // What lies beside them, or elsewhere under such a name, is taken.
    let some = import(&["db/beside.jpg", "LOCK", "album"]);
    assert!(some.starts_with("3 files, ") && !some.contains("left out"), "{some}");
    assert_eq!(printed(&format!("scan --db {} --keys-only", at("db"))), "LOCK\na\nbeside.jpg\n");
}

/// The second import took the tables of the first, which it then removed, and the WAL that it was writing.
#[test]
fn files_of_the_database_are_left_out_wherever_they_lie() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    write(Path::new(&at("photos/a")), &[b'1'; 10_000]);
    let settings = format!("--set db_paths={} --set wal_dir={}", at("photos/tables"), at("photos/wals"));
    let said = printed(&format!("import --db {} {settings} {}", at("db"), at("photos")));
    assert!(said.starts_with("1 file, "), "{said}");
    printed(&format!("put --db {} logged 1", at("db")));
    // A copy of hard links, as a backup tool makes it.
    let fs = Env::os().fs;
    fs.create_directory(Path::new(&at("photos/copy"))).unwrap();
    for (directory, prefix) in [("db", "db"), ("photos/tables", "t"), ("photos/wals", "w")] {
        for name in fs.list(Path::new(&at(directory))).unwrap() {
            let [source, target] = [format!("{directory}/{name}"), format!("photos/copy/{prefix}-{name}")];
            fs.link(Path::new(&at(&source)), Path::new(&at(&target))).unwrap();
        }
    }
    write(Path::new(&at("photos/tables/beside.jpg")), b"2");
    write(Path::new(&at("photos/copy/LOCK")), b"3");
    let said = printed(&format!("import --db {} {}", at("db"), at("photos")));
    assert!(!said.contains("left out"), "{said}");
    let keys = printed(&format!("scan --db {} --keys-only", at("db")));
    // What the opening itself has replaced is not the database's any longer: its links are files like others.
    let kept = keys.lines().filter(|key| !key.starts_with("copy/")).collect::<Vec<_>>();
    assert_eq!(kept, ["a", "logged", "tables/beside.jpg"], "{keys}");
    let live = ["copy/db-LOCK", "copy/db-IDENTITY", "copy/t-OWNER", "copy/w-OWNER"];
    assert!(keys.contains("copy/LOCK") && live.iter().all(|name| !keys.contains(name)), "{keys}");
    assert!(!keys.contains(".blob"), "{keys}");
}

/// Of a database in several directories it was what lies in the first.
#[test]
fn what_an_import_takes_on_disk_is_counted_in_all_directories() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let mut photo = vec![0; 300_000];
    fastrand::Rng::with_seed(1).fill(&mut photo);
    write(Path::new(&at("photos/a")), &photo);
    let said = printed(&format!(
        "import --db {} {} --set db_paths={} --json",
        at("db"),
        at("photos"),
        at("elsewhere")
    ));
    let bytes = |name: &str| contents(Path::new(&at(name))).values().map(Vec::len).sum::<usize>() as u64;
    assert!(bytes("elsewhere") > 300_000 && bytes("db") < 300_000, "{said}");
    let facts: serde_json::Value = serde_json::from_str(&said).unwrap();
    let counted = facts["bytes_on_disk"].as_u64().unwrap();
    assert!(counted > 300_000 && counted <= bytes("db") + bytes("elsewhere"), "{said}");
}
