//! What the program does not do, and what it says to who asked for it.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../common/mod.rs"]
mod common;
mod settings;

use std::path::{Path, PathBuf};

use common::{failed, printed, run};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8")
}

/// A copy of a fixture that may be damaged.
fn copy(name: &str, target: &Path) {
    std::fs::create_dir_all(target).unwrap();
    for entry in std::fs::read_dir(fixtures().join(name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
    }
}

fn text(output: &std::process::Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// It was told twice over, in two forms of words.
#[test]
fn the_doctor_gives_its_advice_once() {
    for lost in [false, true] {
        let scratch = tempfile::tempdir().unwrap();
        copy("wal-plain", scratch.path());
        let current = scratch.path().join("CURRENT");
        if lost {
            std::fs::remove_file(current).unwrap()
        } else {
            std::fs::write(current, "garbage").unwrap()
        }
        let output = run(&format!("doctor --db {}", scratch.path().display()));
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("CURRENT") && said.matches("flagstone salvage").count() == 1,
            "{said}"
        );
        let json = printed_json(&format!("doctor --db {} --json", scratch.path().display()));
        let advice = json["findings"][0]["advice"].as_str().unwrap();
        assert!(advice.contains("flagstone salvage"), "{advice}");
    }
}

fn printed_json(line: &str) -> serde_json::Value {
    serde_json::from_slice(&run(line).stdout).unwrap()
}

/// Who met it was told where, and not how to go on.
#[test]
fn damage_that_a_command_meets_comes_with_what_helps() {
    let scratch = tempfile::tempdir().unwrap();
    copy("comp-none", scratch.path());
    for entry in std::fs::read_dir(scratch.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|found| found == "sst") {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[20] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
    }
    for command in ["scan", "count", "dump"] {
        let (code, message) = failed(&format!("{command} --db {}", scratch.path().display()));
        let is_told =
            message.contains("corruption: ") && message.contains("flagstone verify lists");
        assert!(
            code == 1 && is_told && message.matches("flagstone salvage").count() == 1,
            "{message}"
        );
    }
}

/// What the engine advises was followed by the same in other words.
#[test]
fn a_table_that_is_missing_or_cut_off_is_told_with_one_advice() {
    for is_missing in [true, false] {
        let scratch = tempfile::tempdir().unwrap();
        copy("basic", scratch.path());
        let table = scratch.path().join("000022.sst");
        if is_missing {
            std::fs::remove_file(table).unwrap();
        } else {
            std::fs::write(table, "short").unwrap();
        }
        let (code, message) = failed(&format!("scan --db {}", scratch.path().display()));
        let is_told_once = message.matches("flagstone salvage").count() == 1;
        assert!(
            code == 1 && message.contains("paranoid_checks=false") && is_told_once,
            "{message}"
        );
    }
}

/// It came with what helps a damaged database.
#[test]
fn a_trace_that_cannot_be_read_is_no_damaged_database() {
    let scratch = tempfile::tempdir().unwrap();
    let trace = scratch.path().join("trace.csv");
    std::fs::write(&trace, "time,key,size\n1,a,large\n").unwrap();
    let (code, message) = failed(&format!("cache-sim {}", trace.display()));
    assert!(
        code == 1 && message.contains("line 2") && !message.contains("flagstone verify"),
        "{message}"
    );
}

/// Some commands gave the number of the system's error, and some nothing to do about it.
#[test]
fn a_database_that_is_a_file_or_not_there_is_explained_by_every_command() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, none) = (scratch.path().join("file"), scratch.path().join("none"));
    let target = scratch.path().join("target");
    std::fs::write(&file, "not a database").unwrap();
    for (line, says) in [
        (
            format!("salvage --db {} --to {}", file.display(), target.display()),
            "a file, not a directory",
        ),
        (
            format!("salvage --db {}/below --to {}", file.display(), target.display()),
            "a file, not a directory",
        ),
        (format!("salvage --db {} --to {}", none.display(), target.display()), "no such directory"),
        (
            format!("bench --benchmarks=fillseq --num=1 --db={}", file.display()),
            "a file, not a directory",
        ),
        (format!("put --db {}/below key value", file.display()), "a file, not a directory"),
        (format!("get --db {}/below key", file.display()), "a file, not a directory"),
    ] {
        let (code, message) = failed(&line);
        assert_eq!(code, 1, "{line}: {message}");
        assert!(
            message.contains(&format!("no database here ({says}); check --db")),
            "{line}: {message}"
        );
        assert!(!message.contains("os error"), "{line}: {message}");
    }
    let (code, message) =
        failed(&format!("export --db {} {}", fixtures().join("basic").display(), file.display()));
    assert!(code == 1 && message.contains("is a file; name a new directory"), "{message}");
    let onto_file =
        format!("salvage --db {} --to {}", fixtures().join("basic").display(), file.display());
    let (code, message) = failed(&onto_file);
    assert!(code == 1 && message.contains("is a file; name a new directory"), "{message}");
    assert!(!target.exists() && !none.exists());
}

