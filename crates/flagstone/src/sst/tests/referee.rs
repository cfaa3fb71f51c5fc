//! RocksDB's own `sst_dump` accepts what is built here, where it is installed.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use super::forms::all_settings;
use super::support::{build, entries};
use crate::env::{Env, IoMode};

#[test]
fn sst_dump_verifies_tables_of_every_form() {
    if Command::new("sst_dump").arg("--help").output().is_err() {
        // Not by println, whose output is kept back where a test passes.
        let word = b"SKIPPED: sst_dump is not installed (Debian package rocksdb-tools)\n";
        std::io::stderr().write_all(word).unwrap();
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let entries = entries(300);
    for (name, settings) in all_settings() {
        // RocksDB 7.8 reads up to format version 5.
        if settings.format_version > 5 {
            continue;
        }
        let built = build(settings, &entries, &[("key0000100", "key0000200", 900)]);
        let path = directory.path().join("000007.sst");
        write(&path, &built.bytes());
        let verified = dump(&path, "verify");
        assert!(
            !verified.contains("corrupt") && !verified.contains("Corrupt"),
            "{name}: {verified}"
        );
        let scanned = dump(&path, "scan");
        let shown = scanned
            .lines()
            .filter(|line| line.starts_with('\'') && line.contains("' seq:"))
            .count();
        assert_eq!(shown, entries.len(), "{name}: {scanned}");
    }
}

fn write(path: &Path, bytes: &[u8]) {
    let file = Env::os().fs.create_writable(path, IoMode::Buffered).unwrap();
    file.write_at(0, bytes).unwrap();
}

fn dump(path: &Path, command: &str) -> String {
    let output = Command::new("sst_dump")
        .arg(format!("--file={}", path.display()))
        .arg(format!("--command={command}"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {text}{errors}");
    format!("{text}{errors}")
}
