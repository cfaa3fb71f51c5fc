//! Stories of `flagstone backup`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "each binary of tests uses some of it")]
mod common;

use std::path::Path;

use common::run;

/// What a command prints, and its exit code.
fn told(line: &str) -> (String, i32) {
    let output = run(line);
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code().unwrap())
}

fn done(line: &str) -> String {
    let (text, code) = told(line);
    assert_eq!(code, 0, "{line}: {text}");
    text
}

#[test]
fn backups_are_made_listed_verified_restored_and_removed() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let (db, dir, copy) = (at("db"), at("backups"), at("copy"));
    done(&format!("put --db {db} stone flag"));
    assert_eq!(done(&format!("backup create --db {db} --dir {dir} --metadata nightly")), "1\n");
    done(&format!("put --db {db} stone grey"));
    let made =
        done(&format!("backup create --db {db} --dir {dir} --flush --threads 2 --rate 50M --json"));
    assert_eq!(made, "{\"backup\":2}\n");
    let listed = done(&format!("backup list --dir {dir} --files"));
    assert!(listed.starts_with("1: 20") && listed.contains("'nightly'"), "{listed}");
    assert!(listed.contains("shared_checksum/"), "{listed}");
    let as_json = done(&format!("backup list --dir {dir} --json"));
    let first: serde_json::Value = serde_json::from_str(as_json.lines().next().unwrap()).unwrap();
    assert_eq!((&first["backup"], &first["metadata"]), (&1.into(), &"nightly".into()));
    assert_eq!(done(&format!("backup verify --dir {dir}")), "1: sound\n2: sound\n");
    assert_eq!(done(&format!("backup restore --dir {dir} --db {copy} --id 1")), "1\n");
    assert_eq!(done(&format!("get --db {copy} stone")), "flag");
    assert_eq!(done(&format!("backup restore --dir {dir} --db {copy} --keep")), "2\n");
    assert_eq!(done(&format!("get --db {copy} stone")), "grey");
    done(&format!("backup delete --dir {dir} --id 1"));
    let (text, code) = told(&format!("backup delete --dir {dir} --id 1"));
    assert!(code == 1 && text.contains("there is no backup 1"), "{text}");
    done(&format!("backup create --db {db} --dir {dir} --schema 2"));
    done(&format!("backup purge --dir {dir} --keep 1"));
    assert!(done(&format!("backup list --dir {dir}")).starts_with("3: "));
}

#[test]
fn a_damaged_backup_is_told_by_the_exit_code() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let (db, dir) = (at("db"), at("backups"));
    done(&format!("put --db {db} stone flag"));
    done(&format!("backup create --db {db} --dir {dir}"));
    let current = Path::new(&dir).join("private/1/CURRENT");
    std::fs::write(&current, "MANIFEST-999999\n").unwrap();
    let (text, code) = told(&format!("backup verify --dir {dir}"));
    assert!(code == 1 && text.contains("1: DAMAGED: ") && text.contains("CURRENT"), "{text}");
    std::fs::remove_file(&current).unwrap();
    let (text, code) = told(&format!("backup list --dir {dir} --json"));
    assert!(code == 1 && text.contains("\"damage\""), "{text}");
    let (text, code) = told(&format!("backup restore --dir {dir} --db {}", at("copy")));
    assert_eq!(code, 1, "{text}");
    let (text, code) = told(&format!("backup purge --dir {} --keep 1", at("nowhere")));
    assert!(code == 1 && text.contains("there is no directory of backups"), "{text}");
    assert!(!Path::new(&at("nowhere")).exists());
}