/// The new database lay among the files of the damaged one, which was only to be read.
#[test]
fn a_salvage_writes_nothing_into_the_damaged_database() {
    let scratch = tempfile::tempdir().unwrap();
    let (db, other) = (scratch.path().join("db"), scratch.path().join("other"));
    copy("basic", &db);
    let before = std::fs::read_dir(&db).unwrap().count();
    std::os::unix::fs::symlink(&db, &other).unwrap();
    for target in [db.join("rescued"), other.join("deep/rescued"), db.join("../db/rescued")] {
        let (code, message) =
            failed(&format!("salvage --db {} --to {}", db.display(), target.display()));
        assert!(
            code == 2 && message.contains("is inside the damaged database"),
            "{target:?}: {message}"
        );
    }
    let (code, message) =
        failed(&format!("salvage --db {} --to {}", db.display(), db.join("CURRENT").display()));
    assert!(code == 2 && message.contains("is inside the damaged database"), "{message}");
    assert_eq!(std::fs::read_dir(&db).unwrap().count(), before);
    // Beside it, and where names begin alike; but not over what is there.
    let line = format!("salvage --db {} --to {}-rescued", db.display(), db.display());
    printed(&line);
    let (code, message) = failed(&line);
    assert!(code == 1 && message.contains("not empty; name another, or remove"), "{message}");
}

/// An empty one was printed as a MANIFEST with nothing to say.
#[test]
fn a_file_without_an_edit_is_no_manifest() {
    let scratch = tempfile::tempdir().unwrap();
    let empty = scratch.path().join("MANIFEST-000001");
    std::fs::write(&empty, "").unwrap();
    // What begins like no record is damage there.
    for (file, told) in
        [(empty, "no complete edit"), (fixtures().join("basic/CURRENT"), "CURRENT, offset 0")]
    {
        let output = run(&format!("manifest {}", file.display()));
        let said = text(&output);
        assert!(output.status.code() == Some(1) && said.starts_with("FAULT"), "{file:?}: {said}");
        let json = printed_json(&format!("manifest {} --json", file.display()));
        assert!(json["fault"].as_str().unwrap().contains(told), "{json}");
    }
    let (code, message) = failed(&format!("manifest {}", fixtures().join("basic").display()));
    assert!(code == 2 && message.contains("--db"), "{message}");
    let wal = scratch.path().join("000009.log");
    std::fs::write(&wal, "").unwrap();
    assert_eq!(
        printed(&format!("wal {}", wal.display())),
        "end: there is no record in this file\n"
    );
}

/// The system's error was all that came of it.
#[test]
fn a_directory_is_no_file_to_look_into() {
    let basic = fixtures().join("basic");
    for (command, says) in
        [("blob", "one of the blob files in it"), ("wal", "one of the WALs in it")]
    {
        let (code, message) = failed(&format!("{command} {}", basic.display()));
        assert!(
            code == 2 && message.contains(says) && !message.contains("os error"),
            "{command}: {message}"
        );
    }
}

/// It was called damaged, with advice for a damaged database.
#[test]
fn a_file_of_another_kind_is_not_called_damaged() {
    let basic = fixtures().join("basic");
    let scratch = tempfile::tempdir().unwrap();
    let (text, empty) = (scratch.path().join("notes.txt"), scratch.path().join("empty"));
    std::fs::write(
        &text,
        "nothing that a table or a blob file ends or begins with, and longer than a footer",
    )
    .unwrap();
    std::fs::write(&empty, "").unwrap();
    let manifest = basic.join(text_of(&basic.join("CURRENT")).trim());
    for (command, expected) in [("sst", "not a table"), ("blob", "not a blob file")] {
        for file in [&text, &empty, &manifest] {
            let (code, message) = failed(&format!("{command} {}", file.display()));
            assert!(code == 1 && message.contains(expected), "{command}: {message}");
            assert!(message.contains(&format!("({})", file.display())), "{command}: {message}");
            assert!(
                !message.contains("corruption") && !message.contains("salvage"),
                "{command}: {message}"
            );
            assert_eq!(
                message.contains("flagstone manifest shows it"),
                file == &manifest,
                "{message}"
            );
        }
    }
    // Under a table's name it is one that has lost its end, and a table under any other name is
    // one.
    let (named, other) = (scratch.path().join("000012.sst"), scratch.path().join("other"));
    std::fs::copy(&text, &named).unwrap();
    let (code, message) = failed(&format!("sst {}", named.display()));
    assert!(
        code == 1 && message.contains("corruption") && message.contains("salvage"),
        "{message}"
    );
    let mut table = std::fs::read(basic.join("000022.sst")).unwrap();
    std::fs::write(&other, &table).unwrap();
    assert!(printed(&format!("sst {}", other.display())).contains("format_version"));
    // The handles of its blocks.
    let handles = table.len() - 52;
    table[handles..handles + 40].fill(0xff);
    std::fs::write(&other, &table).unwrap();
    let (code, message) = failed(&format!("sst {}", other.display()));
    assert!(code == 1 && message.contains("corruption: bad table footer"), "{message}");
}

fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Who comes from ldb types it by habit.
#[test]
fn a_column_family_goes_by_ldb_s_flag_too() {
    let cfs = fixtures().join("cfs");
    let listed = printed(&format!("scan --db {} --cf users", cfs.display()));
    assert!(!listed.is_empty());
    assert_eq!(printed(&format!("scan --db={} --column_family=users", cfs.display())), listed);
}

/// So did every flag in front of the command, and commands by the names that they have there.
#[test]
fn a_command_line_of_ldb_s_is_understood() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db");
    copy("cfs", &db);
    let db = db.display();
    for (theirs, ours) in [
        (format!("--db={db} list_column_families"), format!("list-families --db {db}")),
        (format!("--db {db} --hex scan --max_keys=2"), format!("scan --db {db} --hex --limit 2")),
        (
            format!("--column_family=users --db={db} scan --no_value"),
            format!("scan --db {db} --cf users --keys-only"),
        ),
        (format!("--db={db} checkconsistency"), format!("check --db {db}")),
        (format!("--db={db} list_live_files_metadata"), format!("list-files --db {db}")),
        (format!("manifest_dump --db={db}"), format!("manifest --db {db}")),
    ] {
        assert_eq!(printed(&theirs), printed(&ours), "{theirs}");
    }
    printed(&format!("--db={db} put key value"));
    printed(&format!("--db={db} deleterange key kez"));
    assert_eq!(failed(&format!("--db={db} get key")).0, 1);
    printed(&format!("create_column_family --db={db} newest"));
    printed(&format!("--db={db} drop_column_family newest"));
    // Of those that take other arguments here the names alone were likened: dump_wal was said to be
    // dump.
    for (theirs, ours) in [
        ("dump_wal", "wal FILE"),
        ("repair", "salvage --db"),
        ("get_property", "stats --db DB --property"),
    ] {
        let (code, message) = failed(&format!("--db={db} {theirs}"));
        assert!(
            code == 2 && message.contains(ours) && !message.contains("similar"),
            "{theirs}: {message}"
        );
    }
    // What is wrong is still told.
    let (code, message) = failed(&format!("--db={db}"));
    assert!(code == 2 && message.contains("--db"), "{message}");
    let (code, message) = failed(&format!("--db={db} --nonsense scan"));
    assert!(code == 2 && message.contains("--nonsense"), "{message}");
}

/// Where sst_dump takes a directory, one table at a time was to be had.
#[test]
fn the_tables_of_a_directory_are_all_looked_at() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db");
    copy("basic", &db);
    let tables: Vec<String> = {
        let names = std::fs::read_dir(&db).unwrap().map(|entry| entry.unwrap().file_name());
        let mut tables: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
        tables.retain(|name| name.ends_with(".sst"));
        tables.sort();
        tables
    };
    assert!(tables.len() > 1);
    let said = printed(&format!("sst {} --verify", db.display()));
    let named: Vec<_> = said.lines().filter(|line| line.ends_with(".sst:")).collect();
    assert_eq!(named.len(), tables.len(), "{said}");
    assert!(named.iter().zip(&tables).all(|(line, table)| line.contains(table)), "{said}");

    // What is wrong with one keeps nobody from the others.
    let broken = db.join(&tables[0]);
    std::fs::write(&broken, "short").unwrap();
    let output = run(&format!("sst {} {} --json", broken.display(), db.join(&tables[1]).display()));
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[0]["fault"].as_str().unwrap().contains(&tables[0]), "{said}");
    assert!(lines[1]["file"].as_str().unwrap().ends_with(&tables[1]), "{said}");
    let (code, message) = failed(&format!("sst {}", scratch.path().display()));
    assert!(code == 1 && message.contains("no tables in the directory"), "{message}");
}

