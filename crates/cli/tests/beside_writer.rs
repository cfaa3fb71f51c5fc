//! Every command beside a program that writes to the database: those that read see one state of it
//! to their end, those that write are refused.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};

use common::{failed, printed, run_with_input};
use flagstone::db::Db;
use flagstone::options::{ColumnFamilyOptions, Options};

/// What a command does beside a writer.
enum Beside {
    /// It reads, and finds nothing wrong.
    Reads,
    /// The writer has the lock.
    IsRefused,
    /// It has no database, or no more of one than a file that is named.
    HasNoDatabase,
}

/// Every command and its arguments; `DB` is the database, `NEW` a path where nothing is.
const COMMANDS: &[(&str, &str, Beside)] = &[
    ("get", "--db DB key00007", Beside::Reads),
    ("multi-get", "--db DB key00007 key00008", Beside::Reads),
    ("put", "--db DB key value", Beside::IsRefused),
    ("batch-put", "--db DB key value", Beside::IsRefused),
    ("get-entity", "--db DB key00007", Beside::Reads),
    ("multi-get-entity", "--db DB key00007", Beside::Reads),
    ("put-entity", "--db DB key name:value", Beside::IsRefused),
    ("delete", "--db DB key00007", Beside::IsRefused),
    ("single-delete", "--db DB key00007", Beside::IsRefused),
    ("delete-range", "--db DB key00001 key00002", Beside::IsRefused),
    ("clip", "--db DB key00001 key00002", Beside::IsRefused),
    ("scan", "--db DB", Beside::Reads),
    ("scan", "--db NEW --leader-path DB", Beside::Reads),
    ("count", "--db DB", Beside::Reads),
    ("approximate-size", "--db DB --prefix k", Beside::Reads),
    ("query", "--db DB", Beside::IsRefused),
    ("query", "--db DB --read-only", Beside::Reads),
    ("count", "--db DB --secondary-path NEW", Beside::Reads),
    ("import", "--db DB SOURCE", Beside::IsRefused),
    ("export", "--db DB NEW", Beside::Reads),
    ("dump", "--db DB", Beside::Reads),
    ("load", "--db DB", Beside::IsRefused),
    ("write-extern-sst", "--db DB NEW", Beside::Reads),
    ("ingest", "--db DB SOURCE", Beside::IsRefused),
    ("verify", "--db DB", Beside::Reads),
    ("check", "--db DB", Beside::Reads),
    ("doctor", "--db DB", Beside::Reads),
    ("salvage", "--db DB --to NEW", Beside::IsRefused),
    ("stats", "--db DB", Beside::Reads),
    ("top", "--db DB --once", Beside::Reads),
    ("space", "--db DB", Beside::Reads),
    ("compact", "--db DB", Beside::IsRefused),
    ("compact", "--db DB --dry-run", Beside::Reads),
    ("reduce-levels", "--db DB --new-levels 3", Beside::IsRefused),
    ("change-compaction-style", "--db DB --new-compaction-style 1", Beside::IsRefused),
    ("flush", "--db DB", Beside::IsRefused),
    ("checkpoint", "--db DB NEW", Beside::IsRefused),
    ("transactions", "--db DB", Beside::Reads),
    ("transactions", "--db DB commit name", Beside::IsRefused),
    ("replay", "--db DB NEW", Beside::IsRefused),
    ("backup", "create --db DB --dir NEW", Beside::IsRefused),
    ("list-families", "--db DB", Beside::Reads),
    ("create-family", "--db DB another", Beside::IsRefused),
    ("drop-family", "--db DB kept", Beside::IsRefused),
    ("export-family", "--db DB NEW", Beside::IsRefused),
    ("import-family", "--db DB --cf another NEW", Beside::IsRefused),
    ("list-files", "--db DB", Beside::Reads),
    ("list-range-deletions", "--db DB", Beside::Reads),
    ("dump-live-files", "--db DB", Beside::Reads),
    ("manifest", "--db DB", Beside::Reads),
    ("update-manifest", "--db DB --temperature 1=kWarm", Beside::IsRefused),
    ("unsafe-remove-table", "--db DB 1 --accept-loss", Beside::IsRefused),
    ("sst", "DB", Beside::Reads),
    ("wal", "", Beside::HasNoDatabase),
    ("blob", "", Beside::HasNoDatabase),
    ("bench", "--db DB --benchmarks=fillseq --num=1", Beside::IsRefused),
    ("cache-sim", "", Beside::HasNoDatabase),
    ("io-trace", "", Beside::HasNoDatabase),
    ("completions", "", Beside::HasNoDatabase),
    ("man", "", Beside::HasNoDatabase),
    ("help", "", Beside::HasNoDatabase),
];

const KEYS: u32 = 100;

/// How often each command is run.
const TURNS: u32 = 3;

fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing = true;
    let text = "write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=262144;enable_blob_files=true;\
                min_blob_size=2000;blob_file_size=65536;enable_blob_garbage_collection=true;\
                blob_garbage_collection_age_cutoff=0.5;recycle_log_file_num=2";
    for (name, value) in text.split(';').filter_map(|setting| setting.split_once('=')) {
        options.set(name, value).unwrap();
    }
    options
}

/// Writes each key once more, every other one with a large value.
fn write_all(db: &Db, round: u32) {
    for number in 0..KEYS {
        let size = if number.is_multiple_of(2) { 100 } else { 5000 };
        db.put(format!("key{number:05}"), vec![b'a' + (round % 26) as u8; size]).unwrap();
    }
}

