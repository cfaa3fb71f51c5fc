//! Databases that are encrypted with the key in a file.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::fs;

use common::{failed, printed, run};

#[test]
fn commands_read_and_write_with_the_key_and_refuse_another() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    fs::write(at("key"), "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n")
        .unwrap();
    fs::write(at("other"), [7; 32]).unwrap();
    fs::write(at("short"), "12345").unwrap();
    let (db, key) = (at("db"), format!("--encryption-key-file {}", at("key")));
    printed(&format!("put --db {db} {key} stone plaintext-flag"));
    assert_eq!(printed(&format!("get --db {db} {key} stone")), "plaintext-flag");
    printed(&format!("flush --db {db} {key}"));
    for command in [
        format!("verify --db {db} {key}"),
        format!("doctor --db {db} {key}"),
        format!("list-families --db {db} {key}"),
        format!("list-files --db {db} {key}"),
        format!("manifest --db {db} {key}"),
        format!("sst {db} {key} --entries"),
        format!("top --db {db} {key} --once"),
        format!("checkpoint --db {db} {key} {}", at("copy")),
        format!("backup create --db {db} {key} --dir {}", at("backups")),
        format!("backup restore --db {} {key} --dir {}", at("restored"), at("backups")),
        format!("salvage --db {db} {key} --to {}", at("salvaged")),
    ] {
        let output = run(&command);
        assert!(output.status.success(), "{command}: {output:?}");
    }
    for name in ["db", "copy", "restored", "salvaged"] {
        assert_eq!(printed(&format!("get --db {} {key} stone", at(name))), "plaintext-flag");
    }
    let mut directories = vec![scratch.path().to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let is_plain = bytes.windows(9).any(|window| window == b"plaintext");
            assert!(!is_plain, "{}", path.display());
        }
    }
    let other = format!("--encryption-key-file {}", at("other"));
    for line in [format!("get --db {db} {other} stone"), format!("verify --db {db} {other}")] {
        let (_, said) = failed(&line);
        assert!(said.contains("the key does not fit"), "{line}: {said}");
    }
    let (_, said) = failed(&format!("get --db {db} --encryption-key-file {} stone", at("short")));
    assert!(said.contains("a key file has"), "{said}");
    assert!(!run(&format!("get --db {db} stone")).status.success());
}