/// Of bounds in the wrong order one command failed as if it had tried, with exit code 1, and others
/// found nothing.
#[test]
fn a_range_that_ends_before_it_begins_is_wrong_usage() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    printed(&format!("put --db {db} k v"));
    let away = scratch.path().join("away").display().to_string();
    for line in [
        format!("delete-range --db {db} z a"),
        format!("scan --db {db} --from z --to a"),
        format!("count --db {db} --from z --to a"),
        format!("compact --db {db} --from z --to a"),
        format!("export --db {db} --from z --to a {away}"),
    ] {
        let (code, message) = failed(&line);
        assert!(code == 2 && message.contains("exchange them"), "{line}: {code} {message}");
    }
    printed(&format!("delete-range --db {db} a a"));
    assert_eq!(printed(&format!("count --db {db} --from a --to a")), "0\n");
    assert_eq!(printed(&format!("get --db {db} k")), "v");
    // What ascends there descends here.
    let reversed = fixtures().join("cfs");
    let line = format!("count --db {} --cf reversed --from", reversed.display());
    assert!(failed(&format!("{line} a --to z")).1.contains("exchange them"));
    printed(&format!("{line} z --to a"));
}

/// Help that was cut off, or was not there at all, counted as given.
#[test]
fn no_answer_that_finds_no_room_counts_as_given() {
    let db = fixtures().join("cfs").display().to_string();
    for line in
        ["--help", "--version", "help scan", "scan --help", &format!("list-families --db {db}")]
    {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_flagstone"));
        let output = command.args(line.split_whitespace()).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(text(&output).contains("Make space"), "{line}: {output:?}");
    }
    assert!(printed("scan --help").contains("Example"));
    assert_eq!(failed("scan --nonsense").0, 2);
}

/// The process was killed by a signal, in the middle of a write and without a word.
#[test]
fn a_file_that_may_not_grow_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let (db, file) = (scratch.path().join("db"), scratch.path().join("file"));
    std::fs::write(&file, vec![7; 4 << 20]).unwrap();
    // POSIX counts in blocks of 512 bytes.
    let limited = |words: &str| {
        let line = format!("ulimit -f 2048; exec \"$0\" {words}");
        std::process::Command::new("sh")
            .args(["-c", &line, env!("CARGO_BIN_EXE_flagstone")])
            .output()
            .unwrap()
    };
    // A WAL reserves more than that, and does without.
    let output = limited(&format!("put --db {} small value", db.display()));
    assert!(
        output.status.success() && text(&output).contains("of what a WAL reserves"),
        "{output:?}"
    );
    let output = limited(&format!("put --db {} large --file {}", db.display(), file.display()));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output).contains("(ulimit -f)"), "{output:?}");
    let dump = scratch.path().join("dump");
    printed(&format!("put --db {} large --file {}", db.display(), file.display()));
    let output = limited(&format!("dump --db {} > {}", db.display(), dump.display()));
    assert!(output.status.code() == Some(1) && text(&output).contains("(ulimit -f)"), "{output:?}");
    // A value that is too large for a file leaves none behind, and the others are written.
    let files = scratch.path().join("files");
    let output = limited(&format!("export --db {} {}", db.display(), files.display()));
    assert!(output.status.code() == Some(1) && text(&output).contains("(ulimit -f)"), "{output:?}");
    assert_eq!(std::fs::read(files.join("small")).unwrap(), b"value");
    assert!(!files.join("large").exists());
    assert_eq!(printed(&format!("get --db {} small", db.display())), "value");
}

/// It was called damaged, and was to be moved away.
#[test]
fn an_options_file_that_cannot_be_read_is_not_called_damaged() {
    let scratch = tempfile::tempdir().unwrap();
    copy("wal-plain", scratch.path());
    // Who opens it meets a loop, whatever the user may.
    std::os::unix::fs::symlink("OPTIONS-999999", scratch.path().join("OPTIONS-999999")).unwrap();
    for command in ["count", "doctor", "verify"] {
        let output = run(&format!("{command} --db {}", scratch.path().display()));
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("OPTIONS-999999") && !said.contains("moved away"),
            "{command}: {said}"
        );
        assert!(!said.contains("BROKEN"), "{command}: {said}");
    }
}

/// That it was in use was all that was said, and who looks for the process had to search.
#[test]
fn who_has_a_database_open_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let mut options = flagstone::options::Options::default();
    options.create_if_missing = true;
    let db = flagstone::db::Db::open(scratch.path(), &options).unwrap();
    let (code, said) = failed(&format!("put --db {} key value", scratch.path().display()));
    assert_eq!(code, 1);
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    let named = format!("in use by {}, process {};", name.trim(), std::process::id());
    assert!(said.contains(&named), "{said}");
    db.close().unwrap();
}

/// An odd number of digits was called no hexadecimal, and a number that is too large no number.
#[test]
fn an_argument_that_cannot_be_read_is_told_what_is_expected() {
    for (line, says) in [
        ("stress --duration 10m", "stress is a program of its own"),
        ("get --db nowhere --hex 0x6", "expected two digits 0 to f for each byte"),
        (
            "get --db nowhere key --range 0..99999999999999999999",
            "a whole number from 0 to 18446744073709551615, found '99999999999999999999'",
        ),
    ] {
        let (code, said) = failed(line);
        assert!(code == 2 && said.contains(says), "{line}: {code}, {said}");
    }
}
