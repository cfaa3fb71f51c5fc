//! `flagstone import`, and `flagstone export`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use common::{contents, failed, printed, run};
use flagstone::env::{Env, IoMode};

fn write(path: &Path, bytes: &[u8]) {
    let fs = Env::os().fs;
    fs.create_directory(path.parent().unwrap()).unwrap();
    fs.create_writable(path, IoMode::Buffered).unwrap().write_at(0, bytes).unwrap();
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

/// They were taken where they were named, or a link to the database was; and who had read LOCK held
/// it no longer.
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
    assert!(none.starts_with("0 files, "), "{none}");
    assert!(none.ends_with("6 paths of the database itself left out\n"), "{none}");
    // What lies beside them, or elsewhere under such a name, is taken.
    let some = import(&["db/beside.jpg", "LOCK", "album"]);
    assert!(some.starts_with("3 files, ") && !some.contains("left out"), "{some}");
    assert_eq!(printed(&format!("scan --db {} --keys-only", at("db"))), "LOCK\na\nbeside.jpg\n");
}

/// The second import took the tables of the first, which it then removed, and the WAL that it was
/// writing.
#[test]
fn files_of_the_database_are_left_out_wherever_they_lie() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    write(Path::new(&at("photos/a")), &[b'1'; 10_000]);
    let settings =
        format!("--set db_paths={} --set wal_dir={}", at("photos/tables"), at("photos/wals"));
    let said = printed(&format!("import --db {} {settings} {}", at("db"), at("photos")));
    assert!(said.starts_with("1 file, "), "{said}");
    printed(&format!("put --db {} logged 1", at("db")));
    // A copy of hard links, as a backup tool makes it.
    let fs = Env::os().fs;
    fs.create_directory(Path::new(&at("photos/copy"))).unwrap();
    for (directory, prefix) in [("db", "db"), ("photos/tables", "t"), ("photos/wals", "w")] {
        for name in fs.list(Path::new(&at(directory))).unwrap() {
            let [source, target] =
                [format!("{directory}/{name}"), format!("photos/copy/{prefix}-{name}")];
            fs.link(Path::new(&at(&source)), Path::new(&at(&target))).unwrap();
        }
    }
    write(Path::new(&at("photos/tables/beside.jpg")), b"2");
    write(Path::new(&at("photos/copy/LOCK")), b"3");
    let output = run(&format!("import --json --db {} {}", at("db"), at("photos")));
    let said = String::from_utf8(output.stderr).unwrap();
    // Nothing told that the copy was not whole.
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("copy/db-IDENTITY is a hard link to a file of this database"), "{said}");
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(facts["left_out"], said.matches("is a hard link").count(), "{said}");
    assert!(facts["own"].as_u64().unwrap() >= 4, "{facts}");
    let keys = printed(&format!("scan --db {} --keys-only", at("db")));
    // What the opening itself has replaced is not the database's any longer: its links are files
    // like others.
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
    let bytes =
        |name: &str| contents(Path::new(&at(name))).values().map(Vec::len).sum::<usize>() as u64;
    assert!(bytes("elsewhere") > 300_000 && bytes("db") < 300_000, "{said}");
    let facts: serde_json::Value = serde_json::from_str(&said).unwrap();
    let counted = facts["bytes_on_disk"].as_u64().unwrap();
    assert!(counted > 300_000 && counted <= bytes("db") + bytes("elsewhere"), "{said}");
}

