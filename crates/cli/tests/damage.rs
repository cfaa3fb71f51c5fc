//! What commands say and do where files of a database are missing or damaged.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "each binary of tests uses some of it")]
mod common;

use std::path::{Path, PathBuf};

use common::{failed, printed, run};
use flagstone::db::Db;
use flagstone::options::Options;

/// A database with a table of 20 keys, and `settings`.
fn with_table(path: &Path, settings: &str) {
    let mut options = Options::default();
    options
        .set_all(&format!("create_if_missing=true;compression=kNoCompression;{settings}"))
        .unwrap();
    let db = Db::open(path, &options).unwrap();
    (10..30).for_each(|key| db.put(format!("key{key}"), [b'v'; 100]).unwrap());
    db.flush_all().unwrap();
    db.close().unwrap();
}

fn last_file(directory: &Path, part: &str) -> PathBuf {
    let all = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.file_name().unwrap().to_str().unwrap().contains(part)).max().unwrap()
}

fn options_file(path: &Path) -> String {
    std::fs::read_to_string(last_file(path, "OPTIONS")).unwrap()
}

/// The setting that got one command past a lost WAL stood in the OPTIONS file, and the next lost
/// WAL was passed over, too.
#[test]
fn a_setting_that_passes_over_damage_holds_for_one_command() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    with_table(&path, "");
    let db = path.display();
    std::fs::remove_file(last_file(&path, ".log")).unwrap();
    let (code, said) = failed(&format!("put --db {db} a b"));
    assert!(code == 1 && said.contains("kSkipAnyCorruptedRecords"), "{said}");
    let skipping = "--set wal_recovery_mode=kSkipAnyCorruptedRecords";
    let put = run(&format!("put --db {db} {skipping} a b"));
    let said = String::from_utf8_lossy(&put.stderr);
    assert!(put.status.success() && said.contains("holds for this command"), "{said}");
    assert!(options_file(&path).contains("wal_recovery_mode=kPointInTimeRecovery"));

    std::fs::remove_file(last_file(&path, ".log")).unwrap();
    let (code, said) = failed(&format!("put --db {db} a b"));
    assert!(code == 1 && said.contains(".log"), "{said}");

    // What notices damage is noted, as are other settings.
    let settings = "--set db.paranoid_checks=false --set max_open_files=77";
    printed(&format!("put --db {db} {skipping} {settings} a b"));
    let kept = options_file(&path);
    assert!(kept.contains("paranoid_checks=true") && kept.contains("max_open_files=77"), "{kept}");
    printed(&format!("put --db {db} --set wal_recovery_mode=kAbsoluteConsistency a b"));
    assert!(options_file(&path).contains("wal_recovery_mode=kAbsoluteConsistency"));
}

/// It read as a slip in a path on the command line, though the MANIFEST names the file; and verify
/// counted it as read.
#[test]
fn a_file_that_is_missing_is_named_with_what_helps() {
    let scratch = tempfile::tempdir().unwrap();
    for (settings, kind) in [("enable_blob_files=false", ".sst"), ("min_blob_size=50", ".blob")] {
        let path = scratch.path().join(&kind[1..]);
        with_table(&path, settings);
        let file = last_file(&path, kind);
        std::fs::remove_file(&file).unwrap();
        let db = path.display();
        for command in ["scan", "get key10"] {
            let (code, said) = failed(&format!("{command} --db {db} --set paranoid_checks=false"));
            assert!(code == 1 && said.contains(file.to_str().unwrap()), "{command}: {said}");
            assert!(
                said.contains("it is missing") && said.contains("flagstone salvage"),
                "{command}: {said}"
            );
            assert!(!said.contains("Nothing has that name"), "{command}: {said}");
        }
        let verified = run(&format!("verify --db {db}"));
        let said = String::from_utf8(verified.stdout).unwrap();
        assert!(verified.status.code() == Some(1) && said.matches("FAULT").count() == 1, "{said}");
        assert!(said.contains("it is missing") && said.contains("flagstone salvage"), "{said}");
        let read = if kind == ".sst" { "0 tables, 0 blob files" } else { "1 table, 0 blob files" };
        assert!(said.contains(read), "{said}");
    }
}

/// A byte of the table's first data block.
fn damage_data(path: &Path) {
    let table = last_file(path, ".sst");
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&table, bytes).unwrap();
}

/// A damaged table that needed no rewriting was passed over without a word, and the doctor called
/// the database healthy.
#[test]
fn a_command_says_which_tables_it_has_not_read() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    with_table(&path, "enable_blob_files=false");
    damage_data(&path);
    let db = path.display();
    let said = printed(&format!("compact --db {db}"));
    assert!(
        said.contains("1 table needed no rewriting and was not read; flagstone verify"),
        "{said}"
    );
    assert_eq!(printed(&format!("compact --db {db} --json")), "{\"unread_tables\":1}\n");
    let elsewhere = printed(&format!("compact --db {db} --from x"));
    assert!(elsewhere.is_empty(), "{elsewhere}");
    let said = printed(&format!("doctor --db {db}"));
    assert!(said.contains("healthy; not read: data blocks of tables"), "{said}");
    let (code, said) = failed(&format!("compact --db {db} --force-bottommost"));
    assert!(code == 1 && said.contains(".sst"), "{said}");
}

/// Wherever the damage lies that an opening of the table meets, with or without a cache for the
/// index.
#[test]
fn the_doctor_finds_tables_whose_footer_or_index_is_damaged() {
    for settings in
        ["", "table.cache_index_and_filter_blocks=true", "table.index_type=kTwoLevelIndexSearch"]
    {
        for from_end in [5, 70] {
            let scratch = tempfile::tempdir().unwrap();
            let path = scratch.path().join("db");
            with_table(&path, &format!("enable_blob_files=false;{settings}"));
            let table = last_file(&path, ".sst");
            let mut bytes = std::fs::read(&table).unwrap();
            let place = bytes.len() - from_end;
            bytes[place] ^= 1;
            std::fs::write(&table, bytes).unwrap();
            let output = run(&format!("doctor --db {}", path.display()));
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(
                output.status.code() == Some(1) && said.contains("BROKEN"),
                "{settings} {from_end}: {said}"
            );
            assert!(said.contains(table.to_str().unwrap()), "{settings} {from_end}: {said}");
        }
    }
}

/// A slip in the OPTIONS file kept the whole database from being read.
#[test]
fn the_rest_of_a_database_with_a_faulty_options_file_is_verified() {
    for (are_all, is_damaged) in [(false, false), (true, false), (true, true)] {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("db");
        with_table(&path, "enable_blob_files=false");
        let slip = |file: &Path| {
            let text = std::fs::read_to_string(file).unwrap();
            std::fs::write(file, text.replace("max_open_files=-1", "max_open_files=many")).unwrap();
        };
        let newest = last_file(&path, "OPTIONS");
        slip(&newest);
        if are_all {
            let all = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            all.filter(|file| file.to_str().unwrap().contains("OPTIONS"))
                .for_each(|file| slip(&file));
        }
        if is_damaged {
            damage_data(&path);
        }
        let output = run(&format!("verify --db {}", path.display()));
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let faults = 1 + usize::from(is_damaged);
        assert!(said.contains("1 table, 0 blob files and 1 WAL read"), "{said}");
        assert_eq!(said.matches("FAULT").count(), faults, "{said}");
        assert!(
            said.contains(newest.to_str().unwrap()) && said.contains("max_open_files"),
            "{said}"
        );
        let output = run(&format!("doctor --db {}", path.display()));
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.code() == Some(1) && said.contains(newest.to_str().unwrap()),
            "{said}"
        );
    }
}