/// Takes away all files that the database has, once for each turn.
fn write_on(db: &Db, turns: Receiver<u32>) {
    for round in turns {
        write_all(db, round);
        if round.is_multiple_of(3) {
            let passing =
                db.create_column_family("passing", &ColumnFamilyOptions::default()).unwrap();
            db.put_cf(&passing, "key", "value").unwrap();
            db.flush_all().unwrap();
            db.drop_column_family(&passing).unwrap();
        }
        db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    }
}

fn check(name: &str, arguments: &str, beside: &Beside, database: &Path, scratch: &Path, turn: u32) {
    let new = scratch.join(format!("{name}-{turn}"));
    let line = arguments
        .replace("DB", database.to_str().unwrap())
        .replace("NEW", new.to_str().unwrap())
        .replace("SOURCE", scratch.join("source").to_str().unwrap());
    let line = format!("{name} {line}");
    // What load and query read; the others have no use for it.
    let input: &[u8] =
        if name == "query" { b"get key00007\n" } else { b"default 6b6579 76616c7565\n" };
    let output = run_with_input(&line, input);
    let said = format!(
        "{line}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout[..output.stdout.len().min(2000)]),
        String::from_utf8_lossy(&output.stderr)
    );
    match beside {
        Beside::Reads => assert_eq!(output.status.code(), Some(0), "{said}"),
        Beside::IsRefused => {
            assert!(output.status.code() == Some(1) && said.contains("in use"), "{said}")
        }
        Beside::HasNoDatabase => unreachable!("it is not run"),
    }
}

/// A command that reads failed at the first file that the writer had removed.
#[test]
#[expect(clippy::disallowed_methods, reason = "the file to import is no part of a database")]
fn every_command_is_right_beside_a_writer() {
    let scratch = tempfile::tempdir().unwrap();
    let database = scratch.path().join("db");
    std::fs::create_dir(scratch.path().join("source")).unwrap();
    std::fs::write(scratch.path().join("source/file"), "text").unwrap();
    let db = Db::open(&database, &options()).unwrap();
    db.create_column_family("kept", &ColumnFamilyOptions::default()).unwrap();
    write_all(&db, 0);
    // The writer begins another round with each command, unless it is at one: it leaves the
    // commands their part of the processor.
    let (turn_of_writer, turns_of_writer) = sync_channel(1);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_on(&db, turns_of_writer));
        let mut round = 1;
        for (name, arguments, beside) in COMMANDS {
            for turn in 0..if matches!(beside, Beside::HasNoDatabase) { 0 } else { TURNS } {
                round += u32::from(turn_of_writer.try_send(round).is_ok());
                check(name, arguments, beside, &database, scratch.path(), turn);
            }
        }
        drop(turn_of_writer);
        writer.join().unwrap();
        assert!(round > TURNS, "the writer did next to nothing");
    });
}

#[test]
fn every_command_is_classified() {
    let help = printed("--help");
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let names: BTreeSet<_> = commands
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let classified: BTreeSet<_> = COMMANDS.iter().map(|(name, ..)| *name).collect();
    assert!(names.len() > 20, "{help}");
    assert_eq!(names, classified, "say in COMMANDS what the command does beside a writer");
}

/// A scan whose reader took its time ended in an error, and without the rest of the keys.
#[test]
fn a_scan_that_is_read_slowly_shows_what_there_was_at_its_beginning() {
    let scratch = tempfile::tempdir().unwrap();
    let db = Db::open(scratch.path(), &options()).unwrap();
    write_all(&db, 0);
    let database = scratch.path().to_str().unwrap();
    let expected = printed(&format!("scan --db {database}"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_flagstone"))
        .args(["scan", "--db", database])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::with_capacity(1, child.stdout.take().unwrap());
    let mut found = String::new();
    output.read_line(&mut found).unwrap();
    // The pipe and the program's buffer hold less than all of it.
    for round in 1..4 {
        write_all(&db, round);
        db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    }
    output.read_to_string(&mut found).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(found == expected, "{} bytes, expected {}", found.len(), expected.len());
}

/// What the error advises works.
#[test]
fn where_the_process_may_open_too_few_files_the_error_says_how_many_it_wants() {
    let scratch = tempfile::tempdir().unwrap();
    let mut options = options();
    options.set("disable_auto_compactions", "true").unwrap();
    let db = Db::open(scratch.path(), &options).unwrap();
    for number in 0..60 {
        db.put(format!("key{number:05}"), "value").unwrap();
        db.flush_all().unwrap();
    }
    db.close().unwrap();
    let scan = |soft: u64, hard: u64| {
        let script = format!(
            "ulimit -Sn {soft} && ulimit -Hn {hard} && exec {} count --db {}",
            env!("CARGO_BIN_EXE_flagstone"),
            scratch.path().display()
        );
        Command::new("sh").args(["-c", &script]).output().unwrap()
    };
    let refused = scan(40, 40);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && said.contains("now 40"), "{said}");
    let (_, wanted) = said.split_once("now 40, to ").unwrap();
    let wanted = wanted.split_once(' ').unwrap().0.parse().unwrap();
    let counted = scan(wanted, wanted);
    assert!(counted.status.success(), "{}", String::from_utf8_lossy(&counted.stderr));
    // The soft limit is raised.
    let counted = scan(40, wanted);
    assert_eq!(String::from_utf8(counted.stdout).unwrap(), "60\n");
    assert_eq!(failed(&format!("count --db {}", scratch.path().display())).0, 0);
}
