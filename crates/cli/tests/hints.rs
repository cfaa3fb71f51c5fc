//! What the program says unasked, what it understands besides the exact names, and bytes in JSON.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output};

use common::{failed, printed, run, run_with_input};
use serde_json::{Value, json};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command that succeeds says on stderr.
fn remarks(line: &str) -> String {
    let output = run(line);
    assert!(output.status.success(), "{line}: {output:?}");
    said(&output)
}

/// A slip in `--db` made a database somewhere, and nothing said so.
#[test]
fn a_new_database_is_announced_once() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    std::fs::write(at("file"), "contents").unwrap();
    let note = |name: &str| format!("note: created a new database in {}", at(name));
    for (name, line) in [
        ("put", format!("put --db {} key value", at("put"))),
        ("ttl", format!("put --db {} --ttl key value", at("ttl"))),
        ("imported", format!("import --db {} {}", at("imported"), at("file"))),
    ] {
        let first = remarks(&line);
        assert!(first.contains(&note(name)), "{line}: {first}");
        let again = remarks(&line);
        assert!(!again.contains("created a new database"), "{line}: {again}");
    }
    let dump = run(&format!("dump --db {}", at("put"))).stdout;
    let loaded = run_with_input(&format!("load --db {}", at("loaded")), &dump);
    assert!(loaded.status.success() && said(&loaded).contains(&note("loaded")), "{loaded:?}");
    assert_eq!(remarks(&format!("get --db {} key", at("loaded"))), "");
}

/// The names that people know were refused.
#[test]
fn values_of_options_have_short_names() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    printed(&format!(
        "put --db {db} key value --set compression=zstd --set compaction_style=universal \
         --set wal_recovery_mode=point_in_time_recovery"
    ));
    let options = std::fs::read_dir(&db).unwrap().map(|entry| entry.unwrap().path());
    let newest = options.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max();
    let text = std::fs::read_to_string(newest.unwrap()).unwrap();
    assert!(text.contains("compression=kZSTD\n"), "{text}");
    assert!(text.contains("compaction_style=kCompactionStyleUniversal\n"), "{text}");
}

/// Applications set these by habit, and a command that had one of them did nothing.
#[test]
fn options_without_effect_are_noted_and_not_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    let line = format!("put --db {db} key value");
    let note = remarks(&format!(
        "{line} --set table_cache_numshardbits=9 --set db.use_adaptive_mutex=true"
    ));
    assert!(note.contains("table_cache_numshardbits=9 has no effect and is left out"), "{note}");
    assert!(note.contains("db.use_adaptive_mutex=true has no effect"), "{note}");
    let note = remarks(&format!("{line} --set unordered_write=true"));
    assert!(note.contains("no effect; the OPTIONS file keeps it for RocksDB"), "{note}");
    // At their defaults they ask for nothing.
    assert_eq!(remarks(&format!("{line} --set max_log_file_size=0")), "");
    // What would be missed is refused.
    let (code, message) = failed(&format!("{line} --set use_fsync=true"));
    assert!(code == 2 && message.contains("not supported yet"), "{message}");
}

/// Options and commands had suggestions, and no other name.
#[test]
fn every_kind_of_misspelt_name_is_answered_with_the_nearest() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    printed(&format!("put --db {db} key value"));
    printed(&format!("create-family --db {db} thumbnails"));
    for (line, meant) in [
        (format!("scna --db {db}"), "'scan'"),
        (format!("scan --db {db} --keysonly"), "'--keys-only'"),
        (format!("put --db {db} k v --set write_bufer_size=1m"), "'write_buffer_size'"),
        (format!("put --db {db} k v --set compression=zst"), "'kZSTD'"),
        (format!("put --db {db} k v --set compaction_style=leveled"), "'kCompactionStyleLevel'"),
        (format!("scan --db {db} --cf thumbnail"), "did you mean 'thumbnails'?"),
        (format!("drop-family --db {db} tumbnails"), "did you mean 'thumbnails'?"),
        (format!("stats --db {db} --property rocksdb.levelstat"), "'rocksdb.levelstats'"),
        (format!("stats --db {db} --property levelstats"), "'rocksdb.levelstats'"),
        (format!("bench --benchmarks=fillrandm --db={db}x"), "fillrandom"),
    ] {
        let (code, message) = failed(&line);
        assert!(code == 2 && message.contains(meant), "{line}: {code}: {message}");
        assert!(message.len() < 1500, "{line}: {message}");
    }
    let (_, message) = failed(&format!("scan --db {db} --cf orders"));
    assert!(!message.contains("mean"), "{message}");
}

fn flagstone(directory: &Path, arguments: &[&[u8]]) -> Output {
    let arguments = arguments.iter().map(|argument| OsStr::from_bytes(argument));
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagstone"));
    command.args(arguments).current_dir(directory).output().unwrap()
}

