//! `flagstone verify` and the files that are no tables: WALs and the MANIFEST.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flagstone::db::Db;
use flagstone::options::Options;

fn asked(path: &Path, arguments: &[&str]) -> (String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagstone"));
    let output = command.args(["verify", "--db"]).arg(path).args(arguments).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
}

/// A database of which all is in its WAL: twenty values of a hundred bytes.
fn written(path: &Path) -> PathBuf {
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = Db::open(path, &options).unwrap();
    for key in 10..30 {
        db.put(format!("key{key}"), [b'v'; 100]).unwrap();
    }
    db.close().unwrap();
    file(path, ".log")
}

fn file(path: &Path, part: &str) -> PathBuf {
    let mut files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.file_name().unwrap().to_string_lossy().contains(part)).unwrap()
}

fn flip(file: &Path, behind: &[u8]) {
    let mut bytes = std::fs::read(file).unwrap();
    let at = bytes.windows(behind.len()).position(|window| window == behind).unwrap();
    bytes[at + behind.len() + 40] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

/// That was sound, and the next opening threw away fifteen values.
#[test]
fn a_damaged_record_of_a_wal_is_a_fault_under_every_mode() {
    let scratch = tempfile::tempdir().unwrap();
    let wal = written(scratch.path());
    let (said, code) = asked(scratch.path(), &[]);
    assert!(
        code == 0 && said.contains("0 blob files and 1 WAL read") && said.ends_with("sound\n"),
        "{said}"
    );
    flip(&wal, b"key14");
    let name = wal.file_name().unwrap().to_str().unwrap();
    for mode in ["kPointInTimeRecovery", "kAbsoluteConsistency", "kTolerateCorruptedTailRecords"] {
        let (said, code) = asked(scratch.path(), &["--set", &format!("wal_recovery_mode={mode}")]);
        assert!(code == 1 && said.contains("FAULT") && said.contains(name), "{mode}: {said}");
        let (said, code) =
            asked(scratch.path(), &["--json", "--set", &format!("wal_recovery_mode={mode}")]);
        let report: serde_json::Value = serde_json::from_str(&said).unwrap();
        let fault = report["faults"].as_array().unwrap().last().unwrap();
        assert!(code == 1 && fault["file"].as_str().unwrap().ends_with(name), "{mode}: {said}");
        assert!(fault["offset"].as_u64().is_some_and(|offset| offset > 0), "{mode}: {said}");
    }
}

#[test]
fn a_wal_whose_end_is_torn_is_a_note() {
    let scratch = tempfile::tempdir().unwrap();
    let wal = written(scratch.path());
    let file = std::fs::File::options().write(true).open(&wal).unwrap();
    file.set_len(std::fs::metadata(&wal).unwrap().len() - 10).unwrap();
    let (said, code) = asked(scratch.path(), &[]);
    assert!(code == 0 && said.contains("as after a crash") && said.ends_with("sound\n"), "{said}");
    let (said, code) = asked(scratch.path(), &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(code == 0 && report["notes"][0]["offset"].as_u64().is_some(), "{said}");
}

/// JSON had nothing of what a database does not open for.
#[test]
fn a_manifest_that_is_damaged_is_a_fault() {
    let scratch = tempfile::tempdir().unwrap();
    written(scratch.path());
    let manifest = file(scratch.path(), "MANIFEST");
    let mut bytes = std::fs::read(&manifest).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&manifest, bytes).unwrap();
    let (said, code) = asked(scratch.path(), &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    let file = report["faults"][0]["file"].as_str().unwrap();
    assert!(code == 1 && file.contains("MANIFEST"), "{said}");
}

/// Any two names that are no UTF-8 were the same one.
#[cfg(target_os = "linux")]
#[test]
fn no_path_loses_bytes_in_json() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join(OsStr::from_bytes(b"db-\xff"));
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = Db::open(&path, &options).unwrap();
    db.put("key", [b'v'; 1000]).unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    let table = file(&path, ".sst");
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[10] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    std::fs::write(path.join("999999.sst"), b"").unwrap();
    for command in ["verify", "check", "list-files", "sst"] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_flagstone"));
        program.args([command, "--json"]);
        match command {
            "sst" => program.arg(&table),
            _ => program.arg("--db").arg(&path),
        };
        let said = String::from_utf8(program.output().unwrap().stdout).unwrap();
        let base64 = said.split("base64\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let mut decoder = Command::new("base64");
        decoder.arg("--decode").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut decoder = decoder.spawn().unwrap();
        let given = decoder.stdin.take().unwrap().write_all(base64.unwrap_or_default().as_bytes());
        let decoded = given.and_then(|()| decoder.wait_with_output()).unwrap().stdout;
        let is_there = decoded.windows(6).any(|part| part == b"/db-\xff/");
        assert!(is_there, "{command}: {said}");
    }
}