/// One file that is too large, or cannot be read, ended the import.
#[test]
fn what_cannot_be_imported_is_named_and_the_rest_is_stored() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, db) = (scratch.path().join("source"), scratch.path().join("db"));
    for name in ["a", "b", "closed", "deep/closed/c", "y", "z"] {
        write(&source.join(name), name.as_bytes());
    }
    let sparse = Env::os().fs.create_writable(&source.join("m.img"), IoMode::Buffered).unwrap();
    sparse.truncate(5 << 30).unwrap();
    let closed = [source.join("closed"), source.join("deep/closed")];
    closed.iter().for_each(|path| permit(path, 0));
    let import = |line: &str| {
        let output =
            run_unprivileged(scratch.path(), &format!("import {line} {}", source.display()));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        (said, String::from_utf8(output.stdout).unwrap())
    };
    let (said, told) = import(&format!("--json --db {}", db.display()));
    let facts: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&facts["files"], &facts["left_out"]), (&4.into(), &3.into()), "{said}");
    assert_eq!(said.matches("left out: ").count(), 3, "{said}");
    for name in ["m.img", "source/closed", "deep/closed"] {
        assert!(
            said.lines().any(|line| line.contains("left out: ") && line.contains(name)),
            "{said}"
        );
    }
    let (_, told) = import(&format!("--threads 1 --db {}-2", db.display()));
    assert!(
        told.contains("4 files") && told.contains("3 paths not stored, as listed above"),
        "{told}"
    );
    closed.iter().for_each(|path| permit(path, 0o700));
    assert_eq!(printed(&format!("scan --db {} --keys-only", db.display())), "a\nb\ny\nz\n");
}

/// One misspelt PATH of several ended the import before anything was stored.
#[test]
fn a_path_where_nothing_is_is_named_and_the_others_are_imported() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    write(Path::new(&at("photos/a")), b"1");
    symlink("nowhere", at("dangling")).unwrap();
    let output = run(&format!(
        "import --db {} {} {} {}",
        at("db"),
        at("fotos"),
        at("photos"),
        at("dangling")
    ));
    let (said, told) =
        (String::from_utf8(output.stderr).unwrap(), String::from_utf8(output.stdout).unwrap());
    assert_eq!(output.status.code(), Some(1), "{said}");
    for name in ["fotos", "dangling"] {
        assert!(
            said.lines().any(|line| line.contains("left out: ") && line.contains(&at(name))),
            "{said}"
        );
    }
    assert!(
        told.starts_with("1 file, ") && told.contains("2 paths not stored, as listed above"),
        "{told}"
    );
    for paths in [at("fotos"), format!("{} {}", at("fotos"), at("photos/a/b")), at("dangling")] {
        let (code, said) = failed(&format!("import --db {} {paths}", at("new")));
        assert!(
            code == 2 && said.contains("nothing exists at ") && said.contains(&at("")),
            "{code}: {said}"
        );
        assert!(!Path::new(&at("new")).exists());
    }
}

/// Of a thousand files that could not be stored each had its lines.
#[test]
fn ten_of_many_that_are_left_out_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let missing: Vec<String> = (0..13).map(|number| at(&format!("missing-{number}"))).collect();
    write(Path::new(&at("a")), b"1");
    for (json, named) in [("", 10), (" --json", 13)] {
        let (code, said) =
            failed(&format!("import --db {}{json} {} {}", at("db"), at("a"), missing.join(" ")));
        assert_eq!((code, said.matches("left out: ").count()), (1, named), "{said}");
        assert_eq!(
            said.contains("and 3 more paths are left out; --json names each"),
            json.is_empty(),
            "{said}"
        );
    }
}

/// Of a file of the kernel, which has a size of 0, an empty value was stored; one with a size of a
/// page was left out.
#[test]
fn a_file_is_read_to_its_end_whatever_its_size_says() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    let files =
        ["/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/self/limits"];
    let files = files.into_iter().filter(|file| Path::new(file).exists()).collect::<Vec<_>>();
    printed(&format!("import {db} {}", files.join(" ")));
    for file in files {
        let key = Path::new(file).file_name().unwrap().display().to_string();
        assert_eq!(
            printed(&format!("get {db} {key}")),
            std::fs::read_to_string(file).unwrap(),
            "{file}"
        );
    }
}