/// Text was escaped in a way of its own within JSON's, so that `"a\\b"` was `a\\\\b`.
#[test]
fn json_has_text_as_it_is_and_other_bytes_in_base64() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let text = "back\\slash \"quoted\"\n\u{1}\u{7f} \u{e4}\u{20ac}\u{1f600}";
    let put = |key: &[u8], value: &[u8]| {
        let done = flagstone(directory, &[b"put", b"--db", b"db", b"--", key, value]);
        assert!(done.status.success(), "{done:?}");
    };
    put(text.as_bytes(), text.as_bytes());
    put(b"k\xff", b"v\xfe\xfd");
    let lines = |arguments: &[&[u8]]| -> Vec<Value> {
        let output = flagstone(directory, arguments);
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let expected = [
        json!({ "key": text, "value": text }),
        json!({ "key_base64": "a/8=", "value_base64": "dv79" }),
    ];
    assert_eq!(lines(&[b"scan", b"--db", b"db", b"--json"]), expected);
    let got = lines(&[b"get", b"--db", b"db", b"--json", b"k\xff"]);
    assert_eq!(got, expected[1..]);
    let keys = lines(&[b"scan", b"--db", b"db", b"--json", b"--keys-only"]);
    assert_eq!(keys, [json!({ "key": text }), json!({ "key_base64": "a/8=" })]);
    let hex = lines(&[b"scan", b"--db", b"db", b"--json", b"--hex", b"--prefix", b"6b"]);
    assert_eq!(hex, [json!({ "key": "6bff", "value": "76fefd" })]);

    flagstone(directory, &[b"flush", b"--db", b"db"]);
    let files = lines(&[b"list-files", b"--db", b"db", b"--json"]);
    let has = |name: &str, value: &str| files.iter().any(|file| file[name] == value);
    assert!(has("smallest_key", text) && has("largest_key_base64", "a/8="), "{files:?}");
    // A name on a Unix disk need not be UTF-8 either.
    std::fs::create_dir(directory.join(OsStr::from_bytes(b"d\xff"))).unwrap();
    flagstone(directory, &[b"put", b"--db", b"d\xff", b"key", b"value"]);
    flagstone(directory, &[b"flush", b"--db", b"d\xff"]);
    let files = lines(&[b"list-files", b"--db", b"d\xff", b"--json"]);
    assert!(files[0]["path_base64"].as_str().unwrap().starts_with("ZP8v"), "{files:?}");
}

/// Values that are printed piece by piece are cut anywhere.
#[test]
fn a_large_value_is_text_or_base64_as_a_whole() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let text = "\u{20ac}\u{e4}x".repeat(600_000);
    let mut broken = text.clone().into_bytes();
    *broken.last_mut().unwrap() = 0xff;
    let settings = "--set min_blob_size=1k --set blob_compression_type=none";
    for (name, value) in [("text", text.as_bytes()), ("broken", &broken[..])] {
        std::fs::write(directory.join(name), value).unwrap();
        let at = directory.display();
        printed(&format!("put --db {at}/db {name} --file {at}/{name} {settings}"));
        for line in ["get --json", "scan --json --prefix"] {
            let output = printed(&format!("{line} {name} --db {at}/db"));
            let line: Value = serde_json::from_str(&output).unwrap();
            if name == "text" {
                assert!(line["value"] == text.as_str(), "{line}");
            } else {
                let base64 = line["value_base64"].as_str().unwrap();
                assert_eq!(base64.len(), broken.len().div_ceil(3) * 4);
                assert!(base64.starts_with("4oKsw6R4") && line["value"].is_null());
            }
        }
    }
}

/// It was left out without a word, and the exit code was 0.
#[test]
fn a_pipe_that_is_named_is_not_imported_and_said_so() {
    let scratch = tempfile::tempdir().unwrap();
    let (pipe, file) = (scratch.path().join("pipe"), scratch.path().join("file"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::fs::write(&file, "contents").unwrap();
    let db = scratch.path().join("db");
    let line = format!("import --db {} {}", db.display(), pipe.display());
    let (code, message) = failed(&line);
    assert!(code == 1 && message.contains("neither a file nor a directory"), "{message}");
    assert!(!db.exists());
    let (code, message) = failed(&format!("{line} {}", file.display()));
    assert!(code == 1 && message.contains("neither a file nor a directory"), "{message}");
    assert_eq!(printed(&format!("get --db {} file", db.display())), "contents");
}

/// A slip in the OPTIONS file kept `check` from looking at any file.
#[test]
fn a_check_looks_at_files_despite_the_options_file() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db");
    printed(&format!("put --db {} key value", db.display()));
    let entries = std::fs::read_dir(&db).unwrap().map(|entry| entry.unwrap().path());
    let options = entries.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
    let text = std::fs::read_to_string(&options).unwrap();
    let wrong =
        text.replace("compaction_style=kCompactionStyleLevel", "compaction_style=kLevelled");
    assert_ne!(text, wrong);
    std::fs::write(&options, wrong).unwrap();
    std::fs::write(db.join("000099.sst"), "nothing names it").unwrap();
    let output = run(&format!("check --db {}", db.display()));
    let told = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(told.starts_with("FAULT") && told.contains("kLevelled"), "{told}");
    assert!(told.contains("000099.sst") && told.contains("1 stray"), "{told}");
}