/// Runs the program as an unprivileged user where the test runs as the superuser, which may read
/// everything.
fn run_unprivileged(scratch: &Path, line: &str) -> Output {
    let program = scratch.join("flagstone");
    // The program may lie where no other user comes.
    std::fs::copy(env!("CARGO_BIN_EXE_flagstone"), &program).unwrap();
    permit(scratch, 0o777);
    let mut command = Command::new(program);
    if std::fs::metadata(scratch).unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    command.args(line.split_whitespace()).output().unwrap()
}

fn permit(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// One damaged value ended the export: what came after it in the order of keys could not be had.
#[test]
fn a_damaged_value_is_named_and_the_rest_is_exported() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, db) = (scratch.path().join("source"), scratch.path().join("db"));
    // Each of the last two lies in a blob file of its own; the large one is exported in pieces, of
    // which the first are sound.
    for (name, size) in [("a", 10), ("b", 5_000), ("c", 33 << 20), ("d", 5_000), ("z", 10)] {
        write(&source.join(name), &vec![name.as_bytes()[0]; size]);
    }
    let settings = "--set enable_blob_files=true --set min_blob_size=1000 --set blob_compression_type=kNoCompression";
    printed(&format!("import --db {} {} {settings}", db.display(), source.display()));
    let fs = Env::os().fs;
    let mut damaged = 0;
    for name in fs.list(&db).unwrap().into_iter().filter(|name| name.ends_with(".blob")) {
        let file = fs.reopen_writable(&db.join(&name)).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        for value in [b"bbbb", b"cccc"] {
            // The last byte of the value.
            if let Some(at) = bytes.windows(4).rposition(|found| found == value) {
                file.write_at(at as u64 + 3, b"?").unwrap();
                damaged += 1;
            }
        }
    }
    assert_eq!(damaged, 2);
    for json in ["", " --json"] {
        let target = scratch.path().join(format!("target{}", json.len()));
        let output = run(&format!("export --db {} {}{json}", db.display(), target.display()));
        let (said, told) =
            (String::from_utf8(output.stderr).unwrap(), String::from_utf8(output.stdout).unwrap());
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("key 'b' is left out: ") && said.contains("key 'c' is left out: "),
            "{said}"
        );
        match json {
            "" => assert!(told.ends_with("0 keys refused, 2 values not readable\n"), "{told}"),
            _ => {
                let facts: serde_json::Value = serde_json::from_str(&told).unwrap();
                assert_eq!(
                    (&facts["files"], &facts["refused"], &facts["unread"]),
                    (&3.into(), &0.into(), &2.into())
                );
            }
        }
        let names: Vec<String> = contents(&target).into_keys().collect();
        assert_eq!(names, ["a", "d", "z"], "no part of a value is left");
    }
}

/// `--hex` was for the bounds alone, and a thousand keys that name no file took a thousand lines.
#[test]
fn keys_that_name_no_file_are_shown_as_asked_for_and_ten_of_them() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    let dump: String = (0..12).map(|number| format!("default 6100{number:02} 31\n")).collect();
    let output =
        common::run_with_input(&format!("load {db}"), (dump + "default ff2f62 31\n").as_bytes());
    assert!(output.status.success());
    for (flags, shown, named) in
        [("", r"'a\x00\x03'", 10), (" --hex", "'610003'", 10), (" --json", r"'a\x00\x03'", 12)]
    {
        let target = scratch.path().join(format!("target{flags}").replace(' ', ""));
        let (code, said) = failed(&format!("export {db} {}{flags}", target.display()));
        assert!(
            code == 1
                && said.contains(&format!(
                    "key {shown} is left out: no file's name can have a zero byte"
                )),
            "{said}"
        );
        assert_eq!(said.matches(" is left out: ").count(), named, "{said}");
        assert_eq!(said.contains("and 2 more keys are left out"), named == 10, "{said}");
        // Names of files are the keys' bytes with and without --hex, and are read back.
        let again = format!("--db {}-again", target.display());
        printed(&format!("import {again} {}", target.display()));
        assert_eq!(printed(&format!("scan {again} --hex --keys-only")), "ff2f62\n");
    }
}
